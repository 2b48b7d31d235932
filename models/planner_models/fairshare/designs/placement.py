"""Placement of replicas by greedy insertion and local search, for the least load of the busiest node.

Greedy: partitions in descending order of load, each replica on the node with the lowest utilization after it
(longest processing time first, Graham 1969), where memory, domains and the tenant's nodes allow it. A tenant
that may be on few nodes first gets those with the lowest planned utilization. Replicas without a place are
inserted by ejection of others. Local search follows (`exchanges`).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.compiled import njit, run_small_in_python
from planner.search.tolerances import INTERIOR_POINT
from planner_models.fairshare.designs.exchanges import search_exchanges
from planner_models.fairshare.designs.placement_rules import (
    Rules,
    State,
    find_rules,
    keep_all,
    list_replicas,
    may_be,
    put,
    start_state,
)
from planner_models.fairshare.plan.plan import Replicas
from planner_models.fairshare.problem.problem import SharedStore, find_memory_shortage
from planner_models.fairshare.problem.tables import add_up

TARGET_GAP: Final = INTERIOR_POINT
MOST_EJECTIONS: Final = 100_000_000  # replicas whose ejection is tried for all that have no place


@run_small_in_python(max_elements=2_000)
@njit(cache=True, nogil=True)
def insert_greedily(rules: Rules, state: State, load: Floats, order: Ints, preferred: Bools) -> None:
    """Put each replica without a node on the node with the lowest utilization after it.

    order      (P,) partitions in the order of insertion
    preferred  (T, N) nodes of tenants that may be on few
    """
    for p in order:
        t = rules.tenant[p]
        for r in range(rules.wanted[p]):
            if state.node[p, r] >= 0:
                continue
            best, lowest = -1, np.inf
            for n in range(len(rules.rate)):
                if not preferred[t, n] or rules.rate[n] <= 0 or not may_be(rules, state, p, r, n, 0.0):
                    continue
                value = (state.load[n] + load[p]) / rules.rate[n]
                if value < lowest:
                    best, lowest = n, value
            if best >= 0:
                put(rules, state, load, p, r, best)


@njit(cache=True, nogil=True)
def put_on_first(rules: Rules, state: State, load: Floats, p: int, r: int) -> bool:
    """Put replica r of partition p on the first node that it may be on; return whether there is one."""
    for n in range(len(rules.rate)):
        if may_be(rules, state, p, r, n, 0.0):
            put(rules, state, load, p, r, n)
            return True
    return False


@njit(cache=True, nogil=True)
def put_by_ejection(rules: Rules, state: State, load: Floats, p: int, r: int, q: int) -> bool:
    """Put replica r of partition p where one of partition q can leave for a third node; return if so."""
    for s in range(rules.wanted[q]):
        n = state.node[q, s]
        if n < 0 or q == p or state.is_pinned[q, s] or not may_be(rules, state, p, r, n, rules.size[q]):
            continue
        for m in range(len(rules.rate)):
            if m == n or not may_be(rules, state, q, s, m, 0.0):
                continue
            put(rules, state, load, q, s, m)
            if may_be(rules, state, p, r, n, 0.0):
                put(rules, state, load, p, r, n)
                return True
            put(rules, state, load, q, s, n)
            break
    return False


@njit(cache=True, nogil=True)
def largest_free_gb(rules: Rules, state: State) -> float:
    """Return the most memory that a node has free, GB."""
    free = 0.0
    for n in range(len(rules.rate)):
        if rules.rate[n] > 0:
            free = max(free, rules.memory[n] - state.used[n])
    return free


@run_small_in_python(max_elements=10_000)
@njit(cache=True, nogil=True)
def insert_by_ejection(rules: Rules, state: State, load: Floats, order: Ints) -> int:
    """Insert replicas without a node where another one can leave for a third node; return those without.

    Only replicas that fit in the free memory of some node can leave.

    order  (P,) partitions in the order of insertion
    """
    unplaced, tried = 0, 0
    smallest = rules.size.min() if len(rules.size) else 0.0
    for p in order:
        for r in range(rules.wanted[p]):
            if state.node[p, r] >= 0 or put_on_first(rules, state, load, p, r):
                continue
            free = largest_free_gb(rules, state)
            tries = MOST_EJECTIONS - tried if free >= smallest else 0
            is_placed, more = eject_any(rules, state, load, (p, r), free, tries)
            tried += more
            unplaced += not is_placed
    return unplaced


@njit(cache=True, nogil=True)
def eject_any(
    rules: Rules, state: State, load: Floats, replica: tuple[int, int], free_gb: float, tries: int
) -> tuple[bool, int]:
    """Put a replica where one of the first partitions can leave; return if so, and the partitions tried.

    replica  partition, and number of the replica
    free_gb  largest free memory of a node, which the replica that leaves must fit in
    """
    for q in range(min(len(rules.wanted), tries)):
        fits = rules.size[q] <= free_gb
        if fits and put_by_ejection(rules, state, load, replica[0], replica[1], q):
            return True, q + 1
    return False, max(min(len(rules.wanted), tries), 0)


def choose_nodes(rules: Rules, load: Floats, state: State) -> Bools:
    """Return the nodes that each tenant may use, (T, N): all, or as many of the least used as it may have."""
    tenants, nodes = len(rules.most_nodes), len(rules.rate)
    preferred = np.ones((tenants, nodes), dtype=bool)
    works = np.flatnonzero(rules.rate > 0)
    few = np.flatnonzero(rules.most_nodes < len(works))
    if not len(few):
        return preferred
    of_tenant = add_up(rules.tenant, weights=load * rules.wanted, minlength=tenants)
    size = add_up(rules.tenant, weights=rules.size * rules.wanted, minlength=tenants)
    planned, memory = np.zeros(nodes), np.zeros(nodes)
    relative = of_tenant / max(float(rules.rate.sum()), 1e-300) + size / max(
        float(rules.memory.sum()), 1e-300
    )
    for t in few[np.argsort(-relative[few], kind="stable")].tolist():
        max_nodes = int(rules.most_nodes[t])
        use = np.maximum(
            (planned + of_tenant[t] / max_nodes)[works] / rules.rate[works],
            (memory + size[t] / max_nodes)[works] / rules.memory[works]
            * float(of_tenant.sum()) / max(float(rules.rate.sum()), 1e-300)
            / max(float(size.sum()) / float(rules.memory.sum()), 1e-300),
        )  # fmt: skip
        present = state.on[t, works] > 0
        order = np.lexsort((use, ~present))
        nodes_chosen: list[int] = []
        seen: set[int] = set()
        for n in works[order].tolist():  # distinct domains first, as replicas need them
            if rules.domain[n] not in seen or len(nodes_chosen) + len(works) - len(order) >= max_nodes:
                nodes_chosen.append(n)
                seen.add(rules.domain[n])
            if len(nodes_chosen) == max_nodes:
                break
        for n in works[order].tolist():
            if len(nodes_chosen) == max_nodes:
                break
            if n not in nodes_chosen:
                nodes_chosen.append(n)
        preferred[t] = False
        preferred[t, nodes_chosen] = True
        planned[nodes_chosen] += of_tenant[t] / max_nodes
        memory[nodes_chosen] += size[t] / max_nodes
    return preferred


def place_by_load(problem: SharedStore, load_kops: Floats, *, search: bool = True, seed: int = 0) -> Replicas:
    """Place all replicas for the least utilization of the busiest node.

    load_kops  (P,) load of each replica of a partition
    search     whether a local search follows the greedy insertion
    """
    rules = find_rules(problem)
    state = start_state(problem, rules, load_kops)
    insert_all(problem, rules, state, load_kops, order_by_load(problem, load_kops))
    if search:
        target = bound_utilization(problem, load_kops) * (1 + TARGET_GAP)
        search_exchanges(rules, state, load_kops, target, np.random.default_rng(seed))
    return list_replicas(state)


def order_by_load(problem: SharedStore, load_kops: Floats) -> Ints:
    """Return the partitions in the order of insertion, (P,): those with most load first.

    Where memory is too short for all, those with most requests for each GB are first. Partitions of a tenant
    of fixed mix are then one after the other, for it is served only if all of them are.
    """
    if find_memory_shortage(problem) is None:
        return np.argsort(-load_kops, kind="stable")
    owner, kops = problem.tenant, load_kops * problem.wanted_replicas
    gb = np.where(kops > 0, problem.size_gb, 0.0)
    tenants = len(problem.tenants)
    together = problem.is_fixed[owner] & (kops > 0)
    kops = np.where(together, add_up(owner, kops, tenants)[owner], kops)
    gb = np.where(together, add_up(owner, gb, tenants)[owner], gb)
    per_gb = np.where(kops > 0, kops / np.maximum(gb, 1e-300), -1.0)
    return np.lexsort((-load_kops, owner, -per_gb))


def insert_all(
    problem: SharedStore,
    rules: Rules,
    state: State,
    load: Floats,
    order: Ints,
    placed: Replicas | None = None,
) -> None:
    """Insert the replicas without a node, and keep those that are placed already.

    Where memory is too short for all, each partition has one before others have two. Of these, first come as
    many as there is memory for, in order, so that none that stays takes the memory of one of more value.

    order   (P,) partitions in the order of insertion
    placed  replicas that stay where they are as far as the rules allow it, before others are inserted
    """
    rounds = [rules.wanted]
    if find_memory_shortage(problem) is not None:
        stages = [np.minimum(rules.wanted, k) for k in range(int(rules.wanted.max(initial=1)) + 1)]
        memory, rounds = float(rules.memory[rules.rate > 0].sum()), []
        for fewer, target in pairwise(stages):
            size = np.where(target > fewer, rules.size, 0.0)[order]
            fits = np.zeros(len(order), dtype=bool)
            fits[order] = np.cumsum(size) <= memory
            memory -= float(size.sum())
            rounds += [np.where(fits, target, fewer), target]
    rank_of = np.argsort(order)
    first = None if placed is None else np.argsort(rank_of[placed.partition], kind="stable")
    for target in rounds:
        now = rules._replace(wanted=target)
        if placed is not None and first is not None:
            keep_all(now, state, load, placed.partition[first], placed.node[first], False)
        insert_greedily(now, state, load, order, choose_nodes(rules, load, state))
        insert_by_ejection(now, state, load, order)


def place_uniformly(problem: SharedStore, *, seed: int = 0) -> Replicas:
    """Place the same number of replicas on each node, whatever their load, in random order."""
    rules = find_rules(problem)
    even = np.ones(len(rules.wanted))
    state = start_state(problem, rules, even)
    order = np.random.default_rng(seed).permutation(len(even))
    alike = rules._replace(rate=np.where(rules.rate > 0, 1.0, 0.0))
    insert_all(problem, alike, state, even, order)
    return list_replicas(state)


def complete(problem: SharedStore, load_kops: Floats) -> Replicas:
    """Return the replicas where they are placed; those that are missing are inserted greedily."""
    rules = find_rules(problem)
    state = start_state(problem, rules, load_kops)
    order = order_by_load(problem, load_kops)
    insert_all(problem, rules, state, load_kops, order, Replicas(*problem.placed_replicas))
    return list_replicas(state)


def bound_utilization(problem: SharedStore, load_kops: Floats) -> float:
    """Return a bound on the utilization of the busiest node of any placement.

    All load is on nodes that work, and each partition is on at least one of them.
    """
    total = float((load_kops * problem.wanted_replicas).sum())
    rate = problem.rate_kops
    if rate.sum() <= 0:
        return 0.0
    return max(total / float(rate.sum()), float(load_kops.max(initial=0.0)) / float(rate.max()))
