"""Everything Everywhere: every object to every edge, so that clients can take the nearest."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from planner.options import Options
from planner.system import Decision
from planner_models.livevideo import pins
from planner_models.livevideo.outcome import decided
from planner_models.livevideo.problem import LiveVideo
from planner_models.livevideo.trees import Trees


def distribute(
    problem: LiveVideo,
    *,
    order: Annotated[
        Literal["random", "table"],
        Field(description="which objects are sent out first: by chance, or as the table lists them"),
    ] = "random",
    seed: Annotated[int, Field(ge=0, description="what chance")] = 0,
    options: Options = Options(),
    previous: Decision[Trees] | None = None,  # noqa: ARG001
) -> Decision[Trees]:
    """Every object to every edge while there is room; groups ask their nearest edge only.

    Objects come one after the other, each to every cluster of each tier over the cheapest link with
    room from one that has it.

    source  Mukerjee 2018, section 4.7.1
    """
    streams = pins.laid(problem, options)
    if isinstance(streams, Decision):
        return streams
    by_level = [np.flatnonzero(problem.level == step).tolist() for step in range(len(problem.tiers))]
    cost, latency = problem.cost.tolist(), problem.latency_ms.tolist()
    count = len(problem.objects)
    turns = np.arange(count) if order == "table" else np.random.default_rng(seed).permutation(count)
    for item in turns.tolist():
        for clusters in by_level[1:-1]:
            for cluster in clusters:
                if streams.has(item, cluster):
                    continue
                usable = [
                    link
                    for link in streams.into[cluster]
                    if streams.has(item, streams.tail[link])
                    and streams.fits(item, link)
                    and streams.allowed(item, link)
                ]
                if usable:
                    streams.add(item, min(usable, key=lambda link: (cost[link], link)))
    for item, group in zip(problem.object.tolist(), problem.group.tolist(), strict=True):
        if not streams.into[group] or streams.has(item, group):
            continue
        nearest = min(streams.into[group], key=lambda link: (latency[link], link))
        if (
            streams.has(item, streams.tail[nearest])
            and streams.fits(item, nearest)
            and streams.allowed(item, nearest)
        ):
            streams.add(item, nearest)
    return decided(streams)
