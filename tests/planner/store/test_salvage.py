"""Damaged stores: every readable run is salvaged, and damaged plans do not count as made."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from planner.errors import InputError
from planner.store.plan_folders import LIST_NAME, find_damage, write_plan
from planner.store.record import Record
from planner.store.salvage import salvage
from planner.store.store import Store
from tests.commands import planner

RUNS = 400
PAGE = 4096


def record(position: int, **values: object) -> Record:
    fields: dict[str, object] = {
        "digest": f"{position:016x}",
        "scenario": "s",
        "label": "d",
        "system": "traffic",
        "design": "ecmp",
        "mechanism": "none",
        "status": "optimal",
        "exit_code": 0,
        "metrics": {"delivered_mbps": float(position)},
        "settings": {"problem.scale": position},
        "messages": [("reason", "x" * 100)],
        "request": "{}",
    }
    return Record(**(fields | values))  # type: ignore[arg-type]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with Store(tmp_path / "store", write=True) as opened:
        opened.add([record(index) for index in range(RUNS)])
    return tmp_path / "store"


def damage(store: Path, page: int) -> None:
    file = store / "runs.sqlite"
    content = bytearray(file.read_bytes())
    content[page * PAGE : (page + 1) * PAGE] = b"\xa5" * PAGE
    file.write_bytes(content)


@pytest.mark.parametrize("page", [0, 10, 20, 30])
def test_a_damaged_page_loses_its_rows_only(store: Path, page: int) -> None:
    damage(store, page)
    saved = salvage(store)
    assert saved.runs >= RUNS // 2
    assert saved.kept.exists()
    with Store(store) as opened:
        frame = opened.runs()
    assert len(frame) == saved.runs
    assert frame["status"].eq("optimal").all()
    names = frame.dropna(subset=["delivered_mbps"]) if "delivered_mbps" in frame else frame
    assert len(names) >= RUNS // 2
    assert (names["delivered_mbps"] == names["problem.scale"]).mean() > 0.5


def test_any_page_may_be_damaged(store: Path, tmp_path: Path) -> None:
    content = (store / "runs.sqlite").read_bytes()
    nothing = 0
    for page in range(1, len(content) // PAGE, 9):
        (store / "runs.sqlite").write_bytes(content)
        damage(store, page)
        try:
            assert salvage(store).runs > 0
        except InputError:  # the root of the table of runs
            nothing += 1
            continue
        for selected in store.glob("*damaged*"):
            selected.unlink()
    assert nothing <= 1


def test_the_command_salvages_and_lists(store: Path) -> None:
    damage(store, 0)
    before = planner("runs", store)
    assert before.code == 1
    assert "--salvage" in before.err
    result = planner("runs", store, "--salvage", "--limit", 3)
    assert result.code == 0, result.err
    assert f"salvaged {RUNS} runs" in result.err
    assert planner("runs", store).code == 0


def test_what_is_no_store_is_not_salvaged(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no store"):
        salvage(tmp_path)
    (tmp_path / "runs.sqlite").write_bytes(b"nothing" * 1000)
    with pytest.raises(InputError, match="nothing of it can be read"):
        salvage(tmp_path)
    assert (tmp_path / "runs.sqlite").read_bytes() == b"nothing" * 1000
    assert [path.name for path in tmp_path.iterdir()] == ["runs.sqlite"]


@pytest.mark.parametrize("kind", ["lost", "cut", "changed", "without a list", "list cut"])
def test_a_damaged_plan_is_made_again(tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    content = b"PAR1" + b"x" * 200 + b"PAR1"
    with Store(tmp_path / "store", write=True) as opened:
        opened.add([record(1, plan="ab12", tables={"flows": content, "links": content})])
        assert opened.finished([record(1).digest]) == {record(1).digest}
        folder = opened.plan_folder("ab12")
        path = folder / "flows.parquet"
        match kind:
            case "lost":
                path.unlink()
            case "cut":
                path.write_bytes(content[:100])
            case "changed":
                path.write_bytes(content.replace(b"x", b"y"))
            case "without a list":
                (folder / LIST_NAME).unlink()
                path.write_bytes(content[:100])
            case "list cut":
                (folder / LIST_NAME).write_text("{")
        with caplog.at_level(logging.WARNING):
            assert opened.finished([record(1).digest]) == set()
        assert "plan ab12 is damaged" in caplog.text
        with pytest.raises(InputError, match=r"plan ab12 is damaged .*; the same sweep makes it again"):
            opened.plan("ab12")
        opened.add([record(1, plan="cd34", seconds=2.0, tables={"flows": content})])
        assert opened.finished([record(1).digest]) == {record(1).digest}
        assert opened.runs()["plan"].tolist() == ["cd34"]


def test_a_plan_that_is_whole_is_not_written_again(tmp_path: Path) -> None:
    write_plan(tmp_path / "p", {"flows": b"PAR1"})
    before = (tmp_path / "p" / "flows.parquet").stat().st_mtime_ns
    write_plan(tmp_path / "p", {"flows": b"PAR1"})
    assert (tmp_path / "p" / "flows.parquet").stat().st_mtime_ns == before
    assert find_damage(tmp_path / "p") is None
