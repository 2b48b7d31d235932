"""Groups chosen by value against the formal model."""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.options import Options
from planner_models.multicast import SYSTEM
from planner_models.multicast.designs import partitioned
from planner_models.multicast.designs.partitioned import (
    saved_mbps,
    select_by_prices,
    select_groups,
    traffic_mbps,
)
from planner_models.multicast.plan.table_limits import build_limits
from tests.models.multicast.designs.test_unicast_exchange import draw_problem
from tests.models.multicast.fabrics import fat

TOLERANCE = 1e-6


def test_choosing_by_value_beats_first_come_and_equals_the_formal_model() -> None:
    problem = fat(groups=25, table_size=6)
    value = partitioned.partition_addresses(problem)
    first = partitioned.partition_addresses(problem, choose="arrival")
    assert value.proof.objective < first.proof.objective
    reference = SYSTEM.formulation(problem)
    pyo.SolverFactory("appsi_highs").solve(reference)
    assert pyo.value(reference.host_traffic) == pytest.approx(value.proof.objective)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6))
def test_a_choice_keeps_the_tables_and_no_choice_beats_the_bound(seed: int) -> None:
    problem = draw_problem(seed)
    limits = build_limits(problem, problem.aggregation_copies)
    saved = saved_mbps(problem)
    by_prices = select_by_prices(saved, limits, gap_mbps=0.0)
    assert (limits.uses @ by_prices.kept.astype(int) <= limits.free).all()
    assert by_prices.saved_mbps == pytest.approx(saved[by_prices.kept].sum())
    _, proof = select_groups(problem, limits, Options(gap=0.0))
    best = traffic_mbps(problem, np.zeros(len(saved), dtype=bool)) - proof.objective
    assert by_prices.saved_mbps <= best * (1 + TOLERANCE) + TOLERANCE
    assert best <= by_prices.bound_mbps * (1 + TOLERANCE) + TOLERANCE


def test_many_groups_are_chosen_without_an_integer_program(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = fat(k=8, aggregation_copies=2, groups=1500, table_size=40)
    limits = build_limits(problem, problem.aggregation_copies)
    _, exact = select_groups(problem, limits, Options())
    monkeypatch.setattr(partitioned, "MAX_GROUPS_MODELLED", 1000)
    selected, proof = select_groups(problem, limits, Options())
    assert selected is not None
    assert proof.backend is None
    assert proof.bound <= exact.objective * (1 + 1e-9)
    assert exact.bound <= proof.objective * (1 + 1e-9)
    assert proof.objective - proof.bound < 0.01 * proof.objective
    assert (limits.uses @ selected.astype(int) <= limits.free).all()
