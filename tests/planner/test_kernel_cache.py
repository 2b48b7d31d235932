"""Compiled kernels on disk: what cannot be read, or may be of somebody else, counts as absent."""

from __future__ import annotations

import importlib
import logging
import os
import pickle
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import pytest

from planner import kernel_cache, kernel_packs
from planner.kernel_packs import KernelPack

MODULE = """
from planner.compiled import njit

@njit(cache=True)
def double(x):
    return 2 * x
"""
GONE = b"cplanner.runs.run\nRemoved\n."  # pickle of a class that planner does not have
NO_MODULE = b"cplanner.removed\nRemoved\n."
VERSION = pickle.dumps(numba.__version__, protocol=-1)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield a folder with a module, and its compiled kernel in the folder `kernels`."""
    folder = tmp_path_factory.mktemp("stored")
    (folder / "doubled.py").write_text(MODULE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numba.config, "CACHE_DIR", str(folder / "kernels"))
        patch.syspath_prepend(folder)
        patch.setattr(sys, "dont_write_bytecode", True)
        assert load_kernel()(3) == 6
        yield folder


@pytest.fixture
def files(stored: Path) -> Iterator[Path]:
    """Yield the folder of the kernel's files; put back what they are afterwards."""
    (index,) = (stored / "kernels").rglob("*.nbi")
    folder, backup = index.parent, stored / "backup"
    shutil.rmtree(backup, ignore_errors=True)
    shutil.copytree(folder, backup)
    kernel_cache._said.clear()
    kernel_cache._is_trusted_folder.cache_clear()
    yield folder
    folder.unlink() if folder.is_symlink() else shutil.rmtree(folder)
    shutil.copytree(backup, folder)


def load_kernel() -> Any:
    """Import the kernel as a new process would."""
    sys.modules.pop("doubled", None)
    return importlib.import_module("doubled").double


def read_compiled() -> Any:
    """Return the compiled kernel from disk, None where it counts as absent."""
    dispatcher = load_kernel().dispatcher
    return dispatcher._cache.load_overload((numba.int64,), dispatcher.targetctx)


def test_a_stored_kernel_is_read(files: Path) -> None:
    assert read_compiled() is not None
    assert load_kernel().dispatcher._cache.has_code()


@pytest.mark.parametrize("content", [GONE, NO_MODULE, b"", b"\x80\x04garbage", pickle.dumps((1, 2))])
@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_an_entry_that_cannot_be_read_counts_as_absent(suffix: str, content: bytes, files: Path) -> None:
    (path,) = files.glob(f"*.{suffix}")
    for head in (b"", VERSION) if suffix == "nbi" else (b"",):
        path.write_bytes(head + content)
        assert read_compiled() is None
        assert load_kernel().dispatcher._cache.has_code() == (suffix == "nbc"), "has_code reads the index"


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_a_kernel_whose_entry_cannot_be_read_is_compiled_and_stored_again(suffix: str, files: Path) -> None:
    (path,) = files.glob(f"*.{suffix}")
    path.write_bytes(VERSION + GONE if suffix == "nbi" else GONE)
    assert load_kernel()(3) == 6
    assert read_compiled() is not None


@pytest.mark.parametrize("content", [GONE, NO_MODULE, b"", pickle.dumps((1, 2)), None])
def test_an_entry_of_a_pack_that_cannot_be_read_counts_as_absent(
    content: bytes | None, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (code,) = files.glob("*.nbc")
    compiled, path = code.read_bytes(), tmp_path / "kernels.zip"
    code.unlink()
    name = load_kernel().dispatcher._cache._name_in_packs((numba.int64,))
    kernel_packs.write_pack({name: compiled if content is None else content}, path)
    with zipfile.ZipFile(path) as archive:
        monkeypatch.setattr(kernel_packs, "open_pack", lambda: KernelPack(archive))
        assert (read_compiled() is None) == (content is not None)
    assert read_compiled() is None, "the archive is closed, and reading raises an error"


def link(path: Path) -> None:
    """Move a file or folder elsewhere, and put a link in its place."""
    elsewhere = next(parent for parent in path.parents if parent.name == "kernels").with_name("elsewhere")
    shutil.rmtree(elsewhere) if elsewhere.is_dir() else elsewhere.unlink(missing_ok=True)
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def replace_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("change", [link, replace_by_pipe, lambda path: path.chmod(0o666)])
@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_a_file_that_others_may_have_written_is_not_used_and_that_is_said_once(
    suffix: str, change: Callable[[Path], None], files: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (path,) = files.glob(f"*.{suffix}")
    change(path)
    with caplog.at_level(logging.WARNING):
        assert read_compiled() is None
        assert read_compiled() is None
    assert [f"{path}: compiled kernels there are not used" in text for text in caplog.messages] == [True]


@pytest.mark.parametrize("change", [link, lambda path: path.chmod(0o770), lambda path: path.chmod(0o777)])
def test_a_folder_that_others_may_have_written_is_not_used_and_that_is_said_once(
    change: Callable[[Path], None], files: Path, caplog: pytest.LogCaptureFixture
) -> None:
    change(files)
    with caplog.at_level(logging.WARNING):
        assert read_compiled() is None
        assert load_kernel()(3) == 6, "compiled again"
    assert [f"{files}: compiled kernels there are not used" in text for text in caplog.messages] == [True]


def test_files_of_another_user_are_not_used(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is this user's now, but somebody else has put files there before."""
    owner = files.stat().st_uid
    monkeypatch.setattr(kernel_cache, "make_private", bool)
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    assert read_compiled() is None
    monkeypatch.setattr(os, "getuid", lambda: owner)
    assert read_compiled() is not None


def test_a_new_folder_and_its_files_are_private_whatever_the_mask(
    stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    before = os.umask(0o000)
    try:
        assert load_kernel()(3) == 6
    finally:
        os.umask(before)
    index, code = tmp_path.rglob("*.nb?")
    assert {path.stat().st_mode & 0o777 for path in (index, code)} == {0o600}
    assert index.parent.stat().st_mode & 0o777 == 0o700
    assert read_compiled() is not None


def test_without_a_folder_that_can_be_written_kernels_are_compiled_and_not_stored(
    stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for a user without a home, of an installation of somebody else."""

    def refuse(self: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    for locator in kernel_cache._Kernels._locator_classes[:-1]:
        monkeypatch.setattr(locator, "ensure_cache_path", refuse)
    assert load_kernel()(3) == 6
    assert read_compiled() is None
    assert not list(tmp_path.iterdir())


def test_a_full_disk_does_not_stop_a_kernel(
    stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(kernel_cache._TrustedFiles, "save", fail)
    assert load_kernel()(3) == 6
