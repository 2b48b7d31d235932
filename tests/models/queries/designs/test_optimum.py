"""The optimum: equal to enumeration and to the formal model, never below a rule, and within its own bound."""

from __future__ import annotations

from itertools import product

import pandas as pd
import pytest

from planner.backends import pyomo
from planner.contract.proof import Status
from planner.errors import InputError
from planner.options import Options
from planner_models.queries import SYSTEM, formulation
from planner_models.queries.designs.answering import list_uses
from planner_models.queries.designs.optimum import answer_best
from planner_models.queries.plan.check import check, evaluate
from planner_models.queries.plan.metrics import measure, value_answers
from planner_models.queries.plan.plan import make_plan
from planner_models.queries.problem.generators import edge, tabulate_queries
from planner_models.queries.problem.problem import Monitoring
from tests.models.queries.random_problems import draw_problem

REFERENCE = Options(backend="pyomo:highs", gap=1e-6)


def _enumerate(problem: Monitoring) -> float:
    """Return the largest weight of answers over all methods and periods, by emulating each plan."""
    (use,) = list_uses(problem)
    best = 0.0
    options = [
        [None, *product(use.seen[row].methods, query.periods_s)]
        if row in use.seen
        else [None, ("", query.periods_s[0])]
        for row, query in enumerate(problem.asked)
    ]
    for chosen in product(*options):
        methods = {(row, 0): option[0] for row, option in enumerate(chosen) if option and option[0]}
        periods = {row: option[1] for row, option in enumerate(chosen) if option}
        value = value_answers(problem, periods)
        if value > best and not len(check(problem, make_plan(problem, methods, periods))):
            best = value
    return best


@pytest.mark.parametrize("seed", range(5))
def test_no_plan_that_the_emulation_accepts_is_better(seed: int) -> None:
    problem = draw_problem(seed, queries=2, switches=1, flows=8)
    decision = answer_best(problem)
    assert decision.proof.status is Status.OPTIMAL
    assert decision.proof.objective == pytest.approx(_enumerate(problem))


@pytest.mark.parametrize("seed", range(6))
def test_it_is_the_optimum_of_the_formal_model(seed: int) -> None:
    problem = draw_problem(seed, queries=4, switches=2)
    decision = answer_best(problem)
    reference = pyomo.solve_model(formulation(problem), REFERENCE).objective
    assert decision.proof.objective == pytest.approx(reference, abs=1e-6)
    assert decision.proof.bound == pytest.approx(reference, abs=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_no_rule_answers_more(seed: int) -> None:
    problem = draw_problem(100 + seed, queries=6, switches=2)
    best = answer_best(problem)
    assert best.plan is not None
    figures = measure(problem, best.plan, None)
    for design in SYSTEM.designs[1:]:
        plan = design.run(problem).plan
        assert not len(check(problem, plan))
        other = measure(problem, plan, None)
        assert other["answered"] <= best.proof.bound * (1 + 1e-9)
        if other["answered"] == pytest.approx(figures["answered"]) and design.name in (
            "specialization",
            "controller",
        ):
            assert figures["controller_packets_per_s"] <= other["controller_packets_per_s"] * (1 + 1e-9)


def test_all_queries_or_none() -> None:
    problem = draw_problem(1, queries=4, switches=1)
    assert answer_best(problem, options=Options(service="all")).proof.status is Status.INFEASIBLE
    ample = problem.with_switches(rules=[1e5], exact_rules=[1e5], packets_per_s=[1e5], polls_per_s=[1e5])
    decision = answer_best(ample, options=Options(service="all"))
    assert decision.plan is not None
    assert len(decision.plan.answers) == 4


@pytest.mark.parametrize(("pipeline", "groups"), [(0.0, 6 * 5), (1.0, 6 + 5)])
def test_groups_of_different_fields_multiply_in_one_table(pipeline: float, groups: int) -> None:
    headers = [f"ip_src=10.0.0.{host} tcp_dst={port}" for host in range(1, 7) for port in range(1, 6)]
    problem = Monitoring(
        queries=tabulate_queries(
            [
                {"query": "hosts", "select": "bytes", "group_by": "ip_src", "every_s": 1.0},
                {"query": "ports", "select": "bytes", "group_by": "tp_dst", "every_s": 1.0},
            ]
        ),
        switches=pd.DataFrame(
            {"switch": ["s"], "rules": [100.0], "polls_per_s": [100.0], "pipeline": [pipeline]}
        ),
        flows=pd.DataFrame({"switch": "s", "header": headers}),
    )
    plan = SYSTEM.design("unfolding").run(problem).plan
    assert evaluate(problem, plan).observed[0].installed == groups


def test_the_formal_model_has_a_largest_size() -> None:
    with pytest.raises(InputError, match="combinations of methods, must have up to 20,000"):
        formulation(edge(switches=1, hosts=4, connections=5))
