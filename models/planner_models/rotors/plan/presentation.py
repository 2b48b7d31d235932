"""Presentation of plans of system `rotors`: drawings, and elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from planner.contract.drawing import Distribution, Drawing
from planner.contract.elements import ElementKind, ElementReport, Fact
from planner.contract.studies import Decided, Section
from planner.formatting import amount, amount_of
from planner.options import Options
from planner_models.circuits.plan import presentation as circuits
from planner_models.circuits.plan.presentation import (
    PAIR_ACTIONS,
    draw_timeline,
    list_racks,
    require_pair,
    require_rack,
)
from planner_models.circuits.problem.drawing import PAIR, RACK, draw_ring
from planner_models.rotors.plan.check import Evaluation, evaluate
from planner_models.rotors.plan.plan import Routing
from planner_models.rotors.problem.problem import RotorNetwork

POINTS: Final = 200
MOST_ROWS: Final = 20
RACK_ACTIONS: Final = tuple(
    action for action in circuits.RACK_ACTIONS if action.parameter in ("fail_racks", "circuit_factors")
)
"""Those of system `circuits`, without a packet switch."""


def draw(problem: RotorNetwork, plan: Routing) -> Sequence[Drawing]:
    """Draw circuits by sending rack over one period, unserved demand, and the waiting time of traffic."""
    evaluation = evaluate(problem, plan)
    offered = problem.offered_mbps
    remaining = np.maximum(offered - evaluation.delivered, 0.0)

    def note(i: int, j: int) -> str:
        return f"delivers {amount_of(float(evaluation.delivered[i, j]), float(offered[i, j]), 'Mbit/s')}"

    ring = draw_ring(
        problem, offered, title="Demand left over", note=note, left_bits=remaining, unit="Mbit/s"
    )
    shown: list[Drawing] = []
    if len(plan.circuits):
        days = plan.circuits.assign(duration_us=plan.circuits["end_us"] - plan.circuits["start_us"])
        shown.append(draw_timeline(problem, days, demand=offered, remaining=remaining, note=note))
    shown.append(ring)
    waits = _weigh_waits(evaluation.waits[0], evaluation.paths.rate, float(evaluation.at_once.sum()))
    if len(waits):
        shown.append(
            Distribution(
                title="Mean wait for circuits by traffic", values={"traffic": waits}, what="wait", unit="us"
            )
        )
    return shown


def draw_demand(problem: RotorNetwork) -> Sequence[Drawing]:
    """Draw the racks in a ring, linked by demand."""
    offered = problem.offered_mbps
    rate = problem.count * problem.racks["circuit_mbps"].to_numpy(float)
    busiest = np.maximum(offered.sum(axis=1), offered.sum(axis=0))
    return (
        draw_ring(
            problem,
            offered,
            title="Demand between racks",
            load=100 * busiest / rate,
            note=lambda i, j: f"demand {amount(float(offered[i, j]), 'Mbit/s')}",
            unit="Mbit/s",
        ),
    )


def _weigh_waits(mean: np.ndarray, rate: np.ndarray, at_once: float) -> pd.Series:
    """Return the mean waits of equal parts of the traffic, at most 200, in order."""
    finite = np.isfinite(mean)
    waits = np.concatenate([[0.0], mean[finite]])
    weight = np.concatenate([[at_once], rate[finite]])
    if weight.sum() <= 0:
        return pd.Series(dtype=float)
    order = np.argsort(waits, kind="stable")
    share = np.cumsum(weight[order]) / weight.sum()
    index = np.searchsorted(share, (np.arange(POINTS) + 0.5) / POINTS)
    return pd.Series(waits[order][np.minimum(index, len(order) - 1)])


def list_pairs(problem: RotorNetwork) -> list[str]:
    """Return the names of all pairs of racks with demand."""
    return problem.name_ends(*np.nonzero(problem.offered_mbps))


def _evaluate(problem: RotorNetwork, decided: Decided) -> Evaluation:
    """Return the evaluation of a decision; raise InputError if it has no plan."""
    return evaluate(problem, decided.plan)


def describe_pair(problem: RotorNetwork, decided: Decided, name: str, options: Options) -> ElementReport:  # noqa: ARG001
    """Describe the demand of a pair of racks, its routes, and their waiting times."""
    i, j = require_pair(problem, problem.demands, name)
    evaluation = _evaluate(problem, decided)
    mean, _ = evaluation.timetable.wait_us(*(np.array([row]) for row in (i, i, j)))
    facts = [
        Fact(label="Demand", value=float(problem.offered_mbps[i, j]), unit="Mbit/s"),
        Fact(label="Delivered", value=float(evaluation.delivered[i, j]), unit="Mbit/s"),
        Fact(label="Urgent", value=float(problem.urgent_mbps[i, j]), unit="Mbit/s"),
        Fact(label="Sent at once", value=float(evaluation.at_once[i, j]), unit="Mbit/s"),
        Fact(label="Direct capacity", value=float(evaluation.capacity[i, j]), unit="Mbit/s"),
        Fact(label="Mean wait, direct", value=float(mean[0]) if np.isfinite(mean[0]) else None, unit="us"),
    ]
    rows = np.flatnonzero((evaluation.paths.source == i) & (evaluation.paths.target == j))
    rows = rows[np.argsort(-evaluation.paths.rate[rows], kind="stable")][:MOST_ROWS]
    via = evaluation.paths.via[rows]
    frame = pd.DataFrame(
        {
            "via": np.where(via == i, "direct", problem.names[via].astype(str)),
            "rate": evaluation.paths.rate[rows],
            "mean_wait": evaluation.waits[0][rows],
            "longest_wait": evaluation.waits[1][rows],
        }
    )
    units = {"rate": "Mbit/s", "mean_wait": "us", "longest_wait": "us"}
    sections = (Section(title="Routes", frame=frame, units=units),) if len(frame) else ()
    return ElementReport(facts=tuple(facts), sections=sections)


def describe_rack(problem: RotorNetwork, decided: Decided, name: str, options: Options) -> ElementReport:  # noqa: ARG001
    """Describe the traffic that a rack sends, receives and relays for others, and its circuits."""
    rack = require_rack(problem, name)
    evaluation = _evaluate(problem, decided)
    paths = evaluation.paths
    relayed = float(paths.rate[(paths.via == rack) & (paths.source != rack)].sum())
    full, load = float(evaluation.capacity[rack].sum()), float(evaluation.load[rack].sum())
    facts = [
        Fact(label="Sends", value=float(problem.offered_mbps[rack].sum()), unit="Mbit/s"),
        Fact(label="Receives", value=float(problem.offered_mbps[:, rack].sum()), unit="Mbit/s"),
        Fact(label="Delivered, sent", value=float(evaluation.delivered[rack].sum()), unit="Mbit/s"),
        Fact(label="Delivered, received", value=float(evaluation.delivered[:, rack].sum()), unit="Mbit/s"),
        Fact(label="Relayed for others", value=relayed, unit="Mbit/s"),
        Fact(label="Circuits used", value=100 * load / full if full > 0 else None, unit="%"),
    ]
    if problem.is_failed[rack]:
        facts.insert(0, Fact(label="State", value="failed"))
    return ElementReport(facts=tuple(facts), sections=tabulate_pairs(problem, evaluation, rack=rack))


def tabulate_pairs(
    problem: RotorNetwork, evaluation: Evaluation, *, rack: int | None = None, rows: int = MOST_ROWS
) -> tuple[Section, ...]:
    """Return the pairs with the most demand left over, those of one rack or of all."""
    offered = problem.offered_mbps
    source, target = np.nonzero(offered)
    if rack is not None:
        touches = (source == rack) | (target == rack)
        source, target = source[touches], target[touches]
    remaining = np.maximum(offered - evaluation.delivered, 0.0)[source, target]
    order = np.lexsort((-offered[source, target], -remaining))[:rows]
    source, target = source[order], target[order]
    frame = pd.DataFrame(
        {
            "pair": problem.name_ends(source, target),
            "demand": offered[source, target],
            "delivered": evaluation.delivered[source, target],
            "direct_capacity": evaluation.capacity[source, target],
            "mean_wait": evaluation.mean_wait[source, target],
        }
    )
    units = {"demand": "Mbit/s", "delivered": "Mbit/s", "direct_capacity": "Mbit/s", "mean_wait": "us"}
    title = "Pairs, the most demand left over first"
    return (Section(title=title, frame=frame, units=units),) if len(frame) else ()


ELEMENTS: Final = (
    ElementKind(name=PAIR, names=list_pairs, actions=PAIR_ACTIONS, describe=describe_pair),
    ElementKind(name=RACK, names=list_racks, actions=RACK_ACTIONS, describe=describe_rack),
)
