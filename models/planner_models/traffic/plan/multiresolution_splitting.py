"""Multi-resolution splitting: split ratios of a plan as prioritised value/mask rules of switches.

A switch handles packets, not ratios. Bits of the header that change from packet to packet, or from
flow to flow, realise ratios: a rule that matches one value of b bits takes 2^-b of the traffic. This
module chooses the bits and the rules.

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
from numpy.typing import ArrayLike
from pydantic import Field

from planner.arrays import Floats, Ints
from planner.contract.table import Table, label, number
from planner.contract.tables import validate
from planner.errors import InputError
from planner_models.traffic.plan import deployment
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan.classes import merge_classes
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic

Match = Literal["flow", "target"]
SplitOn = Literal["sequence", "counter", "source port"]

_Ends = tuple[Ints | None, Ints]
"""Source and target node of each commodity; no sources where a commodity is a target."""

FIELD_BITS: Final = {"sequence": 32, "counter": 32, "source port": 16}
"""Number of bits of each field that flows can be split on."""

PRIORITY: Final = {"subflow": 40, "flow": 30, "metaflow": 20, "rest": -10}
"""The matching rule of highest priority decides; `rest` is added to a rule for what other rules leave."""

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
    entries  node, sram, tcam, flows, split_flows, subflows, for each node with rules: rules in
             each memory; flows (with match "target": targets) that pass, those of them that are
             split, and the number of all parts (an unsplit flow is one part)
    ratios   node, source (None with match "target"), target, head, parallel, wanted, share, bits:
             the plan's ratio and that of the rules; they differ by less than 2^-bits
    """

    rules: pd.DataFrame
    entries: pd.DataFrame
    ratios: pd.DataFrame

    @property
    def split_share(self) -> float:
        """Share of the flows at all nodes that are split."""
        return float(self.entries["split_flows"].sum() / max(self.entries["flows"].sum(), 1))

    @property
    def subflows_per_flow(self) -> float:
        """Mean number of parts of a flow at a node."""
        return float(self.entries["subflows"].sum() / max(self.entries["flows"].sum(), 1))


def compile_rules(
    problem: Traffic,
    plan: Routing,
    *,
    match: Annotated[
        Match, Field(description="a rule for each flow, or for all traffic to a target together")
    ] = "flow",
    split_on: Annotated[
        SplitOn | None, Field(description="field that distinguishes the parts of a flow")
    ] = None,
    resolution_bits: Annotated[int, Field(ge=1, le=16, description="ratios are multiples of 2^-this")] = 6,
    flowlet_bytes: Annotated[
        int, Field(ge=1, description="least bytes in a row on one link, at the last switch that splits")
    ] = 1_500,
    flows: pd.DataFrame | None = None,
) -> Forwarding:
    """Compile the rules that make switches split traffic as the plan does.

    Ratios are rounded to multiples of 2^-bits by largest remainders, so that each is off by less
    than 2^-bits; a link with a smaller share gets none. For a share n/2^bits there is a rule for
    each 1 in the binary digits of n; one rule of lower priority takes what the others leave.

    split_on   "sequence": bits of the sequence number above those that count the bytes of a
               flowlet. A switch behind another one that splits must use other bits, since only some
               values of the first bits reach it: each uses bits below those of the switches before
               it, so flowlets get shorter along the path. The bits must suffice for all splits in a
               row, so `bits` may be fewer than `resolution_bits`.
               "counter": the switch's own count of the flow's bytes; any number of splits in a row.
               "source port": the port's low bits, with match "target" only: whole flows stay on one
               path, and numbers of flows follow the ratios if their ports are uniform.
               Default: "sequence" for flows, "source port" for targets
    flows      source, target, source_port, target_port: the connections of each demand; each gets
               its own rules. Demands without connections are matched by their two ends alone

    Rules do not tell classes apart: all classes of a demand follow its ratios, taken together.

    raises     PlanRejected where the plan does not fit the problem; InputError where too many splits
               in a row leave no bits, routes form a cycle, or match and split_on do not fit
    source     Sen et al. 2013, section 5. Its example, flowlets of 2 and 1 segments at successive
               switches, makes both use the same bit; the tests show the consequence
    """
    problem, plan = problem.merged, merge_classes(problem, plan)
    on: SplitOn = split_on or ("sequence" if match == "flow" else "source port")
    flow, ends = _matched_flow(problem, plan, match, on, flows)
    table = deployment.share_table(problem, flow)
    start = 0 if on == "source port" else _flowlet_bits(flowlet_bytes)
    field = _Field(on=on, start=start, resolution_bits=resolution_bits)
    depth, splits = _count_later_splits(problem, flow, table)
    bits, lowest = _assign_bits(problem, ends[1], table, depth, splits, field)
    connections = _ports_by_demand(problem, flows) if flows is not None else {}

    names = problem.nodes["node"].to_numpy()
    columns = ("commodity", "node", "link", "share")
    commodities, nodes, all_links, requested = (table[name].to_numpy() for name in columns)
    share = np.zeros(len(table))
    rules: list[tuple[Any, ...]] = []
    entries: dict[int, Ints] = {}
    for group in _group_rows(problem, table):
        commodity, node, links = int(commodities[group.start]), int(nodes[group.start]), all_links[group]
        width, low = int(bits[group.start]), int(lowest[group.start])
        parts = apportion(requested[group], width)
        share[group] = parts / 2.0**width
        blocks = dyadic_blocks(tuple(parts.tolist()))
        is_split = len(blocks) > 1
        kind = "metaflow" if match == "target" else "subflow" if is_split else "flow"
        memory = "sram" if kind == "flow" else "tcam"
        source = None if ends[0] is None else names[ends[0][commodity]]
        ports = connections.get(commodity, ((None, None),))
        for source_port, target_port in ports:
            for branch, value, length in blocks:
                shift = low + width - length
                value_mask = (value << shift, ((1 << length) - 1) << shift)
                rules.append(
                    (
                        names[node],
                        PRIORITY[kind] + (PRIORITY["rest"] if is_split and length == 0 else 0),
                        kind,
                        source,
                        *_match_source_port(source_port, on, value_mask),
                        names[ends[1][commodity]],
                        target_port,
                        *(("sequence", 0, 0) if on == "source port" else (on, *value_mask)),
                        names[problem.head[links[branch]]],
                        int(problem.parallel[links[branch]]),
                        memory,
                    )
                )
        in_memory = [len(blocks), 0] if memory == "sram" else [0, len(blocks)]
        counts = np.array([*in_memory, 1, is_split, (parts > 0).sum()]) * len(ports)
        entries[node] = entries.get(node, 0) + counts
    return Forwarding(
        rules=pd.DataFrame(rules, columns=list(RULE_COLUMNS)).astype(
            {"source": object, "target_port": object}
        ),
        entries=pd.DataFrame(
            [(names[node], *counts.tolist()) for node, counts in sorted(entries.items())],
            columns=["node", "sram", "tcam", "flows", "split_flows", "subflows"],
        ),
        ratios=_ratio_table(problem, ends, table, share, bits),
    )


