"""Explanations of plans on switches whose limits are the largest ones."""

from __future__ import annotations

import numpy as np

import planner
from planner_models.queries.problem.generators import small


def test_limits_grow_up_to_the_largest_ones() -> None:
    problem = small()
    count = len(problem.switches)
    free = problem.with_switches(
        rules=np.full(count, 1e6),
        exact_rules=np.full(count, 1e6),
        packets_per_s=np.full(count, 1e9),
        polls_per_s=np.full(count, 1e9),
    )
    assert "No larger limit of the 5 tried" in str(planner.explain(free, design="specialization"))
