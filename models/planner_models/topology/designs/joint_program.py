"""The linear program of links and routing together, by column generation over transit paths, with its bound.

At prices y of the links' load, a demand costs its cheapest path, direct or by one transit block, and links
earn the price of their capacity. No topology carries more than the scale

    max over topologies of sum_p g_p n_p   /   sum_ij D_ij d_ij,    g_p = rate_p (y_ij + y_ji)

where d_ij is the cost of the cheapest path (Lagrangian relaxation). The maximum is itself a linear program,
over links alone; it bounds whole links as well as fractional ones. The bound holds at any prices.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from planner import backends
from planner.arrays import Floats, Ints
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import ProgramBuilder, Variables
from planner.backends.solution import Solution
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.tolerances import IMPROVEMENT
from planner_models.topology.problem.problem import Fabric, pairs_of

MAX_ROUNDS: Final = 60
PATHS_PER_DEMAND: Final = 3  # added in each round
PATHS_PER_ROUND: Final = 6_000
GAP: Final = 1e-10
"""Relative gap of value and bound at which column generation ends."""
LEAST_SHARE: Final = 1e-10
"""Share of a demand below which a path is rounding."""
LEAST_GAIN: Final = IMPROVEMENT
"""Share of the largest price below which a path's reduced cost is rounding."""
INTERIOR_FROM: Final = 3_000
"""Variables from which the interior point method goes first: many optima make the simplex slow."""


class Paths(NamedTuple):
    """Transit paths from `source` by `via` to `target`, (m,) rows of blocks each."""

    source: Ints
    via: Ints
    target: Ints


@dataclass(frozen=True, kw_only=True, eq=False)
class Relaxed:
    """An answer of the linear program.

    scale   demand scale of the answer; None where there is none
    bound   demand scale that no topology exceeds; None for unknown
    links   (n, n) links, fractional where they are free
    shares  (n, n, n) share of each demand by transit block
    """

    scale: float | None
    bound: float | None
    links: Floats
    shares: Floats
    backend: str | None


def port_bound(problem: Fabric) -> float:
    """Return the demand scale at which the traffic of a block fills all its ports."""
    rate = problem.ports * problem.link_mbps.max(axis=1)
    busy = np.maximum(problem.demand_mbps.sum(axis=0), problem.demand_mbps.sum(axis=1))
    used = busy > 0
    return float((rate[used] / busy[used]).min())


