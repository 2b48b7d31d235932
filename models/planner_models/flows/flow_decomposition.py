"""Decomposition of the flow of each demand into paths, each along the links with most traffic left.

Traffic that circles is left out.

source  flow decomposition: Ahuja, Magnanti and Orlin 1993, section 3.5
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from planner.arrays import Floats, Ints
from planner.compiled import inner, njit, run_small_in_python
from planner_models.flows.problem import FlowProblem


class FlowPaths(NamedTuple):
    """Paths with traffic; path p takes link[start[p]:start[p + 1]].

    demand  (P,) row of the flow that each path is from
    rate    (P,) its traffic
    """

    demand: Ints
    rate: Floats
    start: Ints
    link: Ints


class _Flow(NamedTuple):
    """Flow of demands as entries on links; those of demand k are first[k] to first[k + 1].

    link, amount  of each entry; amounts fall as paths are taken off
    threshold     (K,) traffic of each demand; less is none
    """

    first: Ints
    link: Ints
    amount: Floats
    threshold: Floats


class _Ends(NamedTuple):
    """Ends of links, (E,), and of demands, (K,)."""

    tail: Ints
    head: Ints
    source: Ints
    target: Ints


def decompose_flow(problem: FlowProblem, flow: sp.csr_array, demands: Ints, smallest: Floats) -> FlowPaths:
    """Return paths that make up the flow of some demands, those of a demand together.

    flow      (n, E) of each of the demands
    smallest  (n,) traffic of each on a link; less is none
    """
    entries = _Flow(
        flow.indptr.astype(np.int64), flow.indices.astype(np.int64), flow.data.astype(float), smallest
    )
    ends = _Ends(problem.tail, problem.head, problem.source[demands], problem.target[demands])
    return FlowPaths(*_take_paths(entries, ends, len(problem.nodes)))


@run_small_in_python(max_elements=5_000)
@njit(cache=True)
def _take_paths(flow, ends, nodes):  # type: ignore[no-untyped-def]
    """Return demand, rate, start and links of the paths; takes them off the flow."""
    demands, rates, starts, links = [0], [0.0], [0], [0]
    seen = np.full(nodes, -1, np.int64)
    path = np.empty(nodes + 1, np.int64)
    for k in range(len(ends.source)):
        while True:
            hops, cycle = _walk(flow, ends, k, seen, path)
            if hops <= 0:
                break
            begin = cycle if cycle >= 0 else 0
            rate = np.inf
            for i in range(begin, hops):
                rate = min(rate, flow.amount[path[i]])
            for i in range(begin, hops):
                flow.amount[path[i]] -= rate
            if cycle < 0:
                demands.append(k)
                rates.append(rate)
                for i in path[:hops]:
                    links.append(flow.link[i])  # noqa: PERF401 - compiled
                starts.append(len(links) - 1)
    return (
        np.array(demands[1:], np.int64),
        np.array(rates[1:]),
        np.array(starts, np.int64),
        np.array(links[1:], np.int64),
    )


@inner
def _walk(flow: _Flow, ends: _Ends, k: int, seen: Ints, path: Ints) -> tuple[int, int]:
    """Write entries from the source of a demand on, the largest at each node, into `path`.

    Returns their number, -1 for a dead end, and where a cycle begins among them, -1 for none.
    """
    seen[:] = -1
    v, hops = ends.source[k], 0
    while v != ends.target[k]:
        if seen[v] >= 0:
            return hops, seen[v]
        seen[v] = hops
        best = -1
        for i in range(flow.first[k], flow.first[k + 1]):
            is_out = ends.tail[flow.link[i]] == v and flow.amount[i] > flow.threshold[k]
            if is_out and (best < 0 or flow.amount[i] > flow.amount[best]):
                best = i
        if best < 0:
            return -1, -1
        path[hops] = best
        hops += 1
        v = ends.head[flow.link[best]]
    return hops, -1
