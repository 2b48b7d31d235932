"""Linear programs over given paths of many demands, by an interior-point method of its own.

    total        min sum of traffic left out + C sum of o     A x + s - o = capacity
    utilization  min U                                        A x + s = U capacity

and in both the traffic x of each demand's paths adds up to its rate, with x, s, o at least 0. In `total` the
first path of a demand has no links: it leaves traffic out. o is what overloads a link, at a price C that no
optimum pays, so that every start is feasible. l are the dual prices of the links.

Given prices l and a barrier parameter, x, s and o on the central path follow from one scalar equation for
each demand. So any prices are a well-centred start, and only the equations of the links are to be met. Those
of the demands are eliminated: a demand adds the outer products of differences between its paths to the normal
equations, which are dense and as large as the number of links. A demand with one path adds nothing.

source  Mehrotra, "On the implementation of a primal-dual interior point method" (1992)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from planner.arrays import Bools, Floats, Ints, Ints32
from planner.backends import Solution
from planner.compiled import njit, run_small_in_python
from planner.contract.proof import Status
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.tolerances import SOLVER
from planner.threads import limit_blas
from planner_models.flows.path_flow_program import CandidatePaths
from planner_models.flows.problem import FlowProblem

BACKEND: Final = "interior point over paths"
DEFAULT_GAP: Final = SOLVER  # relative, where options give none
MAX_ITERATIONS: Final = 100
STEP_TO_BOUNDARY: Final = 0.99
MAX_INFEASIBILITY: Final = 0.05  # of the starting point, as a share of its complementarity
OVERLOAD_PRICE: Final = 3.0  # of a unit on a link; that of traffic left out is 1
INITIAL_PRICE: Final = 0.1  # of every link, on the same scale


class Columns(NamedTuple):
    """Paths as sparse columns, in the order of their demands.

    cost    (P,) of a unit of traffic
    start   (P + 1,), row int32: path p goes over the links row[start[p] : start[p + 1]]
    first   (G + 1,) the paths of demand g are first[g] to first[g + 1]
    amount  (G,) traffic of each demand, positive
    """

    cost: Floats
    start: Ints
    row: Ints32
    first: Ints
    amount: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class _Found:
    """Traffic x (P,) that is feasible, its objective value, and a bound on that of all."""

    x: Floats
    value: float
    bound: float


def solve_total(problem: FlowProblem, paths: CandidatePaths, options: Options) -> Solution:
    """Return the largest total flow over given paths; `x` is the traffic (P,) of the paths, Mbit/s."""
    columns, capacity = _columns(problem, paths, leave_out=True)
    offered = float(columns.amount.sum())
    solution = _solve(columns, capacity, options, is_total=True)
    is_variable = np.ones(len(solution.x), dtype=bool)
    is_variable[columns.first[:-1]] = False
    return _solution(solution.x[is_variable], offered - solution.value, offered - solution.bound, options)


def solve_utilization(problem: FlowProblem, paths: CandidatePaths, options: Options) -> Solution:
    """Return the least utilization of the busiest link over given paths; `x` as in `solve_total`."""
    columns, capacity = _columns(problem, paths, leave_out=False)
    solution = _solve(columns, capacity, options, is_total=False)
    return _solution(solution.x, solution.value, solution.bound, options)


def _solution(x: Floats, value: float, bound: float, options: Options) -> Solution:
    gap = abs(value - bound) / max(abs(value), abs(bound), 1e-9)
    is_optimal = gap <= (DEFAULT_GAP if options.gap is None else options.gap)
    status = Status.OPTIMAL if is_optimal else Status.FEASIBLE
    return Solution(status=status, backend=BACKEND, x=x, objective=value, bound=bound)


def _columns(problem: FlowProblem, paths: CandidatePaths, *, leave_out: bool) -> tuple[Columns, Floats]:
    """Return the paths as columns over the links that any path uses, and the capacities of these links."""
    demands, first = np.unique(paths.demand, return_index=True)
    links, row = np.unique(paths.found.link, return_inverse=True)
    size = np.diff(np.r_[first, len(paths.demand)]) + leave_out
    first = np.r_[0, np.cumsum(size)]
    hops = np.zeros(first[-1], dtype=np.int64)
    is_path = np.ones(len(hops), dtype=bool)
    if leave_out:
        is_path[first[:-1]] = False
    hops[is_path] = np.diff(paths.found.start)
    columns = Columns(
        cost=np.where(is_path, 0.0, 1.0),
        start=np.r_[0, np.cumsum(hops)],
        row=row.astype(np.int32),
        first=first,
        amount=problem.rate_mbps[demands],
    )
    return columns, problem.capacity_mbps[links]


def _solve(columns: Columns, capacity: Floats, options: Options, *, is_total: bool) -> _Found:
    """Return the best traffic found, to the gap of the options or until their time limit."""
    deadline = Deadline.of(options)
    gap = DEFAULT_GAP if options.gap is None else options.gap
    offered = float(columns.amount.sum())
    with limit_blas(options.threads):
        state = _InteriorPoint(columns, capacity, is_total)
        best = state.evaluate()
        for _ in range(MAX_ITERATIONS):
            reference = offered - best.bound if is_total else best.value
            is_late = deadline.is_over
            if best.value - best.bound <= 0.5 * gap * reference or is_late or not state.advance():
                break
            now = state.evaluate()
            bound = max(best.bound, now.bound)
            if now.value < best.value:
                best = now
            best = _Found(x=best.x, value=best.value, bound=bound)
    return best


class _InteriorPoint:
    """The iterate: traffic x and its reduced costs z, link prices l, slack s, overload o or utilization u."""

    def __init__(self, columns: Columns, capacity: Floats, is_total: bool) -> None:
        self.columns, self.capacity, self.is_total = columns, capacity, is_total
        count, offered = len(capacity), float(columns.amount.sum())
        self.l = np.full(count, INITIAL_PRICE) if is_total else 1.0 / (count * capacity)
        self.q = OVERLOAD_PRICE - self.l
        self.x, self.z = np.empty(len(columns.cost)), np.empty(len(columns.cost))
        self.pairs = len(columns.cost) + (2 if is_total else 1) * count
        self.u = 1.0
        mu = (1e-3 * offered if is_total else 1e-3) / self.pairs
        for _ in range(60):
            _centre(columns, self.l, mu, self.x, self.z)
            self.s, self.o = mu / self.l, mu / self.q
            load = self._load(self.x)
            if not is_total:
                self.u = float(((load + self.s) / capacity).max())
            # with much slack the residuals are those of the links' own pairs
            if np.abs(self._residual(load)) @ self.l <= (MAX_INFEASIBILITY * self.pairs + count) * mu:
                break
            mu *= 2.0

    def _load(self, x: Floats) -> Floats:
        load = np.zeros(len(self.capacity))
        _add_load(self.columns, x, load)
        return load

    def _residual(self, load: Floats) -> Floats:
        if self.is_total:
            return self.capacity - load - self.s + self.o
        return self.u * self.capacity - load - self.s

    def evaluate(self) -> _Found:
        """Return the iterate's traffic, made feasible, with its value and the bound of its prices."""
        lower = float(_least_cost(self.columns, self.l))
        load = self._load(self.x)
        if not self.is_total:
            return _Found(
                x=self.x,
                value=float((load / self.capacity).max()),
                bound=lower / float(self.capacity @ self.l),
            )
        x = self.x.copy()
        _reduce(self.columns, np.maximum(load / self.capacity, 1.0), x)
        return _Found(x=x, value=float(self.columns.cost @ x), bound=lower - float(self.capacity @ self.l))

    def advance(self) -> bool:
        """Take a step with predictor and corrector; return False at the limit of numerical precision."""
        x, z, s, l, o, q = self.x, self.z, self.s, self.l, self.o, self.q  # noqa: E741 - prices
        residual = self._residual(self._load(x))
        normal = np.zeros((len(l), len(l)))
        _assemble(self.columns, x, z, normal)
        normal[np.diag_indices_from(normal)] += s / l + (o / q if self.is_total else 0.0)
        try:
            factor = cho_factor(normal, overwrite_a=True, check_finite=False)
        except LinAlgError:
            return False
        across = None if self.is_total else cho_solve(factor, self.capacity, check_finite=False)

        def direction(
            xz: Floats, sl: Floats, oq: Floats
        ) -> tuple[Floats, Floats, Floats, Floats, Floats, float]:
            push = xz / z
            dx, dz = np.empty(len(x)), np.empty(len(x))
            _project(self.columns, x, z, push, dx)
            right = self._load(dx) + sl / l - residual - (oq / q if self.is_total else 0.0)
            dl, du = cho_solve(factor, right, check_finite=False), 0.0
            if across is not None:  # the prices of all capacities together stay 1
                wrong = float(self.capacity @ (l + dl)) - 1.0
                du = wrong / float(self.capacity @ across)
                dl = dl - du * across
            _respond(self.columns, x, z, push, dl, dx, dz)
            return dx, dz, (sl - s * dl) / l, dl, (oq + o * dl) / q, du

        def steps(dx: Floats, dz: Floats, ds: Floats, dl: Floats, do: Floats) -> tuple[float, float]:
            overload = [(o, do)] if self.is_total else []
            ceiling = [(q, -dl)] if self.is_total else []
            return _max_step((x, dx), (s, ds), *overload), _max_step((z, dz), (l, dl), *ceiling)

        def complementarity(*terms: Floats) -> float:
            return float(
                terms[0] @ terms[1] + terms[2] @ terms[3] + (terms[4] @ terms[5] if self.is_total else 0.0)
            )

        dx, dz, ds, dl, do, _ = direction(-x * z, -s * l, -o * q)
        a, b = steps(dx, dz, ds, dl, do)
        now = complementarity(x, z, s, l, o, q)
        predicted = complementarity(x + a * dx, z + b * dz, s + a * ds, l + b * dl, o + a * do, q - b * dl)
        target = now / self.pairs * min(1.0, max(predicted / now, 0.0)) ** 3
        dx, dz, ds, dl, do, du = direction(
            target - x * z - dx * dz, target - s * l - ds * dl, target - o * q + do * dl
        )
        a, b = steps(dx, dz, ds, dl, do)
        a, b = STEP_TO_BOUNDARY * a, STEP_TO_BOUNDARY * b
        self.x, self.s, self.o, self.u = x + a * dx, s + a * ds, o + a * do, self.u + a * du
        self.z, self.l = z + b * dz, l + b * dl
        self.q = OVERLOAD_PRICE - self.l
        return True


