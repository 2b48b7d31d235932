"""Header fields of OpenFlow: names, sizes, layers of lookup, and values as `ovs-ofctl` prints them.

Names are those of `ovs-fields(7)`; each field has one name here, and others are translated. A name such as
`nw_src` means the sender's address of ARP in a match of ARP. Registers are no part of a packet: they are 0
when it arrives, and actions set them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from planner.contract.tables import abbreviate
from planner_models.flowtables.problem.values import (
    ALWAYS,
    IPV6,
    PACKET,
    REGISTER,
    BadMatch,
    Cube,
    Field,
    parse_number,
)

MOST_STACKED: Final = 4
FIELDS: Final[dict[str, tuple[int, str, str]]] = {
    "in_port": (16, "metadata", ALWAYS),
    "tun_id": (64, "metadata", PACKET),
    "tun_src": (32, "metadata", PACKET),
    "tun_dst": (32, "metadata", PACKET),
    "tun_flags": (16, "metadata", PACKET),
    "pkt_mark": (32, "metadata", PACKET),
    "ct_state": (8, "metadata", PACKET),
    "ct_zone": (16, "metadata", PACKET),
    "ct_mark": (32, "metadata", PACKET),
    "ct_label": (128, "metadata", PACKET),
    "eth_src": (48, "l2", PACKET),
    "eth_dst": (48, "l2", PACKET),
    "eth_type": (16, "l2", ALWAYS),
    "vlan_tci": (16, "l2", PACKET),
    "ip_src": (32, "l3", PACKET),
    "ip_dst": (32, "l3", PACKET),
    "ipv6_src": (128, "l3", PACKET),
    "ipv6_dst": (128, "l3", PACKET),
    "ipv6_label": (32, "l3", PACKET),
    "ip_proto": (8, "l3", PACKET),
    "nw_tos": (8, "l3", PACKET),
    "nw_ttl": (8, "l3", PACKET),
    "nw_frag": (2, "l3", ALWAYS),
    "ipv6_frag": (2, "l3", ALWAYS),
    "arp_op": (16, "l3", PACKET),
    "arp_spa": (32, "l3", PACKET),
    "arp_tpa": (32, "l3", PACKET),
    "arp_sha": (48, "l3", PACKET),
    "arp_tha": (48, "l3", PACKET),
    "nd_target": (128, "l3", PACKET),
    "nd_sll": (48, "l3", PACKET),
    "nd_tll": (48, "l3", PACKET),
    "tcp_flags": (16, "l3", PACKET),
    "tp_src": (16, "l4", PACKET),
    "tp_dst": (16, "l4", PACKET),
    "icmp_type": (8, "l4", PACKET),
    "icmp_code": (8, "l4", PACKET),
    "metadata": (64, "metadata", REGISTER),
    **{f"reg{number}": (32, "metadata", REGISTER) for number in range(16)},
    **{f"stack{number}": (128, "metadata", REGISTER) for number in range(MOST_STACKED)},
}
"""Bits, stage and role of each field that is read, in the order of lookup; registers last, with those in
place of the stack of `push` and `pop`.

