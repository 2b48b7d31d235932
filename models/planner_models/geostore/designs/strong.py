"""Strongly consistent groups: quorums by a multi-cover program, and leaders, each with a bound.

Quorums (Gifford 1979; Wu et al. 2013, 4.3): n replicas, of which a read waits for r and a write for w, with
r + w > n and 2 w > n. Each user needs r replicas within its limit of reads and w within that of writes.
Leader: users read at the leader, and a write waits for a majority of the voters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.search.deadline import NEVER, Deadline
from planner_models.geostore.designs.assembly import leader_plan, quorum_plan
from planner_models.geostore.designs.coded import place_coded
from planner_models.geostore.designs.component import Component, Costs, failover_rows
from planner_models.geostore.designs.placement import solve_component
from planner_models.geostore.designs.quorum_parts import (
    StrongChoice,
    component_of_group,
    most_replicas,
    read_costs,
    trip_ms,
    user_limits,
    zoned_regions,
)
from planner_models.geostore.problem.problem import Geostore
from planner_models.geostore.problem.schema import CODED

SLOWER: Final = (1.0, 1.5, 2.0, 4.0, 8.0, np.inf)
"""Factors of limits that are tried in turn where no replicas keep them."""


def place_strong(
    problem: Geostore, group: int, costs: Costs, *, gap: float, deadline: Deadline
) -> StrongChoice:
    """Return the cheapest quorums, leader, or pieces of a code of a group.

    Where limits are too tight, pages are slower; where no replicas survive what they must, these goals are
    left out.
    """
    for survives in (True, False):
        for factor in SLOWER:
            choices = _list_choices(
                problem, group, costs, factor, gap=gap, deadline=deadline, survives=survives
            )
            if choices:
                best = min(choices, key=lambda choice: choice.cost)
                bound = min(choice.bound for choice in choices)
                return replace(best, bound=bound, in_limits=factor == 1.0, survives=survives)
    raise AssertionError("a leader without limits is always possible")


def _list_choices(
    problem: Geostore,
    group: int,
    costs: Costs,
    factor: float,
    *,
    gap: float,
    deadline: Deadline,
    survives: bool,
) -> list[StrongChoice]:
    """Return the best plans of each kind that a group may have, with limits longer by a factor."""
    kind = problem.group_class[group]
    choices = _place_leader(problem, group, costs, factor, deadline=deadline, survives=survives)
    if kind != "leader":
        choices += _place_quorums(
            problem, group, costs, factor, gap=gap, deadline=deadline, survives=survives
        )
    if kind == CODED:
        choices += place_coded(problem, group, costs, factor, gap=gap, deadline=deadline, survives=survives)
    return choices


def _direct_opening(problem: Geostore, group: int, costs: Costs) -> Floats:
    """Return the cost of a replica that gets every write straight from its user's region, (N,)."""
    users = problem.users_of[group]
    sent = costs.volume[users] @ problem.usd_per_gb[problem.user_region[users]]
    return np.asarray(costs.opening[group] + sent)


