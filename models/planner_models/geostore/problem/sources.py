"""Sources of problems of system `geostore`: measured round-trip times and prices of cloud regions, and
SPANStore's files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.parameters import spread
from planner.contract.table import Table, label, number
from planner.errors import InputError
from planner.io.table_files import read_table
from planner_models.geostore.problem.generators import Seed, Workload, draw_workload
from planner_models.geostore.problem.problem import Geostore
from planner_models.geostore.problem.schema import MAX_MS, MAX_USD
from planner_models.geostore.problem.spanstore_files import read_spanstore

LATENCY: Final = Table(
    name="latency",
    about="a measurement of the round-trip time from one region to another",
    columns={
        "src_region": label("region that sends"),
        "src_tier": label("network tier of the sender", optional=True),
        "dst_region": label("region that receives"),
        "dst_tier": label("network tier of the receiver", optional=True),
        "avg_rtt": number("mean round-trip time, ms", more_than=0, at_most=MAX_MS),
    },
    key=(),
)
EGRESS: Final = Table(
    name="egress_cost",
    about="the price of traffic from one region to another",
    columns={
        "src": label("region that sends"),
        "dest": label("region that receives"),
        "cost": number("price, USD/GB", at_least=0, at_most=MAX_USD),
    },
    key=(),
)
PREMIUM: Final = "PREMIUM"


@spread(workload=Workload())
def read_cloud(
    *,
    path: Annotated[Path, Field(description="folder with latency.csv and egress_cost.csv of regions")],
    provider: Annotated[
        str, Field(description="only regions whose name starts with this, such as aws; empty: all")
    ] = "",
    storage_usd_gb_month: Annotated[
        float, Field(ge=0, le=MAX_USD, description="price of storage in all regions")
    ] = 0.023,
    put_usd: Annotated[
        float, Field(ge=0, le=MAX_USD, description="price of a write request in all regions")
    ] = 5e-6,
    get_usd: Annotated[
        float, Field(ge=0, le=MAX_USD, description="price of a read request in all regions")
    ] = 4e-7,
    workload: Workload,
    seed: Seed = 0,
) -> Geostore:
    """Read the regions that have both measured round-trip times and prices of traffic; groups are drawn.

    The first part of a region's name, before a colon, is its provider. Of measurements between network tiers
    those of the tier PREMIUM are used.

    raises  InputError for tables that cannot be read, and where fewer than two regions remain
    """
    latency, prices = read_table(LATENCY, path / "latency.csv"), read_table(EGRESS, path / "egress_cost.csv")
    for tier in ("src_tier", "dst_tier"):
        if tier in latency:
            latency = latency[latency[tier] == PREMIUM]
    both = set(latency["src_region"]) & set(latency["dst_region"]) & set(prices["src"]) & set(prices["dest"])
    names = sorted(name for name in both if name.startswith(provider))
    if len(names) < 2:
        raise InputError(f"{path}: has {len(names)} regions with round-trip times and prices, two are needed")
    pair = ["source", "target"]
    times = (
        latency.rename(columns={"src_region": "source", "dst_region": "target"})
        .groupby(pair)["avg_rtt"]
        .mean()
    )
    usd = prices.rename(columns={"src": "source", "dest": "target"}).groupby(pair)["cost"].mean()
    links = pd.DataFrame({"rtt_ms": times}).join(pd.DataFrame({"usd_per_gb": usd}), how="inner").reset_index()
    links = links[
        links["source"].isin(names) & links["target"].isin(names) & (links["source"] != links["target"])
    ]
    regions = pd.DataFrame({"region": names, "storage_usd_gb_month": storage_usd_gb_month})
    regions = regions.assign(
        put_usd=put_usd, get_usd=get_usd, provider=[name.split(":")[0] for name in names]
    )
    weights = np.full(len(names), 1 / len(names))
    problem = Geostore(
        regions=regions,
        links=links.reset_index(drop=True),
        protocol=pd.DataFrame({"fill": ["relay"]}),
        **draw_workload(workload, names, weights, np.random.default_rng(seed)),
    )
    problem.warn()
    return problem


SOURCES: Final = {"cloud": read_cloud, "spanstore": read_spanstore}
