"""Completion times of flows and coflows, replayed from the tables of a plan."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import pandas as pd

from planner.search.tolerances import ROUNDING
from planner_models.coflows.plan.flow_groups import group_flows
from planner_models.coflows.plan.packet_switch import PacketSwitch
from planner_models.coflows.plan.plan import TIME_STEPS, Service, find_coflows, find_flows
from planner_models.coflows.problem.problem import CoflowsInTime, Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class Completion:
    """The flows that a plan carries, and their times.

    circuit_bits  (F,) carried by circuits
    packet_bits   (F,) carried by the packet switch
    flow_ms       (F,) when each flow is complete, from time 0; NaN where it is not
    coflow_ms     (C,) when each coflow is complete, from its arrival; NaN where it is not
    """

    circuit_bits: Floats
    packet_bits: Floats
    flow_ms: Floats
    coflow_ms: Floats


@functools.lru_cache(maxsize=1)
def replay(problem: CoflowsInTime, plan: Service) -> Completion:
    """Return the traffic that the plan's tables carry; the last one is cached."""
    circuit_bits, circuit_ms = replay_circuits(problem, plan.circuits)
    remaining = problem.bits - circuit_bits
    remaining[remaining <= _rounding_bits(problem, plan.circuits)] = 0.0
    sharing = plan.settings["sharing"].iloc[0]
    packet_bits, packet_ms = np.zeros(len(remaining)), np.full(len(remaining), np.nan)
    if sharing != "none" and len(plan.priorities):
        packet_bits, packet_ms = _replay_packets(problem, plan, remaining)
    flow_ms = np.where(remaining > 0, packet_ms, circuit_ms)
    both = (remaining > 0) & (circuit_bits > 0)
    flow_ms[both] = np.maximum(packet_ms, _last_end(problem, plan.circuits))[both]
    ends = np.full(len(problem.coflows), -np.inf)
    np.maximum.at(ends, problem.coflow, np.where(np.isnan(flow_ms), np.inf, flow_ms))
    ends[~np.isfinite(ends)] = np.nan
    return Completion(
        circuit_bits=circuit_bits,
        packet_bits=packet_bits,
        flow_ms=flow_ms,
        coflow_ms=ends - problem.arrival_ms,
    )


def _rounding_bits(problem: CoflowsInTime, circuits: pd.DataFrame) -> Floats:
    """Return (F,) the bits that may be missing of complete flows, as lengths of times are rounded."""
    flow = find_flows(problem, circuits)
    steps = np.bincount(
        flow, weights=np.spacing(np.abs(circuits["end_ms"].to_numpy(float))), minlength=len(problem.bits)
    )
    rounded: Floats = ROUNDING * problem.bits + TIME_STEPS * steps * problem.circuit_rate
    return rounded


def replay_circuits(problem: CoflowsInTime, circuits: pd.DataFrame) -> tuple[Floats, Floats]:
    """Return (F,) the bits that circuits carry of each flow, and when it is complete, ms; NaN where not.

    Circuits carry at full rate from their start until their end, or until their flow is complete.
    """
    flow = find_flows(problem, circuits)
    rows = np.arange(len(flow))
    times_ms = np.concatenate([circuits["start_ms"].to_numpy(float), circuits["end_ms"].to_numpy(float)])
    change = np.concatenate([np.ones(len(rows)), -np.ones(len(rows))])
    of = np.tile(flow, 2)
    order = np.lexsort((change, times_ms, of))
    times_ms, change, of = times_ms[order], change[order], of[order]
    carried, ends = np.zeros(len(problem.bits)), np.full(len(problem.bits), np.nan)
    if not len(times_ms):
        return carried, ends
    is_last = np.append(of[1:] != of[:-1], True)
    begins = np.append(0, np.flatnonzero(is_last)[:-1] + 1)
    group = np.cumsum(np.append(False, is_last[:-1]))
    number = np.cumsum(change)  # circuits that are up; each group sums to 0
    lasts = np.where(is_last, 0.0, np.append(np.diff(times_ms), 0.0))
    bits = number * lasts * problem.circuit_rate[of]
    total = np.cumsum(bits)
    before = (total - bits)[begins][group]
    sums = total - before  # by the end of each piece
    sums_of = np.bincount(of, weights=bits, minlength=len(carried))
    carried = np.minimum(sums_of, problem.bits)
    need = (problem.bits - _rounding_bits(problem, circuits))[of]
    # cumulative sums over all groups round with the total; the pieces of a group alone do not
    rounding = 1e-15 * float(total[-1])
    reaches = (sums >= need - rounding) & (sums_of[of] >= need)
    piece = np.flatnonzero(reaches)
    _, where = np.unique(of[piece], return_index=True)
    piece = piece[where]
    rate = number[piece] * problem.circuit_rate[of[piece]]
    missing = sums[piece] - problem.bits[of[piece]]
    end = times_ms[piece] + lasts[piece]
    with np.errstate(divide="ignore", invalid="ignore"):
        early = np.where(rate > 0, np.maximum(missing, 0.0) / rate, 0.0)
    ends[of[piece]] = np.maximum(end - early, times_ms[piece])
    return carried, ends


def _last_end(problem: CoflowsInTime, circuits: pd.DataFrame) -> Floats:
    """Return (F,) the end of the last circuit of each flow, ms; 0 where there is none."""
    ends = np.zeros(len(problem.bits))
    np.maximum.at(ends, find_flows(problem, circuits), circuits["end_ms"].to_numpy(float))
    return ends


def _replay_packets(problem: CoflowsInTime, plan: Service, remaining: Floats) -> tuple[Floats, Floats]:
    """Return (F,) the bits that the packet switch carries of each flow, and when it is complete, ms."""
    groups = group_flows(problem, remaining)
    sharing, interval = plan.settings["sharing"].iloc[0], float(plan.settings["interval_ms"].iloc[0])
    switch = PacketSwitch.of(problem, groups, sharing, interval)
    coflow = find_coflows(problem, plan.priorities, "priorities")
    times_ms = plan.priorities["at_ms"].to_numpy(float)
    value = plan.priorities["priority"].to_numpy(float)
    priority = np.full(len(problem.coflows), np.inf)
    rows = np.argsort(times_ms, kind="stable")
    times, begins = np.unique(times_ms[rows], return_index=True)
    arrivals = np.unique(problem.arrival_ms)
    stops = np.union1d(times, arrivals)
    step = 0
    for number, now in enumerate(stops.tolist()):
        if step < len(times) and times[step] == now:
            end = begins[step + 1] if step + 1 < len(times) else len(rows)
            current_rows = rows[begins[step] : end]
            priority[coflow[current_rows]] = value[current_rows]
            step += 1
        until = float(stops[number + 1]) if number + 1 < len(stops) else np.inf
        while now < until:
            order = order_by_priority(priority, problem.arrival_ms, switch.state.unsent, now)
            if not len(order):
                break
            now = switch.run(now, until, order)
    packet_bits, packet_ms = np.zeros(len(remaining)), np.full(len(remaining), np.nan)
    packet_bits[groups.flow] = groups.bits - switch.state.left
    packet_ms[groups.flow] = switch.state.end_ms
    return packet_bits, packet_ms


def order_by_priority(priority: Floats, arrival_ms: Floats, count: np.ndarray, now: float) -> np.ndarray:
    """Return the coflows that have arrived and have flows left, lowest priority number first."""
    active = np.flatnonzero(np.isfinite(priority) & (arrival_ms <= now) & (count > 0))
    return active[np.lexsort((active, arrival_ms[active], priority[active]))]
