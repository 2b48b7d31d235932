"""Moves from one plan to the next: the machines that cannot stay where they were.

Hosts that a plan buys have no names, so that hosts of the next plan are matched with those of the last one of
the same type and place, such that most machines stay. Machines of a shape are alike.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.arrays import Floats, Ints
from planner_models.consolidation.plan.plan import ConsolidationPlan
from planner_models.consolidation.plan.reading import Reading, read_plan
from planner_models.consolidation.problem.problem import Consolidation

MAX_MATCHED: Final = 1_500
"""Hosts up to which the match is the best one; of more, those with most equal machines are matched first."""


def count_moved(problem: Consolidation, previous: ConsolidationPlan, reading: Reading) -> Floats | None:
    """Return the machines of each shape that are in both plans and move between them, (M,).

    None where the plan before has shapes or hosts that the problem does not have
    """
    known = set(problem.machine_index.astype(str))
    if not set(previous.placement["machine"].astype(str)) <= known or not set(
        previous.fleet["host_type"].astype(str)
    ) <= set(problem.type_index.astype(str)):
        return None
    before = read_plan(problem, previous)
    machines = (before.per_host(before.machines), reading.per_host(reading.machines))
    both = np.minimum(before.hosts @ machines[0], reading.hosts @ machines[1])
    stay = np.zeros(len(known))
    for pair, hosts in _match(before, reading, machines):
        stay += hosts * np.minimum(machines[0][pair[0]], machines[1][pair[1]])
    return np.asarray(np.maximum(both - stay, 0.0))


Match = tuple[tuple[int, int], float]
"""Rows of both fleets, and the hosts that are the same."""


def _match(before: Reading, after: Reading, machines: tuple[Floats, Floats]) -> list[Match]:
    """Return the hosts of both fleets that are the same: of equal names, and others by their content."""
    problem = after.problem
    has_names = {name for supply in problem.supplies for name in supply.names}
    places: dict[tuple[int, str, str, str], tuple[list[int], list[int]]] = {}
    for side, reading in enumerate((before, after)):
        for row, name in enumerate(reading.names.astype(str)):
            place = (int(reading.host_type[row]), reading.zone[row], reading.rack[row])
            key = (*place, name if name in has_names else "")
            places.setdefault(key, ([], []))[side].append(row)
    result: list[Match] = []
    for first, second in places.values():
        rows = np.array(first, dtype=np.int64), np.array(second, dtype=np.int64)
        total = before.hosts[rows[0]].sum() + after.hosts[rows[1]].sum()
        match = _match_best if total <= MAX_MATCHED else _match_greedily
        result += match(rows, (before.hosts, after.hosts), machines)
    return result


def _equal(rows: tuple[Ints, Ints], machines: tuple[Floats, Floats]) -> Floats:
    """Return the machines that two hosts have in common, (hosts before, hosts after)."""
    return np.array([np.minimum(machines[0][row], machines[1][rows[1]]).sum(axis=1) for row in rows[0]])


def _match_best(
    rows: tuple[Ints, Ints], hosts: tuple[Floats, Floats], machines: tuple[Floats, Floats]
) -> list[Match]:
    """Return the match of single hosts with most machines in common."""
    single = [np.repeat(side, hosts[number][side].astype(int)) for number, side in enumerate(rows)]
    if not len(single[0]) or not len(single[1]):
        return []
    from scipy.optimize import linear_sum_assignment  # slow to import

    first, second = linear_sum_assignment(_equal((single[0], single[1]), machines), maximize=True)
    pairs = zip(single[0][first].tolist(), single[1][second].tolist(), strict=True)
    return [((one, other), 1.0) for one, other in pairs]


def _match_greedily(
    rows: tuple[Ints, Ints], hosts: tuple[Floats, Floats], machines: tuple[Floats, Floats]
) -> list[Match]:
    """Return a match of groups of hosts, those with most machines in common first."""
    if not len(rows[0]) or not len(rows[1]):
        return []
    remaining = [hosts[number][side].copy() for number, side in enumerate(rows)]
    equal = _equal(rows, machines)
    result: list[Match] = []
    for index in np.argsort(-equal, axis=None, kind="stable").tolist():
        one, other = divmod(index, len(rows[1]))
        number = min(remaining[0][one], remaining[1][other])
        if number > 0:
            remaining[0][one] -= number
            remaining[1][other] -= number
            result.append(((int(rows[0][one]), int(rows[1][other])), float(number)))
    return result
