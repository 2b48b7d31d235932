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

from planner.arrays import Bools, Floats, Ints
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


class Homes(NamedTuple):
    """Nodes where replicas have been placed: of partition p, node[first[p]:first[p + 1]]."""

    first: Ints
    node: Ints


class Placement(NamedTuple):
    """A placement that is changed until no node is above its limit.

    load   (P,) load of each replica of a partition
    upper  (N,) load that nodes may have
    """

    rules: Rules
    state: State
    load: Floats
    upper: Floats
    homes: Homes


class Members(NamedTuple):
    """Replicas of each node that may move, those with most load first.

    slot    (N, largest number) row of each in `State.node`, times its width, plus its column
    number  (N,) of them
    """

    slot: Ints
    number: Ints


class Step(NamedTuple):
    """A move of a replica, or its exchange with another one.

    value     excess that it ends for each GB
    load      of the replica that moves
    position  of the replica among those of its node; -1: no step
    target    node that it goes to
    other     position of the other replica among those of the target; -1: none
    """

    value: float
    load: float
    position: int
    target: int
    other: int


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
        homes = Homes(np.searchsorted(partition, np.arange(len(load_kops) + 1)), node)
        by_load = np.argsort(-load_kops, kind="stable")
        lower_excess(Placement(rules, state, load_kops, upper, homes), by_load, np.inf)
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
    homes = Homes(np.searchsorted(partition, np.arange(len(load_kops) + 1)), node)
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
            lower_excess(Placement(rules, trial, load_kops, upper, homes), by_load, enough)
            is_over = bool((trial.load > upper * (1 + LIMIT)).any()) or trial.lacks(rules.wanted)
            moved = (is_over, sum_moved(rules, trial, homes))
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
def is_home(homes: Homes, p: int, n: int) -> bool:
    """Return whether a partition has been placed on a node."""
    result = False
    for k in range(homes.first[p], homes.first[p + 1]):
        result |= homes.node[k] == n
    return result


@run_small_in_python(max_elements=2_000)
@njit(cache=True, nogil=True)
def sum_moved(rules: Rules, state: State, homes: Homes) -> float:
    """Return the GB of replicas on nodes where they have not been placed."""
    total = 0.0
    for p in range(len(rules.wanted)):
        for r in range(state.node.shape[1]):
            if state.node[p, r] >= 0 and not is_home(homes, p, state.node[p, r]):
                total += rules.size[p]
    return total


@njit(cache=True, nogil=True)
def gb_moved(homes: Homes, size: Floats, p: int, old: int, new: int) -> float:
    """Return the further GB that are copied if a replica goes from one node to another."""
    moved = 0.0
    if not is_home(homes, p, new):
        moved += size[p]
    if not is_home(homes, p, old):
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


@njit(cache=True, nogil=True)
def list_members(placement: Placement, order: Ints) -> Members:
    """Return the replicas of each node that have load and are not pinned."""
    node, width = placement.state.node, placement.state.node.shape[1]
    count = np.zeros(len(placement.upper), dtype=np.int64)
    for p in range(len(node)):
        for r in range(width):
            if node[p, r] >= 0:
                count[node[p, r]] += 1
    slot = np.full((len(count), 2 * count.max() + 64), -1)
    count[:] = 0
    for p in order:
        for r in range(width):
            n = node[p, r]
            if n >= 0 and placement.load[p] > 0 and not placement.state.is_pinned[p, r]:
                slot[n, count[n]] = p * width + r
                count[n] += 1
    return Members(slot, count)


@njit(cache=True, nogil=True)
def find_worst_node(placement: Placement, is_stuck: Bools) -> tuple[int, float]:
    """Return the node with most load above its limit that no search has given up, or -1, and that load."""
    worst_node, worst = -1, 0.0
    for n in range(len(placement.upper)):
        if not is_stuck[n] and placement.state.load[n] - placement.upper[n] > worst:
            worst_node, worst = n, placement.state.load[n] - placement.upper[n]
    return worst_node, worst


@njit(cache=True, nogil=True)
def is_no_better(value: float, load: float, best: Step) -> bool:
    """Return whether a move ends no more excess for each GB, or as much by a replica of no less load."""
    return value < best.value * (1 - 1e-12) or (value <= best.value * (1 + 1e-12) and load >= best.load)


@njit(cache=True, nogil=True)
def find_move(placement: Placement, members: Members, h: int, worst: float) -> Step:
    """Return the move of a replica of node h that ends most of its excess `worst` for each GB."""
    rules, state, load = placement.rules, placement.state, placement.load
    homes, width = placement.homes, placement.state.node.shape[1]
    best = Step(0.0, np.inf, -1, -1, -1)
    for i in range(members.number[h]):
        p, r = members.slot[h, i] // width, members.slot[h, i] % width
        ended = min(load[p], worst)
        if homes.first[p + 1] - homes.first[p] == 1 and homes.node[homes.first[p]] == h:
            value = ended / max(rules.size[p], 1e-9)  # the same data to all nodes
            if is_no_better(value, load[p], best):
                continue
        for n in range(len(placement.upper)):
            free = placement.upper[n] - state.load[n]
            if n == h or free < load[p]:
                continue
            gb = max(gb_moved(homes, rules.size, p, h, n), 0.0)
            value = ended / max(gb, 1e-9)
            if not is_no_better(value, load[p], best) and may_be(rules, state, p, r, n, 0.0):
                best = Step(value, load[p], i, n, -1)
    return best