def _matched_flow(
    problem: Traffic, plan: Routing, match: Match, on: SplitOn, flows: pd.DataFrame | None
) -> tuple[sp.coo_array, _Ends]:
    """Return the flow of the demands or targets that rules match, and the sources and targets of these.

    raises  InputError where the match, the field and the plan do not fit each other
    """
    if match == "flow":
        if on == "source port":
            raise InputError("split_on is 'source port', but a flow has one port: match must be 'target'")
        if "source" not in plan.flows:
            raise InputError("match is 'flow', but the plan's flows have no source")
        return routing.flow_by_demand(problem, plan).tocoo(), (problem.source, problem.target)
    if flows is not None:
        raise InputError("flows are given, but match is 'target': rules name no flows")
    return routing.flow_by_target(problem, plan).tocoo(), (None, problem.targets)


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


def apportion(shares: ArrayLike, bits: int) -> Ints:
    """Return whole parts of 2^bits in proportion to the shares, shape (L,), by largest remainders.

    They add up to 2^bits; each differs from its share by less than one part. Of equal remainders the
    first is rounded up first.
    """
    exact = np.asarray(shares, dtype=float)
    exact = exact / exact.sum() * 2**bits
    parts: Ints = np.floor(exact + 1e-9).astype(np.int64)
    missing = 2**bits - int(parts.sum())
    order = np.argsort(-np.round(exact - parts, 9), kind="stable")
    parts[order[:missing]] += 1
    return parts


@functools.lru_cache(maxsize=4_096)
def dyadic_blocks(parts: tuple[int, ...]) -> tuple[tuple[int, int, int], ...]:
    """Return blocks of values, one rule each, that give each branch its parts of 2^bits.

    A block (branch, value, length) is all numbers whose highest `length` bits are `value`. The last
    block has length 0 and a lower priority: its branch gets what the others leave. This is the branch with
    the most 1s in the binary digits of its parts; of several, the one with the most parts.
    """
    remainder_branch = max(
        range(len(parts)), key=lambda branch: (parts[branch].bit_count(), parts[branch], -branch)
    )
    bits = (sum(parts) - 1).bit_length()
    sizes = [
        (1 << digit, branch)
        for branch, count in enumerate(parts)
        for digit in range(bits + 1)
        if branch != remainder_branch and count >> digit & 1
    ]
    blocks, start = [], 0
    # in descending order of size, every block starts at a multiple of its own size
    for size, branch in sorted(sizes, key=lambda block: (-block[0], block[1])):
        digit = size.bit_length() - 1
        blocks.append((branch, start >> digit, bits - digit))
        start += size
    return (*blocks, (remainder_branch, 0, 0))


