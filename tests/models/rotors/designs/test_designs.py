"""Designs of system `rotors`: bounds, oracles, limits, and what more switches and shorter nights bring."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner
from planner.backends.pyomo import from_pyomo
from planner.contract.proof import Status
from planner.options import Options
from planner_models.circuits.designs import optimum
from planner_models.rotors import RotorNetwork, Routing, check, formulation, measure
from planner_models.rotors.designs import DESIGNS, demand_aware, rotor_routing
from planner_models.rotors.problem import generators
from planner_models.rotors.problem.adjustments import adjust
from tests.models.rotors.networks import mean_capacity, most_by_any_route, networks

ROTATING = [design for design in DESIGNS if design.name in ("two_hop", "valiant", "direct", "expander")]
BY_NAME = {design.name: design for design in DESIGNS}


def delivered(problem: RotorNetwork, name: str) -> float:
    """Return what a design delivers, Mbit/s, as its plan is measured."""
    plan = BY_NAME[name].decide(problem).plan
    value = measure(problem, plan, None)["delivered_mbps"]
    assert value is not None
    return value


@settings(max_examples=8, deadline=None)
@given(problem=networks(most_racks=4))
def test_mean_capacities_have_the_optimum_of_the_network_in_time(problem: RotorNetwork) -> None:
    in_time = planner.backends.solve(from_pyomo(formulation(problem)), Options())
    proof = rotor_routing.route_two_links(problem).proof
    assert proof.objective == pytest.approx(in_time.objective, rel=1e-5)
    fast = planner.backends.solve(rotor_routing.build_model(problem), Options())
    assert fast.objective == pytest.approx(in_time.objective, rel=1e-5)


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(problem=networks())
def test_no_design_beats_a_bound(problem: RotorNetwork) -> None:
    capacity = mean_capacity(problem)
    upper = most_by_any_route(capacity, problem.demand_mbps)
    bound = rotor_routing.route_two_links(problem).proof.bound
    assert bound is not None
    assert bound >= upper * (1 - 1e-9)
    port = problem.count * problem.circuit_mbps.max(axis=1)
    by_ports = min(float(np.minimum(problem.demand_mbps.sum(axis=way), port).sum()) for way in (0, 1))
    direct = float(np.minimum(capacity, problem.demand_mbps).sum())
    assert delivered(problem, "direct") == pytest.approx(direct)
    for design in DESIGNS:
        decision = design.decide(problem)
        value = measure(problem, decision.plan, None)["delivered_mbps"]
        assert value is not None
        assert value == pytest.approx(decision.proof.objective)
        assert value <= by_ports * (1 + 1e-9)
        if design in ROTATING:
            assert value <= upper * (1 + 1e-6)
        if decision.proof.bound is not None:
            assert value <= decision.proof.bound * (1 + 1e-9)
        assert not len(check(problem, decision.plan)), check(problem, decision.plan).sentences()


@settings(max_examples=8, deadline=None)
@given(problem=networks(), name=st.sampled_from(["two_hop", "valiant"]))
def test_more_switches_and_shorter_nights_never_hurt(problem: RotorNetwork, name: str) -> None:
    now = delivered(problem, name)
    for better in (
        adjust(problem, switches=problem.count + 1),
        adjust(problem, night_us=problem.night_us / 2),
        adjust(problem, day_us=2 * problem.day_us),
    ):
        assert delivered(better, name) >= now * (1 - 1e-5)


def test_the_known_crossover() -> None:
    """Rotors deliver more of uniform demand; schedules with a longer night deliver more of skewed demand."""
    gain = []
    for skew in (0.0, 0.3, 0.6, 1.0):
        problem = generators.skewed(
            racks=10, partners=3, skew=skew, load=0.9, schedule_night_us=150.0, week_us=2_000.0
        )
        rotating = delivered(problem, "two_hop")
        aware = max(delivered(problem, name) for name in ("solstice", "eclipse"))
        gain.append(aware / rotating)
    assert gain == sorted(gain)
    assert gain[0] < 0.95
    assert gain[-1] > 1.5


def test_uniform_and_permutation_traffic_by_hand() -> None:
    """Three of nine slots are a day; the duty cycle is 0.9, and one permutation has one of nine matchings."""
    uniform = generators.skewed(racks=10, switches=3, skew=0.0, load=2.0)
    ports = 10 * 3 * 100_000.0 * 0.9
    assert delivered(uniform, "direct") == pytest.approx(ports, rel=1e-6)
    assert delivered(uniform, "two_hop") == pytest.approx(ports, rel=1e-6)
    # a unit takes two links but for the ninth that goes to its target at once
    assert delivered(uniform, "valiant") == pytest.approx(ports / (2 - 1 / 9), rel=1e-6)
    permutation = generators.skewed(racks=10, switches=3, skew=1.0, load=2.0)
    assert delivered(permutation, "direct") == pytest.approx(ports / 9, rel=1e-6)
    # a ninth direct, and each relayed unit takes two links: 1/9 + (8/9) / 2
    assert delivered(permutation, "two_hop") == pytest.approx(ports * 5 / 9, rel=1e-6)


def test_some_paths_are_enough() -> None:
    """Column generation from a few paths of each pair finds the optimum over all."""
    problem = generators.hotspots(racks=9, load=1.2, seed=3)
    full = rotor_routing.route_two_links(problem)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rotor_routing, "ALL_PATHS", 0)
        few = rotor_routing.route_two_links(problem)
    assert few.proof.objective == pytest.approx(full.proof.objective, rel=1e-5)
    assert few.proof.status is Status.OPTIMAL


def test_urgent_traffic_goes_first() -> None:
    problem = generators.skewed(racks=12, switches=6, skew=0.1, load=1.2, urgent_share=0.1, random_order=True)
    at_once = measure(problem, BY_NAME["expander"].decide(problem).plan, None)
    later = measure(problem, BY_NAME["two_hop"].decide(problem).plan, None)
    assert at_once["urgent_wait_us"] == pytest.approx(0.0)
    assert at_once["urgent_at_once"] == pytest.approx(1.0)
    assert (later["urgent_wait_us"] or 0) > 0
    # links in several hops are lost to other traffic
    assert (at_once["delivered_mbps"] or 0) < (later["delivered_mbps"] or 0)


def test_urgent_traffic_beyond_the_circuits_waits() -> None:
    problem = generators.skewed(racks=12, switches=4, load=3.0, urgent_share=1.0, random_order=True)
    decision = BY_NAME["expander"].decide(problem)
    share = measure(problem, decision.plan, None)["urgent_at_once"]
    assert share is not None
    assert 0 < share < 1
    assert not len(check(problem, decision.plan))


def test_a_week_is_that_of_circuits() -> None:
    problem = generators.small()
    week = demand_aware.to_week(problem)
    proof = optimum.schedule(week).proof
    assert delivered(problem, "scheduled") == pytest.approx(proof.objective)


def test_all_demand_or_a_proof() -> None:
    problem = generators.skewed(racks=6, skew=1.0, load=1.0)
    short = rotor_routing.route_two_links(problem, options=Options(service="all"))
    assert short.plan is None
    assert short.proof.status is Status.INFEASIBLE
    assert short.proof.reasons[0].startswith("no routing over the rotation delivers more than ")
    one_link = rotor_routing.route_direct(problem, options=Options(service="all"))
    assert one_link.proof.status is Status.UNDECIDED


def plan_pairs(plan: Routing) -> set[str]:
    """Return the names of the racks that send, receive or relay traffic, or have circuits."""
    names: set[str] = set()
    for frame in (plan.circuits, plan.routes, plan.expander):
        for column in ("source_rack", "target_rack", "via"):
            names |= set(frame[column]) if column in frame else set()
    return names


def test_failed_racks_and_no_demand() -> None:
    problem = adjust(generators.small(), fail_racks=("r2",))
    for design in DESIGNS:
        decision = design.decide(problem)
        assert not len(check(problem, decision.plan))
        figures = measure(problem, decision.plan, None)
        assert figures["unserved_mbps"] >= problem.offered_mbps.sum() - problem.demand_mbps.sum()
        assert not (plan_pairs(decision.plan) & {"r2"})
    nothing = adjust(generators.small(), fail_racks=tuple(str(name) for name in problem.names))
    for design in DESIGNS:
        decision = design.decide(nothing)
        assert measure(nothing, decision.plan, None)["delivered_mbps"] == 0.0
        assert not len(check(nothing, decision.plan))


@settings(max_examples=10, deadline=None)
@given(problem=networks(), factor=st.sampled_from([1.0, 10.0]))
def test_the_bound_of_two_links_is_that_of_any_number(problem: RotorNetwork, factor: float) -> None:
    """The bound is the optimum over routes of any number of links, however large demands are."""
    heavier = RotorNetwork(
        racks=problem.racks,
        switches=problem.switches,
        demands=problem.demands.assign(
            rate_mbps=factor * problem.demands["rate_mbps"],
            urgent_mbps=factor * problem.demands["urgent_mbps"] if "urgent_mbps" in problem.demands else 0.0,
        ),
    )
    upper = most_by_any_route(mean_capacity(heavier), heavier.demand_mbps)
    assert rotor_routing.route_two_links(heavier).proof.bound == pytest.approx(upper, rel=2e-5)


def test_a_ring_of_neighbours_by_hand() -> None:
    """Of 126 Gbit/s of circuits 18 connect neighbours; each other unit takes two: 18 + (126 - 18) / 2."""
    demand = 20_000.0 * np.roll(np.eye(8), 1, axis=1)
    problem = generators.build(demand, np.full(8, 10_000.0), 0.0, count=2, day_us=90.0, night_us=10.0)
    proof = rotor_routing.route_two_links(problem).proof
    assert proof.objective == pytest.approx(72_000.0, rel=1e-6)
    assert proof.bound == pytest.approx(72_000.0, rel=1e-5)
