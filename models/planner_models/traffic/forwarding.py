"""Multi-resolution splitting: a plan's split ratios as prioritised value/mask rules of switches.

A switch sees packets, not ratios. Bits of the header that change from packet to packet, or from
flow to flow, make ratios of them: a rule that matches one value of b bits takes 2^-b of the
traffic. What is left is to choose the bits and the rules.

source  Sen et al. 2013 (LocalFlow), section 5
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from planner.errors import InputError
from planner.tables import Table, label, number, validate
from planner_models.traffic import deploy, routing
from planner_models.traffic.problem import Traffic
from planner_models.traffic.routing import Routing

Match = Literal["flow", "target"]
SplitOn = Literal["sequence", "counter", "source port"]

_Ends = tuple[NDArray[np.int64] | None, NDArray[np.int64]]
"""Source and target node of each commodity; no sources where a commodity is a target."""

WIDTH: Final = {"sequence": 32, "counter": 32, "source port": 16}
"""Bits of each field that flows can be split on."""

PRIORITY: Final = {"subflow": 40, "flow": 30, "metaflow": 20, "rest": -10}
"""The rule of the highest priority that matches decides; `rest` is added for what other rules leave."""

FLOWS: Final = Table(
    name="flows",
    about="a transport connection of a demand",
    columns={
        "source": label("node where it starts"),
        "target": label("node where it ends"),
        "source_port": number("its source port", at_least=0, at_most=65_535),
        "target_port": number("its target port", at_least=0, at_most=65_535),
    },
    key=("source", "target", "source_port", "target_port"),
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Forwarding:
    """The forwarding state of a network.

    rules    node, priority, kind (flow, subflow or metaflow), source, source_port_value,
             source_port_mask, target, target_port, field, value, mask, head, parallel, memory.
             A packet matches where each of source, target and target_port is None or its own, its
             source port agrees with source_port_value in the bits of source_port_mask, and the
             field (its sequence number, or the switch's counter of the flow's bytes) agrees with
             `value` in the bits of `mask`. memory is "sram" for exact matches, else "tcam"
    entries  node, sram, tcam, flows, split_flows, subflows, for each node with rules: rules of
             either memory; flows (with match "target": targets) that pass, those of them that are
             split, and all parts together, an unsplit flow being one
    ratios   node, source (None with match "target"), target, head, parallel, wanted, share, bits:
             the plan's ratio and the one that the rules realise; they differ by less than 2^-bits
    """

    rules: pd.DataFrame
    entries: pd.DataFrame
    ratios: pd.DataFrame

    @property
    def split_share(self) -> float:
        """Of all flows at all nodes, the share that is split."""
        return float(self.entries["split_flows"].sum() / max(self.entries["flows"].sum(), 1))

    @property
    def subflows_per_flow(self) -> float:
        """Parts of a flow at a node, on average."""
        return float(self.entries["subflows"].sum() / max(self.entries["flows"].sum(), 1))


def rules(
    problem: Traffic,
    plan: Routing,
    *,
    match: Annotated[
        Match, Field(description="a rule for each flow, or for all traffic to a target together")
    ] = "flow",
    split_on: Annotated[SplitOn | None, Field(description="what parts of a flow are told apart by")] = None,
    resolution_bits: Annotated[int, Field(ge=1, le=16, description="ratios are multiples of 2^-this")] = 6,
    flowlet_bytes: Annotated[
        int, Field(ge=1, description="least bytes in a row on one link, at the last switch that splits")
    ] = 1_500,
    flows: pd.DataFrame | None = None,
) -> Forwarding:
    """The rules that make switches split traffic as the plan does.

    Ratios are rounded to multiples of 2^-bits by largest remainders, so that each is off by less
    than 2^-bits; a link whose share is too small for that gets none. Of n/2^bits a rule takes the
    part of each 1 in the binary digits of n, and one rule of lower priority what the others leave.

    split_on   "sequence": bits of the sequence number above those that count the bytes of a
               flowlet. A switch that splits what another has split already must look at other
               bits, or it sees only some of their values: each looks at bits below those of the
               switches before it, so flowlets get shorter on the way. The bits have to suffice for
               all splits in a row, so `bits` may be fewer than `resolution_bits`.
               "counter": the switch's own count of the flow's bytes; any number of splits in a row.
               "source port": the port's low bits, with match "target" only: whole flows keep to
               one path, and the ratios hold for the number of flows as far as their ports are even.
               Default: "sequence" for flows, "source port" for targets
    flows      source, target, source_port, target_port: the connections of each demand; each gets
               rules of its own. Demands without any are matched by their two ends alone

    raises     PlanRejected where the plan is none of the problem; InputError where too many splits
               in a row leave no bits, routes run in a circle, or match and split_on do not fit
    source     Sen et al. 2013, section 5; that 2 and 1 segments as flowlets of successive switches
               (its example) make them look at the same bit, and what comes of it, is in the tests
    """
    on: SplitOn = split_on or ("sequence" if match == "flow" else "source port")
    if match == "flow" and on == "source port":
        raise InputError("split_on is 'source port', but a flow has one port: match must be 'target'")
    if match == "flow":
        if "source" not in plan.flows:
            raise InputError("match is 'flow', but the plan does not tell its demands apart")
        flow = sp.coo_array(routing.flow_mbps(problem, plan))
        flow.sum_duplicates()
        ends: _Ends = (problem.source, problem.target)
    else:
        if flows is not None:
            raise InputError("flows are given, but match is 'target': rules name no flows")
        flow = deploy.flow_by_target(problem, plan)
        ends = (None, problem.targets)
    table = deploy.shares(problem, flow)
    start = 0 if on == "source port" else _bits_of(flowlet_bytes)
    depth, splits = _depth(problem, flow, table)
    bits, first = _layout(problem, ends[1], table, depth, splits, on, start, resolution_bits)
    connections = _connections(problem, flows) if flows is not None else {}

    names = problem.nodes["node"].to_numpy()
    columns = ("commodity", "node", "link", "share")
    commodities, nodes, all_links, wanted = (table[name].to_numpy() for name in columns)
    share = np.zeros(len(table))
    made: list[tuple[Any, ...]] = []
    tally: dict[int, NDArray[np.int64]] = {}
    for at in _groups(problem, table):
        commodity, node, links = int(commodities[at.start]), int(nodes[at.start]), all_links[at]
        its_bits, lowest = int(bits[at.start]), int(first[at.start])
        parts = apportion(wanted[at], its_bits)
        share[at] = parts / 2.0**its_bits
        blocks = dyadic(tuple(parts.tolist()))
        split = len(blocks) > 1
        kind = "metaflow" if match == "target" else "subflow" if split else "flow"
        memory = "sram" if kind == "flow" else "tcam"
        source = None if ends[0] is None else names[ends[0][commodity]]
        whose = connections.get(commodity, ((None, None),))
        for source_port, target_port in whose:
            for way, value, length in blocks:
                priority = PRIORITY[kind] + (PRIORITY["rest"] if split and length == 0 else 0)
                shift = lowest + its_bits - length
                looked_at = (value << shift, ((1 << length) - 1) << shift)
                made.append(
                    (
                        names[node],
                        priority,
                        kind,
                        source,
                        *_source_port(source_port, on, looked_at),
                        names[ends[1][commodity]],
                        target_port,
                        *(("sequence", 0, 0) if on == "source port" else (on, *looked_at)),
                        names[problem.head[links[way]]],
                        int(problem.parallel[links[way]]),
                        memory,
                    )
                )
        entries = [len(blocks), 0] if memory == "sram" else [0, len(blocks)]
        counts = np.array([*entries, 1, split, (parts > 0).sum()]) * len(whose)
        tally[node] = tally.get(node, 0) + counts
    return Forwarding(
        rules=pd.DataFrame(made, columns=list(RULE_COLUMNS)).astype(
            {"source": object, "target_port": object}
        ),
        entries=pd.DataFrame(
            [(names[node], *counts.tolist()) for node, counts in sorted(tally.items())],
            columns=["node", "sram", "tcam", "flows", "split_flows", "subflows"],
        ),
        ratios=_ratios(problem, ends, table, share, bits),
    )


RULE_COLUMNS: Final = (
    "node",
    "priority",
    "kind",
    "source",
    "source_port_value",
    "source_port_mask",
    "target",
    "target_port",
    "field",
    "value",
    "mask",
    "head",
    "parallel",
    "memory",
)


def apportion(shares: ArrayLike, bits: int) -> NDArray[np.int64]:
    """Whole parts of 2^bits in proportion to the shares, (L,), by largest remainders.

    They add up to 2^bits; each is off its share by less than one part. Of equal remainders the
    first goes first.
    """
    exact = np.asarray(shares, dtype=float)
    exact = exact / exact.sum() * 2**bits
    parts: NDArray[np.int64] = np.floor(exact + 1e-9).astype(np.int64)
    left = 2**bits - int(parts.sum())
    order = np.argsort(-np.round(exact - parts, 9), kind="stable")
    parts[order[:left]] += 1
    return parts


@functools.lru_cache(maxsize=4_096)
def dyadic(parts: tuple[int, ...]) -> tuple[tuple[int, int, int], ...]:
    """Blocks of values, one rule each, that give each way its parts of 2^bits.

    A block (way, value, length) is all numbers whose highest `length` bits are `value`. The last
    one has length 0 and a lower priority: it takes for its way what the others leave. It is the
    way with the most 1s in the digits of its parts, of those the one with the most parts.
    """
    rest = max(range(len(parts)), key=lambda way: (parts[way].bit_count(), parts[way], -way))
    bits = (sum(parts) - 1).bit_length()
    sizes = [
        (1 << digit, way)
        for way, count in enumerate(parts)
        for digit in range(bits + 1)
        if way != rest and count >> digit & 1
    ]
    blocks, place = [], 0
    # from large to small every block starts at a multiple of its own size
    for size, way in sorted(sizes, key=lambda block: (-block[0], block[1])):
        digit = size.bit_length() - 1
        blocks.append((way, place >> digit, bits - digit))
        place += size
    return (*blocks, (rest, 0, 0))


def _groups(problem: Traffic, table: pd.DataFrame) -> list[slice]:
    """The rows of each commodity at each node."""
    key = table["commodity"].to_numpy() * len(problem.nodes) + table["node"].to_numpy()
    cuts = np.flatnonzero(np.diff(key)) + 1
    edges = [0, *cuts.tolist(), len(key)] if len(key) else []
    return [slice(i, j) for i, j in itertools.pairwise(edges)]


def _ratios(
    problem: Traffic,
    ends: _Ends,
    table: pd.DataFrame,
    share: NDArray[np.float64],
    bits: NDArray[np.int64],
) -> pd.DataFrame:
    names = problem.nodes["node"].to_numpy()
    commodity, link = table["commodity"].to_numpy(), table["link"].to_numpy()
    return pd.DataFrame(
        {
            "node": names[table["node"].to_numpy()],
            "source": None if ends[0] is None else names[ends[0][commodity]],
            "target": names[ends[1][commodity]],
            "head": names[problem.head[link]],
            "parallel": problem.parallel[link],
            "wanted": table["share"].to_numpy(),
            "share": share,
            "bits": bits,
        }
    )


def _depth(
    problem: Traffic, flow: sp.coo_array, table: pd.DataFrame
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each row of the table, how many splits in a row traffic may meet after that node, and at it."""
    nodes = len(problem.nodes)
    commodity, link = table["commodity"].to_numpy(), table["link"].to_numpy()
    tail, head = commodity * nodes + problem.tail[link], commodity * nodes + problem.head[link]
    places, count = np.unique(tail, return_counts=True)
    splits = np.zeros(len(places) + 1, dtype=np.int64)  # the last: where traffic has arrived
    splits[:-1] = count > 1
    here = np.searchsorted(places, tail)
    after: NDArray[np.int64] = np.searchsorted(places, head).astype(np.int64)
    after[(after == len(places)) | (places[np.minimum(after, len(places) - 1)] != head)] = len(places)
    if deploy.circular(problem, flow).any():
        raise InputError("the plan's routes run in a circle: no rules can follow them")
    depth: NDArray[np.int64] = np.zeros(len(places) + 1, dtype=np.int64)
    while True:
        deeper = depth.copy()
        np.maximum.at(deeper, here, depth[after] + splits[after])
        if (deeper == depth).all():
            return depth[here], splits[here]
        depth = deeper