`nw_frag` is that of IPv4: keys of a datapath have another one for IPv6, `ipv6_frag`.
"""
TRIES: Final = ("ip_src", "ip_dst", "tp_src", "tp_dst", "icmp_type", "icmp_code")
"""Fields of which Open vSwitch tracks prefixes, where all masks are prefixes."""
ADDRESSES: Final = (
    "ip_src",
    "ip_dst",
    "ipv6_src",
    "ipv6_dst",
    "arp_spa",
    "arp_tpa",
    "tun_src",
    "tun_dst",
    "nd_target",
)
OTHER_NAMES: Final = {
    "nw_src": "ip_src",
    "nw_dst": "ip_dst",
    "ipv4_src": "ip_src",
    "ipv4_dst": "ip_dst",
    "nw_proto": "ip_proto",
    "ip_ttl": "nw_ttl",
    "ip_tos": "nw_tos",
    "ip_frag": "nw_frag",
    "dl_src": "eth_src",
    "dl_dst": "eth_dst",
    "dl_type": "eth_type",
    "tunnel_id": "tun_id",
    "arp_opcode": "arp_op",
    "in_port_oxm": "in_port",
    "icmpv6_type": "icmp_type",
    "icmpv6_code": "icmp_code",
    "icmpv4_type": "icmp_type",
    "icmpv4_code": "icmp_code",
    **{f"{kind}_{end}": f"tp_{end}" for kind in ("tcp", "udp", "sctp") for end in ("src", "dst")},
}
NAMES_OF_ARP: Final = {
    "nw_src": "arp_spa",
    "nw_dst": "arp_tpa",
    "ip_src": "arp_spa",
    "ip_dst": "arp_tpa",
    "nw_proto": "arp_op",
    "ip_proto": "arp_op",
}
PARTS: Final = {
    "dl_vlan": ("vlan_tci", 0, 12),
    "vlan_vid": ("vlan_tci", 0, 13),
    "dl_vlan_pcp": ("vlan_tci", 13, 3),
    "vlan_pcp": ("vlan_tci", 13, 3),
    "ip_dscp": ("nw_tos", 2, 6),
    "nw_ecn": ("nw_tos", 0, 2),
    "ip_ecn": ("nw_tos", 0, 2),
}
"""Names of some bits of a field: the field, its lowest bit, and how many."""
WIDE: Final = {f"xreg{number}": 2 for number in range(8)} | {f"xxreg{number}": 4 for number in range(4)}
"""Registers that are several `reg`, the first one the highest, and how many."""
KEYWORDS: Final = {
    "ip": "eth_type=0x0800",
    "ipv4": "eth_type=0x0800",
    "arp": "eth_type=0x0806",
    "rarp": "eth_type=0x8035",
    "ipv6": f"eth_type={IPV6:#x}",
    **{f"{kind}": f"eth_type=0x0800 ip_proto={n}" for kind, n in (("icmp", 1), ("tcp", 6), ("udp", 17))},
    **{f"{kind}6": f"eth_type={IPV6:#x} ip_proto={n}" for kind, n in (("icmp", 58), ("tcp", 6), ("udp", 17))},
    "sctp": "eth_type=0x0800 ip_proto=132",
    "sctp6": f"eth_type={IPV6:#x} ip_proto=132",
    "eth": "",
}
BITS_BY_NAME: Final = {
    "ct_state": {"new": 1, "est": 2, "rel": 4, "rpl": 8, "inv": 16, "trk": 32, "snat": 64, "dnat": 128},
    "tcp_flags": {
        "fin": 1,
        "syn": 2,
        "rst": 4,
        "psh": 8,
        "ack": 16,
        "urg": 32,
        "ece": 64,
        "cwr": 128,
        "ns": 256,
    },
    "tun_flags": {"oam": 1},
}
FRAGMENTS: Final = {"no": (0, 3), "yes": (1, 1), "first": (1, 3), "later": (3, 3), "not_later": (0, 2)}
PORT_NUMBERS: Final = {"LOCAL": 65_534, "IN_PORT": 65_528, "CONTROLLER": 65_533, "NONE": 65_535}
NO_NAMES: Final = "dump with ovs-ofctl --no-names dump-flows"
NOT_MODELLED: Final = {
    "conj_id": "conjunctions",
    "recirc_id": "recirculation",
    "actset_output": "action sets",
    "packet_type": "packet types",
    "mpls_label": "labels of MPLS",
    "mpls_tc": "labels of MPLS",
    "mpls_bos": "labels of MPLS",
    "mpls_ttl": "labels of MPLS",
    "dp_hash": "hashes of the datapath",
    "tun_ipv6_src": "tunnels of IPv6",
    "tun_ipv6_dst": "tunnels of IPv6",
}
PREFIXES: Final = re.compile(r"(NXM_OF_|NXM_NX_|OXM_OF_|ERICOXM_OF_)", re.IGNORECASE)
SUBFIELD: Final = re.compile(r"(\w+?)(?:\[(?:(\d+)(?:\.\.(\d+))?)?\])?")


class Subfield(NamedTuple):
    """Some bits of a field: the lowest one, and their number."""

    name: str
    low: int
    bits: int


def name_field(name: str, *, is_arp: bool = False) -> str:
    """Return the name that a field has here; names of NXM and OXM are translated, too."""
    plain = name
    if PREFIXES.match(name):
        plain = PREFIXES.sub("", name).lower()
        plain = f"xreg{plain.removeprefix('pkt_reg')}" if plain.startswith("pkt_reg") else plain
    if is_arp and plain in NAMES_OF_ARP:
        return NAMES_OF_ARP[plain]
    return OTHER_NAMES.get(plain, plain)


def refuse_field(name: str) -> BadMatch:
    """Return the error that there is no such field, or that it is not modelled."""
    if name in NOT_MODELLED:
        return BadMatch(f"field '{name}' is not modelled ({NOT_MODELLED[name]}): leave these rules out")
    if name.startswith("tun_metadata"):
        return BadMatch(f"field '{name}' is not modelled (options of tunnels): leave these rules out")
    names = [*FIELDS, *OTHER_NAMES, *PARTS, *WIDE]
    return BadMatch(f"there is no field '{name}' that is read", near=(name, names))


def read_subfields(text: str) -> list[Subfield]:
    """Return the fields that a name with bits means, such as `NXM_NX_REG0[4..7]`, the highest bits first.

    raises  BadMatch for a name or bits that are not there
    """
    parsed = SUBFIELD.fullmatch(text.strip())
    if parsed is None:
        raise BadMatch(f"'{text}' is no field with bits, such as reg0[0..15]")
    name = name_field(parsed[1])
    first, size = 0, 0
    if name in WIDE:
        size = 32 * WIDE[name]
    elif name in PARTS:
        name, first, size = PARTS[name]
    elif name in FIELDS:
        size = FIELDS[name][0]
    else:
        raise refuse_field(name)
    low = int(parsed[2] or 0)
    high = int(parsed[3]) if parsed[3] else low if parsed[2] else size - 1
    if not low <= high < size:
        raise BadMatch(f"{parsed[1]} has no bits {low} to {high}, it has {size}")
    return _split_wide(name, first + low, high - low + 1)


def _split_wide(name: str, low: int, bits: int) -> list[Subfield]:
    """Return the registers of 32 bits behind some bits of a wide one, the highest first."""
    if name not in WIDE:
        return [Subfield(name, low, bits)]
    count = WIDE[name]
    start = count * int(name.lstrip("xreg"))
    subfields = []
    for index in range(count):
        lowest_bit = 32 * (count - 1 - index)  # lowest bit of this register within the wide one
        first, last = max(low, lowest_bit), min(low + bits, lowest_bit + 32)
        if first < last:
            subfields.append(Subfield(f"reg{start + index}", first - lowest_bit, last - first))
    return subfields


def read_number(name: str, text: str, bits: int) -> int:
    """Return a value in any notation of OpenFlow: a number, an address, or hexadecimal.

    raises  BadMatch where it is none, or does not fit
    """
    size = FIELDS[name][0] if name in FIELDS else bits
    kind = size if ":" in text or "." in text else bits
    return parse_number(Field(name, kind, 0, False, 0, 0), text)


# --- matches ------------------------------------------------------------------------------


def _is_of(tokens: Iterable[str], keywords: Collection[str], types: str) -> bool:
    """Return whether a match is of packets of some kinds: by keyword, or by the type of Ethernet."""
    pattern = re.compile(rf"(dl|eth)_type=0x0*({types})")
    return any(token in keywords or pattern.fullmatch(token.lower()) for token in tokens)


def _is_read_as_bits(name: str) -> bool:
    """Return whether several parts of a match may name bits of one field by this name."""
    return name in ("nw_tos", *PARTS, *WIDE, *BITS_BY_NAME) or name.endswith("_frag")


def _add_cubes(token: str, name: str, value: str, cubes: dict[str, Cube]) -> None:
    """Add the bits that one part of a match matches to those of the others.

    raises  BadMatch where they contradict one another
    """
    if name == "nw_tos":  # its two lowest bits are nw_ecn
        number = read_number(name, value.partition("/")[0], 8)
        before = cubes.get(name, (0, 0))
        cubes[name] = (before[0] | number & 0xFC, before[1] | 0xFC)
        return
    for field, own_value, own_mask in _read_parts(name, value):
        before = cubes.get(field, (0, 0))
        if (before[0] ^ own_value) & before[1] & own_mask:
            raise BadMatch(f"'{token}' contradicts another value of {field}")
        cubes[field] = (before[0] | own_value, before[1] | own_mask)


def translate_match(text: str) -> tuple[str, dict[str, str]]:
    """Return a match in the names of this module, and other parts, such as `priority`, by name.

    raises  BadMatch for fields that are not there, or not modelled
    """
    tokens = re.findall(r"[^,\s]+", text)
    is_arp = _is_of(tokens, ("arp", "rarp"), "806|8035")
    is_ipv6 = _is_of(tokens, ("ipv6", "tcp6", "udp6", "sctp6", "icmp6"), "86dd")
    translated: list[str] = []
    cubes: dict[str, Cube] = {}
    others: dict[str, str] = {}
    for token in tokens:
        name, equals, value = token.partition("=")
        if not equals:
            translated += KEYWORDS.get(name, "").split()
            others |= {} if name in KEYWORDS else {name: ""}
            continue
        name = name_field(name, is_arp=is_arp)
        if name == "nw_frag" and is_ipv6:
            name = "ipv6_frag"
        if _is_read_as_bits(name):
            _add_cubes(token, name, value, cubes)
        elif name in FIELDS:
            translated.append(f"{name}={_read_value(name, value)}")
        elif name in NOT_MODELLED or name.startswith("tun_metadata"):
            raise refuse_field(name)
        else:
            others[name] = value
    translated += [f"{name}={value:#x}/{mask:#x}" for name, (value, mask) in cubes.items()]
    return " ".join(translated), others


def _read_parts(name: str, text: str) -> Iterable[tuple[str, int, int]]:
    """Yield field, value and mask of a match of bits with a name, or of some bits of a field."""
    if name.endswith("_frag"):
        if text not in FRAGMENTS:
            raise BadMatch(f"'{text}' is no value of nw_frag: {', '.join(FRAGMENTS)}")
        yield name, *FRAGMENTS[text]
    elif name in BITS_BY_NAME and text[:1] in ("+", "-"):
        yield name, *_read_flags(name, text)
    elif name == "dl_vlan":
        yield _read_vlan(text.partition("/")[0])
    else:
        yield from _read_subfields(name, text)
    if name == "dl_vlan_pcp":
        yield "vlan_tci", 0x1000, 0x1000


def _read_subfields(name: str, text: str) -> Iterable[tuple[str, int, int]]:
    """Yield field, value and mask of the fields whose bits a number matches, or flags such as `syn|ack`."""
    number_text, slash, mask_text = text.partition("/")
    parts = read_subfields(name) if name not in BITS_BY_NAME else [Subfield(name, 0, FIELDS[name][0])]
    bits = sum(subfield.bits for subfield in parts)
    if name in BITS_BY_NAME and not number_text[:1].isdigit():
        value, _ = _read_flags(name, "".join(f"+{flag}" for flag in number_text.split("|")))
        mask = (1 << bits) - 1
    else:
        value = read_number(name, number_text, bits)
        mask = read_number(name, mask_text, bits) if slash else (1 << bits) - 1
    value &= mask
    for subfield in parts:
        bits -= subfield.bits
        full = (1 << subfield.bits) - 1
        own_value, own_mask = (value >> bits) & full, (mask >> bits) & full
        if own_mask:
            yield subfield.name, own_value << subfield.low, own_mask << subfield.low


def _read_flags(name: str, text: str) -> Cube:
    """Return value and mask of flags such as `+new-trk`."""
    value, mask = 0, 0
    if not re.fullmatch(r"([+-]\w+)+", text):
        raise BadMatch(f"'{text}' is no value of {name}, such as +{next(iter(BITS_BY_NAME[name]))}")
    for sign, flag in re.findall(r"([+-])(\w+)", text):
        if flag not in BITS_BY_NAME[name]:
            bit_of_flag = BITS_BY_NAME[name]
            raise BadMatch(f"{name} has no flag '{flag}'", near=(flag, bit_of_flag))
        mask |= BITS_BY_NAME[name][flag]
        value |= BITS_BY_NAME[name][flag] if sign == "+" else 0
    return value, mask


def _read_vlan(text: str) -> tuple[str, int, int]:
    """Return the bits of `vlan_tci` that the number of a VLAN means; 0xffff: no tag."""
    try:
        number = int(text, 0)
    except ValueError:
        raise BadMatch(f"'{text}' is no value of dl_vlan") from None
    if number == 0xFFFF:
        return "vlan_tci", 0, 0xFFFF
    if not 0 <= number <= 0xFFF:
        raise BadMatch(f"dl_vlan is {number}, must be from 0 to 4095")
    return "vlan_tci", 0x1000 | number, 0x1FFF


def _read_value(name: str, value: str) -> str:
    """Return the value of a field; names of ports become numbers."""
    if name == "in_port":
        return str(read_port(value))
    if not value:
        raise BadMatch(f"{name} has no value")
    number, slash, mask = value.partition("/")
    if slash and mask.isdecimal() and name not in ADDRESSES:
        return f"{number}/{int(mask):#x}"  # OpenFlow has lengths of prefixes for addresses of IP only
    return value


def read_port(text: str, what: str = "in_port is") -> int:
    """Return the number of a port.

    what    start of the sentence of an error
    raises  BadMatch for names of ports other than those of OpenFlow
    """
    if text.upper() in PORT_NUMBERS:
        return PORT_NUMBERS[text.upper()]
    try:
        number = int(text, 0)
    except ValueError:
        raise BadMatch(f"{what} {abbreviate(text)}, must be a number; {NO_NAMES}") from None
    if 0xFFFFFF00 <= number <= 0xFFFFFFFF:  # reserved ports of OpenFlow 1.1 and later
        number &= 0xFFFF
    if not 0 <= number <= 0xFFFF:
        raise BadMatch(f"{what} {abbreviate(text)}, must be from 0 to 65535")
    return number
