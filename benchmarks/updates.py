"""Updates: rounds in place, batches within tables, and shares within links, on backbones.

    python -m benchmarks.updates [--quick]

Times are of the processor, after compiling; those of `find_rounds` are of the search for rounds and its bound
alone, without the plan and its tables. The growth of the time of batches is a fit over numbers of pairs of
a network.

Asserted: every plan passes the check in what it claims, no objective is below its bound, the rounds in place
of every destination are at most one above its bound (five in the world), and batches are at most one above
theirs.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.common import machine, parser_of
from planner.options import Options
from planner_models.updates import SYSTEM, Update, check
from planner_models.updates.designs.loop_free_order import find_rounds
from planner_models.updates.plan.plan import as_network
from planner_models.updates.problem import generators

BACKBONES: tuple[tuple[str, int | None, int], ...] = (
    ("sndlib/germany50", None, 1),
    ("topozoo/TataNld", None, 1),
    ("backbone/europe", 200, 1),
    ("backbone/europe", None, 1),
    ("backbone/world", 200, 5),
)
"""Network, number of destinations, and the most rounds of one beyond its bound."""
EXACT = ("backbone/europe", 40)
"""Network and number of destinations of which each is planned alone, in the fewest rounds."""
PAIRS: tuple[tuple[str, int | None, dict[str, Any], tuple[str, ...]], ...] = (
    ("sndlib/germany50", None, {"headroom": 0.05}, ("batches", "batches_exact")),
    ("sndlib/germany50", None, {"slack": 0.05}, ("congestion_free", "optimum")),
    ("topozoo/TataNld", None, {"headroom": 0.05, "metric": "hops"}, ("batches",)),
    ("backbone/europe", 50_000, {"headroom": 0.05}, ("batches",)),
    ("backbone/europe", 10_000, {"slack": 0.05}, ("congestion_free",)),
)
TIME_LIMIT_S = 3600.0
"""Of the wall clock, far beyond what any row takes, as other programs may run beside it."""
GROWTH: tuple[tuple[str, tuple[int, ...], dict[str, Any]], ...] = (
    ("topozoo/TataNld", (2_450, 5_000, 10_000, 20_306), {"metric": "hops"}),
    ("backbone/europe", (5_000, 10_000, 20_306, 50_000), {}),
)
"""Networks and numbers of pairs over which the time of batches is fitted."""


def time_rounds(name: str, count: int | None, most_gap: int) -> None:
    """Print the rounds of all destinations of a network, and the time to find and prove them."""
    problem = generators.reweigh(name=name, count=count)
    net = as_network(problem)
    changes = problem.slots.changes
    start = time.process_time()
    greedy = find_rounds(net, changes, prove=False)
    middle = time.process_time()
    rounds_found = find_rounds(net, changes)
    end = time.process_time()
    assert (rounds_found.most >= rounds_found.least).all()
    assert (rounds_found.most <= rounds_found.least + most_gap).all(), "rounds far from the bound"
    open_ = int((rounds_found.most > rounds_found.least).sum())
    rounds = greedy.most[greedy.most > 0]
    print(
        f"{name:<20}{len(problem.classes):>6} destinations{int(rounds.max()):>4} rounds, "
        f"mean {np.mean(rounds):.2f}, {open_} not proven (bound lower by at most "
        f"{int((rounds_found.most - rounds_found.least).max())})"
        f"{middle - start:>9.2f} s greedy{end - middle:>9.2f} s with bound"
    )


def time_exact(name: str, count: int) -> None:
    """Print the time of the fewest rounds of one destination, and the number of proven ones."""
    every = generators.reweigh(name=name, count=count)
    seconds, proven = [], 0
    for name_ in every.class_index:
        problem = replace(
            every,
            classes=every.classes[every.classes["class"] == name_].reset_index(drop=True),
            now=every.now[every.now["class"] == name_].reset_index(drop=True),
            next=every.next[every.next["class"] == name_].reset_index(drop=True),
        )
        _ = problem.slots, problem.path_ms
        start = time.process_time()
        decision = SYSTEM.design("ordered_exact").run(problem)
        seconds.append(time.process_time() - start)
        assert decision.plan is not None
        proof = decision.proof
        assert proof.objective is not None
        assert proof.bound is not None
        assert proof.bound <= proof.objective <= proof.bound + 1
        proven += proof.objective == proof.bound
    print(
        f"{name:<20}{count:>6} destinations, each alone, fewest rounds: {proven} proven, "
        f"{np.median(seconds):.3f} s in the median, {max(seconds):.3f} s at most"
    )


def time_design(problem: Update, name: str, design: str) -> float:
    """Print the batches of a design, its bound and time; return the time, s."""
    start = time.process_time()
    decision = SYSTEM.design(design).run(problem, options=Options(time_limit_s=TIME_LIMIT_S))
    seconds = time.process_time() - start
    assert decision.plan is not None
    assert not len(check(problem, decision.plan).of_limits(decision.guarantees))
    proof = decision.proof
    assert proof.objective is not None
    assert proof.bound is None or proof.bound <= proof.objective <= proof.bound + 1
    print(
        f"{name:<20}{len(problem.classes):>6} pairs, {design:<16}{proof.objective:>4.0f} batches, bound "
        f"{proof.bound or 0:.0f}{seconds:>9.2f} s",
        flush=True,
    )
    return seconds


def time_growth(name: str, counts: Sequence[int], parameters: dict[str, Any]) -> None:
    """Print the time of batches by the number of classes that change, as a power of it."""
    sizes, seconds = [], []
    for count in counts:
        problem = make_pairs(name, count, headroom=0.05, **parameters)
        sizes.append(int(problem.slots.changes.sum()))
        seconds.append(time_design(problem, name, "batches"))
    power = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    print(f"{name}: time of batches grows with the number of classes that change to the power of {power:.2f}")


def make_pairs(name: str, count: int | None, **options: Any) -> Update:
    """Return an update of pairs of a network, with its arrays made."""
    problem = generators.reweigh(name=name, classes="pairs", demands="gravity", count=count, **options)
    _ = problem.slots, problem.path_ms
    return problem


def main() -> None:
    arguments = parser_of(__doc__).parse_args()
    print(machine())
    for problem in (generators.small(), make_pairs("sndlib/germany50", 200, headroom=0.02)):
        for design in SYSTEM.designs:
            design.run(problem)  # compiles
    for name, count, most_gap in BACKBONES[: 2 if arguments.quick else None]:
        time_rounds(name, count, most_gap)
    time_exact(EXACT[0], 5 if arguments.quick else EXACT[1])
    for name, count, parameters, designs in PAIRS[: 2 if arguments.quick else None]:
        problem = make_pairs(name, count, **parameters)
        for design_name in designs:
            time_design(problem, name, design_name)
    if not arguments.quick:
        for growth in GROWTH:
            time_growth(*growth)


if __name__ == "__main__":
    main()
