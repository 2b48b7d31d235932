"""Approximation scheme (FPTAS) for maximum concurrent flow by Garg, Könemann and Fleischer.

It uses shortest-path trees alone, no linear program. Every link has a length that grows with the flow
sent over it. In each phase every root sends its demands over its shortest tree, in parts as large as
the tightest link allows; the plan is the average of all flow sent. Once the lengths times capacities
add up to 1, the plan is at least (1 - epsilon)^3 of the optimum, if the optimum is at least 1.

source  Garg and Könemann, "Faster and simpler algorithms for multicommodity flow" (FOCS 1998),
        section 5; Fleischer, "Approximating fractional multicommodity flow independent of the
        number of commodities" (2000), section 4, for one tree for all demands of a root
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Annotated, Final

import numpy as np
from pydantic import Field

from planner.arrays import Floats, Ints32
from planner.compiled import njit, run_small_in_python
from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import NEVER, Deadline
from planner_models.graphs import shortest_path_trees
from planner_models.graphs.shortest_path_trees import allocate, dijkstra
from planner_models.traffic.designs import concurrent_flow_over_routes, fitted_ecmp
from planner_models.traffic.designs.column_generation.column_generation import (
    Iteration,
    MinMaxObjective,
    SearchResult,
)
from planner_models.traffic.designs.column_generation.decision import (
    decide_without_demand,
    make_decision,
    refuse_solver_options,
)
from planner_models.traffic.designs.column_generation.reduced_problem import (
    FlowSplit,
    ReducedProblem,
    WeightedPaths,
    WeightedTrees,
)
from planner_models.traffic.designs.concurrent_flow_phases import Phases
from planner_models.traffic.designs.flow_decision import limit_scope
from planner_models.traffic.designs.path_parameters import Choice, HopLimit, PathCount
from planner_models.traffic.designs.restricted_routes.route_choice import RouteChoice
from planner_models.traffic.designs.routable import shed_unreachable_within_limits
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic

LARGE_DEMANDS: Final = 100_000
FIRST_PHASE_S_PER_DEMAND: Final = 2.5e-6  # CPU seconds until more demands have a plan, as measured


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
    deadline = Deadline.of(options)
    gap = 1 - (1 - epsilon) ** 3 if options.gap is None else options.gap
    backend = f"Garg-Könemann-Fleischer, epsilon {epsilon:g}"
    routes = RouteChoice.of(problem, paths, path_choice, max_hops)
    if routes is not None:
        search_routes = partial(
            concurrent_flow_over_routes.route,
            routes=routes,
            objective=objective,
            epsilon=epsilon,
            gap=gap,
            deadline=deadline,
            options=options,
            backend=backend,
        )
        return limit_scope(routes.route_rest(search_routes, options, max_hops))
    demands = int((problem.rate_mbps > 0).sum())
    needed_s = FIRST_PHASE_S_PER_DEMAND * demands if demands > LARGE_DEMANDS else 0.0
    if options.time_limit_s is not None and options.time_limit_s < needed_s:
        decision = fitted_ecmp.route_in_time(problem, objective, options.time_limit_s, needed_s)
        return limit_scope(decision)
    reduced = ReducedProblem.of(problem)
    result = search(reduced, epsilon=epsilon, gap=gap, deadline=deadline)
    decision = make_decision(
        reduced,
        objective,
        split=result.split,
        bound=result.bound,
        # the ratio alone makes no plan optimal: that takes a gap in the options
        gap=options.gap or 0.0,
        backend=backend,
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
                parent, value, sent_share = _send_over_shortest_tree(
                    reduced.graph,
                    reduced.capacity_mbps,
                    root,
                    reduced.amount_mbps[r],
                    scale,
                    remaining,
                    self.epsilon,
                    self.length,
                    self.sent[r],
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


@run_small_in_python(max_elements=1_000)
@njit(cache=True)
def _send_over_shortest_tree(  # type: ignore[no-untyped-def]
    graph, capacity, root, amount, scale, remaining, epsilon, length, sent
):
    """Send as much of the remaining demands as the tightest link allows; lengths grow in place.

    Returns the tree, the cost of the demands over it, and the part sent.
    """
    nodes, head = graph.nodes, graph.head
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
