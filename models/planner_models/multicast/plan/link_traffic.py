"""Traffic on all links of the fabric: tables, unicast and headers by one rule.

A source is a host at the first edge switch of its group. A packet goes from it to that edge switch, up to an
aggregation switch where members are at other edge switches, and to a core where they are in other pods; then
once over each link of the tree down. Aggregation switches with a table entry also send to the source's edge
switch, as `forwarding` does; headers do not. By unicast a copy for each member takes 2, 4 or 6 links.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from planner.arrays import Floats, Ints, distinct
from planner_models.multicast.plan.headers import HeaderTrees, bits_of_string
from planner_models.multicast.plan.meta_groups import Masks
from planner_models.multicast.problem.problem import Multicast


@dataclass(frozen=True, kw_only=True, eq=False)
class Trees:
    """Size of the tree of each group, (G,) each: pods, edge switches and members, and those of the source.

    source_edge, source_pod  where its source is
    near_edges               its edge switches in the source's pod
    """

    pods: Ints
    edges: Ints
    members: Ints
    source_edge: Ints
    source_pod: Ints
    near_edges: Ints
    near_members: Ints
    pod_members: Ints

    @classmethod
    def of(cls, problem: Multicast) -> Trees:
        """Return the trees of a problem's groups."""
        spread, below = problem.spread, problem.below
        group = np.repeat(np.arange(spread.groups), np.diff(spread.start))
        pod = problem.wiring.edge_pod[spread.edge]
        count = np.bitwise_count(spread.ports).astype(np.int64)
        source = np.minimum.reduceat(spread.edge, spread.start[:-1]).astype(np.int64)
        home = problem.wiring.edge_pod[source]
        near = pod == home[group]

        def total(weights: Ints) -> Ints:
            return np.bincount(group, weights, minlength=spread.groups).astype(np.int64)

        return cls(
            pods=np.diff(below.start),
            edges=np.diff(spread.start),
            members=problem.member_counts,
            source_edge=source,
            source_pod=home,
            near_edges=total(near.astype(np.int64)),
            near_members=total(count * (spread.edge == source[group])),
            pod_members=total(count * near),
        )

    @property
    def least_links(self) -> Ints:
        """Links of the tree, the least that carry a packet once, (G,)."""
        up = 1 + (self.edges > 1) + (self.pods > 1)
        return np.asarray(up + self.pods - 1 + self.edges - 1 + self.members, dtype=np.int64)

    @property
    def table_links(self) -> Ints:
        """Links that packets of groups with table entries take, (G,)."""
        return self.least_links + (self.edges > 1)

    @property
    def unicast_links(self) -> Ints:
        """Links that copies for all members take, (G,)."""
        return 6 * self.members - 2 * self.pod_members - 2 * self.near_members


class HeaderTraffic(NamedTuple):
    """Copies of a packet of groups that headers carry, (G,) each; 0 for others.

    links         copies on links
    header_share  bytes of headers on all links, divided by those of the packet
    to_hosts      copies to hosts, members or not
    from_source   copies that the source sends, its header included
    """

    links: Floats
    header_share: Floats
    to_hosts: Floats
    from_source: Floats


def measure_headers(problem: Multicast, trees: Trees, sent: HeaderTrees) -> HeaderTraffic:
    """Return the copies of a packet of each group that a header carries."""
    elmo, bier = _count_elmo(problem, trees, sent), _count_bier(problem, trees, sent)
    return HeaderTraffic(
        *(
            np.where(sent.elmo, by_elmo, np.where(sent.bier, other, 0.0))
            for by_elmo, other in zip(elmo, bier, strict=True)
        )
    )


def _count_elmo(problem: Multicast, trees: Trees, sent: HeaderTrees) -> HeaderTraffic:
    groups = len(trees.pods)
    several, across = trees.edges > 1, trees.pods > 1
    sections = sent.section_bytes
    at_edge, default = sent.edges.reached(groups)
    away = sent.edges.switch != trees.source_edge[sent.edges.group]  # the source's own has its exact ports
    more = np.bitwise_count(at_edge & ~sent.edges.ports) * away
    extra = np.bincount(sent.edges.group, more, minlength=groups).astype(float)
    below, _ = sent.pods.reached(groups)
    other = sent.pods.switch != trees.source_pod[sent.pods.group]
    strays = np.bincount(
        sent.pods.group,
        np.bitwise_count(below & _existing(problem, sent.pods.switch) & ~sent.pods.ports) * other,
        minlength=groups,
    )
    extra += strays * np.bitwise_count(default)
    to_edges = trees.edges - 1 + strays
    remaining_after = {}
    remaining = np.zeros(groups)
    for name in reversed(sections):
        remaining = remaining + sections[name]
        remaining_after[name] = remaining
    headers = (
        remaining_after["source_edge"]
        + several * remaining_after["source_pod"]
        + across * remaining_after["core"]
        + (trees.pods - 1) * remaining_after["pods"]
        + to_edges * remaining_after["edges"]
    )
    links = trees.least_links + strays + extra
    return HeaderTraffic(
        links=links.astype(float),
        header_share=headers / sent.packet_bytes,
        to_hosts=trees.members + extra,
        from_source=1.0 + remaining_after["source_edge"] / sent.packet_bytes,
    )


def _existing(problem: Multicast, pod: Ints) -> Masks:
    """Return the edge switches that each of these pods has, as bits: trees may have smaller pods."""
    count = np.bincount(problem.wiring.edge_pod, minlength=problem.pods)[pod].astype(np.uint64)
    full = np.uint64(0xFFFFFFFFFFFFFFFF)
    return np.asarray(full >> (np.uint64(64) - count), dtype=np.uint64)


def _count_bier(problem: Multicast, trees: Trees, sent: HeaderTrees) -> HeaderTraffic:
    groups = len(trees.pods)
    pairs = sent.edges
    away = sent.bier[pairs.group] & (pairs.switch != trees.source_edge[pairs.group])
    group, switch = pairs.group[away], pairs.switch[away]
    pod, string_number = problem.wiring.edge_pod[switch], switch // bits_of_string(sent)[group]
    far = pod != trees.source_pod[group]
    up = _count_distinct(group, string_number, groups)
    to_core = _count_distinct(group[far], string_number[far], groups)
    to_pods = _count_distinct(group[far], string_number[far] * problem.pods + pod[far], groups)
    between = up + to_core + to_pods + np.bincount(group, minlength=groups)
    return HeaderTraffic(
        links=(1 + between + trees.members).astype(float),
        header_share=between * sent.stated_bytes / sent.packet_bytes,
        to_hosts=trees.members.astype(float),
        from_source=np.ones(groups),
    )


def _count_distinct(group: Ints, thing: Ints, groups: int) -> Ints:
    """Return the number of different things of each group, (groups,)."""
    width = int(thing.max(initial=0)) + 1
    return np.bincount(distinct(group * width + thing) // width, minlength=groups).astype(np.int64)


def nothing(problem: Multicast) -> HeaderTraffic:
    """Return the traffic of a plan without headers."""
    none = np.zeros(len(problem.groups))
    return HeaderTraffic(none, none, none, none)
