"""Check of latency limits and rules against the possible routes of a plan's traffic, for any design.

Where a plan lists routes, each is followed as it stands. Elsewhere nodes split traffic hop by hop, so that
some of a demand takes every way that its flows leave open: each of them must keep the limits.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from planner.arrays import Floats
from planner.contract.plan import Violations
from planner.contract.tolerances import RELATIVE, allowance, exceeds
from planner_models.graphs.indexing import sum_by_index
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.plan.references import is_by_segments, links_of_routes, list_routes
from planner_models.traffic.plan.segments import segment_shares
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.problem.rules import Rule

if TYPE_CHECKING:
    from planner_models.traffic.plan.verified_flow import VerifiedFlow

MIN_SHARE: Final = RELATIVE  # of a demand, or of what a node sends on; less traffic on a link is rounding


@dataclass(frozen=True, eq=False)
class _Leg:
    """Links that traffic may take from one node to another, in any order that they allow."""

    start: int
    end: int
    links: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class _Way:
    """One leg after another that traffic of a demand takes, and its amount, Mbit/s."""

    legs: tuple[_Leg, ...]
    rate_mbps: float


def check_routes(problem: Traffic, plan: Routing, flow: VerifiedFlow) -> Violations:
    """Return the demands with traffic beyond their latency limits, and those that break a rule."""
    if not problem.parsed_rules and not np.isfinite(problem.max_latency_ms).any():
        return Violations()
    ways = _Ways(problem, plan, flow)
    return _check_latency(problem, ways) + _check_rules(problem, ways)


def _check_latency(problem: Traffic, ways: _Ways) -> Violations:
    limited = np.flatnonzero(np.isfinite(problem.max_latency_ms) & (ways.served_mbps > 0))
    if not len(limited):
        return Violations()
    delays = _Delays(problem)
    worst = np.array([max(map(delays.of, ways.of(k)), default=0.0) for k in limited.tolist()])
    allowed = problem.max_latency_ms[limited]
    late = exceeds(worst, allowed, worst)
    return Violations.of(
        "latency",
        where=[problem.demand_labels[k] for k in limited[late]],
        amount=worst[late],
        allowed=allowed[late],
        unit="ms",
    )


def _check_rules(problem: Traffic, ways: _Ways) -> Violations:
    violations: list[tuple[str, float]] = []
    together: dict[tuple[int, bool], list[Rule]] = {}  # of which one must hold, by demand
    for rule in problem.parsed_rules:
        for k in rule.demands(problem).tolist():
            if rule.is_use and (rule.is_path or rule.affinity):
                together.setdefault((k, bool(rule.affinity)), []).append(rule)
                continue
            violations += _broken(problem, ways, k, [rule])
    for (k, _), rules in together.items():
        violations += _broken(problem, ways, k, rules)
    return Violations.of(
        "rules",
        where=[where for where, _ in violations],
        amount=np.array([amount for _, amount in violations]),
        allowed=0.0,
        unit="Mbit/s",
    )


def _broken(problem: Traffic, ways: _Ways, k: int, rules: Sequence[Rule]) -> Iterator[tuple[str, float]]:
    """Yield the name and the traffic of a rule that a demand breaks; of several, one must hold."""
    if ways.served_mbps[k] <= 0:
        return
    is_use = rules[0].is_use
    if rules[0].affinity:
        yield from _broken_affinity(problem, ways, k, rules)
        return
    sequences = [rule.nodes for rule in rules]
    if not is_use and len(sequences[0]) == 1 and sequences[0][0] in (problem.source[k], problem.target[k]):
        return
    may_break = _may_miss if is_use else _may_pass
    amount = sum(way.rate_mbps for way in ways.of(k) if may_break(problem, way, sequences))
    if amount > allowance(problem.rate_mbps[k]):
        names = problem.nodes["node"].to_numpy()
        texts = " or ".join(" > ".join(names[list(nodes)]) for nodes in sequences)
        yield f"{problem.demand_labels[k]}: {'use' if is_use else 'avoid'} {texts}", amount


def _broken_affinity(
    problem: Traffic, ways: _Ways, k: int, rules: Sequence[Rule]
) -> Iterator[tuple[str, float]]:
    """Yield the groups of links that a demand must use or avoid, and its traffic against that."""
    is_use = rules[0].is_use
    links = frozenset[int]().union(*(rule.links for rule in rules))
    amount = sum(
        way.rate_mbps
        for way in ways.of(k)
        if any((link in links) != is_use for leg in way.legs for link in leg.links)
    )
    if amount > allowance(problem.rate_mbps[k]):
        names = " or ".join(rule.affinity for rule in rules)
        verb = "use" if is_use else "avoid"
        yield f"{problem.demand_labels[k]}: {verb} links of affinity {names}", amount


class _Ways:
    """The ways of each demand's traffic: by routes where the plan has them, else by flows."""

    def __init__(self, problem: Traffic, plan: Routing, flow: VerifiedFlow) -> None:
        self._problem, self._flow = problem, flow
        self.served_mbps: Floats = flow.served_mbps
        self._by_route: dict[int, list[_Way]] | None = None
        if plan.routes is not None:
            self._by_route = self._follow_routes(plan)

    def of(self, demand: int) -> list[_Way]:
        """Return the ways of a demand that is served."""
        if self._by_route is not None:
            return self._by_route.get(demand, [])
        links = self._links_by_row[self._row_of[demand]]
        ends = int(self._problem.source[demand]), int(self._problem.target[demand])
        return [_Way((_Leg(*ends, links),), float(self.served_mbps[demand]))]

    @cached_property
    def _row_of(self) -> Sequence[int]:
        """The row of each demand's commodity."""
        problem, flow = self._problem, self._flow
        if flow.by_demand:
            return range(len(problem.demands))
        rows: list[int] = np.searchsorted(flow.commodity, problem.commodity).tolist()
        return rows

    @cached_property
    def _links_by_row(self) -> list[tuple[int, ...]]:
        """The links with traffic of each commodity.

        Beside the largest flow of a demand, less is rounding; to a target, where small demands join large
        ones, beside what a node sends on.
        """
        flow = self._flow.flow_mbps
        links = []
        for row in range(flow.shape[0]):
            entries = slice(flow.indptr[row], flow.indptr[row + 1])
            amount = flow.data[entries]
            link, reference = flow.indices[entries], amount.max(initial=0.0)
            if not self._flow.by_demand:
                tail = self._problem.tail[link]
                reference = sum_by_index(tail, amount, len(self._problem.nodes))[tail]
            links.append(tuple(link[amount > MIN_SHARE * reference].tolist()))
        return links

    def _follow_routes(self, plan: Routing) -> dict[int, list[_Way]]:
        problem, routes = self._problem, plan.routes
        assert routes is not None
        nodes, by_segments = list_routes(problem, routes), is_by_segments(routes)
        uses = links_of_routes(problem, routes, nodes)
        legs = sorted(
            {pair for row in np.flatnonzero(by_segments) for pair in itertools.pairwise(nodes[row])}
        )
        shares, _ = segment_shares(problem, legs)
        leg_of = {
            pair: _Leg(*pair, tuple(shares.indices[shares.indptr[i] : shares.indptr[i + 1]].tolist()))
            for i, pair in enumerate(legs)
        }
        ways: dict[int, list[_Way]] = {}
        demand, rate = problem.find_demands(routes), routes["rate_mbps"].to_numpy(float)
        if plan.guarantees is not None and (plan.guarantees["restoration"] == "reroute").any():
            rate = np.where(rate > 0, rate, self.served_mbps[demand])  # what it may take in a failure
        for row in np.flatnonzero(rate > 0).tolist():
            if by_segments[row]:
                own_legs = tuple(leg_of[pair] for pair in itertools.pairwise(nodes[row]))
            else:
                links = tuple(uses.indices[uses.indptr[row] : uses.indptr[row + 1]].tolist())
                own_legs = (_Leg(nodes[row][0], nodes[row][-1], links),)
            ways.setdefault(int(demand[row]), []).append(_Way(own_legs, float(rate[row])))
        return ways


