"""LocalFlow: every switch balances its own links, splitting as few flows as it can."""

from __future__ import annotations

import time
from typing import Annotated, Final, Literal

import numba
import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from planner.options import Options
from planner.system import Decision
from planner_models.traffic import next_hops
from planner_models.traffic import rates as tcp
from planner_models.traffic.next_hops import NextHops, grown
from planner_models.traffic.problem import Traffic
from planner_models.traffic.rates import Rates
from planner_models.traffic.routing import Routing

Order = Literal["increasing", "decreasing", "given"]
Delta = Annotated[
    float,
    Field(
        ge=0,
        description="slack: how far bins may differ, as a fraction of a link's capacity; 0 splits exactly",
    ),
]
Policy = Annotated[
    Order, Field(description="order in which flows are packed: by rate, or as the table of demands has them")
]
Rebalance = Annotated[
    bool,
    Field(description="size bins by what the next switches can pass on (4.3); otherwise all bins are equal"),
]
RoundCount = Annotated[
    int, Field(gt=0, description="with elastic rates: the most intervals of scheduling until rates settle")
]
Seed = Annotated[int, Field(ge=0, description="how ties between equally loaded links are broken")]

SETTLED: Final = 1e-6  # of a demand's rate; rates that move by less have settled
EXACT: Final = 1e-9  # of a bin; a flow that is too large by less fits


def route(
    problem: Traffic,
    *,
    delta: Delta = 0.01,
    policy: Policy = "increasing",
    rebalance: Rebalance = True,
    rates: Rates = "given",
    rounds: RoundCount = 10,
    seed: Seed = 0,
    options: Options = Options(),  # noqa: ARG001 - nothing is solved
    previous: Decision[Routing] | None = None,  # noqa: ARG001
) -> Decision[Routing]:
    """Each switch spreads the traffic to each destination over its shortest next hops, splitting rarely.

    A destination is the target of a demand. With elastic rates the switches measure, schedule and
    measure again, as TCP finds new rates, until those settle; the plan is that of the last interval.

    source  Sen et al. 2013, Algorithm 1; section 4.3 for failures
    """
    return _settle(problem, delta, policy, rebalance, rates, rounds, seed)


def route_whole(
    problem: Traffic,
    *,
    policy: Policy = "increasing",
    rebalance: Rebalance = True,
    rates: Rates = "given",
    rounds: RoundCount = 10,
    seed: Seed = 0,
    options: Options = Options(),  # noqa: ARG001
    previous: Decision[Routing] | None = None,  # noqa: ARG001
) -> Decision[Routing]:
    """LocalFlow that never splits a flow (LocalFlow-NS): its slack is without limit.

    The paper's delta = 1 never splits a flow that fits one link; this splits none at all.

    source  Sen et al. 2013, sections 1 and 4.2
    """
    return _settle(problem, np.inf, policy, rebalance, rates, rounds, seed)


def _settle(
    problem: Traffic, delta: float, policy: Order, rebalance: bool, rates: Rates, rounds: int, seed: int
) -> Decision[Routing]:
    start = time.perf_counter()
    hops = next_hops.of(problem)
    random = np.random.default_rng(seed)
    measured = problem.rate_mbps
    for _ in range(1 if rates == "given" else rounds):
        share = shares(
            problem, hops, measured, delta=delta, policy=policy, rebalance=rebalance, random=random
        )
        before, measured = measured, tcp.reached(problem, share, rates)
        if (np.abs(measured - before) <= SETTLED * problem.rate_mbps).all():
            break
    return tcp.carry(problem, share, rates, started=start)


def shares(
    problem: Traffic,
    hops: NextHops,
    rate_mbps: NDArray[np.float64],
    *,
    delta: float,
    policy: Order = "increasing",
    rebalance: bool = True,
    random: np.random.Generator,
) -> sp.csr_array:
    """(K, E) share of each demand on each link, when switches know the flows' rates, (K,) Mbit/s.

    Upstream switches split before a flow reaches the next, so each takes the subflows that arrive.
    A demand without a rate is placed as one of the smallest.
    """
    least = 1e-9 * float(problem.rate_mbps.max(initial=0.0))
    rate = np.where(problem.rate_mbps > 0, np.maximum(rate_mbps, least), 0.0)
    demand, link, amount = _spread(
        hops.demand,
        hops.first_demand,
        hops.node,
        hops.first_node,
        hops.link,
        hops.first_link,
        problem.source,
        problem.head,
        problem.targets,
        problem.capacity_mbps,
        rate,
        len(problem.nodes),
        delta,
        ORDERS[policy],
        rebalance,
        random,
    )
    shape = (len(problem.demands), len(problem.links))
    found = sp.coo_array((amount / rate[demand], (demand, link)), shape=shape)
    return sp.csr_array(found)


