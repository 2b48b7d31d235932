"""Speed of flow records: an export to a matrix of 40 sites, by form, and addresses to prefixes.

    python -m benchmarks.flow_records [--quick]

Rows a second of CPU time on one core, compiled beforehand, of reading, scaling, removing duplicates, mapping
and adding up by buckets of five minutes; the goals are those of the specification. The matrix of each form is
that of sums with pandas over the same traffic.
"""

from __future__ import annotations

import ipaddress
import struct
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from benchmarks.common import machine, parser_of
from planner_models.flowrecords.demands import Cleaning, find_demands
from planner_models.flowrecords.prefixes import PrefixMap, make_prefix_map
from planner_models.flowrecords.reading import ReadSettings, open_records

SITES: Final = 40
PREFIXES: Final = 2_000
HOSTS: Final = 20_000
START_MS: Final = 1_772_438_400_000  # 2026-03-02, 08:00 UTC
BUCKET_S: Final = 300.0
GOALS: Final[Mapping[str, float]] = {
    "nfdump CSV before 1.7.5": 1.5,
    "nfdump CSV since 1.7.5": 1.5,
    "goflow2 JSON": 0.5,
    "capture": 4.0,
}
"""Million rows, or packets, a second."""


def draw_records(rows: int, version: int, seed: int = 1) -> pd.DataFrame:
    """Return records within an hour between addresses of sites: columns of plain values."""
    random = np.random.default_rng(seed)
    prefix = random.integers(0, PREFIXES, HOSTS)
    last = random.integers(1, 255, HOSTS)
    if version == 4:
        names = np.array([f"10.{p >> 8}.{p & 255}.{h}" for p, h in zip(prefix, last, strict=True)])
    else:
        names = np.array([f"2001:db8:{p:x}::{h:x}" for p, h in zip(prefix, last, strict=True)])
    source, target = random.integers(0, HOSTS, rows), random.integers(0, HOSTS, rows)
    start_ms = START_MS + random.integers(0, 3_000_000, rows)
    packets = random.integers(1, 2_000, rows)
    return pd.DataFrame(
        {
            "start_ms": start_ms,
            "end_ms": start_ms + random.integers(0, 600_000, rows),
            "source": names[source],
            "target": names[target],
            "site": prefix[source] % SITES,
            "other": prefix[target] % SITES,
            "port": random.integers(1_024, 65_536, rows),
            "packets": packets,
            "bytes": packets * random.integers(64, 1_500, rows),
        }
    )


def prefix_map(version: int) -> PrefixMap:
    """Return the prefixes of the sites."""
    numbers = np.arange(PREFIXES)
    names = [f"10.{p >> 8}.{p & 255}.0/24" if version == 4 else f"2001:db8:{p:x}::/48" for p in numbers]
    return make_prefix_map(pd.DataFrame({"prefix": names, "node": [f"s{p % SITES:02}" for p in numbers]}))


def times(ms: pd.Series[int]) -> list[str]:
    """Return times in UTC as nfdump writes them."""
    texts = np.datetime_as_string(ms.to_numpy().astype("datetime64[ms]"))
    return [text.replace("T", " ") for text in texts.tolist()]


def nfdump_old(records: pd.DataFrame, path: Path) -> None:
    """Write records as nfdump before 1.7.5 does."""
    begin, end = times(records["start_ms"]), times(records["end_ms"])
    frame = pd.DataFrame(
        {
            "ts": begin, "te": end, "td": (records["end_ms"] - records["start_ms"]) / 1000,
            "sa": records["source"], "da": records["target"], "sp": records["port"], "dp": 443, "pr": "TCP",
            "flg": ".AP...", "fwd": 0, "stos": 0, "ipkt": records["packets"], "ibyt": records["bytes"],
            "opkt": 0, "obyt": 0, "in": 1, "out": 2, "ra": "192.0.2.1",
        }
    )  # fmt: skip
    frame.to_csv(path, index=False)


def nfdump_new(records: pd.DataFrame, path: Path) -> None:
    """Write records as nfdump since 1.7.5 does."""
    duration_s = (records["end_ms"] - records["start_ms"]) / 1000
    frame = pd.DataFrame(
        {
            "firstSeen": times(records["start_ms"]), "duration": duration_s, "proto": 6,
            "srcAddr": records["source"], "srcPort": records["port"], "dstAddr": records["target"],
            "dstPort": 443, "packets": records["packets"], "bytes": records["bytes"], "bps": 0, "bpp": 0,
            "flows": 1,
        }
    )  # fmt: skip
    frame.to_csv(path, index=False)


