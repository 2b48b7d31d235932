"""Demand from files: matrices, and traces of coflows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field

from planner.errors import InputError
from planner.tables import read_text, require_file
from planner_models.circuits.generate import CircuitRate, Night, PacketRate, ShortestDay
from planner_models.circuits.problem import Circuits, require_matrix

Window = Annotated[
    Annotated[float, Field(gt=0)] | None,
    Field(description="the week, us; none: all demand is served, in least time"),
]


def matrix(
    *,
    path: Annotated[
        Path, Field(description="(n, n) bits from row to column: .csv without a header, .parquet or .npy")
    ],
    circuit_mbps: CircuitRate = 100_000.0,
    packet_mbps: PacketRate = 10_000.0,
    night_us: Night = 20.0,
    window_us: Window = 2_000.0,
    shortest_day_us: ShortestDay = 0.0,
) -> Circuits:
    """The problem of a demand matrix in a file."""
    return Circuits.from_matrix(
        _numbers(path),
        circuit_mbps=circuit_mbps,
        packet_mbps=packet_mbps,
        night_us=night_us,
        window_us=window_us,
        shortest_day_us=shortest_day_us,
        where=path.name,
    )


def coflow(
    *,
    path: Annotated[Path, Field(description="a trace in the coflow-benchmark format")],
    start_ms: Annotated[float, Field(ge=0, description="coflows that arrive from here on")] = 0.0,
    length_ms: Annotated[float, Field(gt=0, description="... within this time are demand")] = 60_000.0,
    circuit_mbps: CircuitRate = 100_000.0,
    packet_mbps: PacketRate = 10_000.0,
    night_us: Night = 20.0,
    window_us: Window = None,
    shortest_day_us: ShortestDay = 0.0,
) -> Circuits:
    """The demand of the coflows that arrive in a window of a trace.

    Each reducer receives its megabytes (of 10^6 bytes) in equal parts from every mapper; what stays
    in a rack is left out. Racks keep their numbers.

    source  Chowdhury, coflow-benchmark (a trace of Facebook's MapReduce)
    """
    lines = read_text(path, longest_line=1 << 24).splitlines()
    racks, coflows = _header(path, lines)
    bits = np.zeros((racks, racks))
    for row, line in enumerate(lines[1 : 1 + coflows], start=2):
        arrival, pairs = _coflow(path, row, line, racks)
        if start_ms <= arrival < start_ms + length_ms:
            for source, target, amount in pairs:
                bits[source, target] += amount
    np.fill_diagonal(bits, 0.0)
    return Circuits.from_matrix(
        bits,
        circuit_mbps=circuit_mbps,
        packet_mbps=packet_mbps,
        night_us=night_us,
        window_us=window_us,
        shortest_day_us=shortest_day_us,
        where=path.name,
    )


def _header(path: Path, lines: list[str]) -> tuple[int, int]:
    words = lines[0].split() if lines else []
    if len(words) != 2 or not all(word.isdigit() for word in words):
        raise InputError(f"{path.name} row 1: must be the numbers of racks and of coflows")
    racks, coflows = int(words[0]), int(words[1])
    if not 1 <= racks <= 4096:
        raise InputError(f"{path.name} row 1: has {racks} racks, must be from 1 to 4096")
    if len(lines) - 1 < coflows:
        raise InputError(f"{path.name}: has {len(lines) - 1} coflows, row 1 says {coflows}; is it whole?")
    return racks, coflows


def _coflow(path: Path, row: int, line: str, racks: int) -> tuple[float, list[tuple[int, int, float]]]:
    """When it arrives, ms, and its (source, target, bits)."""
    words = line.split()
    try:
        arrival, mappers = float(words[1]), int(words[2])
        sources = [int(word) for word in words[3 : 3 + mappers]]
        reducers = int(words[3 + mappers])
        rest = words[4 + mappers :]
        targets = [(int(rack), float(size)) for rack, _, size in (word.partition(":") for word in rest)]
        if len(sources) != mappers or len(targets) != reducers or not np.isfinite(arrival):
            raise ValueError
    except (ValueError, IndexError):
        raise InputError(
            f"{path.name} row {row}: must be id, arrival in ms, mappers, racks, reducers, rack:MB of each"
        ) from None
    for rack in (*sources, *(rack for rack, _ in targets)):
        if not 0 <= rack < racks:
            raise InputError(f"{path.name} row {row}: rack {rack}, must be from 0 to {racks - 1}")
    for _, size in targets:
        if not (np.isfinite(size) and size >= 0):
            raise InputError(f"{path.name} row {row}: a reducer of {size} MB, must be at least 0")
    return arrival, [(s, t, size * 8e6 / mappers) for s in sources for t, size in targets]


def _numbers(path: Path) -> NDArray[np.float64]:
    require_file(path)
    try:
        if path.suffix == ".npy":
            bits = np.load(path, allow_pickle=False)
        elif path.suffix == ".parquet":
            bits = pd.read_parquet(path).to_numpy()
        elif path.suffix == ".csv":
            bits = np.atleast_2d(np.genfromtxt(read_text(path).splitlines(), delimiter=","))
        else:
            raise InputError(f"{path.name}: ends in '{path.suffix}', must end in .csv, .parquet or .npy")
        bits = np.asarray(bits, dtype=float)
    except (ValueError, OSError) as error:
        raise InputError(
            f"{path.name}: is no matrix of numbers ({' '.join(str(error).split())[:120]})"
        ) from None
    require_matrix(bits, path.name)
    return bits
