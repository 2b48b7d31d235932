"""A folder for each hostile case, which sees writes outside of it, and a limit of memory."""

from __future__ import annotations

import os
import resource
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

MEMORY_MB: Final = 4_096
WRITES: Final = frozenset(
    {
        *("open", "os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate"),
        *("shutil.rmtree", "os.chmod"),
    }
)


class Sandbox:
    """A folder for each case within one that no case may touch.

    Writes are seen by an audit hook, and those of libraries that Python does not see by the folder's state.
    """

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="planner-fuzz-")).resolve()
        self.case = self.root / "case"
        self.escapes: list[str] = []
        self._is_watching = False
        self.temp = self.root / "temp"
        self.temp.mkdir()
        tempfile.tempdir = str(self.temp)
        for name in ("canary.txt", "plan/flows.csv", "plan/flows.parquet", "x/links.csv"):
            path = self.root / name
            path.parent.mkdir(exist_ok=True)
            path.write_text("untouched")
        self._allowed = (
            str(self.case),
            str(self.temp),
            os.environ.get("NUMBA_CACHE_DIR") or "/nonexistent",
            os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache"),
        )
        sys.addaudithook(self._audit)

    def __enter__(self) -> Path:
        shutil.rmtree(self.case, ignore_errors=True)
        self.case.mkdir()
        os.chdir(self.case)
        self.escapes = []
        self._before = self._state()
        self._is_watching = True
        return self.case

    def __exit__(self, *_: object) -> None:
        self._is_watching = False
        os.chdir(self.root)
        if self._state() != self._before:
            self.escapes.append("files beside the folder asked for have changed")

    def _state(self) -> list[tuple[str, int, int]]:
        result = []
        for folder, folders, names in os.walk(self.root):
            if Path(folder) == self.root:
                folders[:] = [name for name in folders if name not in ("case", "temp")]
            for name in names:
                path = Path(folder, name)
                status = path.stat()
                result.append((str(path), status.st_size, status.st_mtime_ns))
        return sorted(result)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._is_watching or event not in WRITES:
            return
        if event == "open":
            path, mode, flags = arguments
            writes = any(letter in mode for letter in "wax+") if isinstance(mode, str) else False
            if not (writes or (isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))):
                return
            paths = [path]
        else:
            paths = [
                argument for argument in arguments[:2] if isinstance(argument, str | bytes | os.PathLike)
            ]
        for item in paths:
            if isinstance(item, int):
                continue
            text = os.fsdecode(item)
            if "\0" in text or "__pycache__" in text or text == os.devnull:
                continue
            full = os.path.realpath(text)
            if not any(full == folder or full.startswith(folder + os.sep) for folder in self._allowed):
                self.escapes.append(f"{event} {full[:200]}")


def limit_memory() -> None:
    """Limit the memory of this process."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_MB << 20, MEMORY_MB << 20))
