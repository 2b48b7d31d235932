"""Records of text: bad cells by row and rule, damage refused in one line, and cells of all forms."""

from __future__ import annotations

import ipaddress
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.contract.notes import observe_notes
from planner.errors import InputError
from planner_models.flowrecords import text_records
from planner_models.flowrecords.reading import read_records
from planner_models.flowrecords.records import FlowRecords, address_text
from tests.models.flowrecords.exports import FLOWS, WRITERS, goflow, nfdump_new, nfdump_old, refusal
from tests.test_growth import FACTOR, MOST_RATIO, count_calls

ROW = "2026-03-02 08:00:00.000,1.000,TCP,10.0.0.1,443,10.0.0.2,80,10,1500"
NAMES = "firstSeen,duration,proto,srcAddr,srcPort,dstAddr,dstPort,packets,bytes"


def read(folder: Path, content: bytes | str, name: str = "f.csv", **settings: object) -> FlowRecords:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_records([path], **settings)[0]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("bytes", "2.3 M", "bytes is '2.3 M', must be an integer from 0 to 1,000,000,000,000,000; "),
        ("bytes", "", "bytes is missing, must be an integer"),
        ("bytes", "0", "bytes is '0', which does not fit 10 packets"),
        ("bytes", "9" * 19, f"bytes is '{'9' * 19}', must be an integer from 0 to 1,000,000,000,000,000"),
        ("packets", "-1", "packets is '-1', must be an integer from 0 to"),
        ("duration", "-1.0", "duration is '-1.0', must be a number of seconds, at least 0"),
        ("firstSeen", "2026-02-30 08:00:00", "firstSeen is '2026-02-30 08:00:00', must be a time, such as"),
        ("firstSeen", "", "firstSeen is missing, must be a time"),
        ("srcAddr", "10.0.0.256", "srcAddr is '10.0.0.256', must be an IPv4 or IPv6 address"),
        ("dstAddr", "2001:db8::1::2", "dstAddr is '2001:db8::1::2', must be an IPv4 or IPv6 address"),
        ("srcPort", "70000", "srcPort is '70000', must be an integer from 0 to 65,535"),
    ],
)  # fmt: skip
def test_a_bad_cell_is_named(tmp_path: Path, column: str, value: str, message: str) -> None:
    cells = ROW.split(",")
    cells[NAMES.split(",").index(column)] = value
    with pytest.raises(InputError) as error:
        read(tmp_path, "\n".join([NAMES, ROW, ",".join(cells)]) + "\n")
    assert str(error.value).startswith(f"f.csv row 3: {message}")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "f.csv: is empty"),
        (NAMES + "\n", "f.csv: has no flow record"),
        (
            "a,b\n1,2\n",
            "f.csv row 1: has the columns a, b, which are of no flow records; expected nfdump CSV",
        ),
        (f"{NAMES}\n{ROW}\n{ROW[:40]}", "f.csv row 3: has 4 fields, the header has 9; is the file whole?"),
        (f"{NAMES}\n{ROW},7\n", "f.csv row 2: has 10 fields, the header has 9"),
        ("{", "f.csv row 1: is no JSON"),
        ('{"a": 1}', "f.csv row 1: has the keys a, which are of no flow records; expected nfdump JSON"),
        (goflow()[:-20], "f.csv row 5: is cut, at byte "),
        (goflow() + b"x", "f.csv row 6: is no JSON, at byte "),
        (b"\x1f\x8b\x08\x00broken", "f.csv: cannot be read ("),
        (b"\x28\xb5\x2f\xfdbroken", "f.csv: cannot be read ("),
        (b"a\0b", "f.csv: is no text and no capture (pcap, pcapng)"),
        ('"' + "a" * (2 << 20), "f.csv: has a line of over 1,048,576 bytes"),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path: Path, content: bytes | str, message: str) -> None:
    with pytest.raises(InputError) as error:
        read(tmp_path, content)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("writer", WRITERS)
@given(st.data())
def test_damage_is_read_or_refused_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, writer: str, data: st.DataObject
) -> None:
    name, write = WRITERS[writer]
    content = bytearray(write(FLOWS))
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(content) - 1))
        if data.draw(st.booleans()):
            content[position] = data.draw(st.integers(0, 255))
        else:
            del content[position : position + data.draw(st.integers(1, 50))]
    message = refusal(lambda: read(tmp_path_factory.mktemp("damaged"), bytes(content), name))
    assert len(message) < 900
    assert "\n" not in message


def test_blocks_and_chunks_make_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from planner_models.flowrecords import blocks

    for name, content in (("f.csv", nfdump_old(FLOWS * 5)), ("f.json", goflow(FLOWS * 5))):
        whole = read(tmp_path, content, name)
        for block, rows in ((700, 2), (1009, 3)):
            monkeypatch.setattr(blocks, "BLOCK_BYTES", block)
            monkeypatch.setattr(text_records, "ROWS", rows)
            split = read(tmp_path, content, name)
            assert len(split) == len(whole) == 25
            assert (split.octets == whole.octets).all()
            assert (split.start_s == whole.start_s).all()
            assert (split.target_low == whole.target_low).all()
        monkeypatch.undo()


