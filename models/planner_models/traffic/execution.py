"""Traffic in time: flows come and go at the rates that TCP reaches, and a design reroutes them.

Between two events (a flow comes, a flow ends, a decision takes effect) every flow goes on at its
max-min fair rate over the links that it takes. A new flow starts on a route of its own choice; at
every interval a scheduler measures what each flow has sent and hands these rates to a design, whose
splits the flows that were measured take from then on.

source  Sen et al. 2013 (LocalFlow): the scheduling loop of section 3.2, the flow dynamics of
        sections 7.2.2 and 7.5; fluid, where the paper simulates packets
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from planner import loop
from planner.errors import InputError
from planner.loop import Controller, Round
from planner.options import Options
from planner.system import Decision, Design
from planner_models.traffic import next_hops, rates, routing
from planner_models.traffic.problem import Traffic, totals
from planner_models.traffic.routing import Routing

MBIT: Final = 8e-6  # of a byte
HASHES: Final = 64  # routes drawn for a demand, which its flows take in turn
MOST_ROUTES: Final = 500_000  # drawn for all demands together
BLOCK: Final = 256  # random numbers drawn at a time

Start = Literal["hashed", "scattered"]


class Sizes(Protocol):
    """How large flows are."""

    def mean_bytes(self) -> float: ...

    def sample(self, random: np.random.Generator, count: int) -> NDArray[Any]:
        """(count,) bytes, each more than 0."""


@dataclass(frozen=True, kw_only=True)
class Lognormal:
    """Sizes whose logarithm is normal: many small flows, and a few that carry most of the bytes.

    median_bytes  half of the flows are smaller
    sigma         standard deviation of the logarithm; 0 makes all flows equal
    """

    median_bytes: float
    sigma: float = 2.0

    def __post_init__(self) -> None:
        faults = []
        if not (0 < self.median_bytes < math.inf):
            faults.append(f"median_bytes is {self.median_bytes}, must be greater than 0")
        if not (0 <= self.sigma < math.inf):
            faults.append(f"sigma is {self.sigma}, must be at least 0")
        if faults:
            raise InputError(*faults)

    def sample(self, random: np.random.Generator, count: int) -> NDArray[np.float64]:
        return np.maximum(self.median_bytes * np.exp(self.sigma * random.standard_normal(count)), 1.0)

    def mean_bytes(self) -> float:
        """The mean size; the larger sigma, the further above the median."""
        return self.median_bytes * math.exp(self.sigma**2 / 2)


@dataclass(frozen=True, kw_only=True)
class ClosedLoop:
    """Each source of demands always has so many flows: when one ends, the next starts.

    A new flow goes to one of the source's targets, drawn in proportion to the demands' rates. The
    n-th flow of a source has the same size and target whatever happens to the others, so designs
    are compared on the same flows.
    """

    flows_per_source: int = 1

    def __post_init__(self) -> None:
        if self.flows_per_source < 1:
            raise InputError(f"flows_per_source is {self.flows_per_source}, must be at least 1")


@dataclass(frozen=True, kw_only=True)
class Poisson:
    """Flows of each demand come at random times, and bring `load` times its rate on average."""

    load: float = 1.0

    def __post_init__(self) -> None:
        if not (0 < self.load < math.inf):
            raise InputError(f"load is {self.load}, must be greater than 0")


Arrivals = ClosedLoop | Poisson


@dataclass(frozen=True, kw_only=True, eq=False)
class Seen:
    """What the switches' counters say: the flows that are there, and what each has sent so far.

    flow       (F,) their numbers, ascending
    demand     (F,) the demand of each
    sent_mbit  (F,) since it started
    """

    at_s: float
    flow: NDArray[np.int64]
    demand: NDArray[np.int64]
    sent_mbit: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Steering:
    """New routes for flows that were seen; those that came since keep theirs.

    flow      (F,) ascending: whom it is for
    share     (K, E) what of each demand's traffic goes over each link
    decided   (K,) the demands that have a new route
    decision  what the design made
    """

    flow: NDArray[np.int64]
    share: sp.csr_array
    decided: NDArray[np.bool_]
    decision: Decision[Routing]


@dataclass(frozen=True, kw_only=True, eq=False)
class Simulation:
    """What became of the flows.

    flows     flow, source, target, size_bytes, start_s, end_s (NaN where it goes on), sent_bytes
    rounds    the scheduler's rounds, see `planner.loop.Outcome`
    progress  at_s, sent_mbit: all that was sent until then, at each event; linear in between
    until_s   end of the run
    """

    flows: pd.DataFrame
    rounds: pd.DataFrame
    progress: pd.DataFrame
    until_s: float

    def throughput_mbps(self, since_s: float = 0.0) -> float:
        """What was sent from `since_s` to the end, by time."""
        at, sent = (self.progress[name].to_numpy() for name in ("at_s", "sent_mbit"))
        return float((sent[-1] - np.interp(since_s, at, sent)) / (self.until_s - since_s))

    def completion_s(self, since_s: float = 0.0) -> pd.Series:
        """How long each flow took that started at `since_s` or later and has ended.

        Those that go on at the end are left out, which leaves out large ones more than small ones.
        """
        flows = self.flows[(self.flows["start_s"] >= since_s) & self.flows["end_s"].notna()]
        return flows["end_s"] - flows["start_s"]


def simulate(
    problem: Traffic,
    *,
    sizes: Sizes,
    arrivals: Arrivals = ClosedLoop(),
    until_s: float,
    design: Design | None = None,
    parameters: Mapping[str, Any] | None = None,
    sees: Mapping[str, Any] | None = None,
    interval_s: float = 0.05,
    computing_s: float = 0.0,
    link_s: float = 0.0,
    start: Start = "hashed",
    flow_cap_mbps: float = math.inf,
    settle_s: float = 0.0,
    seed: int = 0,
    options: Options = Options(),
) -> Simulation:
    """Flows over a network for `until_s` seconds, scheduled by a design at every interval.

    problem        its demands say between whom flows run, and how many of them (see `arrivals`)
    design         routes the flows as measured, see `scheduler`; None: they stay as they start
    parameters     of the design; sees: of what it sees
    computing_s    time that a decision takes; link_s: delay of measurements, and of decisions
    start          how a new flow goes until it is scheduled: "hashed" on one random equal-cost
                   path, "scattered" evenly over all of them
    flow_cap_mbps  most that one flow sends; links limit it too
    settle_s       rates are found again at once after every event (0), or only at multiples of
                   this: much faster where flows are many; a new flow then waits for its first rate
    seed           of flows and their first routes; same seed, same flows

    raises  InputError for times that are none, or a problem without demands
    source  Sen et al. 2013, sections 3.2, 7.2.2 and 7.5
    """
    network = FlowNetwork(
        problem,
        sizes=sizes,
        arrivals=arrivals,
        start=start,
        flow_cap_mbps=flow_cap_mbps,
        settle_s=settle_s,
        seed=seed,
    )
    controllers = []
    if design is not None:
        controllers.append(
            scheduler(
                problem,
                design,
                interval_s=interval_s,
                computing_s=computing_s,
                link_s=link_s,
                parameters=parameters,
                sees=sees,
                options=options,
            )
        )
    outcome = loop.run(network, controllers, until_s=until_s)
    return Simulation(
        flows=outcome.tables["flows"],
        rounds=outcome.rounds,
        progress=outcome.tables["progress"],
        until_s=until_s,
    )


def scheduler(
    problem: Traffic,
    design: Design,
    *,
    interval_s: float,
    computing_s: float = 0.0,
    link_s: float = 0.0,
    parameters: Mapping[str, Any] | None = None,
    sees: Mapping[str, Any] | None = None,
    options: Options = Options(),
) -> Controller[Steering]:
    """A design as the control plane of a network of flows.

    At the start of each interval it takes what each flow that is there has sent since it was last
    measured, over that time, as the flow's rate. The rates of a demand's flows together are the
    demand, the design routes it, and each of the flows takes the demand's splits. What a plan
    leaves out or does not serve keeps its route.

    source  Sen et al. 2013, section 3.2
    """

    def decide(seen: Seen, last: Round[Steering] | None) -> Steering | None:
        before = last.believed if last else Seen(at_s=0.0, flow=_NONE, demand=_NONE, sent_mbit=_NOTHING)
        rate = _measured(problem, seen, before)
        if not rate.any():
            return None
        believed = design.sees(problem.with_rates(rate), **(sees or {}))
        previous = last.decision.decision if last and last.decision else None
        made = design.decide(believed, options=options, previous=previous, **(parameters or {}))
        if made.plan is None:
            return None
        share, decided = shares_of(believed, made.plan)
        return Steering(flow=seen.flow, share=share, decided=decided, decision=made)

    return Controller(
        name=design.name, decide=decide, period_s=interval_s, computing_s=computing_s, link_s=link_s
    )


_NONE: Final = np.zeros(0, dtype=np.int64)
_NOTHING: Final = np.zeros(0)


def _measured(problem: Traffic, seen: Seen, before: Seen) -> NDArray[np.float64]:
    """(K,) Mbit/s of the flows that are there, since they were last measured."""
    passed_s = seen.at_s - before.at_s
    if passed_s <= 0:
        return np.zeros(len(problem.demands))
    earlier = np.zeros(len(seen.flow))
    _, here, there = np.intersect1d(seen.flow, before.flow, assume_unique=True, return_indices=True)
    earlier[here] = before.sent_mbit[there]
    return totals(seen.demand, (seen.sent_mbit - earlier) / passed_s, len(problem.demands))


def shares_of(problem: Traffic, plan: Routing) -> tuple[sp.csr_array, NDArray[np.bool_]]:
    """(K, E) what of each demand goes over each link by the plan, and (K,) whether it serves any.

    InputError where the plan does not tell its demands apart.
    """
    if "source" not in plan.flows:
        raise InputError("the design's plan does not tell its demands apart, so no flow knows its route")
    flow = routing.flow_mbps(problem, plan)
    surplus = flow @ problem.balance.T  # (K, N)
    served = np.asarray(surplus[np.arange(len(problem.demands)), problem.source]).ravel()
    decided = served > 1e-9 * float(problem.rate_mbps.max(initial=0.0))
    scale = np.divide(1.0, served, out=np.zeros(len(served)), where=decided)
    return sp.csr_array(sp.diags_array(scale) @ flow), decided


# --- the flows ----------------------------------------------------------------------------


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
            self._coming = _poisson(problem, sizes, arrivals.load, seed)
            self._next = next(self._coming)
        else:
            self._next = (math.inf, 0, 0.0)
            self._following = {
                source: _following(problem, sizes, source, seed)
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


def _poisson(problem: Traffic, sizes: Sizes, load: float, seed: int) -> Iterator[tuple[float, int, float]]:
    """Time, demand and size in bytes of each flow that comes."""
    random = np.random.default_rng([seed, 1])
    rate = problem.rate_mbps * load / (sizes.mean_bytes() * MBIT)  # flows a second
    chance = rate / rate.sum()
    now = 0.0
    while True:
        times = now + np.cumsum(random.exponential(1.0 / rate.sum(), BLOCK))
        demands = random.choice(len(rate), size=BLOCK, p=chance)
        yield from zip(times.tolist(), demands.tolist(), sizes.sample(random, BLOCK).tolist(), strict=True)
        now = float(times[-1])


def _following(problem: Traffic, sizes: Sizes, source: int, seed: int) -> Iterator[tuple[int, float]]:
    """Demand and size in bytes of each flow of one source."""
    random = np.random.default_rng([seed, 2, source])
    mine = np.flatnonzero((problem.source == source) & (problem.rate_mbps > 0))
    chance = problem.rate_mbps[mine] / problem.rate_mbps[mine].sum()
    while True:
        demands = random.choice(mine, size=BLOCK, p=chance)
        yield from zip(demands.tolist(), sizes.sample(random, BLOCK).tolist(), strict=True)
