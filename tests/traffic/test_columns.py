"""Column generation against the plain linear program: plans, bounds at every step, limits."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from planner import Options, Status
from planner.errors import InputError
from planner.run import evaluate
from planner.scenario import Entry
from planner.system import System
from planner_models.traffic import SYSTEM, Traffic, columns, optimum, rooted, sees
from planner_models.traffic.readers import topohub
from planner_models.traffic.rooted import Rooted
from planner_models.traffic.routing import from_tables
from tests.traffic.networks import both_ways, network, problems

TREES, SHIFTS = "trees", "shifts"


@pytest.fixture(params=[TREES, SHIFTS])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both searches on every problem, whichever it would take by itself."""
    monkeypatch.setattr(columns, "FEW_PAIRS", 0 if request.param == TREES else 10**6)
    return str(request.param)


def plain(problem: Traffic) -> float:
    value = optimum.route(problem, method="lp").proof.objective
    assert value is not None
    return value


def solved(problem: Traffic, system: System = SYSTEM, **parameters: Any) -> Any:
    """The run of `optimum` by columns: the engine recomputes what the plan is worth."""
    entry = Entry(
        label="optimum", design=system.design("optimum"), parameters={"method": "columns", **parameters}
    )
    return evaluate(system, problem, entry)


# --- the same optimum ---------------------------------------------------------------------


@given(problems(max_nodes=7, max_demands=6))
@settings(max_examples=40, deadline=None)
def test_bounds_hold_at_every_step_and_meet_the_optimum(problem: Traffic) -> None:
    best = 1 / plain(problem)
    for few in (0, 10**6):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(columns, "FEW_PAIRS", few)
            found = columns.search(Rooted.of(problem, symmetry=False))
        assert found.mix is not None
        for step in found.trace:
            assert step.bound <= best * (1 + 1e-7)
            assert step.utilization >= best * (1 - 1e-7)
        assert found.utilization == pytest.approx(best, rel=2e-6)
        bounds = [step.bound for step in found.trace]
        assert bounds == sorted(bounds)


@pytest.mark.parametrize("name", ["sndlib/abilene", "sndlib/germany50"])
@pytest.mark.parametrize("objective", ["concurrent", "utilization"])
def test_real_networks_agree_with_the_linear_program(name: str, objective: str, way: str) -> None:
    problem = Traffic.from_tables(topohub.read(name, peak_utilization=1.3))
    run = solved(problem, objective=objective)
    exact = optimum.route(problem, method="lp", objective=objective).proof  # type: ignore[arg-type]
    assert run.proof.status is Status.OPTIMAL
    assert run.proof.gap <= 1e-6
    assert run.proof.objective == pytest.approx(exact.objective, rel=2e-6)
    assert way in (TREES, SHIFTS)


def test_two_routes_share_what_one_cannot_carry(way: str) -> None:
    links = [("s", "a", 10.0), ("a", "t", 10.0), ("s", "b", 5.0), ("b", "t", 5.0), ("a", "b", 1.0)]
    run = solved(network(links, [("s", "t", 12.0), ("a", "t", 0.5)]))
    assert run.proof.objective == pytest.approx(15 / 12.5, rel=1e-5)
    assert way in (TREES, SHIFTS)


def test_overload_is_cut_to_one_share() -> None:
    run = solved(network(both_ways([("a", "b", 4.0), ("b", "c", 4.0), ("a", "c", 4.0)]), [("a", "c", 16.0)]))
    assert run.proof.objective == pytest.approx(0.5)
    assert run.metrics["max_utilization"] == pytest.approx(1.0)
    assert run.metrics["min_rate_share"] == pytest.approx(0.5)


def star_of_clients() -> Traffic:
    """Two sources and many targets: trees are rooted at the sources."""
    links = [("s0", "x", 30.0), ("s0", "y", 20.0), ("s1", "y", 25.0), ("x", "y", 4.0), ("y", "x", 3.0)]
    links += [(hub, f"t{i}", 3.0 + i % 3) for i in range(8) for hub in ("x", "y")]
    links += [(f"t{i}", f"t{(i + 1) % 8}", 1.0) for i in range(8)]
    return network(links, [(s, f"t{i}", 1.0 + (i * 7) % 4) for s in ("s0", "s1") for i in range(8)])