def _max_step(*pairs: tuple[Floats, Floats]) -> float:
    """Return the largest step, at most 1 / STEP_TO_BOUNDARY, that leaves all values at least 0."""
    step = 1.0 / STEP_TO_BOUNDARY
    for value, change in pairs:
        ratio = -float((change / value).min(initial=0.0))
        if ratio > 0:
            step = min(step, 1.0 / ratio)
    return step


# --- compiled -----------------------------------------------------------------------------


@run_small_in_python(max_elements=20_000)
@njit(cache=True)
def _least_cost(columns, price):  # type: ignore[no-untyped-def]
    """Return the cost of all traffic on the cheapest paths."""
    total = 0.0
    for g in range(len(columns.amount)):
        lowest = np.inf
        for p in range(columns.first[g], columns.first[g + 1]):
            cost = columns.cost[p]
            for i in range(columns.start[p], columns.start[p + 1]):
                cost += price[columns.row[i]]
            lowest = min(lowest, cost)
        total += columns.amount[g] * lowest
    return total


@run_small_in_python(max_elements=20_000)
@njit(cache=True)
def _reduce(columns, ratio, x):  # type: ignore[no-untyped-def]
    """Reduce traffic by the largest overload on its path; the difference is left out, on the first path."""
    for g in range(len(columns.amount)):
        first = columns.first[g]
        for p in range(first + 1, columns.first[g + 1]):
            largest = 1.0
            for i in range(columns.start[p], columns.start[p + 1]):
                largest = max(largest, ratio[columns.row[i]])
            x[first] += x[p] - x[p] / largest
            x[p] /= largest


