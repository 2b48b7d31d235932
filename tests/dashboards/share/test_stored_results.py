"""Results in a store: another server opens them, ids are never paths, and a store that fails is one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.errors import InputError
from planner_dashboard import comparisons, worker
from planner_dashboard.question import UPLOADED, Question
from planner_dashboard.share import documents, stored_results

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
    assert [one.headline for one in again.designs] == [one.headline for one in answer.designs]
    assert [one.figures.status for one in again.designs] == [one.figures.status for one in answer.designs]
    for one, other in zip(again.designs, answer.designs, strict=True):
        known = {name: value for name, value in other.figures.metrics.items() if value is not None}
        assert {name: one.figures.metrics[name] for name in known} == pytest.approx(known, rel=1e-9)
        assert one.figures.gap == other.figures.gap
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
    page = documents.page_of(first.folder, question)
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
    whole = json.loads(record.read_text())
    for broken in ("{", "[]", '{"query": 1}', json.dumps({**whole, "format": 99})):
        record.write_text(broken)
        with pytest.raises(InputError, match=f"result {number}: (is damaged|was stored by planner)"):
            stored_results.load([store], number, tmp_path, tmp_path / "out")
        assert stored_results.list_results(store) == []
    whole["designs"][0]["proof"]["status"] = "SETTLED"
    record.write_text(json.dumps(whole))
    with pytest.raises(InputError, match="is damaged: 'SETTLED'"):
        stored_results.load([store], number, tmp_path, tmp_path / "out")


@pytest.mark.slow
def test_a_result_can_be_saved_as_each_format(answer: worker.Answer) -> None:
    starts = {"pdf": b"%PDF-", "pptx": b"PK", "html": b"<!DOCTYPE html>", "zip": b"PK", "toml": b"system"}
    for key, start in starts.items():
        assert documents.make_file(answer.folder, QUESTION, key, "").startswith(start), key
