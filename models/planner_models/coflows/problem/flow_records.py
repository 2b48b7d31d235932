"""Coflows from flow records of routers and captures: single flows, or those to one host at one time."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Ints
from planner.contract.parameters import spread
from planner_models.coflows.problem.generators import Network
from planner_models.coflows.problem.problem import CoflowsInTime
from planner_models.flowrecords.captures import flow_begins
from planner_models.flowrecords.demands import Cleaning, RecordFiles
from planner_models.flowrecords.flows import Flows, Joining, read_flows


@spread(files=RecordFiles, cleaning=Cleaning(), joining=Joining(), network=Network())
def read_records(
    *,
    files: RecordFiles,
    group: Annotated[
        Literal["flow", "target"],
        Field(
            description="flow: each flow is a coflow; target: flows to one host, with gaps below group_gap_s"
        ),
    ] = "flow",
    group_gap_s: Annotated[
        float, Field(gt=0, le=1e6, description="gap between starts that ends a coflow of a target, s")
    ] = 1.0,
    cleaning: Cleaning,
    joining: Joining,
    network: Network,
) -> CoflowsInTime:
    """Read the flows in flow records; prefixes name the rack of each address.

    Records do not say which flows belong together: that is assumed by their target and start, or not at all.

    raises  InputError (see `flowrecords.flows.read_flows`)
    """
    flows = read_flows(files, cleaning, joining)
    coflow = np.arange(len(flows)) if group == "flow" else _group_by_target(flows, group_gap_s)
    table = pd.DataFrame(
        {
            "coflow": [f"c{number + 1}" for number in coflow.tolist()],
            "source_rack": flows.names(flows.source),
            "target_rack": flows.names(flows.target),
            "bytes": flows.octets,
            "arrival_ms": flows.start_s * 1e3,
        }
    )
    arrivals = table.groupby("coflow", sort=False)["arrival_ms"].min().reset_index()
    sums = table.groupby(["coflow", "source_rack", "target_rack"], sort=False)["bytes"].sum().reset_index()
    return network.problem(list(flows.nodes), arrivals, sums)


def _group_by_target(flows: Flows, gap_s: float) -> Ints:
    """Return the number of the coflow of each flow, in the order of their first starts."""
    records = flows.records
    order = np.lexsort((flows.start_s, records.target_low, records.target_high))
    keys = np.stack([records.target_high[order], records.target_low[order]])
    start_s = flows.start_s[order]
    number = np.empty(len(flows), dtype=np.int64)
    number[order] = np.cumsum(flow_begins(keys, start_s, start_s, gap_s)) - 1
    return pd.factorize(number)[0].astype(np.int64)
