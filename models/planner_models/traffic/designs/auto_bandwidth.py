"""Reservations with bandwidth by the measured traffic, window after window, as routers' auto-bandwidth.

A window is an adjustment interval. At its end the source of each label-switched path compares the traffic
that it measured with the bandwidth that is reserved. Where they differ by more than a threshold, the path is
signalled again with the measured bandwidth before the old one is given up (make before break): on links of
the old path the old bandwidth counts for it. Where no path has enough, the old path and bandwidth stay.
Between adjustments all traffic is sent, whether it is reserved or not.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.design import Decision
from planner.options import Options
from planner.search.judged import feasible
from planner_models.flows.path_flow_program import CandidatePaths, route_table
from planner_models.networks.node_lists import parse_list, parse_nodes
from planner_models.traffic.designs.reserved_paths import (
    FITS,
    Path,
    PathSearch,
    Reservations,
    Tie,
    admit_paths,
    list_paths,
)
from planner_models.traffic.designs.routable import shed_unreachable_in_turn
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic

Threshold = Annotated[
    float,
    Field(
        ge=0,
        le=10,
        description="relative difference of measured traffic and bandwidth above which a path is signalled "
        "again",
    ),
]
Overflow = Annotated[
    float | None,
    Field(
        gt=0,
        le=10,
        description="relative excess of traffic over bandwidth at which a path is signalled again within the "
        "window, with the traffic of this window; default: only at its end",
    ),
]
Minimum = Annotated[
    float, Field(ge=0, allow_inf_nan=False, description="least bandwidth of a reservation, Mbit/s")
]
Margin = Annotated[
    float, Field(gt=0, le=10, description="bandwidth to reserve as a factor of the measured traffic")
]


class _Present(NamedTuple):
    """Reservations of the window before: path, bandwidth and measured traffic of each demand, by its row."""

    path: dict[int, Path]
    bandwidth_mbps: dict[int, float]
    measured_mbps: dict[int, float]


@shed_unreachable_in_turn
def route(
    problem: Traffic,
    *,
    threshold: Threshold = 0.1,
    overflow: Overflow = None,
    margin: Margin = 1.0,
    least_mbps: Minimum = 0.0,
    tie: Tie = "first",
    previous: Decision[Routing] | None = None,
    options: Options = Options(),  # noqa: ARG001 - the signature of `decide`
) -> Decision[Routing]:
    """Adjust the bandwidth of each reservation to the traffic of the window before, and send all traffic.

    Without a plan before, reservations are made for the traffic of this window. A demand without a path is
    shed, and signalled again in the next window. Links may be overloaded where traffic exceeds what is
    reserved for it.

    returns  Decision with a Routing whose `routes` have the bandwidth that is reserved for each path
    source   RFC 3209, 4.6.4 (shared explicit style, make before break)
    """
    present = _read_present(problem, None if previous is None else previous.plan)
    signals = _Signals(problem, present, tie)
    for demand in signals.order():
        measured = present.measured_mbps.get(demand, float(problem.rate_mbps[demand]))
        wanted = max(measured * margin, least_mbps)
        now = max(float(problem.rate_mbps[demand]) * margin, least_mbps)
        held = signals.bandwidth(demand)
        if held is not None and overflow is not None and now > held * (1 + overflow):
            wanted = max(wanted, now)
        if held is None or abs(wanted - held) > threshold * held:
            signals.request(demand, wanted)
    signals.settle()
    return Decision(plan=signals.make_plan(), proof=feasible(), guarantees=frozenset())


class _Signals:
    """Reservations that are made, adjusted, and made again where others preempt them."""

    def __init__(self, problem: Traffic, present: _Present, tie: Tie) -> None:
        self.problem = problem
        self.state = Reservations.of(problem, problem.setup_priority, problem.hold_priority)
        self.search = PathSearch(problem, tie)
        self.waiting: deque[int] = deque()
        for demand, path in present.path.items():
            self.state.rate_mbps[demand] = present.bandwidth_mbps[demand]
            self.state.admit(demand, path)

    def order(self) -> list[int]:
        """Return the demands with traffic or a reservation, by setup priority and then as in the table."""
        has_path = np.array([path is not None for path in self.state.path], dtype=bool)
        rows = np.flatnonzero((self.problem.rate_mbps > 0) | has_path).tolist()
        return sorted(rows, key=self.state.rank)

    def bandwidth(self, demand: int) -> float | None:
        """Return the bandwidth of a demand's reservation, Mbit/s; None where it has none."""
        return None if self.state.path[demand] is None else float(self.state.rate_mbps[demand])

    def request(self, demand: int, wanted_mbps: float) -> None:
        """Signal a reservation with another bandwidth; the old one stays where there is no path for it."""
        state, old = self.state, self.state.path[demand]
        available = state.available(int(state.setup[demand]))
        if old is not None:
            available = available.copy()
            available[list(old)] += state.rate_mbps[demand]
        is_enough = available >= wanted_mbps * FITS
        path = self.search.find_within(demand, np.where(is_enough, self.problem.weight, np.inf), available)
        if path is None:
            if old is None:
                state.rate_mbps[demand] = wanted_mbps
            return
        if old is not None:
            state.remove(demand)
        state.rate_mbps[demand] = wanted_mbps
        self.waiting.extend(sorted(state.admit(demand, path), key=state.rank))

    def settle(self) -> None:
        """Signal preempted reservations again, with the bandwidth that they had, until none waits."""
        while self.waiting:
            demand = self.waiting.popleft()
            if self.state.path[demand] is None:
                self.request(demand, float(self.state.rate_mbps[demand]))

    def make_plan(self) -> Routing:
        """Return the plan: the traffic of each demand on its path, and the bandwidth that is reserved."""
        problem = self.problem
        path_of = [
            path if rate > 0 else None for path, rate in zip(self.state.path, problem.rate_mbps, strict=True)
        ]
        plan = admit_paths(problem, path_of)
        paths = list_paths(path_of)
        candidates = CandidatePaths(found=paths, width=len(problem.links))
        routes = route_table(problem, candidates, problem.rate_mbps[paths.demand])
        return replace(plan, routes=routes.assign(bandwidth_mbps=self.state.rate_mbps[paths.demand]))


