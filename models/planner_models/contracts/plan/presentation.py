"""Drawings of a plan: the traffic of each CDN over the windows, and its bill."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from planner.contract.drawing import Curve, Drawing
from planner_models.contracts.plan.plan import Loads, bill, read_loads
from planner_models.contracts.problem.problem import Month

MOST_POINTS: Final = 720  # of a curve: longer months show the mean of consecutive windows
MOST_LINES: Final = 8


def draw_month(problem: Month) -> Sequence[Drawing]:
    """Draw the traffic of each region over the windows."""
    frame = _over_time(problem, problem.traffic_mbps, problem.regions[:MOST_LINES])
    return [
        Curve(title="Traffic of the regions", frame=frame, units=dict.fromkeys(frame.columns[1:], "Mbit/s"))
    ]


def draw(problem: Month, plan: Loads) -> Sequence[Drawing]:
    """Draw the traffic of the largest CDNs over the windows, and the bill of each contract."""
    load = read_loads(problem, plan)
    cdns = list(pd.unique(problem.contracts["cdn"].astype(str)))
    by_cdn = np.zeros((len(load), len(cdns)))
    np.add.at(by_cdn.T, pd.Index(cdns).get_indexer(pd.Index(problem.contracts["cdn"].astype(str))), load.T)
    # in the order of the contracts: a CDN keeps its colour where another plan gives it more traffic
    largest = np.sort(np.argsort(-by_cdn.sum(axis=0), kind="stable")[:MOST_LINES])
    frame = _over_time(problem, by_cdn[:, largest], [cdns[row] for row in largest])
    bills = bill(problem, load)[["contract", "amount", "unused"]]
    shown = f", the {MOST_LINES} largest of {len(cdns)}" if len(cdns) > MOST_LINES else ""
    return [
        Curve(title=f"Traffic of CDNs{shown}", frame=frame, units=dict.fromkeys(frame.columns[1:], "Mbit/s")),
        Curve(title="Bill of each contract", frame=bills, bars=True),
    ]


def _over_time(problem: Month, values: np.ndarray, names: Sequence[str]) -> pd.DataFrame:
    """Return a frame of columns over windows; where there are many, of means of consecutive ones."""
    length = -(-len(values) // MOST_POINTS)
    starts = np.arange(0, len(values), length)
    sizes = np.diff(np.append(starts, len(values)))
    means = np.add.reduceat(values[:, : len(names)], starts, axis=0) / sizes[:, None]
    columns = {name: means[:, row] for row, name in enumerate(names)}
    return pd.DataFrame({"window": problem.window_numbers[starts], **columns})
