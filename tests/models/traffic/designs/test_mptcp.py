"""Multipath TCP: the coupled optimum against its own bound and a conic solver, the uncoupled rates."""

from __future__ import annotations

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from planner_models.flows import fair_rates, next_hops
from planner_models.traffic import Traffic, check, measure
from planner_models.traffic.designs import mptcp
from planner_models.traffic.designs.path_assignment import find_assignable
from planner_models.traffic.problem import generators
from tests.models.traffic.networks import both_ways, network, problems
from tests.models.traffic.restricted_networks import draw_network

Floats = NDArray[np.float64]
DIAMOND = both_ways([("s", "a", 1.0), ("s", "b", 2.0), ("a", "t", 1.0), ("b", "t", 2.0)])


def subflows(problem: Traffic, count: int, seed: int = 0) -> sp.csr_array:
    random = np.random.default_rng(seed)
    return next_hops.draw_paths(next_hops.find_next_hops(problem), random, copies=count)


def by_clarabel(uses: sp.csr_array, capacity: Floats, cap: Floats) -> float:
    """Return the largest sum over demands of log(total rate of its subflows)."""
    flows, groups = uses.shape[0], len(cap)
    each = flows // groups
    owner = np.repeat(np.arange(groups), each)
    add = sp.csr_array((np.ones(flows), (owner, np.arange(flows))), shape=(groups, flows))
    wide = sp.csr_array((uses.shape[1], groups))
    rows = [
        sp.hstack([uses.T, wide]),
        sp.hstack([add, sp.csr_array((groups, groups))]),
        sp.hstack([-sp.eye_array(flows), sp.csr_array((flows, groups))]),
    ]
    right = [capacity, cap, np.zeros(flows)]
    cones: list[object] = [clarabel.NonnegativeConeT(uses.shape[1] + groups + flows)]
    for g in range(groups):
        block = np.zeros((3, flows + groups))
        block[0, flows + g] = -1.0
        block[2, g * each : (g + 1) * each] = -1.0
        rows.append(sp.csr_array(block))
        right.append(np.array([0.0, 1.0, 0.0]))
        cones.append(clarabel.ExponentialConeT())
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    size = flows + groups
    solver = clarabel.DefaultSolver(
        sp.csc_matrix((size, size)),
        np.r_[np.zeros(flows), -np.ones(groups)],
        sp.csc_matrix(sp.vstack(rows)),
        np.concatenate(right),
        cones,
        settings,
    )
    return -float(solver.solve().obj_val)


@settings(max_examples=20)
@given(problems(max_demands=4), st.integers(1, 3), st.integers(0, 20))
def test_the_coupled_utility_is_what_clarabel_finds(problem: Traffic, count: int, seed: int) -> None:
    uses = subflows(problem, count, seed)
    result = mptcp.coupled_rates(uses, problem.capacity_mbps, problem.rate_mbps)
    assert (uses.T @ result <= problem.capacity_mbps * (1 + 1e-9)).all()
    each = result.reshape(-1, count).sum(axis=1)
    assert (each <= problem.rate_mbps * (1 + 1e-9)).all()
    best = by_clarabel(uses, problem.capacity_mbps, problem.rate_mbps)
    assert np.log(each).sum() == pytest.approx(best, abs=2e-5 * len(each) + 1e-5)


@settings(max_examples=20)
@given(problems(), st.integers(0, 20))
def test_one_subflow_is_plain_tcp(problem: Traffic, seed: int) -> None:
    uses = subflows(problem, 1, seed)
    arguments = uses, problem.capacity_mbps, problem.rate_mbps
    assert mptcp.uncoupled_rates(*arguments) == pytest.approx(fair_rates.max_min_rates(*arguments))
    assert mptcp.coupled_rates(*arguments, gap=1e-9) == pytest.approx(
        fair_rates.proportional_rates(*arguments), rel=1e-3
    )


def test_coupling_fills_both_paths_of_a_diamond() -> None:
    problem = network(DIAMOND, [("s", "t", 9.0)])
    plan = mptcp.route(problem, subflows=8).plan
    assert plan is not None
    assert plan.links["load_mbps"].tolist()[:4] == pytest.approx([1.0, 2.0, 1.0, 2.0], rel=1e-3)


def test_a_demand_never_gets_more_than_it_wants() -> None:
    problem = network(DIAMOND, [("s", "t", 0.5)])
    for coupling in ("coupled", "uncoupled"):
        plan = mptcp.route(problem, coupling=coupling).plan
        assert plan is not None
        assert measure(problem, plan, None)["delivered_mbps"] == pytest.approx(0.5, rel=1e-4)
        assert check(problem, plan).of_limits({"capacity"}).frame.empty


def test_more_subflows_carry_more_and_coupling_helps() -> None:
    problem = generators.fat_tree(k=4, seed=2)

    def share(count: int, coupling: mptcp.Control) -> float:
        plans = [mptcp.route(problem, subflows=count, coupling=coupling, seed=s).plan for s in range(5)]
        return float(np.mean([measure(problem, plan, None)["mean_rate_share"] for plan in plans if plan]))

    coupled = [share(count, "coupled") for count in (1, 2, 4, 8)]
    assert coupled == sorted(coupled)
    assert share(8, "uncoupled") < coupled[-1]


@given(st.integers(0, 1_000_000), st.sampled_from(["coupled", "uncoupled"]), st.sampled_from([2, "tunnels"]))
@settings(max_examples=10, deadline=None)
def test_over_given_paths_limits_and_rules_hold(seed: int, coupling: str, paths: int | str) -> None:
    problem = draw_network(seed, tunnels=paths == "tunnels")
    if paths == "tunnels" and (
        problem.tunnels is None or find_assignable(problem, "tunnels").share is not None
    ):
        return
    plan = mptcp.route(problem, paths=paths, coupling=coupling).plan
    assert plan is not None
    assert not {"latency", "rules", "capacity"} & set(check(problem, plan).frame["limit"])


def test_subflows_take_the_given_paths_in_turn() -> None:
    problem = network(DIAMOND, [("s", "t", 5.0)])
    plan = mptcp.route(problem, paths=2).plan
    assert plan is not None
    assert plan.routes is not None
    rates = dict(zip(plan.routes["path"], plan.routes["rate_mbps"], strict=True))
    assert rates == pytest.approx({'["s", "a", "t"]': 1.0, '["s", "b", "t"]': 2.0}, rel=1e-4)
