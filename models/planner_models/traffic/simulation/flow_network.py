"""The data plane of the simulation: flows arrive, share links max-min fairly, are rerouted, and end.

source  Sen et al. 2013 (LocalFlow): the flow dynamics of sections 7.2.2 and 7.5; fluid, where the
        paper simulates packets
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

import numpy as np
import pandas as pd
import scipy.sparse as sp
from pydantic import Field

from planner.arrays import Bools, Floats, Ints
from planner.contract.frames import FrameRecorder
from planner.contract.table import Table, label, number
from planner.errors import InputError
from planner_models.flows import fair_rates, next_hops
from planner_models.traffic.problem.drawing import draw_network
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.simulation import flow_arrivals
from planner_models.traffic.simulation.flow_arrivals import (
    MBIT_PER_BYTE,
    ONE_FLOW_PER_SOURCE,
    Arrivals,
    ClosedLoop,
    Poisson,
    SizeDistribution,
)
from planner_models.traffic.simulation.flow_scheduler import FlowCounters, RouteUpdate

MAX_PATHS_PER_DEMAND: Final = 64  # random paths drawn for a demand, which its flows use in turn
MAX_PATHS: Final = 500_000  # of all demands together

Start = Literal["hashed", "scattered"]

FLOWS: Final = Table(
    name="flows",
    about="a flow that started",
    columns={
        "flow": number("number of the flow, in order of start", at_least=0),
        "source": label("node where the flow starts"),
        "target": label("node where the flow ends"),
        "size_bytes": number("bytes to send", at_least=0),
        "start_s": number("start time, s", at_least=0),
        "end_s": number("end time, s; empty where the flow is still active", at_least=0, optional=True),
        "sent_bytes": number("bytes sent until the end of the run", at_least=0),
    },
)
PROGRESS: Final = Table(
    name="progress",
    about="an event; traffic grows linearly between two events",
    columns={
        "at_s": number("time, s", at_least=0),
        "sent_mbit": number("traffic sent by all flows until then, Mbit", at_least=0),
    },
)


@dataclass
class _Flows:
    """The active flows, one entry each; `count` of the entries are in use."""

    count: int = 0
    number: Ints = field(default_factory=lambda: np.zeros(64, dtype=np.int64))
    demand: Ints = field(default_factory=lambda: np.zeros(64, dtype=np.int64))
    route: Ints = field(default_factory=lambda: np.zeros(64, dtype=np.int64))
    size: Floats = field(default_factory=lambda: np.zeros(64))
    sent: Floats = field(default_factory=lambda: np.zeros(64))
    rate: Floats = field(default_factory=lambda: np.zeros(64))
    start: Floats = field(default_factory=lambda: np.zeros(64))

    COLUMNS = ("number", "demand", "route", "size", "sent", "rate", "start")

    def add(self, number: int, demand: int, route: int, size: float, start: float) -> None:
        if self.count == len(self.number):
            for name in self.COLUMNS:
                array = getattr(self, name)
                setattr(self, name, np.concatenate([array, np.zeros_like(array)]))
        i = self.count
        self.number[i], self.demand[i], self.route[i] = number, demand, route
        self.size[i], self.sent[i], self.rate[i], self.start[i] = size, 0.0, 0.0, start
        self.count += 1

    def remove(self, ended: Bools) -> None:
        """Remove the ended flows; the others keep their order, which is that of their numbers."""
        remaining = np.flatnonzero(~ended)
        for name in self.COLUMNS:
            array = getattr(self, name)
            array[: len(remaining)] = array[remaining]
        self.count = len(remaining)


@dataclass(frozen=True, kw_only=True)
class FlowSettings:
    """First routes of flows, and the times at which their rates are computed."""

    start: Annotated[
        Start, Field(description="route of a new flow: hashed on one equal-cost path, or scattered over all")
    ] = "hashed"
    settle_s: Annotated[
        float, Field(ge=0, description="rates are computed only at multiples of this; 0: at every event, s")
    ] = 0.0
    seed: Annotated[int, Field(ge=0, description="of flows and their first routes")] = 0


@dataclass(frozen=True, kw_only=True)
class FlowDynamics(FlowSettings):
    """The flows of a simulation.

    start          route of a new flow until it is scheduled: "hashed" on one random equal-cost
                   path, "scattered" evenly over all of them
    settle_s       rates are computed immediately after every event (0), or only at multiples of this:
                   much faster for many flows; a new flow then waits for its first rate
    seed           of flows and their first routes; same seed, same flows
    flow_cap_mbps  most that one flow sends; links limit it too
    """

    sizes: SizeDistribution
    arrivals: Arrivals = ONE_FLOW_PER_SOURCE
    flow_cap_mbps: float = math.inf


class FlowNetwork:
    """The data plane: an `Execution` of the control loop with decisions of type `RouteUpdate`."""

    def __init__(self, problem: Traffic, flows: FlowDynamics, frames: LinkFrames | None = None) -> None:
        sizes, arrivals, settle_s, seed = flows.sizes, flows.arrivals, flows.settle_s, flows.seed
        faults = []
        if not len(problem.targets):
            faults.append("no demand has a rate above 0, so no flows run")
        if not flows.flow_cap_mbps > 0:
            faults.append(f"flow_cap_mbps is {flows.flow_cap_mbps}, must be greater than 0")
        if not (0 <= settle_s < math.inf):
            faults.append(f"settle_s is {settle_s}, must be at least 0")
        if faults:
            raise InputError(*faults)
        self._problem, self._cap, self._settle_s = problem, flows.flow_cap_mbps, settle_s
        self._now = 0.0
        self._numbers = itertools.count()
        self._active = _Flows()
        self._ended: list[tuple[int, int, float, float, float]] = []
        self._sent = 0.0
        self._progress: list[tuple[float, float]] = [(0.0, 0.0)]
        self._frames = frames
        self._rates_at_s = math.inf
        self._first_routes, self._paths_per_demand = _first_routes(problem, flows.start, seed)
        self._routes = self._first_routes
        self._started = np.zeros(len(problem.demands), dtype=np.int64)
        self._arrivals = arrivals
        if not isinstance(arrivals, ClosedLoop):
            self._coming = (
                flow_arrivals.poisson_flows(problem, sizes, arrivals.load, seed)
                if isinstance(arrivals, Poisson)
                else arrivals.stream()
            )
            self._next = next(self._coming)
        else:
            self._next = (math.inf, 0, 0.0)
            self._closed_loop = {
                source: flow_arrivals.closed_loop_flows(problem, sizes, source, seed)
                for source in np.unique(problem.source[problem.rate_mbps > 0]).tolist()
            }
            for source in sorted(self._closed_loop) * arrivals.flows_per_source:
                self._begin(*next(self._closed_loop[source]))

    # --- as an execution ------------------------------------------------------------------

    def advance(self, until_s: float) -> None:
        """Let flows send, end and arrive until `until_s`."""
        while True:
            if self._rates_at_s <= self._now:
                self._compute_rates()
            active = self._active
            count = active.count
            sent, size, rate = active.sent[:count], active.size[:count], active.rate[:count]
            with np.errstate(divide="ignore"):
                left_s = (size - sent) / rate
            first_s = float(left_s.min()) if active.count else math.inf
            end_s = min(until_s, self._now + first_s, self._next[0], self._rates_at_s)
            passed_s = end_s - self._now
            if self._frames is not None:
                self._frames.pass_time(self._now, end_s, self.load_mbps(), float(rate.sum()))
            sent += rate * passed_s
            self._sent += float(rate.sum()) * passed_s
            first_ends = active.count > 0 and end_s == self._now + first_s
            self._now = end_s
            if first_ends:  # and all flows that end at the same time but for rounding
                self._end(left_s <= first_s * (1 + 1e-12))
            while self._next[0] <= self._now:
                self._begin(self._next[1], self._next[2])
                self._next = next(self._coming)
            self._progress.append((self._now, self._sent))
            if self._now >= until_s and self._rates_at_s > self._now:
                return

    def apply(self, decision: RouteUpdate) -> None:
        """Move the observed flows that are still active to their demand's new route."""
        active = self._active
        first = self._routes.shape[0]
        is_observed = np.isin(active.number[: active.count], decision.flow, assume_unique=True)
        is_moved = is_observed & decision.decided[active.demand[: active.count]]
        routes = np.where(is_moved, first + active.demand[: active.count], active.route[: active.count])
        pool = sp.vstack([self._routes, decision.share], format="csr")
        # keep only the decided routes in use, so that the table does not grow
        drawn = self._first_routes.shape[0]
        used, inverse = np.unique(routes[routes >= drawn], return_inverse=True)
        routes[routes >= drawn] = drawn + inverse
        rows_used = sp.csr_array(pool)[used] if len(used) else sp.csr_array((0, len(self._problem.links)))
        self._routes = sp.csr_array(sp.vstack([self._first_routes, rows_used], format="csr"))
        active.route[: active.count] = routes
        self._schedule_rates()

    def observe(self) -> FlowCounters:
        """Return the counters of the active flows."""
        active = self._active
        return FlowCounters(
            at_s=self._now,
            flow=active.number[: active.count].copy(),
            demand=active.demand[: active.count].copy(),
            sent_mbit=active.sent[: active.count].copy(),
        )

    def record(self) -> dict[str, pd.DataFrame]:
        """Return the tables `FLOWS` and `PROGRESS`."""
        active = self._active
        active_rows = [
            (*values, math.nan, sent)
            for *values, sent in zip(
                active.number[: active.count].tolist(),
                active.demand[: active.count].tolist(),
                active.size[: active.count].tolist(),
                active.start[: active.count].tolist(),
                active.sent[: active.count].tolist(),
                strict=True,
            )
        ]
        ended = [(*flow, flow[2]) for flow in self._ended]
        columns = ["flow", "demand", "size_mbit", "start_s", "end_s", "sent_mbit"]
        frame = pd.DataFrame(ended + active_rows, columns=columns).sort_values("flow", ignore_index=True)
        demand = frame["demand"].to_numpy(dtype=np.int64)
        flows = pd.DataFrame(
            {
                "flow": frame["flow"],
                "source": self._problem.demands["source"].to_numpy()[demand],
                "target": self._problem.demands["target"].to_numpy()[demand],
                "size_bytes": frame["size_mbit"] / MBIT_PER_BYTE,
                "start_s": frame["start_s"],
                "end_s": frame["end_s"].astype(float),
                "sent_bytes": frame["sent_mbit"] / MBIT_PER_BYTE,
            }
        )
        progress = pd.DataFrame(self._progress, columns=["at_s", "sent_mbit"])
        return {"flows": flows, "progress": progress}

    def load_mbps(self) -> Floats:
        """Return the present load of each link, shape (E,), Mbit/s."""
        active = self._active
        share = self._routes[active.route[: active.count]]
        return np.asarray(share.T @ active.rate[: active.count]).ravel()

    # --- events ---------------------------------------------------------------------

    def _end(self, ended: Bools) -> None:
        active = self._active
        gone = np.flatnonzero(ended)
        for i in gone.tolist():
            flow = int(active.number[i]), int(active.demand[i]), float(active.size[i]), float(active.start[i])
            self._ended.append((*flow, self._now))
        demands = active.demand[gone].tolist()
        active.remove(ended)
        self._schedule_rates()
        if isinstance(self._arrivals, ClosedLoop):
            for demand in demands:
                self._begin(*next(self._closed_loop[int(self._problem.source[demand])]))

    def _begin(self, demand: int, size_bytes: float) -> None:
        route = demand * self._paths_per_demand + int(self._started[demand]) % self._paths_per_demand
        self._started[demand] += 1
        self._active.add(next(self._numbers), demand, route, size_bytes * MBIT_PER_BYTE, self._now)
        self._schedule_rates()

    def _schedule_rates(self) -> None:
        """Schedule the next computation of rates: at once, or at the next multiple of `settle_s`."""
        if self._settle_s == 0:
            self._rates_at_s = self._now
        elif self._rates_at_s == math.inf:
            self._rates_at_s = math.ceil(self._now / self._settle_s - 1e-9) * self._settle_s

    def _compute_rates(self) -> None:
        active = self._active
        if active.count:
            share = self._routes[active.route[: active.count]]
            cap = np.full(active.count, self._cap)
            active.rate[: active.count] = fair_rates.max_min_rates(share, self._problem.capacity_mbps, cap)
        self._rates_at_s = math.inf


