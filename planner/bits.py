"""Counts of bits of words, in compiled code and in Python."""

from __future__ import annotations

import numpy as np

from planner.compiled import njit


@njit(cache=True, inline="always")
def count_bits(word: np.uint64) -> int:
    """Return the number of bits of a word that are set; one instruction once compiled."""
    count = 0
    while word:
        word &= word - np.uint64(1)
        count += 1
    return count
