"""Elements of a problem of system `rotors`: pairs of racks, and racks."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from planner.contract.elements import ElementKind, ElementReport, Fact
from planner.contract.studies import Decided, Section
from planner.options import Options
from planner_models.circuits.plan import elements as circuits
from planner_models.circuits.plan.elements import PAIR_ACTIONS, list_racks, require_pair, require_rack
from planner_models.circuits.problem.drawing import PAIR, RACK
from planner_models.rotors.plan.check import Evaluation, evaluate
from planner_models.rotors.problem.problem import RotorNetwork

MOST_ROWS: Final = 20
RACK_ACTIONS: Final = tuple(
    action for action in circuits.RACK_ACTIONS if action.parameter in ("fail_racks", "circuit_factors")
)
"""Those of system `circuits`, without a packet switch."""


def list_pairs(problem: RotorNetwork) -> list[str]:
    """Return the names of all pairs of racks with demand."""
    return problem.name_ends(*np.nonzero(problem.offered_mbps))


def _evaluate(problem: RotorNetwork, decided: Decided) -> Evaluation:
    """Return what a decision says; raise InputError where it has no plan."""
    return evaluate(problem, decided.plan)


def describe_pair(problem: RotorNetwork, decided: Decided, name: str, options: Options) -> ElementReport:  # noqa: ARG001
    """Describe the demand of a pair of racks, its routes, and how long they wait."""
    i, j = require_pair(problem, problem.demands, name)
    done = _evaluate(problem, decided)
    mean, _ = done.timetable.wait_us(*(np.array([row]) for row in (i, i, j)))
    facts = [
        Fact(label="Demand", value=float(problem.offered_mbps[i, j]), unit="Mbit/s"),
        Fact(label="Delivered", value=float(done.delivered[i, j]), unit="Mbit/s"),
        Fact(label="Urgent", value=float(problem.urgent_mbps[i, j]), unit="Mbit/s"),
        Fact(label="Sent at once", value=float(done.at_once[i, j]), unit="Mbit/s"),
        Fact(label="Direct capacity", value=float(done.capacity[i, j]), unit="Mbit/s"),
        Fact(label="Mean wait, direct", value=float(mean[0]) if np.isfinite(mean[0]) else None, unit="us"),
    ]
    mine = np.flatnonzero((done.paths.source == i) & (done.paths.target == j))
    mine = mine[np.argsort(-done.paths.rate[mine], kind="stable")][:MOST_ROWS]
    via = done.paths.via[mine]
    frame = pd.DataFrame(
        {
            "via": np.where(via == i, "direct", problem.names[via].astype(str)),
            "rate": done.paths.rate[mine],
            "mean_wait": done.waits[0][mine],
            "longest_wait": done.waits[1][mine],
        }
    )
    units = {"rate": "Mbit/s", "mean_wait": "us", "longest_wait": "us"}
    sections = (Section(title="Routes", frame=frame, units=units),) if len(frame) else ()
    return ElementReport(facts=tuple(facts), sections=sections)


def describe_rack(problem: RotorNetwork, decided: Decided, name: str, options: Options) -> ElementReport:  # noqa: ARG001
    """Describe what a rack sends, receives and keeps for others, and its circuits."""
    rack = require_rack(problem, name)
    done = _evaluate(problem, decided)
    paths = done.paths
    kept = float(paths.rate[(paths.via == rack) & (paths.source != rack)].sum())
    full, load = float(done.capacity[rack].sum()), float(done.load[rack].sum())
    facts = [
        Fact(label="Sends", value=float(problem.offered_mbps[rack].sum()), unit="Mbit/s"),
        Fact(label="Receives", value=float(problem.offered_mbps[:, rack].sum()), unit="Mbit/s"),
        Fact(label="Delivered, sent", value=float(done.delivered[rack].sum()), unit="Mbit/s"),
        Fact(label="Delivered, received", value=float(done.delivered[:, rack].sum()), unit="Mbit/s"),
        Fact(label="Relayed for others", value=kept, unit="Mbit/s"),
        Fact(label="Circuits used", value=100 * load / full if full > 0 else None, unit="%"),
    ]
    if problem.is_failed[rack]:
        facts.insert(0, Fact(label="State", value="failed"))
    return ElementReport(facts=tuple(facts), sections=tabulate_pairs(problem, done, rack=rack))


def tabulate_pairs(
    problem: RotorNetwork, done: Evaluation, *, rack: int | None = None, rows: int = MOST_ROWS
) -> tuple[Section, ...]:
    """Return the pairs with the most demand left over, those of one rack or of all."""
    wanted = problem.offered_mbps
    source, target = np.nonzero(wanted)
    if rack is not None:
        mine = (source == rack) | (target == rack)
        source, target = source[mine], target[mine]
    left = np.maximum(wanted - done.delivered, 0.0)[source, target]
    order = np.lexsort((-wanted[source, target], -left))[:rows]
    source, target = source[order], target[order]
    frame = pd.DataFrame(
        {
            "pair": problem.name_ends(source, target),
            "demand": wanted[source, target],
            "delivered": done.delivered[source, target],
            "direct_capacity": done.capacity[source, target],
            "mean_wait": done.mean_wait[source, target],
        }
    )
    units = {"demand": "Mbit/s", "delivered": "Mbit/s", "direct_capacity": "Mbit/s", "mean_wait": "us"}
    title = "Pairs, the most demand left over first"
    return (Section(title=title, frame=frame, units=units),) if len(frame) else ()


ELEMENTS: Final = (
    ElementKind(name=PAIR, names=list_pairs, actions=PAIR_ACTIONS, describe=describe_pair),
    ElementKind(name=RACK, names=list_racks, actions=RACK_ACTIONS, describe=describe_rack),
)
