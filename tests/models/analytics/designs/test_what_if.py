"""Explanations: bytes that are wasted, and gains that are solved again, against all choices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.contract.studies import Decided
from planner.options import Options
from planner_models.analytics import SYSTEM, Analytics, check, measure
from planner_models.analytics.designs.what_if import explain, find_gain, tabulate_waste
from planner_models.analytics.plan.answers import find_answers, find_loads
from planner_models.analytics.plan.plan import make_plan
from planner_models.analytics.problem.adjustments import adjust
from planner_models.analytics.problem.generated_queries import cdn
from planner_models.analytics.problem.generators import diurnal, small
from tests.models.analytics.designs.test_optimum import enumerate_levels
from tests.models.analytics.problems import make, problems

MBPS = 8 / 60 / 1e6  # of a byte in an interval


def test_a_coarse_site_makes_bytes_useless_that_another_query_can_use() -> None:
    """One of three sites can only send 8 bytes a cell of one query, so that 800 bytes of others are free."""
    problem = make(sites=3, combine=("coarsest", "sum"))
    capacity = np.array([[2400 * MBPS, 2400 * MBPS, 1600 * MBPS, 1.0]])
    problem = problem.with_capacity(capacity)
    levels = np.array([[[0, 1], [0, 1], [1, 1]]])  # 1,600 + 800, twice, and 800 + 800 bytes
    answers = find_answers(problem, levels)
    blamed = tabulate_waste(problem, levels, answers, 10)
    assert blamed.to_dict("records") == [
        {"site": "s2", "queries": 1, "other_sites": 2, "wasted_percent": 50, "wasted_gb": 1.6e-6}
    ]
    gain = find_gain(problem, levels, answers, Options())
    assert gain is not None
    assert gain.freed == pytest.approx(1600)
    assert gain.usd == pytest.approx([0, 2 * 0.2 / 3])  # two sites send 1 s in place of 5 s


def test_the_explanation_names_the_link_the_hour_the_waste_and_the_cost() -> None:
    problem = small()
    design = SYSTEM.design("local_values")
    decision = design.run(problem)
    metrics = measure(problem, decision.plan, None)  # type: ignore[arg-type]
    explanation = explain(problem, Decided(design=design, parameters={}, decision=decision, metrics=metrics))
    links = explanation.sections[0].frame
    assert links["gain_usd"].min() >= 0
    words = " ".join(explanation.sentences)
    for share in ("limits answers most", "from hour", "too fine", "no query loses, solved again"):
        assert share in words


def test_the_explanation_shows_what_is_measured_and_what_is_proven() -> None:
    problem = cdn(sites=6, pops=2, domains=2_000, hours=1 / 30, bandwidth=0.1)
    design = SYSTEM.design("local_values")
    decision = design.run(problem)
    metrics = measure(problem, decision.plan, None)  # type: ignore[arg-type]
    explanation = explain(
        problem, Decided(design=design, parameters={}, decision=decision, metrics=metrics), links=0
    )
    errors = next(section.frame for section in explanation.sections if "proven" in section.title)
    assert len(errors)
    assert set(errors["query"]) <= {"popular_domains", "domain_counts"}
    assert (errors["proven_error"] > errors["error"]).all()
    assert any("proves an error of at most" in sentence for sentence in explanation.sentences)


def explain_optimum(problem: Analytics) -> str:
    """Return the explanation of the optimum, in words."""
    design = SYSTEM.design("optimum")
    decision = design.run(problem)
    metrics = measure(problem, decision.plan, None)  # type: ignore[arg-type]
    decided = Decided(design=design, parameters={}, decision=decision, metrics=metrics)
    return " ".join(explain(problem, decided).sentences)


def test_an_uplink_without_capacity_costs_what_answers_gain_with_it() -> None:
    """Answers of two sites have a value of 1 USD in each of three intervals; in the second there is none."""
    problem = make(sites=2, intervals=3, combine=("coarsest",), uplink_mbps=1.0)
    words = explain_optimum(adjust(problem, fail_links=("p",), fail_from_s=60.0, fail_hours=1 / 60))
    assert "The uplink of p has no capacity in 1 interval, from hour 0.0167." in words
    assert "With its mean capacity there, the optimum gains 1 USD, solved again." in words
    assert "has no capacity" not in explain_optimum(problem)


@pytest.mark.slow
def test_single_intervals_with_queries_that_are_asked_in_another_one_are_solved_again() -> None:
    problem = diurnal(sites=6, pops=2, queries=6, hours=0.5, ad_hoc_part=0.4, seed=1)
    assert "solved again" in explain_optimum(problem)


@pytest.mark.parametrize(
    ("sites", "expected"), [(1, "with 2 times the capacity of s0"), (2, "other uplinks")]
)
def test_a_tenth_more_may_be_less_than_a_step_to_the_next_level(sites: int, expected: str) -> None:
    """Levels take 1,600 and 800 bytes; with 1,000, a tenth more is not enough, nor is one of two sites."""
    problem = make(sites=sites, combine=("coarsest",))
    capacity = np.array([[1000 * MBPS] * sites + [1.0]])
    words = explain_optimum(problem.with_capacity(capacity))
    assert "With a tenth more there, the optimum gains nothing, solved again." in words
    assert expected in words


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(problems(sites=3, queries=2, levels=3), st.integers(0, 1_000))
def test_gains_by_freed_bytes_are_no_more_than_the_optimum(problem: Analytics, seed: int) -> None:
    counts = [len(names) for names in problem.level_names]
    levels = np.random.default_rng(seed).integers(0, counts, size=(1, 3, 2))
    answers = find_answers(problem, levels)
    blamed = tabulate_waste(problem, levels, answers, 10)
    assert blamed["wasted_gb"].sum() * 1e9 <= find_loads(problem, levels, answers).wasted.sum() * (1 + 1e-9)
    gain = find_gain(problem, levels, answers, Options())
    fits = not len(check(problem, make_plan(problem, levels)))
    if gain is None:
        assert not fits or not find_loads(problem, levels, answers).wasted.any()
        return
    assert (gain.usd >= -1e-6).all()
    best = enumerate_levels(problem)
    assert answers.value_usd.sum() + gain.usd.sum() <= best * (1 + 1e-6) + 1e-9
