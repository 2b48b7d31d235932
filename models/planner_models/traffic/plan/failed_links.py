"""A fixed plan after failures: traffic on failed links is lost, other traffic stays as it is."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from planner.arrays import Bools, Floats
from planner.contract.notes import add_note
from planner.formatting import amount_or_number, counted, few
from planner_models.traffic.plan.delivery import pass_links
from planner_models.traffic.plan.flow_check import check_flow
from planner_models.traffic.plan.plan import (
    SHED_TOLERANCE,
    Routing,
    list_demands,
    routing_by_demand,
    routing_by_target,
    routing_from_tables,
)
from planner_models.traffic.plan.references import flow_on_routes, links_of_routes, list_routes
from planner_models.traffic.plan.verified_flow import VerifiedFlow, verify_flow
from planner_models.traffic.problem.problem import Traffic

ROUTES_ONLY: Final = ("flows", "routes", "shed")


class Surviving(NamedTuple):
    """The rest of a flow: flow_mbps (C, E) of each commodity, and served_mbps (K,) of each demand."""

    flow_mbps: sp.csr_array
    served_mbps: Floats


def read_routing(problem: Traffic, tables: Mapping[str, pd.DataFrame]) -> Routing:
    """Read a plan as `routing_from_tables`; traffic on links that have failed since is lost.

    raises  PlanRejected where the plan is none for the network without the failures either
    """
    if problem.down is None:
        return routing_from_tables(problem, tables)
    failed = _failed_links(problem)
    if not _take_failed(tables, failed):
        return routing_from_tables(problem, _without_links(tables, failed))
    up, down = problem.numbered_links, problem.down
    capacity = np.where(down["capacity_mbps"] > 0, down["capacity_mbps"], 1.0)
    links = pd.concat([up, down.assign(capacity_mbps=capacity)], ignore_index=True)
    complete = replace(problem, links=links, down=None)
    plan = routing_from_tables(complete, {name: tables[name] for name in ROUTES_ONLY if name in tables})
    flow = verify_flow(complete, plan)
    check_flow(complete, plan, flow)  # refuses what is no flow
    is_down = np.arange(len(links)) >= len(up)
    if plan.routes is None:
        surviving = survive(complete, flow, is_down)
        flow_kept = sp.csr_array(surviving.flow_mbps[:, : len(up)])
        if flow.by_demand:
            routing = routing_by_demand(problem, flow_kept)
        else:
            routing = routing_by_target(problem, flow_kept, flow.commodity)
        served = surviving.served_mbps
    else:
        uses = links_of_routes(complete, plan.routes, list_routes(complete, plan.routes))
        alive = np.asarray(uses[:, is_down].sum(axis=1)).ravel() == 0
        routes = plan.routes[alive].reset_index(drop=True)
        routing = routing_by_demand(problem, flow_on_routes(problem, routes), routes)
        served = verify_flow(problem, routing).served_mbps
    lost = np.maximum(flow.served_mbps - served, 0.0)
    lost = np.where(lost > SHED_TOLERANCE * problem.rate_mbps, lost, 0.0)
    rode = np.flatnonzero(is_down & (flow.load_mbps > 0))
    names = [complete.link_labels[link] for link in rode.tolist()]
    add_note(
        f"warning: the plan uses links that have failed ({few(names)}): "
        f"{amount_or_number(float(lost.sum()), 'Mbit/s')} of "
        f"{counted(int(np.count_nonzero(lost)), 'demands')} are lost"
    )
    return replace(
        routing,
        shed=plan.shed,
        lost=list_demands(problem, lost),
        failed=pd.DataFrame({"link": names, "rate_mbps": flow.load_mbps[rode]}),
    )


_Link = tuple[str, str, int]
"""Tail, head and parallel number of a link."""


def _failed_links(problem: Traffic) -> set[_Link]:
    """Return the links that are down, and have no name of a link that is up."""
    assert problem.down is not None
    up = set(zip(problem.links["tail"], problem.links["head"], problem.parallel.tolist(), strict=True))
    number = np.maximum(problem.down["parallel"].to_numpy(int), 1).tolist()
    return set(zip(problem.down["tail"], problem.down["head"], number, strict=True)) - up


def _links_in(table: pd.DataFrame) -> list[_Link]:
    """Return the link of each row of a table with tail and head; none of a faulty table."""
    if not {"tail", "head"} <= set(table):
        return []
    numbers = table["parallel"].tolist() if "parallel" in table else [1] * len(table)
    return list(zip(table["tail"].astype(str), table["head"].astype(str), numbers, strict=True))


def _take_failed(tables: Mapping[str, pd.DataFrame], failed: set[_Link]) -> bool:
    """Return whether flows, or routes without flows, take a failed link."""
    if "flows" in tables:
        return not failed.isdisjoint(_links_in(tables["flows"]))
    ends = {(tail, head) for tail, head, _ in failed}
    routes = tables.get("routes")
    if routes is None or "path" not in routes:
        return False
    return any(_steps(text) & ends for text in routes["path"].astype(str).tolist())


def _without_links(tables: Mapping[str, pd.DataFrame], failed: set[_Link]) -> dict[str, pd.DataFrame]:
    """Return the tables without the rows about failed links, of plans that do not take them."""
    remaining_tables = dict(tables)
    for name in ("links", "weights"):
        if name in tables and (named := _links_in(tables[name])):
            remaining_tables[name] = tables[name][[link not in failed for link in named]]
    return remaining_tables


def _steps(text: str) -> set[tuple[str, str]]:
    """Return the steps between nodes of a path of the table `routes`; none where it is no path."""
    try:
        path = json.loads(text)
    except ValueError:
        return set()
    return set(itertools.pairwise(path)) if isinstance(path, list) else set()


def survive(problem: Traffic, flow: VerifiedFlow, down: Bools) -> Surviving:
    """Return the arrivals of a flow with some links, (E,), passing nothing; lost traffic loads no link."""
    if not (flow.load_mbps[down] > 0).any():
        return Surviving(flow.flow_mbps, flow.served_mbps)
    passed = np.where(down, 0.0, 1.0)
    amount, share = pass_links(problem, flow, down, passed)
    return Surviving(amount, flow.served_mbps * share)