def goflow(records: pd.DataFrame, path: Path) -> None:
    """Write records as lines of goflow2's JSON."""
    frame = pd.DataFrame(
        {
            "type": "NETFLOW_V9", "time_received_ns": records["end_ms"] * 10**6, "sampling_rate": 1,
            "sampler_address": "192.0.2.1", "time_flow_start_ns": records["start_ms"] * 10**6,
            "time_flow_end_ns": records["end_ms"] * 10**6, "bytes": records["bytes"],
            "packets": records["packets"], "src_addr": records["source"], "dst_addr": records["target"],
            "proto": "TCP", "src_port": records["port"], "dst_port": 443,
        }
    )  # fmt: skip
    frame.to_json(path, orient="records", lines=True)


def capture(records: pd.DataFrame, path: Path) -> None:
    """Write a packet of each record, at its start, as a capture of Ethernet frames."""
    octets = np.minimum(records["bytes"].to_numpy(), 1_500)
    packed = {name: ipaddress.ip_address(name).packed for name in {*records["source"], *records["target"]}}
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 1))
        columns = (records[name].tolist() for name in ("start_ms", "source", "target", "port"))
        for ms, source, target, port, size in zip(*columns, octets.tolist(), strict=True):
            if len(packed[source]) == 4:
                kind, ip = 0x0800, struct.pack(">BBHHHBBH", 0x45, 0, size, 0, 0, 64, 6, 0)
            else:
                kind, ip = 0x86DD, struct.pack(">IHBB", 6 << 28, size - 40, 6, 64)
            ports = struct.pack(">HHIIHHHH", port, 443, 0, 0, 0x5010, 0, 0, 0)
            frame = bytes(12) + struct.pack(">H", kind) + ip + packed[source] + packed[target] + ports
            file.write(struct.pack("<IIII", ms // 1000, ms % 1000 * 1000, len(frame), size + 14) + frame)


WRITERS: Final[Mapping[str, tuple[str, Callable[[pd.DataFrame, Path], None]]]] = {
    "nfdump CSV before 1.7.5": ("old.csv", nfdump_old),
    "nfdump CSV since 1.7.5": ("new.csv", nfdump_new),
    "goflow2 JSON": ("goflow.json", goflow),
    "capture": ("packets.pcap", capture),
}


def time_form(form: str, rows: int, version: int, folder: Path) -> dict[str, object]:
    """Return the speed of a form, and assert that its matrix is that of plain sums."""
    records = draw_records(rows, version)
    name, write = WRITERS[form]
    write(records, folder / name)
    nodes = prefix_map(version)
    start = time.process_time()
    stored, files = open_records([folder / name], ReadSettings())
    with stored:
        read_s = time.process_time() - start
        demands = find_demands(stored, nodes, Cleaning(sampling=1), bucket_s=BUCKET_S, files=files)
    passed = time.process_time() - start
    octets = records["bytes"].clip(upper=1_500) if form == "capture" else records["bytes"]
    is_between = records["site"] != records["other"]
    expected = octets[is_between].groupby([records["site"], records["other"]]).sum()
    assert np.allclose(demands.octets.sum(axis=1), expected.sort_index().to_numpy(), rtol=1e-6)
    return {
        "form": f"{form}, IPv{version}",
        "rows M": rows / 1e6,
        "MB": (folder / name).stat().st_size / 1e6,
        "read, CPU s": read_s,
        "all, CPU s": passed,
        "M rows/s": rows / passed / 1e6,
        "goal": GOALS[form] / (2 if version == 6 else 1),
    }


def time_prefixes(addresses: int) -> dict[str, object]:
    """Return the speed of finding the longest of 2,000 prefixes of addresses."""
    random, nodes = np.random.default_rng(1), prefix_map(4)
    row = random.integers(0, len(nodes.begin_low), addresses)
    high, low = nodes.begin_high[row], nodes.begin_low[row]
    start = time.process_time()
    result = nodes.find(high, low)
    passed = time.process_time() - start
    assert (result == nodes.node[row]).all()
    return {
        "form": "longest prefix",
        "rows M": addresses / 1e6,
        "M rows/s": addresses / passed / 1e6,
        "goal": 0.9,
    }


def main() -> None:
    """Print the table."""
    quick = parser_of(__doc__, "fewer rows").parse_args().quick
    print(f"{machine()}, one thread; compiled beforehand")
    rows = 50_000 if quick else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        for form in WRITERS:
            time_form(form, 30_000, 4, Path(folder))
        table = [time_form(form, rows, version, Path(folder)) for form in WRITERS for version in (4, 6)]
    table.append(time_prefixes(100_000 if quick else 5_000_000))
    print(pd.DataFrame(table).to_string(index=False, float_format=lambda value: f"{value:.3g}"))


if __name__ == "__main__":
    main()
