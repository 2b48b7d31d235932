"""Pinned streams: what an operator demands is set up first, whatever a design does with the rest."""

from __future__ import annotations

from dataclasses import replace

from planner.options import Options
from planner.proof import Proof, Status
from planner.system import Decision
from planner_models.livevideo import optimum
from planner_models.livevideo.measure import OBJECTIVE
from planner_models.livevideo.problem import LiveVideo
from planner_models.livevideo.streams import Streams
from planner_models.livevideo.trees import Trees

SECONDS = 30.0


def laid(problem: LiveVideo, options: Options = Options()) -> Streams | Decision[Trees]:
    """No streams but the pinned ones, on the trees that are cheapest for them alone.

    A decision without a plan, whose reason says why, where they do not fit on the links together.
    """
    streams = Streams(problem)
    if not len(problem.pinned_requests) and not len(problem.pinned_links):
        return streams
    alone = problem.with_requests(problem.requests.iloc[problem.pinned_requests])
    alone = replace(alone, lost="unserved")
    limits = Options(time_limit_s=options.time_limit_s or SECONDS, gap=1e-3, threads=options.threads)
    made = optimum.distribute(alone, options=limits)
    if made.plan is None:
        why = "do not fit on the links together" if made.proof.status is Status.INFEASIBLE else "found no way"
        reasons = (f"pinned: the streams that must be carried {why}", *made.proof.reasons)
        return Decision(plan=None, proof=Proof(status=made.proof.status, metric=OBJECTIVE, reasons=reasons))
    streams.add_plan(made.plan)
    return streams


def missing(problem: LiveVideo, streams: Streams) -> tuple[str, ...]:
    """A line for the first pinned request or link that streams do not carry, and how many more there are."""
    names = problem.requests["group"]
    lost = [
        f"{problem.object_labels[problem.object[q]]} to {names.iloc[q]}"
        for q in problem.pinned_requests.tolist()
        if not streams.has(int(problem.object[q]), int(problem.group[q]))
    ] + [
        f"{problem.object_labels[o]} on {problem.link_labels[link]}"
        for o, link in problem.pinned_links.tolist()
        if streams.parent.get((o, int(problem.head[link]))) != link
    ]
    if not lost:
        return ()
    more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
    return (f"pinned: {lost[0]}{more} cannot be carried",)
