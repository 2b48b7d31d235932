"""Completion times of flows and coflows, replayed from the tables of a plan."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import pandas as pd

from planner.search.tolerances import FEASIBILITY, ROUNDING
from planner_models.coflows.plan.flow_groups import group_flows
from planner_models.coflows.plan.packet_switch import PacketSwitch
from planner_models.coflows.plan.plan import TIME_STEPS, Service, Services, find_coflows, find_flows
from planner_models.coflows.problem.problem import CoflowsInTime, Floats, Ints


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
    flow = find_flows(problem, plan.circuits)
    start_ms, end_ms = (plan.circuits[name].to_numpy(float) for name in ("start_ms", "end_ms"))
    circuit_bits, circuit_ms = _carry(problem, flow, start_ms, end_ms)
    remaining = _find_remaining(problem, circuit_bits, flow, end_ms)
    sharing = plan.settings["sharing"].iloc[0]
    packet_bits, packet_ms = np.zeros(len(remaining)), np.full(len(remaining), np.nan)
    if sharing != "none" and len(plan.priorities):
        packet_bits, packet_ms = _replay_packets(problem, plan, remaining)
    flow_ms = np.where(remaining > 0, packet_ms, circuit_ms)
    both = (remaining > 0) & (circuit_bits > 0)
    flow_ms[both] = np.maximum(packet_ms, _last_end(problem, flow, end_ms))[both]
    return Completion(
        circuit_bits=circuit_bits,
        packet_bits=packet_bits,
        flow_ms=flow_ms,
        coflow_ms=_complete_coflows(problem, flow_ms),
    )


def mean_completion_ms(problem: CoflowsInTime, coflow_ms: Floats) -> float:
    """Return the mean completion time, by weights, of coflows with working racks; NaN without one.

    coflow_ms  (C,) from their arrivals
    """
    works = problem.can_complete
    return float((problem.relative_weight * coflow_ms)[works].mean())


def find_met(problem: CoflowsInTime, coflow_ms: Floats) -> np.ndarray:
    """Return (C,) whether each coflow has a deadline and is complete by then, but for rounding.

    coflow_ms  (C,) from their arrivals; NaN where a coflow is not complete
    """
    deadline = problem.due_ms - problem.arrival_ms
    rounding = FEASIBILITY * deadline + TIME_STEPS * np.spacing(problem.arrival_ms)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.isfinite(problem.due_ms) & (coflow_ms <= deadline + rounding))


def met_share(problem: CoflowsInTime, is_met: np.ndarray) -> float | None:
    """Return the share of deadlines that are met, by weights; None without deadlines.

    is_met  (C,)
    """
    total = float(problem.weight[np.isfinite(problem.due_ms)].sum())
    return float(problem.weight[is_met].sum()) / total if total > 0 else None


def complete_by_circuits(problem: CoflowsInTime, services: Services) -> Floats:
    """Return (C,) when each coflow is complete by circuits alone, ms from its arrival; NaN where it is not.

    The times are those of `replay` for the table of the services.
    """
    bits, flow_ms = _carry(problem, services.flow, services.start_ms, services.end_ms)
    remaining = _find_remaining(problem, bits, services.flow, services.end_ms)
    return _complete_coflows(problem, np.where(remaining > 0, np.nan, flow_ms))


def _complete_coflows(problem: CoflowsInTime, flow_ms: Floats) -> Floats:
    """Return (C,) when the last flow of each coflow is complete, ms from its arrival; else NaN."""
    ends = np.full(len(problem.coflows), -np.inf)
    np.maximum.at(ends, problem.coflow, np.where(np.isnan(flow_ms), np.inf, flow_ms))
    ends[~np.isfinite(ends)] = np.nan
    completion_ms: Floats = ends - problem.arrival_ms
    return completion_ms


def _find_remaining(problem: CoflowsInTime, carried: Floats, flow: Ints, end_ms: Floats) -> Floats:
    """Return (F,) the bits of each flow that circuits leave, 0 where they are within rounding."""
    remaining = problem.bits - carried
    remaining[remaining <= _rounding_bits(problem, flow, end_ms)] = 0.0
    return remaining


def _rounding_bits(problem: CoflowsInTime, flow: Ints, end_ms: Floats) -> Floats:
    """Return (F,) the bits that may be missing of complete flows, as lengths of times are rounded."""
    steps = np.bincount(flow, weights=np.spacing(np.abs(end_ms)), minlength=len(problem.bits))
    rounded: Floats = ROUNDING * problem.bits + TIME_STEPS * steps * problem.circuit_rate
    return rounded


def replay_circuits(problem: CoflowsInTime, circuits: pd.DataFrame) -> tuple[Floats, Floats]:
    """Return (F,) the bits that circuits carry of each flow, and when it is complete, ms; NaN where not.

    Circuits carry at full rate from their start until their end, or until their flow is complete.
    """
    start_ms, end_ms = (circuits[name].to_numpy(float) for name in ("start_ms", "end_ms"))
    return _carry(problem, find_flows(problem, circuits), start_ms, end_ms)


def _carry(problem: CoflowsInTime, flow: Ints, start_ms: Floats, end_ms: Floats) -> tuple[Floats, Floats]:
    """Return bits and ends as `replay_circuits` does, of circuits for flows (rows of `flows`)."""
    rows = np.arange(len(flow))
    times_ms = np.concatenate([start_ms, end_ms])
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
    need = (problem.bits - _rounding_bits(problem, flow, end_ms))[of]
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


def _last_end(problem: CoflowsInTime, flow: Ints, end_ms: Floats) -> Floats:
    """Return (F,) the end of the last circuit of each flow, ms; 0 where there is none."""
    ends = np.zeros(len(problem.bits))
    np.maximum.at(ends, flow, end_ms)
    return ends


def _replay_packets(problem: CoflowsInTime, plan: Service, remaining: Floats) -> tuple[Floats, Floats]:
    """Return (F,) the bits that the packet switch carries of each flow, and when it is complete, ms."""
    groups = group_flows(problem, remaining)
    sharing, interval = plan.settings["sharing"].iloc[0], float(plan.settings["interval_ms"].iloc[0])
    switch = PacketSwitch.of(problem, groups, sharing, interval)
    coflow = find_coflows(problem, plan.priorities, "priorities")
    times_ms = plan.priorities["at_ms"].to_numpy(float)
    value = plan.priorities["priority"].to_numpy(float)
    priority, due_ms = np.full(len(problem.coflows), np.inf), np.full(len(problem.coflows), np.inf)
    due_of = np.full(len(coflow), np.inf)
    if "due_ms" in plan.priorities:
        due_of = plan.priorities["due_ms"].fillna(np.inf).to_numpy(float)
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
            due_ms[coflow[current_rows]] = due_of[current_rows]
            step += 1
        until = float(stops[number + 1]) if number + 1 < len(stops) else np.inf
        while now < until:
            order = order_by_priority(priority, problem.arrival_ms, switch.state.unsent, now)
            if not len(order):
                break
            now = switch.run(now, until, order, due_ms=due_ms)
    packet_bits, packet_ms = np.zeros(len(remaining)), np.full(len(remaining), np.nan)
    packet_bits[groups.flow] = groups.bits - switch.state.left
    packet_ms[groups.flow] = switch.state.end_ms
    return packet_bits, packet_ms


def order_by_priority(priority: Floats, arrival_ms: Floats, count: np.ndarray, now: float) -> np.ndarray:
    """Return the coflows that have arrived and have flows left, lowest priority number first."""
    active = np.flatnonzero(np.isfinite(priority) & (arrival_ms <= now) & (count > 0))
    return active[np.lexsort((active, arrival_ms[active], priority[active]))]
