"""Sunflow: circuits set up and torn down port by port, coflow by coflow."""

from __future__ import annotations

import heapq
from typing import Annotated, Final, Literal, NamedTuple

import numpy as np
from pydantic import Field

from planner.compiled import inner, kernel, run_small_in_python
from planner.contract.design import Decision
from planner.options import Options
from planner.search.tolerances import SUM_ROUNDING
from planner_models.coflows.designs.decision import decide_on_circuits
from planner_models.coflows.plan.flow_groups import FlowGroups, group_flows
from planner_models.coflows.plan.plan import Service, make_circuits
from planner_models.coflows.problem.problem import CoflowsInTime, Floats, Ints

Order = Annotated[
    Literal["shortest", "arrival"],
    Field(
        description="coflows that are scheduled first: those whose busiest port has the least left to do, or "
        "those that arrived first"
    ),
]
NEVER: Final = np.inf
NONE: Final = -1
DONE: Final = SUM_ROUNDING
"""Share of what is left of a flow that is rounding."""
SAME_TIMES: Final = 16.0
"""Units in the last place of the latest time by which two times may differ that are the same."""


def schedule(
    problem: CoflowsInTime, *, order: Order = "shortest", options: Options = Options()
) -> Decision[Service]:
    """Schedule circuits coflow by coflow; each port changes alone, and other circuits go on.

    A flow gets a circuit as soon as both its ports are free, for as long as it needs or until a port is
    reserved for a coflow of higher priority, and no flow of the same coflow takes it away. When a coflow
    arrives, the rest of the schedule is made again; circuits that are up and still wanted stay.

    source  Huang, Sun, Ng 2016 (Sunflow), Algorithm 1
    """
    groups = group_flows(problem)
    rank = None if order == "shortest" else problem.arrival_ms
    index, start, end, switch = run_windows(problem, groups, rank=rank)
    circuits = make_circuits(problem, groups.flow[index], start, end, switch)
    return decide_on_circuits(problem, Service(circuits=circuits), options)


def same_time_ms(problem: CoflowsInTime) -> float:
    """Return the tolerance of equal times of a schedule, ms.

    Times of a day in milliseconds have steps of 15 ps, times of a second 0.1 fs: no fixed number is no time.
    """
    need = problem.bits / problem.circuit_rate
    racks = len(problem.racks)
    busiest = max(
        float(np.bincount(rack, weights=need, minlength=racks).max(initial=0.0))
        for rack in (problem.source, problem.target)
    )
    latest = float(problem.arrival_ms.max(initial=0.0)) + 2 * busiest + problem.setup_ms
    return SAME_TIMES * float(np.spacing(latest))


class Ports(NamedTuple):
    """Flows of coflows by the port that they use, for sending ports or for receiving ports.

    first   (C + 1,) where the ports of each coflow begin
    rack    (ports,) rack of each
    start   (ports + 1,) where the flows of each begin
    place   (F,) places of flows in `FlowGroups`
    """

    first: Ints
    rack: Ints
    start: Ints
    place: Ints


class Reservations(NamedTuple):
    """Reservations of a window: a node for each, in a list by time for each port.

    Sending ports are numbered rack * switches + switch, receiving ports the same after them.

    span   (2, nodes) start and end, ms
    setup  (nodes,) set-up time at its start, ms
    need   (nodes,) what it serves of the flow, ms: late in a trace, the difference of two times is rounded
    flow   (nodes,) place of the flow
    after  (2, nodes) next node of the sending and of the receiving port
    """

    span: Floats
    setup: Floats
    need: Floats
    flow: Ints
    after: Ints


