"""Check that tables are a plan of this problem, and find the limits that it violates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.contract.plan import Violations
from planner.contract.tolerances import ROUNDING, falls_short
from planner.errors import PlanRejected
from planner_models.coflows.plan.completion import replay
from planner_models.coflows.plan.plan import Service, find_coflows, find_flows
from planner_models.coflows.problem.problem import CoflowsInTime, Floats, Ints


def check(problem: CoflowsInTime, plan: Service) -> Violations:
    """Return the constraint violations of the plan, by name.

    ports     a port of a circuit switch has two circuits at once
    setup     a circuit carries before it can be set up since its ports were used for others
    arrival   a circuit carries before its coflow arrives
    coverage  a coflow whose racks work is not complete

    PlanRejected where it is no plan: unknown coflows, racks, flows or switches, circuits that end before they
    start, several rows of settings.
    """
    if len(plan.settings) != 1:
        raise PlanRejected(f"settings: has {len(plan.settings)} rows, must have one")
    find_coflows(problem, plan.priorities, "priorities")
    frame = plan.circuits
    flow = find_flows(problem, frame)
    start, end = (frame[name].to_numpy(float) for name in ("start_ms", "end_ms"))
    switch = switch_numbers(plan)
    for wrong, words in (
        (end <= start, "end_ms must be greater than start_ms"),
        ((switch < 1) | (switch > problem.switches), f"switch must be from 1 to {problem.switches}"),
    ):
        if wrong.any():
            raise PlanRejected(f"circuits row {int(np.argmax(wrong)) + 1}: {words}")
    return (
        _check_ports(problem, flow, start, end, switch)
        + _check_arrivals(problem, flow, start)
        + _check_coverage(problem, plan)
    )


def switch_numbers(plan: Service) -> Ints:
    """Return (rows,) the switch of each circuit, from 1."""
    if "switch" not in plan.circuits:
        return np.ones(len(plan.circuits), dtype=np.int64)
    return plan.circuits["switch"].to_numpy(float).astype(np.int64)


def find_setups(
    problem: CoflowsInTime, flow: Ints, start: Floats, end: Floats, switch: Ints
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return (rows,) since when both ports of each circuit are free, ms, and whether they stay connected.

    Two ports stay connected where neither was used for another circuit since their last one.
    """
    rows = len(flow)
    source, target = problem.source[flow], problem.target[flow]
    free, last = np.zeros(rows), np.full((2, rows), -1)
    for side, rack in enumerate((source, target)):
        port = rack * (problem.switches + 1) + switch
        order = np.lexsort((end, start, port))
        follows = np.append(False, port[order][1:] == port[order][:-1])
        before, after = order[:-1][follows[1:]], order[1:][follows[1:]]
        last[side, after] = before
        free[after] = np.maximum(free[after], end[before])
    same = (last[0] >= 0) & (last[0] == last[1])
    stays = same & (source[last[0]] == source) & (target[last[0]] == target)
    return free, stays


def _check_ports(problem: CoflowsInTime, flow: Ints, start: Floats, end: Floats, switch: Ints) -> Violations:
    """Return the circuits that use a busy port, or that carry before they can be set up."""
    free, stays = find_setups(problem, flow, start, end, switch)
    # times of hours are no reason to ignore set-up times of microseconds: only their sum is rounded
    twice = falls_short(start - free, 0.0, start)
    setup = np.where(stays, 0.0, problem.setup_ms)
    earliest = free + setup
    early = ~twice & falls_short(start - free, setup, start)
    return Violations.of(
        "ports", where=_name(problem, flow[twice]), amount=start[twice], allowed=free[twice], unit="ms"
    ) + Violations.of(
        "setup", where=_name(problem, flow[early]), amount=start[early], allowed=earliest[early], unit="ms"
    )


def _check_arrivals(problem: CoflowsInTime, flow: Ints, start: Floats) -> Violations:
    """Return the circuits that carry before their coflow arrives."""
    arrival = problem.arrival_ms[problem.coflow[flow]]
    early = falls_short(start, arrival, relative=ROUNDING)
    return Violations.of(
        "arrival", where=_name(problem, flow[early]), amount=start[early], allowed=arrival[early], unit="ms"
    )


def _check_coverage(problem: CoflowsInTime, plan: Service) -> Violations:
    """Return the coflows that are not complete, with the bytes that are carried and offered."""
    completion = replay(problem, plan)
    missing = problem.can_complete & np.isnan(completion.coflow_ms)
    count = len(problem.coflows)
    carried = (
        np.bincount(problem.coflow, weights=completion.circuit_bits + completion.packet_bits, minlength=count)
        / 8
    )
    offered = np.bincount(problem.coflow, weights=problem.bits, minlength=count) / 8
    return Violations.of(
        "coverage",
        where=[str(name) for name in problem.coflow_names[missing]],
        amount=carried[missing],
        allowed=offered[missing],
        unit="bytes",
    )


def _name(problem: CoflowsInTime, flow: Ints) -> list[str]:
    """Return the names of some flows, such as c1 r0->r1."""
    names = problem.coflow_names[problem.coflow[flow]]
    ends = problem.name_ends(problem.source[flow], problem.target[flow])
    return [f"{name} {pair}" for name, pair in zip(names, ends, strict=True)]
