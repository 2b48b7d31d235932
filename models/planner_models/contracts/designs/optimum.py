"""The least bill: a relaxation for the bound, a search for the plan, an integer program where small.

Bound on a bill in integer cents, from a bound on its computed value.

Each contract's amount is rounded to the nearest cent, half a cent up: it is less than half a cent below what
it computes to, and exactly known where the contract cannot be billed for more than its commitment. A bill is
a whole number of cents above that. Where bills are so small that these halves of a cent matter, an integer
program of the month finds the least bill in cents itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Final, Literal, NamedTuple

import numpy as np
from pydantic import Field

from planner import backends
from planner.arrays import Floats, Ints
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import ProgramBuilder
from planner.contract.design import Decision
from planner.contract.proof import OPTIMAL_GAP, RankProof
from planner.errors import InputError
from planner.options import Options, Service
from planner.search.deadline import Deadline
from planner.search.judged import feasible, judged, undecided
from planner.search.tolerances import COARSE_GAP, ROUNDING
from planner_models.contracts.designs import (
    bill_boxes,
    burst_sets,
    free_windows,
    level_boxes,
    program,
    shared_bills,
    switching,
)
from planner_models.contracts.designs.program import MonthProgram, Region
from planner_models.contracts.designs.rules import pour_commitments_first, prove_shortage
from planner_models.contracts.plan.metrics import measure, unserved_price
from planner_models.contracts.plan.plan import Loads, make_plan, round_to_cents
from planner_models.contracts.problem.problem import Month

DEFAULT_GAP: Final = COARSE_GAP
DEFAULT_TIME_LIMIT_S: Final = 60.0
FREE_SHARES: Final = (1.0, 0.97, 0.94, 0.92, 0.9, 0.88, 0.85, 0.8, 0.7, 0.5, 0.0)
"""Parts of the free windows that the relaxation may use, for levels that leave fewer windows without a
contract."""
WORSE: Final = 1.05  # times the best cost: relaxations with fewer free windows are not tried beyond it
RELAXED: Final = 0.5  # of the time limit, for what follows the relaxations
KEPT: Final = 0.2  # of the time limit, for the loads after the search
MOST_BINARIES: Final = 2_000  # windows times contracts up to which "auto" also solves the integer program
BOXES: Final = 0.7  # of the time that is left, for boxes of levels of shared bills before an integer program
MOST_ROUNDS: Final = 4  # of bound and plan of shared bills, which start from one another
LEAST_SAVED: Final = 1e-5  # of the bill, by a round
LEAST_SOLVE_S: Final = 0.1  # time limit of a solver where less is left
LATE_SOLVE_S: Final = 1.0  # time limit of the small program that gives a plan where no time is left
CENT: Final = 0.01
SAME_CENT: Final = ROUNDING
CENTS_LIMIT_S: Final = 5.0
"""Seconds for the least bill in cents, where the bill is small."""

Method = Annotated[
    Literal["auto", "search", "exact"],
    Field(
        description="search: relaxation and search; exact: integer program; auto: search, then exact where "
        "that is small and its gap too large"
    ),
]
HALF: Final = 0.5 - 1e-5
"""Largest part of a cent that rounds down; nearer to half a cent, a solver's tolerance would decide."""


class RegionDecision(NamedTuple):
    """Loads (W, N) of a region with their cost, and a bound on it; None where unknown."""

    load: Floats | None
    cost: float | None
    bound: float | None
    backend: str


def plan(problem: Month, *, method: Method = "auto", options: Options = Options()) -> Decision[Loads]:
    """Plan the loads of a month with the least bill, with a bound on the bill of any plan.

    Each region has its own contracts and is planned by itself.

    returns  Decision with Loads; objective and bound are of metric "objective"
    raises   InputError for a backend that cannot solve integer programs
    """
    return _plan(problem, method=method, options=options, use_free_windows=True)