@given(st.ip_addresses())
def test_addresses_are_read_as_ipaddress_reads_them(
    tmp_path_factory: pytest.TempPathFactory, address: ipaddress.IPv4Address | ipaddress.IPv6Address
) -> None:
    texts = {str(address), address.exploded, address.exploded.upper()}
    if isinstance(address, ipaddress.IPv4Address):
        texts |= {f"::ffff:{address}"}
    cells = [ROW.replace("10.0.0.1", text) for text in sorted(texts)]
    records = read(tmp_path_factory.mktemp("addresses"), "\n".join([NAMES, *cells]))
    plain = address.ipv4_mapped or address if isinstance(address, ipaddress.IPv6Address) else address
    for high, low in zip(records.source_high, records.source_low, strict=True):
        assert address_text(high, low) == str(plain)


@given(st.datetimes(min_value=__import__("datetime").datetime(1990, 1, 1)), st.integers(-14 * 60, 14 * 60))
def test_times_are_read_as_numpy_reads_them(
    tmp_path_factory: pytest.TempPathFactory, moment: object, offset: int
) -> None:
    text = str(moment.isoformat(sep=" ", timespec="milliseconds"))  # type: ignore[attr-defined]
    zone = f"{'+' if offset >= 0 else '-'}{abs(offset) // 60:02d}:{abs(offset) % 60:02d}"
    folder = tmp_path_factory.mktemp("times")
    expected = float(np.datetime64(text, "ms").astype(np.int64)) / 1000
    for written, shift in ((text, 0), (text.replace(" ", "T") + zone, offset * 60)):
        records = read(folder, "\n".join([NAMES, ROW.replace("2026-03-02 08:00:00.000", written)]))
        assert records.start_s[0] == pytest.approx(expected - shift, abs=1e-5)


def test_a_local_time_is_of_the_zone_that_is_set(tmp_path: Path) -> None:
    notes: list[str] = []
    with observe_notes(notes.append):
        utc = read(tmp_path, nfdump_new())
    assert notes == ["assumed: f.csv: times without a zone are read as UTC; else set time_zone"]
    berlin = read(tmp_path, nfdump_new(), time_zone="Europe/Berlin")
    assert (utc.start_s - berlin.start_s).tolist() == pytest.approx([3600.0] * len(FLOWS))
    with pytest.raises(InputError, match="time_zone is 'Mars/Base', must be a zone such as Europe/Berlin"):
        read(tmp_path, nfdump_new(), time_zone="Mars/Base")


def test_a_clock_that_is_wrong_is_named(tmp_path: Path) -> None:
    wrong = ROW.replace("2026-03-02", "1970-01-01")
    with pytest.raises(InputError) as error:
        read(tmp_path, "\n".join([NAMES, *[ROW] * 9, wrong]))
    assert str(error.value) == (
        "f.csv: 1 of 10 records are over a day outside the time of the others, the first at "
        "1970-01-01T08:00:00; is a clock wrong?"
    )


def test_columns_of_other_tools_are_read_by_name(tmp_path: Path) -> None:
    content = "when;from;to;volume\n1700000000.25;10.0.0.1;10.0.0.2;900\n"
    columns = {"start": "when", "source": "from", "target": "to", "bytes": "volume"}
    records = read(tmp_path, content, columns=columns)
    assert (records.start_s[0], records.octets[0], records.packets[0]) == (1700000000.25, 900, 1)
    with pytest.raises(InputError, match=r"f.csv: bytes: is missing; name its column"):
        read(tmp_path, content, columns={"start": "when", "source": "from", "target": "to"})
    with pytest.raises(InputError, match=r"f.csv: bytes: has no column 'size'"):
        read(tmp_path, content, columns={**columns, "bytes": "size"})


def test_protocols_and_types_of_icmp_are_numbers(tmp_path: Path) -> None:
    words = ["TCP", "udp", "1", "ICMP6", "made-up", "17"]
    rows = [ROW.replace("TCP", word).replace(",80,", ",8.0,") for word in words]
    records = read(tmp_path, "\n".join([NAMES, *rows]))
    assert records.protocol.tolist() == [6, 17, 1, 58, -1, 17]
    assert records.target_port.tolist() == [8 * 256] * len(words)


def test_values_that_are_objects_are_no_numbers(tmp_path: Path) -> None:
    record = json.loads(goflow(FLOWS[:1]))
    record["bytes"] = {"value": 1}
    with pytest.raises(InputError, match=r"f.json row 1: bytes is '{\"value\": 1}', must be an integer from"):
        read(tmp_path, json.dumps(record), "f.json")


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("is_damaged", [False, True])
def test_the_work_grows_as_the_records_do(tmp_path: Path, writer: str, is_damaged: bool) -> None:
    """Kernels are compiled by a first reading, whose calls do not count."""
    name, write = WRITERS[writer]
    calls = []
    for count in (FACTOR * 40, 40, FACTOR * 40):
        content = write(FLOWS * count)
        content = content[:-30] if is_damaged else content
        calls.append(count_calls(lambda content=content: read(tmp_path, content, name))[0])  # type: ignore[misc]
    assert calls[2] <= MOST_RATIO * calls[1]
