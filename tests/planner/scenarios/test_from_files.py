"""`planner new scenario`: files as users have them become the same problem as tables in our own columns."""

from __future__ import annotations

import datetime
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pytest

from planner.contract.notes import observe_notes
from planner.contract.questions import OpenQuestion
from planner.errors import InputError
from planner.scenarios.from_files import write_scenario
from planner.scenarios.scenario import load
from planner.scenarios.shipped import scenario_file, scenario_names
from tests.commands import planner
from tests.models.traffic.problem.readers import test_graphs
from tests.own_workbooks import BOOKS, CIRCUITS_SHEET, TRAFFIC, TRAFFIC_NAMES, TRAFFIC_SHEET, save

LINKS = [("paris", "lyon", 10), ("lyon", "paris", 10), ("lyon", "nice", 4.5), ("nice", "lyon", 4.5)]
DEMANDS = [("paris", "nice", 3), ("nice", "lyon", 1.5)]
FOLDERS = [
    name for name in scenario_names() if "own" in name and scenario_file(name).with_suffix("").is_dir()
]


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """Two tables with columns of a user's own names and units."""
    folder = tmp_path / "tables"
    folder.mkdir()
    pd.DataFrame(LINKS, columns=["This end", "That end", "Capacity (Gbit/s)"]).to_csv(
        folder / "lines of 2026.csv", index=False
    )
    pd.DataFrame(DEMANDS, columns=["source", "target", "rate_gbps"]).to_csv(
        folder / "matrix.csv", index=False
    )
    return folder


ENDS = {"links": {"tail": "This end", "head": "That end"}}


def test_files_of_any_name_are_recognized_and_stay_as_they_are(tables: Path) -> None:
    before = {path.name: path.read_bytes() for path in tables.iterdir()}
    notes: list[str] = []
    with observe_notes(notes.append):
        written = write_scenario([tables], columns=ENDS)
    assert written.path == tables / "scenario.toml"
    assert {path.name: path.read_bytes() for path in tables.glob("*.csv")} == before
    assert {name: sheet.path.name for name, sheet in written.sheets.items()} == {
        "links": "lines of 2026.csv",
        "demands": "matrix.csv",
    }
    assert any("'Capacity (Gbit/s)' as capacity_mbps (times 1,000)" in note for note in notes)
    problem = load(written.path).make_problem()
    result = problem.to_tables()
    assert list(result["links"]["capacity_mbps"]) == [10_000, 10_000, 4_500, 4_500]
    assert list(result["demands"]["rate_mbps"]) == [3_000, 1_500]


def test_a_question_to_the_tables_is_said_when_the_scenario_is_written(tmp_path: Path) -> None:
    (tmp_path / "links.csv").write_text("tail,head,capacity_mbps\na,b,10\nb,a,10\n")
    (tmp_path / "demands.csv").write_text("source,target,rate_mbps\na,b,8\n")
    (tmp_path / "modules.csv").write_text("module,capacity_mbps,cost\nm,10,1\n")
    notes: list[str] = []
    with observe_notes(notes.append):
        written = write_scenario([tmp_path], system="capacity")
    (question,) = (note for note in notes if note.startswith("warning: "))
    assert question.startswith("warning: links.csv: every row has its opposite")
    with pytest.raises(InputError) as result:
        load(written.path).make_problem()
    assert question == f"warning: {result.value.faults[0]}"
    answered = written.path.read_text().replace(
        'source = "tables"', 'source = "tables"\ndirection = "directed"'
    )
    written.path.write_text(answered)
    assert load(written.path).make_problem().direction == "directed"


