# ruff: noqa: E501 - the lines that users see
"""Tables of whole problems: names, units and places of their files, and what is said about them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pytest

from planner.contract.notes import notes_of, observe_notes
from planner.errors import InputError
from planner.io.layout import TABLE_FORMATS
from planner.io.table_files import find_tables, read_table, read_tables, write_table, write_workbook
from planner.scenarios.catalogue import find_system, system_names
from planner.scenarios.scenario import from_document, load, scenario_names
from tests.commands import planner
from tests.fuzzing.bases import bases
from tests.planner.io.spreadsheets import in_other_words, sheet, table_of

EACH_KIND = ("membership", "analytics", "consolidation", "contracts", "flowtables")
"""Systems with columns of each kind, type of cells, blanks, fractions and tables without rows between them."""


@pytest.mark.parametrize(
    ("name", "table_format"),
    [
        pytest.param(
            name,
            table_format,
            marks=[] if name in EACH_KIND or table_format in ("csv", "xlsx") else [pytest.mark.exhaustive],
        )
        for name in system_names()
        for table_format in TABLE_FORMATS
    ],
)
def test_what_generate_writes_reads_back_equal(name: str, table_format: str, tmp_path: Path) -> None:
    system = find_system(name)
    tables = next(base for base in bases() if base.system is system).tables
    if table_format == "xlsx":
        write_workbook(tables, tmp_path / "tables.xlsx")
    else:
        for table, frame in tables.items():
            write_table(frame, tmp_path / f"{table}.{table_format}")
    path = tmp_path / "tables.xlsx" if table_format == "xlsx" else tmp_path
    notes: list[str] = []
    with observe_notes(notes.append):
        files = find_tables(system.problem.tables, path, system.problem.optional_tables)
        again = system.problem.from_tables(read_tables(system.problem.tables, files))
    # a workbook holds 16 digits of a number
    for table, frame in again.to_tables().items():
        pd.testing.assert_frame_equal(
            frame, tables[table], check_like=True, rtol=1e-15, check_exact=table_format != "xlsx"
        )
    assert notes == []


def test_a_workbook_is_the_path_of_a_scenario_in_other_words_and_units(tmp_path: Path) -> None:
    rows = {
        "Links": [["From", "To", "Capacity (Gbit/s)", "Owner"], ["a", "b", 1, "x"], ["b", "a", 2, "y"]],
        "Demands": [["Source", "Target", "Rate Gbps"], ["a", "b", 0.5]],
    }
    sheet(["read me"], name="About", more=rows)(tmp_path / "net.xlsx")  # type: ignore[operator]
    document = {
        "system": "traffic",
        "problem": {
            "source": "tables",
            "path": "net.xlsx",
            "columns": {"links": {"tail": "From", "head": "To"}},
            "tables": {"links": {"ignore": ["Owner"]}},
        },
    }
    problem = from_document(document, name="s", folder=tmp_path).make_problem()
    assert problem.capacity_mbps.tolist() == [1000.0, 2000.0]
    assert problem.rate_mbps.tolist() == [500.0]
    assert notes_of(problem) == [
        "net.xlsx: ignored sheets 'About'",
        "net.xlsx sheet Links: read columns 'From' as tail, 'To' as head, 'Capacity (Gbit/s)' as capacity_mbps (times 1,000)",
        "net.xlsx sheet Links: ignored columns 'Owner'",
        "assumed: net.xlsx sheet Links: all links weigh 1",
        "net.xlsx sheet Demands: read columns 'Source' as source, 'Target' as target, 'Rate Gbps' as rate_mbps (times 1,000)",
    ]


BAD_LAYOUTS: Final[Mapping[str, tuple[dict[str, Any], str]]] = {
    "an unknown table": (
        {"tables": {"linsk": {}}},
        "problem.tables.linsk: no such table; did you mean 'links'?",
    ),
    "an unknown column": (
        {"columns": {"links": {"tial": "From"}}},
        "problem.columns.links.tial: no such column; did you mean 'tail'?",
    ),
    "an unknown key": (
        {"tables": {"links": {"decimals": ","}}},
        "problem.tables.links.decimals: no such key; did you mean 'decimal'?",
    ),
    "an unknown mark": (
        {"tables": {"links": {"decimal": "x"}}},
        "problem.tables.links.decimal is 'x', must be '.' or ','",
    ),
    "one mark twice": (
        {"tables": {"links": {"decimal": ",", "thousands": ","}}},
        "problem.tables.links: decimal and thousands are both ',', must differ",
    ),
    "an unknown encoding": (
        {"tables": {"links": {"encoding": "base64"}}},
        "problem.tables.links.encoding is 'base64', must be an encoding such as utf-8, cp1252, utf-16",
    ),
    "no table": ({"tables": 1}, "problem.tables must be a table: write [problem.tables.NAME]"),
    "no name": (
        {"columns": {"links": {"tail": 1}}},
        "problem.columns.links.tail is 1, must be the name of a column in the file",
    ),
}


@pytest.mark.parametrize("name", BAD_LAYOUTS)
def test_a_bad_layout_is_one_line(name: str, tmp_path: Path) -> None:
    inputs, fault = BAD_LAYOUTS[name]
    document = {"system": "traffic", "problem": {"source": "tables", "path": ".", **inputs}}
    with pytest.raises(InputError) as caught:
        from_document(document, name="s", folder=tmp_path)
    assert caught.value.faults == (f"s: {fault}",)


# --- doubts -------------------------------------------------------------------------------

DOUBTS: Final[Mapping[str, tuple[str, str, tuple[str, ...]]]] = {
    "capacities of Gbit/s as Mbit/s": (
        "tail,head,capacity_mbps,weight\na,b,0.01,1\nb,a,0.04,1\n",
        "source,target,rate_mbps\na,b,15\n",
        (
            "warning: links.csv: capacity_mbps has a median of 0.025 Mbit/s, usual are 0.1 to 100,000,000; is its unit right?",
            "warning: demands.csv: the sum of rate_mbps is 300 times that of capacity_mbps in links.csv; are both units right?",
        ),
    ),
    "delays of seconds as ms": (
        "tail,head,capacity_mbps,latency_ms,weight\na,b,10,0.0002,1\nb,a,10,0.0003,1\n",
        "source,target,rate_mbps\na,b,5\n",
        (
            "warning: links.csv: latency_ms has a median of 0.00025 ms, usual are 0.001 to 2,000; is its unit right?",
        ),
    ),
    "demands of kbit/s as Mbit/s": (
        "tail,head,capacity_mbps,weight\na,b,1000,1\nb,a,1000,1\n",
        "source,target,rate_mbps\na,b,1500000\n",
        (
            "warning: demands.csv: the sum of rate_mbps is 750 times that of capacity_mbps in links.csv; are both units right?",
        ),
    ),
    "links without limit": (
        "tail,head,capacity_mbps,weight\na,b,1e12,1\nb,a,1e12,1\n",
        "source,target,rate_mbps\na,b,5\n",
        (),
    ),
    "plausible": (
        "tail,head,capacity_mbps,latency_ms,weight\na,b,10,5,1\n",
        "source,target,rate_mbps\na,b,50\n",
        (),
    ),
}


@pytest.mark.parametrize("name", DOUBTS)
def test_numbers_that_look_like_another_unit_are_doubted(name: str, tmp_path: Path) -> None:
    links, demands, doubts = DOUBTS[name]
    (tmp_path / "links.csv").write_text(links)
    (tmp_path / "demands.csv").write_text(demands)
    document = {"system": "traffic", "problem": {"source": "tables", "path": "."}}
    problem = from_document(document, name="s", folder=tmp_path).make_problem()
    assert tuple(note for note in notes_of(problem) if note.startswith("warning: ")) == doubts


def test_interchanged_coordinates_are_named(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("node,latitude,longitude\nseattle,-122.3,47.6\ndenver,-105,39.7\n")
    with pytest.raises(InputError) as caught:
        read_table(table_of("traffic.nodes"), tmp_path / "nodes.csv")
    assert caught.value.faults == (
        "nodes.csv row 2: latitude is -122.3, must be at least -90",
        "nodes.csv row 3: latitude is -105.0, must be at least -90",
        "nodes.csv: latitude and longitude may be interchanged",
    )


@pytest.mark.parametrize(
    "name", [field for field in scenario_names() if load(field).raw["problem"]["source"] == "tables"]
)
def test_shipped_tables_raise_no_doubt(name: str) -> None:
    assert [note for note in notes_of(load(name).make_problem()) if note.startswith("warning: ")] == []


# --- all faults in one round --------------------------------------------------------------


def test_faults_of_all_layers_come_in_one_round(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("node;latitude\na;1,5\nb;x\n")
    (tmp_path / "links.csv").write_text("tail,head,capacity_gbps\na,b,-1\nb,z,2\n")
    (tmp_path / "demands.csv").write_text("source,target,rate_mbps\na,b,5\na,b,6\na,c,nan\na,a,1\n")
    document = {"system": "traffic", "problem": {"source": "tables", "path": "."}}
    with pytest.raises(InputError) as caught:
        from_document(document, name="s", folder=tmp_path).make_problem()
    assert caught.value.faults == (
        "nodes.csv row 3: latitude is 'x', must be a number",
        "links.csv row 2: capacity_mbps is -1000.0, must be at least 0",
        "demands.csv row 4: rate_mbps is nan, must be a finite number",
        "links.csv row 3: head 'z' is no node of the network; valid: a, b",
        "demands.csv row 4: target 'c' is no node of the network; valid: a, b",
        "demands.csv row 5: source and target are both 'a', must differ",
    )


def test_a_missing_file_does_not_hide_the_faults_of_others(tmp_path: Path) -> None:
    (tmp_path / "links.csv").write_text("tail,head,capacity_mbps\na,b,-1\n")
    document = {"system": "traffic", "problem": {"source": "tables", "path": "."}}
    with pytest.raises(InputError) as caught:
        from_document(document, name="s", folder=tmp_path).make_problem()
    assert len(caught.value.faults) == 2
    assert caught.value.faults[1] == "links.csv row 2: capacity_mbps is -1.0, must be at least 0"


def test_a_fault_that_hangs_on_a_faulty_value_is_not_invented(tmp_path: Path) -> None:
    base = next(base for base in bases() if base.system.name == "circuitflows")
    tables = {name: frame.copy() for name, frame in base.tables.items()}
    tables["racks"]["hosts"] = tables["racks"]["hosts"].astype(object)
    tables["racks"].loc[0, "hosts"] = "many"
    for name, frame in tables.items():
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    document = {"system": "circuitflows", "problem": {"source": "tables", "path": "."}}
    with pytest.raises(InputError) as caught:
        from_document(document, name="s", folder=tmp_path).make_problem()
    assert caught.value.faults == ("racks.csv row 2: hosts is 'many', must be a number",)


WITHOUT_OTHER_UNITS: Final = ("flowtables", "multicast")
"""Systems with no required column in one of these units."""


@pytest.mark.parametrize("name", system_names())
def test_a_workbook_of_a_stranger_is_a_problem_of_each_system(name: str, tmp_path: Path) -> None:
    base = next(base for base in bases() if base.system.name == name)
    sheets = {table.title(): in_other_words(frame) for table, frame in base.tables.items() if len(frame)}
    write_workbook(sheets, tmp_path / "mine.xlsx")
    document = {"system": name, "problem": {"source": "tables", "path": "mine.xlsx"}}
    problem = from_document(document, name="s", folder=tmp_path).make_problem()
    for table, frame in problem.to_tables().items():
        pd.testing.assert_frame_equal(frame, base.tables[table], check_like=True, rtol=1e-12)
    notes = notes_of(problem)
    assert any("times 1,000" in note for note in notes) or name in WITHOUT_OTHER_UNITS
    assert sum("ignored columns 'Remark'" in note for note in notes) == len(sheets)


def test_the_workbook_of_the_documentation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[3] / "docs" / "howto" / "own_data.md").read_text(encoding="utf-8")
    shown = next(block for block in re.findall(r"```toml\n(.*?)```", page, re.DOTALL) if "net.xlsx" in block)
    (command,) = re.findall(r"^planner (new scenario .*)$", page, re.MULTILINE)
    # a path from a to e, two links beside it, and one from f: 11 of 30 pairs have a path along the rows
    nodes = "abcdef"
    links = [[*ends, 10, "x"] for ends in ("ab", "bc", "cd", "de", "ac", "bd", "fe")]
    matrix = [["", *nodes], *([row, *(0 if row == column else 0.1 for column in nodes)] for row in nodes)]
    write = sheet(
        ["From", "To", "Bandwidth (Gbps)", "Owner"], *links, name="Circuits", more={"Traffic matrix": matrix}
    )
    monkeypatch.chdir(tmp_path)
    Path("mine").mkdir()
    write(tmp_path / "mine" / "net.xlsx")  # type: ignore[operator]
    result = planner(*command.split())
    assert result.code == 0
    assert f"```text\n{result.err}```" in page
    written = tomllib.loads(Path("mine/scenario.toml").read_text())
    by_hand = tomllib.loads(shown)
    assert written["problem"] == by_hand["problem"]
    assert from_document(by_hand, name="s", folder=tmp_path / "mine").make_problem().size() == {
        "nodes": 6,
        "links": 14,
        "demands": 30,
    }


@pytest.mark.slow
@pytest.mark.parametrize("page", ["classes", "routes"])
def test_the_tables_of_a_page_are_the_sheets_of_a_workbook_too(page: str, tmp_path: Path) -> None:
    text = (Path(__file__).parents[3] / "docs" / "howto" / f"{page}.md").read_text(encoding="utf-8")
    files = re.findall(r"`\w+/(\w+)\.csv`[^`]*?\n\n```text\n(.*?)```", text, re.DOTALL)
    sheets = {}
    for name, body in files:
        (tmp_path / f"{name}.csv").write_text(body)
        sheets[name.title()] = pd.read_csv(tmp_path / f"{name}.csv")
    assert len(sheets) >= 3
    write_workbook(sheets, tmp_path / "net.xlsx")
    document = {"system": "traffic", "problem": {"source": "tables", "path": "."}}
    workbook = {"system": "traffic", "problem": {"source": "tables", "path": "net.xlsx"}}
    folder, again = (
        from_document(item, name="s", folder=tmp_path).make_problem().to_tables()
        for item in (document, workbook)
    )
    assert {name.lower() for name in sheets} <= set(again)
    for table, frame in folder.items():
        pd.testing.assert_frame_equal(frame, again[table])
