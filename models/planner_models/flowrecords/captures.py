"""Flow records of captures: packets of pcap and pcapng files, joined by their five-tuples.

Sources: the formats pcap and pcapng as the IETF's working group OPSAWG describes them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.contract.notes import add_note
from planner.errors import InputError
from planner_models.flowrecords.blocks import read_blocks
from planner_models.flowrecords.packet_headers import (
    CUT,
    LINK_TYPES,
    NO_IP,
    NO_PORTS,
    READ,
    Bytes,
    list_blocks,
    list_packets,
    read_headers,
)
from planner_models.flowrecords.records import UNKNOWN, FlowRecords

MAX_BYTES: Final = 1 << 32
MAX_PACKETS: Final = 100_000_000
MAX_INTERFACES: Final = 65_536
PCAP: Final[Mapping[bytes, tuple[bool, int]]] = {
    b"\xd4\xc3\xb2\xa1": (False, 10**6),
    b"\xa1\xb2\xc3\xd4": (True, 10**6),
    b"\x4d\x3c\xb2\xa1": (False, 10**9),
    b"\xa1\xb2\x3c\x4d": (True, 10**9),
}
"""Whether integers are big-endian, and the units of a second, by the first bytes of a pcap file."""
PCAPNG: Final = b"\x0a\x0d\x0d\x0a"
SECTION, INTERFACE, SIMPLE, ENHANCED = 0x0A0D0D0A, 1, 3, 6
RESOLUTION: Final = 9
LITTLE, BIG = b"\x4d\x3c\x2b\x1a", b"\x1a\x2b\x3c\x4d"


@dataclass(frozen=True, kw_only=True, eq=False)
class _Packets:
    """Packets of a capture: begin, bytes in the capture and on the wire, type of link, and time."""

    packet_at: Ints
    captured: Ints
    original: Ints
    link: Ints
    time_s: Floats

    def __len__(self) -> int:
        return len(self.packet_at)


def is_capture(begin: bytes) -> bool:
    """Return whether the first four bytes of a file are those of a capture."""
    return begin in PCAP or begin == PCAPNG


def read_capture(path: Path, *, idle_s: float = 30.0) -> FlowRecords:
    """Return the flows of a capture: packets of one five-tuple, with gaps below `idle_s`.

    Bytes are those of IP packets. Packets that are no IP packets are left out, which a note says.

    raises  InputError for a file that is cut or damaged, or that has no IP packet
    """
    data = _read(path)
    begin = data[:4].tobytes()
    packets = _of_pcapng(data, path.name) if begin == PCAPNG else _of_pcap(data, path.name, *PCAP[begin])
    values = np.zeros((8, len(packets)), dtype=np.int64)
    state = np.empty(len(packets), dtype=np.int64)
    read_headers(data, packets.packet_at, packets.captured, packets.original, packets.link, values, state)
    if (cut := state == CUT).any():
        packet = int(cut.argmax())
        raise InputError(
            f"{path.name} packet {packet + 1:,}: is cut after {packets.captured[packet]:,} bytes, within its "
            "addresses; capture with a larger snap length"
        )
    is_read = (state == READ) | (state == NO_PORTS)
    if not is_read.any():
        raise InputError(f"{path.name}: has no IP packet")
    if others := int((state == NO_IP).sum()):
        add_note(f"assumed: {path.name}: {others:,} of {len(packets):,} packets are not IP, and left out")
    if without := int((state == NO_PORTS).sum()):
        add_note(
            f"warning: {path.name}: {without:,} packets are cut before their ports, so that flows between "
            "two hosts are joined; capture with a larger snap length"
        )
    return _join_packets(values[:, is_read], packets.time_s[is_read], idle_s)


def _read(path: Path) -> Bytes:
    blocks, total = [], 0
    for block in read_blocks(path):
        total += len(block)
        if total > MAX_BYTES:
            raise InputError(f"{path.name}: has over {MAX_BYTES >> 30:,} GiB; split the capture")
        blocks.append(block)
    return np.frombuffer(b"".join(blocks), dtype=np.uint8)


def _u32(data: Bytes, position: Ints, is_big: bool) -> Ints:
    """Return the 32-bit integers at positions."""
    value = np.zeros(len(position), dtype=np.int64)
    for offset in range(4) if is_big else range(3, -1, -1):
        value = (value << 8) | data[position + offset]
    return value


def _of_pcap(data: Bytes, name: str, is_big: bool, per_s: int) -> _Packets:
    if len(data) < 24:
        raise InputError(f"{name}: is cut at byte {len(data):,}, within its header")
    count, end = list_packets(data, is_big, np.empty(0, dtype=np.int64))
    if end != len(data):
        raise InputError(f"{name} packet {count + 1:,}: is cut, at byte {end:,} of {len(data):,}")
    _require_few(count, name)
    header_at = np.empty(count, dtype=np.int64)
    list_packets(data, is_big, header_at)
    fraction = _u32(data, header_at + 4, is_big)
    if (wrong := fraction >= per_s).any():
        raise InputError(f"{name} packet {int(wrong.argmax()) + 1:,}: has a time of over a second's fraction")
    link = int(_u32(data, np.array([20]), is_big)[0]) & 0xFFFF
    _require_link(link, name)
    return _Packets(
        packet_at=header_at + 16,
        captured=_u32(data, header_at + 8, is_big),
        original=_u32(data, header_at + 12, is_big),
        link=np.full(count, link, dtype=np.int64),
        time_s=_u32(data, header_at, is_big) + fraction / per_s,
    )


def _of_pcapng(data: Bytes, name: str) -> _Packets:
    order = data[8:12].tobytes()
    if order not in (LITTLE, BIG):
        raise InputError(f"{name}: is cut or damaged at byte 8, within its header")
    is_big = order == BIG
    count, end = list_blocks(data, is_big, np.empty(0, dtype=np.int64))
    if end != len(data):
        raise InputError(f"{name} block {count + 1:,}: is cut or damaged, at byte {end:,} of {len(data):,}")
    _require_few(count, name)
    block_at = np.empty(count, dtype=np.int64)
    list_blocks(data, is_big, block_at)
    kind, length = _u32(data, block_at, is_big), _u32(data, block_at + 4, is_big)
    _require_order(data, block_at[kind == SECTION], order, name)
    if (kind == SIMPLE).any():
        block = int((kind == SIMPLE).argmax())
        raise InputError(f"{name} block {block + 1:,}: is a packet without a time; capture with times")
    is_interface = kind == INTERFACE
    links, units = _interfaces(data, block_at[is_interface], length[is_interface], is_big, name)
    is_packet = kind == ENHANCED
    header_at, length = block_at[is_packet], length[is_packet]
    number = np.flatnonzero(is_packet) + 1
    if (short := length < 32).any():
        raise InputError(f"{name} block {number[short.argmax()]:,}: is shorter than the header of a packet")
    # interfaces of a section are numbered from 0
    before_section = np.concatenate([[0], np.cumsum(is_interface)])[np.flatnonzero(kind == SECTION)]
    first = before_section[(np.cumsum(kind == SECTION) - 1)[is_packet]]
    so_far = np.cumsum(is_interface)[is_packet]
    interface = _u32(data, header_at + 8, is_big) + first
    if (unknown := interface >= so_far).any():
        block = int(unknown.argmax())
        raise InputError(
            f"{name} block {number[block]:,}: is of interface {interface[block]:,}, which is not described"
        )
    captured = _u32(data, header_at + 20, is_big)
    if (long := captured > length - 32).any():
        raise InputError(
            f"{name} block {number[long.argmax()]:,}: has a packet that is longer than the block"
        )
    high, low = _u32(data, header_at + 12, is_big), _u32(data, header_at + 16, is_big)
    return _Packets(
        packet_at=header_at + 28,
        captured=captured,
        original=_u32(data, header_at + 24, is_big),
        link=links[interface] if len(links) else np.empty(0, dtype=np.int64),
        time_s=(high * 2.0**32 + low) / units[interface] if len(links) else np.empty(0),
    )


def _require_order(data: Bytes, section_at: Ints, order: bytes, name: str) -> None:
    """Raise InputError where a section has the other order of bytes."""
    for section in section_at[:MAX_INTERFACES].tolist():
        if data[section + 8 : section + 12].tobytes() != order:
            raise InputError(f"{name}: has sections of both orders of bytes, at byte {section:,}; split it")


def _interfaces(data: Bytes, block_at: Ints, length: Ints, is_big: bool, name: str) -> tuple[Ints, Floats]:
    """Return the type of link of each interface, and its units of a second."""
    if len(block_at) > MAX_INTERFACES:
        raise InputError(f"{name}: has {len(block_at):,} interfaces, must have at most {MAX_INTERFACES:,}")
    order = "big" if is_big else "little"
    links, units = [], []
    for begin, size in zip(block_at.tolist(), length.tolist(), strict=True):
        block = data[begin : begin + size].tobytes()
        if size < 20:
            raise InputError(f"{name}: has an interface without a type of link, at byte {begin:,}")
        link = int.from_bytes(block[8:10], order)  # type: ignore[arg-type]
        _require_link(link, name)
        per_s, position = 1e6, 16
        while position + 4 <= size - 4:
            code = int.from_bytes(block[position : position + 2], order)  # type: ignore[arg-type]
            width = int.from_bytes(block[position + 2 : position + 4], order)  # type: ignore[arg-type]
            if code == 0:
                break
            if code == RESOLUTION and width >= 1 and position + 5 <= size - 4:
                exponent = block[position + 4]
                per_s = 2.0 ** (exponent & 127) if exponent & 128 else 10.0**exponent
            position += 4 + -(-width // 4) * 4
        links.append(link)
        units.append(per_s)
    return np.array(links, dtype=np.int64), np.array(units)


def _require_link(link: int, name: str) -> None:
    if link not in LINK_TYPES:
        raise InputError(
            f"{name}: has links of type {link}, must be Ethernet (1), raw IP (101) or Linux cooked (113, 276)"
        )


def _require_few(count: int, name: str) -> None:
    if count > MAX_PACKETS:
        raise InputError(
            f"{name}: has {count:,} packets, must have at most {MAX_PACKETS:,}; split the capture"
        )


def _join_packets(values: Ints, time_s: Floats, idle_s: float) -> FlowRecords:
    """Return the flows of packets: of one five-tuple, with gaps of at most `idle_s`."""
    order = np.lexsort((time_s, *values[:7]))
    values, time_s = values[:, order], time_s[order]
    begins = flow_begins(values[:7], time_s, time_s, idle_s)
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(time_s)) - 1
    unknown = np.full(len(first), UNKNOWN, dtype=np.int64)
    names = (
        "source_high",
        "source_low",
        "target_high",
        "target_low",
        "protocol",
        "source_port",
        "target_port",
    )
    return FlowRecords(
        start_s=time_s[first],
        end_s=time_s[last],
        **{name: values[row, first] for row, name in enumerate(names)},
        packets=last - first + 1,
        octets=np.add.reduceat(values[7], first),
        sampling=np.ones(len(first), dtype=np.int64),
        exporter=unknown,
        input_interface=unknown,
        output_interface=unknown,
        direction=unknown,
    )


def flow_begins(keys: Ints, start_s: Floats, end_s: Floats, idle_s: float) -> Bools:
    """Return whether each row begins a flow, of rows in the order of their keys and starts, shape (R,).

    A row goes on with the flow before it where its key is the same and it starts at most `idle_s` after
    the end.
    """
    begins = np.ones(len(start_s), dtype=bool)
    same = (keys[:, 1:] == keys[:, :-1]).all(axis=0)
    begins[1:] = ~same | (start_s[1:] - end_s[:-1] > (idle_s if math.isfinite(idle_s) else np.inf))
    return begins
