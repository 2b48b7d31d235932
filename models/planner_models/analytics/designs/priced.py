"""Prices of uplinks as a protocol: uplinks raise prices while they are overloaded, queries choose by them."""

from __future__ import annotations

from typing import Annotated, Final

import numpy as np
from pydantic import Field

from planner.arrays import Ints
from planner.contract.design import Decision
from planner.options import Options
from planner.search.judged import infeasible
from planner_models.analytics.designs import prices, search
from planner_models.analytics.designs.choices import Choices
from planner_models.analytics.designs.decision import IntervalDeadline, decide
from planner_models.analytics.designs.optimum import plan, read_prices
from planner_models.analytics.designs.shedding import fit_interval
from planner_models.analytics.information import PRICE_ROUNDS, PROPOSALS
from planner_models.analytics.plan.plan import Levels
from planner_models.analytics.problem.problem import Analytics

BACKEND: Final = "prices"

Headroom = Annotated[
    float, Field(gt=0, le=1, description="part of the known bandwidth of each uplink that is planned with")
]


def choose_by_prices(
    problem: Analytics,
    *,
    headroom: Headroom = 1.0,
    options: Options = Options(),
    previous: Decision[Levels] | None = None,
) -> Decision[Levels]:
    """Let each query choose its levels by the prices of uplinks, then give way where one is overloaded.

    Prices start from those of the interval before, or of the previous plan, and change in a fixed number of
    rounds. An uplink that is still overloaded makes the queries coarser that lose least by it; what is left
    goes to queries whose values add up. Then other answers are proposed, those first that cost least at the
    prices, and sites say what their other queries add beside them; the best proposal is taken. Of each
    uplink, the part `headroom` is used, so that data is not late where bandwidth is less than is known. Once
    a time limit is near, prices and answers stay those of the interval before, and only give way.
    """
    if headroom < 1:
        problem = problem.with_capacity(problem.capacity_mbps * headroom, is_valid=True)
    choices = Choices(problem, must_answer=options.service == "all")
    levels, price = [], read_prices(problem, previous)
    deadline = IntervalDeadline(options, len(problem.interval_numbers))
    answers: Ints | None = None
    is_cut = False
    for k in range(len(problem.interval_numbers)):
        deadline.start_interval()
        interval, reason = fit_interval(choices, k)
        deadline.end_build()
        if reason is not None:
            proof = infeasible(reason, metric="value")
            return Decision(plan=None, proof=proof)
        is_late = deadline.search_s() <= 0
        is_cut = is_cut or is_late
        if is_late and price is not None:
            priced = prices.Priced(price, *prices.evaluate_bound(interval, price))
        else:
            priced = prices.find_prices(interval, price, rounds=PRICE_ROUNDS)
        selection = (
            search.find_choices(interval, priced, start=answers, evaluations=1, is_short=True)
            if is_late
            else search.find_choices(interval, priced, evaluations=PROPOSALS)
        )
        if selection.value == -np.inf:
            # where rules leave few levels, repair may fail
            return plan(problem, options=deadline.remaining_options(options))
        price, answers = priced.price, selection.answers
        levels.append(choices.to_levels(interval, selection.answers, selection.added))
    return decide(
        problem,
        np.array(levels),
        options,
        backend=BACKEND,
        guarantees=None,
        price=price,
        choices=choices,
        is_cut=is_cut,
    )
