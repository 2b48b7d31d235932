"""The metrics of system `circuits`.

Completion times of coflows under a schedule.
"""

from __future__ import annotations

from typing import Final, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.contract.metrics import Metric
from planner.contract.tolerances import allowance
from planner.search.tolerances import FEASIBILITY
from planner_models.circuits.plan.check import Carried, derive_carried, require_racks
from planner_models.circuits.plan.plan import Schedule, served_rate
from planner_models.circuits.problem.problem import Circuits

ROUNDING: Final = FEASIBILITY


def metric(name: str, unit: str, better: Literal["more", "less"], about: str, source: str = "") -> Metric:
    """Return a metric."""
    return Metric(name=name, unit=unit, better=better, about=about, source=source)


SOLSTICE: Final = "Liu et al. 2015 (Solstice)"
ECLIPSE: Final = "Venkatakrishnan et al. 2016 (Eclipse)"
DUTY: Final = "share of the week, or of the time until all is served, in which each switch's circuits are up"
UTILIZATION: Final = "bits that circuits carry over what all racks' circuits could carry while up"
COFLOWS: Final = "mean time until a coflow is complete; unknown without coflows or where one is not"
RATE: Final = "demand served, over the week; without one over the time until all is served, 0 if never"
METRICS: Final = (
    metric("served_mbps", "Mbit/s", "more", RATE),
    metric("offered_mbps", "Mbit/s", "more", "demand over the week; unknown without one"),
    metric("served_share", "", "more", "served share of all demand"),
    metric("circuit_share", "", "more", "share of all demand that circuits serve", ECLIPSE),
    metric("served_bits", "bits", "more", "demand that is served"),
    metric("unserved_bits", "bits", "less", "demand that is not served"),
    metric("done_us", "us", "less", "time until all demand is served; unknown where some is not", SOLSTICE),
    metric("configurations", "days", "less", "number of circuit configurations", SOLSTICE),
    metric("duty_cycle", "", "more", DUTY, "Mukerjee 2018, 2.2.2"),
    metric("circuit_utilization", "", "more", UTILIZATION, "Mukerjee 2018, 2.4.1"),
    metric("coflow_mean_us", "us", "less", COFLOWS),
    metric("coflow_p95_us", "us", "less", "95th percentile of the time until a coflow is complete"),
)


def _find_end_us(problem: Circuits, carried: Carried) -> float | None:
    """Return the end of circuits and packets; None where a rack without packet rate sends packets."""
    busiest = np.maximum(carried.packet_bits.sum(axis=0), carried.packet_bits.sum(axis=1))
    carries = busiest > 0
    if (problem.packet_mbps[carries] <= 0).any():
        return None
    last = float((busiest[carries] / problem.packet_mbps[carries]).max(initial=0.0))
    return max(last, float(carried.end_us.max(initial=0.0)))


def measure(problem: Circuits, plan: Schedule, previous: Schedule | None) -> dict[str, float | None]:  # noqa: ARG001
    """Return every metric of the plan, from the true problem and the plan alone."""
    carried = derive_carried(problem, plan)
    offered = float(problem.offered_bits.sum())
    served = carried.served_bits(problem)
    remaining = offered - float(served.sum())
    up = float((carried.end_us - carried.start_us).sum())
    end = _find_end_us(problem, carried)
    duration = problem.window_us if problem.window_us is not None else end
    working = up
    if problem.dark == "changed":  # a circuit that is kept works at night too
        working += float(carried.dark_us[np.diff(carried.switch, prepend=-1) == 0].sum())
    available = working * float(problem.racks.loc[~problem.is_failed, "circuit_mbps"].sum())
    window = problem.window_us
    return {
        "served_mbps": served_rate(problem, float(served.sum()), end or np.inf),
        "offered_mbps": None if window is None else offered / window,
        "served_share": float(served.sum()) / offered if offered > 0 else None,
        "circuit_share": float(carried.circuit_bits.sum()) / offered if offered > 0 else None,
        "served_bits": float(served.sum()),
        "unserved_bits": max(remaining, 0.0),
        "done_us": end if remaining <= float(allowance(offered)) else None,
        "configurations": float(len(carried.start_us)),
        "duty_cycle": up / (duration * problem.switches) if duration else None,
        "circuit_utilization": float(carried.circuit_bits.sum()) / available if available > 0 else None,
        **_measure_coflows(problem, plan, carried),
    }


