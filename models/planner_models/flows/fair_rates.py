"""Fair rates over fixed routes: weighted max-min and proportional fairness.

A flow f puts `share[f, e]` of its rate on link e.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.sparse.linalg import splu

from planner.arrays import Floats, Ints, read_only
from planner.compiled import njit, run_small_in_python
from planner.errors import SolverFailure
from planner_models.graphs.binary_heap import pop_heap, sink

DENSE_MAX_LINKS: Final = 400  # below, a dense factorization is faster than a sparse one
DENSE_MIN_FILL: Final = 0.1  # share of nonzero entries; above, it is faster too


# --- max-min fairness ---------------------------------------------------------------------


def max_min_rates(
    share: sp.sparray, capacity: ArrayLike, cap: ArrayLike, *, weight: ArrayLike | None = None
) -> Floats:
    """Return weighted max-min fair rates, (F,): no rate can grow without reducing one that is no larger.

    Progressive filling: all rates rise together, in proportion to their weights, until a flow is at
    its cap or a link is full; its flows stop there, the others go on. Exact: every flow ends at its
    cap or has a bottleneck, a full link on which no flow has a larger rate over weight.

    share     (F, E) sparse, at least 0: share of a flow's rate on each link
    capacity  (E,) at least 0, in the unit of the rates
    cap       (F,) largest rate of each flow, at least 0; inf for no limit
    weight    (F,) more than 0; 1 where None
    source    Bertsekas and Gallager, Data Networks, 6.5.2
    """
    share, capacity, cap, weight = _validate(share, capacity, cap, weight)
    limit = cap / weight
    shares = Shares(share.indptr.astype(np.int64), share.indices.astype(np.int64), share.data)
    caps = Caps(cap, weight, limit, np.argsort(limit, kind="stable"))
    return fill_progressively(shares, capacity, caps)  # type: ignore[no-any-return] # numba has no types


def _validate(
    share: sp.sparray, capacity: ArrayLike, cap: ArrayLike, weight: ArrayLike | None
) -> tuple[sp.csr_array, Floats, Floats, Floats]:
    matrix = sp.csr_array(share, dtype=float)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    flows, links = matrix.shape
    capacity = read_only(np.asarray(capacity, dtype=float))
    cap = np.array(cap, dtype=float)  # of the kinds that other compiled loops pass: the filling compiles once
    weight = np.ones(flows) if weight is None else np.array(weight, dtype=float)
    if capacity.shape != (links,) or cap.shape != (flows,) or weight.shape != (flows,):
        raise ValueError(
            f"share is {flows} x {links}, capacity {capacity.shape}, cap {cap.shape}, weight {weight.shape}"
        )
    if not (matrix.data >= 0).all() or not (capacity >= 0).all() or not (cap >= 0).all():
        raise ValueError("share, capacity and cap must be at least 0")
    if not ((weight > 0) & np.isfinite(weight)).all():
        raise ValueError("weight must be finite and greater than 0")
    return matrix, capacity, cap, weight


class Shares(NamedTuple):
    """Links of flows: flow f sends amount[j] of its rate over link[j], start[f] <= j < start[f + 1]."""

    start: Ints
    link: Ints
    amount: Floats


class Caps(NamedTuple):
    """Limits of flows, (F,) each: largest rate, weight, their quotient, and the flows by that quotient."""

    cap: Floats
    weight: Floats
    limit: Floats
    by_limit: Ints


class _Users(NamedTuple):
    """Flows on links: those of link e are flow[first[e] : first[e + 1]], with the amounts of their rates."""

    first: Ints
    flow: Ints
    amount: Floats


class _Levels(NamedTuple):
    """Loads of links, (E,) each, and a heap of the links by the level at which they get full.

    fixed   load of the flows that have stopped
    rising  load of the others per unit of the level
    exact   `rising` when it was last summed afresh
    active  number of flows that have not stopped
    """

    fixed: Floats
    rising: Floats
    exact: Floats
    active: Ints
    heap: Ints
    key: Floats


@run_small_in_python(max_elements=20_000)
@njit(cache=True)
def fill_progressively(shares, capacity, caps):  # type: ignore[no-untyped-def]
    """Fill rates event by event: the next event is a link that gets full, or a flow that reaches its cap.

    A heap holds the links by the level at which they get full. A link's level only rises when flows
    elsewhere stop, so an outdated level is corrected when its link comes to the top.
    """
    cap, weight, limit, by_limit = caps
    flows = len(cap)
    rate = np.zeros(flows)
    is_fixed = np.zeros(flows, dtype=np.bool_)
    users, levels, size = _begin(shares, capacity, weight)
    level, next_cap = 0.0, 0
    while True:
        while next_cap < flows and is_fixed[by_limit[next_cap]]:
            next_cap += 1
        if next_cap == flows:
            return rate
        full, size = _find_full_link(levels, size, users, capacity, weight, is_fixed)
        f = by_limit[next_cap]
        if full < 0 or limit[f] <= levels.key[full]:
            level = max(level, limit[f])
            rate[f] = cap[f]
            _fix_rate(f, rate[f], shares, weight, levels)
            is_fixed[f] = True
            continue
        level = max(level, levels.key[full])
        for j in range(users.first[full], users.first[full + 1]):
            f = users.flow[j]
            if not is_fixed[f]:
                rate[f] = min(weight[f] * level, cap[f])
                _fix_rate(f, rate[f], shares, weight, levels)
                is_fixed[f] = True


@njit(cache=True)
def _begin(shares, capacity, weight):  # type: ignore[no-untyped-def]
    """Return the flows of each link, the loads before any flow has stopped, and the number of used links."""
    start, link, amount = shares
    flows, links = len(weight), len(capacity)
    rising = np.zeros(links)
    count = np.zeros(links, dtype=np.int64)
    for f in range(flows):
        for j in range(start[f], start[f + 1]):
            if amount[j] > 0:
                rising[link[j]] += weight[f] * amount[j]
                count[link[j]] += 1
    first = np.zeros(links + 1, dtype=np.int64)
    first[1:] = np.cumsum(count)
    next_slot = first[:-1].copy()
    user = np.empty(first[links], dtype=np.int64)
    used = np.empty(first[links])
    for f in range(flows):
        for j in range(start[f], start[f + 1]):
            if amount[j] > 0:
                user[next_slot[link[j]]] = f
                used[next_slot[link[j]]] = amount[j]
                next_slot[link[j]] += 1
    heap, key = np.empty(links, dtype=np.int64), np.empty(links)
    size = 0
    for e in range(links):
        if count[e]:
            heap[size] = e
            key[e] = capacity[e] / rising[e]
            size += 1
    for i in range(size // 2 - 1, -1, -1):
        sink(heap, key, None, i, size, heap[i])
    levels = _Levels(np.zeros(links), rising, rising.copy(), count, heap, key)
    return _Users(first, user, used), levels, size


@njit(cache=True)
def _find_full_link(levels, size, users, capacity, weight, is_fixed):  # type: ignore[no-untyped-def]
    """Return the link that gets full first, -1 for none, and the number of links in the heap."""
    fixed, rising, exact, active, heap, key = levels
    while size:
        e = heap[0]
        if active[e] == 0:
            _, size = pop_heap(heap, key, None, size)
            continue
        if rising[e] < 1e-3 * exact[e]:  # subtractions cost precision: sum the rest afresh
            rising[e] = 0.0
            for j in range(users.first[e], users.first[e + 1]):
                if not is_fixed[users.flow[j]]:
                    rising[e] += weight[users.flow[j]] * users.amount[j]
            exact[e] = rising[e]
        now = max(capacity[e] - fixed[e], 0.0) / rising[e]
        if now > key[e]:
            key[e] = now
            sink(heap, key, None, 0, size, e)
            if heap[0] != e:
                continue
        return e, size
    return -1, size


@njit(cache=True)
def _fix_rate(f, rate, shares, weight, levels):  # type: ignore[no-untyped-def]
    """Move the load of flow f from the rising to the fixed load of its links."""
    for j in range(shares.start[f], shares.start[f + 1]):
        if shares.amount[j] > 0:
            e = shares.link[j]
            levels.fixed[e] += rate * shares.amount[j]
            levels.rising[e] -= weight[f] * shares.amount[j]
            levels.active[e] -= 1


# --- proportional fairness ----------------------------------------------------------------


def proportional_rates(
    share: sp.sparray,
    capacity: ArrayLike,
    cap: ArrayLike,
    *,
    weight: ArrayLike | None = None,
    tolerance: float = 1e-9,
    iterations: int = 200,
) -> Floats:
    """Return the rates, (F,), that maximize the sum of weight * log(rate) within capacities and caps.

    Primal-dual interior point method with a strictly feasible start, so rates never exceed a
    capacity. It stops when the optimality conditions are met to `tolerance`, relative: the duality
    gap, and the difference between the marginal utility of each rate and the price of its links.

    Arguments as in `max_min_rates`; a flow over a link without capacity gets 0, as does one with cap 0.

    raises  ValueError for a flow that nothing limits (cap inf, no link); SolverFailure where
            `iterations` do not reach the tolerance
    source  Kelly, Maulloo and Tan 1998; Sen et al. 2013, equation (1) with U = log
    """
    return _solve_proportional(share, capacity, cap, weight, tolerance, iterations)[0]


def _solve_proportional(
    share: sp.sparray,
    capacity: ArrayLike,
    cap: ArrayLike,
    weight: ArrayLike | None,
    tolerance: float,
    iterations: int,
) -> tuple[Floats, Floats]:
    """Return proportionally fair rates (F,), and the dual price of each link (E,)."""
    share, capacity, cap, weight = _validate(share, capacity, cap, weight)
    share.eliminate_zeros()
    flows, links = share.shape
    blocked = (share @ (capacity <= 0)) > 0
    live = np.flatnonzero(~blocked & (cap > 0))
    rate, price = np.zeros(flows), np.zeros(links)
    uses, cap, weight = share[live], cap[live], weight[live]
    if np.isinf(cap).any() and (np.isinf(cap) & (np.diff(uses.indptr) == 0)).any():
        raise ValueError("a flow without a cap must use a link")
    # links that cannot get full, even with every flow at its cap, do not constrain
    with np.errstate(invalid="ignore"):
        max_load = uses.T @ np.where(np.isinf(cap), 1e300, cap)
    tight = np.flatnonzero(max_load > capacity * (1 + 1e-12))
    free = np.diff(uses[:, tight].indptr) == 0
    rate[live[free]] = cap[free]
    limited = np.flatnonzero(~free)
    if len(limited):
        matrix = sp.csr_array(uses[limited][:, tight])
        # in units in which capacities are about 1, and so are rates and prices
        unit = float(np.median(capacity[tight]))
        rate[live[limited]], price[tight] = _interior_point(
            matrix, capacity[tight] / unit, cap[limited] / unit, weight[limited], tolerance, iterations
        )
        rate[live[limited]] *= unit
        price[tight] /= unit
    return rate, price


def _interior_point(
    uses: sp.csr_array, c: Floats, cap: Floats, w: Floats, tolerance: float, iterations: int
) -> tuple[Floats, Floats]:
    """Return rates x (F,) and prices z (E,) with x v = w, s z = 0 and u y = 0 in the limit.

    s = c - load and u = cap - x are the slacks, z and y their prices, v = uses @ z + y the price of a
    unit of each rate. The marginal utility w / x is written as a product, x v = w, so that all other
    conditions are linear and satisfied from the start.
    """
    transposed = sp.csr_array(uses.T)
    capped = np.isfinite(cap)
    initial = np.where(capped, cap, 1.0)
    total = len(c) + int(capped.sum())
    # every link at most 0.9 full
    x = 0.9 * initial / _highest_fill(uses, (transposed @ initial) / c)
    s, u = c - transposed @ x, np.where(capped, cap - x, 1.0)
    mu = float(w.sum()) / total
    z, y = mu / s, np.where(capped, mu / u, 0.0)
    v = uses @ z + y
    gap = np.inf
    for _ in range(iterations):
        gap = float(s @ z + u[capped] @ y[capped])
        if gap <= tolerance * w.sum() and (np.abs(x * v - w) <= tolerance * w).all():
            return x, z
        curvature, ratio = v / x + y / u, z / s
        solve = _normal_equations(transposed, uses, curvature, ratio)

        def newton(aim: float) -> tuple[list[Floats], list[Floats]]:
            """Return the primal and dual steps towards s z = u y = aim and x v = w."""
            push_z, push_y = aim / s - z, np.where(capped, aim / u - y, 0.0)  # noqa: B023
            alone = (w / x - v - uses @ push_z - push_y) / curvature  # noqa: B023
            grows = solve(transposed @ alone)  # noqa: B023 - ratio * (load of dx)
            dx = alone - (uses @ grows) / curvature  # noqa: B023
            ds, du = -grows / ratio, np.where(capped, -dx, 0.0)  # noqa: B023
            dz, dy = push_z + grows, push_y - y / u * du  # noqa: B023
            return [dx, ds, du], [dz, dy, uses @ dz + dy]

        # predictor step straight to the optimum: its length sets the centring parameter
        primal, dual = newton(0.0)
        length = min(1.0, _max_step([x, s, u], primal), _max_step([z, y, v], dual))
        # the residual of x v = w counts as gap too, or slacks would vanish before rates converge
        missing = gap + float(np.abs(x * v - w).sum())
        primal, dual = newton(max((1 - length) ** 2, 1e-3) * missing / total)
        primal_step, dual_step = (
            min(1.0, 0.99 * _max_step(*pair)) for pair in (([x, s, u], primal), ([z, y, v], dual))
        )
        # slacks move along: recomputed, they would drown in rounding close to the optimum
        x, s, u = (value + primal_step * change for value, change in zip((x, s, u), primal, strict=True))
        z, y, v = (value + dual_step * change for value, change in zip((z, y, v), dual, strict=True))
    raise SolverFailure(
        f"proportional fairness: {iterations} iterations leave a gap of {gap / w.sum():.1e}, "
        f"above {tolerance:.1e}"
    )


def _highest_fill(uses: sp.csr_array, fill: Floats) -> Floats:
    """Return the largest value of `fill` (E,) among each flow's links, at least 1, shape (F,)."""
    return np.maximum(np.maximum.reduceat(fill[uses.indices], uses.indptr[:-1]), 1.0)


