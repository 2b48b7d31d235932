"""Small random problems of system `capacity`, and an oracle that shares no code with its designs."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import linprog

from planner_models.capacity import CapacityPlanning

DIRECTIONS = ("undirected", "bidirected", "directed")


def problem_of(links: list[Any], demands: list[Any], **tables: Any) -> CapacityPlanning:
    """Return a problem of links (tail, head, capacity, further columns), demands, and further tables."""
    columns = ["tail", "head", "capacity_mbps", "length_km", "setup_cost", "routing_cost"]
    modules = [("m", 10.0, 4.0)]
    given = {
        "links": pd.DataFrame(links, columns=columns[: len(links[0])]),
        "demands": pd.DataFrame(demands, columns=["source", "target", "rate_mbps"]),
        "modules": pd.DataFrame(modules, columns=["module", "capacity_mbps", "cost"]),
        **tables,
    }
    return CapacityPlanning.from_tables(given)


def ring(links: list[Any] | None = None, demands: list[Any] | None = None, **tables: Any) -> CapacityPlanning:
    """Return a ring of three nodes with one demand, 15 Mbit/s from a to c."""
    ends = [("a", "b", 10.0), ("b", "c", 10.0), ("a", "c", 0.0)]
    return problem_of(links or ends, demands or [("a", "c", 15.0)], **tables)


def random_problem(seed: int, *, modules: int = 1, years: int = 1) -> CapacityPlanning:
    """Return a random problem of four nodes and five links, of any direction, with every link's failure."""
    rng = np.random.default_rng(seed)
    ends = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a"), ("a", "c")]
    links = [
        (*pair, float(rng.integers(0, 3)) * 4, float(rng.integers(1, 9)), float(rng.integers(0, 2)) * 3)
        for pair in ends
    ]
    direction = DIRECTIONS[seed % 3]
    if direction == "directed":
        links += [(head, tail, *rest) for tail, head, *rest in links]
    pairs = [pair for pair in itertools.permutations("abcd", 2) if rng.random() < 0.3] or [("a", "c")]
    tables: dict[str, Any] = {
        "modules": pd.DataFrame(
            [("small", 5.0, 3.0, 0.1), ("large", 12.0, 5.0, 0.2)][:modules],
            columns=["module", "capacity_mbps", "cost", "cost_per_km"],
        ),
        "network": pd.DataFrame({"direction": [direction]}),
    }
    if years > 1:
        tables["years"] = pd.DataFrame(
            {
                "year": range(1, years + 1),
                "demand_factor": 1.0 + 0.5 * np.arange(years),
                "price_factor": 0.8 ** np.arange(years),
            }
        )
    demands = [(*pair, float(rng.integers(1, 5))) for pair in pairs]
    return problem_of(links, demands, **tables)


def shed_by_oracle(problem: CapacityPlanning, capacity: np.ndarray, rate: np.ndarray) -> float:
    """Return the least rate that must be shed, by a linear program with a commodity for each demand."""
    lines = problem.lines
    index = {name: place for place, name in enumerate(problem.nodes["node"])}
    arcs = [
        (index[a], index[b], row) for row, (a, b) in enumerate(zip(lines["tail"], lines["head"], strict=True))
    ]
    if problem.direction != "directed":
        arcs += [(b, a, row) for a, b, row in arcs]
    nodes, count, demands = len(index), len(arcs), len(problem.demands)
    balance = np.zeros((nodes, count))
    for place, (a, b, _) in enumerate(arcs):
        balance[a, place] += 1
        balance[b, place] -= 1
    columns = demands * count + demands
    equal = np.zeros((demands * nodes, columns))
    right = np.zeros(demands * nodes)
    pairs = zip(problem.demands["source"], problem.demands["target"], strict=True)
    for demand, (source, target) in enumerate(pairs):
        rows = slice(demand * nodes, (demand + 1) * nodes)
        equal[rows, demand * count : (demand + 1) * count] = balance
        for node, sign in ((index[source], 1.0), (index[target], -1.0)):
            equal[demand * nodes + node, demands * count + demand] = sign
            right[demand * nodes + node] = sign * rate[demand]
    shares: dict[Any, list[int]] = {}
    for place, (a, b, row) in enumerate(arcs):
        shares.setdefault((row, (a, b) if problem.direction == "bidirected" else 0), []).append(place)
    upper = np.zeros((len(shares), columns))
    for number, places in enumerate(shares.values()):
        for place in places:
            upper[number, place : demands * count : count] = 1.0
    most = np.array([capacity[row] for row, _ in shares])
    cost = np.concatenate([np.zeros(demands * count), np.ones(demands)])
    bounds = [(0, None)] * (demands * count) + [(0, one) for one in rate.tolist()]
    done = linprog(cost, A_ub=upper, b_ub=most, A_eq=equal, b_eq=right, bounds=bounds)
    assert done.status == 0
    return float(done.fun)


def fits_by_oracle(problem: CapacityPlanning, capacity: np.ndarray) -> bool:
    """Return whether all demands fit in every state of a problem of one year; none is cut off."""
    downs = [np.zeros(len(capacity), dtype=bool), *problem.states.link_down]
    for state, down in enumerate(downs):
        rate = np.where(problem.cut_off[state], 0.0, problem.rate_mbps[0])
        if shed_by_oracle(problem, np.where(down, 0.0, capacity), rate) > 1e-6:
            return False
    return True


def cost_by_oracle(problem: CapacityPlanning, counts: np.ndarray) -> float:
    """Return what modules cost with setup, in one year, from the tables."""
    total, lines, modules = 0.0, problem.lines, problem.modules
    for line in range(len(lines)):
        mine = counts[line * len(modules) : (line + 1) * len(modules)]
        unit = modules["cost"].to_numpy() + modules["cost_per_km"].to_numpy() * lines["length_km"].iloc[line]
        total += float(mine @ unit) + (lines["setup_cost"].iloc[line] if mine.any() else 0.0)
    return total


def least_cost_by_enumeration(problem: CapacityPlanning, most: int, below: float) -> float:
    """Return the least cost of all counts up to `most` of each module under which all fits.

    below  only cheaper counts are tried; it is returned where none of them is enough
    """
    size = np.tile(problem.modules["capacity_mbps"].to_numpy(float), len(problem.lines))
    line = np.repeat(np.arange(len(problem.lines)), len(problem.modules))
    choices = []
    for chosen in itertools.product(range(most + 1), repeat=len(size)):
        counts = np.array(chosen, dtype=float)
        cost = cost_by_oracle(problem, counts)
        if cost < below - 1e-9:
            choices.append((cost, chosen))
    for cost, chosen in sorted(choices):
        added = np.bincount(line, weights=np.array(chosen) * size, minlength=len(problem.lines))
        capacity = problem.installed_mbps + added
        if fits_by_oracle(problem, capacity):
            return cost
    return below
