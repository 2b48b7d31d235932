"""Sets of small numbers as bits of words, for compiled code."""

from __future__ import annotations

from typing import Final

import numba as nb
import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

# a word with a single bit, times this, has its place in the highest six bits (de Bruijn's sequence)
SEQUENCE: Final = 0x03F79D71B4CB0A89
PLACES: Final = np.zeros(64, dtype=np.int64)
for _place in range(64):
    PLACES[((SEQUENCE << _place) & (2**64 - 1)) >> 58] = _place


@nb.njit(cache=True)
def add(words: Words, number: int) -> None:
    """Add a number to the set."""
    words[number >> 6] |= np.uint64(1) << np.uint64(number & 63)


@nb.njit(cache=True)
def drop(words: Words, number: int) -> None:
    """Take a number out of the set."""
    words[number >> 6] &= ~(np.uint64(1) << np.uint64(number & 63))


@nb.njit(cache=True)
def lowest_common(words: Words, others: Words) -> int:
    """Return the smallest number that is in both sets; -1 where there is none."""
    for w in range(len(words)):
        both = words[w] & others[w]
        if both != 0:
            single = both & (~both + np.uint64(1))
            place: int = w * 64 + PLACES[(single * np.uint64(SEQUENCE)) >> np.uint64(58)]
            return place
    return -1
