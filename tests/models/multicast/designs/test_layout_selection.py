"""The design that chooses the number of copies."""

from __future__ import annotations

import pytest

from planner.errors import InputError
from planner.runs.run import evaluate
from planner.scenarios.scenario import Entry
from planner_models.multicast import SYSTEM, Multicast, check
from planner_models.multicast.plan import (
    address_layouts,
)
from tests.models.multicast.fabrics import fat, tree


def test_chosen_copies_is_a_design() -> None:
    problem = fat(k=8, aggregation_copies=1, groups=60, table_size=40, placement="random")
    design = SYSTEM.design("chosen_copies")
    run = evaluate(SYSTEM, problem, Entry(label="c", design=design))
    assert not len(run.violations)
    assert set(run.plan.partitions["copies"]) == {float(address_layouts.choose_layout(problem).chosen)}
    assert not len(check(problem, run.plan))
    with pytest.raises(InputError, match="least_copies is 5, a pod has at most 4 copies"):
        design.decide(problem, least_copies=5)
    tight = fat(k=8, aggregation_copies=1, groups=60, table_size=3, placement="random")
    assert set(design.decide(tight, least_copies=2).plan.partitions["copies"]) == {2.0}
    other = Multicast.from_tables(tree())
    assert set(design.decide(other).plan.partitions["copies"]) == {2.0}
