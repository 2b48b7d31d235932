"""Restrictions on the routes of each demand: latency limits, and links, nodes and paths to use or avoid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.search.tolerances import ROUNDING
from planner_models.flows.problem import FlowProblem

LATENCY_TOLERANCE = ROUNDING  # relative; a route may be longer than its limit by rounding

Sequences = tuple[tuple[int, ...], ...]
"""Lists of nodes that a route passes one after another."""


@dataclass(frozen=True, eq=False)
class Conditions:
    """Sequences of nodes that a demand's routes must have, and those that they must not have.

    needs     of each group, a route has one
    forbidden  a route has none
    """

    needs: tuple[Sequences, ...]
    forbidden: Sequences

    @cached_property
    def _sequences(self) -> list[tuple[tuple[int, ...], int]]:
        """Each sequence, and its group; -1 for the forbidden ones."""
        required = [(nodes, group) for group, several in enumerate(self.needs) for nodes in several]
        return [*required, *((nodes, -1) for nodes in self.forbidden)]

    @property
    def all_met(self) -> int:
        """The bits of all groups."""
        return (1 << len(self.needs)) - 1

    def step(self, met: int, passed: tuple[int, ...], node: int) -> tuple[int, tuple[int, ...]] | None:
        """Return groups met and nodes passed of each sequence after a further node; None where forbidden.

        The nodes of a sequence differ, so that a route that leaves it can only start it again.
        """
        after = []
        for (nodes, group), count in zip(self._sequences, passed, strict=True):
            count = count + 1 if count < len(nodes) and nodes[count] == node else int(nodes[0] == node)
            if count == len(nodes):
                if group < 0:
                    return None
                met |= 1 << group
            after.append(count)
        return met, tuple(after)

    def start(self, source: int) -> tuple[int, tuple[int, ...]] | None:
        """Return the state of a route at its source; None where that alone is forbidden."""
        return self.step(0, (0,) * len(self._sequences), source)

    def hold(self, nodes: Sequence[int]) -> bool:
        """Return whether a route over these nodes keeps the conditions."""
        met, passed = 0, (0,) * len(self._sequences)
        for node in nodes:
            state = self.step(met, passed, node)
            if state is None:
                return False
            met, passed = state
        return met == self.all_met


@dataclass(frozen=True, kw_only=True, eq=False)
class RouteLimits:
    """Limits of the routes of K demands over E links.

    max_latency_ms  (K,), rounding allowed for
    latency_ms      (E,) of the links; 0 where they have none
    allowed         (M, E) links that demands may use, for each of M sets of links
    allowed_of      (K,) the set of each demand
    conditions      of the demands that have any
    """

    max_latency_ms: Floats
    latency_ms: Floats
    allowed: Bools
    allowed_of: Ints
    conditions: dict[int, Conditions]

    @classmethod
    def of(cls, problem: FlowProblem) -> RouteLimits | None:
        """Return the limits of a problem; None where it has none."""
        limit = problem.max_latency_ms
        if not problem.parsed_rules and not np.isfinite(limit).any():
            return None
        has_latency = "latency_ms" in problem.links
        latency = problem.links["latency_ms"].to_numpy(float) if has_latency else np.zeros(len(problem.links))
        allowed, allowed_of = _allowed_links(problem)
        return cls(
            max_latency_ms=limit * (1 + LATENCY_TOLERANCE),
            latency_ms=latency,
            allowed=allowed,
            allowed_of=allowed_of,
            conditions=_conditions(problem),
        )

    def keeps(self, problem: FlowProblem, demand: int, links: Sequence[int]) -> bool:
        """Return whether a path keeps the limits of a demand."""
        path = list(links)
        if not self.allowed[self.allowed_of[demand], path].all():
            return False
        if self.latency_ms[path].sum() > self.max_latency_ms[demand]:
            return False
        conditions = self.conditions.get(demand)
        nodes = [int(problem.tail[path[0]]), *problem.head[path].tolist()]
        return conditions is None or conditions.hold(nodes)


def _allowed_links(problem: FlowProblem) -> tuple[Bools, Ints]:
    """Return the sets of links that demands may use, (M, E), and the set of each demand, (K,).

    A node to avoid may still be an end of the demand.
    """
    avoided: dict[int, list[tuple[int, ...]]] = {}
    for rule in problem.parsed_rules:
        if not rule.affinity and not rule.is_use and len(rule.nodes) <= 2:
            for demand in rule.demands(problem).tolist():
                ends = (problem.source[demand], problem.target[demand])
                if len(rule.nodes) == 2 or rule.nodes[0] not in ends:
                    avoided.setdefault(demand, []).append(rule.nodes)
    closed = _closed_by_affinity(problem)
    nothing: frozenset[int] = frozenset()
    number = {(frozenset[tuple[int, ...]](), nothing): 0}
    allowed_of = np.zeros(len(problem.demands), dtype=np.int64)
    for demand in sorted({*avoided, *closed}):
        key = frozenset(avoided.get(demand, ())), closed.get(demand, nothing)
        allowed_of[demand] = number.setdefault(key, len(number))
    allowed = np.ones((len(number), len(problem.links)), dtype=bool)
    for (elements_of_set, links), row in number.items():
        allowed[row, list(links)] = False
        for nodes in elements_of_set:
            if len(nodes) == 2:
                allowed[row] &= (problem.tail != nodes[0]) | (problem.head != nodes[1])
            else:
                allowed[row] &= (problem.tail != nodes[0]) & (problem.head != nodes[0])
    return allowed, allowed_of


def _closed_by_affinity(problem: FlowProblem) -> dict[int, frozenset[int]]:
    """Return the links that rules of administrative groups close for demands that have such rules.

    A link of a group to avoid is closed, and where there are groups to use, each link that is in none.
    """
    avoided: dict[int, set[int]] = {}
    open_links: dict[int, set[int]] = {}
    for rule in problem.parsed_rules:
        if rule.affinity:
            links_of = open_links if rule.is_use else avoided
            for demand in rule.demands(problem).tolist():
                links_of.setdefault(demand, set()).update(rule.links)
    every = set(range(len(problem.links)))
    return {
        demand: frozenset(avoided.get(demand, set()) | (every - open_links.get(demand, every)))
        for demand in {*avoided, *open_links}
    }


def _conditions(problem: FlowProblem) -> dict[int, Conditions]:
    """Return the required nodes of demands' routes, and the longer paths that they must not pass."""
    needs: dict[int, list[Sequences]] = {}
    paths: dict[int, list[tuple[int, ...]]] = {}
    forbidden: dict[int, list[tuple[int, ...]]] = {}
    for rule in problem.parsed_rules:
        if rule.affinity or (not rule.is_use and len(rule.nodes) <= 2):
            continue
        for demand in rule.demands(problem).tolist():
            if not rule.is_use:
                forbidden.setdefault(demand, []).append(rule.nodes)
            elif rule.is_path:
                paths.setdefault(demand, []).append(rule.nodes)
            else:
                needs.setdefault(demand, []).append((rule.nodes,))
    for demand, alternatives in paths.items():
        needs.setdefault(demand, []).append(tuple(alternatives))
    return {
        demand: Conditions(tuple(needs.get(demand, ())), tuple(forbidden.get(demand, ())))
        for demand in sorted({*needs, *forbidden})
    }
