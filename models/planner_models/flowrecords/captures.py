"""Flow records of captures: packets of pcap and pcapng files, joined by their five-tuples.

A capture is read in blocks of bytes. The packets of a block are joined to flows at once, and these by parts
at the end, so that memory does not grow with the capture, nor with the packets of one flow.

Sources: the formats pcap and pcapng as the IETF's working group OPSAWG describes them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
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
from planner_models.flowrecords.partitions import number_flows
from planner_models.flowrecords.records import FLOW_KEY, UNKNOWN, FlowRecords
from planner_models.flowrecords.stored_records import MAX_RECORDS, StoredRecords, require_few

MAX_PACKET_BYTES: Final = 1 << 26
MAX_INTERFACES: Final = 65_536
PCAP: Final[Mapping[bytes, tuple[bool, int]]] = {
    b"\xd4\xc3\xb2\xa1": (False, 10**6),
    b"\xa1\xb2\xc3\xd4": (True, 10**6),
    b"\x4d\x3c\xb2\xa1": (False, 10**9),
    b"\xa1\xb2\x3c\x4d": (True, 10**9),
}
"""Whether integers are big-endian, and the units of a second, by the first bytes of a pcap file."""
PCAPNG: Final = b"\x0a\x0d\x0d\x0a"
PCAP_HEADER: Final = 24
SECTION, INTERFACE, SIMPLE, ENHANCED = 0x0A0D0D0A, 1, 3, 6
RESOLUTION: Final = 9
LITTLE, BIG = b"\x4d\x3c\x2b\x1a", b"\x1a\x2b\x3c\x4d"


@dataclass(frozen=True, kw_only=True, eq=False)
class _Packets:
    """Packets in some bytes of a capture: begin, bytes in the capture and on the wire, type of link, time."""

    data: Bytes
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


def read_capture(path: Path, *, idle_s: float = 30.0) -> Iterator[FlowRecords]:
    """Yield the flows of a capture in blocks: packets of one five-tuple, with gaps of at most `idle_s`.

    Bytes are those of IP packets. Packets that are no IP packets are left out, which a note says.

    raises  InputError for a file that is cut or damaged, or that has no IP packet
    """
    count, others, without_ports = 0, 0, 0
    with StoredRecords() as stored:
        for packets in _list_packets(path):
            values = np.zeros((8, len(packets)), dtype=np.int64)
            state = np.empty(len(packets), dtype=np.int64)
            read_headers(
                packets.data,
                packets.packet_at,
                packets.captured,
                packets.original,
                packets.link,
                values,
                state,
            )
            if (cut := state == CUT).any():
                packet = int(cut.argmax())
                raise InputError(
                    f"{path.name} packet {count + packet + 1:,}: is cut after {packets.captured[packet]:,} "
                    "bytes, within its addresses; capture with a larger snap length"
                )
            count += len(packets)
            others += int((state == NO_IP).sum())
            without_ports += int((state == NO_PORTS).sum())
            is_read = (state == READ) | (state == NO_PORTS)
            if is_read.any():
                flows = join_flows(_records_of(values[:, is_read], packets.time_s[is_read]), idle_s)
                require_few(len(stored) + len(flows), MAX_RECORDS, path.name)
                stored.add(flows)
        if not len(stored):
            raise InputError(f"{path.name}: has no IP packet")
        if others:
            add_note(f"assumed: {path.name}: {others:,} of {count:,} packets are not IP, and left out")
        if without_ports:
            add_note(
                f"warning: {path.name}: {without_ports:,} packets are cut before their ports, so that flows "
                "between two hosts are joined; capture with a larger snap length"
            )
        for stored_flows in stored.parts():
            flows = join_flows(stored_flows, idle_s)
            keys = (getattr(flows, name) for name in FLOW_KEY)
            yield flows.select(np.lexsort((flows.start_s, *keys)))


def _list_packets(path: Path) -> Iterator[_Packets]:
    """Yield the packets of a capture, block by block; raise InputError where it is cut or damaged."""
    file: _PcapFile | _PcapngFile | None = None
    begin, total = b"", 0
    for block in read_blocks(path):
        total += len(block)
        if file is None:
            begin += block
            if len(begin) < PCAP_HEADER:
                continue
            block = begin
            file = _PcapngFile(path.name) if begin[:4] == PCAPNG else _PcapFile(path.name, begin)
        yield file.read(np.frombuffer(block, dtype=np.uint8))
        if len(file.remaining) > MAX_PACKET_BYTES:
            raise InputError(
                f"{file.describe_next()}: has over {MAX_PACKET_BYTES >> 20} MiB, or the capture is damaged "
                f"at byte {file.position:,}"
            )
    if file is None:
        raise InputError(f"{path.name}: is cut at byte {total:,}, within its header")
    if len(file.remaining):
        raise InputError(f"{file.describe_next()}: is {file.damage}, at byte {file.position:,} of {total:,}")


class _PcapFile:
    """A pcap file that is read in blocks of bytes.

    remaining  bytes after the last whole packet
    position   where they begin in the file
    """

    damage = "cut"

    def __init__(self, name: str, header: bytes) -> None:
        self.name = name
        self.is_big, self.per_s = PCAP[header[:4]]
        self.link = int.from_bytes(header[20:24], "big" if self.is_big else "little") & 0xFFFF
        _require_link(self.link, name)
        self.remaining: Bytes = np.empty(0, dtype=np.uint8)
        self.position, self.count = 0, 0

    def describe_next(self) -> str:
        """Return the name of the first packet that is not read, for messages."""
        return f"{self.name} packet {self.count + 1:,}"

    def read(self, block: Bytes) -> _Packets:
        """Return the packets that end in the next block of the file."""
        data = np.concatenate([self.remaining, block])
        begin = 0 if self.position else PCAP_HEADER
        count, end = list_packets(data, begin, self.is_big, np.empty(0, dtype=np.int64))
        header_at = np.empty(count, dtype=np.int64)
        list_packets(data, begin, self.is_big, header_at)
        fraction = _u32(data, header_at + 4, self.is_big)
        if (wrong := fraction >= self.per_s).any():
            raise InputError(
                f"{self.name} packet {self.count + int(wrong.argmax()) + 1:,}: has a time of over a second's "
                "fraction"
            )
        self.remaining, self.position, self.count = data[end:], self.position + end, self.count + count
        return _Packets(
            data=data,
            packet_at=header_at + 16,
            captured=_u32(data, header_at + 8, self.is_big),
            original=_u32(data, header_at + 12, self.is_big),
            link=np.full(count, self.link, dtype=np.int64),
            time_s=_u32(data, header_at, self.is_big) + fraction / self.per_s,
        )


class _PcapngFile:
    """A pcapng file that is read in blocks of bytes, which have blocks of the format.

    remaining    bytes after the last whole block
    position     where they begin in the file
    links, units  type of link and units of a second of each interface so far
    first        interfaces before the present section, in which they are numbered from 0
    """

    damage = "cut or damaged"

    def __init__(self, name: str) -> None:
        self.name = name
        self.order = b""
        self.remaining: Bytes = np.empty(0, dtype=np.uint8)
        self.position, self.count, self.first = 0, 0, 0
        self.links, self.units = np.empty(0, dtype=np.int64), np.empty(0)

    def describe_next(self) -> str:
        """Return the name of the first block that is not read, for messages."""
        return f"{self.name} block {self.count + 1:,}"

    @property
    def is_big(self) -> bool:
        """True for integers with the largest byte first."""
        return self.order == BIG

    def read(self, block: Bytes) -> _Packets:
        """Return the packets that end in the next block of bytes of the file."""
        data = np.concatenate([self.remaining, block])
        if not self.order:
            self.order = data[8:12].tobytes()
            if self.order not in (LITTLE, BIG):
                raise InputError(f"{self.name}: is cut or damaged at byte 8, within its header")
        count, end = list_blocks(data, self.is_big, np.empty(0, dtype=np.int64))
        block_at = np.empty(count, dtype=np.int64)
        list_blocks(data, self.is_big, block_at)
        packets = self._read_blocks(data, block_at)
        self.remaining, self.position, self.count = data[end:], self.position + end, self.count + count
        return packets

    def _read_blocks(self, data: Bytes, block_at: Ints) -> _Packets:
        """Return the packets of whole blocks, and note their sections and interfaces."""
        kind, length = _u32(data, block_at, self.is_big), _u32(data, block_at + 4, self.is_big)
        is_section, is_interface, is_packet = kind == SECTION, kind == INTERFACE, kind == ENHANCED
        self._require_order(data, block_at[is_section])
        if (kind == SIMPLE).any():
            raise self._refuse(kind == SIMPLE, "is a packet without a time; capture with times")
        header_at, length_of = block_at[is_packet], length[is_packet]
        if (is_packet & (length < 32)).any():
            raise self._refuse(is_packet & (length < 32), "is shorter than the header of a packet")
        so_far = len(self.links) + np.cumsum(is_interface)
        self._add_interfaces(data, block_at[is_interface], length[is_interface])
        first = np.concatenate([[self.first], so_far[is_section]])  # before each section
        self.first = int(first[-1])
        interface = _u32(data, header_at + 8, self.is_big) + first[np.cumsum(is_section)[is_packet]]
        if (unknown := interface >= so_far[is_packet]).any():
            packet = int(unknown.argmax())
            raise self._refuse(
                np.flatnonzero(is_packet)[unknown],
                f"is of interface {interface[packet]:,}, which is not described",
            )
        captured = _u32(data, header_at + 20, self.is_big)
        if (long := captured > length_of - 32).any():
            raise self._refuse(np.flatnonzero(is_packet)[long], "has a packet that is longer than the block")
        high, low = (_u32(data, header_at + offset, self.is_big) for offset in (12, 16))
        has_any = len(self.links) > 0
        return _Packets(
            data=data,
            packet_at=header_at + 28,
            captured=captured,
            original=_u32(data, header_at + 24, self.is_big),
            link=self.links[interface] if has_any else np.empty(0, dtype=np.int64),
            time_s=(high * 2.0**32 + low) / self.units[interface] if has_any else np.empty(0),
        )

    def _refuse(self, blocks: Bools | Ints, rule: str) -> InputError:
        """Return the error for the first of some blocks, (B,) flags or rows of the blocks that are read."""
        row = int(blocks.argmax()) if blocks.dtype == np.bool_ else int(blocks[0])
        return InputError(f"{self.name} block {self.count + row + 1:,}: {rule}")

    def _require_order(self, data: Bytes, section_at: Ints) -> None:
        """Raise InputError where a section has the other order of bytes."""
        for section in section_at.tolist():
            if data[section + 8 : section + 12].tobytes() != self.order:
                raise InputError(
                    f"{self.name}: has sections of both orders of bytes, at byte "
                    f"{self.position + section:,}; split it"
                )

    def _add_interfaces(self, data: Bytes, block_at: Ints, length: Ints) -> None:
        """Note the type of link of each interface, and its units of a second."""
        if len(self.links) + len(block_at) > MAX_INTERFACES:
            raise InputError(f"{self.name}: has over {MAX_INTERFACES:,} interfaces")
        links, units = [], []
        for begin, size in zip(block_at.tolist(), length.tolist(), strict=True):
            if size < 20:
                position = self.position + begin
                raise InputError(
                    f"{self.name}: has an interface without a type of link, at byte {position:,}"
                )
            link, per_s = self._read_interface(data[begin : begin + size].tobytes())
            _require_link(link, self.name)
            links.append(link)
            units.append(per_s)
        self.links = np.concatenate([self.links, np.array(links, dtype=np.int64)])
        self.units = np.concatenate([self.units, np.array(units, dtype=float)])

    def _read_interface(self, block: bytes) -> tuple[int, float]:
        """Return the type of link of an interface, and its units of a second."""
        order = "big" if self.is_big else "little"
        per_s, position = 1e6, 16
        while position + 4 <= len(block) - 4:
            code = int.from_bytes(block[position : position + 2], order)  # type: ignore[arg-type]
            width = int.from_bytes(block[position + 2 : position + 4], order)  # type: ignore[arg-type]
            if code == 0:
                break
            if code == RESOLUTION and width >= 1 and position + 5 <= len(block) - 4:
                exponent = block[position + 4]
                per_s = 2.0 ** (exponent & 127) if exponent & 128 else 10.0**exponent
            position += 4 + -(-width // 4) * 4
        return int.from_bytes(block[8:10], order), per_s  # type: ignore[arg-type]


def _u32(data: Bytes, position: Ints, is_big: bool) -> Ints:
    """Return the 32-bit integers at positions."""
    value = np.zeros(len(position), dtype=np.int64)
    for offset in range(4) if is_big else range(3, -1, -1):
        value = (value << 8) | data[position + offset]
    return value


def _require_link(link: int, name: str) -> None:
    if link not in LINK_TYPES:
        raise InputError(
            f"{name}: has links of type {link}, must be Ethernet (1), raw IP (101) or Linux cooked (113, 276)"
        )


def _records_of(values: Ints, time_s: Floats) -> FlowRecords:
    """Return a record of each packet, of `values` (8, P) as `read_headers` writes them."""
    unknown = np.full(len(time_s), UNKNOWN, dtype=np.int64)
    single = np.ones(len(time_s), dtype=np.int64)
    return FlowRecords(
        start_s=time_s,
        end_s=time_s,
        **dict(zip(FLOW_KEY, values[:7], strict=True)),
        packets=single,
        octets=values[7],
        sampling=single,
        exporter=unknown,
        input_interface=unknown,
        output_interface=unknown,
        direction=unknown,
    )


def join_flows(records: FlowRecords, idle_s: float) -> FlowRecords:
    """Return records joined to flows: of one five-tuple, with gaps of at most `idle_s`; in no order.

    Records that are joined flows themselves give the flows of their packets, whatever times overlap.
    """
    flow = number_flows(records)
    order = np.argsort(flow, kind="stable")
    start_s = records.start_s[order]
    if ((start_s[1:] < start_s[:-1]) & (flow[order[1:]] == flow[order[:-1]])).any():
        order = np.lexsort((records.start_s, flow))  # packets are seldom out of order, and this takes longer
        start_s = records.start_s[order]
    flow, end_s = flow[order], records.end_s[order]
    begins = flow_begins(flow[None, :], start_s, _latest_ends(flow, end_s), idle_s)
    first = np.flatnonzero(begins)
    return replace(
        records.select(order[first]),
        end_s=np.maximum.reduceat(end_s, first),
        packets=np.add.reduceat(records.packets[order], first),
        octets=np.add.reduceat(records.octets[order], first),
    )


def _latest_ends(flow: Ints, end_s: Floats) -> Floats:
    """Return the latest end of each record and those before it of its flow, records by flow and start."""
    if ((flow[1:] != flow[:-1]) | (end_s[1:] >= end_s[:-1])).all():
        return end_s
    by_end = np.argsort(end_s, kind="stable")
    rank = np.empty(len(end_s), dtype=np.int64)
    rank[by_end] = np.arange(len(end_s))
    # with an offset, ranks of a flow are above those of all flows before it
    latest = np.maximum.accumulate(rank + flow * len(end_s)) - flow * len(end_s)
    return np.asarray(end_s[by_end][latest], dtype=float)


def flow_begins(keys: Ints, start_s: Floats, end_s: Floats, idle_s: float) -> Bools:
    """Return whether each row begins a flow, of rows in the order of their keys and starts, shape (R,).

    A row goes on with the flow before it where its key is the same and it starts at most `idle_s` after
    the end.
    """
    begins = np.ones(len(start_s), dtype=bool)
    same = (keys[:, 1:] == keys[:, :-1]).all(axis=0)
    begins[1:] = ~same | (start_s[1:] - end_s[:-1] > (idle_s if math.isfinite(idle_s) else np.inf))
    return begins
