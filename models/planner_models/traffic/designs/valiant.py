"""Valiant load balancing: two-phase routing over intermediate nodes, oblivious of load."""

from __future__ import annotations

import fnmatch
from typing import Annotated

import numpy as np
import pandas as pd
import scipy.sparse as sp
from pydantic import Field
from scipy.sparse.csgraph import dijkstra

from planner.arrays import Ints
from planner.contract.design import Decision
from planner.errors import InputError, did_you_mean
from planner_models.traffic.designs import next_hops
from planner_models.traffic.plan import tcp_rates as tcp
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.plan.tcp_rates import Rates
from planner_models.traffic.problem.problem import Traffic

Via = Annotated[
    tuple[str, ...],
    Field(
        description="intermediate nodes, * ? [..] match; default: those most links away "
        "from where demands start and end, which are the cores of a data center"
    ),
]
Split = Annotated[
    bool, Field(description="split every demand evenly over all intermediate nodes; else use one of them")
]
Seed = Annotated[int, Field(ge=0, description="with split = false: of the choice of node and path")]


def route(
    problem: Traffic, *, via: Via = (), split: Split = True, rates: Rates = "given", seed: Seed = 0
) -> Decision[Routing]:
    """Route each demand on shortest paths to an intermediate node, and from there to its target.

    Intermediate nodes are reachable from every source and reach every target.

    source  Zhang-Shen and McKeown 2004; VL2: Greenberg et al. 2009; Sen et al. 2013, section 1
    """
    middle = _intermediate_nodes(problem, via)
    if not len(middle):  # no demand has a rate
        share = sp.csr_array((len(problem.demands), len(problem.links)))
        return tcp.route_shares(problem, share, rates)
    share = (
        _even_shares(problem, middle)
        if split
        else _hashed_shares(problem, middle, np.random.default_rng(seed))
    )
    return tcp.route_shares(problem, share, rates)


def _intermediate_nodes(problem: Traffic, via: tuple[str, ...]) -> Ints:
    """Return the intermediate nodes; none where no demand has a rate."""
    names = problem.nodes["node"].tolist()
    wanted = problem.rate_mbps > 0
    ends = np.unique(np.r_[problem.source[wanted], problem.target[wanted]])
    if not len(ends):
        return ends
    count = len(names)
    graph = sp.csr_array((np.ones(len(problem.links)), (problem.tail, problem.head)), shape=(count, count))
    out = dijkstra(graph, indices=np.unique(problem.source[wanted]), unweighted=True)
    back = dijkstra(sp.csr_array(graph.T), indices=np.unique(problem.target[wanted]), unweighted=True)
    usable = np.isfinite(out).all(axis=0) & np.isfinite(back).all(axis=0)
    if via:
        chosen = np.zeros(count, dtype=bool)
        for pattern in via:
            rows = [
                row for row, name in enumerate(names) if name == pattern or fnmatch.fnmatchcase(name, pattern)
            ]
            if not rows:
                raise InputError(f"via: '{pattern}' matches no node" + did_you_mean(pattern, names))
            chosen[rows] = True
    else:
        away = np.minimum(out.min(axis=0), back.min(axis=0))
        chosen = usable & (away == away[usable].max(initial=-1.0))
    if not (chosen & usable).any():
        raise InputError(
            "via: no node is reached by every source and reaches every target"
            + (f", of those that match {', '.join(via)}" if via else "")
        )
    return np.flatnonzero(chosen & usable)


def _even_shares(problem: Traffic, middle: Ints) -> sp.csr_array:
    """Return the mean over intermediate nodes of even shares on both legs, shape (K, E)."""
    wanted = problem.rate_mbps > 0
    demands = len(problem.demands)
    share = sp.csr_array((demands, len(problem.links)))
    for demand_end, is_first_leg in ((problem.source, True), (problem.target, False)):
        ends = np.unique(demand_end[wanted])
        end, mid = np.repeat(ends, len(middle)), np.tile(middle, len(ends))
        distinct = end != mid  # a leg from a node to itself has no links
        end, mid = end[distinct], mid[distinct]
        legs = _leg_problem(problem, end, mid) if is_first_leg else _leg_problem(problem, mid, end)
        each = next_hops.even_shares(next_hops.find_next_hops(legs))
        # from demands to the legs of their end, each a share of 1 / len(middle)
        place = np.searchsorted(ends, demand_end[wanted])
        rows = np.flatnonzero(wanted)
        pick = sp.csr_array((np.ones(len(rows)), (rows, place)), shape=(demands, len(ends)))
        leg_end = np.searchsorted(ends, end)
        mean = np.full(len(end), 1 / len(middle))
        average = sp.csr_array((mean, (leg_end, np.arange(len(end)))), shape=(len(ends), len(end)))
        share = share + pick @ (average @ each)
    return sp.csr_array(share)


def _hashed_shares(problem: Traffic, middle: Ints, random: np.random.Generator) -> sp.csr_array:
    """Return the paths of demands hashed to one intermediate node and one path per leg, shape (K, E)."""
    demands = len(problem.demands)
    share = sp.csr_array((demands, len(problem.links)))
    wanted = np.flatnonzero(problem.rate_mbps > 0)
    mid = random.choice(middle, size=len(wanted))
    for origin, destination in ((problem.source[wanted], mid), (mid, problem.target[wanted])):
        distinct = origin != destination
        pairs = np.unique(np.column_stack([origin[distinct], destination[distinct]]), axis=0)
        key = pairs[:, 0] * len(problem.nodes) + pairs[:, 1]
        row = np.searchsorted(key, origin[distinct] * len(problem.nodes) + destination[distinct])
        if not len(row):
            continue
        legs = _leg_problem(problem, pairs[:, 0], pairs[:, 1])
        # demands that share a leg draw paths of their own
        nth = pd.Series(row).groupby(row).cumcount().to_numpy()
        copies = int(nth.max()) + 1
        paths = next_hops.draw_paths(next_hops.find_next_hops(legs), random, copies=copies)
        leg_paths = paths[row * copies + nth]
        place = sp.csr_array(
            (np.ones(len(row)), (wanted[distinct], np.arange(len(row)))), shape=(demands, len(row))
        )
        share = share + place @ leg_paths
    return sp.csr_array(share)


def _leg_problem(problem: Traffic, source: Ints, target: Ints) -> Traffic:
    """Return the same network with a demand of 1 for each leg."""
    names = problem.nodes["node"].to_numpy()
    legs = pd.DataFrame({"source": names[source], "target": names[target], "rate_mbps": 1.0})
    return Traffic(nodes=problem.nodes, links=problem.links, demands=legs)