@run_small_in_python(max_elements=20_000)
@njit(cache=True)
def _add_load(columns, x, load):  # type: ignore[no-untyped-def]
    for p in range(len(x)):
        for i in range(columns.start[p], columns.start[p + 1]):
            load[columns.row[i]] += x[p]


@run_small_in_python(max_elements=20_000)
@njit(cache=True)
def _centre(columns, price, mu, x, z):  # type: ignore[no-untyped-def]  # noqa: C901 - one compiled loop
    """Write x and z with x z = mu, and x adding up to each demand's amount."""
    for p in range(len(x)):
        z[p] = columns.cost[p]
        for i in range(columns.start[p], columns.start[p + 1]):
            z[p] += price[columns.row[i]]
    for g in range(len(columns.amount)):
        first, last = columns.first[g], columns.first[g + 1]
        lowest = np.inf
        for p in range(first, last):
            lowest = min(lowest, z[p])
        # sum of mu / (z - u) = amount for u below the least: between these two
        amount = columns.amount[g]
        low, high = mu / amount, (last - first) * mu / amount
        y = high  # least - u
        for _ in range(60):
            total, slope = 0.0, 0.0
            for p in range(first, last):
                term = mu / (z[p] - lowest + y)
                total += term
                slope -= term / (z[p] - lowest + y)
            if abs(total - amount) <= 1e-13 * amount:
                break
            if total > amount:
                low = y
            else:
                high = y
            y -= (total - amount) / slope
            if y <= low or y >= high:
                y = 0.5 * (low + high)
        for p in range(first, last):
            z[p] += y - lowest
            x[p] = mu / z[p]


class _Scratch(NamedTuple):
    """Arrays of the assembly, (M,) each.

    mean, is_touched, touched  sum of a demand's paths, and the rows that have one
    sign, support              a path less the reference path, and the rows where they differ
    """

    mean: Floats
    is_touched: Bools
    touched: Ints32
    sign: NDArray[np.int8]
    support: Ints32


