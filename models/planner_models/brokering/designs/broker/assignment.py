"""The broker's decision: which clients go to which cluster, with a proven gap."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Annotated, Any, Final, Literal

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from planner import backends
from planner.arrays import Ints, Ints32
from planner.backends.linear_program import Columns, LinearProgram, Rows
from planner.contract.design import Decision
from planner.contract.proof import Proof, Status, relative_gap
from planner.errors import InputError
from planner.options import Options
from planner_models.brokering.designs.broker import knapsack_bound, knapsack_search, rounding
from planner_models.brokering.plan import billing, plan
from planner_models.brokering.plan.metrics import measure
from planner_models.brokering.plan.min_cost_flow import solve_relaxation
from planner_models.brokering.plan.plan import Assignment
from planner_models.brokering.plan.transportation import (
    CAPACITY_TOLERANCE,
    TransportationProblem,
    transportation_problem,
)
from planner_models.brokering.problem.problem import Brokering

Method = Annotated[
    Literal["auto", "flow", "exact"],
    Field(
        description="flow: min-cost flow and local search; exact: integer program; "
        "auto: flow, then exact where that is small and its gap too large"
    ),
]
DEFAULT_GAP: Final = 1e-4  # relative; optimal where the options do not say
DEFAULT_TIME_LIMIT_S: Final = 20.0  # of the local search
MAX_EXACT_VARIABLES: Final = 20_000  # up to which "auto" also solves the integer program
BACKEND: Final = "min-cost flow (OR-Tools) and repair"


def assign(
    problem: Brokering,
    *,
    method: Method = "auto",
    options: Options = Options(),
    previous: Decision[Assignment] | None = None,
) -> Decision[Assignment]:
    """Assign clients to the clusters on offer at the least objective, as the broker observes them.

    Clients of one location and bitrate are one group. Min-cost flow of divisible clients gives dual
    prices of capacity and a bound; rounding and local search give a plan of whole clients.

    returns  Decision with an Assignment; objective and bound are of metric "objective"
    raises   InputError for a backend that cannot solve integer programs, or an algorithm that is not used
    source   Mukerjee 2018, Fig. 3.10
    """
    if options.backend.startswith("pyomo:"):
        decision = _assign_by_formulation(problem, options)
    elif method == "exact" or options.backend != "highs":
        decision = _assign_exactly(problem, options)
    else:
        decision = _assign_by_flow(problem, method, options)
    return billing.add_traffic_history(problem, decision, previous)


def assign_by_performance(problem: Brokering, *, options: Options = Options()) -> Decision[Assignment]:
    """Assign clients by performance alone, whatever it costs.

    returns  Decision with an Assignment; its objective is of both weights, and has no bound
    """
    decision = assign(problem.with_terms(cost_weight=0.0), method="flow", options=options)
    if decision.plan is None:
        return decision
    return replace(decision, proof=unproven(problem, decision.plan, decision.proof.backend))


def unproven(problem: Brokering, plan: Assignment, backend: str | None) -> Proof:
    """Return the proof of a plan that was not optimised for the objective: its value, and no bound."""
    objective = measure(problem, plan, None)["objective"]
    return Proof(status=Status.FEASIBLE, objective=objective, metric="objective", backend=backend)


def _assign_by_flow(problem: Brokering, method: Method, options: Options) -> Decision[Assignment]:
    """Assign by min-cost flow, rounding, a tighter bound and local search, until the gap is reached."""
    if options.algorithm != "auto":
        raise InputError(
            f"algorithm is '{options.algorithm}': min-cost flow and repair take none; leave it out, "
            "or take method 'exact'"
        )
    started = time.perf_counter()
    gap = _required_gap(options)
    time_limit_s = DEFAULT_TIME_LIMIT_S if options.time_limit_s is None else options.time_limit_s
    until = started + time_limit_s
    transport = transportation_problem(problem)
    relaxation = solve_relaxation(transport)
    if relaxation.shortage is not None:
        reasons = (_explain_shortage(problem, *relaxation.shortage),)
        proof = Proof(status=Status.INFEASIBLE, metric="objective", backend=BACKEND, reasons=reasons)
        return Decision(plan=None, proof=proof)
    assert relaxation.bound is not None
    assigned = rounding.round_to_whole_clients(transport, relaxation, gap=gap / 10, until=until)
    bound = relaxation.bound
    if assigned is not None:
        value = rounding.total_cost(transport, assigned)
        bound = knapsack_bound.tighten_bound(
            transport, relaxation.dual_price, bound, value, gap=gap, until=until
        )
        knapsack_search.improve(
            transport,
            relaxation.dual_price,
            assigned,
            enough=bound + gap * abs(bound),
            until=until,
            seed=options.seed or 0,
        )
    decision = _make_decision(problem, transport, assigned, bound, gap)
    is_small = int(np.isfinite(transport.cost).sum()) <= MAX_EXACT_VARIABLES
    remaining_s = until - time.perf_counter()
    if method == "flow" or not is_small or decision.proof.status is Status.OPTIMAL or remaining_s <= 0:
        return decision
    exact = _assign_exactly(problem, replace(options, time_limit_s=remaining_s, gap=gap))
    return _combine_decisions(decision, exact)


def build_model(problem: Brokering, *, method: Method = "auto") -> LinearProgram:  # noqa: ARG001
    """Build the integer program of Fig. 3.10 with clients counted by group; it minimises the objective."""
    transport = transportation_problem(problem)
    group, cluster = np.nonzero(np.isfinite(transport.cost))
    count = len(group)
    arcs = np.arange(count)
    groups, clusters = transport.cost.shape
    locations = problem.locations["location"].to_numpy()
    names = problem.clusters["cluster"].to_numpy()

    def group_label(g: Any) -> str:
        return f"{locations[problem.groups.location[g]]}@{problem.groups.bitrate_mbps[g] * 1000:g}"

    return LinearProgram.build(
        cost=transport.cost[group, cluster],
        columns=[
            Columns(
                "clients",
                count,
                labels=lambda: [f"{group_label(g)},{names[c]}" for g, c in zip(group, cluster, strict=True)],
            )
        ],
        rows=[
            Rows(
                "served",
                sp.csr_array((np.ones(count), (group, arcs)), shape=(groups, count)),
                lower=transport.count,
                upper=transport.count,
                labels=lambda: [group_label(g) for g in range(groups)],
            ),
            Rows(
                "capacity",
                sp.csr_array((transport.bitrate_mbps[group], (cluster, arcs)), shape=(clusters, count)),
                upper=transport.capacity_mbps,
                labels=lambda: [str(name) for name in names],
            ),
        ],
        upper=transport.count[group].astype(float),
        integer=True,
        name="brokering",
    )


def _assign_exactly(problem: Brokering, options: Options) -> Decision[Assignment]:
    """Assign by the integer program, on any backend that solves integer programs."""
    transport = transportation_problem(problem)
    group, cluster = np.nonzero(np.isfinite(transport.cost))
    solution = backends.solve(build_model(problem), options)
    if solution.x is None:
        proof = Proof(
            status=solution.status,
            bound=solution.bound,
            metric="objective",
            backend=solution.backend,
            reasons=solution.reasons,
        )
        return Decision(plan=None, proof=proof)
    assigned = np.zeros(transport.cost.shape, dtype=np.int32)
    assigned[group, cluster] = np.rint(solution.x)
    whole = assigned if _repair_capacity(transport, assigned) else None
    decision = _make_decision(problem, transport, whole, solution.bound, _required_gap(options))
    return replace(decision, proof=replace(decision.proof, backend=solution.backend))


def _repair_capacity(transport: TransportationProblem, assigned: Ints32) -> bool:
    """Move the clients that exceed a capacity; return False where one fits nowhere.

    Solvers keep rows to about 1e-6 only.
    """
    bitrate, capacity = transport.bitrate_mbps, transport.capacity_mbps
    residual = capacity + CAPACITY_TOLERANCE * np.maximum(capacity, 1.0) - bitrate @ assigned
    if (residual >= 0).all():
        return True
    waiting = np.zeros(len(transport.count), dtype=np.int64)
    for cluster in np.flatnonzero(residual < 0):
        for group in np.argsort(bitrate):
            while residual[cluster] < 0 and assigned[group, cluster]:
                assigned[group, cluster] -= 1
                residual[cluster] += bitrate[group]
                waiting[group] += 1
    state = rounding.State(transport.cost, bitrate, assigned, residual)
    return bool(rounding.insert_clients(state, waiting, np.zeros(len(residual))))


def _assign_by_formulation(problem: Brokering, options: Options) -> Decision[Assignment]:
    """Assign by the formal model through Pyomo: slow, and independent of the rest."""
    from planner.backends import pyomo
    from planner_models.brokering.designs.formulation import clients_by_group, formulation

    model = formulation(problem)
    solution = pyomo.solve_model(model, options)
    if solution.objective is None:
        proof = Proof(status=solution.status, metric="objective", backend=solution.backend)
        return Decision(plan=None, proof=proof)
    bound = None if solution.bound is None else -solution.bound  # the formulation maximises
    assigned = clients_by_group(problem, model)
    decision = _make_decision(
        problem, transportation_problem(problem), assigned, bound, _required_gap(options)
    )
    return replace(decision, proof=replace(decision.proof, backend=solution.backend))


def _required_gap(options: Options) -> float:
    return DEFAULT_GAP if options.gap is None else options.gap


def _make_decision(
    problem: Brokering,
    transport: TransportationProblem,
    assigned: Ints32 | None,
    bound: float | None,
    gap: float,
) -> Decision[Assignment]:
    """Return the decision for clients of each group in each cluster, (G, C); None: no plan was found."""
    if assigned is None:
        proof = Proof(status=Status.UNDECIDED, bound=bound, metric="objective", backend=BACKEND)
        return Decision(plan=None, proof=proof)
    value = rounding.total_cost(transport, assigned)
    # rounding errors may put the two in the wrong order
    if bound is not None and value < bound <= value + 1e-9 * max(abs(value), 1.0):
        bound = value
    reached = relative_gap(value, bound)
    proof = Proof(
        status=Status.OPTIMAL if reached is not None and reached <= max(gap, 1e-9) else Status.FEASIBLE,
        objective=value,
        bound=bound,
        metric="objective",
        backend=BACKEND,
    )
    return Decision(plan=plan.from_groups(problem, sp.csr_array(assigned)), proof=proof)


def _combine_decisions(one: Decision[Assignment], other: Decision[Assignment]) -> Decision[Assignment]:
    """Return the better plan with the tighter bound of two searches on the same problem."""
    if other.plan is None:
        return other if one.plan is None else one
    if one.plan is None:
        return other
    first, second = one.proof, other.proof
    assert first.objective is not None
    assert second.objective is not None
    best = one if first.objective <= second.objective else other
    bounds = [bound for bound in (first.bound, second.bound) if bound is not None]
    bound = min(max(bounds), min(first.objective, second.objective)) if bounds else None
    return replace(best, proof=replace(other.proof, objective=best.proof.objective, bound=bound))


def _explain_shortage(problem: Brokering, group: Ints, cluster: Ints) -> str:
    """Return which clients have too little capacity on offer, in one sentence."""
    groups = problem.groups
    demand = float(groups.bitrate_mbps[group] @ groups.count[group])
    capacity = float(problem.residual_mbps[cluster].sum())
    places = problem.locations["location"].iloc[np.unique(groups.location[group])].tolist()
    named = ", ".join(places[:5]) + (f" and {len(places) - 5} more" if len(places) > 5 else "")
    clusters = "1 cluster" if len(cluster) == 1 else f"{len(cluster)} clusters"
    return (
        f"clients in {named} demand {demand:,.6g} Mbit/s; the residual capacity on offer to them, "
        f"in {clusters}, is {capacity:,.6g} Mbit/s"
    )
