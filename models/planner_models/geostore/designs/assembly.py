"""Decisions on groups from replicas: attachments of users, ways of copies, leaders; and the whole plan."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Concatenate, ParamSpec

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.contract.design import Decision
from planner.options import Options
from planner.search.judged import feasible, infeasible
from planner_models.geostore.designs.component import Component
from planner_models.geostore.plan.evaluation import evaluate, refused_load, servers_for
from planner_models.geostore.plan.key_shards import tabulate_shards
from planner_models.geostore.plan.metrics import measure_unreachable
from planner_models.geostore.plan.plan import GroupPlan, StorePlan, make_plan, tabulate_servers
from planner_models.geostore.problem.problem import Geostore
from planner_models.geostore.shards.designs import best_ranges
from planner_models.geostore.shards.keyspace import Keyspace
from planner_models.geostore.shards.sharding import Sharding

P = ParamSpec("P")
Place = Callable[Concatenate[Geostore, P], Decision[StorePlan]]
RULES = frozenset({"rules", "servers"})
"""Guarantees of all designs."""


def weak_class(problem: Geostore, group: int) -> str:
    """Return the weakest consistency that a group without invariant may have."""
    if problem.group_class[group] == "any":
        return "causal" if len(problem.components[problem.component_of[group]]) > 1 else "eventual"
    return problem.group_class[group]


def nearest_attachment(component: Component, opened: Bools) -> Ints:
    """Return the datacenter of least cost of each user, (I,), given replicas, (G, N)."""
    cost = component.attachment.copy()
    for group, used in enumerate(component.uses):
        volume = component.volume[group]
        closed = ~opened[group]
        copies = np.where(np.isfinite(component.price[group]), component.price[group], 0.0) @ opened[group]
        late = ~np.isfinite(component.price[group][:, opened[group]]).all(axis=1)
        cost += np.where(used[:, None], volume[:, None] * copies[None, :], 0.0)
        cost[np.ix_(used, closed)] = np.inf
        cost[np.ix_(used & (volume > 0), late)] = np.inf
    return np.asarray(np.argmin(cost, axis=1), dtype=np.int64)


def weak_plan(
    problem: Geostore, group: int, opened: Bools, attached: Ints, *, kind: str | None = None
) -> GroupPlan:
    """Return the plan of an eventual or causal group: one replica for each user, which sends copies."""
    users = np.arange(len(attached))
    reads = np.zeros((len(attached), len(opened)), dtype=bool)
    reads[users, attached] = True
    writing = problem.use("writes_per_s")[problem.users_of[group]] > 0
    targets = np.flatnonzero(opened).tolist()
    edges = [
        (origin, origin, target)
        for origin in np.unique(attached[writing]).tolist()
        for target in targets
        if target != origin
    ]
    kind = weak_class(problem, group) if kind is None else kind
    return GroupPlan(
        group=group,
        copies=opened.astype(np.int64),
        reads=reads,
        writes=reads,
        edges=edges,
        kind=kind,
        checks="local" if kind == "causal" else "none",
    )


def leader_plan(
    problem: Geostore, group: int, leader: int, voters: Ints, followers: Ints | None
) -> GroupPlan:
    """Return a group with a leader: users read and write there, a majority of the voters keeps each write.

    voters, followers  (N,) replicas in each region; the leader's region has a voter; None: no followers
    """
    users = len(problem.users_of[group])
    reads = np.zeros((users, len(voters)), dtype=bool)
    reads[:, leader] = True
    copies = voters if followers is None else voters + followers
    writing = (problem.use("writes_per_s")[problem.users_of[group]] > 0).any()
    targets = [region for region in np.flatnonzero(copies).tolist() if region != leader]
    return GroupPlan(
        group=group,
        copies=copies,
        votes=voters,
        reads=reads,
        writes=reads,
        leader=leader,
        kind="leader",
        edges=[(leader, leader, target) for target in targets] if writing else [],
        read_quorum=1,
        write_quorum=int(voters.sum()) // 2 + 1,
    )


def quorum_plan(
    problem: Geostore, group: int, opened: Bools, cost: Floats | None, write_quorum: int
) -> GroupPlan:
    """Return a group with quorums: reads wait for the cheapest replicas, and writes for the fastest.

    cost  (users, N) of reads, inf beyond limits; None: reads wait for the fastest replicas
    """
    users = problem.users_of[group]
    regions = problem.user_region[users]
    trip = problem.rtt_ms[regions]
    read_quorum = int(opened.sum()) + 1 - write_quorum
    reads, writes = (np.zeros(trip.shape, dtype=bool) for _ in range(2))
    for sets, key, number in (
        (reads, trip if cost is None else cost, read_quorum),
        (writes, trip, write_quorum),
    ):
        order = np.argsort(np.where(opened, key, np.inf), axis=1, kind="stable")
        np.put_along_axis(sets, order[:, :number], True, axis=1)
    writing = problem.use("writes_per_s")[users] > 0
    edges = [
        (origin, origin, target)
        for origin in np.unique(regions[writing]).tolist()
        for target in np.flatnonzero(opened).tolist()
        if target != origin
    ]
    votes = opened.astype(np.int64)
    return GroupPlan(
        group=group,
        copies=votes,
        votes=votes,
        reads=reads,
        writes=writes,
        edges=edges,
        kind="quorum",
        read_quorum=read_quorum,
        write_quorum=write_quorum,
    )


def nearest_voters(problem: Geostore, group: int, leader: int, number: int) -> Ints:
    """Return one voter in the leader's region and in those nearest to it, (N,), as many as there may be."""
    near = np.where(problem.is_forbidden[group], np.inf, problem.rtt_ms[leader])
    near[leader] = -1.0
    voters = np.zeros(len(near), dtype=np.int64)
    rows = np.argsort(near, kind="stable")[:number]
    voters[rows[np.isfinite(near[rows])]] = 1
    voters[problem.is_pinned[group]] = 1
    return voters


