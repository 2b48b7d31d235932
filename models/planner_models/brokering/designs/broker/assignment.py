"""The broker's decision: which clients go to which cluster, with a proven gap."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Final, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from planner import backends
from planner.arrays import Ints, Ints32
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import Expression, ProgramBuilder
from planner.contract import progress
from planner.contract.design import Decision
from planner.contract.proof import Proof, RankProof, Status
from planner.errors import InputError
from planner.formatting import counted
from planner.options import Options, Service
from planner.search.deadline import Deadline
from planner.search.judged import feasible, infeasible, judged, of_solution, undecided
from planner.search.tolerances import ROUNDING, STATED_GAP
from planner_models.brokering.designs.broker import knapsack_bound, knapsack_search, rounding, within_limits
from planner_models.brokering.plan import billing, plan
from planner_models.brokering.plan.metrics import objective_of
from planner_models.brokering.plan.min_cost_flow import solve_relaxation, solve_with_shedding
from planner_models.brokering.plan.plan import Assignment
from planner_models.brokering.plan.transportation import (
    CAPACITY_TOLERANCE,
    Relaxation,
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
WITHOUT_LIMITS: Final = frozenset({"capacity", "demand", "pinned", "forbidden"})
"""Constraints that designs guarantee which do not keep the limits of CDNs."""
DEFAULT_GAP: Final = STATED_GAP  # relative; optimal where the options do not say
DEFAULT_TIME_LIMIT_S: Final = 20.0  # of the local search
BOUND_SHARE: Final = 0.3  # of the time left, that tightening the bound may take
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
        if problem.limits is not None:
            raise InputError(f"backend is '{options.backend}': the formal model has no limits; leave it out")
        decision = _assign_by_formulation(problem, options)
    elif problem.limits is not None:
        decision = _assign_within_limits(problem, options)
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
    return feasible(objective_of(problem, plan), metric="objective", backend=backend)


def _assign_by_flow(problem: Brokering, method: Method, options: Options) -> Decision[Assignment]:
    """Assign by min-cost flow, rounding, a tighter bound and local search, until the gap is reached."""
    if options.algorithm != "auto":
        raise InputError(
            f"algorithm is '{options.algorithm}': min-cost flow and repair take none; leave it out, "
            "or take method 'exact'"
        )
    gap = _required_gap(options)
    deadline = Deadline.of(options, default_s=DEFAULT_TIME_LIMIT_S)
    transport = transportation_problem(problem)
    relaxation = solve_relaxation(transport, deadline=deadline)
    serves_all, assigned = options.service == "all", None
    if relaxation.shortage is None:
        assigned = rounding.round_to_whole_clients(transport, relaxation, deadline)
    elif serves_all:
        reasons = (_explain_shortage(problem, *relaxation.shortage),)
        proof = infeasible(*reasons, metric="objective", backend=BACKEND)
        return Decision(plan=None, proof=proof)
    else:
        relaxation = solve_with_shedding(transport, deadline)
    assert relaxation.bound is not None
    bound = Bound(relaxation.shed, relaxation.bound)
    if assigned is None and not serves_all:
        if relaxation.shed_price is None:  # whole clients do not fit
            relaxation = relaxation.with_shedding(transport.count)
        shedding = transport.with_shedding(transport.unserved_cost)
        assigned = rounding.round_to_whole_clients(shedding, relaxation)
    if assigned is not None:
        bound = _tighten(transport, relaxation, assigned, gap, deadline.share_left(BOUND_SHARE))
        _improve(transport, relaxation, assigned, bound, gap, deadline, options.seed or 0)
    decision = _make_decision(problem, transport, assigned, bound, gap)
    is_small = int(np.isfinite(transport.cost).sum()) <= MAX_EXACT_VARIABLES
    if method == "flow" or not is_small or decision.proof.status is Status.OPTIMAL or deadline.is_over:
        return decision
    exact = _assign_exactly(problem, deadline.options(replace(options, gap=gap)))
    return _combine_decisions(decision, exact)


class Bound(NamedTuple):
    """Lower bounds: on the clients that any plan sheds, and on the cost of the others if no more are shed."""

    shed: int
    cost: float


def _tighten(
    transport: TransportationProblem, relaxation: Relaxation, assigned: Ints32, gap: float, deadline: Deadline
) -> Bound:
    """Return the relaxation's bound, tightened by knapsacks; shed clients count at their dual price."""
    assert relaxation.bound is not None
    price = relaxation.shed_price or 0.0
    priced, clients = transport, assigned
    if relaxation.shed_price is not None:
        priced = transport.with_shedding(price)
    elif assigned.shape[1] > transport.cost.shape[1]:
        clients = assigned[:, :-1]
    total = price * relaxation.shed
    value = rounding.total_cost(priced, clients)
    served = max(value - price * float(assigned[:, transport.cost.shape[1] :].sum()), 1e-9)
    bound = knapsack_bound.tighten_bound(
        priced,
        relaxation.dual_price[: priced.cost.shape[1]],
        relaxation.bound + total,
        value,
        gap=gap * served / max(value, 1e-9),
        deadline=deadline,
    )
    if not price:
        return Bound(relaxation.shed, min(bound, transport.unserved_cost))
    # where the others would cost more than all clients can, no plan sheds so few
    excess = (bound - transport.unserved_cost) / price
    shed = max(relaxation.shed, int(np.ceil(excess - 1e-6)))
    return Bound(shed, max(bound - price * shed, 0.0))


