"""The problem as arrays for the kernels: three layers of links, and classes of objects.

A network of four tiers has layers a (source to reflector), b (reflector to edge) and c (edge to group).
One of three tiers gets a virtual reflector above each edge, one of two tiers a virtual reflector and
edge below each source, over links that are free and of infinite capacity. Objects of one bitrate, with
the same sources and the same rules, are a class: they pay the same prices, which are infinite where a
link is too small or forbidden.

Rows of the master problem: the capacity of links, and the number of objects that fit on them.

Capacities are rounded to the largest sum of bitrates. The second kind is a rounding cut: where whole
objects of a bitrate cannot fill a link, their number is at most the capacity over the bitrate, rounded
down.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.arrays import Bools, Floats, Ints
from planner_models.livevideo.designs.integer_program import count_viewers, round_capacities
from planner_models.livevideo.designs.tree.local_network import (
    CAPACITY_TOLERANCE,
    NetworkArrays,
    ObjectArrays,
    PerLayer,
)
from planner_models.livevideo.plan.plan import Trees, build_plan, plan_rows
from planner_models.livevideo.problem.problem import LiveVideo

MAX_TIERS: Final = 4
MIN_UNUSED_SHARE: Final = 0.03
"""Share of a link that whole objects of a bitrate leave unused, from which it gets a row that counts them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Layer:
    """The links from one tier to the next, sorted by head.

    first     (heads + 1,) links first[h]:first[h + 1] lead to head h
    tail      (n,) number of the cluster in the tier above
    capacity  (n,) Mbit/s, infinite for virtual links
    cost      (n,) per Mbit/s
    link      (n,) link of the problem, -1 for virtual links
    """

    first: Ints
    tail: Ints
    head: Ints
    capacity: Floats
    cost: Floats
    link: Ints


