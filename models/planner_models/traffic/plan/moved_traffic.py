"""Traffic that a plan takes off the routes of the plan before it.

The present flow of a demand is what the plan before would send of its rate now, in the same shares, over the
links that are left. A plan keeps as much of a demand on its present routes as the largest flow from source to
target within both its flow and the present one, link by link: no division of the two into paths has more in
common. What the plan sends elsewhere, although it could stay, is moved traffic. Traffic whose route is gone,
that was shed before, or that is shed now, has to change in any case and is no moved traffic. A route that no
longer keeps the demand's latency limit and rules counts as gone too.

source  largest flow by shortest augmenting paths: Edmonds and Karp 1972
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from planner.arrays import Floats, Ints
from planner.compiled import njit, run_small_in_python
from planner.search.tolerances import SOLVER
from planner_models.flows import split_ratios
from planner_models.flows.route_limits import RouteLimits
from planner_models.graphs.indexing import sum_by_index
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic

MAX_ENTRIES: Final = 20_000_000  # of the flow of each demand on each link; larger plans are not compared
SMALLEST_MOVE: Final = SOLVER  # of a demand; less is rounding


@dataclass(frozen=True, kw_only=True, eq=False)
class PresentFlow:
    """The traffic that the plan before would send now.

    flow      (K, E) Mbit/s of each demand on each link that is left
    stays     (K,) the most of each demand's rate that can stay on it
    """

    flow: sp.csr_array
    stays: Floats

    @classmethod
    def of(cls, problem: Traffic, plan: Routing) -> PresentFlow:
        """Return the present flow of a plan for this problem, or for one with other rates and links."""
        flow = share_flows(problem, plan.flows, plan.shed)
        limits = RouteLimits.of(problem)
        if limits is not None:
            flow = _keep_limits(problem, limits, flow)
        stays = np.minimum(largest_flows(problem, flow), problem.rate_mbps)
        return cls(flow=flow, stays=np.where(stays > SMALLEST_MOVE * problem.rate_mbps, stays, 0.0))

    @property
    def total_mbps(self) -> float:
        """The traffic that can stay on its present routes, Mbit/s."""
        return float(self.stays.sum())

    def moved_mbps(self, problem: Traffic, flow: sp.csr_array) -> Floats:
        """Return the moved traffic of each demand, (K,) Mbit/s, under flows (K, E)."""
        retained = np.minimum(largest_flows(problem, self.flow.minimum(flow)), self.stays)
        shed = np.maximum(problem.rate_mbps - routing.sent_by_demand(problem, flow), 0.0)
        moved = np.maximum(self.stays - retained - shed, 0.0)
        return np.where(moved > SMALLEST_MOVE * problem.rate_mbps, moved, 0.0)


def measure_moved_share(problem: Traffic, plan: Routing, previous: Routing | None) -> float | None:
    """Return moved traffic over the traffic that can stay; None without a plan before, or nothing to stay."""
    if previous is None or not len(problem.targets):
        return None
    if max(_count_entries(problem, plan), _count_entries(problem, previous)) > MAX_ENTRIES:
        return None
    present = PresentFlow.of(problem, previous)
    if present.total_mbps <= 0:
        return None
    return float(present.moved_mbps(problem, flow_by_demand(problem, plan)).sum()) / present.total_mbps


def flow_by_demand(problem: Traffic, plan: Routing) -> sp.csr_array:
    """Return the flow of each demand on each link, (K, E) Mbit/s, of any plan for this problem."""
    if "source" in plan.flows:
        return routing.flow_by_demand(problem, plan)
    served = problem.rate_mbps.copy()
    if plan.shed is not None:
        served[problem.find_demands(plan.shed)] -= plan.shed["rate_mbps"].to_numpy(float)
    by_target = split_ratios.remove_cycles(problem, routing.flow_by_target(problem, plan).tocoo())
    ratios = split_ratios.compute_ratios(problem, by_target)
    return sp.csr_array(split_ratios.apply_ratios(problem, ratios, np.maximum(served, 0.0)))


def share_flows(problem: Traffic, flows: pd.DataFrame, shed: pd.DataFrame | None) -> sp.csr_array:
    """Return the flow of each demand on each link by the shares of a plan's tables, (K, E) Mbit/s.

    Links and demands that the problem does not have are left out; so is the share of a demand that was shed.
    """
    tail, head = problem.find_nodes(flows["tail"]), problem.find_nodes(flows["head"])
    link = problem.find_links(tail, head, flows["parallel"].to_numpy(np.int64))
    rate = flows["rate_mbps"].to_numpy(float)
    shape = (len(problem.demands), len(problem.links))
    if "source" in flows:
        demand = problem.find_demands(flows)
        valid = demand >= 0
        sign = (tail == problem.source[demand]) * 1.0 - (head == problem.source[demand])
        demanded = sum_by_index(demand[valid], (rate * sign)[valid], len(problem.demands))
        if shed is not None:
            left_out = problem.find_demands(shed)
            amount = shed["rate_mbps"].to_numpy(float)
            demanded += sum_by_index(left_out[left_out >= 0], amount[left_out >= 0], len(demanded))
        used = valid & (link >= 0)
        scale = np.divide(problem.rate_mbps, demanded, out=np.zeros(len(demanded)), where=demanded > 0)
        return sp.csr_array((rate[used] * scale[demand[used]], (demand[used], link[used])), shape=shape)
    target = problem.find_nodes(flows["target"])
    row = np.searchsorted(problem.targets, target)
    valid = (link >= 0) & (target >= 0)
    valid &= problem.targets[np.minimum(row, len(problem.targets) - 1)] == target
    flow = sp.coo_array(
        (rate[valid], (row[valid], link[valid])), shape=(len(problem.targets), len(problem.links))
    )
    ratios = split_ratios.compute_ratios(problem, split_ratios.remove_cycles(problem, flow))
    return sp.csr_array(split_ratios.apply_ratios(problem, ratios, problem.rate_mbps))


def _keep_limits(problem: Traffic, limits: RouteLimits, flow: sp.csr_array) -> sp.csr_array:
    """Return the flow (K, E) without routes that break limits.

    The flow of a demand is taken apart into routes, the largest at each node first.
    """
    avoids = ~np.asarray(limits.allowed.all(axis=1))
    limited = np.isfinite(limits.max_latency_ms) | avoids[limits.allowed_of]
    limited[list(limits.conditions)] = True
    result = sp.csr_array(flow, copy=True)
    result.sum_duplicates()
    for k in np.flatnonzero(limited).tolist():
        entries = slice(result.indptr[k], result.indptr[k + 1])
        links = result.indices[entries].tolist()
        residual = dict(zip(links, result.data[entries].tolist(), strict=True))
        allowed = dict.fromkeys(links, 0.0)
        while path := _take_route(problem, residual, int(problem.source[k]), int(problem.target[k])):
            amount = min(residual[link] for link in path)
            for link in path:
                residual[link] -= amount
            if limits.keeps(problem, k, path):
                for link in path:
                    allowed[link] += amount
        result.data[entries] = [allowed[link] for link in links]
    result.eliminate_zeros()
    return result


def _take_route(problem: Traffic, residual: dict[int, float], source: int, target: int) -> list[int]:
    """Return links from source to target, at each node the one with the most flow; empty for none."""
    leaving: dict[int, int] = {}
    for link, amount in residual.items():
        tail = int(problem.tail[link])
        if amount > SMALLEST_MOVE * max(residual.values()) and amount > residual.get(
            leaving.get(tail, -1), 0.0
        ):
            leaving[tail] = link
    path: list[int] = []
    node = source
    while node != target and node in leaving:
        path.append(leaving.pop(node))
        node = int(problem.head[path[-1]])
    return path if node == target else []


def largest_flows(problem: Traffic, capacity_mbps: sp.csr_array) -> Floats:
    """Return the largest flow of each demand, (K,) Mbit/s, where each has its own capacities, (K, E)."""
    capacity = sp.csr_array(capacity_mbps)
    capacity.sum_duplicates()
    return np.asarray(
        _largest_flows(
            Capacities.of(capacity),
            Links(problem.tail, problem.head),
            problem.source,
            problem.target,
            len(problem.nodes),
        )
    )


def _count_entries(problem: Traffic, plan: Routing) -> int:
    """Return the approximate number of links that all demands of a plan use together."""
    if "source" in plan.flows:
        return len(plan.flows)
    by_target = len(plan.flows) // max(plan.flows["target"].nunique(), 1)
    return by_target * len(problem.demands)


class Capacities(NamedTuple):
    """Capacities of each demand's own: link[start[k]:start[k + 1]] have amount[start[k]:start[k + 1]]."""

    start: Ints
    link: Ints
    amount: Floats

    @classmethod
    def of(cls, capacity: sp.csr_array) -> Capacities:
        """Return the rows of a matrix, (K, E)."""
        return cls(capacity.indptr.astype(np.int64), capacity.indices.astype(np.int64), capacity.data)


