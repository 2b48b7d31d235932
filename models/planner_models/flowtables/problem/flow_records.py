"""Connections of a switch from flow records of routers and captures, beside a filter set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Bools
from planner.contract.notes import add_note
from planner.errors import InputError
from planner_models.flowrecords.demands import list_files, parse_columns
from planner_models.flowrecords.flows import join_records_of_flows
from planner_models.flowrecords.reading import read_records as read_files
from planner_models.flowrecords.records import (
    FLOW_KEY,
    HALF,
    MAPPED_LOW,
    UNKNOWN,
    FlowRecords,
    address_text,
    without_hosts,
)
from planner_models.flowtables.problem.fields import WITH_PORTS
from planner_models.flowtables.problem.generators import Accept, Seed
from planner_models.flowtables.problem.problem import FlowTables
from planner_models.flowtables.problem.readers import read_classbench

MAX_FLOWS: Final = 2_000_000
"""Connections of a problem."""
NETWORK_BITS: Final = 24
"""Bits of an IPv4 address that are stored of anonymised records."""


def read_records(
    *,
    path: Annotated[
        Path, Field(description="flow records of nfdump, goflow2 or pmacct, pcap, pcapng; or their folder")
    ],
    filters: Annotated[Path, Field(description="filter set of ClassBench, as source classbench reads it")],
    accept: Accept = 0.5,
    idle_s: Annotated[
        float, Field(gt=0, le=1e6, description="gap between records of one key that ends a flow, s")
    ] = 30.0,
    record_columns: Annotated[
        str | None,
        Field(description="columns of other files: 'start=when, source=from, target=to, bytes=volume'"),
    ] = None,
    time_zone: Annotated[str, Field(description="of times that do not say theirs")] = "UTC",
    anonymise: Annotated[
        bool, Field(description="store networks in place of addresses: a /24 of IPv4")
    ] = False,
    seed: Seed = 0,
) -> FlowTables:
    """Read the flows in flow records as connections, each with its header, packets and start.

    Records that are not of IPv4 are left out, as filter sets are of IPv4.

    raises  InputError for files that cannot be read, and without a record of IPv4
    """
    rules = read_classbench(path=filters, accept=accept, connections=1, seed=seed)
    records, _ = read_files(
        list_files(path), columns=parse_columns(record_columns), time_zone=time_zone, idle_s=idle_s
    )
    is_ipv4 = are_ipv4(records)
    if not is_ipv4.any():
        raise InputError(f"{path.name}: has no record of IPv4")
    if others := int((~is_ipv4).sum()):
        add_note(f"assumed: {path.name}: {others:,} of {len(records):,} records are of IPv6, and left out")
    flows, packets = join_records_of_flows(records.select(is_ipv4), idle_s)
    if len(flows) > MAX_FLOWS:
        raise InputError(f"{path.name}: has {len(flows):,} flows, must have at most {MAX_FLOWS:,}")
    order = np.lexsort((*(getattr(flows, name) for name in FLOW_KEY), flows.start_s))
    flows, packets = flows.select(order), packets[order]
    if anonymise:
        flows = without_hosts(flows)
        longer = _count_longer(rules.rules["match"], NETWORK_BITS)
        add_note(
            f"assumed: {path.name}: addresses are stored as their /{NETWORK_BITS}; {longer:,} of "
            f"{len(rules.rules):,} rules have longer prefixes, and may match other connections than in truth"
        )
    table = pd.DataFrame(
        {
            "header": write_headers(flows),
            "packets": np.clip(packets, 1, 1e9).astype(float),
            "start_s": flows.start_s - flows.start_s.min(),
        }
    )
    return FlowTables(rules=rules.rules, fields=rules.fields, flows=table)


def _count_longer(matches: pd.Series, bits: int) -> int:
    """Return the number of rules that match an address by more bits."""
    lengths = matches.astype(str).str.findall(r"ip_(?:src|dst)=[\d.]+(?:/(\d+))?")
    return sum(any(int(length or 32) > bits for length in of_rule) for of_rule in lengths)


def are_ipv4(records: FlowRecords) -> Bools:
    """Return whether each record is of IPv4, (R,)."""
    is_ipv4: Bools = (records.source_high == -HALF) & (records.source_low >> 32 == (MAPPED_LOW - HALF) >> 32)
    return is_ipv4


def write_headers(flows: FlowRecords) -> list[str]:
    """Return the header of each flow in text."""
    headers = []
    columns = (getattr(flows, name).tolist() for name in FLOW_KEY)
    for source_high, source_low, target_high, target_low, protocol, source_port, target_port in zip(
        *columns, strict=True
    ):
        source, target = address_text(source_high, source_low), address_text(target_high, target_low)
        words = [f"ip_src={source}", f"ip_dst={target}"]
        words += [f"ip_proto={protocol}"] if protocol != UNKNOWN else []
        if protocol in WITH_PORTS and UNKNOWN not in (source_port, target_port):
            words += [f"tp_src={source_port}", f"tp_dst={target_port}"]
        headers.append(" ".join(words))
    return headers
