"""Plans and decisions from flows that a solver has found: the plan's own value, and the proof of both.

Flows are those of linear programs, of solvers of our own over trees, or traffic on paths.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Final, Literal

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from planner.arrays import Floats, Ints
from planner.compiled import njit, run_small_in_python
from planner.contract.design import Decision
from planner.contract.proof import Proof, Status
from planner.errors import InputError
from planner.options import Options
from planner.search.judged import feasible, judged, optimal, undecided
from planner.search.tolerances import OPTIMALITY, ROUNDING
from planner_models.flows.augmented_lagrangian import PathFlow
from planner_models.flows.fair_rates import max_min_rates, proportional_rates
from planner_models.flows.link_flow_program import METRIC_OF, Objective, link_cost
from planner_models.flows.path_flow_program import CandidatePaths, route_table
from planner_models.flows.problem import MIN_GAP
from planner_models.flows.reduced_problem import MAX_PAIR_ROWS, FlowSplit, LinkFlow, ReducedProblem
from planner_models.graphs.indexing import sum_by_index
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic

Fairness = Literal["given", "max-min", "proportional"]


Rates = Annotated[
    Fairness,
    Field(
        description="given: every demand is sent at its rate, even over overloaded links; max-min, "
        "proportional: demands are elastic, their rate is a cap, and TCP sets their rates"
    ),
]
OPTIMALITY_GAP: Final = OPTIMALITY  # relative, where options give none
ALL_SERVED: Final = "plans that serve all demand that has a path"
"""The scope of a bound on the utilization."""


@dataclass(frozen=True, eq=False)
class SolvedFlows:
    """The rates that a solution serves, (K,) Mbit/s, and the plan for these times shares, (K,) or one."""

    served_mbps: Floats
    make_plan: Callable[[Floats | float], Routing]


def decide_by_plan(
    problem: Traffic, objective: Objective, flows: SolvedFlows, proof: Proof, options: Options
) -> Decision[Routing]:
    """Return the decision with the value of the plan itself, which a solver knows to its tolerance only.

    Where rates differ by many orders of magnitude, that tolerance can be more than a capacity allows: then
    demands over overloaded links are reduced. The bound stays, and the status follows from the gap.
    """
    plan = flows.make_plan(1.0)
    utilization = plan.links["load_mbps"].to_numpy(float) / problem.capacity_mbps
    busiest = float(utilization.max(initial=0.0))
    guarantees, missing = {"capacity", "demand"}, 0.0
    if objective == "concurrent":
        value = 1 / busiest
        if value < 1:
            plan = flows.make_plan(value)
    elif objective == "utilization":
        value, guarantees = busiest, {"demand"}
    else:
        plan, share = fit_capacities(problem, flows, plan)
        value, total = float((flows.served_mbps * share).sum()), float(flows.served_mbps.sum())
        missing = 1 - value / total if total > 0 else 0.0
        if objective == "cost":
            value = float(link_cost(problem) @ plan.links["load_mbps"].to_numpy(float))
    proof = replace(proof, objective=value)
    if objective == "cost" and proof.bound is not None:
        proof = replace(proof, bound=min(proof.bound, value))  # a plan that delivers less may cost less
    return Decision(plan=plan, proof=judge_gap(proof, missing, options), guarantees=frozenset(guarantees))


def fit_capacities(problem: Traffic, flows: SolvedFlows, plan: Routing) -> tuple[Routing, Floats | float]:
    """Return a plan without overloaded links, and the share of each demand, (K,), that it serves.

    plan  of all that is served; it stays as it is where no link is overloaded
    """
    utilization = plan.links["load_mbps"].to_numpy(float) / problem.capacity_mbps
    if float(utilization.max(initial=0.0)) <= 1:
        return plan, 1.0
    share = fitting_shares(problem, plan, utilization)
    return flows.make_plan(share), share


def limit_scope(decision: Decision[Routing]) -> Decision[Routing]:
    """Return the decision with the scope of a bound on the utilization: plans that shed may be below it."""
    proof = decision.proof
    if proof.metric != "max_utilization" or not proof.bound:
        return decision
    scope = ", over ".join(text for text in (ALL_SERVED, proof.bound_scope) if text)
    return replace(decision, proof=replace(proof, bound_scope=scope))


def judge_gap(proof: Proof, missing: float, options: Options) -> Proof:
    """Return the proof with the status that objective and bound prove; `missing`: share not served."""
    gap = proof.gap
    if gap is not None and gap <= ROUNDING:
        proof = replace(proof, bound=proof.objective)  # rounding may put it on the wrong side of the value
    is_optimal = gap is not None and gap + missing <= max(options.gap or 0.0, OPTIMALITY_GAP)
    return replace(proof, status=Status.OPTIMAL if is_optimal else Status.FEASIBLE)


def _choose_better(
    decision: Decision[Routing], other: Decision[Routing], *, is_less: bool
) -> Decision[Routing]:
    """Return the decision with a plan of the better objective value; the first one where they are equal."""
    if decision.plan is None or other.plan is None:
        return decision if other.plan is None else other
    first, second = decision.proof.objective or 0.0, other.proof.objective or 0.0
    return decision if (first <= second if is_less else first >= second) else other


def merge_proofs(
    decision: Decision[Routing], other: Decision[Routing], options: Options
) -> Decision[Routing]:
    """Return the better plan of two decisions for one objective, with the tighter of their bounds."""
    is_less = decision.proof.metric == "max_utilization"
    bounds = [made.proof.bound for made in (decision, other) if made.proof.bound is not None]
    best = _choose_better(decision, other, is_less=is_less)
    if not bounds:
        return best
    proof = replace(best.proof, bound=max(bounds) if is_less else min(bounds))
    return replace(best, proof=proof if best.plan is None else judge_gap(proof, 0.0, options))


def fitting_shares(problem: Traffic, plan: Routing, utilization: Floats) -> Floats:
    """Return the share of each demand, (K,), with which no link of the plan carries more than it can.

    A demand gets the smallest capacity over load of its links: then no load exceeds its link's capacity.
    """
    flow = routing.flow_by_demand(problem, plan).tocoo()
    share = np.ones(len(problem.demands))
    np.minimum.at(share, flow.row, 1 / np.maximum(utilization[flow.col], 1.0))
    return share


def as_delivered(
    problem: Traffic, decision: Decision[Routing], status: Status, bound: float | None = None
) -> Decision[Routing]:
    """Return a decision for the concurrent flow as one for delivered traffic."""
    offered, share = float(problem.rate_mbps.sum()), decision.proof.objective
    proof = replace(
        decision.proof,
        status=status if decision.plan is not None else decision.proof.status,
        objective=None if share is None else min(share, 1.0) * offered,
        bound=offered if bound is None else min(bound, offered),
        metric="delivered_mbps",
    )
    return replace(decision, proof=proof)


def flows_over_paths(
    problem: Traffic, paths: CandidatePaths, x: Floats, *, is_partial: bool, has_routes: bool = True
) -> SolvedFlows:
    """Return the plan of the traffic x (P,), Mbit/s, on paths.

    is_partial  demands may be served in part; else their traffic is scaled to their rates
    has_routes  whether the plan lists its routes
    """
    rate = _exact_rates(problem, is_partial, paths.demand, np.clip(x, 0.0, None))

    def make_plan(share: Floats | float) -> Routing:
        shared = rate * np.broadcast_to(share, len(problem.demands))[paths.demand]
        flow = sp.csr_array(
            (shared, (paths.demand, np.arange(len(shared)))), shape=(len(problem.demands), len(shared))
        )
        routes = route_table(problem, paths, shared) if has_routes else None
        return routing.routing_by_demand(problem, flow @ paths.uses, routes)

    served = sum_by_index(paths.demand, rate, len(problem.demands))
    return SolvedFlows(served, make_plan)


def _exact_rates(problem: Traffic, is_partial: bool, demand: Ints, rate: Floats) -> Floats:
    """Return the rates of the paths, scaled to add up exactly to each demand."""
    sent = sum_by_index(demand, rate, len(problem.demands))
    target_rate = np.minimum(sent, problem.rate_mbps) if is_partial else problem.rate_mbps
    first = np.r_[True, np.diff(demand) != 0]
    # a demand below the solver's tolerance uses its first path
    rate = np.where(first & (sent[demand] <= 0), 1.0, rate)
    sent = sum_by_index(demand, rate, len(problem.demands))
    return rate / sent[demand] * target_rate[demand]


def _bound_of(objective: Objective, utilization: float) -> float | None:
    """Return the bound on an objective that a bound on the utilization gives; None for no bound."""
    if objective != "concurrent":
        return utilization
    return 1.0 / utilization if utilization > 0 else None


def make_decision(
    problem: Traffic,
    reduced: ReducedProblem,
    objective: Objective,
    *,
    split: FlowSplit | None,
    bound: float,
    gap: float,
    backend: str,
) -> Decision[Routing]:
    """Return the decision for objective "concurrent" or "utilization".

    split  None where the search ended before it had one, or for its bound alone
    bound  lower bound on the utilization of all routings
    gap    relative gap at which a plan counts as optimal
    """
    metric = METRIC_OF[objective]
    if split is None:
        limit = None if bound <= 0 else _bound_of(objective, bound)
        proof = undecided(bound=limit, metric=metric, backend=backend)
        return Decision(plan=None, proof=proof)
    plan = routing_of_flow(problem, reduced.find_flow(split))
    # the objective value is that of the plan itself, not the one that the search computed
    utilization = float(plan.links["utilization"].max())
    share = min(1.0, 1.0 / utilization) if objective == "concurrent" else 1.0
    if share < 1.0:
        plan = scale_plan(problem, plan, share)
    value = 1.0 / utilization if objective == "concurrent" else utilization
    # rounding may put the bound on the wrong side of the value
    if utilization * (1 - MIN_GAP) < bound < utilization * (1 + MIN_GAP):
        bound = utilization
    limit = _bound_of(objective, bound)
    proof = judged(
        "max" if objective == "concurrent" else "min",
        value,
        limit,
        gap=max(gap, MIN_GAP),
        metric=metric,
        backend=backend,
    )
    if objective == "utilization":
        guarantees = {"demand"}
    else:
        guarantees = {"capacity", "demand"} if share == 1 else {"capacity"}
    return Decision(plan=plan, proof=proof, guarantees=frozenset(guarantees))


def routing_of_flow(problem: Traffic, flow: LinkFlow) -> Routing:
    """Return the routing of traffic on links, by demand or by target."""
    make_routing = routing.routing_by_demand if flow.is_by_demand else routing.routing_by_target
    return make_routing(problem, flow.rate_mbps)


def scale_plan(problem: Traffic, plan: Routing, share: float) -> Routing:
    """Return the plan, which serves all demands, with all rates multiplied by `share`."""
    flows = plan.flows.assign(rate_mbps=plan.flows["rate_mbps"] * share)
    links = plan.links.assign(
        load_mbps=plan.links["load_mbps"] * share, utilization=plan.links["utilization"] * share
    )
    return Routing(flows=flows, links=links, shed=routing.list_shed(problem, share * problem.rate_mbps))


def decide_without_demand(problem: Traffic, objective: Objective) -> Decision[Routing]:
    """Return the decision for a problem in which no demand has a rate: an empty plan, which is optimal.

    Its concurrent flow has no limit, and so no value.
    """
    empty = sp.coo_array((len(problem.demands), len(problem.links)))
    proof = optimal(metric=METRIC_OF[objective])
    if objective not in ("concurrent", "cost"):
        proof = replace(proof, objective=0.0, bound=0.0)
    return Decision(plan=routing.routing_by_demand(problem, empty), proof=proof)


def refuse_solver_options(method: str, options: Options) -> None:
    """Raise InputError for options that name another solver, which `method` would ignore."""
    if options.backend != "highs":
        raise InputError(f"backend is '{options.backend}': '{method}' is a solver of its own, leave it out")
    if options.algorithm != "auto":
        raise InputError(
            f"algorithm is '{options.algorithm}': '{method}' solves no linear program with it, leave it out"
        )


def routing_of_paths(problem: Traffic, order: Ints, flow: PathFlow) -> Routing:
    """Return the routing of traffic on paths: per demand up to `MAX_PAIR_ROWS` rows, else per target.

    order  demand of the problem for each demand of the flow
    """
    demand = order[flow.demand]
    if int((flow.end - flow.start).sum()) <= MAX_PAIR_ROWS:
        hops = flow.end - flow.start
        which = np.repeat(np.arange(len(hops)), hops)
        entry = np.arange(len(which)) - np.repeat(np.cumsum(hops) - hops, hops) + flow.start[which]
        shape = (len(problem.demands), len(problem.links))
        by_demand = sp.coo_array((flow.flow[which], (demand[which], flow.link[entry])), shape=shape)
        return routing.routing_by_demand(problem, by_demand)
    commodity, row = problem.targets, problem.target_row[demand]
    if problem.has_classes:
        commodity, row = np.unique(problem.commodity[demand], return_inverse=True)
    by_target = np.zeros((len(commodity), len(problem.links)))
    _add_flow(row, flow.flow, flow.start, flow.end, flow.link, by_target)
    return routing.routing_by_target(problem, sp.csr_array(by_target), commodity)


@run_small_in_python(max_elements=1_000)
@njit(cache=True)
def _add_flow(row, flow, start, end, link, total: Floats):  # type: ignore[no-untyped-def]
    for p in range(len(flow)):
        for i in range(start[p], end[p]):
            total[row[p], link[i]] += flow[p]


def tcp_rates(problem: Traffic, share: sp.sparray, rates: Fairness) -> Floats:
    """Return the rate of each demand, (K,) Mbit/s, when its traffic takes links in the shares (K, E).

    TCP's congestion control is modelled, as in the fluid model of Sen et al. 2013, section 6, by the fair
    allocation that it converges to: its exact form depends on the variant, and lies between the two here.
    """
    if rates == "given":
        return problem.rate_mbps.copy()
    allocate = max_min_rates if rates == "max-min" else proportional_rates
    demands = np.flatnonzero(problem.rate_mbps > 0)
    rate = np.zeros(len(problem.demands))
    rate[demands] = allocate(sp.csr_array(share)[demands], problem.capacity_mbps, problem.rate_mbps[demands])
    return rate


def route_shares(problem: Traffic, share: sp.sparray, rates: Fairness) -> Decision[Routing]:
    """Return the decision to send traffic over links in the shares (K, E).

    It guarantees to serve demands where `rates` is "given", else to keep within capacities.
    """
    flow = sp.diags_array(tcp_rates(problem, share, rates)) @ sp.csr_array(share)
    guarantees = frozenset({"demand"} if rates == "given" else {"capacity"})
    proof = feasible()
    return Decision(plan=routing.routing_by_demand(problem, flow), proof=proof, guarantees=guarantees)
