"""Plans that follow another one: machines stay where the last plan has them, others join or leave.

`follow` keeps the hosts of the last plan, empties some within a budget of moves, and is what `repack` does
where hosts have no names. `omniscient` knows the events to come: machines that stay to their end are packed
on hosts of their own, and on the others those that leave last come first, so that hosts become empty without
moves.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Final

import numpy as np
from pydantic import Field

from planner.arrays import Ints
from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import Deadline
from planner_models.consolidation.designs.bundles import place_remaining
from planner_models.consolidation.designs.column_generation import placed_machines, trim
from planner_models.consolidation.designs.decision import decide, refuse_shortage
from planner_models.consolidation.designs.patterns import search
from planner_models.consolidation.designs.slots import add_all_slots
from planner_models.consolidation.plan.plan import ConsolidationPlan
from planner_models.consolidation.plan.reading import read_plan
from planner_models.consolidation.problem.arrivals import count_at
from planner_models.consolidation.problem.packing import (
    Copy,
    HostGroup,
    Packer,
    decreasing,
    pack_all,
    regroup,
)
from planner_models.consolidation.problem.problem import Consolidation

LAYERS: Final = 6
"""Groups of machines by the time at which they leave, up to the horizon."""
DAY_S: Final = 86_400.0


def keep_machines(problem: Consolidation, plan: ConsolidationPlan) -> list[HostGroup]:
    """Return the hosts of a plan with the machines that are still there, those of its first hosts first.

    Machines that left are taken from the last hosts of the plan. Slots are left out.
    """
    groups = []
    for group in read_plan(problem, plan).groups():
        content: dict[Copy, int] = {}
        for copy, times in group.content.items():
            reserved = _reserve(problem, copy)
            content[reserved] = content.get(reserved, 0) + times
        if content:
            kept = regroup(problem, group.supply, group.hosts, content)
            kept.name = group.name
            groups.append(kept)
    surplus = np.maximum(placed_machines(problem, groups) - problem.count, 0)
    return trim(problem, groups, surplus)


def _reserve(problem: Consolidation, copy: Copy) -> Copy:
    """Return the way of a machine in a host with its reserved vCPUs only, where it grew by whole clients."""
    shape, vcpus, first = copy
    total, reserved = sum(vcpus), float(problem.vcpus[shape])
    is_even = len({amount for amount in vcpus if amount > 0}) == 1
    if not is_even or total <= reserved:
        return copy
    return shape, tuple(amount * reserved / total for amount in vcpus), first


def continue_plan(problem: Consolidation, groups: list[HostGroup]) -> Packer:
    """Return the packer of hosts after the machines without one got theirs, by best fit."""
    return place_remaining(problem, groups, problem.count - placed_machines(problem, groups))


@refuse_shortage
def plan_omniscient(
    problem: Consolidation,
    *,
    horizon_s: Annotated[
        float, Field(gt=0, le=1e9, description="time up to which coming events are known, s")
    ] = DAY_S,
    options: Options = Options(),
    previous: Decision[ConsolidationPlan] | None = None,
) -> Decision[ConsolidationPlan]:
    """Place machines so that hosts become empty as machines leave, as all coming events are known.

    Machines that stay to the end of the horizon are on the cheapest hosts for them alone, and others join by
    best fit, those that leave last first. No machine of a plan before moves.
    """
    if previous is not None and previous.plan is not None:
        packer = continue_plan(problem, keep_machines(problem, previous.plan))
    else:
        packer = _begin(problem, horizon_s, options)
    groups = packer.groups
    if problem.survive is not None and len(problem.survive):
        groups = add_all_slots(problem, groups, packer.refused)
    return decide(problem, groups, packer.refused)


def _begin(problem: Consolidation, horizon_s: float, options: Options) -> Packer:
    """Return hosts for the machines that stay, then with those that leave last first."""
    if problem.rules_of_areas:
        return pack_all(problem, Packer(problem), decreasing(problem))
    stay = _least_until(problem, horizon_s)
    options = replace(options, time_limit_s=Deadline.of(options).left_s / 2 if options.time_limit_s else None)
    alone = replace(problem, machines=problem.machines.assign(count=stay.astype(float)), survive=None)
    packer = Packer(problem, groups=search(alone, options).best.groups if stay.any() else [])
    placed = placed_machines(problem, packer.groups)
    for layer in range(LAYERS - 1, -1, -1):
        at_least = np.maximum(_least_until(problem, horizon_s * layer / LAYERS), stay)
        for shape in decreasing(problem):
            missing = int(at_least[shape] - placed[shape])
            if missing > 0:
                packer.place(shape, missing)
                placed[shape] += missing
    return packer


def _least_until(problem: Consolidation, at_s: float) -> Ints:
    """Return the machines of each shape that stay until a time from the first event on, (M,)."""
    least = problem.count.copy()
    if problem.events is None or not len(problem.events):
        return least
    times = np.unique(problem.events["at_s"].to_numpy(float))
    for time in times[times <= times[0] + at_s].tolist() if at_s > 0 else []:
        least = np.minimum(least, count_at(problem, time))
    return least
