"""Exits between networks: BGP selects the next network, and shortest paths within each lead to the exit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.contract.design import Decision
from planner.options import Options
from planner_models.flows.split_ratios import WEIGHT_TOLERANCE
from planner_models.traffic.designs.group_next_hops import (
    decide_by_next_hops,
    distances_over,
    links_on_way,
    read_groups,
)
from planner_models.traffic.designs.routable import shed_unreachable
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic

Rule = Literal["hot_potato", "med", "exchanged_cost"]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Networks:
    """Networks, which are the groups of nodes, and the distances within them.

    group    (N,) network of each node
    count    number of networks
    inside   (E,) links within a network
    exits    (X,) links from one network to another
    to_exit  (X, N) distance to the tail of each exit within its network; inf without a path
    """

    group: Ints
    count: int
    inside: Bools
    exits: Ints
    to_exit: Floats


def _route(problem: Traffic, rule: Rule, options: Options) -> Decision[Routing]:
    group, names = read_groups(problem)
    inside = group[problem.tail] == group[problem.head]
    exits = np.flatnonzero(~inside)
    networks = _Networks(
        group=group,
        count=len(names),
        inside=inside,
        exits=exits,
        to_exit=distances_over(problem, inside, problem.tail[exits]),
    )
    own = distances_over(problem, inside, problem.targets)
    uses = np.zeros((len(problem.targets), len(problem.links)), dtype=bool)
    for row, target in enumerate(problem.targets.tolist()):
        uses[row] = _find_next_hops(problem, networks, own[row], rule) & (problem.tail != target)
    return decide_by_next_hops(problem, uses, must_serve=options.service == "all")


@shed_unreachable
def route_hot_potato(problem: Traffic, *, options: Options = Options()) -> Decision[Routing]:
    """Send traffic to other networks by the nearest exit of those on the fewest networks to the target.

    Networks are groups of nodes. Within a network traffic splits evenly over shortest paths. Each network
    uses the link weights inside it and nothing that the next one says.

    source  RFC 4271, 9.1.2.2 a, d and e (path length, own exits, interior cost); Mukerjee 2018, 1.1
    """
    return _route(problem, "hot_potato", options)


@shed_unreachable
def route_med(problem: Traffic, *, options: Options = Options()) -> Decision[Routing]:
    """Send traffic by the exits that the next network ranks first, and of these by the nearest.

    As hot potato, but the next network announces multi-exit discriminators (MEDs): its own distance from
    each of its entries to the target, or to its own exit. They are compared among exits to the same network.

    source  RFC 4271, 9.1.2.2 c; RFC 4451; Mukerjee 2018, 1.1 (priority ranking)
    """
    return _route(problem, "med", options)


@shed_unreachable
def route_exchanged_cost(problem: Traffic, *, options: Options = Options()) -> Decision[Routing]:
    """Send traffic by the exit of least cost of all networks on the way, which they tell each other.

    The cost of an exit is the distance to it, its weight, and what the next network announces, which is the
    same for its part. Weights of all networks are in one unit here, so that costs are not normalized.

    source  Mahajan, Wetherall and Anderson 2007 (Wiser); Mukerjee 2018, 1.2.2
    """
    return _route(problem, "exchanged_cost", options)


def describe_networks(problem: Traffic, parameters: Mapping[str, Any]) -> str:  # noqa: ARG001
    """Return that all nodes are in one network, in which there are no exits; "" where there are several."""
    several = len(np.unique(read_groups(problem)[0])) > 1
    return "" if several else "all nodes are in one group, so that no traffic leaves its network"


def _find_next_hops(problem: Traffic, networks: _Networks, own: Floats, rule: Rule) -> Bools:
    """Return the links, (E,), by which nodes send traffic to a target.

    own  (N,) distance to the target within its network, inf elsewhere

    Networks are added by the number of networks to the target. Where a network falls apart, its parts are
    added one after the other, and none takes a way through another one.
    """
    cost = own.copy()  # that a node announces to other networks
    length = np.where(np.isfinite(own), 0, -1)
    passed = np.zeros((len(own), networks.count), dtype=bool)  # networks on the ways from a node
    passed[np.isfinite(own), networks.group[np.isfinite(own)]] = True
    uses = links_on_way(problem, networks.inside, own)
    tail, head = problem.tail[networks.exits], problem.head[networks.exits]
    extra = partial(_cost_of_exits, problem, networks, rule)
    hops = 1
    while hops <= networks.count:
        is_loop = passed[head, networks.group[tail]]
        usable = np.flatnonzero((length[head] == hops - 1) & (length[tail] < 0) & ~is_loop)
        if not len(usable):
            hops += 1
            continue
        usable = usable[extra(usable, cost) < np.inf]
        sums = networks.to_exit[usable] + extra(usable, cost)[:, None]
        least = sums.min(axis=0, initial=np.inf)
        is_new = np.isfinite(least) & (length < 0)
        usable, sums = usable[is_new[tail[usable]]], sums[is_new[tail[usable]]]
        way = np.where(is_new, least, np.inf)
        uses |= links_on_way(problem, networks.inside, way)
        is_taken = sums[np.arange(len(usable)), tail[usable]] <= way[tail[usable]] * (1 + WEIGHT_TOLERANCE)
        uses[networks.exits[usable[is_taken]]] = True
        for exit_row, reached in zip(usable, np.isfinite(sums) & is_new, strict=True):
            passed[reached] |= passed[head[exit_row]]
            passed[reached, networks.group[tail[exit_row]]] = True
        cost[is_new], length[is_new] = least[is_new], hops
    return uses


def _cost_of_exits(problem: Traffic, networks: _Networks, rule: Rule, usable: Ints, cost: Floats) -> Floats:
    """Return the cost that a rule adds to the way to each usable exit, (U,); inf: it is not taken.

    cost  (N,) that nodes of other networks announce
    """
    link = networks.exits[usable]
    announced = cost[problem.head[link]]
    if rule == "exchanged_cost":
        return np.asarray(problem.weight[link] + announced)
    if rule == "hot_potato":
        return np.zeros(len(usable))
    tail, head = networks.group[problem.tail[link]], networks.group[problem.head[link]]
    pair = tail * networks.count + head
    least = np.full(networks.count**2, np.inf)
    np.minimum.at(least, pair, announced)
    return np.where(announced <= least[pair] * (1 + WEIGHT_TOLERANCE), 0.0, np.inf)
