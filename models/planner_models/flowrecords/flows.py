"""Flows between nodes in flow records: records of one flow joined, with their start and size."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Floats, Ints
from planner.contract.notes import add_note
from planner.errors import InputError
from planner_models.flowrecords.captures import flow_begins
from planner_models.flowrecords.cleaning import find_sampling, keep_once, make_buckets, spread_records
from planner_models.flowrecords.demands import Cleaning, RecordFiles, list_files
from planner_models.flowrecords.prefixes import NO_NODE, PrefixMap, make_prefix_map
from planner_models.flowrecords.reading import read_records
from planner_models.flowrecords.records import FLOW_KEY, FlowRecords
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
    records, _ = files.read_records()
    return find_flows(
        records, prefix_map, cleaning, joining, exporters=exporters, within=within, where=files.path.name
    )


def read_flow_sizes(path: Path, *, idle_s: float = 30.0) -> Floats:
    """Return the bytes of each flow in flow records, counted once and joined, shape (F,).

    Records that do not say their sampling count as unsampled.

    raises  InputError where files are faulty, or a record is sampled
    """
    records, _ = read_records(list_files(path), idle_s=idle_s)
    rate = find_sampling(records, sampling=1)
    _require_unsampled(rate, path.name)
    pieces = spread_records(records, make_buckets(records, None))
    records = records.select(keep_once(records, pieces, records.octets.astype(float), "exporter", None))
    records, first, _ = _find_first(records, idle_s)
    octets = np.add.reduceat(records.octets.astype(float), first)
    if not (octets > 0).any():
        raise InputError(f"{path.name}: has no flow with bytes")
    add_note(f"{path.name}: {len(records):,} records are {len(octets):,} flows, whose sizes are read")
    return octets[octets > 0]


def _require_unsampled(rate: Ints, where: str) -> None:
    """Raise InputError where records are sampled."""
    if (rate > 1).any():
        raise InputError(
            f"{where}: records are sampled, one packet of {int(rate.max()):,}, which misses small flows and "
            "distorts sizes; take unsampled records, or a file of sizes"
        )


def find_flows(
    records: FlowRecords,
    prefix_map: PrefixMap,
    cleaning: Cleaning,
    joining: Joining,
    *,
    exporters: pd.DataFrame | None = None,
    within: bool = False,
    where: str = "records",
) -> Flows:
    """Return the flows of records (see `read_flows`)."""
    rate = find_sampling(records, exporters=exporters, sampling=cleaning.sampling)
    if (rate > 1).any() and not joining.sizes_from_sampled:
        raise InputError(
            f"{where}: records are sampled, one packet of {int(rate.max()):,}, which misses small flows and "
            "distorts sizes; set sizes_from_sampled = true to read them so"
        )
    count = len(records)
    pieces = spread_records(records, make_buckets(records, None))
    counts_once = keep_once(
        records, pieces, records.octets * rate.astype(float), cleaning.duplicates, exporters
    )
    records, rate = records.select(counts_once), rate[counts_once]
    records, first, order = _find_first(records, joining.idle_s)
    rate = rate[order]
    octets = np.add.reduceat(records.octets * rate.astype(float), first)
    packets = np.add.reduceat(records.packets * rate.astype(float), first)
    flows = records.select(first)
    start_s = flows.start_s - flows.start_s.min()
    source = prefix_map.find(flows.source_high, flows.source_low)
    target = prefix_map.find(flows.target_high, flows.target_low)
    is_mapped = (source != NO_NODE) & (target != NO_NODE)
    lost = float(octets[~is_mapped].sum()) / max(float(octets.sum()), 1.0)
    _require_mapped(cleaning, lost)
    end_s = np.inf if joining.length_s is None else joining.start_s + joining.length_s
    is_read = is_mapped & (start_s >= joining.start_s) & (start_s < end_s) & (octets > 0)
    if not within:
        is_read &= source != target
    if not is_read.any():
        raise InputError(f"{where}: has no flow from one node to another in this time")
    rows = np.flatnonzero(is_read)
    rows = rows[np.argsort(start_s[rows], kind="stable")]
    add_note(
        f"{where}: {count:,} records, {count - len(records):,} of them duplicates, are {len(first):,} flows, "
        f"of which {len(rows):,} between nodes are read; {lost:.1%} of bytes have no prefix"
    )
    return Flows(
        start_s=start_s[rows] - joining.start_s,
        octets=octets[rows],
        packets=packets[rows],
        source=source[rows],
        target=target[rows],
        nodes=prefix_map.nodes,
        records=flows.select(rows),
    )


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
