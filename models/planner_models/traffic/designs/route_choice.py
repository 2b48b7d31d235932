"""Routes that demands may take: tunnels, a number of paths, or all that keep latency limits and rules.

The latter are found as they are needed: prices of links say which path of each demand is the cheapest, and
paths that are new join the known ones (column generation).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from planner.arrays import Bools, Floats, Ints
from planner.contract.design import Decision
from planner.errors import InputError
from planner.options import Options
from planner_models.flows.constrained_paths import ConstrainedPathSearch, RoutePool
from planner_models.flows.path_flow_program import CandidatePaths, find_paths
from planner_models.flows.route_limits import Conditions, RouteLimits
from planner_models.graphs import path_search
from planner_models.graphs.path_search import FoundPaths, PathChoice
from planner_models.networks.tunnels import Tunnels
from planner_models.traffic.designs.routable import refuse_demands, shed_demands, without_share
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.plan.segments import segment_shares
from planner_models.traffic.problem.problem import Traffic

ALL_WITHIN_LIMITS: Final = "routes that keep latency limits and rules"
"""The scope of a bound over all of them."""
PathCount = Annotated[
    Annotated[int, Field(gt=0)] | Literal["any", "tunnels"],
    Field(
        description="routes that traffic may take: any, that many paths for each demand, or the tunnels of "
        "the problem; in each case those that keep latency limits and rules"
    ),
]
Choice = Annotated[
    PathChoice,
    Field(
        description="with a number of paths: the shortest; link-disjoint ones, each the shortest without the "
        "links of those before (disjoint), or as many as there are (most_disjoint)"
    ),
]
HopLimit = Annotated[
    Annotated[int, Field(gt=0)] | None, Field(description="with a number of paths: the most links of one")
]


@dataclass(eq=False)
class RouteChoice:
    """The routes known so far of the demands that have one.

    scope    of a bound over these routes
    without_path  (K,) demands with a rate that none of the routes serves
    given    tunnels or a number of paths; None where all routes within limits count
    columns  the routes found so far, where all count
    """

    problem: Traffic
    scope: str
    without_path: Bools
    given: CandidatePaths | None = None
    columns: RoutePool | None = None
    limits: RouteLimits | None = None
    _uses: sp.csr_array | None = field(default=None, init=False)

    @classmethod
    def of(
        cls,
        problem: Traffic,
        paths: int | Literal["any", "tunnels"],
        choice: PathChoice = "shortest",
        max_hops: int | None = None,
    ) -> RouteChoice | None:
        """Return the routes; None where all routes of the network count.

        raises  InputError for tunnels where the problem has none, or a hop limit without a number of paths
        """
        require_paths(paths, max_hops)
        limits = RouteLimits.of(problem)
        if paths != "any":
            candidates = find_candidates(problem, paths, choice, max_hops, limits)
            scope = describe_paths(paths, choice, max_hops, limits)
            return cls(problem, scope, candidates.without_path(problem), given=candidates)
        if limits is None:
            return None
        demands = np.flatnonzero(problem.rate_mbps > 0)
        first = ConstrainedPathSearch(problem, limits, demands).search(problem.weight).found
        columns = RoutePool(len(problem.links))
        columns.add(first, np.arange(len(first.demand)))
        without_path = problem.rate_mbps > 0
        without_path[first.demand] = False
        return cls(problem, ALL_WITHIN_LIMITS, without_path, columns=columns, limits=limits)

    def route_rest(
        self,
        decide: Callable[[Traffic], Decision[Routing]],
        options: Options,
        max_hops: int | None = None,
    ) -> Decision[Routing]:
        """Return the decision of `decide` for the demands with a route, with the others as shed.

        With `options.service` "all" the problem is infeasible where there are others.
        """
        left_out = self.without_path
        if not left_out.any():
            return decide(self.problem)
        if options.service == "all":
            return refuse_demands(self.problem, left_out, describe_lack(self.problem, self.given, max_hops))
        remainder = self.problem.with_rates(np.where(left_out, 0.0, self.problem.rate_mbps))
        decision = shed_demands(self.problem, left_out, decide(remainder))
        return without_share(
            self.problem, left_out, decision, describe_lack(self.problem, self.given, max_hops)
        )

    @property
    def demand(self) -> Ints:
        """(P,) demand of each route; those found later are behind the others."""
        if self.given is not None:
            return self.given.demand
        assert self.columns is not None
        return self.columns.demand

    @property
    def uses(self) -> sp.csr_array:
        """(P, E) share of a route's traffic that goes over each link."""
        if self.given is not None:
            return self.given.uses
        assert self.columns is not None
        uses = self._uses
        if uses is None or uses.shape[0] < len(self.columns.demand):
            new = self.columns.uses(0 if uses is None else uses.shape[0])
            self._uses = new if uses is None else sp.csr_array(sp.vstack([uses, new]))
            return self._uses
        return uses

    def routes(self, amount: Floats) -> tuple[CandidatePaths, Floats]:
        """Return the routes by demand with their amounts (P,), given in the order in which they are here."""
        if self.given is not None:
            return self.given, amount
        assert self.columns is not None
        routes, order = self.columns.paths(len(amount))
        return CandidatePaths(found=routes, width=len(self.problem.links)), amount[order]

    def find_cheapest(self, demands: Ints, price: Floats) -> tuple[Floats, int]:
        """Return the least price of a route of each of some demands, and the number of added routes.

        demands  ascending demands, each with a route; price  (E,) of the links, at least 0
        """
        if self.limits is None or self.columns is None:
            return self.known_distance(demands, price), 0
        search_result = ConstrainedPathSearch(self.problem, self.limits, demands).search(price)
        # of equal price: a search that ends before has only a bound
        distance = np.minimum(self.known_distance(demands, price), search_result.cost)
        return distance, self.columns.add(search_result.found, np.arange(len(search_result.found.demand)))

    def known_distance(self, demands: Ints, price: Floats) -> Floats:
        """Return the least price of the known routes of each demand, shape of `demands`."""
        shortest = np.full(len(self.problem.demands), np.inf)
        np.minimum.at(shortest, self.demand, self.uses @ price)
        return shortest[demands]


