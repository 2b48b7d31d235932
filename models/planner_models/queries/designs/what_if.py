"""Explanations of a plan: methods of queries, use of switches, and the larger limit that gains most."""

from __future__ import annotations

from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.studies import Decided, Explanation, Section
from planner.contract.what_if import Change, Reoptimization
from planner.formatting import counted
from planner.options import Options
from planner_models.queries.plan.check import Evaluation, evaluate
from planner_models.queries.plan.methods import METHODS
from planner_models.queries.plan.metrics import METRICS, measure
from planner_models.queries.plan.plan import Answers
from planner_models.queries.problem.problem import Monitoring
from planner_models.queries.problem.schema import MOST_RATE, MOST_RULES

LIMITS: Final = {
    "rules": "rules with wildcards",
    "exact_rules": "rules of whole headers",
    "packets_per_s": "packets to the controller",
    "polls_per_s": "polls",
}
FULL: Final = 0.9


def explain(
    problem: Monitoring,
    decided: Decided,
    *,
    growth: Annotated[
        float, Field(gt=1, le=1e3, description="factor by which a limit of all switches grows")
    ] = 2.0,
    rows: Annotated[int, Field(ge=1, le=1_000, description="rows of each table")] = 20,
    options: Options = Options(),
) -> Explanation:
    """Explain the methods of queries, full switches, and the gain of larger limits."""
    plan: Answers = decided.plan
    evaluation = evaluate(problem, plan)
    again = Reoptimization[Monitoring](decided, metric=METRICS[0], measure=measure, options=options)
    trials = again.solve_all(_grow_limits(problem, growth))
    switches = _tabulate_switches(problem, evaluation)
    return Explanation(
        sentences=(
            _say_use(evaluation, switches),
            *_say_unanswered(problem, evaluation),
            again.sentence(trials, what="larger limit"),
        ),
        sections=(
            Section(
                title="Queries",
                frame=_tabulate_queries(problem, evaluation).head(rows),
                units={"period": "s", "staleness": "s"},
            ),
            Section(
                title="Switches, in percent of their limits",
                frame=switches.head(rows),
                units=dict.fromkeys(LIMITS.values(), "%"),
            ),
            again.section(trials, title=f"Limits of all switches times {growth:g}, decided again"),
        ),
    )


def _say_use(evaluation: Evaluation, switches: pd.DataFrame) -> str:
    """Return the numbers of queries with answers, and of switches near a limit."""
    shares = switches[[name for name in switches if name != "switch"]].to_numpy(float)
    full = int((shares >= 100 * FULL).any(axis=1).sum())
    asked = counted(len(evaluation.problem.queries), "queries")
    return (
        f"{len(evaluation.period_s):,} of {asked} have answers. "
        f"Switches that use over {FULL:.0%} of a limit: {full:,} of {len(switches):,}."
    )


def _say_unanswered(problem: Monitoring, evaluation: Evaluation) -> list[str]:
    """Return the sentence with the names of queries without answers."""
    names = [name for row, name in enumerate(problem.query_names) if row not in evaluation.period_s]
    return [f"Without answers: {', '.join(names)}."] if names else []


def _tabulate_queries(problem: Monitoring, evaluation: Evaluation) -> pd.DataFrame:
    """Return the weight, methods, period and staleness of each query, the heaviest first."""
    table = []
    for row, query in enumerate(problem.asked):
        methods = [method for (query_row, _), method in evaluation.methods.items() if query_row == row]
        words = ", ".join(f"{method} on {methods.count(method)}" for method in METHODS if method in methods)
        is_answered = row in evaluation.period_s
        table.append(
            {
                "query": query.name,
                "weight": query.weight,
                "methods": words if methods else ("no packets" if is_answered else "none"),
                "period": (evaluation.period_s.get(row) or np.nan),
                "staleness": evaluation.find_staleness(row) if is_answered else np.nan,
            }
        )
    frame = pd.DataFrame(table)
    return frame.sort_values("weight", ascending=False, kind="stable", ignore_index=True)


def _tabulate_switches(problem: Monitoring, evaluation: Evaluation) -> pd.DataFrame:
    """Return the share of each limit that each switch uses, percent."""
    columns = {LIMITS[limit]: share for limit, share in evaluation.use_of_limits().items()}
    return pd.DataFrame({"switch": problem.switch_names, **columns})


def _grow_limits(problem: Monitoring, growth: float) -> list[Change[Monitoring]]:
    """Return the problem with each limit of all switches larger, and with a table for each query."""
    changes = []
    for limit, words in LIMITS.items():
        larger = problem.limit(limit) * growth
        if limit in ("rules", "exact_rules"):
            larger = np.minimum(np.floor(larger), MOST_RULES)
        larger = np.minimum(larger, MOST_RATE)
        changes.append(Change(name=f"{words} x {growth:g}", problem=problem.with_switches(**{limit: larger})))
    if not problem.limit("pipeline").all():
        separate = problem.with_switches(pipeline=np.ones(len(problem.switches)))
        changes.append(Change(name="a table of its own for each query", problem=separate))
    return changes