def run_windows(
    problem: CoflowsInTime, groups: FlowGroups, *, rank: Floats | None
) -> tuple[Ints, Floats, Floats, Ints]:
    """Return the services: places of flows in `groups`, start and end in ms, and switch from 0.

    rank  (C,) coflows of lower numbers are first; None: those whose busiest port has the least left to do
    """
    rate = problem.circuit_rate[groups.flow]
    coflow = np.repeat(np.arange(len(problem.coflows)), np.diff(groups.first))
    sends, receives = (_group_ports(groups, coflow, end) for end in (groups.source, groups.target))
    need = groups.bits / rate
    arrivals = np.unique(problem.arrival_ms[problem.can_complete])
    ports = len(problem.racks) * problem.switches
    peer = np.full(2 * ports, NONE)
    setup_left = np.zeros(2 * ports)
    same_ms = same_time_ms(problem)
    windows: list[tuple[Ints, Floats, Floats, Ints]] = []
    for index, now in enumerate(arrivals.tolist()):
        end = float(arrivals[index + 1]) if index + 1 < len(arrivals) else NEVER
        active = np.flatnonzero(problem.can_complete & (problem.arrival_ms <= now))
        length = busiest_port_ms(active, groups.first, groups.source, groups.target, need, len(problem.racks))
        active, length = active[length > 0], length[length > 0]
        key = length if rank is None else rank[active]
        windows.append(
            _schedule_window(
                now,
                end,
                active[np.lexsort((active, key))],
                groups.source,
                groups.target,
                sends,
                receives,
                len(problem.racks),
                problem.switches,
                problem.setup_ms,
                same_ms,
                need,
                peer,
                setup_left,
            )
        )
    if not windows:
        return np.zeros(0, np.int64), np.zeros(0), np.zeros(0), np.zeros(0, np.int64)
    flow, start, stop, switch = (np.concatenate(column) for column in zip(*windows, strict=True))
    return flow, start, stop, switch


def _group_ports(groups: FlowGroups, coflow: Ints, rack: Ints) -> Ports:
    """Return the flows of each coflow by rack."""
    order = np.lexsort((rack, coflow)).astype(np.int64)
    begins = np.ones(len(order), dtype=bool)
    begins[1:] = (np.diff(coflow[order]) != 0) | (np.diff(rack[order]) != 0)
    start = np.flatnonzero(begins)
    count = np.bincount(coflow[order[start]], minlength=len(groups.first) - 1)
    return Ports(
        first=np.concatenate([[0], np.cumsum(count)]).astype(np.int64),
        rack=rack[order[start]],
        start=np.append(start, len(order)).astype(np.int64),
        place=order,
    )


@run_small_in_python(max_elements=1_000)
@kernel
def busiest_port_ms(
    coflows: Ints, first: Ints, source: Ints, target: Ints, need: Floats, racks: int
) -> Floats:
    """Return (coflows,) the most that any port of each coflow has left to do, ms.

    need  (F,) what is left of each flow, ms
    """
    busiest = np.zeros(len(coflows))
    out, into = np.zeros(racks), np.zeros(racks)
    for index, coflow in enumerate(coflows):
        for f in range(first[coflow], first[coflow + 1]):
            out[source[f]] += need[f]
            into[target[f]] += need[f]
            busiest[index] = max(busiest[index], out[source[f]], into[target[f]])
        for f in range(first[coflow], first[coflow + 1]):
            out[source[f]] = 0.0
            into[target[f]] = 0.0
    return busiest


