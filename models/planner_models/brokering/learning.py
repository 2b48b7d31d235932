"""Bidders that learn from Accept: each CDN moves its prices and promises by what was accepted.

source  Mukerjee 2018, 3.4.2 and 3.6.3 say that CDNs can learn risk-averse strategies, not how. The
        rule here is multiplicative: a cluster that filled most of what it promised asks for more,
        one that was passed over asks for less, never below its cost; and what it promises moves
        towards what was used, so that a bad round cannot fill it at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from planner import loop
from planner.options import Options
from planner.system import Decision
from planner_models.brokering import market, sees
from planner_models.brokering.assignment import Assignment
from planner_models.brokering.execution import Market, Seen, Strategy
from planner_models.brokering.problem import Brokering


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
    offers = sees.marketplace(seen.problem, bids=bids)
    capacity = offers.background_mbps + seen.promise * offers.free_mbps
    priced = offers.with_clusters(capacity_mbps=capacity)
    return priced.believing(
        offered=offers.offered,
        score=offers.score,
        price=offers.price * seen.markup,
        capacity_mbps=capacity,
        background_mbps=offers.background_mbps,
    )


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

    def assign(offers: Brokering, last: Any) -> Decision[Assignment] | None:  # noqa: ARG001
        made = market.assign(offers, options=options)
        return None if made.plan is None else made

    broker: loop.Controller[Any] = loop.Controller(
        name="broker", decide=assign, period_s=window_s, sees=lambda seen: believed(seen, bids=bids)
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
