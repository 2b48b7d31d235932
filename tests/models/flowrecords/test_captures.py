"""Captures: flows equal to the packets that were written, in both formats and orders; damage is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.contract.notes import observe_notes
from planner.errors import InputError
from planner_models.flowrecords import blocks, captures, partitions, stored_records
from planner_models.flowrecords.captures import read_capture
from planner_models.flowrecords.reading import read_records
from planner_models.flowrecords.records import COLUMNS, FlowRecords, address_text, join_records
from tests.models.flowrecords.exports import FLOWS, START, Flow, ethernet, pcap, pcapng, refusal

PACKETS = [(ms, flow, octets) for flow in FLOWS[:3] for ms, octets in ((0, 100), (900, 1500), (40_000, 60))]
WRITERS = {
    "pcap": lambda packets: pcap(packets),
    "pcap big-endian": lambda packets: pcap(packets, order=">"),
    "pcap nanoseconds": lambda packets: pcap(packets, nanoseconds=True),
    "pcapng": lambda packets: pcapng(packets),
    "pcapng big-endian": lambda packets: pcapng(packets, order=">"),
}


Packet = tuple[int, Flow, int]


def read_whole(path: Path, idle_s: float = 30.0) -> FlowRecords:
    """Return the flows of a capture in one table."""
    return join_records(list(read_capture(path, idle_s=idle_s)))


def two_sections(packets: list[Packet]) -> bytes:
    """Return a capture of two sections, each with its own interface 0."""
    half = len(packets) // 2
    return pcapng(packets[:half]) + pcapng(packets[half:])


def join_by_hand(packets: list[Packet], idle_ms: int) -> set[tuple[str, str, int, int, int, int]]:
    """Return source, target, start and end in ms, packets and bytes of each flow, packet by packet."""
    flows = set()
    for flow in dict.fromkeys(flow for _, flow, _ in packets):
        of_flow = sorted((ms, octets) for ms, other, octets in packets if other == flow)
        run = [of_flow[0]]
        for packet in [*of_flow[1:], (10**12, 0)]:
            if packet[0] - run[-1][0] > idle_ms:
                octets = sum(size for _, size in run)
                flows.add((flow.source, flow.target, run[0][0], run[-1][0], len(run), octets))
                run = []
            run.append(packet)
    return flows


def list_flows(records: FlowRecords) -> list[tuple[str, str, int, int, int, int]]:
    """Return the flows of records as `join_by_hand` has them."""
    return [
        (
            address_text(records.source_high[row], records.source_low[row]),
            address_text(records.target_high[row], records.target_low[row]),
            round(1000 * float(records.start_s[row] - START.timestamp())),
            round(1000 * float(records.end_s[row] - START.timestamp())),
            int(records.packets[row]),
            int(records.octets[row]),
        )
        for row in range(len(records))
    ]


@pytest.mark.parametrize("writer", [*WRITERS, "pcapng of two sections"])
@given(st.data())
def test_flows_are_the_same_whatever_is_in_memory(
    tmp_path_factory: pytest.TempPathFactory, writer: str, data: st.DataObject
) -> None:
    """Packets come in any order; blocks end within headers, and runs of records go to a file."""
    times = st.integers(0, 200_000)
    packets = data.draw(
        st.lists(st.tuples(times, st.sampled_from(FLOWS[:3]), st.integers(60, 1500)), min_size=1, max_size=40)
    )
    path = tmp_path_factory.mktemp("capture") / "c"
    path.write_bytes({**WRITERS, "pcapng of two sections": two_sections}[writer](packets))
    expected = join_by_hand(packets, 30_000)
    whole = read_whole(path)
    assert (len(whole), set(list_flows(whole))) == (len(expected), expected)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK_BYTES", data.draw(st.integers(5, 600)))
        same = read_whole(path)
        assert all((getattr(same, name) == getattr(whole, name)).all() for name in COLUMNS)
        for module in (partitions, stored_records):
            patch.setattr(module, "PART_RECORDS", 2)
        patch.setattr(stored_records, "RUN_RECORDS", 3)
        by_parts = read_whole(path)
    assert sorted(list_flows(by_parts)) == sorted(expected)


def test_a_packet_that_never_ends_is_refused_before_all_of_it_is_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1_000)
    monkeypatch.setattr(captures, "MAX_PACKET_BYTES", 5_000)
    whole = pcap(PACKETS)
    header = np.array([1_700_000_000, 0, 2**31, 2**31], dtype="<u4").tobytes()
    path = tmp_path / "c.pcap"
    path.write_bytes(whole + header + bytes(20_000))
    with pytest.raises(InputError, match=rf"c.pcap packet 10: has over 0 MiB.* at byte {len(whole):,}"):
        read_whole(path)


@pytest.mark.parametrize("writer", WRITERS)
def test_flows_are_those_of_the_packets(tmp_path: Path, writer: str) -> None:
    path = tmp_path / "capture"
    path.write_bytes(WRITERS[writer](PACKETS))
    records, files = read_records([path])
    assert files[0].form == "capture of packets"
    found = {
        (
            address_text(records.source_high[row], records.source_low[row]),
            address_text(records.target_high[row], records.target_low[row]),
            round(float(records.start_s[row] - START.timestamp()), 3),
            round(float(records.end_s[row] - START.timestamp()), 3),
            int(records.packets[row]),
            int(records.octets[row]),
        )
        for row in range(len(records))
    }
    # the gap of 39 s is longer than 30 s
    expected = set()
    for flow in FLOWS[:3]:
        expected |= {
            (flow.source, flow.target, 0.0, 0.9, 2, 1600),
            (flow.source, flow.target, 40.0, 40.0, 1, 60),
        }
    assert found == expected
    assert set(records.source_port.tolist()) == {40_000}
    assert set(records.target_port.tolist()) == {443}
    assert set(records.protocol.tolist()) == {6}
    joined = read_whole(path, idle_s=60.0)
    assert joined.octets.tolist() == [1660] * 3


@given(
    st.lists(
        st.tuples(st.integers(0, 100_000), st.integers(0, 4), st.integers(60, 9000)), min_size=1, max_size=30
    )
)
def test_no_byte_and_no_packet_is_lost(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[int, int, int]]
) -> None:
    packets = [(ms, FLOWS[row], octets) for ms, row, octets in drawn]
    path = tmp_path_factory.mktemp("capture") / "c.pcap"
    path.write_bytes(pcap(packets))
    records = read_whole(path)
    assert records.octets.sum() == sum(octets for _, _, octets in packets)
    assert records.packets.sum() == len(packets)


@pytest.mark.parametrize("writer", WRITERS)
@given(st.data())
def test_damage_is_read_or_refused_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, writer: str, data: st.DataObject
) -> None:
    content = bytearray(WRITERS[writer](PACKETS))
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(content) - 1))
        if data.draw(st.booleans()):
            content[position] = data.draw(st.integers(0, 255))
        else:
            del content[position : position + data.draw(st.integers(1, 40))]
    path = tmp_path_factory.mktemp("damaged") / "c.pcap"
    path.write_bytes(bytes(content))
    message = refusal(lambda: read_records([path]))
    assert len(message) < 900
    assert "\n" not in message


def test_a_cut_capture_names_where(tmp_path: Path) -> None:
    path = tmp_path / "c.pcap"
    whole = pcap(PACKETS)
    path.write_bytes(whole[:-7])
    with pytest.raises(
        InputError, match=rf"c.pcap packet 9: is cut, at byte {len(whole) - 90:,} of {len(whole) - 7:,}"
    ):
        read_whole(path)
    path.write_bytes(pcapng(PACKETS)[:-7])
    with pytest.raises(InputError, match=r"c.pcap block 11: is cut or damaged, at byte "):
        read_whole(path)
    path.write_bytes(whole[:20])
    with pytest.raises(InputError, match=r"c.pcap: is cut at byte 20, within its header"):
        read_whole(path)


def test_packets_that_are_cut_by_snap_length(tmp_path: Path) -> None:
    frame = ethernet(FLOWS[0], 1000)
    path = tmp_path / "c.pcap"
    head = pcap([])
    for length, message in ((30, "within its addresses"), (36, "before their ports")):
        header = np.array([1_700_000_000, 0, length, 1014], dtype="<u4").tobytes()
        path.write_bytes(head + header + frame[:length])
        notes: list[str] = []
        with observe_notes(notes.append):
            if length == 30:
                with pytest.raises(InputError, match=rf"c.pcap packet 1: is cut after 30 bytes, {message}"):
                    read_whole(path)
            else:
                assert read_whole(path).octets.tolist() == [1000]
                assert message in notes[0]


def test_frames_with_tags_are_read_and_others_counted(tmp_path: Path) -> None:
    frame = ethernet(replace(FLOWS[0], source_port=7), 60)
    tagged = frame[:12] + bytes.fromhex("88a8000181000002") + frame[12:]
    arp = bytes(12) + bytes.fromhex("0806") + bytes(28)
    content = pcap([])
    for data in (tagged, arp):
        content += np.array([1_700_000_000, 0, len(data), 100], dtype="<u4").tobytes() + data
    path = tmp_path / "c.pcap"
    path.write_bytes(content)
    notes: list[str] = []
    with observe_notes(notes.append):
        records = read_whole(path)
    assert (records.source_port.tolist(), records.octets.tolist()) == ([7], [60])
    assert notes == ["assumed: c.pcap: 1 of 2 packets are not IP, and left out"]