def _layout(
    problem: Traffic,
    target: NDArray[np.int64],
    table: pd.DataFrame,
    depth: NDArray[np.int64],
    splits: NDArray[np.int64],
    on: SplitOn,
    start: int,
    resolution_bits: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each row of the table, how many bits its node looks at, and the lowest of them."""
    if not len(table):
        return depth, depth
    room = WIDTH[on] - start
    if on == "counter":  # every switch has its own, so all may look at the same bits
        depth = np.zeros_like(depth)
    commodity = table["commodity"].to_numpy()
    most: NDArray[np.int64] = np.ones(commodity.max() + 1, dtype=np.int64)
    np.maximum.at(most, commodity, depth + splits)
    in_a_row = most[commodity]
    bits = np.minimum(resolution_bits, max(room, 0) // in_a_row)
    if bits.min() < 1:
        worst = int(np.argmin(bits))
        name = problem.nodes["node"].iloc[target[int(table["commodity"].iloc[worst])]]
        raise InputError(
            f"traffic to '{name}' may be split {in_a_row[worst]} times in a row, but the {on} has only "
            f"{max(room, 0)} bits to tell its parts apart: split on 'counter', or use smaller flowlets"
        )
    return bits, start + depth * bits


def _connections(
    problem: Traffic, flows: pd.DataFrame
) -> dict[int, tuple[tuple[int | None, int | None], ...]]:
    """The (source port, target port) of each connection, by demand."""
    valid = validate(FLOWS, flows)
    place = routing.demands_of(problem, valid)
    strangers = np.flatnonzero(place < 0)
    if len(strangers):
        row = valid.iloc[int(strangers[0])]
        raise InputError(
            f"flows row {strangers[0] + 1}: {row.source}->{row.target} is no demand of the problem"
        )
    ports = valid[["source_port", "target_port"]].astype(int)
    found: dict[int, list[tuple[int | None, int | None]]] = {}
    for demand, one, other in zip(
        place.tolist(), ports["source_port"].tolist(), ports["target_port"].tolist(), strict=True
    ):
        found.setdefault(demand, []).append((one, other))
    return {demand: tuple(pairs) for demand, pairs in found.items()}


def _source_port(port: int | None, on: SplitOn, looked_at: tuple[int, int]) -> tuple[int, int]:
    if port is not None:
        return port, 0xFFFF
    return looked_at if on == "source port" else (0, 0)


def _bits_of(flowlet_bytes: int) -> int:
    """ceil(lg t), the bits that count the bytes of a flowlet."""
    return (flowlet_bytes - 1).bit_length()
