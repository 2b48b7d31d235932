"""Explanation of a plan: coflows that wait longest, and gains of other switches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Final

import numpy as np
from pydantic import Field

from planner.contract.studies import Decided, Explanation, Section
from planner.contract.what_if import Change, Reoptimization
from planner.formatting import amount, counted, counted_of
from planner.options import Options
from planner_models.coflows.plan.completion import Completion, find_met, replay
from planner_models.coflows.plan.lower_bounds import alone_ms
from planner_models.coflows.plan.metrics import METRICS, measure
from planner_models.coflows.plan.presentation import UNITS, tabulate_coflows
from planner_models.coflows.problem.problem import MOST_SWITCHES, CoflowsInTime

METRIC: Final = {metric.name: metric for metric in METRICS}


def explain(
    problem: CoflowsInTime,
    decided: Decided,
    *,
    shown: Annotated[int, Field(ge=1, description="coflows that a table shows")] = 10,
    options: Options = Options(),
) -> Explanation:
    """Explain the times of coflows, those that wait longest, and the gain of other switches.

    The gain of a change is found by solving again with the same design.
    """
    plan = decided.decision.plan
    if plan is None:
        raise ValueError("there is no plan to explain")
    completion = replay(problem, plan)
    again = Reoptimization[CoflowsInTime](
        decided, metric=METRIC["mean_completion_ms"], measure=measure, options=options
    )
    trials = list(again.solve_all(_changes(problem)))
    others = [METRIC[name] for name in ("p95_completion_ms", "setups")]
    sections = (
        *_report_deadlines(problem, completion, shown),
        _report_waiting(problem, completion, shown),
        again.section(trials, title="Gains of other switches", others=others),
    )
    return Explanation(sentences=(*_describe(problem, completion), again.sentence(trials)), sections=sections)


def _describe(problem: CoflowsInTime, completion: Completion) -> Iterator[str]:
    """Yield the number of complete coflows, and their times compared with the least."""
    taken = completion.coflow_ms
    ended = ~np.isnan(taken)
    yield f"{counted_of(int(ended.sum()), len(taken), 'coflows', 'are')} complete."
    if ended.any():
        alone = alone_ms(problem)
        yield (
            f"95% of them take at most {amount(float(np.quantile(taken[ended], 0.95)), 'ms')}; no plan has "
            f"less than {amount(float(np.quantile(alone[ended], 0.95)), 'ms')}."
        )
    if problem.has_deadlines:
        is_met, has_due = find_met(problem, taken), np.isfinite(problem.due_ms)
        says = f"{counted_of(int(is_met.sum()), int(has_due.sum()), 'deadlines', 'are')} met"
        too_short = int((has_due & (alone_ms(problem) > problem.due_ms - problem.arrival_ms)).sum())
        yield says + (
            f"; {counted(too_short, 'deadlines', 'are')} too short for any plan." if too_short else "."
        )


def _report_deadlines(problem: CoflowsInTime, completion: Completion, shown: int) -> Iterator[Section]:
    """Report the coflows that miss their deadline, those of most weight first, with the reason.

    A coflow that takes longer alone than its deadline cannot meet it; of the others, its busiest link has
    more data of coflows that are due by then than it carries in time, or other coflows were sent first.
    """
    missed = np.flatnonzero(np.isfinite(problem.due_ms) & ~find_met(problem, completion.coflow_ms))
    if not len(missed):
        return
    alone, deadline = alone_ms(problem), problem.due_ms - problem.arrival_ms
    rows = missed[np.lexsort((missed, -problem.weight[missed]))][:shown]
    reasons = [
        "a rack has failed"
        if not problem.can_complete[row]
        else "too short even alone"
        if alone[row] > deadline[row]
        else "others are sent first"
        for row in rows
    ]
    frame = tabulate_coflows(problem, completion, rows).drop(columns=["flows"])
    frame = frame.assign(deadline=deadline[rows], weight=problem.weight[rows], reason=reasons)
    yield Section(title="Missed deadlines", frame=frame, units={**UNITS, "deadline": "ms"})


def _report_waiting(problem: CoflowsInTime, completion: Completion, shown: int) -> Section:
    """Report the coflows that wait longest beyond their least time."""
    frame = tabulate_coflows(problem, completion, np.arange(len(problem.coflows)))
    waits = frame["completion_time"] - frame["alone"]
    order = np.argsort(-waits.fillna(np.inf).to_numpy(float), kind="stable")[:shown]
    return Section(
        title="Coflows that wait longest", frame=frame.iloc[order].reset_index(drop=True), units=UNITS
    )


def _changes(problem: CoflowsInTime) -> Iterator[Change[CoflowsInTime]]:
    """Yield shorter set-up times, another circuit switch, and faster links."""
    if problem.setup_ms > 0:
        yield Change(name="set-up, half as long", problem=problem.with_switch(setup_ms=problem.setup_ms / 2))
    if problem.switches < MOST_SWITCHES:
        yield Change(
            name="one more circuit switch",
            problem=problem.with_switch(circuit_switches=problem.switches + 1),
        )
    yield Change(name="circuits, twice the rate", problem=problem.with_rates(circuit=2.0))
    if problem.has_packet_switch:
        racks = problem.racks.assign(packet_mbps=2 * problem.racks["packet_mbps"])
        yield Change(name="packet switch, twice the rate", problem=replace(problem, racks=racks))
