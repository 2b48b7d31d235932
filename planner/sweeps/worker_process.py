"""Process of a local worker: executes the calls that come over a connection inherited from its parent.

Both ends belong to processes of one user, and no other process can reach them, so pickles are safe here.
"""

from __future__ import annotations

import os
import pickle
import select
import sys
import threading
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from planner.errors import SolverFailure
from planner.sweeps import local_workers


def main(descriptor: int) -> None:
    """Execute calls until the parent is gone."""
    threading.Thread(target=_end_with_parent, args=[descriptor], name="parent watchdog", daemon=True).start()
    connection = Connection(descriptor)
    from planner.sweeps import trial_pool, worker  # noqa: F401 - loaded before the first call

    connection.send(None)
    shared: dict[int, Any] = {}
    while True:
        call = _load(connection.recv_bytes())
        if isinstance(call, int):
            shared[call] = _load(connection.recv_bytes())
            continue
        if isinstance(call, _Unreadable):
            connection.send_bytes(pickle.dumps((None, call.failure)))
            continue
        function, arguments = call
        connection.send_bytes(_execute(function, arguments, shared))


@dataclass(frozen=True)
class _Unreadable:
    """What was sent, where it cannot be read here, such as a function of a module that is not installed."""

    failure: SolverFailure


def _load(content: bytes) -> Any:
    """Return the object that was sent."""
    try:
        return pickle.loads(content)
    except Exception as error:  # whatever the module of what was sent raises
        text = f"a worker cannot load what is sent to it: {type(error).__name__}: {error}"
        return _Unreadable(SolverFailure(" ".join(text.split())))


def _execute(function: Any, arguments: tuple[Any, ...], shared: dict[int, Any]) -> bytes:
    """Return the pickled result and error of a call, one of them None."""
    try:
        values = [
            shared[argument.key] if isinstance(argument, local_workers.Shared) else argument
            for argument in arguments
        ]
        for value in values:
            if isinstance(value, _Unreadable):
                raise value.failure
        return pickle.dumps((function(*values), None))
    except Exception as error:
        try:
            content = pickle.dumps((None, error))
            pickle.loads(content)
        except Exception:  # some errors cannot be pickled, or not be made again
            text = f"{type(error).__name__}: {' '.join(str(error).split())}"
            return pickle.dumps((None, SolverFailure(text)))
        return content


def _end_with_parent(descriptor: int) -> None:
    """End this process as soon as the other end of the connection is closed."""
    poll = select.poll()
    poll.register(descriptor, 0)  # reports the end only
    poll.poll()
    os._exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]))
