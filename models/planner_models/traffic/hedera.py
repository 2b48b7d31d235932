"""Hedera: a central controller gives every flow one of its equal-cost paths."""

from __future__ import annotations

import time
from typing import Annotated

import numba
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from pydantic import Field

from planner.options import Options
from planner.system import Decision
from planner_models.traffic import next_hops
from planner_models.traffic import rates as tcp
from planner_models.traffic.next_hops import NextHops, grown
from planner_models.traffic.problem import Traffic
from planner_models.traffic.rates import Fairness, Rates
from planner_models.traffic.routing import Routing

Seed = Annotated[
    int, Field(ge=0, description="the paths that flows are hashed to before, and the search's draws")
]
Iterations = Annotated[int, Field(gt=0, description="moves tried for each demand")]
Temperature = Annotated[
    float,
    Field(
        ge=0,
        description="at first, how much excess load a move may add, in mean demands, to be taken one time "
        "in e; falls to 0 in equal steps",
    ),
]


def route_first_fit(
    problem: Traffic,
    *,
    rates: Rates = "given",
    seed: Seed = 0,
    options: Options = Options(),  # noqa: ARG001 - nothing is solved
    previous: Decision[Routing] | None = None,  # noqa: ARG001
) -> Decision[Routing]:
    """Global first fit: each demand takes the first equal-cost path that still has room for all of it.

    Paths are tried in the order of the links' table, demands in that of theirs. One that fits
    nowhere stays where ECMP hashed it, and reserves nothing. With elastic rates, what a demand needs
    is `estimated`.

    source  Al-Fares et al. 2010 (Hedera), 4.2; Sen et al. 2013, section 7.1
    """
    start = time.perf_counter()
    hops = next_hops.of(problem)
    hashed = next_hops.random_paths(problem, hops, np.random.default_rng(seed))
    begin, link = _first_fit(  # type: ignore[call-arg]
        *_next(problem, hops),
        problem.capacity_mbps.copy(),
        _needs(problem, rates),
        hashed.indptr.astype(np.int64),
        hashed.indices.astype(np.int64),
    )
    return tcp.carry(problem, _matrix(problem, begin, link), rates, started=start)


def route_annealing(
    problem: Traffic,
    *,
    iterations: Iterations = 200,
    temperature: Temperature = 0.1,
    rates: Rates = "given",
    seed: Seed = 0,
    options: Options = Options(),  # noqa: ARG001
    previous: Decision[Routing] | None = None,  # noqa: ARG001
) -> Decision[Routing]:
    """Simulated annealing over one equal-cost path for each demand, for the least load above capacity.

    A move draws another path for one demand. Hedera's own moves swap the core switches of two
    hosts, which only a fat tree has; one path for each demand is the same search on any network.

    source  Al-Fares et al. 2010 (Hedera), 4.3
    """
    start = time.perf_counter()
    hops = next_hops.of(problem)
    random = np.random.default_rng(seed)
    hashed = next_hops.random_paths(problem, hops, random)
    needs = _needs(problem, rates)
    wanted = hops.demand
    begin, link = _anneal(  # type: ignore[call-arg]
        *_next(problem, hops),
        problem.capacity_mbps,
        needs,
        hashed.indptr.astype(np.int64),
        hashed.indices.astype(np.int64),
        wanted,
        iterations * len(wanted),
        temperature * float(needs[wanted].mean()) if len(wanted) else 0.0,
        random,
    )
    return tcp.carry(problem, _matrix(problem, begin, link), rates, started=start)


def estimated(problem: Traffic) -> NDArray[np.float64]:
    """(K,) Mbit/s that each demand would reach if only the ends of the network were narrow.

    Hedera's estimate of what elastic flows want: max-min fair shares of what leaves each source and
    of what enters each target, no demand above its rate.

    source  Al-Fares et al. 2010 (Hedera), 4.1
    """
    nodes, demands = len(problem.nodes), len(problem.demands)
    out = np.bincount(problem.tail, problem.capacity_mbps, nodes)
    into = np.bincount(problem.head, problem.capacity_mbps, nodes)
    demand = np.arange(demands)
    places = (np.r_[demand, demand], np.r_[problem.source, nodes + problem.target])
    ends = sp.csr_array((np.ones(2 * demands), places), shape=(demands, 2 * nodes))
    return tcp.max_min(ends, np.r_[out, into], problem.rate_mbps)


def _needs(problem: Traffic, rates: Fairness) -> NDArray[np.float64]:
    return problem.rate_mbps if rates == "given" else estimated(problem)


def _next(problem: Traffic, hops: NextHops) -> tuple[NDArray[np.int64], ...]:
    """The next hops as the searches take them: for each demand its row, and what follows a node."""
    row = np.full(len(problem.demands), -1)
    row[hops.demand] = np.repeat(np.arange(len(problem.targets)), np.diff(hops.first_demand))
    return (
        row,
        hops.node,
        hops.first_node,
        hops.link,
        hops.first_link,
        problem.source,
        problem.head,
        problem.targets,
        np.arange(len(problem.nodes)),
    )


def _matrix(problem: Traffic, begin: NDArray[np.int64], link: NDArray[np.int64]) -> sp.csr_array:
    shape = (len(problem.demands), len(problem.links))
    return sp.csr_array((np.ones(len(link)), link, begin), shape=shape)


# --- the searches, compiled ---------------------------------------------------------------


