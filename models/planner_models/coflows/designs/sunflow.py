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


class _Window(NamedTuple):
    """A window from one arrival to the next, with the network and its flows.

    now, end             ms
    source, target       (F,) racks of flows
    racks, switches      their numbers; each rack has a sending and a receiving port at each switch
    same_ms              difference of two times that are the same
    peer, setup_left     (2 * ports,) rack that each port is connected to now, and the set-up that is left
    """

    now: float
    end: float
    source: Ints
    target: Ints
    sends: Ports
    receives: Ports
    racks: int
    switches: int
    setup_ms: float
    same_ms: float
    peer: Ints
    setup_left: Floats


class _Lists(NamedTuple):
    """State of a schedule: the lists of ports' reservations, and the progress of flows.

    head              (2 * ports,) first reservation of each port
    before, current   (2 * ports,) the last reservation that has ended, and the next one, as time goes on
    queued            (2 * ports,) reservation at whose end the port is looked at
    planned           (F,) what is not reserved yet of each flow, ms
    served_until      (F,) end of each flow's last reservation
    port_of           (2, racks) place of the coflow's sending and receiving ports in `Ports`
    """

    head: Ints
    before: Ints
    current: Ints
    queued: Ints
    planned: Floats
    served_until: Floats
    port_of: Ints