def _first_routes(problem: Traffic, start: Start, seed: int) -> tuple[sp.csr_array, int]:
    """Return the paths that new flows of a demand use in turn, (K * n, E), and n."""
    hops = next_hops.find_next_hops(problem)
    if start == "scattered":
        return next_hops.even_shares(hops), 1
    count = max(1, min(MAX_PATHS_PER_DEMAND, MAX_PATHS // len(problem.demands)))
    random = np.random.default_rng([seed, 0])
    return next_hops.draw_paths(hops, random, copies=count), count


class LinkFrames:
    """Measures the load of links between two frames, and draws it."""

    def __init__(self, problem: Traffic, recorder: FrameRecorder) -> None:
        self._problem, self._recorder = problem, recorder
        self._since_s = 0.0
        self._carried_mbit = np.zeros(len(problem.links))
        self._sent_mbit = 0.0

    def pass_time(self, now_s: float, until_s: float, load_mbps: Floats, rate_mbps: float) -> None:
        """Let links carry a constant load (E,) from now until a time, while flows send at a total rate."""
        for time_s in self._recorder.due(until_s):
            self._add(time_s - now_s, load_mbps, rate_mbps)
            now_s = time_s
            self._take(time_s)
        self._add(until_s - now_s, load_mbps, rate_mbps)

    def finish(self) -> None:
        """Draw the due frames at the end."""
        for time_s in self._recorder.due():
            self._take(time_s)

    def _add(self, passed_s: float, load_mbps: Floats, rate_mbps: float) -> None:
        self._carried_mbit += passed_s * load_mbps
        self._sent_mbit += passed_s * rate_mbps

    def _take(self, time_s: float) -> None:
        """Draw the time since the last frame; there is nothing to draw at time 0."""
        passed_s = time_s - self._since_s
        if passed_s <= 0:
            return
        # a link that is full but for rounding is not overloaded
        load = np.minimum(self._carried_mbit / passed_s, self._problem.capacity_mbps)
        picture = draw_network(self._problem, "Links by utilization", load_mbps=load)
        self._recorder.take(time_s, picture, self._sent_mbit / passed_s)
        self._since_s, self._sent_mbit = time_s, 0.0
        self._carried_mbit[:] = 0.0
