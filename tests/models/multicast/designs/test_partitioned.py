"""Groups chosen by value against the formal model."""

from __future__ import annotations

import pyomo.environ as pyo
import pytest

from planner_models.multicast import SYSTEM
from planner_models.multicast.designs import partitioned
from tests.models.multicast.fabrics import fat


def test_choosing_by_value_beats_first_come_and_equals_the_formal_model() -> None:
    problem = fat(groups=25, table_size=6)
    value = partitioned.partition_addresses(problem)
    first = partitioned.partition_addresses(problem, choose="arrival")
    assert value.proof.objective < first.proof.objective
    reference = SYSTEM.formulation(problem)
    pyo.SolverFactory("appsi_highs").solve(reference)
    assert pyo.value(reference.host_traffic) == pytest.approx(value.proof.objective)
