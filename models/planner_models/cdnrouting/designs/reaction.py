"""Reaction: the CDN selects clusters on the present routes, the ISP routes that traffic, in turns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Floats
from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import Deadline
from planner_models.cdnrouting.designs.decision import decide_without_bound, refuse_shortage
from planner_models.cdnrouting.designs.moves import (
    Situation,
    begin,
    cheapest_assignment,
    measured_latency,
    route,
    select_informed,
)
from planner_models.cdnrouting.plan.flow_problem import Kinds, congestion_cost, delay_cost
from planner_models.cdnrouting.plan.metrics import SETTLED_SHARE
from planner_models.cdnrouting.plan.plan import DeliveryPlan, State
from planner_models.cdnrouting.problem.problem import Delivery

Rounds = Annotated[int, Field(ge=1, le=1000, description="rounds: moves of the CDN, and one of the ISP")]
Lag = Annotated[int, Field(ge=0, le=50, description="moves since the latencies were measured")]
Step = Annotated[
    float | None,
    Field(gt=0, le=1, description="share of clients that the CDN moves at once; default: as the terms state"),
]
Select = Callable[[list[Situation]], Floats]
"""(situations so far, the present one last) -> the CDN's assignment, (K, S)."""
AT_REST: Final = SETTLED_SHARE / 10
"""Share of clients' traffic in a round below which the reaction ends."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Course:
    """Course of a reaction.

    situations  after each move of its second half, or of its last round where it comes to rest, with the
                numbers of the moves
    moves       a row of the table `rounds` for each move
    """

    situations: list[tuple[int, Situation]]
    moves: pd.DataFrame

    @property
    def final(self) -> Situation:
        """The last situation."""
        return self.situations[-1][1]

    def states(self, kinds: Kinds) -> list[State]:
        """Return the states of a plan: one where all situations are the same."""
        last = self.final
        if all(same(situation, last) for _, situation in self.situations):
            return [State(assigned=kinds.to_groups(last.assigned), ratios=last.ratios)]
        return [
            State(assigned=kinds.to_groups(situation.assigned), ratios=situation.ratios, move=move)
            for move, situation in self.situations
        ]


def same(situation: Situation, other: Situation) -> bool:
    """Return whether two situations have the same assignment and routes."""
    return bool((situation.assigned == other.assigned).all()) and situation.ratios is other.ratios


def play(
    kinds: Kinds,
    select: Select,
    *,
    rounds: int,
    options: Options,
    deadline: Deadline,
    step: float | None = None,
) -> Course:
    """Return the course of rounds: the moves of the CDN that the terms state, then one of the ISP.

    A move of the CDN takes the share `step` of clients to the clusters that it selects; None: as the terms
    state. The course ends early where the CDN moves nothing, and at the deadline after a round.
    """
    problem = kinds.problem
    share = problem.step if step is None else step
    total = float(kinds.amount.sum())
    situations = [route(kinds, begin(kinds, options), options, deadline)]
    rows: list[dict[str, float | str]] = []
    first_of_round: list[int] = []
    is_at_rest = False
    for turn in range(1, rounds + 1):
        first_of_round.append(len(rows))
        moved = 0.0
        for _ in range(problem.cdn_rounds):
            present = situations[-1]
            change = share * (select(situations) - present.assigned)
            situations.append(present.with_assigned(present.assigned + change))
            rows.append(_record(kinds, situations, turn, "cdn"))
            moved += float(np.abs(change).sum()) / 2
            if deadline.is_over:
                break
        is_at_rest = moved <= AT_REST * total
        situations.append(situations[-1] if is_at_rest else route(kinds, situations[-1], options, deadline))
        rows.append(_record(kinds, situations, turn, "isp"))
        if is_at_rest or deadline.is_over:
            break
    begin_at = first_of_round[-1 if is_at_rest else len(first_of_round) // 2]
    frame = pd.DataFrame(rows)
    frame.insert(0, "move", np.arange(1.0, len(rows) + 1))
    second_half = list(enumerate(situations[1:], start=1))[begin_at:]
    return Course(situations=second_half, moves=frame)


def _record(kinds: Kinds, situations: list[Situation], turn: int, mover: str) -> dict[str, float | str]:
    """Return the row of the last move."""
    problem = kinds.problem
    before, after = situations[-2], situations[-1]
    load, cdn_load = after.load, after.cdn_load
    delayed = float(delay_cost(problem).value(load).sum())
    served = max(float(after.assigned.sum()), 1e-300)
    moved = (
        np.abs(after.assigned - before.assigned)
        if mover == "cdn"
        else np.maximum(after.load - before.load, 0)
    )
    background = load - cdn_load
    return {
        "round": float(turn),
        "mover": mover,
        "moved_mbps": float(moved.sum()) / (2 if mover == "cdn" else 1),
        "isp_cost": float(congestion_cost(problem).value(load).sum()),
        "cdn_delay_ms": float(delay_cost(problem, other=background).value(cdn_load).sum()) / served,
        "mean_delay_ms": delayed / max(served + float(problem.background.sum()), 1e-300),
        "max_utilization": float((load / problem.network.capacity).max(initial=0.0)),
    }


@refuse_shortage
def plan_blind(
    problem: Delivery,
    *,
    rounds: Rounds = 10,
    lag: Lag = 0,
    step: Step = None,
    options: Options = Options(),
) -> Decision[DeliveryPlan]:
    """Let CDN and ISP react: the CDN moves clients to the clusters of least measured latency.

    The CDN takes latency as it is, as if its own moves did not change it. The plan has the states of the
    second half of the rounds.
    """
    kinds = Kinds.of(problem)

    def select(situations: list[Situation]) -> Floats:
        measured = measured_latency(kinds, situations[max(len(situations) - 1 - lag, 0)])
        return cheapest_assignment(kinds, measured, options)

    deadline = Deadline.of(options)
    course = play(kinds, select, rounds=rounds, options=options, deadline=deadline, step=step)
    return decide_without_bound(problem, course.states(kinds), rounds=course.moves)


@refuse_shortage
def plan_informed(
    problem: Delivery, *, rounds: Rounds = 10, options: Options = Options()
) -> Decision[DeliveryPlan]:
    """Let CDN and ISP react where the CDN knows links, routes and background traffic.

    The CDN finds the assignment of least delay on the present routes, with the load of its own moves.
    """
    kinds = Kinds.of(problem)
    course = react_informed(kinds, rounds=rounds, options=options, deadline=Deadline.of(options))
    return decide_without_bound(problem, course.states(kinds), rounds=course.moves)


def react_informed(kinds: Kinds, *, rounds: int, options: Options, deadline: Deadline) -> Course:
    """Return the course of a reaction in which the CDN knows links, routes and background traffic."""

    def select(situations: list[Situation]) -> Floats:
        return select_informed(kinds, situations[-1], options, deadline)

    return play(kinds, select, rounds=rounds, options=options, deadline=deadline)
