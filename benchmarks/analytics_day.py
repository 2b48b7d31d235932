"""Analytics: levels of a day of 200 sites and 50 queries against their bound and HiGHS; larger intervals.

    python -m benchmarks.analytics_day [--quick] [--large]

--large adds a day of 800 sites and 200 queries, and later data of a day of 200 sites: 10 minutes more.
Set OMP_NUM_THREADS=1, so that threads of the matrix library that wait are not counted.

Asserted: plans pass the check, their value by separate code is that of the proof, the bound is not below
the integer program's solution, the gap of a day is within 0.1% and that of its worst interval within 0.5%,
that of later data within 0.2% (one site), 2.5% (2 hours) and 5% (a day), that of `priced` within 0.1%, and no
design beats the bound.
"""

from __future__ import annotations

import resource
import time
from typing import Final

import numpy as np

from benchmarks.common import machine, parser_of
from planner import backends
from planner.options import Options
from planner_models.analytics import Analytics, check, measure
from planner_models.analytics.designs import DESIGNS, backfill, optimum
from planner_models.analytics.designs.choices import Choices
from planner_models.analytics.designs.program import build_interval
from planner_models.analytics.problem.generators import diurnal, small

GAP: Final = 0.001
WORST_GAP: Final = 0.005  # of an interval
PRICED_GAP: Final = 0.001  # of the design `priced`
LARGE_GAP: Final = 0.005
PEER_S: Final = 20.0
SIZES: Final = ((200, 50), (800, 50), (800, 200))
WARM: Final = 6  # intervals after the first, from the prices of those before


