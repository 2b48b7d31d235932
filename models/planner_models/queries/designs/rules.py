"""One method for all queries, after Foster et al. 2013: microflows, rules as groups arrive, or rules ahead.

Queries take what switches have in the order of falling weight; those that do not fit have no answers.
"""

from __future__ import annotations

from collections.abc import Sequence

from planner.contract.design import Decision
from planner.options import Options
from planner_models.queries.designs.answering import Answering, decide_feasible, list_uses, order_queries
from planner_models.queries.plan.methods import AHEAD, CONTROLLER, MICROFLOWS, UNFOLD
from planner_models.queries.plan.plan import Answers
from planner_models.queries.plan.usage import SwitchUse
from planner_models.queries.problem.problem import Monitoring


def answer_by_microflows(problem: Monitoring, *, options: Options = Options()) -> Decision[Answers]:
    """Answer queries by a rule for each header, which its first packet installs (III.B)."""
    return _answer(problem, (MICROFLOWS,), options)


def answer_by_unfolding(problem: Monitoring, *, options: Options = Options()) -> Decision[Answers]:
    """Answer queries by a rule with wildcards for each group, which its first packet installs (II.A)."""
    return _answer(problem, (UNFOLD,), options)


def answer_ahead(problem: Monitoring, *, options: Options = Options()) -> Decision[Answers]:
    """Answer queries by rules that are installed before packets arrive, where such rules exist (III.B)."""
    return _answer(problem, (AHEAD,), options)


def answer_specialized(problem: Monitoring, *, options: Options = Options()) -> Decision[Answers]:
    """Answer queries by rules ahead where they exist and fit, else by rules for arriving packets (III.B)."""
    return _answer(problem, (AHEAD, UNFOLD, MICROFLOWS), options)


def answer_by_controller(problem: Monitoring, *, options: Options = Options()) -> Decision[Answers]:
    """Answer queries by all their packets, which go to the controller."""
    return _answer(problem, (CONTROLLER,), options)


def _answer(problem: Monitoring, methods: Sequence[str], options: Options) -> Decision[Answers]:
    return decide_feasible(answer(problem, list_uses(problem), methods), options)


def answer(problem: Monitoring, uses: Sequence[SwitchUse], methods: Sequence[str]) -> Answering:
    """Return the answers by the first of some methods that a switch has and that fits."""
    answering = Answering(problem, uses)
    for row in order_queries(problem):
        answering.add(
            row, [_prefer(answering, row, switch, methods) for switch in answering.find_switches(row)]
        )
    return answering


def _prefer(answering: Answering, row: int, switch: int, methods: Sequence[str]) -> list[str]:
    """Return those of some methods that a switch has; queries for all packets have no other than one."""
    possible = answering.uses[switch].seen[row].methods
    return [CONTROLLER] if possible == (CONTROLLER,) else [method for method in methods if method in possible]