def _leaving(problem: Traffic, leg: _Leg) -> dict[int, list[int]]:
    """Return the links of a leg by the node that they leave."""
    leaving: dict[int, list[int]] = {}
    for link in leg.links:
        leaving.setdefault(int(problem.tail[link]), []).append(link)
    return leaving


class _Delays:
    """Largest delays to the end of legs, ms; those of legs with the same links share their search."""

    def __init__(self, problem: Traffic) -> None:
        self._problem = problem
        self._delay: Floats = problem.links["latency_ms"].to_numpy(float)
        self._known: dict[tuple[int, int], tuple[dict[int, list[int]], dict[int, float]]] = {}
        self._cyclic: set[tuple[int, int]] = set()

    def of(self, way: _Way) -> float:
        """Return the largest delay of a way; where links form a cycle, the sum of all of them bounds it."""
        return sum(self._of_leg(leg) for leg in way.legs)

    def _of_leg(self, leg: _Leg) -> float:
        key = id(leg.links), leg.end
        if key not in self._known:
            self._known[key] = _leaving(self._problem, leg), {leg.end: 0.0}
        leaving, longest = self._known[key]
        if leg.start not in longest and not self._search(leg.start, leaving, longest):
            self._cyclic.add(key)
        return float(self._delay[list(leg.links)].sum()) if key in self._cyclic else longest[leg.start]

    def _search(self, start: int, leaving: dict[int, list[int]], longest: dict[int, float]) -> bool:
        """Add the largest delay from each node that links lead to; return whether they form no cycle."""
        opened: set[int] = set()
        stack, is_acyclic = [start], True
        while stack:
            node = stack[-1]
            links = leaving.get(node, [])
            heads = self._problem.head[links].tolist()
            waiting = [head for head in heads if head not in longest]
            if node in longest or (node in opened and waiting):  # all ways on have been followed
                is_acyclic &= node in longest
            elif waiting:
                opened.add(node)
                is_acyclic &= not opened.intersection(waiting)
                stack += [head for head in waiting if head not in opened]
                continue
            if node not in longest:
                ends = zip(heads, links, strict=True)
                times = [longest.get(head, 0.0) + float(self._delay[link]) for head, link in ends]
                longest[node] = max(times, default=-np.inf)
            stack.pop()
        return is_acyclic


