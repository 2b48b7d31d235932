"""Our values that ship: written and read again unchanged, and each target has a reason in one line."""

from __future__ import annotations

import csv
from pathlib import Path

from planner.contract.targets import TargetValues
from planner.runs.reproduction import Reproduction, find_targets, judge
from planner.runs.shipped_verdicts import COLUMNS, load_shipped, rows_of, write_shipped


def test_what_ships_is_whole_and_reasons_are_lines() -> None:
    shipped = load_shipped()
    assert list(shipped) == [f"{system.name}/{target.name}" for system, target in find_targets()]
    for item in shipped.values():
        result = item.reproduction
        assert sum(result.counts().values()) == len(result.target.rows) + len(result.target.lost)
        assert result.reason
        assert "\n" not in result.reason
        assert item.version
        assert len(item.measured.split("-")) == 3


def test_values_are_written_and_read_unchanged(tmp_path: Path) -> None:
    shipped = list(load_shipped().values())
    rows = [row for item in shipped for row in rows_of(item.reproduction)]
    write_shipped(rows, "2026-11-22", tmp_path / "values.csv")
    with (tmp_path / "values.csv").open(encoding="utf-8", newline="") as file:
        read = list(csv.DictReader(file))
    assert [*read[0]] == list(COLUMNS)
    assert [{name: row[name] for name in rows[0]} for row in read] == rows


def test_a_reason_names_the_value_that_differs_most() -> None:
    ((system, target),) = find_targets(["brokering/table_3_1"])
    values: dict[str, float | bool | None] = dict.fromkeys(target.rows, 1e9)
    reproduction = Reproduction(
        system=system, target=target, rows=tuple(judge(system, target, TargetValues(values=values)))
    )
    assert "values differ; most: " in reproduction.reason
    noted = TargetValues(values=values, notes={target.rows[0]: "another reading"})
    reproduction = Reproduction(system=system, target=target, rows=tuple(judge(system, target, noted)))
    assert reproduction.reason.endswith("values differ: another reading.")
