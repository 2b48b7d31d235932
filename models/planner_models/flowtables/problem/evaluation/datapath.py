"""Entries in the cache of a datapath: the output of `ovs-appctl dpctl/dump-flows`, and its statistics."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import pandas as pd

from planner.contract.notes import add_note
from planner.contract.tables import shorten_faults
from planner.errors import InputError
from planner_models.flowtables.problem.actions import CONTROLLER, DROP
from planner_models.flowtables.problem.evaluation.bits import EVALUATED, LAYOUT, field_mask, read_whole
from planner_models.flowtables.problem.evaluation.names import SHOWN
from planner_models.flowtables.problem.openflow_actions import split_actions
from planner_models.flowtables.problem.openflow_fields import BITS_BY_NAME, FRAGMENTS
from planner_models.flowtables.problem.schema import DATAPATH
from planner_models.flowtables.problem.values import (
    PACKET,
    BadMatch,
    Cube,
    Field,
    describe_first,
    parse_number,
    require_short_numbers,
)

UNIQUE: Final = re.compile(r"ufid:[0-9a-f-]+,\s*")
PART: Final = re.compile(r"(\w+)\(")
KEYS: Final[dict[str, dict[str, str]]] = {
    "eth": {"src": "eth_src", "dst": "eth_dst"},
    "ipv4": {"src": "ip_src", "dst": "ip_dst", "proto": "ip_proto", "tos": "nw_tos", "ttl": "nw_ttl"},
    "ipv6": {
        "src": "ipv6_src", "dst": "ipv6_dst", "label": "ipv6_label", "proto": "ip_proto", "tclass": "nw_tos",
        "hlimit": "nw_ttl",
    },
    "arp": {"sip": "arp_spa", "tip": "arp_tpa", "op": "arp_op", "sha": "arp_sha", "tha": "arp_tha"},
    "nd": {"target": "nd_target", "sll": "nd_sll", "tll": "nd_tll"},
    "mpls": {"label": "mpls_label", "tc": "mpls_tc", "ttl": "mpls_ttl", "bos": "mpls_bos"},
    "tunnel": {"tun_id": "tun_id", "src": "tun_src", "dst": "tun_dst"},
    **{name: {"src": "tp_src", "dst": "tp_dst"} for name in ("tcp", "udp", "sctp")},
    **{name: {"type": "icmp_type", "code": "icmp_code"} for name in ("icmp", "icmpv6")},
}  # fmt: skip
"""Names of the fields in each part of a key of a datapath."""
SINGLE: Final = {
    "recirc_id": "recirc_id", "dp_hash": "dp_hash", "in_port": "in_port", "eth_type": "eth_type",
    "ct_zone": "ct_zone", "ct_mark": "ct_mark", "ct_label": "ct_label", "skb_mark": "pkt_mark",
}  # fmt: skip
LEFT_OUT: Final = ("packet_type", "skb_priority", "ct_tuple4", "ct_tuple6")
LEFT_OUT_OF_TUNNELS: Final = ("tos", "ttl", "tp_src", "tp_dst", "flags")
STATISTICS: Final = {
    "hits": r"lookups:.*?\bhit:(\d+)",
    "missed": r"lookups:.*?\bmissed:(\d+)",
    "lost": r"lookups:.*?\blost:(\d+)",
    "mask_hits": r"masks:\s*hit:(\d+)",
    "masks": r"masks:.*?\btotal:(\d+)",
}


class Dump(NamedTuple):
    """The tables of a problem whose rules are the entries of a datapath."""

    rules: pd.DataFrame
    fields: pd.DataFrame
    flows: pd.DataFrame
    installed: pd.DataFrame
    statistics: pd.DataFrame | None


class Line(NamedTuple):
    """An entry: its cube, packets, and action."""

    value: int
    mask: int
    packets: int
    action: str


def read_dump(text: str, where: str, shown: str = "") -> Dump:
    """Return the entries of a datapath as rules, with a connection each that has the entry's packets.

    shown   output of `ovs-appctl dpctl/show`; "": no statistics
    raises  InputError with a line for each row that is no entry, or has parts that are not modelled
    """
    ports = {name: int(number) for number, name in re.findall(r"port (\d+): (\S+)", shown)}
    ports |= {name: int(number) for number, name in SHOWN.findall(shown)}
    lines: dict[Cube, Line] = {}
    faults: list[str] = []
    for row, content in enumerate(text.splitlines()):
        if not content.strip() or content.startswith("flow-dump from") or content.lstrip().startswith("#"):
            continue
        try:
            line = _read_line(content.strip(), ports)
        except BadMatch as error:
            describe_first(faults, f"{where} row {row + 1}: ", error)
            continue
        before = lines.get((line.value, line.mask))
        packets = line.packets + (before.packets if before else 0)  # each thread of a datapath has its own
        lines[line.value, line.mask] = line._replace(packets=packets)
    if not lines and not faults:
        faults.append(f"{where}: has no entries, must be output of ovs-appctl dpctl/dump-flows")
    if faults:
        raise InputError(*shorten_faults(faults, where, "that cannot be read"))
    unused = sum(line.packets == 0 for line in lines.values())
    if unused:
        add_note(f"assumed: {unused:,} of {len(lines):,} entries of {where} have no packet yet: 1 each")
    return _make_tables(list(lines.values()), _read_statistics(shown))


def _make_tables(lines: list[Line], statistics: pd.DataFrame | None) -> Dump:
    """Return the tables of a problem of some entries."""
    used = 0
    for line in lines:
        used |= line.mask
    names = [name for name in EVALUATED if used & field_mask(name)] or ["in_port"]
    matches = [LAYOUT.format_match(line.value, line.mask) for line in lines]
    headers = [_format_header(line.value) for line in lines]
    packets = [float(max(line.packets, 1)) for line in lines]
    rules = pd.DataFrame({"priority": 1.0, "match": matches, "action": [line.action for line in lines]})
    fields = pd.DataFrame(
        [(name, EVALUATED[name][0], EVALUATED[name][1], 0.0, PACKET) for name in names],
        columns=["field", "bits", "stage", "prefix", "role"],
    )
    installed = pd.DataFrame(
        {"match": matches, "origin": DATAPATH, "packets": [float(line.packets) for line in lines]}
    )
    return Dump(
        rules.assign(table=0.0).astype({"match": object, "action": object}),
        fields,
        pd.DataFrame({"header": headers, "packets": packets}),
        installed.astype({"match": object}),
        statistics,
    )


def _format_header(value: int) -> str:
    mask = sum(field_mask(name) for name in EVALUATED if value & field_mask(name))
    return LAYOUT.format_match(value, mask) or "eth_type=0"


def _read_line(content: str, ports: dict[str, int]) -> Line:
    """Return the entry in a line."""
    key, separator, tail = UNIQUE.sub("", content).partition(" packets:")
    packets = re.match(r"(\d{1,15})(?!\d)", tail)
    actions = re.search(r"actions:\s*(.*?)(?:,\s*dp-extra-info:.*)?$", tail)
    if not separator or packets is None or actions is None:
        raise BadMatch("has no packets and actions, must be a line of dpctl/dump-flows")
    require_short_numbers(key)
    cubes: dict[str, Cube] = {}
    _read_key(key.rstrip(", "), cubes, ports)
    value = mask = 0
    for name, (field_value, bits) in cubes.items():
        shift = LAYOUT.shift[name]
        value, mask = value | (field_value & bits) << shift, mask | bits << shift
    return Line(value, mask, int(packets[1]), _read_actions(actions[1].strip()))


def _read_key(text: str, cubes: dict[str, Cube], ports: dict[str, int]) -> None:
    """Add the fields of a key to cubes by field."""
    for item in split_actions(text):
        parsed = PART.match(item)
        if parsed is None or not item.endswith(")"):
            raise BadMatch(f"'{item}' is no part of a key, such as in_port(1)")
        name, inner = parsed[1], item[parsed.end() : -1]
        if name in SINGLE:
            _add(SINGLE[name], inner, cubes, ports)
        elif name == "ct_state":
            cubes["ct_state"] = _read_state(inner)
        elif name == "tcp_flags":
            cubes["tcp_flags"] = _read_flags(inner)
        elif name == "vlan":
            _read_tag(inner, cubes)
        elif name == "encap":
            _read_key(inner, cubes, ports)
        elif name in KEYS:
            _read_fields(name, inner, cubes, ports)
        elif name not in LEFT_OUT:
            raise BadMatch(
                f"key '{name}' is not modelled", near=(name, [*SINGLE, *KEYS, "ct_state", "vlan", "encap"])
            )


def _read_fields(key: str, inner: str, cubes: dict[str, Cube], ports: dict[str, int]) -> None:
    """Add the fields of a part with names, such as `ipv4(src=10.0.0.1,frag=no)`."""
    for item in split_actions(inner):
        name, _, value = item.partition("=")
        if name == "frag":
            cubes["nw_frag" if key == "ipv4" else "ipv6_frag"] = _read_fragment(value)
        elif name in KEYS[key]:
            _add(KEYS[key][name], value, cubes, ports)
        elif key == "tunnel" and name.partition("(")[0] in LEFT_OUT_OF_TUNNELS:
            continue
        else:
            raise BadMatch(f"'{item}' of {key}() is not modelled", near=(name, KEYS[key]))


def _add(name: str, text: str, cubes: dict[str, Cube], ports: dict[str, int]) -> None:
    """Add a value with its mask; a mask of 0 is no match."""
    size = EVALUATED[name][0]
    field = Field(name, size, 0, False, 0, 0)
    number, slash, bits = text.partition("/")
    if name == "in_port" and number in ports:
        number = str(ports[number])
    mask = parse_number(field, bits) if slash else (1 << size) - 1
    if mask:
        cubes[name] = (parse_number(field, number), mask)


def _read_state(text: str) -> Cube:
    """Return value and mask of states of tracking: flags with signs, or numbers."""
    number, slash, mask = text.partition("/")
    if number[:1].isdigit():
        bits = read_whole(mask, "ct_state", 0xFFFFFFFF) & 0xFF if slash else 0xFF
        return read_whole(number, "ct_state", 0xFFFFFFFF) & bits, bits
    value = bits = 0
    for sign, flag in re.findall(r"([+-])(\w+)", text):
        if flag not in BITS_BY_NAME["ct_state"]:
            raise BadMatch(f"ct_state has no flag '{flag}'", near=(flag, BITS_BY_NAME["ct_state"]))
        bits |= BITS_BY_NAME["ct_state"][flag]
        value |= BITS_BY_NAME["ct_state"][flag] if sign == "+" else 0
    return value, bits


def _read_flags(text: str) -> Cube:
    """Return value and mask of flags of TCP."""
    number, slash, mask = text.partition("/")
    if number[:1].isdigit():
        bits = read_whole(mask, "tcp_flags", 0xFFFF) if slash else 0xFFFF
        return read_whole(number, "tcp_flags", 0xFFFF) & bits, bits
    value = bits = 0
    for sign, flag in re.findall(r"([+-])(\w+)", text):
        bits |= BITS_BY_NAME["tcp_flags"].get(flag, 0)
        value |= BITS_BY_NAME["tcp_flags"].get(flag, 0) if sign == "+" else 0
    return value, bits


def _read_tag(text: str, cubes: dict[str, Cube]) -> None:
    """Add the bits of a tag of VLAN."""
    value, bits = 0x1000, 0x1000
    for item in split_actions(text):
        name, _, number = item.partition("=")
        if name not in ("vid", "pcp"):
            continue
        shift, full = (0, 0xFFF) if name == "vid" else (13, 7)
        digits, slash, mask = number.partition("/")
        field_bits = read_whole(mask, name, full) if slash else full
        value |= (read_whole(digits, name, full) & field_bits) << shift
        bits |= field_bits << shift
    cubes["vlan_tci"] = (value, bits)


def _read_fragment(text: str) -> Cube:
    number, slash, mask = text.partition("/")
    if slash and number not in FRAGMENTS:
        bits = read_whole(mask, "frag", 3)
        return read_whole(number, "frag", 3) & bits, bits
    if number not in FRAGMENTS:
        raise BadMatch(f"'{text}' is no value of frag: {', '.join(FRAGMENTS)}")
    return FRAGMENTS[number]


def _read_actions(text: str) -> str:
    """Return actions of a datapath as steps of a rule."""
    words = []
    for action in split_actions(text):
        if action == "drop":
            continue
        if action.startswith("userspace"):
            words.append(CONTROLLER)
        else:
            plain = re.sub(r"\s", "", action)
            words.append(f"out:{plain}" if re.fullmatch(r"\w+", plain) else f"datapath:{plain}")
    return " ".join(words) or DROP


def _read_statistics(shown: str) -> pd.DataFrame | None:
    """Return the table `statistics` of `dpctl/show`; None without numbers of lookups."""
    numbers = {name: re.search(pattern, shown) for name, pattern in STATISTICS.items()}
    if numbers["hits"] is None:
        return None
    return pd.DataFrame([{name: float(match[1]) for name, match in numbers.items() if match is not None}])
