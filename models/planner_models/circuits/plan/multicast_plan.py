"""Plans with circuits to several racks: days by the rack that each rack receives from, and transmissions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.search.tolerances import NEGLIGIBLE
from planner_models.circuits.plan.check import derive_carried
from planner_models.circuits.plan.plan import (
    IDLE,
    Schedule,
    fill_packet_switch,
    packet_table,
    port_map,
    time_needed_us,
    unserved_table,
)
from planner_models.circuits.problem.problem import Circuits


@dataclass(frozen=True, kw_only=True, eq=False)
class MulticastDay:
    """Circuits that stay up for a while, those of a sender to one rack or to several.

    duration_us    how long
    source         (n,) rack that each rack receives from, or IDLE
    transmissions  multicast, first bit and amount of what circuits to several racks send
    switch         whose day it is, from 0
    """

    duration_us: float
    source: NDArray[np.int64]
    transmissions: tuple[tuple[int, float, float], ...] = ()
    switch: int = 0


def make_plan(problem: Circuits, days: Sequence[MulticastDay]) -> tuple[Schedule, float, float]:
    """Return the plan of these days, of each switch in succession, with the most that the packet switch adds.

    Each day follows a night. A circuit to one rack carries what its pair needs, copies of multicasts
    included.

    returns  the plan, the bits that it serves, and when it is done, us
    """
    plan, end_us = _tabulate(problem, [day for day in days if (day.source != IDLE).any()])
    carried = derive_carried(problem, plan).circuit_bits[problem.pairs]
    remaining = np.clip(problem.pair_bits - carried, 0.0, None)
    remaining[remaining <= NEGLIGIBLE * problem.pair_bits] = 0.0  # rounding
    extra = fill_packet_switch(problem, remaining)
    by_circuits = np.where(remaining > 0, carried, problem.pair_bits)
    finish_us = max(end_us, time_needed_us(*problem.pairs, extra, problem.packet_mbps))
    plan = replace(
        plan,
        packet=packet_table(problem, extra),
        ports=port_map(problem, plan.configurations),
        unserved=unserved_table(problem, remaining - extra),
    )
    return plan, float((by_circuits + extra).sum()), float(finish_us)


def _tabulate(problem: Circuits, days: Sequence[MulticastDay]) -> tuple[Schedule, float]:
    """Return the circuits of days, each after a night, and the end of the last one, us."""
    ends, starts = np.zeros(problem.switches), np.zeros(len(days))
    for index, day in enumerate(days):
        starts[index] = ends[day.switch] + problem.night_us
        ends[day.switch] = starts[index] + day.duration_us
    order = np.argsort(starts, kind="stable")
    circuits: list[tuple[int, float, float, int, int, int]] = []
    sent: list[tuple[int, str, float, float]] = []
    names = problem.multicast_demands.names
    for number, index in enumerate(order.tolist(), start=1):
        day = days[index]
        target = np.flatnonzero(day.source != IDLE)
        for i, j in sorted(zip(day.source[target].tolist(), target.tolist(), strict=True)):
            circuits.append((number, starts[index], day.duration_us, i, j, day.switch + 1))
        sent += [(number, names[k], first, bits) for k, first, bits in day.transmissions if bits > 0]
    frame = pd.DataFrame(
        circuits, columns=["day", "start_us", "duration_us", "source", "target", "switch"]
    ).astype({"day": int, "source": int, "target": int})
    ends_of = problem.name_pairs(*(frame[end].to_numpy(np.int64) for end in ("source", "target")))
    configurations = frame[["day", "start_us", "duration_us"]].assign(**ends_of)
    if problem.switches > 1:
        configurations["switch"] = frame["switch"]
    transmissions = pd.DataFrame(sent, columns=["day", "multicast", "first_bit", "bits"]).astype(
        {"day": int, "multicast": configurations["source_rack"].dtype, "first_bit": float, "bits": float}
    )
    plan = Schedule(
        configurations=configurations,
        packet=packet_table(problem, np.zeros(len(problem.pair_bits))),
        transmissions=transmissions,
    )
    return plan, float(ends.max())


def cut_transmissions(problem: Circuits, frame: pd.DataFrame | None) -> pd.DataFrame | None:
    """Return the transmissions without data beyond the end of their multicasts."""
    if frame is None or problem.multicasts is None:
        return None
    ends = problem.multicasts.groupby("multicast")["bits"].first()
    last = frame["multicast"].map(ends).fillna(0.0).to_numpy(float)
    bits = np.minimum(frame["bits"].to_numpy(float), last - frame["first_bit"].to_numpy(float))
    cut: pd.DataFrame = frame.assign(bits=bits)[bits > 0]
    return cut
