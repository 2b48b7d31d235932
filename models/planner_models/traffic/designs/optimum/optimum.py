"""Multi-commodity flow by linear programming or column generation, over all routes or given paths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Final, Literal

import numpy as np
from pydantic import Field

from planner.backends.linear_program import LinearProgram
from planner.contract.design import Decision
from planner.contract.parameters import spread
from planner.contract.proof import Status
from planner.errors import InputError
from planner.options import Options, Service
from planner.search.deadline import Deadline
from planner.search.tolerances import SOLVER
from planner_models.flows import link_flow_program, path_flow_program
from planner_models.flows.link_flow_program import METRIC_OF, Objective, link_cost
from planner_models.flows.route_limits import RouteLimits
from planner_models.traffic.designs import class_priorities, fitted_plan
from planner_models.traffic.designs.fitted_plan import fit_plan
from planner_models.traffic.designs.limited_moves import limited_moves
from planner_models.traffic.designs.optimum.optimum_search import (
    FIT_TOLERANCE,
    GivenRoutes,
    Method,
    OptimumSearch,
)
from planner_models.traffic.designs.routable import (
    refuse_demands,
    shed_demands,
    shed_unreachable_within_limits,
    without_share,
)
from planner_models.traffic.designs.route_choice import (
    describe_lack,
    find_candidates,
    require_paths,
)
from planner_models.traffic.plan.flow_decision import (
    as_delivered,
    decide_without_demand,
    limit_scope,
    scale_plan,
)
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.plan.verified_flow import verify_flow
from planner_models.traffic.problem.problem import Traffic

LEAST_TOLERANCE: Final = SOLVER  # of the most traffic, which the cheapest plan may deliver less

ObjectiveChoice = Annotated[
    Objective,
    Field(
        description="delivered: most traffic, then least busiest link; concurrent: grow all demands alike; "
        "utilization: least busiest link; total: most traffic; cost: cheapest that delivers the most"
    ),
]


@spread(routes=GivenRoutes())
def route(
    problem: Traffic,
    *,
    objective: ObjectiveChoice = "delivered",
    routes: GivenRoutes,
    classes: class_priorities.Order = "strict",
    most_moved: limited_moves.MovedShare = None,
    options: Options = Options(),
    previous: Decision[Routing] | None = None,
) -> Decision[Routing]:
    """Solve for the best routing for one objective, by linear programming.

    The plan sends every demand at its rate where that fits. Where it does not, `delivered`, `total` and
    `cost` shed as little traffic as possible, and `concurrent` serves the same share of all demands; with
    `options.service` "all" the problem is infeasible instead. `delivered` solves `concurrent` first: where
    all demands fit, that is the routing with the least utilization, by column generation below 10,000 flow
    variables also that with the shortest routes (`least_cost`); where they do not, every routing that
    delivers the most fills a link, and `total` finds one. Where the time limit comes first, or where a chosen
    solver would get more than a million flow variables, a heuristic delivers what it can (`fitted_plan`).
    Where a search over more than 100,000 demands has no plan within the time limit, traffic takes shortest
    paths (`fitted_plan`). Rates are in Mbit/s.

    Method "auto" uses `columns` over all routes from 10,000 flow variables (targets times links) on, for
    the largest total flow from 5,000 on, where it was 4 to 100 times faster, unless a backend or an
    algorithm is chosen.

    Where demands have classes and not all fits, `delivered`, `total` and `cost` serve them in the order of
    their priorities (`class_priorities`), with a proof for each; `cost` then takes the cheapest of these
    plans. `concurrent` and `utilization` treat all classes alike.

    Column generation starts from the routes of `previous`, and so does the search over many given paths; what
    is proven does not depend on them.

    With `most_moved` the plan takes at most that share of the traffic off its routes in the plan `previous`,
    and has a table `rerouting` of what that costs (`limited_moves`).

    A demand without a path within its latency limit and its rules is shed, and the concurrent flow is that of
    the others. So is one without a tunnel or a path within `max_hops`, but as other plans could serve it, the
    concurrent flow is then 0, and the proof says what that of the others is. Under limits, paths="any"
    searches all routes that keep them, by column generation (`restricted_flow`).

    returns  Decision with a Routing; its bound holds for all routings (that keep limits) with paths="any",
             with "utilization" for those that serve all demand
    raises   InputError for `max_hops` without a number of paths, or objective "cost" on links without a cost
    source   Sen et al. 2013, equation (1); concurrent flow: Shahrokhi and Matula 1990
    """
    by_class = problem.has_classes and classes != "ignored" and objective in ("delivered", "total", "cost")
    levels = class_priorities.make_levels(problem, classes) if by_class else None
    if most_moved is None or previous is None or previous.plan is None:
        return limit_scope(_route_freely(problem, objective, routes, levels, options, previous))
    deadline = Deadline.of(options)
    free = _route_freely(problem, objective, routes, levels, options.share_time(0.5), previous)
    request = limited_moves.Request(
        previous=previous.plan, free=free, most_moved=most_moved, objective=objective, levels=levels
    )
    return limit_scope(_limit_moves(problem, request, routes, deadline.options(options)))


def _route_freely(
    problem: Traffic,
    objective: Objective,
    routes: GivenRoutes,
    levels: Sequence[class_priorities.Level] | None,
    options: Options,
    previous: Decision[Routing] | None,
) -> Decision[Routing]:
    """Route demands, whatever moves; `levels` of classes, where they have an order.

    previous  decision that the search starts from
    """
    deadline = Deadline.of(options)
    first = options if levels is None else options.share_time(1 / 3)
    decision = _route_alike(problem, objective=objective, routes=routes, options=first, previous=previous)
    if levels is None or decision.plan is None or not len(problem.routable.targets) or not len(problem.links):
        return decision
    remaining_options = deadline.options(options)
    if decision.plan.shed is None:
        return class_priorities.prove_all_served(decision, levels, problem.rate_mbps)
    search = OptimumSearch(problem.routable, routes, remaining_options)
    routable = search.problem
    if not (routable.rate_mbps > 0)[~search.without_path()].any():
        return decision  # no route of any demand keeps the limits
    if search.uses_columns(objective):
        decision_ = class_priorities.route_by_columns(routable, levels, options=remaining_options)
    elif search.restricted is not None:
        decision_ = class_priorities.route_within_limits(
            routable,
            levels,
            restricted=search.restricted,
            scope=search.scope,
            has_least_cost=objective == "cost",
            options=remaining_options,
        )
    elif search.is_too_large(objective):
        decision_ = class_priorities.judge_plan(routable, decision, levels, options=remaining_options)
    else:
        decision_ = class_priorities.route_by_program(
            routable,
            levels,
            paths=search.found,
            scope=search.scope,
            has_least_cost=objective == "cost",
            options=remaining_options,
        )
    return decision_ if routable is problem else shed_demands(problem, problem.unreachable, decision_)


def _limit_moves(
    problem: Traffic, request: limited_moves.Request, routes: GivenRoutes, options: Options
) -> Decision[Routing]:
    """Return the best plan that takes at most a share of the traffic off its routes in the plan before."""
    if not len(problem.links) or not len(problem.routable.targets):
        return request.free
    search = OptimumSearch(problem.routable, routes, options)
    left_out = search.without_path() | problem.unreachable
    return limited_moves.route(
        problem, request, left_out=left_out, found=search.found, scope=search.scope, options=options
    )


@shed_unreachable_within_limits
def _route_alike(
    problem: Traffic,
    *,
    objective: Objective,
    routes: GivenRoutes,
    options: Options,
    previous: Decision[Routing] | None,
) -> Decision[Routing]:
    """Route demands without regard to classes, see `route`."""
    require_paths(routes.paths, routes.max_hops)
    _require_method(routes.method, routes.paths)
    if not len(problem.targets):
        return decide_without_demand(problem, objective)
    if objective == "cost":
        link_cost(problem)  # raises where links have none
    search = OptimumSearch(problem, routes, options, previous)
    left_out = search.without_path()
    if not left_out.any():
        return _route(search, objective)
    if options.service == "all":
        return refuse_demands(problem, left_out, describe_lack(problem, search.found, routes.max_hops))
    search.problem = problem.with_rates(np.where(left_out, 0.0, problem.rate_mbps))
    if len(search.problem.targets):
        decision = _route(search, objective)
    else:
        decision = decide_without_demand(search.problem, objective)
    decision = shed_demands(problem, left_out, decision)
    lack = describe_lack(problem, search.found, routes.max_hops)
    decision = replace(decision, proof=replace(decision.proof, bound_scope=search.scope))
    return without_share(problem, left_out, decision, lack)


def _route(search: OptimumSearch, objective: Objective) -> Decision[Routing]:
    """Return the decision for demands that all have a path."""
    limit_s, needed_s = search.options.time_limit_s, search.needed_s(objective)
    if limit_s is None or limit_s >= needed_s or search.options.service == "all":
        return _search(search, objective)
    return fitted_plan.route_in_time(search.problem, objective, limit_s, needed_s)


def _deliver_most(
    search: OptimumSearch, together: Decision[Routing], *, may_be_cut: bool
) -> Decision[Routing]:
    """Return the decision that delivers the most of demands that do not all fit.

    together    decision for the same share of all demands
    may_be_cut  whether a heuristic goes on where the time limit ends the search
    """
    is_undecided = together.proof.bound is None or together.proof.bound >= 1  # the time limit came first
    if (is_undecided and may_be_cut) or search.is_too_large("total"):
        return _deliver_by_heuristic(search, together, None)
    largest = search.solve("total")
    if largest.proof.status is Status.OPTIMAL or not may_be_cut:
        return largest
    other = _deliver_by_heuristic(search, together, largest.proof.bound)
    is_better = (other.proof.objective or 0.0) > (largest.proof.objective or 0.0)
    return other if largest.plan is None or is_better else largest


def _search(search: OptimumSearch, objective: Objective) -> Decision[Routing]:
    """Return the decision of a search for demands that all have a path."""
    problem, is_strict = search.problem, search.options.service == "all"
    if objective in ("concurrent", "utilization") and not is_strict:
        return search.solve(objective)
    if objective == "cost" and not is_strict and search.finds_least_cost():
        return search.find_least_cost()
    finds_total = not is_strict and search.uses_columns("total")
    together = search.try_to_fit() if finds_total else search.solve("concurrent")
    if (together.proof.objective or 0.0) >= 1 - FIT_TOLERANCE:  # everything fits
        if finds_total and not search.uses_columns("concurrent"):
            together = search.shorten(together)
        if objective in ("delivered", "total"):
            return as_delivered(problem, together, Status.OPTIMAL)
        return together if objective == "concurrent" else search.solve(objective)
    if is_strict:
        return search.prove_infeasible(objective, together)
    largest = _deliver_most(search, together, may_be_cut=not finds_total and search.restricted is None)
    if objective == "cost" and largest.proof.objective is not None:
        return search.solve("cost", least_mbps=largest.proof.objective * (1 - LEAST_TOLERANCE))
    return largest


def _deliver_by_heuristic(
    search: OptimumSearch, together: Decision[Routing], bound: float | None
) -> Decision[Routing]:
    """Return the best plan that heuristics make of a concurrent flow, within the capacities.

    Over given paths, and where flows are too many, it is the concurrent flow itself.
    """
    problem = search.problem
    plain = as_delivered(problem, together, Status.FEASIBLE, bound=bound)
    if search.found is not None:
        return plain
    share = min(together.proof.objective or 1.0, 1.0)
    unscaled = None if together.plan is None else scale_plan(problem, together.plan, 1 / share)
    plan = fit_plan(problem, unscaled)
    if plan is None:
        return plain
    value = float(verify_flow(problem, plan).served_mbps.sum())
    limit = min(float(problem.rate_mbps.sum()), np.inf if bound is None else bound)
    proof = replace(plain.proof, status=Status.FEASIBLE, objective=value, bound=max(value, limit))
    return Decision(plan=plan, proof=proof, guarantees=frozenset({"capacity", "demand"}))


OBJECTIVE_TEXTS: Final = {
    "total": "delivered traffic",
    "concurrent": "the factor of all demands that links carry at once",
    "utilization": "the largest link utilization, a share of capacity, with all demands served",
    "cost": "the cost of all flows: Mbit/s on links times their cost, with all demands served",
}
"""What an objective other than delivered traffic is."""


@spread(routes=GivenRoutes())
def model(
    problem: Traffic,
    *,
    objective: Objective = "delivered",
    routes: GivenRoutes,
    classes: class_priorities.ClassOrder = "strict",  # noqa: ARG001 - the program of all classes together
    most_moved: float | None = None,  # noqa: ARG001 - there is no plan before
    service: Service = "best",
) -> LinearProgram:
    """Return the linear program of which `route` finds the optimum with the same parameters.

    With service "all" every demand must be served at its rate, within the capacities. Classes count as one:
    the levels of a problem with classes are programs of their own. The method changes nothing.
    """
    require_paths(routes.paths, routes.max_hops)
    problem = problem.merged
    if service == "all":
        program = require_all(_model(problem, objective, routes))
    else:
        program = _model(problem.routable, objective, routes)
    if objective == "delivered":
        about = (
            f"delivered traffic, Mbit/s (delivered_mbps, the sum of `served`), less {-program.cost[-1]:g} "
            "times the largest link utilization (`utilization`), which breaks ties"
        )
        return program.describe(about)
    unit = "Mbit/s" if objective == "total" else ""
    return program.describe(OBJECTIVE_TEXTS[objective], metric=METRIC_OF[objective], unit=unit)


def _model(problem: Traffic, objective: Objective, routes: GivenRoutes) -> LinearProgram:
    limits = RouteLimits.of(problem)
    if routes.paths == "any" and limits is not None:
        raise InputError(
            "paths is 'any': the linear program over links has no latency limits and rules; give a number of "
            "paths, or 'tunnels'"
        )
    if routes.paths == "any":
        return link_flow_program.build(problem, objective).program
    candidates = find_candidates(problem, routes.paths, routes.path_choice, routes.max_hops, limits)
    return path_flow_program.build(problem, objective, candidates)


def require_all(program: LinearProgram) -> LinearProgram:
    """Return the program with every demand at its rate at least, and no link above its capacity."""
    lower, upper = program.lower.copy(), program.upper.copy()
    for block in program.columns:
        columns = slice(block.start, block.stop)
        if block.name == "served":
            lower[columns] = upper[columns]
        elif block.name == "lambda":
            lower[columns] = 1.0
        elif block.name == "utilization":
            upper[columns] = 1.0
    return replace(program, lower=lower, upper=upper)


def _require_method(method: Method, paths: int | Literal["any", "tunnels"]) -> None:
    if method == "columns" and paths != "any":
        scope = "tunnels" if paths == "tunnels" else "a number of paths"
        raise InputError(f"method is 'columns', which does not know {scope}: leave it at 'auto'")