def _improve(
    transport: TransportationProblem,
    relaxation: Relaxation,
    assigned: Ints32,
    bound: Bound,
    gap: float,
    deadline: Deadline,
    seed: int,
) -> None:
    """Improve an assignment in place by local search; first, clients that are shed go where they fit."""
    sheds, enough = assigned.shape[1] > transport.cost.shape[1], (1 + gap) * bound.cost
    if sheds:
        enough += bound.shed * transport.unserved_cost
        transport = transport.with_shedding(transport.unserved_cost)
    served = rounding.total_cost(transport, assigned[:, : len(relaxation.dual_price) - sheds])

    def report(cost: float) -> None:
        if not sheds:  # else the cost of clients that are shed would be part of it
            progress.report("objective", cost, bound.cost)

    knapsack_search.improve(
        transport, relaxation.dual_price, assigned, enough=enough, scale=served, deadline=deadline, seed=seed,
        report=report,
    )  # fmt: skip
    if sheds:
        waiting = assigned[:, -1].astype(np.int64)
        assigned[:, -1] = 0
        state = rounding.State.of(transport, assigned)
        rounding.insert_clients(
            state, waiting, np.zeros(assigned.shape[1]), rounding.insertion_order(transport)
        )


def build_model(
    problem: Brokering,
    *,
    method: Method = "auto",  # noqa: ARG001
    service: Service = "best",
) -> LinearProgram:
    """Build the integer program of Fig. 3.10 with clients counted by group; it minimises the objective.

    service  "best": clients may be shed, at a cost above that of all others; "all": all are served
    """
    transport = transportation_problem(problem)
    if problem.limits is not None:
        program = within_limits.build_model(problem, transport, sheds=service == "best")
        return program.describe(
            "the objective of clients on clusters within the limits of CDNs", metric="objective"
        )
    about = "the objective of clients on clusters: cost, and the weight of performance"
    if service == "all":
        return _build_program(problem, transport).describe(about, metric="objective")
    about += f", and {transport.unserved_cost:g} for each client that is shed, which the metric omits"
    program = _build_program(problem, transport, shed_cost=transport.unserved_cost)
    return program.describe(about, metric="objective")


def _build_program(
    problem: Brokering,
    transport: TransportationProblem,
    *,
    shed_cost: float | None = None,
    most_shed: int | None = None,
) -> LinearProgram:
    """Build the integer program of a transportation problem; with a `shed_cost`, clients may be shed."""
    group, cluster = np.nonzero(np.isfinite(transport.cost))
    groups, clusters = transport.cost.shape
    count = transport.count
    locations = problem.locations["location"].to_numpy()
    names = problem.clusters["cluster"].to_numpy()

    def group_label(g: Any) -> str:
        return f"{locations[problem.groups.location[g]]}@{problem.groups.bitrate_mbps[g] * 1000:g}"

    def group_labels() -> list[str]:
        return [group_label(g) for g in range(groups)]

    def arc_labels() -> list[str]:
        return [f"{group_label(g)},{names[c]}" for g, c in zip(group, cluster, strict=True)]

    m = ProgramBuilder(name="brokering")
    clients = m.variables(
        "clients",
        len(group),
        upper=count[group],
        cost=transport.cost[group, cluster],
        integer=True,
        labels=arc_labels,
    )
    served: Expression = clients.sum_by(group, groups)
    mbps = (clients * transport.bitrate_mbps[group]).sum_by(cluster, clusters)
    if shed_cost is not None:
        shed = m.variables("shed", groups, upper=count, cost=shed_cost, integer=True, labels=group_labels)
        served += shed
    m.constrain("served", served, equal=count, labels=group_labels)
    m.constrain("capacity", mbps, upper=transport.capacity_mbps, labels=lambda: [str(name) for name in names])
    if most_shed is not None:
        m.constrain("shed", m["shed"].sum(), upper=most_shed)
    return m.build()


