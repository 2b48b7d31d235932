"""Moves of the two control planes: the CDN's selection of clusters on given routes, the ISP's routes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import scipy.sparse as sp

from planner import backends
from planner.arrays import Floats, Ints, Ints32
from planner.backends.linear_program import LinearProgram, Rows
from planner.contract.proof import Status
from planner.errors import SolverFailure
from planner.options import Options
from planner.search.deadline import NEVER, Deadline
from planner.search.tolerances import COARSE_GAP
from planner_models.cdnrouting.designs.path_usage import PathUsage
from planner_models.cdnrouting.plan.flow_problem import (
    Kinds,
    congestion_cost,
    delay_cost,
    make_flow_problem,
    no_choice,
    ratios_of,
    shortest_ratios,
)
from planner_models.cdnrouting.problem.problem import Delivery
from planner_models.flows.convex_flow import solve_convex_flow
from planner_models.flows.link_cost import DELAY_POINTS, Segments, tangent_segments
from planner_models.flows.source_choice import cheapest_sources

MAX_ROUNDS: Final = 30
"""Rounds of tangents in which the CDN's own problem is solved."""
Trees = tuple[Ints32, Ints]


@dataclass(frozen=True, kw_only=True, eq=False)
class Situation:
    """Present assignment and routes of both control planes.

    assigned  (K, S) traffic of kinds of clients from clusters, Mbit/s
    ratios    (T, E) splits of routes
    usage     links that traffic takes under the splits
    trees     of the routes, from which the next ones are sought; None for none
    """

    assigned: Floats
    ratios: sp.coo_array
    usage: PathUsage
    trees: Trees | None = None

    @property
    def cdn_load(self) -> Floats:
        """(E,) load of the CDN's traffic."""
        return self.usage.load(self.assigned)

    @property
    def load(self) -> Floats:
        """(E,) load of all traffic."""
        return self.cdn_load + self.usage.background

    def with_assigned(self, assigned: Floats) -> Situation:
        """Return the same routes under another assignment."""
        return replace(self, assigned=assigned)


def begin(kinds: Kinds, options: Options) -> Situation:
    """Return shortest paths, and clients at the clusters of least latency at rest."""
    ratios = shortest_ratios(kinds.problem)
    usage = PathUsage.of(kinds, ratios)
    assigned = cheapest_assignment(kinds, usage.latency(kinds.problem.network.latency), options)
    return Situation(assigned=assigned, ratios=ratios, usage=usage)


def cheapest_assignment(
    kinds: Kinds, cost: Floats, options: Options, *, totals: Floats | None = None
) -> Floats:
    """Return the (K, S) assignment of least cost, (K, S) a Mbit/s, within the clusters' capacities."""
    if not len(kinds.amount):
        return np.zeros(kinds.allowed.shape)
    solved = cheapest_sources(kinds.choice(totals=totals), cost, options)
    if solved is None:
        raise SolverFailure("clusters: no assignment serves the traffic that fits")
    return solved[0]


def link_delay(problem: Delivery, load: Floats) -> Floats:
    """Return the delay of each link at a load, (E,), ms."""
    cost = delay_cost(problem, other=load)
    return cost.slope(np.zeros(len(load)))


def measured_latency(kinds: Kinds, situation: Situation) -> Floats:
    """Return the (K, S) latency of each kind of clients to each cluster in a situation, ms."""
    return situation.usage.latency(link_delay(kinds.problem, situation.load))


