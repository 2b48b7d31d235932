"""Checks that kernels which Python may run give the same results, to the bit, as their compiled form."""

from __future__ import annotations

import contextlib
import copy
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from planner import clock
from planner.kernels import Kernel, count_elements


@contextlib.contextmanager
def compare_with_python(*, max_calls: int | None = None) -> Iterator[Counter[str]]:
    """Let Python run calls of a kernel that allows it beside compiled code; count the calls by kernel.

    max_calls  that are compared, of each kernel and each size of its arguments (powers of two); default: all
    raises  AssertionError in the call whose result, or whose changed arguments, differ
    """
    counts: Counter[str] = Counter()
    counts_by_size: Counter[tuple[str, int]] = Counter()

    def call_both(kernel: Kernel, arguments: tuple[Any, ...]) -> Any:
        elements = count_elements(arguments)
        name = name_of(kernel)
        size = name, elements.bit_length()
        if elements > kernel.max_elements or (max_calls is not None and counts_by_size[size] >= max_calls):
            return kernel.dispatcher(*arguments)
        counts_by_size[size] += 1
        clock.pause()  # comparing counts in no time limit
        try:
            copies = _copy(arguments)
            result_in_python = kernel.call_in_python(copies)
        finally:
            clock.resume()
        result = kernel.dispatcher(*arguments)
        assert is_same(result_in_python, result), f"{name}: {result_in_python} in Python, {result} compiled"
        assert is_same(copies, arguments), f"{name}: Python changes arguments in another way"
        counts[name] += 1
        return result

    before = vars(Kernel)["observe"]  # as an attribute it would be no static method any more
    Kernel.observe = staticmethod(call_both)
    try:
        yield counts
    finally:
        Kernel.observe = before


def name_of(kernel: Kernel) -> str:
    """Return the name of a kernel with that of its module."""
    return f"{kernel.py_func.__module__}.{kernel.py_func.__qualname__}"


def is_same(one: Any, other: Any) -> bool:
    """Return whether two results are the same to the bit; numbers of Python and of numpy may be."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, np.random.Generator):
        return bool(str(one.bit_generator.state) == str(other.bit_generator.state))
    if one is None or other is None:
        return one is other
    first_array, right = np.asarray(one), np.asarray(other)
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return (
            first_array.dtype == right.dtype
            and first_array.shape == right.shape
            and first_array.tobytes() == right.tobytes()
        )
    return (
        first_array.dtype.kind == right.dtype.kind
        and first_array.astype(right.dtype).tobytes() == right.tobytes()
    )


def _copy(value: Any) -> Any:
    """Return a copy of an argument, with arrays in the same order of memory."""
    if isinstance(value, np.ndarray):
        return value.copy(order="K")
    if isinstance(value, tuple):
        copies = [_copy(item) for item in value]
        return type(value)(*copies) if hasattr(value, "_fields") else tuple(copies)
    return copy.deepcopy(value)
