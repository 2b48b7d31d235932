"""Several brokers that share the clusters: each deciding as if alone, or in transactions."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field

from planner.options import Options
from planner.proof import Proof, Status
from planner.system import Decision
from planner_models.brokering import billing, market
from planner_models.brokering.assignment import Assignment, Told, added_up
from planner_models.brokering.check import served
from planner_models.brokering.measure import measure
from planner_models.brokering.problem import Brokering

Brokers = Annotated[int, Field(ge=1, description="how many brokers the clients are dealt to")]
DealSeed = Annotated[int, Field(ge=0, description="seed of the dealing")]
MostRounds = Annotated[int, Field(ge=1, description="give up after so many rounds")]
Headroom = Annotated[
    float,
    Field(gt=0, le=1, description="a CDN commits to at most this share of the room it announced"),
]


def assign(
    problem: Brokering,
    *,
    brokers: Brokers = 2,
    deal_seed: DealSeed = 0,
    options: Options = Options(),
    previous: Decision[Assignment] | None = None,
) -> Decision[Assignment]:
    """Brokers that each fill the clusters as if no other did.

    Every broker is told the same room, so that together they may overbook it: the plan claims to
    serve all clients, not to keep capacities.

    returns  Decision with an Assignment of all brokers' clients; no bound
    source   Mukerjee 2018, 3.4.2 (BestLookup: capacity 10, two brokers that send 9 each)
    """
    problems = [problem.serving(count) for count in dealt(problem, brokers, deal_seed)]
    decisions = [market.assign(part, options=options) for part in problems]
    if any(decision.plan is None for decision in decisions):
        return next(decision for decision in decisions if decision.plan is None)
    plan = united([decision.plan for decision in decisions if decision.plan is not None])
    keeps = frozenset({"demand", "pinned", "forbidden"})
    made = Decision(plan=plan, proof=_proof(problem, plan, decisions), keeps=keeps)
    return billing.remembered(problem, made, previous)


def commit(
    problem: Brokering,
    *,
    brokers: Brokers = 2,
    headroom: Headroom = 1.0,
    most_rounds: MostRounds = 50,
    deal_seed: DealSeed = 0,
    options: Options = Options(),
    previous: Decision[Assignment] | None = None,
) -> Decision[Assignment]:
    """Mappings that hold only once every CDN commits to them; else all are withdrawn and made anew.

    A CDN refuses a cluster that all brokers together would fill above `headroom` of its room. For
    the next round it promises each broker a part of that room for itself, by what the broker wanted
    there; what a broker is promised never grows again, so that the rounds end.

    returns  Decision with an Assignment whose `rounds` count clusters refused and mappings
             withdrawn; without a plan where some broker no longer finds room, or rounds run out
    source   Mukerjee 2018, 3.4.2 (Transactions)
    """
    counts = dealt(problem, brokers, deal_seed)
    room = headroom * problem.free_mbps
    promised = np.tile(problem.free_mbps, (brokers, 1))
    rows: list[tuple[int, int, int]] = []
    for number in range(1, most_rounds + 1):
        decisions = [
            market.assign(
                problem.serving(count).with_clusters(capacity_mbps=mine, background_mbps=np.zeros(len(mine))),
                options=options,
            )
            for count, mine in zip(counts, promised, strict=True)
        ]
        plans = [decision.plan for decision in decisions if decision.plan is not None]
        if len(plans) < brokers:
            lost = next(decision for decision in decisions if decision.plan is None)
            reason = f"round {number}: a broker finds no room in what it was promised"
            proof = Proof(status=Status.UNDECIDED, reasons=(reason, *lost.proof.reasons))
            return Decision(plan=None, proof=proof)
        wanted = np.array([served(problem, plan).load_mbps for plan in plans])
        refused = wanted.sum(axis=0) > room * (1 + 1e-9) + 1e-9
        rows.append((number, int(refused.sum()), brokers if refused.any() else 0))
        if not refused.any():
            rounds = pd.DataFrame(rows, columns=["round", "overbooked", "withdrawn"], dtype=float)
            whole = replace(united(plans), rounds=rounds)
            return billing.remembered(
                problem, Decision(plan=whole, proof=_proof(problem, whole, decisions)), previous
            )
        # what the others may still want cannot be promised twice
        share = wanted / np.maximum(wanted.sum(axis=0), 1e-12)
        promised[:, refused] = np.minimum(promised, share * room)[:, refused]
    reason = f"CDNs still refuse {int(refused.sum())} clusters after {most_rounds} rounds"
    return Decision(plan=None, proof=Proof(status=Status.UNDECIDED, reasons=(reason,)))


def dealt(problem: Brokering, brokers: int, seed: int) -> list[NDArray[np.int64]]:
    """(R,) clients of each broker; every client is as likely to come by any."""
    random = np.random.default_rng(seed)
    dealt = random.multinomial(problem.count, np.full(brokers, 1 / brokers))
    return [np.ascontiguousarray(dealt[:, broker]) for broker in range(brokers)]


def united(plans: list[Assignment]) -> Assignment:
    """All brokers' clients in one plan."""
    frames = pd.concat([plan.assignments for plan in plans], ignore_index=True)
    return Assignment(assignments=added_up(frames), told=Told.together([plan.told for plan in plans]))


def _proof(problem: Brokering, plan: Assignment, decisions: list[Decision[Assignment]]) -> Proof:
    """Each broker proves its own part; together they prove a plan, and no bound."""
    return Proof(
        status=Status.FEASIBLE,
        objective=measure(problem, plan, None)["objective"],
        metric="objective",
        backend=decisions[0].proof.backend,
    )
