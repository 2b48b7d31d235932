"""Records scaled by their sampling, and counted once where several exporters saw the same flow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints
from planner.contract.tables import SHOWN_ROWS, row_name
from planner.errors import InputError, did_you_mean
from planner_models.flowrecords.partitions import divide_part, number_flows
from planner_models.flowrecords.records import UNKNOWN, FlowRecords
from planner_models.flowrecords.summaries import Summary

Duplicates = Literal["exporter", "boundary", "direction", "none"]
INGRESS: Final = 0
MAX_PIECES: Final = 50_000_000
"""Shares of the records of one flow in buckets, about."""
PART_PIECES: Final = 1 << 22
"""Shares of records in buckets that are handled together."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Buckets:
    """Consecutive times of one length, from the first record to the last.

    first_s   begin of the first one, s since 1970: a multiple of the length
    length_s  of each
    count     their number
    """

    first_s: float
    length_s: float
    count: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Pieces:
    """Shares of records in buckets: a record of several is spread evenly from its start to its end.

    record, bucket  (P,) of each
    share           (P,) of the record
    """

    record: Ints
    bucket: Ints
    share: Floats

    def select(self, rows: Bools | Ints) -> Pieces:
        """Return some of the pieces."""
        return Pieces(record=self.record[rows], bucket=self.bucket[rows], share=self.share[rows])


def find_sampling(
    records: FlowRecords, *, exporters: pd.DataFrame | None = None, sampling: int | None = None
) -> Ints:
    """Return the packets for each one that was counted, of each record, shape (R,).

    The record's own rate goes first, then that of its exporter, then `sampling`.

    raises  InputError that names exporters without any
    """
    rate = records.sampling.copy()
    if exporters is not None and "sampling" in exporters:
        for row in _rows_of_exporters(records, exporters):
            value = exporters["sampling"].iloc[row.number]
            if not np.isnan(value):
                rate[row.is_of & (rate == UNKNOWN)] = int(value)
    if sampling is not None:
        rate[rate == UNKNOWN] = sampling
    if (rate == UNKNOWN).any():
        codes = np.unique(records.exporter[rate == UNKNOWN])
        names = [records.exporters[code] if code != UNKNOWN else "not named" for code in codes[:SHOWN_ROWS]]
        more = f" and {len(codes) - SHOWN_ROWS} more" if len(codes) > SHOWN_ROWS else ""
        raise InputError(
            f"sampling: records of exporters {', '.join(names)}{more} do not say their sampling; set "
            "sampling = 1 where all packets are counted, or 1000 for one of 1,000, or name a table of "
            "exporters"
        )
    return rate


@dataclass(frozen=True, eq=False)
class _ExporterRow:
    number: int
    is_of: Bools


def _rows_of_exporters(records: FlowRecords, exporters: pd.DataFrame) -> list[_ExporterRow]:
    """Return the records of each row of a table of exporters; a row with an interface goes first."""
    index = {name: code for code, name in enumerate(records.exporters)}
    has_input = (
        exporters["input"].notna().to_numpy() if "input" in exporters else np.zeros(len(exporters), bool)
    )
    rows = []
    for number in np.argsort(~has_input, kind="stable").tolist():
        code = index.get(str(exporters["exporter"].iloc[number]))
        if code is None:
            continue
        is_of = records.exporter == code
        if has_input[number]:
            is_of = is_of & (records.input_interface == int(exporters["input"].iloc[number]))
        rows.append(_ExporterRow(number, is_of))
    return rows


def find_entry_nodes(records: FlowRecords, exporters: pd.DataFrame, nodes: Sequence[str]) -> Ints:
    """Return the node at which each record enters by its exporter, a row of `nodes`, or -1, shape (R,).

    Rows of a table of exporters at interfaces inside the network name none.

    raises  InputError for nodes that there are not
    """
    entry = np.full(len(records), -1, dtype=np.int64)
    if "node" not in exporters:
        return entry
    names = exporters["node"].fillna("").astype(str).tolist()
    for row, name in enumerate(names):
        if name and name not in nodes:
            near = did_you_mean(name, nodes)
            raise InputError(f"{row_name(exporters, 'exporters', row)}: node '{name}' is no node{near}")
    is_inside = np.zeros(len(exporters), bool)
    if "boundary" in exporters:
        is_inside = (exporters["boundary"] == "internal").to_numpy()
    is_given = np.zeros(len(records), dtype=bool)
    for exporter in _rows_of_exporters(records, exporters):
        fresh = exporter.is_of & ~is_given
        is_given |= exporter.is_of
        if names[exporter.number] and not is_inside[exporter.number]:
            entry[fresh] = nodes.index(names[exporter.number])
    return entry


def make_buckets(summary: Summary, length_s: float | None) -> Buckets:
    """Return the buckets of records; one of all where there is no length."""
    first, last = summary.first_s, summary.last_s
    if length_s is None:
        return Buckets(first_s=first, length_s=max(last - first, 0.0), count=1)
    begin = np.floor(first / length_s) * length_s
    count = int(np.floor((last - begin) / length_s)) + 1
    # a record that ends with a bucket has no share in the next
    if count > 1 and last == begin + (count - 1) * length_s and summary.last_start_s < last:
        count -= 1
    return Buckets(first_s=float(begin), length_s=length_s, count=count)


def count_pieces(records: FlowRecords, buckets: Buckets) -> tuple[Ints, Ints]:
    """Return the first bucket of each record, and the number of its buckets, (R,) each."""
    length_s = buckets.length_s
    first = np.floor((records.start_s - buckets.first_s) / length_s).astype(np.int64)
    last = np.floor((records.end_s - buckets.first_s) / length_s).astype(np.int64)
    last -= (last > first) & (buckets.first_s + last * length_s >= records.end_s)
    first, last = (np.clip(bucket, 0, buckets.count - 1) for bucket in (first, last))
    return first, last - first + 1


