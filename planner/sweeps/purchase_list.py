"""Purchases of a plan as a list of upgrades, for systems with plans of purchases (`Studies.budget`).

The explanation of the plan has its purchases in order, and what smaller budgets reach (`Section.role`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from planner.contract.parameters import parameters_of
from planner.contract.studies import Explanation, Section
from planner.contract.system import System
from planner.errors import InputError
from planner.runs.what_if import Explained, explain
from planner.scenarios.arguments import OneDesign
from planner.scenarios.scenario import Scenario
from planner.sweeps.upgrade_list import Point, Step, Upgrades

ACTION = "Buy"


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
