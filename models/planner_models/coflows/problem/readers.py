"""Coflows from a trace in the format of the coflow benchmark."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.parameters import spread
from planner.errors import InputError
from planner_models.circuits.problem.readers import read_coflow_parts
from planner_models.coflows.problem.generators import Network
from planner_models.coflows.problem.problem import CoflowsInTime

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
