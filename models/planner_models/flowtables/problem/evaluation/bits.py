"""Bits of fields in headers as whole numbers: all fields of OpenFlow, and those of a cache."""

from __future__ import annotations

import re
from typing import Final

from planner.contract.tables import abbreviate
from planner_models.flowtables.problem.fields import Layout
from planner_models.flowtables.problem.openflow_fields import FIELDS, read_subfields
from planner_models.flowtables.problem.values import ALWAYS, PACKET, REGISTER, BadMatch

NUMBER: Final = re.compile(r"0x[0-9a-fA-F]+|[0-9]+")
MAX_DIGITS: Final = 40
FieldBits = tuple[tuple[str, int, int], ...]
"""Field, lowest bit and number of bits, the highest bits first."""
EVALUATED: Final[dict[str, tuple[int, str, str]]] = {
    "recirc_id": (32, "metadata", ALWAYS),
    "dp_hash": (32, "metadata", PACKET),
    "conj_id": (32, "metadata", REGISTER),
    **{name: row for name, row in FIELDS.items() if not name.startswith("stack") and row[1] == "metadata"},
    **{name: row for name, row in FIELDS.items() if row[1] == "l2"},
    "mpls_label": (20, "l2", PACKET),
    "mpls_tc": (3, "l2", PACKET),
    "mpls_bos": (1, "l2", PACKET),
    "mpls_ttl": (8, "l2", PACKET),
    "mpls_second": (32, "l2", PACKET),
    "mpls_third": (32, "l2", PACKET),
    **{name: row for name, row in FIELDS.items() if row[1] in ("l3", "l4")},
}
"""Bits, stage and role of each field of an evaluation: those of packets, and what a datapath adds to them."""
LAYOUT: Final = Layout((name, bits, stage, False, role) for name, (bits, stage, role) in EVALUATED.items())
REGISTERS: Final = LAYOUT.full_mask(name for name, row in EVALUATED.items() if row[2] == REGISTER)
TRACKED: Final = LAYOUT.full_mask(("ct_state", "ct_zone", "ct_mark", "ct_label"))


def read_whole(text: str, what: str, limit: int) -> int:
    """Return a number from 0 to a limit, decimal or hexadecimal; raises BadMatch for another text."""
    is_number = NUMBER.fullmatch(text) is not None and len(text) <= MAX_DIGITS
    number = int(text, 0) if is_number and not re.fullmatch("0[0-9]+", text) else -1
    if not 0 <= number <= limit:
        raise BadMatch(f"{what} is '{abbreviate(text)}', must be a number from 0 to {limit}")
    return number


def read_bits(text: str) -> FieldBits:
    """Return the bits that a name such as `NXM_NX_REG0[4..7]` means.

    raises  BadMatch for a name or bits that are not there
    """
    return tuple((subfield.name, subfield.low, subfield.bits) for subfield in read_subfields(text))


def mask_of(bits: FieldBits) -> int:
    """Return the mask of some bits in headers."""
    return sum(((1 << size) - 1) << LAYOUT.shift[name] + low for name, low, size in bits)


def get_bits(header: int, bits: FieldBits) -> int:
    """Return the number in some bits of a header."""
    number = 0
    for name, low, size in bits:
        number = number << size | header >> LAYOUT.shift[name] + low & ((1 << size) - 1)
    return number


def put_bits(header: int, bits: FieldBits, number: int) -> int:
    """Return a header with a number written into some bits."""
    for name, low, size in reversed(bits):
        shift, full = LAYOUT.shift[name] + low, (1 << size) - 1
        header = header & ~(full << shift) | (number & full) << shift
        number >>= size
    return header


def get_field(header: int, name: str) -> int:
    """Return the value of a field in a header."""
    return header >> LAYOUT.shift[name] & ((1 << EVALUATED[name][0]) - 1)


def put_field(header: int, name: str, number: int) -> int:
    """Return a header with another value of a field."""
    return header & ~field_mask(name) | number << LAYOUT.shift[name]


def field_mask(name: str) -> int:
    """Return the mask of a field in headers."""
    return ((1 << EVALUATED[name][0]) - 1) << LAYOUT.shift[name]
