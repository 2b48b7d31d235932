"""Results in a store: another server opens them, ids are never paths, and a store that fails is one line."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from planner.errors import InputError
from planner_dashboard import comparisons, worker
from planner_dashboard.question import UPLOADED, Question
from planner_dashboard.share import panel, stored_results

QUESTION = Question(
    scenario="traffic/abilene", changes={"problem.scale": 1.5}, designs=("ecmp", "optimum", "localflow")
)


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> worker.Answer:
    folder = tmp_path_factory.mktemp("answer")
    return worker.compare(QUESTION, folder, folder / "answer 1")


def keep(answer: worker.Answer, store: Path, name: str = "Busy", notes: str = "") -> str:
    return stored_results.save(store, answer.folder, answer.question, answer.folder.parent, name, notes)


@pytest.mark.slow
def test_another_server_opens_what_one_has_stored(answer: worker.Answer, tmp_path: Path) -> None:
    number = keep(answer, tmp_path / "store", "<b>Busy</b> & more", "note *one*")
    again = stored_results.load([tmp_path / "store"], number, tmp_path, tmp_path / "answer 1")
    assert again.question == QUESTION
    assert again.verdict == answer.verdict
    assert [design.headline for design in again.designs] == [design.headline for design in answer.designs]
    assert [design.figures.status for design in again.designs] == [
        design.figures.status for design in answer.designs
    ]
    for design, other in zip(again.designs, answer.designs, strict=True):
        names = {name: value for name, value in other.figures.metrics.items() if value is not None}
        assert {name: design.figures.metrics[name] for name in names} == pytest.approx(names, rel=1e-9)
        assert design.figures.gap == other.figures.gap
    assert comparisons.load(tmp_path / "answer 1").runs[0].plan is not None
    assert "Its plans were measured again." in str(again.notes[0])
    (listed,) = stored_results.list_results(tmp_path / "store")
    assert (listed.id, listed.name, listed.notes) == (number, "<b>Busy</b> & more", "note *one*")
    assert listed.verdict == answer.verdict


def test_uploaded_tables_are_part_of_a_stored_result(tmp_path: Path) -> None:
    upload = "0123456789abcdef"
    tables = tmp_path / "one" / upload
    tables.mkdir(parents=True)
    (tables / "links.csv").write_text("tail,head,capacity_mbps\na,b,5\n")
    (tables / "demands.csv").write_text("source,target,rate_mbps\na,b,4\n")
    (tables / "scenario.toml").write_text('system="traffic"\n[problem]\nsource="tables"\npath="."\n')
    question = Question(scenario=UPLOADED, upload=upload, designs=("ecmp",))
    first = worker.compare(question, tables, tmp_path / "one" / "answer 1")
    number = stored_results.save(tmp_path / "store", first.folder, question, tables, "own")
    (tmp_path / "two").mkdir()
    again = stored_results.load([tmp_path / "store"], number, tmp_path / "two", tmp_path / "two" / "answer 1")
    assert again.verdict == first.verdict
    assert (tmp_path / "two" / upload / "links.csv").is_file()
    page = panel.page_of(first.folder, question)
    assert str(tmp_path) not in page.title


@pytest.mark.parametrize("number", ["", "../../etc", "0123456789ABCDEF", "0123456789abcde", "a/b", "0" * 17])
def test_an_id_is_never_a_path(number: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no stored result's number"):
        stored_results.find([tmp_path], number)


@pytest.mark.slow
def test_faults_are_one_line(answer: worker.Answer, tmp_path: Path) -> None:
    store = tmp_path / "store"
    with pytest.raises(InputError, match="name: is missing"):
        keep(answer, store, "  ")
    with pytest.raises(InputError, match=r"is in no store of this dashboard \(store\)"):
        stored_results.find([store], "0" * 16)
    with pytest.raises(InputError, match="store gone: is not there any more"):
        stored_results.list_results(tmp_path / "gone")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="store file: cannot be written"):
        keep(answer, tmp_path / "file")
    number = keep(answer, store)
    record = store / "results" / number / "result.json"
    full = json.loads(record.read_text())
    for broken in ("{", "[]", '{"query": 1}', json.dumps({**full, "format": 99})):
        record.write_text(broken)
        with pytest.raises(InputError, match=f"result {number}: (is damaged|was stored by planner)"):
            stored_results.load([store], number, tmp_path, tmp_path / "out")
        assert stored_results.list_results(store) == []
    full["designs"][0]["proof"]["status"] = "SETTLED"
    record.write_text(json.dumps(full))
    with pytest.raises(InputError, match="is damaged: 'SETTLED'"):
        stored_results.load([store], number, tmp_path, tmp_path / "out")


@pytest.mark.slow
def test_a_result_can_be_saved_as_each_format(answer: worker.Answer) -> None:
    starts = {"pdf": b"%PDF-", "pptx": b"PK", "html": b"<!DOCTYPE html>", "zip": b"PK", "toml": b"system"}
    for key, start in starts.items():
        assert panel.make_file(answer.folder, QUESTION, key, "").startswith(start), key


def write_crafted(store: Path, scenario: str, query: dict[str, list[str]]) -> str:
    """Write a result as somebody else may have, without planner; return its id."""
    number = "0123456789abcdef"
    folder = store / "results" / number
    (folder / "tables").mkdir(parents=True)
    (folder / "tables" / "scenario.toml").write_text(scenario)
    record = {"format": 1, "name": "n", "saved": "2026", "version": "0", "verdict": "", "designs": []}
    (folder / "result.json").write_text(json.dumps({**record, "query": query}))
    return number


UPLOAD = {"scenario": [UPLOADED], "upload": ["0123456789abcdef"]}


@pytest.mark.parametrize("path", ["{secret}", "../../../secret", "linked"])
def test_a_crafted_scenario_reads_nothing_outside(tmp_path: Path, path: str) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "links.csv").write_text("password\nhunter2\n")
    (secret / "demands.csv").write_text("password\nhunter2\n")
    text = path.format(secret=secret)
    scenario = f'system = "traffic"\n[problem]\nsource = "tables"\npath = {json.dumps(text)}\n'
    number = write_crafted(tmp_path / "store", scenario, UPLOAD)
    (tmp_path / "store" / "results" / number / "tables" / "linked").symlink_to(secret)
    session = tmp_path / "session"
    session.mkdir()
    with pytest.raises(InputError) as error:
        stored_results.load([tmp_path / "store"], number, session, session / "answer 1")
    assert "hunter2" not in str(error.value)
    assert "password" not in str(error.value)
    assert list(session.iterdir()) == [], "nothing of it is there for the page"


def test_a_crafted_change_names_no_file(tmp_path: Path) -> None:
    changes = ["problem.source=tables", f"problem.path={tmp_path}"]
    number = write_crafted(tmp_path / "store", "", {"scenario": ["traffic/abilene"], "set": changes})
    with pytest.raises(InputError, match=r"problem\.(source|path): no such field"):
        stored_results.load([tmp_path / "store"], number, tmp_path, tmp_path / "answer 1")


@pytest.mark.parametrize("name", ["result.json", "tables/scenario.toml"])
def test_a_record_or_scenario_that_is_a_pipe_is_never_opened(tmp_path: Path, name: str) -> None:
    number = write_crafted(tmp_path / "store", "", UPLOAD)
    path = tmp_path / "store" / "results" / number / name
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(InputError):
        stored_results.load([tmp_path / "store"], number, tmp_path, tmp_path / "answer 1")


def test_a_plan_that_is_a_link_is_refused(tmp_path: Path) -> None:
    number = write_crafted(tmp_path / "store", "", {"scenario": ["traffic/abilene"]})
    folder = tmp_path / "store" / "results" / number
    record = json.loads((folder / "result.json").read_text())
    record["designs"] = [{"label": "ecmp", "error": None, "metrics": {}, "omniscient": True, "proof": {}}]
    (folder / "result.json").write_text(json.dumps(record))
    (folder / "plans").mkdir()
    (folder / "plans" / "0").symlink_to(tmp_path)
    with pytest.raises(InputError, match="is damaged: 0 is a link, a device or a pipe"):
        stored_results.load([tmp_path / "store"], number, tmp_path, tmp_path / "answer 1")
