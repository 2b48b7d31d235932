"""Analytics: levels of a day of 200 sites and 50 queries against their bound and HiGHS.

    python -m benchmarks.analytics_day [--quick]

Set OMP_NUM_THREADS=1, so that threads of the matrix library that wait are not counted.

Asserted: plans pass the check, their value by separate code is that of the proof, the bound is not below
the integer program's solution, the gap of a day is within 0.1%, and no design beats the bound.
"""

from __future__ import annotations

import time
from typing import Final

import numpy as np

from benchmarks.common import machine, parser_of
from planner import backends
from planner.options import Options
from planner_models.analytics import check, measure
from planner_models.analytics.designs import branching, optimum, prices
from planner_models.analytics.designs.choices import Choices
from planner_models.analytics.designs.program import build_interval
from planner_models.analytics.designs.table import DESIGNS
from planner_models.analytics.problem.generators import diurnal, small

GAP: Final = 0.001
PEER_S: Final = 20.0
SIZES: Final = ((200, 50), (800, 50))


def compare_interval(sites: int, queries: int, *, with_peer: bool) -> None:
    """Print the gap and time of the third interval, from the prices of the second, beside HiGHS."""
    problem = diurnal(sites=sites, pops=sites // 10, queries=queries, hours=0.25)
    choices, price, answers, seconds, gap = Choices(problem), None, None, 0.0, 0.0
    for k in range(3):
        interval = choices.interval(k)
        start = time.process_time()
        priced = prices.find_prices(interval, price)
        found, bound = branching.find_choices(interval, priced, start=answers)
        seconds, gap = time.process_time() - start, 1 - found.value / bound
        price, answers = priced.price, found.answers
        assert found.value <= bound * (1 + 1e-9)
    line = f"interval, {sites} x {queries}: gap {gap:.3%} in {seconds:.3f} s"
    if with_peer:
        built = build_interval(interval)
        start = time.process_time()
        solution = backends.solve(built.program, Options(time_limit_s=PEER_S, gap=1e-5, threads=1))
        assert solution.objective is not None
        assert solution.objective <= bound * (1 + 1e-6)
        less = 1 - found.value / solution.objective
        line += f"; HiGHS in {time.process_time() - start:.1f} s, ours {less:.3%} below its solution"
    print(line, flush=True)


def compare_day(hours: float) -> None:
    """Print a row for each design: its share of the bound, bytes wasted, time."""
    problem = diurnal(hours=hours)
    bound = 0.0
    for design in DESIGNS:
        start = time.process_time()
        decision = design.decide(problem)
        seconds = time.process_time() - start
        assert decision.plan is not None
        figures = measure(problem, decision.plan, None)
        value = figures["value"] or 0.0
        found = check(problem, decision.plan)
        assert not len(found.of_limits(decision.guarantees))
        if design.name == "optimum":
            assert decision.proof.objective is not None
            assert decision.proof.bound is not None
            bound = decision.proof.bound
            assert np.isclose(value, decision.proof.objective)
            assert value >= bound * (1 - GAP)
        assert len(found) or value <= bound * (1 + 1e-9)
        print(
            f"{design.name:<16}{value / bound:>9.2%} of the bound{figures['wasted_percent']:>7.1f}% wasted"
            f"{seconds:>8.1f} s",
            flush=True,
        )


def main() -> None:
    arguments = parser_of(__doc__).parse_args()
    print(machine())
    optimum.plan(small())  # compiles
    for sites, queries in SIZES[: 1 if arguments.quick else 2]:
        compare_interval(sites, queries, with_peer=sites * queries <= 10_000)
    compare_day(2.0 if arguments.quick else 24.0)


if __name__ == "__main__":
    main()
