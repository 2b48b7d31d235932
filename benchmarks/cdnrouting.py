"""Clusters and routes together: time and gap of all designs, on Abilene, Germany50 and a backbone of Europe.

    python -m benchmarks.cdnrouting [--quick] [--only-europe]

Kernels are compiled before. Goals, in user CPU seconds: Abilene, all designs with a bound, 2 s;
Germany50, `joint` with a gap of 0.1%, 3 s; Germany50, a reaction of 50 rounds, 60 s; Europe, `joint` with
a gap of 1%, 60 s.
"""

from __future__ import annotations

import argparse
import resource
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from benchmarks.common import machine
from planner.contract.design import Decision
from planner.kernels import compile_all
from planner.options import Options
from planner_models.cdnrouting import SYSTEM, Delivery, measure
from planner_models.cdnrouting.problem.generators import backbone
from planner_models.cdnrouting.problem.sources import split

GOALS: Final = {
    "abilene, all designs": 2.0,
    "germany50, joint": 3.0,
    "germany50, react_blind": 60.0,
    "europe, joint": 60.0,
}
GERMANY50: Final = {"clusters": 8, "load": 1.5, "seed": 1}
EUROPE: Final = {"clusters": 40, "locations": 200, "load": 1.5, "seed": 1}


def user_s() -> float:
    """Return the user CPU seconds of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def timed(run: Callable[[], Any]) -> tuple[Any, float]:
    """Return a result and the user CPU seconds that it took."""
    start = user_s()
    result = run()
    return result, user_s() - start


def decide(problem: Delivery, name: str, options: Options = Options(), **parameters: Any) -> Decision[Any]:
    """Return the decision of a design."""
    return SYSTEM.design(name).run(problem, options=options, parameters=parameters)


def compare_all(problem: Delivery) -> list[tuple[str, float | None, float]]:
    """Return the mean delay of each design's plan, ms, and its user seconds."""
    rows = []
    for design in SYSTEM.designs:
        decision, seconds = timed(partial(decide, problem, design.name))
        rows.append((design.name, measure(problem, decision.plan, None)["mean_delay_ms"], seconds))
    return rows


def main() -> None:
    """Print times and gaps beside the goals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="Abilene only")
    parser.add_argument("--only-europe", action="store_true", help="Europe only")
    arguments = parser.parse_args()
    print(machine())
    with compile_all():
        decide(backbone(nodes=5, clusters=2), "joint")
    if not arguments.only_europe:
        solve_small_networks(quick=arguments.quick)
    if not arguments.quick:
        solve_europe()


def solve_europe() -> None:
    """Print the time and the gap of `joint` on the backbone of Europe."""
    problem = split(network="traffic/europe", **EUROPE)
    decision, seconds = timed(lambda: decide(problem, "joint", Options(gap=1e-2)))
    assert decision.proof.gap <= 1e-2
    print(
        f"europe, joint: {measure(problem, decision.plan, None)['mean_delay_ms']:.3f} ms, gap "
        f"{decision.proof.gap:.2%}, {seconds:.1f} s, goal {GOALS['europe, joint']} s"
    )


def solve_small_networks(*, quick: bool) -> None:
    """Print times and gaps on Abilene and, unless quick, on Germany50."""
    abilene = split(network="traffic/abilene", clusters=4, load=2.2, seed=1)
    rows = compare_all(abilene)
    for name, delay, seconds in rows:
        print(f"abilene  {name:15s} {delay:9.3f} ms  {seconds:6.2f} s")
    total = sum(seconds for _, _, seconds in rows)
    print(f"abilene, all designs: {total:.2f} s, goal {GOALS['abilene, all designs']} s")
    if quick:
        return
    germany = split(network="traffic/germany50", **GERMANY50)
    decision, seconds = timed(lambda: decide(germany, "joint", Options(gap=1e-3)))
    print(
        f"germany50, joint: gap {decision.proof.gap:.2%}, {seconds:.2f} s, goal {GOALS['germany50, joint']} s"
    )
    _, seconds = timed(lambda: decide(germany, "react_blind", rounds=50))
    print(f"germany50, react_blind, 50 rounds: {seconds:.1f} s, goal {GOALS['germany50, react_blind']} s")


if __name__ == "__main__":
    main()
