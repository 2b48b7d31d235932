"""Random networks with latency limits, rules and tunnels; all routes that keep them, and their programs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import linprog

from planner_models.traffic import Traffic

Paths = list[list[list[int]]]
"""The links of each path of each demand."""


def draw_network(seed: int, *, tunnels: bool = False) -> Traffic:
    """Return a network of 3 to 7 nodes whose demands have latency limits and rules."""
    random = np.random.default_rng(seed)
    count = int(random.integers(3, 8))
    names = [f"n{i}" for i in range(count)]
    ring = [(i, (i + 1) % count) for i in range(count)]
    chords = [tuple(random.choice(count, 2, replace=False).tolist()) for _ in range(random.integers(0, 10))]
    pairs = list(dict.fromkeys([*ring, *chords]))
    links = pd.DataFrame(
        [(names[a], names[b], *random.integers((1, 1, 1, 0), (20, 4, 6, 5)).astype(float)) for a, b in pairs],
        columns=["tail", "head", "capacity_mbps", "weight", "latency_ms", "cost"],
    )
    ends = {tuple(random.choice(count, 2, replace=False).tolist()) for _ in range(random.integers(1, 6))}
    demands = pd.DataFrame(
        [
            (names[a], names[b], float(random.integers(1, 12)), float(random.integers(2, 15)))
            for a, b in sorted(ends)
        ],
        columns=["source", "target", "rate_mbps", "max_latency_ms"],
    )
    demands.loc[random.random(len(demands)) < 0.4, "max_latency_ms"] = np.nan
    tables = {"links": links, "demands": demands}
    rules = [_draw_rule(random, names, pairs, sorted(ends)) for _ in range(random.integers(0, 4))]
    if rules:
        tables["rules"] = pd.DataFrame(rules)
    problem = Traffic.from_tables(tables)
    if not tunnels:
        return problem
    selected = [
        {"path": " > ".join(path_names(problem, path)), "weight": float(random.integers(0, 3))}
        for paths in find_paths(problem, only_legal=False)
        for path in paths
        if random.random() < 0.5
    ]
    middle = names[int(random.integers(count))]
    selected += [
        {"path": f"{names[a]} > {middle} > {names[b]}", "kind": "segments", "weight": 1.0}
        for a, b in sorted(ends)
        if middle not in (names[a], names[b]) and random.random() < 0.5
    ]
    if not selected:
        selected = [{"path": f"{names[0]} > {names[1]}", "weight": 1.0}]
    return Traffic.from_tables({**tables, "tunnels": pd.DataFrame(selected)})


def divide_demands(problem: Traffic, seed: int) -> Traffic:
    """Return the problem with up to three classes a pair, each with a rate and a limit of its own.

    Priorities may be equal, weights are 1.
    """
    random = np.random.default_rng(seed)
    rows = []
    for row in problem.demands.to_dict("records"):
        for name in random.choice(["voice", "video", "bulk"], int(random.integers(1, 4)), replace=False):
            limit = float(random.integers(2, 15)) if random.random() < 0.6 else np.nan
            rate = float(random.integers(1, 12))
            rows.append({**row, "class": str(name), "rate_mbps": rate, "max_latency_ms": limit})
    demands = pd.DataFrame(rows)
    names = sorted(set(demands["class"]))
    classes = pd.DataFrame({"class": names, "priority": random.integers(1, 4, len(names))})
    return replace(problem, demands=demands, classes=classes)


def solve_by_priority(problem: Traffic, paths: Paths) -> list[float]:
    """Return what each priority gets, the highest first, each the most that those before leave."""
    load, serve = _incidence(problem, paths)
    rank = problem.class_table["priority"].to_numpy()[problem.class_of]
    held: list[np.ndarray] = []
    reached: list[float] = []
    for priority in sorted(set(rank.tolist())):
        value = (rank == priority).astype(float) @ serve
        solution = linprog(
            -value,
            A_ub=np.vstack([load, serve, *(-item[None, :] for item in held)]),
            b_ub=np.r_[problem.capacity_mbps, problem.rate_mbps, [1e-9 - amount for amount in reached]],
        )
        held.append(value)
        reached.append(-float(solution.fun))
    return reached


def _draw_rule(
    random: np.random.Generator, names: list[str], pairs: list[tuple[int, int]], ends: list[tuple[int, int]]
) -> dict[str, Any]:
    rule: dict[str, Any] = {"rule": str(random.choice(["avoid", "avoid", "use"]))}
    if rule["rule"] == "use" or random.random() < 0.5:
        source, target = ends[int(random.integers(len(ends)))]
        rule |= {"source": names[source], "target": names[target]}
    tail, head = pairs[int(random.integers(len(pairs)))]
    after = [b for a, b in pairs if a == head and b != tail]
    match int(random.integers(3)):
        case 0:
            rule["node"] = names[tail]
        case 1:
            rule |= {"tail": names[tail], "head": names[head]}
        case _:
            rule["path"] = " > ".join(names[node] for node in [tail, head, *after[:1]])
    return rule


def path_names(problem: Traffic, path: list[int]) -> list[str]:
    """Return the names of the nodes of a path."""
    names = problem.nodes["node"].tolist()
    return [names[problem.tail[path[0]]], *(names[problem.head[link]] for link in path)]


def find_paths(problem: Traffic, *, only_legal: bool = True) -> Paths:
    """Return all loopless paths of each demand, by search in depth; legal ones keep its limits."""
    result: Paths = []
    for demand in range(len(problem.demands)):
        paths: list[list[int]] = []
        target = int(problem.target[demand])
        stack: list[tuple[int, list[int]]] = [(int(problem.source[demand]), [])]
        while stack:
            node, path = stack.pop()
            if node == target:
                paths.append(path)
                continue
            seen = {int(problem.source[demand]), *(int(problem.head[link]) for link in path)}
            out = np.flatnonzero(problem.tail == node).tolist()
            stack += [
                (int(problem.head[link]), [*path, link])
                for link in out
                if int(problem.head[link]) not in seen
            ]
        legal = [path for path in paths if not only_legal or is_legal(problem, demand, path)]
        result.append(legal)
    return result


def is_legal(problem: Traffic, demand: int, path: list[int]) -> bool:
    """Return whether a path keeps the limit and the rules of a demand, from the tables alone."""
    row = problem.demands.iloc[demand]
    delay = float(problem.links["latency_ms"].iloc[path].sum())
    if delay > row["max_latency_ms"] + 1e-9:  # False for NaN
        return False
    nodes, is_kept = path_names(problem, path), True
    alternatives: list[bool] = []
    for rule in [] if problem.rules is None else problem.rules.fillna("").to_dict("records"):
        ends = {name: rule.get(name, "") for name in ("source", "target")}
        if any(text and text != row[name] for name, text in ends.items()):
            continue
        requested = [rule.get("tail", ""), rule.get("head", "")]
        if rule.get("path", ""):
            requested = rule["path"].split(" > ")
        elif rule.get("node", ""):
            requested = [rule["node"]]
        passes = any(nodes[i : i + len(requested)] == requested for i in range(len(nodes)))
        if rule["rule"] == "avoid":
            is_kept &= not (requested[0] in nodes[1:-1] if len(requested) == 1 else passes)
        elif rule.get("path", ""):
            alternatives.append(passes)
        else:
            is_kept &= passes
    return is_kept and (not alternatives or any(alternatives))


def solve_over_paths(problem: Traffic, paths: Paths, objective: str) -> float:
    """Return the optimum over given paths, by scipy's linear programs over all of them."""
    return solve_program(problem, *_incidence(problem, paths), objective)


