"""Fixed routing: every demand keeps its shares of a given plan, whatever its rate is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from planner.arrays import Bools
from planner.contract.design import Decision
from planner.errors import InputError
from planner.io.table_files import find_tables, read_tables
from planner.search.judged import feasible
from planner.search.tolerances import NEGLIGIBLE
from planner_models.traffic.designs import ecmp
from planner_models.traffic.designs.routable import shed_unreachable
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan import schema
from planner_models.traffic.plan.fixed_shares import read_shares
from planner_models.traffic.plan.moved_traffic import share_flows
from planner_models.traffic.plan.plan import Routing, sent_by_demand
from planner_models.traffic.problem.problem import Traffic

LEAST_SHARE: Final = NEGLIGIBLE  # of a demand; a smaller part of it is not sent

Present = Annotated[
    Path | None,
    Field(
        description="folder or workbook with the tables of the plan: shares, or flows and shed, or routes; "
        "default: shortest paths with ECMP"
    ),
]


@shed_unreachable
def route(problem: Traffic, *, present: Present = None) -> Decision[Routing]:
    """Send every demand in the shares of a given plan, without regard to its rate now.

    A demand that the plan does not route, or whose links are gone in part, is shed, and so is the part of a
    demand that the plan sheds. Over a series it says how long a plan serves all demand.

    raises  InputError for a folder without the tables of a plan
    """
    if present is None:
        return ecmp.route(problem)
    flow = _read_flow(problem, present)
    sent = sent_by_demand(problem, flow)
    is_whole = _is_conserved(problem, flow) & (sent > LEAST_SHARE * problem.rate_mbps)
    flow = sp.csr_array(sp.diags_array(np.where(is_whole, 1.0, 0.0)) @ flow)
    return Decision(
        plan=routing.routing_by_demand(problem, flow),
        proof=feasible(),
        guarantees=frozenset({"demand"}),
    )


def _read_flow(problem: Traffic, folder: Path) -> sp.csr_array:
    """Return the flow of each demand on each link, (K, E) Mbit/s, in the shares of a plan in a folder."""
    tables = (schema.FLOWS, schema.ROUTES, schema.SHED, schema.SHARES)
    files = find_tables(tables, folder, tuple(table.name for table in tables))
    if not {"flows", "routes", "shares"} & files.keys():
        raise InputError(f"present: {folder}: has none of the tables 'shares', 'flows' and 'routes'")
    read = read_tables(tables, files)
    if "shares" in read:
        is_known = problem.find_demands(read["shares"]) >= 0
        share = read_shares(problem, read["shares"][is_known].reset_index(drop=True))
        return sp.csr_array(sp.diags_array(problem.rate_mbps) @ share)
    flows = read["flows"] if "flows" in read else routing.routing_from_tables(problem, read).flows
    return share_flows(problem, flows, read.get("shed"))


def _is_conserved(problem: Traffic, flow: sp.csr_array) -> Bools:
    """Return whether the flow of each demand, (K, E), arrives at its target whole, (K,)."""
    surplus = sp.csr_array(flow @ problem.incidence.T).tocoo()
    is_end = (surplus.col == problem.source[surplus.row]) | (surplus.col == problem.target[surplus.row])
    lost = np.abs(surplus.data) > 1e-6 * problem.rate_mbps[surplus.row]
    is_conserved = np.ones(flow.shape[0], dtype=bool)
    is_conserved[surplus.row[~is_end & lost]] = False
    return is_conserved
