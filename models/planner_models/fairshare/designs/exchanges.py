"""Local search for the least utilization of the busiest node, by moves and exchanges of replicas.

A step is the best of the first random ones that lower the busiest node without making another as busy.
Replicas of a tenant that is on as many nodes as it may be move among these nodes. Where no such step helps,
all of its replicas on the busiest node go to another node together, alone or for those of another such one.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.compiled import njit, run_small_in_python
from planner_models.fairshare.designs.placement_rules import Rules, State, may_be, put

MOST_STEPS: Final = 20_000
TRIALS: Final = 4_000  # random moves that are tried for a step
FOUND: Final = 8  # moves that help, of which the best is a step
EXCHANGES: Final = 0.8  # part of the moves to random nodes that are exchanges
OWN_NODES: Final = 0.8  # part of the moves among the tenant's own nodes where it may be on no further one
OWN_EXCHANGES: Final = 0.5
LOWER: Final = 1 - 1e-12


@run_small_in_python(max_elements=400)
@njit(cache=True, nogil=True)
def search_exchanges(  # noqa: C901 - one compiled loop
    rules: Rules, state: State, load: Floats, bound: float, random: np.random.Generator
) -> int:
    """Lower the utilization of the busiest node to a bound, or until no step helps; return the steps.

    load  (P,) of each replica of a partition
    """
    nodes, width = len(rules.rate), state.node.shape[1]
    members = np.full((nodes, state.node.size // max(nodes, 1) * 2 + 64), -1)  # slots of replicas that may go
    count = np.zeros(nodes, dtype=np.int64)
    for p in range(len(rules.wanted)):
        for r in range(rules.wanted[p]):
            if state.node[p, r] >= 0 and load[p] > 0 and not state.is_pinned[p, r]:
                members = _append(members, count, state.node[p, r], p * width + r)
    order = np.argsort(rules.tenant, kind="mergesort")  # partitions of tenant t: order[first[t]:first[t + 1]]
    first = np.searchsorted(rules.tenant[order], np.arange(len(rules.most_nodes) + 1))
    for step in range(MOST_STEPS):
        worst, high = 0, -1.0
        for n in range(nodes):
            if rules.rate[n] > 0 and state.load[n] / rules.rate[n] > high:
                worst, high = n, state.load[n] / rules.rate[n]
        if high <= bound or count[worst] == 0:
            return step
        own_slot, target, theirs = _draw_step(
            rules, state, load, members, count, order, first, worst, high, random
        )
        if own_slot >= 0:
            put(rules, state, load, own_slot // width, own_slot % width, target)
            members = _exchange_members(members, count, worst, target, own_slot)
            if theirs >= 0:
                put(rules, state, load, theirs // width, theirs % width, worst)
                members = _exchange_members(members, count, target, worst, theirs)
            continue
        tenant, target, other = _find_tenants(rules, state, load, order, first, worst, high)
        if tenant < 0:
            return step
        slots = _list_slots(state, order[first[tenant] : first[tenant + 1]], worst)
        back = slots[:0]
        if other >= 0:
            back = _list_slots(state, order[first[other] : first[other + 1]], target)
        for slot in slots:
            put(rules, state, load, slot // width, slot % width, target)
            members = _exchange_members(members, count, worst, target, slot)
        for slot in back:
            put(rules, state, load, slot // width, slot % width, worst)
            members = _exchange_members(members, count, target, worst, slot)
    return MOST_STEPS


@njit(cache=True, nogil=True)
def _append(members: Ints, count: Ints, n: int, slot: int) -> Ints:
    """Add a slot to those of a node; return the members, in a wider array where they were full."""
    if count[n] == members.shape[1]:
        wider = np.full((len(members), 2 * members.shape[1]), -1)
        wider[:, : members.shape[1]] = members
        members = wider
    members[n, count[n]] = slot
    count[n] += 1
    return members


@njit(cache=True, nogil=True)
def _exchange_members(members: Ints, count: Ints, old: int, new: int, slot: int) -> Ints:
    """Take a slot from the members of a node to those of another one; return the members."""
    for i in range(count[old]):
        if members[old, i] == slot:
            count[old] -= 1
            members[old, i] = members[old, count[old]]
            return _append(members, count, new, slot)
    return members


@njit(cache=True, nogil=True)
def _draw_step(
    rules: Rules,
    state: State,
    load: Floats,
    members: Ints,
    count: Ints,
    order: Ints,
    first: Ints,
    worst: int,
    high: float,
    random: np.random.Generator,
) -> tuple[int, int, int]:
    """Return the slot of a replica of the busiest node, its new node, and the slot that comes back, or -1.

    The first slot is -1 where no trial helps.
    """
    nodes, width = len(rules.rate), state.node.shape[1]
    best, target, other, lowest, count_found = -1, -1, -1, high * LOWER, 0
    for _ in range(TRIALS):
        slot = members[worst, int(random.integers(0, count[worst]))]
        p, r = slot // width, slot % width
        t = rules.tenant[p]
        theirs = -1
        if state.spread[t] >= rules.most_nodes[t] and random.random() < OWN_NODES:
            q = order[int(random.integers(first[t], first[t + 1]))]
            s = int(random.integers(0, width))
            n = state.node[q, s]
            if n < 0:
                continue
            if random.random() < OWN_EXCHANGES:
                theirs = q * width + s
        else:
            n = int(random.integers(0, nodes))
            if count[n] > 0 and random.random() < EXCHANGES:
                theirs = members[n, int(random.integers(0, count[n]))]
        if n == worst or rules.rate[n] <= 0 or state.load[n] / rules.rate[n] >= high:
            continue
        delta = load[p] - (load[theirs // width] if theirs >= 0 else 0.0)
        if delta <= 0:
            continue
        after = max((state.load[worst] - delta) / rules.rate[worst], (state.load[n] + delta) / rules.rate[n])
        if after < lowest and _may_exchange(rules, state, load, p, r, n, theirs):
            best, target, other, lowest = slot, n, theirs, after
            count_found += 1
            if count_found >= FOUND:
                break
    return best, target, other


@njit(cache=True, nogil=True)
def _may_exchange(rules: Rules, state: State, load: Floats, p: int, r: int, n: int, theirs: int) -> bool:
    """Return whether a replica may go to a node, alone or for one (-1: none) that comes to its own node."""
    if theirs < 0:
        return bool(may_be(rules, state, p, r, n, 0.0))
    q, s = theirs // state.node.shape[1], theirs % state.node.shape[1]
    if p == q or state.is_pinned[q, s] or not may_be(rules, state, p, r, n, rules.size[q]):
        return False
    home = state.node[p, r]
    put(rules, state, load, p, r, n)
    fits = may_be(rules, state, q, s, home, 0.0)
    if fits:
        put(rules, state, load, q, s, home)
        t, u = rules.tenant[p], rules.tenant[q]
        fits = state.spread[t] <= rules.most_nodes[t] and state.spread[u] <= rules.most_nodes[u]
        put(rules, state, load, q, s, n)
    put(rules, state, load, p, r, home)
    return bool(fits)


@njit(cache=True, nogil=True)
def _list_slots(state: State, partitions: Ints, n: int) -> Ints:
    """Return the slots of some partitions' replicas on a node."""
    width = state.node.shape[1]
    slots = np.empty(len(partitions), dtype=np.int64)
    total = 0
    for p in partitions:
        for r in range(width):
            if state.node[p, r] == n:
                slots[total] = p * width + r
                total += 1
    return slots[:total]


