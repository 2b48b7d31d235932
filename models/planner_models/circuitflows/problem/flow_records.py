"""Flows over circuits from flow records of routers and captures: each with its host, start and size."""

from __future__ import annotations

import numpy as np
import pandas as pd

from planner.contract.parameters import spread
from planner_models.circuitflows.problem.generators import NetworkWithWeek
from planner_models.circuitflows.problem.problem import NONE, FlowsInTime
from planner_models.flowrecords.demands import Cleaning, RecordFiles
from planner_models.flowrecords.flows import Joining, read_flows


@spread(files=RecordFiles, cleaning=Cleaning(), joining=Joining(), network=NetworkWithWeek())
def read_records(
    *, files: RecordFiles, cleaning: Cleaning, joining: Joining, network: NetworkWithWeek
) -> FlowsInTime:
    """Read the flows in flow records; prefixes name the rack of each address.

    Addresses that send are the hosts of their rack, numbered in their order; each rack has as many hosts as
    the one with most. `start_s` and `length_s` select a time that the run's horizon has.

    raises  InputError (see `flowrecords.flows.read_flows`)
    """
    flows = read_flows(files, cleaning, joining)
    addresses = pd.DataFrame(
        {"rack": flows.source, "high": flows.records.source_high, "low": flows.records.source_low}
    )
    distinct = addresses.drop_duplicates().sort_values(["rack", "high", "low"])
    distinct["host"] = distinct.groupby("rack").cumcount() + 1
    host = addresses.merge(distinct, on=["rack", "high", "low"], how="left")["host"]
    table = pd.DataFrame(
        {
            "flow": [f"f{row + 1}" for row in range(len(flows))],
            "source_rack": flows.names(flows.source),
            "target_rack": flows.names(flows.target),
            "host": host.to_numpy(float),
            "start_us": np.round(flows.start_s * 1e6, 3),
            "bytes": flows.octets,
            "after": NONE,
        }
    )
    return network.problem(
        table, racks=len(flows.nodes), hosts=int(distinct["host"].max()), names=list(flows.nodes)
    )