def _may_miss(problem: Traffic, way: _Way, sequences: Sequence[tuple[int, ...]]) -> bool:
    """Return whether some traffic on a way may arrive without having passed any of the sequences of nodes."""
    return bool(_arrivals(problem, way, sequences)[0])


def _may_pass(problem: Traffic, way: _Way, sequences: Sequence[tuple[int, ...]]) -> bool:
    """Return whether some traffic on a way may pass one of the sequences of nodes."""
    return _arrivals(problem, way, sequences)[1]


def _arrivals(
    problem: Traffic, way: _Way, sequences: Sequence[tuple[int, ...]]
) -> tuple[set[tuple[int, ...]], bool]:
    """Return the arrivals of traffic that has passed none of the sequences, and whether some may pass one.

    The former is how many nodes of each sequence it has just passed.
    """
    begin = _pass((0,) * len(sequences), sequences, way.legs[0].start)
    reached, is_passed = set() if begin is None else {begin}, begin is None
    for leg in way.legs:
        leaving = _leaving(problem, leg)
        states = {(leg.start, passed) for passed in reached}
        stack = list(states)
        while stack:
            node, passed = stack.pop()
            for link in leaving.get(node, []) if node != leg.end else []:
                head = int(problem.head[link])
                after = _pass(passed, sequences, head)
                if after is None:
                    is_passed = True
                elif (head, after) not in states:
                    states.add((head, after))
                    stack.append((head, after))
        reached = {passed for node, passed in states if node == leg.end}
    return reached, is_passed


def _pass(passed: tuple[int, ...], sequences: Sequence[tuple[int, ...]], node: int) -> tuple[int, ...] | None:
    """Return the number of nodes of each sequence just passed at a further node; None for all of one."""
    after = []
    for count, nodes in zip(passed, sequences, strict=True):
        count = count + 1 if nodes[count] == node else int(nodes[0] == node)
        if count == len(nodes):
            return None
        after.append(count)
    return tuple(after)
