"""The largest concurrent flow as a user would write it: planner beside cvxpy, Pyomo and networkx.

    python -m benchmarks.traffic_peers [--quick] [--repeats 3]

Times are of everything from the tables in memory to the answer: building, solving and, for planner,
the plan. cvxpy gets the model in whole matrices and HiGHS to solve it, Pyomo the formulation as it
is printed in the paper, with one commodity a target. networkx knows one commodity only, so it is
beside planner on the largest flow of one demand.

Asserted: all find the same value.
"""

from __future__ import annotations

import argparse
import importlib
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import scipy.sparse as sp

from planner import Options
from planner_models.traffic import Traffic, generate, optimum
from planner_models.traffic.readers import topohub

Way = Callable[[Traffic], float]


def by_planner(problem: Traffic) -> float:
    return optimum.route(problem).proof.objective or 0.0


def by_planner_lp(problem: Traffic) -> float:
    return optimum.route(problem, method="lp").proof.objective or 0.0


def by_cvxpy(problem: Traffic) -> float:
    cp: Any = importlib.import_module("cvxpy")

    nodes, links = len(problem.nodes), len(problem.links)
    row = np.searchsorted(problem.targets, problem.target)
    surplus = np.zeros((len(problem.targets), nodes))
    np.add.at(surplus, (row, problem.source), problem.rate_mbps)
    np.add.at(surplus, (row, problem.target), -problem.rate_mbps)
    flow = cp.Variable((len(problem.targets), links), nonneg=True)
    factor = cp.Variable()
    model = cp.Problem(
        cp.Maximize(factor),
        [
            flow @ sp.csr_matrix(problem.balance.T) == factor * surplus,
            cp.sum(flow, axis=0) <= problem.capacity_mbps,
        ],
    )
    return float(model.solve(solver=cp.HIGHS))


def by_pyomo(problem: Traffic) -> float:
    return optimum.route(problem, options=Options(backend="pyomo:highs")).proof.objective or 0.0


def by_networkx(problem: Traffic) -> float:
    graph = nx.DiGraph()
    for link in problem.links.to_dict(orient="records"):
        before = graph.get_edge_data(link["tail"], link["head"], {"capacity": 0.0})["capacity"]
        graph.add_edge(link["tail"], link["head"], capacity=before + link["capacity_mbps"])
    [demand] = problem.demands.to_dict(orient="records")
    flow = float(nx.maximum_flow_value(graph, demand["source"], demand["target"]))
    return flow / float(demand["rate_mbps"])


def one_demand(problem: Traffic) -> Traffic:
    """The problem with its first demand alone."""
    return Traffic(nodes=problem.nodes, links=problem.links, demands=problem.demands.iloc[:1])


def measure(name: str, problem: Traffic, ways: dict[str, Way], repeats: int) -> None:
    """A row for each way: median seconds, its ratio to the first way, the value."""
    values, seconds = {}, {}
    for way, solve in ways.items():
        solve(problem)  # imports and compiles
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            values[way] = solve(problem)
            times.append(time.perf_counter() - start)
        seconds[way] = statistics.median(times)
    first = next(iter(ways))
    for way in ways:
        ratio = seconds[way] / seconds[first]
        print(f"{name:<24}{way:<20}{seconds[way]:>10.3f} s{ratio:>9.1f} x   {values[way]:.6f}")
        assert abs(values[way] - values[first]) <= 2e-6 * values[first], f"{way} disagrees on {name}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="the small networks only")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, medians of {arguments.repeats}")
    ways: dict[str, Way] = {
        "planner": by_planner,
        "planner, plain LP": by_planner_lp,
        "cvxpy": by_cvxpy,
        "Pyomo": by_pyomo,
    }
    networks = {"abilene": generate.abilene(), "germany50": generate.germany50()}
    if not arguments.quick:
        networks["TataNld"] = Traffic.from_tables(topohub.read("topozoo/TataNld", seed=1))
    for name, problem in networks.items():
        measure(name, problem, ways, arguments.repeats)
        alone = one_demand(problem)
        measure(
            f"{name}, one demand", alone, {"planner": by_planner, "networkx": by_networkx}, arguments.repeats
        )


if __name__ == "__main__":
    main()