def _assign_exactly(problem: Brokering, options: Options) -> Decision[Assignment]:
    """Assign by the integer program, on any backend that solves integer programs.

    Where clients have to be shed, one program finds the least number, and another the least cost then.
    """
    transport = transportation_problem(problem)
    deadline = Deadline.of(options)
    shed, fewest = 0, 0
    if options.service == "best":
        free = replace(transport, cost=np.where(np.isfinite(transport.cost), 0.0, np.inf))
        solution = backends.solve(_build_program(problem, free, shed_cost=1.0), options)
        if solution.objective is None or solution.bound is None:
            return Decision(plan=None, proof=of_solution(solution))
        shed, fewest = int(np.ceil(solution.bound - 1e-6)), round(solution.objective)
    program = _build_program(problem, transport, shed_cost=0.0 if fewest else None, most_shed=fewest or None)
    solution = backends.solve(program, deadline.options(options, minimum_s=0.1))
    if shed < fewest:  # neither the least number is proven, nor the cost then
        solution = replace(solution, bound=0.0)
    if solution.x is None:
        proof = of_solution(solution, bound=solution.bound, metric="objective", reasons=solution.reasons)
        return Decision(plan=None, proof=proof)
    group, cluster = np.nonzero(np.isfinite(transport.cost))
    assigned = np.zeros(transport.cost.shape, dtype=np.int32)
    assigned[group, cluster] = np.rint(solution.x[: len(group)])
    if len(solution.x) > len(group):
        assigned = np.column_stack([assigned, np.rint(solution.x[len(group) :]).astype(np.int32)])
        transport_used = transport.with_shedding(transport.unserved_cost)
    else:
        transport_used = transport
    integer_plan = assigned if _repair_capacity(transport_used, assigned) else None
    bound = None if solution.bound is None else Bound(shed, solution.bound)
    decision = _make_decision(problem, transport, integer_plan, bound, _required_gap(options))
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
    order = rounding.insertion_order(transport)
    return bool(rounding.insert_clients(state, waiting, np.zeros(len(residual)), order))


def _assign_within_limits(problem: Brokering, options: Options) -> Decision[Assignment]:
    """Assign within the limits of CDNs: fewest shed clients, then least lack of floors, then objective."""
    transport = transportation_problem(problem)
    gap = _required_gap(options)
    limited = within_limits.assign(problem, transport, replace(options, gap=gap))
    if limited.proof is not None:
        return Decision(plan=None, proof=limited.proof)
    bound = None if limited.bound is None else Bound(*limited.bound)
    decision = _make_decision(problem, transport, limited.assigned, bound, gap)
    if decision.plan is None:
        return decision
    kept = {*WITHOUT_LIMITS, "caps"}
    scope = None
    if limited.lack_mbps > 0:
        scope = f"plans that lack no more than {limited.lack_mbps:,.6g} Mbit/s of the floors"
    else:
        kept.add("floors")
    proof = replace(decision.proof, backend="column-wise program and repair", bound_scope=scope)
    return replace(decision, proof=proof, guarantees=frozenset(kept))


