"""Local search that reoptimizes one full cluster at a time by a knapsack, with ejection chains.

A knapsack chooses which clients a cluster serves: its present ones, and candidates elsewhere whose cost
falls by coming. Ejected clients go to their cheapest other cluster with residual capacity. A client that
comes from another full cluster frees capacity there: a random part of its dual price counts as gain
(perturbed price), and that cluster is reoptimized next, so that chains of moves are found that pay only
together. A chain that loses more than the temperature allows is undone (simulated annealing).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints, Ints32
from planner.compiled import njit, run_small_in_python
from planner.search.deadline import Deadline
from planner.search.tolerances import IMPROVEMENT
from planner_models.brokering.designs.broker.knapsack_bound import MAX_UNITS, solve_knapsack
from planner_models.brokering.designs.broker.rounding import State, move_clients, total_cost
from planner_models.brokering.plan.transportation import TransportationProblem, common_unit_mbps

MIN_GAIN: Final = IMPROVEMENT  # relative to the mean cost of a client; less may be rounding
CANDIDATE_SHARE: Final = 0.06  # of all pairs of group and cluster, by reduced cost
MAX_UNITS_PER_ROUND: Final = 1500  # of capacity; larger clusters gain little
MAX_COMMON_UNITS: Final = 20_000  # of all bitrates, of the median full cluster; else units are larger
MAX_SAMPLED_GROUPS: Final = 20_000  # for the quantile of reduced costs
MAX_PERTURBATION: Final = 1.2  # of a dual price
PERTURBATION_DECAY: Final = 0.5  # of perturbed prices, after the first cluster of a chain
MAX_CHAIN_LENGTH: Final = 30  # clusters
INITIAL_TEMPERATURE: Final = 1e-6  # of the plan's cost, that a chain may lose
STAY_GAIN: Final = 1e18  # of a client that fits nowhere else
MAX_CHAIN_MOVES: Final = 10_000
ROUNDS_PER_LARGE: Final = 6  # rounds until large clusters are reoptimized again
MAX_ROUNDS: Final = 300
STALL_LIMIT: Final = 60  # rounds without a better plan


class Neighbourhood(NamedTuple):
    """The moves that the search may make.

    units      (G,) of capacity that a client takes
    unit_mbps  of one unit
    first      (F + 1,) where the candidates of each full cluster begin in `candidate`
    candidate  groups whose clients may come
    """

    units: Ints
    unit_mbps: float
    first: Ints
    candidate: Ints


class ClusterLists(NamedTuple):
    """For each group, a linked list of clusters that it is or was in.

    is_listed  (G, C)
    head       (G,) first entry of each list; -1: empty
    following  next entry of each entry; -1: last
    cluster    of each entry
    length     (1,) number of entries
    """

    is_listed: Bools
    head: Ints
    following: Ints
    cluster: Ints
    length: Ints


def improve(
    problem: TransportationProblem,
    dual_price: Floats,
    assigned: Ints32,
    *,
    enough: float,
    scale: float,
    deadline: Deadline,
    seed: int = 0,
    report: Callable[[float], None] = lambda _: None,
) -> float:
    """Reoptimize clusters repeatedly, keep the best plan, and return the cost saved.

    dual_price  (C,) of capacity, from the flow
    assigned    (G, C) a plan within all capacities; replaced by a better one
    scale       cost of the clients that are served, about, which temperatures are relative to
    enough      cost at which the search stops
    deadline    when to stop
    report      called with the cost of the best plan after each round
    """
    full, capacity = np.flatnonzero(dual_price > 0), problem.capacity_mbps
    value = total_cost(problem, assigned)
    if not len(full) or value <= enough:
        return 0.0
    unit_mbps = _choose_unit(problem, full)
    full = full[capacity[full] / unit_mbps <= MAX_UNITS]
    state = State.of(problem, assigned)
    min_gain = MIN_GAIN * scale / max(int(problem.count.sum()), 1)
    first, candidate = _list_candidates(problem, dual_price, full)
    row = np.full(len(dual_price), -1)
    row[full] = np.arange(len(full))
    neighbourhood = Neighbourhood(
        units=np.maximum(np.rint(problem.bitrate_mbps / unit_mbps), 1).astype(np.int64),
        unit_mbps=unit_mbps,
        first=first,
        candidate=candidate,
    )
    is_large = capacity / unit_mbps > MAX_UNITS_PER_ROUND
    random = np.random.default_rng(seed)
    best, saved, best_saved, stalled = assigned.copy(), 0.0, 0.0, 0
    for step in range(MAX_ROUNDS):
        if value - best_saved <= enough or stalled >= STALL_LIMIT or deadline.is_over:
            break
        temperature = INITIAL_TEMPERATURE * scale * (1 - step / MAX_ROUNDS) * random.random()
        price = dual_price * random.uniform(0.0, MAX_PERTURBATION, len(dual_price))
        taken_up = np.where(is_large, -1, row) if step % ROUNDS_PER_LARGE else row
        order = random.permutation(full)
        lists = list_clusters(state)
        for index in range(len(order)):
            if deadline.is_over:
                break
            item = order[index : index + 1]
            saved += run_round(state, neighbourhood, lists, price, item, taken_up, min_gain - temperature)
        stalled += 1
        if saved > best_saved:
            best_saved, stalled = saved, 0
            best[:] = assigned
        report(value - best_saved)
    assigned[:] = best
    return best_saved


def _choose_unit(problem: TransportationProblem, full: Ints) -> float:
    """Return the unit of capacity of the knapsacks, Mbit/s: common to all bitrates, where it is not too fine.

    Else bitrates are rounded to units; moves look at the capacity itself.

    full  clusters that are filled
    """
    unit_mbps, usual_mbps = common_unit_mbps(problem.bitrate_mbps), np.median(problem.capacity_mbps[full])
    if unit_mbps is None or usual_mbps > MAX_COMMON_UNITS * unit_mbps:
        return max(float(usual_mbps) / MAX_UNITS_PER_ROUND, 1e-9)
    return unit_mbps


def _list_candidates(problem: TransportationProblem, dual_price: Floats, full: Ints) -> tuple[Ints, Ints]:
    """Return the groups with clients that may come to each full cluster: (F + 1,) first rows, and the groups.

    Pairs with the largest reduced cost are left out.
    """
    reduced = problem.reduced_cost(dual_price, full)
    share = min(CANDIDATE_SHARE * problem.cost.shape[1] / len(full), 1.0) if len(full) else 1.0
    sample = reduced[:: max(len(reduced) // MAX_SAMPLED_GROUPS, 1)]
    sample = sample[np.isfinite(sample)]
    limit = np.quantile(sample, share) if len(sample) else 0
    cluster, group = np.nonzero((np.isfinite(reduced) & (reduced <= limit)).T)
    return np.searchsorted(cluster, np.arange(len(full) + 1)).astype(np.int64), group.astype(np.int64)


@run_small_in_python(max_elements=2_000)
@njit(cache=True)
def list_clusters(state: State) -> ClusterLists:  # pragma: no cover - compiled
    """Return the lists of the clusters that each group is in."""
    group, cluster = np.nonzero(state.assigned)
    size = 4 * len(group) + 2 * MAX_CHAIN_MOVES
    lists = ClusterLists(
        np.zeros(state.assigned.shape, dtype=np.bool_),
        np.full(len(state.bitrate_mbps), -1),
        np.full(size, -1),
        np.full(size, -1),
        np.zeros(1, dtype=np.int64),
    )
    for i in range(len(group)):
        _list_cluster(lists, group[i], cluster[i])
    return lists


@run_small_in_python(max_elements=100_000)
@njit(cache=True)
def run_round(
    state: State,
    neighbourhood: Neighbourhood,
    lists: ClusterLists,
    price: Floats,
    order: Ints,
    row: Ints,
    min_gain: float,
) -> float:  # pragma: no cover - compiled
    """Reoptimize full clusters once, and return the cost saved.

    lists     clusters that each group is or was in
    price     (C,) perturbed dual price: gain per Mbit/s that is freed in a full cluster
    order     full clusters in the order in which they are reoptimized
    row       (C,) of a cluster among the full ones; -1 for those that are left out
    min_gain  that a chain has to save; negative where it may lose
    """
    log = np.empty((MAX_CHAIN_MOVES, 4), dtype=np.int64)
    saved = 0.0
    for b in order:
        if row[b] < 0:
            continue
        gained, moves = _run_chain(state, neighbourhood, price, b, row, lists, log)
        if gained > min_gain:
            saved += gained
            continue
        for i in range(moves - 1, -1, -1):
            move_clients(state, log[i, 0], log[i, 2], log[i, 1], log[i, 3])
    return saved


@njit(cache=True)
def _run_chain(
    state: State,
    neighbourhood: Neighbourhood,
    price: Floats,
    b: int,
    row: Ints,
    lists: ClusterLists,
    log: Ints,
) -> tuple[float, int]:  # pragma: no cover - compiled
    """Reoptimize cluster b, then those that clients left; return the cost saved and the moves in `log`."""
    first, candidate = neighbourhood.first, neighbourhood.candidate
    moves: Any = np.int64(0)  # a plain 0 compiles one loop more
    gained, tried, length, cluster = 0.0, 0, 0, b
    while cluster >= 0 and length <= MAX_CHAIN_LENGTH:
        before, row_number = moves, row[cluster]
        decay = 1.0 if length == 0 else PERTURBATION_DECAY
        group = candidate[first[row_number] : first[row_number + 1]]
        more, moves = _reoptimize(state, neighbourhood, price * decay, cluster, group, lists, log, moves)
        gained += more
        for i in range(before, moves):
            _list_cluster(lists, log[i, 0], log[i, 2])
        cluster = -1
        while tried < moves and cluster < 0:
            if log[tried, 1] != b and row[log[tried, 1]] >= 0:
                cluster = log[tried, 1]
            tried += 1
        length += 1
    return gained, moves


@njit(cache=True)
def _list_cluster(lists: ClusterLists, group: int, cluster: int) -> None:  # pragma: no cover - compiled
    """Put a cluster at the head of a group's list, where it is not yet listed."""
    entry = lists.length[0]
    if not lists.is_listed[group, cluster] and entry < len(lists.cluster):
        lists.following[entry], lists.cluster[entry] = lists.head[group], cluster
        lists.is_listed[group, cluster], lists.head[group] = True, entry
        lists.length[0] = entry + 1


