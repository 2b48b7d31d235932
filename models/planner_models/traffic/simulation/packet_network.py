"""Flows of a traffic problem whose packets are followed, as an execution that a design controls.

source  Sen et al. 2013 (LocalFlow), sections 5 and 7
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Final, Literal

import numpy as np
import pandas as pd
import scipy.sparse as sp
from pydantic import Field

from planner.arrays import Bools, Floats, Ints
from planner.contract.design import Decision
from planner.contract.drawing import Curve, NetworkMap
from planner.contract.frames import FrameRecorder
from planner.contract.table import Table, label, number
from planner.contract.tolerances import ROUNDING
from planner.errors import InputError
from planner_models.graphs.indexing import sum_by_index
from planner_models.packets.controls import CONTROLS
from planner_models.packets.hops import layout
from planner_models.packets.hops.access import AccessNetwork, add_hosts
from planner_models.packets.hops.forwarding import HASH, MODES, SOURCE
from planner_models.packets.hops.network import (
    FlowList,
    PacketNetwork,
    PacketSettings,
    add_flows,
    build_network,
)
from planner_models.packets.hops.senders import UDP
from planner_models.packets.state import NOW, TICKS_PER_US
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.drawing import draw_network
from planner_models.traffic.problem.failures import remove_failed
from planner_models.traffic.problem.network_elements import ElementNames
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.simulation import flow_arrivals
from planner_models.traffic.simulation.flow_arrivals import (
    MBIT_PER_BYTE,
    UDP_NAME,
    ListedFlows,
    Poisson,
)
from planner_models.traffic.simulation.flow_network import FlowDynamics
from planner_models.traffic.simulation.flow_scheduler import FlowCounters
from planner_models.traffic.simulation.planned_routes import PlannedRoutes, SourceRoutes, links_of
from planner_models.traffic.simulation.staged_update import InstalledTables

US_PER_S: Final = 1e6
US_PER_MS: Final = 1e3
PROGRESS_STEPS: Final = 200
"""Times at which traffic and queues are recorded, besides those of measurements and pictures."""
LISTED_FLOWS: Final = 256  # of a source, drawn at once
MIXED: Final = ("reno", "cubic", "dctcp", "bbr")
"""Controls that flows have in turn where `control` is "mixed"."""

PACKET_FLOWS: Final = Table(
    name="flows",
    about="a flow that started",
    columns={
        "flow": number("number of the flow", at_least=0),
        "source": label("node where the flow starts"),
        "target": label("node where the flow ends"),
        "control": label("congestion control of its sender; udp: none, at a constant rate"),
        "size_bytes": number("bytes to send, in full packets", at_least=0),
        "start_s": number("start time, s", at_least=0),
        "end_s": number("end time, s; empty where the flow is still active", at_least=0, optional=True),
        "sent_bytes": number("bytes that have arrived until the end of the run", at_least=0),
        "retransmitted": number("packets sent again", at_least=0),
        "timeouts": number("timeouts", at_least=0),
        "buffer_bytes": number("largest amount received that waited for earlier packets, bytes", at_least=0),
    },
)
PACKET_LINKS: Final = Table(
    name="links",
    about="a link; sent packets have been received, were cut, or are on it",
    columns={
        "tail": label("node where the link starts"),
        "head": label("node where it ends"),
        "parallel": number("number among links with the same ends", at_least=0),
        "sent": number("packets that its queue accepted, replies too", at_least=0),
        "received": number("packets that have reached its end", at_least=0),
        "cut": number("packets that were lost in its queue as it failed", at_least=0),
        "dropped": number("packets that its queue refused", at_least=0),
        "marked": number("packets that its queue marked", at_least=0),
        "longest_queue": number("largest number of packets in its queue", at_least=0),
    },
)
QUEUES: Final = Table(
    name="queues",
    about="the queues of links that no host sends on, at a time",
    columns={
        "at_s": number("time, s", at_least=0),
        "longest": number("packets in the longest queue", at_least=0),
        "mean": number("packets of a queue in the mean", at_least=0),
        "full": number("links with a full queue", at_least=0),
    },
)


@dataclass(frozen=True, kw_only=True)
class PacketFlows:
    """What the senders of flows do."""

    control: Annotated[
        Literal["reno", "cubic", "dctcp", "bbr", "mixed"],
        Field(
            description="packets: congestion control of senders; mixed: flows have each of them in turn, as "
            "they start or are listed, source by source"
        ),
    ] = "reno"
    udp_share: Annotated[
        float,
        Field(
            ge=0,
            le=1,
            description="packets: share of flows of UDP, which send at a constant rate and are never split",
        ),
    ] = 0.0
    udp_classes: Annotated[
        tuple[str, ...],
        Field(description="packets: traffic classes of demands all of whose flows are of UDP"),
    ] = ()
    udp_mbps: Annotated[
        float, Field(gt=0, allow_inf_nan=False, description="packets: rate of a flow of UDP, Mbit/s")
    ] = 100.0


@dataclass(frozen=True, kw_only=True)
class LinkFailure:
    """Links that fail during a simulation."""

    fails: Annotated[
        tuple[str, ...],
        Field(
            description="packets: links that fail during the run, tail->head, or tail<->head for both ways"
        ),
    ] = ()
    fails_at_s: Annotated[
        float, Field(ge=0, allow_inf_nan=False, description="packets: time at which they fail, s")
    ] = 0.0
    repair_s: Annotated[
        float,
        Field(
            ge=0,
            allow_inf_nan=False,
            description="packets: time until nodes and sources avoid them and the design knows of them, s",
        ),
    ] = 0.05

    @property
    def known_s(self) -> float | None:
        """Time from which the failure is known; None without one."""
        return self.fails_at_s + self.repair_s if self.fails else None

    def find_down(self, problem: Traffic) -> Bools:
        """Return the links that fail, (E,); InputError for names that match nothing."""
        names = ElementNames(problem)
        down = np.zeros(len(problem.links), bool)
        for name in self.fails:
            down[names.match_links(name, "simulation.fails")] = True
        if names.faults:
            raise InputError(*names.faults)
        return down


@dataclass(frozen=True, kw_only=True, eq=False)
class PacketRouteUpdate:
    """Routes of a plan.

    flow      (F,) numbers of the observed flows, which take them; None: all flows, those to come too
    decision  of the design
    """

    flow: Ints | None
    routes: PlannedRoutes
    decision: Decision[Routing]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Senders:
    """Senders of flows, each (F,): control, rate of UDP in Mbit/s, and whether the flow is never split."""

    control: Ints
    rate_mbps: Floats
    is_whole: Bools


class PacketExecution:
    """A network whose flows arrive, send packets, are rerouted, and end."""

    def __init__(
        self,
        problem: Traffic,
        dynamics: FlowDynamics,
        settings: PacketSettings,
        *,
        senders: PacketFlows,
        failure: LinkFailure,
        mode: str,
        until_s: float,
        recorder: FrameRecorder,
        update_s: float = 0.0,
    ) -> None:
        """Build the network at time 0, with flows to come.

        mode      of forwarding, of `forwarding.MODES`; flows of a plan over paths have source routes instead
        update_s  over which nodes install the tables of a plan one after another
        """
        self._problem, self._settings, self._recorder = problem, settings, recorder
        self._senders, self._mode = senders, MODES.index(mode)
        self._is_udp = problem.in_classes(senders.udp_classes, "udp_classes")
        self._failure, self._down = failure, failure.find_down(problem)
        self._demands: list[int] = []
        self._whole: list[bool] = []
        self._plan: PlannedRoutes | None = None
        self._is_planned = False  # whether flows to come have its routes too
        self._update_s, self._tables = update_s, InstalledTables(problem, dynamics.seed)
        self._installs: list[tuple[float, Callable[[], None]]] = []
        self._events: list[tuple[float, Callable[[], None]]] = []
        if failure.known_s is not None:
            self._events = [(failure.fails_at_s, self._cut_links), (failure.known_s, self._avoid_links)]
        self._is_known_down = np.zeros(len(problem.links), bool)
        self._routable = problem.routable
        if not (self._routable.rate_mbps > 0).any():
            raise InputError("no demand has a rate above 0 and a path, so no flows run")
        ends = np.unique(np.concatenate([problem.source, problem.target]))
        delay_us = np.full(len(problem.links), settings.hop_delay_us)
        if "latency_ms" in problem.links:
            delay_us = problem.links["latency_ms"].to_numpy(float) * US_PER_MS
        self._access: AccessNetwork = add_hosts(links_of(problem), ends, delay_us)
        self._network = self._build(dynamics, ends, until_s)
        self._require_replies(ends)
        self._require_udp()
        self._progress: list[tuple[float, float]] = [(0.0, 0.0)]
        self._queues: list[tuple[float, float, float, int]] = []
        self._now_s, self._step_s = 0.0, until_s / PROGRESS_STEPS
        self._frame_s, self._frame_mbit = 0.0, 0.0

    def _require_replies(self, ends: Ints) -> None:
        """Raise InputError where replies of a demand have no path back."""
        problem, first = self._routable, self._network.hops.first
        row = np.searchsorted(ends, problem.source)
        target = self._access.host_of[problem.target]
        is_lost = (problem.rate_mbps > 0) & (first[target, row] == first[target, row + 1])
        if is_lost.any():
            name = problem.demand_labels[int(np.argmax(is_lost))]
            raise InputError(f"{name}: there is no path back, by which replies to packets return")

    def _require_udp(self) -> None:
        """Raise InputError where flows of UDP are faster than the links of their source."""
        problem, mbps = self._routable, self._senders.udp_mbps
        out_mbps = sum_by_index(problem.tail, problem.capacity_mbps, len(problem.nodes))[problem.source]
        is_slow = (problem.rate_mbps > 0) & (mbps > out_mbps * (1 + ROUNDING))
        is_slow &= self._is_udp | (self._senders.udp_share > 0)
        if is_slow.any():
            row = int(np.argmax(is_slow))
            raise InputError(
                f"udp_mbps is {mbps:g}, must be at most the rate of the links of "
                f"{problem.demands['source'].iloc[row]}, {out_mbps[row]:g} Mbit/s"
            )

    def _build(self, dynamics: FlowDynamics, ends: Ints, until_s: float) -> PacketNetwork:
        """Return the network with its first flows."""
        problem, arrivals, seed = self._routable, dynamics.arrivals, dynamics.seed
        hosts = self._access.host_of[ends]
        if isinstance(arrivals, Poisson):
            stream = flow_arrivals.poisson_flows(problem, dynamics.sizes, arrivals.load, seed)
            return build_network(
                self._access.links,
                self._list_arrivals(stream, until_s),
                self._settings,
                ends=hosts,
                seed=seed,
            )
        if isinstance(arrivals, ListedFlows):
            return build_network(
                self._access.links, self._make_listed(arrivals), self._settings, ends=hosts, seed=seed
            )
        sources = np.unique(problem.source[problem.rate_mbps > 0]).tolist()
        self._streams = {
            index: flow_arrivals.closed_loop_flows(problem, dynamics.sizes, source, seed)
            for index, source in enumerate(sources)
        }
        return build_network(
            self._access.links,
            self._list_following(),
            self._settings,
            ends=hosts,
            lists=len(sources),
            listed=arrivals.flows_per_source,
            active=0,
            seed=seed,
        )

    @property
    def problem(self) -> Traffic:
        """The problem at the start."""
        return self._problem

    @property
    def network(self) -> PacketNetwork:
        """The network, see `packets.hops`."""
        return self._network

    @property
    def inner_links(self) -> Ints:
        """Links of the problem on which no host sends."""
        hosts = self._access.host_of[self._access.host_of < len(self._problem.nodes)]
        return np.flatnonzero(~np.isin(self._problem.tail, hosts))

    @property
    def longest_queue(self) -> int:
        """Largest number of packets at once in a queue of these links."""
        return int(self._network.of("longest")[self.inner_links].max(initial=0))

    def problem_at(self, time_s: float) -> Traffic:
        """Return the problem as it is known at a time: without links whose failure is known."""
        known_s = self._failure.known_s
        if known_s is None or time_s < known_s * (1 - ROUNDING):
            return self._problem
        return remove_failed(self._problem, self._down, np.ones(len(self._down)), "shed")

    # --- as an execution ------------------------------------------------------------------

    def advance(self, until_s: float) -> None:
        """Advance packets to `until_s`."""
        for time_s in self._recorder.due(until_s):
            self._advance(time_s)
            self._take_frame(time_s)
        self._advance(until_s)

    def apply(self, decision: PacketRouteUpdate) -> None:
        """Give observed flows that are active, or all flows, the routes of a plan."""
        self._plan = decision.routes
        if self._is_staged:
            groups = self._tables.draw_groups()
            self._installs = [
                (
                    self._now_s + index * self._update_s / len(groups),
                    partial(self._install, nodes, decision.flow),
                )
                for index, nodes in enumerate(groups)
            ]
        elif decision.flow is None:
            self._is_planned = True
            self._set_routes(self._flows_to_come())
        else:
            self._set_routes(decision.flow[self._network.flows.row[decision.flow] >= 0])

    def observe(self) -> FlowCounters:
        """Return the counters of the active flows."""
        network = self._network
        active = np.flatnonzero(network.flows.row >= 0)
        mbit = self._settings.packet_bytes * MBIT_PER_BYTE
        return FlowCounters(
            at_s=network.now_us / US_PER_S,
            flow=active,
            demand=self._demand_of(active),
            sent_mbit=network.acknowledged()[active].astype(np.float64) * mbit,
        )

    def record(self) -> dict[str, pd.DataFrame]:
        """Return the tables `PACKET_FLOWS`, `PACKET_LINKS`, `QUEUES` and `flow_network.PROGRESS`."""
        return {
            "flows": self._flow_table(),
            "links": self._link_table(),
            "queues": pd.DataFrame(self._queues, columns=list(QUEUES.columns)),
            "progress": pd.DataFrame(self._progress, columns=["at_s", "sent_mbit"]),
        }

    def finish(self) -> None:
        """Draw the frames that are due at the end."""
        for time_s in self._recorder.due():
            self._take_frame(time_s)

    # --- routes and failures ----------------------------------------------------------------

    def _demand_of(self, flows: Ints) -> Ints:
        return np.array(self._demands, np.int64)[flows]

    def _modes_of(self, flows: Ints) -> Ints:
        """Return the forwarding mode of each flow: by a hash those that are never split."""
        return np.where(np.array(self._whole, bool)[flows], HASH, self._mode)

    def _flows_to_come(self) -> Ints:
        """Return the flows that have not ended."""
        return np.flatnonzero(self._network.flows.end_ticks < 0)

    def _set_routes(self, flows: Ints) -> None:
        """Give some flows the routes of the latest plan, without links whose failure is known."""
        if self._plan is None:
            return
        if self._is_staged:
            if self._is_known_down.any():
                self._tables.drop_links(self._is_known_down)
            self._set_tables(flows)
            return
        routes = self._plan
        if self._is_known_down.any():
            routes = routes.without_links(self._problem, self._is_known_down)
        demand, network = self._demand_of(flows), self._network
        if self._plan.is_by_source:
            source_routes = SourceRoutes(self._problem, self._access, routes, self._is_known_down)
            walks, route = source_routes.select(flows, demand, self._settings.subflows)
            network.set_source_routes(walks, flows, route)
            return
        row = routes.row[demand]
        share = sp.csr_array(routes.share)
        share.resize((share.shape[0], len(self._access.links.tail)))
        # of demands whose flows are rerouted the tables are made; flows of others take shortest paths
        network.set_routes(share, np.unique(row[row >= 0]), flows, row)
        network.flows.mode[flows] = self._modes_of(flows)

    @property
    def _is_staged(self) -> bool:
        """True where nodes install the present plan one after another; paths are changed by their sources."""
        return self._update_s > 0 and self._plan is not None and not self._plan.is_by_source

    def _install(self, nodes: Ints, flows: Ints | None) -> None:
        """Install the present plan at some nodes, for observed flows that are active, or for all."""
        assert self._plan is not None
        self._tables.install(self._plan, nodes)
        if self._is_known_down.any():
            self._tables.drop_links(self._is_known_down)
        if flows is None:
            self._is_planned = True
            flows = self._flows_to_come()
        self._set_tables(flows[self._network.flows.end_ticks[flows] < 0])

    def _set_tables(self, flows: Ints) -> None:
        """Give some flows the tables that nodes have installed."""
        share = self._tables.share.copy()
        share.resize((share.shape[0], len(self._access.links.tail)))
        demand, network = self._demand_of(flows), self._network
        network.set_routes(share, np.unique(demand), flows, demand, may_loop=True)
        network.flows.mode[flows] = self._modes_of(flows)

    def _cut_links(self) -> None:
        """Cut the links that fail."""
        self._network.fail_links(np.flatnonzero(self._down))

    def _avoid_links(self) -> None:
        """Avoid the links that have failed, on shortest paths and in the present plan."""
        self._is_known_down = self._down
        hosts = np.zeros(len(self._access.links.tail) - len(self._down), bool)
        self._network.avoid_links(np.r_[self._down, hosts])
        flows = self._network.flows
        has_route = (flows.route >= 0).any(axis=1) | (flows.mode == SOURCE)
        self._set_routes(np.flatnonzero(has_route & (flows.end_ticks < 0)))

    # --- flows ------------------------------------------------------------------------------

    def _advance(self, until_s: float) -> None:
        """Advance packets to a time, and record progress at steps on the way."""
        while self._now_s < until_s:
            step = math.floor(self._now_s / self._step_s * (1 + ROUNDING)) + 1
            for events in (self._events, self._installs):
                while events and events[0][0] <= self._now_s:
                    events.pop(0)[1]()
            next_s = min(
                (events[0][0] for events in (self._events, self._installs) if events), default=math.inf
            )
            self._now_s = min(until_s, step * self._step_s, next_s)
            while self._network.advance(self._now_s * US_PER_S) == layout.OUT_OF_FLOWS:
                add_flows(self._network, self._list_following())
                if self._is_planned:
                    self._set_routes(self._flows_to_come())
            packets = float(self._network.acknowledged().sum())
            self._progress.append((self._now_s, packets * self._settings.packet_bytes * MBIT_PER_BYTE))
            self._record_queues()

    def _record_queues(self) -> None:
        """Record the queues of links that no host sends on."""
        links = self.inner_links
        waiting = queued_packets(self._network)[links]
        limit = self._network.of("queue_limit")[links]
        is_full = (waiting >= limit - 1) & (limit > 0)
        mean = float(waiting.mean()) if len(waiting) else 0.0
        self._queues.append((self._now_s, float(waiting.max(initial=0.0)), mean, int(is_full.sum())))

    def _list_following(self) -> FlowList:
        """Return the next flows of each source."""
        # the first flow of each source, then the second ones: `control` and UDP alternate among sources
        lists = [
            (index, *next(stream)) for _ in range(LISTED_FLOWS) for index, stream in self._streams.items()
        ]
        list_of, demand, size = (np.array(column) for column in zip(*lists, strict=True))
        return self._make_flows(demand, size, np.zeros(len(size)), list_of)

    def _list_arrivals(self, stream: Iterator[tuple[float, int, float]], until_s: float) -> FlowList:
        """Return the flows that arrive before the end of the run."""
        arrivals = list(itertools.takewhile(lambda arrival: arrival[0] < until_s, stream))
        if not arrivals:
            raise InputError(f"no flow arrives in {until_s:g} s: raise load or until_s")
        start_s, demand, size = (np.array(column) for column in zip(*arrivals, strict=True))
        return self._make_flows(demand, size, start_s * US_PER_S, np.full(len(size), -1))

    def _make_flows(self, demand: Ints, size: Floats, start_us: Floats, list_of: Ints) -> FlowList:
        """Return flows of some demands, with the senders of the simulation."""
        return self._add_flows(demand, size, start_us, list_of, self._choose_senders(demand))

    def _make_listed(self, listed: ListedFlows) -> FlowList:
        """Return the flows of a list; senders that it leaves open are those of the simulation."""
        drawn = self._choose_senders(listed.demand)
        numbers = {name: CONTROLS.index(name) for name in MIXED} | {UDP_NAME: UDP}
        named = np.array([numbers.get(name, -1) for name in listed.control.tolist()], np.int64)
        control = np.where(named >= 0, named, drawn.control)
        mbps = np.where(np.isnan(listed.rate_mbps), self._senders.udp_mbps, listed.rate_mbps)
        senders = _Senders(
            control=control,
            rate_mbps=np.where(control == UDP, mbps, 0.0),
            is_whole=listed.is_whole | (control == UDP),
        )
        of_no_list = np.full(len(control), -1)
        return self._add_flows(
            listed.demand, listed.size_bytes, listed.start_s * US_PER_S, of_no_list, senders
        )

    def _choose_senders(self, demand: Ints) -> _Senders:
        """Return the senders of the next flows; of every 1 / `udp_share` one is of UDP, evenly spread."""
        first = len(self._demands)
        number = np.arange(first, first + len(demand))
        share = self._senders.udp_share
        udp_before = np.floor(number * share).astype(np.int64)
        is_udp = (np.floor((number + 1) * share) > udp_before) | self._is_udp[demand]
        names = MIXED if self._senders.control == "mixed" else (self._senders.control,)
        control = np.array([CONTROLS.index(name) for name in names])[(number - udp_before) % len(names)]
        return _Senders(
            control=np.where(is_udp, UDP, control),
            rate_mbps=np.where(is_udp, self._senders.udp_mbps, 0.0),
            is_whole=is_udp,
        )

    def _add_flows(
        self, demand: Ints, size: Floats, start_us: Floats, list_of: Ints, senders: _Senders
    ) -> FlowList:
        """Return flows of some demands, and note the demand of each, and which are never split."""
        self._demands += demand.tolist()
        self._whole += senders.is_whole.tolist()
        return FlowList(
            start_us=start_us,
            source=self._access.host_of[self._problem.source[demand]],
            target=self._access.host_of[self._problem.target[demand]],
            packets=np.maximum(np.ceil(size / self._settings.packet_bytes), 1).astype(np.int64),
            control=senders.control,
            mode=np.where(senders.is_whole, HASH, self._mode),
            list_of=list_of,
            rate_mbps=senders.rate_mbps,
        )

    # --- records ----------------------------------------------------------------------------

    def _flow_table(self) -> pd.DataFrame:
        flows, packet = self._network.flows, self._settings.packet_bytes
        index = np.flatnonzero((flows.end_ticks >= 0) | (flows.row >= 0))
        index = index[np.argsort(flows.start_ticks[index], kind="stable")]
        has_ended = flows.end_ticks[index] >= 0
        demand, ticks = self._demand_of(index), TICKS_PER_US * US_PER_S

        row = np.maximum(flows.row[index], 0) // self._network.state.at.flows_stride

        def value(name: str) -> Ints:
            of_active: Ints = self._network.of(name)[row]
            of_ended: Ints = getattr(flows, name)[index]
            return np.where(has_ended, of_ended, of_active)

        return pd.DataFrame(
            {
                "flow": index,
                "source": self._problem.demands["source"].to_numpy()[demand],
                "target": self._problem.demands["target"].to_numpy()[demand],
                "control": np.array([*CONTROLS, UDP_NAME], dtype=object)[flows.control[index]],
                "size_bytes": flows.packets[index] * packet,
                "start_s": flows.start_ticks[index] / ticks,
                "end_s": np.where(has_ended, flows.end_ticks[index] / ticks, np.nan),
                "sent_bytes": self._network.acknowledged()[index] * packet,
                "retransmitted": value("sent_again"),
                "timeouts": value("timeouts"),
                "buffer_bytes": value("longest_held") * packet,
            }
        )

    def _link_table(self) -> pd.DataFrame:
        network, count = self._network, len(self._problem.links)
        names = {"sent": "accepted", "received": "arrived", "cut": "cut"}
        names |= {"dropped": "dropped", "marked": "marked", "longest_queue": "longest"}
        columns = {name: network.of(field)[:count].copy() for name, field in names.items()}
        columns["received"] -= columns["cut"]
        return pd.DataFrame(
            {
                "tail": self._problem.links["tail"].to_numpy(),
                "head": self._problem.links["head"].to_numpy(),
                "parallel": self._problem.parallel,
                **columns,
            }
        )

    def _take_frame(self, time_s: float) -> None:
        """Draw the queues of links at a time."""
        passed_s = time_s - self._frame_s
        sent = self._progress[-1][1]
        value = (sent - self._frame_mbit) / passed_s if passed_s > 0 else None
        self._recorder.take(time_s, draw_queues(self._problem, self._network), value)
        self._frame_s, self._frame_mbit = time_s, sent


def queued_packets(network: PacketNetwork) -> Floats:
    """Return (E,) the packets that wait in the queue of each link, by the time until it is empty."""
    waits = np.maximum(network.of("free_ticks") - network.state.reals[NOW], 0.0)
    is_up = network.of("queue_limit") > 0
    return np.where(is_up, waits / network.of("data_ticks"), 0.0)


def draw_queues(problem: Traffic, network: PacketNetwork) -> NetworkMap:
    """Return the picture of the network, with the queue of each link as a share of its length."""
    count = len(problem.links)
    limit = np.maximum(network.of("queue_limit")[:count], 1)
    waiting = queued_packets(network)[:count]
    share = np.minimum(waiting / limit, 1.0)
    drawing = draw_network(problem, "Links by queue", load_mbps=share * problem.capacity_mbps)
    note = (
        ""
        if len(drawing.links) < count
        else [
            f"{packets:.0f} of {full} packets" for packets, full in zip(waiting, limit.tolist(), strict=True)
        ]
    )
    return replace(drawing, links=drawing.links.assign(note=note), value="queue")


def draw_queues_over_time(queues: pd.DataFrame) -> Curve:
    """Return the longest queue and the mean one over time."""
    names = {"at_s": "time", "longest": "longest queue", "mean": "mean of all queues"}
    return Curve(
        title="Packets in queues",
        frame=queues[list(names)].rename(columns=names),
        units={"time": "s", "longest queue": "packets", "mean of all queues": "packets"},
    )
