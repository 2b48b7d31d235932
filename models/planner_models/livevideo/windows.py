"""Sessions over time, cut into windows: who is watching in each, and when they came."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.errors import InputError
from planner.tables import Table, find_tables, label, number, read_table, read_tables
from planner_models.livevideo.problem import OPTIONAL_TABLES, TABLES, LiveVideo

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


def window(
    *,
    path: Annotated[Path, Field(description="folder with clusters, links, objects and sessions")],
    sessions: Annotated[Path | None, Field(description="file of the sessions, if not in the folder")] = None,
    index: Annotated[int, Field(ge=0, description="window, counted from 0")] = 0,
    window_s: Annotated[float, Field(gt=0, description="length of a window, s")] = 60.0,
    only_new: Annotated[
        bool, Field(description="only sessions that begin in the window, not all that last into it")
    ] = False,
) -> LiveVideo:
    """One window of a trace of sessions.

    raises  InputError for tables with faults, or a window after the last session
    """
    network, table = read_trace(path, sessions)
    count = windows(table, window_s)
    if index >= count:
        raise InputError(f"index is {index}, the sessions last for {count} windows of {window_s:g} s")
    return LiveVideo.from_tables(
        {**network, "requests": requests(table, index=index, window_s=window_s, only_new=only_new)}
    )


def read_trace(path: Path, sessions: Path | None = None) -> tuple[dict[str, Any], pd.DataFrame]:
    """The tables of the network in a folder, and the sessions there or in a file of their own."""
    tables = [table for table in TABLES if table.name != "requests"]
    found = read_tables(tables, find_tables(tables, path, OPTIONAL_TABLES))
    if sessions is None:
        sessions = find_tables([SESSIONS], path)["sessions"]
    return found, read_table(SESSIONS, sessions)