def test_few_sources_root_the_trees(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = star_of_clients()
    assert Rooted.of(problem).by_source
    best = plain(problem)
    assert solved(problem).proof.objective == pytest.approx(best, rel=2e-6)
    monkeypatch.setattr(rooted, "PAIR_ROWS", 0)
    run = solved(problem)
    assert "source" not in run.plan.flows
    assert run.proof.objective == pytest.approx(best, rel=2e-6)
    assert way in (TREES, SHIFTS)


# --- plans per target ---------------------------------------------------------------------


@given(problems(max_nodes=6, max_demands=6))
@settings(max_examples=25, deadline=None)
def test_plans_per_target_are_worth_what_plans_per_pair_are(problem: Traffic) -> None:
    for few in (0, 10**6):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(columns, "FEW_PAIRS", few)
            by_pair = solved(problem)
            patch.setattr(rooted, "PAIR_ROWS", -1)
            by_target = solved(problem)
        assert "source" in by_pair.plan.flows
        assert "source" not in by_target.plan.flows
        for name in ("concurrent_flow", "max_utilization", "mean_path_stretch", "min_rate_share"):
            assert by_target.metrics[name] == pytest.approx(by_pair.metrics[name], rel=1e-9), name


def test_a_plan_per_target_survives_its_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Traffic.from_tables(topohub.read("sndlib/abilene", peak_utilization=1.3))
    monkeypatch.setattr(rooted, "PAIR_ROWS", 0)
    run = solved(problem)
    tables = {name: pd.DataFrame(frame.astype(object)) for name, frame in run.plan.to_tables().items()}
    again = from_tables(problem, tables)
    worth = SYSTEM.measure(problem, again, None)
    assert worth == pytest.approx({name: run.metrics[name] for name in worth})


def test_a_plan_per_target_plays_out_with_its_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    truth = Traffic.from_tables(topohub.read("sndlib/abilene", peak_utilization=0.3))
    believed = sees.told(truth, noise=0.5, seed=3)
    monkeypatch.setattr(rooted, "PAIR_ROWS", 0)
    plan = columns.route(believed).plan
    assert plan is not None
    enacted = sees.enact(truth, believed, plan)
    assert SYSTEM.measure(truth, enacted, None)["unserved_mbps"] == pytest.approx(0, abs=1e-6)
    # the same demands play out as planned, but for traffic that ran in circles
    same = sees.enact(believed, believed, plan).links["load_mbps"]
    assert (same <= plan.links["load_mbps"] * (1 + 1e-9) + 1e-6).all()


def test_demands_far_too_small_for_sums_to_show_are_still_served(monkeypatch: pytest.MonkeyPatch) -> None:
    links = both_ways([("a", "b", 9e6), ("b", "c", 9e6), ("a", "c", 7e6), ("c", "d", 9e6), ("b", "d", 5e6)])
    problem = network(links, [("a", "d", 8e6), ("c", "d", 1e-6), ("b", "d", 3e-7), ("d", "a", 1e-9)])
    for rows in (10**6, -1):
        monkeypatch.setattr(rooted, "PAIR_ROWS", rows)
        run = solved(problem)
        assert run.metrics["concurrent_flow"] == pytest.approx(run.proof.objective, rel=1e-9)


# --- options ------------------------------------------------------------------------------


def test_equal_seeds_make_equal_plans_and_threads_change_nothing_but_rounding() -> None:
    problem = Traffic.from_tables(topohub.read("sndlib/germany50"))
    one, two = (columns.route(problem, options=Options(seed=3)) for _ in range(2))
    assert one.plan is not None
    assert two.plan is not None
    pd.testing.assert_frame_equal(one.plan.flows, two.plan.flows)
    more = columns.route(problem, options=Options(seed=4, threads=2))
    assert more.proof.objective == pytest.approx(one.proof.objective, rel=3e-6)


@pytest.mark.parametrize("gap", [0.1, 1e-2, 1e-3])
def test_it_stops_at_the_gap_asked_for(gap: float) -> None:
    problem = Traffic.from_tables(topohub.read("topozoo/TataNld", seed=1))
    best = columns.route(problem).proof.objective
    assert best is not None
    proof = columns.route(problem, options=Options(gap=gap)).proof
    assert proof.status is Status.OPTIMAL
    assert proof.objective is not None
    assert proof.bound is not None
    assert proof.objective <= best * (1 + 1e-9) <= proof.bound * (1 + 2e-9)
    assert proof.gap is not None
    assert proof.gap <= gap


def test_a_time_limit_returns_the_best_plan_with_its_bound_or_none() -> None:
    problem = Traffic.from_tables(topohub.read("topozoo/TataNld", seed=1))
    small = Rooted.of(problem)
    found = columns.search(small, until=0.0)
    assert found.mix is None  # not even one tree for each root

    state = columns._Search(small, 1e-9, 0, None)
    steps = state.steps()
    for _ in range(3):
        next(steps)
    state.until = 0.0  # from here on every look at the clock is one too late
    assert len(list(steps)) <= 1
    mix = state.best_plan()
    assert mix is not None
    plan = small.plan(mix)
    assert SYSTEM.measure(problem, plan, None)["max_utilization"] == pytest.approx(state.value(), rel=1e-9)
    assert state.bound < state.value()


def test_without_time_it_is_undecided() -> None:
    problem = Traffic.from_tables(topohub.read("topozoo/TataNld", seed=1))
    decision = columns.route(problem, options=Options(time_limit_s=1e-9))
    assert decision.plan is None
    assert decision.proof.status is Status.UNDECIDED
    assert decision.proof.bound is None


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
        columns.route(problem, options=options)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("parameters", "what"),
    [({"objective": "cost"}, "objective 'cost'"), ({"paths": 2}, "a number of paths")],
)
def test_columns_refuse_what_they_do_not_know(parameters: dict[str, Any], what: str) -> None:
    problem = network(both_ways([("a", "b", 1.0)]), [("a", "b", 1.0)])
    with pytest.raises(InputError) as error:
        optimum.route(problem, method="columns", **parameters)
    assert str(error.value) == f"method is 'columns', which does not know {what}: leave it at 'auto'"


