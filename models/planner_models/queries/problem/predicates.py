"""Predicates of queries: read from text, evaluated on headers, and compiled to lists of cubes.

A predicate has atoms as a match of OpenFlow does, `tp_src=80` or `ip_src=10.0.0.0/8`, and Frenetic's names of
fields, `srcport=80`; also `!=`, ranges, and octets of addresses that are any, as in `90.*.70.60`. `&`, `|`,
`!` and brackets join them; blanks and commas mean `&`.

A switch matches in the order of priorities, so that a predicate is a list of cubes, of which the first that
holds a packet says whether it satisfies the predicate (Foster et al. 2013, II.A). `compile_predicate` makes
that list; `Predicate.holds` evaluates the text itself, which checks of plans do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final, NamedTuple

from planner_models.flowtables.problem.fields import Layout
from planner_models.flowtables.problem.values import BadMatch, Cube

MOST_ENTRIES: Final = 1_024
"""Entries of one predicate."""
MOST_DEPTH: Final = 50
ALIASES: Final = {
    "srcip": "ip_src", "dstip": "ip_dst", "nw_src": "ip_src", "nw_dst": "ip_dst", "srcport": "tp_src",
    "dstport": "tp_dst", "protocol": "ip_proto", "nw_proto": "ip_proto", "inport": "in_port",
    "srcmac": "eth_src", "dstmac": "eth_dst", "dl_src": "eth_src", "dl_dst": "eth_dst", "vlan": "vlan_vid",
}  # fmt: skip
"""Names of fields in Frenetic and in OpenFlow 1.0."""
_TOKEN: Final = re.compile(
    r"\s*(?P<token>\(|\)|&&?|\|\|?|,|!(?!=)|~|[^\s()&|,!~=]+\s*(?:!=|==?)\s*[^\s()&|,!~=]+|[^\s()&|,!~=]+)"
)
FIELD_NAME: Final = re.compile(r"(?<!\w)[A-Za-z_]\w*+(?=\s*=)")
WORDS: Final = ("and", "or", "not")
_ANY_OCTETS: Final = re.compile(r"(?:\d+|\*)(?:\.(?:\d+|\*)){3}")


class Entry(NamedTuple):
    """A cube of headers, and whether they satisfy the predicate."""

    value: int
    mask: int
    holds: bool


Entries = list[Entry]


@dataclass(frozen=True)
class Atom:
    """The headers in one of several cubes."""

    cubes: tuple[Cube, ...]

    def holds(self, header: int) -> bool:
        """Return whether a header satisfies the predicate."""
        return any((header ^ value) & mask == 0 for value, mask in self.cubes)


@dataclass(frozen=True)
class Not:
    """The headers that do not satisfy another predicate."""

    part: Predicate

    def holds(self, header: int) -> bool:
        """Return whether a header satisfies the predicate."""
        return not self.part.holds(header)


@dataclass(frozen=True)
class Joined:
    """The headers that satisfy all of some predicates, or any of them."""

    parts: tuple[Predicate, ...]
    is_all: bool

    def holds(self, header: int) -> bool:
        """Return whether a header satisfies the predicate."""
        results = (operand.holds(header) for operand in self.parts)
        return all(results) if self.is_all else any(results)


Predicate = Atom | Not | Joined


# --- reading ------------------------------------------------------------------------------


def read_predicate(text: str, layout: Layout) -> Predicate:
    """Return the predicate of a text; of a blank one, that of all headers.

    raises  BadMatch with the rule that the text violates
    """
    tokens = _split(text)
    if not tokens:
        return Atom(((0, 0),))
    reader = _Reader(tokens, layout)
    predicate = reader.read_any(0)
    if reader.position < len(tokens):
        raise BadMatch(f"'{tokens[reader.position]}' is not expected there")
    return predicate


def _split(text: str) -> list[str]:
    tokens, position = [], 0
    while position < len(text.rstrip()):
        match = _TOKEN.match(text, position)
        if match is None:
            raise BadMatch(f"'{text[position:].strip()}' is no field with a value, and no operator")
        token = match["token"]
        tokens.append(token.lower() if token.lower() in WORDS else token)
        position = match.end()
    return tokens


class _Reader:
    """A position in the tokens of a predicate."""

    def __init__(self, tokens: Sequence[str], layout: Layout) -> None:
        self.tokens, self.layout, self.position = tokens, layout, 0

    def _next(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def read_any(self, depth: int) -> Predicate:
        """Return the predicate up to a closing bracket, or the end."""
        parts = [self._read_all(depth)]
        while self._next() in ("|", "||", "or"):
            self.position += 1
            parts.append(self._read_all(depth))
        return parts[0] if len(parts) == 1 else Joined(tuple(parts), is_all=False)

    def _read_all(self, depth: int) -> Predicate:
        parts = [self._read_one(depth)]
        while self._next() not in ("|", "||", "or", ")", ""):
            if self._next() in ("&", "&&", "and", ","):
                self.position += 1
            parts.append(self._read_one(depth))
        return parts[0] if len(parts) == 1 else Joined(tuple(parts), is_all=True)

    def _read_one(self, depth: int) -> Predicate:
        if depth > MOST_DEPTH:
            raise BadMatch(f"has more than {MOST_DEPTH} brackets and negations within each other")
        token = self._next()
        self.position += 1
        if token == "(":
            inner = self.read_any(depth + 1)
            if self._next() != ")":
                raise BadMatch("a bracket is not closed")
            self.position += 1
            return inner
        if token in ("!", "~", "not"):
            return Not(self._read_one(depth + 1))
        if token in ("", "&", "&&", "and", "|", "||", "or", ",", ")"):
            raise BadMatch(f"'{token}' has nothing before it" if token else "ends where a field is expected")
        return read_atom(token, self.layout)


def read_atom(token: str, layout: Layout) -> Predicate:
    """Return the predicate of one field and its value, or of a protocol; raises BadMatch."""
    name, operator, value = (
        (piece.strip() for piece in re.split(r"(!=|==?)", token, maxsplit=1))
        if ("=" in token)
        else (token, "", "")
    )
    name = find_field(name, layout)
    if not operator:
        return Atom(tuple(layout.parse(name)))
    if _ANY_OCTETS.fullmatch(value) and "*" in value:
        octets = value.split(".")
        address = ".".join("0" if octet == "*" else octet for octet in octets)
        value = f"{address}/0x" + "".join("00" if octet == "*" else "ff" for octet in octets)
    atom = Atom(tuple(layout.parse(f"{name}={value}")))
    return Not(atom) if operator == "!=" else atom


def find_field(name: str, layout: Layout) -> str:
    """Return our name of a field, which may have Frenetic's or that of OpenFlow 1.0, in any case."""
    if name in layout.by_name:
        return name
    lower = name.lower()
    return ALIASES.get(lower, lower if lower in layout.by_name else name)