def plan_by_peak(problem: Month, *, method: Method = "auto", options: Options = Options()) -> Decision[Loads]:
    """Plan the loads with the least bill if no window were free: a planner that ignores the rule.

    returns  Decision with Loads; its objective has no bound, as it is not what is minimised
    """
    decision = _plan(problem, method=method, options=options, use_free_windows=False)
    if decision.plan is None:
        return decision
    objective = measure(problem, decision.plan, None)["objective"]
    proof = feasible(objective, metric="objective", backend=decision.proof.backend)
    return replace(decision, proof=proof)


def relaxed_bill(problem: Month, area: Ints, options: Options = Options()) -> float | None:
    """Return a bound on the bill of a part's regions (R,) of any plan that carries the servable traffic.

    None where unknown.
    """
    if not problem.is_plain(area):
        return shared_bills.relax(shared_bills.Part.of(problem, area), replace(options, gap=1e-4))
    region = Region.of(problem, int(area[0]))
    in_order = region.moved_share < 1 and region.most.size <= switching.MOST_CELLS
    built = program.build(region, in_order=in_order)
    return backends.solve(built.program, replace(options, gap=1e-4)).bound


def build_model(problem: Month, *, method: Method = "auto", service: Service = "best") -> LinearProgram:  # noqa: ARG001
    """Build the exact integer program of a month, in which each region is a block of its own.

    Its objective counts traffic that cannot be carried, as `formulation` does.
    """
    require_contracts(problem)
    programs = {name: built.program for name, (_, built) in build_exactly(problem).items()}
    for area in problem.parts:
        if not problem.is_plain(area):
            name = ", ".join(problem.regions[row] for row in area.tolist())
            programs[name] = shared_bills.build(shared_bills.Part.of(problem, area), exact=True).program
    return describe(problem, LinearProgram.join(programs, name="contracts"))


def require_contracts(problem: Month) -> None:
    """Raise InputError where no region has a contract."""
    if not len(problem.contracts):
        raise InputError("contracts: no region has a contract, so that there is nothing to model")


def build_exactly(problem: Month) -> dict[str, tuple[Region, MonthProgram]]:
    """Return the exact integer program of each region planned by itself that has contracts, by its name."""
    rows = [int(area[0]) for area in problem.parts if problem.is_plain(area)]
    regions = {str(problem.regions[row]): Region.of(problem, row) for row in rows}
    return {
        name: (region, program.build(region, exact=True))
        for name, region in regions.items()
        if len(region.contracts)
    }


def describe(problem: Month, joined: LinearProgram) -> LinearProgram:
    """Return the program of all regions with the cost of traffic that cannot be carried, described."""
    short_mbps = float((problem.traffic_mbps - problem.servable_mbps).sum()) / problem.windows
    complete = replace(joined, offset=short_mbps * unserved_price(problem))
    about = "the bill of the month, with a price on traffic that cannot be carried"
    return complete.describe(about, metric="objective")


def _plan(problem: Month, *, method: Method, options: Options, use_free_windows: bool) -> Decision[Loads]:
    shortage = prove_shortage(problem, options)
    if shortage is not None:
        return Decision(plan=None, proof=shortage)
    deadline = Deadline.of(options, default_s=DEFAULT_TIME_LIMIT_S)
    load = np.zeros((problem.windows, len(problem.names)))
    bound: float | None = 0.0
    backend = ""
    for number, area in enumerate(problem.parts):
        share = deadline.left_s / (len(problem.parts) - number)
        made = plan_part(
            problem,
            area,
            method=method,
            options=options,
            time_limit_s=share,
            use_free_windows=use_free_windows,
        )
        if made.load is None:
            proof = undecided(backend=made.backend)
            return Decision(plan=None, proof=proof)
        load[:, np.isin(problem.region, area)] = made.load
        bound = None if bound is None or made.bound is None else bound + made.bound
        backend = made.backend
    return _decide(problem, load, bound, backend, options, deadline)


def _highest(*bounds: float | None) -> float | None:
    """Return the highest of some bounds; None for none."""
    return max((bound for bound in bounds if bound is not None), default=None)


