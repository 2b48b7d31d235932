"""Folders of cached code are used only where nobody else can have written into them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from planner.private_folders import is_as_safe_as_source, make_private, read_trusted

CODE = """
from planner.compiled import njit

@njit(cache=True)
def double(x):
    return 2 * x
"""
CALL = """
import sys
sys.path.insert(0, sys.argv[1])
import coded
assert coded.double(2) == 4
print(sum(coded.double.stats.cache_hits.values()))
"""


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_new_folder_is_private(tmp_path: Path) -> None:
    assert make_private(tmp_path / "one" / "two")
    assert mode(tmp_path / "one" / "two") == 0o700


def test_a_folder_that_others_only_read_becomes_private(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    assert make_private(tmp_path)
    assert mode(tmp_path) == 0o700


@pytest.mark.parametrize("bits", [0o777, 0o770, 0o775, 0o1777])
def test_a_folder_that_others_may_write_is_refused_as_it_is(tmp_path: Path, bits: int) -> None:
    tmp_path.chmod(bits)
    assert not make_private(tmp_path)
    assert mode(tmp_path) == bits & 0o777


def test_a_link_or_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "own")
    assert not make_private(tmp_path / "link")
    (tmp_path / "file").write_text("")
    assert not make_private(tmp_path / "file")
    assert not make_private(tmp_path / "file" / "below")


def test_a_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o700)
    monkeypatch.setattr(os, "getuid", lambda: tmp_path.stat().st_uid + 1)
    assert not make_private(tmp_path)
    assert mode(tmp_path) == 0o700


@pytest.mark.parametrize(
    ("of_source", "of_cache", "is_safe"),
    [
        (0o755, 0o755, True),
        (0o775, 0o775, True),
        (0o755, 0o775, False),
        (0o775, 0o777, False),
        (0o777, 0o777, True),
    ],
)
def test_code_beside_its_source_is_as_safe_as_that(
    tmp_path: Path, of_source: int, of_cache: int, is_safe: bool
) -> None:
    folder = tmp_path / "__pycache__"
    folder.mkdir()
    folder.chmod(of_cache)
    tmp_path.chmod(of_source)
    assert is_as_safe_as_source(folder, tmp_path / "module.py") is is_safe
    assert is_as_safe_as_source(tmp_path / "none", tmp_path / "module.py")


@pytest.mark.parametrize("is_beside", [True, False])
def test_a_file_that_others_may_have_written_is_not_read(
    tmp_path: Path, is_beside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o755)
    file, source = tmp_path / "file", tmp_path / "module.py"
    beside = source if is_beside else None
    file.write_bytes(b"content")
    assert read_trusted(file, beside=beside) == b"content"
    (tmp_path / "link").symlink_to(file)
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", "none", "."):
        assert read_trusted(tmp_path / name, beside=beside) is None, name
    for bits in (0o620, 0o602):
        file.chmod(bits)
        assert read_trusted(file, beside=beside) is None
    file.chmod(0o600)
    monkeypatch.setattr(os, "getuid", lambda: file.stat().st_uid + 1)
    # beside its source a file of the source's owner is as safe as that
    assert read_trusted(file, beside=beside) == (b"content" if is_beside else None)


def cache_hits(folder: Path, cache: Path | None) -> int:
    """Return how often a new process takes a kernel from the cache."""
    selected = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    result = subprocess.run(
        [sys.executable, "-B", "-c", CALL, str(folder)],
        env=selected if cache is None else {**selected, "NUMBA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=True,
    )
    return int(result.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("is_beside", [True, False])
def test_cached_kernels_of_a_folder_that_others_may_write_are_not_loaded(
    tmp_path: Path, is_beside: bool
) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "coded.py").write_text(CODE)
    cache = None if is_beside else tmp_path / "cache"
    assert cache_hits(tmp_path, cache) == 0
    assert cache_hits(tmp_path, cache) == 1
    (index,) = tmp_path.rglob("*.nbi")
    index.parent.chmod(0o777)
    assert cache_hits(tmp_path, cache) == 0, "compiled again, not loaded"
    index.parent.chmod(0o700)
    assert cache_hits(tmp_path, cache) == 1
