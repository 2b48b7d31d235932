"""Routing of traffic classes by priority, level by level: lexicographic optimization.

A level is a priority, or all classes where they share by weight. The first gets the largest total of its
delivered traffic, each Mbit/s times the weight of its class; every further one gets the largest that leaves
all levels before at their values. Each level has its own proof.

The order of priorities is that of Hong et al. 2013 (SWAN), section 4.1, within a class the total instead of
max-min fairness; the weights are a linear case of the bandwidth functions of Jain et al. 2013 (B4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final, Literal

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from planner import backends
from planner.arrays import Bools, Floats
from planner.backends import Solution
from planner.backends.linear_program import LinearProgram, Rows
from planner.contract.design import Decision
from planner.contract.proof import LevelProof, Proof, Status
from planner.options import Options
from planner.search import tolerances
from planner.search.deadline import Deadline
from planner.search.judged import undecided
from planner.search.tolerances import OPTIMALITY, SOLVER, SUM_ROUNDING
from planner_models.flows import link_flow_program, path_flow_program, restricted_flow, split_ratios
from planner_models.flows.augmented_lagrangian import TotalFlow
from planner_models.flows.link_flow_program import Objective, link_cost
from planner_models.flows.path_flow_program import CandidatePaths
from planner_models.flows.restricted_flow import LeastDelivery, RestrictedFlow
from planner_models.flows.total_flow import DEFAULT_GAP
from planner_models.graphs.indexing import sum_by_index
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan.flow_decision import SolvedFlows, flows_over_paths, routing_of_paths
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.plan.verified_flow import verify_flow
from planner_models.traffic.problem.problem import Traffic

ClassOrder = Literal["strict", "weighted", "ignored"]
Order = Annotated[
    ClassOrder,
    Field(
        description="of demands with classes; strict: higher priorities first, each the most that those "
        "above leave, classes of one priority by weight; weighted: most traffic, each Mbit/s times the "
        "weight of its class; ignored: as if all had one class"
    ),
]
HELD: Final = tolerances.ROUNDING  # relative; by so much less may later levels leave the ones before
ROUNDING: Final = SUM_ROUNDING  # of what a level offers
WHOLE: Final = SOLVER  # of a demand; where less is missing, all is to be served
LEAST_TOLERANCE: Final = SOLVER  # of a level's value, which the cheapest plan may miss
VALUE_RATIO: Final = 32.0  # of a Mbit/s of a level to one of the next, in one search for all
LEAST_GAP: Final = SUM_ROUNDING  # relative, of the sum of all values
PROVEN: Final = OPTIMALITY  # relative gap up to which a level counts as optimal
ORDER_SCOPE: Final = "plans that deliver the most of higher priorities"


@dataclass(frozen=True, kw_only=True, eq=False)
class Level:
    """Classes that are decided together.

    value  (K,) weight of a Mbit/s of each demand; 0 for demands of other levels
    """

    name: str
    value: Floats

    @property
    def members(self) -> Bools:
        """(K,) whether a demand is of the level."""
        return self.value > 0

    def objective(self, served_mbps: Floats) -> float:
        """Return the value of served rates, shape (K,)."""
        return float(self.value @ served_mbps)


def make_levels(problem: Traffic, order: ClassOrder) -> list[Level]:
    """Return the levels of a problem in their order; the largest weight of each counts as 1.

    Without classes, or where these are ignored, there is one level in which all demands count alike.
    """
    if not problem.has_classes or order == "ignored":
        return [Level(name="all", value=np.ones(len(problem.demands)))]
    table = problem.class_table
    rank = table["priority"].to_numpy() if order == "strict" else np.zeros(len(table), dtype=np.int64)
    weight, names = table["weight"].to_numpy(float), table["class"].tolist()
    levels = []
    for level_rank in np.unique(rank):
        here = np.flatnonzero(rank == level_rank)
        if not np.isin(here, problem.class_of).any():
            continue
        value = np.where(rank == level_rank, weight, 0.0) / weight[here].max()
        name = ", ".join(names[c] for c in here)
        levels.append(Level(name=name + _by_weight(value[here]), value=value[problem.class_of]))
    return levels


def _by_weight(value: Floats) -> str:
    return " (by weight)" if (value < 1).any() else ""


def prove_all_served(
    decision: Decision[Routing], levels: Sequence[Level], rate_mbps: Floats
) -> Decision[Routing]:
    """Return a decision that serves all demand, which is the most that each level can get."""
    proofs = tuple(
        LevelProof(level.name, level.objective(rate_mbps), level.objective(rate_mbps)) for level in levels
    )
    return replace(decision, proof=replace(decision.proof, levels=proofs))


def route_by_program(
    problem: Traffic,
    levels: Sequence[Level],
    *,
    paths: CandidatePaths | None,
    scope: str | None,
    has_least_cost: bool,
    options: Options,
) -> Decision[Routing]:
    """Solve for the levels one after the other, by a linear program for each.

    paths           paths that traffic may take; None for all
    scope           of bounds over given paths
    has_least_cost  whether the cheapest of these plans is wanted
    """
    deadline = Deadline.of(options)
    program = _LevelProgram(problem, paths)
    solved: list[tuple[Level, float]] = []
    bounds: list[float | None] = []
    last: Solution | None = None
    x: Floats | None = None
    for level in levels:
        solution = program.solve_after(solved, level.value, HELD, deadline.options(options))
        if solution.x is None:
            break
        last, x = solution, solution.x
        bounds.append(solution.bound)
        solved.append((level, level.objective(program.served(x))))
    if last is None or x is None:
        return Decision(plan=None, proof=undecided(metric="delivered_mbps"))
    if has_least_cost and len(bounds) == len(levels):
        cheapest = program.solve_after(solved, None, LEAST_TOLERANCE, deadline.options(options))
        x = x if cheapest.x is None else cheapest.x
    plan = program.make_plan(x, levels)
    bounds += [None] * (len(levels) - len(bounds))
    return decide_levels(problem, plan, levels, bounds, scope=scope, backend=last.backend, options=options)


def _prove_level(level: Level, served_mbps: Floats, rate_mbps: Floats, bound: float | None) -> LevelProof:
    """Return the value and bound of a level; all that its demands offer is a bound."""
    value, upper = level.objective(served_mbps), level.objective(rate_mbps)
    limit = upper if bound is None else min(bound, upper)
    # rounding may put it on the wrong side of the value
    limit = value if limit - value <= max(HELD * value, ROUNDING * upper) else limit
    return LevelProof(level.name, value, limit)


def prove_reached(
    levels: Sequence[Level], bounds: Sequence[float | None], rate_mbps: Floats
) -> tuple[LevelProof, ...]:
    """Return the proofs of the levels that a search has reached and that have a bound, in their order.

    bounds     of the first levels
    rate_mbps  (K,) of the plan
    """
    proofs = []
    for level, bound in zip(levels, bounds, strict=False):
        if bound is not None:
            value = level.objective(rate_mbps)
            proofs.append(LevelProof(level.name, value, max(value, bound)))
    return tuple(proofs)


def decide_levels(
    problem: Traffic,
    plan: Routing,
    levels: Sequence[Level],
    bounds: Sequence[float | None],
    *,
    scope: str | None,
    backend: str | None,
    options: Options,
) -> Decision[Routing]:
    """Return the decision with the value of the plan itself in each level, and the bounds of the levels.

    Where a level has no bound, all that its demands offer is one.
    """
    served = verify_flow(problem, plan).served_mbps
    proofs = [
        _prove_level(level, served, problem.rate_mbps, bound)
        for level, bound in zip(levels, bounds, strict=True)
    ]
    order = ORDER_SCOPE if len(levels) > 1 else None
    is_total = all((level.value[level.members] == 1).all() for level in levels)
    limit_of_all = sum(proof.bound for proof in proofs) if is_total else float(problem.rate_mbps.sum())
    proof = Proof(
        status=Status.FEASIBLE,
        objective=float(served.sum()),
        bound=max(limit_of_all, float(served.sum())),
        metric="delivered_mbps",
        levels=tuple(proofs),
        bound_scope=", over ".join(filter(None, (order, scope))) or None,
        backend=backend,
    )
    is_proven = (proof.gap or 0.0) <= max(options.gap or 0.0, PROVEN)
    proof = replace(proof, status=Status.OPTIMAL if is_proven else Status.FEASIBLE)
    return Decision(plan=plan, proof=proof, guarantees=frozenset({"capacity", "demand"}))


def route_within_limits(
    problem: Traffic,
    levels: Sequence[Level],
    *,
    restricted: RestrictedFlow,
    scope: str | None,
    has_least_cost: bool,
    options: Options,
) -> Decision[Routing]:
    """Solve for the levels one after the other over the routes that keep limits, by column generation.

    restricted      the routes, of the demands that have one
    scope           of bounds over these routes
    has_least_cost  whether the cheapest of these plans is wanted
    """
    deadline = Deadline.of(options)
    finished: list[LeastDelivery] = []
    bounds: list[float | None] = []
    flows: SolvedFlows | None = None

    def solve(objective: Objective, held: float, value: Floats | None = None) -> float | None:
        nonlocal flows
        minimums = [replace(delivery, tolerance=held) for delivery in finished]
        solved = restricted.solve(objective, deadline.options(options), minimums, value)
        if solved.solution.x is not None:
            flows = flows_over_paths(problem, solved.paths, solved.solution.x, is_partial=True)
        return None if solved.solution.x is None else solved.solution.bound

    for level in levels:
        before = flows
        bounds.append(solve("total", HELD, level.value))
        if flows is before:
            break
        assert flows is not None
        finished.append(LeastDelivery(value=level.value, amount=level.objective(flows.served_mbps)))
    if flows is None:
        return Decision(plan=None, proof=undecided(metric="delivered_mbps"))
    if has_least_cost and len(finished) == len(levels):
        solve("cost", LEAST_TOLERANCE)
    served = flows.served_mbps
    # rounding: a demand that is served but for a tolerance is served whole where it fits
    is_whole = (served > 0) & (served >= problem.rate_mbps * (1 - WHOLE))
    share = np.divide(problem.rate_mbps, served, out=np.ones(len(served)), where=is_whole)
    share *= _fitting_shares(problem, levels, routing.flow_by_demand(problem, flows.make_plan(share)))
    bounds += [None] * (len(levels) - len(bounds))
    return decide_levels(
        problem,
        flows.make_plan(share),
        levels,
        bounds,
        scope=scope,
        backend=restricted_flow.BACKEND,
        options=options,
    )


def _fitting_shares(problem: Traffic, levels: Sequence[Level], flow: sp.csr_array) -> Floats:
    """Return the share of each demand, (K,), with which flows (K, E) fit the capacities.

    Solvers keep these to a tolerance only; what is too much is taken from the last level first.
    """
    share = np.ones(len(problem.demands))
    for level in reversed(levels):
        load = flow.T @ share
        over = load > problem.capacity_mbps
        if not over.any():
            break
        level_load = flow.T @ (share * level.members)
        remaining = np.maximum(problem.capacity_mbps - (load - level_load), 0.0)
        fraction = np.divide(
            remaining, level_load, out=np.ones(len(level_load)), where=over & (level_load > 0)
        )
        entries = flow.tocoo()
        factor = np.ones(len(share))
        np.minimum.at(factor, entries.row, np.minimum(fraction, 1.0)[entries.col])
        share = np.where(level.members, share * factor, share)
    return share


def judge_plan(
    problem: Traffic, decision: Decision[Routing], levels: Sequence[Level], *, options: Options
) -> Decision[Routing]:
    """Return a decision that does not tell classes apart with the value of its plan in each level."""
    assert decision.plan is not None
    bounds = [None] * len(levels)
    backend = decision.proof.backend
    return decide_levels(problem, decision.plan, levels, bounds, scope=None, backend=backend, options=options)


class _LevelProgram:
    """The linear program of the largest total over links or given paths, for any values of demands."""

    def __init__(self, problem: Traffic, paths: CandidatePaths | None) -> None:
        self.problem, self.found = problem, paths
        if paths is None:
            self._over_links = link_flow_program.build(problem, "total")
            self._base = self._over_links.program
            self._wanted = np.flatnonzero(problem.rate_mbps > 0)
        else:
            self._base = path_flow_program.build(problem, "total", paths)
            self._wanted = np.unique(paths.demand)
        self._first = next(block.start for block in self._base.columns if block.name == "served")

    def solve_after(
        self, solved: Sequence[tuple[Level, float]], value: Floats | None, held: float, options: Options
    ) -> Solution:
        """Return the solution of the largest value of demands (K,), or of the least cost where there is none.

        solved  levels with the values that they keep; a level that is served whole keeps each of its demands
        held  relative tolerance of the values
        """
        members, minimums = np.zeros(len(self.problem.demands), dtype=bool), []
        for level, reached in solved:
            if reached >= level.objective(self.problem.rate_mbps) * (1 - HELD):
                members |= level.members
            else:
                minimums.append((level, reached * (1 - held)))
        solution = self._solve(value, minimums, np.where(members, self.problem.rate_mbps, 0.0), options)
        if solution.status is not Status.INFEASIBLE or not members.any():
            return solution
        # rounding: not all of these demands fit exactly
        minimums = [(level, reached * (1 - held)) for level, reached in solved]
        return self._solve(value, minimums, np.zeros(len(self.problem.demands)), options)

    def _solve(
        self,
        value: Floats | None,
        minimums: Sequence[tuple[Level, float]],
        floor_mbps: Floats,
        options: Options,
    ) -> Solution:
        base, first, requested = self._base, self._first, self._wanted
        width = base.shape[1]
        cost = np.zeros(width)
        if value is not None:
            cost[first : first + len(requested)] = value[requested]
        else:
            price = link_cost(self.problem)
            flows = self._over_links.link if self.found is None else None
            cost[:first] = price[flows] if flows is not None else self.found.uses @ price  # type: ignore[union-attr]
        rows = [Rows("network", base.matrix, lower=base.row_lower, upper=base.row_upper)]
        if minimums:
            entries = np.array([level.value[requested] for level, _ in minimums])
            floor = sp.hstack([sp.csr_array((len(minimums), first)), sp.csr_array(entries)], format="csr")
            floor.resize((len(minimums), width))
            rows.append(Rows("level", floor, lower=np.array([least_value for _, least_value in minimums])))
        lower = base.lower.copy()
        lower[first : first + len(requested)] = floor_mbps[requested]
        program = LinearProgram.build(
            sense="min" if value is None else "max",
            cost=cost,
            rows=rows,
            lower=lower,
            upper=base.upper,
            name="traffic classes",
        )
        return backends.solve(program, options)

    def served(self, x: Floats) -> Floats:
        """Return the served rates of a solution, (K,) Mbit/s."""
        rate = np.zeros(len(self.problem.demands))
        rate[self._wanted] = x[self._first : self._first + len(self._wanted)]
        return np.clip(rate, 0.0, self.problem.rate_mbps)

    def make_plan(self, x: Floats, levels: Sequence[Level]) -> Routing:
        """Return the plan of a solution, within the capacities."""
        problem = self.problem
        plan = self._plan_of(x, np.ones(len(problem.demands)))
        share = _fitting_shares(problem, levels, routing.flow_by_demand(problem, plan))
        return plan if (share == 1).all() else self._plan_of(x, share)

    def _plan_of(self, x: Floats, share: Floats) -> Routing:
        problem, paths, served = self.problem, self.found, self.served(x)
        if paths is None:
            ratios = split_ratios.ratios_of_solution(problem, self._over_links.flow_mbps(x))
            return routing.routing_by_demand(
                problem, split_ratios.apply_ratios(problem, ratios, served * share)
            )
        rate = np.clip(x[: len(paths.demand)], 0.0, None)
        sent = sum_by_index(paths.demand, rate, len(served))
        scale = np.divide(served * share, sent, out=np.zeros(len(served)), where=sent > 0)
        rate = rate * np.minimum(scale, 1.0)[paths.demand]
        by_path = sp.csr_array((rate, (paths.demand, np.arange(len(rate)))), shape=(len(served), len(rate)))
        return routing.routing_by_demand(
            problem, by_path @ paths.uses, path_flow_program.route_table(problem, paths, rate)
        )


# --- at large sizes -----------------------------------------------------------------------


def route_by_columns(problem: Traffic, levels: Sequence[Level], *, options: Options) -> Decision[Routing]:
    """Search for the levels in one augmented Lagrangian, in which higher ones have far larger values.

    A Mbit/s of a level is `VALUE_RATIO` times that of the next one or more, so that the routes of lower
    levels give way to higher ones: the largest sum of values is that of the levels in their order, unless
    a Mbit/s of a level displaces more than that of the next. The bounds hold in any case: with W a bound on
    the sum of the values of all levels up to one, that level has at most W less what those before have.
    A level that is served whole needs none, and every other one but the last takes a search of its own.
    """
    deadline = Deadline.of(options)
    plan, limit = _search_values(problem, levels, options, parts=2)
    served = verify_flow(problem, plan).served_mbps
    bounds: list[float] = []
    for number, level in enumerate(levels, start=1):
        offered, before = level.objective(problem.rate_mbps), levels[: number - 1]
        if level.objective(served) >= offered * (1 - HELD):
            bounds.append(offered)
            continue
        if number < len(levels):
            first = np.logical_or.reduce([level_.members for level_ in levels[:number]])
            subproblem = problem.with_rates(np.where(first, problem.rate_mbps, 0.0))
            remaining_options = deadline.options(options)
            _, limit_here = _search_values(
                subproblem, levels[:number], remaining_options, parts=len(levels) - number + 1
            )
        else:
            limit_here = limit
        scale = _scale_levels(levels[:number])
        bounds.append(
            limit_here - sum(by * level_.objective(served) for by, level_ in zip(scale, before, strict=False))
        )
    backend = "augmented Lagrangian"
    return decide_levels(problem, plan, levels, bounds, scope=None, backend=backend, options=options)


def _scale_levels(levels: Sequence[Level]) -> list[float]:
    """Return the factors of the levels' values: 1 for the last, and each far above all after it."""
    scale = [1.0]
    for level in reversed(levels[:-1]):
        smallest = float(level.value[level.members].min())
        scale.append(scale[-1] * VALUE_RATIO / smallest)
    return scale[::-1]


def _search_values(
    problem: Traffic, levels: Sequence[Level], options: Options, *, parts: int
) -> tuple[Routing, float]:
    """Return the plan with the largest sum of scaled values that is found, and a bound on that sum.

    parts  the time limit is divided by
    """
    deadline = Deadline.of(options).share(1 / parts)
    value = np.zeros(len(problem.demands))
    for by, level in zip(_scale_levels(levels), levels, strict=True):
        value += by * level.value
    search = TotalFlow(problem, value)
    lowest_value = levels[-1].objective(problem.rate_mbps) / search.offered or 1.0
    gap = DEFAULT_GAP if options.gap is None else options.gap
    # a part of the gap that is wanted of the last level, as much of its demand may be left out
    for _ in search.run(gap=max(0.3 * gap * lowest_value, LEAST_GAP), deadline=deadline):
        pass
    flow = search.path_flow()
    return routing_of_paths(problem, search.order, flow), search.bound
