"""Bidders that learn from Accept: each CDN moves its prices and promises by what was accepted.

source  Mukerjee 2018, 3.4.2 and 3.6.3 say that CDNs can learn risk-averse strategies, not how. The
        rule here is multiplicative: a cluster that filled most of what it promised asks for more,
        one that was passed over asks for less, never below its cost; and what it promises moves
        towards what was used, so that a bad round cannot fill it at once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field

from planner import loop
from planner.options import Options
from planner.proof import Proof, Status
from planner.system import Decision
from planner_models.brokering import billing, market, sees
from planner_models.brokering.assignment import Assignment, Told
from planner_models.brokering.execution import Market, Seen, Strategy
from planner_models.brokering.measure import measure
from planner_models.brokering.problem import Brokering
from planner_models.brokering.protocol import Accept


def bidder(cdn: int, *, step: float = 0.05, target: float = 0.8, caution: float = 0.0) -> Any:
    """The decision of one CDN: (what is seen, last round) -> Strategy, or None before any Accept.

    step     by how much prices move in a round, as a share
    target   share of what was promised above which a cluster counts as wanted
    caution  from 0 (promise all free room) to 1 (only twice of what was used last)
    """

    def decide(seen: Seen, last: loop.Round[Any] | None) -> Strategy | None:  # noqa: ARG001
        if seen.accepted is None:
            return None
        promised = seen.promise * seen.problem.free_mbps
        used = np.divide(seen.accepted.load_mbps, promised, out=np.zeros(len(promised)), where=promised > 0)
        markup = np.maximum(seen.markup * np.where(used >= target, 1 + step, 1 - step), 1.0)
        wary = np.clip(2 * used * seen.promise, 0.1, 1.0)
        promise = (1 - caution) + caution * wary
        return Strategy(cdn=cdn, markup=markup, promise=promise)

    return decide


def believed(seen: Seen, *, bids: int = 100) -> Brokering:
    """What the broker makes of the bids at their present prices and promises."""
    return at_bids(sees.marketplace(seen.problem, bids=bids), seen)


def at_bids(offers: Brokering, seen: Seen) -> Brokering:
    """Offers at cost and with all free room, at the prices and promises that CDNs bid instead."""
    capacity = offers.background_mbps + seen.promise * offers.free_mbps
    priced = offers.with_clusters(capacity_mbps=capacity)
    return priced.believing(
        offered=offers.offered,
        score=offers.score,
        price=offers.price * seen.markup,
        capacity_mbps=capacity,
        background_mbps=offers.background_mbps,
    )


def assign(
    problem: Brokering,
    *,
    rounds: Annotated[int, Field(ge=1, description="rounds of the market in one window")] = 1,
    step: Annotated[
        float, Field(ge=0, lt=1, description="by how much prices move in a round, as a share")
    ] = 0.05,
    target: Annotated[
        float, Field(gt=0, le=1, description="share of its promise above which a cluster counts as wanted")
    ] = 0.8,
    caution: Annotated[
        float,
        Field(ge=0, le=1, description="0: promise all free room; 1: only twice of what was used last"),
    ] = 0.0,
    options: Options = Options(),
    previous: Decision[Assignment] | None = None,
) -> Decision[Assignment]:
    """A market whose CDNs have learned from what was accepted, in the window before and in `rounds`.

    The first round of all is at cost and with all free room.

    returns  Decision with an Assignment whose `offers` are the bids of its last round; the objective
             is at cost, as the metric has it, and has no bound: the broker optimised it at the bids
    source   Mukerjee 2018, 3.6.1 (Accept) and 3.6.3; the rule: see the module
    """
    markup, promise = np.ones(len(problem.clusters)), np.ones(len(problem.clusters))
    last = None if previous is None else previous.plan
    made: Decision[Assignment] | None = None
    told: list[Told | None] = []
    for _ in range(rounds):
        if last is not None:
            markup, promise = _learned(problem, last, step, target, caution)
        seen = Seen(problem=problem, markup=markup, promise=promise, accepted=None)
        made = market.assign(at_bids(problem, seen), options=options)
        if made.plan is None:
            return made
        offers = pd.DataFrame({"cluster": problem.clusters["cluster"], "markup": markup, "promise": promise})
        told.append(made.plan.told)
        last = replace(made.plan, offers=offers, told=Told.together(told))
    assert made is not None
    assert last is not None
    proof = Proof(
        status=Status.FEASIBLE,
        objective=measure(problem, last, None)["objective"],
        metric="objective",
        backend=made.proof.backend,
    )
    return billing.remembered(problem, Decision(plan=last, proof=proof), previous)


def _learned(
    problem: Brokering, last: Assignment, step: float, target: float, caution: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(C,) markup and promise of every CDN after a round whose plan is at hand."""
    table = pd.DataFrame({"cluster": problem.clusters["cluster"], "markup": 1.0, "promise": 1.0})
    if last.offers is not None and not last.offers.empty:
        table = last.offers.set_index("cluster").reindex(table["cluster"]).fillna(1.0).reset_index()
    markup, promise = (table[name].to_numpy(float) for name in ("markup", "promise"))
    cluster = problem.cluster_places.get_indexer(pd.Index(last.assignments["cluster"]))
    mbps = (last.assignments["clients"] * last.assignments["bitrate_kbps"] / 1000).to_numpy(float)
    load = np.bincount(cluster[cluster >= 0], weights=mbps[cluster >= 0], minlength=len(markup))
    told = Accept(load_mbps=load.astype(float), price=problem.unit_cost * markup)
    seen = Seen(problem=problem, markup=markup, promise=promise, accepted=told)
    strategy = bidder(0, step=step, target=target, caution=caution)(seen, None)
    assert strategy is not None
    return strategy.markup, strategy.promise


def play(
    problems: list[Brokering],
    *,
    window_s: float = 300.0,
    step: float = 0.05,
    target: float = 0.8,
    caution: float = 0.0,
    bids: int = 100,
    options: Options = Options(),
) -> dict[str, pd.DataFrame]:
    """A round of the market in each window, with CDNs that learn; the tables of `execution.Market`.

    The broker decides at the start of each window, the CDNs half a window later.
    """

    def decide(offers: Brokering, last: Any) -> Decision[Assignment] | None:  # noqa: ARG001
        made = market.assign(offers, options=options)
        return None if made.plan is None else made

    broker: loop.Controller[Any] = loop.Controller(
        name="broker", decide=decide, period_s=window_s, sees=lambda seen: believed(seen, bids=bids)
    )
    cdns: list[loop.Controller[Any]] = [
        loop.Controller(
            name=name,
            decide=bidder(place, step=step, target=target, caution=caution),
            period_s=window_s,
            first_s=window_s / 2,
        )
        for place, name in enumerate(problems[0].cdn_names)
    ]
    outcome = loop.run(Market(problems, window_s=window_s), [broker, *cdns], until_s=window_s * len(problems))
    return {**outcome.tables, "controllers": outcome.rounds}
