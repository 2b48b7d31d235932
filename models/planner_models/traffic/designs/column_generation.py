"""Column generation for the largest concurrent flow, or the least utilization, over all routes.

Shortest-path trees are columns, full links are rows; `planner_models.flows.tree_columns` searches.

source  Dantzig-Wolfe decomposition; price and bound: Shahrokhi and Matula 1990, section 2
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Final, Literal

import numpy as np
from pydantic import Field

from planner.contract.design import Decision
from planner.contract.progress import report
from planner.options import Options
from planner.search.deadline import Deadline
from planner.threads import limit_blas
from planner_models.flows import previous_trees
from planner_models.flows.link_flow_program import METRIC_OF
from planner_models.flows.reduced_problem import ReducedProblem
from planner_models.flows.tree_columns import DEFAULT_GAP, Iteration, search, uses_paths
from planner_models.traffic.designs.routable import shed_unreachable
from planner_models.traffic.plan.flow_decision import (
    decide_without_demand,
    make_decision,
    refuse_solver_options,
)
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic

PLAN_S_PER_DEMAND: Final = 3e-6  # of the time limit, reserved for the tables of the plan

MinMaxObjective = Annotated[
    Literal["concurrent", "utilization"],
    Field(description="concurrent: grow all demands together; utilization: least busiest link"),
]


@shed_unreachable
def route(
    problem: Traffic,
    *,
    objective: MinMaxObjective = "concurrent",
    symmetry: Annotated[bool, Field(description="merge equivalent nodes before the search")] = True,
    enough: float = np.inf,
    options: Options = Options(),
    previous: Decision[Routing] | None = None,
) -> Decision[Routing]:
    """Solve for the best routing over all routes by column generation over shortest-path trees.

    Stops at `options.gap`, by default 1e-6; at a time limit it returns the incumbent with its bound.
    One thread unless `options.threads` says otherwise (dense algebra only); equal seeds give equal
    plans. A plan that would be too large per pair has flows per target. Trees of
    `previous`, where it has some, are the first columns.

    enough   utilization; once it is proven that all routings exceed it, the search ends with its bound alone

    returns  Decision with a Routing; the bound holds for all routings
    raises   InputError for a backend or an algorithm: it is its own solver
    source   Sen et al. 2013, equation (1); concurrent flow: Shahrokhi and Matula 1990
    """
    refuse_solver_options("columns", options)
    if not len(problem.targets):
        return decide_without_demand(problem, objective)
    deadline = Deadline.of(options).reserve(PLAN_S_PER_DEMAND * len(problem.demands))
    gap = DEFAULT_GAP if options.gap is None else options.gap
    reduced = ReducedProblem.of(problem, symmetry=symmetry)
    start = None if uses_paths(reduced) else previous_trees.find_trees(reduced, previous)
    with limit_blas(options.threads):
        result = search(
            reduced,
            start=start,
            gap=gap,
            seed=options.seed or 0,
            deadline=deadline,
            enough=enough,
            observe=partial(_report, objective) if np.isinf(enough) else None,
        )
    split = None if result.bound > enough else result.split
    decision = make_decision(
        problem, reduced, objective, split=split, bound=result.bound, gap=gap, backend="column generation"
    )
    return previous_trees.keep_trees(decision, reduced, split)


def _report(objective: MinMaxObjective, iteration: Iteration) -> None:
    """Report the incumbent and the bound as values of the objective's metric."""
    value, bound = iteration.utilization, iteration.bound
    if objective == "concurrent":
        value, bound = (1.0 / x if x > 0 else np.inf for x in (value, bound))
    report(METRIC_OF[objective], value, bound)
