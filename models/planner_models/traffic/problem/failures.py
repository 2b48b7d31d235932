"""Failures of links, nodes and shared-risk groups, and slow links; named or drawn from a seed."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Final, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Bools, Floats, Ints
from planner.contract.tables import Table, file_name, label, row_name, shorten_faults
from planner.errors import InputError, did_you_mean
from planner.io.table_files import read_table
from planner_models.traffic.problem.duplex_lines import DuplexLines
from planner_models.traffic.problem.problem import Traffic

LostDemandPolicy = Literal["shed", "drop", "error"]

RISK_GROUPS: Final = Table(
    name="risk_groups",
    about="elements that fail together, such as the links in one duct",
    columns={
        "group": label("name of the group"),
        "member": label("a link, tail->head or tail<->head, or a node; * ? [..] match any names"),
    },
)

FailLinks = Annotated[
    tuple[str, ...],
    Field(
        description="links that fail: tail->head, or tail<->head for both ways; #2 at the end means the "
        "second of parallel links, otherwise all of them fail; * ? [..] match any names where no link has "
        "exactly this one"
    ),
]
FailNodes = Annotated[
    tuple[str, ...],
    Field(
        description="nodes that fail, with all their links; * ? [..] match any names where no node has "
        "exactly this one"
    ),
]
FailGroups = Annotated[tuple[str, ...], Field(description="groups of the table risk_groups that fail")]
RiskGroups = Annotated[
    Path | None,
    Field(description="table of groups that fail together: group, member; a member is a link or a node"),
]
CapacityFactors = Annotated[
    dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]],
    Field(
        description="links whose capacity is multiplied, named as in fail_links, and by what; an exact name "
        "counts before names with * ? [..], and of several the smallest"
    ),
]
RandomLinks = Annotated[
    int, Field(ge=0, description="number of further links that fail at random; both directions fail together")
]
RandomNodes = Annotated[
    int,
    Field(ge=0, description="number of further nodes that fail at random, where no demand starts or ends"),
]
RandomGroups = Annotated[
    int, Field(ge=0, description="number of further groups of risk_groups that fail at random")
]
FailureSeed = Annotated[int, Field(ge=0, description="seed of random failures")]
LostDemands = Annotated[
    LostDemandPolicy,
    Field(
        description="demands that lose their last path: shed (the plan lists them, and they count as not "
        "served), drop them from the problem, or error"
    ),
]


_Groups = dict[str, tuple[Ints, Ints]]
"""Links and nodes of each shared-risk group."""


class FailureSet:
    """Links and nodes that have failed, and the faults in the names that were given for them.

    link_down  (E,) links that have failed
    node_down  (N,) nodes that have failed
    faults     one line for each name that matches nothing and each number that is too large
    """

    def __init__(self, problem: Traffic, risk_groups: Path | None) -> None:
        self.problem = problem
        self.link_down = np.zeros(len(problem.links), dtype=bool)
        self.node_down = np.zeros(len(problem.nodes), dtype=bool)
        self.faults: list[str] = []
        self._groups = None if risk_groups is None else self._read_groups(risk_groups)

    def match_links(self, name: str, where: str) -> Ints:
        """Return the links that match `tail->head` or `tail<->head`; record a fault where none does."""
        if name in self._rows_by_line:
            return self._rows_by_line[name]
        patterns = _expand_directions(name)
        if not patterns:
            self.faults.append(f"{where}: '{name}' is no link, write tail->head or tail<->head")
            return np.zeros(0, dtype=np.int64)
        rows = self._links_named(patterns)
        if not rows:
            known = self._link_names, self._numbered_names
            rows = {row for pattern in patterns for names in known for row in _match_names(names, pattern)}
        if not rows:
            near = did_you_mean(patterns[0], self.problem.link_labels)
            self.faults.append(f"{where}: '{name}' matches no link" + near)
        return np.array(sorted(rows), dtype=np.int64)

    def is_exact(self, name: str) -> bool:
        """Return whether links have exactly this name, so that it is no pattern."""
        return name in self._rows_by_line or bool(self._links_named(_expand_directions(name)))

    def _links_named(self, names: Sequence[str]) -> set[int]:
        return {row for name in names for row in self._rows_by_name.get(name, ())}

    @cached_property
    def _rows_by_line(self) -> dict[str, Ints]:
        """The links of each line whose name no other line has."""
        lines = DuplexLines.group(self.problem, both_ways=True)
        rows = np.split(np.argsort(lines.of_link, kind="stable"), np.cumsum(np.bincount(lines.of_link))[:-1])
        return {lines.names[line]: rows[line] for line in lines.unique}

    @cached_property
    def _rows_by_name(self) -> dict[str, list[int]]:
        """The links of each name, with and without their number."""
        rows: dict[str, list[int]] = {}
        for names in (self._link_names, self._numbered_names):
            for row, name in enumerate(names):
                rows.setdefault(name, []).append(row)
        return rows

    def match_nodes(self, name: str, where: str) -> Ints:
        """Return the node of that name, or the nodes that match it; record a fault where none does."""
        nodes = self.problem.nodes["node"].tolist()
        rows = [nodes.index(name)] if name in nodes else _match_names(nodes, name)
        if not rows:
            self.faults.append(f"{where}: '{name}' matches no node" + did_you_mean(name, nodes))
        return np.array(rows, dtype=np.int64)

    @cached_property
    def _numbered_names(self) -> list[str]:
        numbers = self.problem.parallel
        return [f"{name}#{number}" for name, number in zip(self._link_names, numbers, strict=True)]

    @cached_property
    def _link_names(self) -> list[str]:
        links = self.problem.links
        return [f"{tail}->{head}" for tail, head in zip(links["tail"], links["head"], strict=True)]

    def fail_links(self, names: Sequence[str]) -> None:
        """Fail the links that match the names."""
        for name in names:
            self.link_down[self.match_links(name, "problem.fail_links")] = True

    def fail_nodes(self, names: Sequence[str]) -> None:
        """Fail the nodes that match the names, with their links."""
        for name in names:
            self._fail_nodes(self.match_nodes(name, "problem.fail_nodes"))

    def fail_groups(self, names: Sequence[str]) -> None:
        """Fail the links and nodes of the shared-risk groups."""
        if not names or (groups := self._require_groups("fail_groups")) is None:
            return
        for name in names:
            if name in groups:
                self._fail_group(*groups[name])
            else:
                near = did_you_mean(name, groups)
                self.faults.append(f"problem.fail_groups: no such group '{name}'{near}")

    def capacity_factors(self, factors: Mapping[str, float]) -> Floats:
        """Return the factor of each link's capacity, shape (E,): that of its exact name, else of patterns."""
        exact, matched = (np.full(len(self.problem.links), math.inf) for _ in range(2))
        for name, factor in factors.items():
            if not (math.isfinite(factor) and factor > 0):
                self.faults.append(f"problem.capacity_factors: '{name}' is {factor}, must be greater than 0")
            found = exact if self.is_exact(name) else matched
            rows = self.match_links(name, "problem.capacity_factors")
            found[rows] = np.minimum(found[rows], factor)
        chosen = np.where(np.isfinite(exact), exact, matched)
        return np.where(np.isfinite(chosen), chosen, 1.0)

    def draw_groups(self, count: int, random: np.random.Generator) -> None:
        """Fail `count` random groups, of those that have not failed entirely."""
        if not count or (groups := self._require_groups("fail_random_groups")) is None:
            return
        up = [(links, nodes) for links, nodes in groups.values() if not self._is_down(links, nodes)]
        for place in self._draw("fail_random_groups", "groups", len(up), count, random):
            self._fail_group(*up[place])

    def draw_nodes(self, count: int, random: np.random.Generator) -> None:
        """Fail `count` random nodes, of those where no demand starts or ends."""
        ends = np.zeros(len(self.problem.nodes), dtype=bool)
        ends[self.problem.source] = ends[self.problem.target] = True
        inner = np.flatnonzero(~ends & ~self.node_down)
        what = "nodes where no demand starts or ends"
        self._fail_nodes(inner[self._draw("fail_random_nodes", what, len(inner), count, random)])

    def draw_links(self, count: int, random: np.random.Generator) -> None:
        """Fail `count` random lines; a line is a link and its opposite, as `DuplexLines` pairs them."""
        line = DuplexLines.group(self.problem, both_ways=True).of_link
        up = np.unique(line[~self.link_down])
        chosen = up[self._draw("fail_random_links", "links", len(up), count, random)]
        self.link_down |= np.isin(line, chosen)

    def _draw(self, key: str, what: str, among: int, count: int, random: np.random.Generator) -> Ints:
        if count > among:
            self.faults.append(f"problem.{key} is {count}, but there are {among} {what} left to fail")
            return np.zeros(0, dtype=np.int64)
        return np.sort(random.choice(among, size=count, replace=False)) if count else np.zeros(0, np.int64)

    def _require_groups(self, key: str) -> _Groups | None:
        """Return the groups; record a fault where there is no table of them."""
        if self._groups is None:
            self.faults.append(f"problem.{key}: needs problem.risk_groups, the table of groups")
        return self._groups

    def _is_down(self, links: Ints, nodes: Ints) -> bool:
        return bool(self.link_down[links].all() and self.node_down[nodes].all())

    def _fail_group(self, links: Ints, nodes: Ints) -> None:
        self.link_down[links] = True
        self._fail_nodes(nodes)

    def _fail_nodes(self, nodes: Ints) -> None:
        self.node_down[nodes] = True
        self.link_down |= self.node_down[self.problem.tail] | self.node_down[self.problem.head]

    def _read_groups(self, path: Path) -> _Groups:
        """Read the links and nodes of each group."""
        frame = read_table(RISK_GROUPS, path)
        none = np.zeros(0, dtype=np.int64)
        groups: _Groups = {}
        for row, (name, member) in enumerate(zip(frame["group"], frame["member"], strict=True)):
            links, nodes = groups.get(name, (none, none))
            where = row_name(frame, "risk_groups", row)
            if "->" in member:
                links = np.union1d(links, self.match_links(member, where))
            else:
                nodes = np.union1d(nodes, self.match_nodes(member, where))
            groups[name] = (links, nodes)
        self.faults = shorten_faults(self.faults, file_name(frame, "risk_groups"), "that name nothing")
        return groups