@njit(cache=True, nogil=True)
def may_exchange(placement: Placement, p: int, r: int, q: int, s: int) -> bool:
    """Return whether replica r of partition p and replica s of partition q may be on each other's nodes."""
    rules, state, load = placement.rules, placement.state, placement.load
    h, n = state.node[p, r], state.node[q, s]
    if not may_be(rules, state, p, r, n, rules.size[q]):
        return False
    put(rules, state, load, p, r, n)
    fits = may_be(rules, state, q, s, h, 0.0)
    put(rules, state, load, p, r, h)
    return fits


@njit(cache=True, nogil=True)
def find_exchange(placement: Placement, members: Members, h: int, worst: float, best: Step) -> Step:
    """Return the exchange of one of the largest replicas of node h that beats `best`, else `best`."""
    hottest = min(HOTTEST, members.number[h])
    if hottest == 0:  # all its replicas are pinned
        return best
    gb_of = np.empty(hottest)
    for n in range(len(placement.upper)):
        if n != h and placement.upper[n] - placement.state.load[n] >= 0:
            best = find_exchange_with(placement, members, h, n, worst, gb_of, best)
    return best


@njit(cache=True, nogil=True)
def find_exchange_with(
    placement: Placement, members: Members, h: int, n: int, worst: float, gb_of: Floats, best: Step
) -> Step:
    """Return the exchange between nodes h and n that beats `best`, else `best`; `gb_of` is overwritten."""
    load, size, homes = placement.load, placement.rules.size, placement.homes
    width, free = placement.state.node.shape[1], placement.upper[n] - placement.state.load[n]
    mine, theirs = members.slot[h], members.slot[n]
    for i in range(len(gb_of)):
        gb_of[i] = gb_moved(homes, size, mine[i] // width, h, n)
    smallest = gb_of.min()
    for j in range(members.number[n]):
        q = theirs[j] // width
        if load[mine[0] // width] <= load[q]:
            continue
        if load[mine[len(gb_of) - 1] // width] - load[q] > free:
            break
        gb_q = gb_moved(homes, size, q, n, h)
        if min(free, worst) <= best.value * (1 + 1e-12) * max(smallest + gb_q, 1e-9):
            continue
        for i in range(len(gb_of)):
            p = mine[i] // width
            delta = load[p] - load[q]
            if delta <= 0:
                break
            gb = max(gb_of[i] + gb_q, 1e-9)
            if delta > free or q == p or min(delta, worst) <= best.value * (1 + 1e-12) * gb:
                continue
            if may_exchange(placement, p, mine[i] % width, q, theirs[j] % width):
                best = Step(min(delta, worst) / gb, best.load, i, n, j)
    return best


@njit(cache=True, nogil=True)
def make_step(
    placement: Placement, members: Members, h: int, step: Step, moved: float
) -> tuple[Members, float]:
    """Move or exchange a replica of node h; return the replicas of nodes after it, and the GB moved."""
    rules, state, load = placement.rules, placement.state, placement.load
    width, target = state.node.shape[1], step.target
    slot = members.slot[h, step.position]
    moved += gb_moved(placement.homes, rules.size, slot // width, h, target)
    put(rules, state, load, slot // width, slot % width, target)
    if members.number[target] == members.slot.shape[1]:
        wider = np.full((len(members.slot), 2 * members.slot.shape[1]), -1)
        wider[:, : members.slot.shape[1]] = members.slot
        members = Members(wider, members.number)
    count = members.number
    remove(members.slot[h], count[h], step.position)
    if step.other < 0:
        count[h] -= 1
        insert(members.slot[target], count[target], slot, load, width)
        count[target] += 1
        return members, moved
    theirs = members.slot[target, step.other]
    moved += gb_moved(placement.homes, rules.size, theirs // width, target, h)
    put(rules, state, load, theirs // width, theirs % width, h)
    insert(members.slot[h], count[h] - 1, theirs, load, width)
    remove(members.slot[target], count[target], step.other)
    insert(members.slot[target], count[target] - 1, slot, load, width)
    return members, moved


@run_small_in_python(max_elements=2_000)
@njit(cache=True, nogil=True)
def lower_excess(placement: Placement, order: Ints, least_gb: float) -> None:
    """Move and exchange replicas until no node is above its limit or no step helps.

    order     (P,) partitions, those with most load first
    least_gb  data that is moved by another placement within the limits, infinite without one: the search
              ends once it moves as much, or leaves a node above its limit
    """
    moved = sum_moved(placement.rules, placement.state, placement.homes)
    if not (placement.state.load > placement.upper).any() or moved >= least_gb:
        return
    members = list_members(placement, order)
    is_stuck = np.zeros(len(placement.upper), dtype=np.bool_)
    for _ in range(MOST_STEPS):
        h, worst = find_worst_node(placement, is_stuck)
        if h < 0:
            return
        step = find_exchange(placement, members, h, worst, find_move(placement, members, h, worst))
        if step.position >= 0:
            members, moved = make_step(placement, members, h, step, moved)
            if moved >= least_gb:
                return
        elif least_gb < np.inf:
            return
        else:
            is_stuck[h] = True
