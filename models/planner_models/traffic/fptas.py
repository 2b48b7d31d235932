"""Largest concurrent flow to any ratio, by shortest-path trees alone: no linear program.

Every link has a length that grows with what was sent over it. Phase after phase each root sends
its demands over its shortest tree, as much at a time as the tightest link takes; what was sent,
divided by how often, is the plan. Once the lengths times capacities add up to 1, the plan is at
least (1 - epsilon)^3 of the optimum, if the optimum is at least 1.

Lengths start at delta = (A / (1 - epsilon))^(-1 / epsilon) over capacity, far below what a number
can hold where epsilon is small; only their ratios matter, so they are kept apart from their size.

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

from planner.options import Options
from planner.system import Decision
from planner_models.traffic import trees
from planner_models.traffic.columns import FewObjectives, Found, Step
from planner_models.traffic.outcome import decided, require_own_solver, without_demand
from planner_models.traffic.problem import Traffic
from planner_models.traffic.rooted import Mix, Rooted, Ways
from planner_models.traffic.routing import Routing
from planner_models.traffic.trees import Ints, settle

LARGE: Final = 1e100  # lengths are brought back when one grows beyond


def route(
    problem: Traffic,
    *,
    objective: FewObjectives = "concurrent",
    epsilon: Annotated[
        float, Field(gt=0, le=0.5, description="the plan is at least (1 - epsilon)^3 of the optimum")
    ] = 0.05,
    options: Options = Options(),
    previous: Decision[Routing] | None = None,  # noqa: ARG001
) -> Decision[Routing]:
    """The best routing to a ratio that is promised beforehand: Garg-Könemann, as Fleischer has it.

    Stops as soon as the plan is proven to be within 1 - (1 - epsilon)^3 of the optimum, which is
    mostly long before the phases that the theorem asks for; with `options.gap`, at that gap or at
    the end of those phases. At a time limit it returns the plan so far with its bound. Nothing is
    drawn and one thread is used, whatever `options` say of seed and threads.

    returns  Decision with a Routing; the bound holds for all routings
    raises   InputError for a backend or an algorithm: it is its own solver
    source   Garg and Könemann 1998; Fleischer 2000
    """
    require_own_solver("fptas", options)
    if not len(problem.targets):
        return without_demand(problem, objective)
    until = None if options.time_limit_s is None else time.perf_counter() + options.time_limit_s
    gap = 1 - (1 - epsilon) ** 3 if options.gap is None else options.gap
    rooted = Rooted.of(problem)
    found = search(rooted, epsilon=epsilon, gap=gap, until=until)
    backend = f"Garg-Könemann-Fleischer, epsilon {epsilon:g}"
    # a promised ratio is no claim to be optimal: that takes the gap that was asked for
    asked = options.gap or 0.0
    return decided(rooted, objective, mix=found.mix, bound=found.bound, gap=asked, backend=backend)


def search(rooted: Rooted, *, epsilon: float, gap: float = 0.0, until: float | None = None) -> Found:
    """Phases until the ratio is promised, or the relative `gap` is proven, or a moment of perf_counter()."""
    phases = _Phases(rooted, epsilon, until)
    trace = []
    for step in phases.steps():
        trace.append(step)
        if step.utilization - step.bound <= gap * step.utilization:
            break
    return Found(mix=phases.mix(), utilization=phases.utilization, bound=phases.bound, trace=tuple(trace))


class _Phases:
    """What was sent so far: trees of each root, how often each was used, and the lengths."""

    def __init__(self, rooted: Rooted, epsilon: float, until: float | None) -> None:
        self.rooted, self.epsilon, self.until = rooted, epsilon, until
        self.started = time.perf_counter()
        arcs = len(rooted.capacity_mbps)
        self.number: dict[tuple[int, bytes], int] = {}  # of each tree
        self.parent: list[Ints] = []
        self.owner: list[int] = []
        self.used: list[float] = []
        self.sent = np.zeros((len(rooted.roots), arcs))
        self.times = np.zeros(len(rooted.roots))  # how often each root sent its demands
        self.bound, self.utilization = rooted.forced, np.inf
        self.length = 1.0 / rooted.capacity_mbps
        self.log_scale = 0.0  # true lengths are length * exp(log_scale) * delta

    def steps(self) -> Iterator[Step]:
        rooted = self.rooted
        if not len(rooted.roots):
            self.utilization = rooted.forced
            yield self._step()
            return
        parent, value = trees.grow(rooted.graph, self.length, rooted.roots, rooted.amount_mbps)
        arcs = len(rooted.capacity_mbps)
        owner = np.arange(len(parent))
        load = trees.mixed(rooted.graph, parent, rooted.amount_mbps, owner, np.ones(len(parent)))
        self.bound = max(self.bound, float(value.sum()) / arcs)
        # demands for which the optimum is at least 1, and doubled while it is found to be above 2
        scale = 1.0 / float((load / rooted.capacity_mbps).max())
        log_delta = -math.log(arcs / (1 - self.epsilon)) / self.epsilon
        patience = 2 * math.ceil(math.log(arcs / (1 - self.epsilon)) / self.epsilon**2)
        phases = 0
        while self._log_volume() + log_delta < 0:
            if not self._phase(scale):
                return
            phases += 1
            yield self._step()
            if phases % patience == 0:
                scale *= 2

    def mix(self) -> Mix | Ways | None:
        """The trees in proportion to how often they were used; None before every root sent once."""
        if not len(self.rooted.roots):
            nothing = np.zeros(0, dtype=np.int64)
            return Ways(pair=nothing, arc=nothing, share=np.zeros(0))
        if np.isinf(self.utilization):
            return None
        owner = np.array(self.owner)
        weight = np.array(self.used)
        return Mix(
            parent=np.stack(self.parent), owner=owner, weight=weight / np.bincount(owner, weight)[owner]
        )

    def _log_volume(self) -> float:
        return math.log(float(self.length @ self.rooted.capacity_mbps)) + self.log_scale

    def _phase(self, scale: float) -> bool:
        """Every root sends `scale` times its demands; False where time ran out."""
        rooted, graph = self.rooted, self.rooted.graph
        worth = 0.0
        for r, root in enumerate(rooted.roots.tolist()):
            left = 1.0
            first = True
            while left > 0:
                if self.until is not None and time.perf_counter() >= self.until:
                    return False
                parent, value, part = _send(
                    graph.first,
                    graph.entering,
                    graph.tail,
                    graph.head,
                    rooted.capacity_mbps,
                    root,
                    rooted.amount_mbps[r],
                    scale,
                    left,
                    self.epsilon,
                    self.length,
                    self.sent[r],
                )
                if first:  # lengths only grow: this is no more than the distances at the phase's end
                    worth += value
                    first = False
                self._use(r, parent, part * scale)
                left = left - part if left - part > 1e-12 else 0.0
            self.times[r] += scale
            if self.length.max() * rooted.capacity_mbps.max() > LARGE:
                self._shrink()
                worth /= LARGE
        volume = float(self.length @ rooted.capacity_mbps)
        self.bound = max(self.bound, worth / volume)
        load = (self.sent / self.times[:, None]).sum(axis=0)
        self.utilization = max(float((load / rooted.capacity_mbps).max()), rooted.forced)
        return True

    def _use(self, row: int, parent: Ints, amount: float) -> None:
        key = (row, parent.tobytes())
        if key not in self.number:
            self.number[key] = len(self.owner)
            self.parent.append(parent)
            self.owner.append(row)
            self.used.append(0.0)
        self.used[self.number[key]] += amount

    def _shrink(self) -> None:
        self.length /= LARGE
        self.log_scale += math.log(LARGE)

    def _step(self) -> Step:
        return Step(
            seconds=time.perf_counter() - self.started,
            what="phase",
            utilization=self.utilization,
            bound=self.bound,
            columns=len(self.owner),
            rows=len(self.length),
        )


@numba.njit(cache=True)
def _send(  # type: ignore[no-untyped-def]
    first, entering, tail, head, capacity, root, amount, scale, left, epsilon, length, sent
):
    """Over the shortest tree, as much of what is left as the tightest link takes; lengths grow in place.

    Returns the tree, what the demands cost over it, and the part sent.
    """
    nodes = len(first) - 1
    distance, carried = np.empty(nodes), amount.copy()
    parent, order = np.empty(nodes, np.int32), np.empty(nodes, np.int32)
    heap, place = np.empty(nodes, np.int32), np.empty(nodes, np.int32)
    reached = settle(first, entering, tail, length, root, distance, parent, order, heap, place)
    part = left
    value = 0.0
    for i in range(reached - 1, 0, -1):
        v = order[i]
        arc = parent[v]
        value += amount[v] * distance[v]
        if carried[v] > 0.0:
            part = min(part, capacity[arc] / (carried[v] * scale))
        carried[head[arc]] += carried[v]
    for i in range(reached - 1, 0, -1):
        arc = parent[order[i]]
        flow = carried[order[i]] * scale * part
        sent[arc] += flow
        length[arc] *= 1.0 + epsilon * flow / capacity[arc]
    return parent, value, part
