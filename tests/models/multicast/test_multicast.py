"""The system from the command line: own tables, bad input in one line each, failures, two plans."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from importlib.resources import as_file, files
from pathlib import Path

import pandas as pd
import pytest

from tests.commands import planner

Change = Callable[[pd.DataFrame], pd.DataFrame]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The shipped examples of own tables, and the working directory."""
    with as_file(files("planner_data") / "scenarios" / "multicast") as shipped:
        for name in ("own_data", "own_tree"):
            shutil.copytree(shipped / name, tmp_path / name)
            shutil.copy(shipped / f"{name}.toml", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def spoil(path: Path, change: Change) -> None:
    change(pd.read_csv(path)).to_csv(path, index=False)


def set_first_row(**values: object) -> Change:
    """Return a change that sets other values in the first row."""

    def change(frame: pd.DataFrame) -> pd.DataFrame:
        frame = frame.astype(object)
        for name, value in values.items():
            frame.loc[0, name] = value
        return frame

    return change


BAD: dict[str, tuple[str, Change, str]] = {
    "odd k": ("fabric", set_first_row(k=5), "fabric.csv row 2: k is 5, must be even and from 2 to 64"),
    "n rc not k^2/4": (
        "fabric",
        set_first_row(partitions=3),
        "fabric.csv row 2: partitions x core_copies is 3 x 1 = 3, must be k^2/4 = 4",
    ),
    "ra^2 not rc": (
        "fabric",
        set_first_row(aggregation_copies=2),
        "fabric.csv row 2: aggregation_copies^2 is 4, must be core_copies = 1",
    ),
    "2 ra not dividing k": (
        "fabric",
        set_first_row(k=6, partitions=1, core_copies=9, aggregation_copies=2),
        "fabric.csv row 2: 2 x aggregation_copies is 4, must divide k = 6",
    ),
    "a negative table size": (
        "fabric",
        set_first_row(edge_entries=-1),
        "fabric.csv row 2: edge_entries is -1.0, must be at least 0",
    ),
    "an unknown kind": (
        "fabric",
        set_first_row(kind="fat"),
        "fabric.csv row 2: kind is 'fat', must be one of ab, standard, portland, tree",
    ),
    "an unknown host": (
        "members",
        set_first_row(host="h16"),
        "members.csv row 2: host 'h16' is no host of the fabric; did you mean '",
    ),
    "an unknown group": (
        "members",
        set_first_row(group="x"),
        "members.csv row 2: group 'x' is in no row of groups",
    ),
    "an empty group": (
        "groups",
        lambda frame: pd.concat([frame, pd.DataFrame({"group": ["g99"], "rate_mbps": [1.0]})]),
        "group 'g99' has no members",
    ),
    "a membership twice": (
        "members",
        lambda frame: pd.concat([frame.iloc[:1], frame]),
        "members.csv row 3: group 'g0', host 'h1' is there already in row 2",
    ),
    "a member without a name": ("members", set_first_row(host=None), "members.csv row 2: host is empty"),
    "no rate": (
        "groups",
        set_first_row(rate_mbps=0),
        "groups.csv row 2: rate_mbps is 0.0, must be greater than 0",
    ),
    "a host outside": ("hosts", set_first_row(pod=4), "hosts.csv row 2: pod is 4, must be whole and below 4"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("command", ["check", "solve"])
def test_bad_tables_are_one_clear_line(folder: Path, case: str, command: str) -> None:
    table, change, words = BAD[case]
    spoil(folder / "own_data" / f"{table}.csv", change)
    result = planner(command, "own_data.toml")
    assert result.code == 1
    assert words in result.err
    assert "Traceback" not in result.err + result.out


BAD_TREES: dict[str, tuple[str, Change, str]] = {
    "an unknown layer": ("switches", set_first_row(layer="spline"), "switches.csv row 2: layer is 'spline'"),
    "too much occupied": (
        "switches",
        set_first_row(occupied=21),
        "'c0' has more entries occupied than its table holds",
    ),
    "an unknown switch": ("links", set_first_row(lower="a9"), "links.csv row 2: lower 'a9' is no switch"),
    "too many copies": ("fabric", set_first_row(aggregation_copies=4), "a pod has 3 aggregation switches"),
    "a core without a pod": (
        "links",
        lambda frame: frame[~((frame["upper"] == "c0") & frame["lower"].str.startswith("a1"))],
        "links: core 'c0' has no link to pod 1",
    ),
    "no link for the traffic": ("background", set_first_row(lower="h001"), "'e00' has no link to 'h001'"),
}


@pytest.mark.parametrize("case", BAD_TREES)
def test_bad_trees_are_one_clear_line(folder: Path, case: str) -> None:
    table, change, words = BAD_TREES[case]
    if case == "no link for the traffic":
        words, change = "'e00' has no link to 'h010'", set_first_row(lower="h010")
    spoil(folder / "own_tree" / f"{table}.csv", change)
    result = planner("check", "own_tree.toml")
    assert result.code == 1
    assert words in result.err
    assert "Traceback" not in result.err + result.out


@pytest.mark.parametrize("name", ["own_data", "own_tree"])
def test_own_tables_give_a_plan_in_tables(folder: Path, name: str) -> None:
    result = planner("solve", f"{name}.toml", "--out", "out", "--table-format", "csv")
    assert result.code == 0, result.err
    plan = folder / "out" / "partitioned_aggregated" / "plan"
    entries = pd.read_csv(plan / "entries.csv")
    assert set(entries["layer"]) == {"core", "aggregation", "edge"}
    assert set(pd.read_csv(plan / "partitions.csv")) == {"group", "partition", "copies"}
    again = planner("check", f"{name}.toml", "--plan", plan)
    assert again.code == 0, again.err


def test_failures_from_the_command_line(folder: Path) -> None:
    traffic = []
    for failed in (0, 3, 8):
        result = planner(
            "solve",
            "own_data.toml",
            "--design",
            "partitioned",
            "--json",
            "--set",
            f"problem.failed_aggregations={failed}",
        )
        assert result.code == 0, result.err
        traffic.append(json.loads(result.out)["runs"][0]["metrics"])
    assert traffic[0]["unreachable_share"] is None
    assert 0 <= traffic[1]["unreachable_share"] <= traffic[2]["unreachable_share"]
    assert traffic[1]["route_stretch"] >= 1
    too_many = planner("solve", "own_data.toml", "--set", "problem.failed_aggregations=9")
    assert too_many.code == 1
    assert "failed_aggregations is 9, must be from 0 to 8" in too_many.err


def test_rules_of_two_plans_and_the_choice_of_copies_are_explained(folder: Path) -> None:
    result = planner("solve", "own_data.toml", "--design", "per_switch", "--out", "out")
    assert result.code == 0, result.err
    before = folder / "out" / "per_switch" / "plan"
    result = planner("explain", "own_data.toml", "--previous", before, "--with", "candidates=0", "--json")
    assert result.code == 0, result.err
    told = json.loads(result.out)["explanation"]
    (rules,) = (each for each in told["sections"] if each["title"].startswith("rules to add and remove"))
    assert sum(row["add"] + row["remove"] for row in rules["rows"]) > 0
    (copies,) = (each for each in told["sections"] if each["title"].startswith("copies of each part"))
    assert [row["ra"] for row in copies["rows"]] == [1, 2]
    assert any("The next choice" in sentence for sentence in told["sentences"])
    selected = planner("solve", "own_data.toml", "--design", "chosen_copies", "--json")
    assert selected.code == 0, selected.err


def test_partitions_of_switches_of_a_tree_are_explained(folder: Path) -> None:
    result = planner("explain", "own_tree.toml", "--with", "candidates=0", "--json")
    assert result.code == 0, result.err
    told = json.loads(result.out)["explanation"]
    (held,) = (each for each in told["sections"] if each["title"].startswith("parts of the addresses"))
    parts = pd.DataFrame(held["rows"])
    assert parts["layer"].value_counts().to_dict() == {"aggregation": 9, "core": 6}
    assert sorted(",".join(parts.loc[parts["layer"] == "core", "parts"]).split(",")) == list("001122")


def test_updates_of_joins_and_leaves_are_explained(folder: Path) -> None:
    result = planner("explain", "own_data.toml", "--with", "events=500", "--with", "candidates=0")
    assert result.code == 1
    assert "tenants: dynamics need this table" in result.err
    hosts = pd.read_csv(folder / "own_data" / "hosts.csv")["host"]
    pd.DataFrame({"tenant": "t", "host": hosts}).to_csv(folder / "own_data" / "tenants.csv", index=False)
    spoil(folder / "own_data" / "groups.csv", lambda frame: frame.assign(tenant="t"))
    words = ("--with", "events=500", "--with", "batch=50", "--with", "candidates=0", "--json")
    result = planner("explain", "own_data.toml", *words)
    assert result.code == 0, result.err
    told = json.loads(result.out)["explanation"]
    (updates,) = (each for each in told["sections"] if each["title"] == "updates of 500 joins and leaves")
    rows = {row["layer"]: row for row in updates["rows"]}
    assert rows["edge"]["join"] == 1
    assert rows["edge"]["batched"] <= 1
    assert sum(row["batched"] for row in rows.values()) < sum(row["join"] for row in rows.values())


def test_joins_and_leaves_roll_through_windows(folder: Path) -> None:
    settings = [f"problem.{name}" for name in ("windows=3", "events=20", "k=4", "aggregation_copies=1")]
    settings += [
        f"problem.{name}" for name in ("groups=30", "tenants=3", "table_size=12", "largest_tenant=12")
    ]
    words = [word for setting in settings for word in ("--set", setting)]
    result = planner("roll", "multicast/churn", "--out", "out", *words)
    assert result.code == 0, result.err
    for design in ("partitioned_aggregated", "partitioned"):
        windows = folder / "out" / design / "windows"
        assert sorted(each.name for each in windows.iterdir()) == ["0", "1", "2"]


def test_named_failures_come_as_a_table(folder: Path) -> None:
    (folder / "own_data" / "failed.csv").write_text("switch\naggregation-0-0\n")
    result = planner("solve", "own_data.toml", "--design", "partitioned", "--json")
    assert result.code == 0, result.err
    assert json.loads(result.out)["runs"][0]["metrics"]["unreachable_share"] > 0
    result = planner("explain", "own_data.toml", "--with", "candidates=0", "--json")
    assert result.code == 0, result.err
    told = json.loads(result.out)["explanation"]
    (failed,) = (each for each in told["sections"] if each["title"] == "failures")
    rows = {row["what"]: row["value"] for row in failed["rows"]}
    assert rows["failed switches"] == 1
    assert rows["rerouting needs: marks in headers"] == 6
    assert rows["rebuilt: gap of these trees"] == pytest.approx(0, abs=1e-6)
    assert rows["rebuilt: entries to add"] > 0  # one copy of each part: others must take them up
    assert rows["rebuilt: trees with pods that no core reaches"] == 0
    (folder / "own_data" / "failed.csv").write_text("switch\naggregation-0-9\n")
    result = planner("check", "own_data.toml")
    assert result.code == 1
    assert "'aggregation-0-9' is no switch" in result.err
