"""Stored descriptions are those that would be made now, or they are made again."""

from __future__ import annotations

import json
import os
import time
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from planner.scenarios import description_cache
from planner.scenarios.catalogue import find_system, system_names
from planner.scenarios.description import describe
from planner.scenarios.description_cache import describe_all


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file that descriptions are made from, older than the process."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    file = tmp_path / "table.py"
    file.write_text("DESIGNS = ()")
    os.utime(file, (1e9, 1e9))
    monkeypatch.setattr(description_cache, "_sources", lambda: iter([str(file)]))
    return file


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the systems that are described instead of read."""
    names: list[str] = []

    def recorded(system: Any) -> dict[str, Any]:
        names.append(system.name)
        return describe(system)

    monkeypatch.setattr("planner.scenarios.description.describe", recorded)
    return names


def cache_file() -> Path:
    file = description_cache._cache_file()
    assert file is not None
    return file


def test_stored_descriptions_are_the_same(source: Path, made: list[str]) -> None:
    first = describe_all()
    assert made == system_names()
    assert describe_all() == first
    assert made == system_names(), "the second time they are read"
    assert first == json.loads(
        json.dumps([describe(find_system(name)) for name in system_names()], default=str)
    )


@pytest.mark.parametrize("change", ["content", "time", "gone", "python", "damaged", "stranger"])
def test_any_change_makes_them_again(
    source: Path, made: list[str], change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    describe_all()
    made.clear()
    match change:
        case "content":
            source.write_text("DESIGNS = (1,)")
            os.utime(source, (1e9, 1e9))
        case "time":
            os.utime(source, (1e9, 1e9 + 1))
        case "gone":
            other = source.rename(source.with_name("other.py"))
            monkeypatch.setattr(description_cache, "_sources", lambda: iter([str(other)]))
        case "python":
            monkeypatch.setattr("sys.path", ["/elsewhere", *description_cache.sys.path])
        case "damaged":
            cache_file().write_text("{")
        case "stranger":
            cache_file().write_text("[1]")
    describe_all()
    assert made == system_names()


def test_files_that_may_still_change_are_not_trusted(source: Path, made: list[str]) -> None:
    source.touch()
    describe_all()
    describe_all()
    assert made == 2 * system_names()


def test_a_folder_that_cannot_be_written_costs_time_only(
    source: Path, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (source.parent / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(source.parent / "file"))
    assert describe_all() == describe_all()
    assert made == 2 * system_names()


def test_everything_of_a_system_counts() -> None:
    systems = [find_system(name) for name in system_names()]
    sources = set(description_cache._sources())
    for system in systems:
        module = import_module(f"planner_models.{system.name}")
        package = Path(str(module.__file__)).parent
        assert {str(path) for path in (package, *package.rglob("*.py"))} <= sources
    assert str(Path(str(description_cache.__file__))) in sources


def test_descriptions_in_a_folder_that_others_may_write_are_made_again(
    source: Path, made: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    describe_all()
    assert (tmp_path / "cache" / "planner").stat().st_mode & 0o777 == 0o700
    (tmp_path / "cache" / "planner").chmod(0o777)
    describe_all()
    assert len(made) == 2 * len(system_names())
    assert ["are not used" in text for text in caplog.messages] == [True]


@pytest.mark.parametrize("kind", ["link", "pipe", "writable"])
def test_stored_descriptions_that_others_may_have_written_are_made_again(
    source: Path, made: list[str], kind: str
) -> None:
    describe_all()
    file = cache_file()
    assert file.stat().st_mode & 0o777 == 0o600
    if kind == "writable":
        file.chmod(0o666)
    else:
        other = file.rename(source.with_name("other.json"))
        file.symlink_to(other) if kind == "link" else os.mkfifo(file)
    made.clear()
    describe_all()
    assert made == system_names()


def test_a_user_without_a_home_has_descriptions(made: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container whose user the system does not know: there, `~` has no meaning."""
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    assert describe_all() == describe_all()
    assert made == 2 * system_names()
    assert not Path("~").exists()


def test_deep_lists_in_place_of_descriptions_are_made_again(source: Path, made: list[str]) -> None:
    describe_all()
    cache_file().write_text("[" * 100_000)
    made.clear()
    describe_all()
    assert made == system_names()


@pytest.mark.parametrize("step_s", [-3600.0, 3600.0])
def test_a_clock_that_is_set_while_files_are_loaded_does_not_store_what_may_have_changed(
    source: Path, made: list[str], step_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that was changed after the process began, before or after the clock was set."""
    now = time.time
    monkeypatch.setattr(description_cache, "time", SimpleNamespace(time=lambda: now() + step_s))
    for changed in (now(), now() + step_s):
        os.utime(source, (changed, changed))
        made.clear()
        describe_all()
        describe_all()
        assert made == 2 * system_names()
