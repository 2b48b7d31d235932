"""Growth of time and memory with flow records: exports of n, 2n and 4n records to a matrix and to flows.

    python -m benchmarks.flow_record_growth [--quick] [--capture] [--millions N] [--part-records N]

Each flow is seen by two routers, one of which loses packets, so that half of the records are duplicates. With
`--capture` the export is a capture with two packets of each flow, in no order of their times.
Each export is read in a process of its own, whose largest resident memory is the figure. The matrix of an
export is that of the flows as they are drawn, and so are the number of flows and their bytes.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import csv

from benchmarks.common import machine
from planner.arrays import Floats, Ints
from planner_models.flowrecords import partitions, stored_records
from planner_models.flowrecords.demands import Cleaning, find_demands
from planner_models.flowrecords.flows import Joining, find_flows
from planner_models.flowrecords.prefixes import make_prefix_map
from planner_models.flowrecords.reading import ReadSettings, open_records

SITES: Final = 40
CHUNK: Final = 250_000
START_S: Final = 1_772_438_400  # 2026-03-02, 08:00 UTC
LENGTH_S: Final = 3_000
BUCKET_S: Final = 300.0
PACKET_GAP_S: Final = 5
FRAME: Final = np.dtype(
    [("time_s", "<u4"), ("fraction", "<u4"), ("captured", "<u4"), ("original", "<u4"), ("ends", "V12"),
     ("type", ">u2"), ("version", "u1"), ("service", "u1"), ("octets", ">u2"), ("fragment", "V5"),
     ("protocol", "u1"), ("checksum", "V2"), ("source", ">u4"), ("target", ">u4"), ("source_port", ">u2"),
     ("target_port", ">u2")]
)  # fmt: skip
"""Headers of a packet: in the capture, of its Ethernet frame, of IP, and of TCP as far as its ports."""
FLOW_WINDOW_S: Final = 30.0
"""Time of the flows that are read; those of all times would be most of the memory."""
HEADER: Final = (
    "TIMESTAMP_START,TIMESTAMP_END,SRC_IP,DST_IP,SRC_PORT,DST_PORT,PROTOCOL,PEER_SRC_IP,PACKETS,BYTES"
)


def draw_chunk(first_flow: int, count: int, seed: int) -> dict[str, Any]:
    """Return flows with distinct pairs of addresses and ports: columns of integers, (F,) each."""
    random = np.random.default_rng(seed)
    number = first_flow + np.arange(count)
    packets = random.integers(2, 2_000, count)
    start_s = START_S + random.integers(0, LENGTH_S, count)
    return {
        "start_s": start_s,
        "end_s": start_s + random.integers(0, 600, count),
        "source": random.integers(0, SITES, count),
        "target": random.integers(0, SITES, count),
        "host": number & 0xFFFF,
        "port": 1_024 + (number >> 16),
        "packets": packets,
        "octets": packets * random.integers(64, 1_500, count),
    }


def chunks(flows: int) -> Iterator[dict[str, Any]]:
    """Yield all flows of an export."""
    for number, first in enumerate(range(0, flows, CHUNK)):
        yield draw_chunk(first, min(CHUNK, flows - first), number)


def name_addresses(site: Ints, host: Ints) -> list[str]:
    """Return the addresses of hosts of sites."""
    rows = zip(site.tolist(), host.tolist(), strict=True)
    return [f"10.{site}.{host >> 8}.{host & 255}" for site, host in rows]


def write_export(flows: int, path: Path) -> None:
    """Write two records of each flow as pmacct does; the second router reports nine tenths of the bytes."""
    options = csv.WriteOptions(include_header=False, quoting_style="none")
    with path.open("wb") as file:
        file.write(f"{HEADER}\n".encode())
        for chunk in chunks(flows):
            count = len(chunk["host"])
            source = pa.array(name_addresses(chunk["source"], chunk["host"]))
            target = pa.array(name_addresses(chunk["target"], chunk["host"]))
            for router, tenths in ((1, 10), (2, 9)):
                columns = [
                    chunk["start_s"], chunk["end_s"], source, target, chunk["port"], np.full(count, 443),
                    pa.array(["tcp"] * count), pa.array([f"192.0.2.{router}"] * count), chunk["packets"],
                    chunk["octets"] * tenths // 10,
                ]  # fmt: skip
                csv.write_csv(pa.table(columns, names=HEADER.split(",")), file, options)


def write_capture(flows: int, path: Path) -> None:
    """Write two packets of each flow as a capture of Ethernet frames, cut behind their ports."""
    with path.open("wb") as file:
        file.write(np.array([0xA1B2C3D4, 0x00040002, 0, 0, 65_535, 1], dtype="<u4").tobytes())
        for chunk in chunks(flows):
            frame = np.zeros(len(chunk["host"]), dtype=FRAME)
            octets = packet_octets(chunk)
            frame["captured"], frame["original"] = FRAME.itemsize - 16, octets + 14
            frame["type"], frame["version"], frame["octets"] = 0x0800, 0x45, octets
            frame["protocol"], frame["target_port"] = 6, 443
            for end in ("source", "target"):
                frame[end] = (10 << 24) | (chunk[end] << 16) | chunk["host"]
            frame["source_port"] = chunk["port"]
            for gap_s in (0, PACKET_GAP_S):
                frame["time_s"] = chunk["start_s"] + gap_s
                file.write(frame.tobytes())


def packet_octets(chunk: dict[str, Any]) -> Ints:
    """Return the bytes of each packet of a flow in a capture."""
    return np.asarray(64 + chunk["octets"] % 1_400)


def expected(flows: int, *, is_capture: bool) -> tuple[Floats, int, float]:
    """Return the bytes of each pair of sites, (S, S), and the number and bytes of flows that start early."""
    sums = np.zeros(SITES * SITES)
    early, early_octets = 0, 0.0
    for chunk in chunks(flows):
        if is_capture:
            chunk["octets"] = 2 * packet_octets(chunk)
        sums += np.bincount(
            chunk["source"] * SITES + chunk["target"], weights=chunk["octets"], minlength=SITES * SITES
        )
        is_early = (chunk["start_s"] < START_S + FLOW_WINDOW_S) & (chunk["source"] != chunk["target"])
        early += int(is_early.sum())
        early_octets += float(chunk["octets"][is_early].sum())
    return sums.reshape(SITES, SITES), early, early_octets


def measure(path: Path, flows: int) -> dict[str, float]:
    """Return time and memory of an export in this process; its answers are those of the flows as drawn."""
    nodes = make_prefix_map(
        pd.DataFrame(
            {"prefix": [f"10.{site}.0.0/16" for site in range(SITES)],
             "node": [f"s{site:02}" for site in range(SITES)]}
        )
    )  # fmt: skip
    begin = time.process_time()
    stored, files = open_records([path], ReadSettings())
    with stored:
        read_s = time.process_time() - begin
        demands = find_demands(stored, nodes, Cleaning(sampling=1), bucket_s=BUCKET_S, files=files)
        demands_s = time.process_time() - begin - read_s
        of_demands = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        begin = time.process_time()
        joined_flows = find_flows(stored, nodes, Cleaning(sampling=1), Joining(length_s=FLOW_WINDOW_S))
        flows_s = time.process_time() - begin
    is_capture = path.suffix == ".pcap"
    matrix, early, early_octets = expected(flows, is_capture=is_capture)
    ours = np.zeros((SITES, SITES))
    np.add.at(ours, (demands.source, demands.target), demands.octets.sum(axis=1))
    assert np.allclose(ours, np.where(np.eye(SITES), 0, matrix), rtol=1e-9)
    assert demands.report.records == (flows if is_capture else 2 * flows)
    assert demands.report.flows == flows
    assert (len(joined_flows), joined_flows.octets.sum()) == (early, early_octets)
    return {
        "M packets" if is_capture else "M records": 2 * flows / 1e6,
        "file, GB": path.stat().st_size / 1e9,
        "read, CPU s": read_s,
        "matrix, CPU s": demands_s,
        "flows, CPU s": flows_s,
        "matrix, peak MB": of_demands / 1024,
        "all, peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer records, and fewer in memory")
    parser.add_argument("--capture", action="store_true", help="packets in place of records")
    parser.add_argument("--millions", type=float, default=5.0, help="records of the smallest export")
    parser.add_argument("--part-records", type=int, help="records that are handled together")
    parser.add_argument("--measure", nargs=2, metavar=("FILE", "FLOWS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    part_records = arguments.part_records or (1 << 14 if arguments.quick else partitions.PART_RECORDS)
    if arguments.measure:
        vars(partitions)["PART_RECORDS"] = part_records
        vars(stored_records).update(PART_RECORDS=part_records, RUN_RECORDS=part_records)
        path, flows = arguments.measure
        print(json.dumps(measure(Path(path), int(flows))))
        return
    records = 100_000 if arguments.quick else int(arguments.millions * 1e6)
    print(f"{machine()}, one thread", flush=True)
    table = []
    with tempfile.TemporaryDirectory() as folder:
        for factor in (1, 2, 4):
            flows = factor * records // 2
            path = Path(folder) / ("packets.pcap" if arguments.capture else "export.csv")
            (write_capture if arguments.capture else write_export)(flows, path)
            command = [
                sys.executable,
                "-m",
                "benchmarks.flow_record_growth",
                "--measure",
                str(path),
                str(flows),
            ]
            command += ["--part-records", str(part_records)]
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            table.append(json.loads(output.splitlines()[-1]))
            print(pd.DataFrame(table[-1:]).to_string(index=False), flush=True)
    print(pd.DataFrame(table).to_string(index=False, float_format=lambda value: f"{value:.3g}"))


if __name__ == "__main__":
    main()
