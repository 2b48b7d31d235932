"""Decorators of functions that Numba compiles when they are first called.

Numba is loaded with the first of them that is called: a command that calls none does not wait for it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from planner import clock

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

kernels: list[Kernel] = []
"""All that are decorated in the modules loaded so far."""


class Kernel:
    """A function to compile, which Numba takes for its own dispatcher where another kernel calls it.

    py_func  the function itself
    options  those of `numba.njit`
    """

    def __init__(self, py_func: Callable[..., Any], options: dict[str, Any]) -> None:
        functools.update_wrapper(self, py_func)
        self.py_func: Any = py_func
        self.options = options
        kernels.append(self)

    @functools.cached_property
    def dispatcher(self) -> Any:
        """Numba's dispatcher; calls from the function's own module go to it from now on."""
        clock.pause()  # loading Numba counts in no time limit
        try:
            from planner.compiler import make_dispatcher

            dispatcher = make_dispatcher(self.py_func, self.options)
        finally:
            clock.resume()
        names: dict[str, Any] = self.py_func.__globals__
        if names.get(self.py_func.__name__) is self:
            names[self.py_func.__name__] = dispatcher
        return dispatcher

    @property
    def _numba_type_(self) -> Any:
        return self.dispatcher._numba_type_

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the compiled function."""
        return self.dispatcher(*arguments, **named)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the dispatcher, such as `signatures`."""
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.dispatcher, name)


def _njit(**options: Any) -> Any:
    """Return the decorator of `numba.njit` with these options, where `cache` follows all that is compiled."""
    return functools.partial(Kernel, options=options)


if TYPE_CHECKING:
    from numba import njit as njit
else:
    njit = _njit


def kernel(function: FunctionT) -> FunctionT:
    """Compile a function that is called from Python; the code is cached."""
    return cast("FunctionT", njit(cache=True, error_model="numpy")(function))


def inner(function: FunctionT) -> FunctionT:
    """Compile a function that only compiled code calls, without the wrappers for other calls."""
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast("FunctionT", njit(error_model="numpy", **options)(function))
