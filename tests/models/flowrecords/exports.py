"""Traffic as the exports of each tool, and sums of it by code that shares nothing with the readers."""

from __future__ import annotations

import csv
import datetime
import io
import ipaddress
import json
import struct
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from planner.errors import InputError

START: Final = datetime.datetime(2026, 3, 2, 8, 0, tzinfo=datetime.UTC)


@dataclass(frozen=True, kw_only=True)
class Flow:
    """A record: milliseconds from START, addresses, ports, counts and its exporter."""

    start_ms: int
    end_ms: int
    source: str
    target: str
    source_port: int = 40_000
    target_port: int = 443
    packets: int = 10
    octets: int = 9_000
    exporter: str = "192.0.2.1"


FLOWS: Final = (
    Flow(start_ms=0, end_ms=10_000, source="10.1.0.1", target="10.2.0.1"),
    Flow(
        start_ms=500, end_ms=600_250, source="10.2.0.9", target="10.1.7.1", octets=80_000_000, packets=70_000
    ),
    Flow(
        start_ms=1_000, end_ms=1_000, source="2001:db8:1::1", target="2001:db8:2::1", octets=1_500, packets=1
    ),
    Flow(start_ms=310_000, end_ms=320_500, source="10.1.0.1", target="10.1.0.2", octets=123_456, packets=99),
    Flow(
        start_ms=899_000,
        end_ms=900_000,
        source="10.2.0.1",
        target="10.3.0.1",
        octets=7_000_000,
        packets=5_000,
    ),
)
PREFIXES: Final = {
    "10.1.0.0/16": "a",
    "10.2.0.0/16": "b",
    "10.2.0.8/29": "c",
    "10.3.0.0/16": "c",
    "2001:db8:1::/48": "a",
    "2001:db8:2::/48": "b",
}


def _text(ms: int, separator: str = " ") -> str:
    stamp = START + datetime.timedelta(milliseconds=ms)
    return stamp.strftime(f"%Y-%m-%d{separator}%H:%M:%S.") + f"{ms % 1000:03d}"


def _epoch_ms(ms: int) -> int:
    return int(START.timestamp()) * 1000 + ms


def _table(names: Sequence[str], rows: Sequence[Sequence[object]]) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows([names, *rows])
    return out.getvalue().encode()


def nfdump_old(flows: Sequence[Flow] = FLOWS) -> bytes:
    names = [
        "ts",
        "te",
        "td",
        "sa",
        "da",
        "sp",
        "dp",
        "pr",
        "flg",
        "fwd",
        "stos",
        "ipkt",
        "ibyt",
        "opkt",
        "obyt",
        "in",
        "out",
        "ra",
    ]
    rows = [
        [
            _text(flow.start_ms), _text(flow.end_ms), (flow.end_ms - flow.start_ms) / 1000, flow.source,
            flow.target, flow.source_port, flow.target_port, "TCP", ".AP...", 0, 0, flow.packets, flow.octets,
            0, 0, 1, 2, flow.exporter,
        ]
        for flow in flows
    ]  # fmt: skip
    summary = "Summary\nflows,bytes,packets,avg_bps,avg_pps,avg_bpp\n5,100,10,1,1,1\n"
    return _table(names, rows) + summary.encode()


def nfdump_new(flows: Sequence[Flow] = FLOWS) -> bytes:
    names = [
        "firstSeen",
        "duration",
        "proto",
        "srcAddr",
        "srcPort",
        "dstAddr",
        "dstPort",
        "packets",
        "bytes",
        "bps",
        "bpp",
        "flows",
    ]
    rows = [
        [
            _text(flow.start_ms), f"{(flow.end_ms - flow.start_ms) / 1000:.3f}", 6, flow.source,
            flow.source_port, flow.target, flow.target_port, flow.packets, flow.octets, 0, 0, 1,
        ]
        for flow in flows
    ]  # fmt: skip
    return _table(names, rows)


def nfdump_json(flows: Sequence[Flow] = FLOWS) -> bytes:
    records = []
    for flow in flows:
        version = 6 if ":" in flow.source else 4
        records.append(
            {
                "type": "FLOW", "sampled": 0, "t_first": _text(flow.start_ms, "T"),
                "t_last": _text(flow.end_ms, "T"), "proto": 6, f"src{version}_addr": flow.source,
                f"dst{version}_addr": flow.target, "src_port": flow.source_port, "dst_port": flow.target_port,
                "in_packets": flow.packets, "in_bytes": flow.octets, "ip4_router": flow.exporter,
                "label": "a \"quoted\" {text}, [with] \\ all",
            }
        )  # fmt: skip
    return json.dumps(records, indent=1).encode()


def goflow(flows: Sequence[Flow] = FLOWS) -> bytes:
    lines = [
        json.dumps(
            {
                "type": "NETFLOW_V9", "time_received_ns": _epoch_ms(flow.end_ms) * 10**6, "sequence_num": 7,
                "sampling_rate": 1, "sampler_address": flow.exporter,
                "time_flow_start_ns": _epoch_ms(flow.start_ms) * 10**6,
                "time_flow_end_ns": _epoch_ms(flow.end_ms) * 10**6, "bytes": flow.octets,
                "packets": flow.packets, "src_addr": flow.source, "dst_addr": flow.target, "proto": "TCP",
                "src_port": flow.source_port, "dst_port": flow.target_port, "as_path": [1, {"x": "}"}],
            }
        )
        for flow in flows
    ]  # fmt: skip
    return "\n".join(lines).encode()


