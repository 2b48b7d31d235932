"""Preset of an ordered keyspace in one datacenter: drawn ranges, scans and transactions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.parameters import spread
from planner_models.geostore.problem.problem import Geostore
from planner_models.geostore.problem.schema import JOIN
from planner_models.geostore.shards.generators import hidden_order, lognormal, zipf
from planner_models.geostore.shards.keyspace import Keyspace

Seed = Annotated[int, Field(ge=0, description="seed of the random numbers")]
HOME: Final = "home"
SERVER_USD: Final = 150.0


@dataclass(frozen=True, kw_only=True)
class Popularity:
    """Load of ranges."""

    popularity: Annotated[
        Literal["zipf", "lognormal", "transactions"],
        Field(
            description="zipf or lognormal load in random order, with scans; or that of transactions of "
            "three ranges which are close in an order other than that of the keys"
        ),
    ] = "zipf"
    skew: Annotated[
        float, Field(ge=0, le=5, description="exponent of Zipf's law, or standard deviation of the logarithm")
    ] = 0.99
    scan: Annotated[int, Field(ge=1, le=1_000, description="ranges of a scan")] = 20
    transactions: Annotated[
        int, Field(ge=1, le=5_000_000, description="number of transactions, where load is theirs")
    ] = 30_000


@spread(popularity=Popularity())
def keyspace(
    *,
    ranges: Annotated[int, Field(ge=1, le=2_000_000, description="number of ranges of keys")] = 10_000,
    servers: Annotated[int, Field(ge=1, le=10_000, description="servers, all of the same capacity")] = 64,
    popularity: Popularity,
    load: Annotated[
        float, Field(gt=0, le=100, description="load of all ranges over the capacity of all servers")
    ] = 0.5,
    seed: Seed = 0,
) -> Geostore:
    """Build one datacenter with an ordered keyspace over its servers."""
    keys = _draw_keys(popularity, ranges, servers, seed)
    kops = float(keys.kops.sum())
    return Geostore(
        regions=pd.DataFrame(
            {"region": [HOME], "storage_usd_gb_month": 0.02, "server_usd_month": SERVER_USD}
        ).assign(server_kops=kops / (servers * load)),
        links=pd.DataFrame({"source": [], "target": [], "rtt_ms": [], "usd_per_gb": []}),
        groups=pd.DataFrame(
            {
                "group": ["keys"],
                "size_gb": [float(keys.gb.sum())],
                "object_bytes": [128.0],
                "class": ["eventual"],
            }
        ),
        access=pd.DataFrame(
            {"group": ["keys"], "region": [HOME], "reads_per_s": 900.0 * kops, "writes_per_s": 100.0 * kops}
        ),
        **tabulate_keyspace(keys, kops / (servers * load)),
    )


def _draw_keys(popularity: Popularity, ranges: int, servers: int, seed: int) -> Keyspace:
    """Return ranges of random load."""
    size = {"ranges": ranges, "servers": servers, "seed": seed}
    scan = min(popularity.scan, ranges)
    if popularity.popularity == "transactions":
        return hidden_order(transactions=popularity.transactions, **size)
    if popularity.popularity == "zipf":
        return zipf(exponent=popularity.skew, scan=scan, **size)
    return lognormal(sigma=popularity.skew, scan=scan, **size)


def tabulate_keyspace(keys: Keyspace, server_kops: float) -> dict[str, pd.DataFrame]:
    """Return the tables of a keyspace; its servers all carry so many thousands of operations a second."""
    names = np.array([f"r{row + 1:07d}" for row in range(len(keys.kops))], dtype=object)
    servers = [f"s{row + 1:04d}" for row in range(len(keys.server_kops))]
    tables = {
        "ranges": pd.DataFrame({"range": names, "kops": keys.kops, "size_gb": keys.gb}),
        "servers": pd.DataFrame({"server": servers, "kops": server_kops}),
    }
    if len(keys.scans):
        first, last = names[keys.scans[:, 0]], names[keys.scans[:, 1]]
        tables["scans"] = pd.DataFrame({"first": first, "last": last, "per_s": keys.scan_per_s})
    accesses = keys.transactions
    if len(accesses.per_s):
        touched = np.split(names[accesses.touched], accesses.first[1:-1])
        cells = [JOIN.join(cell) for cell in touched]
        tables["transactions"] = pd.DataFrame({"ranges": cells, "per_s": accesses.per_s})
    return tables
