"""Decorators of compiled functions, for short compile times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba as nb

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def kernel(function: FunctionT) -> FunctionT:
    """Compile a function that is called from Python; the code is cached."""
    return cast("FunctionT", nb.njit(cache=True, error_model="numpy")(function))


def inner(function: FunctionT) -> FunctionT:
    """Compile a function that only compiled code calls, without the wrappers for other calls."""
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast("FunctionT", nb.njit(error_model="numpy", **options)(function))
