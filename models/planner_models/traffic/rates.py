"""The rates that TCP reaches where routes are fixed: weighted max-min and proportional fairness.

A flow f puts `share[f, e]` of its rate on link e. TCP's congestion control is modelled, as in the
fluid model of Sen et al. 2013, section 6, by the fair allocation that it settles at: its exact form
depends on the variant, and lies between the two here.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated, Final, Literal

import numba
import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from pydantic import Field
from scipy.sparse.linalg import splu

from planner.errors import SolverFailure
from planner.proof import Proof, Status
from planner.system import Decision
from planner_models.traffic import routing
from planner_models.traffic.problem import Traffic
from planner_models.traffic.routing import Routing

Fairness = Literal["given", "max-min", "proportional"]
Rates = Annotated[
    Fairness,
    Field(
        description="given: every demand is sent at its rate, whatever the links can carry; max-min, "
        "proportional: demands are elastic, their rate is a cap, and they get what TCP reaches"
    ),
]

DENSE: Final = 400  # links up to which a dense factorization beats a sparse one
FILLED: Final = 0.1  # share of entries above which it does too


def reached(problem: Traffic, share: sp.sparray, rates: Fairness) -> NDArray[np.float64]:
    """(K,) Mbit/s of each demand when its traffic divides over the links as share (K, E) says."""
    if rates == "given":
        return problem.rate_mbps.copy()
    settle = max_min if rates == "max-min" else proportional
    wanted = np.flatnonzero(problem.rate_mbps > 0)
    rate = np.zeros(len(problem.demands))
    rate[wanted] = settle(sp.csr_array(share)[wanted], problem.capacity_mbps, problem.rate_mbps[wanted])
    return rate


def carry(
    problem: Traffic, share: sp.sparray, rates: Fairness, *, started: float | None = None
) -> Decision[Routing]:
    """The decision to divide traffic as share (K, E) says; it claims to keep what `rates` keeps.

    started  `time.perf_counter()` when deciding began
    """
    seconds = None if started is None else time.perf_counter() - started
    flow = sp.diags_array(reached(problem, share, rates)) @ sp.csr_array(share)
    keeps = frozenset({"demand"} if rates == "given" else {"capacity"})
    proof = Proof(status=Status.FEASIBLE, seconds=seconds)
    return Decision(plan=routing.by_pair(problem, flow), proof=proof, keeps=keeps)


# --- max-min fairness ---------------------------------------------------------------------


def max_min(
    share: sp.sparray, capacity: ArrayLike, cap: ArrayLike, *, weight: ArrayLike | None = None
) -> NDArray[np.float64]:
    """(F,) weighted max-min fair rates: no rate can grow without cutting one that is no larger.

    All rates rise together, in proportion to their weights, until a flow is at its cap or a link is
    full; its flows stop there, the others go on. Exact: every flow ends at its cap or has a
    bottleneck, a full link on which no flow has a larger rate over weight.

    share     (F, E) sparse, at least 0: of a flow's rate, what goes over each link
    capacity  (E,) at least 0, in the unit of the rates
    cap       (F,) most that each flow sends, at least 0; inf for no limit
    weight    (F,) more than 0; 1 where None
    source    Bertsekas and Gallager, Data Networks, 6.5.2
    """
    share, capacity, cap, weight = _checked(share, capacity, cap, weight)
    limit = cap / weight
    return _fill(  # type: ignore[no-any-return] # numba has no types
        share.indptr.astype(np.int64),
        share.indices.astype(np.int64),
        share.data,
        capacity,
        cap,
        weight,
        limit,
        np.argsort(limit, kind="stable"),
    )


def _checked(
    share: sp.sparray, capacity: ArrayLike, cap: ArrayLike, weight: ArrayLike | None
) -> tuple[sp.csr_array, NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    matrix = sp.csr_array(share, dtype=float)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    flows, links = matrix.shape
    capacity = np.ascontiguousarray(capacity, dtype=float)
    cap = np.ascontiguousarray(cap, dtype=float)
    weight = np.ones(flows) if weight is None else np.ascontiguousarray(weight, dtype=float)
    if capacity.shape != (links,) or cap.shape != (flows,) or weight.shape != (flows,):
        raise ValueError(
            f"share is {flows} x {links}, capacity {capacity.shape}, cap {cap.shape}, weight {weight.shape}"
        )
    if not (matrix.data >= 0).all() or not (capacity >= 0).all() or not (cap >= 0).all():
        raise ValueError("share, capacity and cap must be at least 0")
    if not ((weight > 0) & np.isfinite(weight)).all():
        raise ValueError("weight must be finite and greater than 0")
    return matrix, capacity, cap, weight


@numba.njit(cache=True)
def _fill(start, link, amount, capacity, cap, weight, limit, by_limit):  # type: ignore[no-untyped-def]  # noqa: C901 - one compiled loop
    """Progressive filling by events: the next link to fill up, or the next flow to meet its cap.

    Links wait in a heap by the level at which they would fill. A link's level only ever rises when
    flows elsewhere stop, so a stale one is corrected when it comes to the top.
    """
    flows, links = len(cap), len(capacity)
    rate = np.zeros(flows)
    done = np.zeros(flows, dtype=np.bool_)
    fixed = np.zeros(links)  # load of the flows that have stopped
    rising = np.zeros(links)  # load of the others per unit of the level
    count = np.zeros(links, dtype=np.int64)
    for f in range(flows):
        for j in range(start[f], start[f + 1]):
            if amount[j] > 0:
                rising[link[j]] += weight[f] * amount[j]
                count[link[j]] += 1
    exact = rising.copy()  # `rising` when it was last added up

    # the flows of each link
    first = np.zeros(links + 1, dtype=np.int64)
    first[1:] = np.cumsum(count)
    place = first[:-1].copy()
    user = np.empty(first[links], dtype=np.int64)
    used = np.empty(first[links])
    for f in range(flows):
        for j in range(start[f], start[f + 1]):
            if amount[j] > 0:
                user[place[link[j]]] = f
                used[place[link[j]]] = amount[j]
                place[link[j]] += 1

    heap = np.empty(links, dtype=np.int64)
    key = np.empty(links)
    size = 0
    for e in range(links):
        if count[e]:
            heap[size] = e
            key[e] = capacity[e] / rising[e]
            size += 1
    for i in range(size // 2 - 1, -1, -1):
        _sift(heap, key, i, size)

    level, next_cap = 0.0, 0
    while True:
        while next_cap < flows and done[by_limit[next_cap]]:
            next_cap += 1
        if next_cap == flows:
            return rate
        full = -1
        while size:
            e = heap[0]
            if count[e] == 0:
                size -= 1
                heap[0] = heap[size]
                _sift(heap, key, 0, size)
                continue
            if rising[e] < 1e-3 * exact[e]:  # most was subtracted: add up what is left
                rising[e] = 0.0
                for j in range(first[e], first[e + 1]):
                    if not done[user[j]]:
                        rising[e] += weight[user[j]] * used[j]
                exact[e] = rising[e]
            now = max(capacity[e] - fixed[e], 0.0) / rising[e]
            if now > key[e]:
                key[e] = now
                _sift(heap, key, 0, size)
                if heap[0] != e:
                    continue
            full = e
            break
        f = by_limit[next_cap]
        if full < 0 or limit[f] <= key[full]:
            level = max(level, limit[f])
            rate[f] = cap[f]
            _stop(f, rate[f], start, link, amount, weight, fixed, rising, count)
            done[f] = True
        else:
            level = max(level, key[full])
            for j in range(first[full], first[full + 1]):
                f = user[j]
                if not done[f]:
                    rate[f] = min(weight[f] * level, cap[f])
                    _stop(f, rate[f], start, link, amount, weight, fixed, rising, count)
                    done[f] = True


@numba.njit(cache=True)
def _stop(f, rate, start, link, amount, weight, fixed, rising, count):  # type: ignore[no-untyped-def]
    for j in range(start[f], start[f + 1]):
        if amount[j] > 0:
            e = link[j]
            fixed[e] += rate * amount[j]
            rising[e] -= weight[f] * amount[j]
            count[e] -= 1


@numba.njit(cache=True)
def _sift(heap, key, i, size):  # type: ignore[no-untyped-def]
    """Move the entry at place i of the heap down until its children are no smaller."""
    moved = heap[i]
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and key[heap[child + 1]] < key[heap[child]]:
            child += 1
        if key[heap[child]] >= key[moved]:
            break
        heap[i] = heap[child]
        i = child
    if size:
        heap[i] = moved


# --- proportional fairness ----------------------------------------------------------------


def proportional(
    share: sp.sparray,
    capacity: ArrayLike,
    cap: ArrayLike,
    *,
    weight: ArrayLike | None = None,
    tolerance: float = 1e-9,
    iterations: int = 200,
) -> NDArray[np.float64]:
    """(F,) rates that maximize the sum of weight * log(rate) within the capacities and caps.

    Primal-dual interior point with a strictly feasible start, so rates never break a capacity. Ends
    when the optimality conditions hold to `tolerance`, relative: the sum of weights is that close
    to what prices explain, and the marginal utility of each rate to the price of its links.

    Arguments as in `max_min`; a flow over a link without capacity gets 0, as does one with cap 0. A
    flow that nothing limits (cap inf, no link) has no best rate: ValueError.

    raises  SolverFailure where `iterations` do not reach the tolerance
    source  Kelly, Maulloo and Tan 1998; Sen et al. 2013, equation (1) with U = log
    """
    return _priced(share, capacity, cap, weight, tolerance, iterations)[0]


def _priced(
    share: sp.sparray,
    capacity: ArrayLike,
    cap: ArrayLike,
    weight: ArrayLike | None,
    tolerance: float,
    iterations: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Proportionally fair rates (F,), and the price of each link (E,) that supports them."""
    share, capacity, cap, weight = _checked(share, capacity, cap, weight)
    share.eliminate_zeros()
    flows, links = share.shape
    blocked = (share @ (capacity <= 0)) > 0
    live = np.flatnonzero(~blocked & (cap > 0))
    rate, price = np.zeros(flows), np.zeros(links)
    uses, cap, weight = share[live], cap[live], weight[live]
    if np.isinf(cap).any() and (np.isinf(cap) & (np.diff(uses.indptr) == 0)).any():
        raise ValueError("a flow without a cap must use a link")
    # links that cannot fill up, even with every flow at its cap, say nothing
    with np.errstate(invalid="ignore"):
        most = uses.T @ np.where(np.isinf(cap), 1e300, cap)
    tight = np.flatnonzero(most > capacity * (1 + 1e-12))
    free = np.diff(uses[:, tight].indptr) == 0
    rate[live[free]] = cap[free]
    bound = np.flatnonzero(~free)
    if len(bound):
        matrix = sp.csr_array(uses[bound][:, tight])
        # in units in which capacities are about 1, and so are rates and prices
        unit = float(np.median(capacity[tight]))
        rate[live[bound]], price[tight] = _interior_point(
            matrix, capacity[tight] / unit, cap[bound] / unit, weight[bound], tolerance, iterations
        )
        rate[live[bound]] *= unit
        price[tight] /= unit
    return rate, price


