"""The largest concurrent flow at scale: column generation beside general solvers on the plain program.

    python -m benchmarks.traffic_optimum [--quick] [--limit 120] [--repeats 3] [--only NAME]

Each instance is solved to the gap of its goal, and to the default gap of `optimum` (1e-6). Times are
medians of reduction, search and plan, after a first run that compiles. The other solvers get the same
network as a linear program over links with one commodity per target. Each runs in its own process with
one thread and is stopped at the time limit; "-" means no answer by then. PDLP gets a gap of 1e-4. A program
with more than five million variables is built on the network without dead ends and chains. If it is
still larger, the other solvers are skipped.

Asserted: gaps, valid plans with the objective value that they claim, bounds that no solver beats, and
objective values that agree.
"""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd
from pebble import ProcessExpired, ProcessPool
from threadpoolctl import threadpool_limits

from benchmarks.common import machine, median_time, parser_of
from planner import Options, backends
from planner_models.flows import link_flow_program, tree_columns
from planner_models.flows.reduced_problem import ReducedProblem
from planner_models.traffic import Traffic, check, measure
from planner_models.traffic.designs import column_generation, concurrent_flow_fptas
from planner_models.traffic.problem import generators
from planner_models.traffic.problem.adjustments import adjust
from planner_models.traffic.problem.readers import topohub

SOLVERS = {"HiGHS": "highs", "GLOP": "ortools:glop", "PDLP": "ortools:pdlp"}
MAX_VARIABLES = 5_000_000
TOLERANCES = {"HiGHS": 1e-5, "GLOP": 1e-5, "PDLP": 1e-3}
"""Relative accuracy of each solver's objective value."""


@dataclass(frozen=True, kw_only=True)
class Instance:
    """A network, and the gap to reach within a time."""

    make: Callable[[], Traffic]
    gap: float
    seconds: float
    quick: bool = False


def backbone(name: str, seed: int = 1) -> Callable[[], Traffic]:
    return lambda: Traffic.from_tables(topohub.read(name, seed=seed))


def fat_tree(k: int, links: int, seed: int) -> Callable[[], Traffic]:
    def make() -> Traffic:
        fabric = generators.fat_tree(k=k, seed=seed)
        return adjust(fabric, fail_random_links=links, failure_seed=seed, lost_demands="drop")

    return make


INSTANCES = {
    "germany50": Instance(make=backbone("sndlib/germany50"), gap=1e-4, seconds=1, quick=True),
    "TataNld": Instance(make=backbone("topozoo/TataNld"), gap=1e-4, seconds=1, quick=True),
    "fat tree 8, 10 failed": Instance(make=fat_tree(8, 10, 1), gap=1e-4, seconds=1, quick=True),
    "AS7018, seed 1": Instance(make=backbone("caida/2024-08/7018"), gap=1e-4, seconds=3),
    "AS7018, seed 2": Instance(make=backbone("caida/2024-08/7018", seed=2), gap=1e-4, seconds=3),
    "AS7018, seed 3": Instance(make=backbone("caida/2024-08/7018", seed=3), gap=1e-4, seconds=3),
    "fat tree 16, 40 failed": Instance(make=fat_tree(16, 40, 1), gap=1e-4, seconds=5),
    "fat tree 16, 10 failed": Instance(make=fat_tree(16, 10, 2), gap=1e-4, seconds=5),
    "europe": Instance(make=backbone("backbone/europe"), gap=1e-3, seconds=60),
    "world": Instance(make=backbone("backbone/world"), gap=1e-2, seconds=600),
}


def main() -> None:
    """Compare the solvers on each instance."""
    parser = parser_of(__doc__, "small instances only")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for each other solver")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--only", action="append", default=None, help="only instances with this in their name; repeatable"
    )
    arguments = parser.parse_args()
    print(f"{machine()}; one thread each\n")
    for network in (backbone("sndlib/abilene"), fat_tree(4, 1, 1)):  # compiles
        column_generation.route(network())
    for name, instance in INSTANCES.items():
        is_selected = arguments.only is None or any(name_part in name for name_part in arguments.only)
        if is_selected and (instance.quick or not arguments.quick):
            compare(name, instance, arguments.limit, arguments.repeats)
    print(machine())


