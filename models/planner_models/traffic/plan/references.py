"""Links, classes and routes that rows of a plan's tables name; PlanRejected where the problem has none.

Routes have nodes, links, and a flow on these.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
import scipy.sparse as sp

from planner.arrays import Bools, Ints
from planner.contract.tables import abbreviate
from planner.errors import PlanRejected
from planner_models.networks.node_lists import parse_list, parse_nodes
from planner_models.traffic.plan.segments import segment_shares
from planner_models.traffic.problem.problem import Traffic


def require_classes(problem: Traffic, table: pd.DataFrame, name: str) -> None:
    """Raise PlanRejected where demands have classes and a plan's table does not say which."""
    if not problem.has_classes:
        return
    if "class" not in table:
        raise PlanRejected(f"{name}: column 'class' is missing; demands have classes")
    unknown = np.flatnonzero(problem.find_classes(table) == -1)
    if len(unknown):
        row = int(unknown[0])
        raise PlanRejected(f"{name} row {row + 1}: class '{table['class'].iloc[row]}' is no class of demands")


def require_targets(problem: Traffic, names: pd.Series, where: str) -> Ints:
    """Return each named target as a row of `problem.targets`; PlanRejected where no demand has it."""
    node, targets = problem.find_nodes(names), problem.targets
    row = np.minimum(np.searchsorted(targets, node), max(len(targets) - 1, 0)).astype(np.int64)
    is_target = targets[row] == node if len(targets) else np.zeros(len(row), dtype=bool)
    if not is_target.all():
        first = int(np.argmin(is_target))
        raise PlanRejected(f"{where} row {first + 1}: '{names.iloc[first]}' is the target of no demand")
    return row


def require_links(
    problem: Traffic, tail: Iterable[str], head: Iterable[str], parallel: Iterable[float], where: str
) -> Ints:
    """Return the link of each (tail, head, parallel); PlanRejected where there is no such link."""
    tails, heads, numbers = (pd.Series(column) for column in (tail, head, parallel))
    if numbers.dtype.kind == "i" and len(numbers) and 1 <= numbers.min() <= numbers.max() <= 2**31:
        written, wrong = numbers.to_numpy(), np.zeros(0, dtype=np.int64)
    else:
        written = numbers.to_numpy(float, copy=False)
        wrong = np.flatnonzero(~((written >= 1) & (written <= 2**31) & (written % 1 == 0)))
    if len(wrong):
        row = int(wrong[0])
        raise PlanRejected(
            f"{where} row {row + 1}: parallel is {written[row]:g}, must be a whole number from 1"
        )
    nth = written.astype(np.int64, copy=False)
    link = problem.find_links(problem.find_nodes(tails), problem.find_nodes(heads), nth)
    unknown = np.flatnonzero(link < 0)
    if len(unknown):
        row = int(unknown[0])
        extra = f"#{nth[row]}" if nth[row] > 1 else ""
        more = f" and {len(unknown) - 1} rows more" if len(unknown) > 1 else ""
        raise PlanRejected(
            f"{where} row {row + 1}: {tails.iloc[row]}->{heads.iloc[row]}{extra} "
            f"is no link of the network{more}"
        )
    return link


def flow_on_routes(problem: Traffic, routes: pd.DataFrame) -> sp.coo_array:
    """Return the flow of each demand on each link, (K, E) Mbit/s, of the table `routes`."""
    require_classes(problem, routes, "routes")
    demand, nodes, rate = problem.find_demands(routes), list_routes(problem, routes), routes["rate_mbps"]
    columns = [routes[name].tolist() for name in ("source", "target")]
    names = problem.nodes["node"].tolist()
    for row, (source, target, path) in enumerate(zip(*columns, nodes, strict=True)):
        ends = names[path[0]], names[path[-1]]
        if demand[row] < 0 or ends != (source, target):
            what = (
                "is no demand of the problem" if demand[row] < 0 else "has a path from {} to {}".format(*ends)
            )
            raise PlanRejected(f"routes row {row + 1}: {source}->{target} {what}")
    uses = links_of_routes(problem, routes, nodes)
    amount = sp.diags_array(rate.to_numpy(float)) @ uses
    incidence = sp.csr_array(
        (np.ones(len(demand)), (demand, np.arange(len(demand)))), shape=(len(problem.demands), len(demand))
    )
    return sp.coo_array(incidence @ amount)