class Links(NamedTuple):
    """Ends of links, (E,)."""

    tail: Ints
    head: Ints


class Residual(NamedTuple):
    """A demand's flow within its capacities, by entry.

    link, limit  links and their capacities
    flow         on each; changes
    threshold    less than this is nothing
    """

    link: Ints
    limit: Floats
    flow: Floats
    threshold: float


@run_small_in_python(max_elements=5_000)
@njit(cache=True)
def _largest_flows(capacities, ends, source, target, nodes):  # type: ignore[no-untyped-def]
    """Return the largest flow of each row of capacities, by shortest augmenting paths."""
    value = np.zeros(len(source))
    work = np.full(nodes, -1, np.int64), np.empty(nodes, np.int64)
    came_by = work[0]
    for k in range(len(source)):
        low, high = capacities.start[k], capacities.start[k + 1]
        if low == high:
            continue
        limit = capacities.amount[low:high]
        residual = Residual(capacities.link[low:high], limit, np.zeros(high - low), 1e-12 * limit.max())
        while _find_path(residual, ends, source[k], target[k], work):
            step = np.inf
            node = target[k]
            while node != source[k]:
                free, node = step_back(residual, ends, came_by[node])
                step = min(step, free)
            send_along(residual, ends, came_by, source[k], target[k], step)
            value[k] += step
    return value


