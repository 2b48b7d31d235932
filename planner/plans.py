"""Plans that are kept: folders of Parquet files, named by the digest of their tables; equal plans are one."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pandas as pd

STALE_S: Final = 3600.0  # age of a half-written plan that nobody is writing any more


class Plans:
    """The plans of a store, beside its SQLite file. Failures of the disk are OSError."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def folder_of(self, digest: str) -> Path:
        """Where the tables of that plan are, or would be."""
        return self._folder / digest[:2] / digest

    def read(self, digest: str) -> dict[str, pd.DataFrame] | None:
        """The tables of that plan, by name; None where it is not kept."""
        folder = self.folder_of(digest)
        if not folder.is_dir():
            return None
        return {path.stem: pd.read_parquet(path) for path in sorted(folder.glob("*.parquet"))}

    def keep(self, digest: str, tables: Mapping[str, bytes]) -> None:
        """Keep a plan whose tables are Parquet already: whole, or not at all."""
        place = self.folder_of(digest)
        if place.exists():
            return
        partial = place.with_name(f".{digest}.{os.getpid()}.partial")
        partial.mkdir(parents=True, exist_ok=True)
        try:
            for name, content in tables.items():
                (partial / f"{name}.parquet").write_bytes(content)
            partial.rename(place)
        except OSError:
            if not place.exists():  # else another sweep was first with the same plan
                raise
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def tidy(self) -> None:
        """Remove what writers that were killed left half-written."""
        for partial in self._folder.glob("*/.*.partial"):
            with contextlib.suppress(FileNotFoundError):
                if time.time() - partial.stat().st_mtime > STALE_S:
                    shutil.rmtree(partial, ignore_errors=True)
