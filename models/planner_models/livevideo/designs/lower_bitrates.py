"""Requests at lower bitrates: denied clients request the next lower bitrate of their channel."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Bools, Floats, Ints
from planner.contract.design import Decision
from planner.contract.proof import Status
from planner.errors import InputError
from planner.options import Options
from planner_models.livevideo.information import WINDOW_S
from planner_models.livevideo.plan.metrics import OBJECTIVE, measure
from planner_models.livevideo.plan.plan import Trees, build_plan, plan_rows
from planner_models.livevideo.problem.problem import LiveVideo

LowerBitrates = Annotated[
    bool,
    Field(
        description="denied clients request the next lower bitrate of their channel a window later, until "
        "one is served"
    ),
]


def with_lower_bitrates(decide: Callable[..., Decision[Trees]]) -> Any:
    """Return a design's function with the parameter `lower_bitrates`.

    With it, the design decides again for the requests that it served and for those of denied clients, which
    are one step down the bitrates of their channel, until no client has a lower bitrate to request. Rounds
    share the time limit. The bound is that of the first round: lower bitrates bring no service in the
    objective of Fig. 4.8, only cost.

    source  Mukerjee 2018, section 4.7.1: "Clients not served will re-request at lower bitrates"
    """

    @functools.wraps(decide)
    def decide_in_rounds(
        problem: LiveVideo,
        *,
        lower_bitrates: bool = False,
        options: Options = Options(),
        **parameters: Any,
    ) -> Decision[Trees]:
        if not lower_bitrates:
            return decide(problem, options=options, **parameters)
        if problem.is_unicast:
            raise InputError(
                "lower_bitrates: with last_hop = unicast clients take the bitrate that they request only; "
                "leave it out, or set problem.last_hop = multicast"
            )
        lower = problem.lower_object
        rounds = _count_rounds(lower)
        if options.time_limit_s is not None:
            options = replace(options, time_limit_s=options.time_limit_s / rounds)
        first = decision = decide(problem, options=options, **parameters)
        targets, arrival_s = problem.object.copy(), problem.arrival_s.copy()
        for _ in range(rounds - 1):
            if decision.plan is None:
                break
            again = ~_is_reached(problem, decision.plan, targets) & (lower[targets] >= 0)
            if not again.any():
                break
            targets[again] = lower[targets[again]]
            arrival_s[again] += WINDOW_S  # a window later, when DNS answers have expired
            requests = _merge_requests(problem, targets, arrival_s)
            attempt = decide(problem.with_requests(requests), options=options, **parameters)
            if attempt.plan is None:
                break
            decision = attempt
        return first if decision is first else _conclude(problem, first, decision)

    signature = inspect.signature(decide)
    keyword = inspect.Parameter(
        "lower_bitrates", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=LowerBitrates
    )
    decide_in_rounds.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*signature.parameters.values(), keyword]
    )
    decide_in_rounds.__annotations__ = {**decide.__annotations__, "lower_bitrates": LowerBitrates}
    return decide_in_rounds


def _count_rounds(lower: Ints) -> int:
    """Return the largest number of bitrates of a channel, at least 1."""
    rounds, item = 1, lower[lower >= 0]
    while len(item):
        rounds += 1
        item = lower[item]
        item = item[item >= 0]
    return rounds


def _is_reached(problem: LiveVideo, plan: Trees, targets: Ints) -> Bools:
    """Return whether the wanted object (Q,) of each request reaches its group, (Q,)."""
    count = len(problem.clusters)
    item, link = plan_rows(problem, plan)
    return np.isin(targets * count + problem.group, item * count + problem.head[link])


def _merge_requests(problem: LiveVideo, targets: Ints, arrival_s: Floats) -> pd.DataFrame:
    """Return the requests for wanted objects (Q,) at arrival times (Q,), one row a group and object."""
    frame = pd.DataFrame(
        {"group": problem.group, "object": targets, "clients": problem.clients, "arrival_s": arrival_s}
    )
    merged = frame.groupby(["group", "object"], sort=False, as_index=False).agg(
        clients=("clients", "sum"), arrival_s=("arrival_s", "min")
    )
    item = merged["object"].to_numpy()
    return pd.DataFrame(
        {
            "group": problem.clusters["cluster"].to_numpy()[merged["group"]],
            "channel": problem.objects["channel"].to_numpy()[item],
            "bitrate_kbps": problem.objects["bitrate_kbps"].to_numpy(float)[item],
            "clients": merged["clients"].to_numpy(float),
            "arrival_s": merged["arrival_s"].to_numpy(float),
        }
    )


def _conclude(problem: LiveVideo, first: Decision[Trees], last: Decision[Trees]) -> Decision[Trees]:
    """Return the last round's trees as a decision on the requests of the problem, with the first's bound."""
    assert last.plan is not None
    plan = build_plan(problem, *plan_rows(problem, last.plan))
    if last.plan.waits is not None:
        requests = problem.requests[["group", "channel", "bitrate_kbps"]]
        if plan.unserved is not None:
            both = requests.merge(plan.unserved[list(requests)], how="left", indicator=True)
            requests = requests[(both["_merge"] == "left_only").to_numpy()]
        plan = replace(plan, waits=last.plan.waits.merge(requests))
    proof = replace(
        first.proof,
        status=Status.FEASIBLE,
        objective=measure(problem, plan, None)[OBJECTIVE],
        metric=OBJECTIVE,
    )
    return Decision(plan=plan, proof=proof, guarantees=last.guarantees)
