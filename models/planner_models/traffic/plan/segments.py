"""Segment lists of a plan (SR policies), and the flows that they make over shortest paths.

Between the nodes of a list traffic takes shortest paths with ECMP.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pandas as pd
import scipy.sparse as sp

from planner.arrays import Bools, Floats, Ints
from planner.contract.table import Table, label, number
from planner.contract.tables import abbreviate
from planner.errors import PlanRejected
from planner.search.tolerances import FEASIBILITY
from planner_models.flows import split_ratios
from planner_models.networks.node_lists import parse_nodes
from planner_models.traffic.problem.problem import Traffic

SEGMENTS: Final = Table(
    name="segments",
    about="segment list of a demand, with ECMP between its nodes; other demands follow shortest paths",
    columns={
        "source": label("node where the demand starts"),
        "target": label("node where the demand ends"),
        "segments": label("its intermediate nodes, then its target, A > B > C, or as a JSON list"),
        "share": number("of the demand's traffic on this list", more_than=0, at_most=1, share=True),
        "class": label("the demand's class, where demands have classes", optional=True),
    },
    may_be_empty=True,
)
SHARE_TOLERANCE: Final = FEASIBILITY  # of the sum of a demand's shares


def read_segments(
    problem: Traffic, table: pd.DataFrame, *, skip_unknown: bool = False
) -> Iterator[tuple[int, list[int], float]]:
    """Yield demand, nodes and share of each row of the table `segments`.

    skip_unknown  leave out rows that name a demand or a node that the problem does not have

    raises  PlanRejected for such a row, and for a list that does not end at the demand's target
    """
    if skip_unknown and problem.has_classes and "class" not in table:
        return
    row_of = {name: row for row, name in enumerate(problem.nodes["node"])}
    demands = problem.find_demands(table).tolist()
    columns = (table[name].tolist() for name in ("source", "target", "segments", "share"))
    for row, (demand, source, target, text, share) in enumerate(zip(demands, *columns, strict=True)):
        where = f"segments row {row + 1}"
        nodes = parse_nodes(str(text))
        is_known = demand >= 0 and bool(nodes) and row_of.keys() >= set(nodes)
        if skip_unknown and not is_known:
            continue
        if demand < 0:
            raise PlanRejected(f"{where}: {source}->{target} is no demand of the problem")
        _require_list(where, source, target, nodes, row_of)
        yield demand, [row_of[node] for node in nodes], float(share)


def _require_list(
    where: str, source: str, target: str, nodes: Sequence[str], row_of: Mapping[str, int]
) -> None:
    """Raise PlanRejected where nodes are no segment list from a source to a target."""
    if not nodes:
        raise PlanRejected(f"{where}: segments is an empty list, must end at the target {target}")
    unknown = [node for node in nodes if node not in row_of]
    if unknown:
        raise PlanRejected(f"{where}: '{abbreviate(unknown[0])}' is no node of the network")
    if nodes[-1] != target:
        raise PlanRejected(f"{where}: segments end at {nodes[-1]}, must end at the target {target}")
    if any(start == other for start, other in itertools.pairwise([source, *nodes])):
        raise PlanRejected(f"{where}: a node follows itself in {source}, {', '.join(nodes)}")


def flow_on_segments(problem: Traffic, table: pd.DataFrame, sent_mbps: Floats) -> sp.csr_array:
    """Return the flow of each demand on each link, (K, E) Mbit/s, where (K,) Mbit/s follow the table.

    raises  PlanRejected for rows that `read_segments` refuses, shares that do not add up to 1, and a segment
            without a path
    """
    demand: list[int] = []
    source: list[int] = []
    target: list[int] = []
    amount: list[float] = []
    total = np.zeros(len(problem.demands))
    for k, nodes, share in read_segments(problem, table):
        total[k] += share
        ends = [int(problem.source[k]), *nodes]
        demand += [k] * len(nodes)
        source += ends[:-1]
        target += nodes
        amount += [share * sent_mbps[k]] * len(nodes)
    wrong = np.flatnonzero((total > 0) & (np.abs(total - 1) > SHARE_TOLERANCE))
    if len(wrong):
        k = int(wrong[0])
        raise PlanRejected(
            f"segments: the shares of {problem.demand_labels[k]} add up to {total[k]:.6g}, must be 1"
        )
    plain = np.flatnonzero((total == 0) & (sent_mbps > 0))
    rows = np.concatenate([np.array(demand, dtype=np.int64), plain])
    starts = np.concatenate([np.array(source, dtype=np.int64), problem.source[plain]])
    ends_at = np.concatenate([np.array(target, dtype=np.int64), problem.target[plain]])
    amounts = np.concatenate([np.array(amount), sent_mbps[plain]])
    count = len(problem.nodes)
    pairs, leg = np.unique(starts * count + ends_at, return_inverse=True)
    shares = _shares_between(problem, pairs // count, pairs % count)
    take = sp.csr_array((amounts, (rows, leg)), shape=(len(problem.demands), len(pairs)))
    return sp.csr_array(take @ shares)


def _shares_between(problem: Traffic, source: Ints, target: Ints) -> sp.csr_array:
    """Return the link shares, (P, E), of ECMP traffic from each source to its target, nodes (P,)."""
    if not len(source):
        return sp.csr_array((0, len(problem.links)))
    names = problem.nodes["node"].to_numpy()
    pairs = pd.DataFrame({"source": names[source], "target": names[target], "rate_mbps": 1.0})
    legs = Traffic(nodes=problem.nodes, links=problem.links, demands=pairs)
    if legs.unreachable.any():
        leg = int(legs.unreachable.argmax())
        raise PlanRejected(f"segments: there is no path from {names[source[leg]]} to {names[target[leg]]}")
    ratios = split_ratios.split_evenly(legs, split_ratios.shortest_path_links(legs))
    return sp.csr_array(split_ratios.apply_ratios(legs, ratios, np.ones(len(source))))


def count_segments(problem: Traffic, table: pd.DataFrame, served_mbps: Floats) -> tuple[int, float | None]:
    """Return the number of demands with an intermediate node, and the mean segments of all that is sent.

    The mean is over demands that are sent, and within a demand by share; None where none is sent.
    """
    extra = np.zeros(len(problem.demands))
    is_moved = np.zeros(len(problem.demands), dtype=bool)
    for demand, nodes, share in read_segments(problem, table):
        extra[demand] += share * (len(nodes) - 1)
        is_moved[demand] |= len(nodes) > 1
    sent = served_mbps > 0
    mean = float(1 + extra[sent].mean()) if sent.any() else None
    return int((is_moved & sent).sum()), mean


def segment_shares(problem: Traffic, lists: Sequence[tuple[int, ...]]) -> tuple[sp.csr_array, Bools]:
    """Return the share of a list's traffic on each link, (T, E), and whether each list can be followed, (T,).

    lists  nodes by row; between two of them, traffic splits evenly at each node over the links on shortest
           paths. A list with a segment without a path has shares for its other segments only
    """
    pairs = sorted({pair for nodes in lists for pair in itertools.pairwise(nodes)})
    shape = (len(lists), len(problem.links))
    if not pairs:
        return sp.csr_array(shape), np.zeros(len(lists), dtype=bool)
    names = problem.nodes["node"].to_numpy()
    ends = np.array(pairs, dtype=np.int64)
    demands = pd.DataFrame({"source": names[ends[:, 0]], "target": names[ends[:, 1]], "rate_mbps": 1.0})
    legs = replace(problem, demands=demands, classes=None, tunnels=None, rules=None)
    ratios = split_ratios.split_evenly(legs, split_ratios.shortest_path_links(legs))
    share = sp.csr_array(split_ratios.apply_ratios(legs, ratios, np.where(legs.unreachable, 0.0, 1.0)))
    index_of = {pair: row for row, pair in enumerate(pairs)}
    entries = [(t, index_of[pair]) for t, nodes in enumerate(lists) for pair in itertools.pairwise(nodes)]
    row, leg = np.array(entries, dtype=np.int64).T
    uses = sp.csr_array((np.ones(len(row)), (row, leg)), shape=(len(lists), len(pairs)))
    return sp.csr_array(uses @ share), (uses @ legs.unreachable.astype(float)) == 0
