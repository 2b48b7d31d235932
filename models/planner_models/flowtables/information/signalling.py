"""Signalling between datapath and userspace: packets that miss, and the entries that they install."""

from __future__ import annotations

from planner.contract.signalling import FIGURE, NAME, Signalling
from planner_models.flowtables.plan.plan import Cache, read_plan
from planner_models.flowtables.problem.problem import FlowTables


def count_installs(problem: FlowTables, plan: Cache) -> Signalling:
    """Return a message for each miss with its header, and one for each entry with value, mask and action."""
    content, service = read_plan(problem, plan)
    entries, uncached = len(content.value), int((service.entry < 0).sum())
    header = FIGURE * problem.layout.words
    return Signalling(
        messages=2 * entries + uncached, bytes=(entries + uncached) * header + entries * (2 * header + NAME)
    )
