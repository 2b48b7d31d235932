"""The optimum against enumeration and an integer program, and what must not lower it."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from planner import backends
from planner.contract.proof import Status
from planner.options import Options
from planner_models.analytics import Analytics, check, measure
from planner_models.analytics.designs import DESIGNS, branching, optimum, priced, prices
from planner_models.analytics.designs.choices import Choices
from planner_models.analytics.designs.program import build_interval
from planner_models.analytics.information import PRICE_ROUNDS
from planner_models.analytics.plan.plan import read_levels
from planner_models.analytics.problem.generators import diurnal, small
from tests.models.analytics.problems import make, problems

EXACT = 1e-6


def enumerate_levels(problem: Analytics) -> float:
    """Return the most value of all choices of levels of all sites in one interval, by trying each.

    Nothing of the model is used but the tables: for each query, value and bytes of each combination of levels
    of sites; then the combinations of queries.
    """
    sites = problem.sites["site"].tolist()
    links = [*sites, *problem.pops["pop"]]
    assert problem.bandwidth is not None
    assert problem.merging is not None
    rate = dict(zip(problem.bandwidth["link"].astype(str), problem.bandwidth["mbps"], strict=True))
    capacity = np.array([rate[name] * 1e6 / 8 * 60 for name in links])
    cells = dict(zip(problem.volume["site"].astype(str), problem.volume["cells"], strict=True))
    merges = dict(zip(problem.pops["pop"], problem.pops["merges"] == "yes", strict=True))
    keys = problem.merging[["pop", "query", "level"]].astype(str).itertuples(index=False, name=None)
    merged = dict(zip(keys, problem.merging["merged_share"], strict=True))
    values, loads = np.zeros(1), np.zeros((1, len(links)))
    for query in problem.queries.itertuples():
        levels = list(problem.levels[problem.levels["query"] == query.query].itertuples())
        own_values, own_loads = [], []
        for combination in itertools.product(levels, repeat=len(sites)):
            shares = [level.value_share for level in combination]
            together = sum(shares) / len(sites) if query.combine == "sum" else min(shares)
            own_values.append(query.value_usd * together)
            load = np.zeros(len(links))
            for row, (site, level) in enumerate(zip(sites, combination, strict=True)):
                size = level.bytes_per_cell * cells[site]
                pop = problem.sites["pop"].iloc[row]
                saved = min(merged.get((pop, query.query, level.level), 1.0), 1.0) if merges[pop] else 1.0
                load[row] += size
                load[links.index(pop)] += size * saved
            own_loads.append(load)
        values = (values[:, None] + np.array(own_values)).ravel()
        loads = (loads[:, None] + np.array(own_loads)).reshape(-1, len(links))
        fits = (loads <= capacity * (1 + 1e-9) + 1e-9).all(axis=1)
        values, loads = values[fits], loads[fits]
    return float(values.max())


@settings(max_examples=8, deadline=None)
@given(problems(sites=3, queries=3, levels=2))
def test_the_optimum_is_that_of_all_choices(problem: Analytics) -> None:
    """Three sites, three queries, two levels and none."""
    proof = optimum.plan(problem).proof
    assert proof.status is Status.OPTIMAL
    assert proof.objective == pytest.approx(enumerate_levels(problem), rel=EXACT, abs=1e-9)


@settings(max_examples=10, deadline=None)
@given(problems(sites=2, queries=3, levels=3))
def test_the_optimum_with_more_levels_is_that_of_all_choices(problem: Analytics) -> None:
    assert optimum.plan(problem).proof.objective == pytest.approx(
        enumerate_levels(problem), rel=EXACT, abs=1e-9
    )


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(problems(sites=3, queries=3, levels=3))
def test_the_optimum_of_three_sites_queries_and_levels_is_that_of_all_choices(problem: Analytics) -> None:
    assert optimum.plan(problem).proof.objective == pytest.approx(
        enumerate_levels(problem), rel=EXACT, abs=1e-9
    )


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(problems())
def test_no_design_beats_the_bound_and_plans_keep_what_they_claim(problem: Analytics) -> None:
    bound = optimum.plan(problem).proof.bound
    assert bound is not None
    for design in DESIGNS:
        decision = design.run(problem)
        assert decision.plan is not None
        violations = check(problem, decision.plan)
        assert not len(violations.of_limits(decision.guarantees)), design.name
        if not len(violations):
            assert (measure(problem, decision.plan, None)["value"] or 0.0) <= bound * (1 + 1e-9) + 1e-12


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(problems(sites=4, queries=4))
def test_more_bandwidth_and_one_more_level_never_lower_the_optimum(problem: Analytics) -> None:
    value = optimum.plan(problem).proof.objective or 0.0
    wider = problem.with_capacity(problem.capacity_mbps * 1.3)
    assert (optimum.plan(wider).proof.objective or 0.0) >= value * (1 - EXACT)
    fewer = replace(
        problem, merging=None, levels=problem.levels[problem.levels["level"] != "5 s"].reset_index(drop=True)
    )
    more = replace(problem, merging=None)
    lower = optimum.plan(fewer).proof.objective or 0.0
    assert (optimum.plan(more).proof.objective or 0.0) >= lower * (1 - EXACT)


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(problems(sites=4))
def test_the_order_of_sites_does_not_matter(problem: Analytics) -> None:
    turned = replace(problem, sites=problem.sites.iloc[::-1].reset_index(drop=True))
    assert optimum.plan(turned).proof.objective == pytest.approx(
        optimum.plan(problem).proof.objective, rel=EXACT
    )


@settings(max_examples=12, deadline=None)
@given(problems(sites=2, queries=3, levels=3))
def test_branching_alone_bounds_all_choices(problem: Analytics) -> None:
    """Without the integer program that follows where an interval is small."""
    interval = Choices(problem).interval(0)
    choices, bound = branching.find_choices(interval, prices.find_prices(interval), gap=0.0)
    best = enumerate_levels(problem)
    assert choices.value <= best * (1 + EXACT) + 1e-9
    assert bound >= best * (1 - EXACT) - 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_branching_proves_answers_that_all_sites_share(seed: int) -> None:
    """Without queries whose values add up, a leaf has no gap: the integer program finds the same."""
    problem = diurnal(sites=8, pops=2, queries=8, hours=0.1, sum_part=0.0, seed=seed)
    interval = Choices(problem).interval(0)
    choices, bound = branching.find_choices(interval, prices.find_prices(interval), gap=0.0)
    exact = backends.solve(build_interval(interval).program, Options(gap=0.0, threads=1)).objective
    assert choices.value == pytest.approx(exact, rel=EXACT)
    assert bound == pytest.approx(exact, rel=EXACT)


@pytest.mark.slow
def test_search_is_near_the_integer_program() -> None:
    problem = diurnal(sites=30, pops=4, queries=16, hours=0.1, bandwidth=0.35)
    proof = optimum.plan(problem, method="search").proof
    choices = Choices(problem)
    exact = 0.0
    for k in range(len(problem.interval_numbers)):
        built = build_interval(choices.interval(k))
        solution = backends.solve(built.program, Options(gap=1e-4, time_limit_s=10.0, threads=1))
        assert solution.objective is not None
        exact += solution.objective
    assert proof.bound is not None
    assert proof.objective is not None
    assert proof.objective >= exact * (1 - 0.002)
    assert proof.bound >= exact * (1 - 1e-6)
    assert proof.gap is not None
    assert proof.gap < 0.004


def test_one_coarse_site_makes_all_answers_coarse_and_frees_bytes_elsewhere() -> None:
    """Five-second data of one site and one-second data of another make five-second answers (section 4)."""
    problem = make(sites=2, intervals=1)
    capacity = np.array([[1.0, 800 * 8 / 60 / 1e6, 10.0]])  # the second site can send 8 bytes a cell
    problem = problem.with_capacity(capacity)
    decision = optimum.plan(problem)
    assert decision.plan is not None
    assert decision.plan.answers["level"].tolist() == ["5 s"]
    assert measure(problem, decision.plan, None)["wasted_percent"] == 0
    local = next(design for design in DESIGNS if design.name == "local_values").run(
        problem, parameters={"headroom": 1.0}
    )
    assert local.plan is not None
    assert read_levels(problem, local.plan)[0, :, 0].tolist() == [0, 1]
    assert local.plan.answers["level"].tolist() == ["5 s"]
    assert measure(problem, local.plan, None)["wasted_percent"] == pytest.approx(100 * 800 / 2400)


def test_queries_that_need_an_answer_and_do_not_fit_are_infeasible_where_all_are_to_be_served() -> None:
    problem = make(none=False, uplink_mbps=1e-5)
    proof = optimum.plan(problem, options=Options(service="all")).proof
    assert proof.status is Status.INFEASIBLE
    assert proof.reasons[0].startswith("interval 1: the uplink of 's0' carries")
    strict = make(uplink_mbps=1e-5)
    assert optimum.plan(strict).plan is not None
    assert optimum.plan(strict, options=Options(service="all")).proof.status is Status.INFEASIBLE


def test_merging_always_loses_where_merged_cells_are_more_bytes_than_what_sites_send() -> None:
    """A point of presence forwards what it would only make larger: placement depends on the data."""
    problem = make(sites=3, combine=("worst",), pop_mbps=2 * 1600 * 8 / 60 / 1e6)
    merging = problem.levels.loc[problem.levels["level"] == "1 s", ["query", "level"]].assign(pop="p")
    for share, level in ((0.5, "1 s"), (1.6, "5 s")):
        merged = replace(problem, merging=merging.assign(merged_share=share))
        assert merged.merged_share[0, 0, 0] == min(share, 1.0)
        plan = optimum.plan(merged).plan
        assert plan is not None
        assert plan.answers["level"].tolist() == [level]


def test_prices_with_headroom_keep_data_in_time_where_bandwidth_is_less_than_known() -> None:
    problem = small()
    actual = problem.with_capacity(problem.capacity_mbps * 0.8)
    values = []
    for headroom in (1.0, 0.8):
        plan = priced.choose_by_prices(problem, headroom=headroom).plan
        assert plan is not None
        values.append(measure(actual, plan, None))
    assert values[0]["late_loss"] or values[0]["promise_kept"] < 1  # type: ignore[operator]
    assert values[1]["late_loss"] == 0
    assert values[1]["promise_kept"] == 1
    assert (values[1]["value"] or 0) > (values[0]["value"] or 0)


@pytest.mark.slow
def test_prices_of_a_protocol_take_as_many_rounds_as_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = 0
    bound, evaluate = prices.evaluate_bound, prices._Smoothed._evaluate

    def count_bound(*values: Any) -> Any:
        nonlocal rounds
        rounds += 1
        return bound(*values)

    def count_evaluation(*values: Any) -> Any:
        nonlocal rounds
        rounds += 1
        return evaluate(*values)

    monkeypatch.setattr(prices, "evaluate_bound", count_bound)
    monkeypatch.setattr(prices._Smoothed, "_evaluate", count_evaluation)
    problem = diurnal(sites=20, pops=2, queries=10, hours=0.5)
    assert priced.choose_by_prices(problem).plan is not None
    assert 0 < rounds <= PRICE_ROUNDS * len(problem.interval_numbers)


@pytest.mark.slow
def test_prices_of_a_protocol_are_near_the_optimum() -> None:
    problem = diurnal(sites=40, pops=4, queries=20, hours=0.5)
    decision = priced.choose_by_prices(problem)
    assert decision.plan is not None
    value, bound = measure(problem, decision.plan, None)["value"], optimum.plan(problem).proof.bound
    assert value is not None
    assert bound is not None
    assert 0.997 * bound <= value <= bound