def test_a_workbook_with_sheets_of_any_name(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    first = book.active
    assert first is not None
    first.title = "Read me"
    first.append(["This workbook was made in 2026"])
    for title, columns, rows in (
        ("Backbone", ["tail", "head", "capacity_gbps", "owner"], [(*row, "us") for row in LINKS]),
        ("Traffic 2026", ["source", "target", "Rate (Gbit/s)"], DEMANDS),
    ):
        sheet = book.create_sheet(title)
        for row in (columns, *rows):
            sheet.append(row)
    book.save(tmp_path / "net.xlsx")
    result = planner("new", "scenario", tmp_path / "net.xlsx", "--out", tmp_path / "new" / "net.toml")
    assert result.code == 0, result.err
    table = [line.split("  ") for line in result.err.splitlines()]
    rows = [[word.strip() for word in line if word.strip()] for line in table]
    assert ["net.xlsx, sheet Backbone", "tail", "links.tail"] in rows
    assert ["capacity_gbps", "links.capacity_mbps", "Gbit/s, times 1,000"] in rows
    assert ["owner", "not read"] in rows
    assert "traffic, 3 nodes, 4 links, 2 demands" in result.err
    assert planner("check", tmp_path / "new" / "net.toml").code == 0


@pytest.mark.parametrize("name", FOLDERS)
def test_the_tables_that_ship_are_recognized_as_what_they_are(name: str, tmp_path: Path) -> None:
    assert len(FOLDERS) > 8
    written = write_scenario([scenario_file(name).with_suffix("")], tmp_path / "scenario.toml")
    assert written.system is load(name).system
    assert written.problem.size() == load(written.path).make_problem().size()


def test_marks_of_numbers_that_are_in_doubt_are_asked_for_once(tables: Path) -> None:
    (tables / "matrix.csv").write_text("source;target;rate_mbps\nparis;nice;1.000\n")
    with pytest.raises(InputError, match=r"matrix\.csv row 2: rate_mbps is '1\.000'.*say --decimal"):
        write_scenario([tables], columns=ENDS)
    assert not (tables / "scenario.toml").exists()
    written = write_scenario([tables], columns=ENDS, decimal=".")
    assert list(load(written.path).make_problem().to_tables()["demands"]["rate_mbps"]) == [1]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ([], "lines of 2026.csv, matrix.csv: are not all tables of any system"),
        ([], "lines of 2026.csv: columns with other names can be mapped: say --column 'links.tail=NAME'"),
        (["--set", "scale=2"], "--set scale: must be a key of [problem], such as problem.scale"),
        (
            ["--system", "traffic", "--set", "problem.scael=2"],
            "problem.scael: no such parameter of the problem; did you mean 'scale'?",
        ),
        (["--system", "traffic", "--unit", "lynks=Gbit/s"], "--unit lynks: traffic has no such table"),
        (["--system", "trafic"], "did you mean 'traffic'?"),
        (["--table", "links=lines"], "--table links=lines: no such file or sheet"),
        (["--table", "links=lines of 2026.csv"], "say --column 'links.tail=NAME'"),
        (["--column", "links=This end"], "--column links=This end: must be TABLE.COLUMN=NAME"),
        (["--column", "links.tail"], "--column links.tail: must be TABLE.COLUMN=NAME"),
        (
            ["--system", "traffic", "--column", "links.tial=This end"],
            "--column links.tial: links has no such column; did you mean 'tail'?",
        ),
        (["--system", "traffic", "--column", "lynks.tail=This end"], "traffic has no such table"),
        (
            [
                "--column",
                "links.tail=This-end",
                "--column",
                "links.head=That end",
                "--table",
                "links=lines of 2026",
                "--system",
                "traffic",
            ],
            "lines of 2026.csv: has no column 'This-end', which tail is mapped to; did you mean 'This end'?",
        ),
        (["elsewhere"], "elsewhere: no such file or folder"),
    ],
)
def test_what_is_missing_is_one_line(
    tables: Path, words: list[str], line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tables)
    result = planner("new", "scenario", ".", *words)
    assert result.code == 1
    assert line in result.err
    assert "Traceback" not in result.err
    assert not (tables / "scenario.toml").exists()


def test_no_scenario_is_overwritten(tables: Path) -> None:
    (tables / "scenario.toml").write_text("mine")
    with pytest.raises(InputError, match="exists already"):
        write_scenario([tables], columns=ENDS)
    assert (tables / "scenario.toml").read_text() == "mine"


def test_rows_at_fault_are_named_and_nothing_is_written(tables: Path) -> None:
    (tables / "matrix.csv").write_text("source,target,rate_mbps\nparis,nice,-3\nparis,rome,3\n")
    with pytest.raises(InputError) as caught:
        write_scenario([tables], columns=ENDS)
    text = "\n".join(caught.value.faults)
    assert "matrix.csv row 2: rate_mbps is -3" in text
    assert "rome" in text
    assert not (tables / "scenario.toml").exists()