def find_candidates(
    problem: Traffic,
    paths: int | Literal["tunnels"],
    choice: PathChoice,
    max_hops: int | None,
    limits: RouteLimits | None,
) -> CandidatePaths:
    """Return the tunnels, or that many searched paths of each demand: those that keep the limits."""
    if paths == "tunnels":
        return find_tunnels(problem, limits)
    candidates = find_paths(problem, count=paths, choice=choice, max_hops=max_hops)
    if limits is None:
        return candidates
    keeps = [
        limits.keeps(problem, demand, candidates.links_of(path))
        for path, demand in enumerate(candidates.demand.tolist())
    ]
    selected = path_search.take(candidates.found, np.flatnonzero(keeps))
    return CandidatePaths(found=selected, width=candidates.width)


def _keeps_limits(
    problem: Traffic, tunnels: Tunnels, limits: RouteLimits | None, demand: int, tunnel: int, path: list[int]
) -> bool:
    """Return whether all links of a tunnel are up, and a demand may take it.

    path  its links, those of all shortest paths between segments
    """
    if not tunnels.is_segments[tunnel]:
        return -1 not in path and (limits is None or limits.keeps(problem, demand, path))
    passes_target = bool((problem.tail[path] == tunnels.target[tunnel]).any())
    return not passes_target and (
        limits is None or _segments_keep(problem, limits, demand, tunnels.nodes[tunnel], path)
    )


def _list_demands(problem: Traffic, tunnels: Tunnels) -> list[tuple[int, int]]:
    """Return the pairs of a demand with a rate and a tunnel between its ends, by demand, then tunnel."""
    of_pair: dict[tuple[int, int], list[int]] = {}  # demands of several classes share tunnels
    for k in np.flatnonzero(problem.rate_mbps > 0).tolist():
        of_pair.setdefault((int(problem.source[k]), int(problem.target[k])), []).append(k)
    ends = zip(tunnels.source.tolist(), tunnels.target.tolist(), strict=True)
    return sorted((k, t) for t, pair in enumerate(ends) for k in of_pair.get(pair, []))


def find_tunnels(problem: Traffic, limits: RouteLimits | None) -> CandidatePaths:
    """Return the tunnels that are up and keep the limits, of the demands with a rate; in their table's order.

    A list of segments whose shortest paths pass its target before its end is left out: traffic has arrived.

    raises  InputError where the problem has no tunnels
    """
    tunnels = problem.parsed_tunnels
    if tunnels is None:
        raise InputError("problem: has no table 'tunnels', which the design needs")
    pairs = _list_demands(problem, tunnels)
    by_segments = sorted({t for _, t in pairs if tunnels.is_segments[t]})
    shares, is_followed = segment_shares(problem, [tunnels.nodes[t] for t in by_segments])
    row_of = {t: row for row, t in enumerate(by_segments) if is_followed[row]}
    selected: list[int] = []
    demand: list[int] = []
    links: list[list[int]] = []
    parts: list[list[float]] = []
    for k, t in pairs:
        if not tunnels.is_segments[t]:
            path, share = list(tunnels.links[t]), [1.0] * len(tunnels.links[t])
        elif t in row_of:
            entries = slice(shares.indptr[row_of[t]], shares.indptr[row_of[t] + 1])
            path, share = shares.indices[entries].tolist(), shares.data[entries].tolist()
        else:
            continue
        if _keeps_limits(problem, tunnels, limits, k, t, path):
            selected.append(t)
            demand.append(k)
            links.append(path)
            parts.append(share)
    is_split = bool(tunnels.is_segments[selected].any())
    return CandidatePaths(
        found=FoundPaths(
            demand=np.array(demand, dtype=np.int64),
            start=np.r_[0, np.cumsum([*map(len, links)])].astype(np.int64),
            link=np.array(list(itertools.chain.from_iterable(links)), dtype=np.int32),
        ),
        width=len(problem.links),
        tunnels=np.array(selected, dtype=np.int64),
        share=np.array(list(itertools.chain.from_iterable(parts))) if is_split else None,
    )


