"""Everything Everywhere: every object to every edge, so that clients can take the nearest."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from planner.options import Options
from planner.proof import Proof, Status
from planner.system import Decision
from planner_models.livevideo.measure import OBJECTIVE, measure
from planner_models.livevideo.problem import LiveVideo
from planner_models.livevideo.streams import Streams
from planner_models.livevideo.trees import Trees

KEPT = frozenset({"capacity", "forbidden"})


def distribute(
    problem: LiveVideo,
    *,
    seed: Annotated[int, Field(ge=0, description="order in which objects are sent out")] = 0,
    options: Options = Options(),  # noqa: ARG001
    previous: Decision[Trees] | None = None,  # noqa: ARG001
) -> Decision[Trees]:
    """Every object to every edge while there is room; groups ask their nearest edge only.

    Objects come in random order, each to every cluster of each tier over the cheapest link with
    room from one that has it.

    source  Mukerjee 2018, section 4.7.1
    """
    streams = Streams(problem)
    by_level = [np.flatnonzero(problem.level == step).tolist() for step in range(len(problem.tiers))]
    cost, latency = problem.cost.tolist(), problem.latency_ms.tolist()
    for item in np.random.default_rng(seed).permutation(len(problem.objects)).tolist():
        for clusters in by_level[1:-1]:
            for cluster in clusters:
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
        if not streams.into[group]:
            continue
        nearest = min(streams.into[group], key=lambda link: (latency[link], link))
        if (
            streams.has(item, streams.tail[nearest])
            and streams.fits(item, nearest)
            and streams.allowed(item, nearest)
        ):
            streams.add(item, nearest)
    return decided(problem, streams.plan(), keeps=KEPT)


def decided(problem: LiveVideo, plan: Trees, *, keeps: frozenset[str]) -> Decision[Trees]:
    """The decision for a plan that nothing is proven of but what it is worth."""
    proof = Proof(status=Status.FEASIBLE, objective=measure(problem, plan, None)[OBJECTIVE], metric=OBJECTIVE)
    return Decision(plan=plan, proof=proof, keeps=keeps)
