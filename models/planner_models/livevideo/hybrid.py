"""Hybrid control: a controller decides on what it is told, clusters on what it knows not or got wrong."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.options import Options
from planner.system import Decision
from planner_models.livevideo import admission, columns, local, sees
from planner_models.livevideo.check import delivered
from planner_models.livevideo.outcome import BLIND, KEPT, decided
from planner_models.livevideo.problem import LiveVideo
from planner_models.livevideo.streams import Streams, in_order
from planner_models.livevideo.trees import Trees, waits_of


def distribute(
    problem: LiveVideo,
    *,
    period_s: local.Period = 0.0,
    seed: local.Seed = 0,
    options: Options = Options(),
    previous: Decision[Trees] | None = None,
) -> Decision[Trees]:
    """The controller's trees on what it is told, Algorithm 1 for those that came since or were refused.

    Clusters only use room that the controller's trees leave, so no stream of these is degraded. They
    take what they are told to do for stale where links have no room for it (4.4.2), and look for a way
    themselves. What the controller left out, knowing of it, is left out. On a problem that is no
    `sees.Reporting` the controller knows all.

    source  Mukerjee 2018, section 4.4
    """
    reports = problem if isinstance(problem, sees.Reporting) else None
    believed = problem if reports is None else reports.told
    central = columns.distribute(believed, options=options, previous=previous)
    if central.plan is None:
        return central
    if admission.exact(problem, believed):
        streams, refused = Streams(problem), np.zeros(0, dtype=np.int64)
        streams.add_plan(central.plan)
    else:
        streams, refused = admission.set_up(problem, believed, central.plan)
    age_s = 0.0 if reports is None else reports.age_s
    since = sees.late(problem, age_s)
    random = np.random.default_rng(seed)
    steered = streams.copy()
    own = np.union1d(np.flatnonzero(since), refused)
    local.serve(streams, in_order(problem, own), period_s=period_s, random=random)
    made = decided(streams, keeps=KEPT if period_s == 0 or reports is not None else BLIND)
    if made.plan is None or age_s == 0:
        return made
    at_once = since | _served_at_once(problem, steered, age_s, period_s, random)
    waited = np.flatnonzero(delivered(problem, made.plan).served & ~at_once)
    plan = Trees(trees=made.plan.trees, waits=waits_of(problem, waited, age_s))
    return Decision(plan=plan, proof=made.proof, keeps=made.keeps)


def _served_at_once(
    problem: LiveVideo, steered: Streams, age_s: float, period_s: float, random: np.random.Generator
) -> NDArray[np.bool_]:
    """(Q,) the requests for which clusters would have found a way when they came.

    The controller decides every `age_s`; its trees of then are taken to be those of now, as far as the
    requests need them that it knew of then.
    """
    served = np.zeros(len(problem.requests), dtype=bool)
    time_s, item, group = problem.arrival_s, problem.object, problem.group
    turn = np.floor((sees.end_s(problem) - time_s) / age_s).astype(np.int64)  # 0 for the last
    grown = Streams(problem)
    for block in np.unique(turn)[::-1].tolist():
        here = np.flatnonzero(turn == block)
        trial = grown.copy()
        local.serve(trial, in_order(problem, here), period_s=period_s, random=random)
        for q in here.tolist():
            asked = (int(item[q]), int(group[q]))
            served[q] = trial.has(*asked)
            if steered.has(*asked):
                grown.add_path(asked[0], steered.path(*asked, up_to=grown))
    return served
