"""LocalFlow: every switch balances the load of its own links by bin packing and splits few flows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from pydantic import Field

from planner.arrays import Bools, Floats, Ints
from planner.compiled import njit, run_small_in_python
from planner.contract.design import Decision
from planner.search.tolerances import FEASIBILITY, ROUNDING
from planner.sums import add_up
from planner_models.flows import next_hops
from planner_models.flows.next_hops import NextHops, enlarge
from planner_models.traffic.designs.routable import shed_unreachable_by_demand
from planner_models.traffic.plan.flow_decision import Rates, route_shares, tcp_rates
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic

Order = Literal["increasing", "decreasing", "given"]
Delta = Annotated[
    float,
    Field(
        ge=0,
        description="slack: largest difference of bins, as a fraction of a link's capacity; 0 splits exactly",
    ),
]
Policy = Annotated[
    Order, Field(description="order in which flows are packed: by rate, or as the table of demands has them")
]
Rebalance = Annotated[
    bool,
    Field(description="size bins by the capacity of the next switches (4.3); otherwise all bins are equal"),
]
WholeClasses = Annotated[
    tuple[str, ...],
    Field(description="traffic classes whose demands are never split, such as UDP; packed before the others"),
]
RoundCount = Annotated[
    int, Field(gt=0, description="with elastic rates: the most scheduling intervals until rates converge")
]
Seed = Annotated[int, Field(ge=0, description="of the tie-breaks between equally loaded links")]

RATE_TOLERANCE: Final = FEASIBILITY  # of a demand's rate; rates that change by less have converged
BIN_TOLERANCE: Final = ROUNDING  # of a bin; a flow fits that is too large by less


@shed_unreachable_by_demand
def route(
    problem: Traffic,
    *,
    delta: Delta = 0.01,
    policy: Policy = "increasing",
    rebalance: Rebalance = True,
    rates: Rates = "given",
    rounds: RoundCount = 10,
    seed: Seed = 0,
    whole_classes: WholeClasses = (),
) -> Decision[Routing]:
    """Balance the traffic to each destination over each switch's shortest next hops, with few split flows.

    A destination is the target of a demand. With elastic rates the switches measure, schedule and
    measure again, as TCP reaches new rates, until these converge; the plan is that of the last
    interval. Switches know no paths: tunnels, latency limits and rules do not count.

    Demands that may not be split are packed first, by increasing rate, each into the emptiest bin. So no
    bin exceeds its size by more than the slack, or the largest of their rates.

    raises  InputError for classes that no demand has
    source  Sen et al. 2013, Algorithm 1; section 4.3 for failures, section 8 for UDP
    """
    packing = Packing(delta=delta, policy=policy, is_whole=problem.in_classes(whole_classes, "whole_classes"))
    return _iterate(problem, packing, rebalance, rates, rounds, seed)


@shed_unreachable_by_demand
def route_whole(
    problem: Traffic,
    *,
    policy: Policy = "increasing",
    rebalance: Rebalance = True,
    rates: Rates = "given",
    rounds: RoundCount = 10,
    seed: Seed = 0,
) -> Decision[Routing]:
    """Route as LocalFlow with unlimited slack, so that no flow is split (LocalFlow-NS).

    The paper's delta = 1 never splits a flow that fits one link; this splits none at all.

    source  Sen et al. 2013, sections 1 and 4.2
    """
    packing = Packing(delta=np.inf, policy=policy)
    return _iterate(problem, packing, rebalance, rates, rounds, seed)


@dataclass(frozen=True, kw_only=True, eq=False)
class Packing:
    """How flows are packed into bins.

    delta     slack, as a fraction of a link's capacity
    policy    order of flows that may be split
    is_whole  (K,) the demands that may not; None: none of them
    """

    delta: float
    policy: Order = "increasing"
    is_whole: Bools | None = None


def _iterate(
    problem: Traffic, packing: Packing, rebalance: bool, rates: Rates, rounds: int, seed: int
) -> Decision[Routing]:
    hops = next_hops.find_next_hops(problem)
    random = np.random.default_rng(seed)
    measured = problem.rate_mbps
    for _ in range(1 if rates == "given" else rounds):
        share = link_shares(problem, hops, measured, packing, rebalance=rebalance, random=random)
        previous, measured = measured, tcp_rates(problem, share, rates)
        if (np.abs(measured - previous) <= RATE_TOLERANCE * problem.rate_mbps).all():
            break
    return route_shares(problem, share, rates)


def link_shares(
    problem: Traffic,
    hops: NextHops,
    rate_mbps: Floats,
    packing: Packing,
    *,
    rebalance: bool = True,
    random: np.random.Generator,
) -> sp.csr_array:
    """Return the share of each demand on each link, shape (K, E), for measured rates (K,), Mbit/s.

    Upstream switches split before a flow reaches the next, so each switch packs the subflows that
    arrive. A demand without a rate is placed as one of the smallest.
    """
    smallest = 1e-9 * float(problem.rate_mbps.max(initial=0.0))
    rate = np.where(problem.rate_mbps > 0, np.maximum(rate_mbps, smallest), 0.0)
    order = ORDER_CODES[packing.policy]
    is_whole = np.zeros(len(rate), bool) if packing.is_whole is None else packing.is_whole
    demand, link, amount = _schedule_network(
        hops, problem.capacity_mbps, rate, is_whole, packing.delta, order, rebalance, random
    )
    shape = (len(problem.demands), len(problem.links))
    return sp.csr_array(sp.coo_array((amount / rate[demand], (demand, link)), shape=shape))


def schedule_switch(
    destination: ArrayLike,
    rate: ArrayLike,
    *,
    links: int,
    delta: float,
    policy: Order = "increasing",
    seed: int = 0,
    is_whole: ArrayLike = (),
) -> tuple[Ints, Ints, Floats]:
    """Run Algorithm 1 at one switch with links that all lead to every destination.

    destination, rate  (F,) target of each flow, numbered from 0, and its rate
    delta              in the unit of the rates
    is_whole           (F,) flows that may not be split; none where it is empty
    returns            (P,) flow, link and rate of each subflow; destinations are scheduled by number
    """
    destination = np.asarray(destination, dtype=np.int64)
    unsplit = np.zeros(len(destination), bool)
    if np.size(is_whole):
        unsplit[:] = is_whole
    order = np.argsort(destination, kind="stable")
    first = np.searchsorted(destination[order], np.arange(int(destination.max(initial=-1)) + 2))
    flow, link, amount = _schedule_switch(
        first.astype(np.int64),
        np.asarray(rate, dtype=float)[order],
        unsplit[order],
        links,
        float(delta),
        ORDER_CODES[policy],
        np.random.default_rng(seed),
    )
    return order[flow], link, amount


ORDER_CODES: Final[dict[Order, int]] = {"increasing": 0, "decreasing": 1, "given": 2}


# --- Algorithm 1, compiled ----------------------------------------------------------------


class _Subflows(NamedTuple):
    """Flow, bin and amount of subflows: at most F + 2 B of them, of F flows in B bins."""

    flow: Ints
    bin: Ints
    amount: Floats


@njit(cache=True)
def _bin_pack(rate, is_whole, size, delta, order, residual, packed):  # type: ignore[no-untyped-def]
    """Pack flows of `rate` (F,) into bins of `size` (B,) (BINPACK); return the number of subflows.

    Flows of `is_whole` (F,) come first, by increasing rate, and are not split.
    Writes residual (B,), and the subflows to `packed`.
    """
    flow, bin_, amount = packed
    count, bins = len(rate), len(size)
    tolerance = 0.0
    for b in range(bins):
        residual[b] = size[b]
        tolerance = max(tolerance, BIN_TOLERANCE * size[b])
    if order == 0:
        sequence = np.argsort(rate, kind="mergesort")
    elif order == 1:
        sequence = np.argsort(-rate, kind="mergesort")
    else:
        sequence = np.arange(count)
    if is_whole.any():
        by_rate = np.argsort(rate, kind="mergesort")
        sequence = np.concatenate((by_rate[is_whole[by_rate]], sequence[~is_whole[sequence]]))
    remaining = rate[sequence]
    subflows, i = 0, 0
    while i < count:
        b = 0
        for other in range(1, bins):
            if residual[other] > residual[b]:
                b = other
        flow[subflows], bin_[subflows] = sequence[i], b
        if not is_whole[sequence[i]] and remaining[i] > residual[b] + delta + tolerance:
            amount[subflows] = residual[b]
            remaining[i] -= residual[b]
            residual[b] = 0.0
            subflows += 1
            # the rest of the flow is sorted in again
            j = i
            while order == 1 and j + 1 < count and remaining[j + 1] > remaining[j]:
                remaining[j], remaining[j + 1] = remaining[j + 1], remaining[j]
                sequence[j], sequence[j + 1] = sequence[j + 1], sequence[j]
                j += 1
        else:
            amount[subflows] = remaining[i]
            residual[b] -= remaining[i]
            subflows += 1
            i += 1
    return subflows


@njit(cache=True)
def _match_bins(size, filled, load, random, link_of):  # type: ignore[no-untyped-def]
    """Assign fuller bins to less loaded links, among bins of the same size (lines 7 to 10).

    size    (B,) of the bin made for each link
    filled  (B,) rate in each bin; load (B,) present load of each link
    """
    bins = len(size)
    if bins == 1:
        link_of[0] = 0
        return
    ties = np.empty(bins)
    for b in range(bins):
        ties[b] = random.random()
    is_matched = np.zeros(bins, dtype=np.bool_)
    is_assigned = np.zeros(bins, dtype=np.bool_)
    for _ in range(bins):
        fullest = -1
        for b in range(bins):
            if not is_matched[b] and (fullest < 0 or filled[b] > filled[fullest]):
                fullest = b
        lightest = -1
        for e in range(bins):
            if is_assigned[e] or abs(size[e] - size[fullest]) > BIN_TOLERANCE * size[fullest]:
                continue
            if (
                lightest < 0
                or load[e] < load[lightest]
                or (load[e] == load[lightest] and ties[e] < ties[lightest])
            ):
                lightest = e
        link_of[fullest] = lightest
        is_matched[fullest] = is_assigned[lightest] = True


@run_small_in_python(max_elements=1_000)
@njit(cache=True)
def _schedule_switch(first, rate, is_whole, links, delta, order, random):  # type: ignore[no-untyped-def]
    count = len(rate)
    limit = count + 2 * links * (len(first) - 1)
    flow = np.empty(limit, dtype=np.int64)
    link = np.empty(limit, dtype=np.int64)
    amount = np.empty(limit)
    load, residual, size = np.zeros(links), np.empty(links), np.empty(links)
    link_of = np.empty(links, dtype=np.int64)
    subflows = 0
    for d in range(len(first) - 1):
        rates = rate[first[d] : first[d + 1]]
        if len(rates) == 0:
            continue
        size[:] = add_up(rates) / links
        packed = _Subflows(flow[subflows:], link[subflows:], amount[subflows:])
        new = _bin_pack(rates, is_whole[first[d] : first[d + 1]], size, delta, order, residual, packed)
        _match_bins(size, size - residual, load, random, link_of)
        for j in range(subflows, subflows + new):
            flow[j] += first[d]
            link[j] = link_of[link[j]]
            load[link[j]] += amount[j]
        subflows += new
    return flow[:subflows].copy(), link[:subflows].copy(), amount[:subflows].copy()


class _Demands(NamedTuple):
    """Demands of a target that start at a node: linked lists of places in `demand`."""

    demand: Ints
    first: Ints
    following: Ints


class _Arrivals(NamedTuple):
    """Subflows so far, and linked lists of those that arrived at each node.

    demand, link, amount  of each subflow
    earlier               the subflow that arrived at the same node before
    latest                (N,) last subflow that arrived at each node; -1: none
    """

    demand: Ints
    link: Ints
    amount: Floats
    earlier: Ints
    latest: Ints


@run_small_in_python(max_elements=5_000)
@njit(cache=True)
def _schedule_network(hops, capacity, rate, is_whole, delta, order, rebalance, random):  # type: ignore[no-untyped-def]
    """Run Algorithm 1 at every switch, destination by destination, farthest switch first.

    Returns demand, link and rate of each subflow.
    """
    nodes, head = hops.nodes, hops.head
    arrivals = _Arrivals(
        np.empty(1024, np.int64),
        np.empty(1024, np.int64),
        np.empty(1024),
        np.empty(1024, np.int64),
        np.full(nodes, -1),
    )
    subflows = 0
    load = np.zeros(len(capacity))
    capacity_to_target = np.zeros(nodes)  # of each node's next hops
    slot = np.full(len(rate), -1)
    for d in range(len(hops.targets)):
        target = hops.targets[d]
        for i in range(hops.first_node[d], hops.first_node[d + 1]):
            v = hops.node[i]
            arrivals.latest[v] = -1
            capacity_to_target[v] = 0.0
            for e in hops.link[hops.first_link[i] : hops.first_link[i + 1]]:
                capacity_to_target[v] += capacity[e]
        demands = _list_by_source(hops, hops.demand[hops.first_demand[d] : hops.first_demand[d + 1]])
        for i in range(hops.first_node[d], hops.first_node[d + 1]):
            links = hops.link[hops.first_link[i] : hops.first_link[i + 1]]
            flows, rates = _gather_flows(hops.node[i], demands, arrivals, slot, rate)
            if len(flows) == 0:
                continue
            size, smallest_capacity = _size_bins(links, head, target, capacity, capacity_to_target, rebalance)
            size *= add_up(rates) / add_up(size)
            bins = len(links)
            residual = np.empty(bins)
            bin_link = np.empty(bins, dtype=np.int64)
            limit = len(flows) + 2 * bins
            packed = _Subflows(np.empty(limit, np.int64), np.empty(limit, np.int64), np.empty(limit))
            slack = delta * smallest_capacity
            new = _bin_pack(rates, is_whole[flows], size, slack, order, residual, packed)
            _match_bins(size, size - residual, load[links], random, bin_link)
            arrivals = _enlarge(arrivals, subflows + new)
            for j in range(new):
                if packed.amount[j] <= 0:
                    continue
                e = links[bin_link[packed.bin[j]]]
                arrivals.demand[subflows], arrivals.link[subflows] = flows[packed.flow[j]], e
                arrivals.amount[subflows] = packed.amount[j]
                arrivals.earlier[subflows] = arrivals.latest[head[e]]
                arrivals.latest[head[e]] = subflows
                load[e] += packed.amount[j]
                subflows += 1
        arrivals.latest[target] = -1
    return (
        arrivals.demand[:subflows].copy(),
        arrivals.link[:subflows].copy(),
        arrivals.amount[:subflows].copy(),
    )


@njit(cache=True)
def _list_by_source(hops, demands):  # type: ignore[no-untyped-def]
    """Return the demands of a target by the node where they start."""
    first = np.full(hops.nodes if len(demands) else 0, -1)
    following = np.empty(len(demands), dtype=np.int64)
    for j in range(len(demands)):
        following[j] = first[hops.source[demands[j]]]
        first[hops.source[demands[j]]] = j
    return _Demands(demands, first, following)


@njit(cache=True)
def _size_bins(links, head, target, capacity, capacity_to_target, rebalance):  # type: ignore[no-untyped-def]
    """Return the relative sizes of the next hops' bins, and the smallest capacity of their links."""
    size = np.empty(len(links))
    smallest_capacity = np.inf
    largest_next = 0.0
    for e in links:
        smallest_capacity = min(smallest_capacity, capacity[e])
        if head[e] != target:
            largest_next = max(largest_next, capacity_to_target[head[e]])
    for b in range(len(links)):
        size[b] = 1.0
        if rebalance:
            size[b] = capacity[links[b]]
            if head[links[b]] != target:
                size[b] *= capacity_to_target[head[links[b]]] / largest_next
    return size, smallest_capacity


