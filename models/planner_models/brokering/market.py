"""The broker's decision: which clients go to which cluster, with a proven gap."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Annotated, Any, Final, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from pydantic import Field

from planner import backends
from planner.backends.linear import Columns, LinearProgram, Rows
from planner.errors import InputError
from planner.options import Options
from planner.proof import Proof, Status, relative_gap
from planner.system import Decision
from planner_models.brokering import assignment, billing, flow, knapsack, refill, repair
from planner_models.brokering.assignment import Assignment
from planner_models.brokering.problem import Brokering

Method = Annotated[
    Literal["auto", "flow", "exact"],
    Field(
        description="flow: min-cost flow and repair; exact: integer program; "
        "auto: flow, then exact where that is small and its gap too large"
    ),
]
GAP: Final = 1e-4  # relative; what counts as optimal where the options do not say
REPAIR_S: Final = 20.0  # most seconds of trading places without a time limit
SMALL: Final = 20_000  # variables up to which "auto" also tries the integer program
BACKEND: Final = "min-cost flow (OR-Tools) and repair"


def assign(
    problem: Brokering,
    *,
    method: Method = "auto",
    options: Options = Options(),
    previous: Decision[Assignment] | None = None,
) -> Decision[Assignment]:
    """The best assignment of clients to bids by what the broker believes.

    Clients of one location and bitrate are one group. Divisible clients are spread by min-cost
    flow, whose prices of room give the bound; whole ones are made by rounding and trading places.

    returns  Decision with an Assignment; objective and bound are of metric "objective"
    raises   InputError for a backend that cannot solve integer programs, or an algorithm that is not used
    source   Mukerjee 2018, Fig. 3.10
    """
    if options.backend.startswith("pyomo:"):
        decision = _by_reference(problem, options)
    elif method == "exact" or options.backend != "highs":
        decision = _exact(problem, options)
    else:
        decision = _by_flow(problem, method, options)
    return billing.remembered(problem, decision, previous)


def _by_flow(problem: Brokering, method: Method, options: Options) -> Decision[Assignment]:
    """Min-cost flow, whole clients, a tighter bound and a better plan, as far as the gap asks for."""
    if options.algorithm != "auto":
        raise InputError(
            f"algorithm is '{options.algorithm}': min-cost flow and repair take none; leave it out, "
            "or take method 'exact'"
        )
    started = time.perf_counter()
    gap = GAP if options.gap is None else options.gap
    limit = REPAIR_S if options.time_limit_s is None else options.time_limit_s
    transport = transport_of(problem)
    relaxed = flow.relax(transport)
    if relaxed.blocked is not None:
        proof = Proof(
            status=Status.INFEASIBLE,
            metric="objective",
            backend=BACKEND,
            reasons=_too_little(problem, relaxed),
        )
        return Decision(plan=None, proof=proof)
    assert relaxed.bound is not None
    sent = repair.whole(transport, relaxed, gap=gap / 10, until=started + limit)
    bound = relaxed.bound
    if sent is not None:
        value = repair.result(transport, sent)[1]
        bound = knapsack.tighten(transport, relaxed.price, bound, value, gap=gap, until=started + limit)
        refill.improve(
            transport,
            relaxed.price,
            sent,
            enough=bound + gap * abs(bound),
            until=started + limit,
            seed=options.seed or 0,
        )
    decision = _decision(problem, transport, sent, bound, gap)
    small = int(np.isfinite(transport.cost).sum()) <= SMALL
    left = limit - (time.perf_counter() - started)
    if method == "flow" or not small or decision.proof.status is Status.OPTIMAL or left <= 0:
        return decision
    return _better(decision, _exact(problem, replace(options, time_limit_s=left, gap=gap)))


def client_cost(problem: Brokering) -> NDArray[np.float64]:
    """(G, C) what one client of each group adds to the objective in each cluster; NaN without a price."""
    groups, terms = problem.groups, problem.terms
    cost: NDArray[np.float64] = problem.score[groups.location] * terms.performance_weight
    if terms.performance_per == "bit":
        cost *= groups.bitrate_mbps[:, None]
    hourly = terms.cost_weight * terms.units_per_mbps_hour * groups.bitrate_mbps
    cost += problem.price[groups.location] * hourly[:, None]
    return cost


def transport_of(problem: Brokering) -> flow.Transport:
    """The problem as groups, costs and room; a client's cost is what it adds to the objective."""
    groups = problem.groups
    cost = client_cost(problem)
    cost[~(problem.allowed & ~np.isnan(cost))] = np.inf
    return flow.Transport(
        cost=cost,
        weight=groups.bitrate_mbps,
        count=groups.count,
        room=flow.usable(problem.free_mbps, groups.bitrate_mbps),
    )


def model(problem: Brokering, *, method: Method = "auto") -> LinearProgram:  # noqa: ARG001
    """Fig. 3.10 with the clients of a group counted, not told apart; minimises the objective."""
    transport = transport_of(problem)
    group, cluster = np.nonzero(np.isfinite(transport.cost))
    count = len(group)
    arcs = np.arange(count)
    groups, clusters = transport.cost.shape
    locations = problem.locations["location"].to_numpy()
    names = problem.clusters["cluster"].to_numpy()

    def group_label(g: Any) -> str:
        return f"{locations[problem.groups.location[g]]}@{problem.groups.bitrate_mbps[g] * 1000:g}"

    return LinearProgram.build(
        cost=transport.cost[group, cluster],
        columns=[
            Columns(
                "clients",
                count,
                labels=lambda: [f"{group_label(g)},{names[c]}" for g, c in zip(group, cluster, strict=True)],
            )
        ],
        rows=[
            Rows(
                "served",
                sp.csr_array((np.ones(count), (group, arcs)), shape=(groups, count)),
                lower=transport.count,
                upper=transport.count,
                labels=lambda: [group_label(g) for g in range(groups)],
            ),
            Rows(
                "capacity",
                sp.csr_array((transport.weight[group], (cluster, arcs)), shape=(clusters, count)),
                upper=transport.room,
                labels=lambda: [str(name) for name in names],
            ),
        ],
        upper=transport.count[group].astype(float),
        integer=True,
        name="brokering",
    )


