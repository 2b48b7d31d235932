"""Plans of a store as folders of Parquet files, each with a list of their sizes and digests.

A plan is written completely or not at all, and is on the disk before a row refers to it. So a plan that is
lost or damaged is one that the disk has lost: a run with such a plan does not count as done.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from planner.io.file_replacement import replace_folder

LIST_NAME: Final = "files.json"


def write_plan(folder: Path, tables: Mapping[str, bytes]) -> None:
    """Write a plan, given as Parquet, into a folder of its own; one that is whole there stays.

    raises  OSError
    """
    if find_damage(folder) is None:
        return
    listed = {
        f"{name}.parquet": {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in tables.items()
    }
    try:
        with replace_folder(folder) as partial:
            for name, content in tables.items():
                (partial / f"{name}.parquet").write_bytes(content)
            (partial / LIST_NAME).write_text(json.dumps(listed), encoding="utf-8")
    except OSError:
        if find_damage(folder) is not None:  # else another sweep has written the same plan
            raise


def find_damage(folder: Path) -> str | None:
    """Return the error of the files of a plan; None if all are there and unchanged.

    Of a plan that an older planner wrote, without a list, only the ends of the files are known.
    """
    try:
        if not (folder / LIST_NAME).exists():
            return _find_damage_of_unlisted(folder)
        listed = json.loads((folder / LIST_NAME).read_text(encoding="utf-8"))
        for name, entry in listed.items():
            if not _is_plain_file(folder, name):
                return f"{name[:80]!r} is no file of its own"
            size = (folder / name).stat().st_size
            if size != entry["bytes"]:
                return f"{name} has {size:,} bytes of {entry['bytes']:,}"
            content = (folder / name).read_bytes()
            if len(content) != entry["bytes"]:
                return f"{name} has {len(content):,} bytes of {entry['bytes']:,}"
            if hashlib.sha256(content).hexdigest() != entry["sha256"]:
                return f"{name} has changed"
    except FileNotFoundError as error:
        return f"{Path(str(error.filename)).name} is missing"
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return "it cannot be read"
    return None


def plan_files(folder: Path) -> list[Path]:
    """Return the tables of a plan in the order of their names; a link out of the folder is none."""
    return [path for path in sorted(folder.glob("*.parquet")) if _is_plain_file(folder, path.name)]


def _is_plain_file(folder: Path, name: str) -> bool:
    """Return whether a name is that of a file of a folder itself, neither a path nor a link nor a pipe.

    raises  FileNotFoundError where there is none
    """
    path = folder / name
    return path.name == name and stat.S_ISREG(path.lstat().st_mode)


def _find_damage_of_unlisted(folder: Path) -> str | None:
    paths = plan_files(folder)
    if not paths:
        return "it is missing"
    for path in paths:
        with path.open("rb") as file:
            file.seek(-4, os.SEEK_END)
            if file.read() != b"PAR1":
                return f"{path.name} is cut"
    return None
