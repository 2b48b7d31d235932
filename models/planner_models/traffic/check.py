"""Checks a routing against the raw problem; knows the rules, not the method that made it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from planner.errors import PlanRejected
from planner.system import Violations
from planner_models.traffic.problem import Traffic, totals
from planner_models.traffic.routing import Routing, links_of, node_rows

TOLERANCE: Final = 1e-6  # of a link's capacity, of a demand, of the flow to a target
ROUNDING: Final = 1e-12  # of what passes a node: sums and differences are not more exact


@dataclass(frozen=True, kw_only=True, eq=False)
class Carried:
    """What a routing carries, read back from its tables.

    load_mbps    (E,) traffic on each link
    served_mbps  (K,) what arrives of each demand
    """

    load_mbps: NDArray[np.float64]
    served_mbps: NDArray[np.float64]


def check(problem: Traffic, plan: Routing) -> Violations:
    """Links above their capacity, and demands that are not wholly served.

    PlanRejected where the plan is no flow: an unknown link or pair, traffic that is lost or
    appears from nowhere, more of a demand than is wanted, link totals that do not add up.
    """
    flow = carried(problem, plan)
    allowed = problem.capacity_mbps
    over = flow.load_mbps > allowed * (1 + TOLERANCE)
    capacity = Violations.of(
        "capacity",
        where=[problem.link_labels[link] for link in np.flatnonzero(over)],
        amount=flow.load_mbps[over],
        allowed=allowed[over],
        unit="Mbit/s",
    )
    short = flow.served_mbps < problem.rate_mbps * (1 - TOLERANCE)
    demand = Violations.of(
        "demand",
        where=[problem.demand_labels[k] for k in np.flatnonzero(short)],
        amount=flow.served_mbps[short],
        allowed=problem.rate_mbps[short],
        unit="Mbit/s",
    )
    return capacity + demand


def carried(problem: Traffic, plan: Routing) -> Carried:
    """Loads and served rates, once the plan is proven to be a flow; PlanRejected otherwise."""
    flows = plan.flows
    rate = flows["rate_mbps"].to_numpy(float)
    if not np.isfinite(rate).all() or (rate < 0).any():
        row = int(np.flatnonzero(~np.isfinite(rate) | (rate < 0))[0])
        raise PlanRejected(f"flows row {row + 1}: rate_mbps is {rate[row]}, must be at least 0")
    link = links_of(problem, flows["tail"], flows["head"], flows["parallel"], "flows")
    load = totals(link, rate, len(problem.links))
    _require_totals(problem, plan, load)

    commodity, names = _commodities(problem, flows)
    flow = sp.coo_array((rate, (commodity, link)), shape=(len(names), len(problem.links))).tocsr()
    surplus = (flow @ problem.balance.T).tocoo()  # (C, N): what each node puts in, per commodity
    # how exact each commodity is: to a share of the most that it puts on a link
    grain = TOLERANCE * flow.max(axis=1).toarray().ravel()
    served = _served(problem, surplus, names, grain, by_pair="source" in flows)
    if "source" not in flows:
        served = _rounded(problem, flow, names, served)
    return Carried(load_mbps=load, served_mbps=served)


def _require_totals(problem: Traffic, plan: Routing, load: NDArray[np.float64]) -> None:
    links = plan.links
    place = links_of(problem, links["tail"], links["head"], links["parallel"], "links")
    claimed = np.full(len(load), np.nan)
    claimed[place] = links["load_mbps"].to_numpy(float)
    missing = np.flatnonzero(np.isnan(claimed))
    if len(missing):
        raise PlanRejected(f"links: {problem.link_labels[missing[0]]} is missing")
    scale = np.maximum(np.maximum(load, claimed), TOLERANCE * load.max(initial=0.0))
    wrong = np.flatnonzero(np.abs(claimed - load) > TOLERANCE * scale)
    if len(wrong):
        first = int(wrong[0])
        raise PlanRejected(
            f"links: {problem.link_labels[first]} is said to carry {claimed[first]:.6g} Mbit/s, "
            f"its flows add up to {load[first]:.6g} Mbit/s"
        )


def _commodities(problem: Traffic, flows: pd.DataFrame) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The commodity of each row, and of each commodity its demand (by pair) or its target node."""
    target = _nodes(problem, flows["target"], "target")
    if "source" not in flows:
        names, commodity = np.unique(target, return_inverse=True)
        return commodity.astype(np.int64), names
    count = len(problem.nodes)
    wanted = problem.source * count + problem.target
    order = np.argsort(wanted)
    pair = _nodes(problem, flows["source"], "source") * count + target
    place = np.minimum(np.searchsorted(wanted[order], pair), len(order) - 1)
    stranger = np.flatnonzero(wanted[order][place] != pair)
    if len(stranger):
        row = int(stranger[0])
        name = f"{flows['source'].iloc[row]}->{flows['target'].iloc[row]}"
        raise PlanRejected(f"flows row {row + 1}: {name} is no demand of the problem")
    return order[place], np.arange(len(problem.demands))


