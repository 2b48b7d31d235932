"""A tiny problem on which each design reaches all of its compiled kernels."""

from __future__ import annotations

import pandas as pd

from planner_models.livevideo.problem.problem import LiveVideo

GROUPS = 10  # groups that request the first object: more than any dynamic program over sets of groups takes


def create_sample() -> LiveVideo:
    """Return a problem of two objects, one with many requests, over links that can carry one."""
    groups = [f"group{n}" for n in range(GROUPS)]
    above = [("source", "reflector"), ("reflector", "edge")]
    return LiveVideo(
        clusters=pd.DataFrame(
            [("source", "source"), ("reflector", "reflector"), ("edge", "edge")]
            + [(group, "group") for group in groups],
            columns=["cluster", "tier"],
        ),
        links=pd.DataFrame(above + [("edge", group) for group in groups], columns=["tail", "head"]).assign(
            capacity_mbps=1.0
        ),
        objects=pd.DataFrame({"channel": ["many", "one"], "bitrate_kbps": [1000.0, 500.0]}),
        requests=pd.DataFrame(
            [(group, "many", 1000.0) for group in groups] + [(groups[0], "one", 500.0)],
            columns=["group", "channel", "bitrate_kbps"],
        ),
    )
