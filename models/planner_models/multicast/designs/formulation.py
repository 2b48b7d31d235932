"""The reference models of system `multicast` in Pyomo: selection of the groups with table entries.

`formulation` gives every group its own entries; in `joint_formulation` groups may share those of edge
switches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pandas as pd

from planner_models.multicast.designs.channelization.p_median import list_unions
from planner_models.multicast.problem.problem import Multicast

if TYPE_CHECKING:
    import pyomo.environ as pyo

MAX_UNIONS: Final = 1024  # of the port sets at one switch


def formulation(problem: Multicast) -> pyo.ConcreteModel:
    """Return the model of least host traffic with partitions in turn and no shared entries."""
    m = _select_groups(problem)
    members = _members(problem)
    for switch, free in enumerate(problem.free("edge").tolist()):
        here = members[members["switch"] == switch]
        _limit(m, pd.unique(here["group"]).tolist(), free)
    return m


def joint_formulation(problem: Multicast) -> pyo.ConcreteModel:
    """Return the model of the joint choice between unicast, own and shared entries at edge switches.

    An edge switch opens unions of the port sets of its groups, at most as many as it has free entries. A
    group with entries goes to one open union at each of its edge switches, which covers its ports there, at
    its rate for each port too many; an own entry is a union that no other group takes. For small problems.

    raises  InputError for a switch with more than 1,024 unions
    """
    import pyomo.environ as pyo

    m = _select_groups(problem)
    rate = dict(zip(problem.groups["group"], problem.rate_mbps, strict=True))
    ports = _port_sets(problem)
    unions = {
        switch: list_unions([mask for (edge, _), mask in ports.items() if edge == switch], MAX_UNIONS)
        for switch in sorted({edge for edge, _ in ports})
    }
    fits = [
        (switch, group, union)
        for (switch, group), mask in ports.items()
        for union in unions[switch]
        if mask & ~union == 0
    ]
    m.opens = pyo.Var([(switch, union) for switch in unions for union in unions[switch]], domain=pyo.Binary)
    m.takes = pyo.Var(fits, domain=pyo.Binary)
    taken: dict[tuple[int, str], list[int]] = {port: [] for port in ports}
    for switch, group, union in fits:
        taken[switch, group].append(union)
    m.one_union = pyo.Constraint(
        list(ports), rule=lambda m, s, g: sum(m.takes[s, g, u] for u in taken[s, g]) == m.hardware[g]
    )
    m.is_open = pyo.Constraint(fits, rule=lambda m, s, g, u: m.takes[s, g, u] <= m.opens[s, u])
    m.edge_table = pyo.Constraint(
        list(unions), rule=lambda m, s: sum(m.opens[s, u] for u in unions[s]) <= int(problem.free("edge")[s])
    )
    extra = sum(rate[g] * (u & ~ports[s, g]).bit_count() * m.takes[s, g, u] for s, g, u in fits)
    m.host_traffic.set_value(m.host_traffic.expr + extra)
    return m


def _port_sets(problem: Multicast) -> dict[tuple[int, str], int]:
    """Return the ports of each group at each of its edge switches, as bits, by switch and group."""
    members = _members(problem)
    columns = (members["switch"].tolist(), members["group"].tolist(), members["port"].astype(int).tolist())
    ports: dict[tuple[int, str], int] = {}
    for switch, group, port in zip(*columns, strict=True):
        ports[switch, group] = ports.get((switch, group), 0) | 1 << port
    return ports


def _members(problem: Multicast) -> pd.DataFrame:
    """Return the members with the place of their host: pod, edge, port and the number of the edge switch."""
    members = problem.members.astype(str).merge(problem.hosts, on="host")
    wires = problem.wiring
    positions = zip(wires.edge_pod.tolist(), wires.edge_in_pod.tolist(), strict=True)
    number = {position: switch for switch, position in enumerate(positions)}
    ends = zip(members["pod"].astype(int), members["edge"].astype(int), strict=True)
    return members.assign(switch=[number[position] for position in ends])


def _select_groups(problem: Multicast) -> pyo.ConcreteModel:
    """Return the model without the tables of edge switches."""
    import pyomo.environ as pyo

    members = problem.members.astype(str).merge(problem.hosts, on="host")
    rate = dict(zip(problem.groups["group"], problem.rate_mbps.tolist(), strict=True))
    count = members["group"].value_counts().to_dict()
    held, wires = problem.distribution(problem.aggregation_copies), problem.wiring
    partition = {group: i % held.partitions for i, group in enumerate(rate)}
    pods = members.groupby("group")["pod"].agg(set).to_dict()
    edges = members.groupby(["group", "pod"])["edge"].agg(set).to_dict()

    m = pyo.ConcreteModel("groups in hardware")
    m.hardware = pyo.Var(list(rate), domain=pyo.Binary)
    m.host_traffic = pyo.Objective(
        expr=sum(
            rate[g] * (2 * count[g] * (1 - m.hardware[g]) + (1 + count[g]) * m.hardware[g]) for g in rate
        )
    )
    m.table = pyo.ConstraintList()

    for core, free in enumerate(problem.free("core").tolist()):
        _limit(m, [g for g in rate if held.core[core, partition[g]] and len(pods[g]) > 1], free)
    for switch, free in enumerate(problem.free("aggregation").tolist()):
        pod = int(wires.aggregation_pod[switch])
        here = [g for g in rate if pod in pods[g] and (len(pods[g]) > 1 or len(edges[g, float(pod)]) > 1)]
        _limit(m, [g for g in here if held.aggregation[switch, partition[g]]], free)
    return m


def _limit(m: pyo.ConcreteModel, groups: list[str], free: int) -> None:
    if groups:
        m.table.add(sum(m.hardware[g] for g in groups) <= free)
