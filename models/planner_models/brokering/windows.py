"""A market over a day: the same clients, fewer at night, window by window."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from planner.errors import InputError
from planner.table_files import find_tables, read_tables
from planner_models.brokering import generate
from planner_models.brokering.problem import Brokering
from planner_models.brokering.tables import OPTIONAL, TABLES

Count = Annotated[int, Field(ge=1, le=1440, description="windows of equal length in the day")]
Swing = Annotated[
    float, Field(ge=0, le=1, description="by what share clients are fewer at 8 h than at 20 h local time")
]


@dataclass(frozen=True, kw_only=True, eq=False)
class Day:
    """A problem at several times of a day, with the clients that are awake where they live.

    Clients follow a cosine of local solar time that is largest at 20 h: 1 then, 1 - swing at 8 h.
    Numbers are rounded to whole clients. Labels are the hour and minute (UTC) at which a window begins.
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
            awake = 1 - self.swing / 2 + self.swing / 2 * np.cos(2 * np.pi * (local_h - 20) / 24)
            label = f"{minute // 60:02d}h{minute % 60:02d}"
            yield label, self.problem.serving(np.rint(self.problem.count * awake))


def day(
    *,
    windows: Count = 24,
    swing: Swing = 0.5,
    clients: generate.Clients = 33_400,
    places: generate.Places = 529,
    contents: generate.Contents = 1,
    seed: generate.Seed = 0,
) -> Day:
    """A day of the generated world."""
    problem = generate.world(clients=clients, places=places, contents=contents, seed=seed)
    return Day(problem=problem, windows=windows, swing=swing)


def day_of_tables(
    *,
    path: Annotated[Path, Field(description="folder of the problem's tables; clients are those of 20 h")],
    windows: Count = 24,
    swing: Swing = 0.5,
) -> Day:
    """A day of a problem of your own."""
    problem = Brokering.from_tables(read_tables(TABLES, find_tables(TABLES, path, OPTIONAL)))
    return Day(problem=problem, windows=windows, swing=swing)


def of_tables(
    *,
    path: Annotated[
        Path,
        Field(description="folder with a folder of the problem's tables for each window, in order of name"),
    ],
) -> Folders:
    """Windows that were measured: every one with tables of its own."""
    return Folders(path=path)


@dataclass(frozen=True, kw_only=True)
class Folders:
    """Consecutive problems, each in a folder of its own."""

    path: Path

    def __post_init__(self) -> None:
        if not self._folders():
            raise InputError(f"{self.path}: has no folders with the tables of a window")

    def _folders(self) -> list[Path]:
        return sorted(folder for folder in self.path.glob("*") if folder.is_dir())

    def __len__(self) -> int:
        return len(self._folders())

    def __iter__(self) -> Iterator[tuple[str, Brokering]]:
        for folder in self._folders():
            tables = read_tables(TABLES, find_tables(TABLES, folder, OPTIONAL))
            yield folder.name, Brokering.from_tables(tables)