@njit(cache=True)
def _assemble(columns, x, z, normal):  # type: ignore[no-untyped-def]
    """Add the terms of all demands to the normal equations (M, M): A D A' less the means, D = x / z."""
    rows = len(normal)
    scratch = _Scratch(
        np.zeros(rows),
        np.zeros(rows, np.bool_),
        np.empty(rows, np.int32),
        np.zeros(rows, np.int8),
        np.empty(rows, np.int32),
    )
    sign, support = scratch.sign, scratch.support
    for g in range(len(columns.amount)):
        first, last = columns.first[g], columns.first[g + 1]
        if last - first < 2:
            continue
        reference, largest, mass = first, 0.0, 0.0
        for p in range(first, last):
            d = x[p] / z[p]
            mass += d
            if d > largest:
                reference, largest = p, d
        count = 0
        for p in range(first, last):
            if p == reference:
                continue
            d = x[p] / z[p]
            size = _subtract_paths(columns, p, reference, sign, support)
            _add_square(normal, sign, support[:size], d * largest / mass if last - first == 2 else d)
            if last - first > 2:
                count = _add_to_mean(scratch, size, d, count)
            for i in range(size):
                sign[support[i]] = 0
        _subtract_mean(normal, scratch, count, mass)


@njit(cache=True)
def _subtract_paths(columns, p, reference, sign, support):  # type: ignore[no-untyped-def]
    """Write the rows of one path only: sign 1 for path p, -1 for the reference; return their number."""
    size = 0
    for i in range(columns.start[p], columns.start[p + 1]):
        r = columns.row[i]
        sign[r] = 1
        support[size] = r
        size += 1
    for i in range(columns.start[reference], columns.start[reference + 1]):
        r = columns.row[i]
        if sign[r] == 1:
            sign[r] = 0
        else:
            sign[r] = -1
            support[size] = r
            size += 1
    retained = 0
    for i in range(size):
        r = support[i]
        if sign[r] != 0:
            support[retained] = r
            retained += 1
    return retained


@njit(cache=True)
def _add_square(normal, sign, support, factor):  # type: ignore[no-untyped-def]
    """Add a factor times the product of a difference of paths with itself."""
    for i in range(len(support)):
        r = support[i]
        amount = factor * sign[r]
        line = normal[r]
        for j in range(len(support)):
            line[support[j]] += amount * sign[support[j]]


@njit(cache=True)
def _add_to_mean(scratch, size, d, count):  # type: ignore[no-untyped-def]
    """Add d times a difference of paths to the sum; return the number of rows that have one."""
    for i in range(size):
        r = scratch.support[i]
        if not scratch.is_touched[r]:
            scratch.is_touched[r] = True
            scratch.touched[count] = r
            count += 1
        scratch.mean[r] += d * scratch.sign[r]
    return count


@njit(cache=True)
def _subtract_mean(normal, scratch, count, mass):  # type: ignore[no-untyped-def]
    """Subtract the product of a demand's sum with itself over the mass, and reset the sum."""
    mean, touched = scratch.mean, scratch.touched
    for i in range(count):
        r = touched[i]
        amount = mean[r] / mass
        for j in range(count):
            normal[r, touched[j]] -= amount * mean[touched[j]]
    for i in range(count):
        mean[touched[i]] = 0.0
        scratch.is_touched[touched[i]] = False


@run_small_in_python(max_elements=20_000)
@njit(cache=True)
def _project(columns, x, z, push, dx):  # type: ignore[no-untyped-def]
    """Write dx = push - D du with du such that dx adds up to 0 over each demand."""
    for g in range(len(columns.amount)):
        total, mass = 0.0, 0.0
        for p in range(columns.first[g], columns.first[g + 1]):
            total += push[p]
            mass += x[p] / z[p]
        # the sum of x keeps to the amount in spite of rounding
        for p in range(columns.first[g], columns.first[g + 1]):
            total += x[p]
        total -= columns.amount[g]
        correction = total / mass
        for p in range(columns.first[g], columns.first[g + 1]):
            dx[p] = push[p] - x[p] / z[p] * correction


@run_small_in_python(max_elements=20_000)
@njit(cache=True)
def _respond(columns, x, z, push, dl, dx, dz):  # type: ignore[no-untyped-def]
    """Write dx and dz for the change of prices `dl`."""
    for g in range(len(columns.amount)):
        first, last = columns.first[g], columns.first[g + 1]
        mass, total = 0.0, -columns.amount[g]
        for p in range(first, last):
            change = 0.0
            for i in range(columns.start[p], columns.start[p + 1]):
                change += dl[columns.row[i]]
            dz[p] = change
            d = x[p] / z[p]
            mass += d
            total += x[p] + push[p] - d * change
        du = -total / mass
        for p in range(first, last):
            dz[p] -= du
            dx[p] = push[p] - x[p] / z[p] * dz[p]
