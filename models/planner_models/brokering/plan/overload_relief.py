"""Relief of overloaded clusters: the plan that results when clients without capacity have moved.

A broker moves clients whose cluster fails them during playback (Mukerjee 2018, 3.2.2 and 3.6.3). So the
objective of a plan that overloads clusters, or leaves clients out, is counted after these moves, and
clients that fit nowhere then are without service.
"""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from planner.arrays import Ints
from planner_models.brokering.plan.check import AssignmentArrays, ClientKinds, is_overloaded
from planner_models.brokering.plan.transportation import (
    CAPACITY_TOLERANCE,
    TransportationProblem,
    client_cost,
    transportation_problem,
)
from planner_models.brokering.problem.problem import Brokering

NOT_ON_OFFER_COST = 1e300  # a client that should not be there at all loses nothing by moving


def is_needed(problem: Brokering, result: AssignmentArrays) -> bool:
    """Return whether a cluster is overloaded, or a client has no cluster."""
    return bool(is_overloaded(problem, result.load_mbps).any() or result.count.sum() < problem.count.sum())


class Relief(NamedTuple):
    """The outcome of relief.

    weighted_cost  weights times scores and hourly costs, over the clients that are served then
    unserved       clients without service
    penalty        what they count in the objective: each costs more than all clients could
    """

    weighted_cost: float
    unserved: int
    penalty: float


_relieved: WeakKeyDictionary[Brokering, tuple[tuple[Ints, ...], Relief]] = WeakKeyDictionary()
"""The plan of each problem that was relieved last, and its relief."""


def relieve_plan(problem: Brokering, assignment: AssignmentArrays) -> Relief:
    """Return the result of a plan after all clients without capacity have moved."""
    arrays = (assignment.kind, assignment.cluster, assignment.count)
    last = _relieved.get(problem)  # a design, the engine and explanations ask for the same plan
    if last and all(np.array_equal(*pair) for pair in zip(last[0], arrays, strict=True)):
        return last[1]
    cost = client_cost(problem)
    transport = transportation_problem(problem, cost.copy())
    assigned, waiting = relieve(transport, count_by_group(problem, assignment))
    unserved = int(waiting.sum())
    penalty = unserved * transport.unserved_cost if unserved else 0.0
    np.nan_to_num(cost, copy=False)  # no client is where there is no price
    relief = Relief(float(np.multiply(cost, assigned, out=cost).sum()), unserved, penalty)
    _relieved[problem] = (tuple(array.copy() for array in arrays), relief)
    return relief


def count_by_group(problem: Brokering, assignment: AssignmentArrays) -> Ints:
    """Return the clients of each group that a plan sends to each cluster, (G, C)."""
    groups, kinds = problem.groups, ClientKinds(problem)
    group = np.full(len(kinds.demand), -1, dtype=np.int64)
    group[kinds.look_up(problem.clients)] = groups.of_row
    assigned = np.zeros((len(groups.count), len(problem.clusters)), dtype=np.int64)
    used = assignment.count > 0
    np.add.at(assigned, (group[assignment.kind[used]], assignment.cluster[used]), assignment.count[used])
    return assigned


def relieve(transport: TransportationProblem, assigned: Ints) -> tuple[Ints, Ints]:
    """Return the assignment (G, C) after relief, and the clients (G,) that fit nowhere.

    An overloaded cluster first loses the clients whose cost rises least by Mbit/s. They, and clients
    that had no cluster, then go to their cheapest cluster that they fit in, the largest bitrates first.

    assigned  (G, C) clients of each group in each cluster; not changed
    """
    assigned = assigned.copy()
    bitrate, cost = transport.bitrate_mbps, transport.cost
    capacity = transport.capacity_mbps * (1 + CAPACITY_TOLERANCE) + CAPACITY_TOLERANCE
    residual = capacity - bitrate @ assigned
    fits = residual >= bitrate.min(initial=np.inf)
    elsewhere = np.where(fits, cost, np.inf).min(axis=1, initial=np.inf)
    for cluster in np.flatnonzero(residual < 0):
        groups = np.flatnonzero(assigned[:, cluster])
        here = cost[groups, cluster]
        rise = elsewhere[groups] - np.where(np.isfinite(here), here, NOT_ON_OFFER_COST)
        for group in groups[np.argsort(rise / bitrate[groups], kind="stable")]:
            leave = min(int(np.ceil(-residual[cluster] / bitrate[group])), int(assigned[group, cluster]))
            assigned[group, cluster] -= leave
            residual[cluster] += leave * bitrate[group]
            if residual[cluster] >= 0:
                break
    unserved = transport.count - assigned.sum(axis=1)
    waiting = np.flatnonzero(unserved)
    for group in waiting[np.argsort(-bitrate[waiting], kind="stable")]:
        fitting = np.flatnonzero((residual >= bitrate[group]) & np.isfinite(cost[group]))
        for cluster in fitting[np.argsort(cost[group, fitting], kind="stable")]:
            if not unserved[group]:
                break
            join = min(int(unserved[group]), int(max(residual[cluster], 0.0) / bitrate[group]))
            assigned[group, cluster] += join
            residual[cluster] -= join * bitrate[group]
            unserved[group] -= join
    return assigned, unserved
