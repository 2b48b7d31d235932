"""Errors of a problem that concern several tables or columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from planner.contract.tables import file_name, report_unknown_names, row_name, shorten_faults
from planner_models.consolidation.problem.rows import rows_of
from planner_models.consolidation.problem.schema import WHOLE_HOST
from planner_models.consolidation.problem.tables import ConsolidationTables


def find_unknown_names(problem: ConsolidationTables) -> list[str]:
    """Return an error for each name of a type, machine, host or group that is in no other table."""
    faults: list[str] = []
    types, shapes = problem.type_index, problem.machine_index
    hosts = pd.Index([] if problem.present is None else problem.present["host"].astype(str))
    any_type = pd.Index([*types, WHOLE_HOST])
    any_host = pd.Index([*hosts, WHOLE_HOST])
    references = (
        ("nodes", "host_type", types, "no type of the table hosts"),
        ("capacities", "host_type", types, "no type of the table hosts"),
        ("present", "host_type", types, "no type of the table hosts"),
        ("effects", "host_type", any_type, "no type of the table hosts"),
        ("uses", "machine", shapes, "no machine of the table machines"),
        ("now", "machine", shapes, "no machine of the table machines"),
        ("events", "machine", shapes, "no machine of the table machines"),
        ("now", "host", hosts, "no host of the table present"),
        ("links", "host", any_host, "no host of the table present"),
    )
    for table, column, existing, meaning in references:
        frame = getattr(problem, table)
        if frame is not None:
            faults += report_unknown_names(frame, table, column, existing, meaning)
    groups = pd.Index(sorted(set[str]().union(*problem.groups)))
    if problem.events is not None and "into" in problem.events:
        into = problem.events["into"].fillna("").astype(str)
        events = problem.events.assign(into=into.where(into != "", problem.events["machine"].astype(str)))
        faults += report_unknown_names(events, "events", "into", shapes, "no machine of the table machines")
    if problem.rules is not None:
        faults += report_unknown_names(problem.rules, "rules", "group", groups, "no group of a machine")
    if problem.rules is not None and "target" in problem.rules:
        target = problem.rules["target"].fillna("").astype(str)
        is_group = (problem.rules["kind"] == "apart") & (target != "")
        of_groups = problem.rules.assign(target=target.where(is_group, problem.rules["group"].astype(str)))
        faults += report_unknown_names(of_groups, "rules", "target", groups, "no group of a machine")
    if problem.survive is not None and "group" in problem.survive:
        named = pd.Index(["", *groups])
        faults += report_unknown_names(problem.survive, "survive", "group", named, "no group of a machine")
    return faults


def _find_bad_resizes(problem: ConsolidationTables) -> Iterator[str]:
    """Yield errors of the shapes that machines become."""
    events = problem.events
    if events is None:
        return
    into = events["into"].fillna("").astype(str) if "into" in events else pd.Series("", index=events.index)
    is_resize = (events["what"] == "resizes").to_numpy()
    faults = []
    for row in np.flatnonzero(is_resize | (into != "").to_numpy()).tolist():
        name = row_name(events, "events", row)
        if not is_resize[row]:
            faults.append(f"{name}: into is '{into.iloc[row]}', which only a machine that resizes has")
        elif not into.iloc[row]:
            faults.append(f"{name}: into is empty, resizes needs the shape that the machine becomes")
    yield from shorten_faults(faults, file_name(events, "events"), "that resize")


def find_contradictions(problem: ConsolidationTables) -> list[str]:
    """Return errors of numbers that contradict each other, of rules, and of zones that are too few."""
    return [
        *_find_bad_types(problem),
        *_find_bad_capacities(problem),
        *_find_bad_vcpus(problem),
        *_find_bad_rules(problem),
        *_find_bad_resizes(problem),
        *_find_bad_domains(problem),
        *_find_bad_nodes_of_now(problem),
    ]


def _find_bad_types(problem: ConsolidationTables) -> Iterator[str]:
    """Yield an error for each type without nodes."""
    having = set(problem.nodes["host_type"].astype(str))
    where = file_name(problem.hosts, "hosts")
    faults = [
        f"{row_name(problem.hosts, 'hosts', row)}: host_type '{name}' has no row in "
        f"{file_name(problem.nodes, 'nodes')}"
        for row, name in enumerate(problem.type_index)
        if name not in having
    ]
    yield from shorten_faults(faults, where, "without nodes")
    for column in ("threads", "memory_gb"):
        if column not in problem.hosts:
            continue
        total = np.bincount(problem.node_type, problem.nodes[column].to_numpy(float), len(problem.hosts))
        stated = problem.hosts[column].to_numpy(float)
        differs = np.flatnonzero(~np.isnan(stated) & (np.abs(stated - total) > 1e-6 * (1 + total)))
        faults = [
            f"{row_name(problem.hosts, 'hosts', row)}: {column} is {stated[row]:g}, its nodes have "
            f"{total[row]:g} in sum"
            for row in differs.tolist()
        ]
        yield from shorten_faults(faults, where, f"with other {column} than their nodes")


def _find_bad_capacities(problem: ConsolidationTables) -> Iterator[str]:
    """Yield errors of capacities at unknown nodes, and of resources that no host has."""
    amounts: dict[str, float] = {}
    if problem.capacities is not None:
        existing = set(
            zip(problem.nodes["host_type"].astype(str), problem.nodes["node"].astype(str), strict=True)
        )
        faults = []
        for row, item in enumerate(rows_of(problem.capacities)):
            amounts[str(item.resource)] = max(amounts.get(str(item.resource), 0.0), float(item.amount))
            if str(item.node) != WHOLE_HOST and (str(item.host_type), str(item.node)) not in existing:
                faults.append(
                    f"{row_name(problem.capacities, 'capacities', row)}: node '{item.node}' is no node of "
                    f"host_type '{item.host_type}', nor {WHOLE_HOST}"
                )
        yield from shorten_faults(faults, file_name(problem.capacities, "capacities"), "with unknown nodes")
    if problem.uses is None:
        return
    faults = [
        f"{row_name(problem.uses, 'uses', row)}: resource '{item.resource}' is of no host in the table "
        "capacities"
        for row, item in enumerate(rows_of(problem.uses))
        if item.amount > 0 and amounts.get(str(item.resource), 0.0) <= 0
    ]
    yield from shorten_faults(faults, file_name(problem.uses, "uses"), "of a resource that no host has")


def _find_bad_vcpus(problem: ConsolidationTables) -> Iterator[str]:
    """Yield errors of numbers of vCPUs: no multiples of a client, or a minimum above the maximum."""
    where = file_name(problem.machines, "machines")
    faults = []
    for row, (smallest, largest, client) in enumerate(
        zip(problem.vcpus.tolist(), problem.vcpus_max.tolist(), problem.client.tolist(), strict=True)
    ):
        name = row_name(problem.machines, "machines", row)
        if smallest > largest:
            faults.append(f"{name}: vcpus_min is {smallest:g}, must be at most vcpus_max, {largest:g}")
        is_split = problem.split[row] != "never" or largest > smallest
        ratio = smallest / client
        if (client != 1 or is_split) and abs(ratio - round(ratio)) > 1e-6:
            faults.append(f"{name}: vcpus_min is {smallest:g}, must be a multiple of client, {client:g}")
    yield from shorten_faults(faults, where, "with wrong numbers of vCPUs")


def _find_bad_rules(problem: ConsolidationTables) -> Iterator[str]:
    """Yield errors of rules: together and apart for one group, targets that are missing."""
    if problem.rules is None:
        return
    frame = problem.rules
    target = frame["target"].astype(str).tolist() if "target" in frame else [""] * len(frame)
    kinds: dict[tuple[str, str], set[str]] = {}
    faults = []
    for row, item in enumerate(rows_of(frame)):
        if item.kind != "apart" or not target[row]:
            kinds.setdefault((str(item.group), str(item.domain)), set()).add(str(item.kind))
        name = row_name(frame, "rules", row)
        if {"together", "apart"} <= kinds.get((str(item.group), str(item.domain)), set()):
            faults.append(f"{name}: group '{item.group}' is together and apart in one {item.domain}")
        faults += [f"{name}: {fault}" for fault in _find_bad_rule(problem, item, target[row])]
    yield from shorten_faults(faults, file_name(frame, "rules"), "that contradict")


def _find_bad_rule(problem: ConsolidationTables, rule: Any, target: str) -> Iterator[str]:
    """Yield errors of one rule: its domain and its target."""
    if rule.kind in ("pin", "not_on"):
        if not target:
            yield f"target is empty, {rule.kind} needs the name of a {rule.domain}"
        if rule.domain == "node":
            yield f"domain is node, {rule.kind} can name a host_type, host, rack or zone"
    elif rule.kind == "apart" and target:
        yield from _find_bad_pair(problem, rule, target)
    elif rule.kind == "at_once" and rule.domain != "host":
        yield f"domain is {rule.domain}, must be host for at_once"
    elif rule.domain == "host_type":
        yield f"domain is host_type, which {rule.kind} cannot limit"


def _find_bad_pair(problem: ConsolidationTables, rule: Any, target: str) -> Iterator[str]:
    """Yield errors of a rule by which the members of two groups are apart."""
    members, others = problem.members(str(rule.group)), problem.members(target)
    if rule.domain not in ("host", "rack", "zone"):
        yield f"domain is {rule.domain}, groups can be apart in a host, rack or zone"
    both = problem.machine_index[members & others]
    if len(both):
        yield (
            f"machine '{both[0]}' is in group '{rule.group}' and in '{target}'; apart without a target "
            "separates the machines of one group"
        )
    for domain, shapes in problem.bundles:
        if domain == rule.domain and members[shapes].any() and others[shapes].any():
            yield f"groups '{rule.group}' and '{target}' are together and apart in one {domain}"


def _find_bad_domains(problem: ConsolidationTables) -> Iterator[str]:
    """Yield errors of rules that need more zones than there are, and of zones in two tables."""
    zones = len(problem.zone_names)
    for limit in problem.domain_limits:
        members = int(problem.count[limit.machines].sum())
        if limit.domain == "zone" and members > limit.most * zones:
            yield (
                f"{file_name(problem.rules, 'rules')}: group '{limit.group}' has {members} machines, at most "  # type: ignore[arg-type]
                f"{limit.most:g} in a zone, so it needs {int(np.ceil(members / limit.most))} zones; there "
                f"{'is' if zones == 1 else 'are'} {zones}"
            )


def _find_bad_nodes_of_now(problem: ConsolidationTables) -> Iterator[str]:
    """Yield errors of nodes in `now` that a host's type does not have."""
    if problem.now is None or problem.present is None or "node" not in problem.now:
        return
    type_of = dict(
        zip(problem.present["host"].astype(str), problem.present["host_type"].astype(str), strict=True)
    )
    existing = set(
        zip(problem.nodes["host_type"].astype(str), problem.nodes["node"].astype(str), strict=True)
    )
    faults = [
        f"{row_name(problem.now, 'now', row)}: node '{item.node}' is no node of host '{item.host}'"
        for row, item in enumerate(rows_of(problem.now))
        if item.node and (type_of[str(item.host)], str(item.node)) not in existing
    ]
    yield from shorten_faults(faults, file_name(problem.now, "now"), "with unknown nodes")


