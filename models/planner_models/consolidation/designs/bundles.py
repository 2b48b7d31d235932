"""Machines that are together or apart: each zone or rack of theirs is a problem of its own.

A group of machines in one zone or rack is in some one of them, and of two groups that are apart in zones or
racks, one is in none of each: the cheapest plan is that of the best of these problems, in each of which rules
pin the groups, and the smallest of their bounds is a bound. A host has all machines that are together, or
none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Ints
from planner_models.consolidation.problem.packing import Copy, HostGroup, Packer, decreasing, regroup
from planner_models.consolidation.problem.problem import Consolidation
from planner_models.consolidation.problem.shapes import make_placing
from planner_models.consolidation.problem.tables import Conflict

MAX_PROBLEMS: Final = 12
"""Choices of zones and racks of groups up to which each is a problem of its own."""


def pin_groups(problem: Consolidation) -> list[Consolidation]:
    """Return the problem for each choice of a zone or rack of groups that are together, or apart there.

    A group that is together is in one of the zones or racks; one of two groups that are apart is in none of
    each. The problem itself where there are no such groups, or too many choices.
    """
    pinned = _pin_bundles(problem)
    areas = [
        (conflict, name)
        for conflict in problem.area_conflicts
        for name in dict.fromkeys(getattr(supply, conflict.domain) for supply in problem.supplies)
    ]
    if not areas or not all(name for _, name in areas) or len(pinned) * 2 ** len(areas) > MAX_PROBLEMS:
        return pinned
    return [
        _keep_out(item, areas, choice)
        for item in pinned
        for choice in product((False, True), repeat=len(areas))
    ]


def _keep_out(
    problem: Consolidation, areas: Sequence[tuple[Conflict, str]], choice: Sequence[bool]
) -> Consolidation:
    """Return the problem with the one or the other of two groups out of each zone or rack."""
    groups = [set(names) for names in problem.groups]
    rows = []
    for number, ((conflict, name), is_other) in enumerate(zip(areas, choice, strict=True)):
        label = f"kept out {number}"
        rows.append(
            {"kind": "not_on", "group": label, "domain": conflict.domain, "most": 1.0, "target": name}
        )
        for shape in np.flatnonzero(conflict.others if is_other else conflict.machines).tolist():
            groups[shape].add(label)
    rules = pd.concat([problem.rules, pd.DataFrame(rows)], ignore_index=True)
    machines = problem.machines.assign(group=["; ".join(sorted(names)) for names in groups])
    return replace(problem, machines=machines, rules=rules)


def _pin_bundles(problem: Consolidation) -> list[Consolidation]:
    """Return the problem for each choice of a zone or rack of each group that is in one."""
    if problem.rules is None:
        return [problem]
    rules = problem.rules
    is_area = (rules["kind"] == "together") & rules["domain"].isin(["zone", "rack"])
    chosen = list(zip(rules["group"][is_area].astype(str), rules["domain"][is_area].astype(str), strict=True))
    names = [_names(problem, group, domain) for group, domain in chosen]
    if not chosen or not all(names) or np.prod([len(options) for options in names]) > MAX_PROBLEMS:
        return [problem]
    result = []
    for targets in product(*names):
        frame = rules[~is_area]
        for (group, domain), target in zip(chosen, targets, strict=True):
            is_pin = (frame["kind"] == "pin") & (frame["domain"] == domain) & (frame["group"] == group)
            row = {"kind": "pin", "group": group, "domain": domain, "most": np.nan, "target": target}
            frame = pd.concat([frame[~is_pin], pd.DataFrame([row])], ignore_index=True)
        result.append(replace(problem, rules=frame.assign(most=frame["most"].fillna(1.0))))
    return result


def _names(problem: Consolidation, group: str, domain: str) -> list[str]:
    """Return the zones or racks where a group may be: those that pins name, or all."""
    assert problem.rules is not None
    rules = problem.rules
    is_pin = (rules["kind"] == "pin") & (rules["domain"] == domain) & (rules["group"] == group)
    names = list(dict.fromkeys(getattr(supply, domain) for supply in problem.supplies))
    if is_pin.any():
        names = [name for name in names if name in set(rules["target"][is_pin].astype(str))]
    return [name for name in names if name]


def keep_one_host(problem: Consolidation, groups: Sequence[HostGroup], shapes: Ints) -> list[HostGroup]:
    """Return the hosts of which one has the machines that are together, and the others have none of them."""
    rows = [int(shape) for shape in shapes]
    result, has_host = [], False
    for group in groups:
        if not any(group.members(row) for row in rows) or not group.hosts:
            result.append(group)
            continue
        if not has_host:
            has_host = True
            result.append(group.split_off(1))
        if group.hosts:
            result += remove(problem, [group], rows)
    return result


def remove(problem: Consolidation, groups: Sequence[HostGroup], shapes: Sequence[int]) -> list[HostGroup]:
    """Return the hosts without machines of some shapes, and without hosts that have no others."""
    result = []
    for group in groups:
        content = {copy: times for copy, times in group.content.items() if copy[0] not in shapes}
        if content or group.slots:
            changed = group if len(content) == len(group.content) else _with(problem, group, content)
            result.append(changed)
    return result


def place_remaining(problem: Consolidation, groups: Sequence[HostGroup], remaining: Ints) -> Packer:
    """Place machines that have no host yet, and return the packer.

    Machines that are together are all placed again, in one domain, where one of them has no host.

    remaining  (M,) machines of each shape without a host
    """
    bundled: set[int] = set()
    bundles: list[tuple[str, list[int]]] = []
    for domain, shapes in problem.bundles:
        rows = [int(shape) for shape in shapes if int(shape) not in bundled]
        if (remaining[rows] > 0).any():
            groups = remove(problem, groups, rows)
            bundles.append((domain, rows))
        bundled |= set(rows)
    packer = Packer(problem, groups=groups)
    for domain, rows in bundles:
        packer.place_together(domain, rows)
    for shape in decreasing(problem):
        if remaining[shape] > 0 and shape not in bundled:
            packer.place(shape, int(remaining[shape]))
    return packer


def _with(problem: Consolidation, group: HostGroup, content: dict[Copy, int]) -> HostGroup:
    """Return hosts with other machines, and the same slots."""
    changed = regroup(problem, group.supply, group.hosts, content)
    changed.name = group.name
    host_type = problem.supplies[group.supply].host_type
    for copy, times in group.slots.items():
        changed.add(copy, make_placing(problem, host_type, *copy), times, is_slot=True)
    return changed
