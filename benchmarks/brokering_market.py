"""Benchmark of brokering: speed and gap on up to 3.3 million clients, and general solvers on the same data.

    python -m benchmarks.brokering_market [--quick]

The first table is end to end: matching, grouping, min-cost flow, local search and bound; for the largest
also reading the clients and all other tables from Parquet. The second gives the same instance to
general solvers, 60 s each (5 s with --quick), and their times as ratios to ours; the linear program is
the relaxation, so it only bounds. Then 300,000 clients of Pareto bitrates, thousands of different ones.
"""

from __future__ import annotations

import resource
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.common import machine, parser_of
from planner.backends import solve
from planner.io.table_files import find_tables, read_tables
from planner.options import Options
from planner_models.brokering import SYSTEM, Brokering, information
from planner_models.brokering.designs.broker import assignment
from planner_models.brokering.problem.generators import world

RUNS = 3
HEAVY_CAPACITY = 2.8  # residual capacity over demand
HEAVY_LIMIT_S = 20.0


def time_decision(
    problem: Brokering, gap: float, runs: int, limit_s: float | None = None
) -> tuple[float, float]:
    """Return the median seconds and gap of the marketplace's decision; its plan is checked."""
    seconds, reached = [], []
    for _ in range(runs):
        started = time.perf_counter()
        observed = information.marketplace(problem)
        decision = assignment.assign(observed, options=Options(gap=gap, time_limit_s=limit_s, seed=1))
        seconds.append(time.perf_counter() - started)
        assert decision.plan is not None
        assert decision.proof.objective is not None
        assert decision.proof.gap is not None
        assert not len(SYSTEM.plan.check(problem, decision.plan))
        objective = SYSTEM.plan.measure(observed, decision.plan, None)["objective"]
        assert objective is not None
        assert abs(objective - decision.proof.objective) <= 1e-9 * abs(objective)
        reached.append(decision.proof.gap)
    return statistics.median(seconds), statistics.median(reached)


def time_solvers(problem: Brokering, limit_s: float, gap: float, base_s: float) -> None:
    """Print times and gaps of general solvers on the same program."""
    model = assignment.build_model(information.marketplace(problem))
    linear = replace(model, integer=None)
    print(f"  program: {model.shape[0]:,} rows, {model.shape[1]:,} variables")
    for name, program, backend in (
        ("HiGHS, linear", linear, "highs"),
        ("HiGHS", model, "highs"),
        ("CP-SAT", model, "ortools:cp-sat"),
        ("SCIP", model, "ortools:scip"),
    ):
        started = time.perf_counter()
        solution = solve(program, Options(backend=backend, time_limit_s=limit_s, gap=gap, threads=1))
        seconds = time.perf_counter() - started
        reached = "no plan"
        if solution.objective is not None and solution.bound is not None:
            reached = f"gap {abs(solution.objective - solution.bound) / abs(solution.objective):.2e}"
        if program is linear and solution.objective is not None:
            reached = "a bound only"
        print(f"  {name:16s} {seconds:8.2f} s  {seconds / base_s:8.1f}x  {solution.status}  {reached}")


def heavy_tailed(clients: int, seed: int = 1) -> Brokering:
    """Return the world's market with Pareto bitrates up to 80 Mbit/s, and 2.8 times their capacity."""
    random = np.random.default_rng(seed)
    base = world(clients=clients, seed=seed)
    by_place = base.clients.groupby("location", sort=False)["clients"].sum()
    locations = np.repeat(by_place.index.to_numpy(object), by_place.to_numpy(int))
    kbps = np.rint(np.minimum(500 * (1 + random.pareto(1.3, len(locations))), 80_000.0))
    rows = pd.DataFrame({"location": locations, "isp": "any", "content": "video1", "bitrate_kbps": kbps})
    rows = rows.value_counts(sort=False).rename("clients").astype(float).reset_index()
    problem = Brokering.from_tables({**base.to_tables(), "clients": rows})
    return scale_capacity(problem, HEAVY_CAPACITY * problem.demand_mbps.sum() / problem.residual_mbps.sum())


def time_heavy_tail(clients: int) -> None:
    """Print time and gap of one decision on heavy-tailed bitrates, within 20 s."""
    problem = information.estimate(heavy_tailed(clients))
    started, cpu = time.perf_counter(), time.process_time()
    options = Options(gap=1e-3, time_limit_s=HEAVY_LIMIT_S, seed=1)
    decision = assignment.assign(problem, options=options)
    seconds, cpu_s = time.perf_counter() - started, time.process_time() - cpu
    assert decision.plan is not None
    assert decision.proof.gap is not None
    assert not len(SYSTEM.plan.check(problem, decision.plan))
    print(
        f"{clients:,} clients of {len(np.unique(problem.bitrate_mbps)):,} bitrates: {seconds:.2f} s "
        f"({cpu_s:.2f} s of CPU), gap {decision.proof.gap:.2e}"
    )
    assert decision.proof.gap <= 2e-3
    assert cpu_s <= HEAVY_LIMIT_S + 2.0


def scale_capacity(problem: Brokering, scale: float) -> Brokering:
    """Return the problem with that share of its residual capacity."""
    return problem.with_clusters(capacity_mbps=problem.background_mbps + scale * problem.residual_mbps)


def time_parquet(problem: Brokering, gap: float) -> tuple[float, float, float]:
    """Return the seconds of reading, and seconds and gap of deciding, for a problem in Parquet files."""
    with tempfile.TemporaryDirectory() as folder:
        for name, frame in problem.to_tables().items():
            frame.to_parquet(Path(folder) / f"{name}.parquet")
        started = time.perf_counter()
        files = find_tables(SYSTEM.problem.tables, Path(folder), SYSTEM.problem.optional_tables)
        again = Brokering.from_tables(read_tables(SYSTEM.problem.tables, files))
        read_s = time.perf_counter() - started
    return (read_s, *time_decision(again, gap, 1))


def main() -> None:
    """Print both tables."""
    quick = parser_of(__doc__).parse_args().quick
    print(f"{machine()}; medians of {RUNS} runs\n")
    small = world(clients=3_000 if quick else 33_400, seed=1)
    time_decision(scale_capacity(small, 0.1), 1e-3, 1)  # compiles
    for name, problem, gap, limit_s in (
        ("nominal", small, 1e-5, None),
        ("10% of the residual capacity", scale_capacity(small, 0.1), 1e-4, 2.0 if quick else 5.0),
    ):
        seconds, reached = time_decision(problem, gap, RUNS, limit_s)
        print(f"{small.size()['clients']:,} clients, {name}: {seconds:.2f} s, gap {reached:.2e}")
        time_solvers(problem, 5.0 if quick else 60.0, gap, seconds)
    time_heavy_tail(100_000 if quick else 300_000)
    count = 100_000 if quick else 3_300_000
    for contents in (1, 20 if quick else 1000):
        problem = world(clients=count, contents=contents, seed=1)
        read_s, seconds, reached = time_parquet(problem, 1e-4)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"{count:,} clients in {len(problem.clients):,} rows: Parquet {read_s:.2f} s, "
            f"decision {seconds:.2f} s, together {read_s + seconds:.2f} s, gap {reached:.2e}, "
            f"peak {peak:.2f} GiB"
        )


if __name__ == "__main__":
    main()
