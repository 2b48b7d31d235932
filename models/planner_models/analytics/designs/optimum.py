"""The most value of answers: prices of uplinks, branch and bound over answers, integer programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Final, Literal, NamedTuple

import numpy as np
from pydantic import Field

from planner import backends
from planner.arrays import Floats, Ints
from planner.backends.linear_program import LinearProgram
from planner.contract.design import Decision
from planner.contract.proof import Proof, Status, relative_gap
from planner.options import Options, Service
from planner.search.judged import gap_of, infeasible, judged, undecided
from planner.search.tolerances import OPTIMALITY, STATED_GAP
from planner_models.analytics.designs import branching, prices
from planner_models.analytics.designs.choices import Choices, Interval
from planner_models.analytics.designs.decision import BUT_ANSWERS, IntervalDeadline, say_shortages
from planner_models.analytics.designs.program import build_interval
from planner_models.analytics.designs.program import build_model as build_program
from planner_models.analytics.designs.shedding import SCOPE, fit_interval, leave_out
from planner_models.analytics.plan.plan import Levels, make_plan
from planner_models.analytics.problem.problem import Analytics
from planner_models.analytics.problem.tables import find_rows

MOST_BINARIES: Final = 400  # choices of an interval up to which "auto" also solves its integer program
EXACT_GAP: Final = OPTIMALITY
AGAIN_GAP: Final = 2e-3  # of an interval, above which prices from nothing are a second start
BACKEND: Final = "prices and branching"

Method = Annotated[
    Literal["auto", "search", "exact"],
    Field(
        description="search: prices, branch and bound over answers, local search; exact: integer program; "
        "auto: search, then exact for intervals that are small"
    ),
]


class Planned(NamedTuple):
    """Levels of sites of an interval, (S, Q), their value and a bound on it, USD, and the uplinks' prices.

    answers  (n,) of shared queries, for a start of the next interval
    """

    chosen: Ints | None
    value: float
    bound: float | None
    price: Floats
    answers: Ints
    backend: str


def _add_up(bounds: Sequence[float | None]) -> float | None:
    """Return the bound on the sum of intervals; None where one has none."""
    total = 0.0
    for bound in bounds:
        if bound is None:
            return None
        total += bound
    return total


def plan(
    problem: Analytics,
    *,
    method: Method = "auto",
    options: Options = Options(),
    previous: Decision[Levels] | None = None,
) -> Decision[Levels]:
    """Choose levels of most value within all capacities, with a bound on the value of any plan.

    Branch and bound chooses answers of queries with one answer for all sites, and bounds the rest by prices.
    Intervals do not depend on each other; prices and answers of one are the start of the next, and those of
    the previous plan's last interval the start of the first.

    returns  Decision with Levels; objective and bound are of metric "value"
    raises   InputError for a backend that cannot solve integer programs
    """
    must_answer = options.service == "all"
    choices = Choices(problem, must_answer=must_answer)
    deadline = IntervalDeadline(options, len(problem.interval_numbers))
    planned: list[Planned] = []
    last = _start_from(problem, choices, previous)
    is_cut = False
    for k in range(len(problem.interval_numbers)):
        deadline.start_interval()
        interval, reason = fit_interval(choices, k)
        deadline.end_build()
        if reason is not None:
            return Decision(plan=None, proof=infeasible(reason, metric="value"))
        remaining_s = deadline.search_s()
        is_cut = is_cut or remaining_s <= 0
        before = last
        last = plan_interval(choices, interval, before, method=method, options=options, left_s=remaining_s)
        is_infeasible = last.chosen is None and last.bound is None and not must_answer
        if is_infeasible and leave_out(choices, k, _say_none_fits(problem, k)):
            interval = choices.interval(k)
            last = plan_interval(
                choices, interval, before, method=method, options=options, left_s=remaining_s
            )
        if last.chosen is None:
            return Decision(plan=None, proof=_prove_none(problem, k, last))
        planned.append(last)
    return _decide(problem, choices, planned, options, is_cut=is_cut)


def _decide(
    problem: Analytics, choices: Choices, planned: Sequence[Planned], options: Options, *, is_cut: bool
) -> Decision[Levels]:
    """Return the decision of the planned intervals; its bound is the sum of theirs."""
    bound = _add_up([interval.bound for interval in planned])
    levels = np.array([interval.chosen for interval in planned])
    made = make_plan(problem, choices.without_left_out(levels), planned[-1].price)
    others = [interval.backend for interval in planned if interval.backend != BACKEND]
    proof = judged(
        "max",
        float(made.answers["value_usd"].sum()),
        bound,
        gap=gap_of(options, default=STATED_GAP),
        metric="value",
        backend=others[-1] if others else BACKEND,
        is_cut=is_cut,
        reasons=say_shortages(choices),
    )
    if not choices.shortages:
        return Decision(plan=made, proof=proof)
    proof = replace(proof, bound_scope=None if bound is None else SCOPE)
    return Decision(plan=made, proof=proof, guarantees=BUT_ANSWERS)


def read_prices(problem: Analytics, previous: Decision[Levels] | None) -> Floats | None:
    """Return the price of each uplink of the previous plan, (S + G,), USD; None where it has none."""
    if previous is None or previous.plan is None or not len(previous.plan.prices):
        return None
    frame = previous.plan.prices
    link = find_rows(problem.link_names, frame["link"])
    price = np.zeros(len(problem.link_names))
    price[link[link >= 0]] = frame["price_usd"].to_numpy(float)[link >= 0]
    return price


def _start_from(problem: Analytics, choices: Choices, previous: Decision[Levels] | None) -> Planned | None:
    """Return prices and answers of the previous plan's last interval; None where it has no prices."""
    price = read_prices(problem, previous)
    if price is None:
        return None
    assert previous is not None
    assert previous.plan is not None
    frame = previous.plan.answers
    frame = frame[frame["interval"] == frame["interval"].max()]
    query = find_rows(problem.query_names, frame["query"])
    level = np.zeros(len(problem.query_names), dtype=np.int64)
    level[query[query >= 0]] = np.maximum(problem.find_level_names(query, frame["level"])[query >= 0], 0)
    nothing = np.zeros((len(problem.site_names), len(problem.query_names)), dtype=np.int64)
    return Planned(nothing, 0.0, None, price, level[choices.shared], BACKEND)


