"""Presentation of runs of system `circuitflows`: drawings of demand and service, and elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pandas as pd

from planner.contract.drawing import Distribution, Drawing
from planner.contract.elements import Action, ElementKind, ElementReport, Fact
from planner.contract.studies import Decided, Section
from planner.formatting import amount
from planner.options import Options
from planner_models.circuitflows.plan.plan import Operation, simulated_us
from planner_models.circuitflows.plan.service import MB, UNITS, Service
from planner_models.circuitflows.problem.problem import FlowsInTime
from planner_models.circuits.plan.presentation import (
    MOST_BARS,
    MOST_LANES,
    PAIR_ACTIONS,
    RACK_ACTIONS,
    draw_timeline,
    has_faster_peers,
    list_racks,
    require_pair,
    require_rack,
)
from planner_models.circuits.problem.drawing import PAIR, RACK, draw_ring

MOST_IN_LANE: Final = 120
"""Circuits of a rack that a timeline shows, each of which a reader can still see."""
GB: Final = 1e9  # bytes


def draw(problem: FlowsInTime, plan: Operation) -> Sequence[Drawing]:
    """Draw the first circuits of racks over time, data left of each pair, and completion times of flows."""
    service = Service.of(problem, plan)
    offered, delivered = (8 * bytes_ for bytes_ in service.pair_sums)
    shown: list[Drawing] = []
    if len(plan.configurations):
        days, title = choose_first_weeks(problem, plan.configurations)
        shown.append(
            draw_timeline(
                problem,
                days,
                demand=offered,
                remaining=offered - delivered,
                note=service.describe_pair,
                elements=service.name_pairs,
                title=title,
            )
        )
    shown.append(
        draw_ring(
            problem,
            offered,
            title="Data not delivered",
            note=service.describe_pair,
            elements=service.name_pairs,
            left_bits=offered - delivered,
        )
    )
    taken = pd.Series(service.run.taken_us / 1e3)
    ended = {"small flows": taken[~problem.big].dropna(), "big flows": taken[problem.big].dropna()}
    if any(len(times) for times in ended.values()):
        shown.append(
            Distribution(
                title="Completion times of flows that end",
                values=ended,
                what="completion time",
                unit="ms",
                log_x=True,
            )
        )
    return shown


def choose_first_weeks(problem: FlowsInTime, days: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Return the circuits of the first whole weeks, as many as a timeline can show, and its title."""
    title = "Circuits by sending rack"
    # the night before a day is of the same week
    begin = days["start_us"] - problem.of("night_us")
    week = (begin / problem.of("week_us") + 1e-9).astype(int)
    lanes = min(len(problem.racks), MOST_LANES) / len(problem.racks)
    circuits = week.value_counts().sort_index()
    max_circuits = min(MOST_BARS, MOST_IN_LANE * lanes * len(problem.racks))
    fitting = circuits.index[(circuits.cumsum() * lanes <= max_circuits).to_numpy()]
    last = int(fitting[-1]) if len(fitting) else int(circuits.index[0])
    if last < int(circuits.index[-1]):
        until = (last + 1) * problem.of("week_us") / 1e3
        title += f", the first {until:,.4g} of {problem.of('horizon_us') / 1e3:,.4g} ms"
    return days[week <= last], title


def list_pairs(problem: FlowsInTime) -> list[str]:
    """Return the names of all pairs of racks with flows; the target may be any rack."""
    ends = problem.source, problem.target
    return list(dict.fromkeys(problem.name_ends(*ends)))


def _derive_service(problem: FlowsInTime, decided: Decided) -> Service:
    """Return the delivery of a decision; raise InputError if it has no plan."""
    return Service.of(problem, decided.plan)


def describe_pair(problem: FlowsInTime, decided: Decided, name: str, options: Options) -> ElementReport:  # noqa: ARG001
    """Describe the flows of a pair of racks, and their carriers."""
    i, j = require_pair(problem, problem.flows, name)
    service = _derive_service(problem, decided)
    flows = np.flatnonzero((problem.source == i) & (problem.target == j))
    facts = _report_flows(service, flows)
    if j >= 0:
        packets, circuits = service.carried_bytes(i, j)
        facts += [
            Fact(label="Circuits carried", value=circuits / MB, unit="MB"),
            Fact(label="Packet switch carried", value=packets / MB, unit="MB"),
            Fact(label="Time with a circuit", value=float(service.up_us[i, j]) / 1e3, unit="ms"),
            Fact(label="Rate of its circuit", value=float(problem.circuit_mbps[i, j]), unit="Mbit/s"),
        ]
    return ElementReport(facts=tuple(facts), sections=(_list_flows(service, flows),))


