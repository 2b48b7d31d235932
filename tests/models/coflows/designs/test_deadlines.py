"""Deadlines against linear programs over all rates in time, of every selection of coflows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import planner
from planner_models.coflows import CoflowsInTime
from planner_models.coflows.designs import deadlines
from planner_models.coflows.plan.check import check
from planner_models.coflows.plan.completion import find_met, replay
from tests.models.coflows.instances import problem_of


def can_all_meet(problem: CoflowsInTime, selected: tuple[int, ...]) -> bool:
    """Return whether rates in time exist with which these coflows meet their deadlines.

    Rates are constant between arrivals and deadlines, without loss of generality: a linear program.
    """
    flows = [f for f in range(len(problem.flows)) if problem.coflow[f] in selected]
    times = sorted({0.0, *problem.arrival_ms[list(selected)], *problem.due_ms[list(selected)]})
    pieces = list(itertools.pairwise(times))
    cells = [
        (f, k)
        for f in flows
        for k, (start, end) in enumerate(pieces)
        if start >= problem.arrival_ms[problem.coflow[f]] and end <= problem.due_ms[problem.coflow[f]]
    ]
    equal = np.array([[float(f == g) for f, _ in cells] for g in flows])
    ports, limits = [], []
    for k, (start, end) in enumerate(pieces):
        for ends in (problem.source, problem.target):
            for rack in range(len(problem.racks)):
                ports.append([float(j == k and ends[f] == rack) for f, j in cells])
                limits.append(problem.packet_rate[rack] * (end - start) * (1 + 1e-9))
    result = linprog(np.zeros(len(cells)), A_ub=ports, b_ub=limits, A_eq=equal, b_eq=problem.bits[flows])
    return bool(result.status == 0)


def most_by_enumeration(problem: CoflowsInTime) -> float:
    """Return the largest share of deadlines, by weights, that any rates in time meet."""
    count = len(problem.coflows)
    best = 0.0
    for size in range(1, count + 1):
        for selected in itertools.combinations(range(count), size):
            share = float(problem.weight[list(selected)].sum()) / float(problem.weight.sum())
            if share > best and can_all_meet(problem, selected):
                best = share
    return best


@st.composite
def due_problems(draw: st.DrawFn) -> CoflowsInTime:
    """Return random problems of up to four coflows with deadlines on four racks."""
    names = [f"c{index}" for index in range(draw(st.integers(1, 4)))]
    pairs = list(itertools.permutations("abcd", 2))
    keys = [(name, *pair) for name in names for pair in pairs]
    first = [(name, *draw(st.sampled_from(pairs))) for name in names]
    more = draw(st.lists(st.sampled_from(keys), max_size=6, unique=True))
    return problem_of(
        {name: float(draw(st.sampled_from([0, 0, 5, 20]))) for name in names},
        [(*key, float(draw(st.integers(1, 30)))) for key in dict.fromkeys([*first, *more])],
        weight=[float(draw(st.integers(1, 4))) for _ in names],
        deadline_ms=[float(draw(st.sampled_from([5, 20, 40, 80]))) for _ in names],
    )


@settings(max_examples=25, deadline=None)
@given(due_problems())
def test_no_plan_meets_more_than_all_rates_in_time_and_those_no_more_than_the_bound(
    problem: CoflowsInTime,
) -> None:
    best, bound = most_by_enumeration(problem), deadlines.bound_deadlines(problem)
    assert bound is not None
    assert best <= bound * (1 + 1e-6) + 1e-9
    shares = {}
    for decide in (deadlines.admit, deadlines.send_by_deadline, deadlines.meet_most):
        decision = decide(problem, interval_ms=0.0)
        assert decision.plan is not None
        assert not len(check(problem, decision.plan))
        assert decision.proof.objective is not None
        assert decision.proof.objective <= best * (1 + 1e-6)
        shares[decide.__name__] = decision.proof.objective
    assert shares["meet_most"] >= max(shares.values())


@settings(max_examples=25, deadline=None)
@given(due_problems())
def test_every_admitted_coflow_meets_its_deadline(problem: CoflowsInTime) -> None:
    schedule = deadlines.run_admission(problem, np.isfinite(problem.due_ms), 10.0)
    decision = deadlines.admit(problem)
    assert decision.plan is not None
    is_met = find_met(problem, replay(problem, decision.plan).coflow_ms)
    assert is_met[schedule.is_admitted].all()


def test_earliest_deadline_first_makes_both_late_where_admission_keeps_one() -> None:
    """The second arrives when 20 of 100 ms are left of the first, and cannot meet its own deadline."""
    flows = [("one", "a", "b", 100.0), ("two", "a", "b", 30.0)]
    problem = problem_of({"one": 0.0, "two": 80.0}, flows, deadline_ms=[110.0, 29.0])
    assert planner.solve(problem, design="edf").metrics["missed_deadlines"] == 2.0
    run = planner.solve(problem, design="admission")
    assert run.metrics["missed_deadlines"] == 1.0
    assert replay(problem, run.plan).coflow_ms.tolist() == pytest.approx([100.0, 50.0])
    best = planner.solve(problem, design="most_deadlines")
    assert best.proof.objective == pytest.approx(0.5)
    assert best.proof.bound == pytest.approx(0.5)


def test_a_coflow_gets_the_rate_for_its_deadline_and_what_others_leave() -> None:
    """Both are admitted: half of the link each is enough; the first due is sent faster by what is left."""
    flows = [("one", "a", "b", 40.0), ("two", "a", "c", 20.0)]
    problem = problem_of({"one": 0.0, "two": 0.0}, flows, deadline_ms=[80.0, 50.0])
    run = planner.solve(problem, design="admission", interval_ms=0.0)
    # two has 0.4 and the 0.1 that is left: complete at 40; one has 0.5 until then, and the whole link after
    assert replay(problem, run.plan).coflow_ms.tolist() == pytest.approx([60.0, 40.0])
    assert run.metrics["deadlines_met"] == 1.0


def test_without_deadlines_means_count() -> None:
    problem = problem_of({"one": 0.0}, [("one", "a", "b", 10.0)])
    for design in ("edf", "admission", "most_deadlines"):
        run = planner.solve(problem, design=design)
        assert run.metrics["mean_completion_ms"] == pytest.approx(10.0)
        assert run.metrics["deadlines_met"] is None
        assert run.proof.metric == "mean_completion_ms"


def test_explanations_say_why_deadlines_are_missed() -> None:
    flows = [("one", "a", "b", 40.0), ("two", "a", "c", 20.0), ("three", "a", "b", 9.0)]
    problem = problem_of(dict.fromkeys(("one", "two", "three"), 0.0), flows, deadline_ms=[50.0, 25.0, 4.0])
    explained = planner.explain(problem, design="most_deadlines").explanation
    assert any(
        "1 of 3 deadlines is met; 1 deadline is too short" in sentence for sentence in explained.sentences
    )
    frame = explained.sections[0].frame.set_index("coflow")
    assert frame.loc["three", "reason"] == "too short even alone"
