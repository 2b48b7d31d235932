"""Flows of records for each system, joined, with sizes and starts; and files recognized for scenarios."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import planner
from planner.contract.notes import observe_notes
from planner.errors import InputError
from planner.scenarios.from_files import write_scenario
from planner_models import circuitflows, circuits, coflows, flowtables
from planner_models.circuits.problem.flow_records import read_record_windows
from tests.models.flowrecords.exports import FLOWS, PREFIXES, nfdump_old, pcap

PREFIX_TEXT = "prefix,node\n" + "".join(f"{prefix},{node}\n" for prefix, node in PREFIXES.items())


def write(folder: Path, content: bytes) -> dict[str, Path]:
    (folder / "records.csv").write_bytes(content)
    (folder / "prefixes.csv").write_text(PREFIX_TEXT)
    return {"path": folder / "records.csv", "prefixes": folder / "prefixes.csv"}


def test_records_of_one_flow_are_joined(tmp_path: Path) -> None:
    first = replace(FLOWS[0], start_ms=0, end_ms=10_000)
    next_one = replace(first, start_ms=15_000, end_ms=20_000)
    later = replace(first, start_ms=90_000, end_ms=95_000)
    files = write(tmp_path, nfdump_old([later, first, next_one]))
    problem = circuits.problem.flow_records.read_records(**files, sampling=1)
    assert problem.coflows is not None
    assert problem.coflows["bits"].tolist() == [2 * 9_000 * 8, 9_000 * 8]
    with pytest.raises(InputError, match="records are sampled, one packet of 100, which misses small flows"):
        circuits.problem.flow_records.read_records(**files, sampling=100)
    scaled = circuits.problem.flow_records.read_records(**files, sampling=100, sizes_from_sampled=True)
    assert scaled.bits.sum() == 100 * problem.bits.sum()


def test_each_system_reads_the_flows(tmp_path: Path) -> None:
    files = write(tmp_path, nfdump_old())
    between = [flow for flow in FLOWS if flow.source != "10.1.0.1" or flow.target != "10.1.0.2"]
    octets = sum(flow.octets for flow in between)
    assert circuits.problem.flow_records.read_records(**files, sampling=1).bits.sum() == octets * 8
    by_window = [problem.bits.sum() for _, problem in read_record_windows(**files, sampling=1, length_us=3e8)]
    assert by_window == [8 * (9_000 + 80_000_000 + 1_500), 0, 8 * 7_000_000]
    groups = coflows.problem.flow_records.read_records(**files, sampling=1)
    assert groups.flows["bytes"].sum() == octets
    assert sorted(groups.coflows["arrival_ms"]) == [0.0, 500.0, 1_000.0, 899_000.0]
    run = circuitflows.problem.flow_records.read_records(**files, sampling=1, length_s=60.0)
    assert run.flows["bytes"].tolist() == [9_000, 80_000_000, 1_500]
    assert run.flows["host"].tolist() == [1, 1, 2]


def test_flows_to_one_host_are_a_coflow(tmp_path: Path) -> None:
    flows = [replace(FLOWS[0], start_ms=ms, end_ms=ms + 10, source_port=ms + 1) for ms in (0, 400, 5_000)]
    files = write(tmp_path, nfdump_old(flows))
    problem = coflows.problem.flow_records.read_records(**files, sampling=1, group="target")
    assert problem.coflows["arrival_ms"].round(3).tolist() == [0.0, 5_000.0]
    assert problem.flows["bytes"].tolist() == [18_000, 9_000]


def test_a_capture_gives_the_headers_of_connections(tmp_path: Path) -> None:
    (tmp_path / "c.pcap").write_bytes(pcap([(ms, flow, 100) for flow in FLOWS for ms in (0, 10)]))
    (tmp_path / "filters.txt").write_text("@10.1.0.0/16\t0.0.0.0/0\t0 : 65535\t0 : 65535\t0x06/0xFF\n")
    problem = flowtables.problem.flow_records.read_records(
        path=tmp_path / "c.pcap", filters=tmp_path / "filters.txt"
    )
    assert problem.flows["packets"].tolist() == [2.0] * 4
    assert "ip_src=10.1.0.1" in " ".join(problem.flows["header"])
    misses = planner.compare(problem, designs=["microflows", "fewest_misses"]).metrics["misses"]
    assert misses.tolist() == [4, 1]  # one for each connection, and one for all, as one filter decides them


def test_anonymised_headers_have_networks_alone(tmp_path: Path) -> None:
    (tmp_path / "c.pcap").write_bytes(pcap([(0, flow, 100) for flow in FLOWS]))
    (tmp_path / "filters.txt").write_text(
        "@10.1.0.0/16\t0.0.0.0/0\t0 : 65535\t0 : 65535\t0x06/0xFF\n"
        "@10.1.0.1/32\t0.0.0.0/0\t0 : 65535\t0 : 65535\t0x06/0xFF\n"
    )
    files = {"path": tmp_path / "c.pcap", "filters": tmp_path / "filters.txt"}
    notes: list[str] = []
    with observe_notes(notes.append):
        hidden = flowtables.problem.flow_records.read_records(**files, anonymise=True)
    plain = flowtables.problem.flow_records.read_records(**files)
    cut = [re.sub(r"(ip_...=\d+\.\d+\.\d+)\.\d+", r"\1.0", header) for header in plain.flows["header"]]
    assert hidden.flows["header"].tolist() == cut != plain.flows["header"].tolist()
    assert any("1 of 2 rules have longer prefixes" in note for note in notes)


LINKS = "tail,head,capacity_mbps\na,b,100\nb,c,100\nc,a,100\nb,a,100\nc,b,100\na,c,100\n"


def test_a_scenario_is_written_over_records(tmp_path: Path) -> None:
    files = write(tmp_path, nfdump_old())
    (tmp_path / "links.csv").write_text(LINKS)
    written = write_scenario([*files.values(), tmp_path / "links.csv"], settings={"sampling": 1})
    assert written.system.name == "traffic"
    assert written.problem.size()["demands"] == 3
    columns = {(column.given, column.ours) for column in written.columns}
    assert {("sa", "records.source"), ("ibyt", "records.bytes"), ("flg", "")} <= columns
    assert 'source = "flow_records"' in written.path.read_text()


@pytest.mark.parametrize(
    ("names", "system", "message"),
    [
        (["records.csv"], None, "records.csv: is nfdump CSV before 1.7.5; add a table prefix, node"),
        (["records.csv", "prefixes.csv"], None, "records.csv: add a table of links (tail,"),
        (["records.csv", "prefixes.csv", "links.csv"], "circuits", "records.csv: a table of links is of"),
        (["records.csv", "prefixes.csv", "odd.csv"], None, "odd.csv: is nothing that is read beside"),
    ],
)  # fmt: skip
def test_files_that_are_missing_are_named(
    tmp_path: Path, names: list[str], system: str | None, message: str
) -> None:
    write(tmp_path, nfdump_old())
    (tmp_path / "links.csv").write_text(LINKS)
    (tmp_path / "odd.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError) as error:
        write_scenario([tmp_path / name for name in names], system=system)
    assert str(error.value).startswith(message)


def test_circuits_take_records_where_they_are_named(tmp_path: Path) -> None:
    files = write(tmp_path, nfdump_old())
    written = write_scenario(list(files.values()), system="circuits", settings={"sampling": 1})
    assert written.problem.size()["racks"] == 3
