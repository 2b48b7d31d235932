"""The entries that the cache of a switch has now, as arrays."""

from __future__ import annotations

import numpy as np

from planner.arrays import Ints32
from planner_models.flowtables.problem.fields import Words
from planner_models.flowtables.problem.problem import FlowTables


def list_installed(problem: FlowTables) -> tuple[Words, Ints32, Words]:
    """Return value (Y, words), mask (Y,) and masks (Z, words) of the table `installed`."""
    assert problem.installed is not None
    layout = problem.layout
    cubes = [layout.parse(text if isinstance(text, str) else "")[0] for text in problem.installed["match"]]
    index_of: dict[int, int] = {}
    mask_of = np.array([index_of.setdefault(mask, len(index_of)) for _, mask in cubes], dtype=np.int32)
    return layout.to_words([value for value, _ in cubes]), mask_of, layout.to_words(list(index_of))
