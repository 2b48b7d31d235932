"""Explanation of a plan: use of circuits, relayed traffic, waits, and demand that is not delivered."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from planner.contract.studies import Decided, Explanation
from planner.formatting import agree, amount, counted
from planner.options import Options
from planner_models.rotors.plan.check import Evaluation, evaluate
from planner_models.rotors.plan.metrics import measure_waits
from planner_models.rotors.plan.plan import Routing
from planner_models.rotors.plan.presentation import tabulate_pairs
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
    evaluation = evaluate(problem, plan)
    sentences = [_say_circuits(problem, evaluation), _say_load(problem, evaluation)]
    mean, worst = measure_waits(evaluation)
    if mean is not None and worst is not None:
        sentences.append(
            f"Traffic waits {mean:,.4g} us for circuits in the mean and {worst:,.4g} us at most, without "
            "queues."
        )
    if problem.urgent_mbps.any():
        sentences.append(_say_urgent(problem, evaluation))
    return Explanation(sentences=tuple(sentences), sections=tabulate_pairs(problem, evaluation, rows=rows))


def _say_circuits(problem: RotorNetwork, evaluation: Evaluation) -> str:
    """Return the operation of the switches, and the share of the time in which they are not dark."""
    timetable = evaluation.timetable
    duty = f"circuits are up {timetable.duty_cycle:.1%} of the time"
    count = counted(problem.count, "switches")
    if timetable.kind == ROTATION:
        positions = problem.rotation.positions
        matchings = f"{counted(positions, 'matchings')} each"
        verb = agree(problem.count, "repeat")
        return f"{count} {verb} {matchings} every {timetable.period_us:,.6g} us; {duty}."
    days = len(np.unique(np.stack([timetable.switch.astype(float), timetable.start]), axis=1).T)
    size = f"{counted(days, 'days')} on {count}"
    return f"A schedule of {size} repeats every {timetable.period_us:,.6g} us; {duty}."


def _say_load(problem: RotorNetwork, evaluation: Evaluation) -> str:
    """Return the used share of the circuits' time, and the relayed traffic."""
    full, load = float(evaluation.capacity.sum()), float(evaluation.load.sum())
    use = load / full if full > 0 else 0.0
    lost = float((problem.offered_mbps - evaluation.delivered).clip(min=0).sum())
    words = f"Traffic uses {use:.1%} of the time of circuits"
    extra = load - float(evaluation.delivered.sum())
    if extra > 1e-9 * max(load, 1.0):
        words += f", {extra / full:.1%} for second and further links"
    return words + (f"; {amount(lost, 'Mbit/s')} is not delivered." if lost > 1e-6 else "; all is delivered.")


def _say_urgent(problem: RotorNetwork, evaluation: Evaluation) -> str:
    """Return the share of the urgent traffic that does not wait."""
    urgent = amount(float(problem.urgent_mbps.sum()), "Mbit/s")
    if not evaluation.at_once.any():
        return f"All urgent traffic, {urgent}, waits for circuits."
    share = float(evaluation.at_once.sum() / problem.urgent_mbps.sum())
    sent = evaluation.at_once > 0
    hops = float((evaluation.at_once[sent] * evaluation.expander.hops[sent]).sum() / evaluation.at_once.sum())
    return f"Of the urgent traffic, {urgent}, {share:.1%} never waits; it takes {hops:.3g} links in the mean."
