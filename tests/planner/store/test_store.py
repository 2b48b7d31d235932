"""The store: records stay, filters and charts read them, and every failure is one clear line."""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.contract.tables import digest
from planner.errors import InputError, PlannerError
from planner.store import database
from planner.store.database import StoreFailure
from planner.store.record import Record
from planner.store.store import Store
from tests.commands import planner

FRAME = pd.DataFrame({"tail": ["a", "b"], "flow": [1.0, 2.5]})


def parquet(frame: pd.DataFrame) -> bytes:
    content = io.BytesIO()
    frame.to_parquet(content, index=False)
    return content.getvalue()


def record(number: int = 1, **changes: Any) -> Record:
    plain = Record(
        digest=f"{number:016x}",
        scenario="s.toml",
        label="optimum",
        system="traffic",
        design="optimum",
        mechanism="transparency",
        problem="p1",
        size={"nodes": 3},
        status="optimal",
        exit_code=0,
        objective=float(number),
        gap=0.0,
        omniscient=True,
        violations=0,
        seconds=0.5,
        wall_s=0.6,
        versions="planner 0",
        machine="here",
        finished="2026-01-01T00:00:00.000+00:00",
        problem_key="a1",
        metrics={"max_utilization": number / 10, "stretch": None},
        settings={"problem.scale": number, "parameters.paths": "any", "solver.threads": 1},
        messages=[("violation", "capacity: broken")],
        request='{"system": "traffic"}',
    )
    return replace(plain, **changes)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "st", write=True) as opened:
        yield opened


# --- keeping ------------------------------------------------------------------------------


def test_records_are_read_back(store: Store) -> None:
    plan = digest({"flows": FRAME})
    store.add([record(plan=plan, tables={"flows": parquet(FRAME)}), record(2)])
    with Store(store.folder) as reader:
        frame = reader.runs()
        assert frame["objective"].tolist() == [1.0, 2.0]
        assert frame["max_utilization"].tolist() == [0.1, 0.2]
        assert "stretch" not in frame, "what no run knows is no column"
        assert frame["parameters.paths"].tolist() == ["any", "any"]
        assert frame.loc[0, "size"] == '{"nodes": 3}'
        assert reader.messages(record().digest) == [("violation", "capacity: broken")]
        assert reader.request(record().digest) == {"system": "traffic"}
        assert reader.problem_digests(["a1", "b"]) == {"a1": "p1"}
        pd.testing.assert_frame_equal(reader.plan(plan)["flows"], FRAME)


def test_a_run_that_is_done_is_never_written_again(store: Store) -> None:
    store.add([record()])
    store.add([record(objective=9.0, metrics={"max_utilization": 9.0})])
    assert store.runs()["objective"].tolist() == [1.0]
    assert store.runs()["max_utilization"].tolist() == [0.1]


def test_a_failed_run_is_replaced_by_its_success_under_either_digest(store: Store) -> None:
    early = record(7, status="failed", exit_code=6, message="no memory", problem=None, metrics={})
    late = record(1, status="failed", exit_code=5, message="rejected", metrics={})
    store.add([early, late])
    assert store.finished([early.digest, late.digest]) == set()
    store.add([record(1, earlier_digests=(early.digest,))])
    assert store.runs()["status"].tolist() == ["optimal"]
    assert store.runs()["message"].isna().all()
    store.add([record(8, settings={"problem.scale": 5})])
    assert store.runs("problem.scale = 5")["digest"].tolist() == [record(8).digest]
    assert store.runs()["parameters.paths"].isna().tolist() == [False, True], (
        "nothing is left of a forgotten run"
    )


def test_a_metric_whose_name_is_taken_has_a_longer_one(store: Store) -> None:
    store.add([record(1, metrics={"objective": 7.0}), record(2, metrics={"objective": 8.0})])
    frame = store.runs()
    assert frame["objective"].tolist() == [1.0, 2.0], "as proven on what was observed"
    assert frame["metric.objective"].tolist() == [7.0, 8.0], "as measured in truth"
    assert store.runs("metric.objective > 7 and objective < 3")["objective"].tolist() == [2.0]
    assert store.chart("metric.objective", by="objective")["metric.objective"].tolist() == [7.0, 8.0]
    with pytest.raises(InputError, match=r"no such column 'metric\.gap'"):
        store.runs("metric.gap = 1")


