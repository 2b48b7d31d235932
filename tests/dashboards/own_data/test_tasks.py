"""Own data: files are recognized, read, checked and stored; all others are refused in a line each."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from planner.contract.tables import digest
from planner.errors import InputError
from planner.io.layout import Layout
from planner.runs.evaluation import compare, solve
from planner.scenarios.catalogue import find_system
from planner.scenarios.scenario import load
from planner.scenarios.shipped import FOLDERS
from planner_dashboard import comparisons, worker
from planner_dashboard.own_data import tasks
from planner_dashboard.own_data.intake import GivenFile
from planner_dashboard.question import UPLOADED, Question
from tests.commands import planner
from tests.own_workbooks import BOOKS, save

LINKS = b"tail,head,capacity_mbps\na,b,10\nb,a,10\n"
DEMANDS = b"source,target,rate_mbps\na,b,8\n"


def given(name: str, content: bytes) -> GivenFile:
    return GivenFile(name=name, content=content)


def store(files: list[GivenFile], folder: Path, system: str = "traffic") -> tasks.Checked:
    """Return the checked tables of files; raise InputError with every fault on the way."""
    taken = tasks.take_files(files, folder)
    reading = taken.recognition.reading(system)
    if taken.faults or reading is None:
        raise InputError(*(taken.faults or ("not recognized",)))
    pairs = zip(taken.sheets, reading.choices, strict=True)
    read = tasks.read_sheets(
        system, {choice.table: (sheet, Layout()) for sheet, choice in pairs if choice.table}
    )
    if read.faults:
        raise InputError(*(fault for own_values in read.faults.values() for fault in own_values))
    checked = tasks.check_tables(system, read.frames, {}, folder)
    if checked.faults:
        raise InputError(*checked.faults)
    return checked


def test_what_links_mean_is_asked_and_said_as_in_scenarios(tmp_path: Path) -> None:
    line = b"tail,head,capacity_mbps\na,b,10\n"
    others = [given("demands.csv", DEMANDS), given("modules.csv", b"module,capacity_mbps,cost\nm,10,1\n")]
    checked = store([given("links.csv", line), *others], tmp_path, "capacity")
    assert [doubt for doubt in checked.doubts if "both directions shares the capacity" in doubt]
    with pytest.raises(InputError, match="links: every row has its opposite, such as row 1 "):
        store([given("links.csv", LINKS), *others], tmp_path, "capacity")
    network = given("network.csv", b"direction\ndirected\n")
    stated = store([given("links.csv", LINKS), *others, network], tmp_path, "capacity")
    assert not [doubt for doubt in stated.doubts if "directions" in doubt]


def parquet(frame: pd.DataFrame) -> bytes:
    content = io.BytesIO()
    frame.to_parquet(content)
    return content.getvalue()


def test_files_of_any_name_are_recognized_and_stored_under_names_of_ours(tmp_path: Path) -> None:
    frame = pd.DataFrame({"tail": ["a", "b"], "head": ["b", "a"], "capacity_mbps": [10.0, 10.0]})
    files = [given("../../evil.parquet", parquet(frame)), given("C:\\x\\My demands.CSV", DEMANDS)]
    checked = store(files, tmp_path)
    assert checked.size == "2 nodes, 2 links, 1 demand"
    assert {path.name for path in (tmp_path / checked.digest).iterdir()} >= {
        "links.csv", "demands.csv", "scenario.toml",
    }  # fmt: skip
    assert {path.name for path in tmp_path.iterdir()} == {checked.digest, tasks.GIVEN}, "nothing beside it"
    assert store(files, tmp_path).digest == checked.digest, "the same tables have the same address"


def many_rows() -> pa.Table:
    zeros = pa.array(np.zeros(11_000_000, np.int32))
    names = {"source": "a", "target": "b"}
    return pa.table({k: pa.DictionaryArray.from_arrays(zeros, pa.array([v])) for k, v in names.items()})


def packed(table: pa.Table) -> bytes:
    content = io.BytesIO()
    pq.write_table(table, content, compression="zstd")
    return content.getvalue()


def zipped(inside: bytes, name: str = "xl/worksheets/sheet1.xml") -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, inside)
    return content.getvalue()


FINE = parquet(pd.DataFrame({"source": ["a"], "target": ["b"], "rate_mbps": [8.0]}))
BOMB = b"""<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><l>&b;</l>"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("demands.csv", b"", "demands.csv"),
        ("demands.csv", b"\x00\x01\x02\xff" * 100, "demands.csv"),
        ("demands.parquet", b"PAR1" + b"\x00" * 64, "demands.parquet"),
        ("demands.parquet", parquet(pd.DataFrame({"a": [1]}))[:200], "demands.parquet"),
        (
            "demands.csv",
            lambda: b"source,target,rate_mbps\n" + b"a,b,8\n" * (9 << 20),
            "has 54 MB, at most 50",
        ),
        ("demands.xml", BOMB, "must end in .csv, .tsv"),
        ("demands.pkl", b"\x80\x04cos\nsystem\n", "must end in .csv, .tsv"),
        ("demands.csv", b'source,target,rate_mbps\n"=cmd|x",b,8\n', "row 1: source is '=cmd|x'"),
        ("demands.csv", b"source,target,rate_mbps\n@SUM(A1),b,8\n", "row 1: source is '@SUM"),
        ("demands.csv", b"source,target,rate_mbps\na,<script>x</script>,8\n", "target is '<script>"),
        ("demands.csv", b"source,target,rate_mbps\na,b,-8\n", "rate_mbps is -8"),
        ("demands.csv", b"source,target,rate_mbps\n-2+3,b,8\n", "source is '-2+3'"),
        ("demands.csv", "source,target,rate_mbps\n＝1+1,b,8\n".encode(), "must be a plain name"),
        ("demands.csv", b'source,target,rate_mbps\n"\r=1",b,8\n', "must be a plain name"),
        ("demands.csv", b"source,target,rate_mbps\n../../etc/passwd,b,1\n", "is no node"),
        ("../../etc/demands.csv", b"source,target,rate_mbps\na,b,-8\n", "demands row 1"),
        ("demands.csv", b"a," * 100_000 + b"a\n", "has over 200 columns"),
        ("demands.csv", b"source,target,rate_mbps\n" + b"a" * 2_000 + b",b,1\n", "2,000 letters"),
        ("demands.csv", lambda: zipped(b"0" * 60_000_000), "is a zip archive; unpack it"),
        ("demands.xlsx", lambda: zipped(b"0" * 60_000_000), "is a zip archive; unpack it"),
        ("demands.parquet", lambda: zipped(b"0" * 60_000_000), "is a zip archive; unpack it"),
        ("demands.parquet", FINE[:40] + b"\xff" * 30 + FINE[70:], "is no Parquet file"),
        ("demands.parquet", FINE[:-60] + b"\xff" * 40 + FINE[-20:], "is no Parquet file"),
        ("demands.parquet", lambda: packed(many_rows()), "has 11,000,000 rows, at most 10,000,000"),
        ("demands.parquet", lambda: packed(pa.table({"source": ["a" * (300 << 20)]})), "unpacks to 300 MB"),
        (
            "mine.zip",
            lambda: zipped(b"0" * (300 << 20), "demands.csv"),
            "mine.zip: unpacks to more than 256 MB",
        ),
        ("mine.zip", b"PK\x03\x04", "mine.zip: is no readable zip archive"),
        ("mine.zip", zipped(zipped(DEMANDS, "demands.csv"), "inner.zip"), "inner.zip: must end in"),
        ("demands.csv", b"source,target\na,b\n", "column 'rate_mbps' is missing"),
    ],
)
def test_a_file_that_is_no_table_is_one_line(
    tmp_path: Path, name: str, content: bytes | Callable[[], bytes], message: str
) -> None:
    made = content if isinstance(content, bytes) else content()
    with pytest.raises(InputError) as refused:
        store([given("links.csv", LINKS), given(name, made)], tmp_path)
    assert message in str(refused.value)
    assert str(tmp_path) not in str(refused.value), "the error names no folder of the server"
    assert len(refused.value.faults) == 1, refused.value.faults
    assert "\n" not in refused.value.faults[0]
    assert [path.name for path in tmp_path.iterdir()] == [tasks.GIVEN]


