"""Descriptions of all systems, stored between commands until any file that they come from changes.

Describing a system imports it, with pandas and Numba: over a second, for a list of names. As Python stores
compiled modules, the descriptions are stored with the modification time and the size of every module that was
loaded to make them and of everything in the systems' packages, and with the versions of Python and of the
packages that offer systems. Where anything differs, they are made again. Without a folder of the
user's own that can be written they are made each time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import sys
import time
from collections.abc import Iterable, Iterator
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from planner.entry_points import find_entry_points
from planner.io.file_replacement import replace_file
from planner.private_folders import MUST_BE_PRIVATE, PRIVATE_FILE, make_private, read_trusted
from planner.scenarios.catalogue import find_system
from planner.scenarios.installed_systems import DESIGN_GROUP, GROUP

log = logging.getLogger(__name__)

STARTED_S: Final = time.time()
"""When this process began to load modules, by the system's clock."""
SETTLED_AFTER_S: Final = 60.0
"""Age of a file from which its time and size identify the content that this process has loaded."""


def describe_all() -> list[dict[str, Any]]:
    """Return the description of every installed system, as `describe` does, in plain data."""
    path, environment = _cache_file(), _environment()
    # none there, or not ours
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        stored = json.loads((path and read_trusted(path, beside=None)) or b"{}")
        if stored["environment"] == environment and stored["files"] == _states(stored["files"]):
            descriptions: list[dict[str, Any]] = stored["descriptions"]
            return descriptions
    from planner.scenarios.description import describe

    text = json.dumps([describe(find_system(name)) for name in find_entry_points(GROUP)], default=str)
    if path is not None:
        with contextlib.suppress(OSError):
            _store(path, environment, text)
    plain: list[dict[str, Any]] = json.loads(text)
    return plain


def _points() -> list[EntryPoint]:
    """Return the entry points of all systems, and of the designs that packages add to them."""
    return [*find_entry_points(GROUP).values(), *find_entry_points(DESIGN_GROUP).values()]


def _cache_file() -> Path | None:
    """Return the file of the descriptions in a folder of the user's own, or None without such a folder."""
    folder = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 - never raises
    if not Path(folder).is_absolute():  # of a user without a home
        return None
    folder_ = Path(folder, "planner")
    if make_private(folder_):
        return folder_ / f"systems-{hashlib.sha256(sys.prefix.encode()).hexdigest()[:16]}.json"
    if folder_.exists():
        log.warning("%s: stored descriptions there are not used: %s", folder_, MUST_BE_PRIVATE)
    return None


def _environment() -> list[Any]:
    """Return the state that decides the loaded files and their reading."""
    points = [[point.name, point.value, point.dist.version if point.dist else ""] for point in _points()]
    return [sys.version, sys.flags.optimize, sys.path, points]


def _states(files: Iterable[str]) -> dict[str, list[int]]:
    """Return modification time and size of each file; raise OSError where one is gone."""
    states = {}
    for name in files:
        status = os.stat(name)  # noqa: PTH116 - a thousand of them: a Path each takes longer
        states[name] = [status.st_mtime_ns, status.st_size]
    return states


def _store(path: Path, environment: list[Any], descriptions: str) -> None:
    """Write the descriptions, unless a file is so young that it may have changed after it was loaded."""
    files = _states(_sources())
    oldest_load_s = min(STARTED_S, time.time())  # both: the system's clock may have been set meanwhile
    if max(changed for changed, _ in files.values()) > (oldest_load_s - SETTLED_AFTER_S) * 1e9:
        return
    document = {"environment": environment, "files": files, "descriptions": json.loads(descriptions)}
    if path.is_symlink() or not path.is_file():
        path.unlink(missing_ok=True)
    with replace_file(path) as partial:
        partial.touch(mode=PRIVATE_FILE)
        partial.write_text(json.dumps(document), encoding="utf-8")


def _sources() -> Iterator[str]:
    """Yield the files of all loaded modules, and the files and folders of the systems' packages."""
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str):
            yield file
    for point in _points():
        spec = find_spec(point.module)
        for folder in spec.submodule_search_locations or () if spec else ():
            for parent, folders, names in os.walk(folder):
                folders[:] = [name for name in folders if name != "__pycache__"]
                yield from (parent, *(str(Path(parent, name)) for name in names))
