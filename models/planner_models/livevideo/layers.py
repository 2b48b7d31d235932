"""The problem as the arrays that kernels work on: three layers of links, and classes of objects.

A network of four tiers is used as it is. One of three gets a reflector of its own above each edge,
one of two an edge and a reflector below each source, over links that are free and without limit, so
that up to four tiers all look the same. Objects of one bitrate, with the same sources and the same
rules, are one class: they see the same prices, infinite where a link is too small or forbidden.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner_models.livevideo.problem import LiveVideo
from planner_models.livevideo.trees import Trees, plan_of, rows_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_TIERS = 4


@dataclass(frozen=True, kw_only=True, eq=False)
class Layer:
    """The links from one tier to the next, sorted by where they lead.

    first     (heads + 1,) links first[h]:first[h + 1] lead to head h
    tail      (n,) number of the cluster in the tier above
    capacity  (n,) Mbit/s, infinite where the link is none of the problem's
    cost      (n,) per Mbit/s
    link      (n,) link of the problem, -1 where it is none
    """

    first: Ints
    tail: Ints
    head: Ints
    capacity: Floats
    cost: Floats
    link: Ints


@dataclass(frozen=True, kw_only=True, eq=False)
class Layers:
    """Requests sorted by object; links in layers a (sources), b (reflectors) and c (edges).

    object_first  (O + 1,) requests of object o are object_first[o]:object_first[o + 1]
    group         (Q,) head in layer c
    value         (Q,) worth of serving it; with `must` added where it is pinned
    request       (Q,) the problem's request, -1 for one that only stands for a pinned link
    must          what is added to pinned requests: more than all else is worth
    pinned        number of requests with it
    klass         (O,) class of each object
    bitrate       (O,) Mbit/s
    class_rate    (K,) bitrate of each class
    open_a, open_b, open_c   (K, n) whether objects of a class may use each link
    """

    problem: LiveVideo
    a: Layer
    b: Layer
    c: Layer
    object_first: Ints
    group: Ints
    value: Floats
    request: Ints
    must: float
    pinned: int
    klass: Ints
    bitrate: Floats
    class_rate: Floats
    open_a: NDArray[np.bool_]
    open_b: NDArray[np.bool_]
    open_c: NDArray[np.bool_]

    @property
    def reflectors(self) -> int:
        return len(self.a.first) - 1

    @property
    def edges(self) -> int:
        return len(self.b.first) - 1

    @cached_property
    def item(self) -> Ints:
        """(Q,) object of each request."""
        return np.repeat(np.arange(len(self.klass)), np.diff(self.object_first))

    @cached_property
    def total(self) -> Floats:
        """(O,) worth of serving all who ask for an object."""
        return np.bincount(self.item, weights=self.value, minlength=len(self.klass)).astype(float)

    def plan(self, choice: Ints) -> Trees:
        """The trees of (Q, 3) chosen links."""
        pairs = []
        for layer, column in ((self.a, 0), (self.b, 1), (self.c, 2)):
            used = choice[:, column] >= 0
            link = layer.link[choice[used, column]]
            pairs.append(np.stack([self.item[used], link], axis=1)[link >= 0])
        both = np.unique(np.concatenate(pairs), axis=0)
        return plan_of(self.problem, both[:, 0], both[:, 1])

    def choice(self, plan: Trees) -> Ints:
        """The (Q, 3) links on the way to each request in a plan; -1 where there is none.

        Rows of objects or links that the problem does not have are passed over.
        """
        item, link = rows_of(self.problem, plan)
        known = (item >= 0) & (link >= 0)
        item, link = item[known], link[known]
        chosen = np.full((len(self.group), 3), -1, dtype=np.int64)
        head = self.group
        for column, layer in ((2, self.c), (1, self.b), (0, self.a)):
            local = np.full(len(self.problem.links), -1)
            own = np.flatnonzero(layer.link >= 0)
            local[layer.link[own]] = own
            mine = local[link] >= 0
            keys = item[mine] * (len(layer.first)) + layer.head[local[link[mine]]]
            order = np.argsort(keys)
            wanted = self.item * len(layer.first) + head
            place = np.minimum(np.searchsorted(keys[order], wanted), max(len(keys) - 1, 0))
            hit = keys[order][place] == wanted if len(keys) else np.zeros(len(wanted), bool)
            if hit.any():
                chosen[hit, column] = local[link[mine]][order[place[hit]]]
            if len(own) < len(layer.link):
                # a link of ours, one to each head, or pinned ends: follow where it is the only one
                rest = np.flatnonzero(~hit & (head >= 0))
                single = np.diff(layer.first)[head[rest]] == 1
                only = layer.first[head[rest[single]]]
                virtual = layer.link[only] < 0
                chosen[rest[single][virtual], column] = only[virtual]
            head = np.where(chosen[:, column] >= 0, layer.tail[chosen[:, column]], -1)
        chosen[(chosen < 0).any(axis=1)] = -1
        return chosen


def of(problem: LiveVideo) -> Layers:
    """The layers of a problem of two, three or four tiers."""
    tiers = len(problem.tiers)
    if tiers > MOST_TIERS:
        raise ValueError(f"{tiers} tiers, at most {MOST_TIERS}")
    local = np.zeros(len(problem.clusters), dtype=np.int64)
    sizes = []
    for step in range(tiers):
        at = np.flatnonzero(problem.level == step)
        local[at] = np.arange(len(at))
        sizes.append(len(at))
    raw: list[list[NDArray[Any]]] = []  # tail, head, capacity, cost, link of each layer
    for step in range(tiers - 1):
        link = np.flatnonzero(problem.level[problem.tail] == step)
        raw.append(
            [
                local[problem.tail[link]],
                local[problem.head[link]],
                problem.capacity_mbps[link],
                problem.cost[link],
                link,
            ]
        )
    heads = sizes[1:]
    while len(raw) < MOST_TIERS - 1:  # a cluster of our own below each source, or above each edge
        count = heads[0] if tiers == 3 else sizes[0]
        own = np.arange(count)
        free = [own, own, np.full(count, np.inf), np.zeros(count), np.full(count, -1)]
        place = 1 if tiers == 3 else 0
        raw.insert(place, free)
        heads.insert(place, count)
    raw, heads, item, group, value, request, pins, must = _wanted(problem, raw, heads, local)
    order = np.argsort(item, kind="stable")
    count = len(problem.objects)
    layers = [_layer(part, size) for part, size in zip(raw, heads, strict=True)]
    klass, first_of = _classes(problem, pins)
    opened = [_open(problem, layer, klass, first_of, pins, depth) for depth, layer in enumerate(layers)]
    return Layers(
        problem=problem,
        a=layers[0],
        b=layers[1],
        c=layers[2],
        object_first=np.searchsorted(item[order], np.arange(count + 1)).astype(np.int64),
        group=group[order],
        value=value[order],
        request=request[order],
        must=must,
        pinned=int((value >= must).sum()) if must else 0,
        klass=klass,
        bitrate=problem.bitrate_mbps.copy(),
        class_rate=problem.bitrate_mbps[first_of],
        open_a=opened[0],
        open_b=opened[1],
        open_c=opened[2],
    )


def _wanted(
    problem: LiveVideo, raw: list[list[NDArray[Any]]], heads: list[int], local: Ints
) -> tuple[list[list[NDArray[Any]]], list[int], Ints, Ints, Floats, Ints, Ints, float]:
    """Requests, and stand-ins for pinned links: below the end of each a group of its own."""
    pins = problem.pinned_links
    item, group = problem.object, local[problem.group]
    value, request = problem.value.copy(), np.arange(len(problem.requests))
    if not len(pins) and not len(problem.pinned_requests):
        return raw, heads, item, group, value, request, pins, 0.0
    # serving all the rest and carrying nothing is worth less than one of these
    spent = float((problem.cost * problem.capacity_mbps).sum()) * problem.cost_weight
    must = 1.0 + 2.0 * (float(value.sum()) + spent)
    value[problem.pinned_requests] += must
    tiers = len(problem.tiers)
    for o, link in pins.tolist():
        step = int(problem.level[problem.head[link]])
        head = int(local[problem.head[link]])
        if step == tiers - 1:
            asked = np.flatnonzero((item == o) & (group == head) & (request >= 0))
            if len(asked):
                value[asked] = np.where(value[asked] < must, value[asked] + must, value[asked])
                continue
        else:  # a chain of free links from there to a group that only this object asks for
            depth = step + (MOST_TIERS - tiers)
            while depth < MOST_TIERS - 1:
                new = heads[depth]
                raw[depth] = [
                    np.append(part, extra)
                    for part, extra in zip(raw[depth], (head, new, np.inf, 0.0, -1), strict=True)
                ]
                heads[depth] += 1
                head, depth = new, depth + 1
        item, group = np.append(item, o), np.append(group, head)
        value, request = np.append(value, must), np.append(request, -1)
    return raw, heads, item, group, value, request, pins, must


def _layer(part: list[NDArray[Any]], heads: int) -> Layer:
    tail, head, capacity, cost, link = part
    order = np.lexsort((tail, head))
    return Layer(
        first=np.searchsorted(head[order], np.arange(heads + 1)).astype(np.int64),
        tail=tail[order].astype(np.int64),
        head=head[order].astype(np.int64),
        capacity=capacity[order].astype(float),
        cost=cost[order].astype(float),
        link=link[order].astype(np.int64),
    )


def _classes(problem: LiveVideo, pins: Ints) -> tuple[Ints, Ints]:
    """The class of each object, and an object of each class."""
    count = len(problem.objects)
    _, rate = np.unique(problem.bitrate_mbps, return_inverse=True)
    _, held = np.unique(problem.held, axis=0, return_inverse=True)
    rule = np.zeros(count, dtype=np.int64)
    if problem.forbidden_pairs is not None:
        _, found = np.unique(problem.forbidden_pairs, axis=0, return_inverse=True)
        rule = found.ravel()
    for place, o in enumerate(np.unique(pins[:, 0]).tolist()):
        rule[o] = rule.max() + 1 + place
    keys = np.stack([rate.ravel(), held.ravel(), rule], axis=1)
    _, first_of, klass = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return klass.ravel().astype(np.int64), first_of.astype(np.int64)


def _open(
    problem: LiveVideo, layer: Layer, klass: Ints, first_of: Ints, pins: Ints, depth: int
) -> NDArray[np.bool_]:
    """(K, n) whether objects of each class may use each link of the layer."""
    opened = layer.capacity[None, :] >= problem.bitrate_mbps[first_of][:, None]
    own = layer.link >= 0
    if depth == 0:
        opened &= problem.held[first_of][:, layer.tail]
    if problem.forbidden_pairs is not None:
        opened[:, own] &= ~problem.forbidden_pairs[np.ix_(first_of, layer.link[own])]
    for o, link in pins.tolist():  # what must come over one link must not come over another
        here = np.flatnonzero(layer.link == link)
        if len(here):
            same = (layer.head == layer.head[here[0]]) & (layer.link != link)
            opened[klass[o], same] = False
    return np.asarray(opened)
