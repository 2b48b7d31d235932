"""Placement of replicas by greedy insertion and local search, for the least load of the busiest node.

Greedy: partitions in descending order of load, each replica on the node with the lowest utilization after it
(longest processing time first, Graham 1969), where memory, domains and the tenant's nodes allow it. A tenant
that may be on few nodes first gets those with the lowest planned utilization. Replicas without a place are
inserted by ejection of others. Local search then moves and exchanges replicas of the busiest node.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numba import njit

from planner.arrays import Bools, Floats, Ints
from planner_models.fairshare.plan.plan import Replicas
from planner_models.fairshare.problem.problem import SharedStore, add_up
from planner_models.fairshare.problem.validation import find_memory_shortage

MOST_STEPS: Final = 20_000  # moves of the local search
TRIALS: Final = 4_000  # random moves that are tried for a step before the search ends
TARGET_GAP: Final = 1e-5
MOST_EJECTIONS: Final = 100_000_000  # replicas whose ejection is tried for all that have no place


class Rules(NamedTuple):
    """Conditions that placements must satisfy.

    tenant, size, wanted  (P,) owner, GB and replicas of partitions
    rate, memory, domain  (N,) of nodes; rate 0: no replica
    most_nodes            (T,)
    allowed               (P, N), or (1, N) where no rule names a partition
    """

    tenant: Ints
    size: Floats
    wanted: Ints
    rate: Floats
    memory: Floats
    domain: Ints
    most_nodes: Ints
    allowed: Bools


class State(NamedTuple):
    """A placement that is changed in place.

    node         (P, largest number of replicas), -1 for none
    load, used   (N,) load and GB of nodes
    on           (T, N) replicas of each tenant on each node
    spread       (T,) nodes of each tenant
    is_pinned    (P, largest number of replicas) whether a replica must stay
    """

    node: Ints
    load: Floats
    used: Floats
    on: Ints
    spread: Ints
    is_pinned: Bools


def find_rules(problem: SharedStore) -> Rules:
    """Return the rules of a problem's placements; failed nodes take no replica."""
    works = ~problem.is_failed
    forbidden = problem.is_forbidden
    allowed = works[None, :].copy() if forbidden is None else works[None, :] & ~forbidden
    return Rules(
        tenant=problem.tenant,
        size=problem.size_gb,
        wanted=problem.wanted_replicas,
        rate=problem.rate_kops,
        memory=problem.memory_gb * (1 + 1e-12),
        domain=problem.domain,
        most_nodes=problem.most_nodes,
        allowed=allowed,
    )


@njit(cache=True, nogil=True, inline="always")
def may_be(rules: Rules, state: State, p: int, r: int, n: int, freed: float) -> bool:
    """Return whether replica r of partition p may be on node n, where some GB would be freed."""
    if not rules.allowed[p if len(rules.allowed) > 1 else 0, n]:
        return False
    if state.used[n] - freed + rules.size[p] > rules.memory[n]:
        return False
    t = rules.tenant[p]
    if state.on[t, n] == 0:
        old = state.node[p, r]
        leaves = old >= 0 and state.on[t, old] == 1
        if state.spread[t] - (1 if leaves else 0) >= rules.most_nodes[t]:
            return False
    for other in range(state.node.shape[1]):
        if other != r and state.node[p, other] >= 0 and rules.domain[state.node[p, other]] == rules.domain[n]:
            return False
    return True