@njit(cache=True, nogil=True)
def _find_tenants(  # noqa: C901 - one compiled loop
    rules: Rules, state: State, load: Floats, order: Ints, first: Ints, worst: int, high: float
) -> tuple[int, int, int]:
    """Return a tenant that leaves the busiest node, its new node, and the tenant that comes back or -1.

    Only tenants that are on as many nodes as they may be. The first tenant is -1 where that does not help.
    """
    nodes, tenants = len(rules.rate), len(rules.most_nodes)
    free = np.zeros(tenants, dtype=np.bool_)
    for t in range(tenants):
        free[t] = state.spread[t] >= rules.most_nodes[t]
    best, target, other, lowest = -1, -1, -1, high * LOWER
    if not free.any():
        return best, target, other
    loads, sizes = np.zeros((tenants, nodes)), np.zeros((tenants, nodes))
    for p in range(len(rules.wanted)):
        t = rules.tenant[p]
        for r in range(rules.wanted[p]):
            n = state.node[p, r]
            if n >= 0:
                loads[t, n] += load[p]
                sizes[t, n] += np.inf if state.is_pinned[p, r] else rules.size[p]
    held = (loads, sizes)
    for t in range(tenants):
        if not free[t] or state.on[t, worst] == 0 or sizes[t, worst] == np.inf:
            continue
        for n in range(nodes):
            if rules.rate[n] <= 0 or state.on[t, n] > 0 or state.load[n] / rules.rate[n] >= high:
                continue
            move = (t, worst, n)
            partner, after = _find_partner(rules, state, held, (order, first, free), move, lowest)
            if after < lowest:
                best, target, other, lowest = t, n, partner, after
    return best, target, other


