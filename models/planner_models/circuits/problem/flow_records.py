"""Demand between racks from flow records of routers and captures, whole or by windows."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.notes import add_note
from planner.contract.parameters import spread
from planner_models.circuits.problem.network import Network
from planner_models.circuits.problem.problem import Circuits
from planner_models.circuits.problem.readers import Trace, Windows
from planner_models.flowrecords.demands import Cleaning, RecordFiles
from planner_models.flowrecords.flows import Flows, Joining, read_flows


@spread(files=RecordFiles, cleaning=Cleaning(), joining=Joining(), network=Network(window_us=None))
def read_records(*, files: RecordFiles, cleaning: Cleaning, joining: Joining, network: Network) -> Circuits:
    """Read the demand of the flows in flow records; prefixes name the rack of each address.

    Each flow is a coflow of its own.

    raises  InputError (see `flowrecords.flows.read_flows`)
    """
    return make_trace(read_flows(files, cleaning, joining), network).problem(0.0, math.inf)


@spread(files=RecordFiles, cleaning=Cleaning(), joining=Joining(), network=Network(window_us=None))
def read_record_windows(
    *,
    files: RecordFiles,
    length_us: Annotated[float, Field(gt=0, description="length of a window, us")] = 2_000.0,
    cleaning: Cleaning,
    joining: Joining,
    network: Network,
) -> Windows:
    """Read flow records by windows: each has the flows that start in it, from an idle start."""
    trace = make_trace(read_flows(files, cleaning, joining), network)
    windows = Windows(trace=trace, start=0.0, length=length_us, unit="us")
    if doubt := windows.find_empty(files.path.name):
        add_note(doubt)
    return windows


def make_trace(flows: Flows, network: Network) -> Trace:
    """Return the trace of flows between racks."""
    parts = pd.DataFrame(
        {
            "at": flows.start_s * 1e6,
            "coflow": np.array([f"flow {row + 1}" for row in range(len(flows))], dtype=object),
            "source_rack": flows.names(flows.source),
            "target_rack": flows.names(flows.target),
            "bits": flows.octets * 8.0,
        }
    )
    racks = network.with_rates(pd.DataFrame({"rack": list(flows.nodes)}))
    return Trace(racks=racks, parts=parts, network=network)
