"""Files of stored plans: folders of Parquet files, named by the digest of their tables."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pandas as pd

ABANDONED_AFTER_S: Final = 3600.0  # age of a partial plan that nobody writes any more


class PlanFiles:
    """The plans of a store, beside its SQLite file; failures of the disk are OSError."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def folder_of(self, digest: str) -> Path:
        """Return the folder that has the tables of a plan, or would have them."""
        return self._folder / digest[:2] / digest

    def read(self, digest: str) -> dict[str, pd.DataFrame] | None:
        """Return the tables of a plan by name; None where it is not stored."""
        folder = self.folder_of(digest)
        if not folder.is_dir():
            return None
        return {path.stem: pd.read_parquet(path) for path in sorted(folder.glob("*.parquet"))}

    def write(self, digest: str, tables: Mapping[str, bytes]) -> None:
        """Write a plan, given as Parquet, completely or not at all."""
        folder = self.folder_of(digest)
        if folder.exists():
            return
        partial = folder.with_name(f".{digest}.{os.getpid()}.partial")
        partial.mkdir(parents=True, exist_ok=True)
        try:
            for name, content in tables.items():
                (partial / f"{name}.parquet").write_bytes(content)
            partial.rename(folder)
        except OSError:
            if not folder.exists():  # else another sweep has written the same plan
                raise
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def remove_partial_plans(self) -> None:
        """Remove the partial plans of writers that were killed."""
        for partial in self._folder.glob("*/.*.partial"):
            with contextlib.suppress(FileNotFoundError):
                if time.time() - partial.stat().st_mtime > ABANDONED_AFTER_S:
                    shutil.rmtree(partial, ignore_errors=True)
