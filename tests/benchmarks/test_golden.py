"""Golden records: the same twice, and each kind of difference is listed."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pandas as pd
import pytest

from benchmarks import golden


@pytest.fixture(scope="module")
def record() -> dict[str, dict[str, object]]:
    return {"traffic/wan_routes": golden.record_scenario("traffic/wan_routes", [1], 10.0)}


def test_a_scenario_has_the_same_record_again(record: dict[str, dict[str, object]]) -> None:
    again = {"traffic/wan_routes": golden.record_scenario("traffic/wan_routes", [1], 10.0)}
    assert list(golden.differences(record, again)) == []
    (item,) = record.values()
    assert item["programs"]
    assert {"compare, seed 1", "explain, seed 1"} <= item.keys()


def test_each_difference_is_listed(record: dict[str, dict[str, object]]) -> None:
    changed = copy.deepcopy(record)
    (item,) = changed.values()
    designs = item["designs"]
    assert isinstance(designs, dict)
    label, run = next((label, run) for label, run in designs.items() if run["tables"])
    run["metrics"]["delivered_mbps"] += 1e-9
    run["tables"] = {**run["tables"], "flows": "0"}
    item["compare, seed 1"] = "0"
    item["programs"] = ["0", *reversed(item["programs"][1:])]  # type: ignore[index]
    texts = [text.partition(":")[0] for _, text in golden.differences(record, changed)]
    assert texts == ["metrics delivered_mbps", "tables flows", "compare, seed 1", "linear programs"]
    run["status"] = "failed"
    assert f"traffic/wan_routes, {label}" in dict(golden.differences(record, changed))


def test_runs_that_end_at_the_time_limit_are_not_compared(record: dict[str, dict[str, object]]) -> None:
    first, second = copy.deepcopy(record), copy.deepcopy(record)
    for number, records in enumerate((first, second)):
        for item in records.values():
            for run in item["designs"].values():  # type: ignore[attr-defined]
                run |= {"status": golden.CUT, "objective": number}
            item |= {"compare, seed 1": golden.CUT, "programs": [str(number)]}
    assert list(golden.differences(first, second)) == []


def test_tables_and_answers_have_digests_of_every_cell() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", None]})
    others = [
        frame.assign(a=[1.0, 2.0 + 1e-15]),
        frame.assign(a=[1, 2]),
        frame.assign(b=["x", "None"]),
        frame.rename(columns={"a": "c"}),
        frame[::-1],
    ]
    digests = [golden.digest_frame(item) for item in (frame, *others)]
    assert len(set(digests)) == len(digests)
    assert golden.digest_frame(frame.copy()) == digests[0]
    assert golden.digest_json({"a": 1, "seconds": 2}) == golden.digest_json({"a": 1, "seconds": 3})


def test_two_records_of_other_seeds_are_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = []
    for seed in (1, 2):
        files.append(tmp_path / f"{seed}.json")
        about = {"revision": "x", "seeds": [seed], "limit_s": 1.0}
        files[-1].write_text(json.dumps({"about": about, "scenarios": {}}))
    assert golden.compare(*files) == 2
    assert "cannot be compared" in capsys.readouterr().out
    assert golden.compare(files[0], files[0]) == 0
