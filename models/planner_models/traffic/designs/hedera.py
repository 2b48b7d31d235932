"""Hedera: a central controller assigns every flow one of its equal-cost paths.

Two schedulers: global first fit, and simulated annealing.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from planner.arrays import Floats, Ints, read_only
from planner.compiled import njit, run_small_in_python
from planner.contract.design import Decision
from planner_models.flows import next_hops
from planner_models.flows.fair_rates import max_min_rates
from planner_models.flows.next_hops import draw_link, enlarge
from planner_models.traffic.designs import path_assignment
from planner_models.traffic.designs.path_assignment import AssignedPaths
from planner_models.traffic.designs.routable import shed_unreachable_by_demand
from planner_models.traffic.plan.flow_decision import Fairness, Rates, route_shares
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic

Seed = Annotated[int, Field(ge=0, description="of the hashed paths at the start and of the search")]
Iterations = Annotated[int, Field(gt=0, description="moves per demand")]
Temperature = Annotated[
    float,
    Field(
        ge=0,
        description="initial temperature, in mean demands of excess load: a move that adds as much is "
        "accepted with probability 1/e; falls linearly to 0",
    ),
]


@shed_unreachable_by_demand
def route_first_fit(
    problem: Traffic, *, paths: AssignedPaths = "equal_cost", rates: Rates = "given", seed: Seed = 0
) -> Decision[Routing]:
    """Assign each demand its first path with enough residual capacity (global first fit).

    Equal-cost paths are tried in the order of the table of links, tunnels in that of their table, and demands
    in that of theirs. A demand that fits on no path stays on a hashed one and reserves nothing. With elastic
    rates, the demands to place are `estimate_demands`.

    source  Al-Fares et al. 2010 (Hedera), 4.2; Sen et al. 2013, section 7.1
    """
    if paths != "equal_cost":
        assignable = path_assignment.find_assignable(problem, paths)
        random = np.random.default_rng(seed)
        path_of = path_assignment.first_fit(problem, assignable, _demand_mbps(problem, rates), random)
        return path_assignment.route_assigned(problem, assignable, path_of, rates)
    hops = next_hops.find_next_hops(problem)
    hashed = next_hops.draw_stable_paths(problem, np.random.default_rng(seed))
    start, link = _first_fit(
        hops,
        problem.capacity_mbps.copy(),
        read_only(_demand_mbps(problem, rates)),
        hashed.indptr.astype(np.int64),
        hashed.indices.astype(np.int64),
    )
    return route_shares(problem, next_hops.path_matrix(hops, start, link), rates)


@shed_unreachable_by_demand
def route_annealing(
    problem: Traffic,
    *,
    paths: AssignedPaths = "equal_cost",
    iterations: Iterations = 200,
    temperature: Temperature = 0.1,
    rates: Rates = "given",
    seed: Seed = 0,
) -> Decision[Routing]:
    """Assign each demand one path by simulated annealing on the total load above capacity.

    A move draws another path for one demand. Hedera's own moves swap the core switches of two hosts,
    which only a fat tree has; one path for each demand is the same search on any network.

    source  Al-Fares et al. 2010 (Hedera), 4.3
    """
    if paths != "equal_cost":
        assignable = path_assignment.find_assignable(problem, paths)
        path_of = path_assignment.anneal(
            problem,
            assignable,
            _demand_mbps(problem, rates),
            iterations=iterations,
            temperature=temperature,
            random=np.random.default_rng(seed),
        )
        return path_assignment.route_assigned(problem, assignable, path_of, rates)
    hops = next_hops.find_next_hops(problem)
    random = np.random.default_rng(seed)
    hashed = next_hops.draw_stable_paths(problem, random)
    demand = _demand_mbps(problem, rates)
    first = _Paths(hashed.indptr.astype(np.int64), hashed.indices.astype(np.int64))
    initial = temperature * float(demand[hops.demand].mean()) if len(hops.demand) else 0.0
    moves = iterations * len(hops.demand)
    start, link = _anneal(hops, problem.capacity_mbps, demand, first, moves, initial, random)
    return route_shares(problem, next_hops.path_matrix(hops, start, link), rates)


def estimate_demands(problem: Traffic) -> Floats:
    """Estimate the rates of elastic demands if only links at sources and targets limited them, (K,), Mbit/s.

    These are max-min fair shares of the capacity that leaves each source and enters each target, no
    demand above its rate.

    source  Al-Fares et al. 2010 (Hedera), 4.1
    """
    nodes, demands = len(problem.nodes), len(problem.demands)
    out = np.bincount(problem.tail, problem.capacity_mbps, nodes)
    into = np.bincount(problem.head, problem.capacity_mbps, nodes)
    demand = np.arange(demands)
    entries = (np.r_[demand, demand], np.r_[problem.source, nodes + problem.target])
    ends = sp.csr_array((np.ones(2 * demands), entries), shape=(demands, 2 * nodes))
    return max_min_rates(ends, np.r_[out, into], problem.rate_mbps)


def _demand_mbps(problem: Traffic, rates: Fairness) -> Floats:
    return problem.rate_mbps if rates == "given" else estimate_demands(problem)


# --- the searches, compiled ---------------------------------------------------------------


@run_small_in_python(max_elements=20_000)
@njit(cache=True)
def _first_fit(hops, residual_capacity, demand, begin, hashed):  # type: ignore[no-untyped-def]  # noqa: C901 - one compiled loop
    """Return start and links of each demand's path, by depth-first search without repeated dead ends.

    begin, hashed  start and links of each demand's hashed path
    """
    first_node, link, first_link, head = hops.first_node, hops.link, hops.first_link, hops.head
    position_of, dead_end_of = np.empty(hops.nodes, dtype=np.int64), np.full(hops.nodes, -1)
    cursor = np.empty(hops.nodes, dtype=np.int64)
    walk = np.empty(hops.nodes, dtype=np.int64)
    start = np.zeros(len(hops.row) + 1, dtype=np.int64)
    links = np.empty(max(len(hashed), 1024), dtype=np.int64)
    size, placed_target = 0, -1
    for k in range(len(hops.row)):
        start[k + 1] = size
        d = hops.row[k]
        if d < 0:
            continue
        target = hops.targets[d]
        if d != placed_target:
            placed_target = d
            for i in range(first_node[d], first_node[d + 1]):
                position_of[hops.node[i]] = i
        v, depth = hops.source[k], 0
        cursor[v] = first_link[position_of[v]]
        while v != target:
            i = position_of[v]
            step = -1
            while cursor[v] < first_link[i + 1] and step < 0:
                e = link[cursor[v]]
                cursor[v] += 1
                if dead_end_of[head[e]] != k and residual_capacity[e] >= demand[k] * (1 - 1e-9):
                    step = e
            if step >= 0:
                walk[depth] = step
                depth += 1
                v = head[step]
                if v != target:
                    cursor[v] = first_link[position_of[v]]
            elif depth == 0:
                break
            else:  # back to the previous node
                dead_end_of[v] = k
                depth -= 1
                v = hops.source[k] if depth == 0 else head[walk[depth - 1]]
        path = walk[:depth] if v == target else hashed[begin[k] : begin[k + 1]]
        links = enlarge(links, size + len(path))
        for e in path:
            links[size] = e
            size += 1
            if v == target:
                residual_capacity[e] -= demand[k]
        start[k + 1] = size
    return start, links[:size].copy()


class _Paths(NamedTuple):
    """A path of each demand: that of demand k is link[begin[k] : begin[k + 1]]."""

    begin: Ints
    link: Ints


@run_small_in_python(max_elements=5_000)
@njit(cache=True)
def _anneal(hops, capacity, demand, first, moves, initial_temperature, random):  # type: ignore[no-untyped-def]  # noqa: C901 - one compiled loop
    """Return start and links of each demand's path after so many moves from the first paths."""
    order = _order_nodes(hops)
    by_number = hops.node[order]
    longest = _count_longest(hops)
    load = np.zeros(len(capacity))
    path = np.full((len(hops.row), longest), -1)
    for k in hops.demand:
        for j in range(first.begin[k], first.begin[k + 1]):
            path[k, j - first.begin[k]] = first.link[j]
            load[first.link[j]] += demand[k]
    excess = 0.0
    for e in range(len(capacity)):
        excess += max(load[e] - capacity[e], 0.0)
    best, best_excess = path.copy(), excess
    candidate = np.empty(longest, dtype=np.int64)
    for move in range(moves):
        if best_excess <= 0:
            break
        k = hops.demand[min(int(random.random() * len(hops.demand)), len(hops.demand) - 1)]
        size = _draw_path(hops, order, by_number, k, random, candidate)
        old_size = _count_links(path[k])
        change = _add_load(path[k, :old_size], -demand[k], load, capacity, 0.0)
        change = _add_load(candidate[:size], demand[k], load, capacity, change)
        temperature = initial_temperature * (1 - move / moves)
        if change <= 0 or (temperature > 0 and random.random() < math.exp(-change / temperature)):
            path[k, :size] = candidate[:size]
            path[k, size:] = -1
            excess += change
            if excess < best_excess - 1e-12:
                best_excess = excess
                best[:] = path
        else:
            for e in candidate[:size]:
                load[e] -= demand[k]
            for e in path[k, :old_size]:
                load[e] += demand[k]
    start = np.zeros(len(hops.row) + 1, dtype=np.int64)
    for k in range(len(hops.row)):
        start[k + 1] = start[k] + (best[k] >= 0).sum()
    links = np.empty(start[-1], dtype=np.int64)
    for k in range(len(hops.row)):
        links[start[k] : start[k + 1]] = best[k, : start[k + 1] - start[k]]
    return start, links


