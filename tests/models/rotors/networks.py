"""Small random networks, and oracles that share no code with the designs."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy.optimize import linprog

from planner_models.rotors import RotorNetwork
from planner_models.rotors.problem.generators import build


@st.composite
def networks(draw: st.DrawFn, most_racks: int = 5) -> RotorNetwork:
    """Draw a few racks of two rates, demands of whole numbers, and switches with nights."""
    racks = draw(st.integers(3, most_racks))
    values = draw(st.lists(st.integers(0, 60), min_size=racks * racks, max_size=racks * racks))
    demand = np.array(values, dtype=float).reshape(racks, racks)
    np.fill_diagonal(demand, 0.0)
    if not demand.any():
        demand[0, 1] = 40.0
    rate = np.array(draw(st.lists(st.sampled_from([50.0, 100.0]), min_size=racks, max_size=racks)))
    day, night = draw(st.sampled_from([20.0, 90.0])), draw(st.sampled_from([0.0, 7.0, 10.0]))
    return build(
        demand,
        rate,
        draw(st.sampled_from([0.0, 0.3])),
        count=draw(st.integers(1, 3)),
        day_us=day,
        night_us=night,
        schedule_night_us=draw(st.sampled_from([10.0, 40.0])),
        week_us=400.0,
        order_seed=draw(st.sampled_from([None, 1.0, 2.0])),
    )


def mean_capacity(problem: RotorNetwork) -> np.ndarray:
    """Return the (n, n) mean capacity over a cycle, Mbit/s, from the numbers of racks and switches alone."""
    racks, row = len(problem.racks), problem.switches.iloc[0]
    positions = -(-(racks - 1) // int(row["count"]))
    night = 0.0 if positions == 1 else row["night_us"]
    rate = problem.racks["circuit_mbps"].to_numpy(float)
    share = row["day_us"] / (positions * (row["day_us"] + night))
    capacity = np.minimum.outer(rate, rate) * share
    np.fill_diagonal(capacity, 0.0)
    return capacity


def most_by_any_route(capacity: np.ndarray, demand: np.ndarray) -> float:
    """Return the most of all demands that routes of any number of links deliver: flows by source on links."""
    racks = len(demand)
    arcs = list(itertools.permutations(range(racks), 2))
    requested = [(i, j) for i, j in arcs if demand[i, j] > 0]
    flows = [(source, arc) for source in range(racks) for arc in arcs]
    columns = len(flows) + len(requested)
    upper = np.zeros((len(arcs), columns))
    for index, (_, arc) in enumerate(flows):
        upper[arcs.index(arc), index] = 1.0
    rows: list[np.ndarray] = []
    for source, node in itertools.product(range(racks), repeat=2):
        if source == node:
            continue
        row = np.zeros(columns)
        for index, (start, (tail, head)) in enumerate(flows):
            if start == source:
                row[index] += float(head == node) - float(tail == node)
        if (source, node) in requested:
            row[len(flows) + requested.index((source, node))] = -1.0
        rows.append(row)
    limits: list[Any] = [(0, None)] * len(flows) + [(0, demand[pair]) for pair in requested]
    cost = np.concatenate([np.zeros(len(flows)), -np.ones(len(requested))])
    largest = [capacity[arc] for arc in arcs]
    solution = linprog(
        cost, A_ub=upper, b_ub=largest, A_eq=np.array(rows), b_eq=np.zeros(len(rows)), bounds=limits
    )
    assert solution.status == 0
    return -float(solution.fun)
