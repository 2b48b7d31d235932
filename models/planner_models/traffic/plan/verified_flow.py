"""Loads and served rates of a routing with tables that are proven to be a flow."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
import scipy.sparse as sp

from planner.arrays import Floats, Ints
from planner.contract.tolerances import MARGIN, RELATIVE, ROUNDING, allowance, differs
from planner.errors import PlanRejected
from planner_models.graphs.indexing import index_distinct, look_up, sum_at_nodes, sum_by_index
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.plan.references import require_classes, require_links
from planner_models.traffic.problem.problem import Traffic

TOLERANCE: Final = MARGIN * RELATIVE  # of a link's capacity or a demand, as in `exceeds`
_verified: weakref.WeakKeyDictionary[Routing, tuple[weakref.ref[Traffic], VerifiedFlow]]
_verified = weakref.WeakKeyDictionary()


@dataclass(frozen=True, kw_only=True, eq=False)
class VerifiedFlow:
    """Loads and served rates of a routing with tables that are proven to be a flow.

    load_mbps    (E,) traffic on each link
    link_row     (rows,) link of each row of the plan's table `links`
    served_mbps  (K,) traffic of each demand that is sent, and arrives where no link drops any
    terms_mbps   (K,) sum of the absolute terms that it was computed from; 0 for flows of each demand alone
    flow_mbps    (C, E) flow of each commodity
    commodity    (C,) its demand; where flows are per target, class and target as in `Traffic.commodity`
    by_demand    whether commodities are demands
    """

    load_mbps: Floats
    link_row: Ints
    served_mbps: Floats
    terms_mbps: Floats
    flow_mbps: sp.csr_array
    commodity: Ints
    by_demand: bool

    def of_class(self, problem: Traffic, of_class: int) -> sp.coo_array:
        """Return the flow to each target of one class, (D, E) Mbit/s, where flows are per target."""
        nodes, targets = len(problem.nodes), len(problem.targets)
        here = np.flatnonzero(self.commodity // nodes == of_class)
        row = np.searchsorted(problem.targets, self.commodity[here] % nodes)
        pick = sp.csr_array((np.ones(len(here)), (row, here)), (targets, len(self.commodity)))
        return sp.csr_array(pick @ self.flow_mbps).tocoo()


def verify_flow(problem: Traffic, plan: Routing) -> VerifiedFlow:
    """Return loads and served rates of a plan that is a flow; PlanRejected where it is none.

    The last answer is kept as long as its plan is in use: check and metrics need the same.
    """
    verified = _verified.get(plan)
    if verified is not None and verified[0]() is problem:
        return verified[1]
    flow = _verify_flow(problem, plan)
    _verified.clear()
    _verified[plan] = weakref.ref(problem), flow
    return flow


def _verify_flow(problem: Traffic, plan: Routing) -> VerifiedFlow:
    flows = plan.flows
    rate = flows["rate_mbps"].to_numpy(float)
    if not np.isfinite(rate).all() or (rate < 0).any():
        row = int(np.flatnonzero(~np.isfinite(rate) | (rate < 0))[0])
        raise PlanRejected(f"flows row {row + 1}: rate_mbps is {rate[row]}, must be at least 0")
    link = require_links(problem, flows["tail"], flows["head"], flows["parallel"], "flows")
    load = sum_by_index(link, rate, len(problem.links))
    link_row = _require_link_totals(problem, plan, load)

    commodity, names = _identify_commodities(problem, flows)
    flow = sp.coo_array((rate, (commodity, link)), shape=(len(names), len(problem.links))).tocsr()
    by_demand = "source" in flows
    if by_demand:
        served, terms = _served_by_demand(problem, flow), np.zeros(len(problem.demands))
    else:
        served, terms = _correct_rounding(problem, *_served_to_targets(problem, flow, names))
    return VerifiedFlow(
        load_mbps=load,
        link_row=link_row,
        served_mbps=served,
        terms_mbps=terms,
        flow_mbps=flow,
        commodity=names,
        by_demand=by_demand,
    )


def _require_link_totals(problem: Traffic, plan: Routing, load: Floats) -> Ints:
    """Return the link of each row of the table `links`; PlanRejected where its load is not that of flows."""
    links = plan.links
    link_rows = require_each_link(problem, links, "links")
    claimed = np.zeros(len(load))
    claimed[link_rows] = links["load_mbps"].to_numpy(float)
    wrong = np.flatnonzero(differs(claimed, load, load.max(initial=0.0)))
    if len(wrong):
        first = int(wrong[0])
        raise PlanRejected(
            f"links: {problem.link_labels[first]} has load_mbps {claimed[first]:.6g}, "
            f"its flows add up to {load[first]:.6g} Mbit/s"
        )
    return link_rows


def _identify_commodities(problem: Traffic, flows: pd.DataFrame) -> tuple[Ints, Ints]:
    """Return the commodity of each row, and the demand or (flows per target) class and target of each."""
    target = _require_nodes(problem, flows["target"], "target")
    require_classes(problem, flows, "flows")
    of_class = problem.find_classes(flows)
    if "source" not in flows:
        nodes = len(problem.nodes)
        if of_class is None:
            names, commodity = index_distinct(target, nodes)
        else:
            names, commodity = index_distinct(of_class * nodes + target, nodes * len(problem.class_table))
        return commodity, names
    demand = problem.demands_between(_require_nodes(problem, flows["source"], "source"), target, of_class)
    unknown = np.flatnonzero(demand < 0)
    if len(unknown):
        row = int(unknown[0])
        name = f"{flows['source'].iloc[row]}->{flows['target'].iloc[row]}"
        raise PlanRejected(f"flows row {row + 1}: {name} is no demand of the problem")
    return demand, np.arange(len(problem.demands))


def _require_nodes(problem: Traffic, names: pd.Series, column: str) -> Ints:
    rows = problem.find_nodes(names)
    if (rows < 0).any():
        row = int(np.flatnonzero(rows < 0)[0])
        raise PlanRejected(f"flows row {row + 1}: {column} '{names.iloc[row]}' is no node of the network")
    return rows


def _served_by_demand(problem: Traffic, flow: sp.csr_array) -> Floats:
    """Return the traffic of each demand that arrives, (K,), Mbit/s, from the flow of each, (K, E).

    PlanRejected where a node loses traffic, makes traffic up, or sends more than the demand's rate. Flows are
    as precise as a demand's largest flow on a link.
    """
    surplus = (flow @ problem.incidence.T).tocoo()  # (K, N): what each node injects
    demand, node, amount = surplus.row, surplus.col.astype(np.int64), surplus.data
    at_source = node == problem.source[demand]  # only the demand's own source may inject traffic
    at_target = node == problem.target[demand]  # follows from the other nodes, since surpluses sum to 0
    allowed = np.where(at_source, problem.rate_mbps[demand], 0.0)
    tolerance = TOLERANCE * largest_in_row(flow)[demand]
    wrong = ~at_target & ((amount < -tolerance) | (amount > allowed + tolerance))
    if wrong.any():
        first = int(np.flatnonzero(wrong)[np.argmax(np.abs(amount[wrong]))])
        what = problem.demand_labels[demand[first]]
        rate = float(allowed[first]) if at_source[first] else None
        raise _refuse_balance(problem, what, int(node[first]), float(amount[first]), rate)
    served = np.zeros(len(problem.demands))
    served[demand[at_source]] = np.clip(amount[at_source], 0.0, None)
    return served


def _served_to_targets(problem: Traffic, flow: sp.csr_array, names: Ints) -> tuple[Floats, Floats]:
    """Return the arriving traffic of each demand, and the flow from its source to its target, (K,) Mbit/s.

    PlanRejected as for flows of each demand. Flows to a target, (C, E), are as precise as what passes the
    node, or as the smallest demand to that target.
    """
    nodes, demands = len(problem.nodes), len(problem.demands)
    row = look_up(problem.commodity, names, np.arange(len(names)))
    smallest = _smallest_demands(problem, row, len(names))
    served, passes = np.zeros(demands), np.zeros(demands)
    for first, surplus, passing in sum_at_nodes(flow, problem.tail, problem.head, nodes):
        count = len(surplus)
        in_block = np.flatnonzero((row >= first) & (row < first + count))
        index = (row[in_block] - first) * nodes + problem.source[in_block]
        here = np.arange(count)
        target = names[first : first + count] % nodes
        served[in_block], passes[in_block] = surplus.ravel()[index], passing.ravel()[index]
        surplus[here, target] = 0.0  # follows from the other nodes, since surpluses sum to 0
        tolerance = TOLERANCE * (passing + smallest[first : first + count, None])
        upper = tolerance.copy()
        # other nodes' traffic must not hide that a node sends more than its small demand
        rate = problem.rate_mbps[in_block]
        upper.ravel()[index] = rate + allowance(rate, passes[in_block])
        wrong = (surplus < -tolerance) | (surplus > upper)
        if wrong.any():
            worst, node = np.unravel_index(int(np.argmax(np.where(wrong, np.abs(surplus), 0.0))), wrong.shape)
            what = f"to {problem.nodes['node'].iloc[target[worst]]}"
            if problem.has_classes:
                what += f" ({problem.class_table['class'].iloc[names[first + worst] // nodes]})"
            k = in_block[index == worst * nodes + node]
            allowed = float(problem.rate_mbps[k[0]]) if len(k) else None
            raise _refuse_balance(problem, what, int(node), float(surplus[worst, node]), allowed)
    return np.clip(served, 0.0, None), passes


def _refuse_balance(
    problem: Traffic, what: str, node: int, amount: float, allowed: float | None
) -> PlanRejected:
    """Return the error that a node injects an amount, Mbit/s.

    what     flows, in words
    allowed  rate of the demand that begins there, Mbit/s; None where none does
    """
    where = problem.nodes["node"].iloc[node]
    if allowed is not None and amount > 0:
        fault = f"{amount:.6g} Mbit/s are sent, the demand is {allowed:.6g} Mbit/s"
    else:
        fault = f"{abs(amount):.6g} Mbit/s {'are lost' if amount < 0 else 'appear from nowhere'}"
    return PlanRejected(f"flows {what}: at {where} {fault}")


def _smallest_demands(problem: Traffic, row: Ints, count: int) -> Floats:
    """Return the smallest positive rate of each commodity, (count,); 0 for none.

    row  (K,) commodity of each demand, -1 for none
    """
    demands = np.flatnonzero((problem.rate_mbps > 0) & (row >= 0))
    smallest = np.full(count, np.inf)
    np.minimum.at(smallest, row[demands], problem.rate_mbps[demands])
    return np.where(np.isfinite(smallest), smallest, 0.0)


def _correct_rounding(problem: Traffic, served: Floats, passing: Floats) -> tuple[Floats, Floats]:
    """Return served rates, (K,), moved within rounding errors to the share of their commodity; and terms.

    passing  (K,) traffic to the target that enters and leaves the source of each demand, Mbit/s
    terms    (K,) sum of the absolute terms that a served rate and what a plan lists as shed are computed from

    A node's surplus is the difference of the traffic that leaves and enters it; where much traffic
    passes through, the surplus of a demand millions of times smaller is lost to rounding.
    """
    of = problem.commodity
    count = len(problem.nodes) * max(len(problem.class_table), 1)
    wanted_in_all = sum_by_index(of, problem.rate_mbps, count)
    served_in_all = sum_by_index(of, served, count)
    share = np.divide(served_in_all, wanted_in_all, out=np.zeros(count), where=wanted_in_all > 0)
    error = ROUNDING * passing
    # beside this error, that of what the plan sheds: it was computed from the same terms, and rounded up
    return np.clip(share[of] * problem.rate_mbps, served - error, served + error), 3 * passing


def largest_in_row(flow: sp.csr_array) -> Floats:
    """Return the largest entry of each row, shape (C,); 0 where there are no links."""
    if not flow.shape[1]:
        return np.zeros(flow.shape[0])
    return np.asarray(flow.max(axis=1).toarray().ravel())


def require_each_link(problem: Traffic, table: pd.DataFrame, name: str) -> Ints:
    """Return the link of each row, (E,); PlanRejected where a link is missing or there twice."""
    position = require_links(problem, table["tail"], table["head"], table["parallel"], name)
    count = np.bincount(position, minlength=len(problem.links))
    for wrong, fault in ((count == 0, "is missing"), (count > 1, "is there twice")):
        if wrong.any():
            raise PlanRejected(f"{name}: {problem.link_labels[int(np.argmax(wrong))]} {fault}")
    return position
