"""Fibbing: fake nodes in OSPF give routers the splits of an optimum."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Final

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from planner.arrays import Bools, Floats, Ints
from planner.contract.design import Decision
from planner.options import Options
from planner.search.judged import judged
from planner.search.tolerances import OPTIMALITY, ROUNDING
from planner_models.flows import split_ratios
from planner_models.graphs.indexing import sum_by_index
from planner_models.traffic.designs.optimum import optimum
from planner_models.traffic.designs.routable import shed_unreachable
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan.flow_decision import ALL_SERVED
from planner_models.traffic.plan.lies import list_lies
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic

MOST_COPIES: Final = 64

Copies = Annotated[
    int,
    Field(
        ge=1,
        le=MOST_COPIES,
        description="most fake nodes of a router for a target; splits are multiples of one over their number",
    ),
]


@shed_unreachable
def route(problem: Traffic, *, copies: Copies = 8, options: Options = Options()) -> Decision[Routing]:
    """Give OSPF the splits of the routing of least utilization, by fake nodes that a controller announces.

    The optimum's traffic to each target takes links without cycles. Where a router's next hops are not
    those of plain OSPF, it learns of fake nodes that are nearer to the target than its shortest path: so many
    behind each next hop as its share asks for, `copies` in all at most. Only that router sees them, and
    its splits are the nearest to the optimum's. After a failure fake nodes are withdrawn, and traffic takes
    the shortest paths of plain OSPF.

    The bound is the least utilization of all routings that serve all demand.

    returns  Decision with a Routing that has `lies`: every demand at its rate; links may be overloaded
    source   Vissicchio, Tilmans, Vanbever and Rexford 2015 (Fibbing); Mukerjee 2018, 1.2.2
    """
    best = optimum.route(problem, objective="utilization", options=options)
    if best.plan is None:
        return best
    flow = sp.coo_array(routing.flow_by_target(problem, best.plan))
    flow.sum_duplicates()
    target_ratios = split_ratios.ratios_of_solution(problem, flow)
    rounded = round_ratios(problem, target_ratios, copies)
    ratios = split_ratios.compute_ratios(problem, rounded)
    sent = split_ratios.apply_ratios(problem, ratios, problem.rate_mbps)
    passed = np.zeros((len(problem.targets), len(problem.nodes)), dtype=bool)
    passed[problem.target_row[sent.row], problem.tail[sent.col]] = True
    listed = differs_from_plain(problem, ratios) & passed[rounded.row, problem.tail[rounded.col]]
    lies = sp.coo_array(
        (rounded.data[listed], (rounded.row[listed], rounded.col[listed])), shape=rounded.shape
    )
    plan = replace(routing.routing_by_demand(problem, sent), lies=list_lies(problem, lies))
    value, bound = float(plan.links["utilization"].max()), best.proof.bound
    proof = judged(
        "min",
        value,
        bound,
        gap=OPTIMALITY if options.gap is None else options.gap,
        metric="max_utilization",
        bound_scope=None if bound is None else ALL_SERVED,
        backend=best.proof.backend,
    )
    return Decision(plan=plan, proof=proof, guarantees=frozenset({"demand"}))


def round_ratios(problem: Traffic, ratios: sp.coo_array, copies: int) -> sp.coo_array:
    """Return the entries of next hops, (D, E), with the shares that are nearest to given ratios.

    Of each number of entries up to `copies`, ratios are rounded by largest remainders; the number with the
    least largest error is taken, the smallest of equal ones. Links with no entry are left out.
    """
    _, group = np.unique(_routers(problem, ratios), return_inverse=True)
    count = int(group.max(initial=-1)) + 1
    entries, error = np.zeros(len(ratios.data)), np.full(count, np.inf)
    for number in range(1, copies + 1):
        rounded = _round_to(ratios.data, group, number)
        off = np.zeros(count)
        np.maximum.at(off, group, np.abs(rounded / number - ratios.data))
        is_better = off < error - ROUNDING
        error[is_better] = off[is_better]
        entries = np.where(is_better[group], rounded, entries)
    is_used = entries > 0
    return sp.coo_array((entries[is_used], (ratios.row[is_used], ratios.col[is_used])), shape=ratios.shape)


def _round_to(share: Floats, group: Ints, number: int) -> Floats:
    """Return integers near `number` times shares that add up to it in each group, by largest remainders."""
    exact = share * number
    low = np.floor(exact + ROUNDING)
    missing = np.rint(number - sum_by_index(group, low, int(group.max(initial=-1)) + 1))
    order = np.lexsort((low - exact, group))
    first = np.r_[0, np.flatnonzero(np.diff(group[order])) + 1]
    position = np.arange(len(order)) - np.repeat(first, np.diff(np.r_[first, len(order)]))
    low[order] += position < missing[group[order]]
    return low


def differs_from_plain(problem: Traffic, ratios: sp.coo_array) -> Bools:
    """Return for each entry of ratios, (D, E), whether its router splits otherwise under plain OSPF."""
    plain = split_ratios.split_evenly(problem, split_ratios.shortest_path_links(problem))
    difference = sp.coo_array(abs(sp.csr_array(ratios) - sp.csr_array(plain)))
    differs = difference.data > ROUNDING
    routers = (
        difference.row[differs].astype(np.int64) * len(problem.nodes) + problem.tail[difference.col[differs]]
    )
    return np.asarray(np.isin(_routers(problem, ratios), routers))


def _routers(problem: Traffic, entries: sp.coo_array) -> Ints:
    """Return a number for the target and the router of each entry."""
    return np.asarray(entries.row.astype(np.int64) * len(problem.nodes) + problem.tail[entries.col])
