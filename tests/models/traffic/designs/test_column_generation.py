"""Column generation against the plain linear program: plans, bounds at every step, limits."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from planner import Options, Status
from planner.contract import progress
from planner.contract.system import System
from planner.errors import InputError
from planner.runs.evaluation import evaluate
from planner.scenarios.scenario import Entry
from planner.search.deadline import NEVER, Deadline
from planner_models.flows import reduced_problem, tree_columns
from planner_models.flows.reduced_problem import ReducedProblem
from planner_models.traffic import SYSTEM, Traffic, information
from planner_models.traffic.designs import column_generation
from planner_models.traffic.designs.optimum import optimum
from planner_models.traffic.information import realize
from planner_models.traffic.plan.flow_decision import routing_of_flow
from planner_models.traffic.plan.plan import routing_from_tables
from planner_models.traffic.problem import generators
from planner_models.traffic.problem.readers import topohub
from tests.models.traffic.networks import both_ways, network, problems

TREES, PATHS = "trees", "paths"


@pytest.fixture(params=[TREES, PATHS])
def search_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Force either search, by trees or by paths, on every problem."""
    monkeypatch.setattr(tree_columns, "PAIRS_PER_ROOT_LIMIT", 0 if request.param == TREES else 10**6)
    return str(request.param)


def concurrent_flow(problem: Traffic) -> float:
    value = optimum.route(problem, objective="concurrent", method="lp").proof.objective
    assert value is not None
    return value


def solve(problem: Traffic, system: System = SYSTEM, **parameters: Any) -> Any:
    """Run `optimum` by columns: the engine recomputes the metrics of the plan."""
    entry = Entry(
        label="optimum",
        design=system.design("optimum"),
        parameters={"objective": "concurrent", "method": "columns", **parameters},
    )
    return evaluate(system, problem, entry)


# --- the same optimum ---------------------------------------------------------------------


@pytest.mark.slow
@given(problems(max_nodes=7, max_demands=6))
@settings(max_examples=20, deadline=None)
def test_bounds_hold_at_every_iteration_and_meet_the_optimum(problem: Traffic) -> None:
    best = 1 / concurrent_flow(problem)
    for few in (0, 10**6):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tree_columns, "PAIRS_PER_ROOT_LIMIT", few)
            match = tree_columns.search(ReducedProblem.of(problem, symmetry=False))
        assert match.split is not None
        for step in match.trace:
            assert step.bound <= best * (1 + 1e-7)
            assert step.utilization >= best * (1 - 1e-7)
        assert match.utilization == pytest.approx(best, rel=2e-6)
        bounds = [step.bound for step in match.trace]
        assert bounds == sorted(bounds)


@pytest.mark.parametrize("name", ["sndlib/abilene", "sndlib/germany50"])
@pytest.mark.parametrize("objective", ["concurrent", "utilization"])
def test_real_networks_agree_with_the_linear_program(name: str, objective: str, search_by: str) -> None:
    problem = Traffic.from_tables(topohub.read(name, peak_utilization=1.3))
    run = solve(problem, objective=objective)
    exact = optimum.route(problem, method="lp", objective=objective).proof  # type: ignore[arg-type]
    assert run.proof.status is Status.OPTIMAL
    assert run.proof.gap <= 1e-6
    assert run.proof.objective == pytest.approx(exact.objective, rel=2e-6)
    assert search_by in (TREES, PATHS)


def test_two_routes_share_what_one_cannot_carry(search_by: str) -> None:
    links = [("s", "a", 10.0), ("a", "t", 10.0), ("s", "b", 5.0), ("b", "t", 5.0), ("a", "b", 1.0)]
    run = solve(network(links, [("s", "t", 12.0), ("a", "t", 0.5)]))
    assert run.proof.objective == pytest.approx(15 / 12.5, rel=1e-5)
    assert search_by in (TREES, PATHS)


def test_overload_is_cut_to_one_share() -> None:
    run = solve(network(both_ways([("a", "b", 4.0), ("b", "c", 4.0), ("a", "c", 4.0)]), [("a", "c", 16.0)]))
    assert run.proof.objective == pytest.approx(0.5)
    assert run.metrics["max_utilization"] == pytest.approx(1.0)
    assert run.metrics["min_rate_share"] == pytest.approx(0.5)


def star_of_clients() -> Traffic:
    """Return a problem with two sources and many targets: trees are rooted at the sources."""
    links = [("s0", "x", 30.0), ("s0", "y", 20.0), ("s1", "y", 25.0), ("x", "y", 4.0), ("y", "x", 3.0)]
    links += [(hub, f"t{i}", 3.0 + i % 3) for i in range(8) for hub in ("x", "y")]
    links += [(f"t{i}", f"t{(i + 1) % 8}", 1.0) for i in range(8)]
    return network(links, [(s, f"t{i}", 1.0 + (i * 7) % 4) for s in ("s0", "s1") for i in range(8)])


