"""Source of problems: the input files of SPANStore's published generator (Wu et al. 2013)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Floats
from planner.errors import InputError
from planner.io.text_files import read_text
from planner_models.geostore.problem.problem import BYTES_PER_GB, Geostore
from planner_models.geostore.problem.schema import EVERY_REGION, MAX_MS, MAX_USD

PRICES: Final = "region_price_index"
STORAGE: Final = "storage_latency_matrix_percentile"
NAMES: Final = "region_index_mapping"
KB: Final = 1024.0
GIB: Final = 1024.0**3
DAY_S: Final = 86_400.0
PER_REQUESTS: Final = 100_000.0
"""Requests of which the files state the price."""
MAX_DAYS: Final = 36_500.0
MAX_KB: Final = 1e15
MAX_COUNT: Final = 1e18

Line = tuple[str, list[str]]
"""Where a line is, for errors, and its words."""
Limit = Annotated[float, Field(gt=0, le=MAX_MS, allow_inf_nan=False)]


def read_spanstore(
    *,
    path: Annotated[
        Path,
        Field(description="folder with region_price_index and storage_latency_matrix_percentile"),
    ],
    workload: Annotated[
        Path, Field(description="file of sizes, time and requests; relative to the folder")
    ] = Path("workload_test"),
    put_ms: Annotated[Limit, Field(description="limit of a write, ms")] = 1000.0,
    get_ms: Annotated[Limit, Field(description="limit of a read, ms")] = 500.0,
    percentile: Annotated[
        Literal["50", "80", "90", "99", "99.9"], Field(description="of the measured times")
    ] = "50",
    failures: Annotated[int, Field(ge=0, le=10, description="datacenters that may fail at once")] = 2,
    consistency: Annotated[
        Literal["eventual", "causal", "quorum", "leader", "coded"],
        Field(description="consistency of the objects"),
    ] = "eventual",
) -> Geostore:
    """Read prices, times and one workload of SPANStore's generator as one group of data.

    Datacenters are those with prices; a line that starts with # is left out. A request takes the longer of
    the times of GET and PUT, between datacenters and within one. Requests of the stated days become rates, so
    that the bill of a month is SPANStore's cost, times 30 over these days. Sizes and prices are of GB of
    1024^3 bytes there.

    raises  InputError for files that cannot be read, with file and line
    """
    prices = _read_prices(path / PRICES)
    indices = list(prices)
    names = _read_names(path / NAMES, indices)
    times = _read_times(path / STORAGE, indices, percentile)
    sizes, counts = _read_workload(path / workload, indices)
    seconds = sizes["time"] * DAY_S
    group = {
        "group": "objects",
        "size_gb": sizes["overallsize"] * KB / BYTES_PER_GB,
        "object_bytes": sizes["averagesize"] * KB,
        "class": consistency,
        "failures": float(failures),
        "read_ms": get_ms,
        "write_ms": put_ms,
    }
    access = [("objects", names[indices.index(i)], get / seconds, put / seconds) for i, put, get in counts]
    problem = Geostore(
        regions=_tabulate_regions(prices, names),
        links=_tabulate_links(prices, names, times),
        groups=pd.DataFrame([group]),
        access=pd.DataFrame(access, columns=["group", "region", "reads_per_s", "writes_per_s"]),
        protocol=pd.DataFrame({"frontends": [EVERY_REGION], "local_rtt_ms": [1e-6]}),
    )
    problem.warn()
    return problem


def _tabulate_regions(prices: dict[int, list[float]], names: list[str]) -> pd.DataFrame:
    """Return the table of regions with prices of a GB of 10^9 bytes and of one request."""
    rows = prices.values()
    return pd.DataFrame(
        {
            "region": names,
            "storage_usd_gb_month": [row[2] * BYTES_PER_GB / GIB for row in rows],
            "put_usd": [row[0] / PER_REQUESTS for row in rows],
            "get_usd": [row[1] / PER_REQUESTS for row in rows],
            "provider": [name.split("_")[0] for name in names],
        }
    )


def _tabulate_links(prices: dict[int, list[float]], names: list[str], times: Floats) -> pd.DataFrame:
    """Return the table of links that have a time, also within a datacenter, where traffic is free."""
    links = [
        (
            names[a],
            names[b],
            times[a, b],
            0.0 if a == b else prices[source][3 + target] * BYTES_PER_GB / GIB,
        )
        for a, source in enumerate(prices)
        for b, target in enumerate(prices)
        if not np.isnan(times[a, b])
    ]
    return pd.DataFrame(links, columns=["source", "target", "rtt_ms", "usd_per_gb"])


def _lines(path: Path, words_needed: int) -> Iterator[Line]:
    """Yield the lines of a file that are no comments; raises InputError for one with too few words."""
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        where = f"{path} line {number}"
        if len(words) < words_needed:
            raise InputError(f"{where}: has {len(words)} words, must have {words_needed}")
        yield where, words


def _number(where: str, text: str, what: str, largest: float, *, smallest: float = 0.0) -> float:
    """Return a number of a line; raises InputError where it is none, or out of range."""
    try:
        value = float(text)
    except ValueError:
        raise InputError(f"{where}: {what} is '{text}', must be a number") from None
    if not smallest <= value <= largest:
        raise InputError(f"{where}: {what} is {text}, must be from {smallest:g} to {largest:g}")
    return value


def _index(where: str, text: str) -> int:
    """Return the index of a datacenter."""
    if not text.isascii() or not text.isdigit():
        raise InputError(f"{where}: '{text}' must be the index of a datacenter")
    return int(text)


def _read_prices(path: Path) -> dict[int, list[float]]:
    """Return prices by datacenter: of 100,000 PUTs and GETs, of a GB and month, and of a GB to each other."""
    prices: dict[int, list[float]] = {}
    for where, words in _lines(path, 5):
        index = _index(where, words[0])
        if index in prices:
            raise InputError(f"{where}: datacenter {index} has two lines")
        prices[index] = [_number(where, word, "a price", MAX_USD) for word in words[1:]]
    if not prices:
        raise InputError(f"{path}: has no datacenter")
    for index, row in prices.items():
        if len(row) < 4 + max(prices):
            raise InputError(
                f"{path}: datacenter {index} has prices of traffic to {len(row) - 3} datacenters, "
                f"must have {max(prices) + 1}"
            )
    return prices


def _read_names(path: Path, indices: list[int]) -> list[str]:
    """Return the names of datacenters; `dc` and the index without one."""
    names = {index: f"dc{index}" for index in indices}
    if path.exists():
        for where, words in _lines(path, 2):
            index = _index(where, words[1])
            if index in names:
                names[index] = words[0]
    return [names[index] for index in indices]


def _read_times(path: Path, indices: list[int], percentile: str) -> Floats:
    """Return the longer of the times of GET and PUT between datacenters, (N, N), ms; NaN without one."""
    rows = {index: row for row, index in enumerate(indices)}
    times = np.full((len(indices), len(indices)), np.nan)
    for where, words in _lines(path, 5):
        source, target = (rows.get(_index(where, word)) for word in words[:2])
        if source is None or target is None or words[3] != percentile or words[2] not in ("GET", "PUT"):
            continue
        value = _number(where, words[4], "a time", MAX_MS, smallest=1e-6)
        times[source, target] = np.fmax(times[source, target], value)
    return times


def _read_workload(path: Path, indices: list[int]) -> tuple[dict[str, float], list[tuple[int, float, float]]]:
    """Return sizes in KB and time in days by their words, and datacenter, PUTs and GETs of each line."""
    limits: dict[str, tuple[float, float]] = {
        "averagesize": (1e-9, MAX_KB),
        "overallsize": (0.0, MAX_KB),
        "time": (1e-9, MAX_DAYS),
    }
    sizes: dict[str, float] = {}
    counts: list[tuple[int, float, float]] = []
    for where, words in _lines(path, 2):
        if words[0] in limits:
            smallest, largest = limits[words[0]]
            sizes[words[0]] = _number(where, words[1], words[0], largest, smallest=smallest)
            continue
        if len(words) < 3:
            raise InputError(f"{where}: must have the index of a datacenter, PUTs and GETs")
        index = _index(where, words[0])
        if index not in indices:
            raise InputError(f"{where}: datacenter {index} has no prices in {PRICES}")
        put, get = (_number(where, word, "a number of requests", MAX_COUNT) for word in words[1:3])
        counts.append((index, put, get))
    for word in limits:
        if word not in sizes:
            raise InputError(f"{path}: has no line '{word}'")
    if not counts:
        raise InputError(f"{path}: has no requests of any datacenter")
    return sizes, counts