def test_tables_that_do_not_fit_together_are_not_stored(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="demands row 1: target 'z' is no node"):
        store(
            [given("links.csv", LINKS), given("demands.csv", b"source,target,rate_mbps\na,z,8\n")], tmp_path
        )
    assert [path.name for path in tmp_path.iterdir()] == [tasks.GIVEN]


def test_a_zip_of_a_folder_is_its_files(tmp_path: Path) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("net/links.csv", LINKS)
        archive.writestr("net/../../../demands.csv", DEMANDS)
        archive.writestr("__MACOSX/net/._links.csv", b"\0")
        archive.writestr("net/scenario.toml", 'system = "traffic"\n')
    taken = tasks.take_files([given("net.zip", content.getvalue())], tmp_path / "session")
    assert taken.system == "traffic"
    assert [sheet.name for sheet in taken.sheets] == ["links.csv", "demands.csv"]
    assert not taken.faults
    assert [path.name for path in tmp_path.iterdir()] == ["session"]


def test_a_workbook_is_read_by_its_sheets(tmp_path: Path) -> None:
    content = io.BytesIO()
    with pd.ExcelWriter(content, engine="openpyxl") as book:
        links = {"tail": ["a", "b"], "head": ["b", "a"], "Capacity (Gbit/s)": [1, 1]}
        pd.DataFrame(links).to_excel(book, sheet_name="Sheet7", index=False)
        demands = {"source": ["a"], "target": ["b"], "rate_mbps": [8]}
        pd.DataFrame(demands).to_excel(book, sheet_name="matrix of May", index=False)
        pd.DataFrame({"x": [1]}).to_excel(book, sheet_name="About", index=False)
    checked = store([given("net.xlsx", content.getvalue())], tmp_path)
    assert checked.size == "2 nodes, 2 links, 1 demand"