def compare(name: str, instance: Instance, limit: float, repeats: int) -> None:
    """Solve an instance by all solvers; print and check the results."""
    made_s, problem = median_time(instance.make, 1, warm=False)
    size = problem.size()
    variables = len(problem.targets) * len(problem.links)
    print(f"{name}: {size['nodes']:,} nodes, {size['links']:,} links, {size['demands']:,} demands", end="")
    print(f" (made in {made_s:.1f} s); {variables:,} variables over links")
    small = ReducedProblem.of(problem)
    arcs, roots = len(small.capacity_mbps), len(small.roots)
    print(f"  reduced to {small.graph.nodes:,} nodes, {arcs:,} arcs, {roots:,} roots")

    reference_s, bound, value = 0.0, None, None
    for gap in (instance.gap, tree_columns.DEFAULT_GAP):
        options = Options(gap=gap)
        solve = functools.partial(column_generation.route, problem, options=options)
        seconds, decision = median_time(solve, repeats, warm=False)
        proof, plan = decision.proof, decision.plan
        assert proof.gap is not None
        assert proof.gap <= gap, (name, proof)
        check(problem, plan)
        objective = measure(problem, plan, None)["concurrent_flow"]
        assert objective is not None
        assert abs(objective / proof.objective - 1) <= 1e-6, (name, objective, proof)
        goal = f"  goal {instance.seconds:g} s" if gap == instance.gap else ""
        print(f"  columns to {gap:.0e}   {seconds:9.3f} s   {proof.objective:.8f}  gap {proof.gap:.1e}{goal}")
        reference_s = reference_s or seconds
        bound, value = proof.bound, proof.objective

    assert bound is not None
    assert value is not None
    if variables <= 100_000:
        seconds, decision = median_time(
            lambda: concurrent_flow_fptas.route(problem, epsilon=0.1), 1, warm=False
        )
        assert decision.proof.objective <= bound * (1 + 1e-9)
        reached = f"{decision.proof.objective:.8f}  gap {decision.proof.gap:.1e}"
        print(f"  fptas, eps 0.1   {seconds:9.3f} s   {reached}")
    if variables > MAX_VARIABLES:
        reduced = solver_problem(problem)
        variables = len(reduced.targets) * len(reduced.links)
        if variables > MAX_VARIABLES:
            print("  the program over links is not built\n")
            return
        print(f"  other solvers get {variables:,} variables: the network without dead ends and chains")
    for solver, backend in SOLVERS.items():
        answer = solve_in_process(name, backend, limit)
        if answer is None:
            ratio = f"more than {limit / reference_s:,.0f} times as long"
            print(f"  {solver:16} {'-':>9}     no answer in {limit:g} s: {ratio}")
            continue
        seconds, objective = answer
        if small.fixed_utilization > 0:  # of links that the reduced problem may lack
            objective = min(objective, 1 / small.fixed_utilization)
        assert objective <= bound * (1 + TOLERANCES[solver]), (name, solver, objective, bound)
        assert abs(objective / value - 1) <= TOLERANCES[solver], (name, solver, objective, value)
        print(f"  {solver:16} {seconds:9.3f} s   {objective:.8f}  {seconds / reference_s:,.1f} times as long")
    print()


def solver_problem(problem: Traffic) -> Traffic:
    """Return the problem for other solvers: reduced where its program is too large."""
    if len(problem.targets) * len(problem.links) <= MAX_VARIABLES:
        return problem
    small = ReducedProblem.of(problem, symmetry=False)
    row, node, rate = small.pairs
    ends = (small.roots[row], node) if small.by_source else (node, small.roots[row])
    tail, head = small.graph.tail, small.graph.head
    if small.by_source:
        tail, head = head, tail
    links = {"tail": tail.astype(str), "head": head.astype(str), "capacity_mbps": small.capacity_mbps}
    demands = {"source": ends[0].astype(str), "target": ends[1].astype(str), "rate_mbps": rate}
    return Traffic.from_tables({"links": pd.DataFrame(links), "demands": pd.DataFrame(demands)})


def solve_in_process(name: str, backend: str, limit: float) -> tuple[float, float] | None:
    """Return seconds and objective value of a solver in its own process; None without an answer in time."""
    with ProcessPool(1, context=multiprocessing.get_context("spawn")) as pool:
        # the time to build network and program is added to the limit, and not measured
        job = pool.schedule(_solve, (name, backend, limit), timeout=limit + 120.0)
        with contextlib.suppress(TimeoutError, ProcessExpired):
            return job.result()
    return None


def _solve(name: str, backend: str, limit: float) -> tuple[float, float] | None:
    program = link_flow_program.build(solver_problem(INSTANCES[name].make()), "concurrent").program
    gap = 1e-4 if backend.endswith("pdlp") else None
    options = Options(backend=backend, time_limit_s=limit, threads=1, gap=gap)
    with threadpool_limits(limits=1):
        seconds, solution = median_time(lambda: backends.solve(program, options), 1, warm=False)
    is_solved = str(solution.status) == "optimal" or gap is not None
    if solution.objective is None or not is_solved or seconds > 1.2 * limit:
        return None
    return seconds, solution.objective


if __name__ == "__main__":
    main()
