"""The page of coverage: what it names exists, and what no target shows has a reason."""

from __future__ import annotations

import csv
import shlex
import sys
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import planner
from planner.cli.options import changes_of
from planner.runs.reproduction import Verdict, find_targets
from planner.runs.shipped_verdicts import load_shipped
from planner.scenarios.catalogue import find_system, system_names
from planner.scenarios.description import describe
from planner.scenarios.shipped import scenario_names
from tests.commands import parse

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PUBLISHED = ROOT / "data" / "published"
DIFFERING = (Verdict.ORDER_ONLY, Verdict.NOT_REPRODUCED)
REPRODUCE = "planner reproduce "


@pytest.fixture(scope="module")
def coverage() -> ModuleType:
    """The generator of the page, docs/document_coverage.py."""
    sys.path.insert(0, str(DOCS))
    try:
        return import_module("document_coverage")
    finally:
        sys.path.remove(str(DOCS))


@cache
def _names(system: str) -> dict[str, set[str]]:
    """Return the names that a system has, by the word that an item puts before them."""
    described = describe(find_system(system))
    tables = described["tables"] + described["plan_tables"]  # some have the same name
    return {
        "design": {design["design"] for design in described["designs"]},
        "metric": {metric["metric"] for metric in described["metrics"]},
        "source": set(described["sources"]),
        "preset": set(described["presets"]),
        "table": {table["table"] for table in tables},
        "column": {f"{table['table']}.{column}" for table in tables for column in table["columns"]},
        "option": {
            f"{_owner(section)}{name}" for section, names in described["parameters"].items() for name in names
        },
    }


def _owner(section: str) -> str:
    """Return what goes before a parameter of a section: "NAME." of its design, source or preset."""
    if section == "[problem]":
        return ""
    return section.removeprefix("[designs.").removesuffix("]").removesuffix(".information").split()[-1] + "."


def resolves(reference: str) -> bool:
    """Return whether the thing exists that a reference names."""
    kind, _, name = reference.partition(" ")
    if reference.startswith("docs/"):
        return (ROOT / reference).is_file()
    if kind == "planner":
        return _command_resolves(shlex.split(reference))
    system, _, rest = name.partition("/")
    return system in system_names() and rest in _names(system).get(kind, ())


def _command_resolves(words: list[str]) -> bool:
    """Return whether a command parses, and whether its scenario, designs, changes or targets exist."""
    given: dict[str, Any] = parse(words).params
    named = words[2] if len(words) > 2 and "/" in words[2] else ""
    if words[1] == "reproduce":
        return named in {f"{system.name}/{target.name}" for system, target in find_targets()}
    if not named:
        return words[1] == "recipes"
    if named not in scenario_names():
        return False
    scenario = planner.load(named, changes=changes_of(given.get("changes")))
    designs = _names(scenario.system.name)["design"] | {entry.label for entry in scenario.designs}
    asked = [*(given.get("designs") or "").split(","), given.get("design") or ""]
    return set(asked) - {""} <= designs


@pytest.mark.parametrize(
    ("reference", "exists"),
    [
        ("planner compare traffic/abilene --designs ecmp,optimum", True),
        ("planner compare traffic/abilene --designs ecmq", False),
        ("planner compare traffic/abilone", False),
        ("planner reproduce traffic/figure_4", True),
        ("planner reproduce traffic/figure_3", False),
        ("docs/howto/routes.md", True),
        ("docs/howto/root.md", False),
        ("design traffic/localflow", True),
        ("design traffic/globalflow", False),
        ("option traffic/localflow.delta", True),
        ("option traffic/localflow.gamma", False),
        ("option traffic/fail_links", True),
        ("column traffic/links.capacity_mbps", True),
        ("column traffic/links.capacity", False),
        ("metric traffic/lost_mbps", True),
        ("source traffic/sndlib", True),
        ("preset traffic/vl2", True),
        ("target traffic/figure_4", False),
    ],
)
def test_what_does_not_exist_is_found(reference: str, exists: bool) -> None:
    assert resolves(reference) is exists


def test_every_item_has_a_known_document_and_status(coverage: ModuleType) -> None:
    documents = coverage.read_documents()
    for item in coverage.read_items():
        assert item.document in documents, item
        assert item.status in coverage.STATUSES, item
        assert item.place, item
        assert item.item, item
    assert {item.document for item in coverage.read_items()} == set(documents)


def test_done_is_shown_and_the_rest_has_a_reason(coverage: ModuleType) -> None:
    for item in coverage.read_items():
        if item.status == "done":
            assert item.shown_by, item
        else:
            assert item.reason, item
        if item.status == "absent":  # a target may list its values as not reproduced
            assert all(text.startswith(REPRODUCE) for text in item.shown_by), item


def test_done_with_values_that_differ_has_a_reason(coverage: ModuleType) -> None:
    shipped = load_shipped()
    for item in coverage.read_items():
        targets = [text.removeprefix(REPRODUCE) for text in item.shown_by if text.startswith(REPRODUCE)]
        rows = [row for target in targets for row in shipped[target].reproduction.rows]
        if any(row.verdict in DIFFERING for row in rows):
            assert item.reason, item


def test_everything_that_is_named_exists(coverage: ModuleType) -> None:
    named = sorted({text for item in coverage.read_items() for text in item.shown_by})
    assert [text for text in named if not resolves(text)] == []


def test_every_target_is_named(coverage: ModuleType) -> None:
    named = {text for item in coverage.read_items() for text in item.shown_by}
    targets = {f"{REPRODUCE}{system.name}/{target.name}" for system, target in find_targets()}
    assert targets <= named


def test_documents_have_the_published_values(coverage: ModuleType) -> None:
    documents = coverage.read_documents().values()
    named = [name for document in documents for name in coverage.targets_of(document)]
    assert sorted(named) == sorted(f"{system.name}/{target.name}" for system, target in find_targets())


def test_published_results_are_in_a_target_or_in_an_item(coverage: ModuleType) -> None:
    targeted = {row for _system, target in find_targets() for row in target.rows}
    remaining = {
        row["id"]
        for path in PUBLISHED.glob("*.toml")
        for row in csv.DictReader(path.with_suffix(".csv").read_text(encoding="utf-8").splitlines())
        if row["role"] == "result" and row["id"] not in targeted
    }
    patterns = [pattern for item in coverage.read_items() for pattern in item.untargeted]
    matched = {pattern: {row for row in remaining if fnmatchcase(row, pattern)} for pattern in patterns}
    assert [pattern for pattern, rows in matched.items() if not rows] == []
    assert remaining - set().union(*matched.values()) == set()
    assert sum(map(len, matched.values())) == len(remaining), "an id is in two items"
    assert all(item.reason for item in coverage.read_items() if item.untargeted)


def test_the_page_is_up_to_date(coverage: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert coverage.main([coverage.CHECK]) == 0, capsys.readouterr().out
