"""Equal-cost multipath: traffic divides over the next hops on shortest paths, without a look at load."""

from __future__ import annotations

import time
from typing import Annotated

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from planner.options import Options
from planner.system import Decision
from planner_models.traffic import next_hops, splits
from planner_models.traffic import rates as tcp
from planner_models.traffic.problem import Traffic
from planner_models.traffic.rates import Rates
from planner_models.traffic.routing import Routing

WORTH_COMPILING = 100_000
"""Targets times links below which NumPy is done (0.1 s) long before the first compilation is."""

Seed = Annotated[int, Field(ge=0, description="which of its equal paths each flow is hashed to")]


def route(
    problem: Traffic,
    *,
    rates: Rates = "given",
    options: Options = Options(),  # noqa: ARG001 - nothing is solved
    previous: Decision[Routing] | None = None,  # noqa: ARG001
) -> Decision[Routing]:
    """Even split at every hop over the next hops on shortest paths, as OSPF with ECMP does.

    Looks at link weights only. With rates "given" every demand is served and links may be
    overloaded. Many small flows hashed to next hops come close to this; packets scattered over
    them are just this.

    source  RFC 2328, 16.8; RFC 2992; Sen et al. 2013, section 4.1 (PacketScatter)
    """
    start = time.perf_counter()
    if len(problem.targets) * len(problem.links) < WORTH_COMPILING:
        even = splits.even(problem, splits.shortest_links(problem))
        share = sp.csr_array(splits.follow(problem, even, (problem.rate_mbps > 0).astype(float)))
    else:
        share = next_hops.even_shares(problem, next_hops.of(problem))
    return tcp.carry(problem, share, rates, started=start)


def route_hashed(
    problem: Traffic,
    *,
    rates: Rates = "given",
    seed: Seed = 0,
    options: Options = Options(),  # noqa: ARG001
    previous: Decision[Routing] | None = None,  # noqa: ARG001
) -> Decision[Routing]:
    """Every demand whole on one equal-cost path: at each hop a random one of the next hops.

    What ECMP does to a demand that is a single flow.

    source  RFC 2992; Sen et al. 2013, section 7.2
    """
    start = time.perf_counter()
    share = next_hops.random_paths(problem, next_hops.of(problem), np.random.default_rng(seed))
    return tcp.carry(problem, share, rates, started=start)


def route_single(
    problem: Traffic,
    *,
    rates: Rates = "given",
    options: Options = Options(),  # noqa: ARG001
    previous: Decision[Routing] | None = None,  # noqa: ARG001
) -> Decision[Routing]:
    """Every demand on one shortest path; of equal paths the one whose links stand first in the table.

    Looks at link weights only. With rates "given" every demand is served and links may be overloaded.

    source  RFC 2328, 16.1
    """
    start = time.perf_counter()
    ratios = splits.first(problem, splits.shortest_links(problem))
    wanted = (problem.rate_mbps > 0).astype(float)
    return tcp.carry(problem, sp.csr_array(splits.follow(problem, ratios, wanted)), rates, started=start)
