"""Failures of links, nodes and shared-risk groups, and slow links; named or drawn from a seed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Final, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Bools, Floats, Ints
from planner.contract.table import Table, label
from planner.contract.tables import file_name, row_name, shorten_faults
from planner.errors import InputError, did_you_mean
from planner.io.table_files import read_table
from planner_models.traffic.problem.network_elements import DuplexLines, ElementNames
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


@dataclass(frozen=True, kw_only=True)
class Failures:
    """Elements of a network that fail, or lose capacity."""

    fail_links: FailLinks = ()
    fail_nodes: FailNodes = ()
    fail_groups: FailGroups = ()
    risk_groups: RiskGroups = None
    capacity_factors: CapacityFactors = field(default_factory=dict)
    fail_random_links: RandomLinks = 0
    fail_random_nodes: RandomNodes = 0
    fail_random_groups: RandomGroups = 0
    failure_seed: FailureSeed = 0
    lost_demands: LostDemands = "shed"

    def remove_from(self, problem: Traffic) -> Traffic:
        """Return the problem without the elements that fail: those named, then those drawn.

        raises  InputError for names that match nothing, for more failures than there are elements, and,
                with `lost_demands` "error", for demands that lose their last path
        """
        random_failures = self.fail_random_links or self.fail_random_nodes or self.fail_random_groups
        named = self.fail_links or self.fail_nodes or self.fail_groups or self.capacity_factors
        if not (named or random_failures):
            return problem
        failed = FailedElements(problem, self.risk_groups)
        failed.fail_links(self.fail_links)
        failed.fail_nodes(self.fail_nodes)
        failed.fail_groups(self.fail_groups)
        factor = failed.capacity_factors(self.capacity_factors)
        random = np.random.default_rng(self.failure_seed)
        if not failed.faults:
            failed.draw_groups(self.fail_random_groups, random)
            failed.draw_nodes(self.fail_random_nodes, random)
            failed.draw_links(self.fail_random_links, random)
        if failed.faults:
            raise InputError(*failed.faults)
        return remove_failed(problem, failed.link_down, factor, self.lost_demands)


class FailedElements:
    """Links and nodes that have failed, and the faults in the names that were given for them.

    link_down  (E,) links that have failed
    node_down  (N,) nodes that have failed
    faults     one line for each name that matches nothing and each number that is too large
    """

    def __init__(self, problem: Traffic, risk_groups: Path | None) -> None:
        self.problem = problem
        self.link_down = np.zeros(len(problem.links), dtype=bool)
        self.node_down = np.zeros(len(problem.nodes), dtype=bool)
        self._names = ElementNames(problem)
        self.faults = self._names.faults
        self._groups = None if risk_groups is None else self._read_groups(risk_groups)

    def fail_links(self, names: Sequence[str]) -> None:
        """Fail the links that match the names."""
        for name in names:
            self.link_down[self._names.match_links(name, "problem.fail_links")] = True

    def fail_nodes(self, names: Sequence[str]) -> None:
        """Fail the nodes that match the names, with their links."""
        for name in names:
            self._fail_nodes(self._names.match_nodes(name, "problem.fail_nodes"))

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
            target_factors = exact if self._names.is_exact(name) else matched
            rows = self._names.match_links(name, "problem.capacity_factors")
            target_factors[rows] = np.minimum(target_factors[rows], factor)
        combined = np.where(np.isfinite(exact), exact, matched)
        return np.where(np.isfinite(combined), combined, 1.0)

    def draw_groups(self, count: int, random: np.random.Generator) -> None:
        """Fail `count` random groups, of those that have not failed entirely."""
        if not count or (groups := self._require_groups("fail_random_groups")) is None:
            return
        members = list(groups.values())
        up = np.array([not self._is_down(links, nodes) for links, nodes in members], dtype=bool)
        for row in self._draw("fail_random_groups", "groups", up, count, random):
            self._fail_group(*members[row])

    def draw_nodes(self, count: int, random: np.random.Generator) -> None:
        """Fail `count` random nodes, of those where no demand starts or ends."""
        ends = np.zeros(len(self.problem.nodes), dtype=bool)
        ends[self.problem.source] = ends[self.problem.target] = True
        inner = np.flatnonzero(~ends)
        what = "nodes where no demand starts or ends"
        rows = self._draw("fail_random_nodes", what, ~self.node_down[inner], count, random)
        self._fail_nodes(inner[rows])

    def draw_links(self, count: int, random: np.random.Generator) -> None:
        """Fail `count` random lines; a line is a link and its opposite, as `DuplexLines` pairs them."""
        line = DuplexLines.group(self.problem, both_ways=True).of_link
        is_up = np.zeros(int(line.max(initial=-1)) + 1, dtype=bool)
        is_up[line[~self.link_down]] = True
        drawn = self._draw("fail_random_links", "links", is_up, count, random)
        self.link_down |= np.isin(line, drawn)

    def _draw(self, key: str, what: str, is_up: Bools, count: int, random: np.random.Generator) -> Ints:
        """Return the rows of `count` elements drawn among those that are up, ascending.

        All elements are drawn from, and those that are down are replaced: so the same ones fail whatever
        else has failed, unless that is one of them.
        """
        among = int(is_up.sum())
        if count > among:
            self.faults.append(f"problem.{key} is {count}, but there are {among} {what} left to fail")
            return np.zeros(0, dtype=np.int64)
        if not count:
            return np.zeros(0, dtype=np.int64)
        drawn = random.choice(len(is_up), size=count, replace=False)
        drawn = drawn[is_up[drawn]]
        others = np.setdiff1d(np.flatnonzero(is_up), drawn)
        more = (
            random.choice(others, size=count - len(drawn), replace=False)
            if len(drawn) < count
            else others[:0]
        )
        return np.sort(np.concatenate([drawn, more])).astype(np.int64)

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
                links = np.union1d(links, self._names.match_links(member, where))
            else:
                nodes = np.union1d(nodes, self._names.match_nodes(member, where))
            groups[name] = (links, nodes)
        self.faults[:] = shorten_faults(self.faults, file_name(frame, "risk_groups"), "that name nothing")
        return groups


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
                + ("; lost_demands = 'shed' lists such demands in the plan" if index == 0 else "")
                for index, k in enumerate(np.flatnonzero(lost).tolist())
            ]
            raise InputError(*shorten_faults(faults, "problem", "of demands without a path"))
        if lost.all():
            raise InputError("problem: failures leave no demand with a path")
        demands = demands[~lost]
    for old, new in ((problem.links, links), (problem.demands, demands)):
        new.attrs |= old.attrs
    known_down = problem.down
    if len(failed):  # tables and plans may name them
        number = np.where(problem.is_parallel, problem.parallel, 0)[down]
        failed = failed.assign(parallel=number.astype(float))
        known_down = failed if known_down is None else pd.concat([known_down, failed], ignore_index=True)
    return replace(problem, links=links, demands=demands, down=known_down)
