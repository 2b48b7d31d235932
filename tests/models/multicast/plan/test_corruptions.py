"""Corruptions of every plan table: rejected, reported with their amount, or another plan that is legal."""

from __future__ import annotations

import numpy as np
import pytest

from planner.errors import InputError, PlanRejected
from planner.runs.evaluation import evaluate
from planner.scenarios.scenario import Entry
from planner_models.multicast import SYSTEM
from tests.corrupted_tables import corrupt
from tests.models.multicast.fabrics import fat

PROBLEM = fat()
NAMES = [*PROBLEM.group_names[:5], *PROBLEM.wiring.switches[-3:], "core", "nobody"]
OFFSETS = [0.0, 1.0, 0.3, 1e300]


@pytest.mark.parametrize("name", ["partitioned_aggregated", "partitioned", "per_switch"])
def test_no_corruption_goes_unnoticed(name: str) -> None:
    run = evaluate(SYSTEM, PROBLEM, Entry(label=name, design=SYSTEM.design(name)))
    tables = {key: table.reset_index(drop=True) for key, table in run.plan.to_tables().items()}
    names = {tuple(row) for row in run.violations.frame.to_numpy().tolist()}
    random = np.random.default_rng(3)
    for key, table in tables.items():
        if not len(table):
            continue
        for kind, corrupted in corrupt(table, random, 10, names=NAMES, offsets=OFFSETS):
            inputs = {**tables, key: corrupted}
            try:
                plan = SYSTEM.plan.from_tables(PROBLEM, inputs)
                violations = SYSTEM.plan.check(PROBLEM, plan)
            except (InputError, PlanRejected):
                continue
            if {tuple(row) for row in violations.frame.to_numpy().tolist()} - names:
                continue
            # another plan: its table of entries is the one that follows from the others
            alone = SYSTEM.plan.from_tables(
                PROBLEM, {item: inputs[item] for item in inputs if item != "entries"}
            )
            stated = plan.entries.set_index("switch")["entries"].sort_index()
            derived = alone.entries.set_index("switch")["entries"].sort_index()
            assert stated.equals(derived), f"{key}: {kind} goes unnoticed"
