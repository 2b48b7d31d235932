"""SPANStore: as many replicas within the limit of each user as may fail, and one more (Wu et al. 2013)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.arrays import Ints
from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import gap_of
from planner_models.geostore.designs.assembly import decide, nearest_attachment, refuse_unreachable, weak_plan
from planner_models.geostore.designs.component import (
    Component,
    Costs,
    allowed_attachments,
    costs_of,
    single,
)
from planner_models.geostore.designs.placement import Placement, solve_component
from planner_models.geostore.designs.propagation import cheapest_ways
from planner_models.geostore.designs.strong import place_strong
from planner_models.geostore.plan.plan import GroupPlan, StorePlan
from planner_models.geostore.problem.problem import Geostore


@dataclass(frozen=True, kw_only=True)
class AloneSearch:
    """Costs, gap and deadline of the placement of each group alone."""

    problem: Geostore
    costs: dict[bool, Costs]
    gap: float
    deadline: Deadline

    @classmethod
    def of(cls, problem: Geostore, options: Options) -> AloneSearch:
        """Return the search with costs of all groups."""
        costs = {causal: costs_of(problem, causal=causal) for causal in (False, True)}
        return cls(
            problem=problem, costs=costs, gap=gap_of(options, default=1e-3), deadline=Deadline.of(options)
        )

    def costs_of(self, group: int) -> Costs:
        """Return the costs under the consistency that a group asks for."""
        return self.costs[self.problem.group_class[group] == "causal"]

    def solve(self, component: Component) -> Placement:
        """Return the placement of one group."""
        return solve_component(component, gap=self.gap, deadline=self.deadline)

    def strong(self, group: int) -> GroupPlan:
        """Return the cheapest quorums or leader of a group."""
        choice = place_strong(self.problem, group, self.costs[False], gap=self.gap, deadline=self.deadline)
        return choice.plan


def kind_alone(problem: Geostore, group: int) -> str:
    """Return the consistency of a group that is placed without regard to others."""
    return "causal" if problem.group_class[group] == "causal" else "eventual"


@refuse_unreachable
def place(problem: Geostore, *, options: Options = Options()) -> Decision[StorePlan]:
    """Place each group alone: each user has one more replica within its limits than may fail.

    Copies go over other replicas where that is cheaper and in time. Strongly consistent groups get the
    cheapest quorums. Which groups depend on each other is not observed.
    """
    search = AloneSearch.of(problem, options)
    allowed = allowed_attachments(problem)
    groups = []
    for group in range(len(problem.groups)):
        if problem.is_strong[group]:
            groups.append(search.strong(group))
            continue
        component = single(problem, group, search.costs_of(group), allowed)
        needed = int(problem.failures[group]) + 1
        near = allowed[problem.users_of[group]]
        covered = replace(
            component,
            cover=np.concatenate([component.cover, near]),
            cover_group=np.zeros(len(component.need) + len(near), dtype=np.int64),
            need=np.concatenate([component.need, np.minimum(needed, near.sum(axis=1))]),
        )
        groups.append(_with_relays(problem, place_alone(search, group, [covered, component])))
    return decide(problem, groups)


def _with_relays(problem: Geostore, plan: GroupPlan) -> GroupPlan:
    """Return the plan in which each replica gets copies from the one that sends them at the least cost."""
    held = np.flatnonzero(plan.copies)
    limit = float(problem.limit_ms("stale_ms")[plan.group])
    edges = [
        edge
        for origin in dict.fromkeys(origin for origin, _, _ in plan.edges)
        for edge in cheapest_ways(origin, held[held != origin], problem.usd_per_gb, problem.copy_ms, limit)
    ]
    return replace(plan, edges=edges)


def place_alone(search: AloneSearch, group: int, components: Sequence[Component]) -> GroupPlan:
    """Return the plan of a group by the first of its components that has a placement.

    The last of them, without limits of copies, always has one.
    """
    problem = search.problem
    last = replace(components[-1], price=np.broadcast_to(problem.usd_per_gb, components[-1].price.shape))
    for component in (*components, last):
        solved = search.solve(component)
        if solved.opened is not None:
            attached: Ints = nearest_attachment(component, solved.opened)
            return weak_plan(problem, group, solved.opened[0], attached, kind=kind_alone(problem, group))
    raise AssertionError("a group without limits of copies has a placement")
