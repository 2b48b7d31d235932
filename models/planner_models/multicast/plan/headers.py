"""Groups that headers of packets carry: source-routed trees (Elmo) and bit strings of edge switches (BIER).

Elmo: a header lists, layer by layer, rules with a bitmap of ports and the switches that it is for; the edge
switch of the source and its pod have one each, without names. Switches that share a rule all send to the
union of their ports; a switch without a rule uses an entry of its table, or the default rule of its layer.
Each layer removes its rules. BIER: the source's edge switch adds a string with a bit for each edge switch of
a set, and sends a copy for each set; edge switches serve their hosts by an entry of the group, other tables
hold none.

Readings of ours: a source is a host at the first edge switch of its group; a section of a header is rounded
up to bytes; a pod's aggregation switches are one logical switch, and an entry for it is in each of them; an
edge switch that gets a packet without a rule for it drops it, or uses the default rule where there is one.

source  Shahbaz et al., "Elmo: Source Routed Multicast for Public Clouds", SIGCOMM 2019 (rules, default rule,
        switch entries); RFC 8279 (bit strings, sets) and RFC 8296 (12 bytes before the string)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.arrays import Bools, Floats, Ints, distinct
from planner.contract.table import Table, label, number
from planner.errors import PlanRejected
from planner_models.multicast.plan.meta_groups import Masks
from planner_models.multicast.problem.problem import Multicast
from planner_models.multicast.problem.schema import MOST_ENTRIES
from planner_models.multicast.problem.topology import find_rows

ELMO: Final = "elmo"
BIER: Final = "bier"
IN_TABLE: Final = -1  # the rule of a switch that has an entry of the group in its table
DEFAULT_RULE: Final = -2
BIER_FIXED_BYTES: Final = 12  # RFC 8296, before the bit string
POD: Final = "pod-"

HEADERS: Final = Table(
    name="headers",
    about="a group whose packets carry their tree in a header",
    columns={
        "group": label("the group"),
        "scheme": label("elmo: rules by switch; bier: a bit for each edge switch"),
        "header_bytes": number(
            "header of a packet as it leaves the source's edge switch or host", at_least=1
        ),
        "packet_bytes": number("packet without this header", at_least=1),
    },
    key=("group",),
    may_be_empty=True,
)
HEADER_RULES: Final = Table(
    name="header_rules",
    about="a switch of a group that a header carries",
    columns={
        "group": label("the group"),
        "switch": label("edge switch; pod-0, pod-1, ...: all aggregation switches of the pod"),
        "rule": number(
            "elmo: rule of its layer, from 0, shared by switches of the same number; -1: an entry in its "
            "table; -2: the default rule. bier: set of its bit",
            at_least=DEFAULT_RULE,
            at_most=MOST_ENTRIES,
            whole=True,
        ),
    },
    key=("group", "switch"),
    may_be_empty=True,
    compact=True,
)


class Layout(NamedTuple):
    """Bits of a header's parts: bitmaps of a layer's ports, names of switches, and the source's own rules."""

    edge_bitmap: int
    pod_bitmap: int
    edge_name: int
    pod_name: int
    source_edge: int
    source_pod: int
    core: int


def lay_out(problem: Multicast) -> Layout:
    """Return the bits that the fabric needs: names are numbers; a rule and a name each have a bit `more`."""
    wires = problem.wiring
    in_pod = int(wires.edge_in_pod.max()) + 1
    above = int(np.bincount(wires.aggregation_pod).max())
    return Layout(
        edge_bitmap=problem.ports + 1,
        pod_bitmap=in_pod + 1,
        edge_name=max(1, (problem.edge_count - 1).bit_length()) + 1,
        pod_name=max(1, (problem.pods - 1).bit_length()) + 1,
        source_edge=problem.ports + above + 1,  # ports down, ports up, or any up
        source_pod=in_pod + int(wires.up.sum(axis=1).max()) + 1,
        core=problem.pods,
    )


