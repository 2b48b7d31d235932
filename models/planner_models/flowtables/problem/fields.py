"""Header fields packed into words of 64 bits, and matches in text: prefixes, masks and ranges of ports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import product
from math import prod
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner_models.flowtables.problem.openflow_fields import FIELDS, name_field
from planner_models.flowtables.problem.values import (
    ALWAYS,
    ARP,
    IPV4,
    IPV6,
    PACKET,
    PROTOCOLS,
    RARP,
    REGISTER,
    BadMatch,
    Cube,
    Field,
    Kind,
    format_mask,
    format_value,
    is_prefix,
    parse_value,
    require_short_numbers,
)

Words = NDArray[np.uint64]

WORD: Final = 64
STAGES: Final = ("metadata", "l2", "l3", "l4")
WITH_PORTS: Final = {6: "tcp", 17: "udp", 132: "sctp"}
ROLES: Final = (PACKET, ALWAYS, REGISTER)
FIVE_TUPLE: Final = (
    ("ip_src", 32, "l3", True, PACKET),
    ("ip_dst", 32, "l3", True, PACKET),
    ("ip_proto", 8, "l3", False, PACKET),
    ("tp_src", 16, "l4", True, PACKET),
    ("tp_dst", 16, "l4", True, PACKET),
)
ADDRESSES: Final = ("ip_src", "ip_dst", "ip_proto")
PORTS: Final = ("tp_src", "tp_dst")


MOST_CUBES: Final = 10_000
"""Entries of one rule."""


class Layout:
    """Header fields in words of 64 bits; a field of up to 64 bits lies in one word.

    fields  name, bits, stage, whether rules match it by prefixes, and role, in the order of the table
            `fields`; registers have words of their own
    """

    def __init__(
        self, fields: Iterable[tuple[str, int, str, bool] | tuple[str, int, str, bool, str]]
    ) -> None:
        self.fields: list[Field] = []
        word, offset, before = 0, 0, PACKET
        for name, bits, stage, prefix, *roles in fields:
            role = roles[0] if roles else PACKET
            is_new = offset and (offset + bits > WORD or (role == REGISTER != before))
            if is_new:
                word, offset = word + 1, 0
            self.fields.append(Field(name, bits, STAGES.index(stage), prefix, word, offset, role))
            before = role
            word, offset = word + (offset + bits) // WORD, (offset + bits) % WORD
        self.words = max(word + (offset > 0), 1)
        self._cubes: dict[str, list[tuple[str, list[Cube]]]] = {}

    @cached_property
    def by_name(self) -> dict[str, Field]:
        """The fields by their names."""
        return {field.name: field for field in self.fields}

    @cached_property
    def shift(self) -> dict[str, int]:
        """The number of bits below each field in a whole header."""
        return {
            field.name: (self.words - field.word) * WORD - field.offset - field.bits for field in self.fields
        }

    def full_mask(self, names: Iterable[str]) -> int:
        """Return the mask of all bits of some fields."""
        return sum(((1 << self.by_name[name].bits) - 1) << self.shift[name] for name in names)

    def to_words(self, numbers: Sequence[int]) -> Words:
        """Return whole headers as words, shape (n, words)."""
        data = b"".join(number.to_bytes(8 * self.words, "big") for number in numbers)
        return np.frombuffer(data, dtype=">u8").reshape(len(numbers), self.words).astype(np.uint64)

    def to_numbers(self, words: Words) -> list[int]:
        """Return headers in words, (n, words), as whole numbers."""
        size = 8 * self.words
        data = np.ascontiguousarray(words).astype(">u8").tobytes()
        return [int.from_bytes(data[start : start + size], "big") for start in range(0, len(data), size)]

    # --- parsing --------------------------------------------------------------------------

    def parse(self, text: str) -> list[Cube]:
        """Return the cubes that a match covers together, in whole headers; ranges become prefixes.

        raises  BadMatch with the rule that the text violates
        """
        require_short_numbers(text)
        parts: dict[str, list[Cube]] = {}
        origin: dict[str, str] = {}  # part of the text that each field is from
        for token in text.replace(",", " ").split():
            if token not in self._cubes:
                self._cubes[token] = self._parse_token(token)
            for name, cubes in self._cubes[token]:
                if name in parts and parts[name] != cubes:
                    raise BadMatch(f"'{origin[name]}' and '{token}' have different values of {name}")
                parts[name], origin[name] = cubes, token
        return _combine(list(parts.values()))

    def drop_unused(self, text: str) -> tuple[str, list[str]]:
        """Return a header without fields of OpenFlow that the layout does not have, and their names.

        No rule matches them, so that they change no action; other names stay, and are refused when parsed.
        """
        if all(token.partition("=")[0] in self.by_name or "=" not in token for token in text.split()):
            return text, []

        used, dropped = [], []
        for token in text.replace(",", " ").split():
            name = token.partition("=")[0]
            is_port = re.fullmatch(r"(tcp|udp|sctp)_(src|dst)", name) and "tp_src" in self.by_name
            if name in self.by_name or "=" not in token or is_port or name_field(name) not in FIELDS:
                used.append(token)
            elif name_field(name) in self.by_name:
                used.append(f"{name_field(name)}={token.partition('=')[2]}")
            else:
                dropped.append(name)
        return " ".join(used), dropped

    def parse_header(self, text: str) -> int:
        """Return a header; fields that are not there are 0.

        raises  BadMatch for a mask or a range
        """
        cubes = self.parse(text)
        if len(cubes) > 1:
            raise BadMatch("a header has one value for each field, not a range")
        value, mask = cubes[0]
        for field in self.fields:
            full = (1 << field.bits) - 1
            if (mask >> self.shift[field.name]) & full not in (0, full):
                raise BadMatch(f"a header has one value for each field; {field.name} has a mask")
        return value

    def find_missing_prerequisite(self, value: int, mask: int) -> str:
        """Return the rule that a cube violates where it matches fields that its packets need not have."""
        names = self.by_name
        used = [name for name in names if mask & self.full_mask([name])]
        if "eth_type" in names and any(name in ADDRESSES + PORTS for name in used):
            kind = self.full_mask(["eth_type"])
            if mask & kind != kind:
                return "matches fields of IP, must also match ip or eth_type"
        if "ip_proto" in names and any(name in PORTS for name in used):
            kind = self.full_mask(["ip_proto"])
            number = (value & kind) >> self.shift["ip_proto"]
            if mask & kind != kind or number not in WITH_PORTS:
                return (
                    f"matches a port, must also match a protocol with ports: {', '.join(WITH_PORTS.values())}"
                )
        return ""

    def find_no_prefix(self, mask: int) -> str:
        """Return the rule that a mask violates where a field that is matched by prefixes has another mask."""
        for field in self.fields:
            field_mask = (mask >> self.shift[field.name]) & ((1 << field.bits) - 1)
            if field.prefix and not is_prefix(field_mask, field.bits):
                return f"field {field.name} is matched by prefixes, must have a prefix as its mask"
        return ""

    def clear_absent(self, header: int) -> int:
        """Return a header without values of fields that packets of its `eth_type` and `ip_proto` lack."""
        return header & self.find_present(header)

    def find_present(self, header: int) -> int:
        """Return the mask of the fields that packets of a header's `eth_type` and `ip_proto` have."""
        if "eth_type" not in self.by_name:
            return self.full_mask(self.by_name)
        kind = self._take(header, "eth_type")
        protocol = self._take(header, "ip_proto") if kind in (IPV4, IPV6) else -1
        return self.full_mask(name for name in self.by_name if _has_field(name, kind, protocol))

    @cached_property
    def kinds(self) -> list[Kind]:
        """The types of Ethernet, and the mask of the fields that every entry of their packets matches.

        Fields that packets of a type lack are not matched; the last kind is that of all other packets.
        """
        names = [field.name for field in self.fields if field.role == ALWAYS]
        if "eth_type" not in names:
            return [Kind(0, 0, self.full_mask(names))]
        mask, shift = self.full_mask(["eth_type"]), self.shift["eth_type"]
        kinds = []
        for kind in (IPV4, IPV6, ARP, None):
            always = [name for name in names if _has_field(name, kind or 0, None)]
            kinds.append(Kind((kind or 0) << shift, mask if kind is not None else 0, self.full_mask(always)))
        return kinds

    def always_of(self, header: int) -> int:
        """Return the mask of the fields that every entry of a header's packets matches."""
        return next(kind.always for kind in self.kinds if (header ^ kind.value) & kind.mask == 0)

    def _take(self, header: int, name: str) -> int:
        """Return the value of a field; 0 for one that the layout does not have."""
        field = self.by_name.get(name)
        return 0 if field is None else (header >> self.shift[name]) & ((1 << field.bits) - 1)

    def _parse_token(self, token: str) -> list[tuple[str, list[Cube]]]:
        """Return the cubes of one token by field."""
        name, equals, value = token.partition("=")
        if not equals:
            return self._parse_keyword(name)
        for protocol, number in PROTOCOLS.items():
            if name in (f"{protocol}_src", f"{protocol}_dst") and name not in self.by_name:
                port = "tp" + name[len(protocol) :]
                return [*self._parse_keyword(protocol, number), *self._parse_token(f"{port}={value}")]
        if name not in self.by_name:
            raise BadMatch(f"there is no field '{name}'", near=(name, self.by_name))
        field, shift = self.by_name[name], self.shift[name]
        return [(name, [(v << shift, m << shift) for v, m in parse_value(field, value)])]

    def _parse_keyword(self, word: str, number: int | None = None) -> list[tuple[str, list[Cube]]]:
        """Return the cubes of `ip`, `arp` or a protocol."""
        number = PROTOCOLS.get(word) if number is None else number
        if word in self.by_name and number is None:
            raise BadMatch(f"'{word}' has no value: write {word}=VALUE")
        if word not in ("ip", "arp") and number is None:
            names = [*self.by_name, *PROTOCOLS, "ip", "arp"]
            raise BadMatch(f"'{word}' is no field with a value, and no protocol", near=(word, names))
        cubes = []
        if "eth_type" in self.by_name:
            cubes += self._parse_token(f"eth_type={ARP if word == 'arp' else IPV4}")
        elif word == "arp":
            raise BadMatch("'arp' needs a field eth_type")
        if number is not None:
            if "ip_proto" not in self.by_name:
                raise BadMatch(f"'{word}' needs a field ip_proto")
            cubes += self._parse_token(f"ip_proto={number}")
        return cubes

    # --- formatting -----------------------------------------------------------------------

    def format_match(self, value: int, mask: int) -> str:
        """Return a cube as text that `parse` reads."""
        return " ".join(
            f"{field.name}={format_value(field, own_value, own_mask)}"
            for field, own_value, own_mask in self._split(value, mask)
        )

    def format_mask(self, mask: int) -> str:
        """Return a mask as text: `ip_src/24 tp_dst`, where a field without a length is matched in full."""
        return " ".join(
            field.name + ("" if own_mask == (1 << field.bits) - 1 else f"/{format_mask(field, own_mask)}")
            for field, _, own_mask in self._split(0, mask)
        )

    def _split(self, value: int, mask: int) -> Iterable[tuple[Field, int, int]]:
        """Yield each field that a mask has bits of, with its own value and mask."""
        for field in self.fields:
            full = (1 << field.bits) - 1
            own_mask = (mask >> self.shift[field.name]) & full
            if own_mask:
                yield field, (value >> self.shift[field.name]) & full, own_mask


