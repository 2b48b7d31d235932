"""Corruptions of every plan table: rejected, reported with their amount, or another plan that is legal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from planner.errors import InputError, PlanRejected
from planner.runs.evaluation import evaluate
from planner.scenarios.scenario import Entry
from planner_models.traffic import SYSTEM, Traffic
from tests.corrupted_tables import corrupt
from tests.models.traffic.networks import both_ways, network

LINKS = both_ways([("a", "b", 10.0), ("b", "c", 6.0), ("a", "c", 4.0), ("c", "d", 5.0), ("b", "d", 3.0)])
SCARCE = network(LINKS, [("a", "d", 7.0), ("b", "d", 4.0), ("c", "a", 3.0), ("d", "b", 20.0)])
PLANS: dict[str, dict[str, Any]] = {
    "optimum": {},
    "optimum_paths": {"paths": 3},
    "weights": {},
    "fibbing": {},
    "weighted_ecmp": {"group_size": 4},
    "ecmp": {},
}
NAMES = ["a", "b", "c", "zz", "[" * 3000, '["a", "d"]']
OFFSETS = [0.0, 1.0, 0.5]


def is_legal(problem: Traffic, tables: dict[str, pd.DataFrame]) -> bool:
    """Return whether all other tables say what the flows say, and nothing is violated."""
    flows = {name: tables[name] for name in ("flows", "shed") if name in tables}
    plan, alone = (SYSTEM.plan.from_tables(problem, inputs) for inputs in (tables, flows))
    metrics, of_flows = (SYSTEM.plan.measure(problem, item, None) for item in (plan, alone))
    # flows cannot contradict what a table alone says: ideal shares of groups, twice as many fake nodes
    same = {name: value for name, value in metrics.items() if of_flows[name] is not None} == pytest.approx(
        {name: value for name, value in of_flows.items() if value is not None}
    )
    ends = ["tail", "head", "parallel"]
    links = plan.links.sort_values(ends)[["load_mbps", "utilization"]].to_numpy(float)
    return bool(same and np.allclose(links, alone.links.sort_values(ends)[["load_mbps", "utilization"]]))


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANS)
def test_no_corruption_goes_unnoticed(name: str) -> None:
    design = SYSTEM.design("optimum" if name == "optimum_paths" else name)
    run = evaluate(SYSTEM, SCARCE, Entry(label=name, design=design, parameters=PLANS[name]))
    tables = {key: table.astype(object).infer_objects() for key, table in run.plan.to_tables().items()}
    names = {tuple(row) for row in run.violations.frame.to_numpy().tolist()}
    random = np.random.default_rng(7)
    for key, table in tables.items():
        for kind, corrupted in corrupt(table, random, 8, names=NAMES, offsets=OFFSETS):
            inputs = {**tables, key: corrupted}
            try:
                plan = SYSTEM.plan.from_tables(SCARCE, inputs)
                violations = SYSTEM.plan.check(SCARCE, plan)
            except (InputError, PlanRejected):
                continue
            fresh = {tuple(row) for row in violations.frame.to_numpy().tolist()} - names
            assert fresh or is_legal(SCARCE, inputs), f"{key}: {kind} goes unnoticed"
