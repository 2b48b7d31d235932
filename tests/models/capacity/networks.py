"""Small random problems of system `capacity`, and an oracle that shares no code with its designs."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from planner_models.capacity import CapacityPlanning

DIRECTIONS = ("undirected", "bidirected", "directed")


def problem_of(links: list[Any], demands: Any, **tables: Any) -> CapacityPlanning:
    """Return a problem of links (tail, head, capacity, further columns), demands, and further tables."""
    columns = ["tail", "head", "capacity_mbps", "length_km", "setup_cost", "routing_cost"]
    modules = [("m", 10.0, 4.0)]
    inputs = {
        "links": pd.DataFrame(links, columns=columns[: len(links[0])]),
        "demands": demands
        if isinstance(demands, pd.DataFrame)
        else pd.DataFrame(demands, columns=["source", "target", "rate_mbps"]),
        "modules": pd.DataFrame(modules, columns=["module", "capacity_mbps", "cost"]),
        **tables,
    }
    return CapacityPlanning.from_tables(inputs)


def ring(links: list[Any] | None = None, demands: Any = None, **tables: Any) -> CapacityPlanning:
    """Return a ring of three nodes with one demand, 15 Mbit/s from a to c."""
    ends = [("a", "b", 10.0), ("b", "c", 10.0), ("a", "c", 0.0)]
    return problem_of(links or ends, [("a", "c", 15.0)] if demands is None else demands, **tables)


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
        links += [(head, tail, *remainder) for tail, head, *remainder in links]
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
    index = {name: position for position, name in enumerate(problem.nodes["node"])}
    arcs = [
        (index[a], index[b], row) for row, (a, b) in enumerate(zip(lines["tail"], lines["head"], strict=True))
    ]
    if problem.direction != "directed":
        arcs += [(b, a, row) for a, b, row in arcs]
    nodes, count, demands = len(index), len(arcs), len(problem.demands)
    balance = np.zeros((nodes, count))
    for position, (a, b, _) in enumerate(arcs):
        balance[a, position] += 1
        balance[b, position] -= 1
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
    for position, (a, b, row) in enumerate(arcs):
        shares.setdefault((row, (a, b) if problem.direction == "bidirected" else 0), []).append(position)
    upper = np.zeros((len(shares), columns))
    for number, positions in enumerate(shares.values()):
        for position in positions:
            upper[number, position : demands * count : count] = 1.0
    largest = np.array([capacity[row] for row, _ in shares])
    cost = np.concatenate([np.zeros(demands * count), np.ones(demands)])
    bounds = [(0, None)] * (demands * count) + [(0, item) for item in rate.tolist()]
    solution = linprog(cost, A_ub=upper, b_ub=largest, A_eq=equal, b_eq=right, bounds=bounds)
    assert solution.status == 0
    return float(solution.fun)


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
        current = counts[line * len(modules) : (line + 1) * len(modules)]
        unit = modules["cost"].to_numpy() + modules["cost_per_km"].to_numpy() * lines["length_km"].iloc[line]
        total += float(current @ unit) + (lines["setup_cost"].iloc[line] if current.any() else 0.0)
    return total


def least_cost_by_enumeration(problem: CapacityPlanning, upper: int, below: float) -> float:
    """Return the least cost of all counts up to `upper` of each module under which all fits.

    below  only cheaper counts are tried; it is returned where none of them is enough
    """
    size = np.tile(problem.modules["capacity_mbps"].to_numpy(float), len(problem.lines))
    line = np.repeat(np.arange(len(problem.lines)), len(problem.modules))
    choices = []
    for selected in itertools.product(range(upper + 1), repeat=len(size)):
        counts = np.array(selected, dtype=float)
        cost = cost_by_oracle(problem, counts)
        if cost < below - 1e-9:
            choices.append((cost, selected))
    for cost, selected in sorted(choices):
        added = np.bincount(line, weights=np.array(selected) * size, minlength=len(problem.lines))
        capacity = problem.installed_mbps + added
        if fits_by_oracle(problem, capacity):
            return cost
    return below


def restricted_problem(seed: int, *, years: int = 1, routing: bool = False) -> CapacityPlanning:
    """Return a random problem with three classes, tunnels for about half of the demands, and failures."""
    rng = np.random.default_rng(seed)
    base = random_problem(seed, years=years)
    classes = pd.DataFrame(
        [("gold", 1.0, 1.0), ("silver", 2.0, 0.5), ("bulk", 3.0, 0.0)],
        columns=["class", "priority", "protected_share"],
    )
    demands = pd.concat(
        [base.demands.assign(**{"class": name}) for name in ("gold", "silver", "bulk") if rng.random() < 0.7]
        or [base.demands.assign(**{"class": "gold"})],
        ignore_index=True,
    )
    demands["rate_mbps"] = rng.integers(1, 6, len(demands)).astype(float)
    links = base.links.assign(routing_cost=rng.integers(0, 2, len(base.links)) * 0.5 * routing)
    paths = []
    for source, target in dict.fromkeys(zip(demands["source"], demands["target"], strict=True)):
        names = simple_paths(base, source, target)
        if rng.random() < 0.5:
            selected = rng.permutation(len(names))[: int(rng.integers(1, 3))]
            paths += [" > ".join(names[position][0]) for position in selected.tolist()]
    tables = base.to_tables() | {"demands": demands, "classes": classes, "links": links}
    if paths:
        tables["tunnels"] = pd.DataFrame({"path": paths})
    problem = CapacityPlanning.from_tables(tables)
    lines = problem.names if problem.direction != "directed" else problem.names[:5]
    chosen_lines = [name for name in lines if rng.random() < 0.6]
    if not chosen_lines:
        return problem
    tables["failures"] = pd.DataFrame({"failure": chosen_lines, "member": chosen_lines})
    return CapacityPlanning.from_tables(tables)


def simple_paths(problem: CapacityPlanning, source: str, target: str) -> list[tuple[list[str], list[Any]]]:
    """Return all paths without a circle: their nodes, and link and direction of each step."""
    steps: dict[str, list[tuple[str, Any]]] = {}
    for row, (tail, head) in enumerate(zip(problem.lines["tail"], problem.lines["head"], strict=True)):
        steps.setdefault(tail, []).append((head, (row, 0)))
        if problem.direction != "directed":
            steps.setdefault(head, []).append((tail, (row, 1)))
    result: list[tuple[list[str], list[Any]]] = []
    waiting: list[tuple[list[str], list[Any]]] = [([source], [])]
    while waiting:
        nodes, links = waiting.pop()
        if nodes[-1] == target:
            result.append((nodes, links))
            continue
        waiting += [
            ([*nodes, node], [*links, step]) for node, step in steps.get(nodes[-1], []) if node not in nodes
        ]
    return result


def limit_latency(problem: CapacityPlanning, seed: int) -> CapacityPlanning:
    """Return a problem with delays of links, and limits of about two thirds of its demands."""
    rng = np.random.default_rng(seed)
    tables = problem.to_tables()
    delay = rng.integers(1, 6, len(problem.links)).astype(float)
    limit = rng.choice([3.0, 6.0, 9.0, np.nan], len(problem.demands), p=[0.1, 0.3, 0.3, 0.3])
    return CapacityPlanning.from_tables(
        tables
        | {
            "links": tables["links"].assign(latency_ms=delay),
            "demands": tables["demands"].assign(max_latency_ms=limit),
        }
    )


class _PathProgram:
    """An integer program of purchases with the traffic on each path of each demand in each state."""

    def __init__(self, problem: CapacityPlanning) -> None:
        self.problem, lines = problem, problem.lines
        self.sizes = problem.modules["capacity_mbps"].to_numpy(float)
        length = lines["length_km"].to_numpy(float)
        self.cost = [
            float(module["cost"] + module["cost_per_km"] * length[line])
            for line in range(len(lines))
            for _, module in problem.modules.iterrows()
        ]
        bought = len(self.cost)
        self.cost += lines["setup_cost"].tolist()
        self.upper = [50.0] * bought + [1.0] * len(lines)
        self.whole = len(self.cost)
        self.rows: list[dict[int, float]] = []
        self.limits: list[tuple[float, float]] = []
        for column in range(bought):
            self.add({column: 1.0, bought + column // len(self.sizes): -50.0}, -np.inf, 0.0)

    def add(self, row: dict[int, float], low: float, high: float) -> None:
        self.rows.append(row)
        self.limits.append((low, high))

    def paths_of(self, demand: dict[Any, Any], down: set[int]) -> list[list[Any]]:
        """Return the paths of a demand that are up and fast enough, as steps, or those of its tunnels."""
        source, target = demand["source"], demand["target"]
        limit = demand.get("max_latency_ms", np.nan)
        lines = self.problem.lines
        delay = lines["latency_ms"] if "latency_ms" in lines else lines["length_km"] / 200.0
        tunnels = [] if self.problem.tunnels is None else self.problem.tunnels["path"].tolist()
        current = [path.split(" > ") for path in tunnels]
        if self.problem.direction == "undirected":
            current += [path[::-1] for path in current]
        current = [path for path in current if (path[0], path[-1]) == (source, target)]
        return [
            steps
            for nodes, steps in simple_paths(self.problem, source, target)
            if not any(line in down for line, _ in steps)
            and (not current or nodes in current)
            and (np.isnan(limit) or sum(delay.iloc[line] for line, _ in steps) <= limit + 1e-9)
        ]

    def add_state(self, down: set[int], share: dict[Any, float], *, is_normal: bool) -> None:
        """Add the traffic of a state: each demand sends its share, where it has a path."""
        lines = self.problem.lines
        load: dict[Any, dict[int, float]] = {}
        for demand in self.problem.demands.to_dict(orient="records"):
            paths = self.paths_of(demand, down)
            if not paths:
                continue
            columns = range(len(self.cost), len(self.cost) + len(paths))
            for column, steps in zip(columns, paths, strict=True):
                price = sum(float(lines["routing_cost"].iloc[line]) for line, _ in steps)
                self.cost.append(price * is_normal)
                self.upper.append(np.inf)
                for line, way in steps:
                    key = line, way if self.problem.direction == "bidirected" else 0
                    load.setdefault(key, {})[column] = 1.0
            fraction = 1.0 if is_normal else share.get(demand.get("class"), 1.0)
            self.add(dict.fromkeys(columns, 1.0), demand["rate_mbps"] * fraction, np.inf)
        for (line, _), used in load.items():
            first = line * len(self.sizes)
            bought = {first + kind: -float(size) for kind, size in enumerate(self.sizes)}
            self.add(used | bought, -np.inf, float(lines["capacity_mbps"].iloc[line]))

    def solve(self) -> float:
        matrix = np.zeros((len(self.rows), len(self.cost)))
        for entries, row in enumerate(self.rows):
            matrix[entries, list(row)] = list(row.values())
        low, high = np.array(self.limits).T
        solution = milp(
            np.array(self.cost),
            constraints=LinearConstraint(matrix, low, high),
            bounds=Bounds(0, self.upper),
            integrality=(np.arange(len(self.cost)) < self.whole).astype(int),
            options={"mip_rel_gap": 0.0},
        )
        assert solution.status == 0
        return float(solution.fun)


def least_cost_on_paths(problem: CapacityPlanning) -> float:
    """Return the least cost of a problem of one year; each failure is of one link.

    One integer program over all paths of each demand in each state; it shares no code with the designs.
    """
    program = _PathProgram(problem)
    share = {}
    if problem.classes is not None:
        share = dict(zip(problem.classes["class"], problem.classes["protected_share"], strict=True))
    program.add_state(set(), share, is_normal=True)
    for name in [] if problem.failures is None else problem.failures["member"]:
        program.add_state({problem.names.index(name)}, share, is_normal=False)
    return program.solve()
