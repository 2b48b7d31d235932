"""Dialects of exports as data: the names under which each tool writes the fields of a flow record.

Sources: nfdump's manual (formats csv and json), the field names of goflow2's JSON output, and the titles of
pmacct's print plugin.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from planner.errors import InputError, did_you_mean

Form = Literal["csv", "json"]
REQUIRED: Final = ("start", "source", "target", "bytes")
"""Fields that each record has; without `packets` one is counted, and without an end it is an instant."""
FIELDS: Final = (
    "start", "end", "duration", "received", "source", "target", "protocol", "source_port", "target_port",
    "packets", "bytes", "sampling", "exporter", "input", "output", "direction",
)  # fmt: skip
TIMES: Final = ("start", "end", "received")


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """Names of the fields in the export of one tool.

    names  (field -> names under which it is written, the first of which is looked for first)
    per_s  units of a second of times that are numbers
    """

    name: str
    form: Form
    names: Mapping[str, tuple[str, ...]]
    per_s: int = 1

    def recognizes(self, keys: Iterable[str]) -> bool:
        """Return whether columns or keys have every required field."""
        names = set(keys)
        return all(names.intersection(self.names[field]) for field in REQUIRED)

    def fields_of(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the field of each column or key, "" for those that are none."""
        field_of = {name: field for field, names in self.names.items() for name in names}
        return {key: field_of.get(key, "") for key in keys}


def split_header(line: str) -> tuple[list[str], str]:
    """Return the columns of a header, and the delimiter that it has most of."""
    delimiter = max(",;\t|", key=line.count)
    return [cell.strip().strip('"') for cell in line.split(delimiter)], delimiter


