"""Fixed shares for a set of demand matrices: the least worst utilization, without reaction to demand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final, Literal

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from planner.contract.design import Decision
from planner.contract.proof import Status, relative_gap
from planner.errors import InputError
from planner.options import Options
from planner.search.judged import undecided
from planner_models.flows.path_flow_program import CandidatePaths
from planner_models.flows.route_limits import RouteLimits
from planner_models.traffic.designs.oblivious import fixed_shares
from planner_models.traffic.designs.oblivious.demand_sets import DemandSet, Shares, read_hose, read_matrices
from planner_models.traffic.designs.routable import shed_demands, shed_unreachable
from planner_models.traffic.designs.route_choice import (
    Choice,
    PathCount,
    describe_paths,
    find_candidates,
    require_paths,
)
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan.fixed_shares import list_matrices, list_shares
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.problem.schema import LEAST_MBPS, MOST_MBPS

PATHS_WITHIN_LIMITS: Final = 4
Routes = Annotated[
    PathCount | None,
    Field(
        description="routes that traffic may take: any, that many paths for each demand, or the tunnels of "
        "the problem; default: any, and under latency limits or rules the tunnels where the problem has "
        f"some, else {PATHS_WITHIN_LIMITS} paths"
    ),
]
Over = Annotated[
    Literal["matrices", "hose"],
    Field(
        description="matrices: those of a table or a folder of SNDlib files; hose: all demand within limits "
        "of what each node sends and receives"
    ),
]
Matrices = Annotated[
    Path | None,
    Field(description="a table of step, source, target, rate_mbps, or a folder of SNDlib files"),
]
Hose = Annotated[
    Path | None,
    Field(
        description="a table of node, egress_mbps, ingress_mbps; default: what each node sends and receives "
        "in the problem"
    ),
]

MAX_ELEMENTS: Final = 1_000_000_000  # of an array of demands times links: 8 GB


@shed_unreachable
def route(
    problem: Traffic,
    *,
    over: Over = "hose",
    matrices: Matrices = None,
    hose: Hose = None,
    paths: Routes = None,
    path_choice: Choice = "shortest",
    options: Options = Options(),
) -> Decision[Routing]:
    """Find fixed shares of each demand over paths with the least worst utilization over many matrices.

    The shares stay as they are whatever the demand is; the plan has them in its table `shares`, and in
    `worst_matrices` the matrices that load its busiest links. Its flows are those of the problem's demand.
    Ends at `options.gap`, by default 1e-5.

    returns  Decision with a Routing; the bound holds for all fixed shares, with a number of paths for theirs
    raises   InputError for a set without its table, for `any` under limits of routes, and for a file
             with demands or nodes that the problem does not have
    source   Applegate and Cohen 2003; hose model: Duffield et al. 1999, Ben-Ameur and Kerivin 2005
    """
    limits = RouteLimits.of(problem)
    if paths is None:
        paths = _default_paths(problem, limits)
    require_paths(paths, None)
    if paths == "any" and limits is not None:
        raise InputError(
            "paths is 'any': oblivious knows no latency limits and rules then; give a number of paths, or "
            "'tunnels'"
        )
    _require_size(problem)
    demands = _read_set(problem, over, matrices, hose)
    largest = np.where(demands.largest >= LEAST_MBPS, np.minimum(demands.largest, MOST_MBPS), 0.0)
    largest_problem = problem.with_rates(largest)
    is_demand = (largest > 0) & ~largest_problem.unreachable
    candidates: CandidatePaths | None = None
    scope = f"fixed shares under {demands.words}"
    if paths != "any":
        candidates = find_candidates(largest_problem, paths, path_choice, None, limits)
        is_demand &= ~candidates.without_path(largest_problem)
        scope += f", over {describe_paths(paths, path_choice, None, limits)}"
    proof = undecided(metric="worst_utilization", bound_scope=scope)
    if not is_demand.any():
        empty = routing.routing_by_demand(problem, sp.coo_array((len(is_demand), len(problem.links))))
        return Decision(plan=empty, proof=replace(proof, status=Status.OPTIMAL, metric=None))
    shares = fixed_shares.search(largest_problem, demands, is_demand, candidates, options)
    if shares is None:
        return Decision(plan=None, proof=proof)
    proof = replace(
        proof,
        status=_status(shares, options),
        objective=shares.utilization,
        bound=shares.bound,
        backend=_describe_method(over, paths),
    )
    served = np.where(is_demand, problem.rate_mbps, 0.0)
    plan = routing.routing_by_demand(problem, sp.csr_array(sp.diags_array(served) @ shares.share))
    plan = replace(
        plan,
        shares=list_shares(problem, shares.share),
        worst_matrices=list_matrices(problem, shares.matrices, shares.names),
    )
    made = Decision(plan=plan, proof=proof, guarantees=frozenset({"demand"}))
    left_out = ~is_demand & (problem.rate_mbps > 0)
    if not left_out.any():
        return made
    return shed_demands(problem, left_out, replace(made, plan=replace(plan, shed=None)))


def _status(shares: Shares, options: Options) -> Status:
    """Return whether shares are optimal to the gap of the options, or feasible only."""
    gap = fixed_shares.DEFAULT_GAP if options.gap is None else options.gap
    reached = relative_gap(shares.utilization, shares.bound)
    is_optimal = reached is not None and reached <= max(gap, fixed_shares.DEFAULT_GAP)
    return Status.OPTIMAL if is_optimal else Status.FEASIBLE


def _require_size(problem: Traffic) -> None:
    """Raise InputError where arrays of all demands and links take too much memory."""
    size = len(problem.demands) * len(problem.links)
    if size > MAX_ELEMENTS:
        raise InputError(
            f"the problem has {len(problem.demands):,} demands and {len(problem.links):,} links: oblivious "
            f"needs arrays of demands times links, of {8 * size / 2**30:,.0f} GiB each; it takes at most "
            f"{MAX_ELEMENTS:,} demands times links, leave out small demands or merge nodes"
        )


def _default_paths(problem: Traffic, limits: RouteLimits | None) -> int | Literal["any", "tunnels"]:
    if limits is None:
        return "any"
    return PATHS_WITHIN_LIMITS if problem.tunnels is None else "tunnels"


def _describe_method(over: str, paths: int | str) -> str:
    if over == "matrices":
        return "column generation and cutting planes"
    return "primal-dual method" if paths == "any" else "linear program in dual form"


def _read_set(problem: Traffic, over: str, matrices: Path | None, hose: Path | None) -> DemandSet:
    if over == "hose":
        if matrices is not None:
            raise InputError("matrices: is given, but over is 'hose'; set over to 'matrices'")
        return read_hose(problem, hose)
    if hose is not None:
        raise InputError("hose: is given, but over is 'matrices'; set over to 'hose'")
    if matrices is None:
        raise InputError("matrices: is missing; over is 'matrices', which needs a table or a folder of them")
    return read_matrices(problem, matrices)
