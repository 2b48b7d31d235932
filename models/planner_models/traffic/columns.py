"""The best routing at scale: columns are shortest-path trees, rows are links that are nearly full.

Largest concurrent flow and smallest utilization are one problem, lambda = 1 / U. It is solved on
the reduced network (`symmetry`), with all demands of one root together (`rooted`):

0. Where pairs are few to a root, `shifts` even out their paths; mostly that is already the answer.
1. `sweeps` give a good mix of trees and prices near the optimum.
2. The master problem (`master`) mixes the trees found so far at its best, watching only links that
   are nearly full; links that its mix overfills join.
3. Under its prices every root gets its shortest tree, which joins where it is shorter than those
   at hand. Sum over pairs of rate times distance, over the sum of prices times capacity, is a
   lower bound on U for whatever prices: the bound holds at every step, and is never the master's.

Prices lean a little to where traffic is now: among trees that are nearly the same to the master,
those that fill no other links are the ones to add. The best mix is the best of the line from the
best so far to the master's, which overfills links that it did not watch.

source  Dantzig-Wolfe decomposition; price and bound: Shahrokhi and Matula 1990, section 2
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from threadpoolctl import threadpool_limits

from planner.options import Options
from planner.system import Decision
from planner_models.traffic import master, shifts, sweeps, trees
from planner_models.traffic.outcome import LEAST_GAP, decided, require_own_solver, without_demand
from planner_models.traffic.problem import Traffic, totals
from planner_models.traffic.rooted import Mix, Rooted, Ways
from planner_models.traffic.routing import Routing
from planner_models.traffic.trees import Floats, Ints

GAP: Final = 1e-6  # where the search stops unless options say otherwise

SWEEPS: Final = 40  # at most
SHIFTS: Final = 1_000  # at most
FEW_PAIRS: Final = 16  # to a root: shifts go first
MOST_PAIRS: Final = 30_000  # whose paths are kept
SOFTEST, SHARPEST, SHARPENING = 0.5, 0.01, 0.75  # of the soft maximum: its error, relative, round by round
WATCHED: Final = 0.85  # of the largest utilization: links that the master watches from the start
LEAN: Final = 0.02  # the most of the prices that leans to where traffic is now
NEAR: Final = 0.02  # links join the master that are this close to its utilization, or above it
SPARE: Final = 0.05  # of the mean value of a root: columns that miss by more leave when they carry nothing
TRACE: Final = 1e-6  # a weight that carries something
FADED: Final = 1e-9  # a weight that the best mix can do without
CHUNK: Final = 64  # roots between two looks at the clock

FewObjectives = Annotated[
    Literal["concurrent", "utilization"],
    Field(description="concurrent: grow all demands together; utilization: least busiest link"),
]


def route(
    problem: Traffic,
    *,
    objective: FewObjectives = "concurrent",
    symmetry: Annotated[bool, Field(description="join nodes that are alike before the search")] = True,
    options: Options = Options(),
    previous: Decision[Routing] | None = None,  # noqa: ARG001
) -> Decision[Routing]:
    """The best routing over all routes, by column generation over shortest-path trees.

    Stops at `options.gap`, by default 1e-6, and returns at a time limit the best plan found with
    its bound. One thread unless `options.threads` says otherwise (dense algebra only); equal
    seeds make equal plans. A plan too large to spell out pair by pair has flows per target.

    returns  Decision with a Routing; the bound holds for all routings
    raises   InputError for a backend or an algorithm: it is its own solver
    source   Sen et al. 2013, equation (1); concurrent flow: Shahrokhi and Matula 1990
    """
    require_own_solver("columns", options)
    if not len(problem.targets):
        return without_demand(problem, objective)
    until = None if options.time_limit_s is None else time.perf_counter() + options.time_limit_s
    gap = GAP if options.gap is None else options.gap
    rooted = Rooted.of(problem, symmetry=symmetry)
    with threadpool_limits(limits=options.threads or 1, user_api="blas"):
        found = search(rooted, gap=gap, seed=options.seed or 0, until=until)
    return decided(rooted, objective, mix=found.mix, bound=found.bound, gap=gap, backend="column generation")


@dataclass(frozen=True, kw_only=True)
class Step:
    """The state of the search after one step.

    utilization  of the busiest link under the best mix so far
    bound        no routing has a smaller one
    """

    seconds: float
    what: str
    utilization: float
    bound: float
    columns: int
    rows: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Found:
    """The best mix, None where there was no time for one; its utilization and the proven bound."""

    mix: Mix | Ways | None
    utilization: float
    bound: float
    trace: tuple[Step, ...]


def search(rooted: Rooted, *, gap: float = GAP, seed: int = 0, until: float | None = None) -> Found:
    """Column generation to a relative `gap`, or until a moment of time.perf_counter()."""
    state = _Search(rooted, gap, seed, until)
    trace = tuple(state.steps())
    return Found(mix=state.best_plan(), utilization=state.value(), bound=state.bound, trace=trace)


class _Search:
    """What is known so far: columns with their weights in the master's mix and in the best mix."""

    def __init__(self, rooted: Rooted, gap: float, seed: int, until: float | None) -> None:
        self.graph, self.capacity = rooted.graph, rooted.capacity_mbps
        self.roots, self.amount = rooted.roots, rooted.amount_mbps
        self.forced = rooted.forced
        self.gap, self.until = max(gap, LEAST_GAP), until
        self.random = np.random.default_rng(seed)
        self.started = time.perf_counter()
        arcs = len(self.capacity)
        self.bound = self.forced
        self.utilization = np.inf
        self.parent = np.zeros((0, self.graph.nodes), dtype=np.int32)
        self.owner = np.zeros(0, dtype=np.int64)
        self.now, self.best = np.zeros(0), np.zeros(0)  # weights of the columns
        self.load = np.zeros(arcs)  # of the best mix
        self.rows = np.zeros(0, dtype=np.int64)
        self.price = np.zeros(arcs)
        self.pairs = rooted.pairs
        self.best_ways: Ways | None = None  # while no mix of columns beats them
        self.ways_utilization = np.inf

    def steps(self) -> Iterator[Step]:
        if not len(self.roots):  # nothing to decide
            self.utilization = self.forced
            self.best_ways = Ways(pair=self.owner, arc=self.owner, share=self.now)
            yield self._step("forced")
            return
        if len(self.pairs[0]) <= min(FEW_PAIRS * len(self.roots), MOST_PAIRS):
            for _ in self._shift():
                yield self._step("shift")
            if self._done():
                return
        mix = self._start()
        if mix is None:
            return
        yield self._step("start")
        for sharpness in self._sharpnesses():
            if self._done():
                return
            mix = self._sweep(mix, sharpness)
            yield self._step("sweep")
        del mix
        self._watch()
        while not self._done():
            moved = self._generate()
            yield self._step("columns")
            if not moved:
                return

    def best_plan(self) -> Mix | Ways | None:
        """The best mix of columns, weights adding up to 1 for each root, or better ways from shifts."""
        if self.best_ways is not None:
            return self.best_ways
        if np.isinf(self.utilization):
            return None
        used = self.best > 0
        weight = (
            self.best[used] / totals(self.owner[used], self.best[used], len(self.roots))[self.owner[used]]
        )
        return Mix(parent=self.parent[used], owner=self.owner[used], weight=weight)

    def _step(self, what: str) -> Step:
        seconds = time.perf_counter() - self.started
        return Step(
            seconds=seconds,
            what=what,
            utilization=self.value(),
            bound=self.bound,
            columns=len(self.owner),
            rows=len(self.rows),
        )

    def value(self) -> float:
        """Utilization of the busiest link under the best plan so far, forced links included."""
        return max(min(self.utilization, self.ways_utilization), self.forced)

    def _late(self) -> bool:
        return self.until is not None and time.perf_counter() >= self.until

    def _reached(self) -> float:
        """The gap so far, links whose load is forced included."""
        value = self.value()
        return (value - self.bound) / value if value > 0 else 0.0

    def _done(self) -> bool:
        return self._reached() <= self.gap or self._late()

    # --- pricing --------------------------------------------------------------------------

    def _grow(self, price: Floats) -> tuple[Ints, Floats] | None:
        """The shortest tree of every root under the prices, and its value; None without the time."""
        price = price / price.sum()
        length = price / self.capacity
        trees_, values = [], []
        for start in range(0, len(self.roots), CHUNK):
            if self._late():
                return None
            part = slice(start, start + CHUNK)
            parent, value = trees.grow(self.graph, length, self.roots[part], self.amount[part])
            trees_.append(parent)
            values.append(value)
        value = np.concatenate(values)
        self.bound = max(self.bound, float(value.sum()))
        return np.concatenate(trees_), value

    def _start(self) -> Floats | None:
        """Every root on its shortest tree, by 1 / capacity; what each root puts on each arc."""
        grown = self._grow(np.ones(len(self.capacity)))
        if grown is None:
            return None
        self.parent, self.owner = grown[0], np.arange(len(self.roots))
        self.now = self.best = np.ones(len(self.roots))
        mix = trees.loads(self.graph, self.parent, self.amount, self.owner)
        self._take(mix.sum(axis=0))
        return mix

    def _take(self, load: Floats) -> None:
        self.load, self.utilization = load, float((load / self.capacity).max())
        if self.utilization < self.ways_utilization:
            self.best_ways = None
            self.ways_utilization = np.inf

    # --- shifts ---------------------------------------------------------------------------

    def _shift(self) -> Iterator[None]:
        """Shift the traffic of few pairs between paths, until it no longer pays."""
        paths = shifts.Paths.of(self.graph, self.roots, *self.pairs)
        paths.sweep(self.graph, self.capacity, 1.0)
        error, gaps = SOFTEST, [1.0]
        for round_ in range(SHIFTS):
            if self._late():
                break
            busiest = float((paths.load / self.capacity).max())
            sharpness = float(np.log(len(self.capacity) + 1)) / (error * busiest)
            excess = paths.sweep(self.graph, self.capacity, sharpness)
            if excess < 0.3 * error or round_ % 10 == 9:
                error = max(0.8 * error, 0.1 * self.gap)
            if round_ % 5 != 4:
                continue
            busiest = float((paths.load / self.capacity).max())
            if busiest < self.ways_utilization:
                self.ways_utilization, self.best_ways = busiest, _as_ways(paths)
            self._grow(sweeps.prices(paths.load, self.capacity, sharpness))
            yield
            gaps.append(self._reached())
            if self._done() or (len(gaps) > 20 and gaps[-1] > 0.7 * gaps[-20]):
                break

    # --- sweeps ---------------------------------------------------------------------------

    def _sharpnesses(self) -> Iterator[float]:
        """Sharper and sharper, until it no longer pays."""
        past = [self.utilization]
        for round_ in range(SWEEPS):
            error = max(SOFTEST * SHARPENING**round_, SHARPEST)
            yield np.log(len(self.capacity) + 1) / (error * self.utilization)
            past.append(self.utilization)
            if round_ >= 5 and past[-4] - past[-1] < 0.01 * past[-1]:
                return

    def _sweep(self, mix: Floats, sharpness: float) -> Floats:
        load = mix.sum(axis=0)
        for chunk in np.array_split(self.random.permutation(len(self.roots)), len(self.roots) // CHUNK + 1):
            part = mix[chunk]
            parent, share = sweeps.sweep(
                self.graph,
                self.capacity,
                self.roots[chunk],
                self.amount[chunk],
                sharpness=sharpness,
                mix=part,
                load=load,
            )
            mix[chunk] = part
            stays = np.ones(len(self.roots))
            stays[chunk] -= share
            moved = share > 0
            self.now = np.concatenate([self.now * stays[self.owner], share[moved]])
            self.parent = np.concatenate([self.parent, parent[moved]])
            self.owner = np.concatenate([self.owner, chunk[moved]])
            if self._late():
                break
        self.best = self.now
        self._take(mix.sum(axis=0))
        self.price = sweeps.prices(self.load, self.capacity, sharpness)
        self._grow(self.price)
        return mix

    # --- columns --------------------------------------------------------------------------

    def _watch(self) -> None:
        """From sweeps to columns: the trees that carry something, the links that are nearly full."""
        self._keep(self.now > TRACE)
        used = self.load / self.capacity
        self.rows = np.flatnonzero(used > WATCHED * used.max())

    def _generate(self) -> bool:
        """One round: solve the master, improve the best mix, price. False where nothing is left to do."""
        on_rows = trees.loads_at(self.graph, self.parent, self.amount, self.owner, self.rows)
        column = np.ascontiguousarray((on_rows / self.capacity[self.rows]).T)
        apart = (self.utilization - self.bound) / self.utilization
        solved = master.solve(
            column,
            self.owner,
            weight=self.now,
            price=self.price[self.rows],
            gap=max(min(0.1 * apart, 1e-2), 0.05 * self.gap),
            until=self.until,
        )
        self.now = solved.weight
        used = self._blend() / self.capacity

        # prices, leaning a little to the load of the best mix
        error = 0.1 * self.utilization
        soft = sweeps.prices(self.load, self.capacity, np.log(len(used) + 1) / error)
        lean = min(0.2 * apart, LEAN)
        self.price = lean * 0.5 * (soft + 1 / len(used))
        self.price[self.rows] += (1 - lean) * solved.price
        grown = self._grow(self.price)
        if grown is None:
            return False
        parent, _ = grown
        cost = solved.price @ column
        least = np.minimum.reduceat(cost, np.searchsorted(self.owner, np.arange(len(self.roots))))
        tried = trees.loads_at(self.graph, parent, self.amount, np.arange(len(parent)), self.rows)
        tried_cost = (tried / self.capacity[self.rows]) @ solved.price
        new = np.flatnonzero(tried_cost < least - 1e-9 * solved.bound / len(self.roots))
        self._keep(
            (self.now > TRACE)
            | (self.best > 0)
            | (cost - least[self.owner] < SPARE * solved.value / len(least))
        )
        self._add(parent[new], new)
        over = np.setdiff1d(np.flatnonzero(used > solved.value * (1 - NEAR)), self.rows)
        self.rows = np.sort(np.concatenate([self.rows, over]))
        return bool(len(new) or len(over)) or solved.value - solved.bound > LEAST_GAP * solved.value

    def _blend(self) -> Floats:
        """The load of the master's mix; the best mix becomes the best of the line to it."""
        load = trees.mixed(self.graph, self.parent, self.amount, self.owner, self.now)
        share = _lowest(self.load / self.capacity, load / self.capacity)
        if share > 0:
            best = (1 - share) * self.best + share * self.now
            # what has faded leaves, if that does no harm
            clean = np.where(best > FADED, best, 0.0)
            clean /= totals(self.owner, clean, len(self.roots))[self.owner]
            self.best = clean
            self._take(trees.mixed(self.graph, self.parent, self.amount, self.owner, clean))
        return load

    def _keep(self, chosen: NDArray[np.bool_]) -> None:
        """Only the chosen columns, in the order of their roots; weights add up to 1 again."""
        order = np.flatnonzero(chosen)
        order = order[np.argsort(self.owner[order], kind="stable")]
        self.parent, self.owner = self.parent[order], self.owner[order]
        self.now, self.best = self.now[order], self.best[order]
        for weight in (self.now, self.best):
            weight /= totals(self.owner, weight, len(self.roots))[self.owner]

    def _add(self, parent: Ints, owner: NDArray[np.int64]) -> None:
        self.parent = np.concatenate([self.parent, parent])
        self.owner = np.concatenate([self.owner, owner])
        nothing = np.zeros(len(owner))
        self.now, self.best = np.concatenate([self.now, nothing]), np.concatenate([self.best, nothing])
        order = np.argsort(self.owner, kind="stable")
        self.parent, self.owner = self.parent[order], self.owner[order]
        self.now, self.best = self.now[order], self.best[order]


def _lowest(one: Floats, other: Floats) -> float:
    """The share t at which (1 - t) * one + t * other has the smallest maximum: golden section."""
    low, high = 0.0, 1.0
    inner = (np.sqrt(5.0) - 1) / 2
    a, b = high - inner, low + inner
    at_a, at_b = (float(((1 - t) * one + t * other).max()) for t in (a, b))
    for _ in range(40):
        if at_a <= at_b:
            high, b, at_b = b, a, at_a
            a = high - inner * (high - low)
            at_a = float(((1 - a) * one + a * other).max())
        else:
            low, a, at_a = a, b, at_b
            b = low + inner * (high - low)
            at_b = float(((1 - b) * one + b * other).max())
    middle = (low + high) / 2
    tries = [(float(((1 - t) * one + t * other).max()), t) for t in (0.0, middle, 1.0)]
    return min(tries)[1]


def _as_ways(paths: shifts.Paths) -> Ways:
    pair, arc, share = paths.ways()
    return Ways(pair=pair, arc=arc, share=share)
