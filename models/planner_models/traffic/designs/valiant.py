"""Valiant load balancing: two-phase routing over intermediate nodes, oblivious of load."""

from __future__ import annotations

import fnmatch
from typing import Annotated

import numpy as np
import pandas as pd
import scipy.sparse as sp
from pydantic import Field
from scipy.sparse.csgraph import dijkstra

from planner.arrays import Bools, Ints
from planner.contract.design import Decision
from planner.errors import InputError, did_you_mean
from planner_models.flows import next_hops
from planner_models.traffic.designs.routable import shed_unreachable_by_demand
from planner_models.traffic.plan.flow_decision import Rates, route_shares
from planner_models.traffic.plan.plan import Routing
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


@shed_unreachable_by_demand
def route(
    problem: Traffic, *, via: Via = (), split: Split = True, rates: Rates = "given", seed: Seed = 0
) -> Decision[Routing]:
    """Route each demand on shortest paths to an intermediate node, and from there to its target.

    Intermediate nodes are reachable from every source and reach every target. Where no node is, as in a
    network of several parts, demands are grouped by the nodes that they can pass; a demand that can pass
    none is shed.

    source  Zhang-Shen and McKeown 2004; VL2: Greenberg et al. 2009; Sen et al. 2013, section 1
    """
    share = sp.csr_array((len(problem.demands), len(problem.links)))
    random = np.random.default_rng(seed)
    remaining = problem.rate_mbps > 0
    among = match_nodes(problem, via)
    while remaining.any():
        subproblem = problem.with_rates(np.where(remaining, problem.rate_mbps, 0.0))
        served, middle = _intermediate_nodes(subproblem, among, is_free=not via)
        if not len(middle):
            break
        subproblem = problem.with_rates(np.where(served, problem.rate_mbps, 0.0))
        share = share + (
            _even_shares(subproblem, middle) if split else _hashed_shares(subproblem, middle, random)
        )
        remaining &= ~served
    return route_shares(problem, sp.csr_array(share), rates)


def match_nodes(problem: Traffic, via: tuple[str, ...]) -> Bools:
    """Return the nodes that match one of the patterns, (N,): all where there are none."""
    names = problem.nodes["node"].tolist()
    is_selected = np.full(len(names), not via)
    for pattern in via:
        rows = [
            row for row, name in enumerate(names) if name == pattern or fnmatch.fnmatchcase(name, pattern)
        ]
        if not rows:
            raise InputError(f"via: '{pattern}' matches no node" + did_you_mean(pattern, names))
        is_selected[rows] = True
    return is_selected


def _intermediate_nodes(problem: Traffic, among: Bools, *, is_free: bool) -> tuple[Bools, Ints]:
    """Return demands (K,) and the nodes that all of them can pass: as many demands as possible.

    is_free  of the nodes, only those most links away from where demands start and end
    """
    demands = np.flatnonzero(problem.rate_mbps > 0)
    count = len(problem.nodes)
    graph = sp.csr_array((np.ones(len(problem.links)), (problem.tail, problem.head)), shape=(count, count))
    sources, source = np.unique(problem.source[demands], return_inverse=True)
    targets, target = np.unique(problem.target[demands], return_inverse=True)
    out = dijkstra(graph, indices=sources, unweighted=True)
    back = dijkstra(sp.csr_array(graph.T), indices=targets, unweighted=True)
    usable = among & np.isfinite(out).all(axis=0) & np.isfinite(back).all(axis=0)
    served = problem.rate_mbps > 0
    if not usable.any():
        can_pass = among & np.isfinite(out)[source] & np.isfinite(back)[target]  # (wanted, N)
        best_middle = int(can_pass.sum(axis=0).argmax())
        served[demands] = can_pass[:, best_middle]
        usable = can_pass[can_pass[:, best_middle]].all(axis=0) & can_pass[:, best_middle].any()
        out, back = (
            out[np.unique(source[can_pass[:, best_middle]])],
            back[np.unique(target[can_pass[:, best_middle]])],
        )
    if is_free and usable.any():
        away = np.minimum(out.min(axis=0), back.min(axis=0))
        usable = usable & (away == away[usable].max())
    return served, np.flatnonzero(usable)


def _even_shares(problem: Traffic, middle: Ints) -> sp.csr_array:
    """Return the mean over intermediate nodes of even shares on both legs, shape (K, E)."""
    is_positive = problem.rate_mbps > 0
    demands = len(problem.demands)
    share = sp.csr_array((demands, len(problem.links)))
    for demand_end, is_first_leg in ((problem.source, True), (problem.target, False)):
        ends = np.unique(demand_end[is_positive])
        end, mid = np.repeat(ends, len(middle)), np.tile(middle, len(ends))
        distinct = end != mid  # a leg from a node to itself has no links
        end, mid = end[distinct], mid[distinct]
        ends_of_legs = (end, mid) if is_first_leg else (mid, end)
        each = next_hops.even_shares(next_hops.next_hops_of_legs(problem, *ends_of_legs))
        # from demands to the legs of their end, each a share of 1 / len(middle)
        index = np.searchsorted(ends, demand_end[is_positive])
        rows = np.flatnonzero(is_positive)
        pick = sp.csr_array((np.ones(len(rows)), (rows, index)), shape=(demands, len(ends)))
        leg_end = np.searchsorted(ends, end)
        mean = np.full(len(end), 1 / len(middle))
        average = sp.csr_array((mean, (leg_end, np.arange(len(end)))), shape=(len(ends), len(end)))
        share = share + pick @ (average @ each)
    return sp.csr_array(share)


def _hashed_shares(problem: Traffic, middle: Ints, random: np.random.Generator) -> sp.csr_array:
    """Return the paths of demands hashed to one intermediate node and one path per leg, shape (K, E)."""
    demands = len(problem.demands)
    share = sp.csr_array((demands, len(problem.links)))
    positive = np.flatnonzero(problem.rate_mbps > 0)
    mid = random.choice(middle, size=len(positive))
    for origin, destination in ((problem.source[positive], mid), (mid, problem.target[positive])):
        distinct = origin != destination
        pairs = np.unique(np.column_stack([origin[distinct], destination[distinct]]), axis=0)
        key = pairs[:, 0] * len(problem.nodes) + pairs[:, 1]
        row = np.searchsorted(key, origin[distinct] * len(problem.nodes) + destination[distinct])
        if not len(row):
            continue
        legs = next_hops.next_hops_of_legs(problem, pairs[:, 0], pairs[:, 1])
        # demands that share a leg draw paths of their own
        nth = pd.Series(row).groupby(row).cumcount().to_numpy()
        copies = int(nth.max()) + 1
        paths = next_hops.draw_paths(legs, random, copies=copies)
        leg_paths = paths[row * copies + nth]
        incidence = sp.csr_array(
            (np.ones(len(row)), (positive[distinct], np.arange(len(row)))), shape=(demands, len(row))
        )
        share = share + incidence @ leg_paths
    return sp.csr_array(share)
