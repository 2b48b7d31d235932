"""Check of a routing against the raw problem, independent of the design that made it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
import scipy.sparse as sp

from planner.arrays import Floats, Ints
from planner.contract.plan import Violations
from planner.errors import PlanRejected
from planner_models.traffic.plan.plan import Routing, require_links
from planner_models.traffic.problem.problem import Traffic, sum_by_index

TOLERANCE: Final = 1e-6  # relative to a link's capacity, a demand, the flow to a target
ROUNDING: Final = 1e-12  # relative to the traffic through a node: precision of sums and differences


@dataclass(frozen=True, kw_only=True, eq=False)
class VerifiedFlow:
    """Loads and served rates of a routing whose tables are proven to be a flow.

    load_mbps    (E,) traffic on each link
    served_mbps  (K,) traffic of each demand that is sent, and arrives where no link drops any
    flow_mbps    (C, E) flow of each commodity
    commodity    (C,) its demand; where flows are per target, the target's node
    by_demand    whether commodities are demands
    """

    load_mbps: Floats
    served_mbps: Floats
    flow_mbps: sp.csr_array
    commodity: Ints
    by_demand: bool


def check(problem: Traffic, plan: Routing) -> Violations:
    """Return violations: links above their capacity, and demands neither fully sent nor listed as shed.

    raises  PlanRejected where the plan is no flow: an unknown link or demand, traffic that is lost or
            appears from nowhere, more traffic than a demand's rate, link totals that do not add up
    """
    flow = verify_flow(problem, plan)
    allowed = problem.capacity_mbps
    over = flow.load_mbps > allowed * (1 + TOLERANCE)
    capacity = Violations.of(
        "capacity",
        where=[problem.link_labels[link] for link in np.flatnonzero(over)],
        amount=flow.load_mbps[over],
        allowed=allowed[over],
        unit="Mbit/s",
    )
    known = flow.served_mbps + _listed_as_shed(problem, plan)
    short = known < problem.rate_mbps * (1 - TOLERANCE)
    demand = Violations.of(
        "demand",
        where=[problem.demand_labels[k] for k in np.flatnonzero(short)],
        amount=known[short],
        allowed=problem.rate_mbps[short],
        unit="Mbit/s",
    )
    return capacity + demand


def _listed_as_shed(problem: Traffic, plan: Routing) -> Floats:
    """Return the demand that the plan lists as shed, (K,), Mbit/s; PlanRejected for an unknown demand."""
    if plan.shed is None:
        return np.zeros(len(problem.demands))
    demand = problem.find_demands(plan.shed)
    unknown = np.flatnonzero(demand < 0)
    if len(unknown):
        ends = plan.shed.iloc[unknown[0]]
        raise PlanRejected(
            f"shed row {unknown[0] + 1}: {ends['source']}->{ends['target']} is no demand of the problem"
        )
    return sum_by_index(demand, plan.shed["rate_mbps"].to_numpy(float), len(problem.demands))


def verify_flow(problem: Traffic, plan: Routing) -> VerifiedFlow:
    """Return loads and served rates of a plan that is a flow; PlanRejected where it is none."""
    flows = plan.flows
    rate = flows["rate_mbps"].to_numpy(float)
    if not np.isfinite(rate).all() or (rate < 0).any():
        row = int(np.flatnonzero(~np.isfinite(rate) | (rate < 0))[0])
        raise PlanRejected(f"flows row {row + 1}: rate_mbps is {rate[row]}, must be at least 0")
    link = require_links(problem, flows["tail"], flows["head"], flows["parallel"], "flows")
    load = sum_by_index(link, rate, len(problem.links))
    _require_link_totals(problem, plan, load)

    commodity, names = _identify_commodities(problem, flows)
    flow = sp.coo_array((rate, (commodity, link)), shape=(len(names), len(problem.links))).tocsr()
    surplus = (flow @ problem.incidence.T).tocoo()  # (C, N): what each node injects, per commodity
    # the precision of a commodity is relative to its largest flow on a link
    tolerance_mbps = TOLERANCE * flow.max(axis=1).toarray().ravel()
    by_demand = "source" in flows
    served = _served_rates(problem, surplus, names, tolerance_mbps, by_demand=by_demand)
    if not by_demand:
        served = _correct_rounding(problem, flow, names, served)
    return VerifiedFlow(
        load_mbps=load, served_mbps=served, flow_mbps=flow, commodity=names, by_demand=by_demand
    )


def _require_link_totals(problem: Traffic, plan: Routing, load: Floats) -> None:
    links = plan.links
    place = require_links(problem, links["tail"], links["head"], links["parallel"], "links")
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
            f"links: {problem.link_labels[first]} has load_mbps {claimed[first]:.6g}, "
            f"its flows add up to {load[first]:.6g} Mbit/s"
        )


def _identify_commodities(problem: Traffic, flows: pd.DataFrame) -> tuple[Ints, Ints]:
    """Return the commodity of each row, and the demand or (flows per target) the node of each commodity."""
    target = _require_nodes(problem, flows["target"], "target")
    if "source" not in flows:
        names, commodity = np.unique(target, return_inverse=True)
        return commodity.astype(np.int64), names
    demand = problem.demands_between(_require_nodes(problem, flows["source"], "source"), target)
    unknown = np.flatnonzero(demand < 0)
    if len(unknown):
        row = int(unknown[0])
        name = f"{flows['source'].iloc[row]}->{flows['target'].iloc[row]}"
        raise PlanRejected(f"flows row {row + 1}: {name} is no demand of the problem")
    return demand, np.arange(len(problem.demands))


def _require_nodes(problem: Traffic, names: pd.Series, column: str) -> Ints:
    places = problem.find_nodes(names)
    if (places < 0).any():
        row = int(np.flatnonzero(places < 0)[0])
        raise PlanRejected(f"flows row {row + 1}: {column} '{names.iloc[row]}' is no node of the network")
    return places


def _served_rates(
    problem: Traffic, surplus: sp.coo_array, names: Ints, tolerance_mbps: Floats, *, by_demand: bool
) -> Floats:
    """Return the traffic of each demand that arrives, (K,), Mbit/s.

    PlanRejected where a node loses traffic, makes traffic up, or sends more than a demand's rate.
    """
    node, amount = surplus.col.astype(np.int64), surplus.data
    target = problem.target[names] if by_demand else names
    at_target = node == target[surplus.row]  # follows from the other nodes, since surpluses sum to 0
    demand = problem.demands_between(node, target[surplus.row])
    if by_demand:  # only the demand's own source may inject traffic
        demand = np.where(demand == names[surplus.row], demand, -1)
    allowed = np.where(demand >= 0, problem.rate_mbps[demand], 0.0)
    tolerance = tolerance_mbps[surplus.row]
    wrong = ~at_target & ((amount < -tolerance) | (amount > allowed + tolerance))
    if wrong.any():
        first = int(np.flatnonzero(wrong)[np.argmax(np.abs(amount[wrong]))])
        where = problem.nodes["node"].iloc[node[first]]
        name = problem.nodes["node"].iloc[target[surplus.row[first]]]
        what = problem.demand_labels[names[surplus.row[first]]] if by_demand else f"to {name}"
        if demand[first] >= 0 and amount[first] > 0:
            fault = f"{amount[first]:.6g} Mbit/s are sent, the demand is {allowed[first]:.6g} Mbit/s"
        else:
            verb = "are lost" if amount[first] < 0 else "appear from nowhere"
            fault = f"{abs(amount[first]):.6g} Mbit/s {verb}"
        raise PlanRejected(f"flows {what}: at {where} {fault}")
    served = np.zeros(len(problem.demands))
    is_source = ~at_target & (demand >= 0)
    served[demand[is_source]] = np.clip(amount[is_source], 0.0, None)
    return served


def _correct_rounding(problem: Traffic, flow: sp.csr_array, names: Ints, served: Floats) -> Floats:
    """Return served rates, (K,), moved within rounding errors to the share of all demands to the target.

    A node's surplus is the difference of the traffic that leaves and enters it; where much traffic
    passes through, the surplus of a demand millions of times smaller is lost to rounding.
    """
    row = np.minimum(np.searchsorted(names, problem.target), max(len(names) - 1, 0))
    known = names[row] == problem.target if len(names) else np.zeros(len(row), dtype=bool)
    wanted_in_all = sum_by_index(problem.target, problem.rate_mbps, len(problem.nodes))
    served_in_all = sum_by_index(problem.target, served, len(problem.nodes))
    share = np.divide(served_in_all, wanted_in_all, out=np.zeros(len(problem.nodes)), where=wanted_in_all > 0)
    passing = sp.csr_array(flow @ abs(problem.incidence).T)
    error = np.zeros(len(served))
    error[known] = ROUNDING * np.asarray(passing[row[known], problem.source[known]]).ravel()
    return np.clip(share[problem.target] * problem.rate_mbps, served - error, served + error)
