"""Clients who accept lower bitrates: exact on small problems, bounded at scale, never worse than without."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import InputError
from planner.options import Options
from planner.search.deadline import Deadline
from planner_models.livevideo import LiveVideo, check, measure
from planner_models.livevideo.designs import DESIGNS, integer_program, ladders, vdn
from planner_models.livevideo.designs.decomposition import decomposition
from planner_models.livevideo.designs.formulation import formulation
from planner_models.livevideo.designs.integer_program import build_program
from planner_models.livevideo.designs.ladders import serve_more
from planner_models.livevideo.plan.metrics import OBJECTIVE
from planner_models.livevideo.plan.plan import Trees, build_plan
from planner_models.livevideo.problem import generators
from planner_models.livevideo.problem.adjustments import adjust
from tests.models.livevideo.networks import problem, problems

TIERS = {"S": "source", "E": "edge", "A": "group", "B": "group"}
PROGRAM = Options(gap=1e-9)


def lowered(item: LiveVideo, lowest_kbps: float) -> LiveVideo:
    return adjust(item, lowest_kbps=lowest_kbps)


def value_of(item: LiveVideo, plan: Trees | None) -> float:
    assert plan is not None
    assert not len(check(item, plan))
    value = measure(item, plan, None)[OBJECTIVE]
    assert value is not None
    return value


def two_groups() -> LiveVideo:
    """Return a channel in three bitrates for two groups, behind 4 Mbit/s into the edge and narrower links."""
    return problem(
        [("S", "E", 4.0, 0.0), ("E", "A", 4.0, 0.0), ("E", "B", 1.0, 0.0)],
        [("V", 3000.0, 3.0), ("V", 2000.0, 2.0), ("V", 1000.0, 1.0)],
        [("A", "V", 3000.0, 10.0), ("B", "V", 3000.0, 10.0)],
        tiers=TIERS,
    )


def test_each_group_gets_the_bitrate_that_fits() -> None:
    """A gets 3 Mbit/s and B 1: together the 4 Mbit/s of the edge; without ladders B gets nothing."""
    fixed, ladder = two_groups(), lowered(two_groups(), 0)
    assert value_of(fixed, vdn.distribute(fixed).plan) == 30.0
    decision = vdn.distribute(ladder)
    assert value_of(ladder, decision.plan) == 40.0
    metrics = measure(ladder, decision.plan, None)  # type: ignore[arg-type]
    assert metrics["clients_served"] == 100
    assert metrics["clients_at_bitrate"] == 50
    assert metrics["lower_bitrate_clients"] == 10
    assert metrics["average_bitrate_kbps"] == 2000
    assert decision.plan is not None
    assert decision.plan.unserved is not None
    assert not len(decision.plan.unserved)


def test_a_lower_bitrate_counts_only_where_clients_accept_it() -> None:
    entry = two_groups()
    item, link = np.array([2, 2]), np.array([0, 2])  # 1 Mbit/s to B
    for lowest, value in ((3000.0, 0.0), (2000.0, 0.0), (1000.0, 10.0)):
        ladder = lowered(entry, lowest)
        assert value_of(ladder, build_plan(ladder, item, link)) == value


def test_a_blank_cell_is_the_requested_bitrate() -> None:
    item = two_groups()
    half = replace(item, requests=item.requests.assign(lowest_kbps=[np.nan, 1000.0]))
    assert half.has_ladders
    assert half.steps.request.tolist() == [0, 1, 1, 1]
    assert not replace(item, requests=item.requests.assign(lowest_kbps=np.nan)).has_ladders


def test_a_lowest_bitrate_above_the_requested_one_is_refused() -> None:
    item = two_groups()
    with pytest.raises(InputError, match=r"requests row 2: lowest_kbps is 3500, must be at most .*3000"):
        replace(item, requests=item.requests.assign(lowest_kbps=[1000.0, 3500.0]))


def test_pinned_requests_are_not_lowered() -> None:
    pinned = pd.DataFrame([("V", "3000", "*", "*")], columns=["channel", "bitrate_kbps", "tail", "head"])
    item = replace(two_groups(), pinned=pinned)
    assert not lowered(item, 0).has_ladders


@settings(max_examples=8)
@given(problems(tiers=3, rules=True), st.integers(0, 2**31))
def test_the_program_is_the_best_choice_of_steps(one: LiveVideo, seed: int) -> None:
    """Every choice of a bitrate for each request, each solved without ladders, and the formal model."""
    rng = np.random.default_rng(seed)
    one = replace(one, requests=one.requests.iloc[:4])
    lowest = rng.choice([0.0, 1500.0, np.nan], len(one.requests))
    lowest = np.minimum(lowest, one.requests["bitrate_kbps"].to_numpy(float))
    ladder = replace(one, requests=one.requests.assign(lowest_kbps=lowest))
    solution = integer_program.solve(ladder, options=PROGRAM)
    value = value_of(ladder, solution.plan)
    accepted = [ladder.steps.object[ladder.steps.request == q].tolist() for q in range(len(ladder.requests))]
    best = 0.0
    for choice in itertools.product(*accepted):
        fixed = ladders._at_steps(one, np.array(choice, dtype=np.int64))
        best = max(best, value_of(fixed, integer_program.solve(fixed, options=PROGRAM).plan))
    assert value == pytest.approx(best, abs=1e-6)
    formal = integer_program.solve(ladder, options=replace(PROGRAM, backend="pyomo:appsi_highs"))
    assert value_of(ladder, formal.plan) == pytest.approx(best, abs=1e-6)
    fast = build_program(ladder)
    assert solution.plan is not None
    x = fast.point(ladder, solution.plan)
    assert fast.program.violation(x) <= 1e-9
    assert fast.program.objective_of(x) == pytest.approx(value)


@settings(max_examples=10)
@given(problems(tiers=4, rules=True))
def test_accepting_lower_bitrates_never_hurts(one: LiveVideo) -> None:
    values = [
        value_of(ladder, integer_program.solve(ladder, options=PROGRAM).plan)
        for ladder in (one, lowered(one, 1500.0), lowered(one, 0.0))
    ]
    assert values == sorted(values) or np.allclose(values, sorted(values), atol=1e-6)


@settings(max_examples=10)
@given(problems(tiers=4, rules=True), st.integers(0, 2))
def test_the_search_over_steps_never_loses(one: LiveVideo, start: int) -> None:
    ladder = lowered(one, 0.0)
    plans = [build_plan(ladder, *np.zeros((2, 0), dtype=np.int64))]
    plans += [integer_program.solve(inputs, options=PROGRAM).plan for inputs in (one, ladder)]  # type: ignore[misc]
    before = plans[start]
    after = serve_more(ladder, before, Deadline.after(10.0))
    assert value_of(ladder, after) >= value_of(ladder, build_plan(ladder, *rows(ladder, before))) - 1e-9


def rows(table: LiveVideo, plan: Trees) -> tuple[np.ndarray, np.ndarray]:
    from planner_models.livevideo.plan.plan import plan_rows

    return plan_rows(table, plan)


def random_ladder(seed: int, *, accepted_kbps: float | None = 0.0) -> LiveVideo:
    item = generators.heavy_tail(
        videos=12, requests_per_video=5.0, source_gbps=0.02, sources=1, reflectors=3, groups=8, edges=4,
        reflectors_per_edge=2, edges_per_group=2, priority="quality", seed=seed,
    )  # fmt: skip
    return item if accepted_kbps is None else lowered(item, accepted_kbps)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in (1, 2))])
def test_the_decomposition_bounds_the_optimum(seed: int) -> None:
    item = random_ladder(seed)
    exact = integer_program.solve(item, options=Options(time_limit_s=60))
    decision = ladders.distribute(item, options=Options(time_limit_s=3, threads=1))
    best = value_of(item, exact.plan)
    assert decision.proof.bound is not None
    assert decision.proof.bound >= best - 1e-6
    assert value_of(item, decision.plan) == pytest.approx(decision.proof.objective)
    assert exact.proof.bound is not None
    assert decision.proof.objective is not None
    assert 0.9 * best <= decision.proof.objective <= exact.proof.bound + 1e-6
    again = ladders.distribute(item, options=Options(time_limit_s=3, threads=1), previous=decision)
    assert value_of(item, again.plan) >= 0.9 * best


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in (0, *range(2, 12)))]
)
def test_lower_bitrates_never_serve_less_than_single_ones(seed: int) -> None:
    item = random_ladder(seed, accepted_kbps=None)
    options = Options(time_limit_s=20, threads=1)
    single = decomposition.distribute(item, options=options)
    ladder = lowered(item, 0.0)
    decision = ladders.distribute(ladder, options=options)
    assert value_of(ladder, decision.plan) >= value_of(item, single.plan) - 1e-6


@pytest.mark.slow
def test_no_design_is_above_the_optimum() -> None:
    item = random_ladder(0)
    best = integer_program.solve(item, options=Options(time_limit_s=60)).proof.bound
    assert best is not None
    for design in DESIGNS:
        plan = design.decide(item, options=Options(time_limit_s=2)).plan
        value = measure(item, plan, None)[OBJECTIVE]
        assert value is not None
        assert value <= best + 1e-6, design.name


def test_ladders_have_a_formal_model() -> None:
    model = formulation(lowered(two_groups(), 0))
    assert len(model.takes) == 6
    assert len(model.one_bitrate) == 2


def test_the_decomposition_finds_the_bitrate_that_fits() -> None:
    ladder = lowered(two_groups(), 0)
    decision = ladders.distribute(ladder, options=Options(time_limit_s=2, threads=1))
    assert value_of(ladder, decision.plan) == 40.0
    assert decision.proof.bound is not None
    assert decision.proof.bound >= 40.0


def test_moves_are_not_limited_where_bitrates_are_chosen() -> None:
    with pytest.raises(InputError, match="most_moved limits trees of fixed bitrates"):
        ladders.distribute(random_ladder(0), most_moved=1)
