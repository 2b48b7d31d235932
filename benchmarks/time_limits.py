"""CPU seconds that decisions take beyond a limit of a second, on the largest problem of every system.

    python -m benchmarks.time_limits [--quick] [--only SYSTEM ...]

Every design of all systems decides under the limit, which counts CPU seconds; the goal is that it decides
within a second beyond it. The second column has the seconds with the check of the plan and all its metrics,
which follow the decision. Compiling is not counted. A design that does not apply to the problem is named
with the reason.

Asserted: every design that applies ends within the goal, with a plan that is no better than its bound, with a
proof that there is none, or with the reason why it has none; a design that only bounds plans, with a bound.
"""

from __future__ import annotations

from dataclasses import replace
from functools import wraps
from typing import Any, Final

from benchmarks.common import machine, parser_of
from planner import clock
from planner.contract.proof import Status
from planner.errors import InputError
from planner.options import Options
from planner.runs.evaluation import compile_ahead, evaluate
from planner.runs.run import Run
from planner.scenarios.scenario import Scenario, load

LIMIT_S: Final = 1.0
GOAL_S: Final = 1.0
SCENARIOS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("analytics/diurnal_200", {}),
    ("brokering/market_3m", {}),
    ("capacity/national", {}),
    ("cdnrouting/germany50", {}),
    ("circuitflows/one_ring", {"problem.horizon_us": 10_000_000}),
    ("circuits/skewed_512", {}),
    ("coflows/mapreduce", {}),
    ("consolidation/fleet_100k", {}),
    ("contracts/month", {}),
    ("contracts/switching", {}),
    ("fairshare/zipf_1000", {}),
    ("flowtables/acl_1k", {}),
    ("geostore/world_60", {}),
    ("livevideo/average_day_2k_edges", {}),
    ("membership/regions_etcd", {}),
    ("multicast/figure_5a", {}),
    ("queries/edge", {}),
    ("rotors/urgent", {}),
    ("topology/blocks_64", {}),
    ("traffic/world", {}),
    ("updates/tata_table_space", {}),
)
"""The largest shipped scenario of each system, with changes; contracts have one with a limit of switching."""
QUICK: Final = ("contracts", "rotors")


def time_design(scenario: Scenario, problem: Any, label: str) -> tuple[Run, float, float]:
    """Decide, check and measure by one design under a limit of CPU seconds.

    returns  the run, the CPU seconds of the decision, and those of all of it
    raises   InputError where the design does not apply to the problem
    """
    options, entry = Options(time_limit_s=LIMIT_S), scenario.entry(label)
    compile_ahead(scenario.system, entry, options)
    decide, decided = entry.design.decide, 0.0

    @wraps(decide)
    def timed(*arguments: Any, **keywords: Any) -> Any:
        nonlocal decided
        start = clock.now()
        decision = decide(*arguments, **keywords)
        decided = clock.now() - start
        return decision

    entry = replace(entry, design=replace(entry.design, decide=timed))
    with clock.count_cpu_seconds():
        start = clock.now()
        run = evaluate(scenario.system, problem, entry, options=options)
        return run, decided, clock.now() - start


def find_fault(run: Run) -> str | None:
    """Return the missing part of a run at the limit: a plan or its replacement; None if nothing.

    A proof that there is no plan, a bound, or a reason stand for it. A plan that is better than its bound is
    a fault, too.
    """
    proof = run.proof
    if (
        run.plan is None
        and proof.status is not Status.INFEASIBLE
        and proof.bound is None
        and not proof.reasons
    ):
        return "no plan, no bound and no reason"
    return "better than its bound" if proof.gap is not None and proof.gap < 0 else None


def main() -> None:
    """Print the times of each design, and fail where one is late."""
    parser = parser_of(__doc__)
    parser.add_argument("--only", nargs="*", default=[], help="only these systems")
    arguments = parser.parse_args()
    only = arguments.only or (QUICK if arguments.quick else ())
    print(f"{machine()}; limit {LIMIT_S:g} s, goal {GOAL_S:g} s beyond; CPU seconds")
    print(f"{'':56}decision   with check and metrics")
    faults: list[str] = []
    for name, changes in SCENARIOS:
        if only and name.split("/")[0] not in only:
            continue
        scenario = load(name, changes=changes)
        problem = scenario.make_problem()
        for design in scenario.system.designs:
            case = f"{name:<32}{design.name:<24}"
            try:
                run, seconds, total = time_design(scenario, problem, design.name)
            except InputError as error:
                print(f"{case}does not apply: {str(error)[:60]}", flush=True)
                continue
            fault = find_fault(run) or ("late" if seconds > LIMIT_S + GOAL_S else None)
            faults += [] if fault is None else [f"{case}{fault}"]
            print(f"{case}{seconds:>7.2f} s {total:>7.2f} s   {fault or ''}".rstrip(), flush=True)
    assert not faults, "\n".join([f"late, or without what they owe, {GOAL_S:g} s after the limit:", *faults])


if __name__ == "__main__":
    main()
