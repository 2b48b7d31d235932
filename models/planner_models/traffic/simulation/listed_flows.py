"""Flows that a user lists in a file: ends, start times and sizes, and what the sender of each does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from planner.arrays import Ints
from planner.contract.notes import add_note
from planner.contract.table import Table, choice, label, number
from planner.contract.tables import row_name, shorten_faults
from planner.contract.tolerances import ROUNDING
from planner.errors import InputError, did_you_mean
from planner.io.table_files import read_table
from planner_models.graphs.indexing import sum_by_index
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.simulation.flow_arrivals import UDP_NAME, ListedFlows
from planner_models.traffic.simulation.packet_network import MIXED

LISTED: Final = Table(
    name="flows",
    about="a flow that starts at a time, between the ends of a demand",
    columns={
        "source": label("node where the flow starts", other_names=("src", "from")),
        "target": label("node where it ends", other_names=("dst", "destination", "to")),
        "class": label("traffic class of the demand, where demands have classes", optional=True),
        "start_s": number("start time from the start of the simulation, s", at_least=0),
        "size_bytes": number("bytes to send", more_than=0),
        "control": choice(
            "congestion control of the sender; udp: none, at a constant rate; blank: as the simulation says",
            (*MIXED, UDP_NAME),
            optional=True,
            may_be_blank=True,
        ),
        "rate_mbps": number(
            "constant rate of a flow of udp, Mbit/s; blank: udp_mbps of the simulation",
            more_than=0,
            optional=True,
            may_be_blank=True,
        ),
        "may_split": choice(
            "whether its packets may take several paths at once; blank: yes, of udp no",
            ("yes", "no"),
            optional=True,
            may_be_blank=True,
        ),
    },
)
ONLY_BY_PACKETS: Final = ("control", "rate_mbps", "may_split")


def read_flows(path: Path, problem: Traffic, until_s: float, *, by_packets: bool) -> ListedFlows:
    """Read the flows that start before the end of a simulation, in order of their start.

    by_packets  whether packets are followed; else a note says which columns have no meaning
    raises      InputError for flows between nodes without a demand, rates of flows that are not of UDP, rates
                above those of the links of the source, and where no flow starts in time
    """
    frame = read_table(LISTED, path)
    faults = [*_find_faults(frame, problem, path.name)]
    if faults:
        raise InputError(*shorten_faults(faults, path.name, "rows that are wrong"))
    unused = [name for name in ONLY_BY_PACKETS if name in frame]
    if unused and not by_packets:
        verb = "is" if len(unused) == 1 else "are"
        add_note(f'{path.name}: {", ".join(unused)} {verb} for model = "packets", and not used here')
    is_early = frame["start_s"].to_numpy(float) < until_s
    if not is_early.any():
        raise InputError(f"{path.name}: no flow starts before the end of the simulation, {until_s:g} s")
    if not is_early.all():
        add_note(
            f"{path.name}: {int((~is_early).sum()):,} of {len(frame):,} flows start after the end of the "
            f"simulation, {until_s:g} s, and are left out"
        )
    frame = frame[is_early].sort_values("start_s", kind="stable", ignore_index=True)
    control = _texts(frame, "control")
    return ListedFlows(
        start_s=frame["start_s"].to_numpy(float),
        demand=_demands_of(frame, problem),
        size_bytes=frame["size_bytes"].to_numpy(float),
        control=control,
        rate_mbps=_numbers(frame, "rate_mbps"),
        is_whole=(_texts(frame, "may_split") == "no") | (control == UDP_NAME),
    )


def _texts(frame: pd.DataFrame, name: str) -> np.ndarray[Any, Any]:
    """Return the words of an optional column, "" where there is none."""
    values = frame[name].fillna("").tolist() if name in frame else [""] * len(frame)
    return np.array(values, dtype=object)


def _numbers(frame: pd.DataFrame, name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the numbers of an optional column, NaN where there is none."""
    return frame[name].to_numpy(float) if name in frame else np.full(len(frame), np.nan)


def _keys(frame: pd.DataFrame, problem: Traffic) -> list[tuple[str, ...]]:
    """Return the source, the target and, with classes, the class of each row."""
    columns = (frame[name].astype(str).tolist() for name in problem.demand_key)
    return list(zip(*columns, strict=True))


def _rows_of_demands(problem: Traffic) -> Mapping[tuple[str, ...], int]:
    return {key: row for row, key in enumerate(_keys(problem.demands, problem))}


def _demands_of(frame: pd.DataFrame, problem: Traffic) -> Ints:
    row_of = _rows_of_demands(problem)
    return np.array([row_of[key] for key in _keys(frame, problem)], dtype=np.int64)


def _find_faults(frame: pd.DataFrame, problem: Traffic, where: str) -> Iterator[str]:
    """Yield the faults of rows, each in one line."""
    if problem.has_classes and "class" not in frame:
        yield f"{where}: has no column class, but demands have classes"
        return
    if "class" in frame and not problem.has_classes:
        yield f"{where}: has a column class, but demands have no classes"
        return
    row_of, is_routable = _rows_of_demands(problem), problem.routable.rate_mbps > 0
    nodes = dict.fromkeys(problem.nodes["node"].astype(str).tolist())
    out_mbps = sum_by_index(problem.tail, problem.capacity_mbps, len(problem.nodes))[problem.source]
    control, split, rate_mbps = (
        _texts(frame, "control"),
        _texts(frame, "may_split"),
        _numbers(frame, "rate_mbps"),
    )
    for row, key in enumerate(_keys(frame, problem)):
        fault = _find_end_fault(key, nodes, row_of)
        if not fault and not is_routable[row_of[key]]:
            fault = f"the demand from {key[0]} to {key[1]} has no rate or no path"
        if not fault:
            sender = (control[row], split[row], rate_mbps[row])
            fault = _find_sender_fault(*sender, most_mbps=out_mbps[row_of[key]], source=key[0])
        if fault:
            yield f"{row_name(frame, LISTED.name, row)}: {fault}"


def _find_end_fault(
    key: tuple[str, ...], nodes: Mapping[str, Any], row_of: Mapping[tuple[str, ...], int]
) -> str:
    """Return the fault of the ends and the class of a flow, "" for none."""
    for name in key[:2]:
        if name not in nodes:
            return f"'{name}' is no node" + did_you_mean(name, list(nodes))
    if key not in row_of:
        of_class = f" of class {key[2]}" if len(key) > 2 else ""
        return f"there is no demand from {key[0]} to {key[1]}{of_class}"
    return ""


def _find_sender_fault(control: str, split: str, rate_mbps: float, *, most_mbps: float, source: str) -> str:
    """Return the fault of the sender of a flow, "" for none.

    most_mbps  rate of all links on which its source sends
    """
    if control != UDP_NAME and not np.isnan(rate_mbps):
        return f"rate_mbps is {rate_mbps:g}, must be blank where control is not udp"
    if control == UDP_NAME and split == "yes":
        return "may_split is yes, must be no or blank where control is udp"
    if rate_mbps > most_mbps * (1 + ROUNDING):
        return f"rate_mbps is {rate_mbps:g}, must be at most that of the links of {source}, {most_mbps:g}"
    return ""
