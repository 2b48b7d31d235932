"""The best schedule by integer programming over matchings."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from pydantic import Field

from planner import backends
from planner.backends.linear import Columns, LinearProgram, Rows
from planner.options import Options
from planner.proof import Proof
from planner.system import Decision
from planner_models.circuits import bound, eclipse, matchings, solstice
from planner_models.circuits import schedule as schedules
from planner_models.circuits.bound import Units
from planner_models.circuits.problem import Circuits
from planner_models.circuits.schedule import IDLE, Day, Schedule

MostMatchings = Annotated[
    int,
    Field(
        ge=1,
        description="matchings up to which all are tried, for a proven optimum; beyond, only those "
        "of Solstice and Eclipse with the best lengths",
    ),
]


def schedule(
    problem: Circuits,
    *,
    most_matchings: MostMatchings = 1_000,
    options: Options = Options(),
    previous: Decision[Schedule] | None = None,  # noqa: ARG001
) -> Decision[Schedule]:
    """The best days and lengths over all matchings where they are few, else over good ones.

    Each matching is used at most once, as two days of the same circuits are worth no more than one.
    Over good matchings only, the plan comes with the bound of `bound.limit`.
    """
    if not problem.bits.any():
        return schedules.decided(problem, [], bound=0.0)
    pool = matchings.all_maximal(problem.bits > 0, most_matchings)
    exact = pool is not None
    if pool is None:
        pool = _good(problem)
    solution = backends.solve(_program(problem, pool), replace(options, gap=options.gap or 1e-7))
    if solution.x is None:
        proof = Proof(status=solution.status, backend=solution.backend, reasons=solution.reasons)
        return Decision(plan=None, proof=proof)
    unit = Units.of(problem)
    if exact:
        scale = unit.bits if problem.window_us is not None else unit.us
        proven = None if solution.bound is None else solution.bound * scale
    else:
        proven = bound.limit(problem, options=options).proof.bound
    start = 2 * int((problem.bits > 0).sum())
    lengths = solution.x[start : start + len(pool)] * unit.us
    used = solution.x[start + len(pool) : start + 2 * len(pool)] > 0.5
    return schedules.decided(
        problem,
        _days(problem, pool, lengths, used),
        bound=proven,
        backend=solution.backend,
        gap=options.gap or 1e-6,
    )


def model(problem: Circuits, *, most_matchings: int = 1_000) -> LinearProgram:
    """The integer program that `schedule` solves with the same parameters."""
    pool = matchings.all_maximal(problem.bits > 0, most_matchings)
    return _program(problem, _good(problem) if pool is None else pool)


def _program(problem: Circuits, pool: list[NDArray[np.int64]]) -> LinearProgram:
    """Variables X, Y (pairs,), t (matchings,), z (matchings,) and without a window T, in `Units`."""
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


def _days(
    problem: Circuits, pool: list[NDArray[np.int64]], lengths: NDArray[np.float64], used: NDArray[np.bool_]
) -> list[Day]:
    """The days of a solution, so that rounding neither breaks the week nor leaves demand over."""
    chosen = np.flatnonzero(used & (lengths > 0))
    lengths = np.maximum(lengths[chosen], problem.shortest_day_us)
    if problem.window_us is None:
        lengths = lengths * (1 + 1e-7)
    elif len(lengths):
        lengths = lengths * min(1.0, (problem.window_us - len(lengths) * problem.night_us) / lengths.sum())
    return [Day(duration_us=float(t), target=pool[k]) for t, k in zip(lengths, chosen, strict=True)]


def _good(problem: Circuits) -> list[NDArray[np.int64]]:
    """The matchings that Solstice and Eclipse use."""
    found: dict[bytes, NDArray[np.int64]] = {}
    for decision in (solstice.schedule(problem), eclipse.schedule(problem)):
        if decision.plan is None:
            continue
        for _, day in decision.plan.configurations.groupby("day"):
            target = np.full(len(problem.racks), IDLE, dtype=np.int64)
            source, to = (
                problem.places.get_indexer(pd.Index(day[end])) for end in ("source_rack", "target_rack")
            )
            target[source] = to
            found[target.tobytes()] = target
    return list(found.values())
