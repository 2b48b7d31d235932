"""Plans of traffic over paths with reservations, and their guarantees."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import scipy.sparse as sp

from planner.arrays import Bools, Floats
from planner.formatting import few
from planner_models.flows.path_flow_program import CandidatePaths, route_table
from planner_models.traffic.plan.plan import Routing, routing_by_demand
from planner_models.traffic.problem.failure_sets import FailureSource
from planner_models.traffic.problem.problem import Traffic


def resolve_source(problem: Traffic, failures: FailureSource | None) -> FailureSource:
    """Return the set of failures that a parameter means, see `FailuresParameter`."""
    if failures is None:
        return "links" if problem.failures is None else "table"
    return failures


def describe_unsafe(problem: Traffic, is_unsafe: Bools) -> tuple[str, ...]:
    """Return a sentence on the demands (K,) that a plan sends without a guarantee; () for none."""
    names = [problem.demand_labels[k] for k in np.flatnonzero(is_unsafe).tolist()]
    if not names:
        return ()
    what = f"demand {names[0]} is" if len(names) == 1 else f"{len(names):,} demands ({few(names, 4)}) are"
    why = "a failure takes all permitted paths, while the network has another"
    return (f"{what} sent without a guarantee: {why}",)


def plan_reservations(
    problem: Traffic, paths: CandidatePaths, reserved_mbps: Floats, sent_mbps: Floats
) -> Routing:
    """Return the plan that sends rates (K,) over paths in proportion to their reservations, (P,)."""
    demand = paths.demand
    total = np.bincount(demand, weights=reserved_mbps, minlength=len(problem.demands))
    share = np.divide(sent_mbps, total, out=np.zeros(len(total)), where=total > 0)
    rate = np.minimum(share[demand], 1.0) * reserved_mbps
    assignment = sp.csr_array(
        (np.ones(len(demand)), (demand, np.arange(len(demand)))), shape=(len(problem.demands), len(demand))
    )
    flow = sp.csr_array(assignment @ (sp.diags_array(rate) @ paths.uses))
    routes = route_table(problem, paths, rate)
    routes["reserved_mbps"] = reserved_mbps[rate > 0]
    return routing_by_demand(problem, flow.tocoo(), routes)


def add_guarantees(
    problem: Traffic,
    plan: Routing,
    rate_mbps: Floats,
    *,
    failures: FailureSource,
    at_once: int,
    restoration: str,
    has_zeros: bool = False,
) -> Routing:
    """Return the plan with the table of guaranteed arrivals in failures, (K,) Mbit/s, of demands with any.

    has_zeros  whether demands that get nothing are listed too: the table says which failures were planned for
    """
    rows = np.flatnonzero((problem.rate_mbps > 0) if has_zeros else (rate_mbps > 0))
    table = pd.DataFrame(
        {name: problem.demands[name].astype(str).to_numpy()[rows] for name in problem.demand_key}
    )
    table = table.assign(
        rate_mbps=rate_mbps[rows], failures=failures, at_once=float(at_once), restoration=restoration
    )
    return replace(plan, guarantees=table)
