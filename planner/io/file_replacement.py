"""Files and folders that are written completely or not at all: beside their place first, then renamed."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PARTIAL: Final = ".{}.partial"  # name of what is not complete
_numbers: Final = itertools.count()
_being_written: Final[set[Path]] = set()
"""Partial folders of this process."""


@contextlib.contextmanager
def replace_file(path: Path, *, durable: bool = False) -> Iterator[Path]:
    """Yield the path of a partial file; where the block succeeds, it takes the place of `path`.

    A link stays a link, and a device or a pipe, such as /dev/stdout, is written itself.

    durable  wait until the content is on the disk, so that a power cut leaves the old file or the new one
    raises   OSError that names the file
    """
    target = path.resolve() if path.is_symlink() else path
    if target.exists() and not target.is_file():
        yield target
        return
    partial = _name_partial(target)
    try:
        yield partial
        if durable:
            sync(partial)
        partial.replace(target)
        if durable:
            sync(target.parent)
    except OSError as error:
        if error.filename is None or str(error.filename) == str(partial):
            error.filename, error.filename2 = str(path), None
        raise
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)


@contextlib.contextmanager
def replace_folder(target: Path) -> Iterator[Path]:
    """Yield a new folder; where the block succeeds, it takes the place of `target`, whole and on the disk.

    A link stays a link: the folder that it leads to is replaced.

    raises  OSError, also where another process puts a folder there meanwhile
    """
    target = target.resolve() if target.is_symlink() else target
    partial = _name_partial(target)
    _being_written.add(partial)
    try:
        partial.mkdir(parents=True)
        yield partial
        for path in [*partial.rglob("*"), partial]:
            sync(path)
        shutil.rmtree(target, ignore_errors=True)
        partial.rename(target)
        sync(target.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        _being_written.discard(partial)


def remove_partial_folders(parent: Path, *, older_than_s: float = 0.0) -> None:
    """Remove the partial folders of processes that were ended; younger ones may be being written.

    One of a process that still runs here stays, however old it is: the system's clock may have been set.
    """
    for partial in parent.glob(PARTIAL.format("*")):
        if _is_being_written(partial):
            continue
        with contextlib.suppress(FileNotFoundError):
            is_old = time.time() - partial.stat().st_mtime >= older_than_s
            if is_old and partial.is_dir() and not partial.is_symlink():
                shutil.rmtree(partial, ignore_errors=True)


def _name_partial(target: Path) -> Path:
    return target.with_name(PARTIAL.format(f"{os.getpid()}-{next(_numbers)}"))


def _is_being_written(partial: Path) -> bool:
    """Return whether a partial folder is of another process that runs, or of this one since it began."""
    match = re.fullmatch(r"\.(\d{1,9})-\d{1,9}\.partial", partial.name)
    if match is None or os.name != "posix":
        return False
    process = int(match[1])
    if process == os.getpid():  # an earlier one may have had the same number, as in a container
        return partial in _being_written
    try:
        os.kill(process, 0)
    except OSError as error:
        return isinstance(error, PermissionError)  # it runs, and is of another user
    return True


def replace_text(path: Path, text: str, *, durable: bool = False) -> None:
    """Write a text file in UTF-8, completely or not at all; raise OSError that names the file."""
    with replace_file(path, durable=durable) as partial:
        partial.write_text(text, encoding="utf-8")


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk, where the system can do so."""
    try:
        opened = os.open(path, os.O_RDONLY)
    except OSError:
        return
    try:
        with contextlib.suppress(OSError):
            os.fsync(opened)
    finally:
        os.close(opened)
