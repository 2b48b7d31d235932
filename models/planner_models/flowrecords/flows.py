"""Flows between nodes in flow records: records of one flow joined, with their start and size."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Bools, Floats, Ints
from planner.contract.notes import add_note
from planner.errors import InputError
from planner_models.flowrecords.captures import flow_begins
from planner_models.flowrecords.cleaning import Duplicates, Pieces, find_sampling, keep_once, require_rule
from planner_models.flowrecords.demands import Cleaning, RecordFiles, list_files
from planner_models.flowrecords.prefixes import NO_NODE, PrefixMap, make_prefix_map
from planner_models.flowrecords.reading import ReadSettings, open_records
from planner_models.flowrecords.records import FLOW_KEY, FlowRecords, join_records
from planner_models.flowrecords.stored_records import StoredRecords
from planner_models.flowrecords.tables import EXPORTERS, PREFIXES, read_optional


@dataclass(frozen=True, kw_only=True)
class Joining:
    """Settings of the joining of a flow's records, and of the times that are read."""

    idle_s: Annotated[
        float, Field(gt=0, le=1e6, description="gap between records of one key that ends a flow, s")
    ] = 30.0
    start_s: Annotated[
        float, Field(ge=0, description="flows that start from here on, after the first one, s")
    ] = 0.0
    length_s: Annotated[
        Annotated[float, Field(gt=0)] | None,
        Field(description="... within this time are read, s; none: all of them"),
    ] = None
    sizes_from_sampled: Annotated[
        bool, Field(description="read sizes of sampled records, which miss small flows")
    ] = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Flows:
    """Flows in the order of their starts, shape (F,) each.

    start_s          after the first start, s
    octets, packets  scaled by sampling
    source, target   row of `nodes`
    records          the first record of each flow
    """

    start_s: Floats
    octets: Floats
    packets: Floats
    source: Ints
    target: Ints
    nodes: tuple[str, ...]
    records: FlowRecords

    def __len__(self) -> int:
        return len(self.start_s)

    def names(self, rows: Ints) -> list[str]:
        """Return the names of nodes."""
        return [self.nodes[row] for row in rows.tolist()]


def read_flows(files: RecordFiles, cleaning: Cleaning, joining: Joining, *, within: bool = False) -> Flows:
    """Return the flows of files of flow records, scaled, counted once and joined.

    within  whether flows within a node are read too

    raises  InputError where files or tables are faulty, and where records are sampled unless that is allowed
    """
    prefixes = read_optional(PREFIXES, files.prefixes)
    assert prefixes is not None
    exporters = read_optional(EXPORTERS, files.exporters)
    prefix_map = make_prefix_map(prefixes, match=cleaning.match)
    stored, _ = files.open_records()
    with stored:
        return find_flows(
            stored, prefix_map, cleaning, joining, exporters=exporters, within=within, where=files.path.name
        )


def read_flow_sizes(path: Path, *, idle_s: float = 30.0) -> Floats:
    """Return the bytes of each flow in flow records, counted once and joined, shape (F,).

    Records that do not say their sampling count as unsampled.

    raises  InputError where files are faulty, or a record is sampled
    """
    stored, _ = open_records(list_files(path), ReadSettings(idle_s=idle_s))
    with stored:
        _require_unsampled(find_sampling(stored.summary().kinds, sampling=1), path.name)
        sizes = []
        count = 0
        for records in stored.parts():
            rate = np.ones(len(records), dtype=np.int64)
            joined = _join_part(records, rate, "exporter", None, idle_s)
            sizes.append(joined.octets)
            count += joined.records
    octets = np.concatenate(sizes)
    if not (octets > 0).any():
        raise InputError(f"{path.name}: has no flow with bytes")
    add_note(f"{path.name}: {count:,} records are {len(octets):,} flows, whose sizes are read")
    return octets[octets > 0]