def list_routes(problem: Traffic, routes: pd.DataFrame) -> list[tuple[int, ...]]:
    """Return the nodes of each of the table `routes`; PlanRejected for paths that are none."""
    node_of = {name: node for node, name in enumerate(problem.nodes["node"].tolist())}
    listed = []
    for row, text in enumerate(routes["path"].tolist()):
        path = _parse_path(text, row)
        unknown = [name for name in path if name not in node_of]
        if unknown:
            raise PlanRejected(f"routes row {row + 1}: '{unknown[0]}' is no node of the network")
        listed.append(tuple(node_of[name] for name in path))
    return listed


def links_of_routes(problem: Traffic, routes: pd.DataFrame, nodes: Sequence[tuple[int, ...]]) -> sp.csr_array:
    """Return the share of a route's traffic on each link, (R, E); PlanRejected for a step without a link."""
    by_segments = is_by_segments(routes)
    names = problem.nodes["node"].to_numpy()
    rows: list[int] = []
    tails: list[int] = []
    heads: list[int] = []
    numbers: list[int] = []
    parallel = routes["parallel"].tolist() if "parallel" in routes else [""] * len(routes)
    for row, path in enumerate(nodes):
        if by_segments[row]:
            continue
        hops = len(path) - 1
        rows += [row] * hops
        tails += path[:-1]
        heads += path[1:]
        numbers += _parse_parallels(parallel[row], row, hops) if parallel[row] else [1] * hops
    link = require_links(
        problem, names[np.array(tails, dtype=int)], names[np.array(heads, dtype=int)], numbers, "routes"
    )
    shape = (len(routes), len(problem.links))
    uses = sp.csr_array((np.ones(len(link)), (np.array(rows, dtype=int), link)), shape=shape)
    if not by_segments.any():
        return uses
    shares, is_followed = segment_shares(
        problem, [nodes[row] for row in np.flatnonzero(by_segments).tolist()]
    )
    if not is_followed.all():
        row = int(np.flatnonzero(by_segments)[int(np.argmin(is_followed))])
        raise PlanRejected(f"routes row {row + 1}: has a segment without a path")
    segment_rows = np.flatnonzero(by_segments)
    spread = sp.csr_array(
        (np.ones(len(segment_rows)), (segment_rows, np.arange(len(segment_rows)))),
        shape=(len(routes), len(segment_rows)),
    )
    return sp.csr_array(uses + spread @ shares)


def is_by_segments(routes: pd.DataFrame) -> Bools:
    """Return whether each route is a list of segments, (R,); PlanRejected for an unknown kind."""
    if "kind" not in routes:
        return np.zeros(len(routes), dtype=bool)
    kind = routes["kind"].to_numpy()
    wrong = np.flatnonzero(~np.isin(kind.astype(str), ("", "explicit", "segments")))
    if len(wrong):
        text = abbreviate(kind[wrong[0]])
        raise PlanRejected(f"routes row {wrong[0] + 1}: kind is '{text}', must be explicit or segments")
    return np.asarray(kind == "segments")


def _parse_parallels(text: str, row: int, hops: int) -> list[int]:
    numbers = parse_list(text)
    if numbers is None or len(numbers) != hops or not all(isinstance(n, int) for n in numbers):
        raise PlanRejected(
            f"routes row {row + 1}: parallel is '{abbreviate(text)}', must be a JSON list of {hops} numbers"
        )
    return numbers


def _parse_path(text: str, row: int) -> list[str]:
    path = parse_nodes(text)
    if len(path) < 2:
        raise PlanRejected(
            f"routes row {row + 1}: path is '{abbreviate(text)}', must be names of nodes, A > B > C, or a "
            "JSON list"
        )
    return path
