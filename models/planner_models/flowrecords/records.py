"""One table of flow records, whatever exported them."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints

UNKNOWN: Final = -1
"""Value of an integer field that an export does not have."""
FLOW_KEY: Final = (
    "source_high", "source_low", "target_high", "target_low", "protocol", "source_port", "target_port",
)  # fmt: skip
"""Fields that the records of one flow have in common."""
HALF: Final = 1 << 63
"""Difference between a half of an address and the signed integer that stands for it."""
MAPPED_LOW: Final = 0xFFFF << 32
"""Prefix of IPv4 addresses among IPv6 addresses, in the lower half: ::ffff:0:0/96."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FlowRecords:
    """Flow records as columns of R rows.

    An address is a 128-bit integer in two halves, each less 2^63, so that signed integers have the order of
    addresses; IPv4 addresses are those of ::ffff:0:0/96.

    start_s, end_s    time since 1970 in UTC, s
    source_high, source_low, target_high, target_low  halves of the addresses
    protocol, source_port, target_port  numbers; UNKNOWN where the export has none
    packets, octets   counted by the exporter, before any scaling
    sampling          one packet of so many is counted; UNKNOWN where the export does not say
    exporter          row of `exporters`; UNKNOWN where the export does not say
    input_interface, output_interface  numbers at the exporter, or UNKNOWN
    direction         0 where counted as it entered the exporter, 1 as it left, or UNKNOWN
    exporters         names of the exporters
    """

    start_s: Floats
    end_s: Floats
    source_high: Ints
    source_low: Ints
    target_high: Ints
    target_low: Ints
    protocol: Ints
    source_port: Ints
    target_port: Ints
    packets: Ints
    octets: Ints
    sampling: Ints
    exporter: Ints
    input_interface: Ints
    output_interface: Ints
    direction: Ints
    exporters: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.start_s)

    def select(self, rows: Bools | Ints) -> FlowRecords:
        """Return the records of some rows."""
        return replace(self, **{name: getattr(self, name)[rows] for name in COLUMNS})

    def flow_keys(self) -> pd.DataFrame:
        """Return the fields of `FLOW_KEY` of each record."""
        return pd.DataFrame({name: getattr(self, name) for name in FLOW_KEY})


COLUMNS: Final = tuple(field.name for field in fields(FlowRecords) if field.name != "exporters")


def join_records(shares: Sequence[FlowRecords]) -> FlowRecords:
    """Return the records of several tables in one, with exporters by name."""
    names = sorted({name for share in shares for name in share.exporters})
    index = {name: row for row, name in enumerate(names)}
    exporter = []
    for share in shares:
        rows = np.array([*(index[name] for name in share.exporters), UNKNOWN], dtype=np.int64)
        exporter.append(rows[share.exporter])
    columns = {
        name: np.concatenate([getattr(share, name) for share in shares])
        for name in COLUMNS
        if name != "exporter"
    }
    return FlowRecords(**columns, exporter=np.concatenate(exporter), exporters=tuple(names))


def address_text(high: int, low: int) -> str:
    """Return an address in its usual form."""
    value = ((int(high) + HALF) << 64) | (int(low) + HALF)
    address = ipaddress.IPv6Address(value)
    return str(address.ipv4_mapped or address)


def without_hosts(records: FlowRecords) -> FlowRecords:
    """Return records whose addresses are the first of their network: a /24 of IPv4, a /48 of IPv6."""
    columns = {}
    for end in ("source", "target"):
        high, low = getattr(records, f"{end}_high"), getattr(records, f"{end}_low")
        is_ipv4 = (high == -HALF) & (low >> 32 == (MAPPED_LOW - HALF) >> 32)
        columns[f"{end}_high"] = np.where(is_ipv4, high, high & ~np.int64(0xFFFF))
        columns[f"{end}_low"] = np.where(is_ipv4, low & ~np.int64(0xFF), -HALF)
    return replace(records, **columns)


def address_halves(value: int) -> tuple[int, int]:
    """Return the two signed halves of a 128-bit address."""
    return (value >> 64) - HALF, (value & (2 * HALF - 1)) - HALF
