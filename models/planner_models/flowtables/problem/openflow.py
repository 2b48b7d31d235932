"""Rules as text of OpenFlow, read and written, and entries in the output of `ofproto/trace`.

Names of fields and actions are those of `ovs-fields(7)` and `ovs-actions(7)`. A header holds what a switch
matches: VLAN tags are `vlan_tci`; ICMP's type and code have fields of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

import pandas as pd

from planner.contract.tables import shorten_faults
from planner.errors import InputError, did_you_mean
from planner_models.flowtables.problem.fields import IPV6, WITH_PORTS, BadMatch, Cube, Layout, is_prefix

if TYPE_CHECKING:
    from planner_models.flowtables.problem.problem import FlowTables

FIELDS: Final[dict[str, tuple[int, str]]] = {
    "in_port": (16, "metadata"),
    "metadata": (64, "metadata"),
    "tun_id": (64, "metadata"),
    "ct_mark": (32, "metadata"),
    **{f"reg{number}": (32, "metadata") for number in range(16)},
    "eth_src": (48, "l2"),
    "eth_dst": (48, "l2"),
    "eth_type": (16, "l2"),
    "vlan_tci": (16, "l2"),
    "ip_src": (32, "l3"),
    "ip_dst": (32, "l3"),
    "ipv6_src": (128, "l3"),
    "ipv6_dst": (128, "l3"),
    "ip_proto": (8, "l3"),
    "nw_tos": (8, "l3"),
    "nw_ttl": (8, "l3"),
    "arp_op": (16, "l3"),
    "arp_spa": (32, "l3"),
    "arp_tpa": (32, "l3"),
    "tp_src": (16, "l4"),
    "tp_dst": (16, "l4"),
    "icmp_type": (8, "l4"),
    "icmp_code": (8, "l4"),
}
"""Bits and stage of each field that is read, in the order of lookup."""
TRIES: Final = ("ip_src", "ip_dst", "ipv6_src", "ipv6_dst", "tp_src", "tp_dst")
OTHER_NAMES: Final = {
    "nw_src": "ip_src",
    "nw_dst": "ip_dst",
    "nw_proto": "ip_proto",
    "dl_src": "eth_src",
    "dl_dst": "eth_dst",
    "dl_type": "eth_type",
    "tunnel_id": "tun_id",
    **{f"{kind}_{end}": f"tp_{end}" for kind in ("tcp", "udp", "sctp") for end in ("src", "dst")},
}
KEYWORDS: Final = {
    "ip": "eth_type=0x0800",
    "arp": "eth_type=0x0806",
    "ipv6": f"eth_type={IPV6:#x}",
    **{f"{kind}": f"eth_type=0x0800 ip_proto={n}" for kind, n in (("icmp", 1), ("tcp", 6), ("udp", 17))},
    **{f"{kind}6": f"eth_type={IPV6:#x} ip_proto={n}" for kind, n in (("icmp", 58), ("tcp", 6), ("udp", 17))},
    "sctp": "eth_type=0x0800 ip_proto=132",
    "sctp6": f"eth_type={IPV6:#x} ip_proto=132",
}
NOT_MATCHED: Final = {
    "cookie", "duration", "n_packets", "n_bytes", "idle_age", "hard_age", "idle_timeout", "hard_timeout",
    "importance", "out_port", "out_group",
}  # fmt: skip
FLAGS: Final = ("send_flow_rem", "reset_counts", "check_overlap", "no_packet_counts", "no_byte_counts")
DEFAULT_PRIORITY: Final = 32_768
LOCAL: Final = 65_534
MOST_PRIORITY: Final = 65_535
ANSWER: Final = re.compile(r"\s*(NXST|OFPST)_\w+ reply|\s*#|\s*$")
PORTS: Final = ("NORMAL", "FLOOD", "ALL", "LOCAL", "IN_PORT", "TABLE")
SETS: Final = ("mod_", "set_", "dec_", "push_", "pop_", "strip_vlan", "move:", "load:")


class ReadRules(NamedTuple):
    """The tables `rules` and `fields` of a dump; fields are those that some rule matches."""

    rules: pd.DataFrame
    fields: pd.DataFrame


def read_rules(text: str, where: str) -> ReadRules:
    """Return the rules in the output of `ovs-ofctl dump-flows`, or in a file for `ovs-ofctl add-flows`.

    where   name of the file in errors
    raises  InputError with a line for each row that is no rule, or matches or does what is not supported
    """
    everything = Layout((name, bits, stage, False) for name, (bits, stage) in FIELDS.items())
    rows, lines, faults, used = [], [], [], 0
    is_prefixed = dict.fromkeys(TRIES, True)
    for line, content in enumerate(text.splitlines()):
        if ANSWER.match(content):
            continue
        try:
            table, priority, match, action = _read_line(content)
            for _, mask in everything.parse(match):
                used |= mask
                for name in TRIES:
                    own = (mask >> everything.shift[name]) & ((1 << FIELDS[name][0]) - 1)
                    is_prefixed[name] &= is_prefix(own, FIELDS[name][0])
        except BadMatch as error:
            faults.append(f"{where} row {line + 1}: {error}")
            continue
        rows.append((float(priority), match, action, float(table)))
        lines.append(line)
    if not rows and not faults:
        faults.append(f"{where}: has no rules, must be output of ovs-ofctl dump-flows")
    if faults:
        raise InputError(*shorten_faults(faults, where, "that cannot be read"))
    rules = pd.DataFrame(rows, columns=["priority", "match", "action", "table"], index=lines)
    rules.attrs |= {"where": where, "first_row": 1}
    fields = [
        (name, bits, stage, float(is_prefixed.get(name, False)))
        for name, (bits, stage) in FIELDS.items()
        if used & everything.full_mask([name]) or name == "eth_type"
    ]
    return ReadRules(rules, pd.DataFrame(fields, columns=["field", "bits", "stage", "prefix"]))


def _read_line(content: str) -> tuple[int, int, str, str]:
    """Return table, priority, match and action of a line."""
    match, found, actions = content.partition("actions=")
    if not found:
        raise BadMatch("has no 'actions=', must be a line of ovs-ofctl dump-flows")
    numbers = {"table": 0, "priority": DEFAULT_PRIORITY}
    tokens, tag = [], [0, 0]
    for token in match.replace(",", " ").split():
        name, equals, value = token.partition("=")
        name = OTHER_NAMES.get(name, name)
        if name in numbers:
            most = 254 if name == "table" else MOST_PRIORITY
            if not value.isdecimal() or int(value) > most:
                raise BadMatch(f"{name} is '{value}', must be a number from 0 to {most}")
            numbers[name] = int(value)
        elif name in NOT_MATCHED or token in FLAGS:
            continue
        elif name in ("dl_vlan", "dl_vlan_pcp"):
            value_bits, mask_bits = _read_tag(name, value)
            tag = [tag[0] | value_bits, tag[1] | mask_bits]
        elif not equals:
            if name not in KEYWORDS:
                raise BadMatch(f"'{name}' is no protocol that is read" + did_you_mean(name, KEYWORDS))
            tokens.append(KEYWORDS[name])
        else:
            tokens.append(f"{name}={_read_value(name, value)}")
    if tag[1]:
        tokens.append(f"vlan_tci={tag[0]:#06x}/{tag[1]:#06x}")
    return numbers["table"], numbers["priority"], " ".join(tokens), read_actions(actions)


def _read_tag(name: str, value: str) -> Cube:
    """Return the bits of `vlan_tci` that a number or priority of a VLAN matches."""
    try:
        number = int(value, 0)
    except ValueError:
        raise BadMatch(f"'{value}' is no value of {name}") from None
    if name == "dl_vlan" and number == 0xFFFF:  # without a tag
        return 0, 0xFFFF
    most = 0xFFF if name == "dl_vlan" else 7
    if not 0 <= number <= most:
        raise BadMatch(f"{name} is {number}, must be from 0 to {most}")
    return (0x1000 | number, 0x1FFF) if name == "dl_vlan" else (0x1000 | number << 13, 0xF000)


def _read_value(name: str, value: str) -> str:
    """Return the value of a field in its usual notation."""
    if name not in FIELDS:
        known = [*FIELDS, *OTHER_NAMES, "dl_vlan", "dl_vlan_pcp"]
        raise BadMatch(f"there is no field '{name}' that is read" + did_you_mean(name, known))
    if name == "in_port":
        if value == "LOCAL":
            return str(LOCAL)
        if not value.isdecimal():
            raise BadMatch(f"in_port is {value}, must be a number; dump with --no-names")
    if not value:
        raise BadMatch(f"{name} has no value")
    return value


def read_actions(text: str) -> str:
    """Return actions of OpenFlow as the table `rules` has them.

    raises  BadMatch for an action that is not supported, and for a table beside other actions
    """
    found = []
    for action in re.findall(r"(?:[^,()\s]|\([^()]*\))+", text):
        name, _, value = action.partition(":")
        following = re.fullmatch(r"goto_table:(\d+)|resubmit\(,(\d+)\)", action)
        if action == "drop":
            continue
        if following:
            found.append(f"goto:{following[1] or following[2]}")
        elif name == "output" or action.isdecimal() or action.upper() in PORTS:
            port = (value if name == "output" else action).strip('"')
            found.append(f"out:{port}")
        elif name.upper() == "CONTROLLER" or action.lower().startswith("controller("):
            found.append("controller")
        elif action.startswith(SETS):
            found.append(f"set:{action}")
        else:
            raise BadMatch(
                f"action '{action}' is not supported; these are: drop, output, goto_table, resubmit(,TABLE), "
                "controller, and changes of header fields"
            )
    if len(found) > 1 and any(action.startswith("goto:") for action in found):
        raise BadMatch(f"actions '{text.strip()}' do more than go to a table, must only go to it")
    return " ".join(found) or "drop"


# --- writing ------------------------------------------------------------------------------


def format_rules(problem: FlowTables) -> str:
    """Return the rules of a problem as text for `ovs-ofctl add-flows`, a line for each entry.

    Counts (`count:NAME`) are left out: a switch counts the packets of each rule. Problems without the field
    `eth_type`, such as those of five-tuples, have rules for IPv4.

    raises  InputError for fields that OpenFlow does not have
    """
    layout = problem.layout
    for field in layout.fields:
        if field.name not in FIELDS:
            raise InputError(
                f"fields: '{field.name}' is no field of OpenFlow that can be written"
                + did_you_mean(field.name, FIELDS)
            )
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
            lines.append(",".join([*parts, f"actions={_format_actions(str(action))}"]))
    return "".join(f"{line}\n" for line in lines)


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
        number, slash, bits = text.partition("/")
        if slash and bits.isdecimal() and name not in ("ip_src", "ip_dst", "ipv6_src", "ipv6_dst"):
            size = layout.by_name[name].bits  # OpenFlow has lengths for addresses of IP only
            own = ((1 << size) - 1) ^ (((1 << size) - 1) >> int(bits))
            text = f"{number}/{own:#x}" if size != 48 else f"{number}/{_format_mac(own)}"
        elif slash and name in ("eth_src", "eth_dst"):
            text = f"{number}/{_format_mac(int(bits, 16))}"
        elif slash and name in ("ip_src", "ip_dst") and not bits.isdecimal():
            text = f"{number}/{'.'.join(str(octet) for octet in int(bits, 16).to_bytes(4, 'big'))}"
        parts.append(f"{names.get(name, name)}={text}")
    # the kind of a packet before what only such packets have
    return sorted(parts, key=lambda part: 0 if part.startswith("dl_type") else 1 if "proto" in part else 2)


def _format_mac(number: int) -> str:
    return ":".join(f"{octet:02x}" for octet in number.to_bytes(6, "big"))


def _format_actions(action: str) -> str:
    """Return actions of the table `rules` in OpenFlow."""
    found = []
    for part in action.split():
        kind, _, value = part.partition(":")
        if kind == "goto":
            found.append(f"resubmit(,{value})")
        elif kind == "out":
            found.append(f"output:{value}" if value.isdecimal() else value)
        elif kind == "set":
            found.append(value)
        elif part == "controller":
            found.append("controller")
    return ",".join(found) or "drop"


# --- ofproto/trace ------------------------------------------------------------------------


class Megaflow(NamedTuple):
    """An entry that Open vSwitch would install: its cube, and the actions of its datapath as text."""

    value: int
    mask: int
    actions: str


def read_megaflow(text: str, layout: Layout) -> Megaflow:
    """Return the entry in the output of `ovs-appctl ofproto/trace`, on the fields of a layout.

    Fields that the layout does not have, such as `in_port` and `nw_frag`, are left out: no rule matches them.

    raises  InputError where the output has no entry
    """
    found = {
        name: re.search(rf"^{name}: *(.*)$", text, re.MULTILINE) for name in ("Megaflow", "Datapath actions")
    }
    cube, actions = found["Megaflow"], found["Datapath actions"]
    if cube is None or actions is None:
        raise InputError("ofproto/trace: has no line 'Megaflow' with 'Datapath actions'")
    tokens = list(_translate(cube[1].split(","), layout))
    [(value, mask)] = layout.parse(" ".join(tokens))
    return Megaflow(value, mask, actions[1].strip())


def _translate(tokens: Iterable[str], layout: Layout) -> Iterable[str]:
    """Yield the matches of an entry on the fields of a layout."""
    for token in tokens:
        name, equals, value = token.partition("=")
        parts = KEYWORDS.get(name, "").split() if not equals else [f"{OTHER_NAMES.get(name, name)}={value}"]
        yield from (part for part in parts if part.partition("=")[0] in layout.by_name)
