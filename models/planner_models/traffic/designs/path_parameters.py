"""Parameters of designs that say which paths traffic may take."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from planner_models.graphs.path_search import PathChoice

PathCount = Annotated[
    Annotated[int, Field(gt=0)] | Literal["any", "tunnels"],
    Field(
        description="routes that traffic may take: any, that many paths for each demand, or the tunnels of "
        "the problem; in each case those that keep latency limits and rules"
    ),
]
Choice = Annotated[
    PathChoice,
    Field(
        description="with a number of paths: the shortest; link-disjoint ones, each the shortest without the "
        "links of those before (disjoint), or as many as there are (most_disjoint)"
    ),
]
HopLimit = Annotated[
    Annotated[int, Field(gt=0)] | None, Field(description="with a number of paths: the most links of one")
]
