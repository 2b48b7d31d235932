"""Every design through the engine, and their order by traffic."""

from __future__ import annotations

from typing import Any

import pytest

from planner.runs.evaluation import evaluate
from planner.scenarios.scenario import Entry
from planner_models.multicast import SYSTEM, measure
from tests.models.multicast.fabrics import PLANNING, fat


@pytest.mark.parametrize("design", PLANNING, ids=lambda design: design.name)
@pytest.mark.parametrize("placement", ["near", "random"])
def test_every_design_survives_the_engine(design: Any, placement: str) -> None:
    problem = fat(placement=placement, k=8, aggregation_copies=2, groups=150, table_size=20)
    run = evaluate(SYSTEM, problem, Entry(label=design.name, design=design))
    assert run.plan is not None
    assert not len(run.violations)
    ways = ("groups_with_entries", "groups_by_unicast", "groups_by_header")
    assert sum(run.metrics[name] for name in ways) == 150
    tables = SYSTEM.plan.from_tables(problem, run.plan.to_tables())
    assert measure(problem, tables, run.plan)["rules_changed"] == 0


def test_coordination_pays() -> None:
    problem = fat(k=8, aggregation_copies=2, groups=300, table_size=30)
    traffic = {design.name: design.decide(problem).proof.objective for design in PLANNING}
    assert traffic["partitioned_aggregated"] < traffic["partitioned"] < traffic["per_switch"]
