"""Sites that are regions of clouds, with measured throughput and prices of traffic to one of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.parameters import spread
from planner.contract.table import Table, label, number
from planner.errors import InputError, did_you_mean
from planner.io.table_files import read_table
from planner_models.analytics.problem import generators
from planner_models.analytics.problem.problem import Analytics
from planner_models.analytics.problem.schema import MOST_MBPS, MOST_USD

THROUGHPUT: Final = Table(
    name="throughput",
    about="a measurement of throughput from one region to another",
    columns={
        "src_region": label("region that sends"),
        "dst_region": label("region that receives"),
        "throughput_received_bps": number("throughput, bit/s", more_than=0, at_most=MOST_MBPS * 1e6),
    },
    key=(),
)
EGRESS: Final = Table(
    name="egress_cost",
    about="the price of traffic from one region to another",
    columns={
        "src": label("region that sends"),
        "dest": label("region that receives"),
        "cost": number("price, USD/GB", at_least=0, at_most=MOST_USD),
    },
    key=(),
)


@dataclass(frozen=True, kw_only=True)
class Measurements:
    """Measured throughput and prices of regions."""

    path: Annotated[Path, Field(description="folder with throughput.csv and egress_cost.csv of regions")]
    region: Annotated[str, Field(description="region of the datacenter that answers queries")]
    provider: Annotated[
        str, Field(description="only regions whose name starts with this, such as aws; empty: all")
    ] = ""
    throughput_share: Annotated[
        float, Field(gt=0, le=1, description="part of the measured throughput that data of queries may use")
    ] = 0.01


@spread(
    measurements=Measurements,
    times=generators.Times(interval_minutes=15.0),
    combinations=generators.Combinations(),
)
def read_regions(
    *,
    measurements: Measurements,
    queries: generators.Queries = 20,
    times: generators.Times,
    combinations: generators.Combinations,
    seed: generators.Seed = 0,
) -> Analytics:
    """Read regions as sites: throughput to one region as measured (the best of several), and its price.

    Volumes and queries are drawn as in preset diurnal; one factor makes all uplinks together carry the part
    `bandwidth` of their mean load at full detail. Providers are points of presence that limit nothing.

    raises  InputError for tables that cannot be read, and a region that has no measurements
    """
    best = _best_throughput(measurements)
    prices = read_table(EGRESS, measurements.path / "egress_cost.csv")
    names = [str(name) for name in best.index]
    providers = sorted({name.split(":")[0] for name in names})
    drawn = generators.diurnal(
        sites=len(names), pops=len(providers), queries=queries, hours=times.hours,
        interval_minutes=times.interval_minutes, variation=0.0, **vars(combinations), seed=seed,
    )  # fmt: skip
    cost = prices[prices["dest"] == measurements.region].drop_duplicates("src").set_index("src")["cost"]
    uplink_mbps = np.maximum(best.to_numpy(float) * measurements.throughput_share / 1e6, 1e-6)
    full = float(generators.finest_bytes(drawn)[:, : len(names)].sum()) * 8 / 1e6
    factor = float(uplink_mbps.sum() * drawn.length_s.sum()) / times.bandwidth / full
    site = drawn.volume["site"].cat.rename_categories(names)
    return Analytics(
        sites=pd.DataFrame(
            {
                "site": names,
                "pop": [name.split(":")[0] for name in names],
                "uplink_mbps": uplink_mbps,
                "usd_per_gb": cost.reindex(names).fillna(0.0).to_numpy(float),
            }
        ),
        pops=pd.DataFrame({"pop": providers, "uplink_mbps": MOST_MBPS, "merges": "no"}),
        intervals=drawn.intervals,
        cubes=drawn.cubes,
        volume=drawn.volume.assign(
            site=site, records=drawn.volume["records"] * factor, cells=drawn.volume["cells"] * factor
        ),
        queries=drawn.queries,
        levels=drawn.levels,
    )


def _best_throughput(measurements: Measurements) -> pd.Series:
    """Return the best measured throughput from each region of the provider to the region, bit/s, by name."""
    measured = read_table(THROUGHPUT, measurements.path / "throughput.csv")
    regions = sorted(set(measured["dst_region"]))
    if measurements.region not in regions:
        raise InputError(
            f"region: '{measurements.region}' is no region of throughput.csv"
            + did_you_mean(measurements.region, regions)
        )
    to_region = measured[
        (measured["dst_region"] == measurements.region) & (measured["src_region"] != measurements.region)
    ]
    to_region = to_region[to_region["src_region"].str.startswith(measurements.provider)]
    best = to_region.groupby("src_region", sort=True)["throughput_received_bps"].max()
    if not len(best):
        raise InputError(
            f"provider: no region '{measurements.provider}...' has a measurement to '{measurements.region}'"
        )
    return best
