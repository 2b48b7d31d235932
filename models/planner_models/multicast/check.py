"""Checks a plan against the raw problem; knows the rules, not the method that made it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.errors import PlanRejected
from planner.system import Violations
from planner_models.multicast.plan import Channels, counted, require_partitions
from planner_models.multicast.problem import Multicast
from planner_models.multicast.stored import rows_of


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
    over = (true["entries"] > problem.free_entries).to_numpy()
    if over.any():
        found += Violations.of(
            "table",
            where=true.index[over].tolist(),
            amount=true["entries"][over],
            allowed=problem.free_entries[over],
            unit="entries",
        )
    return found


def _require_shared(problem: Multicast, plan: Channels) -> None:
    """A switch in meta_groups must have every group there that it stores, once, and no other."""
    shared = plan.meta_groups
    if not len(shared):
        return
    wires, names = problem.wiring, problem.group_names
    switch, group = rows_of(wires.switches, shared["switch"]), rows_of(names, shared["group"])
    strange = np.flatnonzero((switch < len(wires.cores)) | (group < 0))
    if len(strange):
        row = shared.iloc[strange[0]]
        raise PlanRejected(f"meta_groups: {row['group']} has no entry at {row['switch']}")
    given = np.sort(switch * len(names) + group)
    if (given[1:] == given[:-1]).any():
        raise PlanRejected("meta_groups: a group is there twice at a switch")
    sharing = np.zeros(len(wires.switches), dtype=bool)
    sharing[switch] = True
    wanted = _stored_pairs(problem, plan, sharing)
    for pairs, others, fault in (
        (given, wanted, "{} has no entry at {}"),
        (wanted, given, "{} is left out at {}"),
    ):
        place = np.minimum(np.searchsorted(others, pairs), len(others) - 1)
        apart = np.flatnonzero(others[place] != pairs) if len(others) else np.arange(len(pairs))
        if len(apart):
            at, of = divmod(int(pairs[apart[0]]), len(names))
            raise PlanRejected("meta_groups: " + fault.format(names[of], wires.switches[at]))


def _stored_pairs(problem: Multicast, plan: Channels, sharing: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Sorted switch x groups + group of the pairs that the switches in `sharing` must store."""
    wires, count = problem.wiring, len(problem.groups)
    kept = rows_of(problem.group_names, plan.partitions["group"])
    has = np.zeros(count, dtype=bool)
    has[kept] = True
    edge, group, _ = problem.at_edge
    at = edge + len(wires.cores) + len(wires.aggregations)
    here = has[group] & sharing[at]
    pairs = [at[here] * count + group[here]]
    above = slice(len(wires.cores), len(wires.cores) + len(wires.aggregations))
    if sharing[above].any():
        spread = problem.edges_in_pod[kept]
        stores = (spread > 1) | ((spread > 0) & ((spread > 0).sum(axis=1) > 1)[:, None])
        partition = plan.partitions["partition"].to_numpy(np.int64)
        copies = plan.partitions["copies"].to_numpy(np.int64)
        for switch in np.flatnonzero(sharing[above]).tolist():
            in_pod = stores[:, wires.aggregation_pod[switch]]
            for ra in np.unique(copies).tolist():
                holds = problem.distribution(ra).aggregation[switch]
                mine = copies == ra
                here = in_pod & mine & holds[np.where(mine, partition, 0)]
                pairs.append((switch + len(wires.cores)) * count + kept[here])
    return np.sort(np.concatenate(pairs))
