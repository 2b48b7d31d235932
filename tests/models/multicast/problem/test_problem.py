"""Arrays of a problem: free entries, other traffic, port sets, and memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from planner.io.table_files import read_tables, write_table
from planner_models.multicast import SYSTEM, Multicast, check
from planner_models.multicast.designs import partitioned
from tests.models.multicast.fabrics import PLANNING, fat


def test_single_switches_may_have_other_tables() -> None:
    problem = fat()
    tables = problem.to_tables()
    table = pd.DataFrame({"switch": ["edge-0-0", "core-1"], "entries": [5.0, 12.0], "occupied": [2.0, 4.0]})
    tight = Multicast.from_tables(tables | {"switches": table})
    free = pd.Series(tight.free_entries, index=tight.wiring.switches)
    assert free[["edge-0-0", "core-1", "core-0"]].tolist() == [3, 8, 12]
    plan = partitioned.partition_addresses(problem, choose="arrival").plan
    broken = check(tight, plan)
    assert set(broken.frame["where"]) <= {"edge-0-0", "core-1"}
    assert "edge-0-0" in set(broken.frame["where"])
    for design in PLANNING:
        assert not len(check(tight, design.decide(tight).plan))


def test_other_traffic_is_at_its_port() -> None:
    tables = fat().to_tables()
    rows = pd.DataFrame(
        {
            "upper": ["edge-0-1", "core-0", "aggregation-1-0"],
            "lower": ["h3", "aggregation-0-0", "edge-1-1"],
            "mbps": [7.0, 1.0, 2.0],
        }
    )
    problem = Multicast.from_tables(tables | {"background": rows})
    assert problem.port_background_mbps[1].tolist() == [0.0, 7.0]
    assert problem.port_background_mbps.sum() == 7.0


def test_many_memberships_need_little_memory_a_row(tmp_path: Path) -> None:
    problem = fat(groups=400, k=8, aggregation_copies=2, tenants=20)
    for name, table in problem.to_tables().items():
        write_table(table, tmp_path / f"{name}.parquet")
    files = {table.name: tmp_path / f"{table.name}.parquet" for table in SYSTEM.problem.tables}
    read = read_tables(SYSTEM.problem.tables, {name: path for name, path in files.items() if path.exists()})
    assert read["members"].memory_usage(index=False).sum() <= 8 * len(read["members"]) + 200_000
    again = Multicast.from_tables(read)
    for item, two in zip(problem.at_edge, again.at_edge, strict=True):
        assert np.array_equal(item, two)


@pytest.mark.slow
def test_millions_of_memberships_from_a_file_stay_small(tmp_path: Path) -> None:
    few = peak_mib(tmp_path / "few", k=8, aggregation_copies=1, groups=100, tenants=10, largest_tenant=50)
    many = peak_mib(
        tmp_path / "many",
        k=24,
        aggregation_copies=3,
        groups=9000,
        tenants=100,
        largest_tenant=3000,
        sizes="uniform",
    )
    assert many - few < 600, "a few hundred bytes a membership at most; Python and its libraries left out"


def peak_mib(folder: Path, **made: Any) -> float:
    """Return the peak memory of solving a problem from files, with names as plain text."""
    problem = fat(**made)
    folder.mkdir()
    for name, table in problem.to_tables().items():
        plain = table.astype(dict.fromkeys(table.select_dtypes("category"), str))
        write_table(plain, folder / f"{name}.parquet")
    assert made["groups"] < 9000 or len(problem.members) > 2_000_000
    (folder / "scenario.toml").write_text(
        'system = "multicast"\n[problem]\nsource = "tables"\npath = "."\n'
        '[designs.partitioned]\nchoose = "arrival"\n'
    )
    code = (
        "import planner, resource, sys\n"
        f"run = planner.solve({str(folder / 'scenario.toml')!r})\n"
        "assert run.exit_code == 0\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return float(result.stdout)


def test_port_sets_by_hand() -> None:
    problem = fat()
    position = problem.members.astype(str).merge(problem.hosts, on="host")
    expected: dict[tuple[int, str], int] = {}
    for row in position.itertuples():
        key = (int(row.pod) * 2 + int(row.edge), row.group)
        expected[key] = expected.get(key, 0) | 1 << int(row.port)
    names = problem.groups["group"].tolist()
    edge, group, masks = (column.tolist() for column in problem.at_edge)
    result = {(e, names[g]): mask for e, g, mask in zip(edge, group, masks, strict=True)}
    assert result == expected
    assert problem.edges_in_pod.sum() == len(expected)


def test_hosts_may_be_left_out() -> None:
    problem = fat()
    tables = problem.to_tables()
    del tables["hosts"]
    assert Multicast.from_tables(tables).at_edge[2].tolist() == problem.at_edge[2].tolist()
