"""Actions of OpenFlow, as `ovs-ofctl` prints them, read as the actions of the table `rules`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from planner_models.flowtables.problem.openflow_fields import (
    FIELDS,
    MOST_STACKED,
    NO_NAMES,
    Subfield,
    read_number,
    read_port,
    read_subfields,
)
from planner_models.flowtables.problem.values import REGISTER, BadMatch

PORTS: Final = ("NORMAL", "FLOOD", "ALL", "LOCAL", "IN_PORT", "TABLE")
NOT_MODELLED: Final = {
    "ct": "connection tracking, which sends packets through the tables again",
    "ct_clear": "connection tracking",
    "nat": "connection tracking",
    "group": "groups, whose buckets are in another file (dump-groups)",
    "learn": "rules that packets add",
    "delete_learned": "rules that packets remove",
    "conjunction": "conjunctive matches",
    "bundle": "bundles of ports, chosen by a hash",
    "bundle_load": "bundles of ports, chosen by a hash",
    "multipath": "paths chosen by a hash",
    "clone": "actions on a copy of the packet",
    "sample": "samples of packets",
    "push_mpls": "labels of MPLS",
    "pop_mpls": "labels of MPLS",
    "set_mpls_label": "labels of MPLS",
    "set_mpls_tc": "labels of MPLS",
    "set_mpls_ttl": "labels of MPLS",
    "dec_mpls_ttl": "labels of MPLS",
    "encap": "types of packets",
    "decap": "types of packets",
    "dec_nsh_ttl": "network service headers",
    "check_pkt_larger": "sizes of packets",
    "write_actions": "action sets",
    "clear_actions": "action sets",
    "apply_actions": "action lists with a name",
}
"""Actions that are refused, and what they need."""
WITHOUT_EFFECT: Final = ("note", "fin_timeout", "pop_queue", "send_flow_rem")
MODIFIED: Final = {
    "mod_dl_src": "eth_src",
    "mod_dl_dst": "eth_dst",
    "mod_nw_src": "ip_src",
    "mod_nw_dst": "ip_dst",
    "mod_nw_ttl": "nw_ttl",
    "mod_tp_src": "tp_src",
    "mod_tp_dst": "tp_dst",
    "set_tunnel": "tun_id",
    "set_tunnel64": "tun_id",
}
SUPPORTED: Final = (
    "drop, output, goto_table, resubmit, controller, set_field, load, move, write_metadata, mod_*, dec_ttl, "
    "push_vlan, pop_vlan, set_queue, meter, exit"
)


def split_actions(text: str) -> list[str]:
    """Return the actions of a list between commas, outside of parentheses."""
    pieces, depth, start = [], 0, 0
    for index, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            pieces.append(text[start:index])
            start = index + 1
    return [piece.strip() for piece in [*pieces, text[start:]] if piece.strip()]


def read_actions(text: str) -> str:
    """Return actions of OpenFlow as the table `rules` has them.

    raises  BadMatch for an action that is not modelled, by its name
    """
    steps: list[str] = []
    stacked: list[int] = []  # sizes of what `push` has put on the stack
    for action in split_actions(text):
        name, _, value = action.partition(":")
        if name in ("push", "pop") and value:
            steps += _read_stack(name, value, stacked)
        else:
            steps += read_action(action)
    if stacked:
        raise BadMatch("leaves values on the stack for other rules, which is not modelled: push without pop")
    return " ".join(steps) or "drop"


def _read_stack(name: str, target: str, stacked: list[int]) -> list[str]:
    """Return the steps of `push` or `pop`; each value on the stack has a register of its own."""
    parts = read_subfields(target)
    bits = sum(subfield.bits for subfield in parts)
    if name == "push":
        if len(stacked) == MOST_STACKED:
            raise BadMatch(f"puts more than {MOST_STACKED} values on the stack, which is not modelled")
        stacked.append(bits)
        register = Subfield(f"stack{len(stacked) - 1}", 0, bits)
        return _copy(parts, [register], f"{name}:{target}")
    if not stacked:
        raise BadMatch(
            "takes a value from the stack of another rule, which is not modelled: pop without push"
        )
    size = stacked.pop()
    if bits > size:
        raise BadMatch(f"action 'pop:{target}' takes {bits} bits, {size} were pushed")
    return _copy([Subfield(f"stack{len(stacked)}", 0, bits)], parts, f"{name}:{target}")


def read_action(action: str) -> list[str]:
    """Return the steps of one action."""
    parsed = re.fullmatch(r"(\w+)(?:[:=]?\((.*)\)|:(.*))?", action, re.DOTALL)
    if parsed is None:
        raise BadMatch(f"action '{action}' cannot be read")
    name, inner, value = parsed[1], parsed[2], parsed[3] or ""
    lower = name.lower()
    if lower in NOT_MODELLED:
        raise BadMatch(
            f"action '{action}' is not modelled: {lower} needs {NOT_MODELLED[lower]}. Leave these rules out, "
            "or write what they do without it"
        )
    if action == "drop" or lower in WITHOUT_EFFECT:
        return []
    if lower in FORWARDING:
        return FORWARDING[lower](inner, value)
    if action.isdecimal():
        return [_read_output(None, action)]
    if name.upper() in PORTS and inner is None and not value:
        return [f"out:{name.upper()}"]
    change = _read_change(lower, inner, value, action)
    if change is None:
        names = ["output", "goto_table", "resubmit", *MODIFIED, *NOT_MODELLED, "set_field", "load", "move"]
        raise BadMatch(f"action '{action}' is not supported; these are: {SUPPORTED}", near=(name, names))
    return change


def _read_enqueue(inner: str | None, value: str) -> list[str]:
    """Return the steps of `enqueue(PORT,QUEUE)`."""
    port, _, queue = (inner or value).replace(",", ":").partition(":")
    return [f"queue:{queue}", _read_output(None, port)]


FORWARDING: Final[Mapping[str, Callable[[str | None, str], list[str]]]] = {
    "goto_table": lambda _, value: [f"goto:{_read_table(value)}"],
    "resubmit": lambda inner, value: [_read_resubmit(inner if inner is not None else value)],
    "output": lambda inner, value: [_read_output(inner, value)],
    "controller": lambda _, __: ["controller"],
    "meter": lambda _, value: [f"meter:{value}"],
    "set_queue": lambda _, value: [f"queue:{value}"],
    "enqueue": _read_enqueue,
    "exit": lambda _, __: ["exit"],
}
"""Steps of actions that forward packets, by name: of the text in brackets, and of that behind `:` or `=`."""


def _read_change(name: str, inner: str | None, value: str, action: str) -> list[str] | None:
    """Return the steps of a change of a header or a register; None for another action."""
    if name in ("dec_ttl", "pop_vlan", "strip_vlan", "push_vlan"):
        return [f"set:{'pop_vlan' if name == 'strip_vlan' else name}"]
    if name in ("set_field", "load"):
        text, target = _split_arrow(inner or value, action)
        return _write(target.strip(), text.strip(), by_bits=name == "load")
    if name == "move":
        source, target = _split_arrow(inner or value, action)
        return _copy(read_subfields(source), read_subfields(target), action)
    if name in MODIFIED:
        return _write(MODIFIED[name], value)
    return WRITES[name](value) if name in WRITES else None


def _split_arrow(text: str, action: str) -> tuple[str, str]:
    """Return the texts before and behind the arrow of an action."""
    source, arrow, target = text.partition("->")
    if not arrow:
        raise BadMatch(f"action '{action}' must name a field behind '->'")
    return source, target


def _write_vlan_id(value: str) -> list[str]:
    return [f"set:vlan_tci={0x1000 | read_number('dl_vlan', value, 12):#x}/0x1fff"]


def _write_vlan_priority(value: str) -> list[str]:
    return [f"set:vlan_tci={0x1000 | read_number('dl_vlan_pcp', value, 3) << 13:#x}/0xf000"]


WRITES: Final[Mapping[str, Callable[[str], list[str]]]] = {
    "write_metadata": lambda value: _write("metadata", value),
    "mod_nw_tos": lambda value: _write("ip_dscp", str(read_number("nw_tos", value, 8) >> 2), by_bits=True),
    "mod_nw_ecn": lambda value: _write("nw_ecn", value, by_bits=True),
    "mod_vlan_vid": _write_vlan_id,
    "set_vlan_vid": _write_vlan_id,
    "mod_vlan_pcp": _write_vlan_priority,
    "set_vlan_pcp": _write_vlan_priority,
}
"""Steps of actions that write a value into one field, by name."""


def _read_table(text: str) -> str:
    if not text.isdecimal() or int(text) > 254:
        raise BadMatch(f"goes to table '{text}', must be a number from 0 to 254; {NO_NAMES}")
    return text


def _read_resubmit(text: str) -> str:
    """Return the step of `resubmit(PORT,TABLE)`; without a table, that of a packet's first one."""
    port, comma, table = text.partition(",")
    if "," in table:
        raise BadMatch(f"resubmit({text}) is not modelled: it needs connection tracking")
    table = _read_table(table.strip()) if comma and table.strip() else ""
    if not table:
        raise BadMatch(f"resubmit({text}) has no table, must name one, such as resubmit(,1)")
    port = port.strip()
    if port and port.upper() != "IN_PORT":
        return f"goto:{table}@{read_port(port, f'resubmit({text}) has port')}"
    return f"goto:{table}"