def test_few_sources_root_the_trees(search_by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = star_of_clients()
    assert ReducedProblem.of(problem).by_source
    best = concurrent_flow(problem)
    assert solve(problem).proof.objective == pytest.approx(best, rel=2e-6)
    monkeypatch.setattr(reduced_problem, "MAX_PAIR_ROWS", 0)
    run = solve(problem)
    assert "source" not in run.plan.flows
    assert run.proof.objective == pytest.approx(best, rel=2e-6)
    assert search_by in (TREES, PATHS)


# --- plans per target ---------------------------------------------------------------------


@pytest.mark.slow
@given(problems(max_nodes=6, max_demands=6))
@settings(max_examples=25, deadline=None)
def test_plans_per_target_and_per_pair_have_the_same_metrics(problem: Traffic) -> None:
    for few in (0, 10**6):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tree_columns, "PAIRS_PER_ROOT_LIMIT", few)
            by_pair = solve(problem)
            patch.setattr(reduced_problem, "MAX_PAIR_ROWS", -1)
            by_target = solve(problem)
        assert "source" in by_pair.plan.flows
        assert "source" not in by_target.plan.flows
        for name in ("concurrent_flow", "max_utilization", "mean_path_stretch", "min_rate_share"):
            assert by_target.metrics[name] == pytest.approx(by_pair.metrics[name], rel=1e-9), name


def test_a_plan_per_target_is_the_same_after_a_round_trip_through_tables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = Traffic.from_tables(topohub.read("sndlib/abilene", peak_utilization=1.3))
    monkeypatch.setattr(reduced_problem, "MAX_PAIR_ROWS", 0)
    run = solve(problem)
    tables = {name: pd.DataFrame(frame.astype(object)) for name, frame in run.plan.to_tables().items()}
    again = routing_from_tables(problem, tables)
    metrics = SYSTEM.plan.measure(problem, again, None)
    assert metrics == pytest.approx({name: run.metrics[name] for name in metrics})


def test_a_plan_per_target_is_realized_with_its_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    truth = Traffic.from_tables(topohub.read("sndlib/abilene", peak_utilization=0.3))
    observed = information.observe_reports(truth, noise=0.5, seed=3)
    monkeypatch.setattr(reduced_problem, "MAX_PAIR_ROWS", 0)
    plan = column_generation.route(observed).plan
    assert plan is not None
    realized = realize(truth, observed, plan)
    assert SYSTEM.plan.measure(truth, realized, None)["shed_mbps"] == pytest.approx(0, abs=1e-6)
    # with the demands as observed it is realized as planned, except for traffic in cycles
    same = realize(observed, observed, plan).links["load_mbps"]
    assert (same <= plan.links["load_mbps"] * (1 + 1e-9) + 1e-6).all()


def test_demands_below_the_rounding_error_of_sums_are_still_served(monkeypatch: pytest.MonkeyPatch) -> None:
    links = both_ways([("a", "b", 9e6), ("b", "c", 9e6), ("a", "c", 7e6), ("c", "d", 9e6), ("b", "d", 5e6)])
    problem = network(links, [("a", "d", 8e6), ("c", "d", 1e-6), ("b", "d", 3e-7), ("d", "a", 1e-9)])
    for rows in (10**6, -1):
        monkeypatch.setattr(reduced_problem, "MAX_PAIR_ROWS", rows)
        run = solve(problem)
        assert run.metrics["concurrent_flow"] == pytest.approx(run.proof.objective, rel=1e-9)


# --- options ------------------------------------------------------------------------------


def test_equal_seeds_make_equal_plans_and_threads_change_nothing_but_rounding() -> None:
    problem = Traffic.from_tables(topohub.read("sndlib/geant"))
    item, two = (column_generation.route(problem, options=Options(seed=3)) for _ in range(2))
    assert item.plan is not None
    assert two.plan is not None
    pd.testing.assert_frame_equal(item.plan.flows, two.plan.flows)
    more = column_generation.route(problem, options=Options(seed=4, threads=2))
    assert more.proof.objective == pytest.approx(item.proof.objective, rel=3e-6)


@pytest.mark.parametrize("gap", [0.1, 1e-2, 1e-3])
def test_the_search_stops_at_the_gap_of_the_options(gap: float) -> None:
    problem = Traffic.from_tables(topohub.read("topozoo/TataNld", seed=1))
    best = column_generation.route(problem).proof.objective
    assert best is not None
    proof = column_generation.route(problem, options=Options(gap=gap)).proof
    assert proof.status is Status.OPTIMAL
    assert proof.objective is not None
    assert proof.bound is not None
    assert proof.objective <= best * (1 + 1e-9) <= proof.bound * (1 + 2e-9)
    assert proof.gap is not None
    assert proof.gap <= gap