@dataclass(frozen=True, kw_only=True, eq=False)
class LayeredProblem:
    """Requests sorted by object; links in layers a (source to reflector), b (to edge) and c (to group).

    paths, here and elsewhere, is (Q, 3): the links of layers a, b and c on the path to each request,
    -1 where it is not served.

    objects       requests, class and bitrate of each object; the group is a head of layer c
    request       (Q,) the problem's request, -1 for one that only represents a pinned link
    streams       (Q,) streams of each request on layer c: 1, or its clients where the last hop is unicast, as
                  far as they fit
    pin_bonus     included in the value of pinned requests; more than all other value and cost
    pinned_count  number of requests with the bonus
    class_rate    (K,) bitrate of each class, Mbit/s
    usable        (K, n) whether objects of a class may use each link
    """

    problem: LiveVideo
    a: Layer
    b: Layer
    c: Layer
    objects: ObjectArrays
    request: Ints
    streams: Floats
    pin_bonus: float
    pinned_count: int
    class_rate: Floats
    usable: PerLayer

    @property
    def layers(self) -> tuple[Layer, Layer, Layer]:
        return self.a, self.b, self.c

    @property
    def sizes(self) -> list[int]:
        """Number of links of each layer."""
        return [len(layer.tail) for layer in self.layers]

    @cached_property
    def network(self) -> NetworkArrays:
        """The layers as kernels take them."""
        weight = self.problem.cost_weight
        return NetworkArrays(
            a_first=self.a.first,
            a_head=self.a.head,
            b_first=self.b.first,
            b_tail=self.b.tail,
            c_first=self.c.first,
            c_tail=self.c.tail,
            cost=PerLayer(*(weight * layer.cost for layer in self.layers)),
        )

    @cached_property
    def request_count(self) -> Ints:
        """(O,) number of requests of each object."""
        return np.diff(self.objects.first)

    @cached_property
    def request_object(self) -> Ints:
        """(Q,) object of each request."""
        return np.repeat(np.arange(len(self.objects.bitrate)), self.request_count)

    @cached_property
    def object_value(self) -> Floats:
        """(O,) value of serving all requests of an object."""
        return self.sum_by_object(self.objects.value)

    def sum_by_object(self, values: Floats) -> Floats:
        """Return the sums (O,) of (Q,) values over the requests of each object."""
        return np.bincount(self.request_object, values, minlength=len(self.objects.bitrate)).astype(float)

    def to_plan(self, paths: Ints) -> Trees:
        """Return the trees that the paths make."""
        pairs = []
        for column, layer in enumerate(self.layers):
            used = paths[:, column] >= 0
            link = layer.link[paths[used, column]]
            pairs.append(np.stack([self.request_object[used], link], axis=1)[link >= 0])
        distinct = np.unique(np.concatenate(pairs), axis=0)
        return build_plan(self.problem, distinct[:, 0], distinct[:, 1])

    def paths_of(self, plan: Trees) -> Ints:
        """Return the paths to the requests in a plan; rows of unknown objects or links are ignored."""
        item, link = plan_rows(self.problem, plan)
        is_path = (item >= 0) & (link >= 0)
        item, link = item[is_path], link[is_path]
        paths = np.full((len(self.objects.group), 3), -1, dtype=np.int64)
        head = self.objects.group
        for column, layer in ((2, self.c), (1, self.b), (0, self.a)):
            local = np.full(len(self.problem.links), -1)
            real = np.flatnonzero(layer.link >= 0)
            local[layer.link[real]] = real
            here = local[link] >= 0
            keys = item[here] * (len(layer.first)) + layer.head[local[link[here]]]
            order = np.argsort(keys)
            keys_sought = self.request_object * len(layer.first) + head
            index = np.minimum(np.searchsorted(keys[order], keys_sought), max(len(keys) - 1, 0))
            hit = keys[order][index] == keys_sought if len(keys) else np.zeros(len(keys_sought), bool)
            if hit.any():
                paths[hit, column] = local[link[here]][order[index[hit]]]
            if len(real) < len(layer.link):
                # virtual links are in no plan: use one where it is the only link to the head
                missing = np.flatnonzero(~hit & (head >= 0))
                single = np.diff(layer.first)[head[missing]] == 1
                only = layer.first[head[missing[single]]]
                virtual = layer.link[only] < 0
                paths[missing[single][virtual], column] = only[virtual]
            head = np.where(paths[:, column] >= 0, layer.tail[paths[:, column]], -1)
        paths[(paths < 0).any(axis=1)] = -1
        return paths


def build_layers(problem: LiveVideo) -> LayeredProblem:
    """Return the layers of a problem of two, three or four tiers."""
    tiers = len(problem.tiers)
    if tiers > MAX_TIERS:
        raise ValueError(f"{tiers} tiers, at most {MAX_TIERS}")
    local = np.zeros(len(problem.clusters), dtype=np.int64)
    sizes = []
    for step in range(tiers):
        clusters = np.flatnonzero(problem.level == step)
        local[clusters] = np.arange(len(clusters))
        sizes.append(len(clusters))
    columns: list[list[NDArray[Any]]] = []  # tail, head, capacity, cost, link of each layer
    for step in range(tiers - 1):
        link = np.flatnonzero(problem.level[problem.tail] == step)
        tail, head = local[problem.tail[link]], local[problem.head[link]]
        columns.append([tail, head, problem.capacity_mbps[link], problem.cost[link], link])
    heads = sizes[1:]
    while len(columns) < MAX_TIERS - 1:  # a virtual cluster above each edge, or below each source
        count = heads[0] if tiers == 3 else sizes[0]
        number = np.arange(count)
        position = 1 if tiers == 3 else 0
        columns.insert(
            position, [number, number, np.full(count, np.inf), np.zeros(count), np.full(count, -1)]
        )
        heads.insert(position, count)
    item, group, value, request, pins, pin_bonus = _collect_requests(problem, columns, heads, local)
    streams = np.ones(len(item))
    if problem.is_unicast:
        fitting = _count_fitting(problem)[request]
        value = value * fitting / problem.clients[request]
        streams = np.maximum(fitting, 1.0)
    order = np.argsort(item, kind="stable")
    layers = [_sort_layer(layer_columns, size) for layer_columns, size in zip(columns, heads, strict=True)]
    object_class, member = _find_classes(problem, pins)
    objects = ObjectArrays(
        first=np.searchsorted(item[order], np.arange(len(problem.objects) + 1)).astype(np.int64),
        group=group[order],
        value=value[order],
        object_class=object_class,
        bitrate=problem.bitrate_mbps.copy(),
        value_per_mbps=np.bincount(item, value, minlength=len(problem.objects)) / problem.bitrate_mbps,
    )
    usable = (
        _find_usable(problem, layer, object_class, member, pins, depth) for depth, layer in enumerate(layers)
    )
    return LayeredProblem(
        problem=problem,
        a=layers[0],
        b=layers[1],
        c=layers[2],
        objects=objects,
        request=request[order],
        streams=streams[order],
        pin_bonus=pin_bonus,
        pinned_count=int((value >= pin_bonus).sum()) if pin_bonus else 0,
        class_rate=problem.bitrate_mbps[member],
        usable=PerLayer(*usable),
    )


