"""Overlay Multicast: each channel takes the best trees for itself alone.

Minimum-cost Steiner tree of one object in a layered network of any depth.

Dynamic programming over sets of groups where these are few, else a path heuristic with improvement:
clusters are inserted and removed, and groups connected anew.

source  Dreyfus and Wagner, "The Steiner problem in graphs" (Networks 1971); Takahashi and Matsuyama,
        "An approximate solution for the Steiner problem in graphs" (Math. Japonica 1980)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal, NamedTuple

import numpy as np
from pydantic import Field

from planner.arrays import Bools, Floats, Ints
from planner.compiled import njit, run_small_in_python
from planner.contract.design import Decision
from planner.options import Options
from planner_models.livevideo.designs.admission import admit_pinned, conclude, order_by_first_request
from planner_models.livevideo.plan.plan import SLACK, Streams, Trees
from planner_models.livevideo.problem.problem import LiveVideo

MAX_EXACT_GROUPS: Final = 8  # groups up to which the dynamic program is used
IMPROVEMENT_PASSES: Final = 2  # passes that improve a tree of more groups


def distribute(
    problem: LiveVideo,
    *,
    sees_load: Annotated[
        bool, Field(description="each channel observes the load of those before it, instead of none")
    ] = True,
    order: Annotated[
        Literal["arrival", "table", "random", "requests"],
        Field(
            description="order of channels: by first request, as in the table, or random; in the last two, "
            "the highest bitrate of a channel comes first. By requests, trees grow by one request after the "
            "other, in the order of arrival"
        ),
    ] = "arrival",
    trees: Annotated[
        Literal["cheapest", "any"],
        Field(
            description="tree of a channel among those of the same quality: the cheapest, or any, by random "
            "costs of links"
        ),
    ] = "cheapest",
    seed: Annotated[int, Field(ge=0, description="seed of the random order, and of any trees")] = 0,
    options: Options = Options(),
) -> Decision[Trees]:
    """Admit the best trees for each channel alone, one channel after the other.

    A channel finds its best tree on residual capacities, which starves later channels. In the order of
    requests, each request extends the tree of its object by the best path, and nothing is rearranged; early
    requests of all channels then starve later ones. Without `sees_load` a channel plans for an empty network;
    branches over a full link are cut. The thesis asks for the tree of the highest quality: with `trees` set
    to `any` its cost does not count. Trees of up to 8 groups are optimal, larger ones go path by path.

    source  Mukerjee 2018, section 4.7.1
    """
    streams = admit_pinned(problem, options)
    if isinstance(streams, Decision):
        return streams
    holders: dict[int, list[int]] = {}  # clusters that receive an object
    for item, cluster in streams.parent:
        holders.setdefault(item, []).append(cluster)
    into = np.argsort(problem.head, kind="stable")
    first = np.searchsorted(problem.head[into], np.arange(len(problem.clusters) + 1))
    random = np.random.default_rng([seed, 1])
    for item, rows in _order_requests(problem, order, seed):
        waits = True
        while waits:  # where the last hop is unicast, another tree may serve the clients that are left
            waiting = _count_waiting(streams, item, rows)
            has_object = np.zeros(len(problem.clusters), dtype=bool)
            has_object[problem.sources[problem.is_at_source[item]]] = True
            has_object[holders.get(item, [])] = True
            choice = LinkChoice(
                has_object,
                _usable_links(streams, item, sees_load=sees_load),
                problem.cost if trees == "cheapest" else random.random(len(problem.cost)),
                problem.cost_weight if trees == "cheapest" else 0.0,
            )
            links = _find_tree(streams, item, rows, (first, into), choice)
            if sees_load:
                for link in links:
                    streams.add(item, link)
            else:
                _admit_branches(streams, item, links, problem.group[rows].tolist())
            heads = (streams.head[link] for link in links)
            holders.setdefault(item, []).extend(head for head in heads if streams.has(item, head))
            waits = 0 < _count_waiting(streams, item, rows) < waiting
    return conclude(streams)


def _count_waiting(streams: Streams, item: int, rows: Ints) -> float:
    """Return the clients of some requests, by row, who wait for a stream of their own; 0 by multicast."""
    return sum(streams.waiting.get((item, group), 0.0) for group in streams.problem.group[rows].tolist())


class LinkChoice(NamedTuple):
    """Links that the tree of an object may take.

    has_object   of each cluster
    usable       of each link
    cost         of each link, by which trees of one value are compared
    cost_weight  of the cost against the value of a tree
    """

    has_object: Bools
    usable: Bools
    cost: Floats
    cost_weight: float


def _find_tree(
    streams: Streams, item: int, rows: Ints, links_by_head: tuple[Ints, Ints], choice: LinkChoice
) -> list[int]:
    """Return the links of a tree to the groups of some requests, by row, that do not have the object.

    Where the last hop is unicast, a group counts with the clients that fit on the widest link into it.

    links_by_head  `first` and `into` of `build_tree`
    """
    problem = streams.problem
    has_object, usable, cost, cost_weight = choice
    rows = rows[~has_object[problem.group[rows]]]
    value = problem.value[rows]
    if problem.is_unicast:
        groups = problem.group[rows].tolist()
        fitting = np.array(
            [
                max((streams.count_fitting(item, link) for link in streams.into[g]), default=0.0)
                for g in groups
            ]
        )
        is_served = fitting > 0
        rows, fitting = rows[is_served], fitting[is_served]
        value = value[is_served] * fitting / problem.clients[rows]
        per_group = np.ones(len(problem.clusters))
        per_group[problem.group[rows]] = fitting
        cost = cost * per_group[problem.head]
    if not len(rows):
        return []
    price = cost_weight * float(problem.bitrate_mbps[item])
    solve = solve_tree if len(rows) <= MAX_EXACT_GROUPS else build_tree
    instance: tuple[Any, ...] = (problem.group[rows], value, price, *links_by_head)
    instance += (problem.tail, cost, has_object, usable)
    links: list[int] = solve(*instance).tolist()
    return links


def _usable_links(streams: Streams, item: int, *, sees_load: bool) -> Bools:
    """Return whether each link may carry an object: by its residual capacity, or that of an empty network."""
    problem = streams.problem
    capacity = streams.residual_mbps if sees_load else problem.capacity_mbps
    usable: Bools = capacity >= float(problem.bitrate_mbps[item]) * (1 - SLACK)
    if problem.forbidden_pairs is not None:
        usable &= ~problem.forbidden_pairs[item]
    return usable


def _order_requests(problem: LiveVideo, order: str, seed: int) -> Iterator[tuple[int, Ints]]:
    """Yield object and requests, by row, of each tree in the order in which trees are found."""
    if order == "requests":
        for row in np.argsort(problem.arrival_s, kind="stable"):
            yield int(problem.object[row]), np.array([row])
        return
    requests = np.argsort(problem.object, kind="stable")
    ends = np.searchsorted(problem.object[requests], np.arange(len(problem.objects) + 1))
    for item in _order_objects(problem, order, seed).tolist():
        yield item, requests[ends[item] : ends[item + 1]]


def _order_objects(problem: LiveVideo, order: str, seed: int) -> Ints:
    """Return the objects, (O,), in the order in which their trees are found."""
    if order == "arrival":
        return order_by_first_request(problem)
    channel, count = problem.channel_number, problem.channel_number.max(initial=-1) + 1
    rank = np.full(count, len(channel))
    np.minimum.at(rank, channel, np.arange(len(channel)))
    if order == "random":
        rank = np.random.default_rng(seed).permutation(count)
    return np.lexsort((-problem.bitrate_mbps, rank[channel]))


def _admit_branches(streams: Streams, item: int, links: list[int], groups: list[int]) -> None:
    """Send the object down the branches of a tree that fit as a whole, group by group."""
    parent = {streams.head[link]: link for link in links}
    for group in groups:
        path: list[int] = []
        cluster = group
        while not streams.has(item, cluster) and cluster in parent:
            path.append(parent[cluster])
            cluster = streams.tail[path[-1]]
        if streams.has(item, cluster) and streams.fits_along(item, path):
            streams.add_path(item, path[::-1])


class ReachableNetwork(NamedTuple):
    """Clusters from which the groups of an object can be reached, numbered from the groups up.

    cluster  (n,) cluster of each number; the groups come first
    number   (C,) number of each cluster, -1 for others
    first, into, tail, cost, has_object, usable  as in `build_tree`
    """

    cluster: Ints
    number: Ints
    first: Ints
    into: Ints
    tail: Ints
    cost: Floats
    has_object: Bools
    usable: Bools


@njit(cache=True)
def find_reachable(
    groups: Ints, first: Ints, into: Ints, tail: Ints, has_object: Bools, usable: Bools
) -> tuple[Ints, Ints]:
    """Return the clusters from which the groups can be reached, lower tiers first, and their numbers.

    The search ends at clusters that have the object.
    """
    number = np.full(len(first) - 1, -1, dtype=np.int64)
    reachable = np.empty(len(first) - 1, dtype=np.int64)
    count = 0
    for group in groups:
        number[group] = count
        reachable[count] = group
        count += 1
    visited = 0
    while visited < count:  # breadth first is tier by tier, as every link joins neighbouring tiers
        cluster = reachable[visited]
        visited += 1
        if has_object[cluster]:
            continue
        for n in range(first[cluster], first[cluster + 1]):
            up = tail[into[n]]
            if usable[into[n]] and number[up] < 0:
                number[up] = count
                reachable[count] = up
                count += 1
    return reachable[:count].copy(), number


@run_small_in_python(max_elements=5_000)
@njit(cache=True)
def solve_tree(  # noqa: C901
    groups: Ints,
    value: Floats,
    price: float,
    first: Ints,
    into: Ints,
    tail: Ints,
    cost: Floats,
    has_object: Bools,
    usable: Bools,
) -> Ints:
    """Return the links of the best tree: value of the groups that it reaches less price x cost of its links.

    The dynamic program goes tier by tier: the least cost from a cluster to a set of groups is that of
    one link down, or of two parts of the set. Arguments as in `build_tree`.
    """
    clusters, number = find_reachable(groups, first, into, tail, has_object, usable)
    count, sets = len(clusters), 1 << len(groups)
    best = np.full((count + 1, sets), np.inf)  # the last row: all clusters that have the object
    link = np.full((count + 1, sets), -1, dtype=np.int64)  # the link down, or -2 - part of the set
    down = np.full((count + 1, sets), -1, dtype=np.int64)
    best[:, 0] = 0.0
    for i in range(len(groups)):
        best[i, 1 << i] = 0.0
    for v in range(count + 1):
        for subset in range(1, sets):
            piece = (subset - 1) & subset
            while piece > subset ^ piece:
                both = best[v, piece] + best[v, subset ^ piece]
                if both < best[v, subset] - 1e-12:
                    best[v, subset], link[v, subset] = both, -2 - piece
                piece = (piece - 1) & subset
        if v == count:
            break
        cluster = clusters[v]
        if has_object[cluster]:
            for subset in range(1, sets):
                if best[v, subset] < best[count, subset]:
                    best[count, subset], link[count, subset], down[count, subset] = best[v, subset], -1, v
            continue
        for n in range(first[cluster], first[cluster + 1]):
            used = into[n]
            if not usable[used]:
                continue
            up = number[tail[used]]
            for subset in range(1, sets):
                total = best[v, subset] + cost[used]
                if total < best[up, subset]:
                    best[up, subset], link[up, subset], down[up, subset] = total, used, v
    best_set, best_value = 0, 0.0
    for subset in range(1, sets):
        if best[count, subset] < np.inf:
            total = -price * best[count, subset]
            for i in range(len(groups)):
                if subset >> i & 1:
                    total += value[i]
            if total > best_value:
                best_set, best_value = subset, total
    parent = np.full(count, -1, dtype=np.int64)
    open_clusters, open_sets = [count], [best_set]
    while open_clusters:
        v, subset = open_clusters.pop(), open_sets.pop()
        if subset == 0 or (v < len(groups) and subset == 1 << v):
            continue
        if link[v, subset] <= -2:
            piece = -2 - link[v, subset]
            open_clusters.append(v)
            open_sets.append(piece)
            open_clusters.append(v)
            open_sets.append(subset ^ piece)
            continue
        below = down[v, subset]
        if link[v, subset] >= 0 and parent[below] < 0:
            parent[below] = link[v, subset]
        open_clusters.append(below)
        open_sets.append(subset)
    is_served = np.zeros(len(groups), dtype=np.bool_)
    for i in range(len(groups)):
        is_served[i] = (best_set >> i & 1) == 1
    return collect_links(is_served, number, parent, tail)


@njit(cache=True)
def collect_links(is_served: Bools, number: Ints, parent: Ints, tail: Ints) -> Ints:
    """Return the links from clusters that have the object to the served groups, upper tiers first."""
    used = np.zeros(len(parent), dtype=np.bool_)
    for i in range(len(is_served)):
        v = i
        while is_served[i] and parent[v] >= 0 and not used[v]:
            used[v] = True
            v = number[tail[parent[v]]]
    links = np.empty(used.sum(), dtype=np.int64)
    n = 0
    for v in range(len(parent) - 1, -1, -1):
        if used[v]:
            links[n] = parent[v]
            n += 1
    return links


@run_small_in_python(max_elements=5_000)
@njit(cache=True)
def build_tree(  # noqa: C901
    groups: Ints,
    value: Floats,
    price: float,
    first: Ints,
    into: Ints,
    tail: Ints,
    cost: Floats,
    has_object: Bools,
    usable: Bools,
) -> Ints:
    """Return the links of a good tree: groups connect by the cheapest path, the nearest group first.

    Then, twice, clusters join that save more than the path to them costs, clusters leave without which
    the tree is cheaper, and each group connects anew. At last branches of negative value are cut off.

    groups, value     clusters to reach, and value of each
    price             in units of value, per unit of cost
    first, into       links into[first[v]:first[v + 1]] lead to cluster v
    tail, cost, usable  of each link
    has_object        of each cluster
    """
    clusters, number = find_reachable(groups, first, into, tail, has_object, usable)
    network = ReachableNetwork(clusters, number, first, into, tail, cost, has_object, usable)
    count = len(clusters)
    parent = np.full(count, -1, dtype=np.int64)
    connected = np.zeros(len(groups), dtype=np.bool_)
    closed = np.zeros(count, dtype=np.bool_)
    connect_groups(network, parent, connected, closed)
    for _ in range(IMPROVEMENT_PASSES):
        insert_clusters(network, parent, connected)
        for v in range(len(groups), count):
            if parent[v] >= 0:
                try_without(network, parent, connected, closed, v)
        for i in range(len(groups)):
            if connected[i] and parent[i] >= 0:
                parent[i], connected[i] = -1, False
                prune_branches(network, parent, connected)
                connect_groups(network, parent, connected, closed)
    branch_value = np.zeros(count)
    branch_value[: len(groups)] = np.where(connected, value, 0.0)
    pays = np.zeros(count, dtype=np.bool_)
    for v in range(count):
        if parent[v] >= 0:
            net_value = branch_value[v] - price * cost[parent[v]]
            if net_value > 0:
                branch_value[number[tail[parent[v]]]] += net_value
                pays[v] = True
    for i in range(len(groups)):
        v = i
        while parent[v] >= 0:
            connected[i] &= pays[v]
            v = number[tail[parent[v]]]
    return collect_links(connected, number, parent, tail)


@njit(cache=True)
def insert_clusters(network: ReachableNetwork, parent: Ints, connected: Bools) -> None:  # noqa: C901
    """Insert the cluster that saves most beyond the path to it, while one does; changes `parent`."""
    cluster, number, first, into, tail, cost, has_object, usable = network
    count = len(cluster)
    distance, next_link = np.empty(count), np.empty(count, dtype=np.int64)
    closed = np.zeros(count, dtype=np.bool_)
    while True:
        find_paths(network, parent, connected, closed, distance, next_link)
        saving = np.zeros(count)
        for u in range(count):
            if parent[u] < 0:
                continue
            for n in range(first[cluster[u]], first[cluster[u] + 1]):
                up = number[tail[into[n]]]
                if usable[into[n]] and parent[up] < 0 and not has_object[cluster[up]]:
                    saving[up] += max(0.0, cost[parent[u]] - cost[into[n]])
        best = -1
        for v in range(len(connected), count):
            net_saving = saving[v] - distance[v]
            if saving[v] > distance[v] + 1e-9 and (best < 0 or net_saving > saving[best] - distance[best]):
                best = v
        if best < 0:
            return
        add_path(network, parent, next_link, best)
        for u in range(count):
            if parent[u] < 0:
                continue
            for n in range(first[cluster[u]], first[cluster[u] + 1]):
                if usable[into[n]] and number[tail[into[n]]] == best and cost[into[n]] < cost[parent[u]]:
                    parent[u] = into[n]
        prune_branches(network, parent, connected)


@njit(cache=True)
def try_without(network: ReachableNetwork, parent: Ints, connected: Bools, closed: Bools, v: int) -> None:
    """Remove cluster v and connect the groups below it elsewhere, if that is cheaper; changes the arrays."""
    old_cost = sum_cost(parent, network.cost)
    old_parent, old_connected = parent.copy(), connected.copy()
    below = np.zeros(len(parent), dtype=np.bool_)
    below[v] = True
    for u in range(len(parent) - 1, -1, -1):  # from above
        if parent[u] >= 0 and below[network.number[network.tail[parent[u]]]]:
            below[u] = True
    for u in range(len(parent)):
        if below[u]:
            parent[u] = -1
            if u < len(connected):
                connected[u] = False
    closed[v] = True
    connect_groups(network, parent, connected, closed)
    closed[v] = False
    prune_branches(network, parent, connected)
    if connected.sum() < old_connected.sum() or sum_cost(parent, network.cost) >= old_cost - 1e-9:
        parent[:], connected[:] = old_parent, old_connected


@njit(cache=True)
def connect_groups(network: ReachableNetwork, parent: Ints, connected: Bools, closed: Bools) -> None:
    """Connect every group by the cheapest path to the tree, the nearest group first; changes the arrays."""
    count = len(parent)
    distance, next_link = np.empty(count), np.empty(count, dtype=np.int64)
    while not connected.all():
        find_paths(network, parent, connected, closed, distance, next_link)
        nearest = -1
        for i in range(len(connected)):
            is_near = distance[i] < np.inf and (nearest < 0 or distance[i] < distance[nearest])
            if not connected[i] and is_near:
                nearest = i
        if nearest < 0:
            return
        connected[nearest] = True
        add_path(network, parent, next_link, nearest)


@njit(cache=True)
def add_path(network: ReachableNetwork, parent: Ints, next_link: Ints, v: int) -> None:
    """Add the cheapest path from cluster v up to the tree; changes `parent`."""
    while parent[v] < 0 and next_link[v] >= 0:
        parent[v] = next_link[v]
        v = network.number[network.tail[next_link[v]]]


@njit(cache=True)
def find_paths(
    network: ReachableNetwork,
    parent: Ints,
    connected: Bools,
    closed: Bools,
    distance: Floats,
    next_link: Ints,
) -> None:
    """Write the cost of the cheapest path from each cluster up to the tree, and its first link."""
    cluster, number, first, into, tail, cost, has_object, usable = network
    for v in range(len(cluster) - 1, -1, -1):
        distance[v], next_link[v] = np.inf, -1
        if has_object[cluster[v]] or parent[v] >= 0:
            distance[v] = 0.0
        elif not (closed[v] or (v < len(connected) and connected[v])):
            for n in range(first[cluster[v]], first[cluster[v] + 1]):
                link = into[n]
                if usable[link] and distance[number[tail[link]]] + cost[link] < distance[v]:
                    distance[v], next_link[v] = distance[number[tail[link]]] + cost[link], link


@njit(cache=True)
def prune_branches(network: ReachableNetwork, parent: Ints, connected: Bools) -> None:
    """Remove the branches that lead to no connected group; changes `parent`."""
    needed = np.zeros(len(parent), dtype=np.bool_)
    needed[: len(connected)] = connected
    for v in range(len(parent)):
        if parent[v] >= 0:
            if needed[v]:
                needed[network.number[network.tail[parent[v]]]] = True
            else:
                parent[v] = -1


@njit(cache=True)
def sum_cost(parent: Ints, cost: Floats) -> float:
    """Return the cost of a tree's links."""
    total = 0.0
    for link in parent:
        if link >= 0:
            total += cost[link]
    return total
