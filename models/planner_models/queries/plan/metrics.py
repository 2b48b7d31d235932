"""Metrics of system `queries`."""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.contract.metrics import Headline, less, more
from planner_models.queries.plan.check import evaluate
from planner_models.queries.plan.plan import Answers
from planner_models.queries.problem.problem import Monitoring

FRENETIC: Final = "Foster et al. 2013 (Frenetic), II"

METRICS: Final = (
    more(
        "answered",
        "points",
        "weight of queries with answers, each times the share of its periods with an answer of its own",
        FRENETIC,
        title="answered weight",
    ),
    more("asked", "points", "weight of all queries", title="weight asked for"),
    less("unanswered", "queries", "queries without answers"),
    less("coarser", "queries", "queries with answers of longer periods than asked", title="longer periods"),
    less("rules", "rules", "rules with wildcards in all switches: of the program and of queries", FRENETIC),
    less("rule_share", "", "largest share of a switch's rules with wildcards that are used"),
    less("exact_rules", "rules", "rules of whole headers in all switches", title="rules of whole headers"),
    less("installed", "rules", "rules for packets as they arrive"),
    less(
        "controller_packets_per_s", "packets/s", "packets from all switches to the controller, in the mean",
        FRENETIC, title="packets to the controller",
    ),
    less("polls_per_s", "polls/s", "counters that the controller reads of all switches", title="polls"),
    less(
        "staleness_s", "s",
        "longest time from a packet until it is in an answer, of the query with the longest; unknown without "
        "answers", title="staleness",
    ),
    less(
        "mean_staleness_s", "s", "the same in the mean of all queries with answers", title="mean staleness"
    ),
    less("wrong", "queries", "queries with answers that are not those of the packets"),
)  # fmt: skip


def name_receiver(problem: Monitoring) -> str:  # noqa: ARG001 - the signature of `then_period`
    """Return who receives the packets of the second metric."""
    return "to the controller"


HEADLINE: Final = Headline(
    metric="answered",
    verb="answers queries worth",
    total="asked",
    then="controller_packets_per_s",
    then_words="with",
    then_period=name_receiver,
    losses={"unanswered": "leaves {} unanswered"},
    fallbacks={"coarser": "gives longer periods to"},
    table=(
        "answered",
        "unanswered",
        "coarser",
        "rules",
        "exact_rules",
        "controller_packets_per_s",
        "polls_per_s",
        "staleness_s",
    ),
)
LIMITS: Final = {
    "rules": "switches with too many rules",
    "exact_rules": "switches with too many rules of whole headers",
    "packets_per_s": "switches that send too many packets",
    "polls_per_s": "switches that are polled too often",
    "longest_s": "queries with too long periods",
    "answers": "queries with wrong answers",
    "program": "switches that do not what the program says",
}


def value_answers(problem: Monitoring, periods_s: dict[int, float]) -> float:
    """Return the weight of queries with answers, each times every_s over its period."""
    total = 0.0
    for row, period_s in sorted(periods_s.items()):
        query = problem.asked[row]
        total += query.weight * (query.every_s / period_s if period_s else 1.0)
    return total


def measure(
    problem: Monitoring,
    plan: Answers,
    previous: Answers | None,  # noqa: ARG001 - the signature of `measure`
) -> dict[str, float | None]:
    """Return a value for every metric."""
    evaluation = evaluate(problem, plan)
    rules = np.array([switch.rules for switch in evaluation.observed], dtype=float)
    space = problem.limit("rules")
    stale = [evaluation.find_staleness(row) for row in evaluation.period_s]
    periods_s = evaluation.period_s
    coarser = [
        row for row, period_s in periods_s.items() if period_s > problem.asked[row].every_s * (1 + 1e-9)
    ]
    return {
        "answered": value_answers(problem, periods_s),
        "asked": sum(query.weight for query in problem.asked),
        "unanswered": float(len(problem.queries) - len(periods_s)),
        "coarser": float(len(coarser)),
        "rules": float(rules.sum()),
        "rule_share": float(
            np.divide(rules, space, out=np.zeros(len(rules)), where=space > 0).max(initial=0.0)
        ),
        "exact_rules": float(sum(switch.exact_rules for switch in evaluation.observed)),
        "installed": float(sum(switch.installed for switch in evaluation.observed)),
        "controller_packets_per_s": float(evaluation.count_packets().sum()),
        "polls_per_s": float(evaluation.polls.sum()),
        "staleness_s": max(stale, default=None),
        "mean_staleness_s": float(np.mean(stale)) if stale else None,
        "wrong": float(len(evaluation.wrong)),
    }
