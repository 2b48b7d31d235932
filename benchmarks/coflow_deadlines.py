"""Deadlines of coflows on a packet switch: the share that each design meets, beside a proven bound.

    python -m benchmarks.coflow_deadlines [--quick]

Coflows are due after their least time alone, times 1 plus a random number up to 1, as in Varys' evaluation.
First shuffles that are generated, more and more; then, where PLANNER_TRACES names a folder, the public coflow
benchmark `coflow/FB2010-1Hr-150-0.txt`: its first five minutes. Times are CPU seconds. `--quick`: the
generated ones alone.

Asserted: every coflow is complete in every plan, no plan violates a constraint, none meets more than the
bound, and `most_deadlines` meets at least as many, by weights, as the others.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.common import machine, parser_of
from planner_models.coflows import CoflowsInTime
from planner_models.coflows.designs import deadlines
from planner_models.coflows.plan.check import check
from planner_models.coflows.plan.lower_bounds import alone_ms
from planner_models.coflows.plan.metrics import measure
from planner_models.coflows.problem.generators import mapreduce, sample
from planner_models.coflows.problem.readers import read_trace

DESIGNS = {
    "edf": deadlines.send_by_deadline,
    "admission": deadlines.admit,
    "most_deadlines": deadlines.meet_most,
}
FIRST_MS = 300_000.0
EQUAL = 1e-6


def measure_designs(name: str, problem: CoflowsInTime) -> None:
    """Print the share of deadlines that each design meets, the bound, and CPU seconds."""
    size = problem.size()
    print(f"{name}: {size['coflows']:,} coflows, {size['flows']:,} flows, {size['racks']} racks")
    shares = {}
    begin = time.process_time()
    bound = deadlines.bound_deadlines(problem)
    seconds = time.process_time() - begin
    assert bound is not None
    print(f"  {'bound':<16}{bound:>8.4f}{seconds:>9.2f} s")
    for design, decide in DESIGNS.items():
        begin = time.process_time()
        decision = decide(problem)
        seconds = time.process_time() - begin
        assert decision.plan is not None
        violations = check(problem, decision.plan)
        assert not len(violations), violations.sentences()
        figures = measure(problem, decision.plan, None)
        shares[design] = figures["deadlines_met"] or 0.0
        assert figures["incomplete_coflows"] == 0
        assert shares[design] <= bound * (1 + EQUAL)
        mean_s = (figures["mean_completion_ms"] or np.nan) / 1e3
        print(f"  {design:<16}{shares[design]:>8.4f}{seconds:>9.2f} s, mean {mean_s:.3f} s", flush=True)
    assert shares["most_deadlines"] >= max(shares.values()) - EQUAL


def add_deadlines(problem: CoflowsInTime, seed: int) -> CoflowsInTime:
    """Return the coflows with deadlines by Varys' rule."""
    factor = 1 + np.random.default_rng(seed).uniform(0, 1, len(problem.coflows))
    deadline_ms = alone_ms(problem, "packets") * factor
    return replace(problem, coflows=problem.coflows.assign(deadline_ms=deadline_ms))


def main() -> None:
    """Run the benchmark."""
    arguments = parser_of(__doc__, "generated coflows alone").parse_args()
    print(machine())
    for decide in DESIGNS.values():
        decide(sample())  # compile
    for coflows in (100, 200, 400, 800):
        problem = mapreduce(racks=40, coflows=coflows, load=1.5, deadlines=1.0, weights="random", seed=1)
        measure_designs("generated", problem)
    folder = os.environ.get("PLANNER_TRACES")
    if arguments.quick or not folder:
        return
    path = Path(folder) / "coflow" / "FB2010-1Hr-150-0.txt"
    measure_designs("trace, five minutes", add_deadlines(read_trace(path=path, length_ms=FIRST_MS), seed=1))
    print(f"answers as asserted; {machine()}")


if __name__ == "__main__":
    main()
