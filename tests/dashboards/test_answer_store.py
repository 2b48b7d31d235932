"""Stored answers: who may open one, how long it stays, and how much all of them take."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from planner_dashboard import answer_store, comparisons, named_designs, worker
from planner_dashboard.answer_store import AnswerStore
from planner_dashboard.question import UPLOADED, Question
from planner_dashboard.worker import Answer

ASKER, OTHER = "0" * 32, "1" * 32
QUESTION = Question(scenario="traffic/abilene", designs=("ecmp",))


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> Answer:
    folder = tmp_path_factory.mktemp("session")
    return worker.compare(QUESTION, folder, folder / "answer 1")


@pytest.fixture
def store(tmp_path: Path) -> AnswerStore:
    return AnswerStore(tmp_path / "answers", limit_mb=100.0)


def test_an_answer_is_of_the_visitor_who_asked_until_it_is_shared(
    store: AnswerStore, answer: Answer, tmp_path: Path
) -> None:
    store.add(answer, tmp_path, ASKER)
    opened = store.open(QUESTION, ASKER, tmp_path, tmp_path / "opened")
    assert opened is not None
    assert opened.verdict == answer.verdict
    assert opened.stored
    assert comparisons.load(opened.folder).verdict == comparisons.load(answer.folder).verdict
    for visitor in (OTHER, ""):
        assert store.open(QUESTION, visitor, tmp_path, tmp_path / "other") is None
    store.share(QUESTION, OTHER, is_shared=True)  # not theirs to share
    assert store.find(QUESTION, OTHER) is None
    store.share(QUESTION, ASKER, is_shared=True)
    for visitor in (OTHER, ""):
        assert store.open(QUESTION, visitor, tmp_path, tmp_path / "other") is not None
    store.share(QUESTION, ASKER, is_shared=False)
    assert store.find(QUESTION, OTHER) is None


def test_whoever_asks_too_owns_the_answer_too(store: AnswerStore, answer: Answer, tmp_path: Path) -> None:
    store.add(answer, tmp_path, ASKER)
    store.add(answer, tmp_path, OTHER)
    assert store.find(QUESTION, ASKER) is not None
    assert store.find(QUESTION, OTHER) is not None
    store.add(answer, tmp_path, "")
    assert store.find(QUESTION, "") is None


def test_another_question_has_another_answer(store: AnswerStore, answer: Answer, tmp_path: Path) -> None:
    store.add(answer, tmp_path, ASKER)
    others = [
        replace(QUESTION, scenario="traffic/germany50"),
        replace(QUESTION, designs=("ecmp", "optimum")),
        replace(QUESTION, changes={"problem.scale": 1.5}),
        replace(QUESTION, scenario=UPLOADED, upload="0" * 16),
    ]
    assert len({answer_store.digest(question) for question in [QUESTION, *others]}) == 1 + len(others)
    assert not any(store.find(question, ASKER) for question in others)


def test_the_order_of_changes_does_not_matter() -> None:
    changes = {"problem.scale": 1.5, "problem.fail_links": ("a<->b",)}
    first = replace(QUESTION, changes=changes)
    second = replace(QUESTION, changes=dict(reversed(changes.items())))
    assert answer_store.digest(first) == answer_store.digest(second)


def test_the_question_of_an_address_finds_that_of_a_form(
    store: AnswerStore, answer: Answer, tmp_path: Path
) -> None:
    asked = replace(QUESTION, changes={"problem.fail_links": ("CHINng<->IPLSng",)})
    store.add(replace(answer, question=asked), tmp_path, ASKER)
    query = {key: [value] if isinstance(value, str) else value for key, value in asked.to_query().items()}
    again = Question.from_query(query)
    assert again is not None
    opened = store.open(again, ASKER, tmp_path, tmp_path / "opened")
    assert opened is not None
    assert opened.question == again


def test_uploaded_tables_come_back_with_the_answer(
    store: AnswerStore, answer: Answer, tmp_path: Path
) -> None:
    question = Question(scenario=UPLOADED, upload="0123456789abcdef")
    tables = tmp_path / question.upload
    tables.mkdir()
    (tables / "scenario.toml").write_text('[problem]\nsystem = "traffic"\n')
    store.add(replace(answer, question=question), tables, ASKER)
    new_session = tmp_path / "new"
    new_session.mkdir()
    store.restore_tables(question, OTHER, new_session)
    assert not list(new_session.iterdir())
    store.restore_tables(question, ASKER, new_session)
    assert (new_session / question.upload / "scenario.toml").read_text() == '[problem]\nsystem = "traffic"\n'


def test_old_answers_go(store: AnswerStore, answer: Answer, tmp_path: Path) -> None:
    store.add(answer, tmp_path, ASKER)
    (record,) = store.folder.glob("*/record.json")
    record.write_text(json.dumps({**json.loads(record.read_text()), "saved": "2020-01-01T00:00:00+00:00"}))
    assert store.find(QUESTION, ASKER) is None
    store.add(replace(answer, question=replace(QUESTION, designs=())), tmp_path, ASKER)
    assert not record.exists()


def test_what_was_opened_longest_ago_goes_first(store: AnswerStore, answer: Answer, tmp_path: Path) -> None:
    questions = [replace(QUESTION, changes={"problem.scale": 1.0 + number}) for number in range(3)]
    for number, question in enumerate(questions[:2]):
        store.add(replace(answer, question=question), tmp_path, ASKER)
        path = store.folder / answer_store.digest(question)
        os.utime(path / "record.json", (number, number))
    assert store.open(questions[0], ASKER, tmp_path, tmp_path / "opened") is not None  # now the newest
    size = sum(path.stat().st_size for path in store.folder.rglob("*") if path.is_file())
    store.limit_mb = (size * 1.2) / 2**20
    store.add(replace(answer, question=questions[2]), tmp_path, ASKER)
    assert [store.find(question, ASKER) is not None for question in questions] == [True, False, True]


def test_one_that_is_too_large_is_not_stored(store: AnswerStore, answer: Answer, tmp_path: Path) -> None:
    store.limit_mb = 0.001
    store.add(answer, tmp_path, ASKER)
    assert store.find(QUESTION, ASKER) is None


def _widen(path: Path) -> None:
    path.chmod(0o666)


def _replace_by_link(path: Path) -> None:
    path.rename(path.with_suffix(".moved"))
    path.symlink_to(path.with_suffix(".moved"))


def _damage(path: Path) -> None:
    path.write_bytes(b"{")


@pytest.mark.parametrize("spoil", [_widen, _replace_by_link])
@pytest.mark.parametrize("name", ["record.json", "answer.pickle"])
def test_a_file_that_others_may_have_written_is_not_opened(
    store: AnswerStore, answer: Answer, tmp_path: Path, name: str, spoil: Callable[[Path], None]
) -> None:
    store.add(answer, tmp_path, ASKER)
    (path,) = store.folder.glob(f"*/{name}")
    spoil(path)
    assert store.open(QUESTION, ASKER, tmp_path, tmp_path / "opened") is None


def test_a_damaged_record_is_no_answer(store: AnswerStore, answer: Answer, tmp_path: Path) -> None:
    store.add(answer, tmp_path, ASKER)
    (path,) = store.folder.glob("*/record.json")
    _damage(path)
    assert store.open(QUESTION, ASKER, tmp_path, tmp_path / "opened") is None


def test_the_server_stores_where_only_its_user_may_write(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv(answer_store.LIMIT_MB, "10")
    answer_store.of_server.clear()
    try:
        found = answer_store.of_server()
        assert found is not None
        assert found.folder.stat().st_mode & 0o777 == 0o700
        answer_store.of_server.clear()
        found.folder.chmod(0o777)
        assert answer_store.of_server() is None
        answer_store.of_server.clear()
        monkeypatch.setenv(answer_store.LIMIT_MB, "0")
        assert answer_store.of_server() is None
    finally:
        answer_store.of_server.clear()


def test_a_module_beside_the_file_of_a_design_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An answer of a design is stored anew when a module changes that its file imports."""
    helper = tmp_path / "helper.py"
    helper.write_text("WEIGHT = 1\n")
    (tmp_path / "mine.py").write_text("import helper\n\ndef route(problem): ...\n")
    monkeypatch.setenv(named_designs.VARIABLE, f"traffic={tmp_path / 'mine.py'}:route")
    question = Question(scenario="traffic/abilene", designs=("route",))
    digests = []
    for weight in (1, 2, 1):
        helper.write_text(f"WEIGHT = {weight}\n")
        answer_store._code.clear()
        digests.append(answer_store.digest(question))
    answer_store._code.clear()
    assert digests[0] == digests[2] != digests[1]
