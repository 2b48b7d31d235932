"""Multipath TCP: every flow sends over several subflows on random equal-cost paths."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Annotated, Final, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from planner.arrays import Floats, Ints
from planner.compiled import njit
from planner.contract.design import Decision
from planner.errors import InputError
from planner.search.judged import feasible
from planner.search.tolerances import INTERIOR_POINT
from planner_models.flows import next_hops
from planner_models.flows.fair_rates import max_min_rates
from planner_models.flows.path_flow_program import CandidatePaths, route_table
from planner_models.graphs.indexing import sum_by_index
from planner_models.traffic.designs.path_assignment import AssignedPaths, find_assignable
from planner_models.traffic.designs.routable import shed_demands, shed_unreachable_by_demand
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic

Control = Literal["coupled", "uncoupled"]
SubflowCount = Annotated[int, Field(gt=0, description="subflows of each demand")]
Coupling = Annotated[
    Control,
    Field(
        description="coupled: subflows shift traffic to the cheapest paths, proportionally fair between "
        "demands; uncoupled: each subflow gets its max-min fair share"
    ),
]
Seed = Annotated[int, Field(ge=0, description="of the hash that assigns each subflow one of its equal paths")]

log = logging.getLogger(__name__)

DEFAULT_GAP: Final = INTERIOR_POINT  # of the coupled optimum: mean utility per demand
MAX_ITERATIONS: Final = 100_000


@shed_unreachable_by_demand
def route(
    problem: Traffic,
    *,
    subflows: SubflowCount = 8,
    paths: AssignedPaths = "equal_cost",
    coupling: Coupling = "coupled",
    seed: Seed = 0,
) -> Decision[Routing]:
    """Route each demand over several subflows, hashed to equal-cost paths, at the rates of MPTCP.

    Over tunnels, or a number of paths, subflows take those of their demand in turn. Demands are elastic:
    their rate is a cap. Linked congestion control tends to the coupled optimum; without it rates would be the
    uncoupled ones. Packet networks with short queues are in between.

    raises  InputError for tunnels by segments, whose subflows would divide
    source  Sen et al. 2013, sections 2 and 7.2; Raiciu et al. 2011 (MPTCP)
    """
    solve = coupled_rates if coupling == "coupled" else uncoupled_rates
    if paths != "equal_cost":
        return _route_over(problem, find_assignable(problem, paths), subflows, solve)
    drawn = next_hops.draw_stable_paths(problem, np.random.default_rng(seed), copies=subflows)
    demands = np.flatnonzero(problem.rate_mbps > 0)
    rows = (demands[:, None] * subflows + np.arange(subflows)).ravel()
    uses, cap = drawn[rows], problem.rate_mbps[demands]
    rate = solve(uses, problem.capacity_mbps, cap)
    owner = np.repeat(demands, subflows)
    by_demand = sp.csr_array((rate, (owner, np.arange(len(rate)))), shape=(len(problem.demands), len(rate)))
    plan = routing.routing_by_demand(problem, by_demand @ uses)
    proof = feasible()
    return Decision(plan=plan, proof=proof, guarantees=frozenset({"capacity"}))


def _route_over(
    problem: Traffic, paths: CandidatePaths, subflows: int, solve: Callable[..., Floats]
) -> Decision[Routing]:
    """Route each demand over its candidate paths; demands without one are shed."""
    if paths.share is not None:
        raise InputError("paths is 'tunnels', of which some are segments: mptcp knows explicit ones only")
    left_out = paths.without_path(problem)
    served = problem.with_rates(np.where(left_out, 0.0, problem.rate_mbps)) if left_out.any() else problem
    demands, first, count = np.unique(paths.demand, return_index=True, return_counts=True)
    taken = (first[:, None] + np.arange(subflows) % count[:, None]).ravel()
    rate = np.zeros(len(paths.demand))
    if len(demands):
        cap = served.rate_mbps[demands]
        rate = sum_by_index(taken, solve(paths.uses[taken], served.capacity_mbps, cap), len(rate))
    shape = (len(served.demands), len(rate))
    by_demand = sp.csr_array((rate, (paths.demand, np.arange(len(rate)))), shape=shape)
    plan = routing.routing_by_demand(served, by_demand @ paths.uses, route_table(served, paths, rate))
    proof = feasible()
    decision = Decision(plan=plan, proof=proof, guarantees=frozenset({"capacity"}))
    return shed_demands(problem, left_out, decision) if left_out.any() else decision


def uncoupled_rates(uses: sp.csr_array, capacity: Floats, cap: Floats) -> Floats:
    """Return max-min fair rates of subflows, shape (n K,); those of a demand add up to at most its cap (K,).

    uses  (n K, E) 1 where a subflow takes a link; subflow i of demand k is row n k + i
    """
    subflows = uses.shape[0] // max(len(cap), 1)
    # the cap of a demand is an additional link, shared by its subflows
    owner = np.repeat(np.arange(len(cap)), subflows)
    owner_matrix = sp.csr_array(
        (np.ones(len(owner)), (np.arange(len(owner)), owner)), shape=(len(owner), len(cap))
    )
    limits = np.r_[capacity, cap]
    return max_min_rates(sp.hstack([uses, owner_matrix]), limits, np.full(uses.shape[0], np.inf))


def coupled_rates(uses: sp.csr_array, capacity: Floats, cap: Floats, *, gap: float = DEFAULT_GAP) -> Floats:
    """Return the rates of subflows (n K,) that maximize the sum over demands of log(total rate).

    Primal-dual hybrid gradient with restarts (Chambolle and Pock 2011). It ends when dual
    prices prove a `gap` in mean utility per demand, or after MAX_ITERATIONS; rates keep every
    capacity and cap either way. Arguments as in `uncoupled`.
    """
    unit = float(np.median(cap)) if len(cap) else 1.0
    transposed = sp.csr_array(uses.T)
    net = _Subflows(
        uses.indptr.astype(np.int64),
        uses.indices.astype(np.int64),
        transposed.indptr.astype(np.int64),
        transposed.indices.astype(np.int64),
        capacity / unit,
        cap / unit,
    )
    rate, proven_gap = _hybrid_gradient(net, gap, MAX_ITERATIONS)
    if len(cap) and proven_gap > gap:
        log.warning(
            "mptcp: after %d iterations, utility per demand may be %.1e below the optimum",
            MAX_ITERATIONS,
            proven_gap,
        )
    return np.asarray(rate * unit, dtype=float)


class _Subflows(NamedTuple):
    """Links of subflows, which stand side by side by demand, and subflows of links.

    first, link       links of subflow r: link[first[r] : first[r + 1]]
    first_user, user  subflows of link e: user[first_user[e] : first_user[e + 1]]
    capacity, cap     of links, and of the subflows of each demand together
    """

    first: Ints
    link: Ints
    first_user: Ints
    user: Ints
    capacity: Floats
    cap: Floats


@njit(cache=True)
def _hybrid_gradient(net, wanted_gap, rounds):  # type: ignore[no-untyped-def]  # noqa: C901 - one compiled loop
    """Return rates, and the duality gap per demand that is proven for them."""
    count, links, groups = len(net.first) - 1, len(net.capacity), len(net.cap)
    subflows = count // max(groups, 1)
    x, z = np.empty(count), np.zeros(links)
    for r in range(count):
        x[r] = net.cap[r // subflows] / subflows
    # a feasible start
    _scale_to_capacity(x, net)
    mean_x, mean_z = x.copy(), z.copy()
    extrapolated = np.empty(count)
    best, best_gap = x.copy(), np.inf
    trial = np.empty(count)
    # steps of the two sides: their product within the norm of the matrix, their ratio adapted
    step_ratio, since, last_gap = 1.0, 0, np.inf
    step_size = 0.95 / np.sqrt(_longest_row(net.first) * _longest_row(net.first_user))
    start_x, start_z = x.copy(), z.copy()
    for step in range(1, rounds + 1):
        _step(x, z, net, step_size / step_ratio, step_size * step_ratio, extrapolated)
        since += 1
        for r in range(count):
            mean_x[r] += (x[r] - mean_x[r]) / since
        for e in range(links):
            mean_z[e] += (z[e] - mean_z[e]) / since
        if step % 50:
            continue
        # of the last and the mean point, the one with the smaller gap
        smallest = np.inf
        for which in range(2):
            point, price = (x, z) if which == 0 else (mean_x, mean_z)
            trial[:] = point
            _scale_to_capacity(trial, net)
            gap = _duality_gap(trial, price, net) / max(groups, 1)
            if gap < smallest:
                smallest, branch = gap, which
            if gap < best_gap:
                best_gap = gap
                best[:] = trial
        if best_gap <= wanted_gap:
            break
        if smallest < 0.5 * last_gap or since >= 2_000:
            if branch == 1:
                x[:] = mean_x
                z[:] = mean_z
            moved_x, moved_z = np.sqrt(((x - start_x) ** 2).sum()), np.sqrt(((z - start_z) ** 2).sum())
            if moved_x > 1e-12 and moved_z > 1e-12:
                step_ratio = np.sqrt(step_ratio * moved_z / moved_x)
            start_x[:] = x
            start_z[:] = z
            mean_x[:] = x
            mean_z[:] = z
            since, last_gap = 0, smallest
    return best, best_gap


@njit(cache=True)
def _longest_row(first):  # type: ignore[no-untyped-def]
    """Return the largest number of entries of a row, at least 1."""
    longest = 1
    for r in range(len(first) - 1):
        longest = max(longest, first[r + 1] - first[r])
    return longest


@njit(cache=True)
def _step(x, z, net, tau, sigma, extrapolated):  # type: ignore[no-untyped-def]
    """Take a step of the rates x, of length tau, and of the prices z, of length sigma."""
    count, groups = len(x), len(net.cap)
    subflows = count // max(groups, 1)
    cost = np.empty(count)
    for r in range(count):
        cost[r] = 0.0
        for e in net.link[net.first[r] : net.first[r + 1]]:
            cost[r] += z[e]
    for g in range(groups):
        low, high = g * subflows, (g + 1) * subflows
        _proximal_step(x, cost, extrapolated, low, high, tau, net.cap[g])
    for e in range(len(z)):
        load = 0.0
        for r in net.user[net.first_user[e] : net.first_user[e + 1]]:
            load += extrapolated[r]
        z[e] = max(0.0, z[e] + sigma * (load - net.capacity[e]))


@njit(cache=True)
def _proximal_step(x, cost, extrapolated, low, high, tau, cap):  # type: ignore[no-untyped-def]  # noqa: C901
    """Take the proximal step of one demand, x[low:high]; `extrapolated` becomes 2 new - old."""
    for r in range(low, high):
        extrapolated[r] = x[r]
        x[r] -= tau * cost[r]
    # y = sum of max(0, x + tau m) with m = 1 / y, or the m that makes y the cap where that is less
    active = high - low
    shift = 0.0
    floor = -np.inf
    while True:
        total, active = 0.0, 0
        for r in range(low, high):
            if x[r] > floor:
                total += x[r]
                active += 1
        y = 0.5 * (total + np.sqrt(total * total + 4 * active * tau))
        shift = tau / y
        if y > cap:
            shift = (cap - total) / active
        if floor >= -shift:
            break
        # entries below -shift become 0
        floor = -shift
        dropped = 0
        for r in range(low, high):
            if x[r] <= floor:
                dropped += 1
        if dropped == high - low - active:
            break
    for r in range(low, high):
        new = max(0.0, x[r] + shift)
        extrapolated[r] = 2 * new - extrapolated[r]
        x[r] = new


@njit(cache=True)
def _scale_to_capacity(x, net):  # type: ignore[no-untyped-def]
    """Reduce rates, in place, so that no link is above its capacity."""
    first, link, first_user, user, capacity, _ = net
    links = len(capacity)
    overload = np.empty(links)
    for e in range(links):
        load = 0.0
        for r in user[first_user[e] : first_user[e + 1]]:
            load += x[r]
        overload[e] = max(1.0, load / capacity[e])
    for r in range(len(x)):
        largest = 1.0
        for e in link[first[r] : first[r + 1]]:
            largest = max(largest, overload[e])
        x[r] /= largest


@njit(cache=True)
def _duality_gap(x, price, net):  # type: ignore[no-untyped-def]
    """Return the duality gap: the dual bound on the utility less the utility of x."""
    first, link, capacity, cap = net.first, net.link, net.capacity, net.cap
    subflows = len(x) // max(len(cap), 1)
    gap = 0.0
    for e in range(len(capacity)):
        gap += price[e] * capacity[e]
    for g in range(len(cap)):
        y, cheapest = 0.0, np.inf
        for r in range(g * subflows, (g + 1) * subflows):
            y += x[r]
            cost = 0.0
            for e in link[first[r] : first[r + 1]]:
                cost += price[e]
            cheapest = min(cheapest, cost)
        if y <= 0:
            return np.inf
        best_rate = cap[g] if cheapest * cap[g] <= 1 else 1 / cheapest
        gap += np.log(best_rate) - cheapest * best_rate - np.log(y)
    return gap