def _interior_point(
    uses: sp.csr_array,
    c: NDArray[np.float64],
    cap: NDArray[np.float64],
    w: NDArray[np.float64],
    tolerance: float,
    iterations: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rates x (F,) and prices z (E,) with x v = w, s z = 0 and u y = 0 in the limit.

    s = c - load and u = cap - x are the slacks, z and y their prices, v = uses @ z + y what a unit
    of each rate costs. The marginal utility w / x is kept as a product, x v = w, so that every
    condition but products is linear and holds from the start.
    """
    transposed = sp.csr_array(uses.T)
    capped = np.isfinite(cap)
    room = np.where(capped, cap, 1.0)
    total = len(c) + int(capped.sum())
    # every link at most 0.9 full
    x = 0.9 * room / _most(uses, (transposed @ room) / c)
    s, u = c - transposed @ x, np.where(capped, cap - x, 1.0)
    mu = float(w.sum()) / total
    z, y = mu / s, np.where(capped, mu / u, 0.0)
    v = uses @ z + y
    gap = np.inf
    for _ in range(iterations):
        gap = float(s @ z + u[capped] @ y[capped])
        if gap <= tolerance * w.sum() and (np.abs(x * v - w) <= tolerance * w).all():
            return x, z
        own, joint = v / x + y / u, z / s
        solve = _normal_equations(transposed, uses, own, joint)

        def newton(aim: float) -> tuple[list[NDArray[np.float64]], list[NDArray[np.float64]]]:
            """The step towards s z = u y = aim and x v = w."""
            push_z, push_y = aim / s - z, np.where(capped, aim / u - y, 0.0)  # noqa: B023
            alone = (w / x - v - uses @ push_z - push_y) / own  # noqa: B023
            grows = solve(transposed @ alone)  # noqa: B023 - joint * (load of dx)
            dx = alone - (uses @ grows) / own  # noqa: B023
            ds, du = -grows / joint, np.where(capped, -dx, 0.0)  # noqa: B023
            dz, dy = push_z + grows, push_y - y / u * du  # noqa: B023
            return [dx, ds, du], [dz, dy, uses @ dz + dy]

        # first straight at the optimum: how far that goes says how near the centre to aim
        primal, dual = newton(0.0)
        length = min(1.0, _longest([x, s, u], primal), _longest([z, y, v], dual))
        # what x v = w lacks counts as gap too, or slacks would vanish before rates have settled
        lacking = gap + float(np.abs(x * v - w).sum())
        primal, dual = newton(max((1 - length) ** 2, 1e-3) * lacking / total)
        along, across = (
            min(1.0, 0.99 * _longest(*pair)) for pair in (([x, s, u], primal), ([z, y, v], dual))
        )
        # slacks move along: recomputed, they would drown in rounding close to the optimum
        x, s, u = (value + along * change for value, change in zip((x, s, u), primal, strict=True))
        z, y, v = (value + across * change for value, change in zip((z, y, v), dual, strict=True))
    raise SolverFailure(
        f"proportional fairness: {iterations} iterations leave a gap of {gap / w.sum():.1e}, "
        f"above {tolerance:.1e}"
    )


def _most(uses: sp.csr_array, fill: NDArray[np.float64]) -> NDArray[np.float64]:
    """(F,) the largest value of `fill` (E,) among each flow's links, at least 1."""
    return np.maximum(np.maximum.reduceat(fill[uses.indices], uses.indptr[:-1]), 1.0)


def _longest(at: list[NDArray[np.float64]], step: list[NDArray[np.float64]]) -> float:
    """How far one may go along `step` before something turns negative."""
    longest = np.inf
    for value, change in zip(at, step, strict=True):
        falls = change < 0
        if falls.any():
            longest = min(longest, float((-value[falls] / change[falls]).min()))
    return longest


def _normal_equations(
    transposed: sp.csr_array, uses: sp.csr_array, own: NDArray[np.float64], joint: NDArray[np.float64]
) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """Solves (diag(1 / joint) + uses.T diag(1 / own) uses) t = b, in the links."""
    matrix = transposed @ (sp.diags_array(1 / own) @ uses) + sp.diags_array(1 / joint)
    # scaled to a unit diagonal: near the optimum its entries differ by many orders
    scale = 1 / np.sqrt(matrix.diagonal())
    matrix = sp.csc_array(sp.diags_array(scale) @ matrix @ sp.diags_array(scale))
    if matrix.shape[0] <= DENSE or matrix.nnz > FILLED * matrix.shape[0] ** 2:
        factor = scipy.linalg.cho_factor(matrix.toarray(order="F"), lower=True, overwrite_a=True)
        return lambda b: scale * scipy.linalg.cho_solve(factor, scale * b)
    sparse = splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    return lambda b: scale * sparse.solve(scale * b)
