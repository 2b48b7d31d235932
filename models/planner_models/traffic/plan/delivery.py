"""Delivered traffic of a routing: the arrivals when links cannot carry their load.

The rule is the same for every design, and belongs to the problem (`Traffic.overload`):

- "drop": senders keep their rates, and each overloaded link drops its excess, the same share of all
  traffic on it (fluid). Traffic that is dropped loads no later link, so the shares that links pass are a
  fixed point: with arriving traffic x(p), p = min(1, capacity / x(p)).
- "priority": as "drop", but queues serve classes in the order of their priorities: a link drops traffic of
  a class only where higher priorities leave it too little capacity. Classes of one priority get shares of
  that capacity in proportion to their weights, and what one does not need goes to the others (weighted fair
  queueing); within a class, all traffic loses the same share. Traffic of lower priorities changes nothing
  for higher ones, so the fixed point is one for each priority, on what those above leave of the capacities.
- "max-min": TCP slows the senders down to max-min fair rates over the plan's routes.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
import scipy.sparse as sp

from planner.arrays import Bools, Floats, Ints
from planner.contract.tolerances import exceeds
from planner.errors import SolverFailure
from planner.search.tolerances import SUM_ROUNDING
from planner_models.flows import split_ratios
from planner_models.graphs import hop_sums
from planner_models.graphs.indexing import index_distinct, sum_by_index
from planner_models.networks.classes import share_by_class
from planner_models.traffic.plan.verified_flow import VerifiedFlow
from planner_models.traffic.problem.problem import Traffic

PRECISION: Final = SUM_ROUNDING  # of the logarithm of the share that a link passes
SMALLEST_REST: Final = 1e-16  # of all traffic; less than this still on its way has arrived
PLAIN_STEPS: Final = 8  # of the fixed point, before they are accelerated; exact where no links form a cycle
MEMORY: Final = 8  # past steps that the acceleration combines
MAX_STEPS: Final = 2_000
COMPILED_HOPS: Final = 500_000  # from which sums over hops without cycles are compiled
MAX_HOPS: Final = 20_000  # flows with cycles need many


def delivered_rates(problem: Traffic, flow: VerifiedFlow) -> Floats:
    """Return the traffic of each demand that arrives, shape (K,), Mbit/s; at most `flow.served_mbps`.

    A link whose load exceeds its capacity by less than the tolerance of `check` drops nothing.
    """
    overloaded = exceeds(flow.load_mbps, problem.capacity_mbps)
    if not overloaded.any():
        return flow.served_mbps
    if problem.overload == "max-min":
        return _slowed_rates(problem, flow)
    return _find_drops(problem, flow, overloaded).delivered_mbps


def _slowed_rates(problem: Traffic, flow: VerifiedFlow) -> Floats:
    from planner_models.flows.fair_rates import max_min_rates  # compiled, and seldom needed

    served, by_demand = flow.served_mbps, flow.flow_mbps
    if not flow.by_demand:
        by_demand = sp.csr_array((len(served), len(problem.links)))
        for of_class in range(max(len(problem.class_table), 1)):
            by_target = split_ratios.remove_cycles(problem, flow.of_class(problem, of_class))
            ratios = split_ratios.complete_ratios(problem, split_ratios.compute_ratios(problem, by_target))
            sent = np.where(problem.class_of == of_class, served, 0.0)
            by_demand = by_demand + split_ratios.apply_ratios(problem, ratios, sent)
    demands = np.flatnonzero(served > 0)
    share = sp.diags_array(1 / served[demands]) @ sp.csr_array(by_demand)[demands]
    rate = np.zeros(len(served))
    rate[demands] = max_min_rates(share, problem.capacity_mbps, served[demands])
    return np.minimum(rate, served)


class _Drops(NamedTuple):
    """Traffic that overloaded links drop, (E,) Mbit/s, and delivered traffic of each demand, (K,) Mbit/s."""

    dropped_mbps: Floats
    delivered_mbps: Floats


_drops: weakref.WeakKeyDictionary[VerifiedFlow, _Drops] = weakref.WeakKeyDictionary()


def _find_drops(problem: Traffic, flow: VerifiedFlow, overloaded: Bools) -> _Drops:
    """Return the drops of overloaded links; cached as long as the flow is in use, for metrics and drawing."""
    if flow not in _drops:
        if problem.overload == "priority" and problem.has_classes:
            _drops[flow] = _find_drops_by_priority(problem, flow)
        else:
            moves = _Moves(problem, flow, overloaded)
            passed = solve_drops(moves, problem.capacity_mbps, overloaded)
            _drops[flow] = _Drops(
                dropped_mbps=moves.arriving_load(passed) * (1 - passed),
                delivered_mbps=_delivered(flow, moves, passed),
            )
    return _drops[flow]


def _delivered(flow: VerifiedFlow, moves: _Moves, passed: Floats) -> Floats:
    """Return the arrivals of each demand, (K,) Mbit/s, when links pass these shares of it, (E,)."""
    delivered = flow.served_mbps.copy()
    delivered[moves.demand] *= moves.arriving_share(passed)
    return np.minimum(delivered, flow.served_mbps)


def _find_drops_by_priority(problem: Traffic, flow: VerifiedFlow) -> _Drops:
    """Return the drops of links that serve higher priorities first: priority by priority."""
    delivered, dropped = np.zeros(len(problem.demands)), np.zeros(len(problem.links))
    used = np.zeros(len(problem.links))  # by the priorities so far, (E,) Mbit/s
    priority = problem.class_table["priority"].to_numpy()
    weight = problem.class_table["weight"].to_numpy(float)
    for level in np.unique(priority):
        members = np.flatnonzero(priority == level)
        flows = [_keep_class(problem, flow, of_class) for of_class in members.tolist()]
        load = np.sum([class_flow.load_mbps for class_flow in flows], axis=0)
        overloaded = exceeds(used + load, problem.capacity_mbps) & (load > 0)
        remaining = np.maximum(problem.capacity_mbps - used, 0.0)
        moves = [_Moves(problem, class_flow, overloaded) for class_flow in flows]
        shares = _solve_shared_drops(moves, weight[members], remaining, overloaded)
        for class_flow, move, passed in zip(flows, moves, shares, strict=True):
            delivered += _delivered(class_flow, move, passed)
            arriving = move.arriving_load(passed)
            dropped += arriving * (1 - passed)
            used += arriving * passed
    return _Drops(dropped_mbps=dropped, delivered_mbps=delivered)


def _keep_class(problem: Traffic, flow: VerifiedFlow, of_class: int) -> VerifiedFlow:
    """Return the flow of one class: rows of other commodities, and the rates of their demands, are 0."""
    of_row = problem.class_of if flow.by_demand else flow.commodity // len(problem.nodes)
    class_flow = sp.csr_array(sp.diags_array((of_row == of_class).astype(float)) @ flow.flow_mbps)
    class_flow.eliminate_zeros()
    return replace(
        flow,
        flow_mbps=class_flow,
        load_mbps=np.asarray(class_flow.sum(axis=0)).ravel(),
        served_mbps=np.where(problem.class_of == of_class, flow.served_mbps, 0.0),
    )


def _solve_shared_drops(
    moves: Sequence[_Moves], weight: Floats, capacity: Floats, overloaded: Bools
) -> list[Floats]:
    """Return the share of the arriving traffic of each class that links pass, C arrays of shape (E,).

    moves, weight  C classes of one priority
    capacity       (E,) what higher priorities leave of it
    """
    passed = [np.ones(len(capacity)) for _ in moves]
    links = np.flatnonzero(overloaded)
    is_blocked = capacity[links] <= 0
    for share in passed:
        share[links[is_blocked]] = 0.0
    links = links[~is_blocked]
    count = len(links)
    group: Ints = np.tile(np.arange(count), len(moves))
    heavy, same = np.repeat(weight, count), np.zeros(len(group), dtype=np.int64)

    def step(log_passed: Floats) -> Floats:
        for share, logs in zip(passed, log_passed.reshape(len(moves), count), strict=True):
            share[links] = np.exp(logs)
        load = np.concatenate(
            [move.arriving_load(share)[links] for move, share in zip(moves, passed, strict=True)]
        )
        through = share_by_class(capacity[links], load, group, same, heavy)
        passing = np.divide(through, load, out=np.ones(len(load)), where=load > 0)
        changed: Floats = np.log(np.clip(passing, 1e-300, 1.0))
        return changed

    solved = _fixed_point(step, np.zeros(len(group))).reshape(len(moves), count)
    for share, logs in zip(passed, solved, strict=True):
        share[links] = np.exp(logs)
    return passed


def dropped_rates(problem: Traffic, flow: VerifiedFlow) -> Floats:
    """Return the traffic that each link drops, shape (E,), Mbit/s; none where senders slow down instead."""
    overloaded = exceeds(flow.load_mbps, problem.capacity_mbps)
    if not overloaded.any() or problem.overload == "max-min":
        return np.zeros(len(problem.links))
    return _find_drops(problem, flow, overloaded).dropped_mbps


def load_by_demand(problem: Traffic, flow: VerifiedFlow, links: Bools) -> Floats:
    """Return the part of each demand in the load of some links, shape (K,), Mbit/s, which sums to it.

    links  (E,) of which; a demand that passes several of them counts several times
    """
    load = np.zeros(len(problem.demands))
    if links.any():
        moves = _Moves(problem, flow, links)
        load[moves.demand] = flow.served_mbps[moves.demand] * moves.expected_passes(links)
    return load


def surviving_flow(problem: Traffic, flow: VerifiedFlow) -> sp.csr_array:
    """Return the part of each flow, (C, E) Mbit/s, that arrives where overloaded links drop their excess.

    It is a flow itself, within the capacities, and delivers as much as the plan does.
    """
    overloaded = flow.load_mbps > problem.capacity_mbps
    if not overloaded.any():
        return flow.flow_mbps
    moves = _Moves(problem, flow, overloaded)
    return _surviving_part(flow, moves, solve_drops(moves, problem.capacity_mbps, overloaded))


def _surviving_part(flow: VerifiedFlow, moves: _Moves, passed: Floats) -> sp.csr_array:
    entries = flow.flow_mbps.tocoo()
    amount = np.where(moves.is_used, entries.data, 0.0)
    amount[moves.is_moving] = moves.surviving_amount(passed)
    return sp.csr_array((amount, (entries.row, entries.col)), shape=entries.shape)


def pass_links(
    problem: Traffic, flow: VerifiedFlow, links: Bools, passed: Floats
) -> tuple[sp.csr_array, Floats]:
    """Return the part of each flow that arrives, (C, E) Mbit/s, and the share of each demand, (K,).

    links   (E,) those that do not pass all traffic
    passed  (E,) the share that links pass, 1 for all others
    """
    moves = _Moves(problem, flow, links)
    share = np.ones(len(problem.demands))
    share[moves.demand] = np.minimum(moves.arriving_share(passed), 1.0)
    surviving = _surviving_part(flow, moves, passed)
    surviving.eliminate_zeros()
    return surviving, share


def solve_drops(moves: _Moves, capacity: Floats, overloaded: Bools) -> Floats:
    """Return the share of arriving traffic that each link passes, shape (E,)."""
    passed = np.ones(len(capacity))
    links = np.flatnonzero(overloaded)

    def step(log_passed: Floats) -> Floats:
        passed[links] = np.exp(log_passed)
        load = moves.arriving_load(passed)[links]
        return np.minimum(0.0, np.log(capacity[links] / np.maximum(load, capacity[links] * 1e-300)))

    passed[links] = np.exp(_fixed_point(step, np.zeros(len(links))))
    return passed


def _fixed_point(step: Callable[[Floats], Floats], start: Floats) -> Floats:
    """Return the y at most 0 with y = step(y): by plain steps, then by Anderson acceleration.

    source  Walker and Ni, "Anderson acceleration for fixed-point iterations" (2011)
    """
    y = start
    points: list[Floats] = []
    changes: list[Floats] = []
    damping, smallest = 1.0, np.inf
    for number in range(MAX_STEPS):
        change = step(y) - y
        error = float(np.abs(change).max(initial=0.0))
        if error <= PRECISION:
            return y + change
        if number < PLAIN_STEPS:
            y = y + change
            continue
        # where the error has not become smaller for long, shorter steps: the map may swing
        if error < 0.99 * smallest:
            smallest, stalled = error, 0
        else:
            stalled += 1
            if stalled % (2 * MEMORY) == 0:
                damping, points, changes = max(0.5 * damping, 0.02), [], []
        points, changes = [*points[-MEMORY:], y], [*changes[-MEMORY:], change]
        y = y + damping * change
        if len(points) > 1:
            dy, dc = np.diff(np.array(points), axis=0), np.diff(np.array(changes), axis=0)
            weight, *_ = np.linalg.lstsq(dc.T, change, rcond=1e-10)
            y = y - weight @ (dy + damping * dc)
        y = np.minimum(y, 0.0)
    raise SolverFailure(f"delivered traffic: {MAX_STEPS} steps leave an error of {error:.1e}")


class _Moves:
    """The hops of all traffic that passes an overloaded link; other traffic is constant load.

    A place is a commodity at a node. demand (n,) the demands with such traffic.
    """

    def __init__(self, problem: Traffic, flow: VerifiedFlow, overloaded: Bools) -> None:
        nodes, entries = len(problem.nodes), flow.flow_mbps.tocoo()
        commodity, link, amount = entries.row.astype(np.int64), entries.col, entries.data
        target = problem.target[flow.commodity] if flow.by_demand else flow.commodity % nodes
        used = (amount > 0) & (problem.tail[link] != target[commodity])
        meets = np.zeros(len(flow.commodity), dtype=bool)
        meets[commodity[used & overloaded[link]]] = True
        constant = used & ~meets[commodity]
        self.constant_load = sum_by_index(link[constant], amount[constant], len(problem.links))
        moving = used & meets[commodity]
        self.is_used, self.is_moving = used, moving
        commodity, self.link, amount = commodity[moving], link[moving], amount[moving]
        tail, head = commodity * nodes + problem.tail[self.link], commodity * nodes + problem.head[self.link]
        if flow.by_demand:
            row = np.arange(len(problem.demands))
        else:
            row_of = np.full(nodes * max(len(problem.class_table), 1), -1)
            row_of[flow.commodity] = np.arange(len(flow.commodity))
            row = row_of[problem.commodity]
        sent = (flow.served_mbps > 0) & (row >= 0)
        self.demand = np.flatnonzero(sent)[meets[row[sent]]]
        source = row[self.demand] * nodes + problem.source[self.demand]
        key, inverse = index_distinct(np.r_[tail, head, source], len(flow.commodity) * nodes)
        self.tail, self.head, self.source = np.split(inverse, [len(tail), 2 * len(tail)])
        head = self.head
        self.share = amount / sum_by_index(self.tail, amount, len(key))[self.tail]
        self.is_target = key % nodes == target[key // nodes]
        self.injected = sum_by_index(self.source, flow.served_mbps[self.demand], len(key))
        self._order: Ints | None = None  # of hops, each before those that go on; None where there are cycles
        if len(head) >= COMPILED_HOPS:
            order = hop_sums.order_hops(self.tail, head, len(key))
            if len(order) == len(head):
                self._order = order
                self.tail, self.head, self.link = self.tail[order], head[order], self.link[order]
                self.share = self.share[order]
        if self._order is None:  # hops by the place where they end
            self._by_head = np.argsort(head, kind="stable")
            start = np.searchsorted(head[self._by_head], np.arange(len(key) + 1))
            self._hops = sp.csr_array(
                (np.ones(len(head)), self.tail[self._by_head], start), shape=(len(key), len(key))
            )

    def _sum_forward(self, passed: Floats) -> Floats:
        """Return the traffic at each place, (places,) Mbit/s, when links pass these shares (E,)."""
        if self._order is None:
            return _sum_powers(self._pass(passed), self.injected)
        total = self.injected.copy()
        hop_sums.add_forward(self.tail, self.head, self.share * passed[self.link], total)
        return total

    def _sum_backward(self, passed: Floats, value: Floats) -> Floats:
        """Return the expected sum of the values, (places,), of the places that traffic passes from each."""
        if self._order is None:
            return _sum_powers(sp.csr_array(self._pass(passed).T), value)
        total = value.copy()
        hop_sums.add_backward(self.tail, self.head, self.share * passed[self.link], total)
        return total

    def _pass(self, passed: Floats) -> sp.csr_array:
        """Return the matrix of one hop, (places, places), when links pass these shares (E,)."""
        self._hops.data[:] = (self.share * passed[self.link])[self._by_head]
        return self._hops

    def arriving_load(self, passed: Floats) -> Floats:
        """Return the traffic that arrives at each link, (E,) Mbit/s, when links pass these shares (E,)."""
        if self._order is None:
            amount_at = self._sum_forward(passed)
            return self.constant_load + sum_by_index(
                self.link, amount_at[self.tail] * self.share, len(passed)
            )
        load = self.constant_load.copy()
        hop_sums.add_loads(self.tail, self.head, self.link, self.share, passed, self.injected.copy(), load)
        return load

    def surviving_amount(self, passed: Floats) -> Floats:
        """Return the traffic of each hop that arrives at its target, shape (hops,), Mbit/s."""
        amount_at = self._sum_forward(passed)
        arrives = self._sum_backward(passed, self.is_target.astype(float))
        amount = amount_at[self.tail] * self.share * passed[self.link] * arrives[self.head]
        if self._order is not None:
            amount[self._order] = amount.copy()
        return np.asarray(amount)

    def expected_passes(self, links: Bools) -> Floats:
        """Return the mean number of passes of each of `demand` over some links, shape (n,), without drops."""
        hops = np.where(links[self.link], self.share, 0.0)
        here = sum_by_index(self.tail, hops, len(self.is_target))
        return self._sum_backward(np.ones(len(links)), here)[self.source]

    def arriving_share(self, passed: Floats) -> Floats:
        """Return the share of each of `demand` that arrives at its target, (n,)."""
        return self._sum_backward(passed, self.is_target.astype(float))[self.source]


def _sum_powers(matrix: sp.csr_array, start: Floats) -> Floats:
    """Return start + M start + M M start + ..., hop by hop."""
    total, moving = start.copy(), start
    smallest = SMALLEST_REST * float(start.max(initial=0.0))
    for _ in range(MAX_HOPS):
        moving = matrix @ moving
        if moving.max(initial=0.0) <= smallest:
            return total
        total += moving
    return total
