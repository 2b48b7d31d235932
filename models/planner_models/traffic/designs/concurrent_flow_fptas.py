"""Approximation scheme (FPTAS) for maximum concurrent flow by Garg, Könemann and Fleischer.

It uses shortest-path trees alone, no linear program. Every link has a length that grows with the flow
sent over it. In each phase every root sends its demands over its shortest tree, in parts as large as
the tightest link allows; the plan is the average of all flow sent. Once the lengths times capacities
add up to 1, the plan is at least (1 - epsilon)^3 of the optimum, if the optimum is at least 1.

Over tunnels, given paths, or routes within limits, traffic is sent over routes in place of trees. Where all
routes within limits count, the shortest of each demand is found after each phase, and joins the known ones;
within a phase demands take the shortest known route. The lengths bound the optimum whatever routes are known,
so that the ratio is what objective and bound prove.

Lengths start at delta = (A / (1 - epsilon))^(-1 / epsilon) over capacity, which underflows where epsilon is
small; only their ratios matter, so their common scale is kept as a logarithm.

source  Garg and Könemann, "Faster and simpler algorithms for multicommodity flow" (FOCS 1998),
        section 5; Fleischer, "Approximating fractional multicommodity flow independent of the
        number of commodities" (2000), section 4, for one tree for all demands of a root
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Final, NamedTuple

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from planner.arrays import Floats, Ints, Ints32
from planner.compiled import njit, run_small_in_python
from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import NEVER, Deadline, Stopwatch
from planner.search.judged import undecided
from planner.search.tolerances import SUM_ROUNDING
from planner_models.flows import path_flow_program
from planner_models.flows.link_flow_program import METRIC_OF
from planner_models.flows.reduced_problem import FlowSplit, ReducedProblem, WeightedPaths, WeightedTrees
from planner_models.flows.tree_columns import Iteration, SearchResult
from planner_models.graphs import shortest_path_trees
from planner_models.graphs.indexing import sum_by_index
from planner_models.graphs.shortest_path_trees import allocate, dijkstra
from planner_models.traffic.designs import fitted_plan
from planner_models.traffic.designs.column_generation import MinMaxObjective
from planner_models.traffic.designs.routable import shed_unreachable_within_limits
from planner_models.traffic.designs.route_choice import Choice, HopLimit, PathCount, RouteChoice
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan.flow_decision import (
    SolvedFlows,
    decide_by_plan,
    decide_without_demand,
    limit_scope,
    make_decision,
    refuse_solver_options,
)
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic

LARGE_DEMANDS: Final = 100_000
FIRST_PHASE_S_PER_DEMAND: Final = 2.5e-6  # CPU seconds until more demands have a plan, as measured


SAME: Final = SUM_ROUNDING  # relative: a remainder below it is rounding
MAX_LENGTH: Final = 1e100  # lengths are scaled down when one grows beyond it


class Phases(ABC):
    """The lengths of links, and bounds of the utilization: that of the flow sent, and a lower one.

    capacity, length  (A,) of links; true lengths are length * exp(log_scale) * delta
    deadline          at which a phase ends early
    """

    def __init__(self, capacity: Floats, epsilon: float, deadline: Deadline, bound: float = 0.0) -> None:
        self.capacity, self.epsilon, self.deadline = capacity, epsilon, deadline
        self.watch = Stopwatch(is_wall=True)
        self.length = 1.0 / capacity
        self.log_scale = 0.0
        self.bound, self.utilization = bound, np.inf

    @abstractmethod
    def _first_load(self) -> Floats:
        """Return the load of each link, (A,), with all demands on their shortest routes; update `bound`."""

    @abstractmethod
    def _run_phase(self, scale: float) -> bool:
        """Send `scale` times the demands; return False where time ran out."""

    @abstractmethod
    def _columns(self) -> int:
        """Return the number of used trees or routes."""

    def iterate(self) -> Iterator[Iteration]:
        """Run phases until the ratio is guaranteed, or the time is up."""
        load = self._first_load()
        # demands are scaled so that the optimum is at least 1, and doubled while it proves to be above 2
        scale = 1.0 / float((load / self.capacity).max())
        log_volume = math.log(len(self.capacity) / (1 - self.epsilon))
        phases_per_doubling = 2 * math.ceil(log_volume / self.epsilon**2)
        phases = 0
        while math.log(self._volume()) + self.log_scale - log_volume / self.epsilon < 0:
            if not self._run_phase(scale):
                return
            phases += 1
            yield self._iteration()
            if phases % phases_per_doubling == 0:
                scale *= 2

    def _volume(self) -> float:
        return float(self.length @ self.capacity)

    def _is_late(self) -> bool:
        return self.deadline.is_over

    def _scale_lengths(self) -> float:
        """Scale lengths down where one is too large; return the factor that they were divided by."""
        if self.length.max() * self.capacity.max() <= MAX_LENGTH:
            return 1.0
        self.length /= MAX_LENGTH
        self.log_scale += math.log(MAX_LENGTH)
        return MAX_LENGTH

    def _iteration(self) -> Iteration:
        return Iteration(
            seconds=self.watch.seconds,
            phase="phase",
            utilization=self.utilization,
            bound=self.bound,
            columns=self._columns(),
            rows=len(self.length),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Approximation:
    """Accuracy of the scheme, and its end.

    epsilon   of the lengths' growth: the plan is at least (1 - epsilon)^3 of the optimum
    gap       relative, at which the search ends
    deadline  at which it ends
    """

    epsilon: float
    gap: float
    deadline: Deadline

    @property
    def backend(self) -> str:
        """Return the name of the scheme."""
        return f"Garg-Könemann-Fleischer, epsilon {self.epsilon:g}"


def route_over_choice(
    problem: Traffic,
    routes: RouteChoice,
    *,
    objective: MinMaxObjective,
    accuracy: Approximation,
    options: Options,
) -> Decision[Routing]:
    """Return the decision for demands that all have a route; the bound holds for the routes of `routes`."""
    if not (problem.rate_mbps > 0).any():
        return decide_without_demand(problem, objective)
    scheme = _RouteScheme(problem, routes, accuracy.epsilon, accuracy.deadline)
    for iteration in scheme.iterate():
        if iteration.utilization - iteration.bound <= accuracy.gap * iteration.utilization:
            break
    limit = (1 / scheme.bound if scheme.bound > 0 else None) if objective == "concurrent" else scheme.bound
    metric, backend = METRIC_OF[objective], accuracy.backend
    proof = undecided(bound=limit, metric=metric, bound_scope=routes.scope, backend=backend)
    if np.isinf(scheme.utilization):
        return Decision(plan=None, proof=proof)
    # the ratio alone makes no plan optimal: that takes a gap in the options
    exact = options if options.gap is not None else replace(options, gap=0.0)
    return decide_by_plan(problem, objective, scheme.flows(), proof, exact)


class _RouteScheme(Phases):
    """The flow sent so far over each route known, and the lengths of links."""

    def __init__(self, problem: Traffic, routes: RouteChoice, epsilon: float, deadline: Deadline) -> None:
        super().__init__(problem.capacity_mbps, epsilon, deadline)
        self.problem, self.routes = problem, routes
        self.wanted = np.flatnonzero(problem.rate_mbps > 0)
        self.rate = problem.rate_mbps[self.wanted]
        self.amount = np.zeros(len(routes.demand))
        self.times = 0.0  # multiple of the demands that has been sent

    def _first_load(self) -> Floats:
        self._find_routes()
        uses, demand = self.routes.uses, self.routes.demand
        order = np.lexsort((uses @ self.length, demand))
        _, first = np.unique(demand[order], return_index=True)
        return np.asarray(uses[order[first]].T @ self.rate)

    def _find_routes(self) -> None:
        """Add the shortest routes to the known ones, and update the bound."""
        distance, added = self.routes.find_cheapest(self.wanted, self.length)
        self.bound = max(self.bound, float(self.rate @ distance) / self._volume())
        self.amount = np.r_[self.amount, np.zeros(added)]

    def _run_phase(self, scale: float) -> bool:
        if self._is_late():
            return False
        uses, demand = self.routes.uses, self.routes.demand
        order = np.argsort(demand, kind="stable")
        first = np.r_[np.searchsorted(demand[order], self.wanted), len(order)]
        routes = _Routes(first, order, uses.indptr.astype(np.int64), uses.indices.astype(np.int64), uses.data)
        _send(routes, self.capacity, scale * self.rate, self.epsilon, self.length, self.amount)
        self.times += scale
        self._scale_lengths()
        load = uses.T @ self.amount / self.times
        self.utilization = float((load / self.capacity).max())
        self._find_routes()
        return True

    def _columns(self) -> int:
        return len(self.amount)

    def flows(self) -> SolvedFlows:
        """Return the plan in which the routes of a demand share it as they did over all phases."""
        problem = self.problem
        paths, amount = self.routes.routes(self.amount)
        sent = sum_by_index(paths.demand, amount, len(problem.demands))
        rate = amount * (problem.rate_mbps / np.where(sent > 0, sent, 1.0))[paths.demand]

        def make_plan(share: Floats | float) -> Routing:
            shared = rate * np.broadcast_to(share, len(problem.demands))[paths.demand]
            by_demand = sp.csr_array(
                (shared, (paths.demand, np.arange(len(shared)))), shape=(len(problem.demands), len(shared))
            )
            table = path_flow_program.route_table(problem, paths, shared)
            return routing.routing_by_demand(problem, by_demand @ paths.uses, table)

        return SolvedFlows(np.where(sent > 0, problem.rate_mbps, 0.0), make_plan)


class _Routes(NamedTuple):
    """Routes of demands: those of demand k are order[first[k] : first[k + 1]].

    start        (P + 1,) where the links of each route begin
    link, share  links of all routes, and the share of the traffic on each
    """

    first: Ints
    order: Ints
    start: Ints
    link: Ints
    share: Floats


@run_small_in_python(max_elements=1_000)
@njit(cache=True)
def _send(routes, capacity, rate, epsilon, length, amount):  # type: ignore[no-untyped-def]
    """Send each demand over its shortest routes, in parts that fill a link; lengths grow in place."""
    first, order, start, link, share = routes
    for k in range(len(rate)):
        remaining = rate[k]
        while remaining > 0.0:
            best, shortest = -1, np.inf
            for j in range(first[k], first[k + 1]):
                p, total = order[j], 0.0
                for i in range(start[p], start[p + 1]):
                    total += share[i] * length[link[i]]
                if total < shortest:
                    best, shortest = p, total
            fraction = remaining
            for i in range(start[best], start[best + 1]):
                fraction = min(fraction, capacity[link[i]] / share[i])
            for i in range(start[best], start[best + 1]):
                length[link[i]] *= 1.0 + epsilon * fraction * share[i] / capacity[link[i]]
            amount[best] += fraction
            remaining = remaining - fraction if remaining - fraction > SAME * rate[k] else 0.0


@shed_unreachable_within_limits
def route(
    problem: Traffic,
    *,
    objective: MinMaxObjective = "concurrent",
    epsilon: Annotated[
        float, Field(gt=0, le=0.5, description="the plan is at least (1 - epsilon)^3 of the optimum")
    ] = 0.05,
    paths: PathCount = "any",
    path_choice: Choice = "shortest",
    max_hops: HopLimit = None,
    options: Options = Options(),
) -> Decision[Routing]:
    """Solve for a routing within a guaranteed ratio of the optimum (Garg, Könemann; Fleischer).

    Stops as soon as the plan is proven to be within 1 - (1 - epsilon)^3 of the optimum, mostly long
    before the last phase of the theorem; with `options.gap`, at that gap or after that phase. At a
    time limit it returns the plan so far with its bound; where a first phase over more than 100,000 demands
    takes longer, that is equal-cost multipath. Deterministic and with one thread, whatever
    `options` say of seed and threads. Routes are tunnels, a number of paths, or all routes, and keep latency
    limits and rules in each case.

    returns  Decision with a Routing; the bound holds for all routings over such routes, that on the
             utilization for those that serve all demand
    raises   InputError for a backend or an algorithm: it is its own solver
    source   Garg and Könemann 1998; Fleischer 2000
    """
    refuse_solver_options("fptas", options)
    if not len(problem.targets):
        return decide_without_demand(problem, objective)
    gap = 1 - (1 - epsilon) ** 3 if options.gap is None else options.gap
    accuracy = Approximation(epsilon=epsilon, gap=gap, deadline=Deadline.of(options))
    routes = RouteChoice.of(problem, paths, path_choice, max_hops)
    if routes is not None:
        search_routes = partial(
            route_over_choice, routes=routes, objective=objective, accuracy=accuracy, options=options
        )
        return limit_scope(routes.route_rest(search_routes, options, max_hops))
    demands = int((problem.rate_mbps > 0).sum())
    needed_s = FIRST_PHASE_S_PER_DEMAND * demands if demands > LARGE_DEMANDS else 0.0
    if options.time_limit_s is not None and options.time_limit_s < needed_s:
        decision = fitted_plan.route_in_time(problem, objective, options.time_limit_s, needed_s)
        return limit_scope(decision)
    reduced = ReducedProblem.of(problem)
    result = search(reduced, epsilon=epsilon, gap=gap, deadline=accuracy.deadline)
    decision = make_decision(
        problem,
        reduced,
        objective,
        split=result.split,
        bound=result.bound,
        # the ratio alone makes no plan optimal: that takes a gap in the options
        gap=options.gap or 0.0,
        backend=accuracy.backend,
    )
    return limit_scope(decision)


def search(
    reduced: ReducedProblem, *, epsilon: float, gap: float = 0.0, deadline: Deadline = NEVER
) -> SearchResult:
    """Run phases until the ratio is guaranteed, the relative `gap` is proven, or a deadline."""
    scheme = _Scheme(reduced, epsilon, deadline)
    trace = []
    for iteration in scheme.iterate():
        trace.append(iteration)
        if iteration.utilization - iteration.bound <= gap * iteration.utilization:
            break
    return SearchResult(
        split=scheme.split(), utilization=scheme.utilization, bound=scheme.bound, trace=tuple(trace)
    )


class _Scheme(Phases):
    """The flow sent so far: trees of each root, the amount sent over each, and the lengths of arcs."""

    def __init__(self, reduced: ReducedProblem, epsilon: float, deadline: Deadline) -> None:
        super().__init__(reduced.capacity_mbps, epsilon, deadline, bound=reduced.fixed_utilization)
        self.reduced = reduced
        arcs = len(reduced.capacity_mbps)
        self.tree_number: dict[tuple[int, bytes], int] = {}
        self.parent: list[Ints32] = []
        self.owner: list[int] = []
        self.amount: list[float] = []
        self.sent = np.zeros((len(reduced.roots), arcs))
        self.times = np.zeros(len(reduced.roots))  # multiple of its demands that each root has sent

    def iterate(self) -> Iterator[Iteration]:
        if len(self.reduced.roots):
            yield from super().iterate()
        else:
            self.utilization = self.reduced.fixed_utilization
            yield self._iteration()

    def _first_load(self) -> Floats:
        graph, amount = self.reduced.graph, self.reduced.amount_mbps
        parent, value = shortest_path_trees.shortest_trees(graph, self.length, self.reduced.roots, amount)
        self.bound = max(self.bound, float(value.sum()) / len(self.capacity))
        flow = shortest_path_trees.tree_flows(graph, parent, amount, np.arange(len(parent)))
        return shortest_path_trees.weighted_load(graph, parent, flow, np.ones(len(parent)))

    def split(self) -> FlowSplit | None:
        """Return the trees, weighted by the flow sent over them; None before every root has sent once."""
        if not len(self.reduced.roots):
            none = np.zeros(0, dtype=np.int64)
            return WeightedPaths(pair=none, arc=none, share=np.zeros(0))
        if np.isinf(self.utilization):
            return None
        owner = np.array(self.owner)
        weight = np.array(self.amount)
        return WeightedTrees(
            parent=np.stack(self.parent), owner=owner, weight=weight / np.bincount(owner, weight)[owner]
        )

    def _run_phase(self, scale: float) -> bool:
        """Send `scale` times the demands of every root; return False where time ran out."""
        reduced = self.reduced
        dual_value = 0.0
        for r, root in enumerate(reduced.roots.tolist()):
            remaining = 1.0
            is_first = True
            while remaining > 0:
                if self._is_late():
                    return False
                links = _Links(reduced.capacity_mbps, self.length, self.sent[r], self.epsilon)
                parent, value, sent_share = _send_over_shortest_tree(
                    reduced.graph, links, root, reduced.amount_mbps[r], scale, remaining
                )
                if is_first:  # lengths only grow: at most the distances at the end of the phase
                    dual_value += value
                    is_first = False
                self._record(r, parent, sent_share * scale)
                remaining = remaining - sent_share if remaining - sent_share > 1e-12 else 0.0
            self.times[r] += scale
            dual_value /= self._scale_lengths()
        self.bound = max(self.bound, dual_value / self._volume())
        load = (self.sent / self.times[:, None]).sum(axis=0)
        self.utilization = max(float((load / reduced.capacity_mbps).max()), reduced.fixed_utilization)
        return True

    def _record(self, row: int, parent: Ints32, amount: float) -> None:
        key = (row, parent.tobytes())
        if key not in self.tree_number:
            self.tree_number[key] = len(self.owner)
            self.parent.append(parent)
            self.owner.append(row)
            self.amount.append(0.0)
        self.amount[self.tree_number[key]] += amount

    def _columns(self) -> int:
        return len(self.owner)


class _Links(NamedTuple):
    """Links, (E,) each, and the traffic of a root that was sent over them; lengths grow by epsilon."""

    capacity: Floats
    length: Floats
    sent: Floats
    epsilon: float


@run_small_in_python(max_elements=1_000)
@njit(cache=True)
def _send_over_shortest_tree(graph, links, root, amount, scale, remaining):  # type: ignore[no-untyped-def]
    """Send as much of the remaining demands as the tightest link allows; lengths grow in place.

    Returns the tree, the cost of the demands over it, and the part sent.
    """
    nodes, head = graph.nodes, graph.head
    capacity, length, sent, epsilon = links
    passing, parent, work = amount.copy(), np.empty(nodes, np.int32), allocate(nodes)
    reached = dijkstra(graph, length, root, work, parent)
    fraction = remaining
    value = 0.0
    for i in range(reached - 1, 0, -1):
        v = work.order[i]
        arc = parent[v]
        value += amount[v] * work.distance[v]
        if passing[v] > 0.0:
            fraction = min(fraction, capacity[arc] / (passing[v] * scale))
        passing[head[arc]] += passing[v]
    for i in range(reached - 1, 0, -1):
        arc = parent[work.order[i]]
        flow = passing[work.order[i]] * scale * fraction
        sent[arc] += flow
        length[arc] *= 1.0 + epsilon * flow / capacity[arc]
    return parent, value, fraction
