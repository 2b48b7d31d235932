"""Plans as what a network takes: link weights, split ratios at each next hop, or paths."""

from __future__ import annotations

import json
from typing import Literal

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from planner.errors import InputError
from planner_models.traffic import cycles, routing
from planner_models.traffic.check import carried
from planner_models.traffic.problem import Traffic, totals
from planner_models.traffic.routing import Routing

SPENT = 1e-12  # of a demand; less than this left over makes no path of its own

By = Literal["auto", "target", "pair"]


def tables(problem: Traffic, plan: Routing, *, by: By = "auto") -> dict[str, pd.DataFrame]:
    """The tables that make a network do what the plan says.

    rates      source, target, rate_mbps: what to let in of each demand
    next_hops  node, source, target, next_hop, parallel, share: at `node`, of the traffic to
               `target`, the share that goes on to `next_hop`; source None is every source
    paths      source, target, path, share, parallel?: of each demand, the share that goes over the
               path, a JSON list of nodes; where the plan tells its demands apart
    weights    tail, head, parallel, weight, where the plan made them

    Traffic that follows `next_hops`, or `paths`, loads each link as the plan does. Shares at a node
    for all traffic to a target together do so as well as shares for each demand, and are what
    routers hold; only where the routes of two demands to a target together run in a circle do they
    need to be told apart. `by` says which: "target" for all traffic to it together, "pair" for each
    demand apart, "auto" apart only to targets whose routes would run in a circle.

    raises  PlanRejected where the plan is none of the problem; InputError where `by` cannot be
            had: "target" with a circle, "pair" of a plan that does not tell its demands apart
    """
    served = carried(problem, plan).served_mbps
    told_apart = "source" in plan.flows
    rates = problem.demands[["source", "target"]].reset_index(drop=True).assign(rate_mbps=served)
    found = {
        "rates": rates[served > 0].reset_index(drop=True),
        "next_hops": _next_hops(problem, plan, by, told_apart),
    }
    if told_apart:
        found["paths"] = _paths(problem, plan, served)
    weights = plan.to_tables().get("weights")
    if weights is not None:
        found["weights"] = weights
    return found


def flow_by_target(problem: Traffic, plan: Routing) -> sp.coo_array:
    """(D, E) Mbit/s per target and link, of any plan."""
    flows = plan.flows
    link = routing.links_of(problem, flows["tail"], flows["head"], flows["parallel"], "flows")
    node = problem.node_places.get_indexer(pd.Index(flows["target"].astype(str)))
    row = np.searchsorted(problem.targets, node)
    shape = (len(problem.targets), len(problem.links))
    flow = sp.coo_array((flows["rate_mbps"].to_numpy(float), (row, link)), shape=shape)
    flow.sum_duplicates()
    return flow


def circular(problem: Traffic, flow: sp.coo_array) -> NDArray[np.bool_]:
    """(C,) whether the flow of each commodity, (C, E), runs in a circle somewhere."""
    count, used = len(problem.nodes), flow.data > 0
    row, link = flow.row[used].astype(np.int64), flow.col[used]
    tail, head = row * count + problem.tail[link], row * count + problem.head[link]
    places = flow.shape[0] * count
    graph = sp.csr_array((np.ones(len(row)), (tail, head)), shape=(places, places))
    _, knot = connected_components(graph, directed=True, connection="strong")
    found = np.zeros(flow.shape[0], dtype=bool)
    found[row[knot[tail] == knot[head]]] = True
    return found


def shares(problem: Traffic, flow: sp.coo_array) -> pd.DataFrame:
    """How the flow of each commodity, (C, E), divides at each node: commodity, node, link, share.

    Ordered by commodity, node and link; links without a flow are left out.
    """
    used = flow.data > 0
    row, link, amount = flow.row[used].astype(np.int64), flow.col[used].astype(np.int64), flow.data[used]
    node = problem.tail[link]
    _, group = np.unique(row * len(problem.nodes) + node, return_inverse=True)
    share = amount / totals(group, amount, 0)[group]
    frame = pd.DataFrame({"commodity": row, "node": node, "link": link, "share": share})
    return frame.sort_values(["commodity", "node", "link"], ignore_index=True)


