"""Validation of the tables of a multicast problem: every fault, with its table, row, value and rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from planner.contract.tables import report_unknown_names, row_name, shorten_faults
from planner_models.multicast.problem import address_allocation
from planner_models.multicast.problem.capacity_equations import find_layout_faults
from planner_models.multicast.problem.topology import Wiring, fat_tree, read_tree

if TYPE_CHECKING:
    from planner_models.multicast.problem.problem import Multicast

HOST_COLUMNS: Final = ("pod", "edge", "port")
KINDS: Final = ("ab", "standard", "portland", "tree")
MAX_PORTS: Final = 64  # a port set is a 64-bit mask


def find_fabric_faults(problem: Multicast) -> list[str]:
    """Return the faults of the table `fabric`, and of tables that do not go with its kind."""
    if len(problem.fabric) != 1:
        return [f"fabric: has {len(problem.fabric)} rows, must have one"]
    row, where = problem.fabric.iloc[0], row_name(problem.fabric, "fabric", 0)
    if row["kind"] not in KINDS:
        return [f"{where}: kind is '{row['kind']}', must be one of {', '.join(KINDS)}"]
    tree = row["kind"] == "tree"
    names = ["partitions", "core_copies", "aggregation_copies"]
    if not tree:
        if "k" not in problem.fabric:
            return ["fabric: column 'k' is missing"]
        if problem.links is not None:
            return [f"links: are for kind tree, {where} says {row['kind']}"]
        names.insert(0, "k")
    elif problem.switches is None or problem.links is None:
        return [f"{where}: kind tree needs the tables switches and links"]
    faults = [f"{where}: {name} is {row[name]:g}, must be whole" for name in names if row[name] % 1]
    if not faults and not tree:
        k, n, rc, ra = (int(row[name]) for name in names)
        faults = [f"{where}: {fault}" for fault in find_layout_faults(k, n, rc, ra)]
    return faults


def build_wiring(problem: Multicast) -> tuple[Wiring | None, list[str]]:
    """Return the wiring that the tables describe, and the faults of those tables."""
    if problem.fabric["kind"].iloc[0] != "tree":
        return fat_tree(problem.kind, problem.k), []
    if problem.switches is None or problem.links is None or "layer" not in problem.switches:
        return None, ["switches: column 'layer' is missing"]
    return read_tree(problem.switches, problem.links)


def find_switch_faults(problem: Multicast) -> list[str]:
    """Return the faults of the table `switches`: unknown names, and tables too small."""
    if problem.switches is None:
        return []
    faults = report_unknown_names(
        problem.switches, "switches", "switch", problem.wiring.switches, "no switch"
    )
    if not faults:
        full = np.flatnonzero(problem.free_entries < 0).tolist()
        named = [
            f"switches: '{problem.wiring.switches[i]}' has more entries occupied than its table holds"
            for i in full
        ]
        faults = shorten_faults(named, "switches", "with more occupied than they hold")
    return faults


def find_failed_faults(problem: Multicast) -> list[str]:
    """Return the faults of the table `failed`."""
    if problem.failed is None:
        return []
    above = problem.wiring.cores.append(problem.wiring.aggregations)
    return report_unknown_names(problem.failed, "failed", "switch", above, "no core or aggregation switch")


def locate_hosts(hosts: pd.DataFrame, wiring: Wiring) -> tuple[pd.DataFrame, list[str]]:
    """Return the hosts with pod and edge, filled in from the column `switch` where given, and its faults."""
    if "switch" not in hosts:
        return hosts, []
    faults = report_unknown_names(hosts, "hosts", "switch", wiring.edges, "no edge switch")
    if faults:
        return hosts, faults
    edge = wiring.edges.get_indexer(pd.Index(hosts["switch"]))
    pod, number = wiring.edge_pod[edge].astype(float), wiring.edge_in_pod[edge].astype(float)
    return hosts.assign(pod=pod, edge=number).drop(columns="switch"), []


def find_host_faults(problem: Multicast) -> list[str]:
    """Return the faults of the table `hosts`: places outside the fabric, and two hosts at one port."""
    hosts = problem.hosts
    absent = [name for name in HOST_COLUMNS if name not in hosts]
    if absent:
        return [f"hosts: column '{absent[0]}' is missing"]
    faults = []
    edges = int(problem.wiring.edge_in_pod.max()) + 1
    ports = MAX_PORTS if problem.is_tree else problem.half
    for name, most in zip(HOST_COLUMNS, (problem.pods, edges, ports), strict=True):
        place = hosts[name].to_numpy()
        wrong = np.flatnonzero((place >= most) | (place % 1 != 0)).tolist()
        named = [
            f"{row_name(hosts, 'hosts', row)}: {name} is {place[row]:g}, must be whole and below {most}"
            for row in wrong
        ]
        faults += shorten_faults(named, "hosts", f"with a {name} outside the fabric")
    if not faults:
        nowhere = np.flatnonzero(problem.edge_of_host < 0).tolist()
        named = [f"{row_name(hosts, 'hosts', row)}: its pod has fewer edge switches" for row in nowhere]
        faults += shorten_faults(named, "hosts", "outside the fabric")
    twice = np.flatnonzero(hosts.duplicated(list(HOST_COLUMNS))).tolist()
    named = [f"{row_name(hosts, 'hosts', row)}: another host has the same port" for row in twice]
    return faults + shorten_faults(named, "hosts", "at a port that is taken")


def find_member_faults(problem: Multicast) -> list[str]:
    """Return the faults of the table `members`, and groups without members."""
    groups, hosts = pd.Index(problem.groups["group"]), pd.Index(problem.hosts["host"])
    faults = report_unknown_names(problem.members, "members", "group", groups, "in no row of groups")
    faults += report_unknown_names(problem.members, "members", "host", hosts, "no host of the fabric")
    if faults:
        return faults
    empty = np.flatnonzero(problem.member_counts == 0).tolist()
    named = [
        f"{row_name(problem.groups, 'groups', row)}: group '{groups[row]}' has no members" for row in empty
    ]
    return shorten_faults(named, "groups", "without members")


def find_tenant_faults(problem: Multicast) -> list[str]:
    """Return the faults of the table `tenants`, and tenants of groups that it does not list."""
    if problem.tenants is None:
        return []
    hosts = pd.Index(problem.hosts["host"])
    faults = report_unknown_names(problem.tenants, "tenants", "host", hosts, "no host of the fabric")
    if "tenant" in problem.groups:
        known = problem.tenants["tenant"].cat.categories
        faults += report_unknown_names(problem.groups, "groups", "tenant", known, "in no row of tenants")
    return faults


def find_background_faults(problem: Multicast) -> list[str]:
    """Return the faults of the table `background`: rows that are no link."""
    if problem.background is None:
        return []
    rows = problem.background
    faults = report_unknown_names(rows, "background", "upper", problem.wiring.switches, "no switch")
    below = problem.wiring.aggregations.append(problem.wiring.edges).append(pd.Index(problem.hosts["host"]))
    faults += report_unknown_names(rows, "background", "lower", below, "no switch and no host")
    if faults:
        return faults
    wires = problem.wiring
    layers = (wires.cores, wires.aggregations, wires.edges)
    core, above, edge = (names.get_indexer(pd.Index(rows["upper"])) for names in layers)
    to_aggregation = wires.aggregations.get_indexer(pd.Index(rows["lower"]))
    to_edge = wires.edges.get_indexer(pd.Index(rows["lower"]))
    to_host = pd.Index(problem.hosts["host"]).get_indexer(pd.Index(rows["lower"]))
    linked = (core >= 0) & (to_aggregation >= 0) & wires.up[to_aggregation, core]
    linked |= (above >= 0) & (to_edge >= 0) & (wires.aggregation_pod[above] == wires.edge_pod[to_edge])
    linked |= (edge >= 0) & (to_host >= 0) & (problem.edge_of_host[to_host] == edge)
    named = [
        f"{row_name(rows, 'background', row)}: '{rows['upper'].iloc[row]}' has no link to "
        f"'{rows['lower'].iloc[row]}'"
        for row in np.flatnonzero(~linked).tolist()
    ]
    return shorten_faults(named, "background", "where there is no link")


def find_holds_faults(problem: Multicast) -> list[str]:
    """Return the faults of the table `holds`: partitions that do not exist or do not reach a pod.

    raises  InputError for a tree without that table where no distribution exists
    """
    if problem.holds is None:
        if problem.is_tree:
            problem.distribution(problem.aggregation_copies)  # InputError where none exists
        return []
    rows = problem.holds
    above = problem.wiring.cores.append(problem.wiring.aggregations)
    faults = report_unknown_names(rows, "holds", "switch", above, "no core or aggregation switch")
    count = int(problem.fabric["partitions"].iloc[0])
    named = [
        f"{row_name(rows, 'holds', row)}: partition is {rows['partition'].iloc[row]:g}, "
        f"must be whole and below {count}"
        for row in np.flatnonzero((rows["partition"] % 1 != 0) | (rows["partition"] >= count)).tolist()
    ]
    faults += shorten_faults(named, "holds", "with a partition that does not exist")
    if faults:
        return faults
    return address_allocation.find_unreachable_partitions(
        problem.wiring, problem.distribution(problem.aggregation_copies)
    )
