"""Input files of SPANStore's generator: bills against its own units, and errors with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.errors import InputError
from planner.options import Options
from planner_models.geostore import measure
from planner_models.geostore.designs import optimum
from planner_models.geostore.problem.spanstore_files import read_spanstore

PRICES = (
    "#region put get storage network\n0 0.5 0.04 0.095 0 9 0.12\n#1 9 9 9 0 0 0\n2 0.01 0.02 0.1 0.19 9 0\n"
)
TIMES = "".join(
    f"{a} {b} {kind} 50 {ms}\n"
    for a, b, get, put in ((0, 0, 20, 40), (0, 2, 90, 110), (2, 0, 95, 105), (2, 2, 15, 30))
    for kind, ms in (("GET", get), ("PUT", put))
)
WORKLOAD = "averagesize 3\noverallsize 2048\ntime 15\n0 5000 70\n2 100 900\n"


def write(folder: Path, **files: str) -> Path:
    texts = {
        "region_price_index": PRICES,
        "storage_latency_matrix_percentile": TIMES,
        "region_index_mapping": "ec2_us_east 0\nazure_us_east 2\n",
        "workload_test": WORKLOAD,
    }
    for name, text in (texts | files).items():
        (folder / name).write_text(text)
    return folder


def test_bill_is_that_of_spanstores_units(tmp_path: Path) -> None:
    problem = read_spanstore(path=write(tmp_path), failures=1)
    assert problem.regions["region"].tolist() == ["ec2_us_east", "azure_us_east"]
    assert problem.rtt_ms.tolist() == [[40.0, 110.0], [105.0, 30.0]]
    plan = optimum.place(problem, options=Options(gap=1e-9)).plan
    assert plan is not None
    kib_gb = 1024.0**2  # its GB in KB
    storage = 2048 / kib_gb * 15 / 30 * (0.095 + 0.1)
    puts = 5100 / 1e5 * (0.5 + 0.01) + 3 / kib_gb * (5000 * 0.12 + 100 * 0.19)
    gets = 70 / 1e5 * 0.02 + 70 * 3 / kib_gb * 0.19 + 900 / 1e5 * 0.02  # all read in the second one
    local = 70 / 1e5 * 0.04 + 900 / 1e5 * 0.02  # each in its own
    cost = storage + puts + min(gets, local)
    entering = measure(problem, plan, None)["usd_per_month"]
    assert entering == pytest.approx(cost * 30 / 15, rel=1e-9)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"workload_test": "averagesize x\n"}, "workload_test line 1: averagesize is 'x', must be a number"),
        ({"workload_test": WORKLOAD + "1 3 4\n"}, "line 6: datacenter 1 has no prices"),
        ({"workload_test": "averagesize 3\ntime 1\n0 1 1\n"}, "has no line 'overallsize'"),
        ({"region_price_index": "0 1 1\n"}, "line 1: has 3 words, must have 5"),
        ({"region_price_index": PRICES + "0 1 1 1 0 1 1\n"}, "line 5: datacenter 0 has two lines"),
        ({"storage_latency_matrix_percentile": "0 0 GET 50 nan\n"}, "line 1: a time is nan, must be from"),
        ({"storage_latency_matrix_percentile": "0 0 GET 50 3\n"}, "from region 'ec2_us_east' to 'azure"),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, files: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_spanstore(path=write(tmp_path, **files))
