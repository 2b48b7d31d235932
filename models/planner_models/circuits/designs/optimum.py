"""The best schedule: simulated annealing for an incumbent, column generation to prove or improve it.

`optimum` is over all schedules of a week: any number of days of each circuit switch in succession, with any
matchings and lengths, beside the packet switch as a fluid. It is proven where all matchings can be listed, by
the integer program over days, or where it meets a bound; else it is the best of the annealing and of the
other designs, whatever the lengths that Eclipse starts from, with its gap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Annotated, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from planner import backends
from planner.backends.linear_program import LinearProgram
from planner.contract import progress
from planner.contract.design import Decision
from planner.contract.proof import Proof
from planner.errors import InputError
from planner.options import Options
from planner.search.deadline import NEVER, Deadline
from planner.search.tolerances import OPTIMALITY
from planner_models.circuits.designs import (
    birkhoff_decomposition,
    column_generation,
    day_program,
    eclipse,
    equal_days,
    kept_circuits,
    matchings,
    multicast_circuits,
    multicast_program,
    simulated_annealing,
    solstice,
    upper_bound,
)
from planner_models.circuits.designs.partial_schedule import choose_day_us
from planner_models.circuits.designs.week_program import ScaledProblem, build_schedule_program, split_columns
from planner_models.circuits.information import observe_data_units, observe_queues
from planner_models.circuits.plan import plan as schedules
from planner_models.circuits.plan.multicast_plan import make_plan as make_multicast_plan
from planner_models.circuits.plan.plan import Day, Schedule
from planner_models.circuits.problem.problem import Circuits, takes_matrix

MostMatchings = Annotated[
    int,
    Field(
        ge=1,
        le=1_000_000,
        description="matchings up to which all are tried, for a proven optimum; beyond, local search "
        "with a bound",
    ),
]
MostCircuits = Annotated[
    int,
    Field(
        ge=0,
        le=10_000,
        description="circuits that days could have, up to which an integer program proves the optimum of "
        "several circuit switches, or of circuits that stay up at night",
    ),
]
OPTIMAL: Final = OPTIMALITY  # relative gap below which nothing more is solved
ANNEALING_SHARE: Final = 0.4  # of the time limit
KEPT_SHARE: Final = 0.5  # of the time limit, by which a search for circuits to keep ends
LENGTHS_SHARE: Final = 0.6  # of the time limit, by which the lengths of days are optimized
LISTING_SHARE: Final = 0.6  # of the time limit, by which all matchings are listed
HEURISTICS_SHARE: Final = 0.8  # of the time limit, by which the other designs end
BOUND_SHARE: Final = 0.9  # of the time limit, by which the bound's program ends; its duals are then verified
MORE_STARTS: Final = (4, 16)  # lengths of day from which Eclipse starts besides its own
MAX_PAIRS_EVERY_LENGTH: Final = 2_000  # pairs up to which Eclipse tries every length of day, in a second
MOST_FAST_RACKS: Final = 256  # racks up to which fast designs end whatever the time limit
Heuristic = Callable[[Circuits, Deadline], list[Day]]
Report = Callable[[float, float], None]
FAST_HEURISTICS: Final[tuple[Heuristic, ...]] = (
    lambda problem, deadline: equal_days.rotate(problem, shifts=(1,), deadline=deadline),
    lambda problem, deadline: equal_days.rotate(problem, deadline=deadline),
    lambda problem, deadline: equal_days.match_in_turn(
        problem, choose_day_us(problem, None), deadline=deadline
    )[0],
    lambda problem, deadline: equal_days.match_heaviest(problem, deadline=deadline),
)
"""Schedules by designs that are much faster than any search, until a deadline."""
HEURISTICS: Final[tuple[Heuristic, ...]] = (
    lambda problem, deadline: birkhoff_decomposition.decompose_stuffed(problem, deadline=deadline),
    lambda problem, deadline: birkhoff_decomposition.decompose_scaled(problem, deadline=deadline),
)
"""Schedules by the other designs of the system, until a deadline."""
MostConfigurations = Annotated[
    int,
    Field(
        ge=0,
        le=100_000,
        description="configurations of circuits to several racks up to which an integer program proves the "
        "optimum; beyond, the greedy schedule with a bound",
    ),
]
OneTarget = Annotated[
    bool,
    Field(description="circuits go to one rack each, even where they may go to several; copies are unicast"),
]
ONE_TARGET_SCOPE: Final = "circuits to one rack each"
MODEL_MATCHINGS: Final = 1_000  # matchings up to which `model` has them all


@takes_matrix
def schedule(
    problem: Circuits,
    *,
    most_matchings: MostMatchings = 100_000,
    most_circuits: MostCircuits = 100,
    most_configurations: MostConfigurations = 500,
    one_target: OneTarget = False,
    steps: simulated_annealing.Steps = 20_000,
    options: Options = Options(),
) -> Decision[Schedule]:
    """Schedule the best days and lengths, proven where matchings can be listed; else near it, with a bound.

    Simulated annealing gives an incumbent, of which linear programming makes the lengths the best for its
    matchings; `column_generation.prove_optimum` proves it optimal or finds a better one. With several circuit
    switches, or circuits that stay up at night, `day_program` does where it is small. Else the plan has
    the bound of `upper_bound.bound_schedules`. It is never worse than the schedules of the other designs that
    end before the time limit.

    Where circuits may go to several racks with data of multicasts, `multicast_program` proves the optimum
    over all configurations where these can be listed; else the plan is the greedy one of
    `multicast_circuits`, with the bound.
    """
    report = partial(progress.report, "served_mbps")
    if problem.uses_multicast_circuits and not one_target:
        return solve_multicasts(problem, most_configurations=most_configurations, options=options)
    decision = solve(
        problem.as_unicast(),
        most_matchings=most_matchings,
        most_circuits=most_circuits,
        steps=steps,
        options=options,
        report=report,
    )
    if not problem.uses_multicast_circuits or decision.proof.bound is None:
        return decision
    return replace(decision, proof=replace(decision.proof, bound_scope=ONE_TARGET_SCOPE))


def solve_multicasts(
    problem: Circuits, *, most_configurations: int = 500, options: Options = Options()
) -> Decision[Schedule]:
    """Return the decision of `schedule` where circuits may go to several racks."""
    deadline = Deadline.of(options)
    proven = upper_bound.bound_schedules(
        problem, options=deadline.share(ANNEALING_SHARE).options(options)
    ).proof
    plan = multicast_circuits.find_best_plan(
        problem, deadline=deadline.share(KEPT_SHARE), options=deadline.options(options)
    )
    bound, backend = proven.bound, proven.backend

    def rate(made: tuple[Schedule, float, float]) -> float:
        return schedules.served_rate(problem, made[1], made[2])

    is_open = bound is None or rate(plan) < bound * (1 - (options.gap or OPTIMAL))
    if is_open and not deadline.is_over and multicast_program.can_list_families(problem):
        every = multicast_program.list_configurations(
            problem, most_configurations, deadline.share(LISTING_SHARE)
        )
        if every is not None:
            days, upper, backend = multicast_program.solve(problem, every, deadline.options(options))
            if days is not None:
                plan = max(plan, make_multicast_plan(problem, days), key=rate)
            if upper is not None:
                bound = upper if bound is None else min(bound, upper)
    return schedules.judge_plan(problem, *plan, bound=bound, backend=backend, options=options)


def solve(
    problem: Circuits,
    *,
    most_matchings: int = 100_000,
    most_circuits: int = 100,
    steps: int = 20_000,
    options: Options = Options(),
    report: Report | None = None,
) -> Decision[Schedule]:
    """Return the decision of `schedule`, for other systems too.

    report  is called with the rate at which the incumbent serves demand, and its bound, Mbit/s; none: the
            search reports no progress
    """
    if not problem.bits.any():
        return schedules.make_decision(problem, [], bound=0.0, options=options)
    deadline = Deadline.of(options)
    ports = upper_bound.bound_by_ports(problem)

    def report_rate(rate: float) -> None:
        if report is not None:
            report(rate, ports)

    annealed = simulated_annealing.days(
        problem,
        steps=steps,
        seed=options.seed or 0,
        deadline=deadline.share(ANNEALING_SHARE),
        enough_bits=ports * (1 - OPTIMAL) * (problem.window_us or 0.0),
        report=lambda days: report_rate(_rate(problem, days)),
    )
    annealed = kept_circuits.improve(problem, annealed, deadline=deadline.share(KEPT_SHARE))
    if _rate(problem, annealed) >= ports * (1 - OPTIMAL):
        return schedules.make_decision(problem, annealed, bound=ports, options=options)
    annealed = _choose_best(problem, [annealed, *_try_lengths(problem, deadline.share(KEPT_SHARE))])
    if _rate(problem, annealed) >= ports * (1 - OPTIMAL):
        return schedules.make_decision(problem, annealed, bound=ports, options=options)
    best_days = annealed
    if not deadline.share(LENGTHS_SHARE).is_over:
        best_days = _optimize_lengths(problem, annealed, deadline, options)
    if _rate(problem, best_days) >= ports * (1 - OPTIMAL):
        return schedules.make_decision(problem, best_days, bound=ports, options=options)
    every = _list_matchings(problem, most_matchings, deadline.share(LISTING_SHARE))
    if every is None:
        return _decide_unlisted(problem, best_days, most_circuits, deadline, options)
    return _decide_listed(problem, best_days, every, deadline, options, report=report_rate)


def _decide_listed(
    problem: Circuits,
    day_list: list[Day],
    every: NDArray[np.int64],
    deadline: Deadline,
    options: Options,
    *,
    report: Callable[[float], None],
) -> Decision[Schedule]:
    """Return the decision over all maximal matchings (M, n), proven where there is time."""
    if _rate(problem, day_list) <= 0:  # without a window, and the packet switch cannot take the rest
        longest = float((problem.bits / problem.circuit_mbps).max())
        day_list = [Day(duration_us=longest, target=target) for target in every]
    rate = _rate(problem, day_list)
    if rate <= 0:  # nothing can be served
        return schedules.make_decision(problem, day_list, options=options)
    answer = column_generation.prove_optimum(
        problem,
        every,
        rate,
        max(1, len(day_list)),
        deadline.options(options),
        report=report,
    )
    if answer.days is not None:
        day_list = _choose_best(problem, [day_list, _fit_lengths(problem, answer.days)])
    bound = answer.bound
    if bound is None or options.gap:
        day_list = _choose_best(problem, [day_list, *_run_heuristics(problem, deadline)])
    if bound is None:
        bound = upper_bound.bound_schedules(problem, options=deadline.options(options)).proof.bound
    return schedules.make_decision(problem, day_list, bound=bound, backend=answer.backend, options=options)


def _decide_unlisted(
    problem: Circuits, day_list: list[Day], most_circuits: int, deadline: Deadline, options: Options
) -> Decision[Schedule]:
    """Return the decision where matchings are not listed: the best of all designs, with a bound."""
    day_list = _choose_best(problem, [day_list, *_run_heuristics(problem, deadline)])
    if deadline.share(BOUND_SHARE).is_over:
        ports = upper_bound.bound_by_ports(problem)
        return schedules.make_decision(problem, day_list, bound=ports, options=options)
    proven = upper_bound.bound_schedules(problem, options=deadline.share(BOUND_SHARE).options(options)).proof
    day_list, bound, backend = _solve_days(
        problem, day_list, proven, most_circuits, deadline.options(options)
    )
    return schedules.make_decision(problem, day_list, bound=bound, backend=backend, options=options)


def _solve_days(
    problem: Circuits, day_list: list[Day], proven: Proof, most_circuits: int, options: Options
) -> tuple[list[Day], float | None, str | None]:
    """Return a schedule no worse, its bound and the backend: by the program over days where it is small."""
    rate, bound = _rate(problem, day_list), proven.bound
    if problem.switches == 1 and problem.dark == "all":
        return day_list, bound, proven.backend  # matchings are too many for it, too
    if rate <= 0 or (bound is not None and bound <= rate * (1 + (options.gap or OPTIMAL))):
        return day_list, bound, proven.backend
    days = day_program.most_days(problem, schedules.make_plan(problem, day_list)[2])
    if days is None or days * problem.switches * len(problem.pair_bits) > most_circuits:
        return day_list, bound, proven.backend
    better, upper, backend = day_program.solve(problem, days, rate, options)
    if better is not None:
        day_list = _choose_best(problem, [day_list, _fit_lengths(problem, better)])
    if upper is not None:
        bound = upper if bound is None else min(bound, upper)
    return day_list, bound, backend


def _list_matchings(problem: Circuits, limit: int, deadline: Deadline) -> NDArray[np.int64] | None:
    """Return (M, n) all maximal matchings; None where they are too many, or do not tell all schedules."""
    if problem.switches > 1 or problem.dark != "all":
        return None
    return matchings.list_maximal(problem.bits > 0, limit, deadline)


def _run_heuristics(problem: Circuits, deadline: Deadline) -> list[list[Day]]:
    """Return the schedules of the other designs; slow ones, and all of many racks, while there is time."""
    schedules_found: list[list[Day]] = [[]]  # the packet switch alone
    end = deadline.share(HEURISTICS_SHARE)
    fast_end = NEVER if len(problem.racks) <= MOST_FAST_RACKS else end
    # less information may, by chance, lead these two to a better schedule
    for observed in _list_observations(problem):
        for schedule_days in (
            lambda observed_problem: eclipse.days(observed_problem, deadline=fast_end),
            solstice.days,
        ):
            if not fast_end.is_over:
                made = schedule_days(observed)
                schedules_found += [made, kept_circuits.improve(observed, made, deadline=fast_end)]
    for heuristics, until in ((FAST_HEURISTICS, fast_end), (HEURISTICS, end)):
        for run in heuristics:
            if not until.is_over:
                schedules_found.append(run(problem, until))
    return schedules_found


def _try_lengths(problem: Circuits, deadline: Deadline) -> Iterator[list[Day]]:
    """Yield the schedules of Eclipse from more lengths of day than it tries by itself, the most last.

    Every length that could be best is tried where pairs are few.
    """
    every = (0,) if len(problem.pair_bits) <= MAX_PAIRS_EVERY_LENGTH else ()
    for starts in (*MORE_STARTS, *every):
        if deadline.is_over:
            return
        made = eclipse.days(problem, starts=starts, deadline=deadline)
        yield made
        yield kept_circuits.improve(problem, made, deadline=deadline)


def _list_observations(problem: Circuits) -> list[Circuits]:
    """Return the problem as designs observe it, where this may lead to schedules that are not known yet."""
    # simulated annealing begins with the schedules of the problem itself, without a search for kept circuits
    listed = [problem] if problem.dark == "changed" else []
    for observed in (observe_queues(problem), observe_data_units(problem)):
        if not any(np.array_equal(observed.bits, other.bits) for other in (problem, *listed)):
            listed.append(observed)
    return listed


def _choose_best(problem: Circuits, candidates: list[list[Day]]) -> list[Day]:
    """Return the schedule that serves demand at the highest rate, the first of equals."""
    return max(candidates, key=lambda days: _rate(problem, days))


def _rate(problem: Circuits, days: list[Day]) -> float:
    """Return the rate at which a schedule serves demand, Mbit/s."""
    return schedules.find_rate(problem, days)


def build_model(
    problem: Circuits,
    *,
    most_matchings: MostMatchings = MODEL_MATCHINGS,
    most_configurations: MostConfigurations = 500,
    one_target: OneTarget = False,
    steps: simulated_annealing.Steps = 20_000,
) -> LinearProgram:
    """Return the whole integer program over all maximal matchings, or over good ones where they are many.

    `schedule` never solves it whole: see `column_generation`. Where circuits go to several racks, it is
    that of `multicast_program`, which it does solve.
    """
    if one_target:
        problem = problem.as_unicast()
    if problem.uses_multicast_circuits:
        every = multicast_program.list_configurations(problem, most_configurations)
        if every is None or not multicast_program.can_list_families(problem):
            raise InputError(
                f"optimum: has no model for more than {most_configurations:,} configurations of circuits to "
                "several racks"
            )
        model = multicast_program.ConfigurationProgram(problem=problem, configurations=every)
        return model.task.describe(model.build())
    if problem.switches > 1 or problem.dark == "changed":
        raise InputError(
            "optimum: has a model for one circuit switch that is all dark at night, and no other"
        )
    pool = matchings.list_maximal(problem.bits > 0, min(most_matchings, MODEL_MATCHINGS))
    if pool is None:
        pool = np.array([day.target for day in simulated_annealing.days(problem, steps=steps)])
    task = ScaledProblem(problem=problem)
    return task.describe(build_schedule_program(task, pool))


def _optimize_lengths(
    problem: Circuits, day_list: list[Day], deadline: Deadline, options: Options
) -> list[Day]:
    """Return the same matchings with the lengths at which circuits and packet switch together serve most.

    Lengths stay as they are where their program is not solved in its share of the time limit.
    """
    if not day_list:
        return day_list
    days = schedules.order_days(problem, day_list)
    task = ScaledProblem(problem=problem)
    # what circuits carry in days of no length is what those that are kept carry at night
    kept_us = schedules.circuit_bits(problem, [replace(day, duration_us=0.0) for day in days])
    program = build_schedule_program(
        task,
        np.array([day.target for day in days]),
        least_used=1.0,
        switch=np.array([day.switch for day in days]),
        reserved=kept_us / problem.pair_mbps / task.unit.us,
    )
    if deadline.share(LENGTHS_SHARE).is_over:
        return day_list
    options = replace(deadline.share(LENGTHS_SHARE).options(options), service="best")
    solution = backends.solve(replace(program, integer=None), options)
    if solution.x is None:
        return day_list
    lengths = split_columns(program, solution.x)["length"] * task.unit.us
    changed = _fit_lengths(
        problem, [replace(day, duration_us=float(t)) for day, t in zip(days, lengths, strict=True)]
    )
    return _choose_best(problem, [day_list, changed])


def _fit_lengths(problem: Circuits, days: list[Day]) -> list[Day]:
    """Return the days of a solution, corrected so that rounding breaks no limit and leaves no demand."""
    lengths = np.array([max(day.duration_us, problem.shortest_day_us) for day in days])
    if problem.window_us is None:
        lengths = lengths * (1 + 1e-7)
    else:
        switch = np.array([day.switch for day in days], dtype=np.int64)
        time_us = problem.window_us - np.bincount(switch) * problem.night_us
        total = np.maximum(np.bincount(switch, weights=lengths), 1e-300)
        lengths = lengths * np.minimum(1.0, time_us / total)[switch]
    return [replace(day, duration_us=float(t)) for day, t in zip(days, lengths, strict=True) if t > 0]
