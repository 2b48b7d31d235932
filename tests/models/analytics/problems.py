"""Small problems of queries over sites, made by hand and drawn at random."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from planner_models.analytics import Analytics

LEVEL_COLUMNS = [
    "query", "level", "operator", "parameter", "bytes_per_record", "bytes_per_cell", "error", "value_share",
]  # fmt: skip
SECONDS = (1.0, 5.0, 10.0)


def tables(
    *,
    sites: int = 2,
    intervals: int = 1,
    combine: tuple[str, ...] = ("coarsest",),
    uplink_mbps: float = 1.0,
    pop_mbps: float = 10.0,
    cells: float = 100.0,
    none: bool = True,
) -> dict[str, pd.DataFrame]:
    """Return tables of sites at one point of presence; levels of 1, 5 and 10 s: 16, 8 and 4 bytes a cell."""
    levels: list[tuple[Any, ...]] = []
    names = [f"q{row}" for row in range(len(combine))]
    for name in names:
        rows = zip(SECONDS, (16.0, 8.0, 4.0), (1.0, 0.8, 0.5), strict=True)
        levels += [
            (name, f"{size:g} s", "interval", size, 0.0, cell, 1 - share, share) for size, cell, share in rows
        ]
        if none:
            levels.append((name, "none", "none", np.nan, 0.0, 0.0, 0.0, 0.0))
    positions = [f"s{row}" for row in range(sites)]
    numbers = np.arange(1.0, intervals + 1)
    volume = [(site, "c", number, cells, cells) for site in positions for number in numbers]
    return {
        "sites": pd.DataFrame({"site": positions, "pop": "p", "uplink_mbps": uplink_mbps}),
        "pops": pd.DataFrame({"pop": ["p"], "uplink_mbps": [pop_mbps], "merges": ["yes"]}),
        "intervals": pd.DataFrame({"interval": numbers, "start_s": (numbers - 1) * 60, "length_s": 60.0}),
        "cubes": pd.DataFrame({"cube": ["c"], "aggregate": ["count"]}),
        "volume": pd.DataFrame(volume, columns=["site", "cube", "interval", "records", "cells"]),
        "queries": pd.DataFrame(
            {"query": names, "cube": "c", "value_usd": 1.0, "combine": list(combine), "deadline_s": 120.0}
        ),
        "levels": pd.DataFrame(levels, columns=LEVEL_COLUMNS),
    }


def make(**given: Any) -> Analytics:
    """Return the problem of `tables`."""
    return Analytics.from_tables(tables(**given))


@st.composite
def problems(draw: st.DrawFn, *, sites: int = 3, queries: int = 3, levels: int = 3) -> Analytics:
    """Draw a problem of one interval with capacities that bind, two points of presence, and merging."""
    number = st.integers(min_value=1, max_value=9).map(float)
    made = tables(
        sites=sites,
        combine=tuple(draw(st.sampled_from(["coarsest", "sum", "worst"])) for _ in range(queries)),
    )
    made["sites"]["pop"] = ["p" if row % 2 == 0 else "r" for row in range(sites)]
    made["pops"] = pd.DataFrame(
        {"pop": ["p", "r"], "uplink_mbps": 1.0, "merges": ["yes", draw(st.sampled_from(["yes", "no"]))]}
    )
    made["volume"] = made["volume"].assign(
        cells=[draw(number) for _ in range(sites)], records=[draw(number) for _ in range(sites)]
    )
    made["queries"]["value_usd"] = [draw(number) for _ in range(queries)]
    frame = made["levels"]
    made["levels"] = frame[frame.groupby("query").cumcount().ge(3 - levels)].reset_index(drop=True)
    links = [*made["sites"]["site"], "p", "r"]
    full = 16.0 * queries * 9.0
    capacity = [
        draw(st.integers(min_value=0, max_value=20)) / 20 * full * (1.0 if row < sites else 1.5)
        for row in range(len(links))
    ]
    made["bandwidth"] = pd.DataFrame(
        {"link": links, "interval": 1.0, "mbps": [max(size, 0.0) * 8 / 60 / 1e6 for size in capacity]}
    )
    made["bandwidth"].loc[made["bandwidth"]["mbps"] < 2e-6, "mbps"] = 0.0
    names = frame.loc[frame["operator"] != "none", ["query", "level"]].drop_duplicates()
    names = names[names["level"].isin(made["levels"]["level"])]
    made["merging"] = names.assign(pop="p", merged_share=draw(st.sampled_from([0.5, 0.8, 1.4])))[
        ["pop", "query", "level", "merged_share"]
    ]
    return Analytics.from_tables(made)  # fmt: skip
