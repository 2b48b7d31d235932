"""Updates: rounds in place, batches within tables, and shares within links, on backbones.

    python -m benchmarks.updates [--quick]

Times are of the processor, after compiling; those of `find_rounds` are of the search for rounds and its bound
alone, without the plan and its tables.

Asserted: every plan passes the check in what it claims, no objective is below its bound, and the rounds in
place of every destination are at most one above its bound.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.common import machine, parser_of
from planner_models.updates import SYSTEM, Update, check
from planner_models.updates.designs.loop_free_order import find_rounds
from planner_models.updates.plan.plan import as_network
from planner_models.updates.problem import generators

BACKBONES = (
    ("sndlib/germany50", None),
    ("topozoo/TataNld", None),
    ("backbone/europe", 200),
    ("backbone/europe", None),
)
PAIRS = (
    ("sndlib/germany50", None, {"headroom": 0.05}, ("batches", "batches_exact")),
    ("sndlib/germany50", None, {"slack": 0.05}, ("congestion_free", "optimum")),
    ("topozoo/TataNld", None, {"headroom": 0.05, "metric": "hops"}, ("batches",)),
)


def time_rounds(name: str, count: int | None) -> None:
    """Print the rounds of all destinations of a network, and the time to find and prove them."""
    problem = generators.reweigh(name=name, count=count)
    net = as_network(problem)
    changes = problem.slots.changes
    start = time.process_time()
    greedy = find_rounds(net, changes, prove=False)
    middle = time.process_time()
    found = find_rounds(net, changes)
    end = time.process_time()
    assert (found.most >= found.least).all()
    assert (found.most <= found.least + 1).all(), "rounds far from the bound"
    open_ = int((found.most > found.least).sum())
    rounds = greedy.most[greedy.most > 0]
    print(
        f"{name:<20}{len(problem.classes):>6} destinations{int(rounds.max()):>4} rounds, "
        f"mean {np.mean(rounds):.2f}, {open_} not proven"
        f"{middle - start:>9.2f} s greedy{end - middle:>9.2f} s with bound"
    )


def time_design(problem: Update, name: str, design: str) -> None:
    """Print the batches of a design, its bound and time."""
    start = time.process_time()
    decision = SYSTEM.design(design).run(problem)
    seconds = time.process_time() - start
    assert decision.plan is not None
    assert not len(check(problem, decision.plan).of_limits(decision.guarantees))
    proof = decision.proof
    assert proof.objective is not None
    assert proof.bound is None or proof.bound <= proof.objective
    print(
        f"{name:<20}{len(problem.classes):>6} pairs, {design:<16}{proof.objective:>4.0f} batches, bound "
        f"{proof.bound or 0:.0f}{seconds:>9.2f} s"
    )


def main() -> None:
    arguments = parser_of(__doc__).parse_args()
    print(machine())
    for design in SYSTEM.designs:
        design.run(generators.small())  # compiles
    for name, count in BACKBONES[: 2 if arguments.quick else None]:
        time_rounds(name, count)
    for name, count, given, designs in PAIRS[: 2 if arguments.quick else None]:
        problem = generators.reweigh(name=name, classes="pairs", demands="gravity", count=count, **given)
        for chosen in designs:
            time_design(problem, name, chosen)


if __name__ == "__main__":
    main()
