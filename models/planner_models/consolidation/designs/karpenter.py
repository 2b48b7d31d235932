"""Karpenter's rules: types narrow as pods join a node; then single nodes leave, or several become a cheaper
one.

Pods are tried on open nodes, those with the fewest pods first; a node keeps the types that hold all its pods,
and becomes the cheapest of them. Then nodes are candidates by their number of pods: the largest number of
candidates whose pods fit on the other nodes and at most one new, cheaper node is replaced, and then each
single one.

Sizes are sums: nodes of NUMA are not known. Pods that do not fit into them are placed by best fit afterwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Final

import numpy as np
from pydantic import Field

from planner.arrays import Bools, Floats, Ints
from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import Deadline
from planner_models.consolidation.designs import repack
from planner_models.consolidation.designs.bundles import place_remaining
from planner_models.consolidation.designs.decision import decide, refuse_shortage
from planner_models.consolidation.designs.waves import schedule
from planner_models.consolidation.plan.plan import ConsolidationPlan
from planner_models.consolidation.problem.packing import HostGroup, Packer, pack_all
from planner_models.consolidation.problem.problem import Consolidation

MAX_CANDIDATES: Final = 100
"""Nodes that are considered together (kubernetes-sigs/karpenter#2434)."""
MAX_ROUNDS: Final = 200


@dataclass(eq=False)
class Claims:
    """Nodes that are planned.

    pods   (C, M) pods of each shape
    types  (C, T) types that hold all pods of a node
    """

    pods: Ints
    types: Bools

    def drop(self, rows: Ints) -> Claims:
        """Return the nodes without some."""
        keep = np.ones(len(self.pods), dtype=bool)
        keep[rows] = False
        return Claims(pods=self.pods[keep], types=self.types[keep])


class Cluster:
    """Sizes of pods and types as the control plane observes them."""

    def __init__(self, problem: Consolidation) -> None:
        """Sum the nodes of each type."""
        self.problem = problem
        self.capacity = np.array(
            [np.minimum(shape.node.sum(axis=0), shape.whole) for shape in problem.host_shapes]
        )
        self.needs = problem.needs
        self.allowed = problem.is_allowed & (problem.most > 0)[None]
        order = np.argsort(-self.needs[:, 0], kind="stable")
        self.order = [int(row) for row in order[np.lexsort((-self.needs[order, 1], -self.needs[order, 0]))]]

    def holds(self, pods: Ints) -> Bools:
        """Return whether each type holds the pods of each node, (C, T)."""
        use = pods @ self.needs
        fits = (use[:, None, :] <= self.capacity[None] * (1 + 1e-9) + 1e-9).all(axis=2)
        is_member = (pods > 0).astype(np.int64)
        if self.problem.has_host_conflicts:
            apart = (is_member @ self.problem.host_conflicts.astype(np.int64)) * is_member
            fits &= (apart.max(axis=1, initial=0) == 0)[:, None]
        return np.asarray(fits & (is_member @ (~self.allowed).astype(np.int64) == 0))

    def schedule(
        self, counts: Ints, claims: Claims, *, fixed: int = 0, new_nodes: int | None = None
    ) -> Claims | None:
        """Return the nodes with more pods; None where they need more new nodes than there may be.

        fixed  number of first nodes whose type stays
        """
        result = Claims(pods=claims.pods.copy(), types=claims.types.copy())
        limit = math.inf if new_nodes is None else len(claims.pods) + new_nodes
        for shape in self.order:
            for _ in range(int(counts[shape])):
                if self._add(result, shape, fixed=fixed, limit=limit):
                    continue
                if new_nodes is not None:
                    return None
                break
        return result

    def _add(self, claims: Claims, shape: int, *, fixed: int, limit: float) -> bool:
        """Add a pod to a node, or to a new one below a limit of nodes; return whether it has one."""
        row, its_types = self._find(claims.pods, claims.types, shape)
        if row is not None:
            claims.pods[row, shape] += 1
            if row >= fixed:
                claims.types[row] = its_types
            return True
        unit = np.zeros((1, claims.pods.shape[1]), dtype=np.int64)
        unit[0, shape] = 1
        may = self.holds(unit)
        if not may.any() or len(claims.pods) >= limit:
            return False
        claims.pods = np.concatenate([claims.pods, unit])
        claims.types = np.concatenate([claims.types, may])
        return True

    def _find(self, pods: Ints, types: Bools, shape: int) -> tuple[int | None, Bools]:
        """Return the node with the fewest pods that holds one more, and the types that do."""
        if not len(pods):
            return None, types
        more = pods.copy()
        more[:, shape] += 1
        may = types & self.holds(more)
        rows = np.flatnonzero(may.any(axis=1))
        if not len(rows):
            return None, types
        row = int(rows[np.argmin(pods[rows].sum(axis=1))])
        return row, may[row]

    def price(self, claims: Claims) -> Floats:
        """Return the price of the cheapest type of each node, (C,)."""
        price = np.where(claims.types, self.problem.price[None], np.inf)
        return np.asarray(price.min(axis=1, initial=np.inf))

    def launch(self, claims: Claims) -> Claims:
        """Return the nodes with the cheapest of their types only."""
        if not len(claims.pods):
            return claims
        price = np.where(claims.types, self.problem.price[None], np.inf)
        types = np.zeros(claims.types.shape, dtype=bool)
        types[np.arange(len(types)), price.argmin(axis=1)] = True
        return Claims(pods=claims.pods, types=types)

    def replace(self, claims: Claims, rows: Ints) -> Claims | None:
        """Return the nodes with some gone or replaced by a cheaper one; None where that saves nothing."""
        others = claims.drop(rows)
        counts = claims.pods[rows].sum(axis=0)
        result = self.schedule(counts, others, fixed=len(others.pods), new_nodes=1)
        if result is None:
            return None
        result = self.launch(result)
        saving = float(self.price(claims).sum() - self.price(result).sum())
        return result if saving > 1e-9 else None

    def consolidate(self, claims: Claims, deadline: Deadline) -> Claims:
        """Return the nodes after several or single ones left, until no step saves anything."""
        for _ in range(MAX_ROUNDS):
            if deadline.is_over or len(claims.pods) < 2:
                break
            order = np.argsort(claims.pods.sum(axis=1), kind="stable")[:MAX_CANDIDATES]
            changed = self._replace_several(claims, order)
            if changed is None:
                changed = next(
                    (
                        result
                        for row in order
                        if (result := self.replace(claims, np.array([row]))) is not None
                    ),
                    None,
                )
            if changed is None:
                break
            claims = changed
        return claims

    def _replace_several(self, claims: Claims, order: Ints) -> Claims | None:
        """Return the nodes without the longest list of candidates, by binary search as Karpenter does."""
        low, high, best = 2, len(order), None
        while low <= high:
            middle = (low + high) // 2
            result = self.replace(claims, order[:middle])
            if result is None:
                high = middle - 1
            else:
                best, low = result, middle + 1
        return best


@refuse_shortage
def plan(
    problem: Consolidation,
    *,
    consolidate: Annotated[
        bool, Field(description="whether nodes are replaced after pods are scheduled")
    ] = True,
    options: Options = Options(),
) -> Decision[ConsolidationPlan]:
    """Schedule pods by Karpenter's rules, and replace nodes by fewer or cheaper ones until no step saves any.

    source  kubernetes-sigs/karpenter (scheduling and consolidation); issues 1962, 2150 and 2434 there
    """
    if repack.has_today(problem):
        return _plan_present(problem, consolidate, Deadline.of(options, default_s=60.0))
    if problem.rules_of_areas or problem.has_present:
        packer = pack_all(problem, Packer(problem, rule="first"), Cluster(problem).order)
        return decide(problem, packer.groups, packer.refused)
    cluster = Cluster(problem)
    shapes, types = len(problem.machines), len(problem.hosts)
    nothing = Claims(pods=np.zeros((0, shapes), dtype=np.int64), types=np.zeros((0, types), dtype=bool))
    claims = cluster.schedule(problem.count, nothing)
    assert claims is not None
    claims = cluster.launch(claims)
    if consolidate:
        claims = cluster.consolidate(claims, Deadline.of(options, default_s=60.0))
    return decide(problem, *_settle(problem, claims))


def _plan_present(
    problem: Consolidation, consolidate: bool, deadline: Deadline
) -> Decision[ConsolidationPlan]:
    """Return the present nodes without those with pods that fit on others, those with fewest pods first."""
    today, hosts, refused = repack.begin(problem)
    if consolidate:
        pods = repack.machines_on(problem, hosts)
        is_fixed = (pods[:, ~repack.can_leave(problem, today)] > 0).any(axis=1)
        rows = np.flatnonzero(~is_fixed & (pods.sum(axis=1) > 0))
        order = rows[np.argsort(pods[rows].sum(axis=1), kind="stable")][:MAX_CANDIDATES]
        repack.empty_hosts(problem, hosts, order, np.inf, deadline)
    groups = [group for group in hosts.groups if group.content]
    moves = schedule(problem, repack.list_moves(problem, today, groups), today.hosts)
    return decide(problem, groups, refused, moves=moves, guarantees=hosts.guarantees)


def _settle(problem: Consolidation, claims: Claims) -> tuple[list[HostGroup], dict[int, int]]:
    """Return hosts with the pods of planned nodes; pods that do not fit into NUMA nodes go elsewhere."""
    groups: list[HostGroup] = []
    remaining = problem.count.copy()
    hosts = Packer(problem)
    keys = np.concatenate([claims.types.astype(np.int64), claims.pods], axis=1)
    unique, times = np.unique(keys, axis=0, return_counts=True)
    for key, number in zip(unique, times.tolist(), strict=True):
        host_type, pods = int(key[: claims.types.shape[1]].argmax()), key[claims.types.shape[1] :]
        for _ in range(number):
            supply = _next_supply(hosts, host_type, pods)
            if supply is None:
                continue
            row = hosts.open_host(supply)
            group = hosts.groups[row]
            inside = Packer(problem, groups=[group], may_open=False)
            for shape in np.flatnonzero(pods).tolist():
                number_of_pods = min(int(pods[shape]), int(remaining[shape]))
                remaining[shape] -= number_of_pods - inside.place(shape, number_of_pods)
            groups += inside.groups
    packer = place_remaining(problem, [group for group in groups if group.content], remaining)
    return packer.groups, packer.refused


def _next_supply(hosts: Packer, host_type: int, pods: Ints) -> int | None:
    """Return a supply of a type that may hold some pods and has a host, in the zone with the fewest hosts."""
    problem = hosts.problem
    shapes = np.flatnonzero(pods)
    options = [
        (hosts.hosts_in_zone(supply.zone), row)
        for row, supply in enumerate(problem.supplies)
        if supply.host_type == host_type
        and problem.is_supplied[shapes, row].all()
        and hosts.available(row) >= 1
    ]
    return min(options)[1] if options else None
