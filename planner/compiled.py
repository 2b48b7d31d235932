"""Decorators of functions that Numba compiles when they are first called.

Numba is loaded with the first of them that is compiled: a command that compiles none does not wait for it.
Compiling takes seconds where Python would take milliseconds for a small problem. A kernel that
`run_small_in_python` marks is therefore run by Python where its arguments are small, until its calls have
taken about as long as compiling it would, by the length of its code. It may say so only if its results are
the same to the bit, which `planner.testing.kernels` checks call by call.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from planner.kernels import Kernel

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def run_small_in_python(*, max_elements: int, max_s: float = math.inf) -> Callable[[FunctionT], FunctionT]:
    """Return a decorator of kernels, above their own: Python runs the first small calls.

    max_elements  of the arrays of a call, for which Python takes much less than compiling; from a larger call
        on the kernel is compiled
    max_s  CPU seconds that Python may take in all, where that is less than compiling takes: of kernels whose
        calls do not tell by their arguments how long they take
    """

    def mark(kernel: FunctionT) -> FunctionT:
        marked = cast("Kernel", kernel)
        marked.max_elements, marked.max_python_s, marked.is_compiled = max_elements, max_s, False
        return kernel

    return mark


def in_python_by(form: Callable[..., Any]) -> Callable[[FunctionT], FunctionT]:
    """Return a decorator of kernels, above their own: where Python runs them, it calls `form` instead.

    form  the same function, to the bit, by operations on arrays in place of loops over their elements
    """

    def mark(kernel: FunctionT) -> FunctionT:
        cast("Kernel", kernel).python_form = form
        return kernel

    return mark


def _njit(**options: Any) -> Any:
    """Return the decorator of `numba.njit` with these options, where `cache` follows all that is compiled."""
    return functools.partial(Kernel, options=options, make_dispatcher=_make_dispatcher)


def _make_dispatcher(function: FunctionType, options: dict[str, Any]) -> Any:
    """Return Numba's dispatcher of a function; Numba is loaded with the first one."""
    from planner.compiler import make_dispatcher

    return make_dispatcher(function, options)


if TYPE_CHECKING:
    from numba import njit as njit
else:
    njit = _njit


_WITHOUT_ALLOCATION: dict[str, Any] = {"_nrt": False}  # no option of Numba's types


def kernel(function: FunctionT) -> FunctionT:
    """Compile a function that is called from Python; the code is cached."""
    return cast("FunctionT", njit(cache=True, error_model="numpy")(function))


def inner(function: FunctionT) -> FunctionT:
    """Compile a function that only compiled code calls, without the wrappers for other calls."""
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast("FunctionT", njit(error_model="numpy", **options)(function))


def kernel_without_allocation(function: FunctionT) -> FunctionT:
    """Compile a kernel that makes no array, without counting references to those that it is given.

    Counting takes half of the time to compile it, and most of the time of a kernel whose functions pass many
    arrays to each other for each event.
    """
    options = {"cache": True, "nogil": True, "error_model": "numpy", **_WITHOUT_ALLOCATION}
    return cast("FunctionT", njit(**options)(function))


def inner_without_allocation(function: FunctionT) -> FunctionT:
    """Compile an inner function of kernels without allocation."""
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, **_WITHOUT_ALLOCATION}
    return cast("FunctionT", njit(error_model="numpy", **options)(function))
