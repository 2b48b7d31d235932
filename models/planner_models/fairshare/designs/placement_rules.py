"""Rules of placements, and the state of one that is changed in place."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.compiled import njit, run_small_in_python
from planner_models.fairshare.plan.plan import Replicas
from planner_models.fairshare.problem.problem import SharedStore


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

    def lacks(self, requested: Ints) -> bool:
        """Return whether some partition has fewer replicas than are wanted, (P,)."""
        return bool(((self.node >= 0).sum(axis=1) < requested).any())


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


@run_small_in_python(max_elements=2_000)
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