@dataclass(frozen=True, kw_only=True, eq=False)
class JointProgram:
    """Links and routing in one linear program, in units of the fastest link and of the bound by ports.

    links  (n, n) links that are fixed; None where they are to be found
    """

    problem: Fabric
    links: Ints | None = None

    @cached_property
    def unit(self) -> float:
        """Demand scale of one unit of the program's."""
        return port_bound(self.problem) or 1.0

    @cached_property
    def demand(self) -> Floats:
        """(n, n) demand in units of the fastest link."""
        demand: Floats = self.problem.demand_mbps * (self.unit / self.problem.link_mbps.max())
        return demand

    @cached_property
    def rate(self) -> Floats:
        """(n, n) rate of a link in units of the fastest one."""
        rate: Floats = self.problem.link_mbps / self.problem.link_mbps.max()
        return rate

    @cached_property
    def pairs(self) -> tuple[Ints, Ints]:
        """(P,) blocks of every two."""
        return pairs_of(self.problem)

    def build(self, paths: Paths, *, integer: bool = False) -> LinearProgram:
        """Return the program over some transit paths; the remaining traffic goes direct."""
        count = len(self.demand)
        first, other = self.pairs
        pairs = len(first)
        tail, head = np.nonzero(~np.eye(count, dtype=bool))
        arcs = len(tail)
        arc = np.full((count, count), -1)
        arc[tail, head] = np.arange(arcs)
        pair = np.full((count, count), -1)
        pair[first, other] = pair[other, first] = np.arange(pairs)
        direct = arc[paths.source, paths.target]
        demands, row = np.unique(direct, return_inverse=True)
        demand = self.demand[tail, head][:, None]
        largest = np.minimum(self.problem.ports[first], self.problem.ports[other]) if integer else np.inf
        fixed = None if self.links is None else self.links[first, other]
        lower, upper = (0.0, largest) if fixed is None else (fixed, fixed)

        m = ProgramBuilder(sense="maximize", name="topology and routing")
        scale = m.variables("scale", 1, cost=1.0)
        links = m.variables("links", pairs, lower=lower, upper=upper, integer=integer and self.links is None)
        made = m.variables("made", pairs if self.links is None and self.problem.move_limit is not None else 0)
        path = m.variables("path", len(paths.via))
        transit = path.sum_by(arc[paths.source, paths.via], arcs) + path.sum_by(
            arc[paths.via, paths.target], arcs
        )
        capacity = links[pair[tail, head]] * self.rate[tail, head]
        m.constrain("load", demand @ scale + transit - path.sum_by(direct, arcs) - capacity, upper=0.0)
        m.constrain("direct", path.sum_by(row, len(demands)) - demand[demands] @ scale, upper=0.0)
        if self.links is None:
            self._limit_topology(m, links, made)
        return m.build()

    def _limit_topology(self, m: ProgramBuilder, links: Variables, made: Variables) -> None:
        """Add the limits of ports, and of moves."""
        item, other = self.pairs
        count = len(self.demand)
        m.constrain("ports", links.sum_by(item, count) + links.sum_by(other, count), upper=self.problem.ports)
        present, limit = self.problem.present, self.problem.move_limit
        if present is not None and limit is not None:
            m.constrain("made", links - made, upper=present[item, other])
            m.constrain("moves", made.sum(), upper=limit)

    def best_topology(self, gain: Floats, options: Options) -> float | None:
        """Return the largest total of a gain (P,) for each link over all topologies; None out of time."""
        if self.links is not None:
            return float(gain @ self.links[self.pairs])
        m = ProgramBuilder(sense="maximize", name="links at prices")
        links = m.variables("links", len(gain), cost=gain)
        made = m.variables("made", 0 if self.problem.move_limit is None else len(gain))
        self._limit_topology(m, links, made)
        return backends.solve(m.build(), options).bound

    def bound_at(self, price: Floats, options: Options) -> tuple[float | None, Floats]:
        """Return the bound at (n, n) prices of load, and the (n, n, n) cost of each transit path."""
        transit = price[:, None, :].transpose(0, 2, 1) + price[None, :, :]  # [i, k, j]
        each = np.arange(len(price))
        transit[each, each, :] = np.inf
        transit[:, each, each] = np.inf
        cheapest = np.minimum(price, transit.min(axis=1))
        np.fill_diagonal(cheapest, 0.0)
        cost = float((self.demand * cheapest).sum())
        gain = (self.rate * (price + price.T))[self.pairs]
        if cost <= 0:
            return None, transit
        max_capacity = self.best_topology(gain, options)
        return (None if max_capacity is None else max_capacity / cost), transit

    def read(self, x: Floats, paths: Paths) -> tuple[Floats, Floats]:
        """Return the (n, n) links and (n, n, n) shares of a solution x (n,)."""
        count, (first, other) = len(self.demand), self.pairs
        links = np.zeros((count, count))
        links[first, other] = links[other, first] = np.maximum(x[1 : 1 + len(first)], 0.0)
        shares = np.zeros((count, count, count))
        amount = np.maximum(x[len(x) - len(paths.via) :], 0.0) if len(paths.via) else np.zeros(0)
        scaled_demand = self.demand * float(x[0])
        total = scaled_demand[paths.source, paths.target]
        some = total > 0
        shares[paths.source[some], paths.target[some], paths.via[some]] = amount[some] / total[some]
        over = np.maximum(shares.sum(axis=2), 1.0)
        shares /= over[:, :, None]
        each = np.arange(count)
        shares[each, :, each] = np.where(self.demand > 0, 1 - shares.sum(axis=2), 0.0)
        shares[shares < LEAST_SHARE] = 0.0
        sums = shares.sum(axis=2, keepdims=True)
        return links, np.divide(shares, sums, out=shares, where=sums > 0)


def every_path(problem: Fabric) -> Paths:
    """Return all transit paths of demands."""
    count = len(problem.blocks)
    source, via, target = np.indices((count, count, count)).reshape(3, -1).astype(np.int64)
    is_useful = (source != via) & (via != target) & (problem.demand_mbps[source, target] > 0)
    return Paths(source[is_useful], via[is_useful], target[is_useful])


