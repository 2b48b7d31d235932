"""What an SNDlib network holds, whatever its syntax; numbers as they are written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pandas as pd

from planner_models.traffic.readers.faults import Faults
from planner_models.traffic.readers.writing import decimal, optional


@dataclass
class Link:
    place: str
    source: str
    target: str
    preinstalled: tuple[str | None, str | None]  # capacity and cost, as written
    modules: list[tuple[str | None, str | None]]


@dataclass
class Demand:
    place: str
    source: str
    target: str
    routing_unit: str | None
    value: str | None


@dataclass
class Network:
    faults: Faults
    geographical: bool | None = None
    unit: str | None = None
    nodes: list[tuple[str, str, str | None, str | None]] = field(default_factory=list)  # place, id, x, y
    links: list[Link] = field(default_factory=list)
    demands: list[Demand] = field(default_factory=list)


@dataclass
class Written:
    """The rows of a file to write: its links with capacity and cost, its demands with their value."""

    nodes: pd.DataFrame
    links: list[tuple[str, str, str, str]]
    demands: list[tuple[str, str, str]]

    def positions(self) -> Iterator[tuple[str, str, str]]:
        """Each node with longitude and latitude, 0 where they are unknown."""
        longitude, latitude = (optional(self.nodes, column, 0.0) for column in ("longitude", "latitude"))
        for node, x, y in zip(self.nodes["node"], longitude, latitude, strict=True):
            yield node, decimal(x), decimal(y)