def _report_flows(service: Service, flows: np.ndarray) -> list[Fact]:
    """Report the delivered data of some flows, the number that end, and their times."""
    ended = service.run.taken_us[flows][service.run.is_finished[flows]]
    return [
        Fact(label="Data", value=float(service.wanted_bytes[flows].sum()) / MB, unit="MB"),
        Fact(label="Not delivered", value=float(service.left_bytes[flows].sum()) / MB, unit="MB"),
        Fact(label="Flows", value=float(len(flows))),
        Fact(label="Flows that end", value=float(len(ended))),
        Fact(
            label="Median completion time",
            value=float(np.median(ended)) / 1e3 if len(ended) else None,
            unit="ms",
        ),
    ]


def _list_flows(service: Service, flows: np.ndarray) -> Section:
    """List flows, the largest first."""
    units = {**UNITS, "start": "ms", "completion_time": "ms"}
    return Section(title="Flows that use it", frame=service.tabulate_flows(flows), units=units)


def describe_rack(problem: FlowsInTime, decided: Decided, name: str, options: Options) -> ElementReport:  # noqa: ARG001
    """Describe the flows from a rack, its links, and the pairs that use it."""
    rack = require_rack(problem, name)
    service = _derive_service(problem, decided)
    sent, received = np.flatnonzero(problem.source == rack), np.flatnonzero(service.target == rack)
    facts = _report_flows(service, sent)
    facts[0:2] = [
        Fact(label="Sends", value=float(service.wanted_bytes[sent].sum()) / MB, unit="MB"),
        Fact(label="Receives", value=float(service.wanted_bytes[received].sum()) / MB, unit="MB"),
        Fact(label="Not delivered, sent", value=float(service.left_bytes[sent].sum()) / MB, unit="MB"),
        Fact(
            label="Not delivered, received", value=float(service.left_bytes[received].sum()) / MB, unit="MB"
        ),
    ]
    up = float(service.up_us[rack].sum()) / simulated_us(problem, service.plan)
    facts += [
        Fact(label="Circuit rate", value=float(problem.racks["circuit_mbps"].iloc[rack]), unit="Mbit/s"),
        Fact(label="Packet rate", value=float(problem.packet_mbps[rack]), unit="Mbit/s"),
        Fact(label="Circuits up", value=100 * up, unit="%"),
    ]
    if problem.is_failed[rack]:
        facts.insert(0, Fact(label="State", value="failed"))
    return ElementReport(facts=tuple(facts), sections=(_report_users(service, rack),))


def _report_users(service: Service, rack: int) -> Section:
    """Report the pairs from and to a rack, the most data first."""
    users = (service.problem.source == rack) | (service.target == rack)
    ends = service.problem.source[users], service.target[users]
    frame = pd.DataFrame(
        {
            "pair": service.problem.name_ends(*ends),
            "flows": 1,
            "wanted": service.wanted_bytes[users] / MB,
            "delivered": service.delivered_bytes[users] / MB,
            "left": service.left_bytes[users] / MB,
        }
    )
    shown = frame.groupby("pair", sort=False).sum().reset_index()
    shown = shown.sort_values("wanted", ascending=False, kind="stable", ignore_index=True)
    return Section(title="Pairs that use it", frame=shown, units=UNITS)


def rank_racks(
    problem: FlowsInTime,
    decided: Decided,
    action: Action,
    options: Options,  # noqa: ARG001
) -> Mapping[str, float | None]:
    """Return the racks that may gain by faster links, those with the most data left first.

    No upgrade delivers more than all that is left.
    """
    service = _derive_service(problem, decided)
    remaining = np.where(problem.can_send(service.target), service.left_bytes, 0.0)
    if not remaining.any():
        return {}
    by_pair = service.sum_pairs(remaining)
    if action.parameter == "circuit_factors":
        may_gain = has_faster_peers(problem, service.pair_sums[0] > 0)
    else:
        may_gain = ~problem.is_failed & (problem.packet_mbps > 0)
    order = np.argsort(-(by_pair.sum(axis=1) + by_pair.sum(axis=0)), kind="stable")
    return {str(problem.names[rack]): float(remaining.sum()) / GB for rack in order if may_gain[rack]}


ELEMENTS: Final = (
    ElementKind(name=PAIR, names=list_pairs, actions=PAIR_ACTIONS, describe=describe_pair),
    ElementKind(
        name=RACK, names=list_racks, actions=RACK_ACTIONS, describe=describe_rack, ranking=rank_racks
    ),
)


def draw_flows(problem: FlowsInTime) -> Sequence[Drawing]:
    """Draw the racks in a ring, linked by the data of flows between them."""
    n = len(problem.racks)
    demand = np.zeros((n, n + 1))  # the last column: to any rack
    np.add.at(demand, (problem.source, problem.target), problem.flows["bytes"].to_numpy(float) * 8)
    title = "Data of flows between racks"
    if demand[:, n].any():
        title += "; flows to any rack have no link"
    return (
        draw_ring(
            problem,
            demand,
            title=title,
            note=lambda i, j: f"flows of {amount(demand[i, j] / 8, 'bytes')}",
        ),
    )
