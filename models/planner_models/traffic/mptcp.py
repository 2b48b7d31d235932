"""Multipath TCP: every flow opens subflows on random equal-cost paths and shares its rate among them."""

from __future__ import annotations

import logging
import time
from typing import Annotated, Final, Literal

import numba
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from pydantic import Field

from planner.options import Options
from planner.proof import Proof, Status
from planner.system import Decision
from planner_models.traffic import next_hops, routing
from planner_models.traffic import rates as tcp
from planner_models.traffic.problem import Traffic
from planner_models.traffic.routing import Routing

Control = Literal["coupled", "uncoupled"]
SubflowCount = Annotated[int, Field(gt=0, description="subflows of each demand")]
Coupling = Annotated[
    Control,
    Field(
        description="coupled: subflows move traffic to where it is cheapest, proportionally fair between "
        "demands; uncoupled: each subflow gets its max-min fair share"
    ),
]
Seed = Annotated[int, Field(ge=0, description="which of its equal paths each subflow is hashed to")]

log = logging.getLogger(__name__)

GAP: Final = 1e-5  # of the utility of a demand, on average; where the coupled search ends
ROUNDS: Final = 100_000


def route(
    problem: Traffic,
    *,
    subflows: SubflowCount = 8,
    coupling: Coupling = "coupled",
    seed: Seed = 0,
    options: Options = Options(),  # noqa: ARG001 - nothing is solved by a backend
    previous: Decision[Routing] | None = None,  # noqa: ARG001
) -> Decision[Routing]:
    """Each demand over several subflows, hashed to equal-cost paths; end hosts find the rates.

    Demands are elastic: their rate is what they send at most. The coupled optimum is what linked
    congestion control tends to, the uncoupled rates what it would be without; packets in a network
    of short queues end up in between.

    source  Sen et al. 2013, sections 2 and 7.2; Raiciu et al. 2011 (MPTCP)
    """
    start = time.perf_counter()
    hops = next_hops.of(problem)
    paths = next_hops.random_paths(problem, hops, np.random.default_rng(seed), copies=subflows)
    wanted = np.flatnonzero(problem.rate_mbps > 0)
    rows = (wanted[:, None] * subflows + np.arange(subflows)).ravel()
    uses, cap = paths[rows], problem.rate_mbps[wanted]
    settle = coupled if coupling == "coupled" else uncoupled
    rate = settle(uses, problem.capacity_mbps, cap)
    owner = np.repeat(wanted, subflows)
    add_up = sp.csr_array((rate, (owner, np.arange(len(rate)))), shape=(len(problem.demands), len(rate)))
    plan = routing.by_pair(problem, add_up @ uses)
    proof = Proof(status=Status.FEASIBLE, seconds=time.perf_counter() - start)
    return Decision(plan=plan, proof=proof, keeps=frozenset({"capacity"}))