def test_files_that_are_no_tables_of_the_system_are_left_out(tables: Path) -> None:
    (tables / "staff.csv").write_text("name,room\nAda,4\n")
    notes: list[str] = []
    with observe_notes(notes.append):
        written = write_scenario([tables], system="traffic", columns=ENDS)
    assert set(written.sheets) == {"links", "demands"}
    assert "staff.csv: is no table of traffic, left out" in notes


CIRCUITS = [("London", "Paris", 100), ("Paris", "Rome", 40), ("Rome", "London", 40), ("Paris", "Oslo", 10)]
FLOWS = [("London", "Rome", 21.3), ("Rome", "Paris", 11.8), ("Oslo", "London", 2.5)]


def workbook(path: Path, sheets: dict[str, list[tuple[object, ...]]]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)  # type: ignore[arg-type]
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


WORDS = {
    "From, To": ("Circuits", ("From", "To", "Bandwidth (Gbps)"), "Traffic matrix", "Peak Gbps"),
    "A-end, Z-end": ("Links", ("A-end", "Z-end", "Capacity [Gbit/s]"), "Flows", "demand_gbps"),
    "u, v": ("Edges", ("u", "v", "bw_gbps"), "TM", "Volume (Gbit/s)"),
    "nodes 1 and 2": ("Interfaces", ("Node 1", "Node 2", "Link speed, Gb/s"), "Demand", "p95 (Gb/s)"),
    "local": ("Trunks", ("Local router", "Remote router", "Speed Gbps"), "Commodities", "Load (Gbps)"),
}


@pytest.mark.parametrize("words", WORDS)
def test_names_that_others_give_to_sheets_and_columns(words: str, tmp_path: Path) -> None:
    links, header, demands, amount = WORDS[words]
    rows = {links: [header, *CIRCUITS], demands: [("Source", "Destination", amount), *FLOWS]}
    written = write_scenario([workbook(tmp_path / "net.xlsx", rows)])
    assert written.system.name == "traffic"
    tables = load(written.path).make_problem().to_tables()
    for table, ends, amounts in (("links", CIRCUITS, "capacity_mbps"), ("demands", FLOWS, "rate_mbps")):
        result = tables[table].head(len(ends))  # opposite links come after the rows
        assert result.iloc[:, :2].to_numpy().tolist() == [list(row[:2]) for row in ends]
        assert result[amounts].tolist() == pytest.approx([row[2] * 1000 for row in ends])
    opposite = tables["links"].iloc[len(CIRCUITS) :]
    assert opposite[["head", "tail"]].to_numpy().tolist() == [list(row[:2]) for row in CIRCUITS]


@pytest.mark.slow
def test_a_matrix_below_a_title_is_the_same_problem_as_rows(tmp_path: Path) -> None:
    cities = ["London", "Oslo", "Paris", "Rome"]
    amounts = {(source, target): rate for source, target, rate in FLOWS}
    matrix = [
        ("Source", *cities),
        *((city, *(amounts.get((city, other)) for other in cities)) for city in cities),
    ]
    sheets = {"Circuits": [("Backbone 2026",), (), ("From", "To", "Bandwidth (Gbps)"), *CIRCUITS]}
    notes: list[str] = []
    with observe_notes(notes.append):
        written = write_scenario([workbook(tmp_path / "net.xlsx", {**sheets, "Traffic matrix": matrix})])
    assert any("entries are in Gbit/s, as columns of the other tables are" in note for note in notes)
    demands = load(written.path).make_problem().to_tables()["demands"]
    result = {(item, other): rate for item, other, rate in demands.iloc[:, :3].itertuples(index=False)}
    assert result == pytest.approx({pair: rate * 1000 for pair, rate in amounts.items()})
    written.path.unlink()
    other = write_scenario([tmp_path / "net.xlsx"], units={"demands": "Mbit/s"})
    demands = load(other.path).make_problem().to_tables()["demands"]
    assert demands["rate_mbps"].sum() == pytest.approx(sum(amounts.values()))


