"""Valiant load balancing: traffic goes to its target by way of nodes chosen without a look at load."""

from __future__ import annotations

import fnmatch
import time
from typing import Annotated

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from pydantic import Field
from scipy.sparse.csgraph import dijkstra

from planner.errors import InputError, did_you_mean
from planner.options import Options
from planner.system import Decision
from planner_models.traffic import next_hops
from planner_models.traffic import rates as tcp
from planner_models.traffic.problem import Traffic
from planner_models.traffic.rates import Rates
from planner_models.traffic.routing import Routing

Via = Annotated[
    tuple[str, ...],
    Field(
        description="nodes by way of which traffic goes, * ? [..] match; default: those most links away "
        "from where demands start and end, which are the cores of a data center"
    ),
]
Split = Annotated[
    bool, Field(description="every demand goes evenly by way of all these nodes; else by way of one of them")
]
Seed = Annotated[int, Field(ge=0, description="with split = false: by way of which, and on which path")]


def route(
    problem: Traffic,
    *,
    via: Via = (),
    split: Split = True,
    rates: Rates = "given",
    seed: Seed = 0,
    options: Options = Options(),  # noqa: ARG001 - nothing is solved
    previous: Decision[Routing] | None = None,  # noqa: ARG001
) -> Decision[Routing]:
    """Two legs on shortest paths: to a node drawn without a look at load, and from there to the target.

    Only nodes that every source reaches, and that reach every target, are drawn from.

    source  Zhang-Shen and McKeown 2004; VL2: Greenberg et al. 2009; Sen et al. 2013, section 1
    """
    start = time.perf_counter()
    middle = _middle(problem, via)
    if not len(middle):  # nobody wants anything
        share = sp.csr_array((len(problem.demands), len(problem.links)))
        return tcp.carry(problem, share, rates, started=start)
    share = _evenly(problem, middle) if split else _one_each(problem, middle, np.random.default_rng(seed))
    return tcp.carry(problem, share, rates, started=start)


def _middle(problem: Traffic, via: tuple[str, ...]) -> NDArray[np.int64]:
    """The nodes by way of which traffic goes; none where there is no traffic."""
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


def _evenly(problem: Traffic, middle: NDArray[np.int64]) -> sp.csr_array:
    """(K, E): the mean over the middle nodes of even shares on both legs."""
    wanted = problem.rate_mbps > 0
    demands = len(problem.demands)
    share = sp.csr_array((demands, len(problem.links)))
    for own, outward in ((problem.source, True), (problem.target, False)):
        ends = np.unique(own[wanted])
        end, mid = np.repeat(ends, len(middle)), np.tile(middle, len(ends))
        apart = end != mid  # a leg from a node to itself is none
        end, mid = end[apart], mid[apart]
        legs = _legs(problem, end, mid) if outward else _legs(problem, mid, end)
        each = next_hops.even_shares(legs, next_hops.of(legs))
        # from demands to the legs of their end, each a share of 1 / len(middle)
        place = np.searchsorted(ends, own[wanted])
        rows = np.flatnonzero(wanted)
        pick = sp.csr_array((np.ones(len(rows)), (rows, place)), shape=(demands, len(ends)))
        leg_end = np.searchsorted(ends, end)
        mean = np.full(len(end), 1 / len(middle))
        average = sp.csr_array((mean, (leg_end, np.arange(len(end)))), shape=(len(ends), len(end)))
        share = share + pick @ (average @ each)
    return sp.csr_array(share)


def _one_each(problem: Traffic, middle: NDArray[np.int64], random: np.random.Generator) -> sp.csr_array:
    """(K, E): each demand hashed to one middle node, and to one path on each leg."""
    demands = len(problem.demands)
    share = sp.csr_array((demands, len(problem.links)))
    wanted = np.flatnonzero(problem.rate_mbps > 0)
    mid = random.choice(middle, size=len(wanted))
    for one, other in ((problem.source[wanted], mid), (mid, problem.target[wanted])):
        apart = one != other
        pairs = np.unique(np.column_stack([one[apart], other[apart]]), axis=0)
        key = pairs[:, 0] * len(problem.nodes) + pairs[:, 1]
        row = np.searchsorted(key, one[apart] * len(problem.nodes) + other[apart])
        if not len(row):
            continue
        legs = _legs(problem, pairs[:, 0], pairs[:, 1])
        # demands that share a leg draw paths of their own
        nth = pd.Series(row).groupby(row).cumcount().to_numpy()
        copies = int(nth.max()) + 1
        paths = next_hops.random_paths(legs, next_hops.of(legs), random, copies=copies)
        taken = paths[row * copies + nth]
        place = sp.csr_array(
            (np.ones(len(row)), (wanted[apart], np.arange(len(row)))), shape=(demands, len(row))
        )
        share = share + place @ taken
    return sp.csr_array(share)


def _legs(problem: Traffic, source: NDArray[np.int64], target: NDArray[np.int64]) -> Traffic:
    """The same network with a demand of 1 for each leg."""
    names = problem.nodes["node"].to_numpy()
    legs = pd.DataFrame({"source": names[source], "target": names[target], "rate_mbps": 1.0})
    return Traffic(nodes=problem.nodes, links=problem.links, demands=legs)
