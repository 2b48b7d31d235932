"""Hybrid control: a controller decides on its observation, clusters on new and refused requests."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.arrays import Bools
from planner.contract.design import Decision
from planner.options import Options
from planner_models.livevideo import information
from planner_models.livevideo.designs import distributed, ladders
from planner_models.livevideo.designs.admission import ALL_GUARANTEES, STALE_GUARANTEES, conclude
from planner_models.livevideo.plan.check import compute_delivery
from planner_models.livevideo.plan.plan import Streams, Trees, build_waits, requests_by_arrival
from planner_models.livevideo.problem.problem import LiveVideo


def distribute(
    problem: LiveVideo,
    *,
    period_s: distributed.Period = 0.0,
    seed: distributed.Seed = 0,
    options: Options = Options(),
    previous: Decision[Trees] | None = None,
) -> Decision[Trees]:
    """Serve observed requests by the controller's trees, new and refused ones by Algorithm 1.

    Clusters only use residual capacity, so that no stream of the controller is degraded. They take a
    decision of the controller for stale where links have no residual capacity for it (4.4.2), and look
    for another path. Requests that the controller knew and left out stay unserved. On a problem that is
    no `observe.ClusterView` the controller knows all.

    source  Mukerjee 2018, section 4.4
    """
    view = problem if isinstance(problem, information.ClusterView) else None
    observed = problem if view is None else view.controller_view
    central = ladders.distribute(observed, options=options, previous=previous)
    if central.plan is None:
        return central
    if information.is_exact(problem, observed):
        streams, refused = Streams(problem), np.zeros(0, dtype=np.int64)
        streams.add_plan(central.plan)
    else:
        streams, refused = information.admit_plan(problem, observed, central.plan)
    age_s = 0.0 if view is None else view.age_s
    is_new = information.is_unreported(problem, age_s)
    random = np.random.default_rng(seed)
    controlled = streams.copy()
    local = requests_by_arrival(problem, np.union1d(np.flatnonzero(is_new), refused))
    distributed.serve_requests(streams, local, period_s=period_s, random=random)
    is_current = period_s == 0 or view is not None
    decision = conclude(streams, guarantees=ALL_GUARANTEES if is_current else STALE_GUARANTEES)
    if decision.plan is None or age_s == 0:
        return decision
    at_once = is_new | _is_served_at_once(problem, controlled, age_s, period_s, random)
    waited = np.flatnonzero(compute_delivery(problem, decision.plan).served & ~at_once)
    plan = replace(decision.plan, waits=build_waits(problem, waited, age_s))
    return Decision(plan=plan, proof=decision.proof, guarantees=decision.guarantees)


def _is_served_at_once(
    problem: LiveVideo, controlled: Streams, age_s: float, period_s: float, random: np.random.Generator
) -> Bools:
    """Return whether clusters find a path for each request at its arrival, (Q,).

    The controller decides every `age_s`. Its earlier trees are approximated by those of the last decision,
    restricted to the requests that it knew then.
    """
    served = np.zeros(len(problem.requests), dtype=bool)
    time_s, item, group = problem.arrival_s, problem.object, problem.group
    period = np.floor((information.window_end_s(problem) - time_s) / age_s).astype(np.int64)  # 0 for the last
    earlier = Streams(problem)
    for number in np.unique(period)[::-1].tolist():
        requests = np.flatnonzero(period == number)
        trial = earlier.copy()
        arrivals = requests_by_arrival(problem, requests)
        distributed.serve_requests(trial, arrivals, period_s=period_s, random=random)
        for q in requests.tolist():
            request = (int(item[q]), int(group[q]))
            served[q] = trial.has(*request)
            if controlled.links_into(*request):
                earlier.add_path(request[0], controlled.path(*request, up_to=earlier))
    return served
