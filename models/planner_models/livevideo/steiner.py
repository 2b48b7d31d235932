"""The cheapest tree that brings one object to who asks for it, in layered networks of any depth."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

EXACT = 8
"""Most groups for which every way of sharing branches is weighed."""

PASSES = 2
"""How often a tree of more groups is improved."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Network = tuple[Ints, Ints, Ints, Ints, Ints, Floats, NDArray[np.bool_], NDArray[np.bool_]]
"""clusters and their places (`above`), then first, into, tail, cost, have and usable as `grown` has them."""


@numba.njit(cache=True)
def above(
    groups: Ints, first: Ints, into: Ints, tail: Ints, have: NDArray[np.bool_], usable: NDArray[np.bool_]
) -> tuple[Ints, Ints]:
    """The clusters from which the groups can be reached, below ones first; and their places, -1 for others.

    A cluster that has the object is asked for no more than that.
    """
    place = np.full(len(first) - 1, -1, dtype=np.int64)
    found = np.empty(len(first) - 1, dtype=np.int64)
    count = 0
    for group in groups:
        place[group] = count
        found[count] = group
        count += 1
    at = 0
    while at < count:  # tiers come one after the other, as every link joins neighbours
        cluster = found[at]
        at += 1
        if have[cluster]:
            continue
        for n in range(first[cluster], first[cluster + 1]):
            up = tail[into[n]]
            if usable[into[n]] and place[up] < 0:
                place[up] = count
                found[count] = up
                count += 1
    return found[:count].copy(), place


@numba.njit(cache=True)
def exact(  # noqa: C901
    groups: Ints,
    worth: Floats,
    price: float,
    first: Ints,
    into: Ints,
    tail: Ints,
    cost: Floats,
    have: NDArray[np.bool_],
    usable: NDArray[np.bool_],
) -> Ints:
    """The links of the tree worth most: worth of the groups it reaches less price x cost of its links.

    Dreyfus and Wagner's dynamic program over sets of groups, tier by tier: what it costs a cluster
    to bring a set to its groups is the cheapest of one link down, and of two parts of the set.
    """
    clusters, place = above(groups, first, into, tail, have, usable)
    count, sets = len(clusters), 1 << len(groups)
    best = np.full((count + 1, sets), np.inf)  # the last row: all clusters that have the object
    link = np.full((count + 1, sets), -1, dtype=np.int64)  # the link down, or -2 - part of the set
    down = np.full((count + 1, sets), -1, dtype=np.int64)
    best[:, 0] = 0.0
    for i in range(len(groups)):
        best[i, 1 << i] = 0.0
    for v in range(count + 1):
        for one in range(1, sets):
            part = (one - 1) & one
            while part > one ^ part:
                both = best[v, part] + best[v, one ^ part]
                if both < best[v, one] - 1e-12:
                    best[v, one], link[v, one] = both, -2 - part
                part = (part - 1) & one
        if v == count:
            break
        cluster = clusters[v]
        if have[cluster]:
            for one in range(1, sets):
                if best[v, one] < best[count, one]:
                    best[count, one], link[count, one], down[count, one] = best[v, one], -1, v
            continue
        for n in range(first[cluster], first[cluster + 1]):
            used = into[n]
            if not usable[used]:
                continue
            up = place[tail[used]]
            for one in range(1, sets):
                reached = best[v, one] + cost[used]
                if reached < best[up, one]:
                    best[up, one], link[up, one], down[up, one] = reached, used, v
    chosen, top = 0, 0.0
    for one in range(1, sets):
        if best[count, one] < np.inf:
            value = -price * best[count, one]
            for i in range(len(groups)):
                if one >> i & 1:
                    value += worth[i]
            if value > top:
                chosen, top = one, value
    parent = np.full(count, -1, dtype=np.int64)
    stack_v, stack_s = [count], [chosen]
    while stack_v:
        v, one = stack_v.pop(), stack_s.pop()
        if one == 0 or (v < len(groups) and one == 1 << v):
            continue
        if link[v, one] <= -2:
            part = -2 - link[v, one]
            stack_v.append(v)
            stack_s.append(part)
            stack_v.append(v)
            stack_s.append(one ^ part)
            continue
        below = down[v, one]
        if link[v, one] >= 0 and parent[below] < 0:
            parent[below] = link[v, one]
        stack_v.append(below)
        stack_s.append(one)
    return hanging(groups, chosen_of(chosen, len(groups)), clusters, place, parent, tail)


