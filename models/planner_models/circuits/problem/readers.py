"""Demand from files: matrices, lists of pairs, and traces of flows and coflows, whole or by windows.

Flow files of the packet simulator htsim, as its users of Opera write them: rows without a header.

Source: W. M. Mellette et al., "Expanding across time to deliver bandwidth efficiency and low latency", NSDI
2020, whose simulator reads such files.
"""

from __future__ import annotations

import math
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field

from planner.contract.notes import add_note
from planner.contract.parameters import spread
from planner.contract.periods import describe_empty
from planner.contract.table import Table, number
from planner.contract.tables import report_unknown_names, shorten_faults
from planner.errors import InputError
from planner.io.arrow_files import read_arrow_frame
from planner.io.table_files import read_table
from planner.io.text_files import read_text, require_file
from planner_models.circuits.problem.network import Network
from planner_models.circuits.problem.problem import DEMANDS, RACKS, Circuits, require_matrix
from planner_models.circuits.problem.racks import END_COLUMNS, ENDS

Rows = Annotated[Path, Field(description="CSV or Parquet table source_rack, target_rack, bits")]
Racks = Annotated[
    Path | None,
    Field(description="table rack, circuit_mbps, packet_mbps, for rates that differ; else the file's racks"),
]
Length = Annotated[float, Field(gt=0, description="length of a window of the trace, ms")]
CoflowTrace = Annotated[Path, Field(description="a trace in the coflow-benchmark format")]
FlowTrace = Annotated[
    Path,
    Field(
        description="CSV or Parquet table start_us, source_rack, target_rack, bytes; or .htsim: rows of "
        "source, target, bytes and start in ns, without a header"
    ),
]
HostsPerRack = Annotated[
    int,
    Field(
        ge=1,
        le=1_000_000,
        description="of .htsim: host h is in rack h // hosts_per_rack; 1: each host is a rack",
    ),
]
FLOWS: Final = Table(
    name="flows",
    about="a flow of a trace",
    columns={
        "start_us": number("start, us", at_least=0),
        **END_COLUMNS,
        "bytes": number("size, bytes", more_than=0),
    },
)
MAX_RACKS: Final = 4096
MOST_WINDOWS: Final = 1_000_000
SUFFIX: Final = ".htsim"
FIELDS: Final = ("source", "target", "bytes", "start in ns")
MAX_LINE_BYTES: Final = 1 << 10


