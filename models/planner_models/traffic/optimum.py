"""The best routing by linear programming, over all routes or over given paths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Final, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from pydantic import Field

from planner import backends
from planner.backends import Solution
from planner.backends.linear import LinearProgram
from planner.errors import InputError
from planner.options import Options
from planner.proof import Proof
from planner.system import Decision
from planner_models.traffic import columns, cycles, edges, routing, splits
from planner_models.traffic import paths as candidates
from planner_models.traffic.edges import METRIC_OF, Objective
from planner_models.traffic.outcome import without_demand
from planner_models.traffic.paths import PathChoice
from planner_models.traffic.problem import Traffic, totals
from planner_models.traffic.routing import Routing

MANY_FLOWS: Final = 10_000
"""Flow variables from which `auto` takes column generation."""

ObjectiveChoice = Annotated[
    Objective,
    Field(
        description="concurrent: grow all demands together; utilization: least busiest link; "
        "total: most traffic; cost: cheapest"
    ),
]
PathCount = Annotated[
    Annotated[int, Field(gt=0)] | Literal["any"],
    Field(description="routes that traffic may take: any, or that many paths for each demand"),
]
Choice = Annotated[
    PathChoice, Field(description="with a number of paths: the shortest ones, or ones without a common link")
]
Method = Annotated[
    Literal["auto", "lp", "columns"],
    Field(
        description="lp: the linear program over links, exact; columns: column generation, to a gap of 1e-6, "
        "for concurrent and utilization; auto: columns where the linear program is large"
    ),
]
HopLimit = Annotated[
    Annotated[int, Field(gt=0)] | None, Field(description="with a number of paths: the most links of one")
]


def route(
    problem: Traffic,
    *,
    objective: ObjectiveChoice = "concurrent",
    paths: PathCount = "any",
    path_choice: Choice = "shortest",
    max_hops: HopLimit = None,
    method: Method = "auto",
    options: Options = Options(),
    previous: Decision[Routing] | None = None,
) -> Decision[Routing]:
    """The best routing for one objective, by linear programming.

    The plan carries every demand at its rate where that fits; under `concurrent` all demands are
    cut to the same share where it does not, under `total` each to what pays. Rates are in Mbit/s.

    Method "auto" takes `columns` over all routes from 10,000 flow variables (targets times links) on,
    where it was 4 to 100 times faster, unless a backend or an algorithm is chosen.

    returns  Decision with a Routing; its bound holds for all routings with paths="any"
    raises   InputError for `max_hops` without a number of paths, a demand without a path within it,
             or objective "cost" on links without a cost
    source   Sen et al. 2013, equation (1); concurrent flow: Shahrokhi and Matula 1990
    """
    _require_paths(paths, max_hops)
    if method == "columns" and (paths != "any" or objective not in ("concurrent", "utilization")):
        other = f"objective '{objective}'" if paths == "any" else "a number of paths"
        raise InputError(f"method is 'columns', which does not know {other}: leave it at 'auto'")
    if not len(problem.targets):
        return without_demand(problem, objective)
    if objective in ("concurrent", "utilization") and (
        method == "columns" or (method == "auto" and paths == "any" and _pays(problem, options))
    ):
        return columns.route(problem, objective=objective, options=options, previous=previous)
    unit = _unit(problem) if objective in ("concurrent", "utilization") else 1.0
    if paths == "any":
        solution, plan_of = _over_links(problem, unit, objective, options)
    else:
        found = candidates.find(problem, count=paths, choice=path_choice, max_hops=max_hops)
        solution, plan_of = _over_paths(problem, unit, objective, found, options)
    solution = _in_units(solution, unit if objective == "concurrent" else 1 / unit)
    metric = METRIC_OF[objective]
    proof = Proof(
        status=solution.status,
        objective=solution.objective,
        bound=solution.bound,
        metric=metric,
        within=None if paths == "any" else _within(paths, path_choice, max_hops),
        seconds=None,
        backend=solution.backend,
        reasons=solution.reasons,
    )
    if plan_of is None:
        return Decision(plan=None, proof=proof)
    share = min(1.0, solution.objective or 0.0) if objective == "concurrent" else 1.0
    keeps = {
        "concurrent": {"capacity", "demand"} if share == 1 else {"capacity"},
        "utilization": {"demand"},
        "total": {"capacity"},
        "cost": {"capacity", "demand"},
    }[objective]
    return Decision(plan=plan_of(share), proof=proof, keeps=frozenset(keeps))


def model(
    problem: Traffic,
    *,
    objective: Objective = "concurrent",
    paths: int | Literal["any"] = "any",
    path_choice: PathChoice = "shortest",
    max_hops: int | None = None,
    method: Method = "auto",  # noqa: ARG001 - the same program, whatever solves it
) -> LinearProgram:
    """The linear program that `route` solves with the same parameters."""
    _require_paths(paths, max_hops)
    if paths == "any":
        return edges.build(problem, objective).program
    found = candidates.find(problem, count=paths, choice=path_choice, max_hops=max_hops)
    return candidates.build(problem, objective, found)


PlanOf = Callable[[float], Routing]
"""The plan in which every rate of the solution is times that share."""


def _unit(problem: Traffic) -> float:
    """What to multiply demands by so that they about fit: solvers are exact to an absolute 1e-7.

    A power of 2, which rounds nothing; 1 where the shortest paths load the busiest link to between
    1% and 100 times its capacity.
    """
    ratios = splits.first(problem, splits.shortest_links(problem))
    load = splits.follow(problem, ratios, problem.rate_mbps).sum(axis=0)
    busiest = float((np.asarray(load).ravel() / problem.capacity_mbps).max())
    return 1.0 if 0.01 < busiest < 100 else 2.0 ** -round(np.log2(busiest))


def _in_units(solution: Solution, unit: float) -> Solution:
    """The solution with its objective and bound times the unit."""
    objective, bound = solution.objective, solution.bound
    return replace(
        solution,
        objective=None if objective is None else objective * unit,
        bound=None if bound is None else bound * unit,
    )


def _over_links(
    problem: Traffic, unit: float, objective: Objective, options: Options
) -> tuple[Solution, PlanOf | None]:
    scaled = problem.scaled(unit)
    if options.backend.startswith("pyomo:"):
        solution, flow, served = _by_reference(scaled, objective, options)
    else:
        fast = edges.build(scaled, objective)
        solution = backends.solve(fast.program, options)
        if solution.x is None:
            return solution, None
        flow, served = fast.flow_mbps(solution.x), scaled.rate_mbps.copy()
        if objective == "total":
            served[problem.rate_mbps > 0] = solution.x[len(fast.link) :]
    if flow is None:
        return solution, None
    rate = np.clip(served / unit, 0.0, problem.rate_mbps)
    return solution, lambda share: _realised(problem, sp.coo_array(flow / unit), rate * share)


def _by_reference(
    problem: Traffic, objective: Objective, options: Options
) -> tuple[Solution, sp.coo_array | None, NDArray[np.float64]]:
    """The formal model itself, through Pyomo: slow, and an independent witness."""
    from planner.backends import pyomo
    from planner_models.traffic.formulation import flow_mbps, formulation, rates_mbps

    m = formulation(problem, objective=objective)
    solution = pyomo.solve_model(m, options)
    if solution.objective is None:
        return solution, None, problem.rate_mbps
    served = rates_mbps(problem, m) if objective == "total" else problem.rate_mbps
    return solution, flow_mbps(problem, m), served


def _over_paths(
    problem: Traffic, unit: float, objective: Objective, found: candidates.Paths, options: Options
) -> tuple[Solution, PlanOf | None]:
    solution = backends.solve(candidates.build(problem.scaled(unit), objective, found), options)
    if solution.x is None:
        return solution, None
    rate = np.clip(solution.x[: len(found.links)] / unit, 0.0, None)

    def plan(share: float) -> Routing:
        exact = _exact_rates(problem, objective, found.demand, rate) * share
        flow = sp.csr_array(
            (exact, (found.demand, np.arange(len(exact)))), shape=(len(problem.demands), len(exact))
        )
        return routing.by_pair(problem, flow @ found.uses, candidates.table(problem, found, exact))

    return solution, plan


def _exact_rates(
    problem: Traffic, objective: Objective, demand: NDArray[np.int64], rate: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The rates of the paths, made to add up exactly to what each demand wants."""
    sent = totals(demand, rate, len(problem.demands))
    wanted = np.minimum(sent, problem.rate_mbps) if objective == "total" else problem.rate_mbps
    first = np.r_[True, np.diff(demand) != 0]
    # a demand too small for the solver to see goes over its first path
    rate = np.where(first & (sent[demand] <= 0), 1.0, rate)
    sent = totals(demand, rate, len(problem.demands))
    return rate / sent[demand] * wanted[demand]


