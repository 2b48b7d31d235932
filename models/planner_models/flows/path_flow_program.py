"""Path formulation of multi-commodity flow: candidate paths and a linear program over them."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import scipy.sparse as sp

from planner.arrays import Bools, Floats, Ints
from planner.backends.linear_program import Columns, LinearProgram
from planner_models.flows.link_flow_program import FlowColumns, Objective, flow_program, link_cost
from planner_models.flows.problem import FlowProblem
from planner_models.graphs import path_search
from planner_models.graphs.path_search import FoundPaths, PathChoice


@dataclass(frozen=True, kw_only=True, eq=False)
class CandidatePaths:
    """Candidate paths of every demand with a rate.

    found  the paths by demand, ascending; those of a demand from light to heavy, or in the order found
    width  number of links of the network
    tunnels  (P,) the tunnel that each path is, by row; None where paths were searched
    share  of a path's traffic on each of its links; None where a path takes one link after another
    """

    found: FoundPaths
    width: int
    tunnels: Ints | None = None
    share: Floats | None = None

    @property
    def demand(self) -> Ints:
        """(P,) demand of each path."""
        return self.found.demand

    def links_of(self, path: int) -> tuple[int, ...]:
        """Return the links of a path in order."""
        start = self.found.start
        return tuple(self.found.link[start[path] : start[path + 1]].tolist())

    @cached_property
    def links(self) -> tuple[tuple[int, ...], ...]:
        """The links of each path in order."""
        return tuple(self.links_of(path) for path in range(len(self.demand)))

    def without_path(self, problem: FlowProblem) -> Bools:
        """Return the demands with a rate and without a path, shape (K,)."""
        missing = problem.rate_mbps > 0
        missing[self.demand] = False
        return missing

    @cached_property
    def uses(self) -> sp.csr_array:
        """(P, E) share of a path's traffic that goes over a link: 1, or less where segments split it."""
        start, link = self.found.start, self.found.link
        share = np.ones(len(link)) if self.share is None else self.share
        return sp.csr_array((share, link, start), shape=(len(self.demand), self.width))


def find_paths(
    problem: FlowProblem, *, count: int, choice: PathChoice = "shortest", max_hops: int | None = None
) -> CandidatePaths:
    """Return up to `count` loopless paths for each demand, by weight.

    shortest       the `count` lightest paths (Yen 1971); under a hop limit, the lightest of those found
                   within it, the path with fewest hops always among them
    disjoint       the shortest path, then the shortest without the links of those before, and so on
    most_disjoint  as many link-disjoint paths as there are, of least weight together (Suurballe 1974)

    A demand without a path within `max_hops` has none here.
    """
    demands = np.flatnonzero(problem.rate_mbps > 0)
    one_hop = np.ones(len(problem.links))

    def find(weight: Floats, limit: int) -> FoundPaths:
        search_result = path_search.search(
            nodes=len(problem.nodes),
            tail=problem.tail,
            head=problem.head,
            weight=weight,
            ends=(problem.source[demands], problem.target[demands]),
            count=limit,
            kind=choice,
        )
        return FoundPaths(
            demand=demands[search_result.demand], start=search_result.start, link=search_result.link
        )

    if max_hops is None:
        paths = find(problem.weight, count)
    elif choice == "shortest":
        paths = _lightest_within(
            problem.weight, (find(problem.weight, 4 * count), find(one_hop, count)), count, max_hops
        )
    else:
        # under a hop limit fewest hops come first, or a light path that is too long would hide a short one
        paths = find(one_hop + problem.weight / (1 + 4 * problem.weight.sum()), count)
        paths = path_search.take(paths, np.flatnonzero(np.diff(paths.start) <= max_hops))
    return CandidatePaths(found=paths, width=len(problem.links))