def plan_part(
    problem: Month,
    area: Ints,
    *,
    method: Method,
    options: Options,
    time_limit_s: float,
    use_free_windows: bool = True,
) -> RegionDecision:
    """Plan the regions (R,) of a part: one by itself, or several that share a bill."""
    if problem.is_plain(area):
        region = Region.of(problem, int(area[0]), use_free_windows=use_free_windows)
        return plan_region(region, method=method, options=options, time_limit_s=time_limit_s)
    gap = DEFAULT_GAP if options.gap is None else options.gap
    limits = shared_bills.Limits(
        replace(options, gap=min(gap, 1e-4)), gap, Deadline.after(time_limit_s), LEAST_SOLVE_S
    )
    shared = shared_bills.Part.of(problem, area, use_free_windows=use_free_windows)
    if method == "exact" or not bill_boxes.is_suitable(shared):
        return RegionDecision(*shared_bills.plan_part(shared, method=method, limits=limits))
    made = shared_bills.plan_part(shared, method="search", limits=limits)
    early = limits._replace(deadline=limits.deadline.share_left(BOXES))
    made = _close_gap(shared, made, early)
    if method == "auto" and not limits.ends(made):
        made = shared_bills.solve_exactly(shared, made, limits)
    return RegionDecision(*made)


def _close_gap(
    area: shared_bills.Part, made: shared_bills.PartDecision, limits: shared_bills.Limits
) -> shared_bills.PartDecision:
    """Return a plan with a higher bound by boxes of levels, improved at the levels where the bound stays."""
    for _ in range(MOST_ROUNDS):
        if limits.ends(made) or made.cost is None:
            break
        raised = bill_boxes.find_bound(
            area,
            lower=made.bound or 0.0,
            enough=made.cost / (1 + 0.99 * limits.gap),
            options=limits.solver(),
            deadline=limits.deadline,
        )
        before, made = made.cost, made._replace(bound=max(raised.bound, made.bound or 0.0))
        if raised.score is None or limits.ends(made):
            break
        made = shared_bills.improve(area, made, raised.score, limits)
        if made.cost is None or made.cost > before * (1 - LEAST_SAVED):
            break
    return made


def plan_region(region: Region, *, method: Method, options: Options, time_limit_s: float) -> RegionDecision:
    """Plan one region, within its limit of switching where it has one."""
    if region.moved_share >= 1 or len(region.traffic) < 2 or not len(region.contracts):
        return _plan_freely(region, method=method, options=options, time_limit_s=time_limit_s)
    deadline = Deadline.after(time_limit_s)
    gap = DEFAULT_GAP if options.gap is None else options.gap
    limited = replace(options, gap=min(gap, 1e-4), time_limit_s=max(time_limit_s / 4, LEAST_SOLVE_S))
    if method == "exact":
        return _solve_exactly(region, limited, deadline)
    quarter = deadline.share(0.25)
    free = _plan_freely(
        switching.without_limit(region), method="search", options=options, time_limit_s=time_limit_s / 4
    )
    assert free.load is not None
    if switching.is_within_limit(region, free.load) and not quarter.is_over:
        return free
    bound = _highest(switching.find_bound(region, limited), free.bound)
    load = switching.find_loads(
        region,
        free.load,
        limited,
        is_enough=lambda cost: bound is not None and cost <= bound * (1 + gap) + CENT,
        deadline=deadline,
    )
    incumbent = RegionDecision(load, free_windows.load_cost(region, load), bound, free.backend)
    is_small = method == "auto" and region.most.size <= MOST_BINARIES
    if is_small and (bound is None or (incumbent.cost or 0.0) > bound * (1 + gap) + CENT):
        return _best_of(region, incumbent, _solve_exactly(region, replace(limited, gap=gap), deadline))
    return incumbent


def _best_of(region: Region, current: RegionDecision, exact: RegionDecision) -> RegionDecision:
    """Return the decision of less cost that keeps the limit of switching, with the larger bound."""
    bound = max((value for value in (current.bound, exact.bound) if value is not None), default=None)
    is_better = exact.load is not None and exact.cost is not None and exact.cost < (current.cost or np.inf)
    if is_better and exact.load is not None and switching.is_within_limit(region, exact.load):
        return exact._replace(bound=bound)
    return current._replace(bound=bound)