def _nodes(problem: Traffic, names: pd.Series, column: str) -> NDArray[np.int64]:
    places = node_rows(problem, names)
    if (places < 0).any():
        row = int(np.flatnonzero(places < 0)[0])
        raise PlanRejected(f"flows row {row + 1}: {column} '{names.iloc[row]}' is no node of the network")
    return places


def _served(
    problem: Traffic,
    surplus: sp.coo_array,
    names: NDArray[np.int64],
    exact_mbps: NDArray[np.float64],
    *,
    by_pair: bool,
) -> NDArray[np.float64]:
    """(K,) what arrives of each demand; PlanRejected where traffic is lost, made up or not wanted."""
    node, amount = surplus.col.astype(np.int64), surplus.data
    target = problem.target[names] if by_pair else names
    at_target = node == target[surplus.row]  # follows from the others: what goes in comes out
    count = len(problem.nodes)
    wanted = problem.source * count + problem.target
    order = np.argsort(wanted)
    pair = node * count + target[surplus.row]
    place = np.minimum(np.searchsorted(wanted[order], pair), max(len(order) - 1, 0))
    demand = np.where(wanted[order][place] == pair, order[place], -1)
    if by_pair:  # only the demand's own source may put traffic in
        demand = np.where(demand == names[surplus.row], demand, -1)
    allowed = np.where(demand >= 0, problem.rate_mbps[demand], 0.0)
    grain = exact_mbps[surplus.row]
    wrong = ~at_target & ((amount < -grain) | (amount > allowed + grain))
    if wrong.any():
        first = int(np.flatnonzero(wrong)[np.argmax(np.abs(amount[wrong]))])
        where = problem.nodes["node"].iloc[node[first]]
        name = problem.nodes["node"].iloc[target[surplus.row[first]]]
        what = problem.demand_labels[names[surplus.row[first]]] if by_pair else f"to {name}"
        if demand[first] >= 0 and amount[first] > 0:
            fault = f"{amount[first]:.6g} Mbit/s are sent, {allowed[first]:.6g} Mbit/s are wanted"
        else:
            verb = "are lost" if amount[first] < 0 else "appear from nowhere"
            fault = f"{abs(amount[first]):.6g} Mbit/s {verb}"
        raise PlanRejected(f"flows {what}: at {where} {fault}")
    served = np.zeros(len(problem.demands))
    mine = ~at_target & (demand >= 0)
    served[demand[mine]] = np.clip(amount[mine], 0.0, None)
    return served


def _rounded(
    problem: Traffic, flow: sp.csr_array, names: NDArray[np.int64], served: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(K,) what is served, as near as rounding allows to the share that all demands to the target get.

    What a node puts in is the difference of what leaves it and what enters it, and where much passes
    through, nothing exact is left of a demand millions of times smaller.
    """
    row = np.minimum(np.searchsorted(names, problem.target), max(len(names) - 1, 0))
    known = names[row] == problem.target if len(names) else np.zeros(len(row), dtype=bool)
    wanted_in_all = totals(problem.target, problem.rate_mbps, len(problem.nodes))
    served_in_all = totals(problem.target, served, len(problem.nodes))
    share = np.divide(served_in_all, wanted_in_all, out=np.zeros(len(problem.nodes)), where=wanted_in_all > 0)
    passing = sp.csr_array(flow @ abs(problem.balance).T)
    slip = np.zeros(len(served))
    slip[known] = ROUNDING * np.asarray(passing[row[known], problem.source[known]]).ravel()
    return np.clip(share[problem.target] * problem.rate_mbps, served - slip, served + slip)
