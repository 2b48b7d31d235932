"""Contracts: bills of months of five-minute windows against their bounds, and the time of the plans.

    python -m benchmarks.contracts_month [--quick]

33,400 clients, 14 CDNs and 8,640 windows, but for what a row names. Times are of the processor.

Asserted: plans pass the check, the bill by separate code is that of the proof, the bill of `optimum` is
within 1% of the bound within 300 s (other gaps are in `MONTHS`), and no rule costs less than the bound.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from benchmarks.common import machine, parser_of
from planner.options import Options
from planner_models.contracts import Month, bill, check
from planner_models.contracts.designs import DESIGNS
from planner_models.contracts.plan.plan import read_loads
from planner_models.contracts.problem import adjustments, generators
from planner_models.contracts.problem.problem import BILLING

GAP = 0.01
MOST_SECONDS = 300.0
CENT = 0.01
RULES = ("commitments_first", "cheapest_first", "fixed_shares")


class Case(NamedTuple):
    """A month: its name, parameters of the generator, billing rule of all contracts, switching limit, gap."""

    name: str
    parameters: dict[str, Any]
    billing: str | None = None
    max_moved_percent: float | None = None
    gap: float = GAP


MONTHS = (
    Case("seed 1", {"seed": 1}),
    *(Case(f"seed {seed}", {"seed": seed}) for seed in (0, 2, 3, 4, 5)),
    Case("30 CDNs", {"cdns": 30}),
    Case("4 CDNs", {"cdns": 4, "seed": 1}),
    Case("6 CDNs, capacity 1.2", {"cdns": 6, "capacity": 1.2, "seed": 1}),
    Case("a week of hours", {"days": 7, "window_minutes": 60}),
    Case("three days", {"days": 3}),
    Case("commitments of all traffic", {"committed": 1.0}),
    Case("no commitments", {"committed": 0.0}),
    Case("capacity 1.2 of the busiest hour", {"capacity": 1.2}, gap=0.016),
    Case("capacity 4 times the busiest hour", {"capacity": 4.0}),
    Case("two price steps", {"tiers": 2}),
    *(Case(f"all by the {rule}", {}, billing=rule) for rule in BILLING),
    *(
        Case(f"{share:g}% moved, a week of hours", {"days": 7, "window_minutes": 60}, None, share, gap=gap)
        for share, gap in ((10.0, GAP), (2.0, GAP), (0.0, 0.02))
    ),
    Case("10% moved, a month of hours", {"window_minutes": 60}, max_moved_percent=10.0, gap=0.012),
)


def make(case: Case) -> Month:
    """Return the problem of a case."""
    problem = generators.month(**case.parameters)
    if case.billing is not None:
        problem = problem.with_contracts(billing=case.billing)
    return adjustments.adjust(problem, max_moved_percent=case.max_moved_percent)


def compare(case: Case) -> None:
    """Print a row of all designs on one month."""
    problem = make(case)
    arguments = {"options": Options(gap=0.005, time_limit_s=MOST_SECONDS)}
    cells, bound = [], 0.0
    for design in DESIGNS:
        start = time.process_time()
        decision = design.decide(problem, **({} if design.name in RULES else arguments))
        seconds = time.process_time() - start
        assert decision.plan is not None
        violations = check(problem, decision.plan)
        assert not len(violations) or design.name not in ("optimum", "by_peak")
        cost = float(bill(problem, read_loads(problem, decision.plan))["amount"].sum())
        if design.name == "optimum":
            paid, bound = decision.proof.ranks[1].objective, decision.proof.ranks[1].bound
            assert abs(cost - paid) < CENT
            assert cost <= (1 + case.gap) * bound
            assert seconds <= MOST_SECONDS
        assert cost >= bound * (1 - 1e-9) or len(violations)
        cells.append(f"{cost / bound:>10.5f}{seconds:>8.1f} s")
    print(f"{case.name:<34}{bound:>12,.2f}{''.join(cells)}", flush=True)


def main() -> None:
    arguments = parser_of(__doc__).parse_args()
    print(machine())
    print(f"{'bills over the bound':<46}" + "".join(f"{design.name:>20}" for design in DESIGNS))
    for case in MONTHS[: 1 if arguments.quick else None]:
        compare(case)


if __name__ == "__main__":
    main()
