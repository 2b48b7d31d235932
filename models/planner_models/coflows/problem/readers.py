"""Coflows from files: traces of the coflow benchmark, and flow records of routers and captures."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Ints
from planner.contract.parameters import spread
from planner.errors import InputError
from planner_models.circuits.problem.readers import read_coflow_parts
from planner_models.coflows.problem.generators import Network
from planner_models.coflows.problem.problem import CoflowsInTime
from planner_models.flowrecords.captures import flow_begins
from planner_models.flowrecords.demands import Cleaning, RecordFiles
from planner_models.flowrecords.flows import Flows, Joining, read_flows

TracePath = Annotated[Path, Field(description="a trace in the coflow-benchmark format")]


@spread(network=Network())
def read_trace(
    *,
    path: TracePath,
    start_ms: Annotated[float, Field(ge=0, description="coflows that arrive from here on")] = 0.0,
    length_ms: Annotated[
        Annotated[float, Field(gt=0)] | None,
        Field(description="... within this time, ms; none: to the end of the trace"),
    ] = None,
    network: Network,
) -> CoflowsInTime:
    """Read the coflows of a trace, each with its arrival and its flows.

    Each reducer receives its megabytes (of 10^6 bytes) in equal parts from every mapper. What stays in a
    rack is left out, and so are coflows of nothing else. Racks keep their numbers.

    source  Chowdhury, coflow-benchmark (a trace of Facebook's MapReduce)
    raises  InputError for a trace that cannot be read, and where no coflow arrives in this time
    """
    names, parts = read_coflow_parts(path)
    end_ms = math.inf if length_ms is None else start_ms + length_ms
    parts = parts[(parts["at"] >= start_ms) & (parts["at"] < end_ms)]
    if not len(parts):
        raise InputError(f"{path.name}: no coflow arrives from {start_ms:g} ms to {end_ms:g} ms")
    ends = {f"{end}_rack": names[parts[end].to_numpy(np.int64)] for end in ("source", "target")}
    flows = pd.DataFrame({"coflow": parts["coflow"], **ends, "bytes": parts["bits"] / 8})
    coflows = parts.drop_duplicates("coflow")[["coflow", "at"]].rename(columns={"at": "arrival_ms"})
    coflows = coflows.assign(arrival_ms=coflows["arrival_ms"] - start_ms)
    return network.problem(
        [str(name) for name in names], coflows.reset_index(drop=True), flows.reset_index(drop=True)
    )


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
