"""Workers that are this process: a sweep on them takes no start of an interpreter, which is over a second.

Calls, shared values and results are pickled and read again, as on their way to a process and back.
"""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, Final

NAME: Final = "this process"


class InProcessWorkers:
    """One worker that executes each call when it is submitted; see `workers.Workers`."""

    def names(self) -> tuple[str, ...]:
        """Return the name of the one worker."""
        return (NAME,)

    def share(self, value: Any) -> Any:
        """Return a value as a worker would get it."""
        return pickle.loads(pickle.dumps(value))

    def submit(self, function: Callable[..., Any], *arguments: Any, worker: str | None = None) -> Future[Any]:
        """Execute a call; return its finished future."""
        assert worker in (None, NAME)
        future: Future[Any] = Future()
        call, values = pickle.loads(pickle.dumps((function, arguments)))
        try:
            future.set_result(pickle.loads(pickle.dumps(call(*values))))
        except Exception as error:  # as a worker returns any error of a call
            future.set_exception(pickle.loads(pickle.dumps(error)))
        return future


@contextlib.contextmanager
def open_in_process(*_: Any, **__: Any) -> Iterator[InProcessWorkers]:
    """Return the worker, whatever is asked for; takes the place of `open_workers`."""
    yield InProcessWorkers()
