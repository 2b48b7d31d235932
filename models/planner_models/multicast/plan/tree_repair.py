"""Trees rebuilt after lasting failures: the cores that a group's packets go up to, by set cover.

A core covers the pods that it still reaches. One that covers all of the group's pods is the new root;
where none does, packets go to several. Cores of the group's partition have its entry already; others
need one, and one more in each aggregation switch on their way that does not hold the partition.

Source: "Scaling IP Multicast on Datacenter Topologies", section 3.3.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from planner import backends
from planner.arrays import Bools, Floats, Ints
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import ProgramBuilder
from planner.errors import InputError
from planner.options import Options
from planner_models.multicast.plan.plan import Channels
from planner_models.multicast.problem.failures import WorkingLinks
from planner_models.multicast.problem.problem import Multicast
from planner_models.multicast.problem.topology import find_rows

ROOT_COST = 1000.0  # in entries: fewest roots first, then fewest entries


@dataclass(frozen=True, kw_only=True, eq=False)
class Coverage:
    """Pods that cores cover for a partition after failures, and the entries that this needs.

    entries  (cores, pods) entries to add in the pod for a path from the core; inf where no path exists
    core     (cores,) entries to add at the core: 0 where it holds the partition, else 1
    """

    entries: Floats
    core: Floats

    @property
    def covers(self) -> Bools:
        """Return whether each core covers each pod, shape (cores, pods)."""
        return np.isfinite(self.entries)


def core_coverage(
    problem: Multicast, copies: int, partition: int, state: WorkingLinks, *, strangers: bool = True
) -> Coverage:
    """Return the coverage of cores; without `strangers`, through switches of the partition alone."""
    held, wires = problem.distribution(copies), problem.wiring
    is_holder, at_core = held.aggregation[:, partition], held.core[:, partition]
    pods = np.arange(wires.pods)
    starts = np.searchsorted(wires.aggregation_pod, pods)
    has_entry = np.logical_or.reduceat(state.up & is_holder[:, None], starts).T
    anyhow = np.logical_or.reduceat(state.up, starts).T
    entries = np.where(has_entry, 0.0, np.where(anyhow & strangers, 1.0, np.inf))
    if not strangers:
        entries[~at_core] = np.inf
    return Coverage(entries=entries, core=np.where(at_core, 0.0, 1.0))


@dataclass(frozen=True, kw_only=True, eq=False)
class RebuiltTree:
    """A new tree of a group.

    roots     cores that packets go up to
    entries   table entries to add
    bound     lower bound on the cost: ROOT_COST for each root, and entries
    missing   pods that no core reaches
    """

    roots: tuple[int, ...]
    entries: float
    bound: float
    missing: tuple[int, ...]

    @property
    def cost(self) -> float:
        """Cost of the tree."""
        return ROOT_COST * len(self.roots) + self.entries

    @property
    def gap(self) -> float:
        """Relative gap between cost and bound."""
        return abs(self.cost - self.bound) / max(self.cost, abs(self.bound), 1e-9)


def cover_greedily(coverage: Coverage, pods: Ints) -> RebuiltTree:
    """Return cores one by one, each the one that covers most uncovered pods, then the cheapest.

    The bound is that of the linear relaxation, with whole roots: `cover_exactly` closes it.
    """
    reachable, missing = _split_reachable(coverage, pods)
    roots: list[int] = []
    entries = 0.0
    todo = reachable.copy()
    while len(todo):
        new = np.where(np.isfinite(coverage.entries[:, todo]), 1, 0).sum(axis=1)
        price = coverage.core + np.where(
            np.isfinite(coverage.entries[:, todo]), coverage.entries[:, todo], 0
        ).sum(axis=1)
        core = int(np.lexsort((price, -new))[0])
        roots.append(core)
        entries += float(price[core])
        todo = todo[~np.isfinite(coverage.entries[core, todo])]
    bound = _relaxation_bound(coverage, reachable)
    return RebuiltTree(roots=tuple(roots), entries=entries, bound=bound, missing=missing)


def cover_exactly(coverage: Coverage, pods: Ints, *, options: Options = Options()) -> RebuiltTree:
    """Return the fewest roots, and of those the fewest entries to add, with the solver's bound.

    raises  InputError where the time limit ended the search without a tree
    """
    reachable, missing = _split_reachable(coverage, pods)
    if not len(reachable):
        return RebuiltTree(roots=(), entries=0.0, bound=0.0, missing=missing)
    solution = backends.solve(set_cover_model(coverage, reachable), options)
    if solution.x is None or solution.bound is None:
        raise InputError(
            "the time limit ended the search before a tree was found: give more time, or use the greedy tree"
        )
    cores = np.flatnonzero(coverage.covers[:, reachable].any(axis=1))
    roots = cores[solution.x[: len(cores)] > 0.5]
    entries = float(coverage.core[roots].sum() + coverage.entries[np.ix_(roots, reachable)].min(axis=0).sum())
    return RebuiltTree(roots=tuple(roots.tolist()), entries=entries, bound=solution.bound, missing=missing)


def set_cover_model(coverage: Coverage, pods: Ints, *, integer: bool = True) -> LinearProgram:
    """Return set cover with a cost for each use: open cores, and one open core for each pod."""
    cores = np.flatnonzero(coverage.covers[:, pods].any(axis=1))
    core, pod = np.nonzero(coverage.covers[np.ix_(cores, pods)])
    m = ProgramBuilder(name="roots of a rebuilt tree")
    root = m.variables("root", len(cores), upper=1.0, cost=ROOT_COST + coverage.core[cores], integer=integer)
    serves = m.variables("serves", len(core), upper=1.0, cost=coverage.entries[cores[core], pods[pod]])
    m.constrain("covered", serves.sum_by(pod, len(pods)), equal=1.0)
    m.constrain("open", serves - root[core], upper=0.0)
    return m.build()


def _relaxation_bound(coverage: Coverage, pods: Ints) -> float:
    """Return a lower bound on the cost of covering the pods, from the linear relaxation with whole roots."""
    if not len(pods):
        return 0.0
    best = coverage.core + np.where(
        coverage.covers[:, pods].all(axis=1), coverage.entries[:, pods].sum(axis=1), np.inf
    )
    if np.isfinite(best).any() and best.min() == 0:
        return ROOT_COST  # one root that needs nothing: nothing is cheaper
    solution = backends.solve(set_cover_model(coverage, pods, integer=False))
    if solution.bound is None:
        return 0.0
    # roots come whole: a best tree has as many roots as pods at most, and two entries for each
    root_count = math.ceil((solution.bound - 2 * len(pods)) / ROOT_COST - 1e-9)
    return max(solution.bound, ROOT_COST * root_count)


def _split_reachable(coverage: Coverage, pods: Ints) -> tuple[Ints, tuple[int, ...]]:
    """Return the pods that some core covers, and the others."""
    reached = coverage.covers[:, pods].any(axis=0)
    return pods[reached], tuple(pods[~reached].tolist())


@dataclass(frozen=True, kw_only=True, eq=False)
class TreeRepair:
    """Rebuilt trees of the groups with entries at cores.

    table  group, roots, entries, missing (pods that no core reaches), cost and bound
    """

    table: pd.DataFrame

    @property
    def gap(self) -> float:
        """Relative gap of all trees together."""
        cost, bound = float(self.table["cost"].sum()), float(self.table["bound"].sum())
        return abs(cost - bound) / max(cost, abs(bound), 1e-9)


def repair_trees(
    problem: Multicast,
    plan: Channels,
    state: WorkingLinks,
    *,
    exact: bool = True,
    strangers: bool = True,
    options: Options = Options(),
) -> TreeRepair:
    """Return the tree of every group of the plan that spans several pods, rebuilt around the failures.

    exact      by integer programming; else greedy, with the bound of its relaxation
    strangers  cores and switches of other partitions may get the group's entry
    """
    group = find_rows(problem.group_names, plan.partitions["group"])
    inside = problem.edges_in_pod[group] > 0
    many = np.flatnonzero(inside.sum(axis=1) > 1)
    layouts = plan.partitions[["copies", "partition"]].to_numpy(np.int64)
    coverage_of: dict[tuple[int, int], Coverage] = {}
    trees: dict[tuple[int, int, bytes], RebuiltTree] = {}
    is_intact: Bools = np.zeros(len(group), dtype=bool)
    for copies, partition in np.unique(layouts[many], axis=0).tolist():
        coverage = coverage_of[copies, partition] = core_coverage(
            problem, copies, partition, state, strangers=strangers
        )
        is_free = (coverage.entries == 0) & (coverage.core == 0)[:, None]
        rows_of = many[(layouts[many] == (copies, partition)).all(axis=1)]
        missed = inside[rows_of].astype(np.int64) @ (~is_free[is_free.any(axis=1)]).T.astype(np.int64)
        is_intact[rows_of] = (missed == 0).any(axis=1)
    names = plan.partitions["group"].tolist()
    rows = [(names[row], 1, 0.0, 0, ROOT_COST, ROOT_COST) for row in many[is_intact[many]].tolist()]
    for row in many[~is_intact[many]].tolist():
        copies, partition = layouts[row].tolist()
        coverage, pods = coverage_of[copies, partition], np.flatnonzero(inside[row])
        mark = (copies, partition, pods.tobytes())
        if mark not in trees:  # groups of a partition in the same pods have the same tree
            simple = cover_greedily(coverage, pods)
            is_enough = not exact or simple.cost <= simple.bound + 1e-9
            trees[mark] = simple if is_enough else cover_exactly(coverage, pods, options=options)
        tree = trees[mark]
        rows.append((names[row], len(tree.roots), tree.entries, len(tree.missing), tree.cost, tree.bound))
    columns = ["group", "roots", "entries", "missing", "cost", "bound"]
    return TreeRepair(table=pd.DataFrame(rows, columns=columns))
