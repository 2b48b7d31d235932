"""Kernels: functions to compile, each called in Python while that is faster than compiling it."""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from planner import clock

kernels: list[Kernel] = []
"""All that are decorated in the modules loaded so far."""


COMPILE_S_PER_BYTE = 5e-4
"""CPU seconds of compiling, per byte of Python's code of a kernel and of those that it calls: 0.3 to 1 of
280 kernels on one machine, by 1,000 bytes."""
LOADING_S = 0.02
"""CPU seconds that Python may take where the compiled code is on disk: loading it takes about as long."""


class _Ways(threading.local):
    """State of this thread's calls of kernels.

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
    make_dispatcher  makes Numba's dispatcher of a function with these options; Numba loads with it
    max_elements  of the arrays of a call that Python may run; 0: none
    max_python_s  CPU seconds that Python may take for such calls, where compiling takes longer
    python_s  CPU seconds that Python has taken for such calls
    is_compiled  whether all calls are compiled from now on
    python_form  called in place of the function where Python runs it; the function itself by default
    observe  called in place of a call from Python, with the kernel and its arguments; None for no observer
    """

    observe: Callable[[Kernel, tuple[Any, ...]], Any] | None = None

    def __init__(
        self,
        py_func: Callable[..., Any],
        options: dict[str, Any],
        make_dispatcher: Callable[[FunctionType, dict[str, Any]], Any],
    ) -> None:
        functools.update_wrapper(self, py_func)
        self.py_func: Any = py_func
        self.options = options
        self._make_dispatcher = make_dispatcher
        self.max_elements = 0
        self.max_python_s = math.inf
        self.python_s = 0.0
        self.is_compiled = True
        self.python_form: Any = py_func
        kernels.append(self)

    @functools.cached_property
    def dispatcher(self) -> Any:
        """Numba's dispatcher of the function."""
        clock.pause()  # loading Numba counts in no time limit
        try:
            return self._make_dispatcher(self.py_func, self.options)
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
            return self.python_form(*arguments)
        if self.observe is not None:
            return self.observe(self, arguments)
        if self.is_compiled or _ways.compiles_all or count_elements(arguments) > self.max_elements:
            self.is_compiled = True
            return self.dispatcher(*arguments)
        start = time.thread_time()
        try:
            return self.call_in_python(arguments)
        finally:
            self.python_s += time.thread_time() - start
            self.is_compiled = self.python_s > min(self.compile_s, self.max_python_s) or (
                self.python_s > LOADING_S and self.is_cached
            )

    @functools.cached_property
    def compile_s(self) -> float:
        """Approximate CPU seconds to compile the function, with all kernels that it calls."""
        return COMPILE_S_PER_BYTE * sum(len(code.co_code) for code in _reach(self.py_func))

    @functools.cached_property
    def is_cached(self) -> bool:
        """Whether Numba is loaded and has the compiled code of the function, as it is now, on disk."""
        return (
            "numba" in sys.modules and bool(self.options.get("cache")) and self.dispatcher._cache.has_code()
        )

    def call_in_python(self, arguments: tuple[Any, ...]) -> Any:
        """Call the function, and those that it calls, without compiling any of them."""
        _ways.in_python = True
        try:
            with np.errstate(all="ignore"):  # compiled code does not warn
                return self.python_form(*arguments)
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
    """Return the number of elements of the arrays among arguments, also within tuples; others count 1."""
    return sum(
        argument.size
        if isinstance(argument, np.ndarray)
        else count_elements(argument)
        if isinstance(argument, tuple)
        else 1
        for argument in arguments
    )


def _reach(function: FunctionType) -> set[CodeType]:
    """Return the code of a function and of all kernels that it calls, by names of their modules."""
    reached: set[CodeType] = set()
    waiting = [function]
    while waiting:
        called = waiting.pop()
        if called.__code__ in reached:
            continue
        reached.add(called.__code__)
        values = [called.__globals__.get(name) for name in called.__code__.co_names]
        waiting += [value.py_func for value in values if isinstance(value, Kernel)]
    return reached