@njit(cache=True)
def _order_nodes(hops):  # type: ignore[no-untyped-def]
    """Return the places of each target's nodes, sorted by the nodes' numbers, for bisection."""
    order = np.empty(len(hops.node), dtype=np.int64)
    for d in range(len(hops.targets)):
        low, high = hops.first_node[d], hops.first_node[d + 1]
        order[low:high] = low + np.argsort(hops.node[low:high])
    return order


@njit(cache=True)
def _count_longest(hops):  # type: ignore[no-untyped-def]
    """Return the largest number of links of a path, at least 1."""
    longest = 1
    for d in range(len(hops.targets)):
        depth = np.zeros(hops.nodes, dtype=np.int64)
        for i in range(hops.first_node[d + 1] - 1, hops.first_node[d] - 1, -1):
            v = hops.node[i]
            for e in hops.link[hops.first_link[i] : hops.first_link[i + 1]]:
                depth[v] = max(depth[v], depth[hops.head[e]] + 1)
            longest = max(longest, depth[v])
    return longest


@njit(cache=True)
def _draw_path(hops, order, by_number, k, random, path):  # type: ignore[no-untyped-def]
    """Write the links of a random path of demand k; return their number."""
    d = hops.row[k]
    low, high = hops.first_node[d], hops.first_node[d + 1]
    v, size = hops.source[k], 0
    while v != hops.targets[d]:
        i = order[low + np.searchsorted(by_number[low:high], v)]
        path[size] = draw_link(hops, i, random)
        v = hops.head[path[size]]
        size += 1
    return size


@njit(cache=True)
def _count_links(path):  # type: ignore[no-untyped-def]
    size = 0
    while size < len(path) and path[size] >= 0:
        size += 1
    return size


@njit(cache=True)
def _add_load(links, rate, load, capacity, change):  # type: ignore[no-untyped-def]
    """Add `rate` to the load of links; return `change` plus the change of the load above capacity."""
    for e in links:
        change -= max(load[e] - capacity[e], 0.0)
        load[e] += rate
        change += max(load[e] - capacity[e], 0.0)
    return change
