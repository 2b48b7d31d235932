"""Upgrades of links as a problem of capacity planning: which of them to buy so that all demands fit.

Its plans may route demands over any paths, in any shares. Each line that can be upgraded has one module,
which adds what the upgrade adds and costs what it costs; a line without has the capacity of today.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from planner.contract.elements import Action
from planner.errors import InputError
from planner_models.traffic.problem.network_elements import DuplexLines
from planner_models.traffic.problem.problem import Traffic


def purchase_tables(
    problem: Traffic, action: Action, costs: Mapping[str, float]
) -> Mapping[str, pd.DataFrame]:
    """Return the tables of capacity planning for upgrades of lines by an action.

    costs   of the upgrade of each line that can be bought, by name
    raises  InputError where the problem limits routes, which such a plan does not, and where the two
            directions of a line differ in capacity
    """
    faults = [
        f"{name}: limit routes, which sets of upgrades for any routes do not"
        for name in ("rules", "tunnels")
        if getattr(problem, name) is not None
    ]
    if problem.classes is not None and "max_latency_ms" in problem.demands:
        faults.append("classes: have latency limits of their own")
    lines = DuplexLines.group(problem, both_ways=True)
    count = np.bincount(lines.of_link, minlength=len(lines.names))
    first = np.unique(lines.of_link, return_index=True)[1]
    capacity = problem.capacity_mbps
    differs = np.flatnonzero(capacity != capacity[first][lines.of_link])
    if len(differs):
        faults.append(f"{lines.names[lines.of_link[differs[0]]]}: has another capacity in each direction")
    if len(set(count.tolist())) > 1:
        faults.append("links: some have an opposite one, and others have none")
    if len(lines.unique) < len(lines.names):
        faults.append("links: some share a name")
    if faults:
        raise InputError(*faults)
    ends = problem.links[["tail", "head"]].astype(str).iloc[first].reset_index(drop=True)
    links = ends.assign(capacity_mbps=capacity[first], link=lines.names)
    if "latency_ms" in problem.links:
        links["latency_ms"] = problem.links["latency_ms"].to_numpy(float)[first]
    bought = [row for row, name in enumerate(lines.names) if name in costs]
    modules = pd.DataFrame(
        {
            "module": "upgrade",
            "capacity_mbps": capacity[first][bought] * ((action.value or 1.0) - 1),
            "cost": [costs[lines.names[row]] for row in bought],
            "max_count": 1.0,
            "link": [lines.names[row] for row in bought],
        }
    )
    limits = [name for name in ("max_latency_ms",) if name in problem.demands]
    demands = problem.demands[["source", "target", "rate_mbps", *limits]]
    if problem.classes is not None:  # all of them are to fit
        demands = demands.groupby(["source", "target"], as_index=False, sort=False)[["rate_mbps"]].sum()
    direction = "bidirected" if count[0] > 1 else "directed"
    return {
        "nodes": problem.nodes[["node"]].astype(str),
        "links": links,
        "modules": modules,
        "demands": demands.astype({"source": str, "target": str}),
        "network": pd.DataFrame({"direction": [direction]}),
    }