def _lightest_within(
    weight: Floats, pools: tuple[FoundPaths, FoundPaths], count: int, max_hops: int
) -> FoundPaths:
    """Return the lightest `count` paths of each demand within the hop limit, of two collections."""
    within: dict[int, set[tuple[int, ...]]] = {}
    for paths in pools:
        hops, link = np.diff(paths.start), paths.link.tolist()
        for path in np.flatnonzero(hops <= max_hops).tolist():
            links = tuple(link[paths.start[path] : paths.start[path + 1]])
            within.setdefault(int(paths.demand[path]), set()).add(links)
    demand: list[int] = []
    paths_chosen: list[tuple[int, ...]] = []
    for k in sorted(within):
        best = sorted(within[k], key=lambda path: (sum(weight[list(path)]), len(path), path))[:count]
        demand += [k] * len(best)
        paths_chosen += best
    return FoundPaths(
        demand=np.array(demand, dtype=np.int64),
        start=np.r_[0, np.cumsum([len(path) for path in paths_chosen])].astype(np.int64),
        link=np.array(list(itertools.chain.from_iterable(paths_chosen)), dtype=np.int32),
    )


def build(
    problem: FlowProblem, objective: Objective, paths: CandidatePaths, *, least_mbps: float | None = None
) -> LinearProgram:
    """Return the linear program of `objective` over the rates of given paths, see `flow_program`."""
    count = len(paths.demand)
    demands, row = np.unique(paths.demand, return_inverse=True)
    flows = FlowColumns(
        send=sp.coo_array((np.ones(count), (row, np.arange(count))), shape=(len(demands), count)),
        of_demand=sp.eye_array(len(demands), format="coo"),
        demands=demands,
        load=paths.uses.T.tocoo(),
        columns=Columns(name="path", count=count, labels=lambda: path_labels(problem, paths)),
        rows=("serve", lambda: [problem.demand_labels[k] for k in demands]),
    )
    price = paths.uses @ link_cost(problem) if objective == "cost" else None
    return flow_program(problem, objective, flows, price=price, least_mbps=least_mbps, suffix=" over paths")


def route_table(problem: FlowProblem, paths: CandidatePaths, rate_mbps: Floats) -> pd.DataFrame:
    """Return the plan table `routes` for rates (P,), Mbit/s: a row for each path with a rate."""
    names = problem.nodes["node"].tolist()
    used = np.flatnonzero(rate_mbps > 0)
    demand = paths.demand[used]
    frame = pd.DataFrame(
        {
            "source": problem.demands["source"].to_numpy()[demand],
            "target": problem.demands["target"].to_numpy()[demand],
            "path": [
                json.dumps(_names_on_path(problem, paths, p, names), ensure_ascii=False)
                for p in used.tolist()
            ],
            "rate_mbps": rate_mbps[used],
        }
    )
    if problem.has_classes:
        frame.insert(2, "class", problem.demands["class"].to_numpy()[demand])
    tunnels = problem.parsed_tunnels
    is_segments = np.zeros(len(used), dtype=bool)
    if paths.tunnels is not None and tunnels is not None:
        frame["tunnel"] = [tunnels.name[t] for t in paths.tunnels[used].tolist()]
        is_segments = tunnels.is_segments[paths.tunnels[used]]
        if is_segments.any():
            frame["kind"] = np.where(is_segments, "segments", "explicit")
    if (problem.parallel > 1).any():
        frame["parallel"] = [
            "" if by_segments else json.dumps([int(problem.parallel[link]) for link in paths.links_of(p)])
            for p, by_segments in zip(used.tolist(), is_segments.tolist(), strict=True)
        ]
    return frame


def path_labels(problem: FlowProblem, paths: CandidatePaths) -> list[str]:
    """Return the nodes of each path, such as `a->b->c`, (P,)."""
    names = problem.nodes["node"].tolist()
    return ["->".join(_names_on_path(problem, paths, p, names)) for p in range(len(paths.demand))]


def _names_on_path(problem: FlowProblem, paths: CandidatePaths, path: int, names: list[str]) -> list[str]:
    """Return the names of a path's nodes; of a list of segments, those that are listed."""
    if paths.tunnels is not None and problem.parsed_tunnels is not None:
        return [names[node] for node in problem.parsed_tunnels.nodes[paths.tunnels[path]]]
    return _node_names(problem, paths.links_of(path), names)


def _node_names(problem: FlowProblem, links: tuple[int, ...], names: list[str]) -> list[str]:
    return [names[problem.tail[links[0]]], *(names[problem.head[link]] for link in links)]
