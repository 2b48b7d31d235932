"""A bound on all schedules: a linear program over the number and the time of days."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, Final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from pydantic import Field

from planner import backends
from planner.backends import Solution
from planner.backends.linear_program import Columns, LinearProgram, Rows
from planner.contract.design import Decision
from planner.contract.proof import Proof, Status
from planner.options import Options
from planner_models.circuits.plan.plan import Schedule
from planner_models.circuits.problem.problem import Circuits

SAME_SIZE_RATIO: Final = 1.02  # demands nearer to each other than this are of one size


@dataclass(frozen=True, kw_only=True, eq=False)
class Units:
    """The units of bits and time in which a program's numbers are near 1."""

    bits: float
    us: float

    @classmethod
    def of(cls, problem: Circuits) -> Units:
        """Return the units of a problem."""
        bits = float(problem.bits.max(initial=0.0)) or 1.0
        return cls(bits=bits, us=bits / float(problem.circuit_mbps.max()))


Kinds = Annotated[
    int,
    Field(
        ge=1,
        le=64,
        description="kinds of days, short to long, that the program distinguishes where demands come in "
        "sizes: more make the bound tighter and slower",
    ),
]


def bound_schedules(
    problem: Circuits,
    *,
    kinds: Kinds = 1,
    options: Options = Options(),
) -> Decision[Schedule]:
    """Return a proven bound on every schedule, and no plan.

    With N days of a kind that take T in all, each rack's circuits serve in them at most what T has
    time for, and at most N wholes of pairs, a pair's whole being what the longest such day serves of
    it; a long day that serves a short demand wastes the rest. The packet switch has its links. The
    program's optimum is concave in the number of days (convex without a window), which it chooses;
    where it chooses no whole number, the best whole one is next to it. With every length a kind of
    its own this is the linear program over all matchings and lengths (Birkhoff, von Neumann).

    Where only circuits that change are dark, each rack's nights are counted alone.
    """
    if not problem.bits.any():
        return _make_bound(problem, 0.0, None)
    if kinds > 1 and options.backend == "highs" and options.algorithm == "auto":
        options = replace(options, algorithm="interior-point")  # seconds instead of minutes
    solution = backends.solve(build_model(problem, kinds=kinds), options)
    if solution.x is None:
        return _make_undecided(problem, solution)
    if problem.dark == "changed":
        return _make_bound(problem, solution.bound, solution.backend)
    first = len(problem.pair_bits) * (_count_kinds(problem, kinds) + 1)
    days = float(solution.x[first : first + _count_kinds(problem, kinds)].sum())
    if abs(days - round(days)) <= 1e-7:
        return _make_bound(problem, solution.bound, solution.backend)
    around = [
        backends.solve(build_model(problem, kinds=kinds, days=k), options)
        for k in (math.floor(days), math.ceil(days))
    ]
    if any(one.bound is None and one.status is not Status.INFEASIBLE for one in around):
        return _make_bound(problem, solution.bound, solution.backend)
    bounds = [one.bound for one in around if one.bound is not None]
    if not bounds:
        return _make_bound(problem, solution.bound, solution.backend)
    best = max(bounds) if problem.window_us is not None else min(bounds)
    return _make_bound(problem, best, solution.backend)


def day_length_edges(problem: Circuits, kinds: int) -> NDArray[np.float64]:
    """Return (k + 1,) lengths that separate the kinds of days, us: at the widest gaps between demands.

    Fewer than `kinds` where demands have fewer sizes. No day need be longer than the longest demand.
    """
    needs = np.unique(problem.pair_bits / problem.pair_mbps)
    longest = float(needs[-1]) if len(needs) else 1.0
    if problem.window_us is not None:
        longest = min(longest, problem.window_us - problem.night_us)
    shortest = problem.shortest_day_us
    longest = max(shortest, longest)
    ratios = needs[1:] / needs[:-1]
    widest = np.argsort(-ratios, kind="stable")[: kinds - 1]
    apart = needs[:-1][widest[ratios[widest] > SAME_SIZE_RATIO]]
    inner = apart[(apart > shortest) & (apart < longest)]
    return np.concatenate([[shortest], np.sort(inner), [longest]])


def _count_kinds(problem: Circuits, kinds: int) -> int:
    """Return how many kinds of days there are."""
    return len(day_length_edges(problem, kinds)) - 1


