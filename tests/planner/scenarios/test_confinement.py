"""A scenario of somebody else reads its own folder only."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from planner.errors import InputError
from planner.scenarios import confinement
from planner.scenarios.confinement import copy_confined, leads_outside

SCENARIO = 'system = "traffic"\n[problem]\nsource = "tables"\npath = "."\n'


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "more").mkdir(parents=True)
    target.mkdir()
    (source / "scenario.toml").write_text(SCENARIO)
    (source / "links.csv").write_text("tail,head\n")
    (source / "more" / "demands.csv").write_text("source,target\n")
    return source, target


def test_all_files_are_copied(folders: tuple[Path, Path]) -> None:
    source, target = folders
    copy_confined(source, target)
    copied = sorted(str(path.relative_to(target)) for path in target.rglob("*") if path.is_file())
    assert copied == ["links.csv", "more/demands.csv", "scenario.toml"]


@pytest.mark.parametrize(
    "line",
    [
        'path = "/etc"',
        'path = "../other"',
        'path = "more/../../other"',
        'path = "~/plans"',
        "path = 'C:\\plans'",
        "path = '..\\plans'",
        'links = "/etc/passwd"',
        '[problem.tables.links]\nfile = "/etc/passwd"',
        '[simulation]\ntrace = "/etc/passwd"',
        '[events]\nfile = "../x"',
        '[designs.ecmp]\nunknown = ["a", "/etc/passwd"]',
    ],
)
def test_a_path_that_leads_outside_is_refused_before_anything_is_copied(
    folders: tuple[Path, Path], line: str
) -> None:
    source, target = folders
    (source / "scenario.toml").write_text(f'system = "traffic"\n[problem]\nsource = "tables"\n{line}\n')
    with pytest.raises(InputError, match="leads out of the folder of its scenario"):
        copy_confined(source, target)
    assert list(target.iterdir()) == []


@pytest.mark.parametrize("name", ["links.csv", "more", "scenario.toml"])
def test_a_link_is_refused(folders: tuple[Path, Path], tmp_path: Path, name: str) -> None:
    source, target = folders
    secret = tmp_path / "secret"
    (source / name).rename(secret)
    (source / name).symlink_to(secret)
    with pytest.raises(InputError, match="is a link, a device or a pipe"):
        copy_confined(source, target)
    assert list(target.iterdir()) == []


def test_a_pipe_is_refused_and_never_opened(folders: tuple[Path, Path]) -> None:
    source, target = folders
    os.mkfifo(source / "demands.csv")
    with pytest.raises(InputError, match=r"demands\.csv: is a link, a device or a pipe"):
        copy_confined(source, target)


def test_sizes_have_limits(folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = folders
    monkeypatch.setattr(confinement, "MAX_FILES", 2)
    with pytest.raises(InputError, match="has more than 2 files"):
        copy_confined(source, target)
    monkeypatch.setattr(confinement, "MAX_FILES", 9)
    monkeypatch.setattr(confinement, "MAX_BYTES", 20)
    with pytest.raises(InputError, match="has more than"):
        copy_confined(source, target)


@pytest.mark.parametrize(
    "text", ["", ".", "links.csv", "more/links.csv", "a..b", "A->B", "no~1", "2020-01-01 10:00"]
)
def test_plain_names_stay_inside(text: str) -> None:
    assert not leads_outside(text)