@pytest.mark.parametrize("answer", [True, False, None])
def test_whether_a_row_is_a_line_both_ways_is_asked_set_or_assumed(
    answer: bool | None, tmp_path: Path
) -> None:
    rows = {"Circuits": [("From", "To", "capacity_gbps"), *CIRCUITS]}
    rows["Demands"] = [("From", "To", "rate_gbps"), *FLOWS]
    book = workbook(tmp_path / "net.xlsx", rows)
    asked: list[str] = []
    notes: list[str] = []
    with observe_notes(notes.append):
        written = write_scenario([book], ask=lambda item: asked.append(item.text) or answer)
    assert len(asked) == 1
    is_said = [note for note in notes if "--set problem.both_directions=false" in note]
    assert len(is_said) == (answer is None)
    # Oslo has no row that starts there, so that rows cannot be one way only
    assert len(load(written.path).make_problem().links) == (4 if answer is False else 8)
    written.path.unlink()
    with observe_notes(notes.append):
        other = write_scenario(
            [book], settings={"both_directions": False}, ask=lambda _: pytest.fail("asked")
        )
    assert len(load(other.path).make_problem().links) == 4


def test_rows_for_both_ways_are_no_question(tables: Path) -> None:
    written = write_scenario([tables], columns=ENDS, ask=lambda _: pytest.fail("asked"))
    assert len(load(written.path).make_problem().links) == len(LINKS)


def test_the_options_that_an_error_names_work_as_they_are(tmp_path: Path) -> None:
    book = workbook(
        tmp_path / "net.xlsx",
        {
            "Sheet1": [("Here", "There", "Pipe"), *CIRCUITS],
            "Sheet2": [("From", "To", "Peak"), *FLOWS],
        },
    )
    result = planner("new", "scenario", book, "--system", "traffic")
    assert result.code == 1
    options = re.findall(r"--(table|column) '?([^'= ]+)='?([^']+)'", result.err)
    assert ("column", "links.capacity_mbps", "NAME") in options
    assert ("column", "demands.rate_gbps", "Peak") in options
    names = {"links.tail": "Here", "links.head": "There", "links.capacity_mbps": "Pipe"}
    words: list[str] = []
    for option, key, value in options:
        if key != "demands.rate_mbps":  # the other reading
            words += [f"--{option}", f"{key}={names.get(key, value)}"]
    result = planner("new", "scenario", book, "--system", "traffic", *words)
    assert result.code == 0, result.err
    tables = load(tmp_path / "scenario.toml").make_problem().to_tables()
    assert tables["demands"]["rate_mbps"].tolist() == pytest.approx([row[2] * 1000 for row in FLOWS])
    assert tables["links"]["capacity_mbps"].tolist()[:4] == [100, 40, 40, 10]


def test_other_systems_are_recognized_by_the_words_of_others(tmp_path: Path) -> None:
    stores = {
        "Servers": [("Server", "Throughput (kops)", "RAM (GB)"), ("n1", 10, 64)],
        "Customers": [("Customer", "Weight", "mix"), ("web", 1, "elastic")],
        "Shards": [("Customer", "Shard", "Load (kops)", "Size (GB)"), ("web", "p1", 3, 5)],
    }
    written = write_scenario([workbook(tmp_path / "store.xlsx", stores)], tmp_path / "store.toml")
    assert written.system.name == "fairshare"
    assert written.problem.to_tables()["partitions"]["demand_kops"].tolist() == [3]
    (tmp_path / "samples.csv").write_text(
        "timestamp,country,Bandwidth (Gbps)\n2026-01-01 00:00,FR,1.5\n2026-01-01 00:05,FR,2\n"
    )
    (tmp_path / "prices.csv").write_text(
        "Provider,country,billing,USD per Mbps,capacity_gbps\nx,FR,peak,1.5,10\n"
    )
    files = [tmp_path / "samples.csv", tmp_path / "prices.csv"]
    written = write_scenario(files, tmp_path / "cdn.toml")
    assert written.system.name == "contracts"
    assert written.problem.to_tables()["traffic"]["traffic_mbps"].tolist() == [1500, 2000]


def test_rows_for_each_direction_of_lines_to_buy_for_are_asked_about_and_an_option_answers(
    tmp_path: Path,
) -> None:
    (tmp_path / "circuits.csv").write_text("From,To,Bandwidth (Gbps)\na,b,10\nb,a,10\n")
    (tmp_path / "demands.csv").write_text("source,target,rate_gbps\na,b,15\n")
    (tmp_path / "modules.csv").write_text("module,capacity_gbps,Price\n10G,10,1\n")
    asked: list[str] = []
    written = write_scenario(
        [tmp_path], system="capacity", ask=lambda item: asked.append(item.parameter) or "directed"
    )
    assert asked == ["direction"]
    assert load(written.path).make_problem().direction == "directed"
    written.path.unlink()
    written = write_scenario([tmp_path], system="capacity", settings={"direction": "bidirected"})
    assert load(written.path).make_problem().direction == "bidirected"