@njit(cache=True)
def _reoptimize(
    state: State,
    neighbourhood: Neighbourhood,
    price: Floats,
    b: int,
    candidate: Ints,
    lists: ClusterLists,
    log: Ints,
    moves: int,
) -> tuple[float, int]:  # pragma: no cover - compiled
    """Choose the clients of cluster b by a knapsack; return the cost saved and the moves in `log`."""
    cost, bitrate, assigned, residual = state
    present = np.flatnonzero(assigned[:, b])
    capacity = residual[b] + (bitrate[present] * assigned[present, b]).sum()
    group, origin, reduced = _candidate_moves(state, price, b, present, candidate, lists)
    taken = np.zeros(len(group), dtype=np.int64)
    if len(group):
        count = np.empty(len(group), dtype=np.int64)
        for i in range(len(group)):
            count[i] = assigned[group[i], origin[i]]
        units = int(np.floor(capacity / neighbourhood.unit_mbps + 1e-6))
        _, taken = solve_knapsack(reduced, neighbourhood.units[group], count, units)
    stays = np.zeros(len(present), dtype=np.int64)
    for i in range(len(group)):
        if origin[i] == b:
            stays[np.searchsorted(present, group[i])] = taken[i]
    gained = 0.0
    for m in range(len(present)):
        g = present[m]
        for _ in range(assigned[g, b] - stays[m]):
            d = _cheapest_other(state, g, b)
            if d < 0 or moves == len(log):
                break
            gained += cost[g, b] - cost[g, d]
            moves = _record_move(state, g, b, d, 1, log, moves)
    for i in range(len(group)):
        g, a = group[i], origin[i]
        number = min(taken[i], int(residual[b] / bitrate[g]))
        if a != b and number > 0 and moves < len(log):
            gained += number * (cost[g, a] - cost[g, b])
            moves = _record_move(state, g, a, b, number, log, moves)
    return gained, moves


