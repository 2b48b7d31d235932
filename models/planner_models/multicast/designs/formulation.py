"""The reference model of system `multicast` in Pyomo: selection of the groups with table entries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from planner_models.multicast.problem.problem import Multicast

if TYPE_CHECKING:
    import pyomo.environ as pyo


def formulation(problem: Multicast) -> pyo.ConcreteModel:
    """Return the model of least host traffic with partitions in turn and no shared entries."""
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

    def limit(groups: list[str], free: int) -> None:
        if groups:
            m.table.add(sum(m.hardware[g] for g in groups) <= free)

    for core, free in enumerate(problem.free("core").tolist()):
        limit([g for g in rate if held.core[core, partition[g]] and len(pods[g]) > 1], free)
    for switch, free in enumerate(problem.free("aggregation").tolist()):
        pod = int(wires.aggregation_pod[switch])
        here = [g for g in rate if pod in pods[g] and (len(pods[g]) > 1 or len(edges[g, float(pod)]) > 1)]
        limit([g for g in here if held.aggregation[switch, partition[g]]], free)
    for switch, free in enumerate(problem.free("edge").tolist()):
        pod, edge = wires.edge_pod[switch], wires.edge_in_pod[switch]
        limit(
            pd.unique(members.loc[(members["pod"] == pod) & (members["edge"] == edge), "group"]).tolist(),
            free,
        )
    return m