def _count_fitting(problem: LiveVideo) -> Floats:
    """Return the clients of each request that fit on all links into its group, alone, (Q,)."""
    order = np.argsort(problem.head, kind="stable")
    first = np.searchsorted(problem.head[order], np.arange(len(problem.clusters) + 1))
    links, repeats = links_to(first, problem.group)
    request = np.repeat(np.arange(len(repeats)), repeats)
    rate = problem.bitrate_mbps[problem.object]
    fitting = np.floor(problem.capacity_mbps[order[links]] / rate[request] * (1 + CAPACITY_TOLERANCE))
    total = np.bincount(request, weights=fitting, minlength=len(repeats))
    return np.asarray(np.minimum(problem.clients, total))


def _collect_requests(
    problem: LiveVideo, columns: list[list[NDArray[Any]]], heads: list[int], local: Ints
) -> tuple[Ints, Ints, Floats, Ints, Ints, float]:
    """Return object, group, value and request of each request, the pinned links and their bonus.

    A pinned link that does not end at a group with a request gets a virtual group below its end, in
    `columns` and `heads`, and a request of that group for its object.
    """
    pins = problem.pinned_links
    item, group = problem.object, local[problem.group]
    value, request = problem.value.copy(), np.arange(len(problem.requests))
    if not len(pins) and not len(problem.pinned_requests):
        return item, group, value, request, pins, 0.0
    # a pinned request must outweigh all other value, and the cost of all links
    max_cost = float((problem.cost * problem.capacity_mbps).sum()) * problem.cost_weight
    pin_bonus = 1.0 + 2.0 * (float(value.sum()) + max_cost)
    value[problem.pinned_requests] += pin_bonus
    tiers = len(problem.tiers)
    for o, link in pins.tolist():
        step = int(problem.level[problem.head[link]])
        head = int(local[problem.head[link]])
        if step == tiers - 1:
            requests = np.flatnonzero((item == o) & (group == head) & (request >= 0))
            if len(requests):
                old = value[requests]
                value[requests] = np.where(old < pin_bonus, old + pin_bonus, old)
                continue
        else:  # virtual links from there down to a virtual group that requests only this object
            depth = step + (MAX_TIERS - tiers)
            while depth < MAX_TIERS - 1:
                new = heads[depth]
                columns[depth] = [
                    np.append(column, extra)
                    for column, extra in zip(columns[depth], (head, new, np.inf, 0.0, -1), strict=True)
                ]
                heads[depth] += 1
                head, depth = new, depth + 1
        item, group = np.append(item, o), np.append(group, head)
        value, request = np.append(value, pin_bonus), np.append(request, -1)
    return item, group, value, request, pins, pin_bonus


def _sort_layer(columns: list[NDArray[Any]], heads: int) -> Layer:
    tail, head, capacity, cost, link = columns
    order = np.lexsort((tail, head))
    return Layer(
        first=np.searchsorted(head[order], np.arange(heads + 1)).astype(np.int64),
        tail=tail[order].astype(np.int64),
        head=head[order].astype(np.int64),
        capacity=capacity[order].astype(float),
        cost=cost[order].astype(float),
        link=link[order].astype(np.int64),
    )


