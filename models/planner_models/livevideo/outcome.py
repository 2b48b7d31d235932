"""What a design without a proof decided: its streams as a plan, or why they are none."""

from __future__ import annotations

from typing import Final

from planner.proof import Proof, Status
from planner.system import Decision
from planner_models.livevideo import pins
from planner_models.livevideo.measure import OBJECTIVE, measure
from planner_models.livevideo.streams import Streams
from planner_models.livevideo.trees import Trees

KEPT: Final = frozenset({"capacity", "forbidden", "pinned"})
BLIND: Final = frozenset({"forbidden", "pinned"})
"""What control on old state keeps: links may fill up before it knows."""


def decided(streams: Streams, *, keeps: frozenset[str] = KEPT) -> Decision[Trees]:
    """The decision for streams that nothing is proven of but what they are worth.

    Without a plan, and with a reason, where a pinned stream is not among them.
    """
    problem = streams.problem
    lost = pins.missing(problem, streams)
    if lost:
        return Decision(plan=None, proof=Proof(status=Status.UNDECIDED, metric=OBJECTIVE, reasons=lost))
    plan = streams.plan()
    proof = Proof(status=Status.FEASIBLE, objective=measure(problem, plan, None)[OBJECTIVE], metric=OBJECTIVE)
    return Decision(plan=plan, proof=proof, keeps=keeps)
