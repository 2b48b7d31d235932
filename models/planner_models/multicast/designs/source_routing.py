"""Designs with the tree in the packets: source-routed rules after Elmo, and bit strings after BIER.

Rules of a layer are made greedily: the switches with the port set that most of them have share a rule; where
the header is too short for all, sets with the fewest ports more join them, up to a limit of copies too many.
What is left takes entries of tables where there are free ones, and else the layer's default rule.

source  Shahbaz et al., "Elmo: Source Routed Multicast for Public Clouds", SIGCOMM 2019 (the order: rules in
        headers, entries, default rule; limit of redundancy); RFC 8279 and RFC 8296 (BIER)
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Bools, Ints
from planner.bits import count_bits
from planner.compiled import njit, run_small_in_python
from planner.contract.design import Decision
from planner.errors import InputError
from planner.options import Options
from planner.search.judged import judged
from planner_models.multicast.designs.partitioned import METRIC, refuse, saved_mbps
from planner_models.multicast.plan import headers
from planner_models.multicast.plan.headers import (
    BIER,
    BIER_FIXED_BYTES,
    DEFAULT_RULE,
    ELMO,
    IN_TABLE,
    HeaderTrees,
    lay_out,
)
from planner_models.multicast.plan.link_traffic import Trees, measure_headers
from planner_models.multicast.plan.meta_groups import Masks
from planner_models.multicast.plan.plan import Channels, build_plan
from planner_models.multicast.plan.table_limits import admit_in_order, build_limits
from planner_models.multicast.problem.problem import Multicast

UNSET: Final = DEFAULT_RULE - 1

HeaderBytes = Annotated[
    int, Field(ge=8, le=4096, description="longest header of a packet, bytes; 325 as in Elmo's evaluation")
]
PacketBytes = Annotated[int, Field(ge=64, le=9216, description="bytes of a packet without this header")]
PodRules = Annotated[int, Field(ge=0, description="most rules for pods in a header, beside the default rule")]
Redundancy = Annotated[
    int,
    Field(ge=0, description="most copies too many of switches that share a rule, where headers are short"),
]
StringBits = Annotated[
    Literal[64, 128, 256, 512, 1024, 2048, 4096],
    Field(description="bits of the string; fabrics with more edge switches have several sets"),
]


def route_by_source(
    problem: Multicast,
    *,
    header_bytes: HeaderBytes = 325,
    pod_rules: PodRules = 2,
    redundancy: Redundancy = 0,
    packet_bytes: PacketBytes = 1500,
    options: Options = Options(),  # noqa: ARG001
) -> Decision[Channels]:
    """Send all groups by rules in headers, as Elmo does: entries and default rules where these are too long.

    All groups are served; the bound is one copy for each member and one from each source.

    raises  InputError for headers that do not hold the rules of the source's switches and default rules
    """
    bits = lay_out(problem)
    fixed = [bits.source_edge, bits.source_pod, bits.core]
    min_bytes = sum(-(-each // 8) for each in (*fixed, bits.pod_bitmap, bits.edge_bitmap))
    if header_bytes < min_bytes:
        raise InputError(
            f"header_bytes is {header_bytes}, the headers of this fabric need {min_bytes} at least"
        )
    spread, below, wires = problem.spread, problem.below, problem.wiring
    above = np.full(problem.pods, np.iinfo(np.int64).max)
    np.minimum.at(above, wires.aggregation_pod, problem.free("aggregation"))
    groups = len(problem.groups)
    edge_rule, pod_rule = (np.full(len(each.edge), UNSET, dtype=np.int64) for each in (spread, below))
    _encode_groups(
        (spread.start, spread.edge.astype(np.int64), spread.ports, problem.free("edge"), edge_rule),
        (below.start, below.edge.astype(np.int64), below.ports, above, pod_rule),
        np.array([*bits], dtype=np.int64),
        (header_bytes, pod_rules, redundancy),
    )
    everyone = np.ones(groups, dtype=bool)
    return _decide(problem, everyone, ELMO, packet_bytes, edge_rule, pod_rule)


def replicate_by_index(
    problem: Multicast,
    *,
    string_bits: StringBits = 256,
    packet_bytes: PacketBytes = 1500,
    options: Options = Options(),
) -> Decision[Channels]:
    """Send groups by a bit for each edge switch, as BIER does; only edge switches have entries of groups.

    Groups that edge tables cannot hold go by unicast: those that save the most are stored first.
    """
    limits = build_limits(problem, problem.aggregation_copies, layers=("edge",))
    if options.service == "all" and not limits.can_hold_all:
        return Decision(plan=None, proof=refuse(limits))
    order = np.argsort(-saved_mbps(problem), kind="stable")
    selected = admit_in_order(limits, order=order)
    rule = problem.spread.edge.astype(np.int64) // string_bits
    nothing = np.full(len(problem.below.edge), UNSET, dtype=np.int64)
    size = BIER_FIXED_BYTES + string_bits // 8
    return _decide(problem, selected, BIER, packet_bytes, rule, nothing, header_bytes=size)


def _decide(
    problem: Multicast,
    sent: Bools,
    scheme: str,
    packet_bytes: int,
    edge_rule: Ints,
    pod_rule: Ints,
    *,
    header_bytes: int | None = None,
) -> Decision[Channels]:
    """Return the plan where headers carry the groups `sent`, (G,), by the rules of all pairs."""
    spread, below, names = problem.spread, problem.below, problem.group_names
    frames = []
    pods = pd.Index([f"{headers.POD}{pod}" for pod in range(problem.pods)])
    switch_names = problem.wiring.edges.append(pods)
    for each, rule, first in ((spread, edge_rule, 0), (below, pod_rule, problem.edge_count)):
        group = np.repeat(np.arange(len(names)), np.diff(each.start))
        here = sent[group] & (rule > UNSET)
        frames.append(
            pd.DataFrame(
                {
                    "group": pd.Categorical.from_codes(group[here], names),
                    "switch": pd.Categorical.from_codes(
                        first + each.edge[here].astype(np.int64), switch_names
                    ),
                    "rule": rule[here].astype(float),
                }
            )
        )
    rules = pd.concat(frames, ignore_index=True)
    table = pd.DataFrame(
        {
            "group": pd.Categorical.from_codes(np.flatnonzero(sent), names),
            "scheme": scheme,
            "header_bytes": float(header_bytes or 1),
            "packet_bytes": float(packet_bytes),
        }
    )
    trees = headers.read_trees(problem, table, rules)
    table["header_bytes"] = trees.needed_bytes[sent].astype(float)
    nobody = np.zeros(len(names), dtype=bool)
    plan = build_plan(problem, nobody, problem.aggregation_copies, headers=table, header_rules=rules)
    objective = _host_traffic(problem, sent, trees)
    lower = float(problem.rate_mbps @ (1 + problem.member_counts))
    proof = judged("min", objective, lower, is_optimal=False, metric=METRIC)
    return Decision(plan=plan, proof=proof)


def _host_traffic(problem: Multicast, sent: Bools, trees: HeaderTrees) -> float:
    """Return the traffic that hosts send and receive."""
    traffic = measure_headers(problem, Trees.of(problem), trees)
    copies = np.where(sent, traffic.from_source + traffic.to_hosts, 2 * problem.member_counts)
    return float(problem.rate_mbps @ copies)


Layer = tuple[Ints, Ints, Masks, Ints, Ints]
"""First pair of each group, switch and ports of each pair, free entries of each switch, rules to set."""


@run_small_in_python(max_elements=20_000)
@njit(cache=True)
def _encode_groups(edges: Layer, pods: Layer, bits: Ints, limits: tuple[int, int, int]) -> None:
    """Set the rules of all groups, one after the other; lower the free entries as they are taken.

    bits    the numbers of `Layout`
    limits  bytes of a header, rules for pods, copies too many
    """
    edge_bitmap, pod_bitmap, edge_name, pod_name = bits[0], bits[1], bits[2], bits[3]
    header_bytes, pod_rules, redundancy = limits
    for g in range(len(edges[0]) - 1):
        a, b = edges[0][g], edges[0][g + 1]
        if b - a < 2:
            continue
        remaining_bytes = header_bytes - (bits[4] + 7) // 8 - (bits[5] + 7) // 8
        c, d = pods[0][g], pods[0][g + 1]
        if d - c > 1:
            remaining_bytes -= (bits[6] + 7) // 8
            # at least the default rule of edge switches must fit after it
            budget = 8 * (remaining_bytes - (edge_bitmap + 7) // 8)
            remaining_bytes -= (
                _encode_layer(pods, c, d, (pod_bitmap, pod_name), (budget, pod_rules, redundancy)) + 7
            ) // 8
        _encode_layer(edges, a, b, (edge_bitmap, edge_name), (8 * remaining_bytes, b - a, redundancy))


@njit(cache=True)
def _encode_layer(layer: Layer, a: int, b: int, size: tuple[int, int], limits: tuple[int, int, int]) -> int:
    """Set the rules of the pairs a to b; return the bits that they take.

    size    bits of a bitmap, and of a name
    limits  bits, rules, copies too many
    """
    switch, ports, free, rule = layer[1], layer[2], layer[3], layer[4]
    bitmap = size[0]
    budget, most_rules, redundancy = limits
    used, remaining = _fill_rules(ports, rule, a, b, size, (budget, most_rules, 0))
    if remaining == 0:
        return used
    if redundancy > 0:
        used, remaining = _fill_rules(ports, rule, a, b, size, limits)
        if remaining == 0:
            return used
    used, remaining = _fill_rules(ports, rule, a, b, size, (budget - bitmap, most_rules, redundancy))
    has_default = False
    for i in range(a, b):
        if rule[i] == UNSET:
            if free[switch[i]] > 0:
                free[switch[i]] -= 1
                rule[i] = IN_TABLE
            else:
                rule[i] = DEFAULT_RULE
                has_default = True
    return used + bitmap if has_default else used


@njit(cache=True)
def _find_common_ports(ports: Masks, rule: Ints, by_ports: Ints) -> int:
    """Return the first place in `by_ports` of the port set that most switches without a rule have; or -1."""
    best, largest, i = -1, 0, 0
    while i < len(by_ports):
        mask, number, j = ports[by_ports[i]], 0, i
        while j < len(by_ports) and ports[by_ports[j]] == mask:
            number += rule[by_ports[j]] == UNSET
            j += 1
        if number > largest:
            best, largest = i, number
        i = j
    return best


@njit(cache=True)
def _fill_rules(
    ports: Masks, rule: Ints, a: int, b: int, size: tuple[int, int], limits: tuple[int, int, int]
) -> tuple[int, int]:
    """Set rules within the limits; return the bits that they take and the pairs that are left."""
    bitmap, name = size
    budget, most_rules, redundancy = limits
    rule[a:b] = UNSET
    by_ports = a + np.argsort(ports[a:b], kind="mergesort")
    used, count, remaining = 0, 0, b - a
    while remaining > 0 and count < most_rules and used + bitmap + name <= budget:
        best = _find_common_ports(ports, rule, by_ports)
        union = ports[by_ports[best]]
        members, extra = 0, 0
        used += bitmap
        for i in by_ports[best:]:
            if ports[i] != union or used + name > budget:
                break
            if rule[i] == UNSET:
                rule[i] = count
                used += name
                members += 1
                remaining -= 1
        while redundancy > 0 and remaining > 0 and used + name <= budget:
            nearest, smallest = -1, redundancy + 1
            for i in range(a, b):
                both = union | ports[i]
                more = extra + members * count_bits(both ^ union) + count_bits(both ^ ports[i])
                if rule[i] == UNSET and more < smallest:
                    nearest, smallest = i, more
            if nearest < 0:
                break
            union |= ports[nearest]
            rule[nearest] = count
            extra = smallest
            members += 1
            used += name
            remaining -= 1
        count += 1
    return used, remaining
