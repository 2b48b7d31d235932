"""The best schedule: simulated annealing for an incumbent, column generation to prove or improve it."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Annotated, Final

import numpy as np
from pydantic import Field

from planner import backends
from planner.backends.linear_program import LinearProgram
from planner.contract.design import Decision
from planner.errors import InputError
from planner.options import Options
from planner_models.circuits.designs import column_generation, matchings, simulated_annealing, upper_bound
from planner_models.circuits.designs.week_program import ScaledProblem, build_schedule_program, split_columns
from planner_models.circuits.plan import plan as schedules
from planner_models.circuits.plan.plan import Day, Schedule
from planner_models.circuits.problem.problem import Circuits

MostMatchings = Annotated[
    int,
    Field(
        ge=1,
        le=1_000_000,
        description="matchings up to which all are tried, for a proven optimum; beyond, local search "
        "with a bound",
    ),
]
MODEL_MATCHINGS: Final = 1_000  # matchings up to which `model` has them all


def schedule(
    problem: Circuits,
    *,
    most_matchings: MostMatchings = 100_000,
    steps: simulated_annealing.Steps = 20_000,
    options: Options = Options(),
) -> Decision[Schedule]:
    """Schedule the best days and lengths, proven where matchings can be listed; else near it, with a bound.

    Simulated annealing gives an incumbent, of which linear programming makes the lengths the best for its
    matchings; `column_generation.prove_optimum` proves it optimal or finds a better one. Where there are too
    many matchings, several circuit switches, or circuits that stay up at night, the plan comes with
    `upper_bound.bound_schedules`.
    """
    if not problem.bits.any():
        return schedules.make_decision(problem, [], bound=0.0)
    start = time.perf_counter()
    found = _optimize_lengths(
        problem, simulated_annealing.days(problem, steps=steps, seed=options.seed or 0), options
    )
    known = schedules.make_decision(problem, found)
    alone = problem.switches == 1 and problem.dark == "all"
    every = matchings.list_maximal(problem.bits > 0, most_matchings) if alone else None
    left = options
    if options.time_limit_s is not None:
        spent = time.perf_counter() - start
        left = replace(options, time_limit_s=max(0.001, options.time_limit_s - spent))
    if every is None:
        proven = upper_bound.bound_schedules(problem, options=left).proof
        return schedules.make_decision(
            problem, found, bound=proven.bound, backend=proven.backend, gap=options.gap or 1e-6
        )
    if known.proof.objective is None:  # without a window, and the packet switch cannot take the rest
        found = [
            Day(duration_us=float((problem.bits / problem.circuit_mbps).max()), target=one) for one in every
        ]
        known = schedules.make_decision(problem, found)
    if known.proof.objective is None:
        return known
    answer = column_generation.prove_optimum(problem, every, known.proof.objective, max(1, len(found)), left)
    if answer.days is not None:
        better = _fit_lengths(problem, answer.days)
        made = schedules.make_decision(problem, better).proof.objective
        if made is not None and _is_better(problem, made, known.proof.objective):
            found = better
    proven_bound = (
        answer.bound
        if answer.bound is not None
        else upper_bound.bound_schedules(problem, options=left).proof.bound
    )
    return schedules.make_decision(
        problem, found, bound=proven_bound, backend=answer.backend, gap=options.gap or 1e-6
    )


def _is_better(problem: Circuits, one: float, other: float) -> bool:
    """Return whether one objective value is better than another."""
    return one > other if problem.window_us is not None else one < other


def build_model(
    problem: Circuits,
    *,
    most_matchings: MostMatchings = MODEL_MATCHINGS,
    steps: simulated_annealing.Steps = 20_000,
) -> LinearProgram:
    """Return the whole integer program over all maximal matchings, or over good ones where they are many.

    `schedule` never solves it whole: see `column_generation`.
    """
    if problem.switches > 1 or problem.dark == "changed":
        raise InputError(
            "optimum: has a model for one circuit switch that is all dark at night, and no other"
        )
    pool = matchings.list_maximal(problem.bits > 0, min(most_matchings, MODEL_MATCHINGS))
    if pool is None:
        pool = np.array([day.target for day in simulated_annealing.days(problem, steps=steps)])
    return build_schedule_program(ScaledProblem(problem=problem), pool)


def _optimize_lengths(problem: Circuits, found: list[Day], options: Options) -> list[Day]:
    """Return the same matchings with the lengths at which circuits and packet switch together serve most."""
    if not found or problem.switches > 1 or problem.dark == "changed":
        return found
    task = ScaledProblem(problem=problem)
    program = build_schedule_program(task, np.array([day.target for day in found]), least_used=1.0)
    solution = backends.solve(replace(program, integer=None), options)
    if solution.x is None:
        return found
    lengths = split_columns(program, solution.x)["length"] * task.unit.us
    changed = _fit_lengths(
        problem, [replace(day, duration_us=float(t)) for day, t in zip(found, lengths, strict=True)]
    )
    before, after = (schedules.make_decision(problem, days).proof.objective for days in (found, changed))
    if after is None or (before is not None and not _is_better(problem, after, before)):
        return found
    return changed


def _fit_lengths(problem: Circuits, days: list[Day]) -> list[Day]:
    """Return the days of a solution, corrected so that rounding breaks no limit and leaves no demand."""
    lengths = np.array([max(day.duration_us, problem.shortest_day_us) for day in days])
    if problem.window_us is None:
        lengths = lengths * (1 + 1e-7)
    elif len(lengths):
        lengths = lengths * min(1.0, (problem.window_us - len(lengths) * problem.night_us) / lengths.sum())
    return [replace(day, duration_us=float(t)) for day, t in zip(days, lengths, strict=True) if t > 0]
