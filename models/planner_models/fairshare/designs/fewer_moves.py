"""Placements that are as fair and copy less data: by an integer program, or by returns one by one."""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.arrays import Floats
from planner.options import Options
from planner_models.fairshare.designs import program
from planner_models.fairshare.designs.fair_rates import rates_of_tenants, solve_given
from planner_models.fairshare.designs.placement_rules import (
    find_rules,
    keep_all,
    list_replicas,
    may_be,
    put,
    start_state,
)
from planner_models.fairshare.plan.fair_shares import fair_share_kops
from planner_models.fairshare.plan.metrics import count_moves, least_share
from planner_models.fairshare.plan.plan import Replicas
from planner_models.fairshare.plan.service import Served
from planner_models.fairshare.problem.problem import SharedStore

MOST_EXACT: Final = 150  # partitions times nodes up to which integer programs are solved
MOST_RETURNS: Final = 100  # placements that are tried to move less data
MOST_RETURNED: Final = 20_000  # replicas up to which these are tried


def rank(problem: SharedStore, replicas: Replicas, served: Served, fair: Floats) -> tuple[float, ...]:
    """Return a key of which more is better: the least share, then less data that is copied, then requests."""
    smallest = least_share(rates_of_tenants(problem, replicas, served.kops), fair)
    moves = count_moves(problem, replicas)
    return (float(f"{smallest:.8g}"), -moves[1] if moves else 0.0, float(served.kops.sum()))


def move_less(
    problem: SharedStore, replicas: Replicas, served: Served, options: Options
) -> tuple[Replicas, Served]:
    """Return a placement with the same least share that copies less data, where one is found.

    A small problem is solved by an integer program. In a large one, replicas go back to nodes where they are
    placed, one after the other, those with most data first, as long as the least share stays.
    """
    moves = count_moves(problem, replicas)
    if moves is None or moves[1] <= 0:
        return replicas, served
    fair = fair_share_kops(problem)
    best = rank(problem, replicas, served, fair)
    if len(problem.partitions) * len(problem.nodes) <= MOST_EXACT:
        placement = program.place_with_least_moves(problem, best[0], options)
        if placement is None:
            return replicas, served
        other = solve_given(problem, placement, options)
        is_better = rank(problem, placement, other, fair) >= best
        return (placement, other) if is_better else (replicas, served)
    if len(replicas.node) > MOST_RETURNED:
        return replicas, served
    for partition, home in _list_homes(problem, replicas)[:MOST_RETURNS]:
        changed = _return_home(problem, replicas, partition, home)
        if changed is None:
            continue
        other = solve_given(problem, changed, options)
        reached = rank(problem, changed, other, fair)
        if reached > best:
            replicas, served, best = changed, other, reached
    return replicas, served


def _list_homes(problem: SharedStore, replicas: Replicas) -> list[tuple[int, int]]:
    """Return the partitions and nodes where replicas are placed that have none now, most data first."""
    partition, node = problem.placed_replicas
    nodes = len(problem.nodes)
    missing = ~np.isin(partition * nodes + node, replicas.partition * nodes + replicas.node)
    order = np.argsort(-problem.size_gb[partition[missing]], kind="stable")
    return list(zip(partition[missing][order].tolist(), node[missing][order].tolist(), strict=True))


def _return_home(problem: SharedStore, replicas: Replicas, partition: int, home: int) -> Replicas | None:
    """Return the replicas with one of a partition back on a node; None where the rules do not allow it."""
    rules, load = find_rules(problem), np.zeros(len(problem.partitions))
    state = start_state(problem, rules, load)
    keep_all(rules, state, load, *replicas, False)
    placed, node = problem.placed_replicas
    homes = set(node[placed == partition].tolist())
    for replica in range(state.node.shape[1]):
        present = int(state.node[partition, replica])
        if present < 0 or present in homes or state.is_pinned[partition, replica]:
            continue
        if may_be(rules, state, partition, replica, home, 0.0):
            put(rules, state, load, partition, replica, home)
            return list_replicas(state)
    return None
