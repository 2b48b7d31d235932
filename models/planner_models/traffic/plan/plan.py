"""Plan of system `traffic`: the flow of each demand on each link."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pandas as pd
import scipy.sparse as sp

from planner.arrays import Floats, Ints
from planner.contract.table import Table
from planner.contract.tables import TEXT, validate
from planner.contract.tolerances import RELATIVE, ROUNDING
from planner.errors import PlanRejected
from planner_models.graphs.indexing import sum_at_nodes, sum_by_index
from planner_models.traffic.plan.references import flow_on_routes, require_links
from planner_models.traffic.plan.schema import (
    FLOWS,
    GROUPS,
    GUARANTEES,
    LEVELS,
    LIES,
    LINKS,
    MOVED,
    REROUTING,
    ROUTES,
    SHARES,
    SHED,
    WEIGHTS,
    WINDOWS,
    WORST_MATRICES,
)
from planner_models.traffic.plan.segments import SEGMENTS
from planner_models.traffic.problem.problem import Traffic

SHED_TOLERANCE: Final = RELATIVE  # of a demand; less is rounding


@dataclass(frozen=True, kw_only=True, eq=False)
class Routing:
    """Flow of each demand on each link.

    flows   source, target, tail, head, parallel, rate_mbps; without the column `source` the flows of
            all demands to a target are one (then each node's surplus is its own demand), with classes
            those of each class
    links   tail, head, parallel, load_mbps, utilization; one row for each link of the network
    routes  source, target, path, rate_mbps where traffic follows whole paths, else None
    shed    source, target, rate_mbps of demand that is left out; None where all is sent
    weights tail, head, parallel, weight of each link where ECMP with these weights makes the flows
    lies    target, tail, head, parallel, fake_nodes where OSPF with these fake nodes makes the flows
    groups  node, target, head, parallel, entries, ideal_share where traffic splits over weighted next hops
    segments source, target, segments, share where demands follow segment lists; others shortest paths
    levels  level, value, bound, demands of the levels of max-min fairness, of a design that proves them
    moved   source, target, rate_mbps of traffic off its present routes, of a plan that starts from them
    windows window, element where links and nodes are drained in maintenance windows
    guarantees  source, target, rate_mbps, failures, at_once, restoration, availability? of traffic that
            arrives in failures too, of a design that claims some
    rerouting  metric, value, free_value, gain_per_point, ... where the rerouted traffic is limited
    shares  source, target, tail, head, parallel, share where demands have fixed shares, at any rates
    worst_matrices  matrix, source, target, rate_mbps of those that shares are made for
    lost, failed  source, target, rate_mbps of traffic that is lost, as its links have failed since the plan
            was made, and link, rate_mbps of these; None where none has

    Where demands have classes, flows, routes, shed, segments, moved and guarantees have the column `class`.
    """

    flows: pd.DataFrame
    links: pd.DataFrame
    routes: pd.DataFrame | None = None
    shed: pd.DataFrame | None = None
    weights: pd.DataFrame | None = None
    lies: pd.DataFrame | None = None
    groups: pd.DataFrame | None = None
    segments: pd.DataFrame | None = None
    levels: pd.DataFrame | None = None
    moved: pd.DataFrame | None = None
    windows: pd.DataFrame | None = None
    guarantees: pd.DataFrame | None = None
    rerouting: pd.DataFrame | None = None
    shares: pd.DataFrame | None = None
    worst_matrices: pd.DataFrame | None = None
    lost: pd.DataFrame | None = None
    failed: pd.DataFrame | None = None

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables flows, links and, where there are any, those that `PLAN_TABLES` has besides."""
        tables = {
            "flows": self.flows,
            "links": self.links,
            "routes": self.routes,
            "shed": self.shed,
            "weights": self.weights,
            "lies": self.lies,
            "groups": self.groups,
            "segments": self.segments,
            "levels": self.levels,
            "moved": self.moved,
            "windows": self.windows,
            "guarantees": self.guarantees,
            "rerouting": self.rerouting,
            "shares": self.shares,
            "worst_matrices": self.worst_matrices,
        }
        return {name: table for name, table in tables.items() if table is not None}


def routing_by_demand(problem: Traffic, flow_mbps: sp.sparray, routes: pd.DataFrame | None = None) -> Routing:
    """Return the plan of a flow per demand and link, (K, E) Mbit/s."""
    flow = _drop_residual_flow(problem, flow_mbps)
    shed = list_shed(problem, sent_by_demand(problem, flow))
    return _build_routing(problem, flow, _name_demands(problem, flow.row), routes, shed)


def routing_by_target(problem: Traffic, flow_mbps: sp.sparray, commodity: Ints | None = None) -> Routing:
    """Return the plan of a flow per target and link, (D, E) Mbit/s, for plans too large to list by demand.

    commodity  (D,) class and target of each row, as in `problem.commodity`, ascending; needed with classes
    """
    if commodity is None:
        commodity = problem.targets
        if problem.has_classes and flow_mbps.nnz:
            raise ValueError("demands have classes: flows per target need the class of each")
    by_target = sp.csr_array(flow_mbps, copy=True)
    by_target.sum_duplicates()
    by_target.data[by_target.data < 0] = 0.0
    by_target.eliminate_zeros()
    flow = by_target.tocoo()
    shed = list_shed(problem, _sent_by_target(problem, by_target, commodity))
    of_class, target = np.divmod(commodity, len(problem.nodes))
    names = {
        "target": _node_names(problem, target[flow.row]),
        **_name_classes(problem, of_class[flow.row]),
    }
    return _build_routing(problem, flow, names, None, shed)


def routing_from_tables(problem: Traffic, tables: Mapping[str, pd.DataFrame]) -> Routing:
    """Read the plan in the tables `flows` or `routes`; PlanRejected where there is none."""

    def read(table: Table) -> pd.DataFrame | None:
        frame = tables.get(table.name)
        return None if frame is None else validate(table, frame, where=f"plan: {table.name}")

    link_table, routes, shed, weights = read(LINKS), read(ROUTES), read(SHED), read(WEIGHTS)
    segments, levels, moved, windows = read(SEGMENTS), read(LEVELS), read(MOVED), read(WINDOWS)
    guarantees = read(GUARANTEES)
    if "flows" in tables:
        flows = validate(FLOWS, tables["flows"], where="plan: flows")
        columns = ["source", "target", *(["class"] if problem.has_classes else [])]
        names = {name: flows[name] for name in columns if name in flows}
        link = require_links(problem, flows["tail"], flows["head"], flows["parallel"], "flows")
        row = np.arange(len(flows))
        rate = flows["rate_mbps"].to_numpy(float)
        flow = sp.coo_array((rate, (row, link)), shape=(len(flows), len(problem.links)))
        plan = _build_routing(problem, flow, names, routes, shed)
    elif routes is not None:
        plan = routing_by_demand(problem, flow_on_routes(problem, routes), routes)
        shed = plan.shed if shed is None else shed
    else:
        raise PlanRejected("plan: has neither a table 'flows' nor 'routes'")
    return replace(
        plan,
        links=plan.links if link_table is None else link_table,
        shed=shed,
        weights=weights,
        lies=read(LIES),
        groups=read(GROUPS),
        segments=segments,
        levels=levels,
        moved=moved,
        windows=windows,
        guarantees=guarantees,
        rerouting=read(REROUTING),
        shares=read(SHARES),
        worst_matrices=read(WORST_MATRICES),
    )


def list_shed(problem: Traffic, sent_mbps: Floats) -> pd.DataFrame | None:
    """Return the table `shed` of a plan that sends these rates (K,), Mbit/s; None where it sends all."""
    missing = problem.rate_mbps - sent_mbps
    return list_demands(problem, np.where(missing > SHED_TOLERANCE * problem.rate_mbps, missing, 0.0))


def list_demands(problem: Traffic, amount_mbps: Floats) -> pd.DataFrame | None:
    """Return a table of the demands with an amount above 0, (K,), Mbit/s; None where there is none."""
    rows = np.flatnonzero(amount_mbps > 0)
    if not len(rows):
        return None
    return pd.DataFrame({**_name_demands(problem, rows), "rate_mbps": amount_mbps[rows]})


def sent_by_demand(problem: Traffic, flow_mbps: sp.sparray) -> Floats:
    """Return the flow from the source of each demand, less returning flow, of flows (K, E): shape (K,)."""
    flow = sp.coo_array(flow_mbps)
    source = problem.source[flow.row]
    sign = (problem.tail[flow.col] == source).astype(float) - (problem.head[flow.col] == source)
    return sum_by_index(flow.row, flow.data * sign, len(problem.demands))


def _sent_by_target(problem: Traffic, flow: sp.csr_array, commodity: Ints) -> Floats:
    """Return the flow of each demand, (K,), of flows per target (D, E); within rounding errors its rate."""
    demands = np.flatnonzero(problem.rate_mbps > 0)
    if problem.has_classes:
        row = np.minimum(np.searchsorted(commodity, problem.commodity[demands]), max(len(commodity) - 1, 0))
        listed = commodity[row] == problem.commodity[demands] if len(commodity) else np.zeros(len(row), bool)
        demands, row = demands[listed], row[listed]
    else:
        row = problem.target_row[demands]
    source = problem.source[demands]
    sent = np.zeros(len(problem.demands))
    for first, surplus, passing in sum_at_nodes(flow, problem.tail, problem.head, len(problem.nodes)):
        here = (
            slice(None) if len(surplus) == len(commodity) else (row >= first) & (row < first + len(surplus))
        )
        cell = row[here] - first, source[here]
        # the surplus of a small demand drowns in the rounding errors of much traffic through its source
        sent[demands[here]] = surplus[cell] + ROUNDING * passing[cell]
    return sent


def flow_by_demand(problem: Traffic, plan: Routing) -> sp.csr_array:
    """Return the flow of each demand on each link, (K, E) Mbit/s, of a plan with sources."""
    flows = plan.flows
    demand = problem.find_demands(flows)
    link = require_links(problem, flows["tail"], flows["head"], flows["parallel"], "flows")
    shape = (len(problem.demands), len(problem.links))
    return sp.csr_array((flows["rate_mbps"].to_numpy(float), (demand, link)), shape=shape)


def flow_by_target(problem: Traffic, plan: Routing) -> sp.csr_array:
    """Return the flow to each target on each link, (D, E) Mbit/s, of any plan."""
    flows = plan.flows  # of each class, where demands have classes
    row = np.searchsorted(problem.targets, problem.find_nodes(flows["target"]))
    link = require_links(problem, flows["tail"], flows["head"], flows["parallel"], "flows")
    shape = (len(problem.targets), len(problem.links))
    return sp.csr_array((flows["rate_mbps"].to_numpy(float), (row, link)), shape=shape)


def _drop_residual_flow(problem: Traffic, flow_mbps: sp.sparray) -> sp.coo_array:
    """Return the flow per demand, (K, E), without entries below 1e-9 of the demand's largest one.

    Solvers leave such entries, which would make plans large and unreadable.
    """
    flow = sp.coo_array(flow_mbps)
    flow.sum_duplicates()
    largest = np.zeros(len(problem.demands))
    np.maximum.at(largest, flow.row, flow.data)
    keep = flow.data > 1e-9 * largest[flow.row]
    return sp.coo_array((flow.data[keep], (flow.row[keep], flow.col[keep])), shape=flow.shape)


def _build_routing(
    problem: Traffic,
    flow: sp.coo_array,
    names: Mapping[str, pd.Series | pd.Categorical],
    routes: pd.DataFrame | None,
    shed: pd.DataFrame | None,
) -> Routing:
    flows = pd.DataFrame(
        {
            **names,
            "tail": _node_names(problem, problem.tail[flow.col]),
            "head": _node_names(problem, problem.head[flow.col]),
            "parallel": problem.parallel[flow.col],
            "rate_mbps": flow.data,
        }
    )
    load = sum_by_index(flow.col, flow.data, len(problem.links))
    links = pd.DataFrame(
        {
            "tail": _texts_of(problem.links["tail"]),
            "head": _texts_of(problem.links["head"]),
            "parallel": problem.parallel,
            "load_mbps": load,
            "utilization": load / problem.capacity_mbps,
        }
    )
    return Routing(flows=flows, links=links, routes=routes, shed=shed)


def _texts_of(names: pd.Series) -> Any:
    """Return the texts of a column, as they are where they are no categories."""
    return names.array if names.dtype == TEXT else names.to_numpy()


def _name_demands(problem: Traffic, demands: Ints) -> dict[str, pd.Categorical]:
    """Return the columns that tell demands apart: source, target and, with classes, class."""
    ends = {
        "source": _node_names(problem, problem.source[demands]),
        "target": _node_names(problem, problem.target[demands]),
    }
    return {**ends, **_name_classes(problem, problem.class_of[demands])} if problem.has_classes else ends


def _name_classes(problem: Traffic, of_class: Ints) -> dict[str, pd.Categorical]:
    """Return the column `class` of rows of `class_table`; none without classes."""
    if not problem.has_classes:
        return {}
    return {"class": pd.Categorical.from_codes(of_class, categories=pd.Index(problem.class_table["class"]))}


def _node_names(problem: Traffic, codes: Ints) -> pd.Categorical:
    return pd.Categorical.from_codes(codes, categories=problem.node_index)
