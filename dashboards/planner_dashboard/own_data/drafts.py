"""Tables that a user edits, with undo and redo, and the faults of their rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pandas as pd

from planner_dashboard.fields import column_label

MOST_STEPS: Final = 50
"""Changes that can be undone."""
ROW_FAULT: Final = re.compile(r"(?P<table>\w+) row (?P<row>\d+): (?P<text>.*)", re.DOTALL)

Frames = Mapping[str, pd.DataFrame]


@dataclass(eq=False)
class Draft:
    """Tables in work: frames are replaced by a change, never changed themselves.

    sections  of the scenario that the tables come from
    notes     on what was converted and ignored when they were read, by table
    version   counts undo and redo, after which editors begin anew
    """

    system: str
    frames: Frames
    sections: Mapping[str, Any] = field(default_factory=dict)
    notes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    version: int = 0
    past: list[Frames] = field(default_factory=list)
    future: list[Frames] = field(default_factory=list)

    def change(self, table: str, frame: pd.DataFrame | None) -> None:
        """Replace a table, or remove it where `frame` is None."""
        frames = {name: own_frame for name, own_frame in self.frames.items() if name != table}
        if frame is not None:
            frames[table] = frame
        self._replace(frames)

    def change_all(self, frames: Frames) -> None:
        """Replace all tables as one change; editors of their cells begin anew."""
        self._replace(frames)
        self.version += 1

    def _replace(self, frames: Frames) -> None:
        self.past = [*self.past[1 - MOST_STEPS :], self.frames]
        self.future = []
        self.frames = frames

    def undo(self) -> None:
        """Return to the tables before the last change."""
        if self.past:
            self.future.append(self.frames)
            self.frames = self.past.pop()
            self.version += 1

    def redo(self) -> None:
        """Make the change again that was undone last."""
        if self.future:
            self.past.append(self.frames)
            self.frames = self.future.pop()
            self.version += 1


def split_faults(faults: Sequence[str], tables: Sequence[str]) -> tuple[dict[str, dict[int, str]], list[str]]:
    """Return the faults of rows by table and place (from 0), and those that name no row."""
    at_rows: dict[str, dict[int, str]] = {}
    others = []
    for fault in faults:
        match = ROW_FAULT.fullmatch(fault)
        if match is None or match["table"] not in tables:
            others.append(fault)
            continue
        row_faults = at_rows.setdefault(match["table"], {})
        index = int(match["row"]) - 1
        row_faults[index] = f"{row_faults[index]}; {match['text']}" if index in row_faults else match["text"]
    return at_rows, others


def replace_rows(frame_: pd.DataFrame, rows: Sequence[int], edited: pd.DataFrame) -> pd.DataFrame:
    """Return a table with edited rows in place of those at `rows`, in order; rows may be more or fewer.

    rows  ascending; rows that were added or removed go where the first of them was
    """
    selected = set(rows)
    first = rows[0] if len(rows) else len(frame_)
    if len(edited) == len(rows):
        frame = frame_.copy()
        for name in edited.columns:
            values = frame[name].astype(object)
            values.iloc[list(rows)] = edited[name].astype(object).to_numpy()
            frame[name] = values
        return frame.reset_index(drop=True)
    before = [index for index in range(first) if index not in selected]
    after = [index for index in range(first, len(frame_)) if index not in selected]
    return pd.concat([frame_.iloc[before], edited, frame_.iloc[after]], ignore_index=True)


def in_words(text: str, columns: Iterable[str]) -> str:
    """Return a line with the names of columns in words: `Capacity [Mbit/s] is -3.0, must be ...`."""
    for name in sorted(columns, key=len, reverse=True):
        text = re.sub(rf"(?<![\w']){re.escape(name)}(?![\w'])", column_label(name), text)
    return text
