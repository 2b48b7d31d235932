"""Upgrades by a system with plans of purchases: the cheapest set that serves all, and lists of purchases.

A system declares its upgrades as a problem of another one (`Studies.purchases`), whose design proves the cost
of its purchases. The cheapest set is then checked by the design that was asked for. For systems whose own
plans are purchases (`Studies.budget`), the explanation of a plan has its purchases in order, and what smaller
budgets reach (`Section.role`).
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, Decimal
from functools import reduce
from math import gcd
from typing import Any, Final

import pandas as pd

from planner.contract.elements import Action, ElementKind
from planner.contract.parameters import parameters_of
from planner.contract.studies import Explanation, Section
from planner.contract.system import System
from planner.errors import InputError
from planner.formatting import few
from planner.options import Options
from planner.runs.evaluation import evaluate
from planner.runs.run import Run
from planner.runs.trials import Adjustments, Trials
from planner.runs.what_if import Explained, explain
from planner.scenarios.arguments import OneDesign
from planner.scenarios.catalogue import find_system
from planner.scenarios.scenario import Entry, Scenario
from planner.search.tolerances import ROUNDING
from planner.sweeps.upgrade_list import CheapestSet, Point, Step, Upgrades, exact_cost

TIME_LIMIT_S: Final = 60.0
"""Time limit of the search, unless the options have one."""
GAP: Final = 1e-6
"""Relative gap of the cost that the search tries to reach."""
ACTION = "Buy"


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


def list_purchases(
    scenario: Scenario, design: OneDesign | None, steps: int, budget: float | None
) -> Upgrades:
    """Return the purchases of a design's plan, at most so many steps, as a list of upgrades.

    budget  limits what the plan costs; None: as the scenario has it
    """
    system, name = scenario.system, scenario.system.studies.budget
    study = system.studies.what_if
    assert study is not None
    begin = time.perf_counter()
    changes = {} if budget is None else {f"problem.{name}": budget}
    arguments: dict[str, Any] = {"steps": steps} if "steps" in parameters_of(study) and steps else {}
    explained = explain(scenario, design=design, changes=changes, **arguments)
    explanation = explained.explanation
    roles = {} if explanation is None else _by_role(explanation)
    ladder, budgets = roles.get("purchases") if steps else None, roles.get("budgets")
    bought = [] if ladder is None else _read_steps(explained, ladder)
    points = () if budgets is None else _read_points(system, budgets)
    return Upgrades(
        run=explained.run,
        steps=tuple(bought),
        metric=system.ranks[0],
        points=points,
        has_costs=True,
        budget=budget,
        ending=_name_ending(steps, bought),
        adjustments={} if budget is None else {str(name): budget},
        solved=1 + len(points),
        seconds=time.perf_counter() - begin,
        before=_metrics_before(explained, ladder),
        findings=() if explanation is None else explanation.sentences,
    )


def _name_ending(steps: int, bought: Sequence[Step]) -> str:
    """Return the reason why the list ends."""
    if not steps:
        return "no step is asked for"
    return "these are all purchases of the plan" if bought else "its plan buys nothing"


def _metrics_before(explained: Explained, ladder: Section | None) -> dict[str, float | None]:
    """Return the metrics before the first purchase; those of the plan where it buys nothing."""
    if ladder is None or len(ladder.frame) < 2:
        return dict(explained.metrics)
    return _metrics_of(explained, ladder.frame[explained.run.system.ranks[0].name].iloc[0])


def refuse(system: System, given: Mapping[str, Any]) -> None:
    """Raise InputError for settings of a search among single upgrades, which a list of purchases has not."""
    faults = [
        f"{name}: plans of {system.name} choose all purchases together, without a search among single ones"
        for name, value in given.items()
        if value is not None
    ]
    if faults:
        raise InputError(*faults)


def _by_role(explanation: Explanation) -> dict[str, Section]:
    return {section.role: section for section in explanation.sections if section.role}


def _metrics_of(explained: Explained, value: float) -> dict[str, float | None]:
    """Return the known metrics of a part of the purchases: its value, and the request."""
    system = explained.run.system
    total = system.plan.headline.total
    asked = explained.metrics.get(total) if total else None
    return {system.ranks[0].name: value} | ({total: asked} if total else {})


def _losses_of(system: System, metrics: Mapping[str, float | None]) -> dict[str, float]:
    """Return the unserved part of the request, by the first metric of losses."""
    headline = system.plan.headline
    total, value = metrics.get(headline.total), metrics.get(headline.metric)
    missing = (total or 0.0) - (value or 0.0)
    return system.losses(dict(metrics) | dict.fromkeys(list(headline.losses)[:1], missing))


def _read_steps(explained: Explained, ladder: Section) -> list[Step]:
    """Return a step for each purchase; the last one has all metrics of the plan."""
    system, frame = explained.run.system, ladder.frame
    metric = system.ranks[0]
    values = frame[metric.name].tolist()
    steps = []
    rows = frame.to_dict("records")
    for index in range(1, len(rows)):
        row = rows[index]
        name = str(row[frame.columns[0]])
        element, _, adds = (
            name.partition(": ") if name.count(": ") == 1 else (name, "", "")
        )  # else of several
        is_last = index == len(rows) - 1
        metrics = dict(explained.metrics) if is_last else _metrics_of(explained, values[index])
        steps.append(
            Step(
                kind="",
                element=element,
                action=ACTION,
                adds=adds,
                cost=float(row["step_cost"]),
                adjustments={},
                metrics=metrics,
                losses=_losses_of(system, metrics),
                gain=float(values[index] - values[index - 1]),
                metric=metric.name,
                tried=1,
                candidates=1,
                is_proven=False,
            )
        )
    return steps


def _read_points(system: System, budgets: Section) -> tuple[Point, ...]:
    """Return the value of each budget, with the bound of all plans within it."""
    frame, metric = budgets.frame, system.ranks[0]
    bound = next((name for name in frame if str(name).startswith("at_most")), None)
    points = []
    for row in frame.to_dict("records"):
        limit = None if bound is None or pd.isna(row[bound]) else float(row[bound])
        points.append(
            Point(
                cost=float(row["budget"]),
                value=float(row[metric.name]),
                elements=(),
                adjustments={str(system.studies.budget): float(row["budget"])},
                bound=limit,
            )
        )
    return tuple(points)
