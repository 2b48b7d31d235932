"""The best schedule: simulated annealing for an incumbent, column generation to prove or improve it."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Annotated, Final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from pydantic import Field

from planner import backends
from planner.backends.linear_program import Columns, LinearProgram, Rows
from planner.contract.design import Decision
from planner.errors import InputError
from planner.options import Options
from planner_models.circuits.designs import column_generation, matchings, simulated_annealing, upper_bound
from planner_models.circuits.designs.upper_bound import Units
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
    days = [] if pool is not None else simulated_annealing.days(problem, steps=steps)
    return _build_program(problem, list(pool) if pool is not None else [day.target for day in days])


def _optimize_lengths(problem: Circuits, found: list[Day], options: Options) -> list[Day]:
    """Return the same matchings with the lengths at which circuits and packet switch together serve most."""
    if not found or problem.switches > 1 or problem.dark == "changed":
        return found
    program = _build_program(problem, [day.target for day in found])
    start = 2 * len(problem.pair_bits)
    lower = program.lower.copy()
    lower[start + len(found) : start + 2 * len(found)] = 1.0  # every day is used
    solution = backends.solve(replace(program, lower=lower, integer=None), options)
    if solution.x is None:
        return found
    lengths = solution.x[start : start + len(found)] * Units.of(problem).us
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


def _build_program(problem: Circuits, pool: list[NDArray[np.int64]]) -> LinearProgram:
    """Return the program over X, Y (pairs,), t, z (matchings,) and without a window T, in `Units`."""
    unit, window = Units.of(problem), problem.window_us
    source, target = np.nonzero(problem.bits)
    count, n, kinds = len(source), len(problem.racks), len(pool)
    wanted = problem.bits[source, target] / unit.bits
    rate = problem.circuit_mbps[source, target] * unit.us / unit.bits
    packet = np.tile(problem.packet_mbps, 2) * unit.us / unit.bits
    night, shortest = problem.night_us / unit.us, problem.shortest_day_us / unit.us
    timeless = window is None
    end = 0.0 if window is None else window / unit.us
    longest = max(shortest, float((wanted / rate).max()))  # no longer day is of use
    longest = longest if window is None else min(longest, end - night)
    holds = sp.csr_array(
        np.array([[m[i] == j for m in pool] for i, j in zip(source, target, strict=True)], float)
    )
    at = sp.csr_array(
        (np.ones(2 * count), (np.concatenate([source, n + target]), np.tile(np.arange(count), 2))),
        shape=(2 * n, count),
    )
    eye, kind = sp.eye_array(count), sp.eye_array(kinds)

    def rows(name: str, parts: list[object], last: NDArray[np.float64], lower: object, upper: object) -> Rows:
        widths = [count, count, kinds, kinds]
        filled = [
            sp.csr_array((len(last), width)) if part is None else sp.csr_array(part)
            for part, width in zip(parts, widths, strict=True)
        ]
        extra = [sp.csr_array(last.reshape(-1, 1))] if timeless else []
        return Rows(name, sp.csr_array(sp.hstack([*filled, *extra])), lower=lower, upper=upper)  # type: ignore[arg-type]

    ones, zeros = np.ones((1, kinds)), np.zeros
    blocks = [
        rows("circuits", [eye, None, -sp.diags_array(rate) @ holds, None], zeros(count), -np.inf, 0.0),
        rows("demand", [eye, eye, None, None], zeros(count), wanted if timeless else -np.inf, wanted),
        rows("packet", [None, at, None, None], -packet, -np.inf, 0.0 if timeless else packet * end),
        rows("week", [None, None, ones, night * ones], -np.ones(1), -np.inf, end),
        rows("used", [None, None, kind, -longest * kind], zeros(kinds), -np.inf, 0.0),
        rows("shortest", [None, None, kind, -shortest * kind], zeros(kinds), 0.0, np.inf),
    ]
    cost = np.zeros(2 * count + 2 * kinds + timeless)
    if timeless:
        cost[-1] = 1.0
    else:
        cost[: 2 * count] = 1.0
    upper = np.full(len(cost), np.inf)
    upper[2 * count + kinds : 2 * count + 2 * kinds] = 1.0
    integer = np.zeros(len(cost), dtype=bool)
    integer[2 * count + kinds : 2 * count + 2 * kinds] = True
    names = [
        Columns("circuit", count),
        Columns("packet", count),
        Columns("length", kinds),
        Columns("used", kinds),
    ]
    return LinearProgram.build(
        sense="min" if timeless else "max",
        cost=cost,
        rows=blocks,
        columns=[*names, Columns("end", 1)] if timeless else names,
        upper=upper,
        integer=integer,
        name="circuit schedule",
    )
