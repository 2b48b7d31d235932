"""Answers that the server stores by the digest of their question, for reloads, bookmarks and links.

An answer is private: the browser that asked opens it again, and others do so only once it is shared. A folder
of the user's own, which nobody else may write, has the answers of all servers of this user; a change of
planner, of a system or of a design makes another digest. Size and age are limited: what was not opened for
longest goes first.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pickle
import re
import secrets
import shutil
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import streamlit as st

from planner.entry_points import find_entry_points
from planner.io.file_replacement import remove_partial_folders, replace_file, replace_folder
from planner.private_folders import PRIVATE_FILE, make_private, read_trusted
from planner.scenarios.commands import value_text
from planner.scenarios.installed_systems import DESIGN_GROUP, GROUP
from planner.scenarios.shipped import own_folders
from planner.scenarios.source_modules import files_with_imports
from planner.version import __version__
from planner_dashboard import comparisons, named_designs
from planner_dashboard.question import UPLOADED, Question
from planner_dashboard.visitors import owner_mark

if TYPE_CHECKING:
    from planner_dashboard.worker import Answer

LIMIT_MB: Final = "PLANNER_DASHBOARD_ANSWERS_MB"
"""Environment variable: size of all stored answers; without it none is stored."""
MAX_ANSWER_MB: Final = 64
MAX_AGE_DAYS: Final = 30
MAX_OWNERS: Final = 100
RECORD, ANSWER, TABLES = "record.json", "answer.pickle", "tables"
DIGEST: Final = re.compile(r"[0-9a-f]{64}")
PARTIAL_AGE_S: Final = 3600.0
START: Final = secrets.token_hex(8)
"""Digests of scenarios in the user's folders have it: their files may change between two servers."""


@dataclass(frozen=True, kw_only=True)
class StoredAnswer:
    """Description of a stored answer.

    saved   time of the answer, ISO 8601 in UTC
    owners  marks of the browsers that asked (`visitors.owner_mark`)
    """

    saved: str
    owners: tuple[str, ...]
    is_shared: bool

    def may_open(self, visitor: str) -> bool:
        """Return whether a visitor may see the answer: it is shared, or the visitor's."""
        return self.is_shared or self.is_of(visitor)

    def is_of(self, visitor: str) -> bool:
        """Return whether a visitor asked for the answer."""
        return bool(visitor) and owner_mark(visitor) in self.owners


class AnswerStore:
    """Answers in a folder, by digest."""

    def __init__(self, folder: Path, *, limit_mb: float, max_age_days: float = MAX_AGE_DAYS) -> None:
        self.folder, self.limit_mb, self.max_age_days = folder, limit_mb, max_age_days
        self._lock = threading.Lock()

    def find(self, question: Question, visitor: str) -> StoredAnswer | None:
        """Return the description of the answer that a visitor may open; None where there is none."""
        stored = self._record(self._path(question))
        return stored if stored is not None and stored.may_open(visitor) else None

    def open(self, question: Question, visitor: str, tables: Path, out: Path) -> Answer | None:
        """Return a stored answer, with its comparison in `out`; None where a visitor has none.

        tables  folder of the uploaded tables, where the question has some
        """
        path = self._path(question)
        stored = self.find(question, visitor)
        content = read_trusted(path / ANSWER, beside=None)
        if stored is None or content is None:
            return None
        try:
            answer: Answer = pickle.loads(content)  # of this server, in a folder that nobody else may write
            comparisons.copy(path, out, tables)
            os.utime(path / RECORD)  # opened now
        except OSError:  # removed meanwhile
            return None
        # of the question as it is asked now: an address has lists where a form has tuples
        return replace(answer, question=question, folder=out, stored=stored.saved)

    def restore_tables(self, question: Question, visitor: str, folder: Path) -> None:
        """Copy the uploaded tables of a stored answer into a session's folder, where it has none."""
        source, target = self._path(question) / TABLES, folder / question.upload
        if question.upload and not target.exists() and self.find(question, visitor) and source.is_dir():
            with contextlib.suppress(OSError), replace_folder(target) as partial:
                shutil.copytree(source, partial, dirs_exist_ok=True)

    def add(self, answer: Answer, tables: Path, visitor: str) -> None:
        """Store an answer for the visitor who asked; one that is too large, or of nobody, is not stored.

        tables  folder of the uploaded tables, where the question has some
        """
        content = pickle.dumps(answer, protocol=pickle.HIGHEST_PROTOCOL)
        sources = [answer.folder, *([tables] if answer.question.upload else [])]
        size = len(content) + sum(map(_bytes, sources))
        if not visitor or size > min(MAX_ANSWER_MB, self.limit_mb) * 2**20 or not make_private(self.folder):
            return
        path = self._path(answer.question)
        with self._lock, contextlib.suppress(OSError):
            before = self._record(path)
            owners = [owner_mark(visitor), *(before.owners if before else ())]
            stored = StoredAnswer(
                saved=datetime.now(UTC).isoformat(timespec="seconds"),
                owners=tuple(dict.fromkeys(owners))[:MAX_OWNERS],
                is_shared=before is not None and before.is_shared,
            )
            with replace_folder(path) as partial:
                _write(partial / ANSWER, content)
                comparisons.copy(answer.folder, partial, tables)
                if answer.question.upload:
                    shutil.copytree(tables, partial / TABLES)
                _write(partial / RECORD, json.dumps(vars(stored)).encode())
            self._prune(path)

    def share(self, question: Question, visitor: str, *, is_shared: bool) -> None:
        """Let others open an answer, or no longer; only a visitor who asked for it may say so."""
        path = self._path(question)
        with self._lock, contextlib.suppress(OSError):
            stored = self._record(path)
            if stored is not None and stored.is_of(visitor):
                with replace_file(path / RECORD) as partial:
                    _write(partial, json.dumps({**vars(stored), "is_shared": is_shared}).encode())

    def _path(self, question: Question) -> Path:
        return self.folder / digest(question)

    def _record(self, path: Path) -> StoredAnswer | None:
        """Return the description of an answer that is not too old; None where there is none."""
        content = read_trusted(path / RECORD, beside=None)
        if content is None:
            return None
        try:
            record = json.loads(content)
            owners = tuple(map(str, record["owners"]))
            stored = StoredAnswer(
                saved=str(record["saved"]), owners=owners, is_shared=bool(record["is_shared"])
            )
            age_s = time.time() - datetime.fromisoformat(stored.saved).timestamp()
        except (ValueError, KeyError, TypeError):
            return None
        return stored if age_s <= self.max_age_days * 86_400 else None

    def _prune(self, newest: Path) -> None:
        """Remove answers that are too old, then those opened longest ago, down to the limit of size."""
        remove_partial_folders(self.folder, older_than_s=PARTIAL_AGE_S)
        paths = [path for path in self.folder.iterdir() if DIGEST.fullmatch(path.name) and path != newest]
        remaining = []
        for path in paths:
            if self._record(path) is None:
                shutil.rmtree(path, ignore_errors=True)
            else:
                remaining.append((path.joinpath(RECORD).stat().st_mtime, path))
        free = self.limit_mb * 2**20 - _bytes(newest)
        for _, path in sorted(remaining, reverse=True):
            free -= _bytes(path)
            if free < 0:
                shutil.rmtree(path, ignore_errors=True)


