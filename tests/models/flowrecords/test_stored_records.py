"""Stored records: answers are the same to the byte whatever is in memory, and no file remains."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from planner.errors import InputError
from planner_models.flowrecords import blocks, partitions, stored_records, text_records
from planner_models.flowrecords.demands import Cleaning, Demands, find_demands
from planner_models.flowrecords.flows import Flows, Joining, find_flows, read_flow_sizes
from planner_models.flowrecords.prefixes import make_prefix_map
from planner_models.flowrecords.reading import ReadSettings, open_records
from planner_models.flowrecords.records import COLUMNS
from planner_models.flowrecords.stored_records import StoredRecords, store_records
from tests.models.flowrecords.exports import PREFIXES, START, WRITERS, Flow, find_node
from tests.models.flowrecords.test_partitions import draw, keys_of

PREFIX_MAP = make_prefix_map(pd.DataFrame({"prefix": list(PREFIXES), "node": list(PREFIXES.values())}))
CLEANING = Cleaning(sampling=1, unmapped="drop")
BUCKET_MS = 300_000
SOURCES = ("10.1.0.1", "10.2.0.1", "10.2.0.9", "2001:db8:1::5", "10.9.0.1")
TARGETS = ("10.3.0.1", "10.1.0.2", "2001:db8:2::5", "172.16.0.1")
NAMES = ("nfdump CSV before 1.7.5", "goflow2 JSON", "pmacct CSV")


def draw_export(seed: int, folder: Path) -> tuple[list[Flow], list[Path]]:
    """Write an export in three files: flows of several records with gaps, most of them seen twice."""
    random = np.random.default_rng(seed)
    flows: list[Flow] = []
    for _ in range(int(random.integers(5, 25))):
        flow = Flow(
            start_ms=0, end_ms=0, source=str(random.choice(SOURCES)), target=str(random.choice(TARGETS)),
            source_port=int(random.integers(1, 4)), packets=3,
        )  # fmt: skip
        start_ms = int(random.integers(0, 1_500_000))
        for _ in range(int(random.integers(1, 5))):
            end_ms = start_ms + int(random.choice([0, 900, 200_000, 500_000]))
            octets = int(random.integers(1, 10**9))
            for exporter in random.choice(4, size=int(random.integers(1, 3)), replace=False):
                # two exporters with equal bytes, or one that lost packets
                seen = octets if random.random() < 0.5 else max(octets * 9 // 10, 1)
                record = replace(flow, start_ms=start_ms, end_ms=end_ms, octets=seen)
                flows.append(replace(record, exporter=f"192.0.2.{exporter + 1}"))
            start_ms = end_ms + int(random.choice([1_000, 29_000, 90_000]))
    flows = [flows[row] for row in random.permutation(len(flows))]
    paths = []
    for number, name in enumerate(NAMES):
        ending, write = WRITERS[name]
        share = flows[number :: len(NAMES)]
        if share:
            paths.append(folder / f"{number}{ending}")
            paths[-1].write_bytes(write(share))
    return flows, paths


def answers(paths: list[Path]) -> tuple[Demands, Demands, Flows, bytes]:
    """Return demands in buckets, of which none is removed or the smaller ones, flows, and their sizes."""
    stored, files = open_records(paths, ReadSettings())
    with stored:
        once = find_demands(stored, PREFIX_MAP, CLEANING, bucket_s=BUCKET_MS / 1000, files=files)
        twice = find_demands(stored, PREFIX_MAP, replace(CLEANING, duplicates="none"), bucket_s=None)
        flows = find_flows(stored, PREFIX_MAP, CLEANING, Joining(start_s=20.0, length_s=1_500.0))
    sizes = np.sort(read_flow_sizes(paths[0].parent)).tobytes()
    return once, twice, flows, sizes


def contents(answer: Any) -> dict[str, object]:
    """Return the fields of an answer, arrays as bytes."""
    fields: dict[str, object] = {}
    for name, value in vars(answer).items():
        if isinstance(value, np.ndarray):
            fields[name] = (value.dtype.str, value.shape, value.tobytes())
        elif name in ("records", "buckets"):
            fields[name] = contents(value)
        else:
            fields[name] = value
    return fields


def plain_cells(flows: list[Flow]) -> dict[tuple[str, str, int], float]:
    """Return bytes by nodes and bucket, each counted once, by loops over records."""
    by_flow: dict[tuple[str, str, int, int], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for flow in flows:
        bucket, duration = flow.start_ms // BUCKET_MS, flow.end_ms - flow.start_ms
        while True:
            inside = min((bucket + 1) * BUCKET_MS, flow.end_ms) - max(bucket * BUCKET_MS, flow.start_ms)
            if not duration or inside > 0:
                share = inside / duration if duration else 1.0
                key = (flow.source, flow.target, flow.source_port, bucket)
                by_flow[key][flow.exporter] += flow.octets * share
            bucket += 1
            if bucket * BUCKET_MS >= flow.end_ms:
                break
    sums: dict[tuple[str, str, int], float] = defaultdict(float)
    for (source, target, _, bucket), of_exporter in by_flow.items():
        nodes = find_node(source), find_node(target)
        if nodes[0] and nodes[1] and nodes[0] != nodes[1]:
            sums[nodes[0], nodes[1], bucket] += max(of_exporter.values())
    return dict(sums)


def cells(demands: Demands) -> Mapping[tuple[str, str, int], float]:
    first = round((demands.buckets.first_s - START.timestamp()) * 1000 / BUCKET_MS)
    return {
        (demands.nodes[source], demands.nodes[target], first + bucket): octets
        for source, target, row in zip(demands.source, demands.target, demands.octets, strict=True)
        for bucket, octets in enumerate(row.tolist())
        if octets
    }


@pytest.mark.parametrize("seed", range(30))
def test_answers_do_not_depend_on_blocks_and_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    flows, paths = draw_export(seed, tmp_path)
    whole = answers(paths)
    assert cells(whole[0]) == pytest.approx(plain_cells(flows), rel=1e-6, abs=2.0)
    for module in (partitions, stored_records):
        monkeypatch.setattr(module, "PART_RECORDS", 6)
    monkeypatch.setattr(stored_records, "RUN_RECORDS", 1_000)
    by_parts = answers(paths)
    assert cells(by_parts[0]) == pytest.approx(cells(whole[0]), rel=1e-12)
    assert contents(by_parts[2]) == contents(whole[2])
    assert by_parts[3] == whole[3]
    assert by_parts[0].report.lines() == whole[0].report.lines()
    for run, rows, block in ((6, 1, 700), (25, 3, 1 << 23)):
        monkeypatch.setattr(stored_records, "RUN_RECORDS", run)
        monkeypatch.setattr(text_records, "ROWS", rows)
        monkeypatch.setattr(blocks, "BLOCK_BYTES", block)
        spilled = answers(paths)
        assert [contents(answer) for answer in spilled[:3]] == [contents(answer) for answer in by_parts[:3]]
        assert spilled[3] == by_parts[3]


def test_records_come_back_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (partitions, stored_records):
        monkeypatch.setattr(module, "PART_RECORDS", 20)
    monkeypatch.setattr(stored_records, "RUN_RECORDS", 30)
    shares = [draw(count, count) for count in (7, 1, 64, 29, 2)]
    # the largest values that readers take
    shares[0].octets[0], shares[0].input_interface[0], shares[0].sampling[0] = 10**15, 1 << 32, 1 << 31
    shares[1].source_port[0], shares[1].direction[0] = 65_535, 255
    with store_records(shares) as stored:
        parts = list(stored.parts())
        again = list(stored.parts())
    given = [
        tuple(getattr(share, name)[row] for name in COLUMNS) for share in shares for row in range(len(share))
    ]
    returned = [
        tuple(getattr(part, name)[row] for name in COLUMNS) for part in parts for row in range(len(part))
    ]
    assert sorted(returned) == sorted(given)
    assert len(parts) > 2
    assert [keys_of(part) for part in parts] == [keys_of(part) for part in again]
    assert {name for part in parts for name in part.exporters} == {"a", "b", "c"}


def test_few_records_make_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "TemporaryFile", None)
    with store_records([draw(50, 1), draw(60, 2)]) as stored:
        assert [len(part) for part in stored.parts()] == [110]


def fill(stored: StoredRecords) -> None:
    for seed in range(5):
        stored.add(draw(100, seed))


def test_a_full_disk_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(stored_records, "RUN_RECORDS", 150)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(stored_records, "write_whole", refuse)
    with StoredRecords() as stored, pytest.raises(InputError) as error:
        fill(stored)
    assert str(error.value).startswith(
        f"{tmp_path}: cannot be written (No space left on device); flow records need 104 bytes each there, "
    )
    assert "\n" not in str(error.value)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    with StoredRecords() as stored, pytest.raises(InputError, match=r"absent: cannot be written \(No such"):
        fill(stored)


PROGRAM = """
import os, resource, signal, sys, time
from planner_models.flowrecords import stored_records
from tests.models.flowrecords.test_partitions import draw
stored_records.RUN_RECORDS = 1_000
if sys.argv[1] == "limit":
    resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))
try:
    with stored_records.StoredRecords() as stored:
        for seed in range(4):
            stored.add(draw(900, seed))
        print(stored.file.fileno(), os.fstat(stored.file.fileno()).st_size, flush=True)
        time.sleep(60)
except (stored_records.InputError, KeyboardInterrupt) as error:
    print(type(error).__name__, error, flush=True)
"""


@pytest.mark.parametrize("end", ["limit", signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_file_remains_however_it_ends(tmp_path: Path, end: signal.Signals | str) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(end)], stdout=subprocess.PIPE, env=environment, text=True
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        if isinstance(end, signal.Signals):
            assert int(line.split()[1]) >= 1_000 * 104
            process.send_signal(end)
            line = process.stdout.read()
    assert ("InputError" in line) == (end == "limit")
    assert ("KeyboardInterrupt" in line) == (end == signal.SIGINT)
    assert not list(tmp_path.iterdir())
