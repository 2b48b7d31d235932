"""What breaks: links, nodes, shared-risk groups and slow links, named or drawn from a seed."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Final, Literal

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from pydantic import Field
from scipy.sparse.csgraph import dijkstra

from planner.errors import InputError, did_you_mean
from planner.table_files import read_table
from planner.tables import Table, few, file_name, label, row_name
from planner_models.traffic.problem import Traffic

Lost = Literal["error", "drop"]

RISK_GROUPS: Final = Table(
    name="risk_groups",
    about="what fails together, such as the links in one duct",
    columns={
        "group": label("name of the group"),
        "member": label("a link, tail->head or tail<->head, or a node; * ? [..] match any names"),
    },
)

FailLinks = Annotated[
    tuple[str, ...],
    Field(
        description="links that fail: tail->head, or tail<->head for both ways; * ? [..] match any "
        "names; #2 at the end means the second of parallel links, otherwise all of them fail"
    ),
]
FailNodes = Annotated[
    tuple[str, ...], Field(description="nodes that fail, with all their links; * ? [..] match")
]
FailGroups = Annotated[tuple[str, ...], Field(description="groups of the table risk_groups that fail")]
RiskGroups = Annotated[
    Path | None,
    Field(description="table of what fails together: group, member; a member is a link or a node as above"),
]
DownRate = Annotated[
    dict[str, float],
    Field(description="links that slow down, named as in fail_links, and to what share of their capacity"),
]
RandomLinks = Annotated[
    int, Field(ge=0, description="so many links more fail, drawn from failure_seed; both ways fail together")
]
RandomNodes = Annotated[
    int,
    Field(ge=0, description="so many nodes more fail, drawn from those where no demand starts or ends"),
]
RandomGroups = Annotated[int, Field(ge=0, description="so many groups more of risk_groups fail, drawn")]
FailureSeed = Annotated[int, Field(ge=0, description="where failures are drawn")]
LostDemands = Annotated[
    Lost,
    Field(description="demands that lose their last path: error, or drop them from the problem"),
]


def fail(
    problem: Traffic,
    *,
    fail_links: FailLinks = (),
    fail_nodes: FailNodes = (),
    fail_groups: FailGroups = (),
    risk_groups: RiskGroups = None,
    down_rate: DownRate = {},  # noqa: B006 - never changed
    fail_random_links: RandomLinks = 0,
    fail_random_nodes: RandomNodes = 0,
    fail_random_groups: RandomGroups = 0,
    failure_seed: FailureSeed = 0,
    lost_demands: LostDemands = "error",
) -> Traffic:
    """The problem without what has failed; nodes stay in the table, without links.

    First what is named fails, then what is drawn, among what is left: groups, nodes, links. Where one
    of several parallel links fails, those after it move up by one number.

    raises  InputError for names that are none, more failures than there is to fail, and, unless
            they are to be dropped, demands without a path that is left
    """
    if not (
        fail_links
        or fail_nodes
        or fail_groups
        or down_rate
        or fail_random_links
        or fail_random_nodes
        or fail_random_groups
    ):
        return problem
    broken = _Failures(problem, risk_groups)
    broken.lose_links(fail_links)
    broken.lose_nodes(fail_nodes)
    broken.lose_groups(fail_groups)
    share = broken.slowed(down_rate)
    random = np.random.default_rng(failure_seed)
    if not broken.faults:
        broken.draw_groups(fail_random_groups, random)
        broken.draw_nodes(fail_random_nodes, random)
        broken.draw_links(fail_random_links, random)
    if broken.faults:
        raise InputError(*broken.faults)
    return _without(problem, broken.down, share, lost_demands)


class _Failures:
    """Links and nodes that are down, and what is wrong with how they were named."""

    def __init__(self, problem: Traffic, risk_groups: Path | None) -> None:
        self.problem = problem
        self.down = np.zeros(len(problem.links), dtype=bool)
        self.gone = np.zeros(len(problem.nodes), dtype=bool)
        self.faults: list[str] = []
        self.given = risk_groups is not None
        self.risks = {} if risk_groups is None else self._read(risk_groups)

    def matching(self, name: str, where: str) -> NDArray[np.int64]:
        """The links that `tail->head` or `tail<->head` names; a fault where there are none."""
        one_way = _one_way(name)
        if not one_way:
            self.faults.append(f"{where}: '{name}' is no link, write tail->head or tail<->head")
            return np.zeros(0, dtype=np.int64)
        names = self._bare, self._numbered
        rows = {
            row
            for pattern in one_way
            for row in (
                [row for known in names for row, name in enumerate(known) if name == pattern]
                or [row for known in names for row in _matches(known, pattern)]
            )
        }
        if not rows:
            near = did_you_mean(one_way[0], self.problem.link_labels)
            self.faults.append(f"{where}: '{name}' matches no link" + near)
        return np.array(sorted(rows), dtype=np.int64)

    def node_rows(self, name: str, where: str) -> NDArray[np.int64]:
        """The nodes of that name, or that it matches; a fault where there are none."""
        nodes = self.problem.nodes["node"].tolist()
        rows = [nodes.index(name)] if name in nodes else _matches(nodes, name)
        if not rows:
            self.faults.append(f"{where}: '{name}' matches no node" + did_you_mean(name, nodes))
        return np.array(rows, dtype=np.int64)

    @cached_property
    def _numbered(self) -> list[str]:
        return [f"{name}#{number}" for name, number in zip(self._bare, self.problem.parallel, strict=True)]

    @cached_property
    def _bare(self) -> list[str]:
        links = self.problem.links
        return [f"{tail}->{head}" for tail, head in zip(links["tail"], links["head"], strict=True)]

    def lose_links(self, names: Sequence[str]) -> None:
        for name in names:
            self.down[self.matching(name, "problem.fail_links")] = True

    def lose_nodes(self, names: Sequence[str]) -> None:
        for name in names:
            self._lose(self.node_rows(name, "problem.fail_nodes"))

    def lose_groups(self, names: Sequence[str]) -> None:
        for name in names:
            if not self.given:
                self.faults.append("problem.fail_groups: needs problem.risk_groups, the table of groups")
                return
            if name not in self.risks:
                near = did_you_mean(name, self.risks)
                self.faults.append(f"problem.fail_groups: no such group '{name}'{near}")
                continue
            self._lose_group(name)

    def slowed(self, down_rate: Mapping[str, float]) -> NDArray[np.float64]:
        """(E,) the share of its capacity that each link keeps."""
        share = np.ones(len(self.problem.links))
        for name, kept in down_rate.items():
            rows = self.matching(name, "problem.down_rate")
            if not (math.isfinite(kept) and 0 < kept <= 1):
                self.faults.append(
                    f"problem.down_rate: '{name}' is {kept}, must be a share greater than 0 and at most 1"
                )
            share[rows] = np.minimum(share[rows], kept)
        return share

    def draw_groups(self, count: int, random: np.random.Generator) -> None:
        if count and not self.given:
            self.faults.append("problem.fail_random_groups: needs problem.risk_groups, the table of groups")
            return
        names = [name for name, (links, nodes) in self.risks.items() if self._stands(links, nodes)]
        for place in self._drawn("fail_random_groups", "groups", len(names), count, random):
            self._lose_group(names[place])

    def draw_nodes(self, count: int, random: np.random.Generator) -> None:
        problem = self.problem
        ends = np.zeros(len(problem.nodes), dtype=bool)
        ends[problem.source] = ends[problem.target] = True
        inner = np.flatnonzero(~ends & ~self.gone)
        what = "nodes where no demand starts or ends"
        self._lose(inner[self._drawn("fail_random_nodes", what, len(inner), count, random)])

    def draw_links(self, count: int, random: np.random.Generator) -> None:
        problem = self.problem
        # a link and its way back are one cable; parallel ones pair up by number
        low, high = np.minimum(problem.tail, problem.head), np.maximum(problem.tail, problem.head)
        cable = pd.DataFrame({"low": low, "high": high, "number": problem.parallel})
        _, of = np.unique(cable.to_numpy(), axis=0, return_inverse=True)
        of = of.ravel()
        left = np.unique(of[~self.down])
        chosen = left[self._drawn("fail_random_links", "links", len(left), count, random)]
        self.down |= np.isin(of, chosen)

    def _drawn(
        self, key: str, what: str, among: int, count: int, random: np.random.Generator
    ) -> NDArray[np.int64]:
        if count > among:
            self.faults.append(f"problem.{key} is {count}, but there are {among} {what} left to fail")
            return np.zeros(0, dtype=np.int64)
        return np.sort(random.choice(among, size=count, replace=False)) if count else np.zeros(0, np.int64)

    def _stands(self, links: NDArray[np.int64], nodes: NDArray[np.int64]) -> bool:
        return bool((~self.down[links]).any() or (~self.gone[nodes]).any())

    def _lose_group(self, name: str) -> None:
        links, nodes = self.risks[name]
        self.down[links] = True
        self._lose(nodes)

    def _lose(self, nodes: NDArray[np.int64]) -> None:
        self.gone[nodes] = True
        self.down |= self.gone[self.problem.tail] | self.gone[self.problem.head]

    def _read(self, path: Path) -> dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Links and nodes of each group."""
        frame = read_table(RISK_GROUPS, path)
        none = np.zeros(0, dtype=np.int64)
        groups: dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]] = {}
        for row, (name, member) in enumerate(zip(frame["group"], frame["member"], strict=True)):
            links, nodes = groups.get(name, (none, none))
            where = row_name(frame, "risk_groups", row)
            if "->" in member:
                links = np.union1d(links, self.matching(member, where))
            else:
                nodes = np.union1d(nodes, self.node_rows(member, where))
            groups[name] = (links, nodes)
        self.faults = few(self.faults, file_name(frame, "risk_groups"), "that name nothing")
        return groups