@dataclass(frozen=True, kw_only=True, eq=False)
class Trace:
    """Parts of coflows in the order of the trace, over a network, of which the trace says nothing.

    racks   rack, circuit_mbps and packet_mbps, or without rates: those of the network then
    parts   at (in the trace's unit of time), coflow, source_rack, target_rack, bits
    """

    racks: pd.DataFrame
    parts: pd.DataFrame
    network: Network

    def problem(self, start: float, end: float) -> Circuits:
        """Return the problem of the parts that start in a window."""
        racks = self.racks
        if "circuit_mbps" not in racks:
            racks = self.network.with_rates(racks)
        parts = self.parts[(self.parts["at"] >= start) & (self.parts["at"] < end)]
        return Circuits(
            racks=racks,
            demands=parts.groupby([*ENDS], sort=False)["bits"].sum().reset_index(),
            switch=self.network.switch(),
            coflows=parts[["coflow", *ENDS, "bits"]].reset_index(drop=True),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Windows:
    """The windows of a trace, one after another, up to the last that anything starts in.

    Their labels are when they start, in the trace's unit of time.
    """

    trace: Trace
    start: float
    length: float
    unit: str

    def __len__(self) -> int:
        times = self.trace.parts["at"]
        last = float(times.max()) if len(times) else self.start
        count = max(1, math.floor((last - self.start) / self.length) + 1)
        if count > MOST_WINDOWS:
            raise InputError(
                f"the trace has {count:,} windows of {self.length:g} {self.unit}, must be at most "
                f"{MOST_WINDOWS:,}"
            )
        return count

    def find_empty(self, where: str) -> str | None:
        """Return the warning on windows in which nothing starts; None where there are none."""
        times = self.trace.parts["at"].to_numpy(float)
        first = np.floor((times[times >= self.start] - self.start) / self.length)
        return describe_empty(
            first,
            first,
            len(self),
            where=where,
            start=self.start,
            length=self.length,
            unit=self.unit,
            noun="traffic between racks that starts in it",
        )

    def __iter__(self) -> Iterator[tuple[str, Circuits]]:
        starts = [self.start + index * self.length for index in range(len(self))]
        digits = len(f"{starts[-1]:.0f}")
        for index, start in enumerate(starts):
            text = f"{start:0{digits}.0f}" if float(self.length).is_integer() else f"{index + 1:0{digits}d}"
            yield f"{text}{self.unit}", self.trace.problem(start, start + self.length)


@spread(network=Network())
def read_matrix(
    *,
    path: Annotated[
        Path, Field(description="(n, n) bits from row to column: .csv without a header, .parquet or .npy")
    ],
    network: Network,
) -> Circuits:
    """Read the problem of a demand matrix in a file; a note says its unit and direction."""
    problem = network.problem(_read_numbers(path), path.name)
    add_note(f"assumed: {path.name}: entries are bits, from the rack of the row to that of the column")
    return problem


@spread(network=Network())
def read_pairs(
    *,
    path: Rows,
    racks: Racks = None,
    network: Network,
) -> Circuits:
    """Read the problem of a list of demands in a file, a row for each pair of racks."""
    demands = read_table(DEMANDS, path)
    return Circuits(racks=_racks(racks, demands, network), demands=demands, switch=network.switch())


@spread(network=Network(window_us=None))
def read_coflows(
    *,
    path: CoflowTrace,
    start_ms: Annotated[float, Field(ge=0, description="coflows that arrive from here on")] = 0.0,
    length_ms: Annotated[float, Field(gt=0, description="... within this time are demand")] = 60_000.0,
    network: Network,
) -> Circuits:
    """Read the demand of the coflows that arrive in a window of a trace.

    Each reducer receives its megabytes (of 10^6 bytes) in equal parts from every mapper; what stays
    in a rack is left out. Racks keep their numbers.

    source  Chowdhury, coflow-benchmark (a trace of Facebook's MapReduce)
    """
    return _coflow_trace(path, network).problem(start_ms, start_ms + length_ms)


@spread(network=Network(window_us=None))
def read_coflow_windows(
    *,
    path: CoflowTrace,
    length_ms: Length = 60_000.0,
    start_ms: Annotated[float, Field(ge=0, description="start of the first window, ms")] = 0.0,
    network: Network,
) -> Windows:
    """Read a trace of coflows by windows: each has the coflows that arrive in it, from an idle start.

    source  Chowdhury, coflow-benchmark (a trace of Facebook's MapReduce)
    """
    windows = Windows(trace=_coflow_trace(path, network), start=start_ms, length=length_ms, unit="ms")
    return _with_doubt(windows, path)


@spread(network=Network(window_us=None))
def read_flows(
    *,
    path: FlowTrace,
    racks: Racks = None,
    hosts_per_rack: HostsPerRack = 1,
    start_us: Annotated[float, Field(ge=0, description="flows that start from here on")] = 0.0,
    length_us: Annotated[
        Annotated[float, Field(gt=0)] | None,
        Field(description="... within this time are demand, us; none: all of them"),
    ] = None,
    network: Network,
) -> Circuits:
    """Read the demand of the flows that start in a window of a trace; each flow is a coflow of its own."""
    end_us = math.inf if length_us is None else start_us + length_us
    return _flow_trace(path, racks, hosts_per_rack, network).problem(start_us, end_us)


@spread(network=Network(window_us=None))
def read_flow_windows(
    *,
    path: FlowTrace,
    racks: Racks = None,
    hosts_per_rack: HostsPerRack = 1,
    length_us: Annotated[float, Field(gt=0, description="length of a window of the trace, us")] = 2_000.0,
    start_us: Annotated[float, Field(ge=0, description="start of the first window, us")] = 0.0,
    network: Network,
) -> Windows:
    """Read a trace of flows by windows: each has the flows that start in it, from an idle start."""
    trace = _flow_trace(path, racks, hosts_per_rack, network)
    return _with_doubt(Windows(trace=trace, start=start_us, length=length_us, unit="us"), path)


def _with_doubt(windows: Windows, path: Path) -> Windows:
    """Return windows, after a warning that names those in which nothing starts."""
    if doubt := windows.find_empty(path.name):
        add_note(doubt)
    return windows


def _racks(path: Path | None, named: pd.DataFrame, network: Network) -> pd.DataFrame:
    """Return the racks in a file, or those that `named` has in its columns source_rack and target_rack."""
    if path is not None:
        return read_table(RACKS, path)
    names = pd.unique(named[[*ENDS]].to_numpy(object).ravel(order="F"))
    # r2 before r10
    ordered = sorted(names, key=lambda name: [(len(piece), piece) for piece in re.split(r"(\d+)", str(name))])
    return network.with_rates(pd.DataFrame({"rack": ordered}))


def _flow_trace(path: Path, racks: Path | None, hosts_per_rack: int, network: Network) -> Trace:
    is_htsim = path.suffix == SUFFIX
    if not is_htsim and hosts_per_rack != 1:
        raise InputError(f"hosts_per_rack: is of {SUFFIX} files; {path.name} names racks")
    frame = read_htsim_flows(path, hosts_per_rack) if is_htsim else read_table(FLOWS, path)
    rack_table = _racks(racks, frame, network)
    faults = []
    for column in ENDS:
        faults += report_unknown_names(
            frame, "flows", column, pd.Index(rack_table["rack"]), "no rack of the network"
        )
    if faults:
        raise InputError(*faults)
    parts = pd.DataFrame(
        {
            "at": frame["start_us"],
            "coflow": np.array([f"flow {row + 1}" for row in range(len(frame))], dtype=object),
            "source_rack": frame["source_rack"],
            "target_rack": frame["target_rack"],
            "bits": frame["bytes"] * 8.0,
        }
    )
    parts = parts[parts["source_rack"] != parts["target_rack"]]  # what stays in a rack needs no switch
    return Trace(racks=rack_table, parts=parts.sort_values("at", kind="stable"), network=network)


def _coflow_trace(path: Path, network: Network) -> Trace:
    names, parts = read_coflow_parts(path)
    ends = {f"{end}_rack": names[parts.pop(end).to_numpy(np.int64)] for end in ("source", "target")}
    return Trace(racks=pd.DataFrame({"rack": names}), parts=parts.assign(**ends), network=network)


def read_coflow_parts(path: Path) -> tuple[NDArray[np.object_], pd.DataFrame]:
    """Return the names of a trace's racks, and the parts of its coflows in order of arrival.

    The parts have the columns at (ms), coflow, source, target (numbers of racks) and bits. Each reducer
    receives its megabytes (of 10^6 bytes) in equal parts from every mapper; what stays in a rack is left out.

    source  Chowdhury, coflow-benchmark (a trace of Facebook's MapReduce)
    """
    lines = read_text(path, max_line_bytes=1 << 24).splitlines()
    racks, coflows = _header(path, lines)
    names = np.array([f"r{i}" for i in range(racks)], dtype=object)
    rows: list[tuple[float, str, int, int, float]] = []
    for row, line in enumerate(lines[1 : 1 + coflows], start=2):
        arrival, pairs = _coflow(path, row, line, racks)
        name = f"coflow {line.split()[0]}"
        rows += [(arrival, name, i, j, amount) for i, j, amount in pairs if i != j and amount > 0]
    parts = pd.DataFrame(rows, columns=["at", "coflow", "source", "target", "bits"])
    merged = parts.groupby(["at", "coflow", "source", "target"], sort=False)["bits"].sum().reset_index()
    return names, merged.sort_values("at", kind="stable", ignore_index=True)


def _header(path: Path, lines: list[str]) -> tuple[int, int]:
    words = lines[0].split() if lines else []
    if len(words) != 2 or not all(word.isdecimal() for word in words):
        raise InputError(f"{path.name} row 1: must be the numbers of racks and of coflows")
    racks, coflows = int(words[0]), int(words[1])
    if not 1 <= racks <= MAX_RACKS:
        raise InputError(f"{path.name} row 1: has {racks} racks, must be from 1 to {MAX_RACKS}")
    if len(lines) - 1 < coflows:
        raise InputError(f"{path.name}: has {len(lines) - 1} coflows, row 1 says {coflows}; is it whole?")
    return racks, coflows


def _split_coflow(line: str) -> tuple[float, list[int], list[tuple[int, float]]]:
    """Return arrival, racks of mappers, and rack and MB of reducers; raise ValueError or IndexError."""
    words = line.split()
    arrival, mappers = float(words[1]), int(words[2])
    sources = [int(word) for word in words[3 : 3 + mappers]]
    reducers = int(words[3 + mappers])
    targets = [
        (int(rack), float(size)) for rack, _, size in (word.partition(":") for word in words[4 + mappers :])
    ]
    if len(sources) != mappers or len(targets) != reducers or not np.isfinite(arrival):
        raise ValueError
    return arrival, sources, targets


def _coflow(path: Path, row: int, line: str, racks: int) -> tuple[float, list[tuple[int, int, float]]]:
    """Return the arrival, ms, and the (source, target, bits) of a coflow."""
    try:
        arrival, sources, targets = _split_coflow(line)
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
    return arrival, [(s, t, size * 8e6 / len(sources)) for s in sources for t, size in targets]


def _read_numbers(path: Path) -> NDArray[np.float64]:
    require_file(path)
    try:
        if path.suffix == ".npy":
            bits = np.load(path, allow_pickle=False, mmap_mode="r")
        elif path.suffix == ".parquet":
            bits = read_arrow_frame(path).to_numpy()
        elif path.suffix == ".csv":
            lines = read_text(path).splitlines()
            if not any(line.strip() for line in lines):
                raise InputError(f"{path.name}: is empty, must hold a square matrix")
            bits = np.atleast_2d(np.genfromtxt(lines, delimiter=","))
        else:
            raise InputError(f"{path.name}: ends in '{path.suffix}', must end in .csv, .parquet or .npy")
        if bits.size > MAX_RACKS**2:
            raise InputError(f"{path.name}: has shape {bits.shape}, must have at most {MAX_RACKS:,} racks")
        if np.iscomplexobj(bits):
            raise ValueError("complex numbers")
        bits = np.asarray(bits, dtype=float)
    except (ValueError, TypeError, OSError, SyntaxError, tokenize.TokenError) as error:  # a damaged header
        raise InputError(
            f"{path.name}: is no matrix of numbers ({' '.join(str(error).split())[:120]})"
        ) from None
    require_matrix(bits, path.name)
    return bits


def read_htsim_flows(path: Path, hosts_per_rack: int) -> pd.DataFrame:
    """Return the flows of a file: start_us, source_rack, target_rack and bytes, in the order of its rows.

    Host h is in rack h // hosts_per_rack. Racks are named by their numbers.

    raises  InputError for rows of other than four numbers, and for numbers below the least
    """
    rows: list[tuple[float, str, str, float]] = []
    faults = []
    for count, line in enumerate(read_text(path, max_line_bytes=MAX_LINE_BYTES).splitlines(), start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        flow = _read_flow(words, hosts_per_rack)
        if isinstance(flow, str):
            faults.append(f"{path.name} row {count}: {flow}")
        else:
            rows.append(flow)
    if not rows and not faults:
        faults.append(f"{path.name}: has no flow")
    if faults:
        raise InputError(*shorten_faults(faults, path.name, "that are no flow"))
    note = f"assumed: {path.name}: columns are {', '.join(FIELDS[:3])} and {FIELDS[3]}"
    if hosts_per_rack == 1:
        note += "; each number is a rack, unless hosts_per_rack says how many hosts share one"
    add_note(note)
    return pd.DataFrame(rows, columns=["start_us", "source_rack", "target_rack", "bytes"])


def _read_flow(words: list[str], hosts_per_rack: int) -> tuple[float, str, str, float] | str:
    """Return start, us, racks and bytes of a row; or the rule that it breaks."""
    rule = f"must be four numbers: {', '.join(FIELDS)}"
    if len(words) != len(FIELDS):
        return f"has {len(words)} fields, {rule}"
    for name, word in zip(FIELDS[:2], words, strict=False):
        if not (word.isascii() and word.isdecimal() and len(word) <= 9):
            return f"{name} is '{word[:40]}', must be the number of a host"
    try:
        size, start_ns = float(words[2]), float(words[3])
    except ValueError:
        return f"is '{' '.join(words)[:80]}', {rule}"
    if not (math.isfinite(size) and size > 0):
        return f"bytes is {words[2][:40]}, must be greater than 0"
    if not (math.isfinite(start_ns) and start_ns >= 0):
        return f"start is {words[3][:40]} ns, must be at least 0"
    source, target = (str(int(word) // hosts_per_rack) for word in words[:2])
    return start_ns / 1e3, source, target, size
