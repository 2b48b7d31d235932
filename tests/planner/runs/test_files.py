"""Folders of runs: what stands there is replaced, and links stay links."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands import planner

SCENARIO = 'system = "traffic"\n[problem]\nsource = "tables"\npath = "."\n[designs.ecmp]\n'


@pytest.mark.parametrize("table_format", ["parquet", "csv"])
def test_a_link_in_the_folder_of_a_run_stays_a_link(
    table_format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "links.csv").write_text("tail,head,capacity_mbps\na,b,10\nb,a,10\n")
    (tmp_path / "demands.csv").write_text("source,target,rate_mbps\na,b,5\n")
    (tmp_path / "s.toml").write_text(SCENARIO)
    command = ("solve", "s.toml", "--design", "ecmp", "--out", "out", "--table-format", table_format)
    result = planner(*command)
    assert result.code == 0, result.err
    run = tmp_path / "out" / "ecmp"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    links = [run / "run.json", run / "metrics.csv", *sorted((run / "plan").iterdir())]
    for path in links:
        target = elsewhere / path.name
        path.rename(target)
        path.symlink_to(target)
    (elsewhere / "run.json").write_text("old")
    assert planner(*command).code == 0
    assert len(links) >= 3
    assert all(path.is_symlink() and path.resolve().parent == elsewhere for path in links)
    assert (elsewhere / "run.json").read_text().startswith("{")


def test_generate_replaces_only_what_it_made(tmp_path: Path) -> None:
    command = ("generate", "traffic", "--preset", "fat_tree", "--set", "k=2", "--out", str(tmp_path))
    (tmp_path / "links.csv").write_text("mine")
    result = planner(*command)
    assert (result.code, result.err) == (
        1,
        f"{tmp_path}: holds links.csv already; name another folder with --out\n",
    )
    assert (tmp_path / "links.csv").read_text() == "mine"
    (tmp_path / "links.csv").unlink()
    assert [planner(*command).code for _ in range(2)] == [0, 0]
    (tmp_path / "tunnels.csv").write_text("of another problem")
    assert "holds tunnels.csv already" in planner(*command).err
