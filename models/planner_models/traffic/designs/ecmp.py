"""Equal-cost multipath (ECMP) and shortest-path routing: load-oblivious splits over shortest paths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from planner.contract.design import Decision
from planner.search.judged import feasible
from planner_models.flows import next_hops, split_ratios
from planner_models.flows.reduced_problem import MAX_PAIR_ROWS
from planner_models.graphs.distances import find_distances
from planner_models.traffic.designs.routable import shed_unreachable, shed_unreachable_by_demand
from planner_models.traffic.plan.flow_decision import Rates, route_shares
from planner_models.traffic.plan.plan import Routing, routing_by_target
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.problem.tables import lightest_links

COMPILED_ENTRIES = 100_000
"""Targets times links from which the compiled kernel is used; NumPy needs at most 0.1 s below."""

Seed = Annotated[int, Field(ge=0, description="of the hash that assigns each flow one of its equal paths")]
S_PER_FLOW: Final = 1e-6
"""CPU seconds for a row of the table of flows, to route, list and check it in the fastest such design."""


@shed_unreachable
def route(problem: Traffic, *, rates: Rates = "given") -> Decision[Routing]:
    """Split traffic evenly at every hop over the next hops on shortest paths, as OSPF with ECMP does.

    Uses link weights only. With rates "given" every demand is served and links may be overloaded.
    Models per-packet spraying exactly, and many small hashed flows approximately.

    source  RFC 2328, 16.8; RFC 2992; Sen et al. 2013, section 4.1 (PacketScatter)
    """
    if has_flows_per_target(problem, rates):
        return _route_by_target(problem, is_split=True)
    if len(problem.targets) * len(problem.links) < COMPILED_ENTRIES:
        ratios = split_ratios.split_evenly(problem, split_ratios.shortest_path_links(problem))
        share = split_ratios.apply_ratios(problem, ratios, (problem.rate_mbps > 0).astype(float))
    else:
        share = next_hops.even_shares(next_hops.find_next_hops(problem))
    return route_shares(problem, sp.csr_array(share), rates)


@shed_unreachable_by_demand
def route_hashed(problem: Traffic, *, rates: Rates = "given", seed: Seed = 0) -> Decision[Routing]:
    """Route every demand unsplit on one equal-cost path: at each hop by a random next hop.

    Models ECMP where a demand is a single flow.

    source  RFC 2992; Sen et al. 2013, section 7.2
    """
    paths = next_hops.draw_stable_paths(problem, np.random.default_rng(seed))
    return route_shares(problem, paths, rates)


@shed_unreachable
def route_single(problem: Traffic, *, rates: Rates = "given") -> Decision[Routing]:
    """Route every demand on one shortest path; among equal paths by the first link in the table.

    Uses link weights only. With rates "given" every demand is served and links may be overloaded.

    source  RFC 2328, 16.1
    """
    if has_flows_per_target(problem, rates):
        return _route_by_target(problem, is_split=False)
    ratios = split_ratios.take_first_link(problem, split_ratios.shortest_path_links(problem))
    share = split_ratios.apply_ratios(problem, ratios, (problem.rate_mbps > 0).astype(float))
    return route_shares(problem, sp.csr_array(share), rates)


def has_flows_per_target(problem: Traffic, rates: Rates) -> bool:
    """Return whether plans list the flows to each target, as those of each demand are too many.

    Traffic to a target splits alike, wherever it comes from; rates of TCP need the flows of each demand.
    """
    if rates != "given" or int((problem.rate_mbps > 0).sum()) * len(problem.nodes) <= MAX_PAIR_ROWS:
        return False
    return count_flows(problem) > MAX_PAIR_ROWS


def _route_by_target(problem: Traffic, *, is_split: bool) -> Decision[Routing]:
    """Return the decision with flows per target; traffic splits evenly or takes the first next hop."""
    flow = next_hops.flow_by_target(next_hops.find_next_hops(problem), problem.rate_mbps, is_split=is_split)
    proof = feasible()
    return Decision(plan=routing_by_target(problem, flow), proof=proof, guarantees=frozenset({"demand"}))


def tell_listing_time(problem: Traffic, parameters: Mapping[str, Any], limit_s: float) -> str:  # noqa: ARG001
    """Return the reason for which a time limit is too short to list all flows; "" if it may suffice.

    Each demand has a flow on as many links as its shortest path has, or more.
    """
    demands = int((problem.rate_mbps > 0).sum())
    if S_PER_FLOW * demands * len(problem.nodes) <= limit_s:
        return ""
    flows = count_flows(problem)
    if S_PER_FLOW * flows <= limit_s:
        return ""
    return (
        f"the flows of {demands:,} demands on {flows:,} links in all take {S_PER_FLOW * flows:.0f} s or more "
        f"to route, list and check; the time limit is {limit_s:g} s"
    )


def count_flows(problem: Traffic) -> int:
    """Return the sum over demands with a rate and a path of the fewest links between their ends."""
    weight = problem.weight[0]
    if (problem.weight == weight).all():
        distance = problem.distance
    else:
        weight, ones = 1.0, np.ones(len(problem.links))
        unit = lightest_links(len(problem.nodes), problem.tail, problem.head, ones)
        distance = find_distances(unit, problem.targets)
    has_rate = problem.rate_mbps > 0
    far = distance[problem.target_row[has_rate], problem.source[has_rate]]
    return round(float(far[np.isfinite(far)].sum() / weight))
