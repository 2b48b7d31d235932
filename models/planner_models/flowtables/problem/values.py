"""Values of header fields: kinds of fields, and their numbers as texts with masks and ranges."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from planner.contract.tables import SHOWN_ROWS
from planner.errors import did_you_mean
from planner.io.number_texts import long_number

Cube = tuple[int, int]
"""Value and mask as whole numbers; the value is 0 outside of the mask."""
PROTOCOLS: Final = {"tcp": 6, "udp": 17, "icmp": 1, "sctp": 132}
IPV4: Final = 0x0800
ARP: Final = 0x0806
RARP: Final = 0x8035
IPV6: Final = 0x86DD
PACKET: Final = "packet"
ALWAYS: Final = "always"
REGISTER: Final = "register"
HEXADECIMAL: Final = (
    "eth_type", "vlan_tci", "metadata", "tun_id", "ct_state", "ct_mark", "ct_label", "pkt_mark", "ipv6_label",
    "tcp_flags", "recirc_id", "dp_hash",
)  # fmt: skip
"""Fields that are shown as hexadecimal numbers, whatever their size."""


class BadMatch(ValueError):
    """A match that has no meaning; the message is its rule, without the place.

    near  a name, and valid ones: the nearest is searched only where the message is shown
    """

    def __init__(self, rule: str, *, near: tuple[str, Iterable[str]] | None = None) -> None:
        super().__init__(rule)
        self.near = near

    def __str__(self) -> str:
        return super().__str__() + ("" if self.near is None else did_you_mean(*self.near))


def describe_first(faults: list[str], where: str, error: BadMatch) -> None:
    """Add a fault to those of a table; only the first ones, which are shown, have their texts."""
    faults.append(f"{where}{error}" if len(faults) < SHOWN_ROWS else "")


def require_short_numbers(text: str) -> None:
    """Raise BadMatch for a text with a number of thousands of digits."""
    if (fault := long_number(text)) is not None:
        raise BadMatch(fault)


class Kind(NamedTuple):
    """Packets of some types of Ethernet: value and mask of their headers, and the match of all entries."""

    value: int
    mask: int
    always: int


@dataclass(frozen=True)
class Field:
    """One header field and its place: `offset` bits after the first bit of word `word`.

    role  `packet`; `always`, which every entry matches; or `register`, which is no part of a packet
    """

    name: str
    bits: int
    stage: int
    prefix: bool
    word: int
    offset: int
    role: str = PACKET


def is_prefix(mask: int, bits: int) -> bool:
    """Return whether a mask of a field has all its ones before its zeros."""
    inverse = mask ^ ((1 << bits) - 1)
    return inverse & (inverse + 1) == 0


def parse_value(field: Field, text: str) -> list[Cube]:
    """Return the cubes of a value, a value with a mask or prefix length, or a range, within the field.

    raises  BadMatch with the rule that the text violates
    """
    full = (1 << field.bits) - 1
    low, colon, high = text.partition(":")
    if colon and field.bits not in (48, 128):
        first, last = parse_number(field, low), parse_number(field, high)
        if last < first:
            raise BadMatch(f"range {text} of {field.name} ends before it starts")
        return split_range(first, last, field.bits)
    value, slash, mask_text = text.partition("/")
    number = parse_number(field, value)
    if not slash:
        return [(number, full)]
    if mask_text.isdecimal():
        length = int(mask_text)
        if length > field.bits:
            raise BadMatch(f"prefix length {length} of {field.name} must be at most {field.bits}")
        mask = full ^ (full >> length)
    else:
        mask = parse_number(field, mask_text)
    return [(number & mask, mask)]


def parse_number(field: Field, text: str) -> int:
    """Return a value of a field: a number, hexadecimal, or an address in the usual notation."""
    try:
        if "." in text and field.bits == 32:
            number = int(ipaddress.IPv4Address(text))
        elif ":" in text and field.bits == 128:
            number = int(ipaddress.IPv6Address(text))
        elif ":" in text and field.bits == 48:
            octets = [int(octet, 16) for octet in text.split(":")]
            if len(octets) != 6 or max(octets) > 255:
                raise ValueError
            number = int.from_bytes(bytes(octets), "big")
        else:
            number = int(text, 0)
    except ValueError:
        raise BadMatch(f"'{text}' is no value of {field.name}") from None
    if not 0 <= number < 1 << field.bits:
        raise BadMatch(f"{text} does not fit into the {field.bits} bits of {field.name}")
    return number


def split_range(first: int, last: int, bits: int) -> list[Cube]:
    """Return the fewest prefixes that cover the values from `first` to `last`."""
    full, cubes = (1 << bits) - 1, []
    while first <= last:
        size = first & -first if first else 1 << bits
        while first + size - 1 > last:
            size >>= 1
        cubes.append((first, full ^ (size - 1)))
        first += size
    return cubes


def format_value(field: Field, value: int, mask: int) -> str:
    """Return a value of a field with its mask."""
    shown = _format_number(field, value)
    return shown if mask == (1 << field.bits) - 1 else f"{shown}/{format_mask(field, mask)}"


def _format_number(field: Field, value: int) -> str:
    if field.name in HEXADECIMAL or re.fullmatch(r"reg\d+", field.name):
        return hex(value)
    if field.bits == 32:
        return str(ipaddress.IPv4Address(value))
    if field.bits == 128:
        return str(ipaddress.IPv6Address(value))
    if field.bits == 48:
        return ":".join(f"{octet:02x}" for octet in value.to_bytes(6, "big"))
    return str(value)


def format_mask(field: Field, mask: int) -> str:
    return str(mask.bit_count()) if is_prefix(mask, field.bits) else hex(mask)
