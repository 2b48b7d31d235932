"""Designs of system `topology`: bounds, oracles, limits, and what more ports and moves bring."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from scipy.optimize import linprog

import planner
from planner.backends.pyomo import from_pyomo
from planner.contract.design import Design
from planner.contract.proof import Status
from planner.options import Options
from planner_models.topology import Fabric, check, formulation, measure
from planner_models.topology.designs import DESIGNS, optimum, shorter_routes
from planner_models.topology.designs.decision import route
from planner_models.topology.designs.fixed_rules import round_links
from planner_models.topology.designs.joint_program import JointProgram, every_path, port_bound, solve
from planner_models.topology.designs.shorter_routes import shorten
from planner_models.topology.plan.balance import balance, loads_of, scale_of
from planner_models.topology.plan.plan import read_links
from planner_models.topology.problem import generators
from planner_models.topology.problem.adjustments import adjust
from tests.models.topology.fabrics import fabric, fabrics, scale_by_oracle, topologies


@settings(max_examples=6, deadline=None)
@given(problem=fabrics(most_ports=3))
def test_the_optimum_is_the_best_of_all_topologies(problem: Fabric) -> None:
    problem = problem.servable or problem  # what no plan can serve is left out
    scales = [(scale_by_oracle(problem, links), links) for links in topologies(problem)]
    best = max(scale for scale, _ in scales)
    proof = optimum.plan(problem).proof
    assert proof.objective == pytest.approx(best, rel=1e-6, abs=1e-6)
    assert proof.bound is not None
    assert proof.bound == pytest.approx(best, rel=1e-5, abs=1e-6)
    if best <= 0:
        return
    equal = [links for scale, links in scales if scale >= best * (1 - 1e-9)]
    lower = min(transit_by_oracle(problem, links, best * (1 - 1e-9)) for links in equal)
    stretch = 1 + lower / float(problem.demand_mbps.sum())
    assert [rank.metric for rank in proof.ranks] == ["demand_scale", "stretch"]
    assert proof.ranks[1].objective == pytest.approx(stretch, rel=1e-6)
    assert proof.ranks[1].bound == pytest.approx(stretch, rel=1e-6)


@pytest.mark.parametrize(("preset", "blocks", "ports"), [("balanced", 4, 64), ("balanced", 5, 6)])
def test_routing_over_given_links_is_optimal(preset: str, blocks: int, ports: int) -> None:
    """Prices at which a demand has a path without cost prove no bound, and end no search."""
    problem = generators.PRESETS[preset](blocks=blocks, ports=ports, seed=0)
    model = optimum.build_model(problem)
    solution = planner.backends.solve(model, Options(gap=1e-9))
    links = np.round(JointProgram(problem=problem).read(solution.x, every_path(problem))[0]).astype(np.int64)
    assert route(problem, links).scale == pytest.approx(scale_by_oracle(problem, links), rel=1e-7)
    assert optimum.plan(problem).proof.status is Status.OPTIMAL


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(problem=fabrics())
def test_every_design_keeps_limits_and_no_bound_is_beaten(problem: Fabric) -> None:
    bound = optimum.plan(problem).proof.bound
    assert bound is not None
    relaxed = solve(JointProgram(problem=problem), every_path(problem), Options()) if bound > 0 else None
    for design in DESIGNS:
        decision = design.decide(problem)
        scale = measure(problem, decision.plan, None)["demand_scale"]
        assert scale is not None
        assert scale == pytest.approx(decision.proof.objective)
        assert scale <= bound * (1 + 1e-6)
        assert relaxed is None or relaxed.bound is None or scale <= relaxed.bound * (1 + 1e-6)
        # a step may leave too little for the demand where no order of single links carries it
        assert set(check(problem, decision.plan).frame["limit"]) <= {"routes", "drain"}
        links = read_links(problem, decision.plan.topology, "topology")
        assert scale <= scale_by_oracle(problem, links) * (1 + 1e-6) + 1e-9


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(problem=fabrics(with_links=True))
def test_more_ports_and_more_moves_never_hurt(problem: Fabric) -> None:
    problem = problem.servable or problem  # more ports may make a plan for other demand possible
    scale = optimum.plan(problem).proof.objective
    assert scale is not None
    ports = replace(problem, blocks=problem.blocks.assign(ports=problem.blocks["ports"] + 1))
    for wider in (ports, adjust(problem, move_limit=20), adjust(problem, free_links=True)):
        more = optimum.plan(wider).proof.objective
        assert more is not None
        assert more >= scale * (1 - 1e-6) - 1e-9


def test_the_formal_model_has_the_same_optimum() -> None:
    problem = generators.small()
    decision = optimum.plan(problem)
    solution = planner.backends.solve(from_pyomo(formulation(problem)), Options())
    assert solution.objective == pytest.approx(decision.proof.objective, rel=1e-6)
    matrix = planner.backends.solve(optimum.build_model(problem), Options())
    unit = JointProgram(problem=problem).unit
    assert matrix.objective == pytest.approx((decision.proof.objective or 0) / unit, rel=1e-6)


def test_transit_uses_the_other_direction() -> None:
    """Four ports of 10 each: 30 and 10 Mbit/s from a to b and from b to c become 40 out of a."""
    decision = optimum.plan(fabric([[0, 30, 0], [0, 0, 10], [0, 0, 0]]))
    assert decision.proof.status is Status.OPTIMAL
    assert decision.proof.objective == pytest.approx(4 / 3)


@pytest.mark.parametrize("preset", ["gravity", "balanced"])
def test_the_gap_is_small_for_many_blocks(preset: str) -> None:
    problem = adjust(generators.PRESETS[preset](blocks=16, ports=128, seed=1), free_links=True)
    proof = optimum.plan(problem).proof
    assert proof.gap is not None
    assert proof.gap <= 0.01
    assert proof.bound is not None
    assert proof.bound <= port_bound(problem) * (1 + 1e-9)


@pytest.mark.exhaustive
def test_sixty_four_blocks_of_512_ports_are_within_one_percent() -> None:
    problem = adjust(generators.balanced(blocks=64, ports=512, seed=1), free_links=True)
    decision = optimum.plan(problem)
    assert decision.proof.gap is not None
    assert decision.proof.gap <= 0.01
    assert not len(check(problem, decision.plan))


def test_rounding_keeps_ports_and_moves() -> None:
    problem = generators.gravity(blocks=9, ports=17, move_limit=11, seed=5)
    links = round_links(problem, JointProgram(problem=problem).rate * 3.37)
    assert (links == links.T).all()
    assert (links.sum(axis=1) <= problem.ports).all()
    assert problem.present is not None
    limited = solve(JointProgram(problem=problem), every_path(problem), Options()).links
    rounded = round_links(problem, limited)
    assert np.maximum(rounded - problem.present, 0).sum() / 2 <= 11


def test_all_demand_or_a_proof() -> None:
    problem = fabric([[0, 90, 0], [0, 0, 0], [0, 0, 0]])
    short = optimum.plan(problem, options=Options(service="all"))
    assert short.plan is None
    assert short.proof.status is Status.INFEASIBLE
    assert short.proof.reasons == ("no topology carries more than 0.4444 times the demand of 90 Mbit/s",)


def test_a_block_without_ports_carries_nothing() -> None:
    problem = fabric([[0, 5, 0], [0, 0, 5], [0, 0, 0]], ports=[0.0, 4.0, 4.0])
    for design in DESIGNS:
        decision = design.decide(problem)
        figures = measure(problem, decision.plan, None)
        assert figures["unserved_mbps"] == 5.0
        assert figures["demand_scale"] == pytest.approx(8.0), "40 Mbit/s for the other demand"


def test_routes_are_shortened_at_the_same_scale() -> None:
    problem = generators.gravity(blocks=6, ports=12, seed=3)
    links = generators.mesh(problem.ports)
    routing = balance(problem.demand_mbps, links * problem.link_mbps)
    lower = transit_by_oracle(problem, links, routing.scale * (1 - 1e-7))
    exact = shorten(problem, links, routing)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shorter_routes, "EXACT_BLOCKS", 0)
        fast = shorten(problem, links, routing)
    before, after, quick = (transit_of(problem, item.shares) for item in (routing, exact, fast))
    assert after == pytest.approx(lower, rel=1e-4, abs=1e-3)
    assert after <= quick + 1e-6
    assert quick < before
    for item in (exact, fast):
        load = loads_of(item.shares * problem.demand_mbps[:, :, None])
        assert scale_of(load, links * problem.link_mbps) >= routing.scale * (1 - 1e-6)
        assert item.shares.sum(axis=2)[problem.demand_mbps > 0] == pytest.approx(1.0)


def transit_of(problem: Fabric, shares: np.ndarray) -> float:
    """Return the traffic by transit blocks, Mbit/s."""
    each = np.arange(len(shares))
    return float(((shares.sum(axis=2) - shares[each, :, each]) * problem.demand_mbps).sum())


def transit_by_oracle(problem: Fabric, links: np.ndarray, scale: float) -> float:
    """Return the least traffic by transit blocks at a demand scale, by a program of its own."""
    count = len(links)
    demand, capacity = problem.demand_mbps, links * problem.link_mbps
    paths = [(i, k, j) for i, j in np.argwhere(demand > 0).tolist() for k in range(count) if k != j]
    cost = [float(i != k) for i, k, _ in paths]
    upper, largest = np.zeros((count * count, len(paths))), capacity.ravel() / scale
    equal, total = np.zeros((count * count, len(paths))), demand.ravel()
    for index, (i, k, j) in enumerate(paths):
        equal[i * count + j, index] = 1.0
        for a, b in [(i, j)] if k == i else [(i, k), (k, j)]:
            upper[a * count + b, index] = 1.0
    solution = linprog(cost, A_ub=upper, b_ub=largest, A_eq=equal, b_eq=total)
    assert solution.status == 0
    return float(solution.fun)


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design.name)
def test_a_demand_without_any_path_is_a_result(design: Design) -> None:
    """A block without ports carries nothing: the plan says so, and is not rejected."""
    problem = Fabric.from_tables(
        {
            "blocks": pd.DataFrame({"block": ["a", "b"], "ports": [0.0, 1.0], "port_mbps": 10.0}),
            "demands": pd.DataFrame([("a", "b", 3.0)], columns=["source", "target", "rate_mbps"]),
        }
    )
    run = planner.solve(problem, design=design.name)
    assert run.metrics["demand_scale"] == 0
    assert run.metrics["unserved_mbps"] == 3.0
    assert run.metrics["stretch"] is None


@pytest.mark.slow
def test_the_optimum_of_many_blocks_has_a_plan_and_a_bound_at_the_time_limit() -> None:
    problem = generators.gravity(blocks=12, seed=1)
    best = optimum.plan(problem).proof.objective
    for limit_s in (1e-9, 0.05):
        decision = optimum.plan(problem, options=Options(time_limit_s=limit_s))
        proof = decision.proof
        assert decision.plan is not None
        assert not len(check(problem, decision.plan).of_limits(decision.guarantees))
        assert proof.is_cut
        assert proof.bound is not None
        assert 0 < proof.objective <= proof.bound * (1 + 1e-9)
        assert best <= proof.bound * (1 + 1e-9)


def test_a_limit_on_moves_beyond_64_bits_limits_nothing() -> None:
    demand = [[0, 5, 0], [0, 0, 1], [0, 0, 0]]
    problem = fabric(demand, links=[(0, 1, 1), (1, 2, 1)], move_limit=1e300)
    links = np.array([[0.0, 2.5, 0.0], [2.5, 0.0, 1.5], [0.0, 1.5, 0.0]])
    assert np.array_equal(round_links(problem, links), round_links(adjust(problem, move_limit=99), links))
