"""Content of an SNDlib network file, the same for both of its syntaxes; numbers as they are written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pandas as pd

from planner_models.traffic.problem.readers.file_errors import FileErrors
from planner_models.traffic.problem.readers.file_writing import format_decimal, optional_column


@dataclass
class Link:
    """A link of the file: its ends, its modules as (capacity, cost), and its routing and setup cost."""

    place: str
    source: str
    target: str
    preinstalled: tuple[str | None, str | None]  # capacity and cost, as written
    modules: list[tuple[str | None, str | None]]
    routing_cost: str | None = None
    setup_cost: str | None = None


@dataclass
class Demand:
    """A demand of the file: its ends, and its value in routing units."""

    place: str
    source: str
    target: str
    routing_unit: str | None
    value: str | None


@dataclass
class Network:
    """All elements of the file, each with its place in the file, and the faults of their syntax."""

    faults: FileErrors
    geographical: bool | None = None
    unit: str | None = None
    nodes: list[tuple[str, str, str | None, str | None]] = field(default_factory=list)  # place, id, x, y
    links: list[Link] = field(default_factory=list)
    demands: list[Demand] = field(default_factory=list)


@dataclass
class NetworkRows:
    """Rows of a file to write: links with capacity and routing cost, demands with their value."""

    nodes: pd.DataFrame
    links: list[tuple[str, str, str, str]]
    demands: list[tuple[str, str, str]]

    def positions(self) -> Iterator[tuple[str, str, str]]:
        """Yield each node with longitude and latitude, 0 where they are unknown."""
        longitude, latitude = (
            optional_column(self.nodes, column, 0.0) for column in ("longitude", "latitude")
        )
        for node, x, y in zip(self.nodes["node"], longitude, latitude, strict=True):
            yield node, format_decimal(x), format_decimal(y)
