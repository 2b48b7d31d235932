"""Trace of viewing sessions, cut into time windows: each window is one problem."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.notes import add_note
from planner.contract.periods import describe_empty
from planner.contract.table import Table, label, number
from planner.contract.tables import file_name
from planner.errors import InputError
from planner.io.table_files import find_tables, read_table, read_tables
from planner_models.livevideo.problem.problem import LiveVideo
from planner_models.livevideo.problem.schema import MOST_S, OPTIONAL_TABLES, TABLES

SESSIONS: Final = Table(
    name="sessions",
    about="a client that watches a channel",
    columns={
        "start_s": number("start, s", at_least=0, at_most=MOST_S),
        "duration_s": number("duration, s", more_than=0, at_most=MOST_S),
        "group": label("its client group"),
        "channel": label("the channel it watches"),
        "bitrate_kbps": number("the bitrate it requests, kbit/s", more_than=0),
    },
)


def count_windows(sessions: pd.DataFrame, window_s: float) -> int:
    """Return the number of windows until the last session ends, at least 1."""
    end = float((sessions["start_s"] + sessions["duration_s"]).max())
    return max(1, int(np.ceil(end / window_s - 1e-9)))


def window_requests(
    sessions: pd.DataFrame, *, index: int, window_s: float, only_new: bool = False
) -> pd.DataFrame:
    """Return the requests of window `index`, counted from 0: sessions in it, or only those that start in it.

    arrival_s counts from the start of the window and is 0 for sessions that started before.
    """
    start, end = index * window_s, (index + 1) * window_s
    first, last = sessions["start_s"], sessions["start_s"] + sessions["duration_s"]
    is_inside = (first < end) & (last > start)
    if only_new:
        is_inside &= first >= start
    inside = sessions[is_inside].assign(arrival_s=(first[is_inside] - start).clip(lower=0.0))
    merged: pd.DataFrame = (
        inside.groupby(["group", "channel", "bitrate_kbps"], sort=False)
        .agg(clients=("arrival_s", "size"), arrival_s=("arrival_s", "min"))
        .reset_index()
    )
    return merged.astype({"clients": float})


Folder = Annotated[Path, Field(description="folder with clusters, links, objects and sessions")]
SessionsFile = Annotated[Path | None, Field(description="file of the sessions, if not in the folder")]
Length = Annotated[float, Field(ge=1e-3, le=MOST_S, description="length of a window, s")]
OnlyNew = Annotated[
    bool, Field(description="only sessions that start in the window, without those that started before")
]


@dataclass(frozen=True, kw_only=True, eq=False)
class SessionWindows:
    """Trace of sessions as consecutive problems, each labelled by the second at which it starts."""

    network: Mapping[str, pd.DataFrame]
    sessions: pd.DataFrame
    window_s: float
    only_new: bool

    def __len__(self) -> int:
        return count_windows(self.sessions, self.window_s)

    def __iter__(self) -> Iterator[tuple[str, LiveVideo]]:
        digits = len(f"{(len(self) - 1) * self.window_s:.0f}")
        for index in range(len(self)):
            start = index * self.window_s
            seconds = f"{int(start):0{digits}d}"
            decimals = f"{start % 1:.6g}"[1:] if start % 1 else ""
            yield f"{seconds}{decimals}s", self.problem(index)

    def problem(self, index: int) -> LiveVideo:
        """Return the problem of window `index`, counted from 0."""
        requests = window_requests(self.sessions, index=index, window_s=self.window_s, only_new=self.only_new)
        return LiveVideo.from_tables({**self.network, "requests": requests})


def read_windows(
    *,
    path: Folder,
    sessions: SessionsFile = None,
    window_s: Length = 60.0,
    only_new: OnlyNew = False,
) -> SessionWindows:
    """Read all windows of a trace of sessions; a warning names those that nobody watches in.

    raises  InputError for faulty tables
    """
    network, table = read_trace(path, sessions)
    if doubt := _find_empty(table, window_s, only_new):
        add_note(doubt)
    return SessionWindows(network=network, sessions=table, window_s=window_s, only_new=only_new)


def _find_empty(sessions: pd.DataFrame, window_s: float, only_new: bool) -> str | None:
    """Return the warning on windows without a session; None where there are none."""
    start = sessions["start_s"].to_numpy(float)
    count = count_windows(sessions, window_s)
    first = np.floor(start / window_s)
    end = start + sessions["duration_s"].to_numpy(float)
    last = first if only_new else np.clip(np.ceil(end / window_s - 1e-9) - 1, first, count - 1)
    noun = "session that starts in it" if only_new else "session"
    where = file_name(sessions, "sessions")
    return describe_empty(first, last, count, where=where, start=0.0, length=window_s, unit="s", noun=noun)


def read_window(
    *,
    path: Folder,
    sessions: SessionsFile = None,
    index: Annotated[int, Field(ge=0, le=10**9, description="window, counted from 0")] = 0,
    window_s: Length = 60.0,
    only_new: OnlyNew = False,
) -> LiveVideo:
    """Read one window of a trace of sessions.

    raises  InputError for faulty tables, or for a window after the last session
    """
    network, table = read_trace(path, sessions)
    windows = SessionWindows(network=network, sessions=table, window_s=window_s, only_new=only_new)
    if index >= len(windows):
        raise InputError(f"index is {index}, the sessions last for {len(windows)} windows of {window_s:g} s")
    return windows.problem(index)


def read_trace(path: Path, sessions: Path | None = None) -> tuple[dict[str, Any], pd.DataFrame]:
    """Read the network's tables in a folder, and the sessions there or in a separate file."""
    tables = [table for table in TABLES if table.name != "requests"]
    tables_read = read_tables(tables, find_tables(tables, path, OPTIONAL_TABLES))
    file = find_tables([SESSIONS], path)["sessions"] if sessions is None else sessions
    return tables_read, read_table(SESSIONS, file)
