"""Least moves of placed replicas until no node is loaded above a limit, with a bound on the data moved.

Replicas leave nodes by prices (`move_prices`) and are packed; then, while a node is above the limit, the move
or exchange that ends most of its excess for each GB is made. Moving a replica that has left its node already,
or back to it, is no more data. The bound is the larger of two: of prices, and per node the least GB of its
replicas whose load is its excess (a fractional knapsack).
"""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple

import numpy as np
from pydantic import Field

from planner.arrays import Floats, Ints
from planner.compiled import njit, run_small_in_python
from planner.contract.design import Decision
from planner.options import Options
from planner.search.judged import judged
from planner.search.tolerances import FEASIBILITY, ROUNDING
from planner_models.fairshare.designs.decision import Previous, decide, start_from
from planner_models.fairshare.designs.fair_rates import Seed, fair_load_kops, solve_given
from planner_models.fairshare.designs.move_prices import list_items, pack, price_moves
from planner_models.fairshare.designs.placement import (
    bound_utilization,
    insert_all,
    order_by_load,
    place_by_load,
)
from planner_models.fairshare.designs.placement_rules import (
    Rules,
    State,
    copy_state,
    find_rules,
    keep_all,
    list_replicas,
    may_be,
    put,
    start_state,
)
from planner_models.fairshare.plan.metrics import count_moves
from planner_models.fairshare.plan.plan import Replicas, Sharing, sum_by_node
from planner_models.fairshare.problem.problem import SharedStore, find_memory_shortage
from planner_models.fairshare.problem.tables import add_up

MOST_STEPS: Final = 20_000
HOTTEST: Final = 12  # replicas of a node that are tried in exchanges
LIMIT: Final = FEASIBILITY  # of its limit, by which a node may be above it
CLOSE: Final = 0.01  # distance from the bound at which no further decision of prices is packed
FAR: Final = 0.1  # distance at which none is started without prices


class Moved(NamedTuple):
    """Replicas after the moves, whether no node is above the limit, and the bound on GB for that."""

    replicas: Replicas
    is_within: bool
    bound_gb: float
    limit: float


def rebalance(
    problem: SharedStore,
    *,
    slack: Annotated[
        float, Field(ge=0, le=10, description="utilization above the least possible that nodes may have")
    ] = 0.02,
    seed: Seed = 0,
    previous: Previous = None,
    options: Options = Options(),
) -> Decision[Sharing]:
    """Move the least data until the fair-share demand of all tenants fits, then share nodes exactly.

    The bound is on the data that any placement moves whose busiest node, with each partition's requests split
    evenly over its replicas, is within the same limit.

    returns  Decision with Sharing; objective and bound are of metric "moved_gb"
    """
    problem = start_from(problem, previous)
    moved = move_least(problem, fair_load_kops(problem), slack=slack, seed=seed)
    served = solve_given(problem, moved.replicas, options)
    weight = sum_by_node(problem, moved.replicas, served.kops)
    decision = decide(problem, moved.replicas, served, weight, options=options, backend="local search")
    counted = count_moves(problem, moved.replicas)
    if decision.plan is None or counted is None:
        return decision
    is_proven = moved.is_within and counted[1] <= moved.bound_gb * (1 + (options.gap or 1e-4)) + ROUNDING
    proof = judged(
        "min",
        counted[1],
        moved.bound_gb if moved.is_within else None,
        is_optimal=is_proven,
        bound_scope=f"placements with nodes loaded up to {moved.limit:.4f}" if moved.is_within else None,
        metric="moved_gb",
        backend="local search",
    )
    return Decision(plan=decision.plan, proof=proof, guarantees=decision.guarantees)


