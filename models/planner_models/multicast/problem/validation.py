"""Validation of the tables of a multicast problem: every fault, with its table, row, value and rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.arrays import Ints
from planner.contract.tables import report_unknown_names, row_name, shorten_faults
from planner_models.multicast.problem.equations import find_layout_faults
from planner_models.multicast.problem.topology import Kind, Wiring, fat_tree, find_rows, read_tree

HOST_COLUMNS: Final = ("pod", "edge", "port")
KINDS: Final = ("ab", "standard", "portland", "tree")
MAX_PORTS: Final = 64  # a port set is a 64-bit mask


def find_fabric_faults(
    fabric: pd.DataFrame, switches: pd.DataFrame | None, links: pd.DataFrame | None
) -> list[str]:
    """Return the faults of the table `fabric`, and of tables that do not go with its kind."""
    if len(fabric) != 1:
        return [f"fabric: has {len(fabric)} rows, must have one"]
    row, where = fabric.iloc[0], row_name(fabric, "fabric", 0)
    if row["kind"] not in KINDS:
        return [f"{where}: kind is '{row['kind']}', must be one of {', '.join(KINDS)}"]
    names = ["partitions", "core_copies", "aggregation_copies"]
    if row["kind"] == "tree":
        if switches is None or links is None:
            return [f"{where}: kind tree needs the tables switches and links"]
        return _find_fractions(row, names, where)
    if "k" not in fabric:
        return ["fabric: column 'k' is missing"]
    if links is not None:
        return [f"links: are for kind tree, {where} says {row['kind']}"]
    names.insert(0, "k")
    layout = find_layout_faults
    return _find_fractions(row, names, where) or [
        f"{where}: {fault}" for fault in layout(*(int(row[name]) for name in names))
    ]


def _find_fractions(row: pd.Series[Any], names: Sequence[str], where: str) -> list[str]:
    """Return the faults of numbers of the fabric that are not whole."""
    return [f"{where}: {name} is {row[name]:g}, must be whole" for name in names if row[name] % 1]


def build_wiring(
    fabric: pd.DataFrame, switches: pd.DataFrame | None, links: pd.DataFrame | None
) -> tuple[Wiring | None, list[str]]:
    """Return the wiring that the tables describe, and the faults of those tables."""
    kind = fabric["kind"].iloc[0]
    if kind != "tree":
        return fat_tree(cast("Kind", kind), int(fabric["k"].iloc[0])), []
    if switches is None or links is None or "layer" not in switches:
        return None, ["switches: column 'layer' is missing"]
    return read_tree(switches, links)


def find_switch_faults(switches: pd.DataFrame | None, wiring: Wiring, free: Callable[[], Ints]) -> list[str]:
    """Return the faults of the table `switches`: unknown names, and tables too small.

    free  returns the free entries of all switches, where their names are known
    """
    if switches is None:
        return []
    faults = report_unknown_names(switches, "switches", "switch", wiring.switches, "no switch")
    if faults:
        return faults
    full = wiring.switches[free() < 0]
    named = [f"switches: '{name}' has more entries occupied than its table holds" for name in full]
    return shorten_faults(named, "switches", "with more occupied than they hold")


def find_failed_faults(
    failed: pd.DataFrame | None, failed_links: pd.DataFrame | None, wiring: Wiring
) -> list[str]:
    """Return the faults of the tables `failed` and `failed_links`."""
    faults = []
    if failed is not None:
        faults += report_unknown_names(failed, "failed", "switch", wiring.switches, "no switch")
    if failed_links is None:
        return faults
    for end in ("lower", "upper"):
        faults += report_unknown_names(failed_links, "failed_links", end, wiring.switches, "no switch")
    if faults:
        return faults
    ends = zip(failed_links["lower"].astype(str), failed_links["upper"].astype(str), strict=True)
    absent = [
        f"{row_name(failed_links, 'failed_links', row)}: there is no link from '{lower}' up to '{upper}'"
        for row, (lower, upper) in enumerate(ends)
        if not wiring.has_link(lower, upper)
    ]
    return shorten_faults(absent, "failed_links", "without a link")


def locate_hosts(hosts: pd.DataFrame, wiring: Wiring) -> tuple[pd.DataFrame, list[str]]:
    """Return the hosts with pod and edge, filled in from the column `switch` where given, and its faults."""
    if "switch" not in hosts:
        return hosts, []
    faults = report_unknown_names(hosts, "hosts", "switch", wiring.edges, "no edge switch")
    if faults:
        return hosts, faults
    edge = find_rows(wiring.edges, hosts["switch"])
    pod, number = wiring.edge_pod[edge].astype(float), wiring.edge_in_pod[edge].astype(float)
    return hosts.assign(pod=pod, edge=number).drop(columns="switch"), []


def find_host_faults(hosts: pd.DataFrame, wiring: Wiring, ports: int) -> list[str]:
    """Return the faults of the table `hosts`: places outside the fabric, and two hosts at one port."""
    absent = [name for name in HOST_COLUMNS if name not in hosts]
    if absent:
        return [f"hosts: column '{absent[0]}' is missing"]
    faults = []
    edges = np.bincount(wiring.edge_pod, minlength=wiring.pods)
    for name, limit in zip(HOST_COLUMNS, (wiring.pods, int(edges.max()), ports), strict=True):
        values = hosts[name]
        rule = f"{name} is {{{name}:g}}, must be whole and below {limit}"
        wrong = ((values >= limit) | (values % 1 != 0)).to_numpy()
        faults += _row_faults(hosts, "hosts", wrong, rule, f"with a {name} outside the fabric")
    if not faults:
        nowhere = hosts["edge"].to_numpy() >= edges[hosts["pod"].to_numpy(np.int64)]
        faults += _row_faults(
            hosts, "hosts", nowhere, "its pod has fewer edge switches", "outside the fabric"
        )
    twice = hosts.duplicated(list(HOST_COLUMNS)).to_numpy()
    return faults + _row_faults(
        hosts, "hosts", twice, "another host has the same port", "at a port that is taken"
    )


def find_member_faults(members: pd.DataFrame, groups: pd.DataFrame, hosts: pd.Index) -> list[str]:
    """Return the faults of the table `members`, and groups without members."""
    faults = report_unknown_names(
        members, "members", "group", pd.Index(groups["group"]), "in no row of groups"
    )
    faults += report_unknown_names(members, "members", "host", hosts, "no host of the fabric")
    if faults:
        return faults
    empty = ~groups["group"].isin(members["group"].unique()).to_numpy()
    return _row_faults(groups, "groups", empty, "group '{group}' has no members", "without members")


def find_tenant_faults(tenants: pd.DataFrame | None, groups: pd.DataFrame, hosts: pd.Index) -> list[str]:
    """Return the faults of the table `tenants`, and tenants of groups that it does not list."""
    if tenants is None:
        return []
    faults = report_unknown_names(tenants, "tenants", "host", hosts, "no host of the fabric")
    if "tenant" in groups:
        tenant_names = tenants["tenant"].cat.categories
        faults += report_unknown_names(groups, "groups", "tenant", tenant_names, "in no row of tenants")
    return faults


def find_background_faults(
    rows: pd.DataFrame | None, wires: Wiring, hosts: pd.Index, edge_of_host: Ints
) -> list[str]:
    """Return the faults of the table `background`: rows that are no link."""
    if rows is None:
        return []
    faults = report_unknown_names(rows, "background", "upper", wires.switches, "no switch")
    below = wires.aggregations.append(wires.edges).append(hosts)
    faults += report_unknown_names(rows, "background", "lower", below, "no switch and no host")
    if faults:
        return faults
    core, above, edge = (
        find_rows(names, rows["upper"]) for names in (wires.cores, wires.aggregations, wires.edges)
    )
    to_aggregation, to_edge, to_host = (
        find_rows(names, rows["lower"]) for names in (wires.aggregations, wires.edges, hosts)
    )
    linked = (core >= 0) & (to_aggregation >= 0) & wires.up[to_aggregation, core]
    linked |= (above >= 0) & (to_edge >= 0) & (wires.aggregation_pod[above] == wires.edge_pod[to_edge])
    linked |= (edge >= 0) & (to_host >= 0) & (edge_of_host[to_host] == edge)
    rule = "'{upper}' has no link to '{lower}'"
    return _row_faults(rows, "background", ~linked, rule, "where there is no link")


def find_holds_faults(rows: pd.DataFrame, wiring: Wiring, partitions: int) -> list[str]:
    """Return the faults of the table `holds`: unknown switches, and partitions that do not exist."""
    faults = report_unknown_names(rows, "holds", "switch", wiring.above, "no core or aggregation switch")
    wrong = ((rows["partition"] % 1 != 0) | (rows["partition"] >= partitions)).to_numpy()
    rule = f"partition is {{partition:g}}, must be whole and below {partitions}"
    return faults + _row_faults(rows, "holds", wrong, rule, "with a partition that does not exist")


def _row_faults(frame: pd.DataFrame, table: str, broken: NDArray[Any], rule: str, what: str) -> list[str]:
    """Return a fault for each broken row: `rule`, with values of the row in braces."""
    rows = np.flatnonzero(broken).tolist()
    named = [f"{row_name(frame, table, row)}: {rule.format(**frame.iloc[row])}" for row in rows]
    return shorten_faults(named, table, what)