def test_a_file_with_the_name_of_a_required_table_is_that_table(tmp_path: Path) -> None:
    """Its columns are those of prices above a volume, too; what it lacks as contracts is said."""
    (tmp_path / "usage.csv").write_text(
        "Time,Region,Mbps\n2026-03-01 00:00,EU,120\n2026-03-01 00:05,EU,130\n"
    )
    (tmp_path / "contracts.csv").write_text("Provider,Region,Billing,Price per Mbps\ncogent,EU,95th,0.35\n")
    result = planner("new", "scenario", tmp_path, "--system", "contracts")
    assert result.code == 1
    assert "contracts.csv: column 'capacity_mbps' is missing" in result.err
    assert "no file is the table" not in result.err


def test_times_in_doubt_beside_other_faults_are_said_with_them(tmp_path: Path) -> None:
    (tmp_path / "usage.csv").write_text(
        "Time,Region,Mbps\n01/03/2026 00:00,EU,120\n01/03/2026 00:05,EU,130\n"
    )
    (tmp_path / "contracts.csv").write_text(
        "CDN,Region,Billing,Price per Mbps,Committed Mbps,Capacity Gbps\ncogent,EU,95th percentile,0.35,,-1\n"
    )
    result = planner("new", "scenario", tmp_path, "--system", "contracts")
    assert result.code == 1
    assert "'01/03/2026 00:00' is 2026-03-01 or 2026-01-03; write the year first" in result.err
    assert "contracts.csv row 2: capacity_mbps is -1000.0, must be at least 0" in result.err


@pytest.mark.parametrize("name", BOOKS)
def test_a_workbook_as_people_have_it_is_a_problem_in_one_command_or_one_answer(
    name: str, tmp_path: Path
) -> None:
    book = BOOKS[name]
    path = tmp_path / "own book.xlsx"
    save(book.sheets(), path)
    asked: list[str] = []

    def answer(question: OpenQuestion) -> Any:
        if question.parameter not in book.answers:
            return question.assumed
        asked.append(question.parameter)
        return book.answers[question.parameter]

    written = write_scenario([path], ask=answer)
    assert written.system.name == book.system
    assert asked == list(book.answers), "one question at most, and that one"
    assert len(asked) <= 1
    problem = load(written.path).make_problem()
    tables = problem.to_tables()
    sums = {
        column: _directed_sum(tables, *column.split("."), both_ways=len(written.problem.to_tables()["links"]))
        if column == "links.capacity_mbps" and book.system == "traffic"
        else tables[column.split(".")[0]][column.split(".")[1]].sum()
        for column in book.sums
    }
    assert sums == pytest.approx(dict(book.sums))
    assert {table: len(tables[table]) for table in book.rows} == dict(book.rows)
    for table, cells in book.first.items():
        assert {column: str(tables[table][column].iloc[0]) for column in cells} == dict(cells)


def _directed_sum(tables: Any, table: str, column: str, *, both_ways: int) -> float:
    """Return the sum of a column of links, each line counted once."""
    links = tables[table]
    pairs = {frozenset(ends) for ends in zip(links["tail"], links["head"], strict=True)}
    return float(links[column].sum()) * len(pairs) / both_ways