def run_windows(
    problem: CoflowsInTime, groups: FlowGroups, *, rank: Floats | None
) -> tuple[Ints, Floats, Floats, Ints]:
    """Return the services: places of flows in `groups`, start and end in ms, and switch from 0.

    rank  (C,) coflows of lower numbers are first; None: those whose busiest port has the least left to do,
          over their weight
    """
    rate = problem.circuit_rate[groups.flow]
    coflow = np.repeat(np.arange(len(problem.coflows)), np.diff(groups.first))
    sends, receives = (_group_ports(groups, coflow, end) for end in (groups.source, groups.target))
    need = groups.bits / rate
    arrivals = np.unique(problem.arrival_ms[problem.can_complete])
    ports = len(problem.racks) * problem.switches
    window = _Window(
        now=0.0,
        end=NEVER,
        source=groups.source,
        target=groups.target,
        sends=sends,
        receives=receives,
        racks=len(problem.racks),
        switches=problem.switches,
        setup_ms=problem.setup_ms,
        same_ms=same_time_ms(problem),
        peer=np.full(2 * ports, NONE),
        setup_left=np.zeros(2 * ports),
    )
    windows: list[tuple[Ints, Floats, Floats, Ints]] = []
    for index, now in enumerate(arrivals.tolist()):
        end = float(arrivals[index + 1]) if index + 1 < len(arrivals) else NEVER
        active = np.flatnonzero(problem.can_complete & (problem.arrival_ms <= now))
        length = busiest_port_ms(active, groups.first, groups.source, groups.target, need, len(problem.racks))
        active, length = active[length > 0], length[length > 0]
        key = length / problem.relative_weight[active] if rank is None else rank[active]
        windows.append(
            _schedule_window(window._replace(now=now, end=end), active[np.lexsort((active, key))], need)
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
def _schedule_window(window: _Window, order: Ints, need: Floats) -> tuple[Ints, Floats, Floats, Ints]:
    """Schedule until the next arrival, and return the services of flows as `run_windows` does.

    order  coflows, the highest priority first
    need   (F,) what is left of each flow, ms; is reduced by what is served
    """
    ports = window.racks * window.switches
    size = 1024
    nodes = Reservations(
        np.empty((2, size)),
        np.empty(size),
        np.empty(size),
        np.empty(size, np.int64),
        np.empty((2, size), np.int64),
    )
    lists = _Lists(
        np.full(2 * ports, NONE),
        np.full(2 * ports, NONE),
        np.full(2 * ports, NONE),
        np.full(2 * ports, NONE),
        need.copy(),
        np.zeros(len(need)),
        np.full((2, window.racks), NONE),
    )
    count = 0
    for coflow in order:
        # all ports of the coflow are tried once at the start, and then whenever one becomes free
        heap = [(window.now, 0)]
        heap.pop()
        for side in range(2):
            _begin_side(window, lists, heap, coflow, side)
        heapq.heapify(heap)
        nodes, count = _keep_circuits(window, lists, nodes, count, heap, coflow)
        nodes, count = _fill_ports(window, lists, nodes, count, heap)
        for port in range(window.sends.first[coflow], window.sends.first[coflow + 1]):
            lists.port_of[0, window.sends.rack[port]] = NONE
        for port in range(window.receives.first[coflow], window.receives.first[coflow + 1]):
            lists.port_of[1, window.receives.rack[port]] = NONE
    return _commit(window, nodes, count, lists.head, need)


@inner
def _begin_side(
    window: _Window, lists: _Lists, heap: list[tuple[float, int]], coflow: int, side: int
) -> None:
    """Put the sending or receiving ports of a coflow on the heap, each at the begin of its list."""
    of = window.sends if side == 0 else window.receives
    ports = window.racks * window.switches
    for port in range(of.first[coflow], of.first[coflow + 1]):
        rack = of.rack[port]
        lists.port_of[side, rack] = port
        for switch in range(window.switches):
            number = side * ports + rack * window.switches + switch
            lists.before[number], lists.queued[number] = NONE, NONE
            lists.current[number] = lists.head[number]
            heap.append((window.now, number))


@inner
def _keep_circuits(
    window: _Window,
    lists: _Lists,
    nodes: Reservations,
    count: int,
    heap: list[tuple[float, int]],
    coflow: int,
) -> tuple[Reservations, int]:
    """Reserve the circuits that are up where the coflow wants them; return reservations, and their number."""
    sends, peer, now, switches = window.sends, window.peer, window.now, window.switches
    ports = window.racks * switches
    for port in range(sends.first[coflow], sends.first[coflow + 1]):
        for switch in range(switches):
            out = sends.rack[port] * switches + switch
            other = peer[out]
            if (
                other == NONE
                or lists.port_of[1, other] == NONE
                or peer[ports + other * switches + switch] != sends.rack[port]
            ):
                continue
            into = ports + other * switches + switch
            if not (_is_free(nodes, lists, out, now) and _is_free(nodes, lists, into, now)):
                continue
            f = _next_flow(window, lists, port, other)
            if f == NONE:
                continue
            if count + 1 >= len(nodes.setup):
                nodes = _enlarge(nodes)
            if _reserve(window, lists, nodes, count, (out, into), (now, window.setup_left[out]), f):
                _queue(lists, nodes, heap, count, out, into)
                count += 1
    return nodes, count


@inner
def _next_flow(window: _Window, lists: _Lists, port: int, rack: int) -> int:
    """Return the first flow from a sending port to a rack that is not planned to its end; NONE for none."""
    sends, limit = window.sends, window.now + window.same_ms
    for k in range(sends.start[port], sends.start[port + 1]):
        f = sends.place[k]
        if window.target[f] == rack and lists.planned[f] > 0 and lists.served_until[f] <= limit:
            flow: int = f
            return flow
    return NONE


@inner
def _fill_ports(
    window: _Window, lists: _Lists, nodes: Reservations, count: int, heap: list[tuple[float, int]]
) -> tuple[Reservations, int]:
    """Reserve ports for flows whenever they become free; return the reservations and their number."""
    ports, same_ms = window.racks * window.switches, window.same_ms
    current, queued = lists.current, lists.queued
    while len(heap) > 0:
        t, number = heapq.heappop(heap)
        if t >= window.end:
            break
        _advance(nodes, lists, number, t + same_ms, 0 if number < ports else 1)
        is_taken = False
        if _is_free(nodes, lists, number, t + same_ms):
            if count + 1 >= len(nodes.setup):
                nodes = _enlarge(nodes)
            is_taken = _try_port(window, lists, nodes, count, heap, t, number)
            count += is_taken
        if not is_taken and current[number] != NONE and queued[number] != current[number]:
            queued[number] = current[number]
            heapq.heappush(heap, (nodes.span[1, current[number]], number))
    return nodes, count


@inner
def _try_port(
    window: _Window,
    lists: _Lists,
    nodes: Reservations,
    count: int,
    heap: list[tuple[float, int]],
    t: float,
    number: int,
) -> bool:
    """Reserve a free port for its first flow with a free other port; return whether there is one."""
    source, target, switches = window.source, window.target, window.switches
    ports, later = window.racks * switches, t + window.same_ms
    side = 0 if number < ports else 1
    rack, switch = (number - side * ports) // switches, (number - side * ports) % switches
    of = window.sends if side == 0 else window.receives
    port = lists.port_of[side, rack]
    for k in range(of.start[port], of.start[port + 1]):
        f = of.place[k]
        if lists.planned[f] <= 0 or lists.served_until[f] > later:
            continue
        far = target[f] if side == 0 else source[f]
        other = (1 - side) * ports + far * switches + switch
        _advance(nodes, lists, other, later, 1 - side)
        if not _is_free(nodes, lists, other, later):
            continue
        out, into = (number, other) if side == 0 else (other, number)
        setup = window.setup_ms
        if _is_connected(window, lists, nodes, out, into, f, t):
            setup = 0.0 if lists.before[out] != NONE else window.setup_left[out]
        if _reserve(window, lists, nodes, count, (out, into), (t, setup), f):
            _queue(lists, nodes, heap, count, out, into)
            return True
    return False


@inner
def _queue(
    lists: _Lists, nodes: Reservations, heap: list[tuple[float, int]], node: int, out: int, into: int
) -> None:
    """Look at two ports again at the end of a reservation."""
    heapq.heappush(heap, (nodes.span[1, node], out))
    heapq.heappush(heap, (nodes.span[1, node], into))
    lists.queued[out] = lists.queued[into] = node


@inner
def _is_free(nodes: Reservations, lists: _Lists, number: int, t: float) -> bool:
    """Return whether a port is free at a time; its list has been advanced to it."""
    node = lists.current[number]
    is_free: bool = node == NONE or nodes.span[0, node] > t
    return is_free


@inner
def _advance(nodes: Reservations, lists: _Lists, number: int, t: float, side: int) -> None:
    """Advance a port's list past the reservations that have ended."""
    node = lists.current[number]
    while node != NONE and nodes.span[1, node] <= t:
        lists.before[number] = node
        node = nodes.after[side, node]
    lists.current[number] = node


@inner
def _is_connected(
    window: _Window, lists: _Lists, nodes: Reservations, out: int, into: int, flow: int, t: float
) -> bool:
    """Return whether two ports are connected to each other at a time, with nothing since then."""
    previous_out, other = lists.before[out], lists.before[into]
    if previous_out == NONE and other == NONE:
        is_kept: bool = (
            t <= window.now + window.same_ms
            and window.peer[out] == window.target[flow]
            and window.peer[into] == window.source[flow]
        )
        return is_kept
    is_last: bool = previous_out == other and nodes.span[1, previous_out] >= t - window.same_ms
    return is_last


@inner
def _reserve(
    window: _Window,
    lists: _Lists,
    nodes: Reservations,
    node: int,
    ends: tuple[int, int],
    begin: tuple[float, float],
    flow: int,
) -> bool:
    """Reserve two ports for a flow from a time on; return False where it has no time to carry anything.

    node   number of the reservation
    ends   sending and receiving port
    begin  time and set-up time, ms
    """
    before, current, planned, same_ms = lists.before, lists.current, lists.planned, window.same_ms
    out, into = ends
    t, setup = begin
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
    nodes.span[0, node], nodes.span[1, node] = t, until
    nodes.setup[node], nodes.need[node], nodes.flow[node] = setup, served, flow
    planned[flow] -= served
    lists.served_until[flow] = until
    for side in range(2):
        number = out if side == 0 else into
        nodes.after[side, node] = current[number]
        if before[number] == NONE:
            lists.head[number] = node
        else:
            nodes.after[side, before[number]] = node
        current[number] = node
    return True


@inner
def _enlarge(nodes: Reservations) -> Reservations:
    """Return the reservations in arrays twice as long."""
    size = len(nodes.setup)
    span, after = np.empty((2, 2 * size)), np.empty((2, 2 * size), np.int64)
    setup, need, flow = np.empty(2 * size), np.empty(2 * size), np.empty(2 * size, np.int64)
    span[:, :size], after[:, :size] = nodes.span, nodes.after
    setup[:size], need[:size], flow[:size] = nodes.setup, nodes.need, nodes.flow
    return Reservations(span, setup, need, flow, after)


@inner
def _commit(
    window: _Window, nodes: Reservations, count: int, head: Ints, need: Floats
) -> tuple[Ints, Floats, Floats, Ints]:
    """Return the services until the end; update the remaining flows and the connections of ports."""
    end, ports = window.end, window.racks * window.switches
    flow, switch = np.empty(count, np.int64), np.empty(count, np.int64)
    start, stop = np.empty(count), np.empty(count)
    of_node = np.full(count, NONE)
    for port in range(ports):
        node = head[port]
        while node != NONE:
            of_node[node] = port % window.switches
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
        if head[port] != NONE:
            _connect(window, nodes, port, head[port])
    return flow[:served], start[:served], stop[:served], switch[:served]


@inner
def _connect(window: _Window, nodes: Reservations, port: int, node: int) -> None:
    """Connect a port as its last reservation does, from its first one `node` on."""
    side = 0 if port < window.racks * window.switches else 1
    while nodes.after[side, node] != NONE:
        node = nodes.after[side, node]
    f = nodes.flow[node]
    window.peer[port] = window.target[f] if side == 0 else window.source[f]
    window.setup_left[port] = max(0.0, nodes.span[0, node] + nodes.setup[node] - window.end)
