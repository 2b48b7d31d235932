"""Drawings as data, declared by systems and targets; `planner.reports.charts` makes charts of them.

A drawing names no colours, fonts or library: a report, the dashboard and a picture each choose theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.formatting import few, is_convertible, smaller_unit

SAME_PLACE: Final = 0.02  # of the range of the points: so near, one point covers the other
MOST_NAMES: Final = 4  # at one place
SAME_TIME: Final = 1e-6  # of all the time: activities that overlap by less follow each other


@dataclass(frozen=True, kw_only=True, eq=False)
class Curve:
    """Lines over the first column of `frame`, one for each other column.

    units         of columns
    bars          draw bars: the first column has names, not numbers
    log_x, log_y  whether the axis is logarithmic
    """

    title: str
    frame: pd.DataFrame
    units: Mapping[str, str] = field(default_factory=dict)
    bars: bool = False
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Points:
    """Scatter plot of two figures, such as cost and performance of designs.

    frame  a column of names, then the two figures
    """

    title: str
    frame: pd.DataFrame
    units: Mapping[str, str] = field(default_factory=dict)

    def labels(self) -> list[str]:
        """Return the text at each point: its name and those of later points in its place, which have none."""
        positions = self.frame.iloc[:, 1:3].to_numpy(float)
        span = np.ptp(positions, axis=0) if len(positions) else np.ones(2)
        positions = positions / np.where(span > 0, span, 1.0)
        groups: dict[int, list[int]] = {}
        for row, position in enumerate(positions):
            near = (first for first in groups if np.abs(positions[first] - position).max() <= SAME_PLACE)
            groups.setdefault(next(near, row), []).append(row)
        texts = [""] * len(positions)
        for first, rows in groups.items():
            texts[first] = few([str(self.frame.iloc[row, 0]) for row in rows], MOST_NAMES)
        return texts


@dataclass(frozen=True, kw_only=True, eq=False)
class NetworkMap:
    """Network of nodes and links; a value colours the links.

    nodes         node, optionally latitude and longitude, or x and y (y upwards); optionally
                  label  the name that is shown; default: the node
                  group  colours nodes, and names the box that a fabric draws around them, such as a pod
                  value  colours a node as its load, in percent of what it can carry; with `one_scale` in the
                         quantity and unit of the links' values
                  size   relative area
                  lost   what users lose at this node, in `lost_unit`
                  lost_as  why, such as "not served (capacity)"; "" or without the column: "lost"
                  note   further words for a pointer over it, such as "14 of 20 Gbit/s"
                  element  name of the element that a click selects, "" for none; default: the node
    links         tail, head, value; the two directions between two nodes are drawn side by side; optionally
                  element  name of the element that a click selects; default: none
                  width    such as the capacity, in `width_unit`; default: all alike; 0: not built
                  added    the part of the width that the plan buys
                  lost     what the link drops, in `lost_unit`
                  note     further words for a pointer over it
    value         what colours the links, in words, and its unit
    limit         the value at which a link is full; None: the largest value
    link_kind     kind of the elements that links are (`ElementKind.name`); "" for none, such as flows: one
                  that only the plan before has is left out then, not shown as failed
    node_kind     kind of the elements that nodes are, see `nodes`; "" for none
    directed      whether a link is from its tail to its head; else it is for both directions
    lost_twice    whether nodes lose what their links lose: labels give it once, at the nodes
    widest        width that is drawn widest; None: the largest
    one_scale     whether the values of nodes are of the same quantity as those of links
    whole         the same network without its failures: links and nodes that only it has are drawn as failed
    """

    title: str
    nodes: pd.DataFrame
    links: pd.DataFrame
    value: str
    unit: str = ""
    limit: float | None = None
    width_unit: str = ""
    lost_unit: str = ""
    lost_twice: bool = False
    link_kind: str = ""
    node_kind: str = ""
    directed: bool = True
    widest: float | None = None
    one_scale: bool = False
    whole: NetworkMap | None = None

    @staticmethod
    def losses_of(nodes: pd.DataFrame) -> list[str]:
        """Return the verb for losses at each node: "lost", or as the column `lost_as` says."""
        if "lost_as" not in nodes:
            return ["lost"] * len(nodes)
        return [text if isinstance(text, str) and text else "lost" for text in nodes["lost_as"]]

    def amounts_lost(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the amounts that labels give at nodes, shape (N,), and at links, (L,), in `lost_unit`."""
        nodes, links = (
            frame["lost"].fillna(0.0).clip(lower=0.0).to_numpy(float)
            if "lost" in frame
            else np.zeros(len(frame))
            for frame in (self.nodes, self.links)
        )
        return nodes, np.zeros(len(links)) if self.lost_twice else links

    @property
    def lost_noun(self) -> str:
        """The noun for what is lost: "traffic", "data", or the countable unit, such as "clients"."""
        if not is_convertible(self.lost_unit):
            return self.lost_unit or "demand"
        return "traffic" if self.lost_unit.endswith("/s") else "data"

    @property
    def frame(self) -> pd.DataFrame:
        """The links, the largest value first."""
        return self.links.sort_values("value", ascending=False, kind="stable", ignore_index=True)