def _max_step(point: list[Floats], step: list[Floats]) -> float:
    """Return the largest step length before a value gets negative."""
    longest = np.inf
    for value, change in zip(point, step, strict=True):
        falls = change < 0
        if falls.any():
            longest = min(longest, float((-value[falls] / change[falls]).min()))
    return longest


def _normal_equations(
    transposed: sp.csr_array, uses: sp.csr_array, curvature: Floats, ratio: Floats
) -> Callable[[Floats], Floats]:
    """Return a solver of (diag(1 / ratio) + uses.T diag(1 / curvature) uses) t = b, t of shape (E,)."""
    matrix = transposed @ (sp.diags_array(1 / curvature) @ uses) + sp.diags_array(1 / ratio)
    # scaled to a unit diagonal: near the optimum its entries differ by many orders
    scale = 1 / np.sqrt(matrix.diagonal())
    matrix = sp.csc_array(sp.diags_array(scale) @ matrix @ sp.diags_array(scale))
    if matrix.shape[0] <= DENSE_MAX_LINKS or matrix.nnz > DENSE_MIN_FILL * matrix.shape[0] ** 2:
        factor = scipy.linalg.cho_factor(matrix.toarray(order="F"), lower=True, overwrite_a=True)
        return lambda b: scale * scipy.linalg.cho_solve(factor, scale * b)
    sparse = splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    return lambda b: scale * sparse.solve(scale * b)
