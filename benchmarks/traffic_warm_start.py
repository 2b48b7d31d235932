"""Searches over all routes from nothing and from the plan before: passes and user CPU seconds of one thread.

    python -m benchmarks.traffic_warm_start [--quick] [--only NAME]

The plan before is of the same network. Since then every rate has changed by a factor, log-normal with a
standard deviation of 1% or 10%, or a line has failed. Networks are those of `benchmarks.traffic_total` at
twice the load that shortest paths carry, and some of `benchmarks.traffic_optimum`. Passes are those of
coordinate descent and of the master problem for the concurrent flow, and of the augmented Lagrangian for the
total flow; the others have none. "tables" is the concurrent flow from the tables of the plan before, as they
are read from a file; "4 paths" are the flows over the four shortest paths of each demand, whose search is not
timed: from nothing by the interior-point method, warm by the simplex method.

"limited" is the most delivered traffic where at most 5% of the traffic may leave the routes of single
shortest paths: its gap, and the seconds with and without that limit.

Asserted: the same objective value, within the gap.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import traffic_fairness
from benchmarks.common import machine, parser_of
from benchmarks.traffic_optimum import INSTANCES
from benchmarks.traffic_total import SIZES, Instance
from planner import Options
from planner.backends import Solution
from planner.contract.design import Decision
from planner_models.flows import given_path_flow, interior_point, tree_columns
from planner_models.flows.augmented_lagrangian import TotalFlow
from planner_models.flows.link_flow_program import Objective
from planner_models.flows.path_flow_program import find_paths
from planner_models.flows.previous_routes import PreviousRoutes
from planner_models.flows.previous_trees import find_trees
from planner_models.flows.reduced_problem import ReducedProblem
from planner_models.traffic import Traffic, measure
from planner_models.traffic.designs import column_generation, ecmp, path_flows
from planner_models.traffic.designs.optimum import optimum
from planner_models.traffic.plan.plan import Routing

GAPS: Final = {
    "total": 1e-4,
    "concurrent": 1e-6,
    "tables": 1e-6,
    "cost": 1e-6,
    "concurrent, 4 paths": 1e-6,
    "total, 4 paths": 1e-6,
}
MOST_MOVED: Final = 0.05  # of the traffic
QUICK: Final = ("germany50", "113 nodes", "TataNld")


class Outcome(NamedTuple):
    """Objective value, passes and CPU seconds of a search."""

    value: float
    passes: int
    seconds: float


def main() -> None:
    """Print a row for each objective, network and change."""
    parser = parser_of(__doc__, "the smallest networks only")
    parser.add_argument("--only", default="", help="only networks with this in their name")
    arguments = parser.parse_args()
    print(f"{machine()}; user CPU seconds, one thread\n")
    print(f"{'objective':20} {'network':10} {'demands':>8}  {'change':6} {'from nothing':>16} {'warm':>16}")
    with threadpool_limits(limits=1):
        small = Instance(nodes=20, lines=28, demands="gravity", load=2.0).make()
        for search in SEARCHES.values():  # compiles
            search(traffic_fairness.with_costs(small), search(traffic_fairness.with_costs(small), None)[1])
        for name, make in networks().items():
            if arguments.only in name and (not arguments.quick or name in QUICK):
                problem = make()
                for objective in SEARCHES:
                    if len(problem.demands) <= MOST_EFFORT.get(objective, 10_000_000):
                        print_rows(name, objective, problem)
                if len(problem.demands) <= 40_000:
                    print_limited(name, problem)
    print(machine())


def networks() -> dict[str, Callable[[], Traffic]]:
    """Return the maker of each network."""
    made: dict[str, Callable[[], Traffic]] = {
        name: Instance(nodes=nodes, lines=lines, demands="gravity", load=2.0).make
        for name, (nodes, lines) in SIZES.items()
    }
    return {
        **{name: INSTANCES[name].make for name in ("germany50", "TataNld")},
        **made,
        "europe": INSTANCES["europe"].make,
    }


def print_rows(name: str, objective: str, problem: Traffic) -> None:
    """Print a row for each change of a network."""
    problem = traffic_fairness.with_costs(problem) if objective == "cost" else problem
    search = SEARCHES[objective]
    before = search(problem, None)[1]
    for change, other in changes(problem):
        cold, warm = search(other, None)[0], search(other, before)[0]
        assert abs(cold.value / warm.value - 1) <= 2 * GAPS[objective], (name, objective, cold, warm)
        parts = "".join(f"  {outcome.passes:5} in {outcome.seconds:5.2f} s" for outcome in (cold, warm))
        print(f"{objective:20} {name:10} {len(problem.demands):8,}  {change:6} {parts}", flush=True)


def changes(problem: Traffic) -> Iterator[tuple[str, Traffic]]:
    """Yield problems that differ little: other rates, and a line less that cuts no demand off."""
    random = np.random.default_rng(0)
    for change in (0.01, 0.1):
        factor = random.lognormal(0, change, len(problem.demands))
        yield f"{change:.0%}", problem.with_rates(problem.rate_mbps * factor)
    for link in random.permutation(len(problem.links)).tolist():
        ends = {problem.tail[link], problem.head[link]}
        down = np.isin(problem.tail, list(ends)) & np.isin(problem.head, list(ends))
        if not problem.disconnected_demands(~down).any():
            yield "line", problem.without_links(down)
            return


def search_concurrent(problem: Traffic, before: Any) -> tuple[Outcome, Any]:
    """Search for the largest concurrent flow, from trees."""
    started = time.process_time()
    reduced = ReducedProblem.of(problem)
    result = tree_columns.search(reduced, start=find_trees(reduced, before), gap=GAPS["concurrent"])
    seconds = time.process_time() - started
    decision = before
    if before is None:
        decision = column_generation.route(problem, options=Options(gap=GAPS["concurrent"]))
    return Outcome(1 / result.utilization, len(result.trace), seconds), decision


def search_total(problem: Traffic, before: Decision[Routing] | None) -> tuple[Outcome, Any]:
    """Search for the largest total flow, from paths."""
    started = time.process_time()
    start = None if before is None or before.plan is None else PreviousRoutes.of(problem, before.plan)
    search, passes = TotalFlow(problem, start=start), 0
    for state in search.run(gap=GAPS["total"]):
        passes = state.passes
    seconds = time.process_time() - started
    decision = before or path_flows.route_most(problem, exact=False, options=Options(gap=GAPS["total"]))
    return Outcome(search.value, passes, seconds), decision


def search_cost(problem: Traffic, before: Decision[Routing] | None) -> tuple[Outcome, Any]:
    """Search for the least cost of the most traffic, from a basis with paths."""
    started = time.process_time()
    decision = path_flows.route_cheapest(problem, previous=before)
    assert decision.proof.objective is not None
    return Outcome(decision.proof.objective, 0, time.process_time() - started), decision


def search_tables(problem: Traffic, before: Decision[Routing] | None) -> tuple[Outcome, Any]:
    """Search for the largest concurrent flow, from trees that the tables of a plan are taken apart into."""
    outcome, decision = search_concurrent(problem, before)
    return outcome, before or Decision(plan=decision.plan, proof=decision.proof)


def search_concurrent_paths(problem: Traffic, before: Decision[Routing] | None) -> tuple[Outcome, Any]:
    """Search for the largest concurrent flow over four paths of each demand."""
    return _search_paths(problem, before, "concurrent")


def search_total_paths(problem: Traffic, before: Decision[Routing] | None) -> tuple[Outcome, Any]:
    """Search for the largest total flow over four paths of each demand."""
    return _search_paths(problem, before, "total")


def _search_paths(
    problem: Traffic, before: Decision[Routing] | None, objective: Objective
) -> tuple[Outcome, Any]:
    paths = find_paths(problem, count=4)
    is_total = objective == "total"
    solution: Solution | None
    started = time.process_time()
    if before is None or before.plan is None:
        solve = interior_point.solve_total if is_total else interior_point.solve_utilization
        solution = solve(problem, paths, Options())
    else:
        start = PreviousRoutes.of(problem, before.plan).among(paths)
        by_simplex = given_path_flow.solve_total if is_total else given_path_flow.solve_utilization
        solution = by_simplex(problem, paths, start, Options())
    seconds = time.process_time() - started
    assert solution is not None
    assert solution.objective is not None
    value = solution.objective if is_total else 1 / solution.objective
    decision = before or optimum.route(problem, objective=objective, paths=4)
    return Outcome(value, 0, seconds), decision


def print_limited(name: str, problem: Traffic) -> None:
    """Print a row for a limit of rerouted traffic, with a counted plan and a gap of at most 1%."""
    before = ecmp.route_single(problem)
    _, now = next(changes(problem))
    started = time.process_time()
    free = optimum.route(now)
    freely = time.process_time() - started
    started = time.process_time()
    made = optimum.route(now, most_moved=MOST_MOVED, previous=before)
    seconds = time.process_time() - started
    gap, moved = made.proof.gap, measure(now, made.plan, before.plan)["moved_share"] if made.plan else None
    assert gap is not None, name
    assert gap <= 0.01, (name, gap)
    assert moved is not None, name
    assert moved <= MOST_MOVED + 1e-6, (name, moved)
    assert free.proof.objective is not None
    assert made.proof.objective is not None
    assert made.proof.objective <= free.proof.objective * (1 + 1e-6)
    print(
        f"{'limited':20} {name:10} {len(problem.demands):8,}  gap {gap:.1e}  moved {moved:.2%}"
        f"  {seconds:.2f} s, without the limit {freely:.2f} s",
        flush=True,
    )


SEARCHES: Final = {
    "concurrent": search_concurrent,
    "tables": search_tables,
    "concurrent, 4 paths": search_concurrent_paths,
    "total": search_total,
    "total, 4 paths": search_total_paths,
    "cost": search_cost,
}
MOST_EFFORT: Final = {"cost": 40_000, "concurrent, 4 paths": 40_000, "total, 4 paths": 40_000}  # demands


if __name__ == "__main__":
    main()