def used_paths(shares: Floats, min_share: float = 1e-2) -> Paths:
    """Return the transit paths of (n, n, n) shares that carry at least a share of their demand."""
    source, target, via = np.nonzero(shares >= min_share)
    is_transit = source != via
    return Paths(source[is_transit], via[is_transit], target[is_transit])


def solve(
    program: JointProgram, seeds: Paths, options: Options, *, gap: float = GAP, most_rounds: int = MAX_ROUNDS
) -> Relaxed:
    """Return the best links and routing, or the best routing over fixed links, by column generation.

    seeds  transit paths to begin with
    gap    relative gap at which it ends
    """
    problem, unit = program.problem, program.unit
    count = len(problem.blocks)
    deadline = Deadline.of(options)
    is_path = np.zeros((count, count, count), dtype=bool)  # [i, k, j]
    is_path[seeds.source, seeds.via, seeds.target] = True
    paths, bound = Paths(*np.nonzero(is_path)), np.inf
    best: tuple[float, Floats, Floats] | None = None
    backend = None
    for _ in range(most_rounds):
        if deadline.is_over:
            break
        limited = replace(deadline.options(options), service="best")
        solution = _solve_master(program.build(paths), limited)
        if solution.x is None or solution.row_duals is None:
            break
        backend, value = solution.backend, float(solution.x[0])
        if best is None or value > best[0]:
            best = (value, *program.read(solution.x, paths))
        price, direct = _read_prices(np.abs(solution.row_duals), paths, count)
        proven, transit = program.bound_at(price, replace(limited, algorithm="auto"))
        bound = min(bound, np.inf if proven is None else proven)
        if np.isfinite(bound) and bound - best[0] <= gap * max(bound, 1e-12):
            break
        gains = (price - direct)[:, None, :] - transit
        gains[is_path] = -np.inf
        gains[np.broadcast_to((program.demand <= 0)[:, None, :], gains.shape)] = -np.inf
        added = _choose_paths(gains, LEAST_GAIN * float(price.max()))
        if not len(added.via):
            break
        is_path[added.source, added.via, added.target] = True
        paths = Paths(*np.nonzero(is_path))
    limit = bound * unit if np.isfinite(bound) else None
    if best is None:
        links, shares = np.zeros((count, count)), np.zeros((count, count, count))
        return Relaxed(scale=None, bound=limit, links=links, shares=shares, backend=backend)
    value, links, shares = best
    return Relaxed(scale=value * unit, bound=limit, links=links, shares=shares, backend=backend)


def _solve_master(model: LinearProgram, options: Options) -> Solution:
    """Return the solution of the master program; of a large one by an interior-point method."""
    is_large = model.shape[1] >= INTERIOR_FROM
    return backends.solve(model, backends.prefer_interior_point(options) if is_large else options)


def _read_prices(duals: Floats, paths: Paths, count: int) -> tuple[Floats, Floats]:
    """Return the prices of links, and of the service of pairs with transit paths, (n, n) each."""
    tail, head = np.nonzero(~np.eye(count, dtype=bool))
    price, direct = np.zeros((count, count)), np.zeros((count, count))
    price[tail, head] = duals[: len(tail)]
    if len(paths.via):
        own_pairs = np.unique(paths.source * count + paths.target)
        direct[own_pairs // count, own_pairs % count] = duals[len(tail) : len(tail) + len(own_pairs)]
    return price, direct


def _choose_paths(gains: Floats, min_gain: float) -> Paths:
    """Return the paths of the largest gains (n, n, n) by source, transit block and target."""
    limit = min(PATHS_PER_DEMAND, gains.shape[1] - 1)
    via = np.argpartition(-gains, limit, axis=1)[:, :limit, :]
    source, _, target = np.indices(via.shape)
    gain = gains[source, via, target]
    rows = np.flatnonzero(gain.ravel() > min_gain)
    rows = rows[np.argsort(-gain.ravel()[rows], kind="stable")][:PATHS_PER_ROUND]
    return Paths(source.ravel()[rows], via.ravel()[rows], target.ravel()[rows])
