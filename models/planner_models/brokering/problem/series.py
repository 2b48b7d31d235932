"""Series of problems: the windows of a day, and windows of measured tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from planner.contract.notes import add_note
from planner.contract.periods import describe_labels, natural_order
from planner.errors import InputError
from planner.io.input_files import input_folders
from planner.io.table_files import find_tables, read_tables
from planner_models.brokering.problem import generators
from planner_models.brokering.problem.problem import Brokering
from planner_models.brokering.problem.schema import OPTIONAL, TABLES

Count = Annotated[int, Field(ge=1, le=1440, description="windows of equal length in the day")]
Swing = Annotated[
    float, Field(ge=0, le=1, description="share of clients that are missing at 8 h local time, against 20 h")
]


@dataclass(frozen=True, kw_only=True, eq=False)
class Day:
    """One problem at several times of a day, with fewer clients at night.

    The number of clients follows a cosine of local solar time: 1 at 20 h, 1 - swing at 8 h, rounded to
    whole clients. Labels are the hour and minute (UTC) at which a window begins.
    """

    problem: Brokering
    windows: int = 24
    swing: float = 0.5

    def __len__(self) -> int:
        return self.windows

    def __iter__(self) -> Iterator[tuple[str, Brokering]]:
        longitude = self.problem.locations["longitude"].to_numpy(float)[self.problem.location]
        for window in range(self.windows):
            minute = round(1440 * window / self.windows)
            local_h = 24 * window / self.windows + longitude / 15
            active = 1 - self.swing / 2 + self.swing / 2 * np.cos(2 * np.pi * (local_h - 20) / 24)
            label = f"{minute // 60:02d}h{minute % 60:02d}"
            yield label, self.problem.with_client_counts(np.rint(self.problem.count * active))


def day(
    *,
    windows: Count = 24,
    swing: Swing = 0.5,
    clients: generators.Clients = 33_400,
    places: generators.Places = 529,
    contents: generators.Contents = 1,
    seed: generators.Seed = 0,
) -> Day:
    """Return a day of the generated market `world`."""
    problem = generators.world(clients=clients, places=places, contents=contents, seed=seed)
    return Day(problem=problem, windows=windows, swing=swing)


def day_of_tables(
    *,
    path: Annotated[
        Path, Field(description="folder of the problem's tables; their clients are those of 20 h local time")
    ],
    windows: Count = 24,
    swing: Swing = 0.5,
) -> Day:
    """Return a day of a problem in tables."""
    return Day(problem=_read_problem(path), windows=windows, swing=swing)


@dataclass(frozen=True)
class WindowFolders:
    """Consecutive problems, each with tables in a folder of its own."""

    folders: tuple[Path, ...]

    def __len__(self) -> int:
        return len(self.folders)

    def __iter__(self) -> Iterator[tuple[str, Brokering]]:
        return ((folder.name, _read_problem(folder)) for folder in self.folders)


def windows_of_tables(
    *,
    path: Annotated[
        Path,
        Field(
            description="folder that holds a folder of tables for each window, in order of name, 2 before 10"
        ),
    ],
) -> WindowFolders:
    """Return windows that each have tables of their own; a warning names those missing in between."""
    inputs = input_folders(path) if path.is_dir() else []
    folders = tuple(sorted(inputs, key=lambda folder: natural_order(folder.name)))
    if not folders:
        raise InputError(f"{path}: has no folders with the tables of a window")
    for doubt in describe_labels([folder.name for folder in folders], path.name):
        add_note(doubt)
    return WindowFolders(folders)


def _read_problem(folder: Path) -> Brokering:
    return Brokering.from_tables(read_tables(TABLES, find_tables(TABLES, folder, OPTIONAL)))
