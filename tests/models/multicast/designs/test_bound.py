"""Bounds against brute force and against every design."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.backends import pyomo
from planner.options import Options
from planner_models.multicast import Multicast
from planner_models.multicast.designs import bound, partitioned, partitioned_aggregated
from planner_models.multicast.designs.formulation import joint_formulation
from tests.models.multicast.fabrics import PLANNING, fat
from tests.models.multicast.switches import brute_force


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
    proven = bound.bound_host_traffic(problem)
    assert proven.plan is None
    for design in PLANNING[:3]:
        assert design.decide(problem).proof.objective >= proven.proof.bound - 1e-6
    integral = partitioned_aggregated.partition_and_share(problem).proof
    assert proven.proof.bound <= integral.bound + 1e-6
    if size == 40:  # room for all
        assert proven.proof.bound == pytest.approx(integral.objective)