def main_region(problem: Geostore, group: int) -> int:
    """Return the region that may hold the group with the most writes, or else reads, of its users."""
    users = problem.users_of[group]
    writes = np.zeros(len(problem.regions))
    np.add.at(writes, problem.user_region[users], problem.use("writes_per_s")[users])
    reads = np.zeros(len(writes))
    np.add.at(reads, problem.user_region[users], problem.use("reads_per_s")[users])
    if writes.any():
        reads = np.where(writes == writes.max(), reads, -1.0)
    region = int(reads.argmax())
    near = np.where(problem.is_forbidden[group], np.inf, problem.rtt_ms[region])
    near[region] = np.inf if problem.is_forbidden[group, region] else -1.0
    return int(near.argmin())


def assemble(problem: Geostore, groups: Sequence[GroupPlan]) -> StorePlan:
    """Return the plan of all groups with the servers that it needs; ranges are in their best runs."""
    plan = with_shards(problem, make_plan(problem, groups), best_ranges)
    load: Floats = evaluate(problem, plan).load
    refused = refused_load(problem, load, problem.capacity)
    return replace(plan, servers=tabulate_servers(problem, servers_for(problem, load), refused))


def with_shards(problem: Geostore, plan: StorePlan, shard: Callable[[Keyspace], Sharding]) -> StorePlan:
    """Return the plan with the servers of ranges, if the problem has some."""
    if problem.keyspace is None:
        return plan
    return replace(plan, shards=tabulate_shards(problem, shard(problem.keyspace)))


def refuse_unreachable(decide_all: Place[P]) -> Place[P]:
    """Return the function that proves infeasibility where all must be served and no region is near enough."""

    @functools.wraps(decide_all)
    def place_or_prove(problem: Geostore, /, *args: P.args, **parameters: P.kwargs) -> Decision[StorePlan]:
        options = parameters.get("options", args[0] if args else None)
        if isinstance(options, Options) and options.service == "all":
            reasons = unreachable(problem)
            if reasons:
                return Decision(plan=None, proof=infeasible(*reasons))
        return decide_all(problem, *args, **parameters)

    return place_or_prove


def unreachable(problem: Geostore) -> list[str]:
    """Return sentences on users beyond the limits of all regions, with the nearest region and its time."""
    if measure_unreachable(problem)["missed_per_s"] <= 0:
        return []
    group = problem.user_group
    latency = np.where(problem.is_forbidden[group], np.inf, problem.latency_ms)
    nearest = latency.argmin(axis=1)
    sentences = []
    for column, rate in (("read_ms", "reads_per_s"), ("write_ms", "writes_per_s")):
        limit = problem.limit_ms(column)[group]
        rows = np.flatnonzero((latency.min(axis=1) > limit) & (problem.use(rate) > 0))
        sentences += [
            f"{column} of group {problem.group_index[group[row]]} is {limit[row]:g} for users of "
            f"{problem.region_index[problem.user_region[row]]}: the nearest region, "
            f"{problem.region_index[nearest[row]]}, takes {latency[row, nearest[row]]:.4g} ms"
            for row in rows[:5].tolist()
        ]
    return sentences


def decide(problem: Geostore, groups: Sequence[GroupPlan]) -> Decision[StorePlan]:
    """Return the decision of all groups without a bound."""
    return Decision(plan=assemble(problem, groups), proof=feasible(), guarantees=RULES)