def test_auto_takes_columns_where_the_program_is_large() -> None:
    small = Traffic.from_tables(topohub.read("sndlib/abilene"))
    large = Traffic.from_tables(topohub.read("topozoo/TataNld", seed=1))
    assert str(optimum.route(small).proof.backend).startswith("highs")
    assert optimum.route(large).proof.backend == "column generation"


def test_nobody_wants_anything() -> None:
    problem = network(both_ways([("a", "b", 1.0)]), [("a", "b", 0.0)])
    assert columns.route(problem).proof.status is Status.UNBOUNDED
    assert columns.route(problem, objective="utilization").proof.objective == 0.0


# --- parts --------------------------------------------------------------------------------


def test_a_wrong_mix_is_found_out_by_the_engine() -> None:
    problem = star_of_clients()
    small = Rooted.of(problem)
    found = columns.search(small)
    wrong = dataclasses.replace(found, utilization=found.utilization / 2)
    assert wrong.mix is not None
    plan = small.plan(wrong.mix)  # the decision takes its objective from the plan, never from the search
    assert plan.links["utilization"].max() == pytest.approx(found.utilization, rel=1e-9)


def test_the_lowest_point_between_two_loads() -> None:
    one, other = np.array([1.0, 0.0]), np.array([0.0, 2.0])
    assert columns._lowest(one, other) == pytest.approx(1 / 3)
    assert columns._lowest(one, one + 1) == 0.0
    assert columns._lowest(one + 1, one) == 1.0