def combinations(failures: int) -> list[tuple[int, int, int]]:
    """Return all n, r and w that survive so many failures."""
    return [
        (n, n + 1 - w, w)
        for n in range(1, most_replicas(failures) + 1)
        for w in range(n // 2 + 1, n + 1)
        if n - failures >= max(w, n + 1 - w)
    ]


def _place_quorums(
    problem: Geostore,
    group: int,
    costs: Costs,
    factor: float,
    *,
    gap: float,
    deadline: Deadline,
    survives: bool = True,
) -> list[StrongChoice]:
    """Return the best placement for each n, r and w that has one.

    survives  whether a zone may be lost, and replicas are near after failures
    """
    users = problem.users_of[group]
    time, free = trip_ms(problem, group), ~problem.is_forbidden[group]
    opening = _direct_opening(problem, group, costs)
    # attachment without the part that is another load of writes at their entry
    attachment = read_costs(problem, group, costs)
    near_read = (time <= user_limits(problem, group, "read_ms", factor)[:, None]) & free
    near_write = (time <= user_limits(problem, group, "write_ms", factor)[:, None]) & free
    state = np.where(free, -1, 0).astype(np.int64)
    state[problem.is_pinned[group]] = 1
    near, count = failover_rows(problem, group)
    near = near[: len(near) * survives]
    choices: list[StrongChoice] = []
    for n, r, w in combinations(int(problem.failures[group])):
        zoned = zoned_regions(problem, group, n, max(r, w)) if survives else free
        if (
            zoned is None
            or free.sum() < n
            or problem.is_pinned[group].sum() > n
            or _loses_provider(problem, group)
        ):
            continue
        if (near_read.sum(axis=1) < r).any() or (near_write.sum(axis=1) < w).any():
            continue
        component = component_of_group(
            problem,
            group,
            (n, r),
            opening=opening,
            attachment=np.where(near_read, attachment, np.inf),
            state=np.where(zoned, state, 0),
            cover=np.concatenate([near_read, near_write, near]),
            need=np.repeat([r, w, count], [len(users), len(users), len(near)]),
        )
        solved = solve_component(component, gap=gap, deadline=deadline)
        if solved.opened is None:
            continue
        plan = quorum_plan(problem, group, solved.opened[0], component.attachment, w)
        choices.append(StrongChoice(plan=plan, cost=solved.cost, bound=solved.bound, in_limits=True))
    return choices


def _loses_provider(problem: Geostore, group: int) -> bool:
    """Return whether the group must survive a provider, for which quorums are not planned."""
    return problem.survive[group] == "provider"


def _place_leader(
    problem: Geostore,
    group: int,
    costs: Costs,
    factor: float,
    *,
    deadline: Deadline = NEVER,
    survives: bool = True,
) -> list[StrongChoice]:
    """Return the best leader with its voters.

    Voters are chosen one by one by cost, which is exact, unless some must be near after failures.

    survives  whether a zone may be lost, and replicas are near after failures
    """
    users = problem.users_of[group]
    writes, operations = problem.use("writes_per_s")[users], problem.use("operations_per_page")[users]
    free = ~problem.is_forbidden[group]
    time = trip_ms(problem, group)
    read_limit, write_limit = (user_limits(problem, group, name, factor) for name in ("read_ms", "write_ms"))
    reading = read_costs(problem, group, costs).sum(axis=0)
    sent = costs.volume[users] @ problem.usd_per_gb[problem.user_region[users]]
    volume = float(costs.volume[users].sum())
    trip = problem.rtt_ms + problem.service_ms
    entry = (1 - problem.term("replication_load")) * writes.sum() * costs.server
    best: StrongChoice | None = None
    near_users = (time <= np.minimum(read_limit, write_limit)[:, None]).all(axis=0)
    for leader in np.flatnonzero(free & near_users).tolist():
        wait = float(((write_limit - time[:, leader]) / operations).min(initial=np.inf))
        cost = costs.opening[group] + volume * problem.usd_per_gb[leader]
        fixed = cost[leader] + reading[leader] + sent[leader] + entry[leader]
        near = (trip[leader] <= wait) & free
        search = _Voters(problem=problem, group=group, leader=leader, cost=cost, near=near)
        for voters, slack in search.list_sets(survives=survives, deadline=deadline):
            total = float(fixed + cost[voters].sum())
            if best is None or total < best.cost:
                votes = np.zeros(len(free), dtype=np.int64)
                votes[[leader, *voters]] = 1
                plan = leader_plan(problem, group, leader, votes, None)
                best = StrongChoice(plan=plan, cost=total, bound=total - slack, in_limits=True)
    return [] if best is None else [best]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Voters:
    """Search of the voters beside a leader.

    cost  (N,) USD a month of a voter
    near  (N,) whether a voter is near enough to the leader for writes
    """

    problem: Geostore
    group: int
    leader: int
    cost: Floats
    near: Bools

    def list_sets(self, *, survives: bool, deadline: Deadline) -> Iterator[tuple[list[int], float]]:
        """Yield the cheapest regions beside the leader for each number of voters, with the gap of their cost.

        survives  whether a zone may be lost, and replicas are near after failures
        """
        for n in self._numbers():
            zoned = zoned_regions(self.problem, self.group, n, n // 2 + 1) if survives else self.near | True
            if zoned is None or not zoned[self.leader]:
                continue
            voters, slack = self._cheapest(n), 0.0
            if survives and voters is not None and not self._fails_over(voters):
                voters, slack = self._cover(n, deadline)
            if voters is not None:
                yield voters, slack

    def _numbers(self) -> list[int]:
        """Return the numbers of voters that are tried: odd ones, and that of those which must be there."""
        pinned = self.problem.is_pinned[self.group]
        fixed = int(pinned.sum()) + (not pinned[self.leader])
        largest = max(most_replicas(int(self.problem.failures[self.group])), fixed)
        return sorted({fixed, *(n for n in range(1, largest + 1, 2) if n >= fixed)})

    def _fails_over(self, voters: list[int]) -> bool:
        """Return whether enough voters are near each user for after failures."""
        near, count = failover_rows(self.problem, self.group)
        return bool((near[:, [self.leader, *voters]].sum(axis=1) >= count).all())

    def _cover(self, n: int, deadline: Deadline) -> tuple[list[int] | None, float]:
        """Return the n - 1 cheapest regions with enough voters near for after failures; None for none.

        A majority of all is near enough to the leader, and beside any provider that may be lost.
        """
        problem, group, leader, majority = self.problem, self.group, self.leader, n // 2 + 1
        if n - int(problem.failures[group]) < majority:
            return None, 0.0
        free = ~problem.is_forbidden[group]
        rows, count = failover_rows(problem, group)
        cover, need = [self.near | (np.arange(len(free)) == leader), *rows], [majority, *[count] * len(rows)]
        if problem.survive[group] == "provider":
            for provider in np.unique(problem.provider[free]).tolist():
                cover.append(free & (problem.provider != provider))
                need.append(majority)
        state = np.where(free, -1, 0).astype(np.int64)
        state[problem.is_pinned[group]] = state[leader] = 1
        component = Component(
            opening=self.cost[None],
            attachment=np.where(free, 0.0, np.inf)[None],
            volume=np.zeros((1, 1)),
            uses=np.ones((1, 1), dtype=bool),
            price=np.zeros((1, len(free), len(free))),
            region=np.array([leader]),
            count=np.ones(1, dtype=np.int64),
            least=np.array([n]),
            most=np.array([n]),
            state=state[None],
            cover=np.array(cover),
            cover_group=np.zeros(len(cover), dtype=np.int64),
            need=np.array(need, dtype=np.int64),
            child=np.zeros(0, np.int64),
            parent=np.zeros(0, np.int64),
        )
        solved = solve_component(component, gap=0.0, deadline=deadline)
        if solved.opened is None:
            return None, 0.0
        voters = [row for row in np.flatnonzero(solved.opened[0]).tolist() if row != leader]
        return voters, max(solved.cost - solved.bound, 0.0)

    def _cheapest(self, n: int) -> list[int] | None:
        """Return the n - 1 cheapest regions, a majority of all near enough; None for none.

        Where a provider may be lost, no provider may have more voters than may fail.
        """
        problem, group, leader = self.problem, self.group, self.leader
        majority, failures = n // 2 + 1, int(problem.failures[group])
        if n - failures < majority:
            return None
        free = ~problem.is_forbidden[group]
        per_provider = n - majority if problem.survive[group] == "provider" else n
        used = {int(problem.provider[leader]): 1}
        selected: list[int] = []

        def take(rows: Ints, number: int) -> None:
            for row in rows.tolist():
                provider = int(problem.provider[row])
                if len(selected) >= number:
                    return
                if row == leader or row in selected or used.get(provider, 0) >= per_provider:
                    continue
                used[provider] = used.get(provider, 0) + 1
                selected.append(row)

        order = np.argsort(np.where(problem.is_pinned[group], -np.inf, self.cost), kind="stable")
        take(order[problem.is_pinned[group][order]], n - 1)
        count = sum(bool(self.near[row]) for row in selected)
        missing = majority - 1 - count
        take(order[self.near[order]], len(selected) + max(missing, 0))
        if sum(bool(self.near[row]) for row in selected) < majority - 1:
            return None
        take(order[free[order]], n - 1)
        return selected if len(selected) == n - 1 else None
