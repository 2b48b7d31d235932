"""Problems from a plain table of flows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from planner.contract.table import Table
from planner.io.in_memory import take_table
from planner_models.circuitflows.problem.generators import NetworkWithWeek
from planner_models.circuitflows.problem.problem import ANY, FLOWS, NONE, FlowsInTime
from planner_models.circuits.problem.network import spread


@spread(network=NetworkWithWeek())
def from_flows(flows: Any, *, hosts: int = 16, network: NetworkWithWeek) -> FlowsInTime:
    """Return the problem of flows between equal racks, which are those that the flows name.

    flows    data frame or list of records with source_rack, target_rack and bytes, or another unit, as
             in size_mb; and, where they are known, flow, host, start_us and after. Without them, all
             flows start at 0, and the hosts of a rack take turns
    hosts    hosts in each rack; default: 16
    network  rates and times of the network, such as circuit_mbps and week_us, with the defaults of the
             preset `mixed`

    raises   InputError with every fault
    """
    frame = _complete(flows if isinstance(flows, pd.DataFrame) else pd.DataFrame(flows), hosts)
    ends = pd.concat([frame["source_rack"], frame["target_rack"]]).astype(str)
    names = [name for name in dict.fromkeys(ends) if name != ANY]
    return network.problem(frame, racks=len(names), hosts=hosts, names=names)


def _complete(flows: pd.DataFrame, hosts: int) -> pd.DataFrame:
    """Return flows with all columns of the table."""
    optional = ("flow", "host", "start_us", "after")
    needed = Table(
        name=FLOWS.name,
        about=FLOWS.about,
        columns={
            name: column for name, column in FLOWS.columns.items() if name not in optional or name in flows
        },
    )
    frame = take_table(needed, flows, where="flows")
    turn = frame.groupby("source_rack", sort=False).cumcount().to_numpy()
    defaults: dict[str, Any] = {
        "flow": [f"f{count}" for count in range(len(frame))],
        "host": np.asarray(turn) % hosts + 1,
        "start_us": 0.0,
        "after": NONE,
    }
    missing = {name: value for name, value in defaults.items() if name not in frame}
    return frame.assign(**missing)