@njit(cache=True)
def _enlarge(arrivals, size):  # type: ignore[no-untyped-def]
    """Return the subflows in arrays of at least this size."""
    return _Arrivals(
        enlarge(arrivals.demand, size),
        enlarge(arrivals.link, size),
        enlarge(arrivals.amount, size),
        enlarge(arrivals.earlier, size),
        arrivals.latest,
    )


@njit(cache=True)
def _gather_flows(v, demands, arrivals, slot, rate):  # type: ignore[no-untyped-def]
    """Return the flows at node v and their rates; subflows of one flow that meet again are merged."""
    first, following, latest, earlier = demands.first, demands.following, arrivals.latest, arrivals.earlier
    count = 0
    j = first[v]
    while j >= 0:
        count += 1
        j = following[j]
    i = latest[v]
    while i >= 0:
        count += 1
        i = earlier[i]
    flows, rates = np.empty(count, dtype=np.int64), np.empty(count)
    count = 0
    j = first[v]
    while j >= 0:
        k = demands.demand[j]
        flows[count], rates[count] = k, rate[k]
        slot[k] = count
        count += 1
        j = following[j]
    i = latest[v]
    while i >= 0:
        k = arrivals.demand[i]
        if slot[k] < 0:
            slot[k] = count
            flows[count], rates[count] = k, 0.0
            count += 1
        rates[slot[k]] += arrivals.amount[i]
        i = earlier[i]
    for j in range(count):
        slot[flows[j]] = -1
    # in the order of the table, for policy "given"
    order = np.argsort(flows[:count])
    return flows[:count][order], rates[:count][order]
