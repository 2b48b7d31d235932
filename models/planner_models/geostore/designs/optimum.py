"""The least cost that keeps every goal, component by component of groups, with a bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np

from planner.arrays import Bools, Ints
from planner.contract.design import Decision
from planner.contract.progress import report
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import gap_of, infeasible, judged
from planner_models.geostore.designs.assembly import (
    RULES,
    assemble,
    nearest_attachment,
    refuse_unreachable,
    weak_class,
    weak_plan,
)
from planner_models.geostore.designs.component import (
    Component,
    Costs,
    allowed_attachments,
    costs_of,
    has_conflict,
    joint,
    single,
    without_stale_limits,
)
from planner_models.geostore.designs.placement import MAX_NODES, solve_component
from planner_models.geostore.designs.program import solve_program
from planner_models.geostore.designs.strong import place_strong
from planner_models.geostore.plan.metrics import measure
from planner_models.geostore.plan.plan import GroupPlan, StorePlan
from planner_models.geostore.problem.problem import Geostore

GOALS: Final = RULES | {"class", "survival", "limits", "stale", "order"}
"""Guarantees of a plan that keeps every goal."""
SCOPE: Final = (
    "plans whose writes enter at a replica that sends all copies, and whose requests keep all goals they can"
)
SMALL: Final = 100
"""Groups up to which the default gap is 0.01%; it is 0.1% for more."""


@dataclass(kw_only=True)
class Placer:
    """Places components of groups, and adds up costs and bounds.

    missed   reasons for which some group cannot keep its goals
    """

    problem: Geostore
    gap: float
    deadline: Deadline
    groups: list[GroupPlan] = field(default_factory=list)
    cost: float = 0.0
    bound: float = 0.0
    missed: list[str] = field(default_factory=list)
    kept: set[str] = field(default_factory=lambda: set(GOALS))
    is_cut: bool = False
    max_nodes: int = MAX_NODES

    @cached_property
    def allowed(self) -> Bools:
        """(A, N) where users may attach."""
        return allowed_attachments(self.problem)

    @cached_property
    def eventual(self) -> Costs:
        """Costs without metadata."""
        return costs_of(self.problem, causal=False)

    @cached_property
    def causal(self) -> Costs:
        """Costs with the metadata of causal consistency."""
        return costs_of(self.problem, causal=True)

    def costs(self, group: int) -> Costs:
        """Return the costs under the consistency of a group."""
        return self.causal if weak_class(self.problem, group) == "causal" else self.eventual

    def place(self, members: Ints) -> None:
        """Place one component."""
        if self.problem.is_strong[int(members[0])]:
            self._place_strong(int(members[0]))
        elif len(members) == 1:
            group = int(members[0])
            self._place_weak(members, single(self.problem, group, self.costs(group), self.allowed))
        else:
            if has_conflict(self.problem, members, self.allowed):
                self._miss(members, "limits", "keep the limits of users who read them in one datacenter")
            self._place_weak(members, joint(self.problem, members, self.causal, self.allowed))

    def _place_weak(self, members: Ints, component: Component) -> None:
        """Place groups that users read and write in one datacenter."""
        if len(members) == 1:
            solved = solve_component(
                component, gap=self.gap, max_nodes=self.max_nodes, deadline=self.deadline
            )
        else:
            solved = solve_program(component, gap=self.gap, deadline=self.deadline)
        if solved.opened is None:
            relaxed = without_stale_limits(self.problem, component)
            if relaxed is not None:
                self._miss(members, "stale", "become visible in time")
                self._place_weak(members, relaxed)
                return
            self._miss(members, "order", "be where all their users may read them together")
            for group in members.tolist():
                self._place_weak(
                    np.array([group]), single(self.problem, group, self.costs(group), self.allowed)
                )
            return
        self.cost += solved.cost
        self.bound += solved.bound
        self.is_cut |= solved.is_cut
        attached = nearest_attachment(component, solved.opened)
        for row, group in enumerate(members.tolist()):
            datacenter = np.full(len(self.problem.regions), -1, dtype=np.int64)
            datacenter[component.region] = attached
            users = self.problem.user_region[self.problem.users_of[group]]
            self.groups.append(weak_plan(self.problem, group, solved.opened[row], datacenter[users]))

    def _miss(self, members: Ints, goal: str, words: str) -> None:
        names = ", ".join(str(self.problem.group_index[group]) for group in members[:3].tolist())
        self.kept.discard(goal)
        self.missed.append(f"groups {names} cannot {words}")

    def _place_strong(self, group: int) -> None:
        choice = place_strong(self.problem, group, self.eventual, gap=self.gap, deadline=self.deadline)
        self.groups.append(choice.plan)
        self.cost += choice.cost
        self.bound += choice.bound
        if not choice.in_limits:
            name = self.problem.group_index[group]
            self.kept.discard("limits")
            self.missed.append(f"no leader or quorums keep the limits of group {name}")


@refuse_unreachable
def place(problem: Geostore, *, options: Options = Options()) -> Decision[StorePlan]:
    """Place all groups at the least cost of a month that keeps limits, consistency, survival and order.

    Groups that depend on each other are placed together: a replica of one needs replicas of those that it
    depends on, and users read them in one datacenter. A group alone is solved by branch and bound with
    Lagrangian bounds, several by an integer program; bounds add up. Where servers are whole numbers, the
    bound counts them by use.
    """
    default = 1e-4 if len(problem.groups) <= SMALL else 1e-3
    placer = Placer(problem=problem, gap=gap_of(options, default=default), deadline=Deadline.of(options))
    return decide_by_cost(problem, placer, options, _report)


def decide_by_cost(
    problem: Geostore, placer: Placer, options: Options, observe: Callable[[Placer], None] | None = None
) -> Decision[StorePlan]:
    """Return the decision of a placer on all components, with its bound."""
    for members in problem.components:
        placer.place(members)
        if observe is not None:
            observe(placer)
    if options.service == "all" and placer.missed:
        return Decision(plan=None, proof=infeasible(*placer.missed[:5]))
    plan = assemble(problem, placer.groups)
    objective = measure(problem, plan, None)["usd_per_month"]
    assert objective is not None
    proof = judged(
        "min",
        objective,
        None if placer.missed else min(placer.bound, objective),
        gap=gap_of(options, default=placer.gap),
        metric="usd_per_month",
        bound_scope=SCOPE,
        is_cut=placer.is_cut,
        notes=tuple(placer.missed[:5]),
    )
    return Decision(plan=plan, proof=proof, guarantees=frozenset(placer.kept))


def _report(placer: Placer) -> None:
    if len(placer.groups) == len(placer.problem.groups):
        report("usd_per_month", placer.cost, placer.bound)