def _plan_freely(region: Region, *, method: Method, options: Options, time_limit_s: float) -> RegionDecision:
    """Plan one region: levels from the relaxation, the integer program where small, search, and the bound."""
    deadline = Deadline.after(time_limit_s)
    if not len(region.contracts):
        return RegionDecision(np.zeros((len(region.traffic), 0)), 0.0, 0.0, "no contracts")
    gap = DEFAULT_GAP if options.gap is None else options.gap
    relaxed = deadline.options(replace(options, gap=min(gap, 1e-4)), minimum_s=LEAST_SOLVE_S)
    if method == "exact":
        return _solve_exactly(region, relaxed, deadline)

    levels, bound, backend = _rate_relaxations(region, relaxed, deadline.share(1 - RELAXED))
    best = _fill_first(region, levels[0], relaxed, deadline)

    def is_open() -> bool:
        return bound is None or best.cost > bound * (1 + gap) + CENT

    if method == "auto" and region.most.size <= MOST_BINARIES and is_open() and not deadline.is_over:
        exact = _solve_exactly(region, replace(relaxed, gap=gap), deadline.share_left(0.5))
        bound = _highest(bound, exact.bound)
        if exact.load is not None and exact.cost is not None and exact.cost < best.cost:
            best = free_windows.Filling(exact.load, 0.0, exact.cost)
    best = _search_levels(
        region,
        levels,
        best,
        enough=0.0 if bound is None else bound * (1 + gap),
        options=relaxed,
        deadline=deadline.share(1 - KEPT),
    )
    if bound is not None and is_open() and not deadline.is_over:
        bound, other = _raise_bound(region, bound, best.cost / (1 + gap), relaxed, deadline)
        if other is not None and not deadline.is_over:
            best = _better(best, free_windows.complete(region, other, relaxed, deadline=deadline))
    return RegionDecision(best.load, best.cost, bound, backend)


def _raise_bound(
    region: Region, lower: float, enough: float, options: Options, deadline: Deadline
) -> level_boxes.IntervalBound:
    """Return a bound on the bill, at least `lower`, by branching on levels where few, or on their sum.

    Beside contracts billed by the mean neither is always the better one, so both are tried.
    """
    interval = level_boxes.IntervalBound(lower, None)
    has_few_levels = level_boxes.is_suitable(region)
    if region.is_mean.any() or not has_few_levels:
        end = deadline.share_left(0.5) if has_few_levels else deadline
        interval = level_boxes.find_interval_bound(
            region, lower=lower, enough=enough, options=options, deadline=end
        )
    if has_few_levels and interval.bound < enough and not deadline.is_over:
        return level_boxes.find_bound(region, lower=interval.bound, enough=enough, deadline=deadline)
    return interval


def _search_levels(
    region: Region,
    levels: list[Floats],
    best: free_windows.Filling,
    *,
    enough: float,
    options: Options,
    deadline: Deadline,
) -> free_windows.Filling:
    """Return the best of a filling and those of searches from each of `levels`.

    enough     cost at which the searches end
    deadline   when the search ends
    """
    for level in levels if (region.free > 0).any() else ():
        if best.cost <= enough + CENT or deadline.is_over:
            break
        search_result = free_windows.search(
            region, level, is_enough=lambda cost: cost <= enough, deadline=deadline
        )
        best = _better(best, free_windows.complete(region, search_result, options, deadline=deadline))
    return best


def _better(best: free_windows.Filling, other: free_windows.Filling | None) -> free_windows.Filling:
    """Return the filling of less cost."""
    return best if other is None or other.cost >= best.cost else other