@njit(cache=True)
def _candidate_moves(
    state: State, price: Floats, b: int, present: Ints, candidate: Ints, lists: ClusterLists
) -> tuple[Ints, Ints, Floats]:  # pragma: no cover - compiled
    """Return candidate moves into cluster b: client group, origin cluster, cost change (negative).

    Clients that are present are candidates to stay; their origin is b.
    """
    cost, bitrate, assigned, _ = state
    head, following, cluster = lists.head, lists.following, lists.cluster
    size = len(present)
    for g in candidate:
        entry = head[g]
        while entry >= 0:
            size += 1
            entry = following[entry]
    group, origin = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    change, count = np.empty(size), 0
    for g in present:
        d = _cheapest_other(state, g, b)
        gain = cost[g, d] - cost[g, b] if d >= 0 else STAY_GAIN
        if gain > 0:
            group[count], origin[count], change[count] = g, b, -gain
            count += 1
    for g in candidate:
        entry = head[g]
        while entry >= 0:
            a = cluster[entry]
            entry = following[entry]
            if a == b or assigned[g, a] == 0:
                continue
            gain = cost[g, a] - cost[g, b] + price[a] * bitrate[g]
            if gain > 0:
                group[count], origin[count], change[count] = g, a, -gain
                count += 1
    return group[:count], origin[:count], change[:count]


@njit(cache=True)
def _cheapest_other(state: State, g: int, b: int) -> int:  # pragma: no cover - compiled
    """Return the cheapest cluster but b that a client of g fits in; -1 where there is none."""
    cost, bitrate, _, residual = state
    best, lowest = -1, np.inf
    for d in range(cost.shape[1]):
        if cost[g, d] < lowest and d != b and residual[d] >= bitrate[g]:
            best, lowest = d, cost[g, d]
    return best


@njit(cache=True)
def _record_move(
    state: State, group: int, origin: int, target: int, count: int, log: Ints, moves: int
) -> int:  # pragma: no cover - compiled
    """Move clients, append (group, origin, target, clients) to `log`, and return the number of moves."""
    move_clients(state, group, origin, target, count)
    log[moves, 0], log[moves, 1], log[moves, 2], log[moves, 3] = group, origin, target, count
    return moves + 1
