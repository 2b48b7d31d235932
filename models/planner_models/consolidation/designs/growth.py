"""Growth of machines on their hosts: each takes free threads, one machine after the other."""

from __future__ import annotations

import numpy as np

from planner_models.consolidation.problem.packing import Copy, HostGroup
from planner_models.consolidation.problem.problem import Consolidation
from planner_models.consolidation.problem.shapes import Placing, make_placing


def grow(problem: Consolidation, group: HostGroup) -> HostGroup:
    """Return the hosts with machines at as many vCPUs as they can use, as threads are free in their nodes.

    The first machine takes what it can, then the next: no machine knows of the others.
    """
    shapes = {shape for shape, _, _ in group.content}
    if all(problem.vcpus_max[shape] <= problem.vcpus[shape] for shape in shapes):
        return group
    host_type = problem.supplies[group.supply].host_type
    grown = group.split_off(0)
    grown.hosts = group.hosts
    machines = [copy for copy, times in sorted(group.content.items()) for _ in range(times)]
    grown.content = {}
    for copy in machines:
        placing = make_placing(problem, host_type, *copy)
        placing.take(grown.free_node, grown.free_whole, -1)
        placing = _grow_machine(problem, grown, host_type, copy, placing)
        placing.take(grown.free_node, grown.free_whole)
        key = (copy[0], placing.vcpus, copy[2])
        grown.content[key] = grown.content.get(key, 0) + 1
    return grown


def _grow_machine(
    problem: Consolidation, group: HostGroup, host_type: int, copy: Copy, placing: Placing
) -> Placing:
    """Return the placing of a machine with the most vCPUs that free amounts of its host allow."""
    shape, vcpus, first = copy
    span = sum(amount > 0 for amount in vcpus)
    step = float(problem.client[shape]) * max(span, 1)
    is_even = len({amount for amount in vcpus if amount > 0}) == 1
    while is_even and sum(placing.vcpus) + step <= problem.vcpus_max[shape] + 1e-9:
        larger_vcpus = tuple(
            float(np.round(amount + step / span, 9)) if amount > 0 else 0.0 for amount in placing.vcpus
        )
        larger = make_placing(problem, host_type, shape, larger_vcpus, first)
        if not larger.fits(group.free_node, group.free_whole):
            break
        placing = larger
    return placing