@njit(cache=True, nogil=True)
def put(rules: Rules, state: State, load: Floats, p: int, r: int, n: int) -> None:
    """Move replica r of partition p to node n; -1 takes it away."""
    t, old = rules.tenant[p], state.node[p, r]
    if old >= 0:
        state.load[old] -= load[p]
        state.used[old] -= rules.size[p]
        state.on[t, old] -= 1
        if state.on[t, old] == 0:
            state.spread[t] -= 1
    state.node[p, r] = n
    if n >= 0:
        state.load[n] += load[p]
        state.used[n] += rules.size[p]
        if state.on[t, n] == 0:
            state.spread[t] += 1
        state.on[t, n] += 1


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
def insert_by_ejection(  # noqa: C901 - one compiled loop
    rules: Rules, state: State, load: Floats, order: Ints
) -> int:
    """Insert replicas without a node where another one can leave for a third node; return those without.

    Only replicas that fit in the free memory of some node can leave.

    order  (P,) partitions in the order of insertion
    """
    left, tried = 0, 0
    nodes = len(rules.rate)
    smallest = rules.size.min() if len(rules.size) else 0.0
    for p in order:
        for r in range(rules.wanted[p]):
            if state.node[p, r] >= 0:
                continue
            placed = False
            for n in range(nodes):
                if not placed and may_be(rules, state, p, r, n, 0.0):
                    put(rules, state, load, p, r, n)
                    placed = True
            if placed:
                continue
            free = 0.0
            for n in range(nodes):
                if rules.rate[n] > 0:
                    free = max(free, rules.memory[n] - state.used[n])
            if free < smallest or tried >= MOST_EJECTIONS:
                left += 1
                continue
            for q in range(len(rules.wanted)):
                if placed or tried >= MOST_EJECTIONS:
                    break
                tried += 1
                if rules.size[q] > free:
                    continue
                for s in range(rules.wanted[q]):
                    n = state.node[q, s]
                    if n < 0 or q == p or state.is_pinned[q, s]:
                        continue
                    if not may_be(rules, state, p, r, n, rules.size[q]):
                        continue
                    for m in range(nodes):
                        if m != n and may_be(rules, state, q, s, m, 0.0):
                            put(rules, state, load, q, s, m)
                            if may_be(rules, state, p, r, n, 0.0):
                                put(rules, state, load, p, r, n)
                                placed = True
                            else:
                                put(rules, state, load, q, s, n)
                            break
                    if placed:
                        break
            if not placed:
                left += 1
    return left


