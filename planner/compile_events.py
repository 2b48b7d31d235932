"""Listens to Numba: observers get the name of each kernel, and the clock of time limits is stopped meanwhile.

`planner.compiler` begins to listen before it compiles the first kernel. This module does not import Numba.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

from planner import clock

COMPILING: Final = "numba:compile"
"""Numba's event around the compilation of one function, also of one that another calls."""

WORKING: Final = "numba:compiler_lock"
"""Numba's event around everything that its compiler does, such as reading its cache."""

_observers: list[Callable[[str], None]] = []
_is_listening = False


@contextlib.contextmanager
def observe_compiling(observer: Callable[[str], None]) -> Iterator[None]:
    """Call `observer` with the name of each kernel that begins to compile."""
    _observers.append(observer)
    try:
        yield
    finally:
        _observers.remove(observer)


def listen() -> None:
    """Begin to listen, once in each process and only where Numba is there already."""
    global _is_listening
    if _is_listening or "numba" not in sys.modules:
        return
    _is_listening = True
    from numba.core import event

    class Listener(event.Listener):
        """Takes Numba's events."""

        def on_start(self, event: Any) -> None:
            """Stop the clock, or tell observers the name of the kernel."""
            if event.kind == WORKING:
                clock.pause()
                return
            for observer in _observers:
                observer(event.data["dispatcher"].py_func.__qualname__)

        def on_end(self, event: Any) -> None:
            """Let the clock run again."""
            if event.kind == WORKING:
                clock.resume()

    listener = Listener()
    for kind in (WORKING, COMPILING):
        event.register(kind, listener)  # type: ignore[no-untyped-call]
