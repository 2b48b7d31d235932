"""The paths of the plan before, from which searches start: those that the problem still has.

The flow of each demand, or that to each target, is decomposed: a walk takes the largest flow at each node
until it ends at the target, and what it carries is taken off; cycles on the way are cancelled. Paths over
links that are gone are left out, and so is what the plan shed.

source  flow decomposition: Ahuja, Magnanti and Orlin 1993, section 3.5
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
import scipy.sparse as sp

from planner.arrays import Floats, Ints
from planner.compiled import njit, run_small_in_python
from planner.search.tolerances import SOLVED_SHARE
from planner_models.flows.path_flow_program import CandidatePaths
from planner_models.flows.problem import FlowPlan, FlowProblem
from planner_models.graphs.indexing import sum_by_index
from planner_models.graphs.path_search import FoundPaths, take

LEAST_SHARE: Final = SOLVED_SHARE  # of a demand; less on a path is left out


class _Flow(NamedTuple):
    """Flow of G groups, a demand's own or that to a target, as entries on links.

    tail, head, link  (n,) of each entry, by group, then by tail; link -1 where it is gone
    amount            (n,) Mbit/s; what is not decomposed yet
    first             (G + 1,) the entries of group g are first[g] to first[g + 1]
    target            (G,) node where it ends
    """

    tail: Ints
    head: Ints
    link: Ints
    amount: Floats
    first: Ints
    target: Ints


@dataclass(frozen=True, kw_only=True, eq=False)
class PreviousRoutes:
    """Paths that demands took, without those over links that are gone.

    paths  those of each demand of this problem together
    share  (P,) of its demand that each path took; those of a demand add up to at most 1
    lost   the largest share of a demand whose paths are gone
    """

    paths: FoundPaths
    share: Floats
    lost: float = 0.0

    @classmethod
    def of(cls, problem: FlowProblem, plan: FlowPlan) -> PreviousRoutes:
        """Return the paths of a plan for this problem, or for one with other rates, links and demands.

        Demands of the problem have no classes, or are merged.
        """
        nodes, flows = len(problem.nodes), plan.flows
        ends = {name: problem.find_nodes(flows[name]) for name in ("tail", "head", "target")}
        by_demand = "source" in flows
        ends["source"] = problem.find_nodes(flows["source"]) if by_demand else np.zeros_like(ends["target"])
        rows = np.flatnonzero(np.min(list(ends.values()), axis=0, initial=0) >= 0)
        group = (ends["target"] * nodes + ends["source"])[rows]
        rows = rows[np.lexsort((ends["tail"][rows], group))]
        tail, head = ends["tail"][rows], ends["head"][rows]
        groups, first = np.unique(np.sort(group), return_index=True)
        flow = _Flow(
            tail=tail,
            head=head,
            link=problem.find_links(tail, head, flows["parallel"].to_numpy(np.int64)[rows]),
            amount=flows["rate_mbps"].to_numpy(float)[rows],
            first=np.r_[first, len(rows)],
            target=groups // nodes,
        )
        demand = np.lexsort((problem.source, problem.target))
        demand = demand[problem.rate_mbps[demand] > 0]
        of_group = problem.target[demand] * nodes + (problem.source[demand] if by_demand else 0)
        begin, end = np.searchsorted(of_group, groups), np.searchsorted(of_group, groups, side="right")
        index, carried, start, link = _decompose(flow, nodes, problem.source[demand], begin, end, LEAST_SHARE)
        return cls._of_paths(problem, plan, FoundPaths(demand=demand[index], start=start, link=link), carried)

    @classmethod
    def _of_paths(
        cls, problem: FlowProblem, plan: FlowPlan, paths: FoundPaths, carried_mbps: Floats
    ) -> PreviousRoutes:
        """Return the paths over remaining links, with the shares of their previous demands."""
        count = len(problem.demands)
        then = sum_by_index(paths.demand, carried_mbps, count)
        if plan.shed is not None:
            shed = problem.find_demands(plan.shed)
            amount = plan.shed["rate_mbps"].to_numpy(float)
            then += sum_by_index(shed[shed >= 0], amount[shed >= 0], count)
        share = carried_mbps / then[paths.demand]
        is_used = share > LEAST_SHARE
        is_used[np.searchsorted(paths.start, np.flatnonzero(paths.link < 0), side="right") - 1] = False
        if is_used.all():
            return cls(paths=paths, share=share)
        lost = sum_by_index(paths.demand[~is_used], share[~is_used], count)
        return cls(paths=take(paths, np.flatnonzero(is_used)), share=share[is_used], lost=float(lost.max()))

    def among(self, candidates: CandidatePaths) -> PreviousRoutes:
        """Return those that are candidate paths too."""
        selected = np.flatnonzero(find_among(self.paths, candidates) >= 0)
        return replace(self, paths=take(self.paths, selected), share=self.share[selected])

    def main_paths(self, order: Ints, demands: int) -> FoundPaths:
        """Return the path that took the most of each demand, by places of demands in `order`."""
        index_of = np.full(demands, -1)
        index_of[order] = np.arange(len(order))
        by_share = np.lexsort((-self.share, index_of[self.paths.demand]))
        _, first = np.unique(index_of[self.paths.demand][by_share], return_index=True)
        main = take(self.paths, by_share[first])
        return FoundPaths(demand=index_of[main.demand], start=main.start, link=main.link)


def find_among(paths: FoundPaths, candidates: CandidatePaths) -> Ints:
    """Return the place of each path among candidates, (P,); -1 where it is none of them.

    Paths differ in sums of random numbers of 62 bits, one for each demand and each link.
    """
    candidate_paths = candidates.found
    random = np.random.default_rng(0)
    demand_count = int(max(paths.demand.max(initial=0), candidate_paths.demand.max(initial=0))) + 1
    of_demand, of_link = (random.integers(2**62, size=size) for size in (demand_count, candidates.width))
    keys = []
    for path_set in (paths, candidate_paths):
        total = np.r_[0, np.cumsum(of_link[path_set.link])]  # wraps around
        keys.append(of_demand[path_set.demand] + total[path_set.start[1:]] - total[path_set.start[:-1]])
    keys_sought, candidate_keys = keys
    if not len(candidate_keys):
        return np.full(len(keys_sought), -1)
    order = np.argsort(candidate_keys, kind="stable")
    index = order[np.minimum(np.searchsorted(candidate_keys[order], keys_sought), len(candidate_keys) - 1)]
    return np.where(candidate_keys[index] == keys_sought, index, -1)


def decompose_by_demand(
    problem: FlowProblem, flow_mbps: sp.csr_array, least_share: float = LEAST_SHARE
) -> tuple[FoundPaths, Floats]:
    """Return the paths of a flow (K, E), those of each demand together, and the Mbit/s on each.

    least_share  of a demand's flow; less on a path is left out
    """
    nodes, entries = len(problem.nodes), sp.csr_array(flow_mbps).tocoo()
    used = np.flatnonzero(entries.data > 0)
    row, link = entries.row[used].astype(np.int64), entries.col[used].astype(np.int64)
    order = np.lexsort((problem.tail[link], row))
    row, link = row[order], link[order]
    demand, first = np.unique(row, return_index=True)
    flow = _Flow(
        tail=problem.tail[link].astype(np.int64),
        head=problem.head[link].astype(np.int64),
        link=link,
        amount=entries.data[used][order].astype(float),
        first=np.r_[first, len(row)].astype(np.int64),
        target=problem.target[demand].astype(np.int64),
    )
    number = np.arange(len(demand))
    source = problem.source[demand].astype(np.int64)
    index, carried, start, links = _decompose(flow, nodes, source, number, number + 1, least_share)
    return FoundPaths(demand=demand[index], start=start, link=links), carried


@njit(cache=True)
def _longer(array, size):  # type: ignore[no-untyped-def]
    """Return the array, or a longer copy where it has fewer than `size` entries."""
    if size <= len(array):
        return array
    longer = np.empty(max(size, 2 * len(array)), array.dtype)
    longer[: len(array)] = array
    return longer


@run_small_in_python(max_elements=20_000)
@njit(cache=True)
def _decompose(flow, nodes, source, begin, end, least_share):  # type: ignore[no-untyped-def]
    """Return the paths of demands begin[g] to end[g] of each group: (demand, Mbit/s, start, link)."""
    demand, carried = np.empty(len(source) + 1, np.int64), np.empty(len(source) + 1)
    start, link = np.zeros(len(source) + 2, np.int64), np.empty(8 * len(source) + nodes + 1, np.int32)
    count, size = 0, 0
    leaving, surplus = np.full(nodes + 1, -1), np.zeros(nodes)
    step, walk = np.full(nodes, -1), np.empty(nodes, np.int64)
    for g in range(len(begin)):
        low, high = flow.first[g], flow.first[g + 1]
        for i in range(low, high):
            surplus[flow.tail[i]] += flow.amount[i]
            surplus[flow.head[i]] -= flow.amount[i]
            if i == low or flow.tail[i] != flow.tail[i - 1]:
                leaving[flow.tail[i]] = i
        for k in range(begin[g], end[g]):
            remaining = surplus[source[k]]
            threshold = least_share * remaining
            while remaining > threshold:
                limits = threshold, remaining
                hops, amount = _walk(flow, g, source[k], limits, leaving, step, walk)
                if hops == 0:
                    break
                demand, carried = _longer(demand, count + 1), _longer(carried, count + 1)
                start, link = _longer(start, count + 2), _longer(link, size + hops)
                for j in range(hops):
                    flow.amount[walk[j]] -= amount
                    link[size + j] = flow.link[walk[j]]
                size += hops
                demand[count], carried[count] = k, amount
                count += 1
                start[count] = size
                remaining -= amount
        for i in range(low, high):
            leaving[flow.tail[i]] = -1
            surplus[flow.tail[i]] = surplus[flow.head[i]] = 0.0
    return demand[:count], carried[:count], start[: count + 1], link[:size]


@njit(cache=True)
def _walk(flow, g, source, limits, leaving, step, walk):  # type: ignore[no-untyped-def]
    """Walk from a source to the target of group g over the largest flows; return its links and least flow.

    The number of links is 0 where none goes on. Cycles on the way are cancelled.

    limits   flow that a link has at least, and upper limit of that of the walk
    leaving  (N,) first entry of the flow that leaves each node
    step     (N,) number of links to each node on the way, -1 for others; again so at the end
    walk     entries of the flow on the way are written here
    """
    threshold, most = limits
    target, end = flow.target[g], flow.first[g + 1]
    v, hops, is_stuck = source, 0, False
    step[v] = 0
    while v != target:
        best = _largest_leaving(flow, v, leaving[v], end, threshold)
        if best < 0:
            is_stuck = True
            break
        walk[hops] = best
        hops += 1
        v = flow.head[best]
        if step[v] >= 0:  # a cycle: the walk goes on where it began
            _cancel_cycle(flow, walk[step[v] : hops], step)
            hops = step[v]
        else:
            step[v] = hops
    amount = most
    for j in range(hops):
        step[flow.tail[walk[j]]] = -1
        amount = min(amount, flow.amount[walk[j]])
    step[v] = -1
    return 0 if is_stuck else hops, amount


@njit(cache=True)
def _largest_leaving(flow, v, first, end, threshold):  # type: ignore[no-untyped-def]
    """Return the entry of the largest flow above a threshold that leaves node v; -1 for none before `end`."""
    best, largest, i = -1, threshold, first
    while 0 <= i < end and flow.tail[i] == v:
        if flow.amount[i] > largest:
            best, largest = i, flow.amount[i]
        i += 1
    return best


@njit(cache=True)
def _cancel_cycle(flow, cycle, step):  # type: ignore[no-untyped-def]
    """Subtract the least flow of a cycle from its entries, and take its nodes but the first off the way."""
    amount = flow.amount[cycle[0]]
    for i in cycle:
        amount = min(amount, flow.amount[i])
    for j in range(len(cycle)):
        flow.amount[cycle[j]] -= amount
        if j > 0:
            step[flow.tail[cycle[j]]] = -1
