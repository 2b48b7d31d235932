"""Every schedule keeps its limits, and none beats the proven bound."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy.optimize import linprog

from planner import Options, PlanRejected, Status
from planner.contract.design import Design
from planner.runs.evaluation import evaluate
from planner.scenarios.scenario import Entry
from planner.search.deadline import Deadline
from planner_models import circuits
from planner_models.circuits import SYSTEM, Circuits, check, formulation, information, measure
from planner_models.circuits.designs import (
    eclipse,
    matchings,
    optimum,
    simulated_annealing,
    solstice,
    upper_bound,
    week_program,
)
from planner_models.circuits.plan.check import derive_carried
from planner_models.circuits.plan.plan import (
    Day,
    Schedule,
    fill_links,
    from_tables,
    make_plan,
    order_days,
    port_map,
)
from planner_models.circuits.problem import generators
from tests.models.circuits.demands import problems

PLANNING = [design for design in SYSTEM.designs if design.name != "bound"]


def run_design(problem: Circuits, design: Design, **parameters: Any) -> Any:
    return evaluate(SYSTEM, problem, Entry(label=design.name, design=design, parameters=parameters))


@pytest.mark.slow
@pytest.mark.parametrize("design", PLANNING, ids=lambda design: design.name)
@settings(max_examples=8, deadline=None)
@given(problem=problems())
def test_no_schedule_beats_the_bound_or_breaks_a_limit(problem: Circuits, design: Design) -> None:
    """`evaluate` rejects a plan that breaks a limit it claims to keep, or serves less than claimed."""
    limit = upper_bound.bound_schedules(problem).proof.bound
    assert limit is not None
    run = run_design(problem, design)
    assert run.plan is not None
    assert not len(run.violations)
    assert run.metrics["served_mbps"] <= limit * (1 + 1e-6) + 1e-6


@pytest.mark.parametrize("name", ["solstice", "eclipse", "search", "optimum", "strobe", "bvn"])
@settings(max_examples=6, deadline=None)
@given(problem=problems(plain=False))
def test_several_switches_and_circuits_that_stay_up_keep_the_limits_too(name: str, problem: Circuits) -> None:
    limit = upper_bound.bound_schedules(problem).proof.bound
    assert limit is not None
    run = run_design(problem, SYSTEM.design(name))
    assert run.plan is not None
    assert not len(run.violations)
    assert run.metrics["served_mbps"] <= limit * (1 + 1e-6) + 1e-6


@settings(max_examples=12, deadline=None)
@given(problem=problems(bounded=False))
def test_without_a_week_solstice_and_eclipse_serve_everything(problem: Circuits) -> None:
    for decision in (solstice.schedule(problem), eclipse.schedule(problem)):
        assert decision.plan is not None
        assert not len(check(problem, decision.plan))


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(problem=problems())
def test_the_optimum_is_that_of_the_formal_model(problem: Circuits) -> None:
    """Over all permutations, by another path: Pyomo, no dropped matchings, no change of units."""
    import pyomo.environ as pyo

    from planner.backends import pyomo

    exact = optimum.schedule(problem).proof
    if not problem.bits.any():
        assert exact.objective == 0
        return
    model = formulation(problem)
    reference = pyomo.solve_model(model, Options(backend="pyomo:highs", gap=1e-7))
    assert reference.objective is not None
    rate = pyo.value(model.proof_objective)
    assert exact.objective == pytest.approx(rate, rel=1e-4, abs=1e-5)
    assert exact.status is Status.OPTIMAL
    limit = upper_bound.bound_schedules(problem).proof.bound
    assert limit is not None
    for heuristic in (solstice.schedule(problem), eclipse.schedule(problem)):
        worth = heuristic.proof.objective
        assert worth is not None
        assert exact.objective is not None
        assert worth <= exact.objective * (1 + 1e-6) <= limit * (1 + 1e-5) + 1e-6


@pytest.mark.parametrize("count", [1, 2, 3])
def test_each_ring_takes_one_day(count: int) -> None:
    """The least there can be: a rack sends to `count` others, and the packet switch takes no ring."""
    problem = generators.rings(racks=8, count=count)
    for decision in (solstice.schedule(problem), eclipse.schedule(problem, prove=True)):
        assert decision.plan is not None
        metrics = measure(problem, decision.plan, None)
        assert metrics["configurations"] == count
        assert metrics["served_share"] == pytest.approx(1.0)
    assert decision.proof.status is Status.OPTIMAL


def test_shallow_queues_hide_the_demand() -> None:
    """The same scheduler serves more on reports of applications: reaction against transparency."""
    problem = generators.skewed(racks=16, large=2, small=4, seed=3)
    seen = run_design(problem, SYSTEM.design("solstice")).metrics["served_share"]
    guessed = run_design(problem, SYSTEM.design("solstice_queues")).metrics["served_share"]
    assert guessed < 0.5 < 0.9 < seen


@pytest.mark.parametrize("name", ["solstice", "eclipse"])
def test_nearly_as_much_as_the_bound_is_served(name: str) -> None:
    problem = generators.skewed(racks=32, seed=2)
    limit = upper_bound.bound_schedules(problem).proof.bound
    assert limit is not None
    served = run_design(problem, SYSTEM.design(name)).metrics["served_mbps"]
    assert served >= 0.95 * limit


@st.composite
def larger_problems(draw: st.DrawFn, racks: tuple[int, ...]) -> Circuits:
    """Sparse and dense demand with heavy tails, up to twice what a week carries, with few packets or none."""
    n, rng = draw(st.sampled_from(racks)), np.random.default_rng(draw(st.integers(0, 10_000)))
    bits = rng.pareto(1.2, (n, n)) * (rng.random((n, n)) < draw(st.sampled_from([0.05, 0.3, 1.0])))
    np.fill_diagonal(bits, 0.0)
    window = draw(st.sampled_from([500.0, 2_000.0, None]))
    load = draw(st.sampled_from([0.3, 1.0, 2.0])) * 1e5 * (window or 1_000.0)
    return Circuits.from_matrix(
        bits * load / max(bits.sum(axis=0).max(), bits.sum(axis=1).max(), 1e-9),
        circuit_mbps=1e5,
        packet_mbps=draw(st.sampled_from([0.0, 1e3, 1e4])),
        night_us=draw(st.sampled_from([1.0, 20.0])),
        window_us=window,
        shortest_day_us=draw(st.sampled_from([0.0, 180.0])),
    )


MAX_DECOMPOSED_RACKS = 16  # whole decompositions of more take minutes


def require_best(problem: Circuits) -> None:
    """Require that no design of the system serves more than the optimum, and none more than its bound."""
    parameters = {"steps": 200, "most_matchings": 200}
    entry = Entry(label="optimum", design=SYSTEM.design("optimum"), parameters=parameters)
    with pytest.MonkeyPatch.context() as patch:
        # the search below takes all its steps too, so that no clock decides the test
        patch.setattr(optimum, "ANNEALING_SHARE", np.inf)
        if len(problem.racks) <= MAX_DECOMPOSED_RACKS:
            patch.setattr(optimum, "HEURISTICS_SHARE", np.inf)  # and the decompositions run
        best = evaluate(SYSTEM, problem, entry, options=Options(time_limit_s=0.5))
    assert not len(best.violations)
    rate, bound = best.metrics["served_mbps"], best.proof.bound
    assert rate is not None
    assert bound is not None
    for design in PLANNING:
        if design.name == "optimum" or (
            design.name in ("bvn", "tms") and len(problem.racks) > MAX_DECOMPOSED_RACKS
        ):
            continue
        other = run_design(problem, design, **({"steps": 200} if design.name == "search" else {}))
        served = other.metrics["served_mbps"]
        assert served is not None
        assert served <= rate * (1 + 1e-6) + 1e-9, design.name
        assert served <= bound * (1 + 1e-6) + 1e-9, design.name


@pytest.mark.slow
@settings(max_examples=3, deadline=None)
@given(problem=larger_problems(racks=(8, 12)))
def test_no_design_serves_more_than_the_optimum(problem: Circuits) -> None:
    require_best(problem)


def test_ports_serve_one_pair_a_day_and_switch() -> None:
    """Each of 100 racks has 99 pairs with demand, and a week four days: 4 pairs are served, by hand."""
    bits = np.full((100, 100), 1000.0) - 1000.0 * np.eye(100)
    problem = Circuits.from_matrix(
        bits, circuit_mbps=1000.0, packet_mbps=0.0, night_us=10.0, shortest_day_us=1.0, window_us=44.0
    )
    assert upper_bound.bound_by_ports(problem) == pytest.approx(100 * 4 * 1000.0 / 44.0)
    run = run_design(problem, SYSTEM.design("optimum"))
    assert run.proof.status is Status.OPTIMAL
    assert run.metrics["served_mbps"] == pytest.approx(100 * 4 * 1000.0 / 44.0)
    twice = problem.with_switch(circuit_switches=2)
    assert upper_bound.bound_by_ports(twice) == pytest.approx(100 * 8 * 1000.0 / 44.0)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(problem=problems())
def test_the_bound_by_ports_is_a_bound(problem: Circuits) -> None:
    """It is no tighter than the linear program, and takes its place where that finds none in time."""
    tight = upper_bound.bound_schedules(problem).proof.bound
    assert tight is not None
    assert upper_bound.bound_by_ports(problem) >= tight * (1 - 1e-9)
    early = upper_bound.bound_schedules(problem, options=Options(time_limit_s=1e-6)).proof
    assert early.bound is not None
    assert early.bound >= tight * (1 - 1e-9)


@pytest.mark.slow
@settings(max_examples=4, deadline=None)
@given(problem=larger_problems(racks=(8, 16, 32, 64)))
def test_no_design_serves_more_than_the_optimum_on_larger_problems(problem: Circuits) -> None:
    require_best(problem)


@pytest.mark.parametrize("design", PLANNING, ids=lambda design: design.name)
def test_scarce_capacity_leaves_demand_unserved_and_lists_it(design: Design) -> None:
    """Twice the demand that a week carries, and a rack without a link to the packet switch."""
    problem = generators.skewed(racks=5, large=2, small=1, load=2.0, window_us=300.0)
    racks = problem.racks.assign(packet_mbps=[0.0, *problem.racks["packet_mbps"][1:]])
    problem = replace(problem, racks=racks)
    run = run_design(problem, design)
    assert run.plan is not None
    assert not len(run.violations)
    listed = run.plan.unserved
    for wrong in (listed.iloc[1:], listed.assign(bits=listed["bits"] * 1.001)):
        result = check(problem, replace(run.plan, unserved=wrong)).frame
        assert set(result["limit"]) == {"unserved"}
    assert listed["bits"].sum() == pytest.approx(run.metrics["unserved_bits"], rel=1e-6)
    assert run.metrics["unserved_bits"] > 0
    served = run.metrics["served_mbps"] * problem.window_us
    assert served + run.metrics["unserved_bits"] == pytest.approx(problem.bits.sum())
    observed = design.observe(problem)
    if observed is not problem:
        return  # of what it observes it may serve all
    strict = design.run(problem, options=Options(service="all"))
    assert strict.plan is None
    assert strict.proof.reasons


def test_why_not_all_can_be_served_is_proven() -> None:
    problem = generators.skewed(racks=4, large=1, small=1, load=2.0, window_us=300.0)
    proof = solstice.schedule(problem, options=Options(service="all")).proof
    assert proof.status is Status.INFEASIBLE
    assert "its links carry at most 31 Mbit in the week of 300 us" in proof.reasons[0]


def test_without_a_week_what_no_switch_can_carry_is_listed() -> None:
    problem = generators.rings(racks=4, bounded=False, packet_mbps=0.0)
    run = run_design(problem, SYSTEM.design("packet_only"))
    assert run.metrics["served_mbps"] == 0
    assert run.metrics["unserved_bits"] == pytest.approx(problem.bits.sum())
    assert not len(run.violations)


@pytest.mark.parametrize(
    ("column", "change"), [("start_us", -20.0), ("start_us", 1e6), ("duration_us", 5_000.0)]
)
def test_a_plan_that_violates_a_limit_of_time_serves_no_more_for_it(column: str, change: float) -> None:
    """Days in the night, after the week, or longer than the week."""
    problem = generators.rings(racks=4, count=2, packet_mbps=0.0)
    plan = solstice.schedule(problem).plan
    assert plan is not None
    days = plan.configurations.assign(**{column: plan.configurations[column] + change})
    broken = replace(plan, configurations=days, ports=port_map(problem, days))
    assert len(check(problem, broken))
    rate = measure(problem, broken, None)["served_mbps"]
    assert rate is not None
    assert rate <= (optimum.schedule(problem).proof.bound or 0.0) * (1 + 1e-9)


def test_beyond_few_matchings_the_optimum_is_no_worse_than_either_heuristic() -> None:
    problem = generators.skewed(racks=16, large=2, small=4, seed=1)
    decision = optimum.schedule(problem, most_matchings=50)
    assert decision.proof.objective is not None
    assert decision.proof.bound is not None
    for heuristic in (solstice.schedule(problem), eclipse.schedule(problem)):
        assert heuristic.proof.objective is not None
        assert decision.proof.objective >= heuristic.proof.objective * (1 - 1e-6)
    assert decision.proof.objective <= decision.proof.bound * (1 + 1e-6)


@settings(max_examples=20, deadline=None)
@given(problem=problems(max_racks=5))
def test_the_packet_switch_is_filled_as_a_linear_program_would(problem: Circuits) -> None:
    bits, budget = problem.bits, problem.packet_mbps * 40.0
    ours = np.zeros_like(bits)
    ours[problem.pairs] = fill_links(*problem.pairs, problem.pair_bits, budget)
    n = len(bits)
    rows, columns = np.kron(np.eye(n), np.ones(n)), np.kron(np.ones(n), np.eye(n))
    best = linprog(
        -np.ones(n * n),
        A_ub=np.vstack([rows, columns]),
        b_ub=np.tile(budget, 2),
        bounds=[(0, amount) for amount in bits.ravel()],
    )
    assert ours.sum() == pytest.approx(-best.fun, rel=1e-6, abs=1e-6)
    assert (ours.sum(axis=0) <= budget * (1 + 1e-12)).all()
    assert (ours.sum(axis=1) <= budget * (1 + 1e-12)).all()


@settings(max_examples=20, deadline=None)
@given(problem=problems(max_racks=5))
def test_stuffed_demand_has_equal_sums_and_decomposes(problem: Circuits) -> None:
    full = matchings.stuff(problem.bits)
    upper = max(problem.bits.sum(axis=0).max(), problem.bits.sum(axis=1).max())
    assert (full >= problem.bits).all()
    np.testing.assert_allclose(full.sum(axis=0), upper)
    np.testing.assert_allclose(full.sum(axis=1), upper)
    total = np.zeros_like(full)
    for weight, target in matchings.decompose(full):
        total[np.arange(len(full)), target] += weight
    np.testing.assert_allclose(total, full, atol=1e-6 * max(upper, 1))


def test_every_maximal_matching_is_found_once() -> None:
    """A complete bipartite graph of 4 and 4 has 4! of them; too many are no list at all."""
    allowed = np.ones((4, 4), dtype=bool)
    maximal = matchings.list_maximal(allowed, 100)
    assert maximal is not None
    assert len({tuple(target) for target in maximal}) == len(maximal) == 24
    assert matchings.list_maximal(allowed, 23) is None


def test_the_list_of_matchings_ends_at_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matchings, "STEPS_PER_CALL", 10)
    allowed = np.ones((4, 4), dtype=bool)
    assert matchings.list_maximal(allowed, 100, Deadline.after(0.0)) is None
    maximal = matchings.list_maximal(allowed, 100)
    assert maximal is not None
    assert len(maximal) == 24


@settings(max_examples=30, deadline=None)
@given(allowed=arrays(bool, (4, 4)))
def test_the_maximal_matchings_are_those_of_brute_force(allowed: NDArray[np.bool_]) -> None:
    maximal = matchings.list_maximal(allowed, 1_000)
    assert maximal is not None
    pairs = np.argwhere(allowed).tolist()
    every = set()
    for count in range(len(allowed) + 1):
        for selected in itertools.combinations(pairs, count):
            rows, columns = {i for i, _ in selected}, {j for _, j in selected}
            if len(rows) == len(columns) == count and all(i in rows or j in columns for i, j in pairs):
                every.add(tuple(sorted((i, j) for i, j in selected)))
    ours = {tuple((i, int(j)) for i, j in enumerate(target) if j >= 0) for target in maximal}
    assert ours == every


def test_a_second_circuit_switch_takes_the_second_ring() -> None:
    problem = generators.rings(racks=6, count=2).with_switch(circuit_switches=2)
    plan = eclipse.schedule(problem).plan
    assert plan is not None
    days = plan.configurations.groupby("day")[["start_us", "switch"]].first()
    assert sorted(days["switch"]) == [1, 2]
    assert (days["start_us"] == problem.night_us).all()
    assert measure(problem, plan, None)["duty_cycle"] == pytest.approx(0.5)


def test_a_circuit_that_stays_up_works_through_the_night() -> None:
    """One pair in both days: 100 us, a night of 10 us, 50 us, at 10 bits/us."""
    bits = np.zeros((3, 3))
    bits[0, 1], bits[1, 2], bits[2, 0] = 1e4, 1e4, 1e4
    problem = Circuits.from_matrix(
        bits, circuit_mbps=10.0, packet_mbps=0.0, night_us=10.0, window_us=500.0, dark="changed"
    )
    days = [
        Day(duration_us=100.0, target=np.array([1, 2, -1])),
        Day(duration_us=50.0, target=np.array([1, -1, 0])),
    ]
    plan, served, _ = make_plan(problem, days)
    carried_bits = derive_carried(problem, plan).circuit_bits
    assert carried_bits[0, 1] == pytest.approx(1_600)
    assert carried_bits[1, 2] == pytest.approx(1_000)
    assert carried_bits[2, 0] == pytest.approx(500)
    assert served == pytest.approx(3_100)
    dark = problem.with_switch(dark="all")
    assert derive_carried(dark, plan).circuit_bits[0, 1] == pytest.approx(1_500)


def test_days_that_share_circuits_follow_each_other_where_these_stay_up() -> None:
    problem = Circuits.from_matrix(
        np.ones((4, 4)) - np.eye(4),
        circuit_mbps=10.0,
        packet_mbps=1.0,
        night_us=1.0,
        window_us=50.0,
        dark="changed",
    )
    ring, other = np.array([1, 2, 3, 0]), np.array([2, 3, 0, 1])
    near = np.array([1, 2, -1, 0])
    order = order_days(problem, [Day(duration_us=1.0, target=target) for target in (ring, other, near)])
    assert [day.target.tolist() for day in order] == [ring.tolist(), near.tolist(), other.tolist()]
    selected = order_days(problem.with_switch(dark="all"), order)
    assert selected == order


def test_plans_have_port_maps() -> None:
    problem = generators.rings(racks=4)
    plan = solstice.schedule(problem).plan
    assert plan is not None
    ports = plan.to_tables()["ports"]
    assert ports["input_port"].tolist() == [1, 2, 3, 4]
    assert ports["output_port"].tolist() == [2, 3, 4, 1]
    assert (ports["end_us"] - ports["start_us"]).tolist() == pytest.approx(
        plan.configurations["duration_us"].tolist()
    )


@pytest.mark.parametrize("seed", range(3))
def test_search_is_no_worse_than_where_it_starts(seed: int) -> None:
    problem = generators.skewed(racks=16, large=2, small=6, seed=seed, load=1.2)
    result = simulated_annealing.schedule(problem, steps=300, prove=True).proof
    assert result.objective is not None
    assert result.bound is not None
    for start in (eclipse.schedule(problem), solstice.schedule(problem)):
        assert start.proof.objective is not None
        assert result.objective >= start.proof.objective
    assert result.objective <= result.bound * (1 + 1e-9)


def test_a_search_in_parts_is_that_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = generators.skewed(racks=16, large=2, small=6, seed=1, load=1.2)
    first = simulated_annealing.days(problem, steps=300)
    monkeypatch.setattr(simulated_annealing, "FIRST_STEPS_PER_CALL", 7)
    monkeypatch.setattr(simulated_annealing, "CALL_S", 0.0)
    again = simulated_annealing.days(problem, steps=300)
    assert [day.duration_us for day in again] == [day.duration_us for day in first]
    np.testing.assert_array_equal([day.target for day in again], [day.target for day in first])


@pytest.mark.parametrize("name", ["bvn", "tms"])
def test_decompositions_end_at_the_time_limit(name: str) -> None:
    entry = Entry(label=name, design=SYSTEM.design(name))
    problem = generators.skewed(racks=16, seed=1)
    full = evaluate(SYSTEM, problem, entry)
    cut = evaluate(SYSTEM, problem, entry, options=Options(time_limit_s=1e-9))
    assert not full.proof.is_cut
    assert cut.proof.is_cut
    assert cut.proof.objective < full.proof.objective


@pytest.mark.parametrize("name", ["search", "optimum", "bound"])
def test_searches_of_many_racks_keep_the_time_limit(name: str) -> None:
    """Matchings of 128 racks take a search of 15 s, and a list of all of them 2 s."""
    entry = Entry(label=name, design=SYSTEM.design(name))
    evaluate(SYSTEM, generators.skewed(racks=16), entry, options=Options(time_limit_s=0.3))
    start = time.process_time()
    run = evaluate(SYSTEM, generators.skewed(racks=128), entry, options=Options(time_limit_s=0.3))
    assert time.process_time() - start < 0.3 + 1.5
    assert run.plan is not None or name == "bound"


def test_where_no_time_is_left_the_bound_is_that_of_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = generators.skewed(racks=16, large=2, small=4, seed=1)
    for share in ("ANNEALING_SHARE", "LENGTHS_SHARE", "BOUND_SHARE"):
        monkeypatch.setattr(optimum, share, 0.0)
    proof = optimum.schedule(problem, most_matchings=50, options=Options(time_limit_s=60.0)).proof
    assert proof.objective is not None
    assert proof.bound == upper_bound.bound_by_ports(problem)
    assert proof.objective <= proof.bound * (1 + 1e-9)


@pytest.mark.slow
def test_more_kinds_of_days_make_the_bound_tighter_and_it_still_holds() -> None:
    problem = generators.skewed(racks=8, large=2, small=2, window_us=500.0, seed=1)
    bounds = [upper_bound.bound_schedules(problem, kinds=kinds).proof.bound for kinds in (1, 3, 8)]
    best = optimum.schedule(problem).proof.objective
    assert None not in bounds
    assert best is not None
    assert bounds[0] >= bounds[1] * (1 - 1e-7)  # type: ignore[operator]
    assert bounds[1] >= bounds[2] * (1 - 1e-7)  # type: ignore[operator]
    assert best <= bounds[2] * (1 + 1e-6)  # type: ignore[operator]
    assert bounds[2] < bounds[0]  # type: ignore[operator]


@pytest.mark.parametrize(
    "problem",
    [
        generators.skewed(racks=5, large=2, small=2, window_us=300.0, seed=4),
        generators.skewed(racks=4, large=2, small=3, window_us=200.0, seed=2, shortest_day_us=30.0),
        generators.skewed(racks=5, large=1, small=2, seed=3, bounded=False, window_us=300.0),
    ],
)
def test_the_optimum_is_that_of_the_whole_integer_program(problem: Circuits) -> None:
    """Column generation and elimination against one program over everything."""
    from planner import backends

    solution = backends.solve(optimum.build_model(problem), Options(gap=1e-7))
    exact = optimum.schedule(problem, steps=50)
    assert solution.objective is not None
    assert exact.proof.objective is not None
    task = week_program.ScaledProblem(problem=problem)
    rate = task.objective(solution.objective if problem.window_us is not None else -solution.objective)
    assert exact.proof.objective == pytest.approx(rate, rel=1e-5)
    assert exact.proof.status is Status.OPTIMAL


def test_data_units_are_observed_up_to_what_is_handed_over() -> None:
    problem = generators.rings(racks=4, load=1.0)
    seen = information.observe_data_units(problem, unit_bytes=1e4, connections=2)
    assert set(seen.demands["bits"]) == {160_000.0}
    assert information.observe_data_units(problem, unit_bytes=1e9) is problem


# --- plans made elsewhere ---------------------------------------------------------------------


def solved_tables() -> tuple[Circuits, dict[str, Any]]:
    problem = generators.rings(racks=4, count=2)
    plan = solstice.schedule(problem).plan
    assert plan is not None
    return problem, {name: frame.copy() for name, frame in plan.to_tables().items()}


def test_a_plan_read_back_has_the_same_metrics() -> None:
    problem, tables = solved_tables()
    plan = from_tables(problem, tables)
    original = solstice.schedule(problem).plan
    assert original is not None
    assert measure(problem, plan, None) == measure(problem, original, None)


def test_two_circuits_from_a_rack_are_no_matching() -> None:
    problem, tables = solved_tables()
    tables["configurations"].loc[1, "source_rack"] = tables["configurations"].loc[0, "source_rack"]
    with pytest.raises(PlanRejected, match="must be a matching"):
        check(problem, from_tables(problem, tables))


def test_an_unknown_switch_is_rejected() -> None:
    problem, tables = solved_tables()
    tables["configurations"]["switch"] = 2.0
    with pytest.raises(PlanRejected, match="row 1: switch 2, must be from 1 to 1"):
        check(problem, from_tables(problem, tables))


def test_an_unknown_rack_is_rejected() -> None:
    problem, tables = solved_tables()
    tables["configurations"].loc[0, "target_rack"] = "nowhere"
    with pytest.raises(PlanRejected, match="'nowhere' is no rack"):
        check(problem, from_tables(problem, tables))


@pytest.mark.parametrize(
    ("table", "column", "times", "more", "limit"),
    [
        ("configurations", "start_us", 1.0, -10.0, "night"),
        ("configurations", "start_us", 1.0, 50.0, "window"),
        ("configurations", "duration_us", 0.1, 0.0, "shortest_day"),
        ("packet", "bits", 1.0, 1e9, "packet"),
        ("packet", "bits", 1.0, 1e6, "demand"),
    ],
)
def test_each_violated_limit_is_reported(
    table: str, column: str, times: float, more: float, limit: str
) -> None:
    problem, tables = solved_tables()
    assert not len(check(problem, Schedule(**tables)))
    # a plan of two rings leaves nothing to the packet switch
    tables["packet"] = problem.to_tables()["demands"].assign(bits=0.0)
    tables[table][column] = tables[table][column] * times + more
    tables["ports"] = port_map(problem, tables["configurations"])
    violations = check(problem, Schedule(**tables))
    assert limit in set(violations.frame["limit"])


def test_the_system_is_found_by_name() -> None:
    from planner.scenarios.catalogue import system_names

    assert "circuits" in system_names()
    assert circuits.SYSTEM.name == "circuits"


def test_the_bound_covers_demands_that_differ_by_18_decades() -> None:
    racks = pd.DataFrame({"rack": ["a", "b", "c"], "circuit_mbps": 1e5, "packet_mbps": [1e4, 1e4, 0.0]})
    demands = pd.DataFrame(
        [("a", "b", 8e7), ("b", "c", 8e-6), ("c", "a", 8e12)], columns=["source_rack", "target_rack", "bits"]
    )
    problem = Circuits.from_tables(
        {"racks": racks, "demands": demands, "switch": pd.DataFrame({"night_us": [0.0]})}
    )
    bound = upper_bound.bound_schedules(problem).proof.bound
    assert bound == pytest.approx(1e5, rel=1e-4)  # the largest demand takes 80 s alone


@pytest.mark.parametrize("name", ["optimum", "eclipse"])
def test_a_short_window_of_a_huge_demand_has_the_rate_of_its_circuits(name: str) -> None:
    racks = pd.DataFrame({"rack": ["a", "b"], "circuit_mbps": 1e4, "packet_mbps": 0.0})
    demands = pd.DataFrame(
        [("a", "b", 1e18), ("b", "a", 3e17)], columns=["source_rack", "target_rack", "bits"]
    )
    switch = pd.DataFrame({"night_us": [0.0], "window_us": [0.3]})
    problem = Circuits.from_tables({"racks": racks, "demands": demands, "switch": switch})
    proof = run_design(problem, SYSTEM.design(name)).proof
    assert proof.objective == pytest.approx(2e4, rel=1e-9)
