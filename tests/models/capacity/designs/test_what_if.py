"""Explanation of a plan: the ladder of purchases, failures, and smaller budgets."""

from __future__ import annotations

import pandas as pd
import pytest

import planner
from planner_models.capacity.problem.adjustments import adjust
from tests.models.capacity.networks import problem_of, ring


def test_each_step_costs_and_brings_something() -> None:
    explained = planner.explain(adjust(ring(), failures="links"), design="optimum").explanation
    ladder = next(section for section in explained.sections if section.title == "Ladder of purchases").frame
    assert ladder["purchase"].iloc[0] == "before"
    assert ladder["cost"].is_monotonic_increasing
    assert ladder["delivered_mbps"].is_monotonic_increasing
    assert ladder["delivered_mbps"].iloc[-1] == 15.0
    assert ladder["survives"].iloc[-1] == 3
    assert explained.sentences[0].endswith("proven.")
    assert any("checked one by one" in sentence for sentence in explained.sentences)


def test_budgets_have_what_they_deliver_and_a_bound() -> None:
    explained = planner.explain(adjust(ring(), failures="links"), design="optimum", budgets=2).explanation
    curve = explained.sections[-1].frame
    assert curve["budget"].is_monotonic_increasing
    assert curve["delivered_mbps"].is_monotonic_increasing
    assert (curve["delivered_mbps"] <= curve["at_most_mbps"] + 1e-6).all()
    assert (curve["spent"] <= curve["budget"] + 1e-9).all()


def test_a_line_that_nothing_replaces_is_said_first() -> None:
    network = pd.DataFrame({"direction": ["directed"]})
    problem = problem_of([("a", "b", 10.0), ("b", "a", 10.0)], [("a", "b", 5.0)], network=network)
    run = planner.solve(adjust(problem, failures="links"), design="optimum")
    assert run.verdict.startswith(
        "1 of 1 failures cuts off 5 Mbit/s, which no purchase avoids. Apart from that, optimum delivers"
    )
    assert (run.metrics["survived_failures"], run.metrics["cutting_failures"]) == (0.0, 1.0)
    said = " ".join(
        planner.explain(adjust(problem, failures="links"), design="optimum").explanation.sentences
    )
    assert "All demands fit" not in said
    assert "1 of 1 failure cuts demands off, whatever is bought." in said


def test_the_largest_cut_of_several_is_said() -> None:
    links = [("a", "b", 10.0), ("b", "c", 10.0), ("a", "d", 9.0), ("d", "b", 9.0)]
    problem = adjust(problem_of(links, [("a", "c", 3.0), ("b", "c", 4.0)]), failures="links")
    run = planner.solve(problem, design="optimum")
    assert run.verdict.startswith("1 of 4 failures cuts off 7 Mbit/s, which no purchase avoids.")
    tail = adjust(problem_of([*links, ("c", "e", 9.0)], [("a", "c", 3.0), ("b", "e", 4.0)]), failures="links")
    run = planner.solve(tail, design="optimum")
    assert run.verdict.startswith("2 of 5 failures cut off up to 7 Mbit/s, which no purchase avoids.")
    assert run.metrics["survived_failures"] == 3.0


def test_unprotected_shares_are_said_first() -> None:
    classes = pd.DataFrame([("bulk", 1.0, 0.25)], columns=["class", "priority", "protected_share"])
    demands = pd.DataFrame([("a", "c", 8.0, "bulk")], columns=["source", "target", "rate_mbps", "class"])
    run = planner.solve(adjust(ring(demands=demands, classes=classes), failures="links"), design="optimum")
    assert run.verdict.startswith(
        "Classes leave 6 Mbit/s unprotected, which need not survive a failure. Apart from that, optimum"
    )


@pytest.mark.slow
def test_one_module_is_one_module() -> None:
    said = planner.explain(ring(demands=[("a", "c", 11.0)]), design="optimum").explanation.sentences
    assert any(
        sentence.startswith("It buys 1 module for 1 link at a cost of 4 monetary units;") for sentence in said
    )