def pmacct_json(flows: Sequence[Flow] = FLOWS) -> bytes:
    lines = [
        json.dumps(
            {
                "event_type": "purge", "peer_ip_src": flow.exporter, "ip_src": flow.source,
                "ip_dst": flow.target, "port_src": flow.source_port, "port_dst": flow.target_port,
                "ip_proto": "tcp", "timestamp_start": _text(flow.start_ms) + "000",
                "timestamp_end": _text(flow.end_ms) + "000", "packets": flow.packets, "bytes": flow.octets,
            }
        )
        for flow in flows
    ]  # fmt: skip
    return ("\n".join(lines) + "\n").encode()


def pmacct_csv(flows: Sequence[Flow] = FLOWS) -> bytes:
    names = "SRC_IP DST_IP SRC_PORT DST_PORT PROTOCOL PEER_SRC_IP TIMESTAMP_START TIMESTAMP_END PACKETS BYTES"
    rows = [
        [
            flow.source, flow.target, flow.source_port, flow.target_port, "tcp", flow.exporter,
            f"{_epoch_ms(flow.start_ms) // 1000}.{flow.start_ms % 1000:03d}000",
            f"{_epoch_ms(flow.end_ms) // 1000}.{flow.end_ms % 1000:03d}000", flow.packets, flow.octets,
        ]
        for flow in flows
    ]  # fmt: skip
    return _table(names.split(), rows)


WRITERS: Final[Mapping[str, tuple[str, Callable[[Sequence[Flow]], bytes]]]] = {
    "nfdump CSV before 1.7.5": ("old.csv", nfdump_old),
    "nfdump CSV since 1.7.5": ("new.csv", nfdump_new),
    "nfdump JSON": ("nfdump.json", nfdump_json),
    "goflow2 JSON": ("goflow.json", goflow),
    "pmacct JSON": ("pmacct.json", pmacct_json),
    "pmacct CSV": ("pmacct.csv", pmacct_csv),
}


def refusal(work: Callable[[], object]) -> str:
    """Return the error with which input is refused; "" where it is read."""
    try:
        work()
    except InputError as error:
        return str(error)
    return ""


def find_node(address: str, prefixes: Mapping[str, str] = PREFIXES) -> str | None:
    """Return the node of the longest prefix of an address, by trying all prefixes."""
    matches = [
        (network.prefixlen, node)
        for network, node in ((ipaddress.ip_network(text), node) for text, node in prefixes.items())
        if ipaddress.ip_address(address) in network
    ]
    return max(matches)[1] if matches else None


def sum_by_pair(
    flows: Sequence[Flow], bucket_ms: int, prefixes: Mapping[str, str] = PREFIXES
) -> dict[tuple[str, str, int], float]:
    """Return the bytes of each pair of nodes and bucket since START, spread evenly over each record."""
    sums: dict[tuple[str, str, int], float] = defaultdict(float)
    for flow in flows:
        source, target = find_node(flow.source, prefixes), find_node(flow.target, prefixes)
        if source is None or target is None or source == target:
            continue
        duration = flow.end_ms - flow.start_ms
        bucket = flow.start_ms // bucket_ms
        while True:
            low, high = bucket * bucket_ms, (bucket + 1) * bucket_ms
            inside = min(high, flow.end_ms) - max(low, flow.start_ms)
            if duration == 0 or inside > 0:
                sums[source, target, bucket] += flow.octets * (inside / duration if duration else 1.0)
            bucket += 1
            if bucket * bucket_ms >= flow.end_ms:
                break
    return dict(sums)


def ethernet(flow: Flow, octets: int) -> bytes:
    """Return the frame of a TCP packet with that many bytes of IP, without what is in it."""
    source, target = ipaddress.ip_address(flow.source), ipaddress.ip_address(flow.target)
    ports = struct.pack(">HHIIHHHH", flow.source_port, flow.target_port, 0, 0, 0x5010, 0, 0, 0)
    if source.version == 4:
        ip = struct.pack(">BBHHHBBH", 0x45, 0, octets, 0, 0, 64, 6, 0) + source.packed + target.packed
        kind = 0x0800
    else:
        ip = struct.pack(">IHBB", 6 << 28, octets - 40, 6, 64) + source.packed + target.packed
        kind = 0x86DD
    return bytes(12) + struct.pack(">H", kind) + ip + ports


def pcap(packets: Sequence[tuple[int, Flow, int]], *, order: str = "<", nanoseconds: bool = False) -> bytes:
    """Return a capture of packets: ms from START, flow, and bytes of the IP packet."""
    magic = 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
    out = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 65_535, 1)
    for ms, flow, octets in packets:
        frame = ethernet(flow, octets)
        time_ms = _epoch_ms(ms)
        fraction = time_ms % 1000 * (10**6 if nanoseconds else 10**3)
        out += struct.pack(order + "IIII", time_ms // 1000, fraction, len(frame), octets + 14) + frame
    return out


def _block(order: str, kind: int, body: bytes) -> bytes:
    length = 12 + len(body)
    return struct.pack(order + "II", kind, length) + body + struct.pack(order + "I", length)


def pcapng(packets: Sequence[tuple[int, Flow, int]], *, order: str = "<") -> bytes:
    """Return the same capture as pcapng, in nanoseconds."""
    section = struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1)
    resolution = struct.pack(order + "HHB3xHH", 9, 1, 9, 0, 0)
    out = _block(order, 0x0A0D0D0A, section)
    out += _block(order, 1, struct.pack(order + "HHI", 1, 0, 65_535) + resolution)
    for ms, flow, octets in packets:
        frame = ethernet(flow, octets)
        time_ns = _epoch_ms(ms) * 10**6
        padding = bytes(-len(frame) % 4)
        head = struct.pack(order + "IIIII", 0, time_ns >> 32, time_ns & 0xFFFFFFFF, len(frame), octets + 14)
        out += _block(order, 6, head + frame + padding)
    return out