def test_equal_plans_are_stored_once(store: Store) -> None:
    plan = digest({"flows": FRAME})
    tables = {"flows": parquet(FRAME)}
    store.add([record(1, plan=plan, tables=tables), record(2, plan=plan, tables=tables)])
    assert len(list(store.folder.glob("plans/*/*"))) == 1


def test_a_partial_plan_is_never_read_and_is_removed(store: Store) -> None:
    partial = store.folder / "plans" / "ab" / ".abcd.1.partial"
    partial.mkdir(parents=True)
    store.remove_partial_plans()
    assert partial.exists(), "it may be being written"
    os.utime(partial, (1, 1))
    store.remove_partial_plans()
    assert not partial.exists()


def test_a_batch_is_written_completely_or_not_at_all(store: Store) -> None:
    broken = record(2, messages=[("violation", None)])  # type: ignore[list-item]
    with pytest.raises(PlannerError):
        store.add([record(1, settings={"problem.new": 1}), broken])
    assert len(store) == 0
    store.add([record(1, settings={"problem.new": 1})])
    assert store.runs("problem.new = 1")["digest"].tolist() == [record().digest]


def test_several_write_to_one_store_while_others_read(tmp_path: Path) -> None:
    folder = tmp_path / "st"
    Store(folder, write=True).close()
    failures: list[BaseException] = []

    def write(writer: int) -> None:
        try:
            with Store(folder, write=True) as own:
                for number in range(40):
                    both = record(number, settings={f"problem.w{writer}": writer})
                    own.add([both, record(1000 * writer + number)])
        except BaseException as error:
            failures.append(error)

    def read() -> None:
        try:
            with Store(folder) as served:
                seen = 0
                while seen < 120:
                    assert len(served) >= seen
                    seen = len(served)
                    assert len(served.runs(limit=5)) == min(seen, 5)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(writer,)) for writer in (1, 2)]
    threads.append(threading.Thread(target=read))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert not failures
    with Store(folder) as own_values:
        assert len(own_values) == 120


# --- reading ------------------------------------------------------------------------------


@pytest.fixture
def many(store: Store) -> Store:
    store.add(
        [
            record(
                number,
                design=("ecmp", "optimum")[number % 2],
                label=("ecmp", "optimum")[number % 2],
                gap=None if number % 2 == 0 else number / 100,
                metrics={"max_utilization": number / 10} if number % 3 else {},
                settings={
                    "problem.scale": number // 4,
                    "problem.name": f"n{number % 4}",
                    "problem.on": number > 5,
                },
            )
            for number in range(12)
        ]
    )
    return store


