"""Drawings of a schedule: circuits by rack over time, and the demand that is left over of each pair."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.contract.drawing import Distribution, Drawing, Timeline
from planner_models.circuits.plan.plan import Schedule
from planner_models.circuits.plan.service import Service
from planner_models.circuits.problem.drawing import PAIR, Ints, draw_ring, offered_load
from planner_models.circuits.problem.problem import Circuits
from planner_models.circuits.problem.racks import Racks

MOST_LANES: Final = 40
MOST_BARS: Final = 4_000
SEVERAL: Final = "several racks"


def draw(problem: Circuits, plan: Schedule) -> Sequence[Drawing]:
    """Draw the circuits of racks over time, then the unserved demand of each pair of racks."""
    service = Service.of(problem, plan)
    demand = problem.offered_bits
    ring = draw_ring(
        problem,
        demand,
        title="Demand left over",
        note=service.describe_pair,
        load=offered_load(problem),
        left_bits=service.left_bits,
    )
    shares = 100 * np.minimum(1.0, service.served_bits[demand > 0] / demand[demand > 0])
    served = Distribution(
        title="Demand served of each pair of racks",
        values={"pairs": pd.Series(shares)},
        what="served",
        unit="%",
    )
    if not len(plan.configurations):
        return (ring, served)
    timeline = draw_timeline(
        problem, plan.configurations, demand=demand, remaining=service.left_bits, note=service.describe_pair
    )
    return (timeline, ring, served)


def draw_timeline(
    racks: Racks,
    days: pd.DataFrame,
    *,
    demand: NDArray[np.float64],
    remaining: NDArray[np.float64],
    note: Callable[[int, int], str],
    elements: Callable[[Ints, Ints], Sequence[str]] | None = None,
    title: str = "Circuits by sending rack",
) -> Timeline:
    """Return the circuits of a table `configurations` by sending rack.

    Racks are in the order of `racks`; of many, those with the most left over. Where there are too many
    circuits, short ones that follow each other are one bar.

    wanted, left  (n, n) demand, and what is left over
    note          (source, target) -> words for a pair of rows of `racks`
    elements      (sources, targets) -> names of the elements that circuits are; default: the pairs
    """
    n = len(racks.racks)
    lanes = np.arange(n)
    if n > MOST_LANES:
        lanes = np.lexsort((lanes, -demand.sum(axis=1), -remaining.sum(axis=1)))[:MOST_LANES]
        criterion = "left over" if remaining.any() else "demand"
        title += f", the {MOST_LANES} of {n:,} racks with the most {criterion}"
    lane = np.full(n, -1)
    lane[lanes] = np.arange(len(lanes))
    source, target = racks.rows_of(days)
    shown = np.flatnonzero(lane[source] >= 0)
    order = shown[np.lexsort((days["start_us"].to_numpy(float)[shown], lane[source[shown]]))]
    source, target = source[order], target[order]
    start = days["start_us"].to_numpy(float)[order]
    frame = pd.DataFrame(
        {
            "lane": racks.names[source].astype(str),
            "start": start,
            "end": start + days["duration_us"].to_numpy(float)[order],
            "what": racks.names[target].astype(str),
            "element": np.where(
                demand[source, target] > 0, (elements or racks.name_ends)(source, target), ""
            ),
        }
    )
    pair = source * n + target
    pairs, pair_of = np.unique(pair, return_inverse=True)
    notes = np.array([note(*divmod(int(number), n)) for number in pairs], dtype=object)
    frame["note"] = notes[pair_of]
    if len(frame) > MOST_BARS:
        frame = _merge_short(frame, lanes=len(lanes))
        title += "; short circuits together"
    return Timeline(title=title, frame=frame, unit="us", lanes="rack", what="circuit to", kind=PAIR)


def _merge_short(frame: pd.DataFrame, *, lanes: int) -> pd.DataFrame:
    """Return the bars, those that are too short to see as one bar for each stretch of a lane."""
    begin, end = float(frame["start"].min()), float(frame["end"].max())
    stretch = (end - begin) * lanes / MOST_BARS
    length = frame["end"] - frame["start"]
    is_short = (length < stretch).to_numpy()
    short = frame[is_short].assign(up=length)
    number = np.floor((short["start"] - begin) / stretch)
    groups = short.groupby(["lane", number], sort=False)
    merged = groups.agg(
        start=("start", "min"), end=("end", "max"), up=("up", "sum"), what=("what", "unique")
    ).reset_index(level=0)
    count = merged["what"].map(len).to_numpy()
    first = groups[["element", "note"]].first().to_numpy()
    several = [
        f"{up:.4g} us of circuits to {', '.join(racks[:8])}{' and others' if len(racks) > 8 else ''}"
        for up, racks in zip(merged["up"], merged["what"], strict=True)
    ]
    merged = merged.assign(
        what=np.where(count == 1, merged["what"].str[0], SEVERAL),
        element=np.where(count == 1, first[:, 0], ""),
        note=np.where(count == 1, first[:, 1], several),
    )
    joined = pd.concat([frame[~is_short], merged[list(frame.columns)]], ignore_index=True)
    rank = {name: index for index, name in enumerate(frame["lane"].unique())}
    order = np.lexsort((joined["start"], joined["lane"].map(rank)))
    return joined.iloc[order].reset_index(drop=True)
