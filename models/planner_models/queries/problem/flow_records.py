"""Packets that meet switches, from flow records of routers and captures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Bools, Ints
from planner.contract.notes import add_note
from planner.errors import InputError, did_you_mean
from planner.io.table_files import find_tables, read_tables
from planner_models.flowrecords.cleaning import find_sampling
from planner_models.flowrecords.demands import list_files, parse_columns
from planner_models.flowrecords.reading import read_records as read_files
from planner_models.flowrecords.records import FLOW_KEY, UNKNOWN, FlowRecords
from planner_models.flowrecords.tables import EXPORTERS, ExporterFile, read_optional
from planner_models.flowtables.problem.flow_records import are_ipv4, write_headers
from planner_models.queries.problem.problem import Monitoring
from planner_models.queries.problem.schema import FLOWS, OPTIONAL_TABLES, TABLES

MAX_RECORDS: Final = 1_000_000
"""Records of a problem."""


def read_records(
    *,
    path: Annotated[
        Path, Field(description="folder of the tables queries and switches, and optional others")
    ],
    records: Annotated[
        Path,
        Field(
            description="flow records of nfdump, goflow2 (sFlow, NetFlow) or pmacct, pcap, pcapng; or their "
            "folder"
        ),
    ],
    exporters: ExporterFile = None,
    switch: Annotated[
        str | None, Field(description="the switch of records that name no exporter; none: the only one")
    ] = None,
    sampling: Annotated[
        Annotated[int, Field(ge=1, le=10**9)] | None,
        Field(description="one packet of so many is counted, where records do not say it"),
    ] = None,
    record_columns: Annotated[
        str | None,
        Field(description="columns of other files: 'start=when, source=from, target=to, bytes=volume'"),
    ] = None,
    time_zone: Annotated[str, Field(description="of times that do not say theirs")] = "UTC",
) -> Monitoring:
    """Read the packets of flow records as flows of the switch that exported them, at equal intervals.

    The table of exporters has the switch of each in column `node`; an exporter that it does not have is the
    switch of its address. Packets of sampled records are scaled. Records that are not of IPv4 are
    left out.

    raises  InputError for files that cannot be read, exporters that are no switch, unknown sampling, and
            without a record of IPv4
    """
    tables = [table for table in TABLES if table.name != FLOWS.name]
    frames = read_tables(tables, find_tables(tables, path, OPTIONAL_TABLES))
    read, _ = read_files(list_files(records), columns=parse_columns(record_columns), time_zone=time_zone)
    is_ipv4 = are_ipv4(read)
    if not is_ipv4.any():
        raise InputError(f"{records.name}: has no record of IPv4")
    if others := int((~is_ipv4).sum()):
        add_note(f"assumed: {records.name}: {others:,} of {len(read):,} records are of IPv6, and left out")
    selected = read.select(is_ipv4 & (read.packets > 0))
    if len(selected) > MAX_RECORDS:
        raise InputError(
            f"{records.name}: has {len(selected):,} records, must have at most {MAX_RECORDS:,}; read "
            "shorter times"
        )
    order = np.lexsort((*(getattr(selected, name) for name in FLOW_KEY), selected.exporter, selected.start_s))
    selected = selected.select(order)
    names = frames["switches"]["switch"].astype(str).tolist()
    table = read_optional(EXPORTERS, exporters)
    rate = find_sampling(selected, exporters=table, sampling=sampling)
    flows = _tabulate(selected, _name_switches(selected, names, table, switch, records.name), rate)
    return Monitoring.from_tables({**frames, "flows": flows})


def _name_switches(
    records: FlowRecords, names: list[str], table: pd.DataFrame | None, switch: str | None, where: str
) -> list[str]:
    """Return the switch of each record: that of its exporter, or the given one of records without."""
    of_exporter: dict[str, str] = {}
    if table is not None and "node" in table:
        rows = zip(table["exporter"].astype(str), table["node"].fillna("").astype(str), strict=True)
        of_exporter = {exporter: node for exporter, node in rows if node}
    switches = [of_exporter.get(name, name) for name in records.exporters]
    for exporter, name in zip(records.exporters, switches, strict=True):
        if name not in names:
            of = "" if name == exporter else f" of exporter {exporter}"
            raise InputError(
                f"{where}: '{name}'{of} is no switch{did_you_mean(name, names)}; a table of exporters names "
                "the switch of each in column node"
            )
    is_unknown: Bools = records.exporter == UNKNOWN
    if is_unknown.any():
        switch = names[0] if switch is None and len(names) == 1 else switch
        if switch is None:
            raise InputError(
                f"{where}: {int(is_unknown.sum()):,} records name no exporter, and there are {len(names)} "
                "switches; set switch"
            )
        if switch not in names:
            raise InputError(f"switch is '{switch}', is no switch" + did_you_mean(switch, names))
    labels = [*switches, switch or ""]
    return [labels[code] for code in records.exporter.tolist()]  # UNKNOWN is the last


def _tabulate(records: FlowRecords, switches: list[str], rate: Ints) -> pd.DataFrame:
    """Return the table of flows: a row for each record."""
    ports = records.input_interface.tolist()
    headers = [
        header if port == UNKNOWN else f"in_port={port} {header}"
        for header, port in zip(write_headers(records), ports, strict=True)
    ]
    length_s = np.where(records.packets * rate > 1, records.end_s - records.start_s, 0.0)
    return pd.DataFrame(
        {
            "switch": switches,
            "header": headers,
            "packets": (records.packets * rate).astype(float),
            "packet_bytes": np.maximum(np.rint(records.octets / records.packets), 1.0),
            "start_s": records.start_s - records.start_s.min(),
            "length_s": length_s,
        }
    )
