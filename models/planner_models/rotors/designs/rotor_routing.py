"""Designs over the fixed rotation of rotor switches: direct, two links, Valiant's, and an expander.

The most traffic over circuits, direct or by one other rack: column generation over paths, with a bound.

Racks keep traffic until its next circuit is up. Over a period that repeats, only the mean capacity c of a
pair of racks then matters, not when its circuits are up:

- A plan of the time-expanded network, with a rate for each path in each interval and queues that repeat,
  becomes one over mean capacities by adding up the rates of a path over the period.
- Rates of paths over mean capacities become such a plan: a path uses, of each stretch of time in which a
  circuit is up, the same share of the bits that fit; what comes in a period leaves in the same or the next.

So the program over mean capacities has the optimum of the time-expanded one. At prices y >= 0 of the load, no
routing by paths of any number of links delivers more than

    sum_ij c_ij y_ij + sum_ij D_ij max(0, 1 - d_ij),    d_ij: cost of the cheapest path, of any length

(Lagrangian relaxation). First the prices are those of the program's solution, at which longer paths may cost
nothing, and 1 for circuits between racks with more demand than capacity, else 1/2: a relayed unit takes at
least two circuits. Where these leave a gap, the cheapest paths of any length become columns of the program
that makes the prices, until the bound is its optimum.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import floyd_warshall

from planner import backends
from planner.arrays import Bools, Floats, Ints
from planner.backends.linear_program import Columns, LinearProgram, Rows
from planner.backends.program_builder import ProgramBuilder
from planner.backends.solution import Solution
from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import Deadline
from planner_models.rotors.designs.decision import Proven, decide
from planner_models.rotors.plan.expander import load_expander
from planner_models.rotors.plan.plan import Paths, Routing
from planner_models.rotors.plan.timetable import rotate
from planner_models.rotors.problem.problem import RotorNetwork

ROTATION_SCOPE: Final = "the rotation"
URGENT_SCOPE: Final = "the rotation, with urgent traffic first"
ALL_PATHS: Final = 40_000
"""Paths up to which the first program has them all."""
PATHS_PER_PAIR: Final = 4
"""Paths of each pair that the first program has otherwise, and that each round adds at most."""
MAX_ROUNDS: Final = 40
RELAY_COST: Final = 1e-6
"""Cost of a relay, so that of plans that deliver the same the one with fewer links is found."""
GAP: Final = 2e-6
"""Relative gap at which column generation ends."""
INTERIOR_FROM: Final = 3_000
"""Variables from which the interior point method goes first."""


def route_direct(problem: RotorNetwork, *, options: Options = Options()) -> Decision[Routing]:
    """Send all traffic direct, when the rotation connects its racks."""
    timetable = rotate(problem)
    rate = np.minimum(timetable.up_share * problem.link_mbps, problem.demand_mbps)
    return decide(problem, timetable, Paths.direct(rate), options=options)


def route_valiant(problem: RotorNetwork, *, options: Options = Options()) -> Decision[Routing]:
    """Spread each demand over all racks in equal parts, which send it on, whatever the demand is.

    Each unit goes to any other rack first, the target among them. How much of each demand comes in is the
    most that then fits, by a linear program.

    source  Valiant's load balancing, as in Ballani et al. 2020 (Sirius)
    """
    timetable = rotate(problem)
    capacity = timetable.up_share * problem.link_mbps
    works = np.flatnonzero(~problem.is_failed)
    racks = len(works)
    rate, backend = np.zeros_like(capacity), None
    if racks > 1 and (problem.demand_mbps > 0).any():
        inner = np.ix_(works, works)
        rate[inner], backend = _admit(capacity[inner], problem.demand_mbps[inner], options)
    source, target = np.nonzero(rate)
    by = np.broadcast_to(works, (len(source), racks))
    is_relayed = by != source[:, None]
    pair = np.nonzero(is_relayed)[0]
    via = by[is_relayed]
    # a unit that goes to its target first is direct
    via = np.where(via == target[pair], source[pair], via)
    paths = Paths(source[pair], via, target[pair], rate[source, target][pair] / max(racks - 1, 1))
    return decide(problem, timetable, paths, options=options, proven=Proven(backend=backend))


def route_two_links(problem: RotorNetwork, *, options: Options = Options()) -> Decision[Routing]:
    """Deliver the most traffic over the rotation, direct or by one other rack, with a proven bound.

    The bound holds for routes of any number of links over the rotation.

    source  Mellette et al. 2017 (RotorNet), whose racks find two-link routes step by step (RotorLB)
    """
    timetable = rotate(problem)
    delivery = deliver_most(timetable.up_share * problem.link_mbps, problem.demand_mbps, options)
    return decide(
        problem,
        timetable,
        delivery.paths,
        options=options,
        proven=Proven(bound=delivery.bound, scope=ROTATION_SCOPE, backend=delivery.backend),
    )


def route_expander(problem: RotorNetwork, *, options: Options = Options()) -> Decision[Routing]:
    """Send urgent traffic immediately, and the rest as `two_hop` over the residual capacity.

    Urgent traffic goes first: the largest equal share of it that fits in every interval. What does not fit
    waits for circuits with the rest.

    source  Mellette et al. 2020 (Opera)
    """
    timetable = rotate(problem)
    capacity = timetable.up_share * problem.link_mbps
    urgent = load_expander(timetable, problem.urgent_mbps, problem.link_mbps)
    share = 1.0 if urgent.peak_share <= 1 else 1 / urgent.peak_share
    at_once = np.where(urgent.is_connected, problem.urgent_mbps, 0.0) * share
    remaining = np.maximum(capacity - share * urgent.mean_mbps, 0.0)
    remaining[remaining <= 1e-9 * capacity.max(initial=0.0)] = 0.0
    delivery = deliver_most(remaining, problem.demand_mbps - at_once, options)
    bound = None if delivery.bound is None else delivery.bound + float(at_once.sum())
    return decide(
        problem,
        timetable,
        delivery.paths,
        options=options,
        expander=at_once,
        proven=Proven(bound=bound, scope=URGENT_SCOPE, backend=delivery.backend),
    )


def build_model(problem: RotorNetwork) -> LinearProgram:
    """Return the linear program of `two_hop` over all paths and mean capacities, Mbit/s."""
    capacity = rotate(problem).up_share * problem.link_mbps
    program = build_program(capacity, problem.demand_mbps, every_path(capacity, problem.demand_mbps))
    about = "traffic that arrives over the rotation, direct or by one other rack"
    return replace(program, cost=np.ones(program.shape[1])).describe(
        about, metric="delivered_mbps", unit="Mbit/s"
    )


def _admit(capacity: Floats, demand: Floats, options: Options) -> tuple[Floats, str | None]:
    """Return the (m, m) most of each demand that fits when it is spread over all racks, and the backend.

    With a_ij of each demand, the load from i to j is (sum_d a_id + sum_s a_sj - a_ij) / (m - 1).
    """
    racks = len(demand)
    source, target = np.nonzero(demand)
    unit = float(capacity.max())
    if unit <= 0:
        return np.zeros_like(demand), None
    first, other = np.nonzero(~np.eye(racks, dtype=bool))
    link = np.full((racks, racks), -1)
    link[first, other] = np.arange(len(first))
    m = ProgramBuilder(sense="maximize", name="traffic spread over all racks")
    a = m.variables("admitted", len(source), upper=demand[source, target] / unit, cost=1.0)
    sums = m.variables("sums", (2, racks))  # of what each rack sends, and receives
    load = sums[0, first] + sums[1, other] - a.sum_by(link[source, target], len(first))
    m.constrain("load", load, upper=(racks - 1) * capacity[first, other] / unit)
    admitted = a.sum_by(source, 2 * racks) + a.sum_by(racks + target, 2 * racks)
    m.constrain("sums", admitted - sums.reshape(-1), equal=0.0)
    solution = backends.solve(m.build(), replace(options, service="best"))
    rate = np.zeros_like(demand)
    if solution.x is None:
        return rate, solution.backend
    rate[source, target] = np.clip(a.values(solution.x), 0.0, demand[source, target] / unit)
    load = (rate.sum(axis=1)[:, None] + rate.sum(axis=0)[None, :] - rate) / (racks - 1)
    over = (load / np.where(capacity > 0, capacity / unit, np.inf))[first, other].max(initial=1.0)
    return np.asarray(rate * (unit / max(over, 1.0))), solution.backend


class Delivered(NamedTuple):
    """Traffic that is delivered, and the bound of all routings; None for unknown."""

    paths: Paths
    bound: float | None
    backend: str | None


def _solve_master(model: LinearProgram, options: Options) -> Solution:
    """Return the solution of the master program; of a large one by an interior-point method."""
    is_large = model.shape[1] >= INTERIOR_FROM
    return backends.solve(model, backends.prefer_interior_point(options) if is_large else options)


def deliver_most(capacity: Floats, demand: Floats, options: Options) -> Delivered:
    """Return the paths, direct or by one other rack, that deliver the most of (n, n) demands.

    capacity  (n, n) mean over the period, in the unit of demand
    """
    n = len(demand)
    unit = float(capacity.max())
    if unit <= 0 or not (demand > 0).any():
        return Delivered(Paths.direct(np.zeros((n, n))), 0.0, None)
    capacity, demand = capacity / unit, demand / unit
    deadline = Deadline.of(options)
    paths = _choose_first(capacity, demand)
    best, bound, backend = Paths.direct(np.minimum(capacity, demand)), np.inf, None
    value = float(best.rate.sum())
    for _ in range(MAX_ROUNDS):
        if deadline.is_over:
            break
        limited = replace(deadline.options(options), service="best")
        solution = _solve_master(build_program(capacity, demand, paths), limited)
        if solution.x is None:
            break
        backend = solution.backend
        rate = np.maximum(solution.x, 0.0)
        if float(rate.sum()) >= value:
            value, best = float(rate.sum()), read_paths(paths, rate)
        prices = _read_prices(solution, n)
        if prices is None:
            break
        bound = min(bound, bound_at(capacity, demand, prices))
        added = _price_paths(prices, demand, paths, capacity)
        if bound - value <= GAP * bound or not added.any():
            break
        paths |= added
    if np.isfinite(bound) and bound - value > GAP * bound:
        bound = _bound_longer(
            capacity, demand, paths, value, bound, replace(options, service="best"), deadline
        )
    best = fit_rates(best, capacity, demand)
    scaled = best._replace(rate=best.rate * unit)
    return Delivered(scaled, bound * unit if np.isfinite(bound) else None, backend)


def build_program(capacity: Floats, demand: Floats, is_path: Bools) -> LinearProgram:
    """Return the program over the paths of (n, n, n) `is_path` by source, rack in between and target.

    is_path  [i, i, j] is the direct path
    """
    n = len(demand)
    source, via, target = np.nonzero(is_path)
    relayed = np.flatnonzero(via != source)
    m = ProgramBuilder(sense="maximize", name="traffic over a rotation")
    rate = m.variables("rate", len(source), cost=np.where(via == source, 1.0, 1.0 - RELAY_COST))
    last = rate.sum_by(via * n + target, n * n)
    first = rate[relayed].sum_by(source[relayed] * n + via[relayed], n * n)
    m.constrain("capacity", last + first, upper=capacity.ravel())
    m.constrain("demand", rate.sum_by(source * n + target, n * n), upper=demand.ravel())
    return m.build()


def bound_at(capacity: Floats, demand: Floats, prices: Floats) -> float:
    """Return the bound on all routings, of any number of links, at (n, n) prices of load of at least 0."""
    cost = np.where(capacity > 0, prices, np.inf)
    # a cost of 0 is no missing link for the search of shortest paths
    cheapest = floyd_warshall(_with_zeros(cost))
    np.fill_diagonal(cheapest, np.inf)
    return float((capacity * prices).sum() + (demand * np.maximum(0.0, 1.0 - cheapest)).sum())


def _bound_longer(
    capacity: Floats,
    demand: Floats,
    is_path: Bools,
    value: float,
    bound: float,
    options: Options,
    deadline: Deadline,
) -> float:
    """Return a bound on routings of any number of links, at most `bound`: by the prices of longer paths, too.

    value  what a routing delivers; a bound that meets it ends the search
    """
    n = len(demand)
    halves = np.where(demand > capacity, 1.0, 0.5)
    bound = min(bound, bound_at(capacity, demand, halves))
    source, target = np.nonzero(demand)
    program = build_program(capacity, demand, is_path)
    for _ in range(MAX_ROUNDS):
        if bound - value <= GAP * bound or deadline.is_over:
            break
        # prices in the middle of the optimal ones leave fewer paths that cost nothing
        solution = backends.solve(program, replace(deadline.options(options), algorithm="interior-point"))
        if solution.row_duals is None or solution.objective is None:
            break
        prices = np.abs(solution.row_duals[: n * n]).reshape(n, n)
        offered = np.abs(solution.row_duals[n * n :]).reshape(n, n)
        bound = min(bound, bound_at(capacity, demand, prices))
        if bound - solution.objective <= GAP * bound:
            break
        links = _cheapest_paths(prices, capacity, source, target, 1.0 - offered[source, target])
        if links is None:
            break
        program = _add_paths(program, *links)
    return bound


def _cheapest_paths(
    prices: Floats, capacity: Floats, source: Ints, target: Ints, limit: Floats
) -> tuple[sp.csr_array, Ints] | None:
    """Return the cheapest path of each pair below its limit of cost: (n * n, P) links, (P,) pairs.

    None where there is none.
    """
    n = len(prices)
    cost, before = floyd_warshall(
        _with_zeros(np.where(capacity > 0, prices, np.inf)), return_predecessors=True
    )
    rows = np.flatnonzero(cost[source, target] < limit - GAP)
    if not len(rows):
        return None
    links: list[int] = []
    paths: list[int] = []
    for path, row in enumerate(rows.tolist()):
        start, node = int(source[row]), int(target[row])
        while node != start:
            links.append(int(before[start, node]) * n + node)
            paths.append(path)
            node = int(before[start, node])
    used = sp.csr_array((np.ones(len(links)), (links, paths)), shape=(n * n, len(rows)))
    return used, source[rows] * n + target[rows]


def _add_paths(program: LinearProgram, links: sp.csr_array, pair: Ints) -> LinearProgram:
    """Return the program of `build_program` with paths of (n * n, P) links between (P,) pairs, too."""
    nodes, count = links.shape[0], len(pair)
    offered = sp.csr_array((np.ones(count), (pair, np.arange(count))), shape=(nodes, count))
    every = sp.csr_array(sp.hstack([program.matrix, sp.vstack([links, offered])]))
    return LinearProgram.build(
        sense="max",
        cost=np.concatenate([program.cost, np.ones(count)]),
        rows=[
            Rows("capacity", every[:nodes], upper=program.row_upper[:nodes]),
            Rows("demand", every[nodes:], upper=program.row_upper[nodes:]),
        ],
        columns=[Columns("rate", every.shape[1])],
        name=program.name,
    )


def _with_zeros(cost: Floats) -> sp.csr_array:
    """Return the links of finite cost as a sparse matrix that keeps costs of 0."""
    tail, head = np.nonzero(np.isfinite(cost))
    return sp.csr_array((cost[tail, head], (tail, head)), shape=cost.shape)


def every_path(capacity: Floats, demand: Floats) -> Bools:
    """Return (n, n, n) whether there is a path from the first by the second to the third, with demand."""
    n, open_ = len(demand), capacity > 0
    is_path = open_[:, :, None] & open_[None, :, :] & (demand > 0)[:, None, :]
    each = np.arange(n)
    is_path[each, each, :] = open_ & (demand > 0)  # direct
    is_path[:, each, each] = False
    return is_path


def _choose_first(capacity: Floats, demand: Floats) -> Bools:
    """Return the paths that the first program has: all of a small network, else some of each pair."""
    every = every_path(capacity, demand)
    if int(every.sum()) <= ALL_PATHS:
        return every
    n = len(demand)
    spare = np.maximum(capacity - demand, 0.0)
    width = np.minimum(spare[:, :, None], spare[None, :, :])
    width = np.where(every, width + 1e-9 * np.random.default_rng(0).random(width.shape), -1.0)
    widest = np.argpartition(-width, PATHS_PER_PAIR, axis=1)[:, :PATHS_PER_PAIR, :]
    is_path = np.zeros_like(every)
    source, _, target = np.indices(widest.shape)
    is_path[source, widest, target] = True
    each = np.arange(n)
    is_path[each, each, :] = True
    return is_path & every


def read_paths(is_path: Bools, rate: Floats) -> Paths:
    """Return the paths of the program with some traffic."""
    source, via, target = (ends[rate > 0].astype(np.int64) for ends in np.nonzero(is_path))
    return Paths(source, via, target, rate[rate > 0])


def _read_prices(solution: Solution, n: int) -> Floats | None:
    """Return the (n, n) prices of load of a solution; None where it has none."""
    if solution.row_duals is None:
        return None
    prices: Floats = np.abs(solution.row_duals[: n * n]).reshape(n, n)
    return prices


def _price_paths(prices: Floats, demand: Floats, is_path: Bools, capacity: Floats) -> Bools:
    """Return the unknown paths that are cheapest, where they cost less than their pair's known ones and 1."""
    n = len(demand)
    cost = np.where(capacity > 0, prices, np.inf)
    through = cost[:, :, None] + cost[None, :, :] + RELAY_COST
    each = np.arange(n)
    through[each, each, :] = cost
    through[:, each, each] = np.inf
    at_most = np.minimum(1.0, np.where(is_path, through, np.inf).min(axis=1))
    through[is_path] = np.inf
    some = min(PATHS_PER_PAIR, n - 1)
    cheapest = np.argpartition(through, some, axis=1)[:, :some, :]
    gain = at_most[:, None, :] - np.take_along_axis(through, cheapest, axis=1)
    added = np.zeros_like(is_path)
    np.put_along_axis(added, cheapest, (gain > 1e-9) & (demand > 0)[:, None, :], axis=1)
    return added


def fit_rates(paths: Paths, capacity: Floats, demand: Floats) -> Paths:
    """Return the paths with rates that rounding does not let exceed demands or capacities."""
    n = len(demand)
    rate = paths.rate
    for _ in range(2):
        sent = paths._replace(rate=rate)
        over = np.ones((n, n))
        load, total = sent.load(n), sent.delivered(n)
        np.divide(load, capacity, out=over, where=(capacity > 0) & (load > capacity))
        more = np.ones((n, n))
        np.divide(total, demand, out=more, where=(demand > 0) & (total > demand))
        last = over[paths.via, paths.target]
        first = np.where(paths.via == paths.source, 1.0, over[paths.source, paths.via])
        rate = rate / np.maximum(np.maximum(last, first), more[paths.source, paths.target])
    return paths._replace(rate=rate)
