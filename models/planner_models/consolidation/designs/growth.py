"""Growth of machines on their hosts: each takes free threads, one machine after the other."""

from __future__ import annotations

import numpy as np

from planner_models.consolidation.problem.packing import HostGroup
from planner_models.consolidation.problem.problem import Consolidation
from planner_models.consolidation.problem.shapes import make_placing


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
        shape, vcpus, first = copy
        span = sum(amount > 0 for amount in vcpus)
        step = float(problem.client[shape]) * max(span, 1)
        current, current_vcpus = make_placing(problem, host_type, shape, vcpus, first), vcpus
        is_even = len({amount for amount in vcpus if amount > 0}) == 1
        current.take(grown.free_node, grown.free_whole, -1)
        while is_even and sum(current_vcpus) + step <= problem.vcpus_max[shape] + 1e-9:
            larger_vcpus = tuple(
                float(np.round(amount + step / span, 9)) if amount > 0 else 0.0 for amount in current_vcpus
            )
            larger = make_placing(problem, host_type, shape, larger_vcpus, first)
            if not larger.fits(grown.free_node, grown.free_whole):
                break
            current, current_vcpus = larger, larger_vcpus
        current.take(grown.free_node, grown.free_whole)
        key = (shape, current_vcpus, first)
        grown.content[key] = grown.content.get(key, 0) + 1
    return grown
