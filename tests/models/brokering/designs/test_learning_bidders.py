"""Bidders that learn, by the round and by the window."""

from __future__ import annotations

import pandas as pd
import pytest

from planner.options import Options
from planner.runs.evaluation import evaluate
from planner.runs.rolling import roll
from planner.scenarios.scenario import Entry
from planner_models.brokering import SYSTEM, measure
from planner_models.brokering.problem.generators import world
from tests.models.brokering.markets import market as make


def test_bidders_learn_from_window_to_window_and_in_rounds() -> None:
    problem = make(
        [("Lyon", 1000.0, 10)],
        [("a", "x", "Lyon", 10.5, 0.1), ("b", "y", "Lyon", 20.0, 0.2)],
        scores=[("Lyon", "a", 5.0), ("Lyon", "b", 5.0)],
    )
    runs = list(roll([problem] * 6, designs={"learning_bidders": {"step": 0.2}}))
    markups = [run.plan.offers.set_index("cluster")["markup"] for run in runs]
    assert [round(float(markup["a"]), 3) for markup in markups[:4]] == [1.0, 1.2, 1.44, 1.728]
    assert (pd.concat(markups) >= 1).all()
    assert runs[3].run["metrics"]["bids_per_hour"] == pytest.approx(10 * 0.45 * 0.1 * 1.2**3)
    # six rounds in one window end where six windows do
    at_once = Entry(
        label="l", design=SYSTEM.design("learning_bidders"), parameters={"step": 0.2, "rounds": 6}
    )
    last = evaluate(SYSTEM, problem, at_once)
    assert last.plan.offers.equals(runs[-1].plan.offers)
    assert last.plan.assignments.equals(runs[-1].plan.assignments)


def test_cautious_bidders_promise_less_and_plans_keep_the_promise() -> None:
    problem = world(clients=400, places=30, seed=2)
    entry = Entry(
        label="l", design=SYSTEM.design("learning_bidders"), parameters={"caution": 1.0, "rounds": 3}
    )
    run = evaluate(SYSTEM, problem, entry, options=Options(gap=0.01))
    promise = run.plan.offers["promise"].to_numpy(float)
    assert (promise >= 0.1).all()
    assert (promise < 1).any()
    assert measure(problem, run.plan, None)["congested_percent"] == 0