@st.cache_resource(show_spinner=False)
def of_server() -> AnswerStore | None:
    """Return the store of the server; None where none is asked for, or no folder is the user's own."""
    limit_mb = float(os.environ.get(LIMIT_MB) or 0)
    folder = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 - never raises
    if limit_mb <= 0 or not Path(folder).is_absolute():
        return None
    parent = Path(folder, "planner")
    is_private = make_private(parent) and make_private(parent / "answers")
    return AnswerStore(parent / "answers", limit_mb=limit_mb) if is_private else None


def digest(question: Question) -> str:
    """Return the digest of a question and of the code that answers it, 64 hexadecimal digits."""
    changes = sorted((key, value_text(value)) for key, value in question.changes.items())
    is_own = question.scenario != UPLOADED and any(
        (folder / f"{question.scenario}.toml").is_file() for folder in own_folders()
    )
    content = [_code(), question.scenario, question.upload, changes, list(question.designs)]
    return hashlib.sha256(json.dumps([*content, START if is_own else ""]).encode()).hexdigest()


@st.cache_resource(show_spinner=False)
def _code() -> str:
    """Return the digest of the code and data that answers come from, as this server has loaded them."""
    points = [*find_entry_points(GROUP).values(), *find_entry_points(DESIGN_GROUP).values()]
    own = {"planner", "planner_dashboard", "planner_data"}
    packages = own | {point.module.partition(".")[0] for point in points}
    content: list[Any] = [__version__, sys.version, sorted(packages)]
    content += [(point.name, point.value, point.dist.version if point.dist else "") for point in points]
    content += [_states(packages), [*_texts_of_designs()]]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _states(packages: Iterable[str]) -> list[tuple[str, int, int]]:
    """Return time of change and size of every file of packages."""
    paths: set[Path] = set()
    for spec in filter(None, map(find_spec, packages)):
        paths |= {Path(spec.origin)} if spec.origin else set()
        for folder in spec.submodule_search_locations or ():
            paths |= {path for path in Path(folder).rglob("*") if "__pycache__" not in path.parts}
    files = sorted(path for path in paths if path.is_file())
    return [(str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in files]


def _texts_of_designs() -> Iterator[str]:
    """Yield the references of designs that the command named, each with the texts of its files."""
    for line in os.environ.get(named_designs.VARIABLE, "").splitlines():
        path = Path(line.partition("=")[2].rpartition(":")[0])
        yield line
        if path.suffix == ".py":
            yield from (file.read_text(encoding="utf-8") for file in files_with_imports([path.resolve()]))
        else:
            yield START


def _write(path: Path, content: bytes) -> None:
    """Write a file that the user alone may read and write, whatever the usual mode of files is."""
    path.touch(mode=PRIVATE_FILE)
    path.write_bytes(content)


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