def test_dates_and_unclear_numbers_stay_as_cells_to_correct(tmp_path: Path) -> None:
    taken = tasks.take_files([given("links.csv", b'tail,head,capacity_mbps\na,b,"1,500"\n')], tmp_path)
    layout = Layout(advice="choose it")
    read = tasks.read_sheets("traffic", {"links": (taken.sheets[0], layout)})
    assert read.faults["links"] == ("links.csv row 2: capacity_mbps is '1,500', 1500 or 1.500? choose it",)
    assert read.frames["links"]["capacity_mbps"].tolist() == ["1,500"]
    selected = Layout(decimal=",", advice="choose it")
    read = tasks.read_sheets("traffic", {"links": (taken.sheets[0], selected)})
    assert not read.faults
    assert read.frames["links"]["capacity_mbps"].tolist() == [1.5]


@pytest.mark.parametrize("name", ["traffic/germany50", "multicast/own_data", "brokering/own_data"])
def test_a_saved_scenario_is_the_same_problem_for_the_command_line(name: str, tmp_path: Path) -> None:
    read = tasks.read_scenario(name)
    checked = tasks.check_tables(read.system, read.frames, read.sections, tmp_path)
    assert checked.faults == ()
    with zipfile.ZipFile(io.BytesIO(tasks.pack(tmp_path / checked.digest, "mine"))) as archive:
        archive.extractall(tmp_path / "unpacked")
    saved = load(tmp_path / "unpacked" / "mine" / "scenario.toml")
    original = load(name)
    assert digest(saved.make_problem().to_tables()) == digest(original.make_problem().to_tables())
    assert [entry.label for entry in saved.designs] == [entry.label for entry in original.designs]


