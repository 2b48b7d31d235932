"""Coflows of a trace of MapReduce, whole: completion times of each design beside a proven bound.

    python -m benchmarks.coflows_trace [--quick]

Reads `coflow/FB2010-1Hr-150-0.txt`, the public coflow benchmark, in the folder that PLANNER_TRACES names;
without it nothing runs. All links have 1 Gbit/s, and a circuit is set up in 10 ms, as in Huang et al. 2016
(Sunflow). Times are CPU seconds with the proof of the bound, and without the check. `--quick`: the first five
minutes.

Asserted: every coflow is complete in every plan, no plan violates a constraint, none beats its bound; each
coflow alone takes Sunflow at most twice as long as its busiest port with a set-up for each flow, and in the
mean at most 1.03 times as long, as published (Huang et al. 2016, abstract: "within a factor-of-two", "on
average within 1.03x to optimal"); over the whole trace Sunflow is as fast in the mean as SEBF on a packet
switch of the same rate, to 10% ("just as fast").
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.common import machine, parser_of
from planner.options import Options
from planner_models.coflows import CoflowsInTime
from planner_models.coflows.designs import aalo, hybrid, optimum, sebf, sunflow, windows
from planner_models.coflows.plan.check import check
from planner_models.coflows.plan.flow_groups import group_flows
from planner_models.coflows.plan.metrics import measure
from planner_models.coflows.problem.generators import sample
from planner_models.coflows.problem.readers import read_trace

LIMIT_S: Final = 60.0  # of `most_served`, which searches in each of some thousand windows
CASES: Final[Mapping[str, tuple[Callable[..., Any], Mapping[str, Any]]]] = {
    "sunflow": (sunflow.schedule, {}),
    "sunflow by arrival": (sunflow.schedule, {"order": "arrival"}),
    "hybrid": (hybrid.schedule, {}),
    "sebf": (sebf.schedule, {"interval_ms": 100.0}),
    "aalo": (aalo.schedule, {"interval_ms": 1_000.0}),
    "solstice, 1 s": (windows.schedule_solstice, {"window_ms": 1_000.0}),
    "eclipse, 1 s": (windows.schedule_eclipse, {"window_ms": 1_000.0}),
    "most_served, 1 s": (
        windows.schedule_most_served,
        {"window_ms": 1_000.0, "options": Options(time_limit_s=LIMIT_S)},
    ),
    "optimum": (optimum.schedule, {}),
}
FIRST_MS: Final = 300_000.0


def measure_designs(problem: CoflowsInTime) -> dict[str, float]:
    """Print a row for each design; return the mean completion times, ms."""
    means = {}
    heads = {"mean s": 9, "bound s": 9, "gap": 7, "p95 s": 9, "median s": 10, "setups": 10, "CPU s": 8}
    print(f"{'design':<20}" + "".join(f"{head:>{width}}" for head, width in heads.items()))
    for name, (decide, parameters) in CASES.items():
        decide(sample(), **parameters)  # compile
        begin = time.process_time()
        decision = decide(problem, **parameters)
        taken = time.process_time() - begin
        violations = check(problem, decision.plan)
        assert not len(violations), violations.sentences()
        figures, proof = measure(problem, decision.plan, None), decision.proof
        mean, p95, median = (
            (figures[f"{key}_completion_ms"] or np.nan) / 1e3 for key in ("mean", "p95", "median")
        )
        assert proof.bound is not None
        assert proof.bound / 1e3 <= mean * (1 + 1e-9)
        assert p95 >= (figures["least_p95_ms"] or np.nan) / 1e3
        means[name] = mean
        print(
            f"{name:<20}{mean:>9.2f}{proof.bound / 1e3:>9.2f}{proof.gap:>7.1%}{p95:>9.2f}{median:>10.3f}"
            f"{figures['setups'] or 0:>10,.0f}{taken:>8.1f}"
        )
    print(f"no plan's p95 is below {(figures['least_p95_ms'] or np.nan) / 1e3:.2f} s")
    return means


def measure_alone(problem: CoflowsInTime) -> None:
    """Print the times of Sunflow for each coflow alone, over its busiest port with a set-up a flow."""
    port = np.zeros(2 * len(problem.racks))
    shares = []
    for row in range(len(problem.coflows)):
        rows = np.flatnonzero(problem.coflow == row)
        port[:] = 0
        need = problem.bits[rows] / problem.circuit_rate[rows] + problem.setup_ms
        np.add.at(port, problem.source[rows], need)
        np.add.at(port, len(problem.racks) + problem.target[rows], need)
        single = replace(
            problem,
            coflows=problem.coflows.iloc[[row]].assign(arrival_ms=0.0),
            flows=problem.flows.iloc[rows].reset_index(drop=True),
        )
        _, _, end, _ = sunflow.run_windows(single, group_flows(single), rank=None)
        shares.append(float(end.max() / port.max()))
    mean, largest = float(np.mean(shares)), float(np.max(shares))
    print(f"coflows alone, over their busiest port: mean {mean:.3f}, most {largest:.3f} (published: 1.03, 2)")
    assert mean <= 1.03 + 0.005
    assert largest <= 2.0


def main() -> None:
    """Run the benchmark."""
    arguments = parser_of(__doc__, "the first five minutes of the trace").parse_args()
    folder = os.environ.get("PLANNER_TRACES")
    if not folder:
        print("PLANNER_TRACES names no folder: nothing to run")
        return
    path = Path(folder) / "coflow" / "FB2010-1Hr-150-0.txt"
    problem = read_trace(path=path, length_ms=FIRST_MS if arguments.quick else None)
    size = problem.size()
    print(f"{size['coflows']:,} coflows, {size['flows']:,} flows, {size['racks']} racks; {machine()}")
    measure_alone(problem)
    means = measure_designs(problem)
    ratio = means["sunflow"] / means["sebf"]
    print(f"sunflow over sebf: {ratio:.3f} (published: just as fast)")
    assert arguments.quick or ratio <= 1.1
    print(f"answers as asserted; {machine()}")


if __name__ == "__main__":
    main()
