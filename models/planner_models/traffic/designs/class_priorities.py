"""Routing of traffic classes by priority, level by level: lexicographic optimization.

A level is a priority, or all classes where they share by weight. The first gets the largest total of its
delivered traffic, each Mbit/s times the weight of its class; every further one gets the largest that leaves
all levels before at their values. Each level has its own proof.

The order of priorities is that of Hong et al. 2013 (SWAN), section 4.1, within a class the total instead of
max-min fairness; the weights are a linear case of the bandwidth functions of Jain et al. 2013 (B4).
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final, Literal

import numpy as np
import pandas as pd
import scipy.sparse as sp
from pydantic import Field

from planner import backends
from planner.arrays import Bools, Floats
from planner.backends import Solution
from planner.backends.linear_program import LinearProgram, Rows
from planner.contract.design import Decision
from planner.contract.proof import LevelProof, Proof, Status
from planner.options import Options
from planner_models.traffic.designs import link_flow_program, path_flow_program
from planner_models.traffic.designs.link_flow_program import link_cost
from planner_models.traffic.designs.path_flow_program import CandidatePaths
from planner_models.traffic.designs.path_flows import total_flow
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan import split_ratios
from planner_models.traffic.plan.check import verify_flow
from planner_models.traffic.plan.classes import divide_among_classes
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic, sum_by_index

ClassOrder = Literal["strict", "weighted", "ignored"]
Order = Annotated[
    ClassOrder,
    Field(
        description="of demands with classes; strict: higher priorities first, each the most that those "
        "above leave, classes of one priority by weight; weighted: most traffic, each Mbit/s times the "
        "weight of its class; ignored: as if all had one class"
    ),
]
HELD: Final = 1e-9  # relative; by so much less may later levels leave the ones before
LEAST_TOLERANCE: Final = 1e-7  # of a level's value, which the cheapest plan may miss
MIN_REST: Final = 1e-9  # of a capacity; links with less residual capacity are full
PROVEN: Final = 1e-6  # relative gap up to which a level counts as optimal
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
    """Return the levels of a problem with classes, in their order; the largest weight of each counts as 1."""
    table = problem.class_table
    rank = table["priority"].to_numpy() if order == "strict" else np.zeros(len(table), dtype=np.int64)
    weight, names = table["weight"].to_numpy(float), table["class"].tolist()
    levels = []
    for one in np.unique(rank):
        here = np.flatnonzero(rank == one)
        if not np.isin(here, problem.class_of).any():
            continue
        value = np.where(rank == one, weight, 0.0) / weight[here].max()
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
    found: CandidatePaths | None,
    scope: str | None,
    has_least_cost: bool,
    options: Options,
) -> Decision[Routing]:
    """Solve for the levels one after the other, by a linear program for each.

    found           paths that traffic may take; None for all
    scope           of bounds over given paths
    has_least_cost  whether the cheapest of these plans is wanted
    """
    until = None if options.time_limit_s is None else time.perf_counter() + options.time_limit_s
    program = _LevelProgram(problem, found)
    done: list[tuple[Level, float]] = []
    bounds: list[float | None] = []
    last: Solution | None = None
    x: Floats | None = None
    for level in levels:
        solution = program.solve_after(done, level.value, HELD, _options_until(until, options))
        if solution.x is None:
            break
        last, x = solution, solution.x
        bounds.append(solution.bound)
        done.append((level, level.objective(program.served(x))))
    if last is None or x is None:
        return Decision(plan=None, proof=Proof(status=Status.UNDECIDED, metric="delivered_mbps"))
    if has_least_cost and len(bounds) == len(levels):
        cheapest = program.solve_after(done, None, LEAST_TOLERANCE, _options_until(until, options))
        x = x if cheapest.x is None else cheapest.x
    plan = program.make_plan(x, levels)
    bounds += [None] * (len(levels) - len(bounds))
    return _decide(problem, plan, levels, bounds, scope=scope, backend=last.backend, options=options)


def _options_until(until: float | None, options: Options) -> Options:
    return options if until is None else replace(options, time_limit_s=max(until - time.perf_counter(), 1e-3))


def _decide(
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
    proofs = []
    for level, bound in zip(levels, bounds, strict=True):
        value, most = level.objective(served), level.objective(problem.rate_mbps)
        limit = most if bound is None else min(bound, most)
        # rounding may put it on the wrong side of the value
        limit = value if limit <= value * (1 + HELD) else limit
        proofs.append(LevelProof(level.name, value, limit))
    order = ORDER_SCOPE if len(levels) > 1 else None
    is_total = all((level.value[level.members] == 1).all() for level in levels)
    limit_of_all = sum(proof.bound for proof in proofs) if is_total else float(problem.rate_mbps.sum())
    proof = Proof(
        status=Status.FEASIBLE,
        objective=float(served.sum()),
        bound=max(limit_of_all, float(served.sum())),
        metric="delivered_mbps",
        levels=tuple(proofs),
        bound_scope=", over ".join(part for part in (order, scope) if part) or None,
        backend=backend,
    )
    is_proven = (proof.gap or 0.0) <= max(options.gap or 0.0, PROVEN)
    proof = replace(proof, status=Status.OPTIMAL if is_proven else Status.FEASIBLE)
    return Decision(plan=plan, proof=proof, guarantees=frozenset({"capacity", "demand"}))


def judge_plan(
    problem: Traffic, decision: Decision[Routing], levels: Sequence[Level], *, options: Options
) -> Decision[Routing]:
    """Return a decision that does not tell classes apart with the value of its plan in each level."""
    assert decision.plan is not None
    bounds = [None] * len(levels)
    backend = decision.proof.backend
    return _decide(problem, decision.plan, levels, bounds, scope=None, backend=backend, options=options)


class _LevelProgram:
    """The linear program of the largest total over links or given paths, for any values of demands."""

    def __init__(self, problem: Traffic, found: CandidatePaths | None) -> None:
        self.problem, self.found = problem, found
        if found is None:
            self._over_links = link_flow_program.build(problem, "total")
            self._base = self._over_links.program
            self._wanted = np.flatnonzero(problem.rate_mbps > 0)
        else:
            self._base = path_flow_program.build(problem, "total", found)
            self._wanted = np.unique(found.demand)
        self._first = next(block.start for block in self._base.columns if block.name == "served")

    def solve_after(
        self, done: Sequence[tuple[Level, float]], value: Floats | None, held: float, options: Options
    ) -> Solution:
        """Return the solution of the largest value of demands (K,), or of the least cost where there is none.

        done  levels with the values that they keep; a level that is served whole keeps each of its demands
        held  relative tolerance of the values
        """
        whole, least = np.zeros(len(self.problem.demands), dtype=bool), []
        for level, reached in done:
            if reached >= level.objective(self.problem.rate_mbps) * (1 - HELD):
                whole |= level.members
            else:
                least.append((level, reached * (1 - held)))
        solution = self._solve(value, least, np.where(whole, self.problem.rate_mbps, 0.0), options)
        if solution.status is not Status.INFEASIBLE or not whole.any():
            return solution
        # rounding: not all of these demands fit exactly
        least = [(level, reached * (1 - held)) for level, reached in done]
        return self._solve(value, least, np.zeros(len(self.problem.demands)), options)

    def _solve(
        self,
        value: Floats | None,
        least: Sequence[tuple[Level, float]],
        floor_mbps: Floats,
        options: Options,
    ) -> Solution:
        base, first, wanted = self._base, self._first, self._wanted
        width = base.shape[1]
        cost = np.zeros(width)
        if value is not None:
            cost[first : first + len(wanted)] = value[wanted]
        else:
            price = link_cost(self.problem)
            flows = self._over_links.link if self.found is None else None
            cost[:first] = price[flows] if flows is not None else self.found.uses @ price  # type: ignore[union-attr]
        rows = [Rows("network", base.matrix, lower=base.row_lower, upper=base.row_upper)]
        if least:
            entries = np.array([level.value[wanted] for level, _ in least])
            floor = sp.hstack([sp.csr_array((len(least), first)), sp.csr_array(entries)], format="csr")
            floor.resize((len(least), width))
            rows.append(Rows("level", floor, lower=np.array([least_value for _, least_value in least])))
        lower = base.lower.copy()
        lower[first : first + len(wanted)] = floor_mbps[wanted]
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
        """Return the plan of a solution, within the capacities.

        Solvers keep these to a tolerance only; what is too much is taken from the last level first.
        """
        problem = self.problem
        share = np.ones(len(problem.demands))
        plan = self._plan_of(x, share)
        flow = routing.flow_by_demand(problem, plan)
        for level in reversed(levels):
            load = flow.T @ share
            over = load > problem.capacity_mbps
            if not over.any():
                break
            own = flow.T @ (share * level.members)
            rest = np.maximum(problem.capacity_mbps - (load - own), 0.0)
            part = np.divide(rest, own, out=np.ones(len(own)), where=over & (own > 0))
            entries = flow.tocoo()
            factor = np.ones(len(share))
            np.minimum.at(factor, entries.row, np.minimum(part, 1.0)[entries.col])
            share = np.where(level.members, share * factor, share)
        return plan if (share == 1).all() else self._plan_of(x, share)

    def _plan_of(self, x: Floats, share: Floats) -> Routing:
        problem, found, served = self.problem, self.found, self.served(x)
        if found is None:
            ratios = split_ratios.ratios_of_solution(problem, self._over_links.flow_mbps(x))
            return routing.routing_by_demand(
                problem, split_ratios.apply_ratios(problem, ratios, served * share)
            )
        rate = np.clip(x[: len(found.demand)], 0.0, None)
        sent = sum_by_index(found.demand, rate, len(served))
        scale = np.divide(served * share, sent, out=np.zeros(len(served)), where=sent > 0)
        rate = rate * np.minimum(scale, 1.0)[found.demand]
        by_path = sp.csr_array((rate, (found.demand, np.arange(len(rate)))), shape=(len(served), len(rate)))
        return routing.routing_by_demand(
            problem, by_path @ found.uses, path_flow_program.route_table(problem, found, rate)
        )


# --- at large sizes -----------------------------------------------------------------------


def route_by_columns(
    problem: Traffic, levels: Sequence[Level], *, merged: Decision[Routing], options: Options
) -> Decision[Routing]:
    """Search for the levels one after the other, each on the capacity that those before leave.

    Within a level, larger weights come first. That is a heuristic from the second step on: another routing of
    the first may leave more. The bounds hold for all plans: by the largest total flow of all classes up to
    each one, B(1), ..., B(n), on the whole capacities. With values v of a level's Mbit/s that decrease from
    step to step, the level has at most sum (v(i) - v(i+1)) B(i), less what the levels before have.

    merged  decision for the largest total of all classes, whose bound is the last one
    """
    until = None if options.time_limit_s is None else time.perf_counter() + options.time_limit_s
    steps = list(_steps(levels))
    parts: list[Routing] = []
    bounds: list[float] = []
    rest = problem.capacity_mbps.copy()
    counted = np.zeros(len(problem.demands), dtype=bool)
    for number, members in enumerate(steps):
        left = len(steps) - number
        share = _options_until(until, options)
        if share.time_limit_s is not None:
            share = replace(share, time_limit_s=share.time_limit_s / (2 * left))
        part = _route_rest(problem, members, rest, share)
        parts.append(part)
        rest = np.maximum(rest - part.links["load_mbps"].to_numpy(float), 0.0)
        counted = counted | members
        offered = float(problem.rate_mbps[counted].sum())
        sent = sum(float(verify_flow(problem, one).served_mbps.sum()) for one in parts)
        if sent >= offered * (1 - HELD):
            bounds.append(offered)
        elif counted.all() and merged.proof.bound is not None:
            bounds.append(min(offered, merged.proof.bound))
        else:
            together = total_flow.route(_only(problem, counted).merged.routable, options=share)
            bounds.append(offered if together.proof.bound is None else min(offered, together.proof.bound))
    plans = [_join(problem, parts)]
    if merged.plan is not None:
        plans.append(divide_among_classes(problem, merged.plan))
    decisions = []
    for plan in plans:
        limits = _bound_levels(levels, steps, bounds, verify_flow(problem, plan).served_mbps)
        decisions.append(
            _decide(
                problem, plan, levels, limits, scope=None, backend="augmented Lagrangian", options=options
            )
        )
    return functools.reduce(_choose_better, decisions)


def _steps(levels: Sequence[Level]) -> Iterator[Bools]:
    """Yield the demands (K,) of each level and weight, the largest weight of a level first."""
    for level in levels:
        for value in np.unique(level.value[level.members])[::-1]:
            yield level.value == value


def _only(problem: Traffic, members: Bools) -> Traffic:
    """Return the problem in which other demands have rate 0."""
    return problem.with_rates(np.where(members, problem.rate_mbps, 0.0))


def _route_rest(problem: Traffic, members: Bools, rest_mbps: Floats, options: Options) -> Routing:
    """Return the plan of the largest total flow of some demands (K,) on residual capacities (E,)."""
    nothing = routing.routing_by_demand(problem, sp.csr_array((len(problem.demands), len(problem.links))))
    usable = rest_mbps > MIN_REST * problem.capacity_mbps
    if not usable.any():
        return nothing
    number = np.where(problem.is_parallel, problem.parallel, 0).astype(float)
    links = problem.links.assign(capacity_mbps=rest_mbps, parallel=number)[usable]
    alone = replace(_only(problem, members), links=links)
    if not len(alone.merged.routable.targets):
        return nothing
    plan = total_flow.route(alone.merged.routable, options=options).plan
    if plan is None:
        return nothing
    return routing.routing_from_tables(problem, {"flows": divide_among_classes(alone, plan).flows})


def _join(problem: Traffic, parts: Sequence[Routing]) -> Routing:
    """Return the plan of plans for different classes; per target, where one of them is."""
    flows = [part.flows for part in parts if len(part.flows)]
    if any("source" not in one for one in flows):
        key = ["target", "class", "tail", "head", "parallel"]
        flows = [
            one.groupby(key, observed=True, sort=False)["rate_mbps"].sum().reset_index() for one in flows
        ]
    joined = pd.concat(flows, ignore_index=True) if flows else parts[0].flows
    plan = routing.routing_from_tables(problem, {"flows": joined})
    return replace(plan, shed=routing.list_shed(problem, verify_flow(problem, plan).served_mbps))


def _bound_levels(
    levels: Sequence[Level], steps: Sequence[Bools], bounds: Sequence[float], served: Floats
) -> list[float]:
    """Return a bound of each level from those of the totals of all steps up to each one, see above."""
    limits, before = [], 0.0
    for level in levels:
        inside = [number for number, members in enumerate(steps) if level.value[members].any()]
        value = np.array([level.value[steps[number]].max() for number in inside] + [0.0])
        limits.append(float(-np.diff(value) @ [bounds[number] for number in inside]) - before)
        before += level.objective(served)
    return limits


def _choose_better(one: Decision[Routing], other: Decision[Routing]) -> Decision[Routing]:
    """Return the decision whose plan is better in the first level in which they differ."""
    for first, second in zip(one.proof.levels, other.proof.levels, strict=True):
        if abs(first.objective - second.objective) > PROVEN * max(first.objective, second.objective):
            return one if first.objective > second.objective else other
    return one