@numba.njit(cache=True)
def chosen_of(one: int, count: int) -> NDArray[np.bool_]:
    """(count,) the members of a set."""
    member = np.zeros(count, dtype=np.bool_)
    for i in range(count):
        member[i] = (one >> i & 1) == 1
    return member


@numba.njit(cache=True)
def hanging(
    groups: Ints, wanted: NDArray[np.bool_], clusters: Ints, place: Ints, parent: Ints, tail: Ints
) -> Ints:
    """The links over which the wanted groups hang from what has the object, those near it first."""
    used = np.zeros(len(clusters), dtype=np.bool_)
    for i in range(len(groups)):
        v = i
        while wanted[i] and parent[v] >= 0 and not used[v]:
            used[v] = True
            v = place[tail[parent[v]]]
    links = np.empty(used.sum(), dtype=np.int64)
    n = 0
    for v in range(len(clusters) - 1, -1, -1):
        if used[v]:
            links[n] = parent[v]
            n += 1
    return links


@numba.njit(cache=True)
def grown(  # noqa: C901
    groups: Ints,
    worth: Floats,
    price: float,
    first: Ints,
    into: Ints,
    tail: Ints,
    cost: Floats,
    have: NDArray[np.bool_],
    usable: NDArray[np.bool_],
) -> Ints:
    """The links of a good tree: groups join by the cheapest path, nearest first.

    Then, twice, clusters are taken in that save more than their way costs, clusters of the
    tree are closed if those below join more cheaply elsewhere, and each group joins anew. At the end
    branches that are worth less than they cost are cut off.
    """
    clusters, place = above(groups, first, into, tail, have, usable)
    count, asked = len(clusters), len(groups)
    parent = np.full(count, -1, dtype=np.int64)
    joined = np.zeros(asked, dtype=np.bool_)
    closed = np.zeros(count, dtype=np.bool_)
    network = (clusters, place, first, into, tail, cost, have, usable)
    join(network, parent, joined, closed)
    for _ in range(PASSES):
        widen(network, parent, joined)
        for v in range(asked, count):
            if parent[v] >= 0:
                close(network, parent, joined, closed, v)
        for i in range(asked):
            if joined[i] and parent[i] >= 0:
                parent[i], joined[i] = -1, False
                bare(parent, joined, place, tail)
                join(network, parent, joined, closed)
    net = np.zeros(count)
    net[:asked] = np.where(joined, worth, 0.0)
    kept = np.zeros(count, dtype=np.bool_)
    for v in range(count):
        if parent[v] >= 0:
            left = net[v] - price * cost[parent[v]]
            if left > 0:
                net[place[tail[parent[v]]]] += left
                kept[v] = True
    for i in range(asked):
        v = i
        while parent[v] >= 0:
            joined[i] &= kept[v]
            v = place[tail[parent[v]]]
    return hanging(groups, joined, clusters, place, parent, tail)


@numba.njit(cache=True)
def widen(network: Network, parent: Ints, joined: NDArray[np.bool_]) -> None:  # noqa: C901
    """Take in the cluster that saves most, over its way to the tree, while one does; changes `parent`."""
    clusters, place, first, into, tail, cost, have, usable = network
    count, asked = len(clusters), len(joined)
    far, way = np.empty(count), np.empty(count, dtype=np.int64)
    closed = np.zeros(count, dtype=np.bool_)
    while True:
        paths(network, parent, joined, closed, far, way)
        saved = np.zeros(count)
        for u in range(count):
            if parent[u] < 0:
                continue
            for n in range(first[clusters[u]], first[clusters[u] + 1]):
                up = place[tail[into[n]]]
                if usable[into[n]] and parent[up] < 0 and not have[clusters[up]]:
                    saved[up] += max(0.0, cost[parent[u]] - cost[into[n]])
        best = -1
        for v in range(asked, count):
            if saved[v] > far[v] + 1e-9 and (best < 0 or saved[v] - far[v] > saved[best] - far[best]):
                best = v
        if best < 0:
            return
        v = best
        while parent[v] < 0 and way[v] >= 0:
            parent[v] = way[v]
            v = place[tail[way[v]]]
        for u in range(count):
            if parent[u] < 0:
                continue
            for n in range(first[clusters[u]], first[clusters[u] + 1]):
                if usable[into[n]] and place[tail[into[n]]] == best and cost[into[n]] < cost[parent[u]]:
                    parent[u] = into[n]
        bare(parent, joined, place, tail)


