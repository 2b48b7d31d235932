"""Small problems of system `coflows`, and oracles that share no code with its designs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from planner_models.coflows import CoflowsInTime, Service

MBIT = 125_000.0  # bytes: 1 ms at 1,000 Mbit/s is a megabit
FlowRow = tuple[str, str, str, float]


def problem_of(
    coflows: dict[str, float],
    flows: Sequence[FlowRow],
    *,
    setup_ms: float = 10.0,
    switches: int = 1,
    packet_mbps: float = 1_000.0,
    **columns: Sequence[float],
) -> CoflowsInTime:
    """Return a problem of coflows (arrival by name) and flows (coflow, source, target, ms on a circuit).

    columns  further columns of `coflows`: weight, deadline_ms
    """
    racks = sorted({end for _, source, target, _ in flows for end in (source, target)})
    frame = pd.DataFrame(flows, columns=["coflow", "source_rack", "target_rack", "bytes"])
    return CoflowsInTime(
        racks=pd.DataFrame({"rack": racks, "circuit_mbps": 1_000.0, "packet_mbps": packet_mbps}),
        coflows=pd.DataFrame({"coflow": list(coflows), "arrival_ms": list(coflows.values()), **columns}),
        flows=frame.assign(bytes=frame["bytes"] * MBIT),
        switch=pd.DataFrame({"setup_ms": [setup_ms], "circuit_switches": [float(switches)]}),
    )


@st.composite
def problems(draw: st.DrawFn, *, most_flows: int = 12, switches: int = 2) -> CoflowsInTime:
    """Return random problems of up to four racks and four coflows."""
    racks = [f"r{index}" for index in range(draw(st.integers(2, 4)))]
    names = [f"c{index}" for index in range(draw(st.integers(1, 4)))]
    pairs = list(itertools.permutations(racks, 2))
    keys = [(name, *pair) for name in names for pair in pairs]
    first = [(name, *draw(st.sampled_from(pairs))) for name in names]
    drawings = draw(st.lists(st.sampled_from(keys), max_size=most_flows - len(first), unique=True))
    flows = [(*key, float(draw(st.integers(1, 40)))) for key in dict.fromkeys([*first, *drawings])]
    arrivals = {name: float(draw(st.sampled_from([0, 0, 5, 20, 60]))) for name in names}
    return problem_of(
        arrivals,
        flows,
        setup_ms=float(draw(st.sampled_from([0, 1, 10]))),
        switches=draw(st.integers(1, switches)),
        weight=[float(draw(st.sampled_from([1, 1, 2, 10]))) for _ in names],
    )


def circuit_plan(rows: Sequence[tuple[Any, ...]]) -> Service:
    """Return a plan of circuits (coflow, source, target, start, end, switch)."""
    columns = ["coflow", "source_rack", "target_rack", "start_ms", "end_ms", "switch"]
    return Service(circuits=pd.DataFrame(rows, columns=columns))


def serve_in_order(
    flows: Sequence[FlowRow],
    arrival: dict[str, float],
    setup: float,
    order: Sequence[int],
    switch: Sequence[int],
    weight: dict[str, float],
) -> tuple[float, list[tuple[Any, ...]]]:
    """Return the mean completion time, by weights, of whole flows in an order, and their circuits."""
    free: dict[Any, float] = {}
    last: dict[Any, int] = {}
    rows: list[tuple[Any, ...]] = []
    ends = dict.fromkeys(arrival, 0.0)
    for position in order:
        coflow, source, target, size = flows[position]
        ports = (("out", switch[position], source), ("in", switch[position], target))
        before = {last.get(port, -1) for port in ports}
        is_up = len(before) == 1 and -1 not in before
        if is_up:
            (other,) = before
            is_up = flows[other][1:3] == (source, target)
        ready = max(free.get(port, 0.0) for port in ports) + (0.0 if is_up else setup)
        start = max(arrival[coflow], ready)
        end = start + size / MBIT
        for port in ports:
            free[port], last[port] = end, position
        ends[coflow] = max(ends[coflow], end)
        rows.append((coflow, source, target, start, end, float(switch[position] + 1)))
    times = [ends[name] - arrival[name] for name in arrival]
    return float(np.average(times, weights=[weight[name] for name in arrival])), rows


def best_by_enumeration(problem: CoflowsInTime) -> tuple[float, list[tuple[Any, ...]]]:
    """Return the least mean completion time over all orders of whole flows, and all choices of switches."""
    count, switches = len(problem.flows), int(problem.switch["circuit_switches"].iloc[0])
    flows = list(problem.flows.itertuples(index=False, name=None))
    arrival = dict(zip(problem.coflows["coflow"], problem.coflows["arrival_ms"], strict=True))
    weight = dict.fromkeys(arrival, 1.0)
    if "weight" in problem.coflows:
        weight = dict(zip(problem.coflows["coflow"], problem.coflows["weight"], strict=True))
    return min(
        (
            serve_in_order(flows, arrival, problem.setup_ms, order, selected, weight)
            for order in itertools.permutations(range(count))
            for selected in itertools.product(range(switches), repeat=count)
        ),
        key=lambda result: result[0],
    )