def select_informed(
    kinds: Kinds, situation: Situation, options: Options, deadline: Deadline = NEVER
) -> Floats:
    """Return the assignment of least delay of the CDN's traffic on the present routes, (K, S).

    The delay of each link is convex in the CDN's load; tangents make it a linear program, in rounds. The
    deadline ends them with the incumbent.
    """
    usage = situation.usage
    cost = delay_cost(kinds.problem, other=usage.background)
    kind, cluster = np.nonzero(kinds.allowed)
    if not len(kind):
        return situation.assigned
    option = kind * kinds.allowed.shape[1] + cluster
    best = situation.assigned
    links = np.arange(len(cost.capacity))
    points = [(np.repeat(links, len(DELAY_POINTS)), np.tile(DELAY_POINTS, len(links)))]
    points.append((links, usage.load(best) / cost.capacity))
    value = float(cost.value(usage.load(best)).sum())
    if value <= 0:
        return best  # no assignment has less delay than none
    on_link = sp.csr_array(usage.usage[option].T)
    for turn in range(MAX_ROUNDS):
        if turn and deadline.is_over:
            break
        segments = tangent_segments(
            cost, np.concatenate([link for link, _ in points]), np.concatenate([point for _, point in points])
        )
        solved = _solve_informed(kinds, on_link, (kind, cluster), segments, cost.capacity, value, options)
        if solved is None:
            break
        assigned, bound = solved
        delayed = float(cost.value(usage.load(assigned)).sum())
        if delayed < value:
            best, value = assigned, delayed
        if value - bound <= COARSE_GAP * max(value, 1e-300):
            break
        points.append((links, usage.load(assigned) / cost.capacity))
        middle = (usage.load(assigned) + usage.load(best)) / 2
        points.append((links, middle / cost.capacity))
    return best


def _solve_informed(
    kinds: Kinds,
    on_link: sp.csr_array,
    pair: tuple[Ints, Ints],
    segments: Segments,
    capacity: Floats,
    unit: float,
    options: Options,
) -> tuple[Floats, float] | None:
    """Return the assignment under tangents, (K, S), and its delay, which no assignment is below."""

    kind, cluster = pair
    count, pieces, links = len(kind), len(segments.link), len(capacity)
    amount = kinds.amount[kind]
    scale = float(kinds.amount.max())
    load = sp.csr_array(sp.diags_array(1 / capacity) @ on_link @ sp.diags_array(amount))
    filled = sp.csr_array((-np.ones(pieces), (segments.link, np.arange(pieces))), shape=(links, pieces))
    of_kind = sp.csr_array((np.ones(count), (kind, np.arange(count))), shape=(len(kinds.amount), count))
    of_cluster = sp.csr_array(
        (amount / scale, (cluster, np.arange(count))), shape=(kinds.allowed.shape[1], count)
    )
    program = LinearProgram.build(
        cost=np.concatenate([np.zeros(count), segments.slope / max(unit, 1e-300)]),
        rows=[
            Rows("link", sp.csr_array(sp.hstack([load, filled])), lower=0.0, upper=0.0),
            Rows("kind", _widen(of_kind, pieces), lower=1.0, upper=1.0),
            Rows("cluster", _widen(of_cluster, pieces), upper=kinds.problem.capacity_mbps / scale),
        ],
        upper=np.concatenate([np.full(count, np.inf), segments.width]),
        name="clusters on given routes",
    )
    solution = backends.solve(program, replace(options, gap=None, time_limit_s=None))
    if solution.status is not Status.OPTIMAL or solution.x is None or solution.objective is None:
        return None
    assigned = np.zeros(kinds.allowed.shape)
    assigned[kind, cluster] = np.maximum(solution.x[:count], 0.0) * amount
    return assigned, solution.objective * unit + segments.at_zero


def _widen(matrix: sp.csr_array, columns: int) -> sp.csr_array:
    """Return the matrix with so many columns of zeros after its own."""
    return sp.csr_array(sp.hstack([matrix, sp.csr_array((matrix.shape[0], columns))]))


def route(kinds: Kinds, situation: Situation, options: Options, deadline: Deadline = NEVER) -> Situation:
    """Return the situation on routes of least cost of the network for the present traffic.

    The routes are the incumbent ones where the deadline ends the search.
    """
    problem = kinds.problem
    fixed = problem.background + kinds.supply(situation.assigned)
    solved = solve_convex_flow(
        make_flow_problem(problem, congestion_cost(problem), no_choice(problem), fixed),
        options=options,
        gap=COARSE_GAP,
        deadline=deadline,
        start=situation.trees,
    )
    ratios = ratios_of(problem, solved)
    return Situation(
        assigned=situation.assigned, ratios=ratios, usage=PathUsage.of(kinds, ratios), trees=solved.trees
    )


def link_prices(problem: Delivery, load: Floats) -> Floats:
    """Return the network's price of each link at a load, (E,): the cost of one more Mbit/s."""
    return congestion_cost(problem).slope(load)