def _find_classes(problem: LiveVideo, pins: Ints) -> tuple[Ints, Ints]:
    """Return the class (O,) of each object, and an object (K,) of each class."""
    count = len(problem.objects)
    _, rate = np.unique(problem.bitrate_mbps, return_inverse=True)
    _, sources = np.unique(problem.is_at_source, axis=0, return_inverse=True)
    rule = np.zeros(count, dtype=np.int64)
    if problem.forbidden_pairs is not None:
        _, inverse = np.unique(problem.forbidden_pairs, axis=0, return_inverse=True)
        rule = inverse.ravel()
    for index, o in enumerate(np.unique(pins[:, 0]).tolist()):
        rule[o] = rule.max() + 1 + index
    keys = np.stack([rate.ravel(), sources.ravel(), rule], axis=1)
    _, member, object_class = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return object_class.ravel().astype(np.int64), member.astype(np.int64)


def _find_usable(
    problem: LiveVideo, layer: Layer, object_class: Ints, member: Ints, pins: Ints, depth: int
) -> Bools:
    """Return whether objects of each class may use each link of the layer, (K, n)."""
    usable = layer.capacity[None, :] >= problem.bitrate_mbps[member][:, None]
    real = layer.link >= 0
    if depth == 0:
        usable &= problem.is_at_source[member][:, layer.tail]
    if problem.forbidden_pairs is not None:
        usable[:, real] &= ~problem.forbidden_pairs[np.ix_(member, layer.link[real])]
    for o, link in pins.tolist():  # an object pinned to a link must not come over another one
        here = np.flatnonzero(layer.link == link)
        if len(here):
            other = (layer.head == layer.head[here[0]]) & (layer.link != link)
            usable[object_class[o], other] = False
    return np.asarray(usable)


def links_to(first: Ints, heads: Ints) -> tuple[Ints, Ints]:
    """Return the links to each of the heads, one head after the other, and their numbers."""
    repeats = np.diff(first)[heads]
    offset = np.cumsum(repeats) - repeats
    return np.repeat(first[heads] - offset, repeats) + np.arange(int(repeats.sum())), repeats


class RowArrays(NamedTuple):
    """The rows as kernels take them; links are numbered through layers a, b and c.

    link         (M,) link of each row
    first, row   rows row[first[n]:first[n + 1]] are those of link n
    usage        (K, M) what a stream of each class uses of each row
    streams      (N,) streams of an object on each link
    cost         (N,) cost of each link per Mbit/s, of all of these
    n_a, n_b     links of layers a and b
    """

    link: Ints
    first: Ints
    row: Ints
    usage: Floats
    streams: Floats
    cost: Floats
    n_a: int
    n_b: int