def _require_unsampled(rate: Ints, where: str) -> None:
    """Raise InputError where records are sampled."""
    if (rate > 1).any():
        raise InputError(
            f"{where}: records are sampled, one packet of {int(rate.max()):,}, which misses small flows and "
            "distorts sizes; take unsampled records, or a file of sizes"
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Joined:
    """Flows of a part, in the order of their keys and starts: the first record, octets and packets, scaled.

    records  number of records that are counted
    """

    first: FlowRecords
    octets: Floats
    packets: Floats
    records: int

    def select(self, rows: Bools | Ints) -> _Joined:
        """Return some of the flows."""
        return replace(
            self, first=self.first.select(rows), octets=self.octets[rows], packets=self.packets[rows]
        )


def _join_part(
    records: FlowRecords, rate: Ints, duplicates: Duplicates, exporters: pd.DataFrame | None, idle_s: float
) -> _Joined:
    """Return the flows of all records of some keys, counted once."""
    scaled = records.octets * rate.astype(float)
    rows = np.arange(len(records))
    pieces = Pieces(record=rows, bucket=np.zeros(len(rows), dtype=np.int64), share=np.ones(len(rows)))
    counts_once = keep_once(records, pieces, scaled, duplicates, exporters)
    records, rate = records.select(counts_once), rate[counts_once]
    if not len(records):
        return _Joined(first=records, octets=np.empty(0), packets=np.empty(0), records=0)
    records, first, order = _find_first(records, idle_s)
    rate = rate[order]
    return _Joined(
        first=records.select(first),
        octets=np.add.reduceat(records.octets * rate.astype(float), first),
        packets=np.add.reduceat(records.packets * rate.astype(float), first),
        records=len(records),
    )


def find_flows(
    stored: StoredRecords,
    prefix_map: PrefixMap,
    cleaning: Cleaning,
    joining: Joining,
    *,
    exporters: pd.DataFrame | None = None,
    within: bool = False,
    where: str = "records",
) -> Flows:
    """Return the flows of records (see `read_flows`), found part by part."""
    summary = stored.summary()
    rate = find_sampling(summary.kinds, exporters=exporters, sampling=cleaning.sampling)
    if (rate > 1).any() and not joining.sizes_from_sampled:
        raise InputError(
            f"{where}: records are sampled, one packet of {int(rate.max()):,}, which misses small flows and "
            "distorts sizes; set sizes_from_sampled = true to read them so"
        )
    require_rule(summary, cleaning.duplicates, exporters)
    sums = FlowSums()
    shares: list[_Joined] = []
    for part_records in stored.parts():
        rate = find_sampling(part_records, exporters=exporters, sampling=cleaning.sampling)
        joined = _join_part(part_records, rate, cleaning.duplicates, exporters, joining.idle_s)
        if joined.records:
            shares.append(_select_read(joined, prefix_map, joining, within, sums))
    lost = sums.lost / max(sums.octets, 1.0)
    _require_mapped(cleaning, lost)
    read = [share.select(_is_in_time(share, joining, sums.first_s)) for share in shares]
    records = join_records([share.first for share in read]) if read else summary.kinds.select(np.arange(0))
    if not len(records):
        raise InputError(f"{where}: has no flow from one node to another in this time")
    start_s = records.start_s - sums.first_s
    order = np.lexsort((*(getattr(records, name) for name in FLOW_KEY), start_s))
    records = records.select(order)
    add_note(
        f"{where}: {summary.count:,} records, {summary.count - sums.records:,} of them duplicates, are "
        f"{sums.flows:,} flows, of which {len(records):,} between nodes are read; {lost:.1%} of bytes have "
        "no prefix"
    )
    return Flows(
        start_s=start_s[order] - joining.start_s,
        octets=np.concatenate([share.octets for share in read])[order],
        packets=np.concatenate([share.packets for share in read])[order],
        source=prefix_map.find(records.source_high, records.source_low),
        target=prefix_map.find(records.target_high, records.target_low),
        nodes=prefix_map.nodes,
        records=records,
    )


@dataclass(kw_only=True)
class FlowSums:
    """Sums over the flows of all parts: records, flows, bytes, and bytes without a prefix.

    first_s  start of the first flow, s since 1970
    """

    records: int = 0
    flows: int = 0
    octets: float = 0.0
    lost: float = 0.0
    first_s: float = np.inf


def _select_read(
    joined: _Joined, prefix_map: PrefixMap, joining: Joining, within: bool, sums: FlowSums
) -> _Joined:
    """Add the flows of a part to sums, and return those between nodes in the time, as far as it is known."""
    source = prefix_map.find(joined.first.source_high, joined.first.source_low)
    target = prefix_map.find(joined.first.target_high, joined.first.target_low)
    is_mapped = (source != NO_NODE) & (target != NO_NODE)
    sums.records += joined.records
    sums.flows += len(joined.octets)
    sums.octets += float(joined.octets.sum())
    sums.lost += float(joined.octets[~is_mapped].sum())
    sums.first_s = min(sums.first_s, float(joined.first.start_s.min()))
    is_read = is_mapped & (joined.octets > 0)
    if not within:
        is_read &= source != target
    # the first start of all parts is no later, so that a flow behind the end stays behind it
    if joining.length_s is not None:
        is_read &= joined.first.start_s - sums.first_s < joining.start_s + joining.length_s
    return joined.select(is_read)


def _is_in_time(joined: _Joined, joining: Joining, first_s: float) -> Bools:
    """Return whether each flow starts in the time that is read, (F,)."""
    start_s = joined.first.start_s - first_s
    end_s = np.inf if joining.length_s is None else joining.start_s + joining.length_s
    is_in_time: Bools = (start_s >= joining.start_s) & (start_s < end_s)
    return is_in_time


def _require_mapped(cleaning: Cleaning, lost: float) -> None:
    """Raise InputError where more than the allowed share of bytes has an address without a prefix."""
    if cleaning.unmapped == "outside":
        raise InputError("unmapped is 'outside', which is of demands; give the outside a prefix, 0.0.0.0/0")
    if cleaning.unmapped == "error" and lost > cleaning.max_unmapped:
        raise InputError(
            f"prefixes: {lost:.1%} of bytes have an address without a prefix, must be at most "
            f"{cleaning.max_unmapped:.1%}; add prefixes, or set unmapped"
        )


def join_records_of_flows(records: FlowRecords, idle_s: float) -> tuple[FlowRecords, Ints]:
    """Return the first record of each flow, and the packets of all its records, without scaling."""
    records, first, _ = _find_first(records, idle_s)
    return records.select(first), np.add.reduceat(records.packets, first)


def _find_first(records: FlowRecords, idle_s: float) -> tuple[FlowRecords, Ints, Ints]:
    """Return the records in the order of flows, the first of each flow, and the order itself.

    An active time-out cuts a flow into records; those with gaps of at most `idle_s` are of one flow.
    """
    order = np.lexsort((records.start_s, *(getattr(records, name) for name in FLOW_KEY)))
    records = records.select(order)
    keys = np.stack([getattr(records, name) for name in FLOW_KEY])
    begins = flow_begins(keys, records.start_s, records.end_s, idle_s)
    return records, np.flatnonzero(begins), order
