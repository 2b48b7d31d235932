"""Where clients go that find no room: what an overbooked or incomplete plan comes to in the end.

A broker moves clients whose cluster fails them while they watch (Mukerjee 2018, 3.2.2 and 3.6.3). So
a plan that sends a cluster more than it can carry is not worth what it costs on paper.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner_models.brokering import market
from planner_models.brokering.check import Kinds, Served, overloaded
from planner_models.brokering.flow import Transport
from planner_models.brokering.problem import Brokering
from planner_models.brokering.repair import SLACK


def needed(problem: Brokering, done: Served) -> bool:
    """Whether a cluster has more than it can carry, or a client none."""
    return bool(overloaded(problem, done.load_mbps).any() or done.count.sum() < problem.count.sum())


def objective(problem: Brokering, done: Served) -> float:
    """What the broker minimises, once everyone who found no room has moved.

    Who finds no room anywhere counts as in the dearest cluster on offer.
    """
    transport = market.transport_of(problem)
    moved, left = relieved(transport, by_group(problem, done))
    dearest = np.where(np.isfinite(transport.cost), transport.cost, 0.0).max(axis=1, initial=0.0)
    paid = np.nan_to_num(market.client_cost(problem))  # without a price nobody is there
    return float((paid * moved).sum() + dearest @ left)


def by_group(problem: Brokering, done: Served) -> NDArray[np.int64]:
    """(G, C) clients of each group that a plan sends to each cluster."""
    groups, kinds = problem.groups, Kinds(problem)
    group = np.full(len(kinds.wanted), -1, dtype=np.int64)
    group[kinds.of(problem.clients)] = groups.of_row
    sent = np.zeros((len(groups.count), len(problem.clusters)), dtype=np.int64)
    some = done.count > 0
    np.add.at(sent, (group[done.kind[some]], done.cluster[some]), done.count[some])
    return sent


def relieved(transport: Transport, sent: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The plan when those who found no room have moved: (G, C) clients, and (G,) who found none at all.

    Those leave a cluster that is too full first who lose least by it, by the bit. With the clients
    that had no cluster they go, the largest bitrates first, to the best for them of those with room.

    sent  (G, C) clients of each group in each cluster; not changed
    """
    sent = sent.copy()
    weight, cost = transport.weight, transport.cost
    room = transport.room * (1 + SLACK) + SLACK - weight @ sent
    elsewhere = np.where(room >= weight.min(initial=np.inf), cost, np.inf).min(axis=1, initial=np.inf)
    for cluster in np.flatnonzero(room < 0):
        groups = np.flatnonzero(sent[:, cluster])
        here = cost[groups, cluster]
        # whoever should not be here at all loses nothing
        loss = (elsewhere[groups] - np.where(np.isfinite(here), here, 1e300)) / weight[groups]
        for group in groups[np.argsort(loss, kind="stable")]:
            leave = min(int(np.ceil(-room[cluster] / weight[group])), int(sent[group, cluster]))
            sent[group, cluster] -= leave
            room[cluster] += leave * weight[group]
            if room[cluster] >= 0:
                break
    left = transport.count - sent.sum(axis=1)
    homeless = np.flatnonzero(left)
    for group in homeless[np.argsort(-weight[homeless], kind="stable")]:
        for cluster in np.argsort(cost[group], kind="stable"):
            if not left[group] or not np.isfinite(cost[group, cluster]):
                break
            join = min(int(left[group]), int(max(room[cluster], 0.0) / weight[group]))
            sent[group, cluster] += join
            room[cluster] -= join * weight[group]
            left[group] -= join
    return sent, left
