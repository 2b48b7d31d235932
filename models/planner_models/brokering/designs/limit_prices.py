"""Explanation of the limits of CDNs: their traffic, and the change of the objective by one Gbit/s more."""

from __future__ import annotations

import numpy as np
import pandas as pd

from planner.contract.studies import Section
from planner.formatting import amount, counted, number
from planner.search.tolerances import SOLVER
from planner_models.brokering.designs.broker.within_limits import price_limits
from planner_models.brokering.plan.check import limited_mbps
from planner_models.brokering.plan.plan import Assignment
from planner_models.brokering.plan.presentation import money_per_objective
from planner_models.brokering.plan.transportation import TransportationProblem
from planner_models.brokering.problem.problem import Brokering


def report_limits(
    problem: Brokering, plan: Assignment, transport: TransportationProblem
) -> tuple[Section, str]:
    """Report each limit with its traffic, and the change of the objective by a Gbit/s more of it.

    Dual prices are of divisible clients; they are unknown where not all floors can be reached.
    """
    assert problem.limits is not None
    limits, load = problem.volume_limits, limited_mbps(problem, plan)
    factor, unit = money_per_objective(problem)
    frame = pd.DataFrame(
        {
            "cdn": problem.limits["cdn"].tolist(),
            "region": problem.limits["region"].tolist(),
            "floor_mbps": np.where(limits.floor_mbps > 0, limits.floor_mbps, np.nan),
            "load_mbps": load,
            "cap_mbps": np.where(np.isfinite(limits.cap_mbps), limits.cap_mbps, np.nan),
            "share": np.divide(
                load, limits.demand_mbps, out=np.zeros_like(load), where=limits.demand_mbps > 0
            ),
        }
    )
    prices = price_limits(problem, transport)
    if prices is not None:
        frame["cap_per_gbps"] = prices[0] * 1000 * factor
        frame["floor_per_gbps"] = prices[1] * 1000 * factor
    units = dict.fromkeys(["floor_mbps", "load_mbps", "cap_mbps"], "Mbit/s")
    units |= dict.fromkeys(["cap_per_gbps", "floor_per_gbps"], unit)
    section = Section(
        title="limits of CDNs by region",
        frame=frame,
        units=units,
        note="share: of the traffic that the region's clients ask for; per Gbit/s: change of the objective "
        "by a Gbit/s more of cap or floor at the margin, of divisible clients",
    )
    return section, _say_limits(frame, unit)


def _say_limits(frame: pd.DataFrame, unit: str) -> str:
    """Return the sentence on floors that are missed, or on the dearest limit."""
    lack = (frame["floor_mbps"].fillna(0.0) - frame["load_mbps"]).clip(lower=0.0)
    missed = lack > SOLVER * frame["load_mbps"].max()
    if missed.any():
        rows = counted(int(missed.sum()), "limits", "lack")
        return f"{rows} {amount(float(lack.sum()), 'Mbit/s')} of their floors: no capacity is left for them."
    if "cap_per_gbps" not in frame:
        return "Not all clients can be served within the limits."
    price = np.maximum(-frame["cap_per_gbps"], frame["floor_per_gbps"])
    dearest = int(price.argmax())
    if price[dearest] <= 0:
        return "No limit of a CDN costs anything: the assignment would be as good without them."
    row = frame.iloc[dearest]
    kind = "cap" if -row["cap_per_gbps"] >= row["floor_per_gbps"] else "floor"
    value = f"{number(float(price[dearest]))} {unit or 'of the objective'} per Gbit/s at the margin"
    return f"The dearest limit is the {kind} of {row['cdn']} in {row['region']}: {value}."