def test_a_demand_for_each_time_is_a_series(tmp_path: Path) -> None:
    start = datetime.datetime(2026, 3, 29)
    times = [start + datetime.timedelta(hours=hours) for hours in (0, 1, 3)]
    traffic = [
        ("Time (local)", *TRAFFIC_NAMES),
        *[
            (time, *ends, rate + step)
            for step, time in enumerate(times)
            for *ends, rate in TRAFFIC[: 5 - step]
        ],
    ]
    save({"Circuits": CIRCUITS_SHEET, "Traffic": traffic}, tmp_path / "net.xlsx")
    result = planner("new", "scenario", tmp_path / "net.xlsx")
    assert result.code == 0, result.err
    assert "3 windows, the first with 5 nodes" in result.err
    assert "1 window is missing (2026-03-29 02:00)" in result.err
    assert "may be that which daylight-saving time skips: write times in UTC" in result.err
    assert "a demand has rate 0 in a step without a row for it: 3 of 15 rates" in result.err
    scenario = load(tmp_path / "scenario.toml")
    assert scenario.is_consecutive
    assert scenario.make_series is not None
    series = list(scenario.make_series())
    assert [label for label, _ in series] == ["1", "2", "3"]
    rates = np.array([problem.rate_mbps for _, problem in series])
    expected = [[rate * 1000 + 1000 * step if row < 5 - step else 0 for row, (*_, rate) in enumerate(TRAFFIC)]
                for step in range(3)]  # fmt: skip
    assert rates == pytest.approx(np.array(expected))
    out = tmp_path / "out"
    rolled = planner("roll", tmp_path / "scenario.toml", "--designs", "ecmp", "--out", out)
    assert rolled.code == 0, rolled.err
    with pytest.raises(InputError, match="gives consecutive problems; run them with: planner roll"):
        scenario.make_problem()
    second = load(tmp_path / "scenario.toml", changes={"series.window": 2})
    assert not second.is_consecutive
    assert second.make_problem().rate_mbps == pytest.approx(expected[1])
    plan = out / "ecmp" / "windows" / "2" / "plan"
    checked = planner("check", tmp_path / "scenario.toml", "--set", "series.window=2", "--plan", plan)
    assert checked.code == 0, checked.err
    assert "no constraint violation" in checked.out + checked.err
    with pytest.raises(InputError, match=r"series.window is 9, no window of the series; valid: 1, 2, 3"):
        load(tmp_path / "scenario.toml", changes={"series.window": 9}).make_problem()
    with pytest.raises(InputError, match=r"series.window: problem.source gives one problem"):
        load("traffic/abilene", changes={"series.window": 1})


@pytest.mark.parametrize(
    ("header", "rows", "line"),
    [
        (
            ("Time", "From", "To", "Gbps"),
            [(datetime.datetime(2026, 10, 25, hour), "London", "Paris", 2) for hour in (0, 1, 2, 2, 3)],
            "is there already in row 4; where this is the hour that comes twice as daylight-saving time ends",
        ),
        (
            ("Date", "Hour", "From", "To", "Gbps"),
            [
                (datetime.date(2026, 10, 5 + day), f"shift {hour}", "London", "Paris", 2)
                for day in (0, 1)
                for hour in (1, 2)
            ],
            "columns 'Date' and 'Hour' tell the window of a row only together",
        ),
        (
            ("Date", "Hour", "From", "To", "Gbps"),
            [(f"0{day}/03/2026", hour, "London", "Paris", 2) for day in (1, 2) for hour in (1, 2)],
            "'01/03/2026 01:00:00' is 2026-03-01 or 2026-01-03; write the year first",
        ),
        (
            ("Date", "Hour", "From", "To", "Gbps"),
            [(f"2026-03-0{day}", hour, "London", "Paris", 2) for day in (1, 2) for hour in (1, "noon")],
            "columns 'Date' and 'Hour': 'noon' is no hour or time of day",
        ),
    ],
)
def test_times_that_do_not_tell_rows_apart_are_one_line(
    header: tuple[str, ...], rows: list[Any], line: str, tmp_path: Path
) -> None:
    save({"Circuits": CIRCUITS_SHEET, "Traffic": [header, *rows]}, tmp_path / "net.xlsx")
    with pytest.raises(InputError) as caught:
        write_scenario([tmp_path / "net.xlsx"], system="traffic")
    assert any(line in fault for fault in caught.value.faults), caught.value.faults


