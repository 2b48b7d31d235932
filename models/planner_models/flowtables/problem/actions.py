"""Actions of rules as steps: changes of a packet's header and registers, its next table, and its outputs.

An action is text, steps between blanks:

    drop, controller, out:PORT, out:FIELD[LOW..HIGH], count:NAME, meter:NUMBER, queue:NUMBER, exit
    set:FIELD=VALUE, set:FIELD=VALUE/MASK, set:FIELD[LOW..HIGH]=VALUE
    set:dec_ttl, set:push_vlan, set:pop_vlan
    copy:FIELD[LOW..HIGH]->FIELD[LOW..HIGH]
    goto:TABLE, goto:TABLE@PORT for a lookup with another port of input

    ct:TEXT, recirc:NUMBER, hash:TEXT, mpls:TEXT, change:FIELD=VALUE, datapath:TEXT in entries of a cache

Open vSwitch matches a field in full where a value with a mask is written, and else the bits that are written.
After a table that it goes to, a packet comes back to the steps that follow. A change of a header that the
layout has no field for is a step without further meaning.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from planner.contract.tables import abbreviate
from planner_models.flowtables.problem.fields import Layout
from planner_models.flowtables.problem.values import (
    PACKET,
    BadMatch,
    Field,
    parse_value,
    require_short_numbers,
)

DROP: Final = "drop"
CONTROLLER: Final = "controller"
NORMAL: Final = "out:NORMAL"
ACTIONS: Final = (
    "drop", "out:PORT", "count:NAME", "goto:TABLE", "set:CHANGE", "copy:FIELD->FIELD", "controller",
    "meter:NUMBER", "queue:NUMBER", "exit",
)  # fmt: skip
NAMED: Final = {"out": "a port, such as out:1", "count": "a counter, such as count:7", "meter": "a meter",
                "queue": "a queue", "ct": "what tracking does, such as ct:commit,zone=1",
                "recirc": "a way on, such as recirc:1", "hash": "a hash, such as hash:l4",
                "mpls": "a change of labels, such as mpls:pop=0x800",
                "change": "a changed field, such as change:nw_ttl=63",
                "datapath": "an action of a datapath"}  # fmt: skip
NORMAL_READS: Final = (("eth_src", 0, 48), ("eth_dst", 0, 48), ("vlan_tci", 0, 13))
"""Bits by which the action NORMAL learns and forwards: field, lowest bit, how many."""
OF_IP: Final = ("ip_src", "ip_dst", "ipv6_src", "ipv6_dst", "nw_tos", "nw_ttl", "tp_src", "tp_dst")
"""Fields whose change needs a packet of IP with a protocol: its number is read, too."""
CHANGES: Final = {"dec_ttl": "nw_ttl", "push_vlan": "vlan_tci", "pop_vlan": "vlan_tci"}
RESERVED: Final = {
    0xFFF8: "out:IN_PORT", 0xFFF9: "out:TABLE", 0xFFFA: "out:NORMAL", 0xFFFB: "out:FLOOD",
    0xFFFC: "out:ALL", 0xFFFD: CONTROLLER, 0xFFFE: "out:LOCAL",
}  # fmt: skip
"""Numbers of ports with a meaning of their own, for output to a register."""
SUBFIELD: Final = re.compile(r"(\w+)(?:\[(\d+)(?:\.\.(\d+))?\])?")


class Bits(NamedTuple):
    """Some bits of a field in headers: the position of the lowest, and their number; no bits if absent."""

    text: str
    shift: int
    size: int

    @property
    def mask(self) -> int:
        """The mask of these bits."""
        return ((1 << self.size) - 1) << self.shift


class Show(NamedTuple):
    """A step that changes no header: an output, a counter, a meter.

    reads  mask of the bits that decide what it does
    """

    text: str
    reads: int = 0


class Output(NamedTuple):
    """An output to the port with the number in a field."""

    port: Bits


class Set(NamedTuple):
    """Constants written into a header.

    value, mask  of the bits written
    reads        mask of the bits that an entry must match with it
    """

    text: str
    value: int
    mask: int
    reads: int


class Copy(NamedTuple):
    """Bits of a header copied to others."""

    source: Bits
    target: Bits


class Decrement(NamedTuple):
    """The time to live lowered by one; packets of 0 and 1 go to the controller instead."""

    ttl: Bits
    reads: int


class Goto(NamedTuple):
    """A lookup in another table, after which the next step follows.

    port  in place of the port of input in this lookup; None: the packet's own
    """

    table: int
    port: int | None


class Exit(NamedTuple):
    """The end of all steps."""


Step = Show | Output | Set | Copy | Decrement | Goto | Exit
WORDS: Final[dict[str, tuple[Step, ...]]] = {DROP: (), CONTROLLER: (Show(CONTROLLER),), "exit": (Exit(),)}


def read_steps(action: str, layout: Layout) -> list[Step]:
    """Return the steps of an action, on a layout with registers; `drop` has none.

    raises  BadMatch with the rule that the text violates
    """
    require_short_numbers(action)
    steps: list[Step] = []
    for step_text in action.split() or [action]:
        steps += _read_step(step_text, layout)
    return steps


def _read_step(text: str, layout: Layout) -> Sequence[Step]:
    """Return the steps of one word of an action; a change of several fields has one for each."""
    kind, _, value = text.partition(":")
    if text in WORDS:
        return WORDS[text]
    if kind in NAMED and not value:
        raise BadMatch(f"must name {NAMED[kind]}")
    if kind == "out" and value.endswith("]"):
        return [Output(find_bits(value, layout))]
    if kind in NAMED:
        return [Show(text, _reads_of_output(text, layout))]
    if kind == "goto":
        return [_read_goto(value, layout)]
    if kind == "copy":
        return [_read_copy(value, layout)]
    if kind == "set":
        return read_change(value, layout)
    raise BadMatch("is no action", near=(text, ACTIONS))


def _read_copy(value: str, layout: Layout) -> Copy:
    """Return the step that copies bits of a field to another one."""
    source, arrow, target = value.partition("->")
    if not arrow:
        raise BadMatch("must name two fields, such as copy:eth_src[0..47]->reg0[0..31]")
    copied = Copy(find_bits(source, layout), find_bits(target, layout))
    if copied.source.size != copied.target.size and copied.source.size and copied.target.size:
        raise BadMatch(f"copies {copied.source.size} bits to {copied.target.size}")
    return copied


def _read_goto(value: str, layout: Layout) -> Goto:
    table, _, port = value.partition("@")
    if not table.isdecimal() or (port and not port.isdecimal()):
        raise BadMatch("must go to the number of a table, such as goto:1")
    number, field = int(port) if port else None, layout.by_name.get("in_port")
    if number is not None and field is not None and number >> field.bits:
        raise BadMatch(f"has port {abbreviate(port)}, must be at most {(1 << field.bits) - 1}")
    return Goto(int(table), number)


def _reads_of_output(step_text: str, layout: Layout) -> int:
    """Return the mask of the bits that an output reads: those of NORMAL."""
    if step_text.upper() != NORMAL.upper():
        return 0
    bits_read = 0
    for name, low, count in NORMAL_READS:
        if name in layout.by_name:
            bits_read |= ((1 << count) - 1) << layout.shift[name] + low
    return bits_read


def find_bits(text: str, layout: Layout) -> Bits:
    """Return bits of a field such as `reg0[4..7]`; none where the layout does not have it.

    raises  BadMatch for bits that are not there
    """
    parsed = SUBFIELD.fullmatch(text)
    if parsed is None:
        raise BadMatch(f"'{text}' is no field with bits, such as reg0[0..15]")
    field = layout.by_name.get(parsed[1])
    if field is None:
        return Bits(text, 0, 0)
    low = int(parsed[2] or 0)
    high = int(parsed[3]) if parsed[3] else low if parsed[2] else field.bits - 1
    if not low <= high < field.bits:
        raise BadMatch(f"{field.name} has no bits {low} to {high}, it has {field.bits}")
    return Bits(text, layout.shift[field.name] + low, high - low + 1)


def read_change(text: str, layout: Layout) -> list[Step]:
    """Return the steps of a change of a header, as in `set:FIELD=VALUE/MASK`, or as OpenFlow writes it.

    raises  BadMatch with the rule that the text violates
    """
    if not text:
        raise BadMatch("must name a change of the header, such as set:ip_dst=10.0.0.1")
    name, equals, value = text.partition("=")
    if not equals:
        return _read_without_value(text, layout)
    name, bracket, _ = name.partition("[")
    field = layout.by_name.get(name)
    if field is None:
        return _read_absent(name, None if bracket else value, text, layout)
    if bracket:
        return [_read_bits(name, text, layout)]
    cubes = parse_value(field, value)
    if len(cubes) > 1:
        raise BadMatch(f"sets {name} to a range, must be one value")
    shift = layout.shift[name]
    own_value, own_mask = (number << shift for number in cubes[0])
    return [Set(f"set:{text}", own_value, own_mask, layout.full_mask([name]) | _reads_with(name, layout))]


def _read_without_value(text: str, layout: Layout) -> list[Step]:
    """Return the steps of a change without a value, or of one that OpenFlow writes in another way."""
    plain = re.split(r"[:(]", text)[0]
    plain = "pop_vlan" if plain == "strip_vlan" else plain
    if plain in CHANGES:
        return _read_plain_change(plain, layout)
    from planner_models.flowtables.problem.openflow_actions import read_actions

    return read_steps(read_actions(text), layout)


def _read_absent(name: str, value: str | None, text: str, layout: Layout) -> list[Step]:
    """Return the steps of a change of a field that the layout does not have.

    value  of the whole field; None where some of its bits are written
    """
    from planner_models.flowtables.problem.openflow_fields import FIELDS

    if name not in FIELDS:
        raise BadMatch(f"there is no field '{name}'", near=(name, [*layout.by_name, *FIELDS]))
    size, _, role = FIELDS[name]
    if value is not None:
        parse_value(Field(name, size, 0, False, 0, 0), value)
    return [] if role not in (PACKET, "always") else [Show(f"set:{text}")]


def _read_bits(name: str, text: str, layout: Layout) -> Set:
    """Return the step that writes a number into some bits of a field."""
    target, _, value = text.partition("=")
    bits = find_bits(target, layout)
    try:
        number = int(value, 0)
    except ValueError:
        number = -1
    if not 0 <= number < 1 << bits.size:
        raise BadMatch(f"'{value}' is no value of the {bits.size} bits {bits.text}")
    return Set(f"set:{text}", number << bits.shift, bits.mask, bits.mask | _reads_with(name, layout))


def _reads_with(name: str, layout: Layout) -> int:
    """Return the bits that an entry matches beside those that are written: a tag of VLAN is written whole."""
    if name == "vlan_tci":
        return layout.full_mask([name])
    return layout.full_mask(["ip_proto"]) if name in OF_IP and "ip_proto" in layout.by_name else 0


def _read_plain_change(name: str, layout: Layout) -> list[Step]:
    """Return the steps of a change without a value."""
    bits = find_bits(CHANGES[name], layout)
    if not bits.size:
        return [Show(f"set:{name}")]
    if name == "dec_ttl":
        return [Decrement(bits, bits.mask | _reads_with(CHANGES[name], layout))]
    value = 0x1000 if name == "push_vlan" else 0
    return [Set(f"set:{name}", value << bits.shift, bits.mask, bits.mask)]


def list_unknown(action: str, layout: Layout) -> list[str]:
    """Return the fields of a packet that an action changes or reads and that a layout does not have."""
    return [
        name for step_text in action.split() for name in _list_fields(step_text) if name not in layout.by_name
    ]


def _list_fields(step_text: str) -> list[str]:
    """Return the fields of a packet that a step changes or reads."""
    kind, _, value = step_text.partition(":")
    if step_text.upper() == NORMAL.upper():
        return [name for name, _, _ in NORMAL_READS]
    if kind == "set":
        name = value.partition("=")[0].partition("[")[0]
        return [CHANGES.get(re.split(r"[:(]", name)[0], name)] if "=" in value or name in CHANGES else []
    if kind == "copy":
        found = [SUBFIELD.match(text) for text in value.split("->")]
        return [subfield[1] for subfield in found if subfield]
    return [value.partition("[")[0]] if kind == "out" and value.endswith("]") else []
