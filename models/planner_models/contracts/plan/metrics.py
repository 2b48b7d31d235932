"""Metrics of system `contracts`: the bills and the traffic of a plan."""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.contract.metrics import MONEY, Headline, Metric, less
from planner.formatting import counted
from planner.search.tolerances import ROUNDING
from planner_models.contracts.plan.check import moved_mbps, region_loads
from planner_models.contracts.plan.plan import Loads, bill, read_loads
from planner_models.contracts.problem.problem import PEAK, Month

NINETY_FIVE: Final = "Mukerjee 2018, 3.2.1 (95/5 model)"


METRICS: Final = (
    Metric(
        name="delivered_mbps",
        unit="Mbit/s",
        better="more",
        about="traffic that CDNs carry, mean of all windows",
    ),
    Metric(
        name="offered_mbps", unit="Mbit/s", better="more", about="traffic of all clients, mean of all windows"
    ),
    less("unserved_mbps", "Mbit/s", "traffic that no CDN carries, mean of all windows"),
    less(
        "bill", MONEY, "what all contracts cost for all windows, in the currency of their prices", NINETY_FIVE
    ),
    less(
        "objective",
        MONEY,
        "what a plan minimises: the bill before it is rounded to cents, and unserved traffic at more "
        "than any bill could save",
    ),
    less("bill_by_peak", MONEY, "the bill of the same loads if every contract were billed by its peak"),
    less("unused_commitments", MONEY, "the part of the bill that is for committed traffic that was not sent"),
    less("mean_price", f"{MONEY} per Mbit/s", "the bill over the mean traffic that CDNs carry"),
    Metric(
        name="unbilled_bursts",
        unit="windows",
        better="more",
        about="windows in which a contract carries more than is billed, over all contracts",
    ),
    Metric(name="cdns_used", unit="CDNs", better="more", about="CDNs that carry traffic"),
    less(
        "moved_percent",
        "%",
        "traffic that changes its CDN from a window to the next, beyond what demand changes; mean",
        "traffic predictability, Mukerjee 2018, 3.3.2",
    ),
    less(
        "most_moved_percent",
        "%",
        "traffic of a region that changes its CDN from a window to the next, beyond what demand changes: "
        "most of all windows",
    ),
)


def say_period(problem: Month) -> str:
    """Return the time that a bill is for: `for 168 windows`."""
    return f"for {counted(problem.windows, 'windows')}"


HEADLINE: Final = Headline(
    metric="delivered_mbps",
    verb="carries",
    total="offered_mbps",
    then="bill",
    then_words="for a bill of",
    then_period=say_period,
    losses={"unserved_mbps": "leaves {} unserved"},
    table=(
        "delivered_mbps",
        "bill",
        "unserved_mbps",
        "unused_commitments",
        "mean_price",
        "bill_by_peak",
        "unbilled_bursts",
        "most_moved_percent",
    ),
)
LIMITS: Final = {
    "capacity": "windows above a contract's capacity",
    "max_share": "windows above a contract's largest share",
    "min_share": "windows below a contract's least share",
    "traffic": "windows with more load than traffic",
    "served": "windows with traffic that could be carried",
    "moved": "windows after which more traffic changes its CDN than may",
}


def unserved_price(problem: Month) -> float:
    """Return the cost of a Mbit/s without service in all windows in the objective.

    A Mbit/s less in one window lowers every billed volume by no more than that, so the highest price for
    each window is more than any bill saves.
    """
    return problem.windows * (problem.highest_price + 1.0)


def measure(
    problem: Month,
    plan: Loads,
    previous: Loads | None,  # noqa: ARG001 - the signature of `measure`
) -> dict[str, float | None]:
    """Return a value for every metric."""
    load = read_loads(problem, plan)
    together = region_loads(problem, load)
    bills = bill(problem, load)
    offered = float(problem.traffic_mbps.sum()) / problem.windows
    delivered = float(np.minimum(together, problem.traffic_mbps).sum()) / problem.windows
    total = round(float(bills["amount"].sum()), 2)
    unserved = max(offered - delivered, 0.0)
    if unserved <= 1e-9 * offered:
        unserved, delivered = 0.0, offered
    used = load.sum(axis=0) > 0
    moved, most_moved = _moved_percent(problem, load)
    return {
        "delivered_mbps": delivered,
        "offered_mbps": offered,
        "unserved_mbps": unserved,
        "bill": total,
        "objective": float(bills["computed"].sum()) + unserved * unserved_price(problem),
        "bill_by_peak": round(float(bill(problem, load, billing=PEAK)["amount"].sum()), 2),
        "unused_commitments": round(float(bills["unused"].sum()), 2),
        "mean_price": total / delivered if delivered > 0 else None,
        "unbilled_bursts": float(bills["free_windows"].sum()),
        "cdns_used": float(problem.contracts["cdn"][used].nunique()),
        "moved_percent": moved,
        "most_moved_percent": most_moved,
    }


def _moved_percent(problem: Month, load: np.ndarray) -> tuple[float | None, float | None]:
    """Return the traffic that changes its CDN from a window to the next, in percent: the mean and the most.

    None for one window.
    """
    if len(load) < 2:
        return None, None
    moved, together = moved_mbps(problem, load), region_loads(problem, load)
    common = np.minimum(together[:-1], together[1:])
    moved = np.where(moved > ROUNDING * common, moved, 0.0)
    if common.sum() <= 0:
        return None, None
    share = np.divide(moved, common, out=np.zeros_like(moved), where=common > 0)
    return 100 * float(moved.sum()) / float(common.sum()), 100 * float(share.max())