def test_a_time_limit_returns_the_best_plan_with_its_bound() -> None:
    problem = Traffic.from_tables(topohub.read("topozoo/TataNld", seed=1))
    small = ReducedProblem.of(problem)
    match = tree_columns.search(small, deadline=Deadline(0.0, 0.0))
    assert match.split is not None  # one tree for each root
    assert 0 < match.bound < match.utilization

    state = tree_columns._Search(small, 1e-9, 0, NEVER)
    steps = state.iterate()
    for _ in range(3):
        next(steps)
    state.deadline = Deadline(0.0, 0.0)  # from here on every check of the time is too late
    assert len(list(steps)) <= 1
    split = state.incumbent()
    assert split is not None
    plan = routing_of_flow(problem, small.find_flow(split))
    assert SYSTEM.plan.measure(problem, plan, None)["max_utilization"] == pytest.approx(
        state.utilization(), rel=1e-9
    )
    assert state.bound < state.utilization()


def test_there_is_always_a_plan_with_a_bound() -> None:
    problem = Traffic.from_tables(topohub.read("topozoo/TataNld", seed=1))
    decision = column_generation.route(problem, options=Options(time_limit_s=1e-9))
    assert decision.plan is not None
    assert decision.proof.status is Status.FEASIBLE
    assert 0 < decision.proof.objective < decision.proof.bound


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (Options(backend="ortools"), "backend is 'ortools': 'columns' is a solver of its own, leave it out"),
        (
            Options(algorithm="simplex"),
            "algorithm is 'simplex': 'columns' solves no linear program with it, leave it out",
        ),
    ],
)
def test_other_solvers_are_refused_by_name(options: Options, message: str) -> None:
    problem = network(both_ways([("a", "b", 1.0)]), [("a", "b", 1.0)])
    with pytest.raises(InputError) as error:
        column_generation.route(problem, options=options)
    assert str(error.value) == message


def test_columns_refuse_given_paths() -> None:
    problem = network(both_ways([("a", "b", 1.0)]), [("a", "b", 1.0)])
    with pytest.raises(InputError) as error:
        optimum.route(problem, method="columns", paths=2)
    assert (
        str(error.value) == "method is 'columns', which does not know a number of paths: leave it at 'auto'"
    )


def test_auto_takes_columns_where_the_program_is_large() -> None:
    small = Traffic.from_tables(topohub.read("sndlib/abilene"))
    large = Traffic.from_tables(topohub.read("topozoo/TataNld", seed=1))
    assert str(optimum.route(small).proof.backend).startswith("highs")
    assert optimum.route(large).proof.backend == "column generation"


def test_a_problem_without_demand_needs_no_search() -> None:
    problem = network(both_ways([("a", "b", 1.0)]), [("a", "b", 0.0)])
    decision = column_generation.route(problem)
    assert decision.proof.status is Status.OPTIMAL
    assert decision.plan is not None
    assert not len(decision.plan.flows)
    assert column_generation.route(problem, objective="utilization").proof.objective == 0.0


# --- parts --------------------------------------------------------------------------------


def test_the_utilization_of_the_plan_does_not_depend_on_the_claim_of_the_search() -> None:
    problem = star_of_clients()
    small = ReducedProblem.of(problem)
    match = tree_columns.search(small)
    wrong = dataclasses.replace(match, utilization=match.utilization / 2)
    assert wrong.split is not None
    # the decision takes its objective from the plan, never from the search
    plan = routing_of_flow(problem, small.find_flow(wrong.split))
    assert plan.links["utilization"].max() == pytest.approx(match.utilization, rel=1e-9)


def test_the_line_search_finds_the_smallest_maximum_between_two_loads() -> None:
    item, other = np.array([1.0, 0.0]), np.array([0.0, 2.0])
    assert tree_columns._line_search(item, other) == pytest.approx(1 / 3)
    assert tree_columns._line_search(item, item + 1) == 0.0
    assert tree_columns._line_search(item + 1, item) == 1.0


def test_a_search_may_end_with_the_proof_that_not_everything_fits() -> None:
    problem = generators.germany50().scale_demands(4.0)
    decision = column_generation.route(problem)
    early = column_generation.route(problem, enough=1.0)
    assert early.plan is None
    assert decision.proof.objective is not None
    assert early.proof.bound is not None
    assert decision.proof.objective <= early.proof.bound < 1


@pytest.mark.parametrize("goal", ["concurrent", "utilization"])
def test_progress_is_reported_in_the_metric_of_the_objective(goal: Any) -> None:
    seen: list[progress.Progress] = []
    problem = generators.abilene()
    with progress.observe(seen.append):
        decision = optimum.route(problem, objective=goal, method="columns")
    assert seen
    assert {state.metric for state in seen} == {decision.proof.metric}
    best = seen[-1].objective
    assert best == pytest.approx(decision.proof.objective, rel=1e-6)