def _fill_first(region: Region, level: Floats, options: Options, deadline: Deadline) -> free_windows.Filling:
    """Return a filling that carries all traffic, from levels (N,); one of little work where time is over."""
    nothing_free = np.zeros(region.most.shape, dtype=bool)  # only by rounding: the highest levels carry all
    best = free_windows.fill(region, region.level_limits[1], nothing_free)
    if not deadline.is_over:
        best = free_windows.complete(region, level, options, deadline=deadline) or best
    if not deadline.is_over:
        return best
    for load in (
        pour_commitments_first(region),
        switching.find_rising(region, replace(options, time_limit_s=LATE_SOLVE_S)),
    ):
        if load is not None:
            best = _better(best, free_windows.Filling(load, 0.0, free_windows.load_cost(region, load)))
    return best


def _rate_relaxations(
    region: Region, options: Options, deadline: Deadline
) -> tuple[list[Floats], float | None, str]:
    """Return levels to search from, the bound, and the backend.

    First the levels of the relaxation that the master program rates best, then those of the relaxation with
    all free windows, which gives the bound: these need more windows than there are, but a search from them
    often ends lower.
    """
    rated: list[tuple[float, Floats]] = []
    bound, backend = None, ""
    master = burst_sets.MasterProgram(region, free_windows.SEARCH_GROUPS)
    for free_share in FREE_SHARES:
        built = program.build(region, free_share=free_share)
        if free_share < 1.0:  # the first one gives the bound
            options = deadline.options(options, minimum_s=LEAST_SOLVE_S)
        solution = backends.solve(built.program, options)
        backend = solution.backend or backend
        if free_share == 1.0:
            bound = solution.bound
        if solution.x is None:
            if deadline.is_over:
                break
            continue
        level = built.level.values(solution.x)
        rated.append((master.rate(level), level))
        best = min(cost for cost, _ in rated)
        if (region.free == 0).all() or deadline.is_over or rated[-1][0] > WORSE * best:
            break
    if not rated:
        return [region.level_limits[1]], bound, backend
    best_at = min(range(len(rated)), key=lambda index: rated[index][0])
    return [rated[index][1] for index in sorted({best_at, 0}, reverse=True)], bound, backend


def _solve_exactly(region: Region, options: Options, deadline: Deadline) -> RegionDecision:
    """Solve the integer program of a region."""
    built = program.build(region, exact=True)
    limited = deadline.options(options, minimum_s=LEAST_SOLVE_S)
    solution = backends.solve(built.program, limited)
    backend = solution.backend or ""
    if solution.x is None:
        return RegionDecision(None, None, solution.bound, backend)
    load = program.repair(region, built.load.values(solution.x))
    return RegionDecision(load, free_windows.load_cost(region, load), solution.bound, backend)


def _decide(
    problem: Month, load: Floats, bound: float | None, backend: str, options: Options, deadline: Deadline
) -> Decision[Loads]:
    """Return the decision for (W, N) loads and a bound on the computed value of the bill.

    deadline  when the search for a bound in cents ends
    """
    made = make_plan(problem, load)
    figures = measure(problem, made, None)
    cost, objective = figures["bill"], figures["objective"]
    assert cost is not None
    assert objective is not None
    if bound is None:
        proof = feasible(objective, metric="objective", backend=backend)
        return Decision(plan=made, proof=proof)
    lowest = min(least_bill(problem, problem.parts, bound), cost)
    if _needs_cents(problem, cost, lowest, bound):
        limit_s = min(max(deadline.left_s, 0.1), CENTS_LIMIT_S)
        in_cents, other = solve_in_cents(problem, replace(options, gap=None, time_limit_s=limit_s))
        lowest = min(max(lowest, in_cents or 0.0), cost)
        if other is not None:
            made, figures = _cheaper(problem, made, figures, make_plan(problem, other))
            cost, objective = figures["bill"], figures["objective"]
            assert cost is not None
            assert objective is not None
    gap = DEFAULT_GAP if options.gap is None else options.gap
    short = float((problem.traffic_mbps - problem.servable_mbps).sum()) / problem.windows
    delivered, offered = figures["delivered_mbps"], figures["offered_mbps"]
    assert delivered is not None
    assert offered is not None
    is_proven = cost - lowest <= gap * cost
    proof = judged(
        "min",
        objective,
        min(bound + short * unserved_price(problem), objective),
        is_optimal=is_proven,
        metric="objective",
        ranks=(
            RankProof("delivered_mbps", delivered, max(offered - short, delivered)),
            RankProof("bill", cost, lowest),
        ),
        backend=backend,
    )
    return Decision(plan=made, proof=proof)


