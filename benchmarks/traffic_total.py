"""The largest total flow at scale: the augmented Lagrangian and the interior-point method beside solvers.

    python -m benchmarks.traffic_total [--quick] [--limit 60] [--only NAME] [--small-rates]

Networks are random sparse backbones with as many nodes and lines as those of the Topology Zoo that are
called Deltacom, Cogentco and Kdl: a minimum spanning tree of random points, and short lines besides. Every
pair of nodes has a demand, by a gravity model or uniform, at four loads: 1 fills the busiest link by shortest
paths. Times are user CPU seconds of one thread, after a first run that compiles. Other solvers get the linear
program over links with one commodity per target, or the one over the same given paths, each in its own
process with a time limit; "-" means no answer by then. PDLP gets a gap of 1e-4. A program with more than a
million variables is not built.

With `--small-rates`, demands of 1e-6 to 1e-5 and of 1e-9 to 1e-3 Mbit/s between all pairs of the largest
network are routed for the total, concurrent and max-min fair flow and the least cost, each within the limit
in CPU seconds.

Asserted: valid plans that deliver what they claim, bounds that no solver beats, and values that agree; of
small rates, that the total flow, the concurrent flow and all levels of the max-min fair one are proven, that
the lowest of these is the concurrent flow, and the gap of the least cost.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import time
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
import scipy.sparse as sp
from pebble import ProcessExpired, ProcessPool
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial import Delaunay
from threadpoolctl import threadpool_limits

from benchmarks.common import machine, parser_of
from planner import Options, Status, backends, clock
from planner_models.flows import (
    interior_point,
    link_flow_program,
    path_flow_program,
)
from planner_models.flows.augmented_lagrangian import TotalFlow
from planner_models.flows.link_flow_program import Objective
from planner_models.traffic import Traffic, check, measure
from planner_models.traffic.designs import path_flows, utility_maximization
from planner_models.traffic.designs.optimum import optimum
from planner_models.traffic.plan.flow_decision import routing_of_paths
from planner_models.traffic.problem.readers.topohub import shortest_path_load

SOLVERS: Final = {"HiGHS": "highs", "GLOP": "ortools:glop", "PDLP": "ortools:pdlp"}
TOLERANCES: Final = {"HiGHS": 1e-5, "GLOP": 1e-5, "PDLP": 1e-3}
MAX_VARIABLES: Final = 1_000_000
GAPS: Final = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
CAPACITY_CLASSES_MBPS: Final = np.array([1_000.0, 2_500.0, 4_000.0, 10_000.0])

Demands = Literal["gravity", "uniform"]


@dataclass(frozen=True, kw_only=True)
class Instance:
    """A random backbone with demands between all nodes."""

    nodes: int
    lines: int
    demands: Demands
    load: float

    def make(self) -> Traffic:
        """Return the problem; the seed is the number of nodes."""
        random = np.random.default_rng(self.nodes)
        ends = sparse_backbone(self.nodes, self.lines, random)
        tail, head = ends.reshape(-1), ends[:, ::-1].reshape(-1)
        source, target = np.nonzero(~np.eye(self.nodes, dtype=bool))
        if self.demands == "gravity":
            mass = np.bincount(tail, minlength=self.nodes) * random.exponential(1.0, self.nodes)
            rate = mass[source] * mass[target]
            rate = np.maximum(rate, 1e-6 * rate.max())
        else:
            rate = random.uniform(0.0, 1.0, len(source))
        load = shortest_path_load(
            nodes=self.nodes,
            tail=tail,
            head=head,
            weight=np.ones(len(tail)),
            source=source,
            target=target,
            rate=rate,
        )
        scale = CAPACITY_CLASSES_MBPS[-1] / load.max()
        wider = np.repeat(load.reshape(-1, 2).max(axis=1), 2) * scale * (1 - 1e-9)
        capacity = CAPACITY_CLASSES_MBPS[np.minimum(np.searchsorted(CAPACITY_CLASSES_MBPS, wider), 3)]
        name = np.arange(self.nodes).astype(str)
        links = {"tail": name[tail], "head": name[head], "capacity_mbps": capacity}
        demands = {"source": name[source], "target": name[target], "rate_mbps": self.load * scale * rate}
        return Traffic.from_tables({"links": pd.DataFrame(links), "demands": pd.DataFrame(demands)})


def sparse_backbone(nodes: int, lines: int, random: np.random.Generator) -> np.ndarray:
    """Return the ends of lines, (lines, 2): a spanning tree of random points, and short lines besides."""
    points = random.random((nodes, 2))
    corners = Delaunay(points).simplices
    edges = np.unique(
        np.sort(np.vstack([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]]])), axis=0
    )
    length = np.linalg.norm(points[edges[:, 0]] - points[edges[:, 1]], axis=1)
    graph = sp.csr_array((length, (edges[:, 0], edges[:, 1])), shape=(nodes, nodes))
    tree = minimum_spanning_tree(graph).tocoo()
    in_tree = np.isin(
        edges @ [nodes, 1], np.minimum(tree.row, tree.col) * nodes + np.maximum(tree.row, tree.col)
    )
    others = np.flatnonzero(~in_tree)
    order = others[np.argsort(length[others] * random.lognormal(0.0, 0.5, len(others)))]
    return edges[np.r_[np.flatnonzero(in_tree), order[: lines - int(in_tree.sum())]]]


SIZES: Final = {"113 nodes": (113, 161), "197 nodes": (197, 243), "754 nodes": (754, 895)}
LOADS: Final = (1.2, 2.0, 4.0, 8.0)
SMALL_RATES_MBPS: Final = ((1e-6, 1e-5), (1e-9, 1e-3))
LARGEST_GAPS: Final[dict[Objective | Literal["max-min"], float]] = {
    "total": 1e-5, "concurrent": 1e-5, "cost": 5e-2, "max-min": 1e-6,
}  # fmt: skip


def main() -> None:
    """Compare the solvers on each instance, and print times by the number of demands."""
    parser = parser_of(__doc__, "the smallest network only")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each other solver")
    parser.add_argument("--gap", type=float, default=1e-5)
    parser.add_argument("--only", default="", help="only networks with this in their name")
    parser.add_argument("--small-rates", action="store_true", help="only the instances of small rates")
    arguments = parser.parse_args()
    print(f"{machine()}; user CPU seconds, one thread\n")
    if arguments.small_rates:
        nodes, lines = SIZES["113 nodes" if arguments.quick else "754 nodes"]
        for lowest, highest in SMALL_RATES_MBPS:
            route_small_rates(nodes, lines, lowest, highest, arguments.limit)
        return
    warm = Instance(nodes=20, lines=28, demands="gravity", load=3.0).make()
    path_flows.route_most(warm)
    over_paths(warm, "warm", None, silent=True)
    points: list[tuple[int, float]] = []
    for name, (nodes, lines) in SIZES.items():
        if arguments.only not in name or (arguments.quick and nodes > 113):
            continue
        for demands in ("gravity", "uniform"):
            for load in LOADS:
                instance = Instance(nodes=nodes, lines=lines, demands=demands, load=load)
                points.append(
                    compare(f"{name}, {demands}, load {load:g}", instance, arguments.gap, arguments.limit)
                )
        instance = Instance(nodes=nodes, lines=lines, demands="gravity", load=2.0)
        problem = instance.make()
        over_paths(problem, f"{name}, 4 disjoint paths", arguments.limit if nodes < 150 else None)
    if len({demands for demands, _ in points}) > 1:
        x, y = np.log(np.array(points)).T
        print(f"\ntime to a gap of 1e-3 grows with demands to the power of {np.polyfit(x, y, 1)[0]:.2f}")


def compare(name: str, instance: Instance, gap: float, limit: float) -> tuple[int, float]:
    """Solve an instance by all solvers, print and check; return its demands and CPU seconds to 1e-3."""
    problem = instance.make()
    print(f"{name}: {len(problem.demands):,} demands, {len(problem.links):,} links")
    started, search = time.process_time(), TotalFlow(problem)
    reached: dict[float, float] = {}
    for step in search.run(gap=gap):
        seconds = time.process_time() - started
        for goal in GAPS:
            if 1 - step.value / step.bound <= goal:
                reached.setdefault(goal, seconds)
    plan = routing_of_paths(problem, search.order, search.path_flow())
    check(problem, plan)
    delivered = measure(problem, plan, None)["delivered_mbps"]
    assert delivered is not None
    assert abs(delivered / search.value - 1) <= 1e-6, (delivered, search.value)
    assert search.value <= search.bound * (1 + 1e-9)
    times = "  ".join(f"{goal:.0e}: {seconds:.2f}" for goal, seconds in reached.items())
    gap_now = 1 - search.value / search.bound
    print(f"  planner   {search.value:14.4f}  gap {gap_now:.1e}  {times}  end: {seconds:.2f}")
    if instance.load == 2.0 and len(problem.targets) * len(problem.links) <= MAX_VARIABLES:
        for solver, backend in SOLVERS.items():
            answer = in_process(solve_links, (instance, backend, limit), limit)
            report(solver, answer, search.value, search.bound, limit)
    print(flush=True)
    return len(problem.demands), reached.get(1e-3, math.nan)


def route_small_rates(nodes: int, lines: int, lowest: float, highest: float, limit: float) -> None:
    """Route demands of small rates, of which not all fit, for four objectives; print and check each.

    lowest, highest  Mbit/s, between which logarithms of rates are uniform
    """
    problem = Instance(nodes=nodes, lines=lines, demands="uniform", load=1.0).make()
    random = np.random.default_rng(nodes)
    rate = 10.0 ** random.uniform(math.log10(lowest), math.log10(highest), len(problem.demands))
    capacity = problem.capacity_mbps * rate.sum() / problem.rate_mbps.sum() / 2.0  # half of what would fit
    cost = random.integers(1, 20, len(problem.links) // 2).repeat(2).astype(float)
    links = problem.links.assign(capacity_mbps=capacity, cost=cost)
    tables = {"links": links, "demands": problem.demands.assign(rate_mbps=rate)}
    problem = Traffic.from_tables(tables)
    print(f"{len(problem.demands):,} demands of {lowest:g} to {highest:g} Mbit/s, {len(links):,} links")
    options = Options(threads=1, time_limit_s=limit)
    values: dict[str, float] = {}
    for objective, largest_gap in LARGEST_GAPS.items():
        started = time.process_time()
        with clock.count_cpu_seconds():
            if objective == "max-min":
                decision = utility_maximization.route(problem, fairness="max-min", options=options)
            else:
                decision = optimum.route(problem, objective=objective, options=options)
        seconds = time.process_time() - started
        assert decision.plan is not None
        broken = check(problem, decision.plan).of_limits(decision.guarantees)
        assert not len(broken), broken.sentences()
        proof = decision.proof
        metrics = measure(problem, decision.plan, None)
        assert proof.metric is not None
        value, objective_value = metrics[proof.metric], proof.objective
        assert value is not None
        assert objective_value is not None
        assert abs(value - objective_value) <= 1e-6 * abs(objective_value), (objective, value, proof)
        assert proof.gap is not None
        print(f"  {objective:12} {objective_value:14.6f}  gap {proof.gap:.1e}  {seconds:.2f}", flush=True)
        assert 0 <= proof.gap <= largest_gap, (objective, proof)
        assert objective == "cost" or proof.status is Status.OPTIMAL, (objective, proof)
        values[objective] = objective_value
    lowest = min(values["concurrent"], 1.0)
    assert abs(values["max-min"] - lowest) <= 1e-5 * lowest, values


def over_paths(problem: Traffic, name: str, limit: float | None, *, silent: bool = False) -> None:
    """Solve over four disjoint paths a pair; with a limit beside HiGHS."""
    started = time.process_time()
    paths = path_flow_program.find_paths(problem, count=4, choice="disjoint")
    searched = time.process_time() - started
    options, lines = Options(threads=1), []
    goals: tuple[tuple[Objective, Any], ...] = (
        ("total", interior_point.solve_total),
        ("utilization", interior_point.solve_utilization),
    )
    for goal, solve in goals:
        if len(problem.demands) > 100_000:
            continue
        started = time.process_time()
        solution = solve(problem, paths, options)
        seconds = time.process_time() - started
        assert solution.objective is not None
        line = f"  {goal:12} {solution.objective:14.6f}  {seconds:.2f}"
        if limit is not None:
            program = path_flow_program.build(problem, goal, paths)
            started = time.process_time()
            other = backends.solve(program, Options(threads=1, time_limit_s=limit))
            line += f"   HiGHS {time.process_time() - started:.2f} {other.status}"
            if str(other.status) == "optimal":
                assert other.objective is not None
                assert abs(solution.objective / other.objective - 1) <= 1e-6, (
                    goal,
                    solution,
                    other.objective,
                )
        lines.append(line)
    if not silent:
        print(
            f"{name}: {len(paths.demand):,} paths found in {searched:.2f}", *lines, "", sep="\n", flush=True
        )


def report(solver: str, answer: tuple[float, float] | None, value: float, bound: float, limit: float) -> None:
    """Print and check the answer of another solver."""
    if answer is None:
        print(f"  {solver:9} {'-':>14}  no answer in {limit:g} s")
        return
    seconds, objective = answer
    tolerance = TOLERANCES[solver]
    assert objective <= bound * (1 + tolerance), (solver, objective, bound)
    assert objective >= value * (1 - tolerance), (solver, objective, value)
    print(f"  {solver:9} {objective:14.4f}  {seconds:.2f}")


def in_process(function: Any, arguments: tuple[Any, ...], limit: float) -> Any:
    """Return the result of a function in its own process; None without an answer in time."""
    with ProcessPool(1, context=multiprocessing.get_context("spawn")) as pool:
        job = pool.schedule(function, arguments, timeout=limit + 60.0)
        with contextlib.suppress(TimeoutError, ProcessExpired):
            return job.result()
    return None


def solve_links(instance: Instance, backend: str, limit: float) -> tuple[float, float] | None:
    program = link_flow_program.build(instance.make(), "total").program
    gap = 1e-4 if backend.endswith("pdlp") else None
    options = Options(backend=backend, time_limit_s=limit, threads=1, gap=gap)
    with threadpool_limits(limits=1):
        started = time.process_time()
        solution = backends.solve(program, options)
        seconds = time.process_time() - started
    is_solved = str(solution.status) == "optimal" or gap is not None
    return (seconds, solution.objective) if solution.objective is not None and is_solved else None


if __name__ == "__main__":
    main()