def uncoupled(
    uses: sp.csr_array, capacity: NDArray[np.float64], cap: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(n K,) max-min fair rates of subflows, those of one demand together at most its cap (K,).

    uses  (n K, E) 1 where a subflow takes a link; subflow i of demand k is row n k + i
    """
    subflows = uses.shape[0] // max(len(cap), 1)
    # the cap of a demand is one more link, shared by its subflows
    owner = np.repeat(np.arange(len(cap)), subflows)
    own = sp.csr_array((np.ones(len(owner)), (np.arange(len(owner)), owner)), shape=(len(owner), len(cap)))
    limits = np.r_[capacity, cap]
    return tcp.max_min(sp.hstack([uses, own]), limits, np.full(uses.shape[0], np.inf))


def coupled(
    uses: sp.csr_array, capacity: NDArray[np.float64], cap: NDArray[np.float64], *, gap: float = GAP
) -> NDArray[np.float64]:
    """(n K,) rates of subflows that maximize the sum over demands of log(rate of all their subflows).

    Primal-dual hybrid gradient with restarts (Chambolle and Pock 2011). It ends when prices prove
    that the utility is within `gap` of the best, on average over demands, or after many rounds:
    rates keep every capacity and cap either way. Arguments as in `uncoupled`.
    """
    unit = float(np.median(cap)) if len(cap) else 1.0
    transposed = sp.csr_array(uses.T)
    rate, left = _hybrid_gradient(
        uses.indptr.astype(np.int64),
        uses.indices.astype(np.int64),
        transposed.indptr.astype(np.int64),
        transposed.indices.astype(np.int64),
        capacity / unit,
        cap / unit,
        gap,
        ROUNDS,
    )
    if len(cap) and left > gap:
        log.warning("mptcp: after %d rounds, utility may be %.1e a demand below the best", ROUNDS, left)
    return np.asarray(rate * unit, dtype=float)


@numba.njit(cache=True)
def _hybrid_gradient(first, link, first_user, user, capacity, cap, wanted_gap, rounds):  # type: ignore[no-untyped-def]  # noqa: C901 - one compiled loop
    """Rates, and the gap per demand that is proven for them."""
    count, links, groups = len(first) - 1, len(capacity), len(cap)
    each = count // max(groups, 1)
    x, z = np.empty(count), np.zeros(links)
    longest, busiest = 1, 1
    for r in range(count):
        longest = max(longest, first[r + 1] - first[r])
    for e in range(links):
        busiest = max(busiest, first_user[e + 1] - first_user[e])
    for r in range(count):
        x[r] = cap[r // each] / each
    # start from what fits
    _fit(x, first, link, first_user, user, capacity)
    mean_x, mean_z = x.copy(), z.copy()
    ahead, cost = np.empty(count), np.empty(count)
    best, best_gap = x.copy(), np.inf
    trial = np.empty(count)
    # steps of the two sides: their product within the norm of the matrix, their ratio adapted
    balance, since, last_gap = 1.0, 0, np.inf
    reach = 0.95 / np.sqrt(longest * busiest)
    start_x, start_z = x.copy(), z.copy()
    for step in range(1, rounds + 1):
        tau, sigma = reach / balance, reach * balance
        for r in range(count):
            cost[r] = 0.0
            for e in link[first[r] : first[r + 1]]:
                cost[r] += z[e]
        for g in range(groups):
            low, high = g * each, (g + 1) * each
            _prox(x, cost, ahead, low, high, tau, cap[g])
        for e in range(links):
            carried = 0.0
            for r in user[first_user[e] : first_user[e + 1]]:
                carried += ahead[r]
            z[e] = max(0.0, z[e] + sigma * (carried - capacity[e]))
        since += 1
        for r in range(count):
            mean_x[r] += (x[r] - mean_x[r]) / since
        for e in range(links):
            mean_z[e] += (z[e] - mean_z[e]) / since
        if step % 50:
            continue
        # of the last and the mean point, the one that proves more
        smallest = np.inf
        for which in range(2):
            point, price = (x, z) if which == 0 else (mean_x, mean_z)
            trial[:] = point
            _fit(trial, first, link, first_user, user, capacity)
            gap = _gap(trial, price, first, link, capacity, cap, each) / max(groups, 1)
            if gap < smallest:
                smallest, chosen = gap, which
            if gap < best_gap:
                best_gap = gap
                best[:] = trial
        if best_gap <= wanted_gap:
            break
        if smallest < 0.5 * last_gap or since >= 2_000:
            if chosen == 1:
                x[:] = mean_x
                z[:] = mean_z
            moved_x, moved_z = np.sqrt(((x - start_x) ** 2).sum()), np.sqrt(((z - start_z) ** 2).sum())
            if moved_x > 1e-12 and moved_z > 1e-12:
                balance = np.sqrt(balance * moved_z / moved_x)
            start_x[:] = x
            start_z[:] = z
            mean_x[:] = x
            mean_z[:] = z
            since, last_gap = 0, smallest
    return best, best_gap


@numba.njit(cache=True)
def _prox(x, cost, ahead, low, high, tau, cap):  # type: ignore[no-untyped-def]  # noqa: C901
    """One demand's step: x[low:high] against its price and towards utility; `ahead` is 2 new - old."""
    for r in range(low, high):
        ahead[r] = x[r]
        x[r] -= tau * cost[r]
    # y = sum of max(0, x + tau m) with m = 1 / y, or whatever makes y the cap where that is less
    alive = high - low
    push = 0.0
    floor = -np.inf
    while True:
        total, alive = 0.0, 0
        for r in range(low, high):
            if x[r] > floor:
                total += x[r]
                alive += 1
        y = 0.5 * (total + np.sqrt(total * total + 4 * alive * tau))
        push = tau / y
        if y > cap:
            push = (cap - total) / alive
        if floor >= -push:
            break
        # what is below -push cannot be above 0
        floor = -push
        lost = 0
        for r in range(low, high):
            if x[r] <= floor:
                lost += 1
        if lost == high - low - alive:
            break
    for r in range(low, high):
        new = max(0.0, x[r] + push)
        ahead[r] = 2 * new - ahead[r]
        x[r] = new


@numba.njit(cache=True)
def _fit(x, first, link, first_user, user, capacity):  # type: ignore[no-untyped-def]
    """Cut rates, in place, until no link is above its capacity."""
    links = len(capacity)
    over = np.empty(links)
    for e in range(links):
        carried = 0.0
        for r in user[first_user[e] : first_user[e + 1]]:
            carried += x[r]
        over[e] = max(1.0, carried / capacity[e])
    for r in range(len(x)):
        worst = 1.0
        for e in link[first[r] : first[r + 1]]:
            worst = max(worst, over[e])
        x[r] /= worst


@numba.njit(cache=True)
def _gap(x, price, first, link, capacity, cap, each):  # type: ignore[no-untyped-def]
    """By how much the prices say that the utility could be higher."""
    gap = 0.0
    for e in range(len(capacity)):
        gap += price[e] * capacity[e]
    for g in range(len(cap)):
        y, cheapest = 0.0, np.inf
        for r in range(g * each, (g + 1) * each):
            y += x[r]
            cost = 0.0
            for e in link[first[r] : first[r + 1]]:
                cost += price[e]
            cheapest = min(cheapest, cost)
        if y <= 0:
            return np.inf
        most = cap[g] if cheapest * cap[g] <= 1 else 1 / cheapest
        gap += np.log(most) - cheapest * most - np.log(y)
    return gap
