"""Losses of hosts, racks and zones, replayed: lost machines restart in slots or in free capacity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from planner.arrays import Bools, Floats
from planner_models.consolidation.plan.reading import Reading
from planner_models.consolidation.problem.packing import HostGroup, Packer, decreasing
from planner_models.consolidation.problem.rows import rows_of

MAX_COMBINATIONS: Final = 2_000
"""Combinations of lost domains that are all replayed; of more, those that hold most memory."""
MAX_REPACKED: Final = 60
"""Losses without enough slots whose machines are packed into free capacity; those with most machines."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Loss:
    """Domains that are lost together.

    name      of the domains
    domain    host, rack or zone
    losses    number of domains
    gone      (F,) hosts of each row of the fleet that are lost
    lost      (M,) machines that must restart
    """

    name: str
    domain: str
    losses: int
    gone: Floats
    lost: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome:
    """Outcome of a loss: (M,) machines of each shape that do not restart."""

    loss: Loss
    stopped: Floats

    @property
    def share(self) -> float:
        """Share of the lost machines that restart."""
        total = float(self.loss.lost.sum())
        return 1.0 if total <= 0 else 1.0 - float(self.stopped.sum()) / total


def replay_losses(reading: Reading) -> list[Outcome]:
    """Return the outcome of each loss that a problem names, the worst first."""
    losses = list(find_losses(reading))
    slots = reading.per_host(reading.slots)
    missing = []
    for loss in losses:
        remaining = (reading.hosts - loss.gone) @ slots
        missing.append(np.maximum(loss.lost - remaining, 0.0))
    order = sorted(range(len(losses)), key=lambda row: -float(missing[row].sum()))
    outcomes = []
    for position, row in enumerate(order):
        stopped = missing[row]
        if stopped.sum() > 0 and position < MAX_REPACKED:
            stopped = _repack(reading, losses[row], stopped)
        outcomes.append(Outcome(loss=losses[row], stopped=stopped))
    return sorted(outcomes, key=lambda outcome: outcome.share)


def find_losses(reading: Reading) -> Iterator[Loss]:
    """Yield the losses that a problem names; of hosts with the same content, one."""
    problem = reading.problem
    if problem.survive is None:
        return
    machines = reading.per_host(reading.machines)
    for row in rows_of(problem.survive):
        group = str(getattr(row, "group", "") or "")
        yield from _losses_of(reading, str(row.domain), int(row.losses), problem.members(group), machines)


def _losses_of(
    reading: Reading, domain: str, losses: int, members: Bools, machines: Floats
) -> Iterator[Loss]:
    names, gone = _domains(reading, domain, losses)
    memory = gone @ (machines @ reading.problem.memory_gb)
    order = np.argsort(-memory, kind="stable")
    count = min(losses, len(names))
    number = 0
    for selected in combinations(order.tolist(), count):
        total = gone[list(selected)].sum(axis=0)
        if (total > reading.hosts).any():
            continue
        yield Loss(
            name=", ".join(names[row] for row in selected),
            domain=domain,
            losses=losses,
            gone=total,
            lost=np.where(members, total @ machines, 0.0),
        )
        number += 1
        if number >= MAX_COMBINATIONS:
            return


def _domains(reading: Reading, domain: str, losses: int) -> tuple[list[str], Floats]:
    """Return the names of domains, and the hosts of each row of the fleet in each."""
    rows = len(reading.hosts)
    if domain == "host":
        times = np.minimum(reading.hosts, losses).astype(np.int64)
        position = np.repeat(np.arange(rows), times)
        gone = np.zeros((len(position), rows))
        gone[np.arange(len(position)), position] = 1.0
        return [str(reading.names[row]) for row in position.tolist()], gone
    labels = reading.zone if domain == "zone" else reading.rack
    names = sorted(set(labels))
    return names, np.array(
        [[hosts if label == name else 0.0 for label, hosts in zip(labels, reading.hosts, strict=True)]
         for name in names]
    ).reshape(len(names), rows)  # fmt: skip


def _repack(reading: Reading, loss: Loss, missing: Floats) -> Floats:
    """Return the machines that do not restart where those without slots take free capacity, best fit."""
    problem = reading.problem
    groups: list[HostGroup] = []
    for group, hosts in zip(reading.groups(), (reading.hosts - loss.gone).tolist(), strict=True):
        if hosts > 0:
            group.hosts = int(hosts)
            groups.append(group)
    packer = Packer(problem, groups=groups, may_open=False)
    stopped = np.zeros(len(missing))
    for shape in decreasing(problem):
        if missing[shape] > 0:
            stopped[shape] = packer.place(shape, round(float(missing[shape])))
    return stopped


def stopped_cost(reading: Reading, outcomes: list[Outcome]) -> float:
    """Return the price that machines count that do not restart after the worst loss."""
    price = reading.problem.own_price
    return max((float(outcome.stopped @ price) for outcome in outcomes), default=0.0)
