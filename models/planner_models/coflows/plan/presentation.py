"""Presentation of plans of system `coflows`: drawings of transfers, and elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pandas as pd

from planner.contract.drawing import Distribution, Drawing, Timeline
from planner.contract.elements import Action, ElementKind, ElementReport, Fact, row_of
from planner.contract.studies import Decided, Section
from planner.formatting import amount
from planner.options import Options
from planner_models.circuits.plan.presentation import (
    MOST_BARS,
    MOST_LANES,
    PAIR_ACTIONS,
    RACK_ACTIONS,
    has_faster_peers,
    list_racks,
    require_pair,
    require_rack,
)
from planner_models.circuits.problem.drawing import PAIR, RACK, draw_ring
from planner_models.coflows.plan.completion import Completion, find_met, mean_completion_ms, replay
from planner_models.coflows.plan.lower_bounds import alone_ms, mean_completion_bound_ms
from planner_models.coflows.plan.plan import Service
from planner_models.coflows.problem.drawing import COFLOW, pair_bits
from planner_models.coflows.problem.problem import CoflowsInTime, Ints

MB_BITS: Final = 8e6
UNITS: Final = {"size": "MB", "arrival": "ms", "completion_time": "ms", "alone": "ms"}
COFLOW_ACTIONS: Final = (
    Action(name="Double its data", state="at double data", parameter="coflow_factors", value=2.0),
    Action(name="Leave it out", state="left out", parameter="coflow_factors", value=0.0),
)


def draw(problem: CoflowsInTime, plan: Service) -> Sequence[Drawing]:
    """Draw circuits of racks or coflows over time, data of pairs, and completion times."""
    completion = replay(problem, plan)
    demand = pair_bits(problem)
    remaining = demand - pair_bits_of(problem, completion.circuit_bits + completion.packet_bits)
    remaining[remaining < 1e-6 * np.maximum(demand, 1.0)] = 0.0
    shown: list[Drawing] = [
        draw_circuits(problem, plan) if len(plan.circuits) else draw_coflows(problem, plan),
        draw_ring(
            problem,
            demand,
            title="Data of coflows between racks",
            note=lambda i, j: f"flows of {amount(demand[i, j] / 8, 'bytes')}",
            left_bits=remaining,
        ),
    ]
    taken = completion.coflow_ms[~np.isnan(completion.coflow_ms)]
    if len(taken):
        shown.append(
            Distribution(
                title="Completion times of coflows",
                values={"coflows": pd.Series(taken)},
                what="completion time",
                unit="ms",
                log_x=bool(taken.min() > 0),
            )
        )
    return shown


def pair_bits_of(problem: CoflowsInTime, bits: np.ndarray) -> np.ndarray:
    """Return (n, n) the sums of amounts of flows, (F,), by pair of racks."""
    sums = np.zeros((len(problem.racks),) * 2)
    np.add.at(sums, (problem.source, problem.target), bits)
    return sums


def draw_circuits(problem: CoflowsInTime, plan: Service) -> Timeline:
    """Return the circuits by sending rack, coloured by the rack that receives; of many, the first ones."""
    frame = plan.circuits
    source, target = problem.rows_of(frame)
    title = "Circuits by sending rack"
    n = len(problem.racks)
    is_shown = np.ones(len(frame), dtype=bool)
    if n > MOST_LANES:
        load = np.bincount(source, weights=(frame["end_ms"] - frame["start_ms"]).to_numpy(float), minlength=n)
        busiest = np.argsort(-load, kind="stable")[:MOST_LANES]
        is_shown = np.isin(source, busiest)
        title += f", the {MOST_LANES} of {n:,} racks with the most time"
    rows = np.flatnonzero(is_shown)
    rows = rows[np.lexsort((frame["start_ms"].to_numpy(float)[rows], source[rows]))]
    if len(rows) > MOST_BARS:
        first = np.sort(frame["start_ms"].to_numpy(float)[rows])[MOST_BARS]
        rows = rows[frame["start_ms"].to_numpy(float)[rows] < first]
        title += f", the first {first / 1e3:,.4g} s"
    start, end = (frame[name].to_numpy(float)[rows] for name in ("start_ms", "end_ms"))
    coflow = frame["coflow"].to_numpy(object)[rows]
    return Timeline(
        title=title,
        frame=pd.DataFrame(
            {
                "lane": problem.names[source[rows]].astype(str),
                "start": start,
                "end": end,
                "what": problem.names[target[rows]].astype(str),
                "element": coflow,
                "note": [f"coflow {name}" for name in coflow],
            }
        ),
        unit="ms",
        lanes="rack",
        what="circuit to",
        kind=COFLOW,
    )


def draw_coflows(problem: CoflowsInTime, plan: Service) -> Timeline:
    """Return the coflows that take longest, from their arrival until they are complete."""
    taken = replay(problem, plan).coflow_ms
    ended = np.flatnonzero(~np.isnan(taken))
    longest = ended[np.argsort(-taken[ended], kind="stable")[:MOST_LANES]]
    rows = longest[np.argsort(problem.arrival_ms[longest], kind="stable")]
    title = "Coflows from arrival to completion"
    if len(ended) > MOST_LANES:
        title += f", the {MOST_LANES} of {len(ended):,} that take longest"
    bits = np.bincount(problem.coflow, weights=problem.bits, minlength=len(problem.coflows))
    names = problem.coflow_names[rows].astype(str)
    return Timeline(
        title=title,
        frame=pd.DataFrame(
            {
                "lane": names,
                "start": problem.arrival_ms[rows],
                "end": problem.arrival_ms[rows] + taken[rows],
                "what": "coflow",
                "element": names,
                "note": [f"{amount(bits[row] / 8, 'bytes')} in {amount(taken[row], 'ms')}" for row in rows],
            }
        ),
        unit="ms",
        lanes="coflow",
        what="sent as",
        kind=COFLOW,
    )


def list_coflows(problem: CoflowsInTime) -> list[str]:
    """Return the names of all coflows."""
    return [str(name) for name in problem.coflow_names]


def list_pairs(problem: CoflowsInTime) -> list[str]:
    """Return the names of all pairs of racks with flows."""
    return list(dict.fromkeys(problem.name_ends(problem.source, problem.target)))


def tabulate_coflows(problem: CoflowsInTime, completion: Completion, rows: Ints) -> pd.DataFrame:
    """Return the size of some coflows, their arrival and completion times, and the least time alone."""
    bits = np.bincount(problem.coflow, weights=problem.bits, minlength=len(problem.coflows))
    return pd.DataFrame(
        {
            "coflow": problem.coflow_names[rows],
            "size": bits[rows] / MB_BITS,
            "flows": np.bincount(problem.coflow, minlength=len(problem.coflows))[rows],
            "arrival": problem.arrival_ms[rows],
            "completion_time": completion.coflow_ms[rows],
            "alone": alone_ms(problem)[rows],
        }
    )


def _replay(problem: CoflowsInTime, decided: Decided) -> Completion:
    """Return the traffic that a decision carries; raise InputError if it has no plan."""
    return replay(problem, decided.plan)


def describe_coflow(problem: CoflowsInTime, decided: Decided, name: str, options: Options) -> ElementReport:  # noqa: ARG001
    """Describe a coflow: when it is complete, and its flows."""
    row = row_of(list_coflows(problem), name, COFLOW)
    completion = _replay(problem, decided)
    coflow_row = tabulate_coflows(problem, completion, np.array([row])).iloc[0]
    flows = np.flatnonzero(problem.coflow == row)
    facts = [
        Fact(label="Data", value=float(coflow_row["size"]), unit="MB"),
        Fact(label="Flows", value=float(coflow_row["flows"])),
        Fact(label="Arrival", value=float(coflow_row["arrival"]), unit="ms"),
        Fact(label="Completion time", value=_known(coflow_row["completion_time"]), unit="ms"),
        Fact(label="Least time alone", value=_known(coflow_row["alone"]), unit="ms"),
    ]
    if "weight" in problem.coflows:
        facts.append(Fact(label="Weight", value=float(problem.weight[row])))
    if np.isfinite(problem.due_ms[row]):
        deadline = float(problem.due_ms[row] - problem.arrival_ms[row])
        is_met = bool(find_met(problem, completion.coflow_ms)[row])
        facts.append(Fact(label="Deadline", value=deadline, unit="ms"))
        facts.append(Fact(label="Deadline is", value="met" if is_met else "missed"))
    if not problem.can_complete[row]:
        facts.insert(0, Fact(label="State", value="cut off by a failed rack"))
    return ElementReport(facts=tuple(facts), sections=(_list_flows(problem, completion, flows),))


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _list_flows(problem: CoflowsInTime, completion: Completion, flows: Ints) -> Section:
    """List flows, the last to be complete first."""
    order = flows[np.argsort(-np.nan_to_num(completion.flow_ms[flows], nan=np.inf), kind="stable")]
    frame = pd.DataFrame(
        {
            "coflow": problem.coflow_names[problem.coflow[order]],
            "from": problem.names[problem.source[order]],
            "to": problem.names[problem.target[order]],
            "size": problem.bits[order] / MB_BITS,
            "by_circuits": completion.circuit_bits[order] / MB_BITS,
            "by_packets": completion.packet_bits[order] / MB_BITS,
            "complete_at": completion.flow_ms[order],
        }
    )
    units = {"size": "MB", "by_circuits": "MB", "by_packets": "MB", "complete_at": "ms"}
    return Section(title="Flows", frame=frame, units=units)


def describe_pair(problem: CoflowsInTime, decided: Decided, name: str, options: Options) -> ElementReport:  # noqa: ARG001
    """Describe the flows of a pair of racks, and their carriers."""
    i, j = require_pair(problem, problem.flows, name)
    completion = _replay(problem, decided)
    flows = np.flatnonzero((problem.source == i) & (problem.target == j))
    facts = (
        Fact(label="Data", value=float(problem.bits[flows].sum()) / MB_BITS, unit="MB"),
        Fact(label="Circuits carry", value=float(completion.circuit_bits[flows].sum()) / MB_BITS, unit="MB"),
        Fact(
            label="Packet switch carries",
            value=float(completion.packet_bits[flows].sum()) / MB_BITS,
            unit="MB",
        ),
        Fact(label="Rate of its circuit", value=float(problem.circuit_mbps[i, j]), unit="Mbit/s"),
    )
    return ElementReport(facts=facts, sections=(_list_flows(problem, completion, flows),))


def describe_rack(problem: CoflowsInTime, decided: Decided, name: str, options: Options) -> ElementReport:  # noqa: ARG001
    """Describe the data of a rack, its links, and the coflows that use it."""
    rack = require_rack(problem, name)
    completion = _replay(problem, decided)
    sent, received = problem.source == rack, problem.target == rack
    facts = [
        Fact(label="Sends", value=float(problem.bits[sent].sum()) / MB_BITS, unit="MB"),
        Fact(label="Receives", value=float(problem.bits[received].sum()) / MB_BITS, unit="MB"),
        Fact(label="Circuit rate", value=float(problem.racks["circuit_mbps"].iloc[rack]), unit="Mbit/s"),
        Fact(label="Packet rate", value=float(problem.packet_mbps[rack]), unit="Mbit/s"),
    ]
    if problem.is_failed[rack]:
        facts.insert(0, Fact(label="State", value="failed"))
    users = np.unique(problem.coflow[sent | received])
    frame = tabulate_coflows(problem, completion, users)
    frame = frame.sort_values("completion_time", ascending=False, kind="stable", ignore_index=True)
    return ElementReport(
        facts=tuple(facts), sections=(Section(title="Coflows that use it", frame=frame, units=UNITS),)
    )


def rank_racks(
    problem: CoflowsInTime,
    decided: Decided,
    action: Action,
    options: Options,  # noqa: ARG001
) -> Mapping[str, float | None]:
    """Return the racks that may gain by faster links, those with the most data first.

    No upgrade gains more than from the mean completion time to its bound where every rack has it. A faster
    rack has faster circuits only to racks that are faster than it is now; links to a packet switch that the
    plan does not use gain nothing.
    """
    completion = _replay(problem, decided)
    plan: Service = decided.decision.plan  # type: ignore[assignment]
    works, value = problem.can_complete, action.value or 1.0
    if action.parameter == "circuit_factors":
        pairs = np.zeros((len(problem.racks),) * 2, dtype=bool)
        pairs[problem.source, problem.target] = True
        may_gain, upgraded = has_faster_peers(problem, pairs), problem.with_rates(circuit=value)
    elif not len(plan.priorities):
        return {}
    else:
        may_gain = ~problem.is_failed & (problem.packet_mbps > 0)
        upgraded = problem.with_rates(packet=value)
    taken, bound = completion.coflow_ms[works], mean_completion_bound_ms(upgraded)
    gain = None
    if bound is not None and len(taken) and not np.isnan(taken).any():
        gain = max(0.0, mean_completion_ms(problem, completion.coflow_ms) - bound)
    n = len(problem.racks)
    load = np.bincount(problem.source, weights=problem.bits, minlength=n)
    load += np.bincount(problem.target, weights=problem.bits, minlength=n)
    return {str(problem.names[rack]): gain for rack in np.argsort(-load, kind="stable") if may_gain[rack]}


ELEMENTS: Final = (
    ElementKind(name=COFLOW, names=list_coflows, actions=COFLOW_ACTIONS, describe=describe_coflow),
    ElementKind(name=PAIR, names=list_pairs, actions=PAIR_ACTIONS, describe=describe_pair),
    ElementKind(
        name=RACK, names=list_racks, actions=RACK_ACTIONS, describe=describe_rack, ranking=rank_racks
    ),
)