@pytest.mark.parametrize(
    ("names", "times"),
    [
        (("Date", "Hour"), [(datetime.date(2026, 10, day), hour) for day in (5, 6) for hour in (0, 12)]),
        (("Day", "Time"), [(day, f"{hour:02d}:00") for day in (5, 6) for hour in (0, 12)]),
        (("Datum", "Uhrzeit"), [(f"{day:02d}.10.2026", f"{hour}:00") for day in (5, 6) for hour in (0, 12)]),
    ],
)
def test_dates_and_hours_in_two_columns_are_one_time(
    names: tuple[str, str], times: list[Any], tmp_path: Path
) -> None:
    traffic = [(*time, "London", "Paris", 1 + step) for step, time in enumerate(times)]
    sheets = {"Circuits": CIRCUITS_SHEET, "Traffic": [(*names, *TRAFFIC_NAMES), *traffic]}
    save(sheets, tmp_path / "net.xlsx")
    notes: list[str] = []
    with observe_notes(notes.append):
        written = write_scenario([tmp_path / "net.xlsx"])
    shown = {column.given: (column.ours, column.assumption) for column in written.columns}
    assert shown[names[0]] == ("demands.window", "")
    assert shown[names[1]] == ("demands.window", "together with the dates")
    assert any(f"read columns '{names[0]}' and '{names[1]}' together as window" in note for note in notes)
    make = load(written.path).make_series
    assert make is not None
    assert [problem.rate_mbps.tolist() for _, problem in make()] == [[1e3], [2e3], [3e3], [4e3]]


def test_a_table_without_times_is_no_series(tmp_path: Path) -> None:
    (tmp_path / "links.csv").write_text("tail,head,capacity_mbps\na,b,1\n")
    (tmp_path / "demands.csv").write_text("source,target,rate_mbps\na,b,1\n")
    file = tmp_path / "scenario.toml"
    text = 'system = "traffic"\n[problem]\nsource = "tables"\npath = "."\n'
    file.write_text(text + '[problem.tables.links]\nwindow = "hour"\n')
    with pytest.raises(
        InputError, match=r"problem\.tables\.links\.window: traffic has no table links over time"
    ):
        load(file)
    file.write_text(text + '[problem.tables.demands]\nwindow = "hour"\n')
    with pytest.raises(InputError, match="has no column 'hour', which window is mapped to"):
        load(file).make_series()  # type: ignore[misc]


def test_addresses_are_said_to_be_no_names(tmp_path: Path) -> None:
    links = [("Local IP", "Remote IP", "Gbps"), ("10.0.0.1", "10.0.0.2", 100)]
    save({"Links": links, "Traffic": TRAFFIC_SHEET}, tmp_path / "net.xlsx")
    with pytest.raises(InputError, match="'Local IP', 'Remote IP' are addresses or ports, no names of nodes"):
        write_scenario([tmp_path / "net.xlsx"], system="traffic")


