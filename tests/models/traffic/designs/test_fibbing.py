"""Fibbing: lies that make the flows, how near they come to the optimum, and plain OSPF after failures."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings

from planner.errors import PlanRejected
from planner_models.traffic import Traffic, check, measure
from planner_models.traffic.designs import ecmp, fibbing
from planner_models.traffic.designs.optimum import optimum
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan.failure_outcomes import PlanInFailures, find_restoration
from planner_models.traffic.problem.failure_sets import build_failure_set
from tests.models.traffic.designs.grouped_networks import evenly, first_hops, graph_of, simulate
from tests.models.traffic.networks import both_ways, network, problems

SQUARE = network(
    both_ways([("a", "b", 10.0), ("b", "d", 10.0), ("a", "c", 5.0), ("c", "d", 5.0), ("a", "d", 2.5)]),
    [("a", "d", 14.0)],
)


@settings(max_examples=25)
@given(problem=problems(max_nodes=6, parallel=False))
def test_plan_and_lies_agree_and_no_plan_beats_the_bound(problem: Traffic) -> None:
    decision = fibbing.route(problem)
    assert decision.plan is not None
    assert decision.plan.lies is not None
    assert decision.proof.objective is not None
    assert decision.proof.bound is not None
    assert measure(problem, decision.plan, None)["fake_nodes"] == decision.plan.lies["fake_nodes"].sum()
    assert decision.proof.objective >= decision.proof.bound * (1 - 1e-9)
    assert "demand" not in set(check(problem, decision.plan).frame["limit"])
    again = routing.routing_from_tables(problem, decision.plan.to_tables())
    assert again.lies is not None
    check(problem, again)


@settings(max_examples=25)
@given(problem=problems(max_nodes=6, parallel=False))
def test_routers_that_believe_the_lies_make_the_loads(problem: Traffic) -> None:
    plan = fibbing.route(problem).plan
    assert plan is not None
    assert plan.lies is not None
    graph = graph_of(problem, lambda tail, head: True)  # noqa: ARG005
    told: dict[tuple[str, str], dict[str, float]] = {}
    for row in plan.lies.itertuples(index=False):
        told.setdefault((row.tail, row.target), {})[row.head] = row.fake_nodes

    def next_hops(router: str, target: str) -> dict[str, float]:
        fake = told.get((router, target))
        if fake is None:
            return evenly(first_hops(graph, router, target))
        return {head: number / sum(fake.values()) for head, number in fake.items()}

    unit = problem.with_rates(np.ones(len(problem.demands)))
    load = np.zeros(len(problem.links))
    for demand, rate in enumerate(problem.rate_mbps):
        alone = replace(unit, demands=unit.demands.iloc[[demand]].reset_index(drop=True))
        load += rate * simulate(alone, next_hops)[1]
    np.testing.assert_allclose(plan.links["load_mbps"], load, rtol=1e-6, atol=1e-9)


def test_more_copies_come_nearer_to_the_optimum_than_plain_ospf() -> None:
    plain = ecmp.route(SQUARE).plan
    best = optimum.route(SQUARE, objective="utilization").proof.objective
    assert plain is not None
    values = [fibbing.route(SQUARE, copies=copies).proof.objective for copies in (1, 3, 7)]
    assert plain.links["utilization"].max() == pytest.approx(14 / 2.5)
    assert best == pytest.approx(14 / 17.5)
    assert values == pytest.approx([14 / 10, 14 * 2 / 3 / 10, 14 / 17.5])


@pytest.mark.parametrize("copies", [1, 2, 5, 8])
def test_rounded_ratios_have_the_least_largest_error(copies: int) -> None:
    random = np.random.default_rng(copies)
    for _ in range(20):
        shares = random.dirichlet([1.0, 1.0, 1.0])
        ratios = sp.coo_array((shares, ([0, 0, 0], [0, 4, 8])), shape=(1, 10))
        entries = fibbing.round_ratios(SQUARE, _from_a(ratios), copies)
        given_entries = np.zeros(10)
        given_entries[entries.col] = entries.data
        off = np.abs(given_entries / given_entries.sum() - np.asarray(_from_a(ratios).todense())[0]).max()
        links = _from_a(ratios).col
        best = min(
            max(abs(n / sum(numbers) - share) for n, share in zip(numbers, shares, strict=True))
            for numbers in product(range(copies + 1), repeat=3)
            if 0 < sum(numbers) <= copies
        )
        assert len(links) == 3
        assert off == pytest.approx(best)


def _from_a(ratios: sp.coo_array) -> sp.coo_array:
    """Return the ratios on the three links that leave a."""
    leaves = np.flatnonzero(SQUARE.links["tail"].to_numpy() == "a")
    return sp.coo_array((ratios.data, (ratios.row, leaves)), shape=ratios.shape)


def test_failures_withdraw_the_lies() -> None:
    plan = fibbing.route(SQUARE).plan
    assert plan is not None
    assert find_restoration(SQUARE, plan) == "reconverge"
    failures = build_failure_set(SQUARE, "links")
    arrives = PlanInFailures.of(SQUARE, plan).deliver(failures)[:, 0]
    for row, down in enumerate(failures.link_down):
        routers = ecmp.route(SQUARE.without_links(down)).plan
        assert routers is not None
        lightest = routers.links["utilization"].max()
        assert (arrives[row] < 14) == (lightest > 1)


def test_lies_that_make_other_flows_are_rejected() -> None:
    plan = fibbing.route(SQUARE).plan
    assert plan is not None
    assert plan.lies is not None
    other = replace(plan, lies=plan.lies.assign(fake_nodes=1))
    with pytest.raises(PlanRejected, match=r"lies: a->d has 4\.66667 Mbit/s on"):
        check(SQUARE, other)
    nobody = replace(plan, lies=plan.lies.assign(target="b"))
    with pytest.raises(PlanRejected, match="lies row 1: 'b' is the target of no demand"):
        check(SQUARE, nobody)
