"""Plans of two objects on a small problem with two edges."""

from __future__ import annotations

import pandas as pd

from planner_models.livevideo import LiveVideo, Trees
from tests.models.livevideo.networks import problem

TIERS = {"S": "source", "E": "edge", "A": "group", "B": "group"}


def small() -> LiveVideo:
    links = [
        ("S", "E", 2.0, 10.0),
        ("S", "E2", 2.0, 10.0),
        ("E", "A", 2.0, 1.0),
        ("E2", "A", 2.0, 1.0),
        ("E", "B", 1.0, 0.0),
    ]
    return problem(
        links,
        [("v", 1000.0, 1.0), ("w", 2000.0, 2.0)],
        [("A", "v", 1000.0, 3.0), ("B", "v", 1000.0, 1.0), ("A", "w", 2000.0, 1.0)],
        tiers=TIERS,
        settings=pd.DataFrame({"service_weight": [1.0], "cost_weight": [0.01]}),
    )


def plan(*rows: tuple[str, float, str, str]) -> Trees:
    return Trees(trees=pd.DataFrame(rows, columns=["channel", "bitrate_kbps", "tail", "head"]))


V = [("v", 1000.0, "S", "E"), ("v", 1000.0, "E", "A"), ("v", 1000.0, "E", "B")]


W = [("w", 2000.0, "S", "E2"), ("w", 2000.0, "E2", "A")]
