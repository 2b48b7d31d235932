"""Trees rebuilt after lasting failures: which cores a group's packets must go up to, as set cover.

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
import scipy.sparse as sp
from numpy.typing import NDArray

from planner import backends
from planner.backends.linear import Columns, LinearProgram, Rows
from planner.errors import InputError
from planner.options import Options
from planner.system import Section
from planner_models.multicast.failures import Alive, alive, cost, rerouted
from planner_models.multicast.plan import Channels
from planner_models.multicast.problem import Multicast

ROOT = 1000.0  # what one more root costs, in entries: fewest roots first, then fewest entries


@dataclass(frozen=True, kw_only=True, eq=False)
class Reach:
    """What cores cover of a partition after failures, and at what cost.

    entries  (cores, pods) entries to add in the pod for a path from the core; inf where there is none
    core     (cores,) entries to add at the core: 0 where it holds the partition, else 1
    """

    entries: NDArray[np.float64]
    core: NDArray[np.float64]

    @property
    def covers(self) -> NDArray[np.bool_]:
        return np.isfinite(self.entries)


def reach(problem: Multicast, copies: int, partition: int, state: Alive, *, strangers: bool = True) -> Reach:
    """Paths from cores into pods; without strangers, through switches of the partition alone."""
    held, wires = problem.distribution(copies), problem.wiring
    mine, at_core = held.aggregation[:, partition], held.core[:, partition]
    pods = np.arange(wires.pods)
    starts = np.searchsorted(wires.aggregation_pod, pods)
    own = np.logical_or.reduceat(state.up & mine[:, None], starts).T
    anyhow = np.logical_or.reduceat(state.up, starts).T
    entries = np.where(own, 0.0, np.where(anyhow & strangers, 1.0, np.inf))
    if not strangers:
        entries[~at_core] = np.inf
    return Reach(entries=entries, core=np.where(at_core, 0.0, 1.0))


@dataclass(frozen=True, kw_only=True, eq=False)
class Rebuilt:
    """A new tree.

    roots     cores that packets go up to
    entries   table entries to add
    bound     no choice costs less; cost is ROOT for each root, and entries
    missing   pods that no core reaches
    """

    roots: tuple[int, ...]
    entries: float
    bound: float
    missing: tuple[int, ...]

    @property
    def cost(self) -> float:
        return ROOT * len(self.roots) + self.entries

    @property
    def gap(self) -> float:
        return abs(self.cost - self.bound) / max(self.cost, abs(self.bound), 1e-9)


def greedy(found: Reach, pods: NDArray[np.int64]) -> Rebuilt:
    """Cores one by one, each the one that covers most of what is left, then at least cost.

    The bound is that of the relaxed program, with whole roots: `optimum` closes it.
    """
    left, missing = _coverable(found, pods)
    roots: list[int] = []
    entries = 0.0
    todo = left.copy()
    while len(todo):
        new = np.where(np.isfinite(found.entries[:, todo]), 1, 0).sum(axis=1)
        price = found.core + np.where(np.isfinite(found.entries[:, todo]), found.entries[:, todo], 0).sum(
            axis=1
        )
        core = int(np.lexsort((price, -new))[0])
        roots.append(core)
        entries += float(price[core])
        todo = todo[~np.isfinite(found.entries[core, todo])]
    bound = _relaxed(found, left)
    return Rebuilt(roots=tuple(roots), entries=entries, bound=bound, missing=missing)


def optimum(found: Reach, pods: NDArray[np.int64], *, options: Options = Options()) -> Rebuilt:
    """The fewest roots, and of those the fewest entries to add, with the solver's bound.

    raises  InputError where the time was up before any plan
    """
    left, missing = _coverable(found, pods)
    if not len(left):
        return Rebuilt(roots=(), entries=0.0, bound=0.0, missing=missing)
    solution = backends.solve(model(found, left), options)
    if solution.x is None or solution.bound is None:
        raise InputError("the time was up before a tree was found: give more time, or take the greedy one")
    cores = np.flatnonzero(found.covers[:, left].any(axis=1))
    roots = cores[solution.x[: len(cores)] > 0.5]
    entries = float(found.core[roots].sum() + found.entries[np.ix_(roots, left)].min(axis=0).sum())
    return Rebuilt(roots=tuple(roots.tolist()), entries=entries, bound=solution.bound, missing=missing)


def model(found: Reach, pods: NDArray[np.int64], *, integer: bool = True) -> LinearProgram:
    """Set cover with a cost for each use: open cores, and one open core for each pod."""
    cores = np.flatnonzero(found.covers[:, pods].any(axis=1))
    core, pod = np.nonzero(found.covers[np.ix_(cores, pods)])
    opened, pairs = len(cores), len(core)
    size = opened + pairs
    covered = sp.coo_array((np.ones(pairs), (pod, opened + np.arange(pairs))), shape=(len(pods), size))
    rows, columns = np.tile(np.arange(pairs), 2), np.concatenate([opened + np.arange(pairs), core])
    linked = sp.coo_array((np.repeat([1.0, -1.0], pairs), (rows, columns)), shape=(pairs, size))
    return LinearProgram.build(
        cost=np.concatenate([ROOT + found.core[cores], found.entries[cores[core], pods[pod]]]),
        rows=[Rows("covered", covered, lower=1.0, upper=1.0), Rows("open", linked, upper=0.0)],
        columns=[Columns("root", opened), Columns("serves", pairs)],
        upper=1.0,
        integer=(np.arange(size) < opened) & integer,
        name="roots of a rebuilt tree",
    )


def _relaxed(found: Reach, pods: NDArray[np.int64]) -> float:
    if not len(pods):
        return 0.0
    best = found.core + np.where(
        found.covers[:, pods].all(axis=1), found.entries[:, pods].sum(axis=1), np.inf
    )
    if np.isfinite(best).any() and best.min() == 0:
        return ROOT  # one root that needs nothing: nothing is cheaper
    solution = backends.solve(model(found, pods, integer=False))
    if solution.bound is None:
        return 0.0
    # roots come whole: a best tree has as many roots as pods at most, and two entries for each
    whole = math.ceil((solution.bound - 2 * len(pods)) / ROOT - 1e-9)
    return max(solution.bound, ROOT * whole)


def _coverable(found: Reach, pods: NDArray[np.int64]) -> tuple[NDArray[np.int64], tuple[int, ...]]:
    reached = found.covers[:, pods].any(axis=0)
    return pods[reached], tuple(pods[~reached].tolist())


@dataclass(frozen=True, kw_only=True, eq=False)
class Repair:
    """What rebuilding trees takes, group by group with entries at cores.

    table  group, roots, entries, missing (pods that no core reaches), cost and bound
    """

    table: pd.DataFrame

    @property
    def gap(self) -> float:
        """Of all trees together."""
        cost, bound = float(self.table["cost"].sum()), float(self.table["bound"].sum())
        return abs(cost - bound) / max(cost, abs(bound), 1e-9)


def repaired(
    problem: Multicast,
    plan: Channels,
    state: Alive,
    *,
    exact: bool = True,
    strangers: bool = True,
    options: Options = Options(),
) -> Repair:
    """The tree of every group of the plan that spans several pods, rebuilt around the failures.

    exact      by integer programming; else greedy, with the bound of its relaxation
    strangers  cores and switches of other partitions may get the group's entry
    """
    group = pd.Index(problem.groups["group"]).get_indexer(pd.Index(plan.partitions["group"]))
    inside = problem.edges_in_pod[group] > 0
    many = np.flatnonzero(inside.sum(axis=1) > 1)
    places = plan.partitions[["copies", "partition"]].to_numpy(np.int64)
    known: dict[tuple[int, int], Reach] = {}
    trees: dict[tuple[int, int, bytes], Rebuilt] = {}
    whole: NDArray[np.bool_] = np.zeros(len(group), dtype=bool)
    for copies, partition in np.unique(places[many], axis=0).tolist():
        found = known[copies, partition] = reach(problem, copies, partition, state, strangers=strangers)
        own = (found.entries == 0) & (found.core == 0)[:, None]
        mine = many[(places[many] == (copies, partition)).all(axis=1)]
        missed = inside[mine].astype(np.int64) @ (~own[own.any(axis=1)]).T.astype(np.int64)
        whole[mine] = (missed == 0).any(axis=1)
    names = plan.partitions["group"].tolist()
    rows = [(names[row], 1, 0.0, 0, ROOT, ROOT) for row in many[whole[many]].tolist()]
    for row in many[~whole[many]].tolist():
        copies, partition = places[row].tolist()
        found, pods = known[copies, partition], np.flatnonzero(inside[row])
        mark = (copies, partition, pods.tobytes())
        if mark not in trees:  # groups of a partition in the same pods have the same tree
            simple = greedy(found, pods)
            done = not exact or simple.cost <= simple.bound + 1e-9
            trees[mark] = simple if done else optimum(found, pods, options=options)
        tree = trees[mark]
        rows.append((names[row], len(tree.roots), tree.entries, len(tree.missing), tree.cost, tree.bound))
    columns = ["group", "roots", "entries", "missing", "cost", "bound"]
    return Repair(table=pd.DataFrame(rows, columns=columns))


def section(problem: Multicast, plan: Channels, *, options: Options = Options()) -> tuple[Section, str]:
    """What the failed switches of the problem do to a plan, as a part of an explanation.

    Local rerouting at once and what it needs in headers and tables, then trees rebuilt by set cover.
    """
    names = [] if problem.failed is None else problem.failed["switch"].tolist()
    state = alive(problem.wiring, switches=names)
    reached = rerouted(problem, plan, state)
    greedy = repaired(problem, plan, state, exact=False)
    exact = repaired(problem, plan, state, options=options)
    got = reached.stretch[np.isfinite(reached.stretch)]
    rows: list[tuple[str, float, str]] = [
        ("failed switches", len(names), "switches"),
        ("rerouted: groups with members that packets miss", (reached.unreachable > 0).sum(), "groups"),
        ("rerouted: members that packets miss, mean of groups", 100 * reached.unreachable.mean(), "%"),
        ("rerouted: route stretch, mean of groups", got.mean() if len(got) else np.nan, ""),
        ("rerouted: route stretch, most", got.max() if len(got) else np.nan, ""),
    ]
    if not problem.is_tree:
        needs = cost(problem.k)
        rows += [
            ("rerouting needs: marks in headers", needs.identifiers, "identifiers"),
            ("rerouting needs: header bits for them", needs.identifier_bits, "bits"),
            ("rerouting needs: unicast entries of an edge switch", needs.edge_rules, "entries"),
            ("rerouting needs: unicast entries of an aggregation switch", needs.aggregation_rules, "entries"),
        ]
    rows += [
        ("rebuilt: trees with several roots", (exact.table["roots"] > 1).sum(), "trees"),
        ("rebuilt: trees with pods that no core reaches", (exact.table["missing"] > 0).sum(), "trees"),
        ("rebuilt: entries to add", exact.table["entries"].sum(), "entries"),
        ("rebuilt: gap of the greedy trees", 100 * greedy.gap, "%"),
        ("rebuilt: gap of these trees", 100 * exact.gap, "%"),
    ]
    frame = pd.DataFrame(rows, columns=["what", "value", "unit"]).astype({"value": float})
    sentence = (
        f"With {len(names):,} failed switch{'' if len(names) == 1 else 'es'}, local rerouting reaches "
        f"{100 * (1 - reached.unreachable.mean()):.4g}% of the members on ways "
        f"{got.mean() if len(got) else np.nan:.3f} times as long; rebuilt trees need "
        f"{exact.table['entries'].sum():,.0f} more entries."
    )
    return Section(title="failures", frame=frame), sentence
