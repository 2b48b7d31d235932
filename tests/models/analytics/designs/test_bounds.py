"""Plans of every design against the bound of optimum, with ruled out levels, dead uplinks and no data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import planner
from planner.contract.proof import Status
from planner.testing.bounds import check_bounds, check_optimum
from planner.testing.searches import check_searches
from planner_models.analytics import SYSTEM, Analytics
from tests.models.analytics.problems import tables


def hard_problem(seed: int) -> Analytics:
    """Return a random problem of two sites and intervals."""
    rng = np.random.default_rng(seed)
    made = tables(
        sites=2,
        intervals=2,
        combine=tuple(rng.choice(["coarsest", "sum", "worst"], 2).tolist()),
        uplink_mbps=float(rng.choice([0.0, 1e-4, 1.0])),
        pop_mbps=float(rng.choice([1e-4, 10.0])),
    )
    cells = rng.choice([0.0, 100.0, 1000.0], len(made["volume"]))
    made["volume"] = made["volume"].assign(cells=cells, records=cells)
    if seed % 2:
        made["ad_hoc"] = pd.DataFrame({"query": ["q0"], "interval": [2.0], "since": [1.0]})
    level = str(rng.choice(["1 s", "10 s", "none"]))
    made["forbidden"] = pd.DataFrame({"site": ["s0"], "query": "q0", "level": level})
    return Analytics.from_tables(made)


@pytest.mark.parametrize("seed", range(8))
def test_no_valid_plan_has_more_value_than_the_bound(seed: int) -> None:
    problem = hard_problem(seed)
    runs = [planner.solve(problem, design=design.name) for design in SYSTEM.designs]
    proof = next(run.proof for run in runs if run.label == "optimum")
    assert (proof.status is Status.INFEASIBLE) == (proof.bound is None)
    assert not [run.label for run in runs if "rules" in set(run.violations.frame["limit"])]
    has_plan = any(run.plan is not None and not len(run.violations) for run in runs)
    assert proof.bound is not None or not has_plan
    check_bounds(runs)
    check_optimum(runs)


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [*range(2), *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(2, 4))]
)
def test_no_value_of_a_parameter_beats_the_bound(seed: int) -> None:
    check_searches(SYSTEM, hard_problem(seed))