@njit(cache=True)
def _find_path(residual, ends, source, target, work):  # type: ignore[no-untyped-def]
    """Return whether a path has residual capacity; entry i leads to a node as 2 i, backwards as 2 i + 1."""
    links, limit, flow, threshold = residual
    tail, head = ends
    came_by, queue = work
    for e in links:
        came_by[tail[e]] = came_by[head[e]] = -1
    came_by[source], came_by[target] = -2, -1
    queue[0], first, last = source, 0, 1
    while first < last and came_by[target] == -1:
        node = queue[first]
        first += 1
        for i in range(len(links)):
            after, code = -1, 2 * i
            if tail[links[i]] == node and limit[i] - flow[i] > threshold:
                after = head[links[i]]
            elif head[links[i]] == node and flow[i] > threshold:
                after, code = tail[links[i]], 2 * i + 1
            if after >= 0 and came_by[after] == -1:
                came_by[after] = code
                queue[last] = after
                last += 1
    return came_by[target] != -1


@njit(cache=True)
def step_back(residual, ends, code):  # type: ignore[no-untyped-def]
    """Return the residual capacity of an entry by which a node was reached, and the node before it."""
    i = code // 2
    if code % 2:
        return residual.flow[i], ends.head[residual.link[i]]
    return residual.limit[i] - residual.flow[i], ends.tail[residual.link[i]]


@njit(cache=True)
def send_along(residual, ends, came_by, source, target, step):  # type: ignore[no-untyped-def]
    """Send an amount along the path by which a target was reached."""
    node = target
    while node != source:
        i = came_by[node] // 2
        if came_by[node] % 2:
            residual.flow[i] -= step
            node = ends.head[residual.link[i]]
        else:
            residual.flow[i] += step
            node = ends.tail[residual.link[i]]
