"""Independent check of a plan against the raw problem: it knows the constraints, not the method."""

from __future__ import annotations

import numpy as np

from planner.arrays import Bools, Ints, distinct
from planner.contract.plan import Violations
from planner.errors import PlanRejected
from planner_models.multicast.plan.headers import require_lengths
from planner_models.multicast.plan.overflow import require_overflow
from planner_models.multicast.plan.plan import Channels, count_entries, require_partitions, require_whole
from planner_models.multicast.plan.switch_groups import group_assignment
from planner_models.multicast.problem.problem import Multicast
from planner_models.multicast.problem.topology import find_rows


def check(problem: Multicast, plan: Channels) -> Violations:
    """Return the constraint violations of the plan: switches with more entries than fit (`table`).

    raises  PlanRejected where it is no plan: unknown names, a partition that does not exist, a shared entry
            of a group that is not at the switch, a group left out there, entries that do not add up, headers
            of another length than their rules, a group without an entry where it needs none
    """
    require_partitions(problem, plan.partitions)
    _require_shared(problem, plan)
    if plan.overflow is not None and len(plan.overflow):
        require_overflow(problem, plan.partitions, plan.overflow)
        for name, table in (("meta_groups", plan.meta_groups), ("headers", plan.headers)):
            if table is not None and len(table):
                raise PlanRejected(f"overflow: a plan with table '{name}' has no groups without an entry")
    trees = plan.header_trees(problem)
    if trees is not None:
        require_lengths(trees)
        both = trees.sent & (group_assignment(problem, plan.partitions)[1] > 0)
        if both.any():
            name = problem.group_names[int(np.argmax(both))]
            raise PlanRejected(f"headers: {name} has table entries of a partition, too")
    needed = count_entries(problem, plan.partitions, plan.meta_groups, trees, plan.overflow)
    needed = needed.set_index("switch")
    stated = plan.entries.set_index("switch")["entries"].reindex(needed.index)
    wrong = np.flatnonzero((stated != needed["entries"]).to_numpy())
    if len(wrong) or len(plan.entries) != len(needed):
        name = needed.index[wrong[0]] if len(wrong) else "a switch twice or unknown"
        fault = f"{stated[name]:g}, its groups need {needed['entries'][name]:g}" if len(wrong) else "listed"
        raise PlanRejected(f"entries: {name} is said to take {fault}")
    layers = plan.entries.set_index("switch")["layer"].reindex(needed.index)
    strange = (layers.astype(str) != needed["layer"]).to_numpy()
    if strange.any():
        name = needed.index[strange][0]
        raise PlanRejected(f"entries: {name} is said to be in layer '{layers[name]}'")
    violations = Violations()
    over = (needed["entries"] > problem.free_entries).to_numpy()
    if over.any():
        violations += Violations.of(
            "table",
            where=needed.index[over].tolist(),
            amount=needed["entries"][over],
            allowed=problem.free_entries[over],
            unit="entries",
        )
    return violations


def _require_shared(problem: Multicast, plan: Channels) -> None:
    """Require that a switch in meta_groups has every group that it stores, once, and no other."""
    shared = plan.meta_groups
    if not len(shared):
        return
    wires, names = problem.wiring, problem.group_names
    switch, group = find_rows(wires.switches, shared["switch"]), find_rows(names, shared["group"])
    require_whole(shared)
    unknown = np.flatnonzero((switch < len(wires.cores)) | (group < 0))
    if len(unknown):
        row = shared.iloc[unknown[0]]
        raise PlanRejected(f"meta_groups: {row['group']} has no entry at {row['switch']}")
    stated = np.sort(switch * len(names) + group)
    if (stated[1:] == stated[:-1]).any():
        raise PlanRejected("meta_groups: a group is there twice at a switch")
    sharing = np.zeros(len(wires.switches), dtype=bool)
    sharing[switch] = True
    required = _stored_pairs(problem, plan, sharing)
    for pairs, others, fault in (
        (stated, required, "{} has no entry at {}"),
        (required, stated, "{} is left out at {}"),
    ):
        index = np.minimum(np.searchsorted(others, pairs), len(others) - 1)
        different = np.flatnonzero(others[index] != pairs) if len(others) else np.arange(len(pairs))
        if len(different):
            switch_number, of = divmod(int(pairs[different[0]]), len(names))
            raise PlanRejected("meta_groups: " + fault.format(names[of], wires.switches[switch_number]))


def _stored_pairs(problem: Multicast, plan: Channels, sharing: Bools) -> Ints:
    """Return switch x groups + group of the pairs that the switches in `sharing` must store, sorted."""
    wires, count = problem.wiring, len(problem.groups)
    partition, copies = group_assignment(problem, plan.partitions)
    edge, group, _ = problem.at_edge
    switches = edge + len(wires.cores) + len(wires.aggregations)
    here = (copies[group] > 0) & sharing[switches]
    pairs = [switches[here] * count + group[here]]
    above = slice(*wires.layer_starts)
    if sharing[above].any():
        spread = problem.edges_in_pod
        stores = (spread > 1) | ((spread > 0) & ((spread > 0).sum(axis=1) > 1)[:, None])
        for switch in np.flatnonzero(sharing[above]).tolist():
            in_pod = np.flatnonzero(stores[:, wires.aggregation_pod[switch]] & (copies > 0))
            for ra in distinct(copies[copies > 0]).tolist():
                held = problem.distribution(ra).aggregation[switch]
                of_copies = in_pod[copies[in_pod] == ra]
                stored = of_copies[held[partition[of_copies]]]
                pairs.append((switch + len(wires.cores)) * count + stored)
    return np.sort(np.concatenate(pairs))