@numba.njit(cache=True)
def _first_fit(  # type: ignore[no-untyped-def]  # noqa: C901 - one compiled loop
    row,
    node,
    first_node,
    link,
    first_link,
    source,
    head,
    targets,
    nodes,
    room,
    needs,
    begin,
    hashed,
):
    """Start and links of each demand's path; depth first, and no node twice that led nowhere."""
    count = len(nodes)
    place, dead = np.empty(count, dtype=np.int64), np.full(count, -1)
    cursor = np.empty(count, dtype=np.int64)
    walk = np.empty(count, dtype=np.int64)
    start = np.zeros(len(row) + 1, dtype=np.int64)
    links = np.empty(max(len(hashed), 1024), dtype=np.int64)
    size, placed = 0, -1
    for k in range(len(row)):
        start[k + 1] = size
        d = row[k]
        if d < 0:
            continue
        if d != placed:
            placed = d
            for i in range(first_node[d], first_node[d + 1]):
                place[node[i]] = i
        v, depth = source[k], 0
        cursor[v] = first_link[place[v]]
        while v != targets[d]:
            i = place[v]
            step = -1
            while cursor[v] < first_link[i + 1] and step < 0:
                e = link[cursor[v]]
                cursor[v] += 1
                if dead[head[e]] != k and room[e] >= needs[k] * (1 - 1e-9):
                    step = e
            if step >= 0:
                walk[depth] = step
                depth += 1
                v = head[step]
                if v != targets[d]:
                    cursor[v] = first_link[place[v]]
            elif depth == 0:
                break
            else:
                dead[v] = k
                depth -= 1
                e = walk[depth]
                # back to the node it came from
                v = source[k] if depth == 0 else head[walk[depth - 1]]
        found = walk[:depth] if v == targets[d] else hashed[begin[k] : begin[k + 1]]
        links = grown(links, size + len(found))
        for e in found:
            links[size] = e
            size += 1
            if v == targets[d]:
                room[e] -= needs[k]
        start[k + 1] = size
    return start, links[:size].copy()


@numba.njit(cache=True)
def _anneal(  # type: ignore[no-untyped-def]  # noqa: C901 - one compiled loop
    row,
    node,
    first_node,
    link,
    first_link,
    source,
    head,
    targets,
    nodes,
    capacity,
    needs,
    begin,
    hashed,
    wanted,
    moves,
    warmth,
    random,
):
    # the next hops of a node towards a target, found by halving: nodes of a target, sorted by number
    first_place = first_node
    order = np.empty(len(node), dtype=np.int64)
    for d in range(len(targets)):
        low, high = first_place[d], first_place[d + 1]
        order[low:high] = low + np.argsort(node[low:high])
    sorted_node = node[order]

    load = np.zeros(len(capacity))
    longest = 1
    for d in range(len(targets)):
        depth = np.zeros(len(nodes), dtype=np.int64)
        for i in range(first_place[d + 1] - 1, first_place[d] - 1, -1):
            for e in link[first_link[i] : first_link[i + 1]]:
                depth[node[i]] = max(depth[node[i]], depth[head[e]] + 1)
            longest = max(longest, depth[node[i]])
    path = np.full((len(row), longest), -1)
    for k in wanted:
        for j in range(begin[k], begin[k + 1]):
            path[k, j - begin[k]] = hashed[j]
            load[hashed[j]] += needs[k]
    energy = 0.0
    for e in range(len(capacity)):
        energy += max(load[e] - capacity[e], 0.0)
    best, best_energy = path.copy(), energy
    trial = np.empty(longest, dtype=np.int64)
    for move in range(moves):
        if best_energy <= 0:
            break
        k = wanted[min(int(random.random() * len(wanted)), len(wanted) - 1)]
        d = row[k]
        low, high = first_place[d], first_place[d + 1]
        v, size = source[k], 0
        while v != targets[d]:
            i = order[low + np.searchsorted(sorted_node[low:high], v)]
            ways = first_link[i + 1] - first_link[i]
            trial[size] = link[first_link[i] + min(int(random.random() * ways), ways - 1)]
            v = head[trial[size]]
            size += 1
        change = 0.0
        for j in range(longest):
            e = path[k, j]
            if e < 0:
                break
            change -= max(load[e] - capacity[e], 0.0)
            load[e] -= needs[k]
            change += max(load[e] - capacity[e], 0.0)
        for e in trial[:size]:
            change -= max(load[e] - capacity[e], 0.0)
            load[e] += needs[k]
            change += max(load[e] - capacity[e], 0.0)
        heat = warmth * (1 - move / moves)
        if change <= 0 or (heat > 0 and random.random() < np.exp(-change / heat)):
            path[k, :size] = trial[:size]
            path[k, size:] = -1
            energy += change
            if energy < best_energy - 1e-12:
                best_energy = energy
                best[:] = path
        else:
            for e in trial[:size]:
                load[e] -= needs[k]
            for j in range(longest):
                if path[k, j] < 0:
                    break
                load[path[k, j]] += needs[k]
    start = np.zeros(len(row) + 1, dtype=np.int64)
    for k in range(len(row)):
        start[k + 1] = start[k] + (best[k] >= 0).sum()
    links = np.empty(start[-1], dtype=np.int64)
    for k in range(len(row)):
        links[start[k] : start[k + 1]] = best[k, : start[k + 1] - start[k]]
    return start, links
