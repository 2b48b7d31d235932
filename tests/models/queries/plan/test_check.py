"""Checks of plans: wrong rules give wrong answers, limits are those of tables, and tables fit together."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from planner.errors import InputError, PlanRejected
from planner_models.queries import SYSTEM, check, measure
from planner_models.queries.plan.plan import Answers, from_tables, make_plan
from planner_models.queries.problem.generators import frenetic, small
from planner_models.queries.problem.problem import Monitoring


@pytest.fixture(scope="module")
def problem() -> Monitoring:
    return frenetic(hosts=4, packets=5)


@pytest.fixture(scope="module")
def plan(problem: Monitoring) -> Answers:
    made = SYSTEM.design("specialization").run(problem).plan
    assert made is not None
    return made


def _violated(problem: Monitoring, plan: Answers) -> set[str]:
    return set(check(problem, plan).frame["limit"])


def test_a_rule_that_counts_no_more_is_a_wrong_answer(problem: Monitoring, plan: Answers) -> None:
    assert not _violated(problem, plan)
    counted = plan.uses.index[plan.uses["query"] == "web monitor"]
    assert "answers" in _violated(problem, replace(plan, uses=plan.uses.drop(index=counted[0])))
    assert measure(problem, plan, None)["wrong"] == 0


def test_a_rule_with_another_action_breaks_the_program(problem: Monitoring, plan: Answers) -> None:
    rules = plan.rules.assign(action=plan.rules["action"].replace({"out:1": "drop"}))
    assert _violated(problem, replace(plan, rules=rules)) == {"program"}


def test_packets_that_are_not_diverted_are_missed(problem: Monitoring, plan: Answers) -> None:
    uses = plan.uses[plan.uses["query"] != "MAC learning"]
    assert _violated(problem, replace(plan, uses=uses)) == {"answers"}


def test_each_limit_of_a_switch_is_reported_with_its_amount(problem: Monitoring, plan: Answers) -> None:
    microflows = SYSTEM.design("microflows").run(problem).plan
    for made, limit in (
        (plan, "rules"), (plan, "packets_per_s"), (plan, "polls_per_s"), (microflows, "exact_rules"),
    ):  # fmt: skip
        least = 2.0 if limit == "rules" else 0.0
        violations = check(problem.with_switches(**{limit: [least]}), made)
        assert violations.frame["limit"].tolist() == [limit]
        assert violations.frame["amount"].iloc[0] > violations.frame["allowed"].iloc[0] == least


def test_periods_are_doubled_up_to_the_longest() -> None:
    problem = small()
    rows = [0]
    for period, limit in ((40.0, set()), (80.0, {"longest_s"})):
        plan = make_plan(problem, {(row, switch): "ahead" for row in rows for switch in (0, 1)}, {0: period})
        assert _violated(problem, plan) == limit
    with pytest.raises(PlanRejected, match="period_s of web is 30, must be every_s, or that doubled"):
        check(problem, make_plan(problem, {(0, 0): "ahead", (0, 1): "ahead"}, {0: 30.0}))


def test_tables_of_a_plan_fit_together(problem: Monitoring, plan: Answers) -> None:
    tables = plan.to_tables()
    again = from_tables(problem, {name: tables[name] for name in ("answers", "methods")})
    pd.testing.assert_frame_equal(again.rules, plan.rules)
    with pytest.raises(
        InputError, match="query 'web montor' is no query of the problem; did you mean 'web monitor'"
    ):
        from_tables(problem, {**tables, "answers": tables["answers"].replace("web monitor", "web montor")})
    methods = tables["methods"][tables["methods"]["query"] != "web monitor"]
    with pytest.raises(PlanRejected, match="web monitor has answers, must have a method on each switch: s1"):
        check(problem, replace(plan, methods=methods))
    with pytest.raises(InputError, match="there is no such rule in rules"):
        from_tables(problem, {**tables, "rules": tables["rules"].iloc[1:]})