def at_switch(
    destination: ArrayLike,
    rate: ArrayLike,
    *,
    links: int,
    delta: float,
    policy: Order = "increasing",
    seed: int = 0,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Algorithm 1 at one switch whose links all lead to every destination.

    destination, rate  (F,) where each flow ends, numbered from 0, and its rate
    delta              in the unit of the rates
    returns            (P,) flow, link and rate of each subflow; destinations take their turn by number
    """
    destination = np.asarray(destination, dtype=np.int64)
    order = np.argsort(destination, kind="stable")
    first = np.searchsorted(destination[order], np.arange(int(destination.max(initial=-1)) + 2))
    flow, link, amount = _schedule(
        first.astype(np.int64),
        np.asarray(rate, dtype=float)[order],
        links,
        float(delta),
        ORDERS[policy],
        np.random.default_rng(seed),
    )
    return order[flow], link, amount


ORDERS: Final[dict[Order, int]] = {"increasing": 0, "decreasing": 1, "given": 2}


# --- Algorithm 1, compiled ----------------------------------------------------------------


@numba.njit(cache=True)
def _bin_pack(rate, size, delta, order, residual, flow, bin_, amount):  # type: ignore[no-untyped-def]
    """BINPACK: flows of `rate` (F,) into bins of `size` (B,); the number of subflows made.

    Writes residual (B,), and flow, bin and amount of each subflow, at most F + 2 B of them.
    """
    count, bins = len(rate), len(size)
    exact = 0.0
    for b in range(bins):
        residual[b] = size[b]
        exact = max(exact, EXACT * size[b])
    if order == 0:
        turn = np.argsort(rate, kind="mergesort")
    elif order == 1:
        turn = np.argsort(-rate, kind="mergesort")
    else:
        turn = np.arange(count)
    left = rate[turn]
    made, i = 0, 0
    while i < count:
        b = 0
        for other in range(1, bins):
            if residual[other] > residual[b]:
                b = other
        flow[made], bin_[made] = turn[i], b
        if left[i] > residual[b] + delta + exact:
            amount[made] = residual[b]
            left[i] -= residual[b]
            residual[b] = 0.0
            made += 1
            # what is left of the flow takes its place in the order again
            j = i
            while order == 1 and j + 1 < count and left[j + 1] > left[j]:
                left[j], left[j + 1] = left[j + 1], left[j]
                turn[j], turn[j + 1] = turn[j + 1], turn[j]
                j += 1
        else:
            amount[made] = left[i]
            residual[b] -= left[i]
            made += 1
            i += 1
    return made


@numba.njit(cache=True)
def _match(size, filled, load, random, link_of):  # type: ignore[no-untyped-def]
    """Lines 7 to 10: fuller bins to less loaded links, among bins of the same size.

    size    (B,) of the bin made for each link
    filled  (B,) what is in each bin; load (B,) what each link carries already
    """
    bins = len(size)
    if bins == 1:
        link_of[0] = 0
        return
    ties = np.empty(bins)
    for b in range(bins):
        ties[b] = random.random()
    matched = np.zeros(bins, dtype=np.bool_)
    taken = np.zeros(bins, dtype=np.bool_)
    for _ in range(bins):
        fullest = -1
        for b in range(bins):
            if not matched[b] and (fullest < 0 or filled[b] > filled[fullest]):
                fullest = b
        lightest = -1
        for to in range(bins):
            if taken[to] or abs(size[to] - size[fullest]) > EXACT * size[fullest]:
                continue
            if (
                lightest < 0
                or load[to] < load[lightest]
                or (load[to] == load[lightest] and ties[to] < ties[lightest])
            ):
                lightest = to
        link_of[fullest] = lightest
        matched[fullest] = taken[lightest] = True


@numba.njit(cache=True)
def _schedule(first, rate, links, delta, order, random):  # type: ignore[no-untyped-def]
    count = len(rate)
    most = count + 2 * links * (len(first) - 1)
    flow = np.empty(most, dtype=np.int64)
    link = np.empty(most, dtype=np.int64)
    amount = np.empty(most)
    load, residual, size = np.zeros(links), np.empty(links), np.empty(links)
    link_of = np.empty(links, dtype=np.int64)
    made = 0
    for d in range(len(first) - 1):
        mine = rate[first[d] : first[d + 1]]
        if len(mine) == 0:
            continue
        size[:] = mine.sum() / links
        new = _bin_pack(mine, size, delta, order, residual, flow[made:], link[made:], amount[made:])
        _match(size, size - residual, load, random, link_of)
        for j in range(made, made + new):
            flow[j] += first[d]
            link[j] = link_of[link[j]]
            load[link[j]] += amount[j]
        made += new
    return flow[:made].copy(), link[:made].copy(), amount[:made].copy()


@numba.njit(cache=True)
def _spread(  # type: ignore[no-untyped-def]  # noqa: C901 - one compiled loop
    demand,
    first_demand,
    node,
    first_node,
    link,
    first_link,
    source,
    head,
    targets,
    capacity,
    rate,
    nodes,
    delta,
    order,
    rebalance,
    random,
):
    """Algorithm 1 at every switch of the network, destination by destination, farthest switch first."""
    # subflows made: demand, link, rate
    by, over, much = np.empty(1024, np.int64), np.empty(1024, np.int64), np.empty(1024)
    made = 0
    load = np.zeros(len(capacity))
    place = np.empty(nodes, dtype=np.int64)
    passes = np.zeros(nodes)  # capacity by which each node goes on to the target
    latest = np.full(nodes, -1)  # last subflow that arrived at each node; -1: none
    earlier = np.empty(1024, dtype=np.int64)  # the one that arrived before
    slot = np.full(len(rate), -1)
    start = np.empty(0, dtype=np.int64)
    for d in range(len(targets)):
        target = targets[d]
        for i in range(first_node[d], first_node[d + 1]):
            place[node[i]] = i
            latest[node[i]] = -1
            passes[node[i]] = 0.0
            for e in link[first_link[i] : first_link[i + 1]]:
                passes[node[i]] += capacity[e]
        mine = demand[first_demand[d] : first_demand[d + 1]]
        start = np.empty(len(mine), dtype=np.int64)
        # demands that start at a node, as a list of its own: place in `mine`, then the next
        begins = np.full(nodes if len(mine) else 0, -1)
        for j in range(len(mine)):
            start[j] = begins[source[mine[j]]]
            begins[source[mine[j]]] = j
        for i in range(first_node[d], first_node[d + 1]):
            v = node[i]
            ways = link[first_link[i] : first_link[i + 1]]
            flows, rates = _arrived(v, mine, begins, start, latest, earlier, by, much, slot, rate)
            if len(flows) == 0:
                continue
            bins = len(ways)
            size, carries = np.empty(bins), np.empty(bins)
            slack = np.inf
            widest = 0.0
            for b in range(bins):
                slack = min(slack, capacity[ways[b]])
                carries[b] = load[ways[b]]
                if head[ways[b]] != target:
                    widest = max(widest, passes[head[ways[b]]])
            for b in range(bins):
                size[b] = 1.0
                if rebalance:
                    size[b] = capacity[ways[b]]
                    if head[ways[b]] != target:
                        size[b] *= passes[head[ways[b]]] / widest
            size *= rates.sum() / size.sum()
            residual = np.empty(bins)
            link_of = np.empty(bins, dtype=np.int64)
            most = len(flows) + 2 * bins
            flow, bin_, amount = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most)
            new = _bin_pack(rates, size, delta * slack, order, residual, flow, bin_, amount)
            _match(size, size - residual, carries, random, link_of)
            by, over, much = grown(by, made + new), grown(over, made + new), grown(much, made + new)
            earlier = grown(earlier, made + new)
            for j in range(new):
                if amount[j] <= 0:
                    continue
                e = ways[link_of[bin_[j]]]
                by[made], over[made], much[made] = flows[flow[j]], e, amount[j]
                earlier[made] = latest[head[e]]
                latest[head[e]] = made
                load[e] += amount[j]
                made += 1
        latest[target] = -1
    return by[:made].copy(), over[:made].copy(), much[:made].copy()


@numba.njit(cache=True)
def _arrived(v, mine, begins, start, latest, earlier, by, much, slot, rate):  # type: ignore[no-untyped-def]
    """The flows at node v and their rates; subflows of one flow that meet again are one."""
    count = 0
    j = begins[v]
    while j >= 0:
        count += 1
        j = start[j]
    i = latest[v]
    while i >= 0:
        count += 1
        i = earlier[i]
    flows, rates = np.empty(count, dtype=np.int64), np.empty(count)
    count = 0
    j = begins[v]
    while j >= 0:
        flows[count], rates[count] = mine[j], rate[mine[j]]
        slot[mine[j]] = count
        count += 1
        j = start[j]
    i = latest[v]
    while i >= 0:
        k = by[i]
        if slot[k] < 0:
            slot[k] = count
            flows[count], rates[count] = k, 0.0
            count += 1
        rates[slot[k]] += much[i]
        i = earlier[i]
    for j in range(count):
        slot[flows[j]] = -1
    # in the order of the table, so that policy "given" means just that
    order = np.argsort(flows[:count])
    return flows[:count][order], rates[:count][order]
