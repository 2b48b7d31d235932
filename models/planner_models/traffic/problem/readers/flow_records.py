"""Problems of flow records over a network: one problem, or one for each bucket of time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Floats
from planner.contract.parameters import spread
from planner.errors import InputError
from planner.io.table_files import find_tables, read_tables
from planner_models.flowrecords.demands import (
    MBIT_PER_BYTE,
    Cleaning,
    Demands,
    RecordFiles,
    Statistic,
    read_demands,
)
from planner_models.networks.classes import CLASSES
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.problem.schema import LINKS, NODES
from planner_models.traffic.problem.series import Series

NetworkFolder = Annotated[Path, Field(description="folder with links (and nodes, classes) of the network")]
BucketLength = Annotated[float, Field(ge=1e-6, le=1e9, description="length of a bucket of time, s")]
PERCENTILE: Final = 95.0


@spread(files=RecordFiles, cleaning=Cleaning())
def read(
    *,
    files: RecordFiles,
    network: NetworkFolder,
    bucket_s: BucketLength = 300.0,
    statistic: Annotated[
        Statistic, Field(description="rate of a demand, over buckets: mean, p95 or max")
    ] = "mean",
    cleaning: Cleaning,
) -> Traffic:
    """Read the demands in flow records, each at a statistic of its rates over time.

    The mean is over all the time of the records; p95 and max are over buckets that have a record.

    raises  InputError (see `flowrecords.demands.read_demands`)
    """
    tables, demands = _read(network, files, cleaning, bucket_s)
    return Traffic.from_tables({**tables, "demands": demands.frame(rates_of(demands, statistic))})


def rates_of(demands: Demands, statistic: Statistic) -> Floats:
    """Return a statistic of the rates of each demand over the used buckets, Mbit/s, shape (K,)."""
    if statistic == "mean":
        present = ~demands.is_missing
        covered_s = demands.covered_s[present].sum()
        mean: Floats = demands.octets.sum(axis=1) * MBIT_PER_BYTE / covered_s
        return mean
    if statistic == "max":
        largest: Floats = demands.rates_mbps.max(axis=1)
        return largest
    return np.percentile(demands.rates_mbps, PERCENTILE, axis=1, method="inverted_cdf")


@spread(files=RecordFiles, cleaning=Cleaning())
def read_series(
    *,
    files: RecordFiles,
    network: NetworkFolder,
    bucket_s: BucketLength = 300.0,
    cleaning: Cleaning,
) -> Series:
    """Read the demands in flow records by buckets; those without any record are left out and named."""
    tables, demands = _read(network, files, cleaning, bucket_s)
    rates = demands.rates_mbps
    busiest = Traffic.from_tables({**tables, "demands": demands.frame(rates.max(axis=1))})
    labels = demands.labels()

    def frames() -> Iterator[pd.DataFrame]:
        for column, label in enumerate(labels):
            frame = demands.frame(rates[:, column]).assign(step=label)
            frame.attrs |= {"where": files.path.name, "first_row": 1}
            yield frame

    return Series(busiest=busiest, _step_count=len(labels), _frames=frames)


def _read(
    network: Path, files: RecordFiles, cleaning: Cleaning, bucket_s: float
) -> tuple[dict[str, pd.DataFrame], Demands]:
    """Return the tables of the network, and the demands between its nodes."""
    if not network.is_dir():
        raise InputError(f"{network}: must be a folder with a table links")
    files_of_network = find_tables((NODES, LINKS, CLASSES), network, ("nodes", "classes"))
    tables = dict(read_tables((NODES, LINKS, CLASSES), files_of_network))
    links = tables["links"]
    names = list(dict.fromkeys([*links["tail"].astype(str), *links["head"].astype(str)]))
    if "nodes" in tables:
        names = list(dict.fromkeys([*tables["nodes"]["node"].astype(str), *names]))
    demands = read_demands(files, cleaning, bucket_s=bucket_s, names=sorted(names))
    return tables, demands
