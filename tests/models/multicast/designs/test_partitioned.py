"""Groups chosen by value against the formal model."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.backends import pyomo
from planner.options import Options
from planner.search.deadline import Deadline
from planner_models.multicast import SYSTEM, Multicast
from planner_models.multicast.designs import partitioned, partitioned_aggregated
from planner_models.multicast.designs.channelization import local_search, p_median
from planner_models.multicast.designs.formulation import joint_formulation
from planner_models.multicast.designs.partitioned import (
    saved_mbps,
    select_by_prices,
    select_groups,
    traffic_mbps,
)
from planner_models.multicast.plan import meta_groups
from planner_models.multicast.plan.table_limits import build_limits
from tests.models.multicast.designs.test_unicast_exchange import draw_problem
from tests.models.multicast.fabrics import PLANNING, fat
from tests.models.multicast.switches import SWITCHES, arrays, brute_force

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


def least_mbps(masks: list[int], rates: list[float], unicast: list[float], free: int) -> float:
    """Return the least that a tiny switch adds, by trying every choice of unions."""
    unions = p_median.list_unions(masks, 20)
    best = float("inf")
    for selected in combinations(unions, min(free, len(unions))):
        cost = 0.0
        for mask, rate, alone in zip(masks, rates, unicast, strict=True):
            extras = [rate * (union & ~mask).bit_count() for union in selected if mask & ~union == 0]
            cost += min([alone, *extras])
        best = min(best, cost)
    return best


@settings(max_examples=40, deadline=None)
@given(SWITCHES, st.lists(st.floats(0, 30), min_size=8, max_size=8), st.integers(1, 4))
def test_no_choice_of_unions_and_unicast_beats_the_bound(
    switch: list[tuple[int, int]], alone: list[float], free: int
) -> None:
    masks, rates = arrays(switch)
    unicast = np.array(alone[: len(masks)])
    best = least_mbps([int(mask) for mask in masks], rates.tolist(), unicast.tolist(), free)
    full = len(np.unique(masks)) > free
    bound = partitioned.bound_extra_mbps([partitioned.Switch(masks, rates, unicast, free)])
    assert bound[0] <= best + 1e-9
    assert full or bound[0] == 0


@pytest.mark.parametrize(("ports", "groups", "free", "share"), [(8, 60, 10, 0.97), (24, 150, 40, 0.6)])
def test_the_bound_is_near_to_the_best_plan_found(ports: int, groups: int, free: int, share: float) -> None:
    rng = np.random.default_rng(0)
    wants = rng.random((groups, ports)) < rng.random((groups, 1)) * (0.3 if ports > 8 else 1)
    wants[np.arange(groups), rng.integers(ports, size=groups)] = True
    masks = (wants * (np.uint64(1) << np.arange(ports, dtype=np.uint64))).sum(axis=1, dtype=np.uint64)
    rates = rng.uniform(1, 10, groups)
    meta = local_search.aggregate(masks, rates, table_size=free, rounds=4)
    result = meta_groups.extra_mbps(masks, rates, meta)
    switch = partitioned.Switch(masks, rates, np.full(groups, 1e9), free)
    bound = float(partitioned.bound_extra_mbps([switch])[0])
    assert meta_groups.extra_mbps_bound(masks, rates, free) < bound <= result
    assert bound >= share * result
    assert partitioned.bound_extra_mbps([switch], deadline=Deadline.after(0.0))[0] == 0


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 999))
def test_no_choice_of_groups_and_no_sharing_beats_the_bound(seed: int) -> None:
    problem = fat(groups=6, table_size=2, seed=seed, placement="random")
    tables = problem.to_tables()
    wide = tables["fabric"].assign(core_entries=99.0, aggregation_entries=99.0)
    problem = Multicast.from_tables(tables | {"fabric": wide})
    edge, group, masks = problem.at_edge
    rate, members = problem.rate_mbps, problem.member_counts
    best = float("inf")
    for selected in range(2**6):
        retained = np.array([bool(selected >> g & 1) for g in range(6)])
        traffic = float((rate * np.where(retained, 1 + members, 2 * members)).sum())
        for switch in np.unique(edge):
            here = (edge == switch) & retained[group]
            if here.any():
                ports, rates = masks[here].tolist(), rate[group[here]].tolist()
                traffic += brute_force(ports, rates, 2)
        best = min(best, traffic)
    assert partitioned.bound_mbps(problem) <= best + 1e-9
    optimum = partitioned_aggregated.partition_and_share(problem, method="optimum", options=Options(gap=0.0))
    assert optimum.proof.objective == pytest.approx(best)
    assert optimum.proof.bound == pytest.approx(best)
    formal = pyomo.solve_model(joint_formulation(problem), Options(gap=0.0))
    assert formal.objective == pytest.approx(best)


@pytest.mark.parametrize("size", [6, 12, 40])
def test_no_design_beats_the_bound(size: int) -> None:
    problem = fat(groups=60, k=8, table_size=size, aggregation_copies=2)
    proven = partitioned.bound_host_traffic(problem)
    assert proven.plan is None
    for design in PLANNING[:3]:
        assert design.decide(problem).proof.objective >= proven.proof.bound - 1e-6
    integral = partitioned_aggregated.partition_and_share(problem).proof
    assert proven.proof.bound <= integral.bound + 1e-6
    if size == 40:  # room for all
        assert proven.proof.bound == pytest.approx(integral.objective)
