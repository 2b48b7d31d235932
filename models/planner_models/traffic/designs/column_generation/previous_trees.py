"""The trees of a decision, from which column generation starts on a problem that differs little.

Demands may differ, and links may be gone: trees over them are mended by shortest paths, on which the other
links of the tree count little. Nodes must be the same, and merged in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numba
import numpy as np
import pandas as pd

from planner.arrays import Ints
from planner.contract.design import Decision
from planner_models.traffic.designs.column_generation.reduced_problem import (
    FlowSplit,
    ReducedProblem,
    WeightedTrees,
)
from planner_models.traffic.designs.column_generation.shortest_path_trees import Graph, allocate, dijkstra
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import sum_by_index

LEAST_WEIGHT: Final = 0.01  # of a tree that is kept
MAX_ENTRIES: Final = 10_000_000  # of the trees of a decision; more are not kept
TREE_LENGTH: Final = 1e-3  # of a link of a tree that is mended, times that of others


@dataclass(frozen=True, kw_only=True, eq=False)
class TreeDecision(Decision[Routing]):
    """A decision with the trees that its plan is made of.

    names    of the N nodes of the problem; node_of (N,) their nodes in `graph`, -1 for none
    roots    (R,) nodes of `graph`
    trees    owners are places in `roots`
    """

    names: pd.Index
    node_of: Ints
    graph: Graph
    roots: Ints
    trees: WeightedTrees


def keep_trees(
    decision: Decision[Routing], reduced: ReducedProblem, split: FlowSplit | None
) -> Decision[Routing]:
    """Return the decision with the trees that its plan is made of, unless they are too many."""
    if decision.plan is None or not isinstance(split, WeightedTrees):
        return decision
    used = np.flatnonzero(split.weight >= LEAST_WEIGHT)
    if len(used) * reduced.graph.nodes > MAX_ENTRIES:
        return decision
    return TreeDecision(
        plan=decision.plan,
        proof=decision.proof,
        guarantees=decision.guarantees,
        names=reduced.problem.node_index,
        node_of=reduced.network.node,
        graph=reduced.graph,
        roots=reduced.roots,
        trees=WeightedTrees(parent=split.parent[used], owner=split.owner[used], weight=split.weight[used]),
    )


def find_trees(reduced: ReducedProblem, previous: Decision[Routing] | None) -> WeightedTrees | None:
    """Return the trees of a decision for this problem or one like it; None where it has none that fit."""
    if not isinstance(previous, TreeDecision) or not len(previous.roots) or not len(reduced.roots):
        return None
    graph = reduced.graph
    is_alike = (
        previous.names.equals(reduced.problem.node_index)
        and previous.graph.nodes == graph.nodes
        and np.array_equal(previous.node_of, reduced.network.node)
    )
    place = np.searchsorted(previous.roots, reduced.roots)
    place = np.minimum(place, len(previous.roots) - 1)
    if not is_alike or not np.array_equal(previous.roots[place], reduced.roots):
        return None
    owner_of = np.full(len(previous.roots), -1)
    owner_of[place] = np.arange(len(reduced.roots))
    kept = np.flatnonzero(owner_of[previous.trees.owner] >= 0)
    owner, weight = owner_of[previous.trees.owner[kept]], previous.trees.weight[kept]
    keys = graph.tail.astype(np.int64) * graph.nodes + graph.head
    order = np.argsort(keys)
    wanted = previous.graph.tail.astype(np.int64) * graph.nodes + previous.graph.head
    at = order[np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)]
    arc_now = np.r_[np.where(keys[at] == wanted, at, -2), -1].astype(np.int32)  # -1: the root, or none
    parent = arc_now[previous.trees.parent[kept]]
    roots = reduced.roots[owner].astype(np.int32)
    _mend(graph, 1.0 / reduced.capacity_mbps, roots, reduced.amount_mbps, owner, parent)
    weight = weight / sum_by_index(owner, weight, len(reduced.roots))[owner]
    return WeightedTrees(parent=parent, owner=owner, weight=weight)


@numba.njit(cache=True)
def _mend(graph, base, roots, amount, owner, parent):  # type: ignore[no-untyped-def]
    """Replace trees that miss a link, or a node with traffic; changes `parent`."""
    nodes = graph.nodes
    work, length = allocate(nodes), np.empty(len(base))
    for p in range(len(roots)):
        is_whole = True
        for v in range(nodes):
            missing = parent[p, v] == -1 and v != roots[p] and amount[owner[p], v] > 0.0
            is_whole = is_whole and parent[p, v] != -2 and not missing
        if is_whole:
            continue
        length[:] = base
        for v in range(nodes):
            if parent[p, v] >= 0:
                length[parent[p, v]] *= TREE_LENGTH
        dijkstra(graph, length, roots[p], work, parent[p])
