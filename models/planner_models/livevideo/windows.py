"""Sessions over time, cut into windows: who is watching in each, and when they came."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.errors import InputError
from planner.table_files import find_tables, read_table, read_tables
from planner.tables import Table, label, number
from planner_models.livevideo.problem import LiveVideo
from planner_models.livevideo.schema import OPTIONAL_TABLES, TABLES

SESSIONS: Final = Table(
    name="sessions",
    about="a client that watches",
    columns={
        "start_s": number("when it begins, s", at_least=0),
        "duration_s": number("how long it watches, s", more_than=0),
        "group": label("its client group"),
        "channel": label("the channel it watches"),
        "bitrate_kbps": number("the bitrate it asks for, kbit/s", more_than=0),
    },
)


def windows(sessions: pd.DataFrame, window_s: float) -> int:
    """How many windows the sessions last."""
    end = float((sessions["start_s"] + sessions["duration_s"]).max())
    return max(1, int(np.ceil(end / window_s - 1e-9)))


def requests(sessions: pd.DataFrame, *, index: int, window_s: float, only_new: bool = False) -> pd.DataFrame:
    """The requests of window `index`, counted from 0: who watches in it, or only who begins in it.

    arrival_s counts from the window's start, 0 for those who watched before.
    """
    start, end = index * window_s, (index + 1) * window_s
    begins, ends = sessions["start_s"], sessions["start_s"] + sessions["duration_s"]
    inside = (begins < end) & (ends > start)
    if only_new:
        inside &= begins >= start
    here = sessions[inside].assign(arrival_s=(begins[inside] - start).clip(lower=0.0))
    merged: pd.DataFrame = (
        here.groupby(["group", "channel", "bitrate_kbps"], sort=False)
        .agg(clients=("arrival_s", "size"), arrival_s=("arrival_s", "min"))
        .reset_index()
    )
    return merged.astype({"clients": float})


Folder = Annotated[Path, Field(description="folder with clusters, links, objects and sessions")]
SessionsFile = Annotated[
    Path | None, Field(description="file of the sessions, if they are not in the folder")
]
Length = Annotated[float, Field(gt=0, description="length of a window, s")]
OnlyNew = Annotated[
    bool, Field(description="only sessions that begin in the window, not all that last into it")
]


@dataclass(frozen=True, kw_only=True, eq=False)
class Windows:
    """A trace of sessions as consecutive problems, each labelled by the second at which it starts."""

    network: Mapping[str, pd.DataFrame]
    sessions: pd.DataFrame
    window_s: float
    only_new: bool

    def __len__(self) -> int:
        return windows(self.sessions, self.window_s)

    def __iter__(self) -> Iterator[tuple[str, LiveVideo]]:
        digits = len(f"{(len(self) - 1) * self.window_s:.0f}")
        for index in range(len(self)):
            start = index * self.window_s
            whole = f"{int(start):0{digits}d}"
            part = f"{start % 1:.6g}"[1:] if start % 1 else ""
            yield f"{whole}{part}s", self.problem(index)

    def problem(self, index: int) -> LiveVideo:
        """The window of that number, counted from 0."""
        asked = requests(self.sessions, index=index, window_s=self.window_s, only_new=self.only_new)
        return LiveVideo.from_tables({**self.network, "requests": asked})


def series(
    *,
    path: Folder,
    sessions: SessionsFile = None,
    window_s: Length = 60.0,
    only_new: OnlyNew = False,
) -> Windows:
    """All windows of a trace of sessions, in turn.

    raises  InputError for tables with faults
    """
    network, table = read_trace(path, sessions)
    return Windows(network=network, sessions=table, window_s=window_s, only_new=only_new)


def window(
    *,
    path: Folder,
    sessions: SessionsFile = None,
    index: Annotated[int, Field(ge=0, description="window, counted from 0")] = 0,
    window_s: Length = 60.0,
    only_new: OnlyNew = False,
) -> LiveVideo:
    """One window of a trace of sessions.

    raises  InputError for tables with faults, or a window after the last session
    """
    every = series(path=path, sessions=sessions, window_s=window_s, only_new=only_new)
    if index >= len(every):
        raise InputError(f"index is {index}, the sessions last for {len(every)} windows of {window_s:g} s")
    return every.problem(index)


def read_trace(path: Path, sessions: Path | None = None) -> tuple[dict[str, Any], pd.DataFrame]:
    """The tables of the network in a folder, and the sessions there or in a file of their own."""
    tables = [table for table in TABLES if table.name != "requests"]
    found = read_tables(tables, find_tables(tables, path, OPTIONAL_TABLES))
    if sessions is None:
        sessions = find_tables([SESSIONS], path)["sessions"]
    return found, read_table(SESSIONS, sessions)