class LayerRules(NamedTuple):
    """Rules of one layer, a row for each group and switch there.

    group, switch  the pair: an edge switch, or a pod
    ports          its ports with members below, as bits
    rule           its rule
    """

    group: Ints
    switch: Ints
    ports: Masks
    rule: Ints

    def reached(self, groups: int) -> tuple[Masks, Masks]:
        """Return the ports that each pair sends to, and those of each group's default rule, (groups,)."""
        default = np.zeros(groups, dtype=np.uint64)
        is_default = self.rule == DEFAULT_RULE
        np.bitwise_or.at(default, self.group[is_default], self.ports[is_default])
        width = int(self.rule.max(initial=0)) + 1
        shared = self.rule >= 0
        key, inverse = np.unique(self.group[shared] * width + self.rule[shared], return_inverse=True)
        union = np.zeros(len(key), dtype=np.uint64)
        np.bitwise_or.at(union, inverse, self.ports[shared])
        sent = self.ports.copy()
        sent[shared], sent[is_default] = union[inverse], default[self.group[is_default]]
        return sent, default

    def count_bits(self, groups: int, bitmap: int, name: int) -> Ints:
        """Return the bits of the layer's rules in the header of each group, (groups,)."""
        shared = self.rule >= 0
        width = int(self.rule.max(initial=0)) + 1
        rules = distinct(self.group[shared] * width + self.rule[shared]) // width
        bits = bitmap * np.bincount(rules, minlength=groups)
        bits += name * np.bincount(self.group[shared], minlength=groups)
        has_default = np.bincount(self.group[self.rule == DEFAULT_RULE], minlength=groups) > 0
        return np.asarray(bits + bitmap * has_default, dtype=np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class HeaderTrees:
    """The groups that headers carry.

    elmo, bier    (G,) groups of each scheme
    stated_bytes  (G,) the plan's header; packet_bytes (G,)
    edges, pods   rules of both layers; of BIER, edge switches alone
    """

    problem: Multicast
    elmo: Bools
    bier: Bools
    stated_bytes: Floats
    packet_bytes: Floats
    edges: LayerRules
    pods: LayerRules

    @property
    def sent(self) -> Bools:
        """Groups that a header carries, (G,)."""
        return self.elmo | self.bier

    @cached_property
    def section_bytes(self) -> dict[str, Ints]:
        """Bytes of the parts of Elmo's header, (G,) each, in the order in which they are removed."""
        problem, bits = self.problem, lay_out(self.problem)
        groups = len(problem.groups)
        several, across = (np.diff(each.start) > 1 for each in (problem.spread, problem.below))
        parts = {
            "source_edge": np.full(groups, bits.source_edge),
            "source_pod": bits.source_pod * several,
            "core": bits.core * across,
            "pods": self.pods.count_bits(groups, bits.pod_bitmap, bits.pod_name) * across,
            "edges": self.edges.count_bits(groups, bits.edge_bitmap, bits.edge_name) * several,
        }
        return {name: -(-count // 8) * self.elmo for name, count in parts.items()}

    @property
    def needed_bytes(self) -> Ints:
        """Bytes of the header of a packet, (G,): Elmo's is counted, BIER's is the given string's."""
        counted = sum(self.section_bytes.values(), np.zeros(len(self.elmo), dtype=np.int64))
        return np.where(self.bier, self.stated_bytes, counted).astype(np.int64)

    def entries(self) -> Ints:
        """Return the table entries that these groups take at each switch, (switches,)."""
        switch, _, _ = self.table_entries()
        return np.bincount(switch, minlength=len(self.problem.wiring.switches)).astype(np.int64)

    def table_entries(self) -> tuple[Ints, Ints, Masks]:
        """Return switch, group and ports of each table entry of these groups."""
        wires = self.problem.wiring
        first = len(wires.cores) + len(wires.aggregations)
        at_edge = (self.edges.rule == IN_TABLE) | self.bier[self.edges.group]
        above, child = np.nonzero(
            wires.aggregation_pod[:, None] == self.pods.switch[self.pods.rule == IN_TABLE][None, :]
        )
        rows = np.flatnonzero(self.pods.rule == IN_TABLE)[child]
        return (
            np.concatenate([first + self.edges.switch[at_edge], len(wires.cores) + above]),
            np.concatenate([self.edges.group[at_edge], self.pods.group[rows]]),
            np.concatenate([self.edges.ports[at_edge], self.pods.ports[rows]]),
        )


def read_trees(problem: Multicast, headers: pd.DataFrame, rules: pd.DataFrame) -> HeaderTrees:
    """Return the groups that headers carry.

    raises  PlanRejected for an unknown group, scheme or switch, and for rules that are missing or too many
    """
    groups = len(problem.groups)
    row = _require_groups(problem, headers["group"], "headers")
    if len(distinct(row)) < len(row):
        raise PlanRejected("headers: a group is there twice")
    scheme = headers["scheme"].astype(str).to_numpy()
    wrong = np.flatnonzero((scheme != ELMO) & (scheme != BIER))
    if len(wrong):
        raise PlanRejected(
            f"headers row {wrong[0] + 1}: scheme is '{scheme[wrong[0]]}', must be elmo or bier"
        )
    elmo, bier = np.zeros((2, groups), dtype=bool)
    elmo[row[scheme == ELMO]], bier[row[scheme == BIER]] = True, True
    stated, packet = np.zeros(groups), np.ones(groups)
    stated[row], packet[row] = (
        headers["header_bytes"].to_numpy(float),
        headers["packet_bytes"].to_numpy(float),
    )
    several, across = (np.diff(each.start) > 1 for each in (problem.spread, problem.below))
    edges = _list_pairs(
        problem.spread.start, problem.spread.edge, problem.spread.ports, bier | elmo & several
    )
    pods = _list_pairs(problem.below.start, problem.below.edge, problem.below.ports, elmo & across)
    _place_rules(problem, rules, edges, pods)
    return HeaderTrees(
        problem=problem,
        elmo=elmo,
        bier=bier,
        stated_bytes=stated,
        packet_bytes=packet,
        edges=edges,
        pods=pods,
    )


def require_lengths(trees: HeaderTrees) -> None:
    """Raise PlanRejected where a header has another length than its rules take, or a bit another set."""
    sent = np.flatnonzero(trees.stated_bytes != trees.needed_bytes)
    if len(sent):
        name, stated = trees.problem.group_names[sent[0]], trees.stated_bytes[sent[0]]
        needed = trees.needed_bytes[sent[0]]
        raise PlanRejected(f"headers: {name} is said to have {stated:g} bytes, its rules take {needed}")
    of_bier = trees.bier[trees.edges.group]
    bits = bits_of_string(trees)[trees.edges.group]
    wrong = np.flatnonzero(of_bier & (trees.edges.rule != trees.edges.switch // bits))
    if len(wrong):
        name = trees.problem.wiring.edges[trees.edges.switch[wrong[0]]]
        raise PlanRejected(f"header_rules: the bit of {name} is in another set")
    if (trees.edges.rule[~of_bier] < DEFAULT_RULE).any() or (trees.pods.rule < DEFAULT_RULE).any():
        raise PlanRejected("header_rules: a rule is below -2")


def bits_of_string(trees: HeaderTrees) -> Ints:
    """Return the bits of each group's BIER string, (G,), at least 1."""
    return np.maximum((trees.stated_bytes - BIER_FIXED_BYTES) * 8, 1).astype(np.int64)


def _require_groups(problem: Multicast, names: pd.Series, table: str) -> Ints:
    row = find_rows(problem.group_names, names)
    if (row < 0).any():
        first = int(np.argmax(row < 0))
        raise PlanRejected(f"{table} row {first + 1}: '{names.iloc[first]}' is no group of the problem")
    return row


def _list_pairs(start: Ints, switch: NDArray[np.int32], ports: Masks, selected: Bools) -> LayerRules:
    """Return the pairs of the chosen groups, without rules."""
    group = np.repeat(np.arange(len(start) - 1), np.diff(start))
    here = selected[group]
    rule = np.full(int(here.sum()), DEFAULT_RULE - 1, dtype=np.int64)
    return LayerRules(group[here], switch[here].astype(np.int64), ports[here], rule)


def _place_rules(problem: Multicast, rules: pd.DataFrame, edges: LayerRules, pods: LayerRules) -> None:
    """Set the rule of each pair; PlanRejected unless each has one."""
    row = _require_groups(problem, rules["group"], "header_rules")
    names = problem.wiring.edges.append(pd.Index([f"{POD}{pod}" for pod in range(problem.pods)]))
    switch, stated = find_rows(names, rules["switch"]), rules["rule"].to_numpy(np.int64)
    if (switch < 0).any():
        name = rules["switch"].iloc[int(np.argmax(switch < 0))]
        raise PlanRejected(f"header_rules: '{name}' is no edge switch and no pod")
    count = problem.edge_count
    for layer, of_layer in ((edges, switch < count), (pods, switch >= count)):
        width = len(names)
        offset = 0 if layer is edges else count
        keys = layer.group * width + layer.switch + offset
        keys_sought = row[of_layer] * width + switch[of_layer]
        if np.array_equal(keys_sought, keys):  # the order of plans that were made here
            layer.rule[:] = stated[of_layer]
            continue
        order = np.argsort(keys)
        position = np.searchsorted(keys[order], keys_sought)
        index = np.minimum(position, max(len(keys) - 1, 0))
        fits = keys[order][index] == keys_sought if len(keys) else np.zeros(len(keys_sought), dtype=bool)
        has_rule = np.zeros(len(keys), dtype=bool)
        has_rule[order[index[fits]]] = True
        if not (fits.all() and has_rule.all() and len(keys_sought) == len(keys)):
            raise PlanRejected(
                "header_rules: must have one row for each pod and edge switch of a group with a header"
            )
        layer.rule[order[index]] = stated[of_layer]
