"""Headers of captured packets: where packets are in a capture, and the addresses and ports that they have.

Sources: the formats pcap and pcapng, IEEE 802.1Q, RFC 791, RFC 8200.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from planner.arrays import Ints
from planner.compiled import inner, kernel, run_small_in_python
from planner_models.flowrecords.cell_values import signed

Bytes = NDArray[np.uint8]

NULL, ETHERNET, RAW_BSD, RAW_OPENBSD, RAW, LINUX_COOKED, IPV4, IPV6, LINUX_COOKED_2 = (
    0, 1, 12, 14, 101, 113, 228, 229, 276,
)  # fmt: skip
LINK_TYPES: Final = frozenset(
    (NULL, ETHERNET, RAW_BSD, RAW_OPENBSD, RAW, LINUX_COOKED, IPV4, IPV6, LINUX_COOKED_2)
)
READ, NO_IP, CUT, NO_PORTS = 0, 1, 2, 3
"""What is read of a packet: all; nothing, as it is no IP packet; nothing, as it is cut; all but cut ports."""
VLAN, VLAN_SERVICE, TYPE_IPV4, TYPE_IPV6 = 0x8100, 0x88A8, 0x0800, 0x86DD
MAX_TAGS: Final = 4
TCP, UDP, SCTP, UDPLITE = 6, 17, 132, 136
HOP_BY_HOP, ROUTING, FRAGMENT, DESTINATION, AUTHENTICATION = 0, 43, 44, 60, 51
MAX_EXTENSIONS: Final = 8
SMALLEST_BLOCK: Final = 12


@inner
def _u16(data: Bytes, position: int) -> Any:
    return (signed(data[position]) << 8) | signed(data[position + 1])


@inner
def _u32(data: Bytes, position: int, is_big: bool) -> Any:
    a, b = signed(data[position]), signed(data[position + 1])
    c, d = signed(data[position + 2]), signed(data[position + 3])
    if is_big:
        return (a << 24) | (b << 16) | (c << 8) | d
    return (d << 24) | (c << 16) | (b << 8) | a


@run_small_in_python(max_elements=20_000)
@kernel
def list_packets(data: Bytes, begin: int, is_big: bool, header_at: Ints) -> tuple[int, int]:
    """List the positions of packet headers of a pcap file; return their number and the end of the last.

    data       bytes with whole packets from `begin` on, and perhaps the begin of another one
    header_at  (P,) result; with no entry, packets are only counted
    """
    position, count = begin, 0
    while position + 16 <= len(data):
        length = _u32(data, position + 8, is_big)
        if position + 16 + length > len(data):
            break
        if count < len(header_at):
            header_at[count] = position
        count += 1
        position += 16 + length
    return count, position


@run_small_in_python(max_elements=20_000)
@kernel
def list_blocks(data: Bytes, is_big: bool, block_at: Ints) -> tuple[int, int]:
    """List the positions of blocks of a pcapng file; return their number and the end of the last one.

    data      bytes with whole blocks, and perhaps the begin of another one
    block_at  (B,) result; with no entry, blocks are only counted
    """
    position, count = 0, 0
    while position + SMALLEST_BLOCK <= len(data):
        length = _u32(data, position + 4, is_big)
        if length < SMALLEST_BLOCK or length % 4 != 0 or position + length > len(data):
            break
        if count < len(block_at):
            block_at[count] = position
        count += 1
        position += length
    return count, position


@inner
def _network_header(data: Bytes, position: int, end: int, link: int) -> int:
    """Return the position of the IP header; -1 for a packet without one, -2 where it is cut before."""
    if link in (RAW, RAW_BSD, RAW_OPENBSD, IPV4, IPV6):
        return position
    if link == NULL:
        return position + 4
    if link == LINUX_COOKED:
        header, type_at = 16, 14
    elif link == LINUX_COOKED_2:
        header, type_at = 20, 0
    else:
        header, type_at = 14, 12
    if position + header > end:
        return -2
    kind = _u16(data, position + type_at)
    position += header
    for _ in range(MAX_TAGS):
        if kind != VLAN and kind != VLAN_SERVICE:
            break
        if position + 4 > end:
            return -2
        kind = _u16(data, position + 2)
        position += 4
    return position if kind in (TYPE_IPV4, TYPE_IPV6) else -1


@inner
def _group(data: Bytes, position: int) -> Any:
    """Return 64 bits of an address, less 2^63."""
    value = _u16(data, position) - 0x8000
    for offset in range(2, 8, 2):
        value = (value << 16) | _u16(data, position + offset)
    return value


@inner
def _ipv4_low(data: Bytes, position: int) -> Any:
    return -(0x8000 << 48) + ((0xFFFF << 32) | (_u16(data, position) << 16) | _u16(data, position + 2))


@run_small_in_python(max_elements=20_000)
@kernel
def read_headers(  # noqa: C901
    data: Bytes, packet_at: Ints, captured: Ints, original: Ints, link: Ints, values: Ints, state: Ints
) -> None:
    """Read the headers of packets.

    packet_at, captured, original  (P,) begin of each packet, its bytes in the capture, and on the wire
    link    (P,) type of its link
    values  (8, P) halves of source and target, protocol, ports and octets of the IP packet; results
    state   (P,) READ, NO_IP, CUT or NO_PORTS; results
    """
    for packet in range(len(packet_at)):
        begin = packet_at[packet]
        end = begin + captured[packet]
        position = _network_header(data, begin, end, link[packet])
        if position < 0:
            state[packet] = NO_IP if position == -1 else CUT
            continue
        if position >= end:
            state[packet] = CUT
            continue
        version = signed(data[position]) >> 4
        is_fragment = False
        if version == 4:
            if position + 20 > end:
                state[packet] = CUT
                continue
            values[0, packet] = values[2, packet] = -(0x8000 << 48)
            values[1, packet] = _ipv4_low(data, position + 12)
            values[3, packet] = _ipv4_low(data, position + 16)
            protocol = signed(data[position + 9])
            octets = _u16(data, position + 2)
            is_fragment = (_u16(data, position + 6) & 0x1FFF) != 0
            ports_at = position + 4 * (signed(data[position]) & 15)
        elif version == 6:
            if position + 40 > end:
                state[packet] = CUT
                continue
            for half in range(4):
                values[half, packet] = _group(data, position + 8 + 8 * half)
            octets = _u16(data, position + 4) + 40
            protocol = signed(data[position + 6])
            ports_at = position + 40
            for _ in range(MAX_EXTENSIONS):
                if ports_at + 8 > end:
                    break
                if protocol == FRAGMENT:
                    is_fragment = (_u16(data, ports_at + 2) & 0xFFF8) != 0
                    length = 8
                elif protocol in (HOP_BY_HOP, ROUTING, DESTINATION):
                    length = 8 * (signed(data[ports_at + 1]) + 1)
                elif protocol == AUTHENTICATION:
                    length = 4 * (signed(data[ports_at + 1]) + 2)
                else:
                    break
                protocol = signed(data[ports_at])
                ports_at += length
                if is_fragment:
                    break
        else:
            state[packet] = NO_IP
            continue
        on_wire = original[packet] - (position - begin)
        values[4, packet] = protocol
        values[5, packet] = -1
        values[6, packet] = -1
        # a large segment that the network card splits has no length here, and padding is not traffic
        values[7, packet] = octets if 20 < octets <= on_wire else max(on_wire, 1)
        state[packet] = READ
        has_ports = protocol in (TCP, UDP, SCTP, UDPLITE)
        if has_ports and not is_fragment:
            if ports_at + 4 > end:
                state[packet] = NO_PORTS
            else:
                values[5, packet] = _u16(data, ports_at)
                values[6, packet] = _u16(data, ports_at + 2)
