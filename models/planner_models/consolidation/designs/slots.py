"""Slots for machines that restart after the loss of hosts, racks or zones.

Machines and slots of a shape are units. A loss of any k domains is survived where the units outside of them
are as many as all machines: then the slots outside are as many as the machines inside.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.arrays import Ints
from planner_models.consolidation.problem.packing import HostGroup, Packer, copy_of
from planner_models.consolidation.problem.problem import Consolidation
from planner_models.consolidation.problem.rows import rows_of


def add_all_slots(
    problem: Consolidation, groups: Sequence[HostGroup], refused: dict[int, int]
) -> list[HostGroup]:
    """Return the hosts with slots for every loss that a problem names, and new hosts where none has space.

    Where hosts are too few, slots are missing: a check of the plan says how many.
    """
    packer = Packer(problem, groups=groups)
    required = problem.count.copy()
    for shape, count in refused.items():
        required[shape] -= count
    if problem.survive is not None:
        for row in rows_of(problem.survive):
            members = problem.members(str(getattr(row, "group", "") or ""))
            for shape in np.flatnonzero(members & (required > 0)).tolist():
                _add_slots(packer, str(row.domain), int(row.losses), shape, required)
    return packer.groups


def units_of(group: HostGroup, shape: int) -> int:
    """Return the machines and slots of a shape on each host of a group."""
    return group.members(shape) + sum(times for (row, _, _), times in group.slots.items() if row == shape)


def _add_slots(packer: Packer, domain: str, losses: int, shape: int, required: Ints) -> None:
    """Add slots of a shape until the units outside of any lost domains suffice, or none has space."""
    while True:
        units = _units_by_domain(packer, domain, shape)
        sizes = sorted(
            (size for size, times in units.values() for _ in range(min(times, losses))), reverse=True
        )
        total = sum(size * times for size, times in units.values())
        missing = int(required[shape]) - total + sum(sizes[:losses])
        if missing <= 0:
            return
        largest = sizes[losses - 1] if len(sizes) >= losses and sizes[losses - 1] else sizes[0]
        add = _place_on_hosts if domain == "host" else _place_in_area
        if not add(packer, domain, shape, missing, largest):
            return


def _units_by_domain(packer: Packer, domain: str, shape: int) -> dict[str, tuple[int, int]]:
    """Return the units of each domain, and the number of such domains, by name."""
    supplies = packer.problem.supplies
    if domain == "host":
        return {str(row): (units_of(group, shape), group.hosts) for row, group in enumerate(packer.groups)}
    units = {getattr(supply, domain): 0 for supply in supplies}
    for group in packer.groups:
        units[getattr(supplies[group.supply], domain)] += units_of(group, shape) * group.hosts
    return {name: (size, 1) for name, size in units.items()}


def _place_on_hosts(packer: Packer, domain: str, shape: int, missing: int, largest: int) -> bool:  # noqa: ARG001
    """Add slots to a host that has fewer units than the largest, or to a new one; return whether any fits."""
    for row in _by_free_share(packer, range(len(packer.groups))):
        number = min(missing, largest - units_of(packer.groups[row], shape))
        if number > 0 and _fill_slots(packer, row, shape, number, missing):
            return True
    opened = _open_host(packer, shape, None, "")
    return opened is not None and bool(_fill_slots(packer, opened, shape, min(missing, largest), missing))


def _place_in_area(packer: Packer, domain: str, shape: int, missing: int, largest: int) -> bool:
    """Add slots in the zone or rack with the fewest units that has space; return whether any fits."""
    supplies = packer.problem.supplies
    units = _units_by_domain(packer, domain, shape)
    for name in sorted(units, key=lambda area: (units[area][0], area)):
        number = min(missing, max(1, largest - units[name][0]))
        inside = [
            row for row, group in enumerate(packer.groups) if getattr(supplies[group.supply], domain) == name
        ]
        for row in _by_free_share(packer, inside):
            if _fill_slots(packer, row, shape, number, number):
                return True
        opened = _open_host(packer, shape, domain, name)
        if opened is not None and _fill_slots(packer, opened, shape, number, number):
            return True
    return False


def _by_free_share(packer: Packer, rows: Sequence[int] | range) -> list[int]:
    """Return rows of groups, those with least free capacity first."""
    return sorted(rows, key=lambda row: (packer.free_share(packer.groups[row]), row))


def _fill_slots(packer: Packer, row: int, shape: int, per_host: int, total: int) -> int:
    """Add up to some slots to each of as many hosts of a group as are needed; return their number."""
    problem, group = packer.problem, packer.groups[row]
    if not problem.is_supplied[shape, group.supply]:
        return 0
    trial = group.split_off(0)
    copies = 0
    while copies < per_host:
        way = packer.find_placing(trial, shape)
        if way is None:
            break
        trial.add(copy_of(shape, way), way, is_slot=True)
        copies += 1
    if copies == 0:
        return 0
    hosts = max(1, min(group.hosts, total // copies))
    filled = group.split_off(hosts)
    filled.slots, filled.free_node, filled.free_whole = trial.slots, trial.free_node, trial.free_whole
    packer.groups.append(filled)
    packer.groups[:] = [item for item in packer.groups if item.hosts > 0]
    return copies * hosts


def _open_host(packer: Packer, shape: int, domain: str | None, name: str) -> int | None:
    """Open the cheapest host that holds a machine of a shape; return its row, None where there is none."""
    problem = packer.problem
    options = [
        (float(problem.price[supply.host_type]), row)
        for row, supply in enumerate(problem.supplies)
        if problem.is_supplied[shape, row]
        and packer.available(row) >= 1
        and (domain is None or getattr(supply, domain) == name)
    ]
    return packer.open_host(min(options)[1]) if options else None
