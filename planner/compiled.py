"""Decorators of functions that Numba compiles when they are first called.

Numba is loaded with the first of them that is compiled: a command that compiles none does not wait for it.
Compiling takes seconds where Python would take milliseconds for a small problem. A kernel that
`run_small_in_python` marks is therefore run by Python where its arguments are small, until its calls have had
a stated amount of input. It may say so only if its results are the same to the bit, which
`planner.testing.kernels` checks call by call.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from planner import clock

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

kernels: list[Kernel] = []
"""All that are decorated in the modules loaded so far."""


class _Ways(threading.local):
    """How this thread calls kernels.

    in_python     a kernel is run by Python: those that it calls are then run so too
    compiles_all  kernels are compiled also where Python may run them
    """

    in_python = False
    compiles_all = False


_ways = _Ways()


class Kernel:
    """A function to compile, which Numba takes for its own dispatcher where another kernel calls it.

    py_func  the function itself
    options  those of `numba.njit`
    most_elements, elements_left  of arrays that Python takes in one call, and in all calls from now on
    observe  called in place of a call from Python, with the kernel and its arguments; None for no observer
    """

    observe: Callable[[Kernel, tuple[Any, ...]], Any] | None = None

    def __init__(self, py_func: Callable[..., Any], options: dict[str, Any]) -> None:
        functools.update_wrapper(self, py_func)
        self.py_func: Any = py_func
        self.options = options
        self.most_elements = self.elements_left = 0
        kernels.append(self)

    @functools.cached_property
    def dispatcher(self) -> Any:
        """Numba's dispatcher of the function."""
        clock.pause()  # loading Numba counts in no time limit
        try:
            from planner.compiler import make_dispatcher

            return make_dispatcher(self.py_func, self.options)
        finally:
            clock.resume()

    @property
    def _numba_type_(self) -> Any:
        return self.dispatcher._numba_type_

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the compiled function, or the function itself where Python may run it."""
        if named:
            arguments = inspect.signature(self.py_func).bind(*arguments, **named).args
        if _ways.in_python:
            return self.py_func(*arguments)
        if self.observe is not None:
            return self.observe(self, arguments)
        if _ways.compiles_all:
            self.elements_left = 0
        if self.elements_left > 0:
            elements = count_elements(arguments)
            self.elements_left -= elements
            if elements <= self.most_elements and self.elements_left >= 0:
                return self.call_in_python(arguments)
        return self.dispatcher(*arguments)

    def call_in_python(self, arguments: tuple[Any, ...]) -> Any:
        """Call the function, and those that it calls, without compiling any of them."""
        _ways.in_python = True
        try:
            with np.errstate(all="ignore"):  # compiled code does not warn
                return self.py_func(*arguments)
        finally:
            _ways.in_python = False

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the dispatcher, such as `signatures`."""
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.dispatcher, name)


@contextlib.contextmanager
def compile_all() -> Iterator[None]:
    """Compile each kernel that is called within the block, also those that Python may run."""
    before, _ways.compiles_all = _ways.compiles_all, True
    try:
        yield
    finally:
        _ways.compiles_all = before


def count_elements(arguments: tuple[Any, ...]) -> int:
    """Return how many elements the arrays among arguments have, also those within tuples; others count 1."""
    return sum(
        one.size if isinstance(one, np.ndarray) else count_elements(one) if isinstance(one, tuple) else 1
        for one in arguments
    )


def run_small_in_python(*, in_one_call: int, in_all: int) -> Callable[[FunctionT], FunctionT]:
    """Return a decorator of kernels, above their own: Python runs the first small calls.

    in_one_call  most elements that the arrays of a call have, for which Python takes much less than compiling
    in_all  most elements of all calls together; then the kernel is compiled
    """

    def mark(kernel: FunctionT) -> FunctionT:
        small = cast("Kernel", kernel)
        small.most_elements, small.elements_left = in_one_call, in_all
        return kernel

    return mark


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
