"""The data plane of flows: they come, share the links max-min fairly, are rerouted, and end.

source  Sen et al. 2013 (LocalFlow): the flow dynamics of sections 7.2.2 and 7.5; fluid, where the
        paper simulates packets
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from planner.errors import InputError
from planner_models.traffic import arrivals as arriving
from planner_models.traffic import next_hops, rates
from planner_models.traffic.arrivals import MBIT, Arrivals, ClosedLoop, Poisson
from planner_models.traffic.flow_sizes import Sizes
from planner_models.traffic.problem import Traffic
from planner_models.traffic.scheduling import Seen, Steering

HASHES: Final = 64  # routes drawn for a demand, which its flows take in turn
MOST_ROUTES: Final = 500_000  # drawn for all demands together

Start = Literal["hashed", "scattered"]


@dataclass
class _Flows:
    """The flows that are there, one entry each; `count` of the entries are in use."""

    count: int = 0
    number: NDArray[np.int64] = field(default_factory=lambda: np.zeros(64, dtype=np.int64))
    demand: NDArray[np.int64] = field(default_factory=lambda: np.zeros(64, dtype=np.int64))
    route: NDArray[np.int64] = field(default_factory=lambda: np.zeros(64, dtype=np.int64))
    size: NDArray[np.float64] = field(default_factory=lambda: np.zeros(64))
    sent: NDArray[np.float64] = field(default_factory=lambda: np.zeros(64))
    rate: NDArray[np.float64] = field(default_factory=lambda: np.zeros(64))
    start: NDArray[np.float64] = field(default_factory=lambda: np.zeros(64))

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

    def remove(self, ended: NDArray[np.bool_]) -> None:
        """Close the gaps; the flows that stay keep their order, which is that of their numbers."""
        kept = np.flatnonzero(~ended)
        for name in self.COLUMNS:
            array = getattr(self, name)
            array[: len(kept)] = array[kept]
        self.count = len(kept)


class FlowNetwork:
    """The data plane: an execution (`planner.loop.Execution`) whose decisions are `Steering`."""

    def __init__(
        self,
        problem: Traffic,
        *,
        sizes: Sizes,
        arrivals: Arrivals,
        start: Start = "hashed",
        flow_cap_mbps: float = math.inf,
        settle_s: float = 0.0,
        seed: int = 0,
    ) -> None:
        faults = []
        if not len(problem.targets):
            faults.append("no demand has a rate above 0, so no flows run")
        if not flow_cap_mbps > 0:
            faults.append(f"flow_cap_mbps is {flow_cap_mbps}, must be greater than 0")
        if not (0 <= settle_s < math.inf):
            faults.append(f"settle_s is {settle_s}, must be at least 0")
        if faults:
            raise InputError(*faults)
        self._problem, self._cap, self._settle_s = problem, flow_cap_mbps, settle_s
        self._now = 0.0
        self._numbers = itertools.count()
        self._here = _Flows()
        self._ended: list[tuple[int, int, float, float, float]] = []
        self._sent = 0.0
        self._progress: list[tuple[float, float]] = [(0.0, 0.0)]
        self._settle_at = math.inf
        self._first_routes, self._hashes = _first_routes(problem, start, seed)
        self._routes = self._first_routes
        self._begun = np.zeros(len(problem.demands), dtype=np.int64)
        self._arrivals = arrivals
        if isinstance(arrivals, Poisson):
            self._coming = arriving.poisson(problem, sizes, arrivals.load, seed)
            self._next = next(self._coming)
        else:
            self._next = (math.inf, 0, 0.0)
            self._following = {
                source: arriving.following(problem, sizes, source, seed)
                for source in np.unique(problem.source[problem.rate_mbps > 0]).tolist()
            }
            for source in sorted(self._following) * arrivals.flows_per_source:
                self._begin(*next(self._following[source]))

    # --- as an execution ------------------------------------------------------------------

    def advance(self, until_s: float) -> None:
        """Let flows send, end and come until `until_s`."""
        while True:
            if self._settle_at <= self._now:
                self._settle()
            here = self._here
            sent, size, rate = here.sent[: here.count], here.size[: here.count], here.rate[: here.count]
            with np.errstate(divide="ignore"):
                left_s = (size - sent) / rate
            first_s = float(left_s.min()) if here.count else math.inf
            at = min(until_s, self._now + first_s, self._next[0], self._settle_at)
            passed_s = at - self._now
            sent += rate * passed_s
            self._sent += float(rate.sum()) * passed_s
            first_ends = here.count > 0 and at == self._now + first_s
            self._now = at
            if first_ends:  # and with it what ends within rounding of it
                self._end(left_s <= first_s * (1 + 1e-12))
            while self._next[0] <= self._now:
                self._begin(self._next[1], self._next[2])
                self._next = next(self._coming)
            self._progress.append((self._now, self._sent))
            if self._now >= until_s and self._settle_at > self._now:
                return

    def apply(self, decision: Steering) -> None:
        """The flows that the scheduler saw, and that are still there, take their demand's new route."""
        here = self._here
        first = self._routes.shape[0]
        seen = np.isin(here.number[: here.count], decision.flow, assume_unique=True)
        mine = seen & decision.decided[here.demand[: here.count]]
        routes = np.where(mine, first + here.demand[: here.count], here.route[: here.count])
        pool = sp.vstack([self._routes, decision.share], format="csr")
        # of routes that were decided keep those in use, so that the table does not grow
        drawn = self._first_routes.shape[0]
        used, place = np.unique(routes[routes >= drawn], return_inverse=True)
        routes[routes >= drawn] = drawn + place
        kept = sp.csr_array(pool)[used] if len(used) else sp.csr_array((0, len(self._problem.links)))
        self._routes = sp.csr_array(sp.vstack([self._first_routes, kept], format="csr"))
        here.route[: here.count] = routes
        self._disturbed()

    def observe(self) -> Seen:
        """The counters of the flows that are there."""
        here = self._here
        return Seen(
            at_s=self._now,
            flow=here.number[: here.count].copy(),
            demand=here.demand[: here.count].copy(),
            sent_mbit=here.sent[: here.count].copy(),
        )

    def record(self) -> dict[str, pd.DataFrame]:
        """flows and progress, see `Simulation`."""
        here = self._here
        going = [
            (*values, math.nan, sent)
            for *values, sent in zip(
                here.number[: here.count].tolist(),
                here.demand[: here.count].tolist(),
                here.size[: here.count].tolist(),
                here.start[: here.count].tolist(),
                here.sent[: here.count].tolist(),
                strict=True,
            )
        ]
        ended = [(*flow, flow[2]) for flow in self._ended]
        columns = ["flow", "demand", "size_mbit", "start_s", "end_s", "sent_mbit"]
        frame = pd.DataFrame(ended + going, columns=columns).sort_values("flow", ignore_index=True)
        demand = frame["demand"].to_numpy(dtype=np.int64)
        flows = pd.DataFrame(
            {
                "flow": frame["flow"],
                "source": self._problem.demands["source"].to_numpy()[demand],
                "target": self._problem.demands["target"].to_numpy()[demand],
                "size_bytes": frame["size_mbit"] / MBIT,
                "start_s": frame["start_s"],
                "end_s": frame["end_s"].astype(float),
                "sent_bytes": frame["sent_mbit"] / MBIT,
            }
        )
        progress = pd.DataFrame(self._progress, columns=["at_s", "sent_mbit"])
        return {"flows": flows, "progress": progress}

    def load_mbps(self) -> NDArray[np.float64]:
        """(E,) what each link carries now."""
        here = self._here
        share = self._routes[here.route[: here.count]]
        return np.asarray(share.T @ here.rate[: here.count]).ravel()

    # --- what happens ---------------------------------------------------------------------

    def _end(self, ended: NDArray[np.bool_]) -> None:
        here = self._here
        gone = np.flatnonzero(ended)
        for i in gone.tolist():
            flow = int(here.number[i]), int(here.demand[i]), float(here.size[i]), float(here.start[i])
            self._ended.append((*flow, self._now))
        demands = here.demand[gone].tolist()
        here.remove(ended)
        self._disturbed()
        if isinstance(self._arrivals, ClosedLoop):
            for demand in demands:
                self._begin(*next(self._following[int(self._problem.source[demand])]))

    def _begin(self, demand: int, size_bytes: float) -> None:
        route = demand * self._hashes + int(self._begun[demand]) % self._hashes
        self._begun[demand] += 1
        self._here.add(next(self._numbers), demand, route, size_bytes * MBIT, self._now)
        self._disturbed()

    def _disturbed(self) -> None:
        """Rates have to be found again: at once, or at the next time that rates settle."""
        if self._settle_s == 0:
            self._settle_at = self._now
        elif self._settle_at == math.inf:
            self._settle_at = math.ceil(self._now / self._settle_s - 1e-9) * self._settle_s

    def _settle(self) -> None:
        here = self._here
        if here.count:
            share = self._routes[here.route[: here.count]]
            cap = np.full(here.count, self._cap)
            here.rate[: here.count] = rates.max_min(share, self._problem.capacity_mbps, cap)
        self._settle_at = math.inf


def _first_routes(problem: Traffic, start: Start, seed: int) -> tuple[sp.csr_array, int]:
    """(K * hashes, E) routes that new flows of a demand take in turn, and how many a demand has."""
    hops = next_hops.of(problem)
    if start == "scattered":
        return next_hops.even_shares(problem, hops), 1
    hashes = max(1, min(HASHES, MOST_ROUTES // len(problem.demands)))
    random = np.random.default_rng([seed, 0])
    return next_hops.random_paths(problem, hops, random, copies=hashes), hashes
