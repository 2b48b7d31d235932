"""Admission of streams one by one: first the pinned streams, at the end a decision without a bound.

Order of channels in time: the order in which uncoordinated designs send their objects.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from planner.arrays import Ints
from planner.contract.design import Decision
from planner.contract.proof import Proof, Status
from planner.options import Options
from planner.search.judged import feasible, infeasible, undecided
from planner.search.tolerances import COARSE_GAP, ROUNDING
from planner_models.livevideo.designs import integer_program
from planner_models.livevideo.plan.check import compute_delivery
from planner_models.livevideo.plan.metrics import OBJECTIVE, measure
from planner_models.livevideo.plan.plan import Streams, Trees
from planner_models.livevideo.problem.adjustments import pin_everything
from planner_models.livevideo.problem.problem import LiveVideo
from planner_models.livevideo.problem.validation import report_unreachable

PINNED_TIME_LIMIT_S: Final = 30.0
PINNED_GAP: Final = COARSE_GAP

ALL_GUARANTEES: Final = frozenset({"capacity", "cap", "forbidden", "pinned"})
STALE_GUARANTEES: Final = frozenset({"cap", "forbidden", "pinned"})
"""Guarantees of control on old state: links may fill up before it observes them."""


def admit_pinned(problem: LiveVideo, options: Options = Options()) -> Streams | Decision[Trees]:
    """Return streams that carry the pinned objects, on the cheapest trees for these alone.

    returns  Streams; a decision without a plan, with the reason, where the pinned streams do not fit
    """
    streams = Streams(problem)
    if not len(problem.pinned_requests) and not len(problem.pinned_links):
        return streams
    pinned = problem.with_requests(problem.requests.iloc[problem.pinned_requests])
    limits = Options(
        time_limit_s=options.time_limit_s or PINNED_TIME_LIMIT_S, gap=PINNED_GAP, threads=options.threads
    )
    decision = integer_program.solve(pinned, options=limits)
    status = decision.proof.status
    if decision.plan is None:
        why = (
            "do not fit on the links together"
            if status is Status.INFEASIBLE
            else "could not be placed in time"
        )
        reasons = (
            f"pinned: the streams that must be carried {why}",
            *report_unreachable(pinned),
            *decision.proof.reasons,
        )
        return Decision(plan=None, proof=Proof(status=status, metric=OBJECTIVE, reasons=reasons))
    streams.add_plan(decision.plan)
    return streams


def with_service(decide: Callable[..., Decision[Trees]], *, pins: bool = False) -> Any:
    """Return the function of a design that, with service "all", serves all requests or gives no plan.

    pins  whether the design can be made to serve every request; others only find out
    """

    @functools.wraps(decide)
    def decide_for_all(
        problem: LiveVideo, *, options: Options = Options(), **parameters: Any
    ) -> Decision[Trees]:
        if options.service == "best":
            return decide(problem, options=options, **parameters)
        reasons = tuple(report_unreachable(problem))
        if reasons:
            return Decision(plan=None, proof=infeasible(*reasons, metric=OBJECTIVE))
        observed = pin_everything(problem) if pins else problem
        decision = decide(observed, options=options, **parameters)
        if decision.plan is None:
            return decision
        unserved = (problem.clients - compute_delivery(problem, decision.plan).clients).sum()
        if not unserved:
            return decision
        reason = (
            f"the trees found leave {unserved:,.0f} of {problem.clients.sum():,.0f} clients without service"
        )
        proof = undecided(reason, metric=OBJECTIVE)
        return Decision(plan=None, proof=proof)

    return decide_for_all


def remove_over_caps(streams: Streams) -> bool:
    """Remove streams beyond caps of bills, of the least value per Mbit/s; return whether there were any.

    With a stream on a link all streams below it are removed. Pinned streams stay.
    """
    is_over = False
    for bill in np.flatnonzero(np.isfinite(streams.problem.tariffs.cap_mbps)).tolist():
        cap = float(streams.problem.tariffs.cap_mbps[bill])
        if streams.cap_left_mbps[bill] >= -ROUNDING * cap:
            continue
        is_over = True
        density = _rate_streams(streams, bill)
        for item, link in sorted(density, key=lambda key: (density[key], key)):
            if streams.cap_left_mbps[bill] >= -ROUNDING * cap or np.isinf(density[item, link]):
                break
            if streams.carries(item, link):
                _remove_below(streams, item, link)
                if streams.is_unicast_link[link]:  # its edge has the object still
                    streams.add(item, link)  # as many viewers as fit
    return is_over


def _rate_streams(streams: Streams, bill: int) -> dict[tuple[int, int], float]:
    """Return the value per Mbit/s of the requests below each stream of a bill; infinite where it is pinned.

    By object and link.
    """
    problem = streams.problem
    pinned = set(problem.pinned_requests.tolist())
    rows = zip(problem.object.tolist(), problem.group.tolist(), problem.value.tolist(), strict=True)
    served: dict[tuple[int, int], float] = {}
    for q, (item, group, value) in enumerate(rows):
        for last in streams.links_into(item, group):
            links = [last, *streams.path(item, streams.tail[last])]
            for link in links:
                if streams.bill[link] == bill:
                    amount = np.inf if q in pinned else value / streams.bitrate[item]
                    served[item, link] = served.get((item, link), 0.0) + amount
    keys = [(item, link) for (item, _), link in streams.parent.items()] + list(streams.viewers)
    density = {key: served.get(key, 0.0) for key in keys if streams.bill[key[1]] == bill}
    for item, link in problem.pinned_links.tolist():
        if (item, link) in density:
            density[item, link] = np.inf
    return density


def _remove_below(streams: Streams, item: int, link: int) -> None:
    """Remove a stream from a link, and all below it."""
    head = streams.head[link]
    below = [other for other in streams.out_of[head] if streams.carries(item, other)]
    for other in below:
        _remove_below(streams, item, other)
    streams.remove(item, link)


def conclude(
    streams: Streams, *, guarantees: frozenset[str] = ALL_GUARANTEES, is_cut: bool = False
) -> Decision[Trees]:
    """Return the decision for streams, with their objective value and no bound.

    Without a plan, and with a reason, where a pinned stream is missing.

    is_cut  whether a time limit ended the search
    """
    problem = streams.problem
    remove_over_caps(streams)
    reasons = _report_missing(problem, streams)
    if reasons:
        return Decision(plan=None, proof=undecided(*reasons, metric=OBJECTIVE))
    plan = streams.plan()
    objective = measure(problem, plan, None)[OBJECTIVE]
    proof = feasible(objective, metric=OBJECTIVE, is_cut=is_cut)
    return Decision(plan=plan, proof=proof, guarantees=guarantees)


def _report_missing(problem: LiveVideo, streams: Streams) -> tuple[str, ...]:
    """Return a line on the first pinned request or link without its stream and the number of others."""
    names = problem.requests["group"]
    missing = [
        f"{problem.object_labels[problem.object[q]]} to {names.iloc[q]}"
        for q in problem.pinned_requests.tolist()
        if not streams.has(int(problem.object[q]), int(problem.group[q]))
    ] + [
        f"{problem.object_labels[o]} on {problem.link_labels[link]}"
        for o, link in problem.pinned_links.tolist()
        if not streams.carries(o, link)
    ]
    if not missing:
        return ()
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    return (f"pinned: {missing[0]}{more} cannot be carried",)


def order_by_first_request(problem: LiveVideo) -> Ints:
    """Return the objects, (O,), by the first request of their channel, and within it by their own.

    Objects without requests come last among those of their channel.
    """
    channel = problem.channel_number
    first_s = np.full(len(channel), np.inf)
    np.minimum.at(first_s, problem.object, problem.arrival_s)
    first_of_channel = np.full(channel.max(initial=-1) + 1, np.inf)
    np.minimum.at(first_of_channel, channel, first_s)
    return np.lexsort((first_s, first_of_channel[channel]))
