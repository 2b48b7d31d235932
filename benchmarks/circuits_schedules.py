"""Circuit schedules: their speed, and their distance from the bound.

    python -m benchmarks.circuits_schedules [--quick] [--repeats 9]

Skewed demand at load 1, a week of 2 ms, nights of 20 us. Times are of the days alone (`days`: from the
demand's arrays to lengths and matchings), and of the whole decision with the packet switch's share and
the plan's tables; compiling is not counted. Peers are the same algorithms in plain Python with
scipy's or networkx' matchings, in this run. Each time is the median of the processor's time, which
what else runs here disturbs least.

Asserted: Eclipse is within 0.0005 of the demand of trying every length; no schedule beats the bound;
the search is within 0.5% of it on the shipped scenario's demand (`skewed_64`); the optimum is proven.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks import circuits_textbook as textbook
from benchmarks.common import machine, median_time, parser_of
from planner import Options, Status
from planner_models.circuits import Circuits, measure
from planner_models.circuits.designs import eclipse, optimum, simulated_annealing, solstice, upper_bound
from planner_models.circuits.plan.plan import Day
from planner_models.circuits.problem import generators

median_cpu = partial(median_time, clock=time.process_time)


def plain(days: list[Day]) -> textbook.Days:
    return [(day.duration_us, day.target) for day in days]


def row(name: str, way: str, seconds: float, first: float, share: float | None, days: int | None) -> None:
    value = "" if share is None else f"{share:.5f}"
    print(
        f"{name:<18}{way:<34}{seconds * 1e3:>12.3f} ms{seconds / first:>10.1f} x  "
        f"{value:>8}{'' if days is None else days:>5}"
    )


def kernels(racks: int, repeats: int, peers: bool) -> None:
    """Compare Solstice and Eclipse with plain Python: share of the demand that circuits serve, and days."""
    problem = generators.skewed(racks=racks, seed=1)
    total = float(problem.bits.sum())
    assert len(problem.pair_bits) == len(problem.pair_mbps)  # made once, before the clock runs

    def share(days: textbook.Days) -> float:
        return textbook.served_bits(problem, days) / total

    first, days = median_cpu(lambda: solstice.days(problem), repeats)
    name = f"solstice, n = {racks}"
    row(name, "days", first, first, share(plain(days)), len(days))
    row(name, "whole decision", median_cpu(lambda: solstice.schedule(problem), repeats)[0], first, None, None)
    if peers:
        for way, matching in (("scipy", textbook.perfect), ("networkx", textbook.perfect_by_networkx)):
            seconds, day_list = median_cpu(lambda m=matching: textbook.solstice(problem, m), 1, warm=False)  # type: ignore[misc]
            row(name, f"plain Python, {way}", seconds, first, share(day_list), len(day_list))
    first, days = median_cpu(lambda: eclipse.days(problem), repeats)
    served_share = share(plain(days))
    name = f"eclipse, n = {racks}"
    row(name, "days", first, first, served_share, len(days))
    row(name, "whole decision", median_cpu(lambda: eclipse.schedule(problem), repeats)[0], first, None, None)
    if not peers:
        return
    seconds, every = median_cpu(lambda: eclipse.days(problem, starts=0), 1)
    row(name, "days, every length tried", seconds, first, share(plain(every)), len(every))
    assert served_share >= share(plain(every)) - 0.0005
    ways: list[tuple[str, Callable[[], textbook.Days]]] = [
        ("plain Python, scipy", lambda: textbook.eclipse_alternating(problem)),
        ("the same, every length", lambda: textbook.eclipse(problem)),
    ]
    if racks <= 32:
        networkx = textbook.heaviest_by_networkx
        ways.append(("plain Python, networkx", lambda: textbook.eclipse_alternating(problem, networkx)))
    for way, run in ways:
        seconds, day_list = median_cpu(run, 1, warm=False)
        row(name, way, seconds, first, share(day_list), len(day_list))


def thousands_of_racks(repeats: int, racks: int = 4_096) -> None:
    """Print times of Solstice on many racks; the packet switch's share and the tables take little more."""
    problem = generators.skewed(racks=racks, seed=1)
    first, days = median_cpu(lambda: solstice.days(problem), repeats)
    share = textbook.served_bits(problem, plain(days)) / float(problem.pair_bits.sum())
    row(f"solstice, n = {racks}", "days", first, first, share, len(days))
    total_s, decision = median_cpu(lambda: solstice.schedule(problem), repeats)
    row(f"solstice, n = {racks}", "whole decision", total_s, first, None, None)
    served = measure(problem, decision.plan, None)["circuit_share"] if decision.plan is not None else None
    assert served is not None
    assert abs(served - share) <= 1e-6


