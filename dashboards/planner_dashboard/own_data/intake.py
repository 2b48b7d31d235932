"""Files from a browser: checked for their size and kind, unpacked, and stored under plain names.

Nothing in a file is executed, and no name in it becomes a path.
"""

from __future__ import annotations

import io
import lzma
import re
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from planner.errors import InputError
from planner.io.names import name_fault
from planner.io.text_files import read_text
from planner.io.toml import parse_toml
from planner.scenarios.catalogue import system_names
from planner_dashboard.own_data.limits import MAX_DECODED_MB, MAX_FILE_MB, SUFFIXES, size_fault

MAX_FILES: Final = 100
MAX_NAME: Final = 60
SCENARIO: Final = "scenario.toml"


@dataclass(frozen=True, kw_only=True)
class GivenFile:
    """A file as a browser sent it."""

    name: str
    content: bytes

    @property
    def plain_name(self) -> str:
        """The name without folders, with plain letters only, as errors and folders show it."""
        name = PurePosixPath(self.name.replace("\\", "/")).name
        stem, dot, ending = name.rpartition(".")
        words = re.sub(r"[^\w .+-]+", "_", stem or ending).strip(" ._+-")[:MAX_NAME] or "table"
        plain = f"{words}.{ending.lower()}" if dot and stem and ending.isalnum() else words
        return plain if name_fault(plain) is None else "table"


@dataclass(frozen=True, kw_only=True)
class Stored:
    """Files in folders of their own, so that two of the same name are two.

    system  the system that a scenario among the files names; "" for none
    notes   on files that are left out
    faults  of files that are refused
    """

    paths: tuple[Path, ...]
    system: str
    notes: tuple[str, ...]
    faults: tuple[str, ...]


def store_files(uploads: Sequence[GivenFile], folder: Path) -> Stored:
    """Store files below `folder`; those in zip archives are unpacked."""
    faults: list[str] = []
    notes: list[str] = []
    files: list[GivenFile] = []
    for file in uploads:
        if file.plain_name.endswith(".zip"):
            try:
                files += _unpack(file)
            except InputError as error:
                faults += error.faults
        else:
            files.append(file)
    if len(files) > MAX_FILES:
        raise InputError(f"{len(files):,} files are given, at most {MAX_FILES} can be read at once")
    paths: list[Path] = []
    system = ""
    for index, file in enumerate(files):
        file_folder = folder / str(index)
        file_folder.mkdir(parents=True)
        path = file_folder / file.plain_name
        if path.suffix == ".toml":
            path.write_bytes(file.content[: 1 << 20])
            system = system or _system_of(path)
            notes.append(f"{path.name}: tables are taken, designs and settings of the scenario are not")
        elif path.suffix not in SUFFIXES:
            faults.append(f"{path.name}: must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")
        elif len(file.content) > MAX_FILE_MB << 20:
            faults.append(
                f"{path.name}: has {len(file.content) >> 20} MB, at most {MAX_FILE_MB} can be uploaded"
            )
        else:
            path.write_bytes(file.content)
            if fault := size_fault(path):
                faults.append(f"{path.name}: {fault}")
                path.unlink()
            else:
                paths.append(path)
    return Stored(paths=tuple(paths), system=system, notes=tuple(notes), faults=tuple(faults))


UNREADABLE: Final = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, OSError, EOFError),
    *(ValueError, NotImplementedError, RuntimeError),
)
"""What a damaged archive raises, by its method of compression."""


def _unpack(archive: GivenFile) -> list[GivenFile]:
    """Return the files of a zip archive, without hidden ones; raise InputError for a damaged or large one."""
    name = archive.plain_name
    files: list[GivenFile] = []
    remaining = MAX_DECODED_MB << 20
    try:
        with zipfile.ZipFile(io.BytesIO(archive.content)) as parts:
            members = [
                entry for entry in parts.infolist() if not entry.is_dir() and not _is_hidden(entry.filename)
            ]
            if len(members) > MAX_FILES:
                raise InputError(f"{name}: has {len(members):,} files, at most {MAX_FILES} can be read")
            for member in members:
                with parts.open(member) as member_file:
                    content = member_file.read(
                        remaining + 1
                    )  # the size that the archive declares may be wrong
                remaining -= len(content)
                if remaining < 0:
                    raise InputError(f"{name}: unpacks to more than {MAX_DECODED_MB} MB")
                files.append(GivenFile(name=member.filename, content=content))
    except (
        zipfile.BadZipFile,
        lzma.LZMAError,
        zlib.error,
        OSError,
        EOFError,
        ValueError,
        NotImplementedError,
        RuntimeError,
    ):
        raise InputError(f"{name}: is no readable zip archive") from None
    return files


def _is_hidden(name: str) -> bool:
    """Return whether a file of an archive is one that systems add, such as `__MACOSX/._links.csv`."""
    parts = PurePosixPath(name.replace("\\", "/")).parts
    return any(piece.startswith((".", "__MACOSX")) for piece in parts if piece not in (".", ".."))


def _system_of(path: Path) -> str:
    """Return the system that a scenario names; "" where the file is no scenario."""
    try:
        named = parse_toml(read_text(path)).get("system")
    except InputError:
        return ""
    return str(named) if named in system_names() else ""