def _read_output(inner: str | None, value: str) -> str:
    """Return the step of an output: to a port, or to the number in a field."""
    port = value
    if inner is not None:
        options = dict(option.partition("=")[::2] for option in inner.split(","))
        port = options.get("port", inner.split(",")[0])
    port = port.strip().strip('"')
    if port.upper() in PORTS:
        return f"out:{port.upper()}"
    if port.upper() == "CONTROLLER":
        return "controller"
    if "[" in port or port in FIELDS or port.upper().startswith(("NXM_", "OXM_")):
        parts = read_subfields(port)
        if len(parts) != 1:
            raise BadMatch(f"output:{port} has more than 32 bits, must be the number of a port")
        return f"out:{_show(parts[0])}"
    if not port or re.search(r"[\s:\[\]]", port):
        raise BadMatch(f"output to '{port}' is to no port")
    return f"out:{port}"


def _show(subfield: Subfield) -> str:
    return f"{subfield.name}[{subfield.low}..{subfield.low + subfield.bits - 1}]"


def _write(target: str, text: str, *, by_bits: bool = False) -> list[str]:
    """Return the steps that write a value, or a value with a mask, into some bits of a field.

    by_bits  whether the bits that are written are named, which are matched then, not the whole field
    """
    parts = read_subfields(target)
    bits = sum(subfield.bits for subfield in parts)
    value_text, slash, mask_text = text.partition("/")
    name = parts[0].name if len(parts) == 1 else target
    full = (1 << bits) - 1
    full_name = name if len(parts) == 1 and parts[0].bits == FIELDS[name][0] else ""
    value = read_number(full_name, value_text, bits)
    mask = read_number(full_name, mask_text, bits) if slash else full
    steps = []
    for subfield in parts:
        bits -= subfield.bits
        full_mask = (1 << subfield.bits) - 1
        own_value, own_mask = (
            (value >> bits & full_mask) << subfield.low,
            (mask >> bits & full_mask) << subfield.low,
        )
        if own_mask:
            is_tag = target.lower().endswith(("vlan_pcp", "vlan_vid", "dl_vlan"))
            steps.append(_write_bits(subfield, own_value, own_mask, by_bits=by_bits, is_tag=is_tag))
    return steps


