"""Checks a plan against the raw problem; knows the rules, not the method that made it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from planner.errors import PlanRejected
from planner.system import Violations
from planner_models.multicast.plan import Channels, counted, edge_name, require_partitions
from planner_models.multicast.problem import LAYERS, Multicast


def check(problem: Multicast, plan: Channels) -> Violations:
    """Switches with more entries than their table holds (limit `table`).

    PlanRejected where it is no plan: unknown names, a partition that does not exist, a shared entry of
    a group that is not at the switch, a group left out there, entries that do not add up.
    """
    require_partitions(problem, plan.partitions)
    _require_shared(problem, plan)
    true = counted(problem, plan.partitions, plan.meta_groups).set_index("switch")
    said = plan.entries.set_index("switch")["entries"].reindex(true.index)
    wrong = np.flatnonzero((said != true["entries"]).to_numpy())
    if len(wrong) or len(plan.entries) != len(true):
        name = true.index[wrong[0]] if len(wrong) else "a switch twice or unknown"
        fault = f"{said[name]:g}, its groups need {true['entries'][name]:g}" if len(wrong) else "listed"
        raise PlanRejected(f"entries: {name} is said to take {fault}")
    found = Violations()
    for layer in LAYERS:
        allowed = problem.table_size(layer)
        over = true[(true["layer"] == layer) & (true["entries"] > allowed)]
        if len(over):
            found += Violations.of(
                "table", where=over.index.tolist(), amount=over["entries"], allowed=allowed, unit="entries"
            )
    return found


def _require_shared(problem: Multicast, plan: Channels) -> None:
    shared = plan.meta_groups
    if not len(shared):
        return
    edge, group, _ = problem.at_edge
    names = problem.groups["group"].to_numpy()[group]
    switch = np.array([edge_name(problem, i) for i in range(problem.k * problem.half)])[edge]
    known = pd.Index(plan.partitions["group"]).get_indexer(pd.Index(names)) >= 0
    keep = known & (pd.Index(shared["switch"].unique()).get_indexer(pd.Index(switch)) >= 0)
    wanted = pd.MultiIndex.from_arrays([switch[keep], names[keep]])
    given = pd.MultiIndex.from_frame(shared[["switch", "group"]])
    if given.has_duplicates:
        raise PlanRejected("meta_groups: a group is there twice at a switch")
    strange = given.difference(wanted)
    if len(strange):
        raise PlanRejected(f"meta_groups: {strange[0][1]} has no entry at {strange[0][0]}")
    missing = wanted.difference(given)
    if len(missing):
        raise PlanRejected(f"meta_groups: {missing[0][1]} is left out at {missing[0][0]}")