@njit(cache=True, nogil=True)
def _find_partner(
    rules: Rules,
    state: State,
    held: tuple[Floats, Floats],
    tenants: tuple[Ints, Ints, Bools],
    move: tuple[int, int, int],
    lowest: float,
) -> tuple[int, float]:
    """Return the tenant that best comes back where one leaves a node for another, or -1 for none.

    Also returns the higher utilization of the two nodes then; `lowest` where the move does not help.

    held     load and data of each tenant on each node, (T, N)
    tenants  partitions in the order of tenants (P,), the first of each (T + 1,), and who may leave (T,)
    move     tenant, its old and its new node
    """
    loads, sizes = held
    order, first, free = tenants
    t, worst, n = move
    partner, may_go = -1, -1  # not known yet
    for u in range(-1, len(free)):
        load_back, size_back = 0.0, 0.0
        if u >= 0:
            if not free[u] or state.on[u, n] == 0 or state.on[u, worst] > 0:
                continue
            load_back, size_back = loads[u, n], sizes[u, n]
        delta = loads[t, worst] - load_back
        after = max((state.load[worst] - delta) / rules.rate[worst], (state.load[n] + delta) / rules.rate[n])
        if delta <= 0 or after >= lowest or size_back == np.inf:
            continue
        if (
            state.used[n] - size_back + sizes[t, worst] > rules.memory[n]
            or state.used[worst] - sizes[t, worst] + size_back > rules.memory[worst]
        ):
            continue
        if may_go < 0:
            may_go = int(_may_all_go(rules, state, order[first[t] : first[t + 1]], worst, n))
        if may_go == 0:
            break
        if u >= 0 and not _may_all_go(rules, state, order[first[u] : first[u + 1]], n, worst):
            continue
        partner, lowest = u, after
    return partner, lowest


@njit(cache=True, nogil=True)
def _may_all_go(rules: Rules, state: State, partitions: Ints, old: int, new: int) -> bool:
    """Return whether rules let all replicas of some partitions on a node go to another one."""
    for p in partitions:
        is_there = is_near = False
        for r in range(state.node.shape[1]):
            n = state.node[p, r]
            is_there |= n == old
            is_near |= n >= 0 and n != old and rules.domain[n] == rules.domain[new]
        if is_there and (is_near or not rules.allowed[p if len(rules.allowed) > 1 else 0, new]):
            return False
    return True