def divide_by_pieces(records: FlowRecords, buckets: Buckets) -> Iterator[FlowRecords]:
    """Yield records in parts that have all records of their flows, with about PART_PIECES or fewer each."""
    if buckets.count == 1:
        yield records
        return
    pieces = int(count_pieces(records, buckets)[1].sum())
    yield from divide_part(records, -(-pieces // PART_PIECES))


def spread_records(records: FlowRecords, buckets: Buckets) -> Pieces:
    """Return the shares of records in buckets.

    raises  InputError where there are more than MAX_PIECES
    """
    if buckets.count == 1:
        rows = np.arange(len(records))
        return Pieces(record=rows, bucket=np.zeros(len(rows), dtype=np.int64), share=np.ones(len(rows)))
    length_s = buckets.length_s
    first, counts = count_pieces(records, buckets)
    if counts.sum() > MAX_PIECES:
        raise InputError(
            f"bucket_s is {length_s:g}, which cuts the records into {counts.sum():,} shares, must be at most "
            f"{MAX_PIECES:,}; take longer buckets"
        )
    record = np.repeat(np.arange(len(records)), counts)
    offset = np.arange(len(record)) - np.repeat(np.cumsum(counts) - counts, counts)
    bucket = first[record] + offset
    begin = buckets.first_s + bucket * length_s
    start, end = records.start_s[record], records.end_s[record]
    duration = end - start
    inside = np.minimum(end, begin + length_s) - np.maximum(start, begin)
    share = np.where(duration > 0, inside / np.where(duration > 0, duration, 1.0), 1.0)
    return Pieces(record=record, bucket=bucket, share=share)


def keep_once(
    records: FlowRecords,
    pieces: Pieces,
    octets: Floats,
    duplicates: Duplicates,
    exporters: pd.DataFrame | None,
    flow: Ints | None = None,
) -> Bools:
    """Return the pieces that count, so that each packet counts once, shape (P,).

    exporter   of each flow and bucket those of the exporter with most bytes, of equal ones the first by name
    boundary   those that enter at an external interface
    direction  those that were counted as they entered their exporter
    none       all

    All records of a flow are given; `flow` is its number where it is known. What the rule needs is known
    (see `require_rule`).
    """
    if duplicates == "none":
        return np.ones(len(pieces.record), dtype=bool)
    if duplicates == "direction":
        is_ingress: Bools = records.direction == INGRESS
        return is_ingress[pieces.record]
    if duplicates == "boundary":
        return _at_boundary(records, exporters)[0][pieces.record]
    if len(records.exporters) + int((records.exporter == UNKNOWN).any()) < 2:
        return np.ones(len(pieces.record), dtype=bool)
    return _of_largest_exporter(records, pieces, octets, number_flows(records) if flow is None else flow)


def require_rule(summary: Summary, duplicates: Duplicates, exporters: pd.DataFrame | None) -> None:
    """Raise InputError where the records or the table do not say what a rule for duplicates needs."""
    if duplicates == "direction" and summary.has_unknown_direction:
        raise InputError("duplicates is 'direction', but records do not say their direction")
    if duplicates != "boundary":
        return
    kinds = summary.kinds
    _, is_given = _at_boundary(kinds, exporters)
    if not is_given.all():
        kind = int((~is_given).argmax())
        code = kinds.exporter[kind]
        name = kinds.exporters[code] if code != UNKNOWN else "without a name"
        raise InputError(
            f"exporters: has no row for exporter {name}, interface {kinds.input_interface[kind]}, of "
            f"{int(summary.records_of_kind[~is_given].sum()):,} records"
        )


def _at_boundary(records: FlowRecords, exporters: pd.DataFrame | None) -> tuple[Bools, Bools]:
    """Return whether each record enters at an external interface, and whether the table has a row for it."""
    if exporters is None or "boundary" not in exporters:
        raise InputError("duplicates is 'boundary', which needs a table of exporters with boundary")
    is_external = np.zeros(len(records), dtype=bool)
    is_given = np.zeros(len(records), dtype=bool)
    for row in _rows_of_exporters(records, exporters):
        fresh = row.is_of & ~is_given
        is_external[fresh] = exporters["boundary"].iloc[row.number] == "external"
        is_given |= row.is_of
    return is_external, is_given


def _of_largest_exporter(records: FlowRecords, pieces: Pieces, octets: Floats, flow: Ints) -> Bools:
    """Return whether each piece is of the largest exporter of its flow and bucket, shape (P,)."""
    # cells are flows and buckets, and pairs are those with an exporter, in the order of exporters
    buckets = int(pieces.bucket.max()) + 1
    cell = np.unique(flow[pieces.record] * buckets + pieces.bucket, return_inverse=True)[1]
    exporters = len(records.exporters) + 1
    distinct, pair = np.unique(
        cell * exporters + (records.exporter - UNKNOWN)[pieces.record], return_inverse=True
    )
    sums = np.bincount(pair, weights=octets[pieces.record] * pieces.share)
    # shares of a record differ in their last bits, which must not decide between equal exporters
    rounded = np.round(sums, 3)
    first = np.flatnonzero(np.diff(distinct // exporters, prepend=-1))
    largest = np.maximum.reduceat(rounded, first)
    rows = np.arange(len(distinct))
    is_largest = rounded == largest[distinct // exporters]
    best = np.minimum.reduceat(np.where(is_largest, rows, len(rows)), first)
    result: Bools = best[cell] == pair
    return result