def _next_hops(problem: Traffic, plan: Routing, by: By, told_apart: bool) -> pd.DataFrame:
    together = flow_by_target(problem, plan)
    knotted = circular(problem, together)
    if by == "pair" and not told_apart:
        raise InputError("by is 'pair', but the plan does not tell its demands apart")
    if by == "target" and knotted.any():
        name = problem.nodes["node"].iloc[problem.targets[knotted.argmax()]]
        raise InputError(f"by is 'target', but the routes to '{name}' together run in a circle")
    apart = np.ones(len(knotted), dtype=bool) if by == "pair" else knotted
    if not told_apart:  # what runs in a circle serves nobody
        together, apart = cycles.without(problem, together), np.zeros(len(knotted), dtype=bool)
    names = problem.nodes["node"].to_numpy()

    whole = shares(problem, together)
    whole = whole[~apart[whole["commodity"]]]
    parts = [whole.assign(source=None, target=names[problem.targets[whole["commodity"]]])]
    if apart.any():
        pairs = shares(problem, _flow_by_pair(problem, plan))
        demand = pairs["commodity"].to_numpy()
        row = np.searchsorted(problem.targets, problem.target[demand])
        mine = apart[np.minimum(row, len(apart) - 1)]
        pairs, demand = pairs[mine], demand[mine]
        ends = {"source": names[problem.source[demand]], "target": names[problem.target[demand]]}
        parts.append(pairs.assign(**ends))
    rows = pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)
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


def _flow_by_pair(problem: Traffic, plan: Routing) -> sp.coo_array:
    flow = sp.coo_array(routing.flow_mbps(problem, plan))
    flow.sum_duplicates()
    return flow


def _paths(problem: Traffic, plan: Routing, served: NDArray[np.float64]) -> pd.DataFrame:
    columns = ["source", "target", "path", "share"]
    if plan.routes is not None:
        routes = plan.routes
        amount = routes.groupby(["source", "target"], observed=True)["rate_mbps"].transform("sum")
        frame = routes.assign(share=routes["rate_mbps"] / amount)[amount > 0]
        extra = ["parallel"] if "parallel" in routes else []
        return frame[columns + extra].astype({"source": str, "target": str}).reset_index(drop=True)
    flow = sp.csr_array(_flow_by_pair(problem, plan))
    names = problem.nodes["node"].tolist()
    numbered = bool((problem.parallel > 1).any())
    rows = []
    for demand in np.flatnonzero(served > 0).tolist():
        mine = slice(flow.indptr[demand], flow.indptr[demand + 1])
        for path, share in _peeled(problem, demand, flow.indices[mine], flow.data[mine] / served[demand]):
            nodes = [names[problem.tail[path[0]]], *(names[problem.head[link]] for link in path)]
            row = {"source": nodes[0], "target": nodes[-1], "path": _list(nodes), "share": share}
            if numbered:
                row["parallel"] = _list([int(problem.parallel[link]) for link in path])
            rows.append(row)
    return pd.DataFrame(rows, columns=[*columns, "parallel"] if numbered else columns)


def _peeled(
    problem: Traffic, demand: int, links: NDArray[np.int32], amount: NDArray[np.float64]
) -> list[tuple[list[int], float]]:
    """The flow of one demand as paths: the widest way on at each node, until nothing is left.

    A walk that comes back to a node cuts that circle out of the flow and goes on.
    """
    left = dict(zip(links.tolist(), amount.tolist(), strict=True))
    leaving: dict[int, list[int]] = {}
    for link in left:
        leaving.setdefault(int(problem.tail[link]), []).append(link)
    source, target = int(problem.source[demand]), int(problem.target[demand])
    found: list[tuple[list[int], float]] = []
    while True:
        path: list[int] = []
        place, node = {source: 0}, source
        while node != target:
            ways = [link for link in leaving.get(node, []) if left[link] > SPENT]
            if not ways:
                break
            path.append(max(ways, key=lambda link: (left[link], -link)))
            node = int(problem.head[path[-1]])
            if node in place:
                circle = path[place[node] :]
                least = min(left[link] for link in circle)
                for link in circle:
                    left[link] -= least
                path = path[: place[node]]
                place = {other: at for other, at in place.items() if at <= len(path)}
            place[node] = len(path)
        if node != target:
            break
        share = min(left[link] for link in path)
        for link in path:
            left[link] -= share
        found.append((path, share))
    whole = sum(share for _, share in found)  # 1, but for rounding
    return [(path, share / whole) for path, share in found]


def _list(values: list[str] | list[int]) -> str:
    return json.dumps(values, ensure_ascii=False)
