"""Demands from flow records: the same from each tool, equal to plain sums, and every byte accounted for."""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.contract.notes import observe_notes
from planner.errors import InputError
from planner_models.flowrecords.demands import Cleaning, Demands, RecordFiles, find_demands, read_demands
from planner_models.flowrecords.prefixes import make_prefix_map
from planner_models.flowrecords.reading import read_records
from planner_models.flowrecords.stored_records import store_records
from tests.models.flowrecords.exports import FLOWS, PREFIXES, START, WRITERS, Flow, nfdump_old, sum_by_pair

BUCKET_S = 300.0
UNSAMPLED = Cleaning(sampling=1)


def prefix_table(prefixes: Mapping[str, str] = PREFIXES) -> pd.DataFrame:
    return pd.DataFrame({"prefix": list(prefixes), "node": list(prefixes.values())})


def demands_of(
    flows: Sequence[Flow],
    folder: Path,
    cleaning: Cleaning = UNSAMPLED,
    *,
    writer: str = "nfdump CSV before 1.7.5",
    bucket_s: float | None = BUCKET_S,
    exporters: pd.DataFrame | None = None,
    ports: pd.DataFrame | None = None,
) -> Demands:
    name, write = WRITERS[writer]
    (folder / name).write_bytes(write(flows))
    records, files = read_records([folder / name])
    stored, prefix_map = store_records([records]), make_prefix_map(prefix_table())
    return find_demands(
        stored,
        prefix_map,
        cleaning,
        bucket_s=bucket_s,
        exporters=exporters,
        ports=ports,
        files=files,
    )


def cells(demands: Demands) -> dict[tuple[str, str, int], float]:
    """Return the bytes of each pair of nodes and bucket that has any."""
    first = round((demands.buckets.first_s - START.timestamp()) / demands.buckets.length_s)
    return {
        (demands.nodes[source], demands.nodes[target], first + bucket): octets
        for source, target, row in zip(demands.source, demands.target, demands.octets, strict=True)
        for bucket, octets in enumerate(row.tolist())
        if octets
    }


@pytest.mark.parametrize("writer", WRITERS)
def test_each_tool_gives_the_sums_of_plain_code(tmp_path: Path, writer: str) -> None:
    demands = demands_of(FLOWS, tmp_path, writer=writer)
    assert demands.files[0].form == writer
    expected = sum_by_pair(FLOWS, 300_000)
    assert cells(demands) == pytest.approx(expected, rel=1e-6, abs=1e-2)
    assert demands.report.records == len(FLOWS)