def _assign_by_formulation(problem: Brokering, options: Options) -> Decision[Assignment]:
    """Assign by the formal model through Pyomo: slow, and independent of the rest."""
    from planner.backends import pyomo
    from planner_models.brokering.designs.formulation import clients_by_group, formulation

    # one client that is shed costs more than all others: the gap is of the objective with all of them shed
    gap = _required_gap(options) / (10 * max(int(problem.count.sum()), 1))
    transport = transportation_problem(problem)
    without = np.flatnonzero(~np.isfinite(transport.cost).any(axis=1))
    if len(without) and options.service == "all":
        reasons = (_explain_shortage(problem, without, np.zeros(0, dtype=np.int64)),)
        return Decision(plan=None, proof=infeasible(*reasons, metric="objective"))
    model = formulation(problem, service=options.service)
    solution = pyomo.solve_model(model, replace(options, gap=gap))
    if solution.objective is None:
        proof = of_solution(solution, metric="objective")
        return Decision(plan=None, proof=proof)
    assigned = clients_by_group(problem, model)
    bound = None
    if solution.bound is not None:  # the formulation maximises
        shed = int(max(-solution.bound, 0.0) // transport.unserved_cost)
        bound = Bound(shed, -solution.bound - shed * transport.unserved_cost)
    decision = _make_decision(problem, transport, assigned, bound, _required_gap(options))
    return replace(decision, proof=replace(decision.proof, backend=solution.backend))


def _required_gap(options: Options) -> float:
    return DEFAULT_GAP if options.gap is None else options.gap


def _make_decision(
    problem: Brokering,
    transport: TransportationProblem,
    assigned: Ints32 | None,
    bound: Bound | None,
    gap: float,
) -> Decision[Assignment]:
    """Return the decision for clients of each group in each cluster, (G, C); None: no plan was found.

    assigned  with one more column for clients that are shed, or without
    """
    if assigned is None:
        lower_bound = None if bound is None else bound.shed * transport.unserved_cost + bound.cost
        proof = undecided(bound=lower_bound, metric="objective", backend=BACKEND)
        return Decision(plan=None, proof=proof)
    clusters = transport.cost.shape[1]
    shed, served = int(assigned[:, clusters:].sum()), rounding.total_cost(transport, assigned[:, :clusters])
    penalty = transport.unserved_cost if shed or (bound is not None and bound.shed) else 0.0
    total: float | None = None
    ranks: tuple[RankProof, ...] = ()
    if bound is not None:
        # rounding errors may put the two in the wrong order
        if shed == bound.shed and served < bound.cost <= served + 1e-9 * max(abs(served), 1.0):
            bound = Bound(shed, served)
        total = bound.shed * penalty + (min(bound.cost, penalty) if penalty else bound.cost)
        clients = int(transport.count.sum())
        ranks = (
            RankProof("served", clients - shed, clients - bound.shed),
            RankProof("weighted_cost", served, bound.cost),
        )
    proof = judged(
        "min",
        served + shed * penalty,
        total,
        gap=max(gap, ROUNDING),
        is_optimal=None if bound is not None and shed == bound.shed else False,
        metric="objective",
        ranks=ranks,
        backend=BACKEND,
    )
    return Decision(plan=plan.from_groups(problem, sp.csr_array(assigned)), proof=proof)


def _combine_decisions(decision_: Decision[Assignment], other: Decision[Assignment]) -> Decision[Assignment]:
    """Return the better plan with the tighter bound of two searches on the same problem."""
    if other.plan is None:
        return other if decision_.plan is None else decision_
    if decision_.plan is None:
        return other
    first, second = decision_.proof, other.proof
    assert first.objective is not None
    assert second.objective is not None
    best, best_objective = (
        (decision_, first.objective) if first.objective <= second.objective else (other, second.objective)
    )
    tightest = max((first, second), key=lambda proof: -np.inf if proof.bound is None else proof.bound)
    proof = replace(other.proof, objective=best_objective, bound=None, ranks=())
    if tightest.bound is not None:
        is_exceeded = tightest.bound > best_objective  # by rounding errors of the two searches
        ranks = tuple(
            RankProof(reached.metric, reached.objective, reached.objective if is_exceeded else proven.bound)
            for reached, proven in zip(best.proof.ranks, tightest.ranks, strict=False)
        )
        proof = replace(proof, bound=min(tightest.bound, best_objective), ranks=ranks)
    return replace(best, proof=proof)


def _explain_shortage(problem: Brokering, group: Ints, cluster: Ints) -> str:
    """Return the clients with too little capacity on offer, in one sentence."""
    groups = problem.groups
    demand = float(groups.bitrate_mbps[group] @ groups.count[group])
    capacity = float(problem.residual_mbps[cluster].sum())
    locations = problem.locations["location"].iloc[np.unique(groups.location[group])].tolist()
    named = ", ".join(locations[:5]) + (f" and {len(locations) - 5} more" if len(locations) > 5 else "")
    clusters = counted(len(cluster), "clusters")
    return (
        f"clients in {named} demand {demand:,.6g} Mbit/s; the residual capacity on offer to them, "
        f"in {clusters}, is {capacity:,.6g} Mbit/s"
    )