@numba.njit(cache=True)
def close(
    network: Network, parent: Ints, joined: NDArray[np.bool_], closed: NDArray[np.bool_], v: int
) -> None:
    """Do without a cluster of the tree if that is cheaper; changes the arrays."""
    _, place, _, _, tail, cost, _, _ = network
    count, asked = len(parent), len(joined)
    spent = cost_of(parent, cost)
    old_parent, old_joined = parent.copy(), joined.copy()
    below = np.zeros(count, dtype=np.bool_)
    below[v] = True
    for u in range(count - 1, -1, -1):  # from above
        if parent[u] >= 0 and below[place[tail[parent[u]]]]:
            below[u] = True
    for u in range(count):
        if below[u]:
            parent[u] = -1
            if u < asked:
                joined[u] = False
    closed[v] = True
    join(network, parent, joined, closed)
    closed[v] = False
    bare(parent, joined, place, tail)
    if joined.sum() < old_joined.sum() or cost_of(parent, cost) >= spent - 1e-9:
        parent[:], joined[:] = old_parent, old_joined


@numba.njit(cache=True)
def join(network: Network, parent: Ints, joined: NDArray[np.bool_], closed: NDArray[np.bool_]) -> None:
    """Every group that is out joins the tree by the cheapest path, nearest first; changes the arrays."""
    clusters, place, _, _, tail, _, _, _ = network
    count, asked = len(clusters), len(joined)
    far, way = np.empty(count), np.empty(count, dtype=np.int64)
    while not joined.all():
        paths(network, parent, joined, closed, far, way)
        near = -1
        for i in range(asked):
            if not joined[i] and far[i] < np.inf and (near < 0 or far[i] < far[near]):
                near = i
        if near < 0:
            return
        joined[near] = True
        v = near
        while parent[v] < 0 and way[v] >= 0:
            parent[v] = way[v]
            v = place[tail[way[v]]]


@numba.njit(cache=True)
def paths(
    network: Network,
    parent: Ints,
    joined: NDArray[np.bool_],
    closed: NDArray[np.bool_],
    far: Floats,
    way: Ints,
) -> None:
    """What it costs each cluster to reach the tree, and its first link on that way; fills `far`, `way`."""
    clusters, place, first, into, tail, cost, have, usable = network
    for v in range(len(clusters) - 1, -1, -1):
        far[v], way[v] = np.inf, -1
        if have[clusters[v]] or parent[v] >= 0:
            far[v] = 0.0
        elif not (closed[v] or (v < len(joined) and joined[v])):
            for n in range(first[clusters[v]], first[clusters[v] + 1]):
                used = into[n]
                if usable[used] and far[place[tail[used]]] + cost[used] < far[v]:
                    far[v], way[v] = far[place[tail[used]]] + cost[used], used


@numba.njit(cache=True)
def bare(parent: Ints, joined: NDArray[np.bool_], place: Ints, tail: Ints) -> None:
    """Cut what leads to no group; changes `parent`."""
    count, asked = len(parent), len(joined)
    needed = np.zeros(count, dtype=np.bool_)
    needed[:asked] = joined
    for v in range(count):
        if parent[v] >= 0:
            if needed[v]:
                needed[place[tail[parent[v]]]] = True
            else:
                parent[v] = -1


@numba.njit(cache=True)
def cost_of(parent: Ints, cost: Floats) -> float:
    """What the tree's links cost."""
    total = 0.0
    for link in parent:
        if link >= 0:
            total += cost[link]
    return total
