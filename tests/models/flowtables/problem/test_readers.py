"""Filter sets and traces in the format of ClassBench."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from planner.contract.notes import observe_notes
from planner.errors import InputError
from planner_models.flowtables.plan.check import classify_headers
from planner_models.flowtables.problem.readers import read_classbench

FILTERS = """@198.12.130.31/32\t15.0.120.4/32\t0 : 65535\t1526 : 1526\t0x06/0xFF\t0x0000/0x0200
@0.0.0.0/0\t15.0.120.0/24\t0 : 65535\t53 : 80\t0x00/0x00

@10.0.0.0/8\t0.0.0.0/0\t0 : 65535\t0 : 65535\t0x00/0x00\t0x0000/0x0000
"""


def test_filters_have_falling_priorities_and_a_trace_its_headers(tmp_path: Path) -> None:
    path, trace = tmp_path / "acl.txt", tmp_path / "acl_trace.txt"
    path.write_text(FILTERS)
    trace.write_text("3322708511\t251688964\t4000\t1526\t6\t0\n167772161\t1\t0\t0\t1\n")
    problem = read_classbench(path=path, trace=trace, accept=1.0)
    assert problem.rules["match"].tolist() == [
        "ip_src=198.12.130.31/32 ip_dst=15.0.120.4/32 ip_proto=6 tcp_flags=0x0/0x200 tp_dst=1526:1526",
        "ip_dst=15.0.120.0/24 tcp tp_dst=53:80",
        "ip_dst=15.0.120.0/24 udp tp_dst=53:80",
        "ip_dst=15.0.120.0/24 sctp tp_dst=53:80",
        "ip_src=10.0.0.0/8",
    ]
    assert problem.rules["priority"].tolist() == [4.0, 3.0, 3.0, 3.0, 1.0]
    assert problem.flows["header"].tolist() == [
        "ip_src=198.12.130.31 ip_dst=15.0.120.4 ip_proto=6 tcp_flags=0x0 tp_src=4000 tp_dst=1526",
        "ip_src=10.0.0.1 ip_dst=0.0.0.1 ip_proto=1 tcp_flags=0x0 tp_src=0 tp_dst=0",
    ]
    drawn = read_classbench(path=path, connections=40, seed=3)
    assert len(drawn.flows) == 40
    assert set(drawn.actions) <= {"drop", "out:1"}


def test_a_filter_of_many_digits_is_refused_in_linear_time(tmp_path: Path) -> None:
    (tmp_path / "acl.txt").write_text("@" + "1" * 300_000 + "\n")
    begin = time.process_time()
    with pytest.raises(InputError):
        read_classbench(path=tmp_path / "acl.txt", connections=5, seed=1)
    assert time.process_time() - begin < 3


def test_flags_of_tcp_decide_between_filters(tmp_path: Path) -> None:
    """The second filter is met by packets with ACK (0x1000) and without SYN (0x0200)."""
    path, trace = tmp_path / "acl.txt", tmp_path / "trace.txt"
    filters = "@1.0.0.0/8\t0.0.0.0/0\t0 : 65535\t80 : 80\t{}\t{}/{}\n"
    path.write_text(
        filters.format("0x06/0xFF", "0x0200", "0x0200") + filters.format("0x00/0x00", "0x1000", "0x1000")
    )
    addresses = 0x01000001, 0x02000002, 4000, 80
    rows = [(*addresses, 6, flags, 0) for flags in (0x0200, 0x1200, 0x1000, 0)] + [(*addresses, 17, 0, 0)]
    trace.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))
    problem = read_classbench(path=path, trace=trace)
    problem = replace(problem, rules=problem.rules.assign(action=["out:1", "out:2"]))
    assert [problem.actions[number] for number in classify_headers(problem, problem.headers)] == [
        "out:1", "out:1", "out:2", "drop", "drop",
    ]  # fmt: skip
    notes: list[str] = []
    trace.write_text("".join("\t".join(map(str, row[:5])) + "\n" for row in rows))
    with observe_notes(notes.append):
        read_classbench(path=path, trace=trace)
    assert notes == ["assumed: 5 headers of trace.txt have no flags of TCP, which filters match: 0"]
    drawn = read_classbench(path=path, connections=60, seed=1)
    assert all("tcp_flags=0x0 " in text for text in drawn.flows["header"] if "ip_proto=6 " not in text)
    path.write_text(filters.format("0x11/0xFF", "0x0200", "0x0200"))
    with pytest.raises(InputError, match="row 1: matches flags of protocol 17, must be TCP"):
        read_classbench(path=path)


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("10.0.0.0/8 1.1.1.1/32", "must start with '@', as filters of ClassBench do"),
        ("@10.0.0.0/8 1.1.1.1/32 0 : 1", "has 3 fields, must have 5"),
        ("@10.0.0.0/33 1.1.1.1/32 0 : 9 0 : 9 0x06/0xFF", "'10.0.0.0/33' is no prefix of IPv4"),
        ("@1.0.0.0/8 1.1.1.1/32 0 : 9 9 : 1 0x06/0xFF", "range 9:1 of ports ends before it starts"),
        ("@1.0.0.0/8 1.1.1.1/32 0 : 9 0 : 65536 0x06/0xFF", "port 65536 must be at most 65535"),
        ("@1.0.0.0/8 1.1.1.1/32 0 : 9 0 : 9 0x06/0x0F", "protocol 0x06/0x0F must have the mask 0xFF"),
        ("@1.0.0.0/8 1.1.1.1/32 0 : 9 0 : 9 tcp", "'tcp' is no protocol with a mask, such as 0x06/0xFF"),
        (
            "@1.0.0.0/8 1.1.1.1/32 0 : 9 0 : 9 0x01/0xFF",
            "matches ports of protocol 1, must be one with ports",
        ),
    ],
)
def test_what_is_no_filter_is_refused_with_its_row(tmp_path: Path, row: str, fault: str) -> None:
    path = tmp_path / "filters.txt"
    path.write_text(f"\n{row}\n")
    with pytest.raises(InputError) as error:
        read_classbench(path=path)
    assert str(error.value).startswith("filters.txt row 2: ")
    assert fault in str(error.value)


def test_a_bad_header_of_a_trace_is_refused(tmp_path: Path) -> None:
    path, trace = tmp_path / "acl.txt", tmp_path / "trace.txt"
    path.write_text(FILTERS)
    trace.write_text("1 2 3 4\n1 2 70000 4 6\n")
    with pytest.raises(InputError) as error:
        read_classbench(path=path, trace=trace)
    assert "trace.txt row 1: has 4 numbers, must have at least 5" in str(error.value)
    assert "trace.txt row 2: tp_src is '70000', must be a number below 65,536" in str(error.value)