def _needs_cents(problem: Month, cost: float, lowest: float, bound: float) -> bool:
    """Return whether a bill is so small that only rounding to cents prevents its proof.

    lowest, bound  bounds on the bill and on what it computes to
    """
    is_small = problem.windows * len(problem.names) <= MOST_BINARIES and all(
        map(problem.is_plain, problem.parts)
    )
    is_close = cost - bound <= CENT * (1 + len(problem.names) / 2) + OPTIMAL_GAP * cost
    return is_small and is_close and cost - lowest > max(OPTIMAL_GAP * cost / 2, SAME_CENT)


def _cheaper(
    problem: Month, made: Loads, figures: dict[str, float | None], other: Loads
) -> tuple[Loads, dict[str, float | None]]:
    """Return the plan that carries as much and has the lower bill, with its figures."""
    changed = measure(problem, other, None)
    keys = [(values["unserved_mbps"], values["bill"]) for values in (changed, figures)]
    return (other, changed) if keys[0] < keys[1] else (made, figures)


def least_bill(problem: Month, parts: Sequence[Ints], computed: float) -> float:
    """Return a bound on the bill of parts, in whole cents, from a bound on the sum that it computes to."""
    halves, certain = 0, 0.0
    for area in parts:
        if not problem.is_plain(area):
            halves += len(np.unique(problem.bill[np.isin(problem.region, area)]))
            continue
        region = Region.of(problem, int(area[0]))
        for contract in range(len(region.contracts)):
            if _is_fixed(region, contract):
                exact = region.amount(contract, 0.0)
                certain += exact - round_to_cents(exact)
            else:
                halves += 1
    lowest = (computed - certain) / CENT - halves / 2
    accuracy = ROUNDING * max(abs(computed), 1.0) / CENT
    # amounts are less than half a cent lower, not by half a cent: so a whole number of cents is not reached
    cents = math.ceil(lowest - accuracy) if not halves else math.floor(lowest + accuracy) + 1
    return round(max(cents, 0) * CENT, 2)


def _is_fixed(region: Region, contract: int) -> bool:
    """Return whether a contract is never billed for more than its commitment."""
    upper = region.most[:, contract]
    largest = upper.mean() if region.is_mean[contract] else upper.max(initial=0.0)
    return bool(largest <= region.commitment[contract]) or not region.steps[contract][1].any()


def solve_in_cents(problem: Month, options: Options) -> tuple[float | None, Floats | None]:
    """Return a bound on the bill in whole cents, and loads (W, N), by an integer program for each region.

    None where unknown.
    """
    bound: float | None = 0.0
    load: Floats | None = np.zeros((problem.windows, len(problem.names)))
    for region, built in build_exactly(problem).values():
        solution = backends.solve(count_in_cents(built), options)
        if solution.bound is None or bound is None:
            bound = None
        else:
            bound += math.ceil(solution.bound - 1e-6) * CENT
        if solution.x is None or load is None:
            load = None
            continue
        repaired = program.repair(region, built.load.values(solution.x))
        load[:, region.contracts] = repaired
        if region.moved_share < 1 and not switching.is_within_limit(region, repaired):
            load = None
    return bound if bound is None else round(bound, 2), load


def count_in_cents(built: MonthProgram) -> LinearProgram:
    """Return a month's program with a whole number of cents for each contract as its objective."""
    m = ProgramBuilder.extend(built.program, name="contracts in cents", has_cost=False)
    count = built.level.shape[0]
    cents = m.variables("cents", count, cost=1.0, integer=True)
    price = built.program.cost[built.steps.columns] / CENT
    amount = (m[program.PRICE_STEPS] * price).sum_by(built.price_contracts, count)
    m.constrain("cents", amount - cents, upper=HALF)
    return m.build()
