"""Contracts: the bill of a month of five-minute windows against its bound, and the time of the plan.

    python -m benchmarks.contracts_month [--quick]

33,400 clients, 14 or 4 CDNs, 8,640 windows. Times are of the processor.

Asserted: the plan passes the check, its bill by separate code is that of its proof, it is within 1% of the
bound within 300 s (5% with 4 CDNs), and no rule costs less than the bound.
"""

from __future__ import annotations

import time

from benchmarks.common import machine, parser_of
from planner.options import Options
from planner_models.contracts import bill, check
from planner_models.contracts.designs.table import DESIGNS
from planner_models.contracts.plan.plan import read_loads
from planner_models.contracts.problem import generators

GAP = 0.01
GAP_OF_FEW = 0.05  # with 4 CDNs
MOST_SECONDS = 300.0
CENT = 0.01
MONTHS = ((1, 0, 14), (0, 0, 14), (2, 0, 14), (3, 1, 14), (1, 0, 4))  # seed, price steps, CDNs


def compare(seed: int, tiers: int, cdns: int) -> None:
    """Print a row of all designs on one month."""
    problem = generators.month(seed=seed, tiers=tiers, cdns=cdns)
    given = {"options": Options(gap=0.005, time_limit_s=120.0)}
    cells, bound = [], 0.0
    for design in DESIGNS:
        start = time.process_time()
        decision = design.decide(problem, **(given if design.name in ("optimum", "by_peak") else {}))
        seconds = time.process_time() - start
        assert decision.plan is not None
        assert not len(check(problem, decision.plan))
        cost = float(bill(problem, read_loads(problem, decision.plan))["amount"].sum())
        if design.name == "optimum":
            paid, bound = decision.proof.ranks[1].objective, decision.proof.ranks[1].bound
            assert abs(cost - paid) < CENT
            assert cost <= (1 + (GAP_OF_FEW if cdns < 5 else GAP)) * bound
            assert seconds <= MOST_SECONDS
        assert cost >= bound * (1 - 1e-9)
        cells.append(f"{cost / bound:>10.4f}{seconds:>8.1f} s")
    print(f"seed {seed}, {tiers} tiers, {cdns:>2} CDNs {bound:>12,.2f}{''.join(cells)}", flush=True)


def main() -> None:
    arguments = parser_of(__doc__).parse_args()
    print(machine())
    print(f"{'bills over the bound':<37}" + "".join(f"{design.name:>20}" for design in DESIGNS))
    for seed, tiers, cdns in MONTHS[: 1 if arguments.quick else None]:
        compare(seed, tiers, cdns)


if __name__ == "__main__":
    main()
