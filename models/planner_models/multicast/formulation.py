"""The reference model of system `multicast` in Pyomo: which groups deserve table entries."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyomo.environ as pyo

from planner_models.multicast.addresses import aggregation_partitions, core_partition
from planner_models.multicast.problem import Multicast


def formulation(problem: Multicast) -> Any:
    """Least host traffic with partitions in turn and no shared entries, written switch by switch."""
    members = problem.members.merge(problem.hosts, on="host")
    rate = dict(zip(problem.groups["group"], problem.rate_mbps.tolist(), strict=True))
    count = members["group"].value_counts().to_dict()
    copies, k = problem.aggregation_copies, problem.k
    parts = (k // 2 // copies) ** 2
    partition = {group: i % parts for i, group in enumerate(rate)}
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

    def limit(groups: list[str], layer: str) -> None:
        if groups:
            m.table.add(sum(m.hardware[g] for g in groups) <= problem.table_size(layer))

    for part in core_partition(k, copies).tolist():
        limit([g for g in rate if partition[g] == part and len(pods[g]) > 1], "core")
    held = aggregation_partitions(problem.kind, k, copies)
    for pod in range(k):
        here = [g for g in rate if pod in pods[g] and (len(pods[g]) > 1 or len(edges[g, float(pod)]) > 1)]
        for switch in range(k // 2):
            limit([g for g in here if held[pod, switch, partition[g]]], "aggregation")
    for _, at in members.groupby(["pod", "edge"])["group"]:
        limit(pd.unique(at).tolist(), "edge")
    return m
