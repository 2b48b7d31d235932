"""Rules as text of OpenFlow, read and written, and entries in the output of `ofproto/trace`.

Names of fields and actions are those of `ovs-fields(7)` and `ovs-actions(7)`. A header holds what a switch
matches: VLAN tags are `vlan_tci`; ICMP's type and code have fields of their own.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable
from functools import reduce
from typing import TYPE_CHECKING, Final, NamedTuple

import pandas as pd

from planner.contract.notes import add_note
from planner.contract.tables import shorten_faults
from planner.errors import InputError, did_you_mean
from planner_models.flowtables.problem.actions import DROP, OF_IP, list_unknown
from planner_models.flowtables.problem.fields import WITH_PORTS, Layout
from planner_models.flowtables.problem.openflow_actions import read_actions
from planner_models.flowtables.problem.openflow_fields import (
    ADDRESSES,
    FIELDS,
    FRAGMENTS,
    KEYWORDS,
    NO_NAMES,
    NOT_MODELLED,
    OTHER_NAMES,
    PARTS,
    TRIES,
    WIDE,
    translate_match,
)
from planner_models.flowtables.problem.values import REGISTER, BadMatch, describe_first, is_prefix

if TYPE_CHECKING:
    from planner_models.flowtables.problem.problem import FlowTables

NOT_MATCHED: Final = {
    "cookie", "duration", "n_packets", "n_bytes", "idle_age", "hard_age", "idle_timeout", "hard_timeout",
    "importance", "out_port", "out_group", "flags",
}  # fmt: skip
FLAGS: Final = ("send_flow_rem", "reset_counts", "check_overlap", "no_packet_counts", "no_byte_counts")
DEFAULT_PRIORITY: Final = 32_768
MOST_PRIORITY: Final = 65_535
MOST_TABLE: Final = 254
ANSWER: Final = re.compile(r"\s*(NXST|OFPST)_\w+ reply|\s*#|\s*$")
ALWAYS_MATCHED: Final = ("in_port", "eth_type", "nw_frag", "ipv6_frag")
"""Fields that every entry of Open vSwitch matches, the last two those of packets of IP."""


class ReadRules(NamedTuple):
    """The tables `rules` and `fields` of a dump.

    Fields are those that some rule matches or some action reads, those that entries always match, and
    registers; those of `headers` that no rule matches come after them.
    """

    rules: pd.DataFrame
    fields: pd.DataFrame


def read_rules(text: str, where: str, headers: Iterable[str] = ()) -> ReadRules:
    """Return the rules in the output of `ovs-ofctl dump-flows`, or in a file for `ovs-ofctl add-flows`.

    where    name of the file in errors
    headers  of packets, in the names of `translate_header`
    raises   InputError with a line for each row that is no rule, or matches or does what is not modelled
    """
    everything = Layout((name, bits, stage, False, role) for name, (bits, stage, role) in FIELDS.items())
    rows, lines = [], []
    masks: set[int] = set()
    faults: list[str] = []
    for line, content in enumerate(text.splitlines()):
        if ANSWER.match(content):
            continue
        try:
            table, priority, match, action = _read_line(content)
            masks.update(mask for _, mask in everything.parse(match))
        except BadMatch as error:
            describe_first(faults, f"{where} row {line + 1}: ", error)
            continue
        rows.append((float(priority), match, action, float(table)))
        lines.append(line)
    if not rows and not faults:
        faults.append(f"{where}: has no rules, must be output of ovs-ofctl dump-flows")
    if faults:
        raise InputError(*shorten_faults(faults, where, "that cannot be read"))
    rules = pd.DataFrame(rows, columns=["priority", "match", "action", "table"], index=lines)
    rules = _complete_tables(rules, where)
    rules.attrs |= {"where": where, "first_row": 1}
    return ReadRules(rules, _choose_fields(rules, everything, masks, where, headers))


def _choose_fields(
    rules: pd.DataFrame, everything: Layout, masks: set[int], where: str, headers: Iterable[str]
) -> pd.DataFrame:
    """Return the table of the fields that rules match, read or change, or that headers have.

    masks  of the matches of all rules, on the layout of every field
    """
    used = reduce(operator.or_, masks, 0)
    names = {name for name in FIELDS if used & everything.full_mask([name])} | _list_read(rules)
    names |= set(ALWAYS_MATCHED)
    unused = _list_fields(headers) - names
    if unused:
        add_note(
            f"no rule of {where} matches {', '.join(sorted(unused))}, which headers have; they decide nothing"
        )
    prefixed = {name for name in TRIES if all(_has_prefix(everything, name, mask) for mask in masks)}
    fields = [
        (name, bits, stage, float(name in prefixed), role)
        for name, (bits, stage, role) in FIELDS.items()
        if name in names | unused
    ]
    return pd.DataFrame(fields, columns=["field", "bits", "stage", "prefix", "role"])


def _list_read(rules: pd.DataFrame) -> set[str]:
    """Return the fields that actions change or read; for those of IP the protocol, too."""
    nothing = Layout([("none", 1, "l4", False)])
    fields_read = {
        name
        for action in set(rules["action"].astype(str))
        for name in list_unknown(action, nothing)
        if name in FIELDS
    }
    return fields_read | ({"ip_proto"} if fields_read & set(OF_IP) else set())


def _complete_tables(rules: pd.DataFrame, where: str) -> pd.DataFrame:
    """Return rules with one that drops in each table without rules that others go to, and say so."""
    targets = {
        int(step_text.partition(":")[2].partition("@")[0])
        for action in rules["action"].astype(str)
        for step_text in action.split()
        if step_text.startswith("goto:")
    }
    empty = sorted(targets - set(rules["table"].astype(int)))
    if empty:
        add_note(
            f"assumed: tables {', '.join(map(str, empty))} have no rules in {where}, so that their packets "
            "are dropped there"
        )
        added = pd.DataFrame(
            [(0.0, "", DROP, float(table)) for table in empty],
            columns=rules.columns,
            index=range(int(rules.index.max()) + 1, int(rules.index.max()) + 1 + len(empty)),
        )
        rules = pd.concat([rules, added])
    tables = sorted(set(rules["table"].astype(int)))
    if tables and tables[0] != 0:
        add_note(
            f"warning: {where} has no rule of table 0, where packets start: all of them are dropped; its "
            f"first table is {tables[0]}"
        )
    return rules


def _read_line(content: str) -> tuple[int, int, str, str]:
    """Return table, priority, match and action of a line."""
    match, separator, actions = content.partition("actions=")
    if not separator:
        raise BadMatch("has no 'actions=', must be a line of ovs-ofctl dump-flows")
    numbers = {"table": 0, "priority": DEFAULT_PRIORITY}
    text, others = translate_match(match)
    for name, value in others.items():
        if name in numbers:
            limit = MOST_TABLE if name == "table" else MOST_PRIORITY
            if not value.isdecimal() or int(value) > limit:
                hint = f"; {NO_NAMES}" if name == "table" and not value.isdecimal() else ""
                raise BadMatch(f"{name} is '{value}', must be a number from 0 to {limit}{hint}")
            numbers[name] = int(value)
        elif name not in NOT_MATCHED and name not in FLAGS:
            raise _refuse(name, value)
    return numbers["table"], numbers["priority"], text, read_actions(actions)


def _refuse(name: str, value: str) -> BadMatch:
    """Return the error that a word of a match is no field and no protocol that is read."""
    if not value:
        names = [*KEYWORDS, *FLAGS]
        return BadMatch(f"'{name}' is no protocol that is read", near=(name, names))
    names = [*FIELDS, *OTHER_NAMES, *PARTS, *WIDE, *NOT_MODELLED]
    return BadMatch(f"there is no field '{name}' that is read", near=(name, names))


def translate_header(text: str) -> str:
    """Return the header of a packet in the names that are used here.

    raises  BadMatch for what is no field of a packet
    """
    header, others = translate_match(text)
    for name, value in others.items():
        raise _refuse(name, value)
    for token in header.split():
        name = token.partition("=")[0]
        if FIELDS[name][2] == REGISTER:
            raise BadMatch(f"{name} is a register, which packets do not have: it is 0 when they arrive")
    return " ".join(_drop_full_mask(token) for token in header.split())


def _drop_full_mask(token: str) -> str:
    """Return a value without the mask of all bits, and a tag of VLAN without the bits that it leaves open."""
    name, _, value = token.partition("=")
    number, slash, mask = value.partition("/")
    is_full = slash and mask.startswith("0x") and int(mask, 16) == (1 << FIELDS[name][0]) - 1
    if is_full or (slash and name in ("vlan_tci", "nw_tos", "ct_state", "tcp_flags")):
        return f"{name}={number}"
    return token


# --- writing ------------------------------------------------------------------------------


def format_rules(problem: FlowTables) -> str:
    """Return the rules of a problem as text for `ovs-ofctl add-flows`, a line for each entry.

    Counts (`count:NAME`) are left out: a switch counts the packets of each rule. Problems without the field
    `eth_type`, such as those of five-tuples, have rules for IPv4.

    raises  InputError for fields that OpenFlow does not have
    """
    layout = problem.whole_layout
    require_openflow_fields(layout)
    lines = []
    for text, priority, action, table in zip(
        problem.matches,
        problem.rules["priority"],
        problem.rules["action"],
        problem.rules["table"],
        strict=True,
    ):
        for value, mask in layout.parse(text):
            parts = [f"table={table:.0f}", f"priority={priority:.0f}", *format_cube(layout, value, mask)]
            lines.append(",".join([*parts, f"actions={format_actions(str(action))}"]))
    return "".join(f"{line}\n" for line in lines)


def require_openflow_fields(layout: Layout) -> None:
    """Raise InputError where a layout has a field that OpenFlow does not have."""
    for field in layout.fields:
        if field.name not in FIELDS:
            raise InputError(
                f"fields: '{field.name}' is no field of OpenFlow that can be written"
                + did_you_mean(field.name, FIELDS)
            )


def _has_prefix(layout: Layout, name: str, mask: int) -> bool:
    """Return whether a mask of headers is a prefix in a field."""
    bits = FIELDS[name][0]
    return is_prefix((mask >> layout.shift[name]) & ((1 << bits) - 1), bits)


def _list_fields(headers: Iterable[str]) -> set[str]:
    """Return the fields that headers have."""
    tokens = (token for header in headers for token in header.replace(",", " ").split())
    return {token.partition("=")[0] for token in tokens} & FIELDS.keys()


def format_cube(layout: Layout, value: int, mask: int) -> list[str]:
    """Return the fields of a cube by the names of OpenFlow, protocols as numbers."""
    names = {ours: other for other, ours in OTHER_NAMES.items() if other.startswith(("nw_", "dl_"))}
    parts = [] if "eth_type" in layout.by_name else ["dl_type=0x0800"]
    protocol = (
        WITH_PORTS.get((value >> layout.shift["ip_proto"]) & 0xFF) if "ip_proto" in layout.by_name else None
    )
    if protocol is not None:
        names |= {f"tp_{end}": f"{protocol}_{end}" for end in ("src", "dst")}
    for token in layout.format_match(value, mask).split():
        name, _, text = token.partition("=")
        if name in ("nw_frag", "ipv6_frag"):
            name, text = "nw_frag", _format_fragment(text)
        else:
            text = _format_mask(layout, name, text)
        parts.append(f"{names.get(name, name)}={text}")
    # the kind of a packet before what only such packets have
    return sorted(parts, key=lambda item: 0 if item.startswith("dl_type") else 1 if "proto" in item else 2)


def _format_fragment(text: str) -> str:
    """Return the word for a match of fragments."""
    number, slash, bits = text.partition("/")
    target = (int(number, 0), int(bits, 0) if slash and not bits.isdecimal() else 3)
    return next((word for word, cube in FRAGMENTS.items() if cube == target), "no")


def _format_mask(layout: Layout, name: str, text: str) -> str:
    """Return a value of a field with its mask as OpenFlow writes it."""
    number, slash, bits = text.partition("/")
    if not slash:
        return text
    if bits.isdecimal() and name not in ADDRESSES and "_frag" not in name:
        size = layout.by_name[name].bits  # OpenFlow has lengths for addresses of IP only
        mask_bits = ((1 << size) - 1) ^ (((1 << size) - 1) >> int(bits))
        return f"{number}/{mask_bits:#x}" if size != 48 else f"{number}/{_format_mac(mask_bits)}"
    if name in ("eth_src", "eth_dst", "arp_sha", "arp_tha"):
        return f"{number}/{_format_mac(int(bits, 16))}"
    if name in ("ip_src", "ip_dst", "arp_spa", "arp_tpa") and not bits.isdecimal():
        return f"{number}/{'.'.join(str(octet) for octet in int(bits, 16).to_bytes(4, 'big'))}"
    return text


def _format_mac(number: int) -> str:
    return ":".join(f"{octet:02x}" for octet in number.to_bytes(6, "big"))


def format_actions(action: str) -> str:
    """Return actions of the table `rules` in OpenFlow."""
    texts = []
    for step_text in action.split():
        kind, _, value = step_text.partition(":")
        if kind == "goto":
            table, _, port = value.partition("@")
            texts.append(f"resubmit({port},{table})")
        elif kind == "out":
            texts.append(f"output:{value}" if value.isdecimal() or "[" in value else value)
        elif kind == "set":
            texts.append(_format_change(value))
        elif kind == "copy":
            texts.append(f"move:{value}")
        elif kind in ("meter", "queue"):
            texts.append(f"{'meter' if kind == 'meter' else 'set_queue'}:{value}")
        elif step_text in ("controller", "exit"):
            texts.append(step_text)
    return ",".join(texts) or "drop"


def _format_change(text: str) -> str:
    """Return a change of a header in OpenFlow."""
    name, equals, value = text.partition("=")
    if not equals:
        return "push_vlan:0x8100" if name == "push_vlan" else text
    return f"load:{value}->{name}" if "[" in name else f"set_field:{value}->{name}"


# --- ofproto/trace ------------------------------------------------------------------------


class Megaflow(NamedTuple):
    """An entry that Open vSwitch would install: its cube, and the actions of its datapath as text."""

    value: int
    mask: int
    actions: str


def read_megaflow(text: str, layout: Layout) -> Megaflow:
    """Return the entry in the output of `ovs-appctl ofproto/trace`, on the fields of a layout.

    Fields that the layout does not have are left out: no rule matches them.

    raises  InputError where the output has no entry
    """
    sections = {
        name: re.search(rf"^{name}: *(.*)$", text, re.MULTILINE) for name in ("Megaflow", "Datapath actions")
    }
    cube, actions = sections["Megaflow"], sections["Datapath actions"]
    if cube is None or actions is None:
        raise InputError("ofproto/trace: has no line 'Megaflow' with 'Datapath actions'")
    tokens = list(_translate(cube[1].split(","), layout))
    [(value, mask)] = layout.parse(" ".join(tokens))
    return Megaflow(value, mask, actions[1].strip())


def _translate(tokens: Iterable[str], layout: Layout) -> Iterable[str]:
    """Yield the matches of an entry on the fields of a layout."""
    tokens_used = [
        token for token in tokens if token.partition("=")[0] not in ("recirc_id", "eth", "skb_priority")
    ]
    text, _ = translate_match(" ".join(tokens_used))
    yield from (token for token in text.split() if token.partition("=")[0] in layout.by_name)
