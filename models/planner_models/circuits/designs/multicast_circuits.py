"""Circuits to several racks, greedily: the day that serves the most bits for the time it takes.

As Eclipse does with matchings, but the circuit of a sender may go to several racks, which all receive what it
sends. The best such day is a set packing, which is hard to find: days are built from groups of racks that
miss the same data, matched pairs for the racks that are left, and moves of single racks between senders.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Annotated, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import NEVER, Deadline
from planner.search.tolerances import IMPROVEMENT, SUM_ROUNDING
from planner_models.circuits.designs import eclipse, matchings, upper_bound
from planner_models.circuits.designs.multicast_chunks import RemainingDemand
from planner_models.circuits.designs.multicast_program import can_list_families, optimize_lengths
from planner_models.circuits.plan import plan as schedules
from planner_models.circuits.plan.multicast_plan import MulticastDay, make_plan
from planner_models.circuits.plan.plan import IDLE, Schedule, served_rate
from planner_models.circuits.problem.problem import Circuits

MOST_GROUPS: Final = 32  # groups of racks of a chunk that are tried as targets of a circuit
MOST_OPTIMIZED_DAYS: Final = 100  # up to which a linear program makes their lengths the best
MOST_PREFIXES: Final = 12  # days up to which a linear program is solved for each number of the first ones
MOST_SWEEPS: Final = 3  # over all racks, of moves between senders
Groups = dict[int, frozenset[int]]
"""Targets of the circuit of each sender that has one."""

Starts = Annotated[
    int,
    Field(
        ge=1,
        le=64,
        description="lengths of day from which each search starts, from the longest of use down evenly in "
        "logarithm",
    ),
]


def schedule(
    problem: Circuits,
    *,
    starts: Starts = 3,
    prove: Annotated[bool, Field(description="also find a bound on all schedules")] = False,
    options: Options = Options(),
) -> Decision[Schedule]:
    """Schedule days of circuits to one rack or several, and never serve less than Eclipse to one rack each.

    Where no circuit may go to several racks, or nothing is to go to several, this is Eclipse.

    source  Venkatakrishnan et al. 2016 (Eclipse) for days; Xia et al. 2015 (Blast) for circuits to several
    """
    if not problem.uses_multicast_circuits:
        return eclipse.schedule(problem, prove=prove, options=options)
    proven = upper_bound.bound_schedules(problem, options=options).proof.bound if prove else None
    best = find_best_plan(problem, starts=starts, deadline=Deadline.of(options), options=options)
    return schedules.judge_plan(problem, *best, bound=proven, options=options)


def find_best_plan(
    problem: Circuits, *, starts: int = 3, deadline: Deadline = NEVER, options: Options = Options()
) -> tuple[Schedule, float, float]:
    """Return the better plan of these days and of Eclipse, its bits, and when it is done, us.

    A linear program makes the lengths of the days and what they send the best, where it is small.
    """
    alone = problem.as_unicast()
    plans = [schedules.make_plan(alone, eclipse.days(alone, deadline=deadline))]
    counts = [problem.switches] if problem.window_us is not None else range(1, problem.switches + 1)
    for count in counts:
        made = days(problem, count, starts, deadline)
        plans.append(make_plan(problem, made))
        for first_days in _list_prefixes(problem, made):
            if not deadline.is_over and can_list_families(problem):
                optimized = optimize_lengths(problem, first_days, deadline.options(options))
                plans.append(make_plan(problem, optimized))
    return max(plans, key=lambda plan: served_rate(problem, plan[1], plan[2]))


def _list_prefixes(problem: Circuits, made: list[MulticastDay]) -> list[list[MulticastDay]]:
    """Return the days, and without a window also their first few, as the packet switch may serve the rest."""
    if len(made) > MOST_OPTIMIZED_DAYS:
        return []
    first = 1 if problem.window_us is None and len(made) <= MOST_PREFIXES else len(made)
    return [made[:count] for count in range(max(1, first), len(made) + 1)]


def days(problem: Circuits, switches: int, starts: int = 3, deadline: Deadline = NEVER) -> list[MulticastDay]:
    """Return the days of the first `switches` circuit switches.

    Without a window, days are added until the packet switch is done with the rest as soon.
    """
    demand = RemainingDemand.of(problem)
    used_us = np.zeros(switches)
    made: list[MulticastDay] = []
    best_us = _done_us(problem, demand, 0.0)
    while not deadline.is_over and demand.pair_bits.any():
        switch = int(np.argmin(used_us))
        limits = _limit_length(problem, demand, float(used_us[switch]), switches)
        if limits is None:
            break
        length, groups = _search_day(problem, demand, limits, starts)
        if not groups:
            break
        source = np.full(len(problem.racks), IDLE, dtype=np.int64)
        sent: list[tuple[int, float, float]] = []
        for sender, targets in groups.items():
            source[list(targets)] = sender
            sent += demand.serve(sender, targets, length)
        used_us[switch] += problem.night_us + length
        made.append(MulticastDay(duration_us=length, source=source, transmissions=tuple(sent), switch=switch))
        best_us = min(best_us, _done_us(problem, demand, float(used_us.max())))
        if problem.window_us is None and used_us.max() >= best_us:
            break
    return made


def _done_us(problem: Circuits, demand: RemainingDemand, used_us: float) -> float:
    """Return when the packet switch is done with the rest, and circuits with days, us; inf for never."""
    source, target = np.nonzero(demand.pair_bits)
    packets = schedules.time_needed_us(source, target, demand.pair_bits[source, target], problem.packet_mbps)
    return max(used_us, packets)


class _Limits(NamedTuple):
    """Shortest and longest day of use, us."""

    low: float
    high: float


def _limit_length(
    problem: Circuits, demand: RemainingDemand, used_us: float, switches: int
) -> _Limits | None:
    """Return the limits of the next day of a switch; None where it has no time for one."""
    needs = (demand.pair_bits / problem.circuit_mbps)[demand.pair_bits > 0]
    longest = max(float((demand.pair_bits / problem.circuit_mbps).sum(axis=axis).max()) for axis in (0, 1))
    if problem.window_us is None:
        high = longest / switches
    else:
        high = min(longest, problem.window_us - used_us - problem.night_us)
    is_short = high < problem.shortest_day_us * (1 - SUM_ROUNDING) or high <= 0
    if is_short and problem.window_us is not None:
        return None
    high = max(high, problem.shortest_day_us)
    return _Limits(min(high, max(problem.shortest_day_us, float(needs.min()))), high)


def _search_day(
    problem: Circuits, demand: RemainingDemand, limits: _Limits, starts: int
) -> tuple[float, Groups]:
    """Return the length of the best day, us, and the targets of its senders; none where nothing is served."""
    best_rate, best = 0.0, (limits.high, Groups())
    for index in range(starts):
        length = limits.high * (limits.low / limits.high) ** (index / max(1, starts - 1))
        previous = -1.0
        while True:
            groups = find_groups(demand, length, problem.circuit_targets)
            rate, longer = _find_best_length(demand, groups, problem.night_us, limits)
            if rate > best_rate:
                best_rate, best = rate, (longer, groups)
            if rate <= previous * (1 + IMPROVEMENT) or longer == length:
                break
            previous, length = rate, longer
    return best


def _find_best_length(
    demand: RemainingDemand, groups: Groups, night_us: float, limits: _Limits
) -> tuple[float, float]:
    """Return the most bits per time of a day of some circuits with its night, and that day's length, us.

    The bits are linear in the length between the ends of what circuits send, so that only these count.
    """
    curves = [demand.curve(source, targets) for source, targets in groups.items()]
    tried = np.unique(np.clip(np.concatenate([[limits.high], *(times for times, _ in curves)]), *limits))
    tried = tried[tried > 0]
    served = (
        np.sum([np.interp(tried, *curve) for curve in curves], axis=0) if curves else np.zeros(len(tried))
    )
    rates = served / (tried + night_us)
    index = int(np.argmax(rates))
    return float(rates[index]), float(tried[index])


def find_groups(demand: RemainingDemand, length_us: float, most_targets: int) -> Groups:
    """Return circuits, each to at most `most_targets` racks, that serve much in a day of a length.

    The best of three: matched pairs, and groups of racks that miss the same data, by the bits that they are
    served in all or for each of them. In each, pairs are matched of the racks that are left, then racks move
    to other senders as long as that serves more.
    """
    singles = np.minimum(demand.pair_bits, demand.circuit_mbps * length_us)
    candidates = [
        (demand.served_bits(source, targets, length_us), source, targets)
        for source, targets in _list_groups(demand, most_targets)
    ]
    orders = [
        [],
        sorted(candidates, key=lambda item: -item[0]),
        sorted(candidates, key=lambda item: -item[0] / len(item[2])),
    ]
    best, most_bits = Groups(), -1.0
    for order in orders:
        groups = _match_rest(_take_in_order(order), singles)
        groups = _move_racks(demand, groups, length_us, most_targets)
        bits = sum(demand.served_bits(source, targets, length_us) for source, targets in groups.items())
        if bits > most_bits * (1 + SUM_ROUNDING):
            best, most_bits = groups, bits
    return best


def _list_groups(demand: RemainingDemand, most_targets: int) -> Iterator[tuple[int, frozenset[int]]]:
    """Yield sender and targets of circuits to several racks that miss the same data, no two the same."""
    for source, chunks in demand.chunks.items():
        listed: set[frozenset[int]] = set()
        for chunk in chunks:
            size = min(most_targets, len(chunk.missing))
            groups = itertools.combinations(sorted(chunk.missing), size)
            for group in itertools.islice(groups, MOST_GROUPS):
                targets = frozenset(group)
                if size > 1 and targets not in listed:
                    listed.add(targets)
                    yield source, targets


def _take_in_order(candidates: list[tuple[float, int, frozenset[int]]]) -> Groups:
    """Return the circuits that are taken one after the other, where their sender and all targets are free."""
    groups, taken = Groups(), set[int]()
    for _, source, targets in candidates:
        if source not in groups and not targets & taken:
            groups[source] = targets
            taken |= targets
    return groups


def _match_rest(groups: Groups, singles: NDArray[np.float64]) -> Groups:
    """Return the circuits with those of matched pairs between the other senders and targets."""
    weight = singles.copy()
    weight[list(groups)] = 0.0
    weight[:, [target for targets in groups.values() for target in targets]] = 0.0
    if not weight.any():
        return groups
    target = matchings.find_heaviest(weight)
    matched = np.flatnonzero(target != IDLE)
    return groups | {int(source): frozenset({int(target[source])}) for source in matched}


def _move_racks(demand: RemainingDemand, groups: Groups, length_us: float, most_targets: int) -> Groups:
    """Return the circuits after moves of racks to other senders, while these serve more."""
    groups = dict(groups)
    sender_of = {target: source for source, targets in groups.items() for target in targets}
    receivers = np.flatnonzero(demand.pair_bits.any(axis=0)).tolist()
    for _ in range(MOST_SWEEPS):
        moved = False
        for rack in receivers:
            before = sender_of.get(rack)
            best = _find_move(demand, groups, rack, before, length_us, most_targets)
            if best is None:
                continue
            if before is not None:
                groups[before] -= {rack}
                if not groups[before]:
                    del groups[before]
            groups[best] = groups.get(best, frozenset()) | {rack}
            sender_of[rack] = best
            moved = True
        if not moved:
            break
    return groups


def _find_move(
    demand: RemainingDemand,
    groups: Groups,
    rack: int,
    before: int | None,
    length_us: float,
    most_targets: int,
) -> int | None:
    """Return the sender from which a rack would best receive instead; None where that serves no more."""

    def served_bits(source: int, targets: frozenset[int]) -> float:
        return demand.served_bits(source, targets, length_us) if targets else 0.0

    loss = 0.0
    if before is not None:
        loss = served_bits(before, groups[before]) - served_bits(before, groups[before] - {rack})
    best, best_gain = None, loss * IMPROVEMENT
    for source in np.flatnonzero(demand.pair_bits[:, rack]).tolist():
        targets = groups.get(source, frozenset())
        if source == before or len(targets) >= most_targets:
            continue
        gain = served_bits(source, targets | {rack}) - served_bits(source, targets) - loss
        if gain > best_gain:
            best, best_gain = source, gain
    return best
