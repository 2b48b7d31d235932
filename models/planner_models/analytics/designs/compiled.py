"""Decorator of compiled functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba as nb

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def kernel(function: FunctionT) -> FunctionT:
    """Compile a function of plain arrays; the code is cached."""
    return cast("FunctionT", nb.njit(cache=True, error_model="numpy")(function))
