"""The cheapest set of upgrades that serves all, by a system with plans of purchases.

A system declares its upgrades as a problem of another one (`Studies.purchases`), whose design proves the cost
of its purchases. The set is then checked by the design that was asked for.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from decimal import ROUND_CEILING, Decimal
from functools import reduce
from math import gcd
from typing import Final

from planner.contract.elements import Action, ElementKind
from planner.errors import InputError
from planner.formatting import few
from planner.options import Options
from planner.runs.evaluation import evaluate
from planner.runs.run import Run
from planner.runs.trials import Adjustments, Trials
from planner.scenarios.catalogue import find_system
from planner.scenarios.scenario import Entry
from planner.search.tolerances import ROUNDING
from planner.sweeps.upgrade_list import CheapestSet, exact_cost

TIME_LIMIT_S: Final = 60.0
"""Time limit of the search, unless the options have one."""
GAP: Final = 1e-6
"""Relative gap of the cost that the search tries to reach."""


def find_cheapest_set(
    trials: Trials, kind: ElementKind, action: Action, costs: Mapping[str, float]
) -> CheapestSet:
    """Return the cheapest set of upgrades that serves all.

    costs   of the upgrade of each element that can be bought, by name
    raises  InputError where the system, or this problem, has no such sets; SolverFailure
    """
    begin = time.perf_counter()
    run = _run_purchases(trials, kind, action, costs)
    if run.error is not None:
        raise run.error
    if run.plan is None:
        raise InputError(f"no set was found ({run.status})")
    bought = set(run.plan.to_tables()["purchases"]["link"].astype(str))
    elements = tuple(name for name in costs if name in bought)
    adjustments: Adjustments = trials.adjustments
    for name in elements:
        adjustments = action.apply(adjustments, name)
    outcome = trials.outcome(adjustments)
    return CheapestSet(
        elements=elements,
        cost=float(sum((exact_cost(costs[name]) for name in elements), Decimal(0))),
        bound=_bound_of(run, costs),
        serves_all=not run.constraints.lost,
        adjustments=adjustments,
        metrics=outcome.metrics,
        lost=outcome.losses,
        seconds=time.perf_counter() - begin,
    )


def _run_purchases(trials: Trials, kind: ElementKind, action: Action, costs: Mapping[str, float]) -> Run:
    """Return the run of the design that finds the purchases."""
    study = trials.system.studies.purchases
    if study is None:
        raise InputError(f"{trials.system.name}: has no cheapest sets of upgrades")
    changed = set(_values(trials.adjustments, action)) & set(costs)
    if changed:
        raise InputError(f"{few(sorted(changed))}: {action.parameter} has another value already")
    problem = trials.make_problem(trials.adjustments)
    names = set(kind.names(problem))
    offered = {name: cost for name, cost in costs.items() if name in names}  # those that have not failed
    system = find_system(study.system)
    purchases = system.problem.from_tables(study.tables(problem, action, offered))
    entry = Entry(label=study.design, design=system.design(study.design))
    return evaluate(system, purchases, entry, options=_options(trials.options))


def _values(adjustments: Adjustments, action: Action) -> Collection[str]:
    """Return the elements for which the adjustments have a value of the action's parameter."""
    present: Collection[str] = adjustments.get(action.parameter) or ()
    return present


def _options(options: Options) -> Options:
    limit = TIME_LIMIT_S if options.time_limit_s is None else options.time_limit_s
    return replace(options, service="best", gap=GAP, time_limit_s=limit)


def _bound_of(run: Run, costs: Mapping[str, float]) -> float | None:
    """Return the proven least cost, raised to the next sum that costs can have; None for unknown."""
    name = run.system.plan.headline.then
    bound = next((rank.bound for rank in run.proof.ranks if rank.metric == name), None)
    if bound is None:
        return None
    step = _common_divisor([exact_cost(cost) for cost in costs.values()])
    if step == 0:
        return bound
    sums = (Decimal(repr(bound)) * (1 - Decimal(repr(ROUNDING))) / step).to_integral_value(ROUND_CEILING)
    return max(bound, float(sums * step))


def _common_divisor(costs: list[Decimal]) -> Decimal:
    """Return the largest amount of which every cost is a multiple; 0 where all costs are 0."""
    scale = max((-int(cost.as_tuple().exponent) for cost in costs), default=0)
    unit = Decimal(1).scaleb(-max(0, scale))
    return unit * reduce(gcd, (int(cost / unit) for cost in costs), 0)