@dataclass(frozen=True, kw_only=True, eq=False)
class Timeline:
    """Gantt chart: the activities of each lane over time.

    frame  lane, start, end, what; optionally
           element  name of the element that a click selects
           note     further words for a pointer over it
    kind   kind of the elements that activities are (`ElementKind.name`); "" for none
    """

    title: str
    frame: pd.DataFrame
    unit: str
    lanes: str
    what: str
    kind: str = ""

    def readable(self, beside: Timeline | None = None) -> Timeline:
        """Return the timeline in a smaller unit where all of it takes less than one of its own.

        beside  another timeline that is shown in the same unit
        """
        frames = [self.frame] if beside is None else [self.frame, beside.frame]
        last = max((float(frame["end"].max()) for frame in frames if len(frame)), default=0.0)
        unit, factor = smaller_unit(last, self.unit)
        times = {name: self.frame[name] * factor for name in ("start", "end")}
        return self if factor == 1.0 else replace(self, frame=self.frame.assign(**times), unit=unit)

    def tracks(self) -> NDArray[np.int64]:
        """Return the row of each activity within its lane, from 0: activities at the same time lie apart."""
        start, end = (self.frame[name].to_numpy(float) for name in ("start", "end"))
        lane, lanes = pd.factorize(self.frame["lane"].astype(str))
        nearly = SAME_TIME * float(np.ptp([*start, *end])) if len(start) else 0.0
        track = np.zeros(len(start), dtype=np.int64)
        ends: list[list[float]] = [[] for _ in lanes]
        for row in np.lexsort((end, start)).tolist():
            taken = ends[lane[row]]
            free = next(
                (index for index, last in enumerate(taken) if last <= start[row] + nearly), len(taken)
            )
            taken[free:] = [end[row], *taken[free + 1 :]]
            track[row] = free
        return track


@dataclass(frozen=True, kw_only=True, eq=False)
class Distribution:
    """Cumulative distribution functions.

    values  a series of values for each curve, by name
    limit   a value to compare to, drawn as a line
    """

    title: str
    values: Mapping[str, pd.Series]
    what: str
    unit: str = ""
    limit: float | None = None
    log_x: bool = False

    @property
    def frame(self) -> pd.DataFrame:
        """Minimum, quartiles, 90th and 99th percentiles, and maximum of each series."""
        levels = [0.0, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0]
        names = ["least", "25%", "median", "75%", "90%", "99%", "most"]
        rows = {
            name: values.quantile(levels).to_numpy() for name, values in self.values.items() if len(values)
        }
        return pd.DataFrame.from_dict(rows, orient="index", columns=names).rename_axis("of").reset_index()


Drawing = Curve | Points | NetworkMap | Timeline | Distribution
