"""Time that decisions take beyond a limit of a second, on the largest problems of every system.

    python -m benchmarks.time_limits [--quick]

A decision is made and its plan is checked and measured, in this process. The processor's time stands beside
the wall time: it depends least on what else the machine does. Compiling is not counted; the goal is at most
1.5 s beyond the limit. Asserted: every run ends with a plan that is within its bound.
"""

from __future__ import annotations

import time
from typing import Any, Final

from benchmarks.common import machine, parser_of
from planner.options import Options
from planner.runs.evaluation import compile_ahead, evaluate
from planner.runs.run import Run
from planner.scenarios.scenario import load

LIMIT_S: Final = 1.0
GOAL_S: Final = 1.5
CASES: Final[tuple[tuple[str, str, dict[str, Any]], ...]] = (
    ("traffic/world", "optimum", {}),
    ("multicast/figure_5a", "partitioned_aggregated", {}),
    ("brokering/market_3m", "marketplace", {}),
    ("livevideo/average_day_2k_edges", "vdn", {}),
    ("circuitflows/one_ring", "voq", {"problem.horizon_us": 10_000_000}),
)
"""Scenario, design and changes; the quick run has the last two."""


def run_case(name: str, design: str, changes: dict[str, Any]) -> tuple[Run, float, float]:
    """Return a run under the limit, and its processor and wall time in seconds without compiling."""
    scenario, options = load(name, changes=changes), Options(time_limit_s=LIMIT_S)
    problem, entry = scenario.make_problem(), scenario.entry(design)
    compile_ahead(scenario.system, entry, options)
    wall, processor = time.perf_counter(), time.process_time()
    run = evaluate(scenario.system, problem, entry, options=options)
    compiling = run.proof.compile_s or 0.0
    return run, time.process_time() - processor - compiling, time.perf_counter() - wall - compiling


def check(run: Run) -> None:
    """Check that there is a plan, and none better than its bound; raise AssertionError."""
    assert run.plan is not None, f"{run.label}: no plan at the time limit"
    assert run.proof.gap is None or run.proof.gap >= 0


def main() -> None:
    """Print the time of each case."""
    arguments = parser_of(__doc__).parse_args()
    print(f"{machine()}; limit {LIMIT_S:g} s, goal {GOAL_S:g} s beyond")
    for name, design, changes in CASES[-2:] if arguments.quick else CASES:
        run, processor_s, wall_s = run_case(name, design, changes)
        check(run)
        over = "" if processor_s <= LIMIT_S + GOAL_S else "   above the goal"
        print(f"{name:<32}{design:<24}{processor_s:>7.2f} s of CPU{wall_s:>8.2f} s wall{over}")


if __name__ == "__main__":
    main()
