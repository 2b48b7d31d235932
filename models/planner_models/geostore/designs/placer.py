"""Placement of components one by one, at prices of load by region."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.search.deadline import Deadline
from planner_models.geostore.designs.assembly import RULES, nearest_attachment, weak_class, weak_plan
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
from planner_models.geostore.designs.placed import Placed
from planner_models.geostore.designs.placement import MAX_NODES, Placement, solve_component
from planner_models.geostore.designs.program import solve_program
from planner_models.geostore.designs.remote import check_cost, close_gaps, keeps_order, weak_cost
from planner_models.geostore.designs.strong import place_strong
from planner_models.geostore.plan.plan import GroupPlan
from planner_models.geostore.problem.problem import Geostore
from planner_models.geostore.problem.schema import CHEAPEST, CLOSURE

GOALS: Final = RULES | {"class", "survival", "limits", "stale", "order"}
"""Guarantees of a plan that keeps every goal."""


@dataclass(kw_only=True)
class Placer:
    """Places components of groups, and adds up costs and bounds.

    missed    reasons for which some group cannot keep its goals
    load_usd  (N,) price of an operation a second of load in each region, beside that of its servers
    starts    replicas to start from, by the first group of a component
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
    load_usd: Floats | None = None
    starts: Mapping[int, Bools] = field(default_factory=dict)

    @cached_property
    def allowed(self) -> Bools:
        """(A, N) where users may attach."""
        return allowed_attachments(self.problem)

    @cached_property
    def eventual(self) -> Costs:
        """Costs without metadata."""
        return costs_of(self.problem, causal=False, load_usd=self.load_usd)

    @cached_property
    def causal(self) -> Costs:
        """Costs with the metadata of causal consistency."""
        return costs_of(self.problem, causal=True, load_usd=self.load_usd)

    def costs(self, group: int) -> Costs:
        """Return the costs under the consistency of a group."""
        return self.causal if weak_class(self.problem, group) == "causal" else self.eventual

    def at_prices(self, load_usd: Floats, starts: Mapping[int, Bools]) -> Placer:
        """Return a placer of the same problem at other prices of load, (N,), with replicas to start from."""
        return Placer(
            problem=self.problem,
            gap=self.gap,
            deadline=self.deadline,
            max_nodes=self.max_nodes,
            load_usd=load_usd,
            starts=starts,
        )

    def place_all(self) -> list[Placed]:
        """Place all components; return the plans of each."""
        return [self.place(members) for members in self.problem.components]

    def place(self, members: Ints) -> Placed:
        """Place one component, and add its cost and bound."""
        placed = self._place(members)
        self.groups += placed.groups
        self.cost += placed.cost
        self.bound += placed.bound
        return placed

    def _place(self, members: Ints) -> Placed:
        if self.problem.is_strong[int(members[0])]:
            return self._place_strong(int(members[0]))
        if len(members) == 1:
            return self._place_weak(members, self._alone(int(members[0])))
        if self.problem.checks == CLOSURE:
            return self._place_closed(members)
        placed = [self._place_remote(members)]
        if self.problem.checks == CHEAPEST:
            placed.append(self._place_closed(members))
        best = min(placed, key=lambda item: item.cost)
        return replace(best, bound=min(item.bound for item in placed))

    def _place_remote(self, members: Ints) -> Placed:
        """Place groups alone, with checks of order at the nearest replica; see `designs.remote`."""
        alone = [self._place_weak(np.array([group]), self._alone(group)) for group in members.tolist()]
        bound = sum(placed.bound for placed in alone)
        plans = close_gaps(self.problem, members, [plan for placed in alone for plan in placed.groups])
        if not keeps_order(self.problem, members, plans):
            return replace(self._place_closed(members), bound=bound)
        return Placed(
            groups=tuple(plans),
            cost=sum(weak_cost(self.problem, plan, self.causal) for plan in plans)
            + check_cost(self.problem, plans),
            bound=bound,
        )

    def _place_closed(self, members: Ints) -> Placed:
        """Place groups together, so that order is checked at the local replica."""
        if has_conflict(self.problem, members, self.allowed):
            self._miss(members, "limits", "keep the limits of users who read them in one datacenter")
        return self._place_weak(members, joint(self.problem, members, self.causal, self.allowed))

    def _alone(self, group: int) -> Component:
        return single(self.problem, group, self.costs(group), self.allowed)

    def _solve(self, members: Ints, component: Component) -> Placement:
        if len(members) > 1:
            return solve_program(component, gap=self.gap, deadline=self.deadline)
        start = self.starts.get(int(members[0]))
        return solve_component(
            component, gap=self.gap, start=start, max_nodes=self.max_nodes, deadline=self.deadline
        )

    def _place_weak(self, members: Ints, component: Component) -> Placed:
        """Place groups that users read and write in one datacenter."""
        solved = self._solve(members, component)
        if solved.opened is None:
            relaxed = without_stale_limits(self.problem, component)
            if relaxed is not None:
                self._miss(members, "stale", "become visible in time")
                return self._place_weak(members, relaxed)
            self._miss(members, "order", "be where all their users may read them together")
            alone = [self._place_weak(np.array([group]), self._alone(group)) for group in members.tolist()]
            return Placed(
                groups=tuple(plan for placed in alone for plan in placed.groups),
                cost=sum(placed.cost for placed in alone),
                bound=sum(placed.bound for placed in alone),
            )
        self.is_cut |= solved.is_cut
        attached = nearest_attachment(component, solved.opened)
        datacenter = np.full(len(self.problem.regions), -1, dtype=np.int64)
        datacenter[component.region] = attached
        plans = []
        for row, group in enumerate(members.tolist()):
            users = self.problem.user_region[self.problem.users_of[group]]
            plans.append(weak_plan(self.problem, group, solved.opened[row], datacenter[users]))
        return Placed(groups=tuple(plans), cost=solved.cost, bound=solved.bound)

    def _miss(self, members: Ints, goal: str, words: str) -> None:
        names = ", ".join(str(self.problem.group_index[group]) for group in members[:3].tolist())
        self.kept.discard(goal)
        self.missed.append(f"groups {names} cannot {words}")

    def _place_strong(self, group: int) -> Placed:
        choice = place_strong(self.problem, group, self.eventual, gap=self.gap, deadline=self.deadline)
        if not choice.in_limits:
            name = self.problem.group_index[group]
            self.kept.discard("limits")
            self.missed.append(f"no leader or quorums keep the limits of group {name}")
        if not choice.survives:
            self._miss(np.array([group]), "survival", "survive what they must with a leader or quorums")
        return Placed(groups=(choice.plan,), cost=choice.cost, bound=choice.bound)
