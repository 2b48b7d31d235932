"""Demands in flow records: rates by pair of nodes, class and bucket, and a report on each byte."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Bools, Floats, Ints
from planner.contract.notes import add_note
from planner.contract.tables import SHOWN_ROWS
from planner.errors import InputError
from planner.formatting import counted
from planner_models.flowrecords.cleaning import (
    Buckets,
    Duplicates,
    Pieces,
    divide_by_pieces,
    find_entry_nodes,
    find_sampling,
    keep_once,
    make_buckets,
    require_rule,
    spread_records,
)
from planner_models.flowrecords.demand_sums import Cells, Uses
from planner_models.flowrecords.partitions import number_flows
from planner_models.flowrecords.prefixes import NO_NODE, Match, PrefixMap, make_prefix_map
from planner_models.flowrecords.protocols import NUMBERS
from planner_models.flowrecords.reading import ReadFile, ReadSettings, open_records
from planner_models.flowrecords.records import UNKNOWN, FlowRecords
from planner_models.flowrecords.stored_records import StoredRecords
from planner_models.flowrecords.summaries import Summary
from planner_models.flowrecords.tables import (
    COUNTERS,
    EXPORTERS,
    PORTS,
    PREFIXES,
    CounterFile,
    ExporterFile,
    PortFile,
    PrefixFile,
    read_optional,
)
from planner_models.flowrecords.verification import compare_counters, describe_error, require_counted_once

Statistic = Literal["mean", "p95", "max"]
Unmapped = Literal["error", "drop", "outside"]
MBIT_PER_BYTE: Final = 8e-6
WHOLE_SHARE: Final = 0.5
"""Share of a bucket that the records must cover, for its rate to count."""
MAX_NAMED: Final = 10
OTHER: Final = "other"
MAX_BUCKETS: Final = 1_000_000


@dataclass(frozen=True, kw_only=True)
class RecordFiles:
    """The files of flow records, and the tables that say what is in them."""

    path: Annotated[
        Path,
        Field(
            description="flow records of nfdump, goflow2 or pmacct (CSV, JSON), pcap, pcapng; or their folder"
        ),
    ]
    prefixes: PrefixFile
    exporters: ExporterFile = None
    ports: PortFile = None
    counters: CounterFile = None
    record_columns: Annotated[
        str | None,
        Field(description="columns of other files: 'start=when, source=from, target=to, bytes=volume'"),
    ] = None
    time_zone: Annotated[str, Field(description="of times that do not say theirs")] = "UTC"

    def open_records(self) -> tuple[StoredRecords, list[ReadFile]]:
        """Return the records of all files, as a context to enter; raises as `reading.open_records`."""
        columns = parse_columns(self.record_columns)
        return open_records(list_files(self.path), ReadSettings(columns=columns, time_zone=self.time_zone))


@dataclass(frozen=True, kw_only=True)
class Cleaning:
    """Settings of the scaling, the counting and the mapping of records."""

    sampling: Annotated[
        Annotated[int, Field(ge=1, le=10**9)] | None,
        Field(description="one packet of so many is counted, where neither records nor exporters say"),
    ] = None
    duplicates: Annotated[
        Duplicates,
        Field(
            description="exporter: of each flow the exporter with most bytes; boundary, direction, or none"
        ),
    ] = "exporter"
    unmapped: Annotated[
        Unmapped,
        Field(description="traffic without a prefix: error above max_unmapped, drop, or a node `outside`"),
    ] = "error"
    outside: Annotated[str | None, Field(description="node of addresses without a prefix")] = None
    max_unmapped: Annotated[
        float, Field(ge=0, le=1, description="share of bytes that may have no prefix")
    ] = 0.05
    match: Annotated[Match, Field(description="which prefix counts where several have an address")] = (
        "longest"
    )


@dataclass(frozen=True, kw_only=True)
class Report:
    """Bytes of flow records by use, scaled by their sampling.

    Of all bytes, those of duplicates are removed first; the others are mapped (between two nodes), local
    (within one), or without a prefix.

    repeated   bytes that another exporter saw too, whether they are removed or not
    unmapped   bytes by /24 or /48 without a prefix, the largest first
    samplings  exporters by their sampling, in words
    """

    records: int
    files: int
    octets: float
    removed: float
    repeated: float
    mapped: float
    local: float
    dropped: float
    unmapped: Mapping[str, float]
    samplings: Mapping[str, str]
    flows: int

    @property
    def ratio(self) -> float:
        """Mean number of times that a byte was counted before duplicates were removed."""
        remaining = self.octets - self.repeated
        return self.octets / remaining if remaining > 0 else np.nan

    def lines(self) -> list[str]:
        """Return the report as lines of text."""
        total = max(self.octets, 1.0)
        rows = [
            f"{self.records:,} records of {self.flows:,} flows, {self.octets / 1e9:,.4g} GB",
            f"duplicates: {self.removed / total:.1%} of bytes; a byte was counted {self.ratio:.2f} times",
            (
                f"between nodes: {self.mapped / total:.1%} of bytes; within one: {self.local / total:.1%}; "
                f"without a prefix: {self.dropped / total:.1%}"
            ),
        ]
        if self.unmapped:
            shown = ", ".join(f"{name} {octets / total:.1%}" for name, octets in self.unmapped.items())
            rows.append(f"addresses without a prefix: {shown}")
        rows += [f"sampling {rate}: {exporters}" for rate, exporters in self.samplings.items()]
        return rows


@dataclass(frozen=True, kw_only=True, eq=False)
class Demands:
    """Rates between nodes in buckets of time.

    source, target   (K,) row of `nodes` of each demand
    demand_class     (K,) row of `classes`
    octets           (K, B) bytes in each bucket, scaled
    variance         (K,) of the bytes in all, by sampling
    covered_s        (B,) time of each bucket that the records cover, s
    is_missing       (B,) whether no record has a share in the bucket
    """

    nodes: tuple[str, ...]
    classes: tuple[str, ...]
    source: Ints
    target: Ints
    demand_class: Ints
    octets: Floats
    variance: Floats
    buckets: Buckets
    covered_s: Floats
    is_missing: Bools
    report: Report
    files: Sequence[ReadFile]

    @property
    def used(self) -> Ints:
        """The buckets with records whose rates count: covered by half or more, or all where none is."""
        is_present = ~self.is_missing
        is_whole = is_present & (self.covered_s >= WHOLE_SHARE * self.buckets.length_s)
        return np.flatnonzero(is_whole if is_whole.any() else is_present)

    @property
    def rates_mbps(self) -> Floats:
        """(K, U) rate of each demand in each used bucket, Mbit/s."""
        used = self.used
        return self.octets[:, used] * MBIT_PER_BYTE / self.covered_s[used]

    def labels(self) -> list[str]:
        """Return the begin of each used bucket in UTC."""
        begins = self.buckets.first_s + self.used * self.buckets.length_s
        return [str(text) for text in np.datetime_as_string(begins.astype("datetime64[s]"))]

    def frame(self, rate_mbps: Floats) -> pd.DataFrame:
        """Return a table of demands with these rates, (K,); with a class where there are several."""
        names = np.array(self.nodes, dtype=object)
        table = pd.DataFrame(
            {"source": names[self.source], "target": names[self.target], "rate_mbps": rate_mbps}
        )
        if len(self.classes) > 1:
            table["class"] = np.array(self.classes, dtype=object)[self.demand_class]
        return table

    def relative_error(self) -> Floats:
        """Return the standard error of each demand by sampling, over the demand, shape (K,)."""
        total = self.octets.sum(axis=1)
        return np.sqrt(self.variance) / np.where(total > 0, total, 1.0)


def read_demands(
    files: RecordFiles,
    cleaning: Cleaning,
    *,
    bucket_s: float | None,
    names: Sequence[str] | None = None,
) -> Demands:
    """Return the demands of files of flow records after cleaning, with notes on the use of each byte.

    bucket_s  length of a bucket; None for one bucket of all
    names     nodes of the network; None for those of the prefixes

    raises    InputError where files or tables are faulty, sampling is unknown, or too many bytes have no
              prefix
    """
    prefixes = read_optional(PREFIXES, files.prefixes)
    assert prefixes is not None
    exporters, ports = read_optional(EXPORTERS, files.exporters), read_optional(PORTS, files.ports)
    prefix_map = make_prefix_map(prefixes, match=cleaning.match, names=names)
    stored, read = files.open_records()
    with stored:
        demands = find_demands(
            stored, prefix_map, cleaning, bucket_s=bucket_s, exporters=exporters, ports=ports, files=read
        )
    note_demands(demands, files.path.name)
    if cleaning.duplicates == "none":
        require_counted_once(demands.report.ratio, files.path.name)
    counters = read_optional(COUNTERS, files.counters)
    if counters is not None:
        octets = demands.octets.sum(axis=1)
        compare_counters(demands.nodes, (demands.source, demands.target), octets, counters, files.path.name)
    return demands


def list_files(path: Path) -> list[Path]:
    """Return the files of flow records that a path names: itself, or those in its folder."""
    if not path.is_dir():
        return [path]
    files = [file for file in sorted(path.iterdir()) if file.is_file() and file.name[0] != "."]
    if not files:
        raise InputError(f"{path}: has no file of flow records")
    return files


def parse_columns(text: str | None) -> dict[str, str] | None:
    """Return the column of each field in `field=column, ...`; None without a text."""
    if text is None:
        return None
    pairs = [share.partition("=") for share in text.split(",")]
    wrong = [share for share in pairs if not all(word.strip() for word in share)]
    if wrong:
        raise InputError(f"record_columns is '{text[:60]}', must be field=column, and so on, with commas")
    return {field.strip(): column.strip() for field, _, column in pairs}


def find_demands(
    stored: StoredRecords,
    prefix_map: PrefixMap,
    cleaning: Cleaning,
    *,
    bucket_s: float | None,
    exporters: pd.DataFrame | None = None,
    ports: pd.DataFrame | None = None,
    files: Sequence[ReadFile] = (),
) -> Demands:
    """Return the demands of records (see `read_demands`), summed part by part."""
    summary = stored.summary()
    rate = find_sampling(summary.kinds, exporters=exporters, sampling=cleaning.sampling)
    buckets = _require_buckets(summary, bucket_s)
    require_rule(summary, cleaning.duplicates, exporters)
    cells = Cells(buckets.count)
    uses = Uses(bucket_pieces=np.zeros(buckets.count, dtype=np.int64))
    classes: tuple[str, ...] = ()
    for part_records in stored.parts():
        for records in divide_by_pieces(part_records, buckets):
            classes = _add_part(records, cells, uses, buckets, prefix_map, cleaning, exporters, ports)
    report = _report(uses, summary, rate, len(files))
    _require_prefixes(report, cleaning)
    key, octets, variance = cells.finish()
    if not len(key):
        raise InputError(
            "records: have no traffic from one node to another; are the prefixes of this network?"
        )
    pair = key // len(classes)
    return Demands(
        nodes=prefix_map.nodes,
        classes=classes,
        source=pair // len(prefix_map.nodes),
        target=pair % len(prefix_map.nodes),
        demand_class=key % len(classes),
        octets=octets,
        variance=variance,
        buckets=buckets,
        covered_s=_covered(summary, buckets),
        is_missing=uses.bucket_pieces == 0,
        report=report,
        files=files,
    )


def _require_buckets(summary: Summary, bucket_s: float | None) -> Buckets:
    """Return the buckets; raise InputError where they have no time, or are too many."""
    buckets = make_buckets(summary, bucket_s)
    if buckets.length_s <= 0:
        raise InputError("records: are all of one instant, which has no rate; set bucket_s")
    if buckets.count > MAX_BUCKETS:
        raise InputError(
            f"bucket_s is {bucket_s:g}, which makes {buckets.count:,} buckets, "
            f"must be at most {MAX_BUCKETS:,}"
        )
    return buckets


def _add_part(
    records: FlowRecords,
    cells: Cells,
    uses: Uses,
    buckets: Buckets,
    prefix_map: PrefixMap,
    cleaning: Cleaning,
    exporters: pd.DataFrame | None,
    ports: pd.DataFrame | None,
) -> tuple[str, ...]:
    """Add all records of some flows to sums, and return the names of classes."""
    rate = find_sampling(records, exporters=exporters, sampling=cleaning.sampling)
    octets = records.octets * rate.astype(float)
    pieces = spread_records(records, buckets)
    flow = number_flows(records)
    pieces, removed, repeated = _count_once(records, pieces, octets, cleaning.duplicates, exporters, flow)
    source, target = _nodes(records, prefix_map, cleaning, exporters)
    code, classes = _classes(records, ports)
    piece_octets = octets[pieces.record] * pieces.share
    uses.octets += float(octets.sum())
    uses.flows += int(flow.max()) + 1
    uses.removed += removed
    uses.repeated += repeated
    uses.bucket_pieces += np.bincount(pieces.bucket, minlength=buckets.count)
    by_record = np.bincount(pieces.record, weights=piece_octets, minlength=len(records)).astype(float)
    _add_uses(uses, records, by_record, source, target)
    is_between = (source != NO_NODE) & (target != NO_NODE) & (source != target)
    is_used = is_between[pieces.record]
    record = pieces.record[is_used]
    variance = rate * (rate - 1.0) * records.octets.astype(float) ** 2 / np.maximum(records.packets, 1)
    cells.add(
        ((source * len(prefix_map.nodes) + target) * len(classes) + code)[record],
        pieces.bucket[is_used],
        piece_octets[is_used],
        variance[record] * pieces.share[is_used],
    )
    return classes


def _add_uses(uses: Uses, records: FlowRecords, by_record: Floats, source: Ints, target: Ints) -> None:
    """Add the octets (R,) of records that are counted by their use."""
    is_mapped = (source != NO_NODE) & (target != NO_NODE)
    is_local = is_mapped & (source == target)
    uses.mapped += float(by_record[is_mapped & ~is_local].sum())
    uses.local += float(by_record[is_local].sum())
    uses.dropped += float(by_record[~is_mapped].sum())
    for sums, high, low, node in (
        (uses.sources, records.source_high, records.source_low, source),
        (uses.targets, records.target_high, records.target_low, target),
    ):
        rows = np.flatnonzero((node == NO_NODE) & (by_record > 0))
        if len(rows):
            sums.add(high[rows], low[rows], by_record[rows])


def _count_once(
    records: FlowRecords,
    pieces: Pieces,
    octets: Floats,
    duplicates: Duplicates,
    exporters: pd.DataFrame | None,
    flow: Ints,
) -> tuple[Pieces, float, float]:
    """Return the pieces that count, and the bytes that are removed, and that other exporters saw too."""
    piece_octets = octets[pieces.record] * pieces.share
    counts_once = keep_once(records, pieces, octets, duplicates, exporters, flow)
    removed = repeated = float(piece_octets[~counts_once].sum())
    if duplicates == "none":
        is_first = keep_once(records, pieces, octets, "exporter", exporters, flow)
        repeated = float(piece_octets[~is_first].sum())
    return pieces.select(counts_once), removed, repeated


def _require_prefixes(report: Report, cleaning: Cleaning) -> None:
    """Raise InputError where more than the allowed share of bytes has an address without a prefix."""
    total = max(report.octets - report.removed, 1.0)
    if cleaning.unmapped == "error" and report.dropped > cleaning.max_unmapped * total:
        shown = ", ".join(report.unmapped)
        raise InputError(
            f"prefixes: {report.dropped / total:.1%} of bytes have an address without a prefix, must be at "
            f"most {cleaning.max_unmapped:.1%}: {shown}; add prefixes, or set unmapped"
        )


def _nodes(
    records: FlowRecords, prefix_map: PrefixMap, cleaning: Cleaning, exporters: pd.DataFrame | None
) -> tuple[Ints, Ints]:
    """Return the nodes of the source and target of each record."""
    source = prefix_map.find(records.source_high, records.source_low)
    if exporters is not None:
        entry = find_entry_nodes(records, exporters, prefix_map.nodes)
        source = np.where(source == NO_NODE, entry, source)
    target = prefix_map.find(records.target_high, records.target_low)
    if cleaning.unmapped != "outside":
        return source, target
    if cleaning.outside is None or cleaning.outside not in prefix_map.nodes:
        shown = "is missing" if cleaning.outside is None else f"is '{cleaning.outside}'"
        raise InputError(f"outside {shown}, must be the node of addresses without a prefix")
    node = prefix_map.nodes.index(cleaning.outside)
    return np.where(source == NO_NODE, node, source), np.where(target == NO_NODE, node, target)


def _classes(records: FlowRecords, ports: pd.DataFrame | None) -> tuple[Ints, tuple[str, ...]]:
    """Return the class of each record, by its target port, else its source port, and the names of classes."""
    if ports is None:
        return np.zeros(len(records), dtype=np.int64), (OTHER,)
    names = tuple(dict.fromkeys([*ports["class"].astype(str), OTHER]))
    code = np.full(len(records), names.index(OTHER), dtype=np.int64)
    for port_of in (records.source_port, records.target_port):
        for protocol, port, name in zip(ports["protocol"], ports["target_port"], ports["class"], strict=True):
            text = str(protocol).strip()
            number = (
                int(text)
                if text.isascii() and text.isdecimal() and len(text) < 4
                else NUMBERS.get(text.upper())
            )
            if number is None:
                raise InputError(f"ports: protocol is '{text[:40]}', must be a number or a name such as tcp")
            code[(records.protocol == number) & (port_of == int(port))] = names.index(str(name))
    return code, names


def _covered(summary: Summary, buckets: Buckets) -> Floats:
    """Return the time of each bucket between the first start and the last end, s, shape (B,)."""
    begin = buckets.first_s + np.arange(buckets.count) * buckets.length_s
    covered = np.minimum(begin + buckets.length_s, summary.last_s) - np.maximum(begin, summary.first_s)
    # records of instants in one bucket cover it
    return np.where(covered > 0, covered, buckets.length_s)


def _report(uses: Uses, summary: Summary, rate: Ints, files: int) -> Report:
    """Return the report on records, of whose kinds `rate` is the sampling."""
    without = uses.sources.largest(MAX_NAMED)
    for name, octets in uses.targets.largest(MAX_NAMED).items():
        without[name] = without.get(name, 0.0) + octets
    largest = dict(sorted(without.items(), key=lambda pair: (-pair[1], pair[0]))[:MAX_NAMED])
    return Report(
        records=summary.count,
        files=files,
        octets=uses.octets,
        removed=uses.removed,
        repeated=uses.repeated,
        mapped=uses.mapped,
        local=uses.local,
        dropped=uses.dropped,
        unmapped=largest,
        samplings=_samplings(summary.kinds, rate),
        flows=uses.flows,
    )


def _samplings(records: FlowRecords, rate: Ints) -> dict[str, str]:
    """Return the exporters of each sampling rate in words, of the first rates."""
    result = {}
    for value in np.unique(rate)[:MAX_NAMED].tolist():
        codes = np.unique(records.exporter[rate == value])
        names = [
            records.exporters[code] if code != UNKNOWN else "no exporter named" for code in codes[:SHOWN_ROWS]
        ]
        more = f" and {len(codes) - SHOWN_ROWS} more" if len(codes) > SHOWN_ROWS else ""
        result["none" if value == 1 else f"1 in {value:,}"] = ", ".join(names) + more
    return result


def note_demands(demands: Demands, where: str) -> None:
    """Add notes on the forms, the uses of bytes, assumptions and doubts."""
    for file in demands.files:
        add_note(f"{file.path.name}: is read as {file.form}, {file.records:,} records")
    for line in [*demands.report.lines(), *describe_error(demands.relative_error())]:
        add_note(f"{where}: {line}")
    missing = np.flatnonzero(demands.is_missing)
    if len(missing):
        begins = demands.buckets.first_s + missing[:3] * demands.buckets.length_s
        shown = ", ".join(str(text) for text in np.datetime_as_string(begins.astype("datetime64[s]")))
        add_note(
            f"warning: {where}: {len(missing):,} of {demands.buckets.count:,} buckets have no record and are "
            f"left out: {shown}" + (", ..." if len(missing) > 3 else "")
        )
    short = demands.buckets.count - len(missing) - len(demands.used)
    if short:
        add_note(
            f"assumed: {where}: {counted(short, 'buckets')} at the ends, covered by less than half, "
            "count in means only"
        )
