"""Explanation of a plan: its limits, its gain over the links of today, and its steps."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.studies import Decided, Explanation, Section
from planner.formatting import counted, percent
from planner.options import Options
from planner_models.topology.plan.check import Evaluation, evaluate
from planner_models.topology.plan.plan import Topology
from planner_models.topology.plan.steps import carried_scale
from planner_models.topology.problem.problem import Fabric

FULL = 0.999


def explain(
    problem: Fabric,
    decided: Decided,
    *,
    rows: Annotated[int, Field(ge=1, description="most rows of a table")] = 10,
    options: Options = Options(),  # noqa: ARG001 - the signature of `explain`
) -> Explanation:
    """Explain the blocks and links that limit the plan, its gain over today's links, and its steps."""
    plan: Topology = decided.decision.plan  # type: ignore[assignment]
    evaluation = evaluate(problem, plan)
    sentences = [_say_limit(problem, evaluation), *_say_gain(problem, evaluation)]
    sections = [_tabulate_blocks(problem, evaluation, rows), _tabulate_links(problem, evaluation, rows)]
    if evaluation.changes:
        sentences.append(_say_steps(evaluation))
        sections.append(_tabulate_steps(evaluation, rows))
    return Explanation(
        sentences=tuple(sentences), sections=tuple(section for section in sections if len(section.frame))
    )


def _say_limit(problem: Fabric, evaluation: Evaluation) -> str:
    """Return the traffic that the plan carries, and the number of full links at that."""
    if evaluation.scale <= 0:
        short = np.argwhere(evaluation.routed < 1)[0]
        return f"The demand from {problem.names[short[0]]} to {problem.names[short[1]]} has no whole path."
    use = np.divide(
        evaluation.load,
        evaluation.capacity,
        out=np.zeros_like(evaluation.load),
        where=evaluation.capacity > 0,
    )
    full = int((use * evaluation.scale >= FULL).sum())
    return (
        f"The plan carries {evaluation.scale:.4g} times the demand; {full:,} of "
        f"{int((evaluation.links > 0).sum()):,} "
        "directions between blocks are then full."
    )


def _say_gain(problem: Fabric, evaluation: Evaluation) -> list[str]:
    """Return the traffic that the links of today carry beside it."""
    present = problem.present
    if present is None:
        return []
    today = 0.0 if problem.servable is None else carried_scale(problem.servable, present, enough=np.inf)
    if today <= 0:
        return ["The links of today do not connect all demands."]
    made = int(np.maximum(evaluation.links - present, 0).sum()) // 2
    change = f"{percent(abs(evaluation.scale / today - 1))} {'more' if evaluation.scale >= today else 'less'}"
    words = f"The links of today carry {today:.4g} times the demand: the plan carries {change}, for "
    return [words + f"{counted(made, 'links')} made anew."]


def _say_steps(evaluation: Evaluation) -> str:
    """Return the steps of the change."""
    lowest = min(evaluation.step_scales)
    count = len(evaluation.step_scales)
    words = f"The change takes {counted(count, 'steps')}"
    if lowest >= 1:
        return words + "; the links that stay in service carry all demand in each."
    return words + f"; the links that stay in service carry at least {lowest:.1%} of the demand."


def _tabulate_blocks(problem: Fabric, evaluation: Evaluation, rows: int) -> Section:
    """Return the blocks with the most used ports at the plan's demand scale."""
    scale = evaluation.scale if evaluation.scale > 0 else 1.0
    capacity = evaluation.capacity.sum(axis=1)
    busy = np.maximum(evaluation.load.sum(axis=0), evaluation.load.sum(axis=1)) * scale
    use = np.divide(100 * busy, capacity, out=np.zeros(len(busy)), where=capacity > 0)
    frame = pd.DataFrame(
        {
            "block": problem.names,
            "ports": problem.ports,
            "links": evaluation.links.sum(axis=1),
            "utilization": use,
        }
    )
    frame = frame.sort_values("utilization", ascending=False, kind="stable", ignore_index=True).head(rows)
    title = "Blocks by utilization of all their links, at the demand scale of the plan"
    return Section(title=title, frame=frame, units={"utilization": "%"})


def _tabulate_links(problem: Fabric, evaluation: Evaluation, rows: int) -> Section:
    """Return the directions between blocks with the highest utilization."""
    source, target = np.nonzero(evaluation.links)
    full, load = evaluation.capacity[source, target], evaluation.load[source, target]
    frame = pd.DataFrame(
        {
            "from_block": [problem.names[row] for row in source.tolist()],
            "to_block": [problem.names[row] for row in target.tolist()],
            "links": evaluation.links[source, target],
            "load": load,
            "utilization": 100 * load / full,
        }
    )
    frame = frame.sort_values("utilization", ascending=False, kind="stable", ignore_index=True).head(rows)
    units = {"load": "Mbit/s", "utilization": "%"}
    title = "Directions between blocks by utilization, at the demand itself"
    return Section(title=title, frame=frame, units=units)


def _tabulate_steps(evaluation: Evaluation, rows: int) -> Section:
    """Return the links that each step removes and adds, and the share of the demand that fits in it."""
    assert evaluation.changes is not None
    frame = pd.DataFrame(
        {
            "step": range(1, len(evaluation.changes) + 1),
            "removed": [int(np.maximum(-change, 0).sum()) // 2 for change in evaluation.changes],
            "made": [int(np.maximum(change, 0).sum()) // 2 for change in evaluation.changes],
            "demand_that_fits": [100 * scale for scale in evaluation.step_scales],
        }
    )
    note = "" if len(frame) <= rows else f"the first {rows} of {len(frame)}"
    return Section(title="Steps", frame=frame.head(rows), units={"demand_that_fits": "%"}, note=note)
