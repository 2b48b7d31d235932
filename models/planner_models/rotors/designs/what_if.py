"""Explanation of a plan: use of circuits, relayed traffic, waits, and demand that is not delivered."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from planner.contract.studies import Decided, Explanation
from planner.formatting import agree, amount, counted
from planner.options import Options
from planner_models.rotors.plan.check import Evaluation, evaluate
from planner_models.rotors.plan.elements import tabulate_pairs
from planner_models.rotors.plan.metrics import measure_waits
from planner_models.rotors.plan.plan import Routing
from planner_models.rotors.plan.timetable import ROTATION
from planner_models.rotors.problem.problem import RotorNetwork

FULL = 0.999


def explain(
    problem: RotorNetwork,
    decided: Decided,
    *,
    rows: Annotated[int, Field(ge=1, description="most rows of a table")] = 10,
    options: Options = Options(),  # noqa: ARG001 - the signature of `explain`
) -> Explanation:
    """Explain the circuits' time, relayed traffic, waits, and the pairs with demand left over."""
    plan: Routing = decided.decision.plan  # type: ignore[assignment]
    done = evaluate(problem, plan)
    sentences = [_say_circuits(problem, done), _say_load(problem, done)]
    mean, worst = measure_waits(done)
    if mean is not None and worst is not None:
        sentences.append(
            f"Traffic waits {mean:,.4g} us for circuits in the mean and {worst:,.4g} us at most, without "
            "queues."
        )
    if problem.urgent_mbps.any():
        sentences.append(_say_urgent(problem, done))
    return Explanation(sentences=tuple(sentences), sections=tabulate_pairs(problem, done, rows=rows))


def _say_circuits(problem: RotorNetwork, done: Evaluation) -> str:
    """Return how the switches work, and the part of the time in which they are not dark."""
    timetable = done.timetable
    duty = f"circuits are up {timetable.duty_cycle:.1%} of the time"
    count = counted(problem.count, "switches")
    if timetable.kind == ROTATION:
        positions = problem.rotation.positions
        matchings = f"{counted(positions, 'matchings')} each"
        rest = agree(problem.count, "repeat")
        return f"{count} {rest} {matchings} every {timetable.period_us:,.6g} us; {duty}."
    days = len(np.unique(np.stack([timetable.switch.astype(float), timetable.start]), axis=1).T)
    size = f"{counted(days, 'days')} on {count}"
    return f"A schedule of {size} repeats every {timetable.period_us:,.6g} us; {duty}."


def _say_load(problem: RotorNetwork, done: Evaluation) -> str:
    """Return how much of the circuits' time traffic uses, and what is relayed."""
    full, load = float(done.capacity.sum()), float(done.load.sum())
    use = load / full if full > 0 else 0.0
    lost = float((problem.offered_mbps - done.delivered).clip(min=0).sum())
    words = f"Traffic uses {use:.1%} of the time of circuits"
    extra = load - float(done.delivered.sum())
    if extra > 1e-9 * max(load, 1.0):
        words += f", {extra / full:.1%} for second and further links"
    return words + (f"; {amount(lost, 'Mbit/s')} is not delivered." if lost > 1e-6 else "; all is delivered.")


def _say_urgent(problem: RotorNetwork, done: Evaluation) -> str:
    """Return how much of the urgent traffic does not wait."""
    urgent = amount(float(problem.urgent_mbps.sum()), "Mbit/s")
    if not done.at_once.any():
        return f"All urgent traffic, {urgent}, waits for circuits."
    share = float(done.at_once.sum() / problem.urgent_mbps.sum())
    sent = done.at_once > 0
    hops = float((done.at_once[sent] * done.expander.hops[sent]).sum() / done.at_once.sum())
    return f"Of the urgent traffic, {urgent}, {share:.1%} never waits; it takes {hops:.3g} links in the mean."
