"""Local rerouting around failed switches and links, until trees are rebuilt.

A core whose switch in a pod has failed marks the packet with the pod and sends it back down into another
pod. From there another core of the same partition takes it to another switch of the pod: at once, or by
way of an edge switch, where all switches of that pod above lead back to the same cores. Within a pod, an
aggregation switch marks the packet with the edge switch that it has lost and sends it through another.

Source: "Scaling IP Multicast on Datacenter Topologies", section 3.3.1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.errors import InputError, did_you_mean
from planner_models.multicast.addresses import Distribution
from planner_models.multicast.fabric import Wiring
from planner_models.multicast.plan import Channels
from planner_models.multicast.problem import Multicast

HOPS = (1, 3, 5)  # from a core to an aggregation switch of a pod: straight, and the two detours


@dataclass(frozen=True, kw_only=True, eq=False)
class Alive:
    """What works.

    up    (aggregation switches, cores) bool, links with both ends
    down  (aggregation switches, edge switches) bool, links within pods with both ends
    """

    up: NDArray[np.bool_]
    down: NDArray[np.bool_]

    @property
    def aggregation(self) -> NDArray[np.bool_]:
        """(aggregation switches,) whether any link of each works."""
        return np.asarray(self.up.any(axis=1) | self.down.any(axis=1), dtype=bool)

    @cached_property
    def joined(self) -> NDArray[np.int64]:
        """(aggregation switches, aggregation switches) 1 where both are linked to one edge switch."""
        down = self.down.astype(np.float32)
        return (down @ down.T > 0).astype(np.int64)


def alive(wiring: Wiring, *, switches: Iterable[str] = (), links: Iterable[tuple[str, str]] = ()) -> Alive:
    """What is left when these switches, and these links (lower, upper), have failed.

    raises  InputError for a switch or a link that the fabric does not have
    """
    down = wiring.aggregation_pod[:, None] == wiring.edge_pod[None, :]
    up = wiring.up.copy()
    faults = []
    for name in switches:
        if name in wiring.cores:
            up[:, wiring.cores.get_loc(name)] = False
        elif name in wiring.aggregations:
            up[wiring.aggregations.get_loc(name)] = False
            down[wiring.aggregations.get_loc(name)] = False
        elif name in wiring.edges:
            down[:, wiring.edges.get_loc(name)] = False
        else:
            faults.append(f"failed: '{name}' is no switch" + did_you_mean(name, wiring.switches))
    for lower, upper in links:
        if lower in wiring.aggregations and upper in wiring.cores:
            up[wiring.aggregations.get_loc(lower), wiring.cores.get_loc(upper)] = False
        elif lower in wiring.edges and upper in wiring.aggregations:
            down[wiring.aggregations.get_loc(upper), wiring.edges.get_loc(lower)] = False
        else:
            faults.append(f"failed: there is no link from '{lower}' up to '{upper}'")
    if faults:
        raise InputError(*faults)
    return Alive(up=up, down=down)


def draw(wiring: Wiring, count: int, rng: np.random.Generator) -> list[str]:
    """`count` aggregation switches that fail, drawn uniformly; InputError for more than there are."""
    most = len(wiring.aggregations)
    if not 0 <= count <= most:
        raise InputError(f"failed_aggregations is {count}, must be from 0 to {most}")
    return wiring.aggregations[np.sort(rng.choice(most, size=count, replace=False))].tolist()


# --- where packets get --------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Ways:
    """How cores get a partition's packets into pods, and pods theirs to cores.

    cores  the cores of the partition
    hops   (cores, pods) links from each to an aggregation switch of the partition; inf for none
    up     (cores, pods) whether a switch of the partition in the pod reaches the core
    """

    cores: NDArray[np.int64]
    hops: NDArray[np.float64]
    up: NDArray[np.bool_]


def ways(wiring: Wiring, held: Distribution, partition: int, state: Alive) -> Ways:
    """The ways of one partition under local rerouting, on any multi-rooted tree.

    A packet on its way back goes through switches and cores of its partition only, so that they know
    from its address and its mark where to send it.
    """
    cores = np.flatnonzero(held.core[:, partition])
    mine = held.aggregation[:, partition]
    links = state.up[:, cores] & mine[:, None]
    pods = wiring.pods
    starts = np.searchsorted(wiring.aggregation_pod, np.arange(pods))
    straight = np.logical_or.reduceat(links, starts).T  # (cores, pods)
    # cores that a switch of a pod connects, and cores that a pod connects by way of an edge switch
    by_pod = np.split(links.astype(np.int64), starts[1:])
    near = np.stack([here.T @ here > 0 for here in by_pod])  # (pods, cores, cores)
    joined = [state.joined[a:b, a:b] for a, b in pairwise([*starts.tolist(), len(mine)])]
    far = np.stack([here.T @ meet @ here > 0 for here, meet in zip(by_pod, joined, strict=True)])
    hops = np.where(straight, float(HOPS[0]), np.inf)
    for length, pairs in ((HOPS[1], near), (HOPS[2], far)):
        elsewhere = pairs.sum(axis=0)[None] - pairs > 0  # (pods, cores, cores): in a pod but this one
        found = np.einsum("pxy,yp->xp", elsewhere, straight) > 0
        hops = np.where(np.isinf(hops) & found, float(length), hops)
    return Ways(cores=cores, hops=hops, up=straight)


@dataclass(frozen=True, kw_only=True, eq=False)
class Reached:
    """What local rerouting does to each group of a plan.

    stretch      (groups,) links from the source to the members that are reached, over those without
                 failures; nan where none is reached
    unreachable  (groups,) share of the members that are not reached
    """

    stretch: NDArray[np.float64]
    unreachable: NDArray[np.float64]


def rerouted(
    problem: Multicast, plan: Channels, state: Alive, *, rng: np.random.Generator | None = None
) -> Reached:
    """Route stretch and unreachable members of each group with entries, in the plan's order of groups.

    One member sends, drawn with `rng` (default: the first). Packets go up to an aggregation switch of
    their partition, which serves its pod, and to a core of it that works, which serves the others; groups
    at one edge switch stay there. Links within pods are taken to work where their switches do.

    source  section 4.4; what stretch is of, and who sends, is our reading
    """
    rng = np.random.default_rng(0) if rng is None else rng
    group = pd.Index(problem.groups["group"]).get_indexer(pd.Index(plan.partitions["group"]))
    partition = plan.partitions["partition"].to_numpy(np.int64)
    copies = plan.partitions["copies"].to_numpy(np.int64)
    members = _members_in_pods(problem)
    source = _source_pods(problem, rng)
    stretch = np.full(len(group), np.nan)
    unreachable = np.zeros(len(group))
    for ra in np.unique(copies).tolist():
        held = problem.distribution(ra)
        for part in np.unique(partition[copies == ra]).tolist():
            rows = np.flatnonzero((copies == ra) & (partition == part))
            found = ways(problem.wiring, held, part, state)
            serves = _serving(problem.wiring, held, part, state)
            inside = problem.edges_in_pod[group[rows]]
            stretch[rows], unreachable[rows] = _of_groups(
                members[group[rows]], inside, source[group[rows]], group[rows], found, serves
            )
    return Reached(stretch=stretch, unreachable=unreachable)


def _members_in_pods(problem: Multicast) -> NDArray[np.int64]:
    """(G, pods)"""
    pod = problem.wiring.edge_pod[problem.edge_of_host]
    place = problem.group_of.astype(np.int64) * problem.pods + pod[problem.host_of]
    count = np.bincount(place, minlength=len(problem.groups) * problem.pods)
    return np.asarray(count.reshape(-1, problem.pods), dtype=np.int64)


def _source_pods(problem: Multicast, rng: np.random.Generator) -> NDArray[np.int64]:
    """(G,) the pod of one member of each group."""
    group = problem.group_of
    sorted_ = bool((group[1:] >= group[:-1]).all())
    order = np.arange(len(group)) if sorted_ else np.argsort(group, kind="stable")
    counts = problem.member_counts
    first = np.cumsum(counts) - counts
    chosen = order[first + (rng.random(len(counts)) * counts).astype(np.int64)]
    return np.asarray(problem.wiring.edge_pod[problem.edge_of_host[problem.host_of[chosen]]], dtype=np.int64)


def _serving(wiring: Wiring, held: Distribution, part: int, state: Alive) -> NDArray[np.bool_]:
    """(pods,) whether a switch of the partition works."""
    works = state.aggregation & held.aggregation[:, part]
    return np.bincount(wiring.aggregation_pod[works], minlength=wiring.pods) > 0


def _of_groups(
    members: NDArray[np.int64],
    edges: NDArray[np.int64],
    source: NDArray[np.int64],
    group: NDArray[np.int64],
    found: Ways,
    serves: NDArray[np.bool_],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Stretch and unreachable share of the groups of one partition.

    members, edges  (groups, pods) of the group there
    """
    row = np.arange(len(members))
    spans = (members > 0).sum(axis=1) > 1
    alone = ~spans & (edges[row, source] == 1)
    # the root: the first core, from one that differs between groups, that the source's pod reaches
    count = len(found.cores)
    order = (group[:, None] // 7 + np.arange(count)) % count
    can = found.up[order, source[:, None]]
    root = order[row, can.argmax(axis=1)]
    hops = np.where(can.any(axis=1)[:, None], found.hops[root], np.inf)  # (groups, pods) from the root
    own = np.zeros_like(members, dtype=bool)
    own[row, source] = True
    # links from the source: 2 within an edge switch, 4 within a pod, 6 to others
    before = np.where(own, np.where(alone, 2.0, 4.0)[:, None], 6.0)
    here = np.where(alone, 2.0, np.where(serves[source], 4.0, np.inf))
    after = np.where(own, here[:, None], 5.0 + hops)
    reached = np.isfinite(after) & (members > 0)
    total = members.sum(axis=1)
    got = np.where(reached, members, 0)
    long = (np.where(reached, after, 0.0) * got).sum(axis=1)
    short = (before * got).sum(axis=1)
    stretch = np.divide(long, short, out=np.full(len(members), np.nan), where=short > 0)
    return stretch, 1 - got.sum(axis=1) / total


# --- what it costs ------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What local rerouting needs in a fat tree of k-port switches.

    identifiers       marks: one for each pod, and for each edge switch of a pod
    identifier_bits   header bits that tell them apart
    edge_rules        unicast entries of an edge switch
    aggregation_rules unicast entries of an aggregation switch
    """

    identifiers: int
    identifier_bits: int
    edge_rules: int
    aggregation_rules: int


def cost(k: int) -> Cost:
    """Section 3.3.1: 3k/2 marks, as many unicast rules in aggregation switches, k/2 in edge switches."""
    if k < 2 or k % 2:
        raise InputError(f"k is {k}, must be even")
    marks = 3 * k // 2
    return Cost(
        identifiers=marks,
        identifier_bits=math.ceil(math.log2(marks)),
        edge_rules=k // 2,
        aggregation_rules=marks,
    )


def expected_unreachable(*, switches: int, copies: int, failed: int) -> float:
    """Probability that all `copies` switches of a partition in a pod are among the failed ones.

    For failures drawn uniformly among `switches` aggregation switches; exact.
    """
    if failed < copies:
        return 0.0
    return math.comb(switches - copies, failed - copies) / math.comb(switches, failed)
