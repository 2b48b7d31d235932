"""Analysis of failures after which a controller routes again for the most delivered traffic.

The best plan without failures is the start of all: a failure of links without load changes nothing. On large
networks the simplex method over paths goes on from the basis of that plan, with the failed links at a price
that no traffic pays. On small ones, and under limits of routes, the traffic that rode the failed links is
routed over what is left of the capacities, each demand over shortest paths with free capacity. Where that
reaches the bound, it is optimal: no failure delivers more than the network without it, nor traffic that has
no path. Only the other failures need the design's own search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.compiled import inner, njit, run_small_in_python
from planner.contract.design import Decision
from planner.contract.failure_analysis import FailureOutcome
from planner.contract.studies import Section
from planner.errors import InputError
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.tolerances import NEGLIGIBLE, OPTIMALITY
from planner_models.flows import total_flow
from planner_models.flows.augmented_lagrangian import TotalFlow
from planner_models.flows.least_cost_flow import LeastCostFlow
from planner_models.flows.total_flow import MAX_SIMPLEX_LINKS, PASSES_BEFORE_SIMPLEX
from planner_models.graphs.binary_heap import pop_heap, push_heap
from planner_models.graphs.indexing import sum_by_index
from planner_models.traffic.designs.optimum import optimum, optimum_search
from planner_models.traffic.plan.availability import availability_tables, outcome_of
from planner_models.traffic.plan.delivery import delivered_rates
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.plan.reconvergence.shortest_paths import Network, network_of
from planner_models.traffic.plan.rerouting import survive
from planner_models.traffic.plan.verified_flow import TOLERANCE, VerifiedFlow, verify_flow
from planner_models.traffic.problem.failure_sets import FailureSet
from planner_models.traffic.problem.failures import remove_failed
from planner_models.traffic.problem.problem import Traffic

GAP: Final = OPTIMALITY  # of all offered traffic, within which a plan is optimal
SMALLEST: Final = NEGLIGIBLE  # of a link's capacity or a demand's rate: less is none


class _Tree(NamedTuple):
    """Work space of a search: distances of nodes, the link into each, and a heap with its positions."""

    distance: Floats
    parent: Ints
    heap: Ints
    position: Ints


@run_small_in_python(max_elements=1_000)
@njit(cache=True, nogil=True)
def reroute(net, targets, demands, amount, residual, down):  # type: ignore[no-untyped-def]
    """Return the part of each of some demands that fits on shortest paths with free capacity, (n,), Mbit/s.

    targets   (K,) node where each demand ends
    demands   (n,) demands in the order in which they are routed, and `amount` (n,) of each
    residual  (E,) free capacity, which is used up
    down      (E,) links that have failed
    """
    nodes = len(net.first_leaving) - 1
    heap, position = np.empty(nodes, dtype=np.int64), np.full(nodes, -1)
    tree = _Tree(np.full(nodes, np.inf), np.full(nodes, -1), heap, position)
    routed = np.zeros(len(demands))
    for i in range(len(demands)):
        source, target = net.source[demands[i]], targets[demands[i]]
        remaining = amount[i]
        while remaining > SMALLEST * net.demand_rate[demands[i]]:
            _find_path(net, source, target, residual, down, tree)
            if tree.distance[target] == np.inf:
                break
            fits = remaining
            v = target
            while v != source:
                fits = min(fits, residual[tree.parent[v]])
                v = net.tail[tree.parent[v]]
            v = target
            while v != source:
                residual[tree.parent[v]] -= fits
                v = net.tail[tree.parent[v]]
            remaining -= fits
            routed[i] += fits
    return routed


@inner
def _find_path(net: Any, source: int, target: int, residual: Floats, down: Bools, tree: _Tree) -> None:
    """Find the shortest path from a source to a target over links with free capacity."""
    distance, heap, position = tree.distance, tree.heap, tree.position
    distance[:] = np.inf
    position[:] = -1
    distance[source] = 0.0
    size = push_heap(heap, distance, position, 0, source)
    while size:
        v, size = pop_heap(heap, distance, position, size)
        if v == target:
            return
        for j in range(net.first_leaving[v], net.first_leaving[v + 1]):
            e = net.leaving[j]
            w = net.head[e]
            if down[e] or residual[e] <= SMALLEST * net.capacity[e]:
                continue
            if distance[v] + net.weight[e] < distance[w]:
                distance[w] = distance[v] + net.weight[e]
                tree.parent[w] = e
                size = push_heap(heap, distance, position, size, w)


class _Outcome(NamedTuple):
    """Delivered traffic of demands after a failure, (K,), loads of links, (E,), and a bound on the total."""

    delivered_mbps: Floats
    load_mbps: Floats
    bound_mbps: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Reoptimization:
    """Analysis with a controller that routes again after a failure, for the most delivered traffic."""

    problem: Traffic
    failures: FailureSet
    options: Options = field(default_factory=Options)

    @property
    def about(self) -> str:
        """Restoration after a failure, in one sentence."""
        return "a controller routes again for the most delivered traffic"

    @cached_property
    def basis(self) -> LeastCostFlow | None:
        """The largest total flow without failures; None where the design finds it by another way."""
        problem = self.problem
        is_small = len(problem.links) <= MAX_SIMPLEX_LINKS and len(problem.routable.targets) > 0
        if not is_small or not optimum_search.solves_total_over_paths(problem, self.options):
            return None
        search = TotalFlow(problem.routable)
        for state in search.run(gap=total_flow.DEFAULT_GAP, deadline=Deadline.of(self.options)):
            if state.passes >= PASSES_BEFORE_SIMPLEX:
                break
        simplex = LeastCostFlow(problem.routable)
        return simplex if simplex.deliver_most(Deadline.of(self.options), search.path_flow()) else None

    @cached_property
    def intact(self) -> _Outcome:
        """The most delivered traffic without failures.

        raises  InputError where no plan was found
        """
        if self.basis is not None:
            return self._outcome_of(self.basis)
        flow = self.flow
        proof = self.decision.proof
        upper = proof.bound if proof.metric == "delivered_mbps" and proof.bound is not None else np.inf
        bound = float(min(upper, self.problem.rate_mbps.sum()))
        return _Outcome(delivered_rates(self.problem, flow), flow.load_mbps, bound)

    def __getstate__(self) -> dict[str, object]:
        """Return the state that another process needs: the plan without failures is found once, here."""
        _ = self.intact
        return self.__dict__

    @cached_property
    def decision(self) -> Decision[Routing]:
        """The best plan without failures.

        raises  InputError where no plan was found
        """
        decision = optimum.route(self.problem, objective="delivered", options=self.options)
        if decision.plan is None:
            raise InputError("restoration reoptimize: no plan was found for the network without failures")
        return decision

    @cached_property
    def flow(self) -> VerifiedFlow:
        """The flow of the best plan without failures."""
        plan = self.decision.plan
        assert plan is not None
        return verify_flow(self.problem, plan)

    @cached_property
    def network(self) -> Network:
        """The problem as arrays."""
        return network_of(self.problem)

    def busiest_first(self) -> Ints:
        """Return the failures by row, those that hit most traffic first."""
        failures = self.failures
        rows = np.repeat(np.arange(len(failures)), np.diff(failures.start))
        return np.argsort(
            -sum_by_index(rows, self.intact.load_mbps[failures.link], len(failures)), kind="stable"
        )

    def evaluate(self, rows: Ints) -> tuple[list[FailureOutcome], tuple[Floats, Floats]]:
        """Return the outcomes of some failures, and for each demand expected loss and availability, (K,)."""
        demands, probability = len(self.problem.demands), self.failures.probability
        outcomes, sums = [], (np.zeros(demands), np.zeros(demands))
        for row in rows.tolist():
            down = np.zeros(len(self.problem.links), dtype=bool)
            down[self.failures.link[self.failures.start[row] : self.failures.start[row + 1]]] = True
            outcomes.append(self._describe(down, sums, 0.0 if probability is None else probability[row]))
        return outcomes, sums

    def _describe(self, down: Bools, sums: tuple[Floats, Floats], probability: float) -> FailureOutcome:
        delivered, load, bound = self._solve(down)
        rate, capacity = self.problem.rate_mbps, self.problem.capacity_mbps
        sums[0][:] += probability * (rate - delivered)
        sums[1][:] += probability * (delivered >= rate * (1 - TOLERANCE))
        use = load / capacity
        busiest = int(np.argmax(use)) if len(use) else -1
        offered, arrives = float(rate.sum()), float(delivered.sum())
        outcome = outcome_of(
            offered=offered,
            delivered=arrives,
            lost=0.0,
            shed=offered - arrives if offered - arrives > GAP * offered else 0.0,
            admitted=None,
            overloaded_links=int((use > 1 + TOLERANCE).sum()),
            fullest=(
                self.problem.link_labels[busiest] if busiest >= 0 and use[busiest] > 0 else None,
                float(use[busiest]) if busiest >= 0 else 0.0,
            ),
        )
        return replace(outcome, figures={**outcome.figures, "bound_mbps": max(bound, arrives)})

    def _solve(self, down: Bools) -> _Outcome:
        """Return the most delivered traffic without some links, (E,)."""
        if not (self.intact.load_mbps[down] > 0).any():
            return self.intact
        if self.basis is not None:
            search = self.basis.without_links(down)
            if search.continue_search(Deadline.of(self.options)):
                return self._outcome_of(search)
        return self._solve_again(down)

    def _outcome_of(self, search: LeastCostFlow) -> _Outcome:
        """Return the outcome that the simplex method over paths found."""
        path_flow, problem = search.path_flow(), self.problem
        order = search.order[path_flow.demand]
        delivered = sum_by_index(order, path_flow.flow, len(problem.demands))
        hops = path_flow.end - path_flow.start
        entry = np.arange(hops.sum()) + np.repeat(path_flow.start - np.cumsum(hops) + hops, hops)
        load = sum_by_index(path_flow.link[entry], np.repeat(path_flow.flow, hops), len(problem.links))
        return _Outcome(np.minimum(delivered, problem.rate_mbps), load, search.total_bound_mbps())

    def _solve_again(self, down: Bools) -> _Outcome:
        """Return the outcome after the traffic of failed links, (E,), is routed again, or all traffic."""
        problem, flow = self.problem, self.flow
        offered = float(problem.rate_mbps.sum())
        lost = problem.disconnected_demands(~down)
        bound = min(self.intact.bound_mbps, float(problem.rate_mbps[~lost].sum()))
        surviving = survive(problem, flow, down)
        load = np.asarray(surviving.flow_mbps.sum(axis=0)).ravel()
        missing = np.where(lost, 0.0, problem.rate_mbps - surviving.served_mbps)
        moved = np.flatnonzero(missing > SMALLEST * problem.rate_mbps)
        moved = moved[np.argsort(-missing[moved], kind="stable")]
        residual = np.where(down, 0.0, np.maximum(problem.capacity_mbps - load, 0.0))
        free = residual.copy()
        routed = reroute(self.network, problem.target, moved, missing[moved], residual, down)
        delivered = surviving.served_mbps.copy()
        delivered[moved] += routed
        load = load + free - residual
        if bound - float(delivered.sum()) <= GAP * offered:
            return _Outcome(delivered, load, bound)
        again = self._decide_again(down)
        bound = min(bound, again.bound_mbps)
        if float(again.delivered_mbps.sum()) < float(delivered.sum()):
            return _Outcome(delivered, load, bound)
        return again._replace(bound_mbps=bound)

    def _decide_again(self, down: Bools) -> _Outcome:
        """Return the outcome of the design on the failed network."""
        load = np.zeros(len(down))
        if down.all():
            return _Outcome(np.zeros(len(self.problem.demands)), load, 0.0)
        failed = remove_failed(self.problem, down, np.ones(len(down)), "shed")
        decision = optimum.route(failed, objective="delivered", options=self.options)
        proof = decision.proof
        bound = proof.bound if proof.metric == "delivered_mbps" and proof.bound is not None else np.inf
        if decision.plan is None:
            return _Outcome(np.zeros(len(self.problem.demands)), load, bound)
        flow = verify_flow(failed, decision.plan)
        load[~down] = flow.load_mbps
        return _Outcome(delivered_rates(failed, flow), load, bound)

    def conclude(self, parts: Sequence[tuple[Floats, Floats]]) -> Sequence[Section]:
        """Return expected losses and availabilities where failures have probabilities."""
        none = self.failures.probability_of_none
        if none is None:
            return ()
        intact = np.zeros(len(self.problem.demands)), np.zeros(len(self.problem.demands))
        self._describe(np.zeros(len(self.problem.links), dtype=bool), intact, none)
        lost, served = (
            np.sum([intact[index], *(outcome[index] for outcome in parts)], axis=0) for index in (0, 1)
        )
        return availability_tables(self.problem, lost, served)