def plan_interval(
    choices: Choices,
    interval: Interval,
    last: Planned | None,
    *,
    method: Method,
    options: Options,
    left_s: float = np.inf,
) -> Planned:
    """Plan one interval: prices, search, then the integer program.

    last    the interval before; None for the first
    left_s  seconds that are left; without any, prices and answers of the interval before are repaired
    """
    before = last is not None and last.chosen is not None
    if left_s > 0 or not before:
        priced = prices.find_prices(interval, last.price if last is not None else None)
    else:
        assert last is not None
        priced = prices.Priced(last.price, *prices.evaluate_bound(interval, last.price))
    leaves = branching.MOST_LEAVES if left_s > 0 else 0
    target_gap = branching.TARGET_GAP if options.gap is None else options.gap
    start = last.answers if last is not None and before else None
    selection, bound = branching.find_choices(interval, priced, start=start, leaves=leaves, gap=target_gap)
    if left_s > 0 and before and bound > selection.value * (1 + max(target_gap, AGAIN_GAP)):
        again = prices.find_prices(interval)
        start = selection.answers if selection.value > -np.inf else start
        other, other_bound = branching.find_choices(
            interval, again, start=start, leaves=leaves, gap=target_gap
        )
        bound = min(bound, other_bound)
        if other.value > selection.value:
            selection, priced = other, again
    is_found = selection.value > -np.inf
    levels = choices.to_levels(interval, selection.answers, selection.added) if is_found else None
    planned = Planned(levels, selection.value, bound, priced.price, selection.answers, BACKEND)
    binaries = int(np.isfinite(interval.shared.value).sum() + np.isfinite(interval.separate.value).sum())
    gap = relative_gap(selection.value, bound) if is_found else None
    is_small = binaries <= MOST_BINARIES and (gap is None or gap > (options.gap or EXACT_GAP))
    if method == "exact" or not is_found or (method == "auto" and is_small and left_s > 0):
        return _solve_exactly(choices, interval, planned, options, left_s)
    return planned


def _solve_exactly(
    choices: Choices, interval: Interval, planned: Planned, options: Options, left_s: float
) -> Planned:
    """Return the better of a plan and the solution of the integer program, with the better bound."""
    built = build_interval(interval)
    limit = options.time_limit_s if options.time_limit_s is None else max(left_s, 0.1)
    gap = EXACT_GAP if options.gap is None else options.gap
    solution = backends.solve(built.program, replace(options, gap=gap, time_limit_s=limit))
    bounds = [bound for bound in (planned.bound, solution.bound) if bound is not None]
    better = planned._replace(bound=min(bounds) if bounds else None, backend=solution.backend)
    if solution.status is Status.INFEASIBLE:
        return better._replace(chosen=None, bound=None)
    if solution.x is None:
        return better
    answers, added = built.read(solution.x)
    value = float(built.program.cost @ np.round(solution.x))
    if planned.chosen is not None and planned.value >= value:
        return better
    return better._replace(chosen=choices.to_levels(interval, answers, added), value=value, answers=answers)


def build_model(
    problem: Analytics,
    *,
    method: Method = "auto",  # noqa: ARG001 - a parameter of `plan`
    service: Service = "best",
) -> LinearProgram:
    """Build the integer program of all intervals."""
    about = "the value of answers, of all intervals"
    return build_program(problem, service=service).describe(about, metric="value", unit="USD")


def _say_none_fits(problem: Analytics, k: int) -> str:
    return (
        f"interval {problem.interval_numbers[k]:g}: no choice of levels answers all queries that need an "
        "answer within all capacities"
    )


def _prove_none(problem: Analytics, k: int, planned: Planned) -> Proof:
    name = f"interval {problem.interval_numbers[k]:g}"
    if planned.bound is None:
        reason = _say_none_fits(problem, k)
        return infeasible(reason, metric="value", backend=planned.backend)
    reason = f"{name}: no plan found"
    return undecided(reason, metric="value", backend=planned.backend)