NFDUMP_OLD: Final = Dialect(
    name="nfdump CSV before 1.7.5",
    form="csv",
    names={
        "start": ("ts",),
        "end": ("te",),
        "duration": ("td",),
        "source": ("sa",),
        "target": ("da",),
        "protocol": ("pr",),
        "source_port": ("sp",),
        "target_port": ("dp",),
        "packets": ("ipkt",),
        "bytes": ("ibyt",),
        "exporter": ("ra",),
        "input": ("in",),
        "output": ("out",),
        "direction": ("dir",),
    },
)
NFDUMP_NEW: Final = Dialect(
    name="nfdump CSV since 1.7.5",
    form="csv",
    names={
        "start": ("firstSeen",),
        "end": ("lastSeen",),
        "duration": ("duration",),
        "source": ("srcAddr",),
        "target": ("dstAddr",),
        "protocol": ("proto",),
        "source_port": ("srcPort",),
        "target_port": ("dstPort",),
        "packets": ("packets",),
        "bytes": ("bytes",),
        "exporter": ("router", "routerIP", "exporter"),
        "input": ("input", "inIf"),
        "output": ("output", "outIf"),
        "direction": ("flowDir", "dir"),
    },
)
NFDUMP_JSON: Final = Dialect(
    name="nfdump JSON",
    form="json",
    names={
        "start": ("t_first", "first"),
        "end": ("t_last", "last"),
        "received": ("received", "t_received"),
        "source": ("src4_addr", "src6_addr"),
        "target": ("dst4_addr", "dst6_addr"),
        "protocol": ("proto",),
        "source_port": ("src_port",),
        "target_port": ("dst_port",),
        "packets": ("in_packets",),
        "bytes": ("in_bytes",),
        "exporter": ("ip4_router", "ip6_router"),
        "input": ("input_snmp",),
        "output": ("output_snmp",),
        "direction": ("direction",),
    },
    per_s=1000,
)
GOFLOW: Final = Dialect(
    name="goflow2 JSON",
    form="json",
    names={
        "start": ("time_flow_start_ns",),
        "end": ("time_flow_end_ns",),
        "received": ("time_received_ns",),
        "source": ("src_addr",),
        "target": ("dst_addr",),
        "protocol": ("proto",),
        "source_port": ("src_port",),
        "target_port": ("dst_port",),
        "packets": ("packets",),
        "bytes": ("bytes",),
        "sampling": ("sampling_rate",),
        "exporter": ("sampler_address",),
        "input": ("in_if",),
        "output": ("out_if",),
        "direction": ("flow_direction",),
    },
    per_s=10**9,
)
GOFLOW_OLD: Final = Dialect(
    name="goflow JSON with times in seconds",
    form="json",
    names={
        "start": ("TimeFlowStart",),
        "end": ("TimeFlowEnd",),
        "received": ("TimeReceived",),
        "source": ("SrcAddr",),
        "target": ("DstAddr",),
        "protocol": ("Proto",),
        "source_port": ("SrcPort",),
        "target_port": ("DstPort",),
        "packets": ("Packets",),
        "bytes": ("Bytes",),
        "sampling": ("SamplingRate",),
        "exporter": ("SamplerAddress",),
        "input": ("InIf",),
        "output": ("OutIf",),
        "direction": ("FlowDirection",),
    },
)
PMACCT_JSON: Final = Dialect(
    name="pmacct JSON",
    form="json",
    names={
        "start": ("timestamp_start", "stamp_inserted"),
        "end": ("timestamp_end", "stamp_updated"),
        "source": ("ip_src",),
        "target": ("ip_dst",),
        "protocol": ("ip_proto",),
        "source_port": ("port_src",),
        "target_port": ("port_dst",),
        "packets": ("packets",),
        "bytes": ("bytes",),
        "sampling": ("sampling_rate",),
        "exporter": ("peer_ip_src",),
        "input": ("iface_in",),
        "output": ("iface_out",),
    },
)
PMACCT_CSV: Final = Dialect(
    name="pmacct CSV",
    form="csv",
    names={
        "start": ("TIMESTAMP_START",),
        "end": ("TIMESTAMP_END",),
        "source": ("SRC_IP",),
        "target": ("DST_IP",),
        "protocol": ("PROTOCOL",),
        "source_port": ("SRC_PORT",),
        "target_port": ("DST_PORT",),
        "packets": ("PACKETS",),
        "bytes": ("BYTES",),
        "sampling": ("SAMPLING_RATE",),
        "exporter": ("PEER_SRC_IP",),
        "input": ("IN_IFACE",),
        "output": ("OUT_IFACE",),
    },
)
DIALECTS: Final = (NFDUMP_OLD, NFDUMP_NEW, PMACCT_CSV, NFDUMP_JSON, GOFLOW, GOFLOW_OLD, PMACCT_JSON)


def find_dialect(keys: Iterable[str], form: Form) -> Dialect | None:
    """Return the dialect that has its required fields among columns or keys; None where there is none."""
    names = list(keys)
    return next((dialect for dialect in DIALECTS if dialect.form == form and dialect.recognizes(names)), None)


def dialect_of_columns(columns: Mapping[str, str], form: Form, where: str) -> Dialect:
    """Return the dialect that a user describes by the name of each field's column.

    raises  InputError for unknown fields, and for required fields without a column
    """
    faults = [
        f"{where}: {field}: no such field of flow records" + did_you_mean(field, FIELDS)
        for field in columns
        if field not in FIELDS
    ]
    faults += [f"{where}: {field}: is missing; name its column" for field in REQUIRED if field not in columns]
    if faults:
        raise InputError(*faults)
    return Dialect(
        name="columns as given", form=form, names={field: (name,) for field, name in columns.items()}
    )


def describe_unknown(keys: Iterable[str], form: Form) -> str:
    """Return the columns found, and those of each dialect, for a file of none of them."""
    shown = ", ".join(list(keys)[:12]) or "nothing"
    expected = "; ".join(
        f"{dialect.name}: {', '.join(dialect.names[field][0] for field in REQUIRED)}"
        for dialect in DIALECTS
        if dialect.form == form
    )
    noun = "columns" if form == "csv" else "keys"
    return f"has the {noun} {shown[:300]}, which are of no flow records; expected {expected}"
