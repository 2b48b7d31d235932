"""The largest concurrent flow as a user would write it: planner beside cvxpy, Pyomo and networkx.

    python -m benchmarks.traffic_peers [--quick] [--repeats 3]

Times begin with tables in memory and end with the answer: building, solving and, for planner, the plan.
cvxpy gets the model in matrices and solves it with HiGHS. Pyomo gets the formulation of the paper, with
one commodity per target. networkx supports one commodity only, so it is compared on the largest flow of
one demand.

Asserted: all find the same value.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import networkx as nx
import numpy as np
import scipy.sparse as sp

from benchmarks.common import machine, median_time, parser_of
from planner import Options
from planner_models.traffic import Traffic
from planner_models.traffic.designs.optimum import optimum
from planner_models.traffic.problem import generators
from planner_models.traffic.problem.readers import topohub

Solve = Callable[[Traffic], float]
OBJECTIVE: Final = "concurrent"


def solve_by_planner(problem: Traffic) -> float:
    return optimum.route(problem, objective=OBJECTIVE).proof.objective or 0.0


def solve_by_planner_lp(problem: Traffic) -> float:
    return optimum.route(problem, objective=OBJECTIVE, method="lp").proof.objective or 0.0


def solve_by_cvxpy(problem: Traffic) -> float:
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
            flow @ sp.csr_matrix(problem.incidence.T) == factor * surplus,
            cp.sum(flow, axis=0) <= problem.capacity_mbps,
        ],
    )
    return float(model.solve(solver=cp.HIGHS))


def solve_by_pyomo(problem: Traffic) -> float:
    options = Options(backend="pyomo:highs")
    return optimum.route(problem, objective=OBJECTIVE, options=options).proof.objective or 0.0


def solve_by_networkx(problem: Traffic) -> float:
    graph = nx.DiGraph()
    for link in problem.links.to_dict(orient="records"):
        before = graph.get_edge_data(link["tail"], link["head"], {"capacity": 0.0})["capacity"]
        graph.add_edge(link["tail"], link["head"], capacity=before + link["capacity_mbps"])
    [demand] = problem.demands.to_dict(orient="records")
    flow = float(nx.maximum_flow_value(graph, demand["source"], demand["target"]))
    return flow / float(demand["rate_mbps"])


def keep_first_demand(problem: Traffic) -> Traffic:
    """Return the problem with its first demand only."""
    return Traffic(nodes=problem.nodes, links=problem.links, demands=problem.demands.iloc[:1])


def measure(name: str, problem: Traffic, tools: dict[str, Solve], repeats: int) -> None:
    """Print a row for each tool: median seconds, their ratio to the first tool's, and the value."""
    values, seconds = {}, {}
    for tool, solve in tools.items():
        seconds[tool], values[tool] = median_time(partial(solve, problem), repeats)
    first = next(iter(tools))
    for tool in tools:
        ratio = seconds[tool] / seconds[first]
        print(f"{name:<24}{tool:<20}{seconds[tool]:>10.3f} s{ratio:>9.1f} x   {values[tool]:.6f}")
        assert abs(values[tool] - values[first]) <= 2e-6 * values[first], f"{tool} disagrees on {name}"


def main() -> None:
    """Compare the tools on each network."""
    parser = parser_of(__doc__, "the small networks only")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    print(f"{machine()}, medians of {arguments.repeats}")
    tools: dict[str, Solve] = {
        "planner": solve_by_planner,
        "planner, plain LP": solve_by_planner_lp,
        "cvxpy": solve_by_cvxpy,
        "Pyomo": solve_by_pyomo,
    }
    networks = {"abilene": generators.abilene(), "germany50": generators.germany50()}
    if not arguments.quick:
        networks["TataNld"] = Traffic.from_tables(topohub.read("topozoo/TataNld", seed=1))
    for name, problem in networks.items():
        measure(name, problem, tools, arguments.repeats)
        alone = keep_first_demand(problem)
        measure(
            f"{name}, one demand",
            alone,
            {"planner": solve_by_planner, "networkx": solve_by_networkx},
            arguments.repeats,
        )


if __name__ == "__main__":
    main()