class CapacityRows:
    """Capacity and counting rows of the links that can overload.

    link         (M,) link of each row, numbered through layers a, b and c
    min_bitrate  (M,) 0 for a capacity row, else the least bitrate that the row counts, Mbit/s
    limit        (M,) Mbit/s or objects
    usage        (K, M) what an object of each class uses of each row
    link_count   N, links of all layers
    base_price   (K, N) price of each link for each class at row prices of 0, infinite where not usable
    """

    def __init__(self, layered: LayeredProblem) -> None:
        self.layered = layered
        objects = layered.objects
        self.sizes = layered.sizes
        capacity = np.concatenate([layer.capacity for layer in layered.layers])
        self.cost = np.concatenate(layered.network.cost)
        usable = np.concatenate(layered.usable, axis=1)
        self.base_price = np.where(usable, np.outer(layered.class_rate, self.cost), np.inf)
        self.problem_link = np.concatenate([layer.link for layer in layered.layers])
        is_requested = layered.request_count > 0
        max_load = np.full(len(capacity), float(objects.bitrate[is_requested].sum()))
        request_rate = np.repeat(objects.bitrate, layered.request_count) * layered.streams
        group_load = np.bincount(objects.group, weights=request_rate, minlength=len(layered.c.first) - 1)
        max_load[self.sizes[0] + self.sizes[1] :] = group_load[layered.c.head]
        rates, count = np.unique(objects.bitrate[is_requested], return_counts=True)
        rounded = round_capacities(capacity, rates, count)
        if layered.problem.is_unicast:
            last = capacity[self.sizes[0] + self.sizes[1] :]
            rounded[-len(last) :] = round_capacities(last, *count_viewers(layered.problem))
        link = np.flatnonzero((max_load > capacity) & (rounded > 0))
        links, min_bitrates, limits = [link], [np.zeros(len(link))], [rounded[link]]
        for rate in rates:
            quotient = np.where(np.isfinite(rounded), rounded, 0.0) / rate
            count = np.floor(quotient * (1 + CAPACITY_TOLERANCE))
            wastes = quotient - count > MIN_UNUSED_SHARE * quotient
            link = np.flatnonzero((count >= 1) & wastes & (max_load > capacity))
            links.append(link)
            min_bitrates.append(np.full(len(link), rate))
            limits.append(count[link])
        self.link = np.concatenate(links)
        self.min_bitrate, self.limit = np.concatenate(min_bitrates), np.concatenate(limits)
        self.link_count = len(capacity)
        rates = layered.class_rate[:, None]
        counted = (rates >= self.min_bitrate[None, :]).astype(float)
        self.usage = np.where(self.min_bitrate[None, :] == 0, rates, counted)

    @cached_property
    def arrays(self) -> RowArrays:
        """The rows as kernels take them."""
        order = np.argsort(self.link, kind="stable")
        return RowArrays(
            link=self.link,
            first=np.searchsorted(self.link[order], np.arange(self.link_count + 1)),
            row=order,
            usage=np.ascontiguousarray(self.usage),
            streams=np.ones(self.link_count),
            cost=self.cost,
            n_a=self.sizes[0],
            n_b=self.sizes[1],
        )

    def link_prices(self, row_prices: Floats) -> PerLayer:
        """Return prices of links (K, n) at prices of rows (M,), costs included; infinite where not usable."""
        priced = np.flatnonzero(row_prices)
        link, value = self.link[priced], row_prices[priced] * self.usage[:, priced]
        price = self.base_price + [
            np.bincount(link, layer_value, minlength=self.link_count) for layer_value in value
        ]
        parts = np.split(price, np.cumsum(self.sizes)[:2], axis=1)
        return PerLayer(*(np.ascontiguousarray(prices_of) for prices_of in parts))

    def load(self, object_class: Ints, link: Ints, streams: Floats | float = 1.0) -> Floats:
        """Return the load of rows, (M,), of objects of these classes on these links, (n,).

        streams  of each, on its link
        """
        carried = np.zeros((len(self.usage), self.link_count))
        np.add.at(carried, (object_class, link), streams)
        return np.asarray((carried[:, self.link] * self.usage).sum(axis=0))

    def from_labels(self, prices: dict[tuple[str, float], float]) -> Floats:
        """Return the prices of rows (M,) that have the labels; 0 for others."""
        if not prices:
            return np.zeros(len(self.link))
        return np.array([prices.get(label, 0.0) for label in self._labels()])

    def to_labels(self, prices: Floats) -> dict[tuple[str, float], float]:
        """Return the prices above 0 by label of the link, and least bitrate that the row counts."""
        rows = zip(self._labels(), prices.tolist(), strict=True)
        return {label: price for label, price in rows if price > 0 and label[0]}

    def _labels(self) -> list[tuple[str, float]]:
        """Return the label of each row's link, "" for virtual links, and the least bitrate that it counts."""
        labels = [*self.layered.problem.link_labels, ""]  # the last for -1
        links = self.problem_link[self.link].tolist()
        return [(labels[link], rate) for link, rate in zip(links, self.min_bitrate.tolist(), strict=True)]
