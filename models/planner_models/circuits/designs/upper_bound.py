"""A bound on all schedules: a linear program over the number and the time of days."""

from __future__ import annotations

import math
from typing import Annotated, Final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from pydantic import Field

from planner import backends
from planner.backends import Solution
from planner.backends.linear_program import LinearProgram
from planner.contract.design import Decision
from planner.contract.proof import Proof, Status
from planner.options import Options
from planner.search.deadline import Deadline
from planner_models.circuits.designs import multicast_bound
from planner_models.circuits.designs.week_program import BlockProgram, ScaledProblem, split_columns
from planner_models.circuits.plan.plan import Schedule
from planner_models.circuits.problem.problem import Circuits, takes_matrix

LARGEST_COEFFICIENT: Final = 1e9  # of the share of a pair's day; solvers refuse larger ones
SAME_SIZE_RATIO: Final = 1.02  # demands nearer to each other than this are of one size


Kinds = Annotated[
    int,
    Field(
        ge=1,
        le=64,
        description="kinds of days, short to long, that the program distinguishes where demands come in "
        "sizes: more make the bound tighter and slower",
    ),
]


@takes_matrix
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

    Where only circuits that change are dark, each rack's nights are counted alone. Where circuits go to
    several racks, days are of one kind, and the program is that of `multicast_bound`.
    """
    return prove_bound(problem, kinds=kinds, options=options)


def prove_bound(
    problem: Circuits, *, kinds: int = 1, free_nights: int = 0, options: Options = Options()
) -> Decision[Schedule]:
    """Return the decision of `bound_schedules` where so many days of all switches need no night."""
    if not problem.bits.any():
        return _make_bound(problem, 0.0, None)
    deadline = Deadline.of(options)
    if kinds > 1:
        options = backends.prefer_interior_point(options)  # seconds instead of minutes
    program = build_model(problem, kinds=kinds, free_nights=free_nights)
    ports = bound_by_ports(problem, free_nights=free_nights)
    solution = backends.solve(program, deadline.options(options))
    if solution.x is None:
        return _make_bound(problem, None, solution, ports)
    bound = solution.bound
    days = float(split_columns(program, solution.x)["days"].sum())
    if problem.dark != "changed" and abs(days - round(days)) > 1e-7:
        around: list[Solution] = []
        for day_count in (math.floor(days), math.ceil(days)):
            program = build_model(problem, kinds=kinds, days=day_count, free_nights=free_nights)
            around.append(backends.solve(program, deadline.options(options)))
        bound = _bound_of_branches(problem, around, bound)
    return _make_bound(problem, bound, solution, ports)


def _bound_of_branches(problem: Circuits, branches: list[Solution], bound: float | None) -> float | None:
    """Return the bound that holds for the programs of both numbers of days, else the one before."""
    if any(branch.bound is None and branch.status is not Status.INFEASIBLE for branch in branches):
        return bound
    bounds = [branch.bound for branch in branches if branch.bound is not None]
    return (max if problem.window_us is not None else min)(bounds, default=bound)


def bound_by_ports(problem: Circuits, *, free_nights: int = 0) -> float:
    """Return a bound on the rate of service by the racks' ports, Mbit/s.

    In N days a rack serves at most its N largest pairs over circuits, in the time that N nights leave, at
    its fastest circuit's rate on each circuit switch; and over the packet switch what its link carries.
    Where circuits go to several racks, only what racks receive counts.
    The number of days is the same for all racks; where only circuits that change are dark, each rack's own.
    Without a window the busiest rack says how long all demand takes at least.

    free_nights  days, of all switches together, that need no night
    """
    if not problem.bits.any():
        return 0.0
    if problem.window_us is not None:
        return _serve_in_days(problem, problem.window_us, free_nights) / problem.window_us
    rates: list[float] = []
    for way in (1,) if problem.uses_multicast_circuits else (0, 1):
        demand = problem.bits.sum(axis=1 - way)
        port_mbps = problem.switches * problem.circuit_mbps.max(axis=1 - way) + problem.packet_mbps
        served_pairs = demand > 0
        end_us = float((demand[served_pairs] / np.maximum(port_mbps[served_pairs], 1e-300)).max())
        rates.append(float(problem.bits.sum()) / end_us)
    return min(rates)


def _serve_in_days(problem: Circuits, window_us: float, free_nights: int) -> float:
    """Return the most bits that the racks' ports serve within a window, over the best number of days."""
    count = len(problem.bits)
    time_us = problem.switches * window_us + free_nights * problem.night_us
    a_day_us = problem.night_us + problem.shortest_day_us
    days = np.arange(count + 1 if a_day_us * count <= time_us else int(time_us / a_day_us + 1e-9) + 1)
    lit_us = np.clip(time_us - problem.night_us * days, 0.0, problem.switches * window_us)
    served = np.zeros((2, len(days)))
    for way, bits in enumerate((problem.bits, problem.bits.T)):
        circuit_mbps = problem.circuit_mbps.max(axis=1 - way)
        packet_bits = np.broadcast_to(problem.packet_mbps * window_us, count)
        for rack in range(count):
            largest = np.sort(bits[rack])[::-1].cumsum()
            circuits = np.concatenate([[0.0], largest])[: len(days)]
            circuits = np.minimum(circuits, circuit_mbps[rack] * lit_us)
            upper = np.minimum(largest[-1], circuits + packet_bits[rack])
            served[way] += upper if problem.dark == "all" else upper.max()
    if problem.uses_multicast_circuits:
        served = served[1:]
    return float(served.min(axis=0).max())


