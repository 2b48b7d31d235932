"""Rules of levels in intervals in which a query is not asked: there it uses no level."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import planner
from planner_models.analytics import SYSTEM, Analytics
from planner_models.analytics.plan.plan import make_plan, read_levels
from tests.models.analytics.problems import tables

RULES = ("forbidden", "pinned")


def asked_once(rule: str, combine: str) -> Analytics:
    """Return two intervals with a query of the first one, whose level of no data is ruled out."""
    made = tables(sites=2, intervals=2, combine=(combine,))
    made["ad_hoc"] = pd.DataFrame({"query": ["q0"], "interval": [1.0], "since": [1.0]})
    level = "none" if rule == "forbidden" else "10 s"
    made[rule] = pd.DataFrame({"site": ["s0", "s1"], "query": "q0", "level": level})
    return Analytics.from_tables(made)


@pytest.mark.parametrize("combine", ["coarsest", "worst", "sum"])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("design", [field.name for field in SYSTEM.designs])
def test_a_query_uses_no_level_where_it_is_not_asked(design: str, rule: str, combine: str) -> None:
    run = planner.solve(asked_once(rule, combine), design=design)
    assert run.error is None
    assert "rules" not in set(run.violations.frame["limit"])
    assert set(run.plan.answers["interval"]) == {1.0}
    assert set(run.plan.levels["interval"]) <= {1.0}
    if design == "optimum":
        value = 1.0 if rule == "forbidden" else 0.5  # 100 cells of at most 16 bytes fit
        assert run.metrics["value"] == pytest.approx(value)
        assert run.proof.bound == pytest.approx(value)


def test_a_level_that_is_ruled_out_is_found_where_the_query_is_asked() -> None:
    problem = asked_once("forbidden", "worst")
    plan = planner.solve(problem, design="optimum").plan
    nothing = make_plan(problem, np.full_like(read_levels(problem, plan), 3))
    result = SYSTEM.plan.check(problem, nothing).frame
    assert set(result["where"]) == {"s0, q0, interval 1", "s1, q0, interval 1"}
