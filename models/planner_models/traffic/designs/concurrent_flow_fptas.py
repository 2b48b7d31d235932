"""Approximation scheme (FPTAS) for maximum concurrent flow by Garg, Könemann and Fleischer.

It uses shortest-path trees alone, no linear program. Every link has a length that grows with the flow
sent over it. In each phase every root sends its demands over its shortest tree, in parts as large as
the tightest link allows; the plan is the average of all flow sent. Once the lengths times capacities
add up to 1, the plan is at least (1 - epsilon)^3 of the optimum, if the optimum is at least 1.

Lengths start at delta = (A / (1 - epsilon))^(-1 / epsilon) over capacity, which underflows where
epsilon is small; only their ratios matter, so their common scale is kept as a logarithm.

source  Garg and Könemann, "Faster and simpler algorithms for multicommodity flow" (FOCS 1998),
        section 5; Fleischer, "Approximating fractional multicommodity flow independent of the
        number of commodities" (2000), section 4, for one tree for all demands of a root
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Annotated, Final

import numba
import numpy as np
from pydantic import Field

from planner.arrays import Ints32
from planner.contract.design import Decision
from planner.options import Options
from planner_models.traffic.designs.column_generation import shortest_path_trees
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
from planner_models.traffic.designs.column_generation.shortest_path_trees import allocate, dijkstra
from planner_models.traffic.designs.routable import shed_unreachable
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic

MAX_LENGTH: Final = 1e100  # lengths are scaled down when one grows beyond it


@shed_unreachable
def route(
    problem: Traffic,
    *,
    objective: MinMaxObjective = "concurrent",
    epsilon: Annotated[
        float, Field(gt=0, le=0.5, description="the plan is at least (1 - epsilon)^3 of the optimum")
    ] = 0.05,
    options: Options = Options(),
) -> Decision[Routing]:
    """Solve for a routing within a guaranteed ratio of the optimum (Garg, Könemann; Fleischer).

    Stops as soon as the plan is proven to be within 1 - (1 - epsilon)^3 of the optimum, mostly long
    before the last phase of the theorem; with `options.gap`, at that gap or after that phase. At a
    time limit it returns the plan so far with its bound. Deterministic and with one thread, whatever
    `options` say of seed and threads. All routes count: tunnels, latency limits and rules do not.

    returns  Decision with a Routing; the bound holds for all routings
    raises   InputError for a backend or an algorithm: it is its own solver
    source   Garg and Könemann 1998; Fleischer 2000
    """
    refuse_solver_options("fptas", options)
    if not len(problem.targets):
        return decide_without_demand(problem, objective)
    until = None if options.time_limit_s is None else time.perf_counter() + options.time_limit_s
    gap = 1 - (1 - epsilon) ** 3 if options.gap is None else options.gap
    reduced = ReducedProblem.of(problem)
    result = search(reduced, epsilon=epsilon, gap=gap, until=until)
    return make_decision(
        reduced,
        objective,
        split=result.split,
        bound=result.bound,
        # the ratio alone makes no plan optimal: that takes a gap in the options
        gap=options.gap or 0.0,
        backend=f"Garg-Könemann-Fleischer, epsilon {epsilon:g}",
    )


def search(
    reduced: ReducedProblem, *, epsilon: float, gap: float = 0.0, until: float | None = None
) -> SearchResult:
    """Run phases until the ratio is guaranteed, the relative `gap` is proven, or a time of perf_counter()."""
    scheme = _Scheme(reduced, epsilon, until)
    trace = []
    for iteration in scheme.iterate():
        trace.append(iteration)
        if iteration.utilization - iteration.bound <= gap * iteration.utilization:
            break
    return SearchResult(
        split=scheme.split(), utilization=scheme.utilization, bound=scheme.bound, trace=tuple(trace)
    )


class _Scheme:
    """The flow sent so far: trees of each root, the amount sent over each, and the lengths of arcs."""

    def __init__(self, reduced: ReducedProblem, epsilon: float, until: float | None) -> None:
        self.reduced, self.epsilon, self.until = reduced, epsilon, until
        self.started = time.perf_counter()
        arcs = len(reduced.capacity_mbps)
        self.tree_number: dict[tuple[int, bytes], int] = {}
        self.parent: list[Ints32] = []
        self.owner: list[int] = []
        self.amount: list[float] = []
        self.sent = np.zeros((len(reduced.roots), arcs))
        self.times = np.zeros(len(reduced.roots))  # multiple of its demands that each root has sent
        self.bound, self.utilization = reduced.fixed_utilization, np.inf
        self.length = 1.0 / reduced.capacity_mbps
        self.log_scale = 0.0  # true lengths are length * exp(log_scale) * delta

    def iterate(self) -> Iterator[Iteration]:
        reduced = self.reduced
        if not len(reduced.roots):
            self.utilization = reduced.fixed_utilization
            yield self._iteration()
            return
        amount, capacity = reduced.amount_mbps, reduced.capacity_mbps
        parent, value = shortest_path_trees.shortest_trees(reduced.graph, self.length, reduced.roots, amount)
        rows = np.arange(len(parent))
        flow = shortest_path_trees.tree_flows(reduced.graph, parent, amount, rows)
        load = shortest_path_trees.weighted_load(reduced.graph, parent, flow, np.ones(len(parent)))
        self.bound = max(self.bound, float(value.sum()) / len(capacity))
        # demands are scaled so that the optimum is at least 1, and doubled while it proves to be above 2
        scale = 1.0 / float((load / capacity).max())
        log_delta = -math.log(len(capacity) / (1 - self.epsilon)) / self.epsilon
        phases_per_doubling = 2 * math.ceil(math.log(len(capacity) / (1 - self.epsilon)) / self.epsilon**2)
        phases = 0
        while self._log_volume() + log_delta < 0:
            if not self._run_phase(scale):
                return
            phases += 1
            yield self._iteration()
            if phases % phases_per_doubling == 0:
                scale *= 2

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

    def _log_volume(self) -> float:
        return math.log(float(self.length @ self.reduced.capacity_mbps)) + self.log_scale

    def _run_phase(self, scale: float) -> bool:
        """Send `scale` times the demands of every root; return False where time ran out."""
        reduced = self.reduced
        dual_value = 0.0
        for r, root in enumerate(reduced.roots.tolist()):
            remaining = 1.0
            is_first = True
            while remaining > 0:
                if self.until is not None and time.perf_counter() >= self.until:
                    return False
                parent, value, part = _send_over_shortest_tree(
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
                self._record(r, parent, part * scale)
                remaining = remaining - part if remaining - part > 1e-12 else 0.0
            self.times[r] += scale
            if self.length.max() * reduced.capacity_mbps.max() > MAX_LENGTH:
                self.length /= MAX_LENGTH
                self.log_scale += math.log(MAX_LENGTH)
                dual_value /= MAX_LENGTH
        volume = float(self.length @ reduced.capacity_mbps)
        self.bound = max(self.bound, dual_value / volume)
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

    def _iteration(self) -> Iteration:
        return Iteration(
            seconds=time.perf_counter() - self.started,
            phase="phase",
            utilization=self.utilization,
            bound=self.bound,
            columns=len(self.owner),
            rows=len(self.length),
        )


@numba.njit(cache=True)
def _send_over_shortest_tree(  # type: ignore[no-untyped-def]
    graph, capacity, root, amount, scale, remaining, epsilon, length, sent
):
    """Send as much of the remaining demands as the tightest link allows; lengths grow in place.

    Returns the tree, the cost of the demands over it, and the part sent.
    """
    nodes, head = graph.nodes, graph.head
    passing, parent, work = amount.copy(), np.empty(nodes, np.int32), allocate(nodes)
    reached = dijkstra(graph, length, root, work, parent)
    part = remaining
    value = 0.0
    for i in range(reached - 1, 0, -1):
        v = work.order[i]
        arc = parent[v]
        value += amount[v] * work.distance[v]
        if passing[v] > 0.0:
            part = min(part, capacity[arc] / (passing[v] * scale))
        passing[head[arc]] += passing[v]
    for i in range(reached - 1, 0, -1):
        arc = parent[work.order[i]]
        flow = passing[work.order[i]] * scale * part
        sent[arc] += flow
        length[arc] *= 1.0 + epsilon * flow / capacity[arc]
    return parent, value, part