@njit(cache=True, nogil=True)
def search_exchanges(  # noqa: C901 - one compiled loop
    rules: Rules,
    state: State,
    load: Floats,
    bound: float,
    steps: int,
    trials: int,
    random: np.random.Generator,
) -> int:
    """Lower the utilization of the busiest node by moves and exchanges of replicas; return the steps.

    A step is the best of the first random moves that lower the busiest node without making another as busy.
    """
    nodes, partitions, width = len(rules.rate), len(rules.wanted), state.node.shape[1]
    members = np.full((nodes, partitions * width // max(nodes, 1) * 4 + 64), -1)
    count = np.zeros(nodes, dtype=np.int64)
    for p in range(partitions):
        for r in range(rules.wanted[p]):
            n = state.node[p, r]
            if n < 0 or load[p] <= 0 or state.is_pinned[p, r]:
                continue
            if count[n] == members.shape[1]:
                wider = np.full((nodes, 2 * members.shape[1]), -1)
                wider[:, : members.shape[1]] = members
                members = wider
            members[n, count[n]] = p * width + r
            count[n] += 1
    for step in range(steps):
        worst, high = 0, -1.0
        for n in range(nodes):
            if rules.rate[n] > 0 and state.load[n] / rules.rate[n] > high:
                worst, high = n, state.load[n] / rules.rate[n]
        if high <= bound or count[worst] == 0:
            return step
        best, lowest = -1, high * (1 - 1e-12)
        chosen, target, other = -1, -1, -1
        found = 0
        for _ in range(trials):
            i = int(random.integers(0, count[worst]))
            p, r = members[worst, i] // width, members[worst, i] % width
            n = int(random.integers(0, nodes))
            if n == worst or rules.rate[n] <= 0 or state.load[n] / rules.rate[n] >= high:
                continue
            j, q, back = -1, -1, 0.0
            if count[n] > 0 and random.random() < 0.8:
                j = int(random.integers(0, count[n]))
                q = members[n, j] // width
                back = load[q]
            delta = load[p] - back
            if delta <= 0:
                continue
            after = max(
                (state.load[worst] - delta) / rules.rate[worst], (state.load[n] + delta) / rules.rate[n]
            )
            if after >= lowest:
                continue
            if j < 0:
                fits = may_be(rules, state, p, r, n, 0.0)
            else:
                s = members[n, j] % width
                fits = p != q and may_be(rules, state, p, r, n, rules.size[q])
                if fits:
                    put(rules, state, load, p, r, n)
                    fits = may_be(rules, state, q, s, worst, 0.0)
                    if fits:
                        put(rules, state, load, q, s, worst)
                        t, u = rules.tenant[p], rules.tenant[q]
                        fits = (
                            state.spread[t] <= rules.most_nodes[t] and state.spread[u] <= rules.most_nodes[u]
                        )
                        put(rules, state, load, q, s, n)
                    put(rules, state, load, p, r, worst)
            if fits:
                best, lowest, chosen, target, other = i, after, i, n, j
                found += 1
                if found >= 8:
                    break
        if best < 0:
            return step
        mine = members[worst, chosen]
        put(rules, state, load, mine // width, mine % width, target)
        if other >= 0:
            theirs = members[target, other]
            put(rules, state, load, theirs // width, theirs % width, worst)
            members[worst, chosen], members[target, other] = theirs, mine
        else:
            count[worst] -= 1
            members[worst, chosen] = members[worst, count[worst]]
            if count[target] == members.shape[1]:
                wider = np.full((nodes, 2 * members.shape[1]), -1)
                wider[:, : members.shape[1]] = members
                members = wider
            members[target, count[target]] = mine
            count[target] += 1
    return steps


def start_state(problem: SharedStore, rules: Rules, load: Floats) -> State:
    """Return the placement of pinned replicas alone."""
    width = int(max(rules.wanted.max(initial=1), 1))
    partitions, nodes = len(rules.wanted), len(rules.rate)
    state = State(
        node=np.full((partitions, width), -1),
        load=np.zeros(nodes),
        used=np.zeros(nodes),
        on=np.zeros((len(rules.most_nodes), nodes), dtype=np.int64),
        spread=np.zeros(len(rules.most_nodes), dtype=np.int64),
        is_pinned=np.zeros((partitions, width), dtype=bool),
    )
    if problem.is_pinned is not None:
        partition, node = np.divmod(np.flatnonzero(problem.is_pinned), nodes)
        keep_all(rules, state, load, partition, node, True)
    return state


def copy_state(state: State) -> State:
    """Return a copy of a placement."""
    return State(
        node=state.node.copy(),
        load=state.load.copy(),
        used=state.used.copy(),
        on=state.on.copy(),
        spread=state.spread.copy(),
        is_pinned=state.is_pinned.copy(),
    )


@njit(cache=True, nogil=True)
def keep_all(rules: Rules, state: State, load: Floats, partition: Ints, node: Ints, must_stay: bool) -> None:
    """Put replicas where they are placed, as far as the rules allow it."""
    for k in range(len(partition)):
        p, n = partition[k], node[k]
        slot = -1
        is_there = False
        for r in range(rules.wanted[p]):
            if state.node[p, r] == n:
                is_there = True
            if state.node[p, r] < 0 and slot < 0:
                slot = r
        if slot >= 0 and not is_there and may_be(rules, state, p, slot, n, 0.0):
            put(rules, state, load, p, slot, n)
            state.is_pinned[p, slot] = must_stay


def list_replicas(state: State) -> Replicas:
    """Return the replicas of a placement."""
    partition, slot = np.nonzero(state.node >= 0)
    node = state.node[partition, slot]
    order = np.lexsort((node, partition))
    return Replicas(partition[order], node[order])


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
        most = int(rules.most_nodes[t])
        use = np.maximum(
            (planned + of_tenant[t] / most)[works] / rules.rate[works],
            (memory + size[t] / most)[works] / rules.memory[works]
            * float(of_tenant.sum()) / max(float(rules.rate.sum()), 1e-300)
            / max(float(size.sum()) / float(rules.memory.sum()), 1e-300),
        )  # fmt: skip
        present = state.on[t, works] > 0
        order = np.lexsort((use, ~present))
        chosen: list[int] = []
        seen: set[int] = set()
        for n in works[order].tolist():  # distinct domains first, as replicas need them
            if rules.domain[n] not in seen or len(chosen) + len(works) - len(order) >= most:
                chosen.append(n)
                seen.add(rules.domain[n])
            if len(chosen) == most:
                break
        for n in works[order].tolist():
            if len(chosen) == most:
                break
            if n not in chosen:
                chosen.append(n)
        preferred[t] = False
        preferred[t, chosen] = True
        planned[chosen] += of_tenant[t] / most
        memory[chosen] += size[t] / most
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
        search_exchanges(rules, state, load_kops, target, MOST_STEPS, TRIALS, np.random.default_rng(seed))
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
        most = [np.minimum(rules.wanted, k) for k in range(int(rules.wanted.max(initial=1)) + 1)]
        memory, rounds = float(rules.memory[rules.rate > 0].sum()), []
        for fewer, wanted in pairwise(most):
            size = np.where(wanted > fewer, rules.size, 0.0)[order]
            fits = np.zeros(len(order), dtype=bool)
            fits[order] = np.cumsum(size) <= memory
            memory -= float(size.sum())
            rounds += [np.where(fits, wanted, fewer), wanted]
    place = np.argsort(order)
    first = None if placed is None else np.argsort(place[placed.partition], kind="stable")
    for wanted in rounds:
        now = rules._replace(wanted=wanted)
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
