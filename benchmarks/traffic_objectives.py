"""Every objective of traffic at scale in one run: a row for each objective and network, beside other solvers.

    python -m benchmarks.traffic_objectives [--quick] [--limit 60] [--only NAME]

Networks are those of `benchmarks.traffic_total`, with a demand between all nodes, at four loads and with two
kinds of demands; and the continental backbones of `benchmarks.traffic_optimum`. A row gives the median and
the worst user CPU seconds of one thread over its instances, after a first run that compiles, and those of
other solvers on one of the instances: gravity demands at load 2. "-" means no answer within the limit, or a
program of more than a million variables. At the end, how times grow with the number of demands.

Asserted: valid plans, gaps, bounds that no solver beats, and values that agree.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import traffic_fairness, traffic_optimum, traffic_total
from benchmarks.common import machine, parser_of
from benchmarks.traffic_total import LOADS, MAX_VARIABLES, SIZES, SOLVERS, TOLERANCES, Instance, in_process
from planner import Options, Status, backends
from planner.contract.design import Decision
from planner.contract.proof import Proof
from planner_models.flows import interior_point, path_flow_program
from planner_models.traffic import Traffic, check
from planner_models.traffic.designs import column_generation, path_flows, utility_maximization
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.plan.verified_flow import verify_flow

GAPS: Final = {"113 nodes": 1e-6, "197 nodes": 1e-5, "754 nodes": 1e-4}
LARGEST_WITH_LEVELS: Final = 200  # nodes
PEER_LOAD: Final = 2.0
WARM: Final = Instance(nodes=20, lines=28, demands="gravity", load=3.0)


@dataclass
class Row:
    """CPU seconds of an objective on the instances of a network, and of other solvers on one of them."""

    objective: str
    network: str
    demands: int
    seconds: list[float] = field(default_factory=list)
    peers: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        median, worst = statistics.median(self.seconds), max(self.seconds)
        peers = "  ".join(self.peers)
        return f"{self.objective:32} {self.network:10} {self.demands:9,} {median:8.2f} {worst:8.2f}   {peers}"


def main() -> None:
    """Print a row for each objective and network, and times by size."""
    parser = parser_of(__doc__, "the smallest network only")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each other solver")
    parser.add_argument("--only", default="", help="only networks with this in their name")
    arguments = parser.parse_args()
    sizes = {name: size for name, size in SIZES.items() if arguments.only in name}
    if arguments.quick:
        sizes = {name: size for name, size in sizes.items() if size[0] <= 113}
    print(f"{machine()}; user CPU seconds, one thread\n")
    print(
        f"{'objective':32} {'network':10} {'demands':>9} {'median':>8} {'worst':>8}   other solvers",
        flush=True,
    )
    compile_all()
    rows: list[Row] = []
    with threadpool_limits(limits=1):
        for row in all_rows(
            sizes, arguments.limit, with_backbones=not arguments.quick and not arguments.only
        ):
            print(row, flush=True)
            rows.append(row)
    print()
    for objective in dict.fromkeys(row.objective.partition(" to ")[0] for row in rows):
        ours = [row for row in rows if row.objective.partition(" to ")[0] == objective]
        points = [(row.demands, statistics.median(row.seconds)) for row in ours]
        if len({demands for demands, _ in points}) > 1:
            x, y = np.log(np.array(points)).T
            print(f"{objective}: time grows with demands to the power of {np.polyfit(x, y, 1)[0]:.2f}")
    print(machine())


def all_rows(sizes: dict[str, tuple[int, int]], limit: float, *, with_backbones: bool) -> Iterator[Row]:
    """Yield the rows, objective by objective."""
    for name, (nodes, lines) in sizes.items():
        yield from total_rows(name, nodes, lines, limit)
    for name, (nodes, lines) in sizes.items():
        if nodes <= LARGEST_WITH_LEVELS:
            yield level_row(name, nodes, lines, limit)
            yield cost_row(name, nodes, lines, limit)
    for name, (nodes, lines) in sizes.items():
        yield from path_rows(name, nodes, lines, limit)
    for name in ("europe", "world") if with_backbones else ():
        yield concurrent_row(name)


def compile_all() -> None:
    """Run every search once on a small network."""
    warm = traffic_fairness.with_costs(WARM.make())
    for gap in (1e-3, 1e-9):
        path_flows.route_most(warm, options=Options(gap=gap))
    utility_maximization.route(warm, fairness="max-min")
    path_flows.route_cheapest(warm)
    column_generation.route(warm)
    column_generation.route(traffic_optimum.fat_tree(4, 1, 1)())
    over_paths(warm)


def instances(nodes: int, lines: int) -> Iterator[Instance]:
    """Yield the instances of a network; the second is the one that other solvers get."""
    for demands in ("gravity", "uniform"):
        for load in LOADS:
            yield Instance(nodes=nodes, lines=lines, demands=demands, load=load)


def peer_instance(nodes: int, lines: int) -> Instance:
    """Return the instance that other solvers get."""
    return Instance(nodes=nodes, lines=lines, demands="gravity", load=PEER_LOAD)


def solve(row: Row, problem: Traffic, work: Callable[[], Decision[Routing]]) -> tuple[Proof, Routing]:
    """Run a search, add its CPU seconds to the row, check its plan, and return proof and plan."""
    started = time.process_time()
    decision = work()
    row.seconds.append(time.process_time() - started)
    assert decision.plan is not None
    check(problem, decision.plan)
    return decision.proof, decision.plan


def total_rows(name: str, nodes: int, lines: int, limit: float) -> Iterator[Row]:
    """Yield the rows of the largest total flow; on the largest network to a gap of 1e-3 too."""
    for gap in sorted({GAPS[name], *([1e-3] if nodes > LARGEST_WITH_LEVELS else [])}, reverse=True):
        row = Row(f"total to {gap:.0e}", name, nodes * (nodes - 1))
        for instance in instances(nodes, lines):
            problem = instance.make()
            options = Options(gap=gap)
            proof, _ = solve(row, problem, partial(path_flows.route_most, problem, options=options))
            assert proof.gap is not None
            assert proof.gap <= gap, (instance, proof)
            if instance == peer_instance(nodes, lines) and nodes <= LARGEST_WITH_LEVELS:
                add_total_peers(row, instance, proof, limit)
        yield row


def add_total_peers(row: Row, instance: Instance, proof: Proof, limit: float) -> None:
    """Add the times of other solvers on the program over links."""
    value, bound = proof.objective or 0.0, proof.bound or 0.0
    for solver, backend in SOLVERS.items():
        answer = in_process(traffic_total.solve_links, (instance, backend, limit), limit)
        row.peers.append(f"{solver} {'-' if answer is None else f'{answer[0]:.1f}'}")
        if answer is not None:
            tolerance = TOLERANCES[solver]
            assert value * (1 - tolerance) <= answer[1] <= bound * (1 + tolerance), (solver, answer, value)


def level_row(name: str, nodes: int, lines: int, limit: float) -> Row:
    """Return the row of all levels of max-min fairness, by shares of demands."""
    row = Row("max-min fairness, all levels", name, nodes * (nodes - 1))
    for instance in instances(nodes, lines):
        problem = instance.make()
        work = partial(utility_maximization.route, problem, fairness="max-min")
        _, plan = solve(row, problem, work)
        assert plan.levels is not None
        assert (plan.levels["bound"] <= plan.levels["value"] * (1 + 1e-6)).all()
        if instance == peer_instance(nodes, lines):
            answer = in_process(traffic_fairness.solve_levels, (instance, limit), limit)
            row.peers.append(f"HiGHS {'-' if answer is None else f'{answer[0]:.1f}'}")
            if answer is not None:
                shares = verify_flow(problem, plan).served_mbps / problem.rate_mbps
                assert np.allclose(np.sort(shares), np.sort(answer[2]), rtol=1e-4)
    return row


def cost_row(name: str, nodes: int, lines: int, limit: float) -> Row:
    """Return the row of the least cost among the routings that deliver the most."""
    row = Row("cost of the most traffic", name, nodes * (nodes - 1))
    for instance in instances(nodes, lines):
        problem = traffic_fairness.with_costs(instance.make())
        proof, plan = solve(row, problem, partial(path_flows.route_cheapest, problem))
        assert proof.status is Status.OPTIMAL
        if instance == peer_instance(nodes, lines):
            delivered = float(verify_flow(problem, plan).served_mbps.sum())
            answer = in_process(traffic_fairness.solve_cost, (instance, delivered, limit), limit)
            row.peers.append(f"HiGHS {'-' if answer is None else f'{answer[0]:.1f}'}")
            if answer is not None:
                assert abs((proof.objective or 0.0) / answer[1] - 1) <= 1e-5
    return row


def over_paths(problem: Traffic) -> tuple[path_flow_program.CandidatePaths, dict[str, tuple[float, float]]]:
    """Return four disjoint paths a pair, and CPU seconds and value of the search, and of each objective."""
    started = time.process_time()
    paths = path_flow_program.find_paths(problem, count=4, choice="disjoint")
    times = {"search": (time.process_time() - started, 0.0)}
    if len(problem.demands) <= 100_000:
        for objective, method in (
            ("total", interior_point.solve_total),
            ("utilization", interior_point.solve_utilization),
        ):
            started = time.process_time()
            value = method(problem, paths, Options(threads=1)).objective
            assert value is not None
            times[objective] = time.process_time() - started, value
    return paths, times


def path_rows(name: str, nodes: int, lines: int, limit: float) -> Iterator[Row]:
    """Yield the rows over four disjoint paths a pair: the search for them, total and concurrent flow."""
    rows: dict[str, Row] = {}
    for instance in instances(nodes, lines):
        if instance.load != PEER_LOAD:
            continue
        problem = instance.make()
        paths, times = over_paths(problem)
        for name_of_part, (seconds, value) in times.items():
            row = rows.setdefault(
                name_of_part, Row(f"4 disjoint paths: {name_of_part}", name, len(problem.demands))
            )
            row.seconds.append(seconds)
            if name_of_part == "search" or instance != peer_instance(nodes, lines):
                continue
            objective = "total" if name_of_part == "total" else "utilization"
            program = path_flow_program.build(problem, objective, paths)  # type: ignore[arg-type]
            started = time.process_time()
            other = backends.solve(program, Options(threads=1, time_limit_s=limit))
            is_optimal = other.status is Status.OPTIMAL and other.objective is not None
            row.peers.append(f"HiGHS {time.process_time() - started:.1f}" if is_optimal else "HiGHS -")
            if is_optimal:
                assert abs(value / (other.objective or 1.0) - 1) <= 1e-6, (
                    name_of_part,
                    value,
                    other.objective,
                )
    yield from rows.values()


def concurrent_row(name: str) -> Row:
    """Return the row of the largest concurrent flow on a continental backbone."""
    problem = traffic_optimum.INSTANCES[name].make()
    row = Row("concurrent to 1e-06", name, len(problem.demands))
    proof, _ = solve(row, problem, partial(column_generation.route, problem, options=Options(gap=1e-6)))
    assert proof.gap is not None
    assert proof.gap <= 1e-6
    variables = len(problem.targets) * len(problem.links)
    row.peers.append(f"a program of {variables:,} variables" if variables > MAX_VARIABLES else "")
    return row


if __name__ == "__main__":
    main()
