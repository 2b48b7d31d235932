"""Counts of bits of words in compiled code, by single instructions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from numba import types
from numba.extending import intrinsic


def _count_ones(typing_context: Any, word: Any) -> Any:  # noqa: ARG001
    """Return the ones of a word."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), generate


count_ones = cast("Callable[[Any], Any]", intrinsic(_count_ones))