def _expand_directions(name: str) -> list[str]:
    """Return `tail->head` as it is, both directions of `tail<->head`, or nothing for other names."""
    if "<->" in name:
        tail, _, rest = name.partition("<->")
        head, separator, number = rest.partition("#")
        return [f"{tail}->{rest}", f"{head}->{tail}{separator}{number}"]
    return [name] if "->" in name else []


def _match_names(names: Sequence[str], pattern: str) -> list[int]:
    return [row for row, name in enumerate(names) if fnmatch.fnmatchcase(name, pattern)]


def remove_failed(problem: Traffic, down: Bools, factor: Floats, lost_demands: LostDemandPolicy) -> Traffic:
    """Return the problem on the links that are up, with their capacities multiplied, shape (E,).

    Parallel links keep their numbers.
    """
    links = problem.links
    if (problem.is_parallel & down).any():
        links = links.assign(parallel=np.where(problem.is_parallel, problem.parallel, 0).astype(float))
    with np.errstate(over="ignore"):  # an infinite capacity is reported as a fault
        links = links.assign(capacity_mbps=problem.capacity_mbps * factor)
    failed, links = links[down], links[~down]
    lost = problem.disconnected_demands(~down)
    demands = problem.demands
    if lost_demands != "shed" and lost.any():
        if lost_demands == "error":
            faults = [
                f"problem: failures leave demand {problem.demand_labels[k]} without a path"
                + ("; lost_demands = 'shed' lists such demands in the plan" if place == 0 else "")
                for place, k in enumerate(np.flatnonzero(lost).tolist())
            ]
            raise InputError(*shorten_faults(faults, "problem", "of demands without a path"))
        if lost.all():
            raise InputError("problem: failures leave no demand with a path")
        demands = demands[~lost]
    for old, new in ((problem.links, links), (problem.demands, demands)):
        new.attrs |= old.attrs
    known_down = problem.down
    if problem.has_routes and len(failed):  # tunnels and rules may name them
        number = np.where(problem.is_parallel, problem.parallel, 0)[down]
        failed = failed.assign(parallel=number.astype(float))
        known_down = failed if known_down is None else pd.concat([known_down, failed], ignore_index=True)
    return replace(problem, links=links, demands=demands, down=known_down)
