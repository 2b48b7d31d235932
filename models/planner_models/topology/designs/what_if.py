"""Explanation of a plan: what limits it, what it gains over the links of today, and its steps."""

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
    """Explain which blocks and links limit the plan, what it gains over today's links, and its steps."""
    plan: Topology = decided.decision.plan  # type: ignore[assignment]
    done = evaluate(problem, plan)
    sentences = [_say_limit(problem, done), *_say_gain(problem, done)]
    sections = [_tabulate_blocks(problem, done, rows), _tabulate_links(problem, done, rows)]
    if done.changes:
        sentences.append(_say_steps(done))
        sections.append(_tabulate_steps(done, rows))
    return Explanation(sentences=tuple(sentences), sections=tuple(one for one in sections if len(one.frame)))


def _say_limit(problem: Fabric, done: Evaluation) -> str:
    """Return what the plan carries, and how many links are full at that."""
    if done.scale <= 0:
        short = np.argwhere(done.routed < 1)[0]
        return f"The demand from {problem.names[short[0]]} to {problem.names[short[1]]} has no whole path."
    use = np.divide(done.load, done.capacity, out=np.zeros_like(done.load), where=done.capacity > 0)
    full = int((use * done.scale >= FULL).sum())
    return (
        f"The plan carries {done.scale:.4g} times the demand; {full:,} of {int((done.links > 0).sum()):,} "
        "directions between blocks are then full."
    )


def _say_gain(problem: Fabric, done: Evaluation) -> list[str]:
    """Return what the links of today carry beside it."""
    present = problem.present
    if present is None:
        return []
    today = 0.0 if problem.servable is None else carried_scale(problem.servable, present, enough=np.inf)
    if today <= 0:
        return ["The links of today do not connect all demands."]
    made = int(np.maximum(done.links - present, 0).sum()) // 2
    change = f"{percent(abs(done.scale / today - 1))} {'more' if done.scale >= today else 'less'}"
    words = f"The links of today carry {today:.4g} times the demand: the plan carries {change}, for "
    return [words + f"{counted(made, 'links')} made anew."]


def _say_steps(done: Evaluation) -> str:
    """Return how the change is made."""
    least = min(done.step_scales)
    count = len(done.step_scales)
    words = f"The change takes {counted(count, 'steps')}"
    if least >= 1:
        return words + "; the links that stay in service carry all demand in each."
    return words + f"; the links that stay in service carry at least {least:.1%} of the demand."


def _tabulate_blocks(problem: Fabric, done: Evaluation, rows: int) -> Section:
    """Return the blocks whose ports are used most at the plan's demand scale."""
    scale = done.scale if done.scale > 0 else 1.0
    capacity = done.capacity.sum(axis=1)
    busy = np.maximum(done.load.sum(axis=0), done.load.sum(axis=1)) * scale
    use = np.divide(100 * busy, capacity, out=np.zeros(len(busy)), where=capacity > 0)
    frame = pd.DataFrame(
        {
            "block": problem.names,
            "ports": problem.ports,
            "links": done.links.sum(axis=1),
            "utilization": use,
        }
    )
    frame = frame.sort_values("utilization", ascending=False, kind="stable", ignore_index=True).head(rows)
    title = "Blocks by utilization of all their links, at the demand scale of the plan"
    return Section(title=title, frame=frame, units={"utilization": "%"})


def _tabulate_links(problem: Fabric, done: Evaluation, rows: int) -> Section:
    """Return the directions between blocks with the highest utilization."""
    source, target = np.nonzero(done.links)
    full, load = done.capacity[source, target], done.load[source, target]
    frame = pd.DataFrame(
        {
            "from_block": [problem.names[one] for one in source.tolist()],
            "to_block": [problem.names[one] for one in target.tolist()],
            "links": done.links[source, target],
            "load": load,
            "utilization": 100 * load / full,
        }
    )
    frame = frame.sort_values("utilization", ascending=False, kind="stable", ignore_index=True).head(rows)
    units = {"load": "Mbit/s", "utilization": "%"}
    title = "Directions between blocks by utilization, at the demand itself"
    return Section(title=title, frame=frame, units=units)


def _tabulate_steps(done: Evaluation, rows: int) -> Section:
    """Return the links that each step removes and makes, and how much of the demand fits in it."""
    assert done.changes is not None
    frame = pd.DataFrame(
        {
            "step": range(1, len(done.changes) + 1),
            "removed": [int(np.maximum(-change, 0).sum()) // 2 for change in done.changes],
            "made": [int(np.maximum(change, 0).sum()) // 2 for change in done.changes],
            "demand_that_fits": [100 * scale for scale in done.step_scales],
        }
    )
    note = "" if len(frame) <= rows else f"the first {rows} of {len(frame)}"
    return Section(title="Steps", frame=frame.head(rows), units={"demand_that_fits": "%"}, note=note)