def build_model(problem: Circuits, *, kinds: int = 1, days: int | None = None) -> LinearProgram:
    """Return the program of `bound_schedules`, in `Units`; `days` fixes how many days there are.

    Variables: X (kinds, pairs) bits over circuits, Y (pairs,) over the packet switch, N and T (kinds,)
    number and time of days, and without a window the end. Where only circuits that change are dark,
    N and T are (2n,), of each rack's sending and receiving, and days are of one kind.
    """
    unit, window = Units.of(problem), problem.window_us
    source, target = problem.pairs
    count, lines = len(source), 2 * len(problem.racks)
    apart = problem.dark == "changed"
    edge = day_length_edges(problem, 1 if apart else kinds) / unit.us
    kind = len(edge) - 1
    wanted = problem.pair_bits / unit.bits
    rate = problem.pair_mbps * unit.us / unit.bits
    at = sp.csr_array(
        (np.ones(2 * count), (np.concatenate([source, lines // 2 + target]), np.tile(np.arange(count), 2))),
        shape=(lines, count),
    )
    night = problem.night_us / unit.us
    packet = np.tile(problem.packet_mbps, 2) * unit.us / unit.bits
    timeless = window is None
    end = 0.0 if window is None else window / unit.us
    own = lines if apart else kind  # how many N and T there are
    width = [count] * kind + [count, own, own] + [1] * timeless

    def rows(name: str, parts: dict[int, object], upper: object, lower: object = -np.inf) -> Rows:
        height = next(part.shape[0] for part in parts.values())  # type: ignore[attr-defined]
        filled = [parts.get(k, sp.csr_array((height, wide))) for k, wide in enumerate(width)]
        return Rows(name, sp.csr_array(sp.hstack(filled)), lower=lower, upper=upper)  # type: ignore[arg-type]

    number, time, last = kind + 1, kind + 2, kind + 3
    eye = sp.eye_array(count)
    blocks = []
    for k in range(kind):
        most = wanted if apart else np.minimum(wanted, rate * edge[k + 1])
        every = sp.csr_array(-np.eye(lines) if apart else -np.eye(kind)[np.full(lines, k)])
        blocks += [
            rows(f"busy {k}", {k: at @ sp.diags_array(1 / rate), time: every}, 0.0),
            rows(f"wholes {k}", {k: at @ sp.diags_array(1 / most), number: every}, 0.0),
        ]
    each = sp.eye_array(own)
    blocks.append(rows("least", {number: sp.diags_array(_repeat(edge[:-1], own)), time: -each}, 0.0))
    if not apart:
        blocks.append(rows("most", {number: -sp.diags_array(edge[1:]), time: each}, 0.0))
    whole = sp.eye_array(own) if apart else sp.csr_array(np.ones((1, own)))
    height = own if apart else 1
    week: dict[int, object] = {number: night * whole, time: whole}
    packets: dict[int, object] = {kind: at}
    if timeless:
        week[last] = sp.csr_array(np.full((height, 1), -float(problem.switches)))
        packets[last] = sp.csr_array(-packet.reshape(-1, 1))
    blocks += [
        rows("week", week, end * problem.switches),
        rows("packet", packets, 0.0 if timeless else packet * end),
        rows(
            "demand",
            dict.fromkeys(range(kind + 1), eye),
            wanted,
            lower=wanted if timeless else -np.inf,
        ),
    ]
    if days is not None:
        blocks.append(rows("days", {number: sp.csr_array(np.ones((1, own)))}, float(days), lower=float(days)))
    cost = np.zeros(sum(width))
    if timeless:
        cost[-1] = 1.0
    else:
        cost[: count * (kind + 1)] = 1.0
    names = [
        Columns("circuit", count * kind),
        Columns("packet", count),
        Columns("days", own),
        Columns("time", own),
    ]
    return LinearProgram.build(
        sense="min" if timeless else "max",
        cost=cost,
        rows=blocks,
        columns=[*names, Columns("end", 1)] if timeless else names,
        name="bound on circuit schedules",
    )


def _repeat(values: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """Return one value for each of `count`."""
    return values if len(values) == count else np.full(count, values[0])


def _make_bound(problem: Circuits, bound: float | None, backend: str | None) -> Decision[Schedule]:
    """Return the decision of a bound."""
    unit, most = Units.of(problem), problem.window_us is not None
    scale = unit.bits if most else unit.us
    proof = Proof(
        status=Status.UNDECIDED,
        bound=None if bound is None else bound * scale,
        metric="served_bits" if most else "done_us",
        backend=backend,
    )
    return Decision(plan=None, proof=proof)


def _make_undecided(problem: Circuits, solution: Solution) -> Decision[Schedule]:
    """Return the decision of a solver that found no bound."""
    metric = "served_bits" if problem.window_us is not None else "done_us"
    proof = Proof(status=solution.status, metric=metric, backend=solution.backend, reasons=solution.reasons)
    return Decision(plan=None, proof=proof)