def _measure_coflows(problem: Circuits, plan: Schedule, carried: Carried) -> dict[str, float | None]:
    """Return the mean and the 95th percentile of completion times; None where a coflow does not complete."""
    ends: NDArray[np.float64] = np.zeros(0)
    if problem.coflows is not None:
        ends = np.asarray(completion_times_us(problem, plan, carried), dtype=np.float64)
    complete = len(ends) > 0 and bool(np.isfinite(ends).all())
    return {
        "coflow_mean_us": float(ends.mean()) if complete else None,
        "coflow_p95_us": float(np.quantile(ends, 0.95)) if complete else None,
    }


def completion_times_us(
    problem: Circuits, plan: Schedule, carried: Carried | None = None
) -> pd.Series[float]:
    """Return the completion time of each coflow, us, by its name; NaN if a part is not served.

    Each pair serves its coflows in the order of the table. Circuits serve at full rate from when they
    are up until they have carried their part; the packet switch carries its part evenly over the time
    that its busiest link needs, as fair sharing does for demands that stay in proportion.

    carried  what the plan carries, where it is known already
    """
    carried = derive_carried(problem, plan) if carried is None else carried
    frame = problem.coflows
    assert frame is not None
    source, target = problem.rows_of(frame)
    bits = frame["bits"].to_numpy(float)
    busiest = np.maximum(carried.packet_bits.sum(axis=0), carried.packet_bits.sum(axis=1))
    needs = np.divide(busiest, problem.packet_mbps, out=np.zeros(len(busiest)), where=busiest > 0)
    packets_us = float(needs.max(initial=0.0))
    last_us = max(packets_us, float(carried.end_us.max(initial=0.0)))
    days = plan.configurations
    day_source, day_target = require_racks(problem, days, "configurations")
    number = day_source * len(problem.racks) + day_target
    order = np.lexsort((days["start_us"].to_numpy(float), number))
    start = days["start_us"].to_numpy(float)[order]
    end = start + days["duration_us"].to_numpy(float)[order]
    number = number[order]
    ends = np.full(len(bits), np.nan)
    pairs = source * len(problem.racks) + target
    grouped = np.argsort(pairs, kind="stable")
    for rows in np.split(grouped, np.flatnonzero(np.diff(pairs[grouped])) + 1):
        if not len(rows):
            continue
        pair = pairs[rows[0]]
        low, high = np.searchsorted(number, [pair, pair + 1])
        i, j = divmod(int(pair), len(problem.racks))
        times, served = _service_curve(
            start[low:high],
            end[low:high],
            float(problem.circuit_mbps[i, j]),
            float(carried.circuit_bits[i, j]),
            float(carried.packet_bits[i, j]),
            packets_us,
            last_us,
        )
        ends[rows] = _times_reached(
            times, served, np.cumsum(bits[rows]), ROUNDING * float(problem.bits[i, j])
        )
    # a part that is never served leaves its coflow without an end
    return (
        pd.Series(ends)
        .groupby(frame["coflow"].to_numpy(), sort=False)
        .agg(lambda values: values.max(skipna=False))
    )


def _service_curve(
    start_us: NDArray[np.float64],
    end_us: NDArray[np.float64],
    mbps: float,
    circuit_bits: float,
    packet_bits: float,
    packets_us: float,
    last_us: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return times, and the served bits of a pair by then, linear in between."""
    before = np.concatenate([[0.0], np.cumsum((end_us - start_us) * mbps)])
    # within the day in which circuits are done with their part they stop early
    stop = np.clip(start_us + (circuit_bits - before[:-1]) / mbps, start_us, end_us)
    times = np.unique(np.concatenate([[0.0, packets_us, last_us], start_us, stop]))
    circuit = np.zeros(len(times))
    for begin, until in zip(start_us, stop, strict=True):
        circuit += mbps * np.clip(times - begin, 0.0, until - begin)
    # what a circuit that stays up at night carries then counts at the end
    circuit[-1] = max(circuit[-1], circuit_bits)
    share = np.minimum(times / packets_us, 1.0) if packets_us > 0 else np.ones(len(times))
    return times, circuit + packet_bits * share


def _times_reached(
    times: NDArray[np.float64], served: NDArray[np.float64], bits: NDArray[np.float64], tolerance: float
) -> NDArray[np.float64]:
    """Return the times at which `served` first reaches each of `bits`; NaN for never."""
    index = np.searchsorted(served, bits - tolerance, side="left")
    times_us = np.full(len(bits), np.nan)
    inside = index < len(times)
    step = index[inside]
    before = np.maximum(step - 1, 0)
    rise = served[step] - served[before]
    share = np.divide(
        np.clip(bits[inside] - served[before], 0.0, rise), rise, out=np.ones(len(step)), where=rise > 0
    )
    times_us[inside] = times[before] + share * (times[step] - times[before])
    return times_us
