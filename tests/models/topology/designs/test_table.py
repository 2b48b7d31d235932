"""Designs of system `topology`: bounds, oracles, limits, and what more ports and moves bring."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

import planner
from planner.backends.pyomo import from_pyomo
from planner.contract.proof import Status
from planner.options import Options
from planner_models.topology import Fabric, check, formulation, measure
from planner_models.topology.designs import optimum
from planner_models.topology.designs.joint_program import JointProgram, every_path, port_bound, solve
from planner_models.topology.designs.table import DESIGNS
from planner_models.topology.designs.whole_links import round_links
from planner_models.topology.plan.plan import read_links
from planner_models.topology.problem import generators
from planner_models.topology.problem.adjustments import adjust
from tests.models.topology.fabrics import fabric, fabrics, scale_by_oracle, topologies


@settings(max_examples=6, deadline=None)
@given(problem=fabrics(most_ports=3))
def test_the_optimum_is_the_best_of_all_topologies(problem: Fabric) -> None:
    best = max(scale_by_oracle(problem, links) for links in topologies(problem))
    proof = optimum.plan(problem).proof
    assert proof.objective == pytest.approx(best, rel=1e-6, abs=1e-6)
    assert proof.bound is not None
    assert proof.bound == pytest.approx(best, rel=1e-5, abs=1e-6)


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


@settings(max_examples=6, deadline=None)
@given(problem=fabrics(with_links=True))
def test_more_ports_and_more_moves_never_hurt(problem: Fabric) -> None:
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


@pytest.mark.slow
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
        assert figures["demand_scale"] == 0.0
        assert figures["max_utilization"] is None
