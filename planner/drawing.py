"""What systems and targets want drawn, as data: `planner.charts` makes charts of it, tables show it too.

A drawing names no colours, fonts or library, so that a report, the dashboard and a picture show
the same thing each in its own way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pandas as pd


@dataclass(frozen=True, kw_only=True, eq=False)
class Curve:
    """Lines over the first column of `frame`, one for each other column.

    units         of columns
    bars          the first column names things rather than measuring them
    log_x, log_y  axes that are logarithmic
    """

    title: str
    frame: pd.DataFrame
    units: Mapping[str, str] = field(default_factory=dict)
    bars: bool = False
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Points:
    """Things by two of their figures, such as designs by cost and performance.

    frame  what each is called, then the two figures
    """

    title: str
    frame: pd.DataFrame
    units: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False)
class NetworkMap:
    """Nodes and links, these coloured by a value.

    nodes     node, and where they are known latitude and longitude, or x and y; group? colours it
    links     tail, head, value; both ways between two nodes are drawn side by side
    limit     the value at which a link is full; None: the largest there is
    """

    title: str
    nodes: pd.DataFrame
    links: pd.DataFrame
    value: str
    unit: str = ""
    limit: float | None = None

    @property
    def frame(self) -> pd.DataFrame:
        """The links, the fullest first."""
        return self.links.sort_values("value", ascending=False, kind="stable", ignore_index=True)


@dataclass(frozen=True, kw_only=True, eq=False)
class Timeline:
    """What each lane does when.

    frame  lane, start, end, what
    """

    title: str
    frame: pd.DataFrame
    unit: str
    lanes: str
    what: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Distribution:
    """Values of many things, as the share that is at most so large.

    values  a series each
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
        """Least, quartiles, 90th and 99th percentiles, and most of each series."""
        cuts = [0.0, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0]
        names = ["least", "25%", "median", "75%", "90%", "99%", "most"]
        rows = {name: its.quantile(cuts).to_numpy() for name, its in self.values.items() if len(its)}
        return pd.DataFrame.from_dict(rows, orient="index", columns=names).rename_axis("of").reset_index()


Drawing = Curve | Points | NetworkMap | Timeline | Distribution
