"""Utility and the approximation scheme over tunnels and routes within limits, against other programs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from planner import Options, Status
from planner.errors import InputError
from planner.runs.evaluation import evaluate
from planner.runs.run import Run
from planner.scenarios.scenario import Entry
from planner_models.flows import path_flow_program
from planner_models.flows.path_flow_program import CandidatePaths
from planner_models.flows.route_limits import RouteLimits
from planner_models.graphs.path_search import FoundPaths
from planner_models.traffic import SYSTEM, Traffic
from planner_models.traffic.designs import utility_maximization
from planner_models.traffic.designs.route_choice import find_tunnels
from planner_models.traffic.plan.check import check
from planner_models.traffic.plan.verified_flow import verify_flow
from tests.models.traffic.designs.test_utility_maximization import by_clarabel, by_programs
from tests.models.traffic.networks import both_ways, network
from tests.models.traffic.restricted_networks import draw_network, find_paths, solve_program

seeds = st.integers(0, 1_000_000)


def solve(problem: Traffic, design: str, **parameters: Any) -> Run:
    """Run a design through the engine, which checks plan and guarantees."""
    entry = Entry(label=design, design=SYSTEM.design(design), parameters=parameters)
    run = evaluate(SYSTEM, problem, entry)
    assert not {"latency", "rules"} & set(check(problem, run.plan).frame["limit"])
    return run


def draw(seed: int, *, tunnels: bool = False) -> tuple[Traffic, CandidatePaths]:
    """Return a network with the demands that have a route, and their routes: tunnels, or all legal paths."""
    problem = draw_network(seed, tunnels=tunnels)
    routes = _tunnels(problem) if tunnels else _all_paths(problem)
    selected = np.unique(routes.demand)
    assume(len(selected))
    problem = replace(problem, demands=problem.demands.iloc[selected].reset_index(drop=True))
    routes = _tunnels(problem) if tunnels else _all_paths(problem)
    return problem, routes


def _tunnels(problem: Traffic) -> CandidatePaths:
    return find_tunnels(problem, RouteLimits.of(problem))


def _all_paths(problem: Traffic) -> CandidatePaths:
    paths = [(k, path) for k, several in enumerate(find_paths(problem)) for path in several]
    found_paths = FoundPaths(
        demand=np.array([k for k, _ in paths], dtype=np.int64),
        start=np.r_[0, np.cumsum([len(path) for _, path in paths])].astype(np.int64),
        link=np.array([link for _, path in paths for link in path], dtype=np.int32),
    )
    return CandidatePaths(found=found_paths, width=len(problem.links))


def served_shares(problem: Traffic, run: Run) -> np.ndarray:
    return verify_flow(problem, run.plan).served_mbps / problem.rate_mbps


@settings(max_examples=10, deadline=None)
@given(seeds, st.booleans())
def test_proportional_shares_are_what_clarabel_finds(seed: int, tunnels: bool) -> None:
    problem, routes = draw(seed, tunnels=tunnels)
    run = solve(problem, "utility", paths="tunnels" if tunnels else "any")
    best = np.exp(by_clarabel(problem, path_flow_program.build(problem, "total", routes)))
    assert run.proof.status is Status.OPTIMAL
    assert run.metrics["geometric_rate_share"] == pytest.approx(best, rel=2e-4)
    assert run.proof.bound >= best * (1 - 1e-5)


@settings(max_examples=12, deadline=None)
@given(seeds)
def test_every_max_min_level_is_that_of_programs_over_all_routes(seed: int) -> None:
    problem, routes = draw(seed)
    run = solve(problem, "utility", fairness="max-min")
    assert run.proof.status is Status.OPTIMAL
    levels = run.plan.levels
    assert (levels["bound"] <= levels["value"] * (1 + 1e-6)).all()
    served = verify_flow(problem, run.plan).served_mbps
    expected = by_programs(problem, problem.rate_mbps, routes.uses, routes.demand)
    assert served == pytest.approx(expected, rel=1e-5, abs=1e-7)


@settings(max_examples=10, deadline=None)
@given(seeds, st.booleans(), st.sampled_from(["concurrent", "utilization"]))
def test_the_scheme_keeps_its_ratio_and_its_bound(seed: int, tunnels: bool, objective: str) -> None:
    problem, routes = draw(seed, tunnels=tunnels)
    run = solve(problem, "fptas", paths="tunnels" if tunnels else "any", objective=objective, epsilon=0.1)
    serve = sp.csr_array((np.ones(len(routes.demand)), (routes.demand, np.arange(len(routes.demand)))))
    best = solve_program(problem, routes.uses.T.toarray(), serve.toarray(), objective)
    value, bound = run.proof.objective, run.proof.bound
    assert value is not None
    assert bound is not None
    low, high = (value, bound) if objective == "concurrent" else (bound, value)
    assert low <= best * (1 + 1e-7)
    assert high >= best * (1 - 1e-7)
    assert low >= 0.9**3 * high * (1 - 1e-9)


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(seeds, st.sampled_from(["optimum", "utility", "fptas"]), st.data())
def test_more_tunnels_looser_latency_and_more_capacity_never_hurt(
    seed: int, design: str, data: st.DataObject
) -> None:
    problem, _ = draw(seed, tunnels=True)
    explicit = problem.tunnels[problem.tunnels["path"].str.count(">") > 0]
    explicit = explicit[explicit.get("kind", pd.Series("", index=explicit.index)).fillna("") != "segments"]
    assume(len(explicit))
    more = replace(problem, tunnels=explicit.reset_index(drop=True))
    few = replace(more, tunnels=more.tunnels.iloc[: data.draw(st.integers(1, len(explicit)))])
    parameters: dict[str, Any] = {
        "optimum": {"objective": "total", "paths": "tunnels"},
        "utility": {"fairness": "max-min", "paths": "tunnels"},
        "fptas": {"paths": "tunnels", "options": Options(gap=1e-2)},
    }[design]
    options = parameters.pop("options", Options())
    decide = SYSTEM.design(design).decide

    def value(item: Traffic) -> float:
        return decide(item, options=options, **parameters).proof.objective or 0.0

    base = value(few)
    looser = few.demands.assign(max_latency_ms=few.demands["max_latency_ms"] * 2)
    for better in (more, replace(few, demands=looser), few.scale_capacity(1.5)):
        assert value(better) >= base * (1 - (2e-2 if design == "fptas" else 1e-6)) - 1e-9


def test_a_demand_without_a_route_is_shed_and_does_not_count_in_shares() -> None:
    links = both_ways([("a", "b", 10.0), ("b", "c", 10.0)])
    problem = network(links, [("a", "c", 4.0), ("a", "b", 4.0)])
    links_ms = problem.links.assign(latency_ms=5.0)
    problem = replace(problem, links=links_ms, demands=problem.demands.assign(max_latency_ms=5.0))
    for design, metric in (("utility", "geometric_rate_share"), ("fptas", "concurrent_flow")):
        run = solve(problem, design)
        assert run.plan.shed[["target", "rate_mbps"]].to_numpy().tolist() == [["c", 4.0]]
        assert run.proof.metric == metric
        best = 1.0 if design == "utility" else 2.5  # 4 of 10 Mbit/s on the link a-b
        assert run.proof.objective == pytest.approx(best, rel=0.2)
        assert run.proof.bound >= best * (1 - 1e-9)
        assert run.metrics["delivered_mbps"] == pytest.approx(4.0)
        decision = SYSTEM.design(design).decide(problem, options=Options(service="all"))
        assert decision.proof.status is Status.INFEASIBLE
        assert decision.proof.reasons == (
            "demand a->c has no path that keeps its latency limit and its rules",
        )


def test_a_route_that_is_needed_only_at_a_price_is_found() -> None:
    # both demands fit only where the one with two routes within its limit leaves the shorter one
    links = both_ways([("a", "b", 10.0), ("a", "c", 10.0), ("c", "b", 10.0)])
    problem = network(links, [("a", "b", 20.0), ("a", "c", 5.0)])
    links_ms = problem.links.assign(latency_ms=1.0)
    problem = replace(problem, links=links_ms, demands=problem.demands.assign(max_latency_ms=2.0))
    fair = solve(problem, "utility", fairness="max-min")
    assert served_shares(problem, fair) == pytest.approx([0.8, 0.8])
    assert fair.proof.bound_scope == "routes that keep latency limits and rules"
    tight = replace(problem, demands=problem.demands.assign(max_latency_ms=1.0))
    assert served_shares(tight, solve(tight, "utility", fairness="max-min")) == pytest.approx([0.5, 1.0])


def test_limits_hold_at_any_time_limit() -> None:
    problem = draw_network(11)
    for design in ("utility", "fptas"):
        decision = SYSTEM.design(design).decide(problem, options=Options(time_limit_s=1e-9))
        assert decision.plan is None or decision.proof.bound is not None


def test_other_solvers_and_tunnels_by_segments_are_refused() -> None:
    problem = draw_network(11, tunnels=True)
    with pytest.raises(InputError, match=r"^backend is 'ortools:glop': 'utility over routes"):
        utility_maximization.route(problem, options=Options(backend="ortools:glop"))
    plain = network(both_ways([("a", "b", 10.0)]), [("a", "b", 4.0)])
    with pytest.raises(InputError, match="has no table 'tunnels'"):
        SYSTEM.design("fptas").decide(plain, paths="tunnels")
    with pytest.raises(InputError, match="max_hops is 2, but paths is 'any'"):
        SYSTEM.design("fptas").decide(plain, max_hops=2)