def _realised(problem: Traffic, flow_mbps: sp.coo_array, served_mbps: NDArray[np.float64]) -> Routing:
    """The plan that sends served_mbps (K,) exactly, split at each node as the solver's flow is.

    Solvers keep conservation to about 1e-7 only. Following their splits makes it exact, and demands
    too small for them to see take the shortest path.
    """
    flow = flow_mbps.copy()
    flow.data[flow.data <= 1e-9 * problem.rate_mbps.max()] = 0.0
    ways = splits.of_flow(problem, splits.arriving(problem, cycles.without(problem, flow)))
    ratios = splits.completed(problem, ways)
    return routing.by_pair(problem, splits.follow(problem, ratios, served_mbps))


def _pays(problem: Traffic, options: Options) -> bool:
    """Whether column generation is the faster way, as measured.

    Seconds on one core: targets x links, linear program, columns to a gap of 1e-6

        geant        1,584    0.03   0.02
        germany50    8,800    0.43   0.12
        ta2          9,072    0.54   0.09
        fat tree 6  17,172    0.85   0.01
        TataNld     51,766    3.6    0.19
    """
    chosen = options.backend != "highs" or options.algorithm != "auto"
    return not chosen and len(problem.targets) * len(problem.links) >= MANY_FLOWS


def _require_paths(paths: int | Literal["any"], max_hops: int | None) -> None:
    if paths == "any" and max_hops is not None:
        raise InputError(f"max_hops is {max_hops}, but paths is 'any': a hop limit needs a number of paths")


def _within(paths: int, choice: PathChoice, max_hops: int | None) -> str:
    kind = "shortest paths" if choice == "shortest" else "link-disjoint paths"
    limit = f" of at most {max_hops} links" if max_hops is not None else ""
    return f"the {paths} {kind} of each demand{limit}"