def move_least(problem: SharedStore, load_kops: Floats, *, slack: float, seed: int = 0) -> Moved:
    """Move replicas until no node is loaded above (1 + slack) times the least possible, as far as that goes.

    Without placed replicas, all are placed anew. Where memory is too short for all replicas, those of most
    value stay or are placed first (`insert_all`), and there is no bound.

    load_kops  (P,) load of each replica of a partition
    """
    limit = bound_utilization(problem, load_kops) * (1 + slack)
    partition, node = problem.placed_replicas
    if not len(partition):
        replicas = place_by_load(problem, load_kops, seed=seed)
        return Moved(replicas, _is_within(problem, replicas, load_kops, limit), 0.0, limit)
    rules = find_rules(problem)
    state = start_state(problem, rules, load_kops)
    upper = rules.rate * limit * (1 + ROUNDING)
    if find_memory_shortage(problem) is not None:  # then no moves make space for all
        insert_all(
            problem, rules, state, load_kops, order_by_load(problem, load_kops), Replicas(partition, node)
        )
        first = np.searchsorted(partition, np.arange(len(load_kops) + 1))
        by_load = np.argsort(-load_kops, kind="stable")
        lower_excess(rules, state, load_kops, upper, by_load, first, node, np.inf)
        return Moved(list_replicas(state), False, 0.0, limit)
    keep_all(rules, state, load_kops, partition, node, False)
    gb = copied_gb(rules, state, partition, node)
    bound = bound_moves(rules, state, load_kops, gb, limit)
    count = (state.node >= 0).sum(axis=1)
    missing = np.repeat(np.arange(len(count)), np.maximum(rules.wanted - count, 0))
    leaving: list[Ints] = []
    if len(missing) or (state.load > upper).any():
        items = list_items(rules, state, load_kops, gb)
        priced = price_moves(upper - state.load, upper, items, load_kops[missing], float(gb[missing].sum()))
        bound, leaving = max(bound, priced.bound_gb), priced.leaving
        if (gb == gb[0]).all() and gb[0] > 0:  # whole replicas of one size
            bound = float(np.ceil(bound / gb[0] - 1e-6) * gb[0])
    replicas, is_within = _place_leaving(problem, rules, state, load_kops, upper, leaving, bound)
    return Moved(replicas, is_within, bound, limit)


def _place_leaving(
    problem: SharedStore,
    rules: Rules,
    state: State,
    load_kops: Floats,
    upper: Floats,
    leaving: list[Ints],
    bound_gb: float,
) -> tuple[Replicas, bool]:
    """Return the replicas with the least data moved of several decisions, and whether they keep all limits.

    upper      (N,) load that nodes may have
    leaving   slots that leave in each decision
    bound_gb  no decision is tried once one is near it
    """
    order, by_load = order_by_load(problem, load_kops), np.argsort(-load_kops, kind="stable")
    partition, node = problem.placed_replicas
    first = np.searchsorted(partition, np.arange(len(load_kops) + 1))
    best, lowest = state, (True, np.inf)  # whether some node is above its limit, data that is moved
    for slots in [*leaving, np.zeros(0, dtype=np.int64)]:  # without prices last
        if not lowest[0] and lowest[1] <= bound_gb * (1 + (CLOSE if len(slots) else FAR)) + ROUNDING:
            break
        for makes_space in (False, True):
            trial = copy_state(state)
            unplaced = pack(rules, trial, load_kops, upper, slots, order, makes_space)
            if unplaced:
                insert_all(problem, rules, trial, load_kops, order)
            enough = np.inf if lowest[0] else lowest[1] * (1 - ROUNDING)
            lower_excess(rules, trial, load_kops, upper, by_load, first, node, enough)
            is_over = bool((trial.load > upper * (1 + LIMIT)).any()) or trial.lacks(rules.wanted)
            moved = (is_over, sum_moved(rules, trial, first, node))
            if moved < lowest:
                best, lowest = trial, moved
            if unplaced == 0:
                break
    return list_replicas(best), not lowest[0]


def copied_gb(rules: Rules, state: State, partition: Ints, node: Ints) -> Floats:
    """Return the data that is copied at least for a replica that leaves its node, or is nowhere, (P,).

    It is none for a partition that is placed on a further node, where it may go without a copy.

    state            of the replicas that stay where they are placed
    partition, node  of the placed replicas
    """
    works = rules.allowed[partition if len(rules.allowed) > 1 else 0, node]
    homes = np.bincount(partition[works], minlength=len(rules.size))
    gb: Floats = np.where(homes > (state.node >= 0).sum(axis=1), 0.0, rules.size)
    return gb


def _is_within(problem: SharedStore, replicas: Replicas, load_kops: Floats, limit: float) -> bool:
    load = add_up(replicas.node, weights=load_kops[replicas.partition], minlength=len(problem.nodes))
    placed = np.bincount(replicas.partition, minlength=len(load_kops))
    fits = bool((load <= problem.rate_kops * limit * (1 + LIMIT)).all())
    return fits and bool((placed >= problem.wanted_replicas).all())


