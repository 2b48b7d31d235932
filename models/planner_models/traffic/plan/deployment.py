"""Tables that deploy a plan in a network: admitted rates, next hops with ratios, paths, link weights."""

from __future__ import annotations

import json
from typing import Literal

import numpy as np
import pandas as pd
import scipy.sparse as sp

from planner.arrays import Bools, Floats, Ints32
from planner.errors import InputError
from planner.search.tolerances import SUM_ROUNDING
from planner_models.flows import split_ratios
from planner_models.flows.split_ratios import compute_ratios
from planner_models.traffic.plan import classes
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.plan.verified_flow import verify_flow
from planner_models.traffic.problem.problem import Traffic

MIN_SHARE = SUM_ROUNDING  # of a demand; a smaller rest makes no path of its own

By = Literal["auto", "target", "pair"]


def deployment_tables(problem: Traffic, plan: Routing, *, by: By = "auto") -> dict[str, pd.DataFrame]:
    """Return the tables that make a network forward traffic as the plan says.

    rates      source, target, rate_mbps: rate to admit of each demand
    next_hops  node, source, target, next_hop, parallel, share: at `node`, share of the traffic to
               `target` that goes on to `next_hop`; source None means every source
    paths      source, target, path, share, parallel?, tunnel?, kind?: share of each demand on each path, a
               JSON list of nodes (with kind "segments", shortest paths with ECMP between them);
               where the plan's flows have a source
    weights    tail, head, parallel, weight, where the plan has them
    lies       target, tail, head, parallel, fake_nodes, where the plan has them
    groups     node, target, head, parallel, entries, ideal_share, where the plan has them

    Where demands have classes, rates, next_hops and paths are of each class, in the column `class`.

    Traffic that follows `next_hops`, or `paths`, loads each link as the plan does. Shares for all
    traffic to a target do so as well as shares for each demand, and routers store them; shares for
    each demand are needed only where the routes of two demands to a target form a cycle together.

    by      "target": shares for all traffic to a target; "pair": for each demand; "auto": for each
            demand only to targets with such a cycle
    raises  PlanRejected where the plan does not fit the problem; InputError where `by` is not
            possible: "target" with a cycle, "pair" of a plan whose flows have no source
    """
    served = verify_flow(problem, plan).served_mbps
    if problem.has_classes:
        return _tables_by_class(problem, plan, by)
    has_source = "source" in plan.flows
    rates = problem.demands[["source", "target"]].reset_index(drop=True).assign(rate_mbps=served)
    tables = {
        "rates": rates[served > 0].reset_index(drop=True),
        "next_hops": _next_hop_table(problem, plan, by),
    }
    if has_source:
        tables["paths"] = _path_table(problem, plan, served)
    return tables | _configured(plan)


def _configured(plan: Routing) -> dict[str, pd.DataFrame]:
    """Return the tables of a plan that are of all traffic: weights, lies and groups."""
    return {name: table for name, table in plan.to_tables().items() if name in ("weights", "lies", "groups")}


def _tables_by_class(problem: Traffic, plan: Routing, by: By) -> dict[str, pd.DataFrame]:
    """Return the tables of each class one below the other, with the column `class`."""
    tables_of: dict[str, list[pd.DataFrame]] = {}
    for of_class, name in enumerate(problem.class_table["class"]):
        for key, table in deployment_tables(*classes.take_class(problem, plan, of_class), by=by).items():
            tables_of.setdefault(key, []).append(table.assign(**{"class": name}))
    tables = {key: pd.concat(parts, ignore_index=True) for key, parts in tables_of.items()}
    return tables | _configured(plan)


def has_cycle(problem: Traffic, flow: sp.coo_array) -> Bools:
    """Return whether the flow of each commodity, (C, E), has a cycle, shape (C,)."""
    used = flow.data > 0
    _, cyclic = split_ratios.cyclic_entries(problem, flow.row[used], flow.col[used])
    is_cyclic = np.zeros(flow.shape[0], dtype=bool)
    is_cyclic[flow.row[used][cyclic]] = True
    return is_cyclic


def share_table(problem: Traffic, flow: sp.coo_array) -> pd.DataFrame:
    """Return the split ratios of the flow of each commodity, (C, E): commodity, node, link, share.

    Ordered by commodity, node and link; links without a flow are left out.
    """
    ratios = compute_ratios(problem, flow)
    row, link = ratios.row.astype(np.int64), ratios.col.astype(np.int64)
    frame = pd.DataFrame({"commodity": row, "node": problem.tail[link], "link": link, "share": ratios.data})
    return frame.sort_values(["commodity", "node", "link"], ignore_index=True)