def _one_way(name: str) -> list[str]:
    """`tail->head` as it is; of `tail<->head` both ways; none where it is neither."""
    if "<->" in name:
        tail, _, rest = name.partition("<->")
        head, mark, number_ = rest.partition("#")
        return [f"{tail}->{rest}", f"{head}->{tail}{mark}{number_}"]
    return [name] if "->" in name else []


def _matches(names: Sequence[str], pattern: str) -> list[int]:
    return [row for row, name in enumerate(names) if fnmatch.fnmatchcase(name, pattern)]


def _without(
    problem: Traffic,
    down: NDArray[np.bool_],
    share: NDArray[np.float64],
    lost_demands: Lost,
) -> Traffic:
    """The problem on the links that are left, each with that share of its capacity."""
    if down.all():
        raise InputError("problem: failures leave no link")
    links = problem.links.assign(capacity_mbps=problem.capacity_mbps * share)[~down]
    lost = _lost(problem, ~down)
    demands = problem.demands
    if lost.any():
        if lost_demands == "error":
            faults = [
                f"problem: failures leave demand {problem.demand_labels[k]} without a path"
                + ("; lost_demands = 'drop' leaves such demands out" if place == 0 else "")
                for place, k in enumerate(np.flatnonzero(lost).tolist())
            ]
            raise InputError(*few(faults, "problem", "of demands without a path"))
        if lost.all():
            raise InputError("problem: failures leave no demand with a path")
        demands = demands[~lost]
    for old, new in ((problem.links, links), (problem.demands, demands)):
        new.attrs |= old.attrs
    return Traffic(nodes=problem.nodes, links=links, demands=demands)


def _lost(problem: Traffic, up: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(K,) demands with a rate that no links left lead to their target."""
    count = len(problem.nodes)
    graph = sp.csr_array((np.ones(int(up.sum())), (problem.head[up], problem.tail[up])), shape=(count, count))
    targets, row = np.unique(problem.target, return_inverse=True)
    hops = dijkstra(graph, indices=targets, unweighted=True)
    lost: NDArray[np.bool_] = np.isinf(hops[row, problem.source]) & (problem.rate_mbps > 0)
    return lost