def rename_fields(text: str, layout: Layout) -> str:
    """Return a match or a header with our names of its fields."""
    return FIELD_NAME.sub(lambda name: find_field(name[0], layout), text)


# --- compiling ----------------------------------------------------------------------------


def compile_predicate(predicate: Predicate) -> Entries:
    """Return the entries of a predicate, the first of which that holds a header decides; the last holds all.

    raises  BadMatch for more than 1,024 entries
    """
    return _simplify(_compile(predicate))


def _compile(predicate: Predicate) -> Entries:
    if isinstance(predicate, Atom):
        entries = [Entry(value, mask, True) for value, mask in predicate.cubes]
        return entries if entries[-1].mask == 0 else [*entries, Entry(0, 0, False)]
    if isinstance(predicate, Not):
        return _flip(_compile(predicate.part))
    parts = [_compile(entries_of) for entries_of in predicate.parts]
    if not predicate.is_all:  # De Morgan
        parts = [_flip(entries_of) for entries_of in parts]
    parts.sort(
        key=lambda entries_of: (entries_of[-1].holds, len(entries_of))
    )  # few headers first: no entry where they fail
    while len(parts) > 1:  # neighbours first: each entry is compared with others in few rounds
        pairs = zip_longest(parts[::2], parts[1::2])
        parts = [first if second is None else _simplify(_join(first, second)) for first, second in pairs]
    return parts[0] if predicate.is_all else _flip(parts[0])


def _flip(entries: Entries) -> Entries:
    return [Entry(value, mask, not holds) for value, mask, holds in entries]


def _join(first: Entries, second: Entries) -> Entries:
    """Return the entries of headers that satisfy both predicates."""
    joined: dict[Cube, Entry] = {}
    for value, mask, holds in first:
        if not holds:
            joined.setdefault((value, mask), Entry(value, mask, False))
            continue
        for other_value, other_mask, other in second:
            if (value ^ other_value) & mask & other_mask == 0:
                cube = (value | other_value, mask | other_mask)
                joined.setdefault(cube, Entry(*cube, other))
        if len(joined) > MOST_ENTRIES:
            raise BadMatch(f"needs more than {MOST_ENTRIES:,} entries")
    return list(joined.values())


def _simplify(entries: Entries) -> Entries:
    """Return the entries without those that no header meets first, or that decide as later ones would."""
    reached: Entries = []
    values: dict[int, set[int]] = {}  # of the entries so far, by mask
    for entry in entries:
        value, mask, _ = entry
        if not any(other & ~mask == 0 and value & other in seen for other, seen in values.items()):
            reached.append(entry)
            values.setdefault(mask, set()).add(value)
    needed: Entries = []  # from the last one on
    for entry in reversed(reached):
        if not _is_redundant(entry, needed):
            needed.append(entry)
    return needed[::-1]


def _is_redundant(entry: Entry, later: Entries) -> bool:
    """Return whether later entries, the last one first, decide as an entry does on all its headers."""
    value, mask, holds = entry
    for other_value, other_mask, other_holds in reversed(later):
        if (value ^ other_value) & mask & other_mask == 0:
            if other_holds != holds:
                return False
            if other_mask & ~mask == 0:
                return True
    return False


# --- what a switch can match --------------------------------------------------------------


def approximate(entries: Entries, find_mask: Callable[[int], int]) -> Entries:
    """Return the entries of the packets that a switch must look at: those of a predicate, or a superset.

    The headers outside of each cube that holds are as before where the switch can match all cubes.

    find_mask  mask of a cube -> the bits of it that the switch can match
    """
    if all(find_mask(mask) == mask for _, mask, _ in entries):
        return entries
    wide = [Entry(value & find_mask(mask), find_mask(mask), True) for value, mask, holds in entries if holds]
    return _simplify([*wide, Entry(0, 0, False)] if all(entry.mask for entry in wide) else wide)