@pytest.mark.parametrize("name", ["net.gml", "net.dot", "net.json", "lab.clab.yml"])
def test_a_graph_and_a_matrix_are_a_scenario(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(test_graphs.FILES[name])
    np.save(tmp_path / "tm.npy", test_graphs.MATRIX)
    written = write_scenario([tmp_path / name, tmp_path / "tm.npy"])
    problem = load(written.path).make_problem()
    assert problem.size() == written.problem.size() == {"nodes": 3, "links": 6, "demands": 4}
    written.path.unlink()
    with pytest.raises(InputError) as caught:
        write_scenario([tmp_path / name])
    assert caught.value.faults[-1] == (
        f"{name}: add a file of demands to the command, or say --set problem.total_mbps=1000"
    )
    again = write_scenario([tmp_path / name], settings={"total_mbps": 100.0})
    assert load(again.path).make_problem().to_tables()["demands"]["rate_mbps"].sum() == pytest.approx(100)


def test_a_design_of_net2plan_is_a_scenario(tmp_path: Path) -> None:
    (tmp_path / "three.n2p").write_text(test_graphs.N2P)
    written = write_scenario([tmp_path / "three.n2p"])
    assert load(written.path).make_problem().size() == {"nodes": 3, "links": 2, "demands": 1}


def test_columns_as_read_can_be_saved(tmp_path: Path) -> None:
    save(BOOKS["units in the title"].sheets(), tmp_path / "net.xlsx")
    written = write_scenario([tmp_path / "net.xlsx"], save_columns=True)
    document = tomllib.loads(written.path.read_text())
    assert document["problem"]["columns"] == {
        "links": {"tail": "From", "head": "To", "capacity_gbps": "Bandwidth"},
        "demands": {"source": "Source", "target": "Destination", "rate_gbps": "Peak"},
    }
    assert load(written.path).make_problem().size() == written.problem.size()


def test_what_no_column_says_is_one_error_with_the_options_for_all_of_it(tmp_path: Path) -> None:
    save(BOOKS["no unit at all"].sheets(), tmp_path / "net.xlsx")
    with pytest.raises(InputError) as caught:
        write_scenario([tmp_path / "net.xlsx"])
    advice = caught.value.faults[-1]
    assert advice.startswith(
        "to give the unit of columns that name none, say --unit links=Gbit/s --unit demands="
    )
    written = write_scenario([tmp_path / "net.xlsx"], units={"links": "Gbit/s", "demands": "Gbit/s"})
    rates = load(written.path).make_problem().to_tables()["demands"]["rate_mbps"]
    assert rates.sum() == pytest.approx(63_400)


def test_rows_of_one_pair_are_flows_and_equal_ones_are_refused(tmp_path: Path) -> None:
    (tmp_path / "links.csv").write_text("tail,head,capacity_mbps\na,b,9\nb,c,9\n", encoding="utf-8")
    (tmp_path / "demands.csv").write_text(
        "source,target,rate_mbps\na,b,1\na,c,2\na,b,3\na,b,4\n", encoding="utf-8"
    )
    notes: list[str] = []
    with observe_notes(notes.append):
        written = write_scenario([tmp_path / "links.csv", tmp_path / "demands.csv"])
    demands = written.problem.to_tables()["demands"]
    assert demands["class"].astype(str).tolist() == ["1", "1", "2", "3"]
    assert demands["rate_mbps"].tolist() == [1, 2, 3, 4]
    assert (
        "assumed: demands.csv: 2 rows with the source and target of another row, such as rows 2 and 4, "
        "are further ones; column class numbers them" in notes
    )
    (tmp_path / "scenario.toml").unlink()
    (tmp_path / "demands.csv").write_text("source,target,rate_mbps\na,b,3\na,b,3\n", encoding="utf-8")
    with pytest.raises(
        InputError, match="there already in row 2; for several flows of a pair add a column class"
    ):
        write_scenario([tmp_path / "links.csv", tmp_path / "demands.csv"]).problem.to_tables()


@pytest.mark.parametrize("times", [("08:00", "09:00", "10:00"), ("2026", "2027"), ("2026-03", "2026-04")])
def test_columns_of_times_are_named_with_what_to_write(times: tuple[str, ...], tmp_path: Path) -> None:
    traffic = [("From", "To", *times), ("London", "Paris", *range(1, len(times) + 1))]
    save({"Circuits": CIRCUITS_SHEET, "Traffic": traffic}, tmp_path / "net.xlsx")
    with pytest.raises(InputError, match="name times; write a row for each time") as caught:
        write_scenario([tmp_path / "net.xlsx"])
    assert f"'{times[0]}'" in str(caught.value)


def test_rows_out_of_service_are_kept_where_the_scenario_says_so(tmp_path: Path) -> None:
    circuits = [("From", "To", "Gbps", "Status"), ("a", "b", 1, "up"), ("b", "c", 1, "down")]
    save({"Circuits": circuits, "Demands": [("From", "To", "Gbps"), ("a", "b", 1)]}, tmp_path / "net.xlsx")
    notes: list[str] = []
    with observe_notes(notes.append):
        written = write_scenario([tmp_path / "net.xlsx"])
    assert len(written.problem.to_tables()["links"]) == 1
    (note,) = [note for note in notes if "left out" in note]
    assert note == (
        "assumed: net.xlsx sheet Circuits: left out 1 row (3) whose 'Status' is 'down'; to keep them, write "
        'ignore = ["Status"] in [problem.tables.links]'
    )
    text = written.path.read_text(encoding="utf-8")
    section = "[problem.tables.links]\n"
    assert section in text
    written.path.write_text(text.replace(section, section + 'ignore = ["Status"]\n'), encoding="utf-8")
    problem = load(written.path).make_problem()
    assert len(problem.to_tables()["links"]) == 2


def test_prices_for_each_unit_are_said_per_unit(tmp_path: Path) -> None:
    (tmp_path / "traffic.csv").write_text("window,region,Traffic (GB)\n1,US,51200\n")
    (tmp_path / "contracts.csv").write_text(
        "cdn,region,billing,Price ($/TB),Capacity (Gbit/s)\nc,US,mean,85,10\n"
    )
    written = write_scenario([tmp_path / "traffic.csv", tmp_path / "contracts.csv"], system="contracts")
    units = {column.ours: column.unit for column in written.columns}
    assert units["traffic.traffic_gb"] == "GB"
    assert units["contracts.price_per_gb"].startswith("per TB, divided by 1,0")