def day_length_edges(problem: Circuits, kinds: int, *, free_nights: int = 0) -> NDArray[np.float64]:
    """Return (k + 1,) lengths that separate the kinds of days, us: at the widest gaps between demands.

    Fewer than `kinds` where demands have fewer sizes. No day need be longer than the longest demand.
    """
    needs = np.unique(problem.pair_bits / problem.pair_mbps)
    longest = float(needs[-1]) if len(needs) else 1.0
    if problem.window_us is not None:
        longest = min(longest, problem.window_us - (0.0 if free_nights else problem.night_us))
    shortest = problem.shortest_day_us
    longest = max(shortest, longest)
    ratios = needs[1:] / needs[:-1]
    widest = np.argsort(-ratios, kind="stable")[: kinds - 1]
    apart = needs[:-1][widest[ratios[widest] > SAME_SIZE_RATIO]]
    inner = apart[(apart > shortest) & (apart < longest)]
    return np.concatenate([[shortest], np.sort(inner), [longest]])


def _count_kinds(problem: Circuits, kinds: int) -> int:
    """Return the number of kinds of days."""
    return len(day_length_edges(problem, kinds)) - 1


def build_model(
    problem: Circuits, *, kinds: int = 1, days: int | None = None, free_nights: int = 0
) -> LinearProgram:
    """Return the program of `bound_schedules`, in `Units`; `days` fixes the number of days.

    Variables: X (kinds, pairs) bits over circuits, Y (pairs,) over the packet switch, N and T (kinds,)
    number and time of days, and without a window the end. Where only circuits that change are dark,
    N and T are (2n,), of each rack's sending and receiving, and days are of one kind.
    """
    if problem.uses_multicast_circuits:
        return multicast_bound.build_model(problem, days=days)
    task = ScaledProblem(problem=problem)
    count, lines = len(task.wanted), len(task.packet)
    apart = problem.dark == "changed"
    edge = day_length_edges(problem, 1 if apart else kinds, free_nights=free_nights) / task.unit.us
    kind = len(edge) - 1
    width = lines if apart else kind  # how many N and T there are
    program = BlockProgram(circuit=count * kind, packet=count, days=width, time=width, end=int(task.timeless))
    each, every = sp.eye_array(width), sp.eye_array(kind)
    loads = sp.kron(every, task.loads)
    upper = np.tile(task.wanted, kind)
    if not apart:
        upper = np.minimum(upper, np.outer(edge[1:], task.rate).ravel())
    within = -sp.eye_array(lines) if apart else -sp.kron(every, np.ones((lines, 1)))
    busy = loads @ sp.diags_array(1 / np.tile(task.rate, kind))
    program.add("busy", upper=0.0, circuit=busy, time=within)
    shares = np.minimum(1 / upper, LARGEST_COEFFICIENT)  # smaller ones only loosen the bound
    program.add("wholes", upper=0.0, circuit=loads @ sp.diags_array(shares), days=within)
    lower = np.broadcast_to(edge[:-1], width)
    program.add("least", upper=0.0, days=sp.diags_array(lower), time=-each)
    if not apart:
        program.add("most", upper=0.0, days=-sp.diags_array(edge[1:]), time=each)
    sums = each if apart else np.ones((1, width))
    switches = np.full((sums.shape[0], 1), float(problem.switches))
    program.add(
        "week",
        upper=task.week * problem.switches + task.night * free_nights,
        days=task.night * sums,
        time=sums,
        end=-switches,
    )
    task.add_packet(program)
    task.add_demand(program, circuit=sp.hstack([sp.eye_array(count)] * kind))
    if days is not None:
        program.add("days", lower=float(days), upper=float(days), days=np.ones((1, width)))
    return task.build(program, name="bound on circuit schedules")


def describe_model(problem: Circuits, *, kinds: Kinds = 1) -> LinearProgram:
    """Return the program of `bound_schedules`, with a description of its objective value."""
    return ScaledProblem(problem=problem).describe(build_model(problem, kinds=kinds))


def _make_bound(
    problem: Circuits, bound: float | None, solution: Solution | None, ports: float = 0.0
) -> Decision[Schedule]:
    """Return the decision of a bound, or of a solver that has none; `ports` is the bound of racks' ports."""
    task, sign = ScaledProblem(problem=problem), 1 if problem.window_us is not None else -1
    failed = solution is not None and solution.x is None
    if not problem.bits.any():
        proven: float | None = 0.0
    elif bound is not None:
        proven = task.objective(sign * bound)
    else:  # the time limit came first, or nothing is feasible
        undecided = solution is not None and solution.status is Status.UNDECIDED
        proven = ports if undecided else None
    if proven is not None:  # at a time limit the program may have proven less than ports alone
        proven = min(proven, ports)
    proof = Proof(
        status=solution.status if solution is not None and failed else Status.UNDECIDED,
        bound=proven,
        metric="served_mbps",
        backend=None if solution is None else solution.backend,
        reasons=solution.reasons if solution is not None and failed else (),
    )
    return Decision(plan=None, proof=proof)