def _combine(parts: list[list[Cube]]) -> list[Cube]:
    """Return the cubes that lie in one of the cubes of each field.

    raises  BadMatch where they are too many
    """
    if not parts:
        return [(0, 0)]
    if len(parts) == 1:
        return parts[0]
    if all(len(cubes) == 1 for cubes in parts):
        value, mask = 0, 0
        for cubes in parts:
            value, mask = value | cubes[0][0], mask | cubes[0][1]
        return [(value, mask)]
    count = prod(map(len, parts))
    if count > MOST_CUBES:  # before they are made: a few ranges have more than memory holds
        raise BadMatch(f"its ranges make {count:,} entries, must be at most {MOST_CUBES:,}")
    return [
        (sum(cube[0] for cube in combination), sum(cube[1] for cube in combination))
        for combination in product(*parts)
    ]


def make_layout(fields: pd.DataFrame | None, *, with_registers: bool = False) -> Layout:
    """Return the layout of the table `fields`; None: of the five-tuple.

    with_registers  whether registers follow after the fields of packets; else they are left out
    """
    if fields is None:
        return Layout(FIVE_TUPLE)
    roles = fields["role"].tolist() if "role" in fields else [PACKET] * len(fields)
    columns = (fields[name].tolist() for name in ("field", "bits", "stage", "prefix"))
    rows = [
        (str(name), int(bits), str(stage), bool(prefix), str(role))
        for name, bits, stage, prefix, role in zip(*columns, roles, strict=True)
    ]
    packet = [row for row in rows if row[4] != REGISTER]
    return Layout([*packet, *(row for row in rows if row[4] == REGISTER and with_registers)])


def _has_field(name: str, kind: int, protocol: int | None) -> bool:
    """Return whether packets of a type of Ethernet and a protocol of IP have a field; None: of any."""
    if name in ("ip_src", "ip_dst", "nw_frag"):
        return kind == IPV4
    if name in ("ipv6_src", "ipv6_dst", "ipv6_label", "ipv6_frag"):
        return kind == IPV6
    if name in ("ip_proto", "nw_tos", "nw_ttl"):
        return kind in (IPV4, IPV6)
    if name.startswith("arp_"):
        return kind in (ARP, RARP)
    if protocol is None:
        return True
    if name.startswith("icmp_"):
        return protocol in (1, 58)
    if name.startswith("nd_"):
        return protocol == 58
    if name == "tcp_flags":
        return protocol == 6
    return name not in PORTS or protocol in WITH_PORTS


def extend_five_tuple(name: str, bits: int, stage: str) -> pd.DataFrame:
    """Return the table `fields` of one field, matched in full, before those of the five-tuple."""
    columns = ["field", "bits", "stage", "prefix", "role"]
    return pd.DataFrame([(name, bits, stage, False, PACKET), *FIVE_TUPLE], columns=columns).astype(
        {"prefix": int}
    )