@run_small_in_python(max_elements=1_000)
@kernel
def _schedule_window(  # noqa: C901
    now: float,
    end: float,
    order: Ints,
    source: Ints,
    target: Ints,
    sends: Ports,
    receives: Ports,
    racks: int,
    switches: int,
    setup_ms: float,
    same_ms: float,
    need: Floats,
    peer: Ints,
    setup_left: Floats,
) -> tuple[Ints, Floats, Floats, Ints]:
    """Schedule until the next arrival, and return the services of flows as `run_windows` does.

    order            coflows, the highest priority first
    same_ms          difference of two times that are the same
    need             (F,) what is left of each flow, ms; is reduced by what is served
    peer, setup_left (2 * ports,) the rack that each port is connected to, and the set-up that is left
    """
    ports = racks * switches
    head = np.full(2 * ports, NONE)
    size = 1024
    nodes = Reservations(
        np.empty((2, size)),
        np.empty(size),
        np.empty(size),
        np.empty(size, np.int64),
        np.empty((2, size), np.int64),
    )
    count = 0
    before, current = np.full(2 * ports, NONE), np.full(2 * ports, NONE)
    queued = np.full(2 * ports, NONE)
    served_until = np.zeros(len(need))
    planned = need.copy()
    send_port, receive_port = np.full(racks, NONE), np.full(racks, NONE)
    for coflow in order:
        # --- all ports of the coflow are tried once at the start, and then whenever one becomes free
        heap = [(now, 0)]
        heap.pop()
        for side in range(2):
            of = sends if side == 0 else receives
            port_of = send_port if side == 0 else receive_port
            for port in range(of.first[coflow], of.first[coflow + 1]):
                rack = of.rack[port]
                port_of[rack] = port
                for switch in range(switches):
                    number = side * ports + rack * switches + switch
                    before[number], current[number], queued[number] = NONE, head[number], NONE
                    heap.append((now, number))
        heapq.heapify(heap)
        # circuits that are up stay where this coflow wants them
        for port in range(sends.first[coflow], sends.first[coflow + 1]):
            for switch in range(switches):
                out = sends.rack[port] * switches + switch
                other = peer[out]
                if (
                    other == NONE
                    or receive_port[other] == NONE
                    or peer[ports + other * switches + switch] != sends.rack[port]
                ):
                    continue
                into = ports + other * switches + switch
                if not (_is_free(nodes, current, out, now) and _is_free(nodes, current, into, now)):
                    continue
                for k in range(sends.start[port], sends.start[port + 1]):
                    f = sends.place[k]
                    if target[f] == other and planned[f] > 0 and served_until[f] <= now + same_ms:
                        if count + 1 >= size:
                            nodes, size = _enlarge(nodes, size), 2 * size
                        if _reserve(
                            nodes,
                            count,
                            before,
                            current,
                            head,
                            out,
                            into,
                            now,
                            same_ms,
                            setup_left[out],
                            f,
                            planned,
                            served_until,
                        ):
                            count += 1
                            heapq.heappush(heap, (nodes.span[1, count - 1], out))
                            heapq.heappush(heap, (nodes.span[1, count - 1], into))
                            queued[out] = queued[into] = count - 1
                        break
        while len(heap) > 0:
            t, number = heapq.heappop(heap)
            if t >= end:
                break
            side = 0 if number < ports else 1
            _advance(nodes, before, current, number, t + same_ms, side)
            if not _is_free(nodes, current, number, t + same_ms):
                if queued[number] != current[number]:
                    queued[number] = current[number]
                    heapq.heappush(heap, (nodes.span[1, current[number]], number))
                continue
            rack, switch = (number - side * ports) // switches, (number - side * ports) % switches
            of = sends if side == 0 else receives
            port = send_port[rack] if side == 0 else receive_port[rack]
            is_taken = False
            for k in range(of.start[port], of.start[port + 1]):
                f = of.place[k]
                if planned[f] <= 0 or served_until[f] > t + same_ms:
                    continue
                far = target[f] if side == 0 else source[f]
                other = (1 - side) * ports + far * switches + switch
                _advance(nodes, before, current, other, t + same_ms, 1 - side)
                if not _is_free(nodes, current, other, t + same_ms):
                    continue
                out, into = (number, other) if side == 0 else (other, number)
                setup = setup_ms
                if _is_connected(nodes, before, out, into, peer, source, target, f, now, t, same_ms):
                    setup = 0.0 if before[out] != NONE else setup_left[out]
                if count + 1 >= size:
                    nodes, size = _enlarge(nodes, size), 2 * size
                if _reserve(
                    nodes,
                    count,
                    before,
                    current,
                    head,
                    out,
                    into,
                    t,
                    same_ms,
                    setup,
                    f,
                    planned,
                    served_until,
                ):
                    count += 1
                    heapq.heappush(heap, (nodes.span[1, count - 1], out))
                    heapq.heappush(heap, (nodes.span[1, count - 1], into))
                    queued[out] = queued[into] = count - 1
                    is_taken = True
                    break
            if not is_taken and current[number] != NONE and queued[number] != current[number]:
                queued[number] = current[number]
                heapq.heappush(heap, (nodes.span[1, current[number]], number))
        for port in range(sends.first[coflow], sends.first[coflow + 1]):
            send_port[sends.rack[port]] = NONE
        for port in range(receives.first[coflow], receives.first[coflow + 1]):
            receive_port[receives.rack[port]] = NONE
    return _commit(nodes, count, head, end, source, target, switches, ports, need, peer, setup_left)


@inner
def _is_free(nodes: Reservations, current: Ints, number: int, t: float) -> bool:
    """Return whether a port is free at a time; its list has been advanced to it."""
    node = current[number]
    is_free: bool = node == NONE or nodes.span[0, node] > t
    return is_free


@inner
def _advance(nodes: Reservations, before: Ints, current: Ints, number: int, t: float, side: int) -> None:
    """Advance a port's list past the reservations that have ended."""
    node = current[number]
    while node != NONE and nodes.span[1, node] <= t:
        before[number] = node
        node = nodes.after[side, node]
    current[number] = node