def _write_bits(subfield: Subfield, value: int, mask: int, *, by_bits: bool, is_tag: bool) -> str:
    """Return the step that writes bits of one field.

    value, mask  of the whole field
    is_tag       whether a tag of VLAN is written, which is there then
    """
    size, _, role = FIELDS[subfield.name]
    if subfield.name == "vlan_tci" and is_tag:
        value, mask = value | 0x1000, mask | 0x1000
    if by_bits and subfield.bits < size and subfield.name != "vlan_tci" and role != REGISTER:
        return f"set:{_show(subfield)}={value >> subfield.low:#x}"
    shown = format_number(subfield.name, value & mask)
    return f"set:{subfield.name}={shown}" + ("" if mask == (1 << size) - 1 else f"/{mask:#x}")


def format_number(name: str, value: int) -> str:
    """Return a value of a field in its usual notation."""
    from planner_models.flowtables.problem.values import Field, format_value

    size = FIELDS[name][0]
    if name.startswith("reg") or name == "metadata" or name == "vlan_tci":
        return f"{value:#x}"
    return format_value(Field(name, size, 0, False, 0, 0), value, (1 << size) - 1)


def _copy(source: list[Subfield], target: list[Subfield], action: str) -> list[str]:
    """Return the steps that copy some bits to as many others."""
    bits, others = (sum(share.bits for share in parts) for parts in (source, target))
    if bits != others:
        raise BadMatch(f"action '{action}' copies {bits} bits to {others}")
    steps, first, second = [], list(source), list(target)
    while first:
        count = min(first[0].bits, second[0].bits)
        pair = []
        for parts in (first, second):  # the highest bits of each
            subfield = parts[0]
            pair.append(Subfield(subfield.name, subfield.low + subfield.bits - count, count))
            if subfield.bits == count:
                del parts[0]
            else:
                parts[0] = Subfield(subfield.name, subfield.low, subfield.bits - count)
        steps.append(f"copy:{_show(pair[0])}->{_show(pair[1])}")
    return steps
