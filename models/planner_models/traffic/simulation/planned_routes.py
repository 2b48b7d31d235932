"""Routes of a plan for packets: split tables of nodes, or source routes of flows.

A plan over whole paths, or over segment lists, gives each sender one path, selected by a hash of the flow in
the shares of the plan: between two nodes of a segment list the hash selects one of the shortest paths. Any
other plan gives each node a split table for each demand; a plan that lists flows per target gives one for
each target. Where its flows form a loop, as those by way of random nodes do, packets would circle between
tables: then each sender has a source route, drawn link by link in the shares of the plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
import scipy.sparse as sp

from planner.arrays import Bools, Ints
from planner.search.tolerances import NEGLIGIBLE
from planner_models.graphs.indexing import look_up
from planner_models.packets.hops.access import AccessNetwork
from planner_models.packets.hops.forwarding import HASH_MASK, SLOTS, fill_slots, hash_number
from planner_models.packets.hops.layout import MAX_HOPS
from planner_models.packets.hops.routes import Links, find_loop, find_next_hops, select_links
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.plan.references import is_by_segments, links_of_routes, list_routes, require_links
from planner_models.traffic.plan.segments import read_segments
from planner_models.traffic.problem.problem import Traffic


@dataclass(frozen=True, kw_only=True, eq=False)
class ListedRoute:
    """One of the routes of a demand.

    share   of the demand's traffic
    links   one after the other; None: by `nodes`
    nodes   after the source, between which packets take shortest paths
    """

    share: float
    links: Ints | None = None
    nodes: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class PlannedRoutes:
    """Routes of a plan.

    share   (R, E) shares of each set of split tables on each link, all on ways to its target
    target  (R,) node
    row     (K,) the set of each demand, or -1
    listed  routes of each demand whose senders have source routes, by demand
    has_loop  whether shares form a loop, so that senders have source routes by them
    """

    share: sp.csr_array
    target: Ints
    row: Ints
    listed: Mapping[int, Sequence[ListedRoute]] = field(default_factory=dict)
    has_loop: bool = False

    @property
    def is_by_source(self) -> bool:
        """True where senders have source routes."""
        return self.has_loop or len(self.listed) > 0

    def without_links(self, problem: Traffic, down: Bools) -> PlannedRoutes:
        """Return the routes that remain where some links, (E,), have failed and nodes divide what they had.

        A node from which no way of the plan remains, and a demand without a route, take shortest paths.
        """
        share = drop_dead_ends(
            problem, sp.csr_array(self.share @ sp.diags_array((~down).astype(float))), self.target
        )
        listed = {
            demand: [route for route in routes if route.links is None or not down[route.links].any()]
            for demand, routes in self.listed.items()
        }
        return replace(self, share=share, listed={k: routes for k, routes in listed.items() if routes})


def routes_of_plan(problem: Traffic, plan: Routing) -> PlannedRoutes:
    """Return the routes of a plan for packets."""
    if plan.segments is not None or plan.routes is not None:
        listed = list_segments(problem, plan.segments) if plan.routes is None else list_paths(problem, plan)
        return replace(shortest_paths_by_hash(problem), listed=listed)
    if "source" in plan.flows:
        flow, row, target = (
            routing.flow_by_demand(problem, plan),
            np.arange(len(problem.demands)),
            problem.target,
        )
    else:
        flow, row, target = _flow_by_commodity(problem, plan)
    share = drop_dead_ends(problem, flow, target)
    entries = share.tocoo()
    has_loop = find_loop(links_of(problem), entries.row, entries.col) is not None
    return PlannedRoutes(share=share, target=target, row=row, has_loop=has_loop)


def shortest_paths_by_hash(problem: Traffic) -> PlannedRoutes:
    """Return routes without a plan: each flow, and each of its subflows, takes shortest paths by a hash."""
    return PlannedRoutes(
        share=sp.csr_array((0, len(problem.links))),
        target=np.zeros(0, np.int64),
        row=np.full(len(problem.demands), -1, np.int64),
    )


def drop_dead_ends(problem: Traffic, flow: sp.csr_array, target: Ints) -> sp.csr_array:
    """Return flows (R, E) without links that are no way to the target of their row, (R,), or nearly unused.

    So packets that follow them arrive, and those of other nodes meet them on shortest paths or not at all.
    """
    entries = flow.tocoo()
    largest = np.zeros(flow.shape[0])
    np.maximum.at(largest, entries.row, entries.data)
    selected = entries.data > NEGLIGIBLE * largest[entries.row]
    row, link, amount = (column[selected] for column in (entries.row, entries.col, entries.data))
    while True:
        nodes = row.astype(np.int64) * len(problem.nodes)
        is_way = np.isin(nodes + problem.head[link], nodes + problem.tail[link])
        is_way |= problem.head[link] == target[row]
        if is_way.all():
            return sp.csr_array((amount, (row, link)), shape=flow.shape)
        row, link, amount = row[is_way], link[is_way], amount[is_way]


def _flow_by_commodity(problem: Traffic, plan: Routing) -> tuple[sp.csr_array, Ints, Ints]:
    """Return the flow to each target, of each class if any, the row of each demand, and the targets."""
    target = problem.find_nodes(plan.flows["target"])
    of_class = problem.find_classes(plan.flows)
    commodity = target if of_class is None else of_class * len(problem.nodes) + target
    commodities, row = np.unique(commodity, return_inverse=True)
    link = require_links(problem, plan.flows["tail"], plan.flows["head"], plan.flows["parallel"], "flows")
    flow = sp.csr_array(
        (plan.flows["rate_mbps"].to_numpy(float), (row, link)), shape=(len(commodities), len(problem.links))
    )
    row_of_demand = look_up(problem.commodity, commodities, np.arange(len(commodities)))
    return flow, row_of_demand, commodities % len(problem.nodes)


def list_paths(problem: Traffic, plan: Routing) -> dict[int, list[ListedRoute]]:
    """Return the routes of each demand in the table `routes` of a plan."""
    assert plan.routes is not None
    table = plan.routes[plan.routes["rate_mbps"].to_numpy(float) > 0].reset_index(drop=True)
    demand, rate = problem.find_demands(table), table["rate_mbps"].to_numpy(float)
    nodes, by_segments = list_routes(problem, table), is_by_segments(table)
    uses = links_of_routes(problem, table, nodes)
    listed: dict[int, list[ListedRoute]] = {}
    for route in range(len(table)):
        if by_segments[route]:
            entry = ListedRoute(share=float(rate[route]), nodes=nodes[route][1:])
        else:
            on_path = uses.indices[uses.indptr[route] : uses.indptr[route + 1]]
            link_from = dict(zip(problem.tail[on_path].tolist(), on_path.tolist(), strict=True))
            links = np.array([link_from[node] for node in nodes[route][:-1]], np.int64)
            entry = ListedRoute(share=float(rate[route]), links=links)
        listed.setdefault(int(demand[route]), []).append(entry)
    return listed


def list_segments(problem: Traffic, table: pd.DataFrame | None) -> dict[int, list[ListedRoute]]:
    """Return the routes of each demand in the table `segments` of a plan."""
    listed: dict[int, list[ListedRoute]] = {}
    if table is not None:
        for demand, nodes, share in read_segments(problem, table):
            listed.setdefault(demand, []).append(ListedRoute(share=share, nodes=tuple(nodes)))
    return listed


def links_of(problem: Traffic) -> Links:
    """Return the links of a problem as those of packets."""
    return Links(
        tail=problem.tail,
        head=problem.head,
        capacity_mbps=problem.capacity_mbps,
        weight=problem.weight,
        nodes=len(problem.nodes),
    )


class SourceRoutes:
    """Source routes of senders, as links of the network with hosts."""

    def __init__(self, problem: Traffic, access: AccessNetwork, planned: PlannedRoutes, down: Bools) -> None:
        """Prepare the routes of a plan.

        down  (E,) links that shortest paths between nodes of segment lists avoid
        """
        self._problem, self._access, self._planned = problem, access, planned
        self._slots = {
            demand: fill_slots(np.array([route.share for route in routes]))
            for demand, routes in planned.listed.items()
        }
        nodes = {
            node
            for routes in planned.listed.values()
            for route in routes
            if route.links is None
            for node in route.nodes
        }
        ends = np.array(sorted(nodes), np.int64)
        self._row_of = {int(node): row for row, node in enumerate(ends.tolist())}
        up = np.flatnonzero(~down)
        first, link = find_next_hops(select_links(links_of(problem), ~down), ends, 1)
        self._first, self._link = first, up[link]

    def select(self, flow: Ints, demand: Ints, subflows: int) -> tuple[list[Ints], Ints]:
        """Return the walks of some flows, after the link of their host, and that of each sender.

        flow, demand  (F,) numbers of flows, and their demands
        returns       walks, and (F, subflows) the walk of each sender, or -1 where the plan has none
        """
        walks: list[Ints] = []
        number_of: dict[tuple[int, int], int] = {}
        selected = np.full((len(flow), subflows), -1, np.int64)
        for index, k in enumerate(demand.tolist()):
            for order in range(subflows):
                seed = int(hash_number(int(hash_number(int(flow[index]) + 1)) + order))
                number = int(self._slots[k][seed % SLOTS]) if k in self._slots else -1
                if (k, number) in number_of:
                    selected[index, order] = number_of[k, number]
                    continue
                links = self._links_of(k, number, seed)
                if links is None:
                    continue
                selected[index, order] = len(walks)
                if number >= 0 and self._planned.listed[k][number].links is not None:
                    number_of[k, number] = len(walks)  # all flows on it take the same links
                walks.append(self._between_hosts(k, links))
        return walks, selected

    def _links_of(self, demand: int, number: int, seed: int) -> Ints | None:
        """Return the links of a route of a demand, or drawn by its shares; None where the plan has none."""
        if number < 0:
            return self._draw_links(demand, seed) if self._planned.has_loop else None
        route = self._planned.listed[demand][number]
        return self._walk(demand, route.nodes, seed) if route.links is None else route.links

    def _draw_links(self, demand: int, seed: int) -> Ints | None:
        """Return links from node to node drawn by the shares of a demand; None where it has none."""
        row, share = int(self._planned.row[demand]), self._planned.share
        if row < 0:
            return None
        ways = share.indices[share.indptr[row] : share.indptr[row + 1]]
        amount = share.data[share.indptr[row] : share.indptr[row + 1]]
        links: list[int] = []
        node = int(self._problem.source[demand])
        while node != self._problem.target[demand]:
            leaving = self._problem.tail[ways] == node
            if not leaving.any() or len(links) == MAX_HOPS - 2:
                return None
            seed = int(hash_number(seed + node))
            total = np.cumsum(amount[leaving])
            drawn = np.searchsorted(total, seed / HASH_MASK * total[-1])
            links.append(int(ways[leaving][min(int(drawn), len(total) - 1)]))
            node = int(self._problem.head[links[-1]])
        return np.array(links, np.int64)

    def _walk(self, demand: int, nodes: Sequence[int], seed: int) -> Ints | None:
        """Return links on shortest paths by way of some nodes; None where there is no path."""
        links: list[int] = []
        node = int(self._problem.source[demand])
        for end in nodes:
            row = self._row_of[end]
            while node != end:
                first, after = self._first[node, row], self._first[node, row + 1]
                if first == after:
                    return None
                link = int(self._link[first + int(hash_number(seed + node)) % (after - first)])
                links.append(link)
                node = int(self._problem.head[link])
        return np.array(links, np.int64)

    def _between_hosts(self, demand: int, links: Ints) -> Ints:
        """Return the links of a path after the one by which its host sends, with the one to the target's."""
        source, target = int(self._problem.source[demand]), int(self._problem.target[demand])
        if self._access.down[source] < 0:  # the source is its own host
            links = links[1:]
        return links if self._access.down[target] < 0 else np.r_[links, self._access.down[target]]