def compare_interval(sites: int, queries: int, *, with_peer: bool) -> float:
    """Print gaps and times of intervals after the first, HiGHS beside the last; return the median time."""
    hours = (WARM + 1) / 12
    problem = diurnal(sites=sites, pops=sites // 10, queries=queries, hours=hours)
    choices = Choices(problem)
    gaps, seconds = [], []
    last: optimum.Planned | None = None
    for k in range(len(problem.interval_numbers)):
        interval = choices.interval(k)
        start = time.process_time()
        last = optimum.plan_interval(choices, interval, last, method="search", options=Options(threads=1))
        seconds.append(time.process_time() - start)
        assert last.bound is not None
        assert last.value <= last.bound * (1 + 1e-9)
        gaps.append(1 - last.value / last.bound)
    median = float(np.median(seconds[1:]))
    line = (
        f"interval, {sites} x {queries}: gap {np.median(gaps[1:]):.3%} (at most {max(gaps[1:]):.3%}; first "
        f"{gaps[0]:.3%}) in {median:.3f} s (at most {max(seconds[1:]):.3f} s)"
    )
    if with_peer:
        assert last is not None
        assert last.bound is not None
        built = build_interval(interval)
        start = time.process_time()
        solution = backends.solve(built.program, Options(time_limit_s=PEER_S, gap=1e-5, threads=1))
        assert solution.objective is not None
        assert solution.objective <= last.bound * (1 + 1e-6)
        more = last.value / solution.objective - 1
        line += f"; HiGHS in {time.process_time() - start:.1f} s, ours {more:+.3%} beside its solution"
    print(line, flush=True)
    return median


def compare_worst_interval(problem: Analytics, gap: float = GAP) -> None:
    """Print the gap of a day and that of its worst interval.

    gap  largest one of the day
    """
    choices, last = Choices(problem), None
    values, bounds = [], []
    start = time.process_time()
    for k in range(len(problem.interval_numbers)):
        last = optimum.plan_interval(
            choices, choices.interval(k), last, method="auto", options=Options(threads=1)
        )
        assert last.bound is not None
        values.append(last.value)
        bounds.append(last.bound)
    seconds = time.process_time() - start
    gaps = 1 - np.array(values) / np.array(bounds)
    print(
        f"{len(gaps)} intervals: gap {1 - sum(values) / sum(bounds):.3%}, worst interval {gaps.max():.3%} "
        f"(interval {problem.interval_numbers[gaps.argmax()]:g}), 99 of 100 within "
        f"{np.percentile(gaps, 99):.3%}, in {seconds:.1f} s",
        flush=True,
    )
    assert sum(values) >= sum(bounds) * (1 - gap)
    assert gaps.max() <= WORST_GAP


def compare_later_data(
    problem: Analytics,
    most_gap: float,
    orders: tuple[backfill.Order, ...] = ("after", "together", "foreseen"),
) -> None:
    """Print total values with later data.

    most_gap  largest gap of plans with foreseen prices
    """
    totals = {}
    for order in orders:
        start = time.process_time()
        decision = backfill.send_later(problem, order=order)
        seconds = time.process_time() - start
        assert decision.plan is not None
        assert not len(check(problem, decision.plan))
        totals[order] = measure(problem, decision.plan, None)["total_value"] or 0.0
        line = f"later data, {order}: total {totals[order]:.1f} USD in {seconds:.2f} s"
        if decision.proof.bound is not None:
            assert max(totals.values()) <= decision.proof.bound * (1 + 1e-9)
            assert totals[order] >= decision.proof.bound * (1 - most_gap)
            line += f"; {1 - totals[order] / decision.proof.bound:.2%} below the bound"
            if "after" in totals:
                line += f"; new data first {1 - totals['after'] / totals[order]:.2%} below it"
        print(line, flush=True)


def compare_day(problem: Analytics) -> None:
    """Print a row for each design: its share of the bound, bytes wasted, time."""
    bound = 0.0
    for design in DESIGNS:
        start = time.process_time()
        decision = design.decide(problem)
        seconds = time.process_time() - start
        assert decision.plan is not None
        figures = measure(problem, decision.plan, None)
        value = figures["value"] or 0.0
        violations = check(problem, decision.plan)
        assert not len(violations.of_limits(decision.guarantees))
        if design.name == "optimum":
            assert decision.proof.objective is not None
            assert decision.proof.bound is not None
            bound = decision.proof.bound
            assert np.isclose(value, decision.proof.objective)
            assert value >= bound * (1 - GAP)
        if design.name == "priced":
            assert value >= bound * (1 - PRICED_GAP)
        assert len(violations) or value <= bound * (1 + 1e-9)
        print(
            f"{design.name:<16}{value / bound:>9.2%} of the bound{figures['wasted_percent']:>7.1f}% wasted"
            f"{seconds:>8.1f} s",
            flush=True,
        )


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--large", action="store_true", help="a day of 800 sites, later data of a whole day")
    arguments = parser.parse_args()
    print(machine())
    optimum.plan(small())  # compiles
    small_later = diurnal(sites=2, pops=1, queries=3, hours=0.5, variation=0.5, backfill_minutes=10)
    seconds = [
        compare_interval(sites, queries, with_peer=sites * queries <= 10_000)
        for sites, queries in SIZES[: 1 if arguments.quick else 3]
    ]
    if len(seconds) > 1:
        exponent = np.log(seconds[-1] / seconds[0]) / np.log(np.prod(SIZES[-1]) / np.prod(SIZES[0]))
        print(f"from 200 x 50 to 800 x 200, time grows with the power {exponent:.2f} of the size", flush=True)
    backfill.send_later(small_later, order="foreseen")  # compiles
    hours = 6.0 if arguments.quick else 24.0
    print("one site, 25 queries, intervals of 15 minutes, a window of 3 h")
    compare_later_data(
        diurnal(
            sites=1, pops=1, queries=25, hours=hours, interval_minutes=15, variation=0.5, backfill_minutes=180
        ),
        0.002,
    )
    hours = 0.5 if arguments.quick else 2.0
    print(f"200 sites, 50 queries, {hours:g} hours of intervals of 5 minutes, a window of 1 h")
    compare_later_data(diurnal(hours=hours, variation=0.5, backfill_minutes=60), 0.025)
    day = diurnal(hours=2.0 if arguments.quick else 24.0)
    compare_worst_interval(day)
    compare_day(day)
    if arguments.large:
        print("200 sites, 50 queries, a day of intervals of 5 minutes, a window of 1 h")
        compare_later_data(diurnal(variation=0.5, backfill_minutes=60), 0.05, ("foreseen",))
        print("800 sites, 200 queries, a day of intervals of 5 minutes")
        compare_worst_interval(diurnal(sites=800, pops=80, queries=200), LARGE_GAP)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(f"{memory:.2f} GB of memory at most", flush=True)


if __name__ == "__main__":
    main()
