"""What shows a schedule best: its days, rack by rack, and what is left over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from planner.drawing import Distribution, Drawing, Timeline
from planner_models.circuits.check import carried
from planner_models.circuits.problem import Circuits
from planner_models.circuits.schedule import Schedule

MOST_BARS: Final = 4_000


def draw(problem: Circuits, plan: Schedule) -> Sequence[Drawing]:
    """When each rack has a circuit to which, and what share of its demand each pair gets."""
    order = pd.Index(problem.racks["rack"].astype(str))
    days = plan.configurations
    days = days.iloc[np.argsort(order.get_indexer(pd.Index(days["source_rack"].astype(str))), kind="stable")]
    shown = days.head(MOST_BARS)
    title = "Circuits by sending rack"
    if len(shown) < len(days):
        title += f", the first {len(shown):,} of {len(days):,}"
    timeline = Timeline(
        title=title,
        frame=pd.DataFrame(
            {
                "lane": shown["source_rack"].astype(str),
                "start": shown["start_us"],
                "end": shown["start_us"] + shown["duration_us"],
                "what": shown["target_rack"].astype(str),
            }
        ),
        unit="us",
        lanes="rack",
        what="circuit to",
    )
    done = carried(problem, plan)
    wanted = problem.bits > 0
    got = np.minimum(1.0, (done.circuit_bits + done.packet_bits)[wanted] / problem.bits[wanted])
    served = Distribution(
        title="Demand served of each pair of racks",
        values={"pairs": pd.Series(100 * got)},
        what="served",
        unit="%",
    )
    return (timeline, served) if len(days) else (served,)
