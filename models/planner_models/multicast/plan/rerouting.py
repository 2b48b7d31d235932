"""Local rerouting around failed switches and links, until trees are rebuilt.

A core whose switch in a pod has failed marks the packet with the pod and sends it back down into another
pod. From there another core of the same partition takes it to another switch of the pod: at once, or by
way of an edge switch, where all switches of that pod above lead back to the same cores. Within a pod, an
aggregation switch marks the packet with the edge switch that it has lost and sends it through another.

Source: "Scaling IP Multicast on Datacenter Topologies", section 3.3.1.

Trees rebuilt after lasting failures: the cores that a group's packets go up to, by set cover.

A core covers the pods that it still reaches. One that covers all of the group's pods is the new root;
where none does, packets go to several. Cores of the group's partition have its entry already; others
need one, and one more in each aggregation switch on their way that does not hold the partition.

Source: "Scaling IP Multicast on Datacenter Topologies", section 3.3.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

from planner import backends
from planner.arrays import Bools, Floats, Ints, distinct
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import ProgramBuilder
from planner.errors import InputError
from planner.options import Options
from planner_models.multicast.plan.plan import Channels
from planner_models.multicast.problem.failures import WorkingLinks
from planner_models.multicast.problem.problem import Multicast
from planner_models.multicast.problem.topology import Distribution, Wiring, find_rows

DETOUR_HOPS = (1, 3, 5)  # links from a core to an aggregation switch of a pod: direct, and the two detours


# --- reach of packets --------------------------------------------------------------------
ROOT_COST = 1000.0  # in entries: fewest roots first, then fewest entries


@dataclass(frozen=True, kw_only=True, eq=False)
class Detours:
    """Ways of a partition's packets from cores into pods, and from pods up to cores.

    cores  the cores of the partition
    hops   (cores, pods) links from each to an aggregation switch of the partition; inf for none
    up     (cores, pods) whether a switch of the partition in the pod reaches the core
    """

    cores: Ints
    hops: Floats
    up: Bools


def find_detours(wiring: Wiring, held: Distribution, partition: int, state: WorkingLinks) -> Detours:
    """Return the ways of one partition under local rerouting, on any multi-rooted tree.

    A packet on its way back goes through switches and cores of its partition only, so that they know
    from its address and its identifier where to send it.
    """
    cores = np.flatnonzero(held.core[:, partition])
    is_holder = held.aggregation[:, partition]
    links = state.up[:, cores] & is_holder[:, None]
    pods = wiring.pods
    starts = np.searchsorted(wiring.aggregation_pod, np.arange(pods))
    straight = np.logical_or.reduceat(links, starts).T  # (cores, pods)
    # cores that a switch of a pod connects, and cores that a pod connects by way of an edge switch
    by_pod = np.split(links.astype(np.int64), starts[1:])
    near = np.stack([here.T @ here > 0 for here in by_pod])  # (pods, cores, cores)
    joined = [state.joined[a:b, a:b] for a, b in pairwise([*starts.tolist(), len(is_holder)])]
    far = np.stack([here.T @ meet @ here > 0 for here, meet in zip(by_pod, joined, strict=True)])
    hops = np.where(straight, float(DETOUR_HOPS[0]), np.inf)
    for length, pairs in ((DETOUR_HOPS[1], near), (DETOUR_HOPS[2], far)):
        elsewhere = pairs.sum(axis=0)[None] - pairs > 0  # (pods, cores, cores): in a pod but this one
        is_reachable = np.einsum("pxy,yp->xp", elsewhere, straight) > 0
        hops = np.where(np.isinf(hops) & is_reachable, float(length), hops)
    return Detours(cores=cores, hops=hops, up=straight)


@dataclass(frozen=True, kw_only=True, eq=False)
class Rerouting:
    """Effect of local rerouting on each group of a plan.

    stretch      (groups,) links from the source to the members that are reached, divided by those without
                 failures; nan where none is reached
    unreachable  (groups,) share of the members that are not reached
    reached      (groups, pods) whether packets reach the pod
    """

    stretch: Floats
    unreachable: Floats
    reached: Bools


def reroute_groups(
    problem: Multicast, plan: Channels, state: WorkingLinks, *, sender: Ints | None = None
) -> Rerouting:
    """Return route stretch and unreachable members of each group with entries, in the plan's order of groups.

    One member sends, at the edge switch `sender` (G,); default: `draw_senders`. Packets go up to an
    aggregation switch of their partition, which serves its pod, and to a core of it that works, which serves
    the others; groups at one edge switch stay there. Links within pods are assumed to work where their
    switches do. Hosts of a failed edge switch neither send nor receive.

    source  section 4.4; the choice of the sender and the base of the stretch are our reading
    """
    group = find_rows(problem.group_names, plan.partitions["group"])
    partition = plan.partitions["partition"].to_numpy(np.int64)
    copies = plan.partitions["copies"].to_numpy(np.int64)
    sender = draw_senders(problem) if sender is None else sender
    members = _members_in_pods(problem)
    working = (
        members
        if state.edge.all()
        else _members_in_pods(problem, state.edge[problem.edge_of_host[problem.host_of]])
    )
    stretch = np.full(len(group), np.nan)
    unreachable = np.zeros(len(group))
    reached = np.zeros((len(group), problem.pods), dtype=bool)
    for ra in distinct(copies).tolist():
        for partition_number in distinct(partition[copies == ra]).tolist():
            rows = np.flatnonzero((copies == ra) & (partition == partition_number))
            of = group[rows]
            after, before = _ways_in_partition(problem, members, of, (ra, partition_number), state, sender)
            reached[rows] = np.isfinite(after)
            got = np.where(reached[rows], working[of], 0)
            long = (np.where(reached[rows], after, 0.0) * got).sum(axis=1)
            short = (before * got).sum(axis=1)
            stretch[rows] = np.divide(long, short, out=np.full(len(rows), np.nan), where=short > 0)
            unreachable[rows] = 1 - got.sum(axis=1) / members[of].sum(axis=1)
    return Rerouting(stretch=stretch, unreachable=unreachable, reached=reached)


def find_missed_members(
    problem: Multicast, plan: Channels, state: WorkingLinks, *, rerouted: Rerouting | None = None
) -> Bools:
    """Return the memberships with hosts without packets of their group, (members,), while switches reroute.

    Groups with entries are rerouted locally; others go by unicast, which reaches every edge switch that is
    still connected to the sender's. The sender is that of `reroute_groups`.

    rerouted  what that returns, where it is known
    """
    sender = draw_senders(problem)
    edge = problem.edge_of_host[problem.host_of]
    group = problem.group_of
    component = state.part_of_edge
    gets = component[edge] == component[sender[group]]
    rows = find_rows(problem.group_names, plan.partitions["group"])
    if len(rows):
        reached = np.zeros((len(problem.groups), problem.pods), dtype=bool)
        rerouted = reroute_groups(problem, plan, state) if rerouted is None else rerouted
        reached[rows] = rerouted.reached
        stored = np.zeros(len(problem.groups), dtype=bool)
        stored[rows] = True
        gets &= ~stored[group] | reached[group, problem.wiring.edge_pod[edge]]
    return np.asarray(~(gets & state.edge[edge] & state.edge[sender[group]]), dtype=bool)


def lost_by_group(problem: Multicast, plan: Channels, state: WorkingLinks) -> Floats:
    """Return the traffic that members of each group miss while switches reroute, (G,), Mbit/s."""
    missed = find_missed_members(problem, plan, state)
    count = np.bincount(problem.group_of[missed], minlength=len(problem.groups))
    return np.asarray(problem.rate_mbps * count)


def lost_by_partition(
    problem: Multicast, groups: Ints, state: WorkingLinks, *, copies: int
) -> tuple[Floats, Floats]:
    """Return the traffic that members of some groups miss in each partition, and by unicast, Mbit/s.

    As `find_missed_members` counts it for the sender of `draw_senders`.

    groups   rows of groups
    returns  (groups, partitions) and (groups,)
    """
    sender, members = draw_senders(problem), _members_in_pods(problem)
    edge, component = problem.edge_of_host[problem.host_of], state.part_of_edge
    source = sender[problem.group_of]
    connected = _members_in_pods(
        problem, selected=(component[edge] == component[source]) & state.edge[edge] & state.edge[source]
    )[groups]
    rate, count = problem.rate_mbps[groups], members[groups].sum(axis=1)
    lost = np.empty((len(groups), problem.distribution(copies).partitions))
    for column in range(lost.shape[1]):
        after, _ = _ways_in_partition(problem, members, groups, (copies, column), state, sender)
        lost[:, column] = rate * (count - (connected * np.isfinite(after)).sum(axis=1))
    return lost, rate * (count - connected.sum(axis=1))


def _ways_in_partition(
    problem: Multicast,
    members: Ints,
    groups: Ints,
    layout: tuple[int, int],
    state: WorkingLinks,
    sender: Ints,
) -> tuple[Floats, Floats]:
    """Return `_ways` of some groups in a partition; `layout` is copies and partition."""
    held = problem.distribution(layout[0])
    detours = find_detours(problem.wiring, held, layout[1], state)
    serves = _serving_pods(problem.wiring, held, layout[1], state)
    source, sends = problem.wiring.edge_pod[sender[groups]], state.edge[sender[groups]]
    return _ways(members[groups], problem.edges_in_pod[groups], source, groups, detours, serves, sends)


def _members_in_pods(problem: Multicast, selected: Bools | None = None) -> Ints:
    """Return the members of each group in each pod, shape (G, pods); all memberships, or these."""
    pod = problem.wiring.edge_pod[problem.edge_of_host]
    cell = problem.group_of.astype(np.int64) * problem.pods + pod[problem.host_of]
    if selected is not None:
        cell = cell[selected]
    count = np.bincount(cell, minlength=len(problem.groups) * problem.pods)
    return np.asarray(count.reshape(-1, problem.pods), dtype=np.int64)


def draw_senders(problem: Multicast, rng: np.random.Generator | None = None) -> Ints:
    """Return the edge switch of one member of each group, drawn uniformly, shape (G,); default: seed 0."""
    rng = np.random.default_rng(0) if rng is None else rng
    group = problem.group_of
    sorted_ = bool((group[1:] >= group[:-1]).all())
    order = np.arange(len(group)) if sorted_ else np.argsort(group, kind="stable")
    counts = problem.member_counts
    first = np.cumsum(counts) - counts
    senders = order[first + (rng.random(len(counts)) * counts).astype(np.int64)]
    return np.asarray(problem.edge_of_host[problem.host_of[senders]], dtype=np.int64)


def _serving_pods(wiring: Wiring, held: Distribution, partition: int, state: WorkingLinks) -> Bools:
    """Return whether a switch of the partition works in each pod, shape (pods,)."""
    works = state.aggregation & held.aggregation[:, partition]
    return np.bincount(wiring.aggregation_pod[works], minlength=wiring.pods) > 0


def _ways(
    members: Ints,
    edges: Ints,
    source: Ints,
    group: Ints,
    detours: Detours,
    serves: Bools,
    sends: Bools,
) -> tuple[Floats, Floats]:
    """Return the links from the source to each pod, (groups, pods), with failures and without; inf for none.

    members, edges  (groups, pods) of the group there
    sends           (groups,) whether the edge switch of the sender works
    """
    row = np.arange(len(members))
    spans = (members > 0).sum(axis=1) > 1
    alone = ~spans & (edges[row, source] == 1)
    # the root: the first core, from one that differs between groups, that the source's pod reaches
    count = len(detours.cores)
    hops = np.full(members.shape, np.inf)  # (groups, pods) from the root; two tiers have none
    if count:
        order = (group[:, None] // 7 + np.arange(count)) % count
        can = detours.up[order, source[:, None]]
        root = order[row, can.argmax(axis=1)]
        hops = np.where(can.any(axis=1)[:, None], detours.hops[root], np.inf)
    is_source = np.zeros_like(members, dtype=bool)
    is_source[row, source] = True
    # links from the source: 2 within an edge switch, 4 within a pod, 6 to others
    before = np.where(is_source, np.where(alone, 2.0, 4.0)[:, None], 6.0)
    here = np.where(alone, 2.0, np.where(serves[source], 4.0, np.inf))
    after = np.where(is_source, here[:, None], 5.0 + hops)
    return np.where(sends[:, None] & (members > 0), after, np.inf), before


# --- cost ------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ReroutingCost:
    """Requirements of local rerouting in a fat tree of k-port switches.

    identifiers       marks: one for each pod, and for each edge switch of a pod
    identifier_bits   header bits that distinguish them
    edge_rules        unicast entries of an edge switch
    aggregation_rules unicast entries of an aggregation switch
    """

    identifiers: int
    identifier_bits: int
    edge_rules: int
    aggregation_rules: int


def rerouting_cost(k: int) -> ReroutingCost:
    """Return the cost of section 3.3.1: 3k/2 identifiers and aggregation rules, k/2 edge rules."""
    if k < 2 or k % 2:
        raise InputError(f"k is {k}, must be even")
    marks = 3 * k // 2
    return ReroutingCost(
        identifiers=marks,
        identifier_bits=math.ceil(math.log2(marks)),
        edge_rules=k // 2,
        aggregation_rules=marks,
    )


def expected_unreachable(*, switches: int, copies: int, failed: int) -> float:
    """Return the probability that all `copies` switches of a partition in a pod have failed.

    Failures are drawn uniformly among `switches` aggregation switches; exact.
    """
    if failed < copies:
        return 0.0
    return math.comb(switches - copies, failed - copies) / math.comb(switches, failed)


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
