"""Files are whole or as they were: after a full disk, for links and for devices."""

from __future__ import annotations

import os
import resource
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.io.file_replacement import remove_partial_folders, replace_file, replace_folder, replace_text
from tests.commands import planner


@pytest.fixture
def small_disk() -> Iterator[None]:
    """Limit every file to 300 bytes, which ends writing as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, small_disk: None) -> None:
    path = tmp_path / "a.txt"
    replace_text(path, "old")
    with pytest.raises(OSError, match="too large") as caught:
        replace_text(path, "x" * 1_000)
    assert caught.value.filename == str(path)
    assert path.read_text() == "old"
    assert [item.name for item in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize(
    "command",
    [
        ("solve", "traffic/abilene", "--design", "ecmp", "--out", "out"),
        ("compare", "traffic/abilene", "--designs", "ecmp", "--out", "out"),
        ("solve", "traffic/abilene", "--design", "ecmp", "--html", "out/r.html"),
        ("generate", "traffic", "--preset", "abilene", "--out", "out"),
        ("export", "traffic/abilene", "--design", "optimum", "--out", "out/m.lp"),
    ],
    ids=lambda command: " ".join(command[:1]),
)
def test_a_full_disk_is_one_line(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_disk: None
) -> None:
    monkeypatch.chdir(tmp_path)
    result = planner(*command)
    assert result.code == 1, result.err
    (line,) = (line for line in result.err.splitlines() if "compiling" not in line)
    assert line.startswith("out/")
    assert "too large" in line
    assert not list(tmp_path.rglob("*.partial"))
    assert not list(tmp_path.rglob("run.json"))
    assert not list(tmp_path.rglob("*.html"))
    assert not list(tmp_path.rglob("*.lp"))


def test_links_stay_and_devices_are_written(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to("real.txt")
    replace_text(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"
    with replace_file(Path(os.devnull)) as position:
        assert position == Path(os.devnull)


def test_a_durable_file_is_whole(tmp_path: Path) -> None:
    replace_text(tmp_path / "a.txt", "new", durable=True)
    assert (tmp_path / "a.txt").read_text() == "new"


def test_a_folder_takes_its_place_whole_or_not_at_all(tmp_path: Path) -> None:
    position = tmp_path / "a" / "plan"
    with replace_folder(position) as partial:
        (partial / "x").write_text("old")
        assert not position.exists()
    with pytest.raises(ValueError, match="no"), replace_folder(position) as partial:
        raise ValueError("no")
    assert [path.read_text() for path in position.iterdir()] == ["old"]
    with replace_folder(position) as partial:
        (partial / "y").write_text("new")
    assert [path.name for path in position.iterdir()] == ["y"]
    assert [path.name for path in position.parent.iterdir()] == ["plan"]


def test_a_link_to_a_folder_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "old").write_text("old")
    (tmp_path / "place").symlink_to(tmp_path / "elsewhere")
    with replace_folder(tmp_path / "place") as partial:
        (partial / "new").write_text("new")
    assert (tmp_path / "place").is_symlink()
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["new"]


def test_only_old_partial_folders_are_removed(tmp_path: Path) -> None:
    ended = subprocess.run(["sh", "-c", "echo $$"], capture_output=True, text=True, check=True).stdout.strip()
    names = {f".{ended}-2.partial", f".{os.getpid()}-999999.partial", "plan", "partial"}
    for name in names:
        (tmp_path / name).mkdir()
    remove_partial_folders(tmp_path, older_than_s=60.0)
    assert {path.name for path in tmp_path.iterdir()} == names
    remove_partial_folders(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"plan", "partial"}


@pytest.mark.parametrize("step_s", [-3600.0, 3600.0, 1e9])
def test_a_partial_folder_that_is_being_written_stays_where_the_clock_is_set(
    tmp_path: Path, step_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time
    writer = os.getppid()
    (tmp_path / f".{writer}-1.partial").mkdir()  # another process that runs
    with replace_folder(tmp_path / "plan") as partial:
        (partial / "table").write_text("1")
        monkeypatch.setattr(time, "time", lambda: now() + step_s)
        remove_partial_folders(tmp_path, older_than_s=3600.0)
        remove_partial_folders(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"plan", f".{writer}-1.partial"}
    assert (tmp_path / "plan" / "table").read_text() == "1"