@pytest.mark.parametrize(
    ("where", "numbers"),
    [
        ("design = ecmp", [0, 2, 4, 6, 8, 10]),
        ("design == 'ecmp' and problem.scale >= 1", [4, 6, 8, 10]),
        ("gap < 0.04", [1, 3]),
        ("not gap < 0.04", [0, 2, 4, 5, 6, 7, 8, 9, 10, 11]),
        ("gap is none", [0, 2, 4, 6, 8, 10]),
        ("max_utilization is not none and gap is not null", [1, 5, 7, 11]),
        ("max_utilization is none", [0, 3, 6, 9]),
        ("problem.name in (n1, 'n2') or objective = 0", [0, 1, 2, 5, 6, 9, 10]),
        ("problem.name not in (n1, n2)", [0, 3, 4, 7, 8, 11]),
        ("problem.name like '%3'", [3, 7, 11]),
        ("(design = ecmp or problem.scale = 2) and not objective > 8", [0, 2, 4, 6, 8]),
        ("problem.on = true and objective <> 7", [6, 8, 9, 10, 11]),
        ("objective = 1e0", [1]),
        ("objective <= -1", []),
        ("label != optimum and objective>=+8.", [8, 10]),
        ("scenario = s.toml and exit_code = 0 and omniscient = true and objective < 1", [0]),
    ],
)
def test_filters(many: Store, where: str, numbers: list[int]) -> None:
    assert many.runs(where)["objective"].tolist() == numbers
    assert many.count(where) == len(numbers)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("", "--where: is empty, must be such as: system = traffic and gap < 0.01"),
        ("desing = ecmp", "--where: at character 1: no such column 'desing'; did you mean 'design'?"),
        (
            "gap < 1 and problem.scal = 1",
            "--where: at character 13: no such column 'problem.scal'; did you mean 'problem.scale'?",
        ),
        ("design", "--where: at character 7: ends where = != < <= > >= in like is must come"),
        (
            "design ecmp",
            "--where: at character 8: after design must come = != < <= > >= in like is, not 'ecmp'",
        ),
        ("design = ", "--where: at character 10: ends where a value must come"),
        (
            "design = ecmp; drop table runs",
            "--where: at character 16: 'drop' is one too many; 'and' or 'or' is missing",
        ),
        (
            "design = ecmp gap < 1",
            "--where: at character 15: 'gap' is one too many; 'and' or 'or' is missing",
        ),
        ("(design = ecmp", "--where: at character 15: ')' is missing"),
        ("design in ecmp", "--where: at character 11: 'in' needs values in parentheses"),
        ("design in (ecmp", "--where: at character 16: ')' is missing"),
        ("gap = none", "--where: at character 7: write 'is none' or 'is not none'"),
        ("gap is 3", "--where: at character 8: 'is' needs none or not none"),
        ("design = 'ecmp", "--where: at character 10: cannot read 'ecmp"),
        ("5 < gap", "--where: at character 1: '5' is no name of a column"),
        ("design = (", "--where: at character 10: '(' is no value"),
        (
            "(" * 60 + "gap<1" + ")" * 60,
            "--where: at character 51: more than 50 nested parentheses",
        ),
    ],
)
def test_a_bad_filter_is_one_clear_line(many: Store, where: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        many.runs(where)
    assert caught.value.faults == (message,)


def test_a_filter_that_is_too_long_for_sqlite(many: Store) -> None:
    with pytest.raises(InputError, match="--where: is too long"):
        many.count(" or ".join(["gap < 1"] * 5000))


def test_a_filter_with_many_digits_takes_linear_time(many: Store) -> None:
    begin = time.process_time()
    assert many.count("gap < " + "9" * 300_000) == many.count("gap is not none")
    assert many.count("design = " + "9" * 300_000 + "x") == 0
    assert time.process_time() - begin < 5


PIECES = [*"ab'\"();,=<>%_-*/\\ .0", " or ", " and ", "design", "gap", "--", " in "]


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_no_filter_can_change_the_store(text: str) -> None:
    """Any text either filters or is refused; SQLite never sees it as a statement."""
    with tempfile.TemporaryDirectory() as folder:
        with Store(folder, write=True) as writer:
            writer.add([record(1), record(2)])
        with Store(folder) as reader:
            refused: list[str] = []
            try:
                assert len(reader.runs(text)) <= 2
            except InputError as error:
                refused += error.faults
            assert [fault.partition(":")[0] for fault in refused] in ([], ["--where"])
            assert len(reader) == 2


def test_a_reader_cannot_write(many: Store) -> None:
    with Store(many.folder) as reader, pytest.raises(InputError, match="may not be written"):
        reader.add([record(99)])


def test_order_limit_and_columns(many: Store) -> None:
    assert many.runs(sort="-max_utilization", limit=2)["objective"].tolist() == [11, 10]
    assert many.runs(sort="gap", limit=2)["objective"].tolist() == [1, 3]
    assert list(many.runs(columns=["problem.scale", "digest"], limit=1)) == ["problem.scale", "digest"]
    for call, message in (
        ({"sort": "-gapp"}, "--sort: no such column 'gapp'; did you mean 'gap'?"),
        ({"columns": ["statis"]}, "--columns: no such column 'statis'; did you mean 'status'?"),
        ({"columns": []}, "--columns: names no column"),
    ):
        with pytest.raises(InputError) as caught:
            many.runs(**call)  # type: ignore[arg-type]
        assert caught.value.faults == (message,)


def test_a_chart_equals_the_same_aggregation_in_pandas(many: Store) -> None:
    frame = many.runs("objective > 1")
    for how in ("mean", "min", "max", "sum"):
        ours = many.chart(
            "max_utilization", by="problem.scale", series="design", where="objective > 1", how=how
        )
        names = frame.dropna(subset=["max_utilization"])
        theirs = names.pivot_table(
            index="problem.scale", columns="design", values="max_utilization", aggfunc=how
        )
        pd.testing.assert_frame_equal(
            ours, theirs, check_dtype=False, check_index_type=False, check_column_type=False
        )
    alone = many.chart("gap", by="design")
    assert list(alone) == ["gap"]
    assert alone.loc["optimum", "gap"] == pytest.approx(np.mean([1, 3, 5, 7, 9, 11]) / 100)
    with pytest.raises(InputError, match="'status' is no figure"):
        many.chart("status", by="design")


def test_an_empty_result_is_an_empty_frame(many: Store) -> None:
    assert len(many.runs("gap > 5")) == 0
    assert many.chart("gap", by="design", where="gap > 5").empty


# --- what is no store, and what is in the way ---------------------------------------------


def lines(folder: Path, *, write: bool) -> str:
    with pytest.raises(PlannerError) as caught:
        Store(folder, write=write)
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


@pytest.mark.parametrize("write", [True, False])
def test_files_that_are_no_store_stay_unchanged(tmp_path: Path, write: bool) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("mine" * 100)
    assert lines(text, write=write) == f"{text}: is no store: it is no SQLite database"
    assert text.read_text() == "mine" * 100

    alien = tmp_path / "alien.db"
    with sqlite3.connect(alien) as connection:
        connection.execute("CREATE TABLE cats (name TEXT)")
    connection.close()
    before = alien.read_bytes()
    assert lines(alien, write=write) == f"{alien}: is no store: alien.db is another program's database"
    assert alien.read_bytes() == before

    folder = tmp_path / "folder"
    (folder / "runs.sqlite").mkdir(parents=True)
    assert "is a folder" in lines(folder, write=write)


@pytest.mark.parametrize("write", [True, False])
@pytest.mark.parametrize(
    ("script", "words"),
    [
        (
            """ALTER TABLE runs RENAME TO hidden; CREATE VIEW runs AS WITH RECURSIVE n(i) AS
            (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id FROM n""",
            "has a strange table 'hidden'",
        ),
        ("CREATE VIEW extra AS SELECT 1", "has a strange view 'extra'"),
        ("CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM runs; END", "has a strange trigger 't'"),
        ("CREATE VIRTUAL TABLE v USING fts5(x)", "has a strange virtual table 'v'"),
        ("ALTER TABLE names ADD COLUMN x AS (hex(zeroblob(99999999)))", "has a strange table 'names'"),
        ("DROP TABLE messages", "lacks messages"),
    ],
)
def test_a_database_with_another_schema_is_refused(
    store: Store, script: str, words: str, write: bool
) -> None:
    store.add([record()])
    store.close()
    with contextlib.closing(sqlite3.connect(store.file)) as connection:
        connection.executescript(script)
    if "virtual" in words:
        words = "has a strange "  # its own tables come first
    assert words in lines(store.folder, write=write)
    assert "nothing of it is read" in lines(store.folder, write=write)


def test_a_query_ends_at_its_limit(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.add([record(number) for number in range(60)])
    monkeypatch.setattr(database, "QUERY_LIMIT_S", 0.2)
    slow = "SELECT count(*) FROM runs a, runs b, runs c, runs d, runs e, runs f"
    with pytest.raises(StoreFailure, match="a query took over 0 s"):
        store._database.fetch(slow)
    assert len(store) == 60


@pytest.mark.parametrize("name", ["runs.sqlite", "runs.sqlite-wal"])
@pytest.mark.parametrize("write", [True, False])
def test_a_pipe_is_no_store(store: Store, name: str, write: bool) -> None:
    store.close()
    (store.folder / name).unlink(missing_ok=True)
    os.mkfifo(store.folder / name)
    assert lines(store.folder, write=write).endswith(f"{name}: is no store: it is a device or a pipe")
    assert "is a device or a pipe" in lines(store.folder / name, write=write)


@pytest.mark.parametrize("digest", ["../../secret", "/etc", "..", "", "a/b", "ab\n"])
def test_a_digest_of_a_plan_is_no_path(store: Store, digest: str) -> None:
    with pytest.raises(InputError, match="is no digest of a plan"):
        store.plan(digest)


def test_a_plan_has_files_of_its_own_only(store: Store, tmp_path: Path) -> None:
    plan = digest({"flows": FRAME})
    secret = tmp_path / "secret.parquet"
    secret.write_bytes(parquet(pd.DataFrame({"secret": [1]})))
    store.add([record(plan=plan, tables={"flows": parquet(FRAME)})])
    folder = store.plan_folder(plan)
    (folder / "more.parquet").symlink_to(secret)
    assert list(store.plan(plan)) == ["flows"], "a link is none of its tables"
    listed = json.loads((folder / "files.json").read_text())
    for name in ("../../../secret.parquet", str(secret), "more.parquet"):
        (folder / "files.json").write_text(json.dumps({name: listed["flows.parquet"]}))
        with pytest.raises(InputError, match="is no file of its own"):
            store.plan(plan)
    (folder / "flows.parquet").unlink()
    os.mkfifo(folder / "flows.parquet")
    (folder / "files.json").write_text(json.dumps(listed))
    with pytest.raises(InputError, match="is no file of its own"):
        store.plan(plan)


def test_a_store_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert (
        lines(tmp_path / "empty", write=False) == f"{tmp_path / 'empty'}: is no store: it has no runs.sqlite"
    )
    Store(tmp_path / "results", write=True).close()
    near = f"{tmp_path / 'result'}: no such store; did you mean '{tmp_path / 'results'}'?"
    assert lines(tmp_path / "result", write=False) == near
    (tmp_path / "killed").mkdir()
    (tmp_path / "killed" / "runs.sqlite").touch()
    assert "is an empty store" in lines(tmp_path / "killed", write=False)
    Store(tmp_path / "killed", write=True).close()
    with Store(tmp_path / "killed") as reader:
        assert len(reader) == 0


@pytest.mark.parametrize("write", [True, False])
def test_a_store_of_a_newer_version(store: Store, write: bool) -> None:
    store.add([record()])
    store._database.execute("PRAGMA user_version = 99")
    store.close()
    before = store.file.read_bytes()
    assert lines(store.folder, write=write) == (
        f"{store.folder}: was written by a newer planner (schema 99, this one knows {len(database.SCHEMA)}): "
        "update planner, or name another store"
    )
    assert store.file.read_bytes() == before


@pytest.mark.parametrize("write", [True, False])
def test_a_store_of_an_older_version_is_migrated(
    store: Store, write: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.add([record()])
    store.close()
    newer = (*database.SCHEMA, "ALTER TABLE names ADD COLUMN unit TEXT; UPDATE names SET unit = '?'")
    monkeypatch.setattr(database, "SCHEMA", newer)
    with Store(store.folder, write=write) as opened:
        assert opened._database.fetch("SELECT DISTINCT unit FROM names") == [("?",)]
        assert len(opened.runs()) == 1


def test_a_damaged_store(store: Store) -> None:
    store.add([record(number) for number in range(200)])
    store.close()
    content = bytearray(store.file.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    store.file.write_bytes(content)
    with pytest.raises(InputError, match="is no store, or a damaged one"), Store(store.folder) as reader:
        reader.runs()


def test_a_full_disk_loses_no_stored_run(store: Store) -> None:
    store.add([record(1)])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))
    try:
        with pytest.raises(StoreFailure, match="the disk is full, or a limit on the size of files") as caught:
            store.add([record(number, request="x" * 10_000) for number in range(2, 400)])
        assert len(str(caught.value).splitlines()) == 1
        plan = "ab" * 8
        with pytest.raises(StoreFailure, match="the disk is full"):
            store.add([record(3, plan=plan, tables={"flows": b"x" * (2 << 20)})])
        assert not store.plan_folder(plan).exists()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert store.runs()["digest"].tolist() == [record(1).digest]
    store.add([record(2)])
    assert len(store) == 2


@pytest.fixture
def nobody() -> Iterator[None]:
    """File modes hold: root, whom they would not stop, is somebody else for the while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_store_that_may_not_be_written_can_be_read(nobody: None) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        with Store(folder / "st", write=True) as writer:
            writer.add([record()])
        (folder / "st" / "runs.sqlite").chmod(0o444)
        (folder / "st").chmod(0o555)
        with Store(folder / "st") as reader:
            assert len(reader.runs()) == 1
        assert "may not be written" in lines(folder / "st", write=True)
        folder.chmod(0o555)
        assert "cannot be written" in lines(folder / "other", write=True)
    finally:
        folder.chmod(0o755)
        (folder / "st").chmod(0o755)
        shutil.rmtree(folder)


def test_another_writer_that_never_ends(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "LOCK_LIMIT_S", 0.05)
    with Store(store.folder, write=True) as other:
        store._database.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreFailure, match="another process has locked it"):
            other.add([record()])
        store._database.execute("ROLLBACK")


# --- the command --------------------------------------------------------------------------


def test_runs_lists_filters_and_exports(many: Store, tmp_path: Path) -> None:
    result = planner("runs", many.folder, "--where", "design = ecmp", "--columns", "digest,problem.scale")
    assert result.code == 0
    assert all(record(number).digest in result.out for number in (0, 2, 4, 6, 8, 10))
    assert "6 of 6 runs" in result.err
    result = planner("runs", many.folder, "--limit", 3)
    assert "3 of 12 runs" in result.err
    csv, parquet = tmp_path / "out" / "r.csv", tmp_path / "r.parquet"
    assert planner("runs", many.folder, "--csv", csv, "--parquet", parquet).code == 0
    theirs = many.runs()
    assert pd.read_csv(csv)["max_utilization"].tolist() == pytest.approx(
        theirs["max_utilization"].tolist(), nan_ok=True
    )
    pd.testing.assert_frame_equal(pd.read_parquet(parquet), theirs, check_dtype=False)
    for words in (("--where", "gapp < 1"), ("--sort", "x"), ("--columns", "y"), ("--csv", tmp_path)):
        failed = planner("runs", many.folder, *words)
        assert failed.code == 1
        assert len(failed.err.splitlines()) == 1
    assert planner("runs", tmp_path / "none").code == 1


def test_runs_as_json(many: Store) -> None:
    import json

    rows = json.loads(planner("runs", many.folder, "--json").out)
    assert len(rows) == 12
    assert rows[0]["gap"] is None
    assert rows[1]["gap"] == 0.01


def test_search_status_of_older_stores_is_told_apart_from_constraints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = sqlite3.connect(tmp_path / "runs.sqlite")
    for script in database.SCHEMA[:2]:
        connection.executescript(script)
    connection.execute(f"PRAGMA application_id = {database.APPLICATION_ID}")
    connection.execute("PRAGMA user_version = 2")
    columns = "digest, scenario, label, system, design, mechanism, versions, machine, finished, exit_code"
    for name, status, bound, violations in (
        ("a", "feasible", None, 3),
        ("b", "feasible", 1.0, 0),
        ("c", "undecided", 1.0, None),
        ("d", "optimal", 1.0, 0),
    ):
        connection.execute(
            f"INSERT INTO runs ({columns}, status, bound, violations) "
            "VALUES (?, 's', 'x', 'traffic', 'x', 'none', '', '', '', 0, ?, ?, ?)",
            (name, status, bound, violations),
        )
    connection.commit()
    connection.close()
    Store(tmp_path, write=True).close()
    with Store(tmp_path) as opened:
        runs = opened.runs().sort_values("digest")
    assert runs["status"].tolist() == ["heuristic", "not proven", "bound only", "optimal"]
    assert runs["constraints"].fillna("-").tolist() == ["violated", "met", "-", "met"]
