"""Drawings of a schedule: circuits by rack over time, and the demand served of each pair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from planner.contract.drawing import Distribution, Drawing, Timeline
from planner_models.circuits.plan.check import derive_carried
from planner_models.circuits.plan.plan import Schedule
from planner_models.circuits.problem.problem import Circuits

MOST_BARS: Final = 4_000


def draw(problem: Circuits, plan: Schedule) -> Sequence[Drawing]:
    """Draw when each rack has a circuit to which, and the share of its demand that each pair gets."""
    done = derive_carried(problem, plan)
    wanted = problem.bits > 0
    got = np.minimum(1.0, (done.circuit_bits + done.packet_bits)[wanted] / problem.bits[wanted])
    served = Distribution(
        title="Demand served of each pair of racks",
        values={"pairs": pd.Series(100 * got)},
        what="served",
        unit="%",
    )
    if not len(plan.configurations):
        return (served,)
    return (timeline(plan.configurations, problem.racks["rack"]), served)


def timeline(days: pd.DataFrame, racks: pd.Series) -> Timeline:
    """Return the circuits of days by sending rack, in the order of `racks`."""
    # whole days, so that what is shown is shown for every rack
    last = days["day"].sort_values().iloc[min(len(days), MOST_BARS) - 1]
    shown = days[days["day"] <= last]
    title = "Circuits by sending rack"
    if len(shown) < len(days):
        title += f", the first {shown['day'].nunique():,} of {days['day'].nunique():,} days"
    order = pd.Index(racks.astype(str)).get_indexer(pd.Index(shown["source_rack"].astype(str)))
    shown = shown.iloc[np.argsort(order, kind="stable")]
    frame = pd.DataFrame(
        {
            "lane": shown["source_rack"].astype(str),
            "start": shown["start_us"],
            "end": shown["start_us"] + shown["duration_us"],
            "what": shown["target_rack"].astype(str),
        }
    )
    return Timeline(title=title, frame=frame, unit="us", lanes="rack", what="circuit to")