@inner
def _is_connected(
    nodes: Reservations,
    before: Ints,
    out: int,
    into: int,
    peer: Ints,
    source: Ints,
    target: Ints,
    flow: int,
    now: float,
    t: float,
    same_ms: float,
) -> bool:
    """Return whether two ports are connected to each other at a time, with nothing since then."""
    previous_out, other = before[out], before[into]
    if previous_out == NONE and other == NONE:
        is_kept: bool = t <= now + same_ms and peer[out] == target[flow] and peer[into] == source[flow]
        return is_kept
    is_last: bool = previous_out == other and nodes.span[1, previous_out] >= t - same_ms
    return is_last


@inner
def _reserve(
    nodes: Reservations,
    count: int,
    before: Ints,
    current: Ints,
    head: Ints,
    out: int,
    into: int,
    t: float,
    same_ms: float,
    setup: float,
    flow: int,
    planned: Floats,
    served_until: Floats,
) -> bool:
    """Reserve two ports for a flow from a time on; return False where it has no time to carry anything."""
    limit = NEVER
    if current[out] != NONE:
        limit = nodes.span[0, current[out]]
    if current[into] != NONE:
        limit = min(limit, nodes.span[0, current[into]])
    free_ms = limit - t - setup
    if free_ms <= 0 or (free_ms <= same_ms and free_ms < planned[flow] - same_ms):
        return False
    served = planned[flow] if planned[flow] <= free_ms + same_ms else free_ms
    until = min(t + setup + served, limit)
    nodes.span[0, count], nodes.span[1, count] = t, until
    nodes.setup[count], nodes.need[count], nodes.flow[count] = setup, served, flow
    planned[flow] -= served
    served_until[flow] = until
    for side in range(2):
        number = out if side == 0 else into
        nodes.after[side, count] = current[number]
        if before[number] == NONE:
            head[number] = count
        else:
            nodes.after[side, before[number]] = count
        current[number] = count
    return True


@inner
def _enlarge(nodes: Reservations, size: int) -> Reservations:
    """Return the reservations in arrays twice as long."""
    span, after = np.empty((2, 2 * size)), np.empty((2, 2 * size), np.int64)
    setup, need, flow = np.empty(2 * size), np.empty(2 * size), np.empty(2 * size, np.int64)
    span[:, :size], after[:, :size] = nodes.span, nodes.after
    setup[:size], need[:size], flow[:size] = nodes.setup, nodes.need, nodes.flow
    return Reservations(span, setup, need, flow, after)


@inner
def _commit(
    nodes: Reservations,
    count: int,
    head: Ints,
    end: float,
    source: Ints,
    target: Ints,
    switches: int,
    ports: int,
    need: Floats,
    peer: Ints,
    setup_left: Floats,
) -> tuple[Ints, Floats, Floats, Ints]:
    """Return the services until `end`; update the remaining flows and the connections of ports."""
    flow, switch = np.empty(count, np.int64), np.empty(count, np.int64)
    start, stop = np.empty(count), np.empty(count)
    of_node = np.full(count, NONE)
    for port in range(ports):
        node = head[port]
        while node != NONE:
            of_node[node] = port % switches
            node = nodes.after[0, node]
    served = 0
    for node in range(count):
        begin, until = nodes.span[0, node] + nodes.setup[node], min(nodes.span[1, node], end)
        is_whole = nodes.span[1, node] <= end
        if begin < end and (is_whole or until > begin):
            flow[served], switch[served] = nodes.flow[node], of_node[node]
            start[served], stop[served] = begin, until
            f = nodes.flow[node]
            carried = nodes.need[node] if is_whole else until - begin
            need[f] = need[f] - carried if need[f] - carried > DONE * need[f] else 0.0
            served += 1
    for port in range(2 * ports):
        side = 0 if port < ports else 1
        node = head[port]
        if node == NONE:
            continue
        while nodes.after[side, node] != NONE:
            node = nodes.after[side, node]
        f = nodes.flow[node]
        peer[port] = target[f] if side == 0 else source[f]
        setup_left[port] = max(0.0, nodes.span[0, node] + nodes.setup[node] - end)
    return flow[:served], start[:served], stop[:served], switch[:served]