def _next_hop_table(problem: Traffic, plan: Routing, by: By) -> pd.DataFrame:
    flow = routing.flow_by_target(problem, plan).tocoo()
    cyclic = has_cycle(problem, flow)
    has_source = "source" in plan.flows
    if by == "pair" and not has_source:
        raise InputError("by is 'pair', but the plan's flows have no source")
    if by == "target" and cyclic.any():
        name = problem.nodes["node"].iloc[problem.targets[cyclic.argmax()]]
        raise InputError(f"by is 'target', but the routes to '{name}' together form a cycle")
    # (D,) targets with shares for each demand
    separate = np.ones(len(cyclic), dtype=bool) if by == "pair" else cyclic
    if not has_source:  # traffic in a cycle serves no demand
        flow, separate = split_ratios.remove_cycles(problem, flow), np.zeros(len(cyclic), dtype=bool)
    names = problem.nodes["node"].to_numpy()

    common = share_table(problem, flow)
    common = common[~separate[common["commodity"]]]
    parts = [common.assign(source=None, target=names[problem.targets[common["commodity"]]])]
    if separate.any():
        shares = share_table(problem, routing.flow_by_demand(problem, plan).tocoo())
        row = problem.target_row[shares["commodity"].to_numpy()]
        shares = shares[separate[np.minimum(row, len(separate) - 1)]]
        demand = shares["commodity"].to_numpy()
        ends = {"source": names[problem.source[demand]], "target": names[problem.target[demand]]}
        parts.append(shares.assign(**ends))
    rows = pd.concat([table for table in parts if len(table)] or parts[:1], ignore_index=True)
    link = rows["link"].to_numpy(dtype=np.int64)
    return pd.DataFrame(
        {
            "node": names[rows["node"].to_numpy(dtype=np.int64)],
            "source": rows["source"].astype(object),
            "target": rows["target"],
            "next_hop": names[problem.head[link]],
            "parallel": problem.parallel[link],
            "share": rows["share"].astype(float),
        }
    )


def _path_table(problem: Traffic, plan: Routing, served: Floats) -> pd.DataFrame:
    columns = ["source", "target", "path", "share"]
    if plan.routes is not None:
        routes = plan.routes
        amount = routes.groupby(["source", "target"], observed=True)["rate_mbps"].transform("sum")
        frame = routes.assign(share=routes["rate_mbps"] / amount)[amount > 0]
        extra = [name for name in ("parallel", "tunnel", "kind") if name in routes]
        return frame[columns + extra].astype({"source": str, "target": str}).reset_index(drop=True)
    flow = routing.flow_by_demand(problem, plan)
    names = problem.nodes["node"].tolist()
    has_parallel = bool((problem.parallel > 1).any())
    rows = []
    for demand in np.flatnonzero(served > 0).tolist():
        entries = slice(flow.indptr[demand], flow.indptr[demand + 1])
        for path, share in _decompose_into_paths(
            problem, demand, flow.indices[entries], flow.data[entries] / served[demand]
        ):
            nodes = [names[problem.tail[path[0]]], *(names[problem.head[link]] for link in path)]
            row = {"source": nodes[0], "target": nodes[-1], "path": _to_json(nodes), "share": share}
            if has_parallel:
                row["parallel"] = _to_json([int(problem.parallel[link]) for link in path])
            rows.append(row)
    return pd.DataFrame(rows, columns=[*columns, "parallel"] if has_parallel else columns)


def _decompose_into_paths(
    problem: Traffic, demand: int, links: Ints32, amount: Floats
) -> list[tuple[list[int], float]]:
    """Decompose the flow of one demand into paths: follow the largest flow at each node until none remains.

    A walk that returns to a node removes that cycle from the flow and goes on.

    returns  (path, share) of each path, shares add up to 1
    """
    remaining = dict(zip(links.tolist(), amount.tolist(), strict=True))
    leaving: dict[int, list[int]] = {}
    for link in remaining:
        leaving.setdefault(int(problem.tail[link]), []).append(link)
    source, target = int(problem.source[demand]), int(problem.target[demand])
    paths: list[tuple[list[int], float]] = []
    while (path := _follow_largest(problem, source, target, leaving, remaining)) is not None:
        paths.append((path, _take_smallest(remaining, path)))
    total = sum(share for _, share in paths)  # 1, but for rounding
    return [(path, share / total) for path, share in paths]


def _follow_largest(
    problem: Traffic, source: int, target: int, leaving: dict[int, list[int]], remaining: dict[int, float]
) -> list[int] | None:
    """Return the path of the largest flow at each node, None where none remains; remove cycles on the way."""
    path: list[int] = []
    position_of, node = {source: 0}, source
    while node != target:
        usable = [link for link in leaving.get(node, []) if remaining[link] > MIN_SHARE]
        if not usable:
            return None
        path.append(max(usable, key=lambda link: (remaining[link], -link)))
        node = int(problem.head[path[-1]])
        if node in position_of:
            _take_smallest(remaining, path[position_of[node] :])
            path = path[: position_of[node]]
            position_of = {other: index for other, index in position_of.items() if index <= len(path)}
        position_of[node] = len(path)
    return path


def _take_smallest(remaining: dict[int, float], links: list[int]) -> float:
    """Take the smallest remaining flow of some links from all of them, and return it."""
    smallest = min(remaining[link] for link in links)
    for link in links:
        remaining[link] -= smallest
    return smallest


def _to_json(values: list[str] | list[int]) -> str:
    return json.dumps(values, ensure_ascii=False)
