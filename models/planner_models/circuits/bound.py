"""What no schedule can beat: a linear program over the number of days."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from planner import backends
from planner.backends import Solution
from planner.backends.linear import Columns, LinearProgram, Rows
from planner.options import Options
from planner.proof import Proof, Status
from planner.system import Decision
from planner_models.circuits.problem import Circuits
from planner_models.circuits.schedule import Schedule


@dataclass(frozen=True, kw_only=True, eq=False)
class Units:
    """What one unit of a program's bits and times is, so that its numbers are near 1."""

    bits: float
    us: float

    @classmethod
    def of(cls, problem: Circuits) -> Units:
        bits = float(problem.bits.max(initial=0.0)) or 1.0
        return cls(bits=bits, us=bits / float(problem.circuit_mbps.max()))


def limit(
    problem: Circuits,
    *,
    options: Options = Options(),
    previous: Decision[Schedule] | None = None,  # noqa: ARG001
) -> Decision[Schedule]:
    """A proven bound on every schedule, and no plan.

    With K days, each rack's circuits have the week less K nights, and serve at most K wholes of
    pairs; the packet switch has its links. The program's optimum is concave in K (convex without a
    window), which it chooses; where it chooses no whole number, the best whole one is next to it.
    """
    if not problem.bits.any():
        return _bounded(problem, 0.0, None)
    program = model(problem)
    solution = backends.solve(program, options)
    if solution.x is None:
        return _undecided(problem, solution)
    days = float(solution.x[2 * int((problem.bits > 0).sum())])
    if abs(days - round(days)) <= 1e-7:
        return _bounded(problem, solution.bound, solution.backend)
    around = [backends.solve(model(problem, days=k), options) for k in (math.floor(days), math.ceil(days))]
    if any(one.bound is None and one.status is not Status.INFEASIBLE for one in around):
        return _bounded(problem, solution.bound, solution.backend)
    bounds = [one.bound for one in around if one.bound is not None]
    if not bounds:
        return _bounded(problem, solution.bound, solution.backend)
    best = max(bounds) if problem.window_us is not None else min(bounds)
    return _bounded(problem, best, solution.backend)


def model(problem: Circuits, *, days: int | None = None) -> LinearProgram:
    """The program of `limit`, in units of `Units`; `days` fixes how many there are.

    Variables: X, Y (pairs,) bits over circuits and packet switch, K days, and without a window T.
    """
    unit, window = Units.of(problem), problem.window_us
    source, target = np.nonzero(problem.bits)
    count, n = len(source), len(problem.racks)
    wanted = problem.bits[source, target] / unit.bits
    rate = problem.circuit_mbps[source, target] * unit.us / unit.bits
    most = wanted if window is None else np.minimum(wanted, rate * (window - problem.night_us) / unit.us)
    at = sp.csr_array(
        (np.ones(2 * count), (np.concatenate([source, n + target]), np.tile(np.arange(count), 2))),
        shape=(2 * n, count),
    )
    night, shortest = problem.night_us / unit.us, problem.shortest_day_us / unit.us
    packet = np.tile(problem.packet_mbps, 2) * unit.us / unit.bits
    one = np.ones((2 * n, 1))
    none = sp.csr_array((2 * n, count))
    timeless = window is None
    end = None if window is None else window / unit.us

    def rows(name: str, *parts: object, upper: NDArray[np.float64] | float) -> Rows:
        return Rows(name, sp.csr_array(sp.hstack(parts)), upper=upper)

    def column(values: NDArray[np.float64]) -> list[object]:
        return [sp.csr_array(values.reshape(-1, 1))] if timeless else []

    blocks = [
        rows("busy", at @ sp.diags_array(1 / rate), none, night * one, *column(-one), upper=end or 0.0),
        rows("wholes", at @ sp.diags_array(1 / most), none, -one, *column(0 * one), upper=0.0),
        rows("packet", none, at, 0 * one, *column(-packet), upper=0.0 if end is None else packet * end),
        rows(
            "shortest",
            sp.csr_array((1, 2 * count)),
            [[night + shortest]],
            *column(-one[:1]),
            upper=end or 0.0,
        ),
    ]
    eye, nothing = sp.eye_array(count), np.zeros((count, 1))
    blocks.append(
        Rows(
            "demand",
            sp.csr_array(sp.hstack([eye, eye, nothing, *column(nothing)])),
            lower=wanted if timeless else -np.inf,
            upper=wanted,
        )
    )
    cost = np.zeros(2 * count + 1 + timeless)
    if timeless:
        cost[-1] = 1.0
    else:
        cost[: 2 * count] = 1.0
    lower, upper = np.zeros(len(cost)), np.full(len(cost), np.inf)
    upper[:count] = most
    if days is not None:
        lower[2 * count] = upper[2 * count] = days
    names = [Columns("circuit", count), Columns("packet", count), Columns("days", 1)]
    return LinearProgram.build(
        sense="min" if timeless else "max",
        cost=cost,
        rows=blocks,
        columns=[*names, Columns("end", 1)] if timeless else names,
        lower=lower,
        upper=upper,
        name="bound on circuit schedules",
    )


def _bounded(problem: Circuits, bound: float | None, backend: str | None) -> Decision[Schedule]:
    unit, most = Units.of(problem), problem.window_us is not None
    scale = unit.bits if most else unit.us
    proof = Proof(
        status=Status.UNDECIDED,
        bound=None if bound is None else bound * scale,
        metric="served_bits" if most else "done_us",
        backend=backend,
    )
    return Decision(plan=None, proof=proof)


def _undecided(problem: Circuits, solution: Solution) -> Decision[Schedule]:
    metric = "served_bits" if problem.window_us is not None else "done_us"
    proof = Proof(status=solution.status, metric=metric, backend=solution.backend, reasons=solution.reasons)
    return Decision(plan=None, proof=proof)
