"""Delivered traffic under overload: closed forms, and a twin in plain Python that follows each demand."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from planner_models.flows.fair_rates import max_min_rates
from planner_models.traffic import Traffic, measure
from planner_models.traffic.designs import ecmp
from planner_models.traffic.designs.optimum import optimum
from planner_models.traffic.plan import delivery
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan.delivery import delivered_rates
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.plan.verified_flow import TOLERANCE, verify_flow
from tests.models.traffic.networks import network, problems

GOLDEN = (np.sqrt(5) - 1) / 2


def delivered(problem: Traffic, plan: Routing | None) -> list[float]:
    assert plan is not None
    return delivered_rates(problem, verify_flow(problem, plan)).tolist()


def by_target(problem: Traffic, plan: Routing | None) -> Routing:
    """Return the plan with the flows of all demands to a target as one."""
    assert plan is not None
    return routing.routing_by_target(problem, routing.flow_by_target(problem, plan))


def twin(problem: Traffic, plan: Routing) -> list[float]:  # noqa: C901 - one loop
    """Return delivered rates: each demand is followed hop by hop, and shares move half the way each step."""
    hops = defaultdict(list)  # (source, target, node) -> its links with their flow
    for row in plan.flows.itertuples():
        if row.tail != row.target:
            hops[row.source, row.target, row.tail].append(
                ((row.tail, row.head, row.parallel), row.head, row.rate_mbps)
            )
    capacity = {
        (link.tail, link.head, number): link.capacity_mbps
        for link, number in zip(problem.links.itertuples(), problem.parallel, strict=True)
    }
    passed = dict.fromkeys(capacity, 1.0)
    sent = {}
    for demand in problem.demands.itertuples():
        ends = demand.source, demand.target
        sent[ends] = sum(rate for _, _, rate in hops[*ends, demand.source])
    planned = plan.links["load_mbps"].to_numpy()
    may_drop = dict(zip(capacity, planned > problem.capacity_mbps * (1 + TOLERANCE), strict=True))
    while True:
        load, arrived = dict.fromkeys(capacity, 0.0), {}
        for (source, target), rate in sent.items():
            moving, arrived[source, target] = {source: rate}, 0.0
            while moving:
                after = defaultdict(float)
                for node, amount in moving.items():
                    ways = hops[source, target, node]
                    for link, head, flow in ways:
                        fraction = amount * flow / sum(item for _, _, item in ways)
                        load[link] += fraction
                        if head == target:
                            arrived[source, target] += fraction * passed[link]
                        elif fraction > 1e-17:
                            after[head] += fraction * passed[link]
                moving = after
        error = 0.0
        for link, limit in capacity.items():
            share = min(1.0, limit / load[link]) if load[link] and may_drop[link] else 1.0
            error = max(error, abs(share - passed[link]))
            passed[link] = (share + passed[link]) / 2
        if error < 1e-12:
            return [arrived[row.source, row.target] for row in problem.demands.itertuples()]


def test_a_link_drops_its_excess_from_all_demands_alike() -> None:
    problem = network([("a", "m", 9.0), ("b", "m", 9.0), ("m", "t", 4.0)], [("a", "t", 6.0), ("b", "t", 2.0)])
    plan = ecmp.route(problem).plan
    assert delivered(problem, plan) == pytest.approx([3.0, 1.0], rel=1e-12)
    assert delivered(problem, by_target(problem, plan)) == pytest.approx([3.0, 1.0], rel=1e-12)
    assert plan is not None
    metrics = measure(problem, plan, None)
    assert metrics["delivered_mbps"] == pytest.approx(4.0)
    assert metrics["lost_mbps"] == pytest.approx(4.0)
    assert metrics["shed_mbps"] == 0.0
    assert metrics["delivered_share"] == pytest.approx(0.5)
    assert metrics["mean_rate_share"] == pytest.approx(0.5)


def test_what_is_dropped_loads_no_later_link() -> None:
    # a->b passes 2 of 8, so b->c gets 2 + 3 and passes 4 / 5
    problem = network([("a", "b", 2.0), ("b", "c", 4.0)], [("a", "c", 8.0), ("b", "c", 3.0)])
    assert delivered(problem, ecmp.route(problem).plan) == pytest.approx([1.6, 2.4], rel=1e-12)


@pytest.mark.parametrize("rate", [2.0, 20.0])
def test_links_that_wait_for_each_other_in_a_ring(rate: float) -> None:
    """Each link has fresh traffic and what the link before passes: capacity / rate = p + p^2."""
    ring = [("a", "b", 2.0), ("b", "c", 2.0), ("c", "a", 2.0)]
    problem = network(ring, [("a", "c", rate), ("b", "a", rate), ("c", "b", rate)])
    passed = (np.sqrt(1 + 4 * 2.0 / rate) - 1) / 2
    plan = ecmp.route(problem).plan
    assert delivered(problem, plan) == pytest.approx([rate * passed**2] * 3, rel=1e-11)
    assert rate > 2 or passed == pytest.approx(GOLDEN)


@given(length=st.integers(3, 12), hops=st.integers(2, 11), rate=st.floats(0.5, 1e4))
@settings(max_examples=30)
def test_long_paths_around_a_ring(length: int, hops: int, rate: float) -> None:
    """The share p that links pass solves rate (p + p^2 + ... + p^hops) = capacity where that is below 1."""
    hops = min(hops, length - 1)
    names = [f"n{i}" for i in range(length)]
    ring = [(names[i], names[(i + 1) % length], 3.0) for i in range(length)]
    problem = network(ring, [(names[i], names[(i + hops) % length], rate) for i in range(length)])
    roots = np.roots([rate] * hops + [-3.0])
    passed = min(1.0, max(root.real for root in roots if abs(root.imag) < 1e-9))
    assert delivered(problem, ecmp.route(problem).plan) == pytest.approx(
        [rate * passed**hops] * length, rel=1e-7
    )


@pytest.mark.slow
@settings(max_examples=40)
@given(problem=problems(max_nodes=6, max_demands=8), factor=st.sampled_from([0.5, 2.0, 10.0]))
def test_equals_the_twin_in_plain_python(problem: Traffic, factor: float) -> None:
    problem = problem.scale_demands(factor)
    for decision in (ecmp.route(problem), optimum.route(problem, objective="utilization")):
        assert decision.plan is not None
        expected = twin(problem, decision.plan)
        assert delivered(problem, decision.plan) == pytest.approx(expected, rel=1e-8, abs=1e-9)


@pytest.mark.slow
@settings(max_examples=30)
@given(problem=problems(max_nodes=6, max_demands=8), factor=st.sampled_from([0.5, 2.0, 10.0]))
def test_flows_by_target_deliver_as_much_as_flows_by_demand(problem: Traffic, factor: float) -> None:
    problem = problem.scale_demands(factor)
    plan = ecmp.route(problem).plan  # its splits are the same for all demands to a target
    assert delivered(problem, by_target(problem, plan)) == pytest.approx(delivered(problem, plan), rel=1e-8)
    tcp = replace(problem, overload="max-min")
    assert delivered(tcp, by_target(tcp, plan)) == pytest.approx(delivered(tcp, plan), rel=1e-8)


@pytest.mark.slow
@settings(max_examples=30)
@given(problem=problems(max_nodes=6, max_demands=8), factor=st.sampled_from([2.0, 10.0]))
def test_no_link_passes_more_than_its_capacity_and_nothing_vanishes(problem: Traffic, factor: float) -> None:
    problem = problem.scale_demands(factor)
    plan = ecmp.route(problem).plan
    assert plan is not None
    result = {name: value or 0.0 for name, value in measure(problem, plan, None).items()}
    assert result["delivered_mbps"] + result["lost_mbps"] + result["shed_mbps"] == pytest.approx(
        result["offered_mbps"]
    )
    upper = optimum.route(problem).proof.bound
    assert upper is not None
    assert result["delivered_mbps"] <= upper * (1 + 1e-6)


def test_tcp_slows_senders_down_to_max_min_fair_rates() -> None:
    links = [("a", "b", 2.0), ("b", "c", 4.0)]
    problem = network(links, [("a", "c", 8.0), ("b", "c", 3.0)])
    plan = ecmp.route(problem).plan
    assert plan is not None
    tcp = replace(problem, overload="max-min")
    shares = np.array([[1.0, 1.0], [0.0, 1.0]])
    expected = max_min_rates(sp.csr_array(shares), problem.capacity_mbps, problem.rate_mbps)
    assert expected.tolist() == pytest.approx([2.0, 2.0])
    assert delivered(tcp, plan) == pytest.approx([2.0, 2.0])
    assert tcp.with_rates(problem.rate_mbps).overload == "max-min"


@given(problem=problems(), load=st.floats(1, 20))
def test_compiled_sums_over_hops_deliver_the_same(problem: Traffic, load: float) -> None:
    problem = problem.scale_demands(load)
    for plan in (ecmp.route(problem).plan, by_target(problem, ecmp.route(problem).plan)):
        assert plan is not None
        flow = verify_flow(problem, plan)
        expected, surviving = delivered_rates(problem, flow), delivery.surviving_flow(problem, flow)
        again = replace(flow)  # without what is known of the other
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(delivery, "COMPILED_HOPS", 0)
            assert delivered_rates(problem, again) == pytest.approx(expected, rel=1e-9)
            assert delivery.surviving_flow(problem, again).toarray() == pytest.approx(
                surviving.toarray(), rel=1e-9, abs=1e-12
            )
