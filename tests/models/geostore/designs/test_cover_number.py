"""The least number of regions that meet all covers, against all sets of regions."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from planner_models.geostore.designs.cover_number import MAX_COVERS, cover_number


def smallest(cover: np.ndarray) -> int:
    """Return the size of the smallest set of regions that meets all covers."""
    count = cover.shape[1]
    for size in range(count + 1):
        for regions in combinations(range(count), size):
            if cover[:, list(regions)].any(axis=1).all():
                return size
    return 0


@given(seed=st.integers(0, 10_000), covers=st.integers(1, 8), share=st.floats(0.1, 0.9))
def test_it_is_that_of_all_sets(seed: int, covers: int, share: float) -> None:
    cover = np.random.default_rng(seed).random((covers, 7)) < share
    cover[np.arange(covers), seed % 7] |= ~cover.any(axis=1)
    assert cover_number(cover) == smallest(cover)


def test_no_covers_need_no_region() -> None:
    assert cover_number(np.zeros((0, 5), dtype=bool)) == 0


def test_many_covers_give_a_lower_bound() -> None:
    cover = np.eye(MAX_COVERS + 3, dtype=bool)
    assert cover_number(cover) == MAX_COVERS
