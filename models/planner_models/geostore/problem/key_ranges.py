"""The ordered keyspace of a problem: its tables as arrays, and faults in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

from planner.arrays import Ints
from planner.contract.tables import describe_rows, file_name, report_unknown_names, row_name
from planner.errors import did_you_mean
from planner_models.geostore.problem.schema import JOIN
from planner_models.geostore.shards.keyspace import NO_SERVER, Accesses, Keyspace, Weights


class KeyTables(NamedTuple):
    """Tables of an ordered keyspace; None for a table that a problem does not have."""

    ranges: pd.DataFrame | None
    servers: pd.DataFrame | None
    scans: pd.DataFrame | None
    transactions: pd.DataFrame | None


def read_keyspace(tables: KeyTables, *, message_weight: float, move_weight: float) -> Keyspace | None:
    """Return the ranges, servers, scans and transactions of tables; None where there are no ranges.

    message_weight  of the messages of all transactions
    move_weight     of moving all ranges
    """
    ranges, servers = tables.ranges, tables.servers
    if ranges is None or servers is None or not len(ranges):
        return None
    index = pd.Index(ranges["range"])
    gb = ranges["size_gb"].to_numpy(float)
    accesses = _read_transactions(tables.transactions, index)
    scans = pd.DataFrame({"first": [], "last": [], "per_s": []}) if tables.scans is None else tables.scans
    rate = float(accesses.per_s.sum())
    return Keyspace(
        kops=ranges["kops"].to_numpy(float),
        gb=gb,
        server_kops=servers["kops"].to_numpy(float),
        scans=np.column_stack([index.get_indexer(pd.Index(scans[end])) for end in ("first", "last")]).astype(
            np.int64
        ),
        scan_per_s=scans["per_s"].to_numpy(float),
        transactions=accesses,
        today=_read_today(ranges, pd.Index(servers["server"])),
        weights=Weights(
            messages=message_weight / rate if rate > 0 else 0.0,
            move_gb=move_weight / gb.sum() if gb.sum() > 0 else 0.0,
        ),
    )


def _read_today(ranges: pd.DataFrame, servers: pd.Index) -> Ints | None:
    """Return the server that has each range today, (R,), -1 for none; None where no range has one."""
    if "server" not in ranges or not (ranges["server"] != "").any():
        return None
    today = servers.get_indexer(pd.Index(ranges["server"]))
    return np.where(ranges["server"].to_numpy() == "", NO_SERVER, today).astype(np.int64)


def _read_transactions(frame: pd.DataFrame | None, ranges: pd.Index) -> Accesses:
    """Return the ranges that each transaction touches."""
    if frame is None or not len(frame):
        return Accesses.none()
    names = [text.split(JOIN) for text in frame["ranges"].astype(str).tolist()]
    touched = ranges.get_indexer(pd.Index([name for cell in names for name in cell]))
    first = np.concatenate([[0], np.cumsum([len(cell) for cell in names])])
    return Accesses(
        first=first.astype(np.int64), touched=touched.astype(np.int64), per_s=frame["per_s"].to_numpy(float)
    )


def report_key_ranges(tables: KeyTables) -> Iterator[str]:
    """Yield faults of ranges, servers, scans and transactions."""
    missing = [*_missing_tables(tables)]
    yield from missing
    ranges, servers = tables.ranges, tables.servers
    if missing or ranges is None or servers is None or not len(ranges):
        return
    index = pd.Index(ranges["range"])
    if "server" in ranges:
        placed = ranges[ranges["server"] != ""]
        yield from report_unknown_names(placed, "ranges", "server", pd.Index(servers["server"]), "no server")
    if not ranges["kops"].sum() > 0:
        yield f"{file_name(ranges, 'ranges')}: kops are all 0, some range must have load"
    if tables.scans is not None:
        yield from _bad_scans(tables.scans, index)
    if tables.transactions is not None:
        yield from _bad_transactions(tables.transactions, index)


def _missing_tables(tables: KeyTables) -> Iterator[str]:
    """Yield tables with rows that need another table which has none."""
    for name, other in (
        ("ranges", "servers"),
        ("servers", "ranges"),
        ("scans", "ranges"),
        ("transactions", "ranges"),
    ):
        frame, needed = getattr(tables, name), getattr(tables, other)
        if frame is not None and len(frame) and (needed is None or not len(needed)):
            yield f"{file_name(frame, name)}: has rows, which need a table {other}"


def _bad_scans(scans: pd.DataFrame, ranges: pd.Index) -> Iterator[str]:
    """Yield faults of scans: unknown ranges, and an end before the start."""
    faults = [
        *report_unknown_names(scans, "scans", "first", ranges, "no range"),
        *report_unknown_names(scans, "scans", "last", ranges, "no range"),
    ]
    yield from faults
    if faults:
        return
    first, last = (ranges.get_indexer(pd.Index(scans[end])) for end in ("first", "last"))
    yield from describe_rows(
        np.flatnonzero(first > last),
        lambda row: (
            f"{row_name(scans, 'scans', row)}: first is '{scans['first'].iloc[row]}', must not be behind "
            f"last, '{scans['last'].iloc[row]}'"
        ),
        file_name(scans, "scans"),
        "that are reversed",
    )


def _bad_transactions(transactions: pd.DataFrame, ranges: pd.Index) -> Iterator[str]:
    """Yield faults of transactions: unknown ranges, and ranges that one names twice."""
    cells = [text.split(JOIN) for text in transactions["ranges"].astype(str).tolist()]
    names = set(ranges.tolist())
    unknown = {
        row: next(name for name in cell if name not in names)
        for row, cell in enumerate(cells)
        if not names.issuperset(cell)
    }
    where = file_name(transactions, "transactions")
    yield from describe_rows(
        np.array(list(unknown), dtype=np.int64),
        lambda row: (
            f"{row_name(transactions, 'transactions', row)}: '{unknown[row]}' is no range"
            + did_you_mean(unknown[row], ranges)
        ),
        where,
        "with an unknown range",
    )
    twice = np.array([row for row, cell in enumerate(cells) if len(set(cell)) < len(cell)], dtype=np.int64)
    yield from describe_rows(
        twice,
        lambda row: f"{row_name(transactions, 'transactions', row)}: names a range twice",
        where,
        "that name a range twice",
    )
