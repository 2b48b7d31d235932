"""Scenarios of others that may read their own folder only, such as those in a store."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path, PureWindowsPath
from typing import Any, Final

from planner.errors import InputError
from planner.io.toml import parse_toml

MAX_FILES: Final = 1_000
MAX_BYTES: Final = 512 << 20
"""Number and size of the files that are copied with a scenario."""


def require_confined(document: Mapping[str, Any]) -> None:
    """Refuse a scenario with a text that, as a path, leads out of the folder that the scenario is in.

    Each text counts, whatever its key: systems of others have paths under keys that nobody knows here.

    raises  InputError with the keys of all such texts
    """
    outside = [key for key, text in _texts(document) if leads_outside(text)]
    if outside:
        raise InputError(*(f"{key}: leads out of the folder of its scenario" for key in outside))


def leads_outside(text: str) -> bool:
    """Return whether a text, as a path, is absolute, begins at a home folder, or has a part `..`."""
    parts = text.replace("\\", "/").split("/")
    return text.startswith(("/", "~", "\\")) or ".." in parts or bool(PureWindowsPath(text).drive)


def copy_confined(source: Path, target: Path) -> None:
    """Copy a scenario with its files into a folder that exists, once its paths are known to stay in it.

    raises  InputError for links, pipes and devices, for too many or too large files, and for such paths
    """
    scenario = source / "scenario.toml"
    paths = [*_regular_files(source)]
    if scenario not in paths:
        raise InputError("scenario.toml: is missing")
    require_confined(parse_toml(scenario.read_text(encoding="utf-8", errors="replace")))
    for path in paths:
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy, follow_symlinks=False)


def _regular_files(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder and its subfolders."""
    count = size = 0
    if folder.is_symlink():
        raise InputError(f"{folder.name}: is a link")
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(parent, name)
            status = path.lstat()
            if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
                raise InputError(f"{path.relative_to(folder)}: is a link, a device or a pipe")
        for name in sorted(files):
            path = Path(parent, name)
            count, size = count + 1, size + path.lstat().st_size
            if count > MAX_FILES or size > MAX_BYTES:
                raise InputError(f"has more than {MAX_FILES:,} files or {MAX_BYTES >> 20:,} MiB")
            yield path


def _texts(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield every text of a document with its dotted key."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _texts(item, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item, key)