def bound_moves(rules: Rules, state: State, load_kops: Floats, gb: Floats, limit: float) -> float:
    """Return a bound on the GB to move: missing replicas, and on each node the least that ends its excess.

    state  of the replicas that can stay where they are placed
    gb     (P,) data that is copied if one of its replicas leaves
    """
    count = (state.node >= 0).sum(axis=1)
    missing = np.maximum(rules.wanted - count, 0)
    total = float((missing * gb).sum())
    partition, slot = np.nonzero(state.node >= 0)
    node = state.node[partition, slot]
    excess = state.load - rules.rate * limit
    for n in np.flatnonzero(excess > ROUNDING * np.maximum(rules.rate, 1e-9)).tolist():
        rows = partition[node == n]
        load, size = load_kops[rows], gb[rows]
        free = size <= 0
        remaining = float(excess[n]) - float(load[free].sum())
        load, size = load[~free], size[~free]
        order = np.argsort(-load / np.maximum(size, 1e-300), kind="stable")
        ended = np.concatenate([[0.0], np.cumsum(load[order])])
        last = int(np.searchsorted(ended, remaining * (1 - ROUNDING)))
        if remaining <= 0 or not len(load):
            continue
        last = min(last, len(load))
        before = float(size[order[: last - 1]].sum())
        if size.max() == size.min():  # whole replicas of one size
            total += before + float(size[0])
        else:
            fraction = (remaining - ended[last - 1]) / max(float(load[order[last - 1]]), 1e-300)
            total += before + min(fraction, 1.0) * float(size[order[last - 1]])
    return total


@njit(cache=True, nogil=True, inline="always")
def is_home(first: Ints, homes: Ints, p: int, n: int) -> bool:
    """Return whether a partition has been placed on a node."""
    result = False
    for k in range(first[p], first[p + 1]):
        result |= homes[k] == n
    return result


@run_small_in_python(max_elements=2_000)
@njit(cache=True, nogil=True)
def sum_moved(rules: Rules, state: State, first: Ints, homes: Ints) -> float:
    """Return the GB of replicas on nodes where they have not been placed.

    first, homes  nodes of the placed replicas of partition p: homes[first[p]:first[p + 1]]
    """
    total = 0.0
    for p in range(len(rules.wanted)):
        for r in range(state.node.shape[1]):
            if state.node[p, r] >= 0 and not is_home(first, homes, p, state.node[p, r]):
                total += rules.size[p]
    return total


@njit(cache=True, nogil=True)
def gb_moved(first: Ints, homes: Ints, size: Floats, p: int, old: int, new: int) -> float:
    """Return the further GB that are copied if a replica goes from one node to another."""
    moved = 0.0
    if not is_home(first, homes, p, new):
        moved += size[p]
    if not is_home(first, homes, p, old):
        moved -= size[p]
    return moved


@njit(cache=True, nogil=True, inline="always")
def remove(row: Ints, count: int, position: int) -> None:
    """Remove one of the first `count` entries of a row; the others keep their order."""
    for i in range(position, count - 1):
        row[i] = row[i + 1]


