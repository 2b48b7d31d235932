"""Central and hybrid control: a controller knows of old; clusters may serve what has come since."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from planner.options import Options
from planner.system import Decision
from planner_models.livevideo import columns, local
from planner_models.livevideo.outcome import BLIND, KEPT, decided
from planner_models.livevideo.problem import LiveVideo
from planner_models.livevideo.streams import Streams, in_order
from planner_models.livevideo.trees import Trees

Age = Annotated[
    float, Field(ge=0, description="seconds by which the controller's knowledge of requests is old")
]
WINDOW_S = 60.0


def arrived(problem: LiveVideo, *, age_s: Age = 10.0) -> LiveVideo:
    """The problem without the requests of the window's last `age_s` seconds, of which nobody has told yet."""
    late = problem.arrival_s > _end(problem) - age_s
    return problem.with_requests(problem.requests[~late]) if late.any() else problem


def distribute(
    problem: LiveVideo,
    *,
    age_s: Age = 10.0,
    period_s: local.Period = 0.0,
    seed: local.Seed = 0,
    options: Options = Options(),
    previous: Decision[Trees] | None = None,
) -> Decision[Trees]:
    """The controller's trees for the requests it knows of, Algorithm 1 for those that came since.

    Clusters only use room that the controller's trees leave, so no stream of these is degraded.

    source  Mukerjee 2018, section 4.4
    """
    known = arrived(problem, age_s=age_s)
    central = columns.distribute(known, options=options, previous=previous)
    streams = Streams(problem)
    if central.plan is None:
        return central
    streams.add_plan(central.plan)
    since = [request for request in in_order(problem) if request[2] > _end(problem) - age_s]
    local.serve(streams, since, period_s=period_s, random=np.random.default_rng(seed))
    return decided(streams, keeps=KEPT if period_s == 0 else BLIND)


def _end(problem: LiveVideo) -> float:
    """The end of the window: a minute, or more where requests come later."""
    return max(WINDOW_S, float(problem.arrival_s.max(initial=0.0)))
