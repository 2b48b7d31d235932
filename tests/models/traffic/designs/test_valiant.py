"""Valiant load balancing: by way of which nodes, and how evenly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import InputError
from planner_models.traffic import Traffic, check, measure
from planner_models.traffic.designs import valiant
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.problem import generators
from tests.models.traffic.networks import both_ways, network, problems


def mesh(count: int) -> Traffic:
    """Return a full mesh with all traffic between two of its nodes."""
    names = [f"n{i}" for i in range(count)]
    links = [(a, b, 1.0) for a in names for b in names if a != b]
    return network(links, [("n0", "n1", 1.0), ("n1", "n0", 1.0)])


def test_in_a_full_mesh_each_node_relays_its_share() -> None:
    """The classic case: any traffic within the nodes' rates loads no link by more than 2 / N of them."""
    plan = valiant.route(mesh(5), via=("*",)).plan
    assert plan is not None
    load = dict(zip(mesh(5).link_labels, plan.links["load_mbps"], strict=True))
    # straight: as the leg to n1 itself, and as the leg from n0 itself
    assert load["n0->n1"] == pytest.approx(2 / 5)
    assert load["n0->n2"] == pytest.approx(1 / 5)
    assert load["n2->n1"] == pytest.approx(1 / 5)
    assert measure(mesh(5), plan, None)["max_utilization"] == pytest.approx(2 / 5)


def test_by_default_traffic_goes_by_way_of_the_cores() -> None:
    rack = generators.vl2(tors=10, hosts_per_tor=2)
    for problem, kind in ((generators.fat_tree(k=4), "core"), (rack, "intermediate")):
        every = np.ones(len(problem.nodes), dtype=bool)
        served, middle = valiant._intermediate_nodes(problem, every, is_free=True)
        assert served.all()
        assert {problem.nodes["node"].iloc[row].partition("-")[0] for row in middle} == {kind}


@pytest.mark.slow
@given(problems(), st.booleans(), st.integers(0, 50))
def test_every_demand_arrives(problem: Traffic, split: bool, seed: int) -> None:
    plan = valiant.route(problem, split=split, seed=seed).plan
    assert plan is not None
    assert check(problem, plan).of_limits({"demand"}).frame.empty


@settings(max_examples=2)
@given(problems(max_nodes=5, max_demands=3))
def test_the_split_is_the_mean_of_single_choices(problem: Traffic) -> None:
    even = valiant.route(problem).plan
    assert even is not None
    draws = []
    for seed in range(40):
        plan = valiant.route(problem, split=False, seed=seed).plan
        assert plan is not None
        draws.append(routing.flow_by_demand(problem, plan).toarray())
    spread = 10 * problem.rate_mbps.max() / np.sqrt(40)
    assert np.mean(draws, axis=0) == pytest.approx(
        routing.flow_by_demand(problem, even).toarray(), abs=spread
    )


def test_legs_from_a_node_to_itself_are_none() -> None:
    problem = network(both_ways([("a", "b", 1.0)]), [("a", "b", 1.0)])
    plan = valiant.route(problem, via=("a", "b")).plan
    assert plan is not None
    assert plan.links["load_mbps"].tolist() == [1.0, 0.0]


def test_nodes_out_of_reach_are_not_drawn_from() -> None:
    problem = network([*both_ways([("a", "b", 1.0), ("b", "c", 1.0)]), ("a", "sink", 1.0)], [("a", "c", 1.0)])
    plan = valiant.route(problem, via=("sink",)).plan
    assert plan is not None
    assert plan.shed is not None, "no demand can pass the sink"
    assert plan.shed["rate_mbps"].tolist() == [1.0]
    with pytest.raises(InputError, match="via: 'sinc' matches no node; did you mean 'sink'"):
        valiant.route(problem, via=("sinc",))