def _group_rows(problem: Traffic, table: pd.DataFrame) -> list[slice]:
    """Return the rows of each commodity at each node."""
    key = table["commodity"].to_numpy() * len(problem.nodes) + table["node"].to_numpy()
    cuts = np.flatnonzero(np.diff(key)) + 1
    edges = [0, *cuts.tolist(), len(key)] if len(key) else []
    return [slice(i, j) for i, j in itertools.pairwise(edges)]


def _ratio_table(
    problem: Traffic, ends: _Ends, table: pd.DataFrame, share: Floats, bits: Ints
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


def _count_later_splits(problem: Traffic, flow: sp.coo_array, table: pd.DataFrame) -> tuple[Ints, Ints]:
    """Return, for each row, the largest number of splits on a path after its node, and the number at it."""
    nodes = len(problem.nodes)
    commodity, link = table["commodity"].to_numpy(), table["link"].to_numpy()
    tail, head = commodity * nodes + problem.tail[link], commodity * nodes + problem.head[link]
    tails, count = np.unique(tail, return_counts=True)
    splits = np.zeros(len(tails) + 1, dtype=np.int64)  # the last place: traffic has arrived
    splits[:-1] = count > 1
    here = np.searchsorted(tails, tail)
    after: Ints = np.searchsorted(tails, head).astype(np.int64)
    after[(after == len(tails)) | (tails[np.minimum(after, len(tails) - 1)] != head)] = len(tails)
    if deployment.has_cycle(problem, flow).any():
        raise InputError("the plan's routes form a cycle: no rules can follow them")
    depth: Ints = np.zeros(len(tails) + 1, dtype=np.int64)
    while True:
        deeper = depth.copy()
        np.maximum.at(deeper, here, depth[after] + splits[after])
        if (deeper == depth).all():
            return depth[here], splits[here]
        depth = deeper


@dataclass(frozen=True, kw_only=True)
class _Field:
    """The field that distinguishes parts of a flow: its first bit for that, and the bits of a ratio."""

    on: SplitOn
    start: int
    resolution_bits: int


def _assign_bits(
    problem: Traffic,
    target: Ints,
    table: pd.DataFrame,
    depth: Ints,
    splits: Ints,
    field: _Field,
) -> tuple[Ints, Ints]:
    """Return, for each row, the number of bits that its node matches, and the lowest of them."""
    on, start, resolution_bits = field.on, field.start, field.resolution_bits
    if not len(table):
        return depth, depth
    available = max(FIELD_BITS[on] - start, 0)
    if on == "counter":  # every switch has its own counter, so all may match the same bits
        depth = np.zeros_like(depth)
    commodity = table["commodity"].to_numpy()
    longest: Ints = np.ones(commodity.max() + 1, dtype=np.int64)
    np.maximum.at(longest, commodity, depth + splits)
    in_a_row = longest[commodity]
    bits = np.minimum(resolution_bits, available // in_a_row)
    if bits.min() < 1:
        worst = int(np.argmin(bits))
        name = problem.nodes["node"].iloc[target[int(table["commodity"].iloc[worst])]]
        raise InputError(
            f"traffic to '{name}' may be split {in_a_row[worst]} times in a row, but the {on} has only "
            f"{available} bits to distinguish its parts: split on 'counter', or use smaller flowlets"
        )
    return bits, start + depth * bits


def _ports_by_demand(
    problem: Traffic, flows: pd.DataFrame
) -> dict[int, tuple[tuple[int | None, int | None], ...]]:
    """Return the (source port, target port) of each connection, by demand."""
    valid = validate(FLOWS, flows)
    demand_rows = problem.find_demands(valid)
    unknown = np.flatnonzero(demand_rows < 0)
    if len(unknown):
        row = valid.iloc[int(unknown[0])]
        raise InputError(
            f"flows row {unknown[0] + 1}: {row.source}->{row.target} is no demand of the problem"
        )
    ports = valid[["source_port", "target_port"]].astype(int)
    ports_of: dict[int, list[tuple[int | None, int | None]]] = {}
    for demand, source_port, other in zip(
        demand_rows.tolist(), ports["source_port"].tolist(), ports["target_port"].tolist(), strict=True
    ):
        ports_of.setdefault(demand, []).append((source_port, other))
    return {demand: tuple(pairs) for demand, pairs in ports_of.items()}


def _match_source_port(port: int | None, on: SplitOn, value_mask: tuple[int, int]) -> tuple[int, int]:
    if port is not None:
        return port, 0xFFFF
    return value_mask if on == "source port" else (0, 0)


def _flowlet_bits(flowlet_bytes: int) -> int:
    """Return the number of bits that count the bytes of a flowlet, ceil(log2(bytes))."""
    return (flowlet_bytes - 1).bit_length()
