"""Actions of OpenFlow as operations of an evaluation: those of the table `rules`, and others.

Names are those of `ovs-actions(7)`: connection tracking, groups, conjunctions, rules that packets add, copies
of packets, labels of MPLS, and a stack of values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from planner_models.flowtables.problem.actions import Step, read_steps
from planner_models.flowtables.problem.evaluation.bits import FieldBits, read_bits, read_whole
from planner_models.flowtables.problem.fields import Layout
from planner_models.flowtables.problem.openflow_actions import read_action, split_actions
from planner_models.flowtables.problem.openflow_fields import read_number
from planner_models.flowtables.problem.values import BadMatch

LABELS: Final = {"mpls_label": 20, "mpls_tc": 3, "mpls_ttl": 8}
MPLS: Final = (0x8847, 0x8848)
UNKNOWN: Final = {
    "bundle": "bundles of ports, chosen by a hash",
    "bundle_load": "bundles of ports, chosen by a hash",
    "multipath": "paths chosen by a hash",
    "sample": "samples of packets",
    "encap": "types of packets",
    "decap": "types of packets",
    "dec_nsh_ttl": "network service headers",
    "check_pkt_larger": "sizes of packets",
    "write_actions": "action sets",
    "clear_actions": "action sets",
    "delete_learned": "rules that packets remove",
}
"""Actions that are refused by their row, and what they need."""
LEARNED_LIMITS: Final = (
    "cookie", "idle_timeout", "hard_timeout", "fin_idle_timeout", "fin_hard_timeout", "limit",
)  # fmt: skip


class Clause(NamedTuple):
    """A clause of a conjunction: `conjunction(NUMBER,CLAUSE/CLAUSES)`, with clauses from 0."""

    number: int
    clause: int
    clauses: int


class Track(NamedTuple):
    """Connection tracking.

    text    of the action of the datapath, without the zone
    table   in which the packet goes on after tracking, as another packet; None: nowhere
    zone    number, or bits that have it
    commit  whether the connection is committed
    target  of a translation to one address: field, address, and field and number of the port
    """

    text: str
    table: int | None
    zone: int | FieldBits
    commit: bool
    target: tuple[tuple[str, int], ...]


class ClearTrack(NamedTuple):
    """The end of the state of connection tracking in a packet."""


class Group(NamedTuple):
    """The buckets of a group."""

    number: int


class Clone(NamedTuple):
    """Operations on a copy of the packet."""

    operations: tuple[Operation, ...]


class Push(NamedTuple):
    """Bits put on a stack."""

    source: FieldBits


class Pop(NamedTuple):
    """Bits taken from a stack."""

    target: FieldBits


class PushLabel(NamedTuple):
    """A label of MPLS before the packet."""

    kind: int


class PopLabel(NamedTuple):
    """The first label of MPLS removed; the packet then has a type of Ethernet."""

    kind: int


class DecrementLabel(NamedTuple):
    """The time to live of a label lowered."""


class SetLabel(NamedTuple):
    """A number written into the first label of MPLS."""

    name: str
    value: int


class Learned(NamedTuple):
    """A part of a rule that packets add.

    source  bits of the packet, or a number
    target  bits that the rule matches, or writes; none for an output
    kind    match, load or output
    """

    kind: str
    source: FieldBits | int
    target: FieldBits


class Learn(NamedTuple):
    """A rule that packets add to a table."""

    table: int
    priority: int
    parts: tuple[Learned, ...]


Operation = (
    Step
    | Track
    | ClearTrack
    | Group
    | Clone
    | Push
    | Pop
    | PushLabel
    | PopLabel
    | DecrementLabel
    | SetLabel
    | Learn
)


def read_operations(text: str, layout: Layout) -> tuple[tuple[Operation, ...], tuple[Clause, ...]]:
    """Return the operations of a list of actions, and its clauses of conjunctions.

    raises  BadMatch for an action that is not modelled, by its name
    """
    operations: list[Operation] = []
    clauses: list[Clause] = []
    for action in split_actions(text):
        parsed = re.fullmatch(r"(\w+)(?:[:=]?\((.*)\)|[:=](.*))?", action, re.DOTALL)
        name = parsed[1].lower() if parsed else ""
        value = (parsed[2] if parsed[2] is not None else parsed[3] or "") if parsed else ""
        if name == "conjunction":
            clauses.append(_read_clause(value))
        elif name in UNKNOWN:
            raise BadMatch(
                f"action '{action}' is not modelled: {name} needs {UNKNOWN[name]}. Leave these rules out, or "
                "write what they do without it"
            )
        elif name in READERS:
            operations += READERS[name](value, layout)
        elif name in ("set_field", "load") and (changed := _read_label(value)):
            operations.append(changed)
        else:
            for step in read_action(action):
                operations += read_steps(step, layout)
    if clauses and operations:
        raise BadMatch("has actions beside conjunction(), must have none")
    return tuple(operations), tuple(clauses)


def _read_clause(text: str) -> Clause:
    """Return the clause in the brackets of `conjunction`."""
    parsed = re.fullmatch(r"\s*(\w+)\s*,\s*(\d{1,4})\s*/\s*(\d{1,4})\s*", text)
    if parsed is None:
        raise BadMatch(f"conjunction({text}) must be a number and a clause, such as conjunction(3,1/2)")
    number = read_whole(parsed[1], "conjunction", 0xFFFFFFFF)
    index, count = int(parsed[2]), int(parsed[3])
    if not 1 <= index <= count or not 2 <= count <= 64:
        raise BadMatch(
            f"conjunction({text}) has clause {index} of {count}, must be 1 to the count, of 2 to 64"
        )
    return Clause(number, index - 1, count)


def read_table(text: str) -> int:
    """Return the number of a table; raises BadMatch where it is none."""
    return read_whole(text, "table", 254)


def _read_track(text: str, layout: Layout) -> list[Operation]:
    """Return the operation of `ct(...)`."""
    del layout
    table: int | None = None
    zone: int | FieldBits = 0
    words: list[str] = []
    target: list[tuple[str, int]] = []
    for option in split_actions(text):
        name, _, value = option.partition("=")
        if name == "table":
            table = read_table(value)
        elif name == "zone":
            zone = read_whole(value, "zone", 0xFFFF) if value[:1].isdigit() else read_bits(value)
        elif name.startswith("nat"):
            target += _read_translation(option)
            words.append(option)
        elif name in ("commit", "force") or name.startswith(("exec", "alg")):
            words.append(option)
        else:
            raise BadMatch(
                f"ct has no option '{option}'", near=(name, ["table", "zone", "nat", "commit", "exec"])
            )
    word = re.sub(r"\s", "", ",".join(words))
    return [Track(f"ct:{word}", table, zone, "commit" in words, tuple(target))]


def _read_translation(text: str) -> list[tuple[str, int]]:
    """Return the field and value of an address that `nat` writes, its first one, and those of a port."""
    parsed = re.match(
        r"nat\(.*?(src|dst)=\[?([0-9a-fA-F.:]+?)\]?(?:-[0-9a-fA-F.:]+?)?(?::(\d+)(?:-\d+)?)?[,)]", text
    )
    if parsed is None:
        return []
    end, address, port = parsed.groups()
    is_ipv4 = "." in address
    name = f"ip_{end}" if is_ipv4 else f"ipv6_{end}"
    made = [(name, read_number(name, address, 32 if is_ipv4 else 128))]
    return [*made, (f"tp_{end}", read_whole(port, "port", 0xFFFF))] if port else made


def _read_label(text: str) -> SetLabel | None:
    """Return the operation that writes a part of a label of MPLS; None for other fields."""
    value, _, target = text.partition("->")
    name = re.sub(r"^(OXM_OF_|NXM_NX_)|\[\]$", "", target.strip()).lower()
    return _make_label(name, value.strip()) if name in LABELS else None


def _make_label(name: str, text: str) -> SetLabel:
    value = read_whole(text, name, (1 << LABELS[name]) - 1)
    return SetLabel(name, value)


def _read_kind(text: str) -> int:
    """Return a type of Ethernet."""
    return read_whole(text, "type of Ethernet", 0xFFFF)


def _read_push_label(text: str, layout: Layout) -> list[Operation]:
    del layout
    if (kind := _read_kind(text)) not in MPLS:
        raise BadMatch(f"push_mpls:{text} must have type 0x8847 or 0x8848")
    return [PushLabel(kind)]


def _read_clone(text: str, layout: Layout) -> list[Operation]:
    operations, clauses = read_operations(text, layout)
    if clauses:
        raise BadMatch("clone() has a conjunction, must have none")
    return [Clone(operations)]


def _read_group(text: str, layout: Layout) -> list[Operation]:
    del layout
    return [Group(read_whole(text, "group", 0xFFFFFFFF))]


def _read_learn(text: str, layout: Layout) -> list[Operation]:
    """Return the operation of `learn(...)`."""
    del layout
    numbers = {"table": 1, "priority": 32_768}
    parts: list[Learned] = []
    for item in split_actions(text):
        name, _, value = item.partition("=")
        if name in numbers:
            numbers[name] = read_table(value) if name == "table" else read_whole(value, name, 0xFFFF)
        elif name == "delete_learned" or name.startswith("result_dst"):
            raise BadMatch(f"learn has '{item}', which is not modelled: it removes rules or reports limits")
        elif name not in (*LEARNED_LIMITS, "send_flow_rem"):
            parts.append(_read_learned(item))
    return [Learn(numbers["table"], numbers["priority"], tuple(parts))]


def _read_learned(item: str) -> Learned:
    """Return a part of a learned rule: a match, a write or an output."""
    if item.startswith("output:"):
        return Learned("output", read_bits(item.removeprefix("output:")), ())
    if item.startswith("load:"):
        source, _, target = item.removeprefix("load:").partition("->")
        bits = read_bits(target)
        return Learned("load", _read_source(source, target), bits)
    name, equals, source = item.partition("=")
    bits = read_bits(name)
    return Learned("match", _read_source(source, name) if equals else bits, bits)


def _read_source(text: str, target: str) -> FieldBits | int:
    """Return the bits of a packet, or a number, that a learned rule has in a target."""
    if "[" in text or re.match(r"(NXM|OXM)_", text):
        return read_bits(text)
    bits = read_bits(target)
    name = bits[0][0]
    return read_number(name if len(bits) == 1 else target, text, sum(size for _, _, size in bits))


READERS: Final[Mapping[str, Callable[[str, Layout], list[Operation]]]] = {
    "ct": _read_track,
    "ct_clear": lambda _, __: [ClearTrack()],
    "group": _read_group,
    "clone": _read_clone,
    "learn": _read_learn,
    "push": lambda text, _: [Push(read_bits(text))],
    "pop": lambda text, _: [Pop(read_bits(text))],
    "push_mpls": _read_push_label,
    "pop_mpls": lambda text, _: [PopLabel(_read_kind(text))],
    "dec_mpls_ttl": lambda _, __: [DecrementLabel()],
    "set_mpls_label": lambda text, _: [_make_label("mpls_label", text)],
    "set_mpls_tc": lambda text, _: [_make_label("mpls_tc", text)],
    "set_mpls_ttl": lambda text, _: [_make_label("mpls_ttl", text)],
}