@given(
    st.lists(
        st.builds(
            lambda start, duration, source, target, octets, exporter: Flow(
                start_ms=start, end_ms=start + duration, source=source, target=target, octets=octets,
                packets=1, exporter=f"192.0.2.{exporter}",
            ),
            start=st.integers(0, 2_000_000),
            duration=st.integers(0, 1_500_000),
            source=st.sampled_from(["10.1.0.1", "10.2.0.9", "10.2.0.1", "10.9.0.1", "2001:db8:1::5"]),
            target=st.sampled_from(["10.3.0.1", "10.1.0.2", "172.16.0.1", "2001:db8:2::5"]),
            octets=st.integers(1, 10**9),
            exporter=st.integers(1, 3),
        ),
        min_size=1,
        max_size=12,
    ),
    st.randoms(use_true_random=False),
)  # fmt: skip
def test_every_byte_is_accounted_for_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, flows: list[Flow], random: object
) -> None:
    folder = tmp_path_factory.mktemp("records")
    flows = [*flows, FLOWS[0]]
    drop = Cleaning(sampling=1, unmapped="drop", duplicates="none")
    demands = demands_of(flows, folder, drop)
    assert cells(demands) == pytest.approx(sum_by_pair(flows, 300_000), rel=1e-6, abs=1.0)
    report = demands.report
    total = sum(flow.octets for flow in flows)
    assert report.octets == total
    assert report.mapped + report.local + report.dropped + report.removed == pytest.approx(total)
    once = demands_of(flows, folder, replace(drop, duplicates="exporter"))
    assert once.report.octets - once.report.removed <= total
    shuffled = list(flows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    again = demands_of(shuffled, folder, replace(drop, duplicates="exporter"))
    assert cells(again) == pytest.approx(cells(once), rel=1e-9)


def test_a_record_in_two_gives_the_same_demands(tmp_path: Path) -> None:
    long = FLOWS[1]
    middle = (long.start_ms + long.end_ms) // 2
    fraction = (middle - long.start_ms) / (long.end_ms - long.start_ms)
    first = replace(long, end_ms=middle, octets=round(long.octets * fraction))
    second = replace(long, start_ms=middle, octets=long.octets - first.octets)
    whole = cells(demands_of([FLOWS[0], long], tmp_path))
    split = cells(demands_of([FLOWS[0], second, first], tmp_path))
    assert split == pytest.approx(whole, rel=1e-6)


def test_files_in_any_order_and_compressed_are_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "records"
    folder.mkdir()
    (folder / "a.csv.gz").write_bytes(gzip.compress(nfdump_old(FLOWS[:2])))
    (folder / "b.csv.zst").write_bytes(pa.compress(nfdump_old(FLOWS[2:]), codec="zstd", asbytes=True))
    prefix_table().to_csv(tmp_path / "prefixes.csv", index=False)
    files = RecordFiles(path=folder, prefixes=tmp_path / "prefixes.csv")
    notes: list[str] = []
    with observe_notes(notes.append):
        demands = read_demands(files, UNSAMPLED, bucket_s=BUCKET_S)
    assert cells(demands) == pytest.approx(sum_by_pair(FLOWS, 300_000), rel=1e-6, abs=1e-2)
    assert "a.csv.gz: is read as nfdump CSV before 1.7.5, 2 records" in notes


def two_exporters(seed: int, sampling: int) -> tuple[list[Flow], dict[tuple[str, str], float]]:
    """Return sampled records of flows in both directions, seen by two exporters, and the true bytes."""
    rng = np.random.default_rng(seed)
    flows, truth = [], {}
    for source, target in (("10.1.0.1", "10.3.0.1"), ("10.3.0.1", "10.1.0.1"), ("10.2.0.1", "10.3.0.2")):
        packets = int(rng.integers(5 * 10**7, 10**8))
        nodes = {"10.1": "a", "10.2": "b", "10.3": "c"}
        truth[nodes[source[:4]], nodes[target[:4]]] = packets * 1000.0
        for exporter in (1, 2):
            count = int(rng.poisson(packets / sampling))
            flows.append(
                Flow(start_ms=0, end_ms=300_000, source=source, target=target, packets=count,
                     octets=count * 1000, exporter=f"192.0.2.{exporter}")
            )  # fmt: skip
    return flows, truth


@pytest.mark.parametrize("seed", range(5))
def test_sampled_records_of_two_exporters_give_the_traffic_again(tmp_path: Path, seed: int) -> None:
    flows, truth = two_exporters(seed, 1000)
    demands = demands_of(flows, tmp_path, Cleaning(sampling=1000))
    total = demands.octets.sum(axis=1)
    for source, target, octets, error in zip(
        demands.source, demands.target, total, demands.relative_error() * total, strict=True
    ):
        assert abs(octets - truth[demands.nodes[source], demands.nodes[target]]) < 3.5 * error
    assert total.sum() == pytest.approx(sum(truth.values()), rel=0.01)
    assert demands.report.ratio == pytest.approx(2.0, rel=0.01)
    twice = demands_of(flows, tmp_path, Cleaning(sampling=1000, duplicates="none"))
    assert twice.octets.sum() == pytest.approx(2 * sum(truth.values()), rel=0.01)
    assert twice.report.samplings == {"1 in 1,000": "192.0.2.1, 192.0.2.2"}


def test_a_boundary_counts_what_enters_the_network(tmp_path: Path) -> None:
    flows, truth = two_exporters(1, 1)
    exporters = pd.DataFrame(
        {"exporter": ["192.0.2.1", "192.0.2.2"], "boundary": ["external", "internal"], "sampling": [1.0, 1.0]}
    ).assign(input=np.nan)
    demands = demands_of(flows, tmp_path, Cleaning(duplicates="boundary"), exporters=exporters)
    assert demands.octets.sum() == sum(flow.octets for flow in flows if flow.exporter == "192.0.2.1")
    assert set(truth) == {(source, target) for source, target, _ in cells(demands)}
    with pytest.raises(
        InputError, match=r"exporters: has no row for exporter 192.0.2.2, interface 1, of 3 rec"
    ):
        demands_of(flows, tmp_path, replace(UNSAMPLED, duplicates="boundary"), exporters=exporters[:1])


def test_an_exporter_at_the_edge_is_the_node_of_sources_without_a_prefix(tmp_path: Path) -> None:
    """What comes from outside at interface 1 of the first exporter enters at a; the second is inside."""
    outside = replace(FLOWS[0], source="198.51.100.7", octets=5_000)
    inside = replace(outside, source="198.51.100.8", exporter="192.0.2.2")
    exporters = pd.DataFrame(
        {
            "exporter": ["192.0.2.1", "192.0.2.1", "192.0.2.2"],
            "input": [np.nan, 1.0, np.nan],
            "node": ["c", "a", "b"],
            "boundary": ["external", "external", "internal"],
        }
    )
    drop = replace(UNSAMPLED, unmapped="drop")
    demands = demands_of([outside, inside, FLOWS[0]], tmp_path, drop, exporters=exporters)
    assert cells(demands) == {("a", "b", 0): 5_000 + FLOWS[0].octets}
    assert demands.report.dropped == 5_000
    with pytest.raises(InputError, match=r"exporters row 3: node 'd' is no node; valid: a, b, c"):
        demands_of([outside], tmp_path, drop, exporters=exporters.assign(node=["a", "", "d"]))


def test_ports_give_classes(tmp_path: Path) -> None:
    ports = pd.DataFrame({"protocol": ["tcp"], "target_port": [443.0], "class": ["web"]})
    answer = replace(FLOWS[4], source_port=443, target_port=50_000)
    other = replace(FLOWS[4], target_port=25)
    demands = demands_of([FLOWS[0], answer, other], tmp_path, ports=ports)
    frame = demands.frame(demands.octets.sum(axis=1))
    rows = frame.set_index(["source", "target", "class"])["rate_mbps"].to_dict()
    assert rows == {("a", "b", "web"): 9000, ("b", "c", "web"): 7_000_000, ("b", "c", "other"): 7_000_000}


def test_missing_buckets_are_named_and_no_zeros(tmp_path: Path) -> None:
    late = replace(FLOWS[0], start_ms=1_800_000, end_ms=2_100_000)
    demands = demands_of([replace(FLOWS[0], end_ms=300_000), late], tmp_path)
    assert demands.is_missing.tolist() == [False, True, True, True, True, True, False]
    assert demands.labels() == ["2026-03-02T08:00:00", "2026-03-02T08:30:00"]
    assert demands.rates_mbps[0] == pytest.approx([9000 * 8e-6 / 300] * 2)


@pytest.mark.parametrize(
    ("flows", "cleaning", "message"),
    [
        (FLOWS, Cleaning(), "sampling: records of exporters 192.0.2.1 do not say their sampling"),
        (
            [*FLOWS, replace(FLOWS[1], target="172.16.5.9")],
            UNSAMPLED,
            "prefixes: 47.9% of bytes have an address without a prefix, must be at most 5.0%: 172.16.5.0/24",
        ),
        (FLOWS, replace(UNSAMPLED, unmapped="outside"), "outside is missing, must be the node"),
        (FLOWS, replace(UNSAMPLED, duplicates="direction"), "duplicates is 'direction', but records do not"),
        (FLOWS, replace(UNSAMPLED, duplicates="boundary"), "duplicates is 'boundary', which needs a table"),
        (FLOWS[3:4], UNSAMPLED, "records: have no traffic from one node to another; are the"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(
    tmp_path: Path, flows: Sequence[Flow], cleaning: Cleaning, message: str
) -> None:
    with pytest.raises(InputError) as error:
        demands_of(flows, tmp_path, cleaning)
    assert str(error.value).startswith(message)
