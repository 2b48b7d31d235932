"""Metrics of system `cdnrouting`: those of a plan with several states are means over them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Final

import numpy as np
import pandas as pd

from planner.contract.metrics import Headline, less, more
from planner.formatting import amount
from planner_models.cdnrouting.plan.check import Evaluation, evaluate
from planner_models.cdnrouting.plan.delay_bound import delay_bound
from planner_models.cdnrouting.plan.plan import DeliveryPlan
from planner_models.cdnrouting.problem.problem import Delivery
from planner_models.cdnrouting.problem.service import servable_mbps

SOURCE: Final = "Mukerjee 2018, 1.1"
SETTLED_SHARE: Final = 1e-3
"""Share of clients' traffic below which a move of the CDN counts as none."""

METRICS: Final = (
    less(
        "mean_delay_ms",
        "ms",
        "mean delay of all traffic; traffic that is not served counts the delay of a path over all links, "
        "each 95% full",
        SOURCE,
    ),
    more("served_mbps", "Mbit/s", "traffic of clients that clusters serve"),
    less(
        "unserved_mbps",
        "Mbit/s",
        "traffic of clients without a cluster, and background traffic without a path",
    ),
    less(
        "isp_cost",
        "points",
        "congestion of all links, which the network's operator minimizes",
        "Fortz and Thorup 2000",
        title="ISP cost",
    ),
    less("cdn_delay_ms", "ms", "mean delay of the CDN's traffic, which it minimizes", title="CDN delay"),
    less("background_delay_ms", "ms", "mean delay of background traffic"),
    less("max_utilization", "", "largest load of a link over its capacity; of all states"),
    less(
        "price_of_anarchy",
        "times",
        "mean delay over what no plan is below; unknown for large networks",
        "Koutsoupias and Papadimitriou 1999",
    ),
    less(
        "moved_share", "", "share of clients' traffic that a move of the CDN moves, in the mean of the states"
    ),
    less("rounds_to_settle", "rounds", "rounds until the CDN moves no clients; unknown where it never stops"),
    less("swing", "times", "mean delay of the worst state over that of the best one"),
)
HEADLINE_TABLE: Final = (
    "mean_delay_ms",
    "cdn_delay_ms",
    "isp_cost",
    "max_utilization",
    "price_of_anarchy",
    "swing",
    "rounds_to_settle",
    "unserved_mbps",
)


def say_unservable(problem: Delivery) -> str:
    """Return the sentence on traffic that no plan can serve; "" where there is none."""
    lost = measure_unservable(problem)["unserved_mbps"]
    if lost <= 1e-6 * problem.offered_mbps:
        return ""
    return f"Capacity and paths are too few for {amount(lost, 'Mbit/s')} of the traffic."


def measure_unservable(problem: Delivery) -> dict[str, float]:
    """Return the traffic, Mbit/s, that no plan can serve, as part of `unserved_mbps`."""
    lost = float((problem.group_mbps - servable_mbps(problem)).sum())
    return {"unserved_mbps": lost + float(problem.rate_mbps[~problem.is_connected].sum())}


HEADLINE: Final = Headline(
    metric="mean_delay_ms",
    verb="delays traffic by {} in the mean",
    losses={"unserved_mbps": "leaves {} unserved"},
    table=HEADLINE_TABLE,
    unservable=say_unservable,
    unservable_losses=measure_unservable,
)
LIMITS: Final = {
    "clusters": "overloaded clusters",
    "served": "groups of clients with less than their share",
    "clients": "groups of clients with more than they request",
    "outcome": "parties that lose by the bargain",
}


def measure(
    problem: Delivery,
    plan: DeliveryPlan,
    previous: DeliveryPlan | None,  # noqa: ARG001 - the signature of `measure`
) -> dict[str, float | None]:
    """Return a value for every metric."""
    states = evaluate(problem, plan)
    delay = np.array([state.mean_delay_ms for state in states])
    bound = delay_bound(problem)
    mean = float(delay.mean())
    return {
        "mean_delay_ms": mean,
        "served_mbps": _mean(states, lambda state: state.served_mbps),
        "unserved_mbps": _mean(states, lambda state: state.unserved_mbps),
        "isp_cost": _mean(states, lambda state: state.isp_cost),
        "cdn_delay_ms": _mean(states, lambda state: state.cdn_delay_ms),
        "background_delay_ms": _mean(states, lambda state: state.background_delay_ms),
        "max_utilization": max(state.max_utilization for state in states),
        "price_of_anarchy": None if bound is None or bound <= 0 else mean / bound,
        "moved_share": _moved_share(states),
        "rounds_to_settle": rounds_to_settle(problem, plan.rounds),
        "swing": float(delay.max() / delay.min()) if delay.min() > 0 else None,
    }


def _mean(states: list[Evaluation], figure: Callable[[Evaluation], float | None]) -> float | None:
    values = [figure(state) for state in states]
    numbers = [value for value in values if value is not None]
    return float(np.mean(numbers)) if numbers else None


def _moved_share(states: list[Evaluation]) -> float | None:
    """Return the share of clients' traffic that changes its cluster between states where any does."""
    if len(states) < 2:
        return None
    moved = [float(np.abs(after.assigned - before.assigned).sum()) / 2 for before, after in pairwise(states)]
    served = max(float(np.mean([state.served_mbps for state in states])), 1e-300)
    moves = [amount_moved for amount_moved in moved if amount_moved > 0]
    return float(np.mean(moves)) / served if moves else 0.0


def rounds_to_settle(problem: Delivery, rounds: pd.DataFrame | None) -> float | None:
    """Return the rounds after which the CDN moves next to nothing; None without, or where it never stops."""
    if rounds is None or not len(rounds):
        return None
    is_cdn = rounds["mover"].to_numpy() == "cdn"
    threshold = SETTLED_SHARE * float(problem.group_mbps.sum())
    moving = rounds["round"].to_numpy(float)[is_cdn & (rounds["moved_mbps"].to_numpy(float) > threshold)]
    last = float(rounds["round"].max())
    settled = float(moving.max(initial=0.0))
    return None if settled >= last else settled
