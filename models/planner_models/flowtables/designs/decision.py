"""Decisions of system `flowtables` from the entries of a cache, with their proof."""

from __future__ import annotations

from typing import Final

from planner.contract.design import Decision
from planner.options import Options
from planner.search.judged import gap_of, judged, undecided
from planner_models.flowtables.plan.classification import classify
from planner_models.flowtables.plan.lookup import Table
from planner_models.flowtables.plan.metrics import find_punts, measure
from planner_models.flowtables.plan.plan import Cache, make_plan
from planner_models.flowtables.problem.problem import FlowTables

BACKEND: Final = "rule"
METRIC: Final = "cpu_per_connection_us"


def decide(
    problem: FlowTables,
    table: Table,
    *,
    options: Options,
    bound: float | None = None,
    scope: str | None = None,
    metric: str = METRIC,
    backend: str = BACKEND,
) -> Decision[Cache]:
    """Return the decision to hold the entries of a table.

    bound  of `metric`, without upcalls to the controller; None for unknown
    """
    entries, masks = int(table.counts[0]), int(table.counts[1])
    value, mask_of = table.value[:entries].copy(), table.mask_of[:entries].copy()
    names = problem.actions
    # the value of an entry is one of its headers: the action of all of them
    action = [names[number] for number in classify(value, problem.entries).tolist()]
    plan = make_plan(problem, value, mask_of, table.masks[:masks].copy(), action)
    if bound is not None and problem.is_evaluated:
        scope = "entries within those that the tables of the switch make" + (f"; {scope}" if scope else "")
    objective = measure(problem, plan, None)[metric]
    assert objective is not None
    if bound is not None and metric == METRIC:  # packets to the controller are upcalls in every cache
        bound += float(find_punts(problem).mean()) * problem.cost("upcall_us")
    proof = judged(
        "min",
        objective,
        bound,
        gap=gap_of(options),
        bound_scope=scope,
        metric=metric,
        backend=backend,
    )
    if options.service == "all" and plan.megaflows["connections"].sum() < len(problem.flows):
        reason = (
            f"the cache may hold {problem.most_entries} entries, and this plan needs {entries}; another may "
            "need fewer"
        )
        return Decision(plan=None, proof=undecided(reason))
    return Decision(plan=plan, proof=proof)
