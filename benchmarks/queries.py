"""Queries on traffic: time of the optimum, of a rule and of the check, for more switches and packets.

    python -m benchmarks.queries [--quick]

Switches of preset `edge` with its twelve queries; half of the cases have half of the table space. Times are
of the processor.

Asserted: plans pass the check, which emulates every packet, and no rule is better than the bound.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from benchmarks.common import machine, parser_of
from planner import clock
from planner.options import Options
from planner_models.queries import SYSTEM, check, measure
from planner_models.queries.problem.generators import edge

T = TypeVar("T")
SIZES = ((1, 150), (4, 150), (16, 150), (4, 600), (4, 2_400), (64, 150))
QUICK = 3
SCALES = (1, 2)
LIMIT_S = 60.0
TOLERANCE = 1e-9


def measure_time(run: Callable[[], T]) -> tuple[T, float]:
    """Return the result of a function and its CPU seconds."""
    start = clock.cpu_now()
    return run(), clock.cpu_now() - start


def compare(switches: int, connections: int, scale: int) -> None:
    """Print a row of one problem."""
    problem = edge(
        switches=switches,
        connections=connections,
        rules=150 * scale,
        exact_rules=50 * scale,
        packets_per_s=connections / 75,
    )
    best, best_s = measure_time(
        lambda: SYSTEM.design("optimum").run(problem, options=Options(time_limit_s=LIMIT_S, threads=1))
    )
    rule, rule_s = measure_time(lambda: SYSTEM.design("specialization").run(problem))
    assert best.plan is not None
    assert rule.plan is not None
    plan, bound = best.plan, best.proof.bound
    assert bound is not None
    violations, check_s = measure_time(lambda: check(problem, plan))
    assert not len(violations), violations.sentences()
    answered = [measure(problem, made, None)["answered"] or 0.0 for made in (plan, rule.plan)]
    assert max(answered) <= bound * (1 + TOLERANCE)
    packets = problem.size()["packets"]
    print(
        f"{switches:>9}{packets:>9,}{150 * scale:>7}{answered[0]:>10.4g}{bound:>9.4g}"
        f"{answered[1]:>9.4g}{best_s:>9.2f} s{rule_s:>7.2f} s{check_s:>7.2f} s",
        flush=True,
    )


def main() -> None:
    arguments = parser_of(__doc__).parse_args()
    print(machine())
    print(" switches  packets  rules   optimum    bound     rule    optimum     rule    check")
    for switches, connections in SIZES[: QUICK if arguments.quick else len(SIZES)]:
        for scale in SCALES:
            compare(switches, connections, scale)


if __name__ == "__main__":
    main()