def against_the_bound(seeds: list[int], kinds: int) -> None:
    """Print the service of circuits and packets, as shares of the proven bound."""
    heads = "".join(f"{head:>10}" for head in ("Solstice", "Eclipse", "search", "bound"))
    print(f"\n{'n = 64':<12}{heads}{'search/bound':>14}{'s':>7}")
    for seed in seeds:
        problem = generators.skewed(seed=seed)
        total = float(problem.bits.sum())
        seconds, decision_found = median_cpu(lambda p=problem: simulated_annealing.schedule(p), 1)  # type: ignore[misc]
        limit = upper_bound.bound_schedules(problem, kinds=kinds).proof.bound
        assert limit is not None
        decisions = (solstice.schedule(problem), eclipse.schedule(problem), decision_found)
        objectives = [decision.proof.objective or 0.0 for decision in decisions]
        assert max(objectives) <= limit * (1 + 1e-9)
        assert objectives[-1] >= max(objectives) * (1 - 1e-9)
        if seed == 1:
            assert objectives[-1] >= 0.994 * limit  # 0.9948 of the bound is reached
        shares = "".join(f"{objective / total:>10.5f}" for objective in [*objectives, limit])
        print(f"seed {seed:<7}{shares}{objectives[-1] / limit:>14.5f}{seconds:>7.1f}")


def proven(cases: list[dict[str, Any]], limit_s: float) -> None:
    """Print proven optima of eight racks."""
    print(
        f"\n{'optimum, n = 8':<48}{'pairs':>6}{'s':>8}{'status':>10}{'gap':>10}{'Eclipse':>9}{'Solstice':>9}"
    )
    for case in cases:
        problem: Circuits = generators.skewed(racks=8, **case)
        seconds, decision = median_cpu(
            lambda p=problem: optimum.schedule(p, options=Options(time_limit_s=limit_s)),  # type: ignore[misc]
            1,
            warm=False,
        )
        proof = decision.proof
        ratios = [
            item.proof.objective / proof.objective
            for item in (eclipse.schedule(problem), solstice.schedule(problem))
        ]
        print(
            f"{', '.join(f'{key} {value}' for key, value in case.items()):<48}{problem.size()['pairs']:>6}"
            f"{seconds:>8.1f}{proof.status!s:>10}{proof.gap:>10.1e}{ratios[0]:>9.4f}{ratios[1]:>9.4f}"
        )
        if case.get("large") == 2:
            assert proof.status is Status.OPTIMAL


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    arguments = parser.parse_args()
    print(f"{machine()}, medians of {arguments.repeats}")
    print(f"{'':<18}{'':<34}{'processor':>15}{'ratio':>12}{'circuits':>10}{'days':>5}")
    kernels(32, arguments.repeats, peers=True)
    kernels(64, arguments.repeats, peers=not arguments.quick)
    if not arguments.quick:
        kernels(128, arguments.repeats, peers=False)
    kernels(512, arguments.repeats, peers=False)
    thousands_of_racks(arguments.repeats)
    against_the_bound([1] if arguments.quick else [1, 2, 3, 4, 5], kinds=1)
    cases: list[dict[str, Any]] = [
        {"large": 2, "small": 2, "window_us": 500.0, "seed": 1},
        {"large": 2, "small": 4, "window_us": 1_000.0, "seed": 1},
        {"seed": 1},
        {"seed": 2},
    ]
    if not arguments.quick:
        cases += [
            {"large": 3, "small": 6, "window_us": 500.0, "seed": 1},
            {"large": 3, "small": 6, "window_us": 500.0, "seed": 4},
        ]
    proven(cases, 60.0)


if __name__ == "__main__":
    main()
