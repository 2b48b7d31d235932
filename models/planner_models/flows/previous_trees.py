"""The trees of a decision, from which column generation starts on a problem that differs little.

Demands may differ, and links may be gone: trees over them are mended by shortest paths, on which the other
links of the tree count little. Nodes must be the same, and merged in the same way.

A plan without its trees, such as one that was read from a file, is taken apart: the flow to each root is a
sum of trees with weights. Each tree leaves every node over the link with the most of the flow that is left,
and has the largest weight that the flow of its links allows.

source  decomposition of a flow into extreme points: Ahuja, Magnanti and Orlin 1993, section 3.5
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
import scipy.sparse as sp

from planner.arrays import Ints
from planner.compiled import njit, run_small_in_python
from planner.contract.design import Decision, PlanT, PlanT_co
from planner_models.flows.problem import FlowPlan
from planner_models.flows.reduced_problem import FlowSplit, ReducedProblem, WeightedTrees
from planner_models.graphs.indexing import sum_by_index
from planner_models.graphs.shortest_path_trees import Graph, allocate, dijkstra

LEAST_WEIGHT: Final = 0.01  # of a tree that is kept
MAX_ENTRIES: Final = 10_000_000  # of the trees of a decision; more are not kept
MAX_TREES: Final = 12  # of a root, that a plan is taken apart into
TREE_LENGTH: Final = 1e-3  # of a link of a tree that is mended, times that of others


@dataclass(frozen=True, kw_only=True, eq=False)
class TreeDecision(Decision[PlanT_co]):
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
    decision: Decision[PlanT], reduced: ReducedProblem, split: FlowSplit | None
) -> Decision[PlanT]:
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


def find_trees(reduced: ReducedProblem, previous: Decision[FlowPlan] | None) -> WeightedTrees | None:
    """Return the trees of a decision for this problem or one like it; None where it has none that fit."""
    if previous is None or not len(reduced.roots):
        return None
    if not isinstance(previous, TreeDecision):
        return None if previous.plan is None else _take_apart(reduced, previous.plan)
    if not len(previous.roots):
        return None
    graph = reduced.graph
    is_alike = (
        previous.names.equals(reduced.problem.node_index)
        and previous.graph.nodes == graph.nodes
        and np.array_equal(previous.node_of, reduced.network.node)
    )
    rows = np.searchsorted(previous.roots, reduced.roots)
    rows = np.minimum(rows, len(previous.roots) - 1)
    if not is_alike or not np.array_equal(previous.roots[rows], reduced.roots):
        return None
    owner_of = np.full(len(previous.roots), -1)
    owner_of[rows] = np.arange(len(reduced.roots))
    tree_rows = np.flatnonzero(owner_of[previous.trees.owner] >= 0)
    owner, weight = owner_of[previous.trees.owner[tree_rows]], previous.trees.weight[tree_rows]
    keys = graph.tail.astype(np.int64) * graph.nodes + graph.head
    order = np.argsort(keys)
    keys_sought = previous.graph.tail.astype(np.int64) * graph.nodes + previous.graph.head
    index = order[np.minimum(np.searchsorted(keys[order], keys_sought), len(keys) - 1)]
    arc_now = np.r_[np.where(keys[index] == keys_sought, index, -2), -1].astype(
        np.int32
    )  # -1: the root, or none
    parent = arc_now[previous.trees.parent[tree_rows]]
    roots = reduced.roots[owner].astype(np.int32)
    _mend(graph, 1.0 / reduced.capacity_mbps, roots, reduced.amount_mbps, owner, parent)
    weight = weight / sum_by_index(owner, weight, len(reduced.roots))[owner]
    return WeightedTrees(parent=parent, owner=owner, weight=weight)


def _take_apart(reduced: ReducedProblem, plan: FlowPlan) -> WeightedTrees | None:
    """Return trees that make about the flows of a plan; None for a plan that has none to them."""
    problem, graph, flows = reduced.problem, reduced.graph, plan.flows
    root = "source" if reduced.by_source else "target"
    if root not in flows or problem.has_classes:
        return None
    tail, head = problem.find_nodes(flows["tail"]), problem.find_nodes(flows["head"])
    link = problem.find_links(tail, head, flows["parallel"].to_numpy(np.int64))
    end = problem.find_nodes(flows[root])
    node = np.where(end >= 0, reduced.network.node[end], -1)
    row = np.minimum(np.searchsorted(reduced.roots, node), len(reduced.roots) - 1)
    is_valid = (link >= 0) & (reduced.roots[row] == node)
    shape = (len(reduced.roots), len(problem.links))
    rate = flows["rate_mbps"].to_numpy(float)
    of_root = sp.csr_array((rate[is_valid], (row[is_valid], link[is_valid])), shape=shape)
    spread = reduced.network.spread
    size = np.asarray(spread.multiply(spread).sum(axis=0)).ravel()
    flow = (of_root @ spread).toarray() / size
    arriving = np.where(graph.head == reduced.roots[:, None], flow, 0.0).sum(axis=1)
    amount = reduced.amount_mbps.sum(axis=1)
    flow *= np.divide(amount, arriving, out=np.zeros(len(amount)), where=arriving > 0)[:, None]
    if not flow.any():
        return None
    parent, owner, weight = _peel_trees(graph, flow, reduced.roots, reduced.amount_mbps, MAX_TREES)
    roots = reduced.roots[owner].astype(np.int32)
    _mend(graph, 1.0 / reduced.capacity_mbps, roots, reduced.amount_mbps, owner, parent)
    weight = weight / sum_by_index(owner, weight, len(reduced.roots))[owner]
    return WeightedTrees(parent=parent, owner=owner, weight=weight)


@run_small_in_python(max_elements=1_000)
@njit(cache=True)
def _peel_trees(graph, flow, roots, amount, limit):  # type: ignore[no-untyped-def]  # noqa: C901 - one compiled loop
    """Return (parent, owner, weight) of 1 to `limit` trees of each root; changes `flow`, (R, A)."""
    nodes, arcs = graph.nodes, flow.shape[1]
    parent = np.full((len(roots) * limit, nodes), -1, np.int32)
    owner, weight = np.empty(len(parent), np.int64), np.empty(len(parent))
    load, count = np.empty(arcs), 0
    for r in range(len(roots)):
        remaining_flow, unassigned = flow[r], 1.0
        threshold = 1e-9 * remaining_flow.max()
        for number in range(limit):
            tree = parent[count]
            tree[:] = -1
            for e in range(arcs):
                v = graph.tail[e]
                if (
                    v != roots[r]
                    and remaining_flow[e] > threshold
                    and (tree[v] < 0 or remaining_flow[e] > remaining_flow[tree[v]])
                ):
                    tree[v] = e
            load[:] = 0.0
            for v in range(nodes):
                u, hops = v, 0
                while amount[r, v] > 0.0 and tree[u] >= 0 and hops < nodes:
                    load[tree[u]] += amount[r, v]
                    u = graph.head[tree[u]]
                    hops += 1
                if u != roots[r] and amount[r, v] > 0.0:  # a dead end, or a cycle: `_mend` finds a way
                    tree[v] = -1
            share = unassigned
            for e in range(arcs):
                if load[e] > 0.0:
                    share = min(share, remaining_flow[e] / load[e])
            is_last = share < LEAST_WEIGHT or number == limit - 1
            if is_last and number > 0:
                break
            owner[count], weight[count] = r, max(share, LEAST_WEIGHT)
            count += 1
            unassigned -= share
            if is_last or unassigned < LEAST_WEIGHT:
                break
            for e in range(arcs):
                remaining_flow[e] -= share * load[e]
    return parent[:count].copy(), owner[:count].copy(), weight[:count].copy()


@run_small_in_python(max_elements=1_000)
@njit(cache=True)
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
