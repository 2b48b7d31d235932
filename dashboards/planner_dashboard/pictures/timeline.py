"""The picture of activities over time, in which they can be selected."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.contract.drawing import Timeline
from planner_dashboard.pictures.component import show_component
from planner_dashboard.pictures.payload import Data
from planner_dashboard.pictures.selection import Selected

HEIGHT: Final = 760
"""Pixels at most, as long as each lane can be seen."""


def show_timeline(
    drawing: Timeline,
    *,
    key: str,
    before: Timeline | None = None,
    selected: str = "",
    height: int = HEIGHT,
) -> Selected | None:
    """Show activities over time; return the user's selection since the page's last run.

    before    activities of another plan, drawn faint below those in each lane
    selected  name of the element that is shown as selected
    height    at most, pixels, as long as each lane can be seen
    """
    data = timeline_data(drawing, before, selected=selected, height=height)
    return show_component(key, "timeline", "", data)


def timeline_data(drawing: Timeline, before: Timeline | None, *, selected: str, height: int) -> Data:
    """Return the content of the picture of a timeline."""
    drawing, before = drawing.readable(before), None if before is None else before.readable(drawing)
    frames = [drawing.frame.assign(track=drawing.tracks())]
    if before is not None:
        others = before.frame.assign(track=before.tracks())
        frames.append(others[others["lane"].isin(drawing.frame["lane"])])
    both = pd.concat(frames, ignore_index=True)
    lane, lanes = pd.factorize(both["lane"].astype(str))
    what, whats = pd.factorize(both["what"].astype(str))
    element, elements = pd.factorize(_texts(drawing.frame, "element"))
    note, notes = pd.factorize(_texts(drawing.frame, "note"))
    count = len(drawing.frame)
    bars = _bars(both, lane, what)
    data: Data = {
        "title": drawing.title,
        "unit": drawing.unit,
        "laneWord": drawing.lanes,
        "whatWord": drawing.what,
        "kind": drawing.kind,
        "lanes": list(lanes),
        "whats": list(whats),
        "elements": list(elements),
        "notes": list(notes),
        "bars": {name: values[:count] for name, values in bars.items()}
        | {"element": element.tolist(), "note": note.tolist()},
        "selected": selected,
        "height": height,
        "tracks": int(both["track"].max()) + 1 if len(both) else 1,
    }
    if before is not None:
        data["before"] = {name: values[count:] for name, values in bars.items()}
    return data


def _texts(frame: pd.DataFrame, name: str) -> pd.Series:
    if name not in frame:
        return pd.Series("", index=frame.index)
    return frame[name].fillna("").astype(str)


def _bars(frame: pd.DataFrame, lane: NDArray[np.int64], what: NDArray[np.int64]) -> dict[str, list[float]]:
    span = float(frame["end"].max() - frame["start"].min()) if len(frame) else 1.0
    digits = int(np.clip(6 - np.floor(np.log10(span or 1.0)), 0, 12))
    times = {name: frame[name].to_numpy(float).round(digits).tolist() for name in ("start", "end")}
    return {"lane": lane.tolist(), "what": what.tolist(), "track": frame["track"].tolist(), **times}
