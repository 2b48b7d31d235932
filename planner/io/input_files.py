"""Files of a folder that are input: all but the ones that planner itself writes into it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

STORE_FILE: Final = "runs.sqlite"
"""File by which a folder is a store of runs; SQLite keeps others beside it, whose names begin so."""
STORED_PLANS: Final = "plans"
"""Subfolder of a store with the tables of its plans."""
SCENARIO_FILE: Final = "scenario.toml"
"""File by which a folder within another is the output of a command, or another scenario."""
WRITTEN_SUFFIXES: Final = (".toml", ".html", ".pdf", ".pptx", ".svg")
"""Endings of files that no source of problems reads: scenarios, reports and pictures."""


def is_output(folder: Path) -> bool:
    """Return whether a folder within a folder of input is output of a command: a store, runs or windows."""
    return (folder / STORE_FILE).is_file() or (folder / SCENARIO_FILE).is_file()


def is_input_name(name: str) -> bool:
    """Return whether a source of problems may read a file of that name."""
    return not name.startswith(STORE_FILE) and not name.lower().endswith(WRITTEN_SUFFIXES)


def input_folders(folder: Path) -> list[Path]:
    """Return the subfolders that are input, in the order of their names."""
    is_store = (folder / STORE_FILE).is_file()
    return sorted(
        path
        for path in folder.iterdir()
        if path.is_dir() and not is_output(path) and not (is_store and path.name == STORED_PLANS)
    )


def input_files(folder: Path) -> Iterator[Path]:
    """Yield the files in a folder and its subfolders that are input, in the order of their paths."""
    yield from sorted(path for path in folder.iterdir() if path.is_file() and is_input_name(path.name))
    for subfolder in input_folders(folder):
        yield from input_files(subfolder)