@njit(cache=True, nogil=True, inline="always")
def insert(row: Ints, count: int, slot: int, load: Floats, width: int) -> None:
    """Insert a slot behind those with at least as much load, of the first `count` entries of a row."""
    i = count
    while i > 0 and load[row[i - 1] // width] < load[slot // width]:
        row[i] = row[i - 1]
        i -= 1
    row[i] = slot


@run_small_in_python(max_elements=2_000)
@njit(cache=True, nogil=True)
def lower_excess(  # noqa: C901 - one compiled loop
    rules: Rules,
    state: State,
    load: Floats,
    upper: Floats,
    order: Ints,
    first: Ints,
    homes: Ints,
    least_gb: float,
) -> None:
    """Move and exchange replicas until no node is above its limit or no step helps.

    upper          (N,) load that nodes may have
    order         (P,) partitions, those with most load first
    first, homes  nodes of the placed replicas of partition p: homes[first[p]:first[p + 1]]
    least_gb      data that is moved by another placement within the limits, infinite without one: the search
                  ends once it moves as much, or leaves a node above its limit
    """
    nodes, partitions, width = len(upper), len(rules.wanted), state.node.shape[1]
    moved = sum_moved(rules, state, first, homes)
    if not (state.load > upper).any() or moved >= least_gb:
        return
    count = np.zeros(nodes, dtype=np.int64)
    for p in range(partitions):
        for r in range(width):
            if state.node[p, r] >= 0:
                count[state.node[p, r]] += 1
    members = np.full((nodes, 2 * count.max() + 64), -1)  # those with most load first
    count[:] = 0
    for p in order:
        for r in range(width):
            n = state.node[p, r]
            if n >= 0 and load[p] > 0 and not state.is_pinned[p, r]:
                members[n, count[n]] = p * width + r
                count[n] += 1
    is_stuck = np.zeros(nodes, dtype=np.bool_)
    gb_of = np.empty(HOTTEST)
    for _ in range(MOST_STEPS):
        h, worst = -1, 0.0
        for n in range(nodes):
            if not is_stuck[n] and state.load[n] - upper[n] > worst:
                h, worst = n, state.load[n] - upper[n]
        if h < 0:
            return
        best, tightest = 0.0, np.inf
        best_index, target, other = -1, -1, -1
        for i in range(count[h]):
            p, r = members[h, i] // width, members[h, i] % width
            ended = min(load[p], worst)
            if first[p + 1] - first[p] == 1 and homes[first[p]] == h:  # the same data to all nodes
                value = ended / max(rules.size[p], 1e-9)
                if value < best * (1 - 1e-12) or (value <= best * (1 + 1e-12) and load[p] >= tightest):
                    continue
            for n in range(nodes):
                free = upper[n] - state.load[n]
                if n == h or free < load[p]:
                    continue
                gb = max(gb_moved(first, homes, rules.size, p, h, n), 0.0)
                value = ended / max(gb, 1e-9)
                if value < best * (1 - 1e-12) or (value <= best * (1 + 1e-12) and load[p] >= tightest):
                    continue
                if may_be(rules, state, p, r, n, 0.0):
                    best, tightest, best_index, target, other = value, load[p], i, n, -1
        hottest = min(HOTTEST, count[h])
        for n in range(nodes if hottest else 0):  # none where all its replicas are pinned
            free = upper[n] - state.load[n]
            if n == h or free < 0:
                continue
            for i in range(hottest):
                gb_of[i] = gb_moved(first, homes, rules.size, members[h, i] // width, h, n)
            smallest = gb_of[:hottest].min()
            for j in range(count[n]):
                q, s = members[n, j] // width, members[n, j] % width
                if load[members[h, 0] // width] <= load[q]:
                    continue
                if load[members[h, hottest - 1] // width] - load[q] > free:
                    break
                gb_q = gb_moved(first, homes, rules.size, q, n, h)
                if min(free, worst) <= best * (1 + 1e-12) * max(smallest + gb_q, 1e-9):
                    continue
                for i in range(hottest):
                    p, r = members[h, i] // width, members[h, i] % width
                    delta = load[p] - load[q]
                    if delta <= 0:
                        break
                    gb = max(gb_of[i] + gb_q, 1e-9)
                    if delta > free or q == p or min(delta, worst) <= best * (1 + 1e-12) * gb:
                        continue
                    if not may_be(rules, state, p, r, n, rules.size[q]):
                        continue
                    put(rules, state, load, p, r, n)
                    fits = may_be(rules, state, q, s, h, 0.0)
                    put(rules, state, load, p, r, h)
                    if fits:
                        best, best_index, target, other = min(delta, worst) / gb, i, n, j
        if best_index < 0:
            if least_gb < np.inf:
                return
            is_stuck[h] = True
            continue
        slot = members[h, best_index]
        moved += gb_moved(first, homes, rules.size, slot // width, h, target)
        put(rules, state, load, slot // width, slot % width, target)
        if count[target] == members.shape[1]:
            wider = np.full((nodes, 2 * members.shape[1]), -1)
            wider[:, : members.shape[1]] = members
            members = wider
        if other >= 0:
            theirs = members[target, other]
            moved += gb_moved(first, homes, rules.size, theirs // width, target, h)
            put(rules, state, load, theirs // width, theirs % width, h)
            remove(members[target], count[target], other)
            insert(members[target], count[target] - 1, slot, load, width)
            remove(members[h], count[h], best_index)
            insert(members[h], count[h] - 1, theirs, load, width)
        else:
            remove(members[h], count[h], best_index)
            count[h] -= 1
            insert(members[target], count[target], slot, load, width)
            count[target] += 1
        if moved >= least_gb:
            return