def split_by_weight(problem: Traffic, paths: CandidatePaths) -> np.ndarray:
    """Return the rate on each tunnel, (P,) Mbit/s, where demands split by weight; evenly where all are 0."""
    tunnels: Tunnels = problem.parsed_tunnels  # type: ignore[assignment] # the paths are of them
    weight = tunnels.weight[paths.tunnels]
    total = np.bincount(paths.demand, weights=weight, minlength=len(problem.demands))
    weight = np.where(total[paths.demand] > 0, weight, 1.0)
    total = np.bincount(paths.demand, weights=weight, minlength=len(problem.demands))
    return np.asarray(problem.rate_mbps[paths.demand] * weight / total[paths.demand])


def _segments_keep(
    problem: Traffic, limits: RouteLimits, demand: int, nodes: tuple[int, ...], links: list[int]
) -> bool:
    """Return whether each path that traffic takes over a list of segments keeps the limits of a demand.

    Within a segment, a link of the list is on one of its shortest paths where it comes nearer to its end.
    """
    if not limits.allowed[limits.allowed_of[demand], links].all():
        return False
    conditions = limits.conditions.get(demand, Conditions((), ()))
    state = conditions.start(nodes[0])
    if state is None:
        return False
    # states of routes at a node, with the largest latency of those in each
    reached = {state: 0.0}
    for start, end in itertools.pairwise(nodes):
        leg, _ = segment_shares(problem, [(start, end)])
        latencies = {start: reached}
        for link in _order_links(problem, leg.indices.tolist(), start):
            latency_of = latencies.setdefault(int(problem.head[link]), {})
            for before, latency in latencies[int(problem.tail[link])].items():
                onward = conditions.step(*before, int(problem.head[link]))
                if onward is None:
                    return False
                latency_of[onward] = max(latency_of.get(onward, 0.0), latency + limits.latency_ms[link])
        reached = latencies[end]
    return all(
        met == conditions.all_met and latency <= limits.max_latency_ms[demand]
        for (met, _), latency in reached.items()
    )


def _order_links(problem: Traffic, links: list[int], start: int) -> list[int]:
    """Return an acyclic set of links from `start` on, each behind those that lead to it."""
    leaving: dict[int, list[int]] = {}
    for link in links:
        leaving.setdefault(int(problem.tail[link]), []).append(link)
    return [link for node in _order(problem, leaving, start) for link in leaving.get(node, [])]


def _order(problem: Traffic, leaving: dict[int, list[int]], start: int) -> list[int]:
    """Return the nodes of an acyclic set of links from `start` on, each before those it leads to."""
    entering: dict[int, int] = {}
    for links in leaving.values():
        for link in links:
            head = int(problem.head[link])
            entering[head] = entering.get(head, 0) + 1
    order, ready = [], [start]
    while ready:
        node = ready.pop()
        order.append(node)
        for link in leaving.get(node, []):
            head = int(problem.head[link])
            entering[head] -= 1
            if not entering[head]:
                ready.append(head)
    return order


def require_paths(paths: int | Literal["any", "tunnels"], max_hops: int | None) -> None:
    """Raise InputError for a hop limit without a number of paths."""
    if isinstance(paths, str) and max_hops is not None:
        raise InputError(
            f"max_hops is {max_hops}, but paths is '{paths}': a hop limit needs a number of paths"
        )


def describe_lack(problem: Traffic, candidates: CandidatePaths | None, max_hops: int | None) -> str:
    """Return the reason for which demands have no path, to follow their names."""
    within = [f"within max_hops {max_hops}"] if max_hops is not None else []
    if RouteLimits.of(problem) is not None:
        within.append("that keeps its latency limit and its rules")
    kind = "tunnel" if candidates is not None and candidates.tunnels is not None else "path"
    return " ".join([f"has no {kind}", " and ".join(within)]).rstrip()


def describe_paths(
    paths: int | Literal["tunnels"],
    choice: PathChoice,
    max_hops: int | None,
    limits: RouteLimits | None = None,
) -> str:
    """Return the scope of a bound over given paths."""
    rules_text = " that keep latency limits and rules" if limits is not None else ""
    if paths == "tunnels":
        return f"the tunnels of each demand{rules_text}"
    kind = "shortest paths" if choice == "shortest" else "link-disjoint paths"
    limit = f" of at most {max_hops} links" if max_hops is not None else ""
    return f"the {paths} {kind} of each demand{limit}{rules_text}"