def find_oversized(problem: ConsolidationTables) -> list[str]:
    """Return an error for each machine that is larger than any host, or than any node if it is not split."""
    where = file_name(problem.machines, "machines")
    faults = []
    for row in np.flatnonzero((problem.count > 0) & ~problem.is_allowed.any(axis=1)).tolist():
        name = row_name(problem.machines, "machines", row)
        faults.append(f"{name}: machine '{problem.machine_index[row]}' {_say_excess(problem, row)}")
    return list(shorten_faults(faults, where, "that fit in no host"))


def _say_excess(problem: ConsolidationTables, shape: int) -> str:
    """Return the amount of a machine that no host or node has, with the largest one there is."""
    is_split = problem.split[shape] != "never"
    unit = ("threads", "GB of memory")
    for column in range(2):
        need = float(problem.needs[shape, column])
        nodes = [host.node[:, column] for host in problem.host_shapes]
        by_node = max((float(node.max(initial=0.0)) for node in nodes), default=0.0)
        by_host = max((float(node.sum()) for node in nodes), default=0.0)
        if need > by_host:
            return f"needs {need:g} {unit[column]}, the largest host has {by_host:g}"
        if not is_split and need > by_node:
            return f"needs {need:g} {unit[column]}, the largest node has {by_node:g}, and its split is never"
    for offset, resource in enumerate(problem.resources):
        need = float(problem.needs[shape, 2 + offset])
        largest = max(
            (
                min(float(host.whole[2 + offset]), float(host.node[:, 2 + offset].sum()))
                for host in problem.host_shapes
            ),
            default=0.0,
        )
        if need > largest:
            return f"needs {need:g} of {resource}, the largest host has {largest:g}"
    return "fits in no host with all it needs, or where rules allow it"
