"""Drawings of a plan: circuits over time, data of pairs of racks, and completion times of coflows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from planner.contract.drawing import Distribution, Drawing, Timeline
from planner.formatting import amount
from planner_models.circuits.plan.drawing import MOST_BARS, MOST_LANES
from planner_models.circuits.problem.drawing import draw_ring
from planner_models.coflows.plan.completion import replay
from planner_models.coflows.plan.plan import Service
from planner_models.coflows.problem.drawing import COFLOW, pair_bits
from planner_models.coflows.problem.problem import CoflowsInTime


def draw(problem: CoflowsInTime, plan: Service) -> Sequence[Drawing]:
    """Draw circuits of racks or coflows over time, data of pairs, and completion times."""
    completion = replay(problem, plan)
    demand = pair_bits(problem)
    remaining = demand - pair_bits_of(problem, completion.circuit_bits + completion.packet_bits)
    remaining[remaining < 1e-6 * np.maximum(demand, 1.0)] = 0.0
    shown: list[Drawing] = [
        draw_circuits(problem, plan) if len(plan.circuits) else draw_coflows(problem, plan),
        draw_ring(
            problem,
            demand,
            title="Data of coflows between racks",
            note=lambda i, j: f"flows of {amount(demand[i, j] / 8, 'bytes')}",
            left_bits=remaining,
        ),
    ]
    taken = completion.coflow_ms[~np.isnan(completion.coflow_ms)]
    if len(taken):
        shown.append(
            Distribution(
                title="Completion times of coflows",
                values={"coflows": pd.Series(taken)},
                what="completion time",
                unit="ms",
                log_x=bool(taken.min() > 0),
            )
        )
    return shown


def pair_bits_of(problem: CoflowsInTime, bits: np.ndarray) -> np.ndarray:
    """Return (n, n) the sums of amounts of flows, (F,), by pair of racks."""
    sums = np.zeros((len(problem.racks),) * 2)
    np.add.at(sums, (problem.source, problem.target), bits)
    return sums


def draw_circuits(problem: CoflowsInTime, plan: Service) -> Timeline:
    """Return the circuits by sending rack, coloured by the rack that receives; of many, the first ones."""
    frame = plan.circuits
    source, target = problem.rows_of(frame)
    title = "Circuits by sending rack"
    n = len(problem.racks)
    is_shown = np.ones(len(frame), dtype=bool)
    if n > MOST_LANES:
        load = np.bincount(source, weights=(frame["end_ms"] - frame["start_ms"]).to_numpy(float), minlength=n)
        busiest = np.argsort(-load, kind="stable")[:MOST_LANES]
        is_shown = np.isin(source, busiest)
        title += f", the {MOST_LANES} of {n:,} racks with the most time"
    rows = np.flatnonzero(is_shown)
    rows = rows[np.lexsort((frame["start_ms"].to_numpy(float)[rows], source[rows]))]
    if len(rows) > MOST_BARS:
        first = np.sort(frame["start_ms"].to_numpy(float)[rows])[MOST_BARS]
        rows = rows[frame["start_ms"].to_numpy(float)[rows] < first]
        title += f", the first {first / 1e3:,.4g} s"
    start, end = (frame[name].to_numpy(float)[rows] for name in ("start_ms", "end_ms"))
    coflow = frame["coflow"].to_numpy(object)[rows]
    return Timeline(
        title=title,
        frame=pd.DataFrame(
            {
                "lane": problem.names[source[rows]].astype(str),
                "start": start,
                "end": end,
                "what": problem.names[target[rows]].astype(str),
                "element": coflow,
                "note": [f"coflow {name}" for name in coflow],
            }
        ),
        unit="ms",
        lanes="rack",
        what="circuit to",
        kind=COFLOW,
    )


def draw_coflows(problem: CoflowsInTime, plan: Service) -> Timeline:
    """Return the coflows that take longest, from their arrival until they are complete."""
    taken = replay(problem, plan).coflow_ms
    ended = np.flatnonzero(~np.isnan(taken))
    longest = ended[np.argsort(-taken[ended], kind="stable")[:MOST_LANES]]
    rows = longest[np.argsort(problem.arrival_ms[longest], kind="stable")]
    title = "Coflows from arrival to completion"
    if len(ended) > MOST_LANES:
        title += f", the {MOST_LANES} of {len(ended):,} that take longest"
    bits = np.bincount(problem.coflow, weights=problem.bits, minlength=len(problem.coflows))
    names = problem.coflow_names[rows].astype(str)
    return Timeline(
        title=title,
        frame=pd.DataFrame(
            {
                "lane": names,
                "start": problem.arrival_ms[rows],
                "end": problem.arrival_ms[rows] + taken[rows],
                "what": "coflow",
                "element": names,
                "note": [f"{amount(bits[row] / 8, 'bytes')} in {amount(taken[row], 'ms')}" for row in rows],
            }
        ),
        unit="ms",
        lanes="coflow",
        what="sent as",
        kind=COFLOW,
    )
