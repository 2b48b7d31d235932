"""Verdicts on published values: from what is printed and what is found, and from nothing else."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from planner.contract.system import Studies
from planner.contract.targets import Curve, Target, TargetValues
from planner.errors import InputError
from planner.runs import reproduction
from planner.scenarios.catalogue import find_system
from tests.commands import planner

PUBLISHED = """id,quantity,value,unit,condition,role,place,note
one,First,10,x,,result,Table 1,
two,Second,20,x,,result,Table 1,
three,Third,30,x,,result,Table 1,
tie,Also third,30,x,,result,Table 1,
zero,Nothing,0,x,,result,Table 1,
most,At most,"1,000",x,,result,Table 1,less than
words,It grows,grows,text,,result,Table 1,
size,Servers,8,count,,setup,Section 4,
"""
IDS = ("one", "two", "three", "tie", "zero", "most", "words")


@pytest.fixture(autouse=True)
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    import csv
    import io

    rows = {row["id"]: row for row in csv.DictReader(io.StringIO(PUBLISHED))}
    monkeypatch.setattr(reproduction, "read_published", lambda _system: rows)


def verdicts(values: dict[str, Any], **more: Any) -> dict[str, str]:
    target = Target(
        name="table_1",
        place="Table 1",
        about="numbers",
        rows=IDS,
        find=lambda _study: TargetValues(values=values),
        **more,
    )
    result = reproduction.run_target(find_system("traffic"), target)
    return {row.id or row.quantity: str(row.verdict) for row in result.rows}


def test_what_is_within_the_tolerance_is_reproduced() -> None:
    values = {"one": 11.4, "two": 23.1, "three": 30.0, "zero": 0.1, "words": True}
    result = verdicts(values, tolerances={"three": 1e-6})
    assert result == {
        "one": "reproduced",
        "two": "not reproduced",
        "three": "reproduced",
        "tie": "not reproduced",
        "zero": "reproduced",
        "most": "not reproduced",
        "words": "reproduced",
    }


@pytest.mark.parametrize(
    ("ours", "expected"),
    [
        ({"one": 1.0, "two": 2.0, "three": 3.0, "tie": 2.5}, ["order only"] * 4),
        ({"one": 1.0, "two": 5.0, "three": 3.0, "tie": 2.5}, ["order only", *["not reproduced"] * 3]),
        ({"one": 1.0}, ["not reproduced"] * 4),
        ({"one": 10.0, "two": 5.0}, ["reproduced", *["not reproduced"] * 3]),
        ({"one": 2.0, "two": 2.0}, ["not reproduced"] * 4),
    ],
)
def test_an_order_is_judged_value_by_value(ours: dict[str, Any], expected: list[str]) -> None:
    result = verdicts(ours, orders=(("one", "two", "three", "tie"),))
    assert [result[name] for name in ("one", "two", "three", "tie")] == expected


def test_a_value_that_was_fitted_is_called_calibrated_only_where_it_agrees() -> None:
    result = verdicts({"one": 10.0, "two": 40.0}, calibrated=frozenset({"one", "two"}))
    assert (result["one"], result["two"]) == ("calibrated", "not reproduced")


@pytest.mark.parametrize(("value", "kept"), [(1000.0, True), (999.0, True), (1, True), (1001.0, False)])
def test_a_bound_is_kept_or_not(value: float, kept: bool) -> None:
    result = verdicts({"most": value}, bounds={"most": "at most"})
    assert result["most"] == ("reproduced" if kept else "not reproduced")


def test_what_is_lost_is_not_available() -> None:
    assert verdicts({}, lost=("the curve",))["the curve"] == "not available"


def test_a_setting_is_compared_with_no_number() -> None:
    result = verdicts({"one": 10.0}, numberless=frozenset({"one", "two"}))
    assert (result["one"], result["two"]) == ("no number to compare",) * 2


def test_the_reason_names_settings_and_claims_without_a_number() -> None:
    both = Target(
        name="setup",
        place="Section 4",
        about="settings",
        rows=("size", "words"),
        find=lambda _study: TargetValues(values={"size": 8.0}, notes={"size": "as shipped"}),
        numberless=frozenset({"size", "words"}),
    )
    result = reproduction.run_target(find_system("traffic"), both)
    assert [row.note for row in result.rows] == ["a setting of the paper; as shipped", ""]
    reason = "Settings of the paper, with which our values are found: 1; claims without a number: 1."
    assert result.reason == reason
    item = dataclasses.replace(both, rows=("words",))
    result = reproduction.run_target(find_system("traffic"), item)
    assert result.reason == "The source gives no number to compare."


def cover_less(values: dict[str, Any], notes: dict[str, str]) -> reproduction.Reproduction:
    """Return a target of two rows, of which no model computes the second."""
    partly = Target(
        name="partly",
        place="Section 4",
        about="a value, and one of a testbed",
        rows=("one", "two"),
        find=lambda _study: TargetValues(values=values, notes=notes),
        not_covered=frozenset({"two"}),
    )
    return reproduction.run_target(find_system("traffic"), partly)


def test_a_value_that_no_model_computes_is_not_covered_with_its_reason() -> None:
    result = cover_less({"one": 10.0}, {"two": "measured on a testbed"})
    assert [str(row.verdict) for row in result.rows] == ["reproduced", "not covered"]
    assert result.reason == "All 1 value agrees. Not covered: 1 value (measured on a testbed)."
    result = cover_less({"one": 99.0}, {"two": "measured on a testbed", "one": "another seed"})
    assert (
        result.reason == "1 of 1 value differs: another seed. Not covered: 1 value (measured on a testbed)."
    )


@pytest.mark.parametrize(
    ("values", "notes"), [({"two": 3.0}, {"two": "measured on a testbed"}), ({}, {}), ({}, {"two": " "})]
)
def test_a_value_that_is_not_covered_has_a_reason_and_is_not_computed(
    values: dict[str, Any], notes: dict[str, str]
) -> None:
    with pytest.raises(ValueError, match="traffic/partly: two is not covered"):
        cover_less(values, notes)


def test_words_take_no_number_and_numbers_no_words() -> None:
    with pytest.raises(TypeError, match="words"):
        verdicts({"words": 3.0})
    with pytest.raises(TypeError, match="one"):
        verdicts({"one": True})


def test_a_target_that_fails_is_recorded_and_judges_nothing() -> None:
    def fail(study: Any) -> TargetValues:
        raise InputError("no such thing")

    target = Target(name="t", place="", about="", rows=("one",), find=fail)
    result = reproduction.run_target(find_system("traffic"), target)
    assert str(result.error) == "no such thing"
    assert not result.rows
    assert set(result.counts().values()) == {0}


def test_a_study_runs_shipped_scenarios_quickly_or_whole() -> None:
    def find(study: Any) -> TargetValues:
        metrics = study.compare("traffic/abilene", designs=["ecmp"], changes={"problem.scale": 2.0})
        assert study.quick
        return TargetValues(values={"one": metrics.loc["ecmp", "max_utilization"]})

    target = Target(name="t", place="", about="", rows=("one",), find=find)
    once = find_system("traffic")
    result = reproduction.run_target(once, target, quick=True)
    assert result.error is None
    assert result.rows[0].ours is not None


def test_verdicts_and_curves_are_saved_and_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import pandas as pd

    curve = Curve(title="Share, by size", frame=pd.DataFrame({"size": [1, 2], "share": [0.5, 0.6]}))
    target = Target(
        name="table_1",
        place="Table 1",
        about="numbers that grow",
        rows=("one", "words"),
        find=lambda _study: TargetValues(
            values={"one": 9.0, "words": False}, notes={"one": "a note"}, curves=(curve,)
        ),
        lost=("the rest",),
    )
    system = dataclasses.replace(find_system("traffic"), studies=Studies(targets=(target,)))
    monkeypatch.setattr(reproduction, "system_names", lambda: ["traffic"])
    monkeypatch.setattr(reproduction, "find_system", lambda _name: system)
    result = planner("reproduce", "traffic/table_1", "--out", tmp_path)
    assert result.code == 0, result.err
    for words in ("First", "reproduced", "does not hold", "not available", "a note", "0.9"):
        assert words in result.out
    saved = pd.read_csv(tmp_path / "verdicts.csv")
    assert saved["verdict"].tolist() == ["reproduced", "not reproduced", "not available"]
    assert pd.read_csv(tmp_path / "traffic" / "table_1" / "share_by_size.csv")["share"].sum() == 1.1
    plain = json.loads(planner("reproduce", "--all", "--json").out)
    assert plain[0]["verdicts"]["not reproduced"] == 1
    assert "numbers that grow" in planner("reproduce").out
    wrong = planner("reproduce", "traffic/tabel_1")
    assert wrong.code == 1
    assert "did you mean 'traffic/table_1'" in wrong.err


@pytest.mark.parametrize(
    "name", ["analytics", "brokering", "circuitflows", "livevideo", "multicast", "traffic"]
)
def test_every_target_judges_rows_that_are_published_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    targets = find_system(name).studies.targets
    rows = Counter(row for target in targets for row in target.rows)
    twice = [row for row, count in rows.items() if count > 1]
    assert not twice
    assert not any(count > 1 for count in Counter(target.name for target in targets).values())
    names = set(reproduction.read_published(name)) if rows else set()
    assert set(rows) <= names
    for target in targets:
        named = {*target.tolerances, *target.bounds, *target.calibrated, *sum(target.orders, ())}
        assert named <= set(target.rows), target.name