def _incidence(problem: Traffic, paths: Paths) -> tuple[np.ndarray, np.ndarray]:
    """Return the links of each path, (E, n), and its demand, (K, n)."""
    columns = [(demand, path) for demand, several in enumerate(paths) for path in several]
    load = np.zeros((len(problem.links), len(columns)))
    serve = np.zeros((len(paths), len(columns)))
    for index, (demand, path) in enumerate(columns):
        np.add.at(load[:, index], path, 1.0)
        serve[demand, index] = 1.0
    return load, serve


def solve_program(problem: Traffic, load: np.ndarray, serve: np.ndarray, objective: str) -> float:
    """Return the optimum over columns with a load on each link (E, n), each of one demand (K, n).

    Demands without a column do not count in the concurrent flow and the utilization.
    """
    rate, capacity, count = problem.rate_mbps, problem.capacity_mbps, load.shape[1]
    served = np.flatnonzero(serve.sum(axis=1))
    if objective in ("concurrent", "utilization"):
        solution = linprog(
            np.r_[np.zeros(count), 1.0],
            A_ub=np.c_[load, -capacity],
            b_ub=np.zeros(len(capacity)),
            A_eq=np.c_[serve[served], np.zeros(len(served))],
            b_eq=rate[served],
        )
        return 1 / float(solution.fun) if objective == "concurrent" else float(solution.fun)
    total = linprog(-np.ones(count), A_ub=np.r_[load, serve], b_ub=np.r_[capacity, rate])
    if objective != "cost":
        return -float(total.fun)
    solution = linprog(
        load.T @ problem.links["cost"].to_numpy(float),
        A_ub=np.r_[load, serve, -np.ones((1, count))],
        b_ub=np.r_[capacity, rate, float(total.fun) * (1 - 1e-7)],
    )
    return float(solution.fun)
