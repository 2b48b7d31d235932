"""Files that are input, beside what commands wrote into the same folder."""

from __future__ import annotations

from pathlib import Path

from planner.io.input_files import input_files, input_folders


def write(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")


def test_output_in_the_folder_of_input_is_no_input(tmp_path: Path) -> None:
    ours = ["links.csv", "monday/links.csv", "monday/parts/more.csv", "plans/links.csv"]
    written = ["scenario.toml", "report.html", "store/runs.sqlite", "store/plans/7e/7ec0/loads.parquet"]
    written += ["out/scenario.toml", "out/ecmp/flows.parquet"]
    for name in ours + written:
        write(tmp_path / name)
    assert [path.relative_to(tmp_path).as_posix() for path in input_files(tmp_path)] == ours
    assert [path.name for path in input_folders(tmp_path)] == ["monday", "plans"]


def test_a_store_that_is_the_folder_of_input_itself(tmp_path: Path) -> None:
    for name in ["runs.sqlite", "runs.sqlite-wal", "plans/7e/7ec0/loads.parquet", "monday/links.csv"]:
        write(tmp_path / name)
    assert [path.relative_to(tmp_path).as_posix() for path in input_files(tmp_path)] == ["monday/links.csv"]
