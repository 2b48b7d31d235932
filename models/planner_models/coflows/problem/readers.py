"""Coflows from a trace in the format of the coflow benchmark, and from flow files of htsim."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.notes import add_note
from planner.contract.parameters import spread
from planner.errors import InputError
from planner_models.circuits.problem.readers import HostsPerRack, read_coflow_parts, read_htsim_flows
from planner_models.coflows.problem.generators import Network
from planner_models.coflows.problem.problem import CoflowsInTime

HtsimPath = Annotated[
    Path, Field(description=".htsim: rows of source, target, bytes and start in ns, without a header")
]
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


@spread(network=Network())
def read_htsim(
    *,
    path: HtsimPath,
    hosts_per_rack: HostsPerRack = 1,
    group: Annotated[
        Literal["flow", "target"],
        Field(
            description="flow: each flow is a coflow; target: flows to one rack, with gaps between starts "
            "below group_gap_us"
        ),
    ] = "flow",
    group_gap_us: Annotated[
        float, Field(gt=0, le=1e12, description="gap between starts that ends a coflow of a target, us")
    ] = 100.0,
    network: Network,
) -> CoflowsInTime:
    """Read the flows of a file for the packet simulator htsim; files do not say which belong together.

    Flows within a rack are left out, with a note.

    source  Mellette et al. 2020 (Opera), whose simulator reads such files
    raises  InputError for rows that are no flow, and where no flow is between two racks
    """
    frame = read_htsim_flows(path, hosts_per_rack)
    remote = frame[frame["source_rack"] != frame["target_rack"]].reset_index(drop=True)
    if not len(remote):
        raise InputError(f"{path.name}: has no flow between two racks; hosts_per_rack is {hosts_per_rack}")
    if len(remote) < len(frame):
        add_note(f"{path.name}: {len(frame) - len(remote):,} flows within a rack are left out")
    number = np.arange(len(remote))
    if group == "target":
        order = np.lexsort((remote["start_us"], remote["target_rack"]))
        target, start = (remote[name].to_numpy()[order] for name in ("target_rack", "start_us"))
        begins = np.append(True, (target[1:] != target[:-1]) | (np.diff(start) >= group_gap_us))
        number[order] = np.cumsum(begins)
    code = pd.factorize(number)[0] + 1
    table = remote.assign(coflow=[f"c{value}" for value in code], arrival_ms=remote["start_us"] / 1e3)
    arrivals = table.groupby("coflow", sort=False)["arrival_ms"].min().reset_index()
    flows = table.groupby(["coflow", "source_rack", "target_rack"], sort=False)["bytes"].sum().reset_index()
    racks = sorted({*flows["source_rack"], *flows["target_rack"]}, key=int)
    return network.problem(racks, arrivals, flows)