def _read_present(problem: Traffic, plan: Routing | None) -> _Present:
    """Return the reservations of a plan on the remaining links, and the traffic measured then.

    A path over a link that is lost is signalled again.
    """
    if plan is None or plan.routes is None or "bandwidth_mbps" not in plan.routes:
        return _Present({}, {}, {})
    row_of = _rows_by_demand(problem)
    ends = zip(problem.links["tail"], problem.links["head"], problem.parallel.tolist(), strict=True)
    link_of = {end: link for link, end in enumerate(ends)}
    present = _Present({}, {}, {})
    for record in plan.routes.to_dict(orient="records"):
        demand = row_of.get(_key(record))
        if demand is None:
            continue
        present.measured_mbps[demand] = float(record["rate_mbps"])
        path = _find_links(record, link_of)
        if path is not None:
            present.path[demand] = path
            present.bandwidth_mbps[demand] = float(record["bandwidth_mbps"])
    return present


def _find_links(record: Mapping[Any, Any], link_of: Mapping[tuple[str, str, int], int]) -> Path | None:
    """Return the links of a route of a plan; None where one of them is lost."""
    nodes = parse_nodes(record["path"])
    numbers = parse_list(record.get("parallel") or "[]") or [1] * (len(nodes) - 1)
    links = [
        link_of.get((*hop, int(number)))
        for hop, number in zip(itertools.pairwise(nodes), numbers, strict=True)
    ]
    path = tuple(link for link in links if link is not None)
    return path if len(path) == len(links) else None


def _key(record: Mapping[Any, Any]) -> tuple[str, str, str]:
    return str(record["source"]), str(record["target"]), str(record.get("class", ""))


def _rows_by_demand(problem: Traffic) -> dict[tuple[str, str, str], int]:
    """Return the row of each demand by its ends and class; only of those that these tell apart."""
    keys = [_key(record) for record in problem.demands.to_dict(orient="records")]
    counts = pd.Series(keys).value_counts()
    return {key: row for row, key in enumerate(keys) if counts[key] == 1}
