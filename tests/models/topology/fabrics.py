"""Small random fabrics, and oracles that share no code with the designs."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from scipy.optimize import linprog

from planner_models.topology import Fabric

NAMES = "abcde"


def fabric(
    demand: Any, *, ports: Any = 4, port_mbps: Any = 10.0, links: Any = None, **limits: float
) -> Fabric:
    """Return the problem of an (n, n) demand, with (row, column, links) of today."""
    matrix = np.asarray(demand, dtype=float)
    source, target = np.nonzero(matrix)
    names = np.array(list(NAMES[: len(matrix)]))
    tables = {
        "blocks": pd.DataFrame({"block": names, "ports": ports, "port_mbps": port_mbps}),
        "demands": pd.DataFrame(
            {"source": names[source], "target": names[target], "rate_mbps": matrix[source, target]}
        ),
    }
    if links is not None:
        rows = [(NAMES[item], NAMES[other], float(count)) for item, other, count in links]
        tables["links"] = pd.DataFrame(rows, columns=["block", "other_block", "links"])
    if limits:
        tables["fabric"] = pd.DataFrame({name: [value] for name, value in limits.items()})
    return Fabric.from_tables(tables)


@st.composite
def fabrics(draw: st.DrawFn, most_ports: int = 4, with_links: bool | None = None) -> Fabric:
    """Draw three or four blocks of two speeds, demands of whole numbers, and perhaps links of today."""
    count = draw(st.integers(3, 4))
    values = draw(st.lists(st.integers(0, 9), min_size=count * count, max_size=count * count))
    demand = np.array(values, dtype=float).reshape(count, count)
    np.fill_diagonal(demand, 0.0)
    if not demand.any():
        demand[0, 1] = 1.0
    ports = np.array(draw(st.lists(st.integers(1, most_ports), min_size=count, max_size=count)))
    speed = np.array(draw(st.lists(st.sampled_from([10.0, 20.0]), min_size=count, max_size=count)))
    links, limits = None, {}
    if draw(st.booleans()) if with_links is None else with_links:
        links, free = [], ports.copy()
        for item, other in itertools.combinations(range(count), 2):
            made = draw(st.integers(0, 2))
            made = min(made, int(free[item]), int(free[other]))
            free[[item, other]] -= made
            links.append((item, other, made))
        limits = {"move_limit": float(draw(st.integers(0, 4))), "step_limit": float(draw(st.integers(1, 2)))}
    return fabric(demand, ports=ports.astype(float), port_mbps=speed, links=links, **limits)


def scale_by_oracle(problem: Fabric, links: np.ndarray) -> float:
    """Return the largest demand scale over (n, n) links, by a program with a variable for each path."""
    count, names = len(problem.blocks), list(problem.blocks["block"])
    speed = problem.blocks["port_mbps"].to_numpy(float)
    rows = [
        (names.index(a), names.index(b), rate)
        for a, b, rate in problem.demands.itertuples(index=False)
        if rate > 0
    ]
    paths = [
        (d, tuple(dict.fromkeys([i, k, j])))
        for d, (i, j, _) in enumerate(rows)
        for k in [i, *(k for k in range(count) if k not in (i, j))]
    ]
    arcs = list(itertools.permutations(range(count), 2))
    upper = np.zeros((len(arcs), len(paths) + 1))
    for index, (_, path) in enumerate(paths):
        for arc in itertools.pairwise(path):
            upper[arcs.index(arc), index] += 1
    largest = [links[a, b] * min(speed[a], speed[b]) for a, b in arcs]
    equal = np.zeros((len(rows), len(paths) + 1))
    for index, (d, _) in enumerate(paths):
        equal[d, index] = 1
    equal[:, -1] = [-rate for _, _, rate in rows]
    cost = np.zeros(len(paths) + 1)
    cost[-1] = -1
    solution = linprog(cost, A_ub=upper, b_ub=largest, A_eq=equal, b_eq=np.zeros(len(rows)))
    assert solution.status == 0
    return -float(solution.fun)


def topologies(problem: Fabric) -> Any:
    """Yield all (n, n) links within the ports and the limit on moves."""
    count = len(problem.blocks)
    ports = problem.blocks["ports"].to_numpy(int)
    pairs = list(itertools.combinations(range(count), 2))
    today = np.zeros((count, count))
    names = list(problem.blocks["block"])
    if problem.links is not None:
        for a, b, made in problem.links.itertuples(index=False):
            today[names.index(a), names.index(b)] = today[names.index(b), names.index(a)] = made
    limit = None if problem.fabric is None else float(problem.fabric["move_limit"].iloc[0])
    for selected in itertools.product(*(range(min(ports[a], ports[b]) + 1) for a, b in pairs)):
        links = np.zeros((count, count))
        for (a, b), made in zip(pairs, selected, strict=True):
            links[a, b] = links[b, a] = made
        if (links.sum(axis=1) > ports).any():
            continue
        if limit is not None and np.maximum(links - today, 0).sum() / 2 > limit:
            continue
        yield links
