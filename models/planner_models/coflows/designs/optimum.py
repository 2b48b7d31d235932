"""The best plan, and the bound on all plans: circuits by local search, or with the packet switch.

`optimum` is over all plans. Those over circuits alone are searched, and proven where there are few flows; of
the others it takes those of `hybrid` and `sebf`, with the bound on plans over both switches.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner import backends
from planner.backends.linear_program import LinearProgram
from planner.contract import progress
from planner.contract.design import Decision
from planner.contract.proof import relative_gap
from planner.errors import InputError
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import undecided
from planner_models.coflows.designs import hybrid, ordering_program, sebf, windows
from planner_models.coflows.designs.decision import METRIC, PROVEN, circuits_scope, decide
from planner_models.coflows.designs.sunflow import run_windows
from planner_models.coflows.plan.completion import complete_by_circuits, mean_completion_ms, replay
from planner_models.coflows.plan.flow_groups import group_flows
from planner_models.coflows.plan.lower_bounds import mean_completion_bound_ms
from planner_models.coflows.plan.plan import Service, Services, join_services, tabulate_services
from planner_models.coflows.problem.problem import CoflowsInTime, Floats

Parts = Annotated[
    int,
    Field(ge=1, le=4, description="most circuits that the ordering program gives a flow, one after another"),
]
MOST_MODEL_FLOWS: Final = 1_000
"""Flows, at most, of a model that is exported: it has a row for each pair of circuits of one port."""
MostCircuits = Annotated[
    int,
    Field(
        ge=0,
        le=40,
        description="circuits up to which the ordering program is solved; beyond, local search with a bound",
    ),
]
Steps = Annotated[int, Field(ge=0, description="orders of coflows that the local search tries")]
MOST_WINDOW_FLOWS: Final = 300
"""Flows up to which the designs that schedule window by window are tried."""
EXCHANGES: Final = 0.5
"""Share of the moves that exchange two coflows; the others move one."""
WORK: Final = 20_000_000
"""Flows, at each arrival, in all orders that the local search tries."""
SEARCH_SHARE: Final = 0.4
"""Share of the time limit in which the local search ends."""


def schedule(
    problem: CoflowsInTime,
    *,
    parts: Parts = 2,
    most_circuits: MostCircuits = 12,
    steps: Steps = 200,
    options: Options = Options(),
) -> Decision[Service]:
    """Complete coflows soonest: by circuits, or with the packet switch where that is sooner.

    All arrivals are known. Local search moves coflows in the order in which Sunflow gives them circuits. The
    ordering program then finds the best plan in which a flow has at most `parts` circuits, one where `parts`
    are too many. Its bound is one on such plans, and is given with this scope where the plan is one of them;
    else the bound is on all plans over circuits. Where `hybrid` or `sebf` completes coflows sooner with the
    packet switch, the plan is theirs, and the bound is on all plans.

    source  Manne 1960, the ordering program; Huang et al. 2016 (Sunflow), circuits by the order of coflows
    """
    deadline = Deadline.of(options)
    scope = circuits_scope(problem)
    if not problem.can_complete.any():
        return decide(problem, Service(), "circuits", scope, options)
    bound = mean_completion_bound_ms(problem, "circuits")
    search = _Search(problem, bound)
    search.try_designs(replace(options, service="best"))
    search.move_coflows(steps, deadline.share(SEARCH_SHARE), options.seed or 0)
    flows = len(search.groups.flow)
    parts = parts if flows * parts <= most_circuits else 1
    proven, backend = None, None
    if not search.is_optimal and flows * parts <= most_circuits:
        proven, backend = search.solve_program(parts, deadline.options(options, minimum_s=0.01))
        if proven is not None and (bound is None or proven > bound):
            kind = f"at most {parts} circuits for each flow" if parts > 1 else "one circuit for each flow"
            scope = ", ".join(filter(None, (scope, kind)))
    sooner = _find_sooner(problem, search.mean_ms) if problem.has_packet_switch else None
    if sooner is not None:
        return decide(problem, sooner, "all", None, options)
    return decide(problem, search.plan, "circuits", scope, options, proven=proven, backend=backend)


def _find_sooner(problem: CoflowsInTime, mean_ms: float) -> Service | None:
    """Return the plan of `hybrid` or `sebf` with the least mean below `mean_ms`; None where there is none."""
    soonest, limit = None, mean_ms * (1 - PROVEN)
    for algorithm in (
        partial(hybrid.schedule, thresholds=1),
        hybrid.schedule,
        partial(hybrid.schedule, thresholds=64),
        sebf.schedule,
    ):
        decision = algorithm(problem)
        if decision.proof.objective is not None and decision.proof.objective < limit:
            soonest, limit = decision.plan, decision.proof.objective
    return soonest


def build_model(
    problem: CoflowsInTime, *, parts: Parts = 2, most_circuits: MostCircuits = 12
) -> LinearProgram:
    """Return the ordering program: that of `schedule`, or one circuit for each flow where it has no program.

    raises  InputError where there are more than MOST_MODEL_FLOWS flows, or where nothing can be complete
    """
    flows = len(group_flows(problem).flow)
    parts = parts if flows * parts <= most_circuits else 1
    if not flows:
        raise InputError("optimum: no coflow can be complete, so that there is no model")
    if flows > MOST_MODEL_FLOWS:
        raise InputError(
            f"optimum: there are {flows:,} flows, must be at most {MOST_MODEL_FLOWS:,} for a model"
        )
    about = "the mean completion time of coflows over circuits alone, with "
    about += f"at most {parts} circuits for each flow" if parts > 1 else "one circuit for each flow"
    if problem.has_packet_switch:
        about += "; plans that use the packet switch may complete them sooner"
    program = ordering_program.build_program(problem, ordering_program.Circuits.of(problem, parts))
    return program.describe(about, metric=METRIC, unit="ms")


class _Search:
    """The incumbent of a search, and its bound on all plans over circuits, ms."""

    def __init__(self, problem: CoflowsInTime, bound: float | None) -> None:
        self.problem, self.bound = problem, bound
        self.groups = group_flows(problem)
        self.plan, self.mean_ms = Service(), math.inf

    @property
    def is_optimal(self) -> bool:
        """True where the incumbent is as good as the bound."""
        gap = relative_gap(self.mean_ms, self.bound) if math.isfinite(self.mean_ms) else None
        return gap is not None and gap <= PROVEN

    def offer(self, services: Services) -> bool:
        """Take services by circuits as the incumbent where they are better; return whether they are."""
        mean_ms = mean_completion_ms(self.problem, complete_by_circuits(self.problem, services))
        if not mean_ms < self.mean_ms:  # also where a coflow is not complete, NaN
            return False
        self._take(tabulate_services(self.problem, services), mean_ms)
        return True

    def offer_table(self, circuits: pd.DataFrame) -> None:
        """Take the circuits of a plan as the incumbent where they are better."""
        plan = Service(circuits=circuits)
        mean_ms = mean_completion_ms(self.problem, replay(self.problem, plan).coflow_ms)
        if mean_ms < self.mean_ms:
            self._take(circuits, mean_ms)

    def _take(self, circuits: pd.DataFrame, mean_ms: float) -> None:
        self.plan, self.mean_ms = Service(circuits=circuits), mean_ms
        progress.report(METRIC, mean_ms, self.bound)

    def try_order(self, rank: Floats | None) -> bool:
        """Offer the circuits of an order of coflows, lower numbers first, by Sunflow."""
        index, start, end, switch = run_windows(self.problem, self.groups, rank=rank)
        return self.offer(join_services(self.groups.flow[index], start, end, switch))

    def try_designs(self, options: Options) -> None:
        """Offer the circuits of Sunflow, and of Solstice and Eclipse where there are few flows."""
        self.try_order(None)
        self.try_order(self.problem.arrival_ms)
        if len(self.groups.flow) <= MOST_WINDOW_FLOWS:
            for design in (windows.schedule_solstice, windows.schedule_eclipse):
                plan = design(self.problem, options=options).plan
                if plan is not None:
                    self.offer_table(plan.circuits)

    def move_coflows(self, steps: int, deadline: Deadline, seed: int) -> None:
        """Move a coflow to another place in the order, or exchange two, while this is better."""
        problem = self.problem
        works = np.flatnonzero(problem.can_complete)
        arrivals = len(np.unique(problem.arrival_ms[works]))
        steps = min(steps, WORK // max(1, arrivals * len(self.groups.flow)))
        taken = replay(problem, self.plan).coflow_ms if math.isfinite(self.mean_ms) else problem.arrival_ms
        # the order in which the incumbent completes coflows
        order = works[np.argsort((problem.arrival_ms + taken)[works], kind="stable")]
        rank = np.zeros(len(problem.coflows))
        rank[order] = np.arange(len(order))
        if steps > 0:
            self.try_order(rank)
        rng = np.random.default_rng(seed)
        for _ in range(steps if len(order) > 1 else 0):
            if self.is_optimal or deadline.is_over:
                return
            tried = order.tolist()
            first, other = rng.choice(len(order), size=2, replace=False).tolist()
            if rng.random() < EXCHANGES:
                tried[first], tried[other] = tried[other], tried[first]
            else:
                tried.insert(other, tried.pop(first))
            rank[tried] = np.arange(len(tried))
            if self.try_order(rank):
                order = np.array(tried)

    def solve_program(self, parts: int, options: Options) -> tuple[float | None, str | None]:
        """Solve the ordering program, and offer its plan.

        returns  the bound on plans with at most `parts` circuits for each flow, where the incumbent is one
                 that it holds for, and the backend
        """
        circuits = ordering_program.Circuits.of(self.problem, parts)
        program = ordering_program.build_program(self.problem, circuits, most_ms=self.mean_ms)
        solution = backends.solve(program, replace(options, gap=options.gap or PROVEN / 10, service="best"))
        if solution.x is not None:
            services = ordering_program.read_solution(self.problem, circuits, program, solution.x)
            self.offer(join_services(*services))
        # plans with more circuits than the program knows may be better than its bound
        bound = solution.bound
        holds = bound is not None and bound <= self.mean_ms * (1 + PROVEN)
        return (bound if holds else None), solution.backend


def bound_schedules(problem: CoflowsInTime) -> Decision[Service]:
    """Return a lower bound on the mean completion time of every schedule, and no plan.

    Each port works as one machine on the coflows that use it, and no coflow is faster than alone.

    source  Goemans et al. 2002, the mean busy time relaxation, with a machine for each port
    """
    bound = mean_completion_bound_ms(problem)
    return Decision(plan=None, proof=undecided(bound=bound, metric=METRIC))