def test_a_scenario_saved_on_the_server_is_listed_and_solved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = store([given("links.csv", LINKS), given("demands.csv", DEMANDS)], tmp_path / "session")
    stored = tmp_path / "session" / checked.digest
    with pytest.raises(InputError, match="no folder for scenarios"):
        tasks.save_scenario(stored, "mine")
    (tmp_path / "scenarios").mkdir()
    monkeypatch.setenv(FOLDERS, str(tmp_path / "scenarios"))
    assert tasks.save_scenario(stored, "My net") == "traffic/My_net"
    assert Question.from_query({"scenario": ["traffic/My_net"]}) is not None
    result = planner("solve", "traffic/My_net", "--design", "ecmp", "--json")
    assert result.code == 0, result.err
    assert '"max_utilization": 0.8' in result.out
    for name in ("My net", "../x", "a/b", "", "germany50"):
        with pytest.raises(InputError):
            tasks.save_scenario(stored, name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["scenarios", "session"]


def test_uploaded_tables_are_found_in_their_own_session_only(tmp_path: Path) -> None:
    """An address with the digest of another visitor's tables shows nothing of them."""
    checked = store([given("links.csv", LINKS), given("demands.csv", DEMANDS)], tmp_path / "theirs")
    question = Question(scenario=UPLOADED, upload=checked.digest, designs=("ecmp",))
    assert question.load(tmp_path / "theirs" / checked.digest).make_problem() is not None
    with pytest.raises(InputError, match="upload them again"):
        question.load(tmp_path / "mine" / checked.digest)


def test_a_download_includes_its_tables(tmp_path: Path) -> None:
    from planner_dashboard.share import panel

    checked = store([given("links.csv", LINKS), given("demands.csv", DEMANDS)], tmp_path)
    question = Question(
        scenario=UPLOADED, upload=checked.digest, designs=("ecmp",), changes={"problem.scale": 0.5}
    )
    answer = worker.compare(question, tmp_path / checked.digest, tmp_path / "out")
    assert answer.designs[0].figures.metrics["max_utilization"] == pytest.approx(0.4)
    content = panel.make_file(answer.folder, question, "zip", "")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        archive.extractall(tmp_path / "unzipped")
    result = planner("compare", tmp_path / "unzipped" / "scenario.toml", "--designs", "ecmp", "--json")
    assert result.code == 0, result.err
    assert '"max_utilization": 0.4' in result.out


@pytest.mark.slow
def test_a_workbook_in_the_words_of_others_is_understood_with_one_question(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.remove(book.active)  # type: ignore[arg-type]
    circuits = book.create_sheet("Circuits")
    for row in (("Backbone",), ("From", "To", "Bandwidth (Gbps)"), ("a", "b", 10), ("b", "c", 4)):
        circuits.append(row)
    matrix = book.create_sheet("Traffic matrix")
    for row in (("Source", "a", "b", "c"), ("a", None, 1, 2), ("b", 3, None, None), ("c", 4, None, None)):
        matrix.append(row)
    content = io.BytesIO()
    book.save(content)
    taken = tasks.take_files([given("net.xlsx", content.getvalue())], tmp_path)
    assert taken.system == "traffic"
    reading = taken.recognition.reading("traffic")
    assert reading is not None
    selected = {
        str(choice.table): (sheet, Layout())
        for sheet, choice in zip(taken.sheets, reading.choices, strict=True)
    }
    read = tasks.read_sheets("traffic", selected)
    assert read.matrices == {"demands"}
    assert read.frames["demands"]["rate_mbps"].tolist() == [1000, 2000, 3000, 4000]
    assert any("entries are in Gbit/s" in note for note in read.notes["demands"])
    links = {}
    for answers in ({}, {"both_directions": True}, {"both_directions": False}):
        checked = tasks.check_tables("traffic", read.frames, {}, tmp_path, answers)
        assert [question.parameter for question in checked.questions] == ["both_directions"]
        problem = load(tmp_path / checked.digest / "scenario.toml").make_problem()
        links[answers.get("both_directions")] = len(problem.links)
    assert links == {None: 4, True: 4, False: 2}  # c and b have no other way to a


def test_a_unit_that_no_column_names_is_chosen_and_the_columns_are_shown(tmp_path: Path) -> None:
    book = BOOKS["no unit at all"]
    save(book.sheets(), tmp_path / "net.xlsx")
    taken = tasks.take_files([given("net.xlsx", (tmp_path / "net.xlsx").read_bytes())], tmp_path / "session")
    assert taken.system == "traffic"
    selected = {
        str(choice.table): sheet
        for sheet, choice in zip(taken.sheets, taken.recognition.readings[0].choices, strict=True)
    }
    read = tasks.read_sheets("traffic", {table: (sheet, Layout()) for table, sheet in selected.items()})
    assert read.unitless == {"links", "demands"}
    assert all("names no unit" in fault for faults in read.faults.values() for fault in faults)
    layout = Layout(unit="Gbit/s")
    read = tasks.read_sheets("traffic", {table: (sheet, layout) for table, sheet in selected.items()})
    assert read.faults == {}
    assert read.frames["demands"]["rate_mbps"].sum() == pytest.approx(63_400)
    rows = {(column.given, column.ours): column.unit for column in read.columns}
    assert rows["Bandwidth", "links.capacity_mbps"] == "Gbit/s, times 1,000"


def test_a_template_is_a_workbook_of_the_system(tmp_path: Path) -> None:
    name, content = tasks.make_template("rotors")
    assert name == "rotors.xlsx"
    book = openpyxl.load_workbook(io.BytesIO(content))
    assert set(find_system("rotors").problem.table_by_name) < set(book.sheetnames)


def test_an_existing_plan_stands_beside_the_designs(tmp_path: Path) -> None:
    read = tasks.read_scenario("traffic/abilene")
    checked = tasks.check_tables("traffic", read.frames, {"designs": {"ecmp": {}}}, tmp_path)
    scenario = load(tmp_path / checked.digest / "scenario.toml")
    plan = solve(scenario, design="shortest_path").plan
    routes = plan.to_tables()["flows"].to_csv(index=False).encode()
    name = tasks.add_plan(tmp_path / checked.digest, [GivenFile(name="flows.csv", content=routes)])
    question = Question(scenario=UPLOADED, upload=name, designs=("ecmp",))
    answer = worker.compare(question, tmp_path / name, tmp_path / "answer")
    assert [design.label for design in answer.designs] == ["today", "ecmp"]
    assert comparisons.load(tmp_path / "answer")["today"].status == "no search"
    comparisons.write_files(tmp_path / "answer", tmp_path / "files")
    assert compare(tmp_path / "files" / "scenario.toml")["today"].plan is not None
    assert b"plans/today/flows.csv" in tasks.pack(tmp_path / name, "mine")
    with pytest.raises(InputError, match=r"today: flows\.csv row 2: rate_mbps is -1"):
        tasks.add_plan(
            tmp_path / checked.digest,
            [GivenFile(name="flows.csv", content=b"target,tail,head,rate_mbps\na,b,c,-1\n")],
        )
    with pytest.raises(InputError, match="no file is given"):
        tasks.add_plan(tmp_path / checked.digest, [])


WINDOWS = b"Date,Hour,source,target,rate_mbps\n2026-03-01,8,a,b,8\n2026-03-01,9,a,b,9\n2026-03-02,8,a,b,5\n"


def test_one_window_of_demands_over_time_is_read_and_all_are_packed(tmp_path: Path) -> None:
    files = [given("links.csv", LINKS), given("demands.csv", WINDOWS)]
    taken = tasks.take_files(files, tmp_path)
    reading = taken.recognition.reading("traffic")
    assert reading is not None
    chosen = {
        choice.table: (sheet, Layout())
        for sheet, choice in zip(taken.sheets, reading.choices, strict=True)
        if choice.table
    }
    read = tasks.read_sheets("traffic", chosen)
    assert read.faults == {}
    labels = ("2026-03-01 08:00", "2026-03-01 09:00", "2026-03-02 08:00")
    assert read.windows == {"demands": ("Date", labels)}
    assert read.frames["demands"]["rate_mbps"].tolist() == [8]
    assert any("window 2026-03-01 08:00 of 3, by column 'Date'" in note for note in read.notes["demands"])
    second = tasks.read_sheets("traffic", chosen, {"demands": labels[1]})
    assert second.frames["demands"]["rate_mbps"].tolist() == [9]
    assert tasks.check_tables("traffic", second.frames, {}, tmp_path).faults == ()
    with zipfile.ZipFile(io.BytesIO(tasks.pack_windows("traffic", chosen, {}, "mine"))) as archive:
        archive.extractall(tmp_path)
    scenario = load(tmp_path / "mine" / "scenario.toml")
    assert scenario.make_series is not None
    assert [problem.rate_mbps.tolist() for _, problem in scenario.make_series()] == [[8], [9], [5]]


def test_times_with_two_readings_are_faults_of_their_table(tmp_path: Path) -> None:
    content = WINDOWS.replace(b"2026-03-01", b"03/01/2026").replace(b"2026-03-02", b"03/02/2026")
    taken = tasks.take_files([given("links.csv", LINKS), given("demands.csv", content)], tmp_path)
    reading = taken.recognition.reading("traffic")
    assert reading is not None
    pairs = zip(taken.sheets, reading.choices, strict=True)
    read = tasks.read_sheets(
        "traffic", {choice.table: (sheet, Layout()) for sheet, choice in pairs if choice.table}
    )
    assert "is 2026-01-03 or 2026-03-01; write the year first" in read.faults["demands"][0]