def _exact(problem: Brokering, options: Options) -> Decision[Assignment]:
    """The integer program itself, on any backend that solves such."""
    transport = transport_of(problem)
    group, cluster = np.nonzero(np.isfinite(transport.cost))
    solution = backends.solve(model(problem), options)
    if solution.x is None:
        proof = Proof(
            status=solution.status,
            bound=solution.bound,
            metric="objective",
            backend=solution.backend,
            reasons=solution.reasons,
        )
        return Decision(plan=None, proof=proof)
    sent = np.zeros(transport.cost.shape, dtype=np.int32)
    sent[group, cluster] = np.rint(solution.x)
    gap = GAP if options.gap is None else options.gap
    whole = sent if _keep_room(transport, sent) else None
    decision = _decision(problem, transport, whole, solution.bound, gap)
    return replace(decision, proof=replace(decision.proof, backend=solution.backend))


def _keep_room(transport: flow.Transport, sent: Any) -> bool:
    """Solvers keep rows to about 1e-6 only: move clients that exceed the room; False if none has any."""
    load = transport.weight @ sent
    slack = repair.SLACK * np.maximum(transport.room, 1.0)
    if (load <= transport.room + slack).all():
        return True
    room = transport.room + slack - load
    left = np.zeros(len(transport.count), dtype=np.int64)
    for cluster in np.flatnonzero(room < 0):
        for group in np.argsort(transport.weight):
            while room[cluster] < 0 and sent[group, cluster]:
                sent[group, cluster] -= 1
                room[cluster] += transport.weight[group]
                left[group] += 1
    return bool(repair.place(transport.cost, transport.weight, sent, room, left, np.zeros(len(room))))


def _by_reference(problem: Brokering, options: Options) -> Decision[Assignment]:
    """The formal model itself, through Pyomo: slow, and an independent witness."""
    from planner.backends import pyomo
    from planner_models.brokering.formulation import formulation, sent_by_group

    m = formulation(problem)
    solution = pyomo.solve_model(m, options)
    if solution.objective is None:
        proof = Proof(status=solution.status, metric="objective", backend=solution.backend)
        return Decision(plan=None, proof=proof)
    bound = None if solution.bound is None else -solution.bound  # the printed one is maximised
    gap = GAP if options.gap is None else options.gap
    decision = _decision(problem, transport_of(problem), sent_by_group(problem, m), bound, gap)
    return replace(decision, proof=replace(decision.proof, backend=solution.backend))


def _decision(
    problem: Brokering, transport: flow.Transport, sent: Any, bound: float | None, gap: float
) -> Decision[Assignment]:
    if sent is None:
        proof = Proof(status=Status.UNDECIDED, bound=bound, metric="objective", backend=BACKEND)
        return Decision(plan=None, proof=proof)
    spread, value = repair.result(transport, sent)
    # rounding may put the two a hair on the wrong sides of each other
    if bound is not None and value < bound <= value + 1e-9 * max(abs(value), 1.0):
        bound = value
    reached = relative_gap(value, bound)
    proof = Proof(
        status=Status.OPTIMAL if reached is not None and reached <= max(gap, 1e-9) else Status.FEASIBLE,
        objective=value,
        bound=bound,
        metric="objective",
        backend=BACKEND,
    )
    return Decision(plan=assignment.of_groups(problem, spread), proof=proof)


def _better(one: Decision[Assignment], other: Decision[Assignment]) -> Decision[Assignment]:
    """The better plan with the tighter bound of two searches on the same problem."""
    if other.plan is None:
        return other if one.plan is None else one
    if one.plan is None:
        return other
    first, second = one.proof, other.proof
    assert first.objective is not None
    assert second.objective is not None
    best = one if first.objective <= second.objective else other
    bounds = [bound for bound in (first.bound, second.bound) if bound is not None]
    bound = min(max(bounds), min(first.objective, second.objective)) if bounds else None
    return replace(best, proof=replace(other.proof, objective=best.proof.objective, bound=bound))


def _too_little(problem: Brokering, relaxed: flow.Relaxed) -> tuple[str, ...]:
    """Whose traffic has too little room, in one sentence."""
    assert relaxed.blocked is not None
    group, cluster = relaxed.blocked
    groups = problem.groups
    wanted = float(groups.bitrate_mbps[group] @ groups.count[group])
    room = float(problem.free_mbps[cluster].sum())
    places = problem.locations["location"].iloc[np.unique(groups.location[group])].tolist()
    named = ", ".join(places[:5]) + (f" and {len(places) - 5} more" if len(places) > 5 else "")
    on_offer = "1 cluster" if len(cluster) == 1 else f"{len(cluster)} clusters"
    reason = f"clients in {named} want {wanted:,.6g} Mbit/s; the room on offer to them, in {on_offer}, "
    return (reason + f"is {room:,.6g} Mbit/s",)
