"""Outcomes of many failures where routers find shortest paths again: loads, delivered and admitted traffic.

The paths of the network without failures are updated, not searched again, and the routes to a target on which
no failed link has traffic stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.compiled import njit, run_small_in_python
from planner.errors import SolverFailure
from planner.search.tolerances import ROUNDING
from planner.sums import add_up
from planner_models.traffic.plan.reconvergence.drops import (
    MOST_STEPS,
    Loads,
    Routes,
    admit_in_order,
    allocate_lists,
    arriving_load,
    fair_rates,
    list_overloaded,
    solve_drops,
)
from planner_models.traffic.plan.reconvergence.shortest_paths import (
    MAX_MIN,
    Hops,
    Network,
    Trees,
    Ways,
    Work,
    find_trees,
    follow_paths,
    network_of,
    update_paths,
)
from planner_models.traffic.plan.verified_flow import TOLERANCE
from planner_models.traffic.problem.failure_sets import FailureSet
from planner_models.traffic.problem.problem import Traffic

PRECISION: Final = ROUNDING  # of shares of links that overload leaves


class Outcomes(NamedTuple):
    """Outcomes of S failures, traffic in Mbit/s.

    disconnected, sent, delivered, admitted  (S,) traffic without a path; sent; that arrives where links drop
              what overloads them; and that fits where demands are admitted in order, one after the other
    overloaded_links  (S,) number of links with more load than capacity
    max_utilization, busiest  (S,) largest load over capacity, and its link, -1 for none
    min_share  (S,) smallest delivered share of a demand with a path, 1 where there is none
    error     (S,) of the fixed point where it did not converge, else 0
    load      (S, E) loads where no link drops traffic; no rows unless asked for
    by_demand (S, K) delivered traffic; no rows unless asked for
    lost      (K,) sum over failures of probability times traffic that does not arrive
    served    (K,) sum of the probabilities of failures under which all of a demand arrives
    """

    disconnected: Floats
    sent: Floats
    delivered: Floats
    admitted: Floats
    overloaded_links: Ints
    max_utilization: Floats
    busiest: Ints
    min_share: Floats
    error: Floats
    load: Floats
    by_demand: Floats
    lost: Floats
    served: Floats


class Failures(NamedTuple):
    """Failures: failure s takes link[first_link[s]:first_link[s + 1]] down.

    probability  (S,) of each, or () where it is unknown
    """

    first_link: Ints
    link: Ints
    probability: Floats


class Requested(NamedTuple):
    """Outcomes requested besides totals: loads of links, traffic of demands, admission in order."""

    load: bool
    demands: bool
    admission: bool


class _State(NamedTuple):
    """The network after a failure.

    down     (E,) failed links
    reached  (T, N) which nodes have a path
    is_cut   (T,) whether this is not as without failures
    summed   (E,) load of each link
    """

    down: Bools
    reached: Bools
    is_cut: Bools
    summed: Floats


class _Base(NamedTuple):
    """Routes without failures.

    routes   hops of all targets, one after the other, with space after the first `size` for new ones
    first    (T + 1,) hops of target t: first[t]:first[t + 1]
    reached  (T, N) whether a node has a path to the target
    sent     traffic with a path, Mbit/s
    """

    routes: Routes
    first: Ints
    reached: Bools
    sent: float


@njit(cache=True, nogil=True)
def _allocate(nodes, links):  # type: ignore[no-untyped-def]
    return Work(
        np.empty(nodes),
        np.empty(nodes, dtype=np.int64),
        np.zeros(nodes, dtype=np.bool_),
        np.empty(nodes, dtype=np.int64),
        np.full(nodes, -1),
        np.zeros(nodes),
        np.zeros(links),
    )


@njit(cache=True, nogil=True)
def _base_routes(net, trees):  # type: ignore[no-untyped-def]
    targets, size = len(net.targets), int(trees.size.sum())
    space = size + targets * len(net.tail)
    hops, share = np.empty(space, dtype=np.int64), np.empty(space)
    first = np.zeros(targets + 1, dtype=np.int64)
    for t in range(targets):
        first[t + 1] = first[t] + trees.size[t]
        hops[first[t] : first[t + 1]] = trees.hops[t, : trees.size[t]]
        share[first[t] : first[t + 1]] = trees.share[t, : trees.size[t]]
    reached = trees.distance < np.inf
    sent = 0.0
    for g in range(net.rate.shape[0]):
        sent += add_up(np.where(reached, net.rate[g], 0.0).ravel())
    start, stop = np.empty(targets, dtype=np.int64), np.empty(targets, dtype=np.int64)
    return _Base(Routes(hops, share, start, stop), first, reached, sent)


@njit(cache=True, nogil=True)
def _reroute(net, trees, base, failed, state, work):  # type: ignore[no-untyped-def]
    """Write the routes and loads without the failed links; return the traffic that has no path any more.

    failed  links by row, which are `down`
    """
    routes, first, tree_load = base.routes, base.first, trees.load
    hops, share, start, stop = routes.hops, routes.share, routes.start, routes.stop
    down, summed = state.down, state.summed
    end, cut = first[-1], 0.0
    summed[:] = 0.0
    for t in range(len(net.targets)):
        is_changed = False
        for e in failed:
            if tree_load[t, e] > 0:
                is_changed = True
                break
        if not is_changed:
            start[t], stop[t] = first[t], first[t + 1]
            summed += tree_load[t]
            continue
        count = update_paths(net, trees, t, down, work)
        start[t] = end
        ways = Ways(trees.first_way[t], trees.way)
        end += follow_paths(net, t, work, count, down, ways, Hops(hops[end:], share[end:]))
        stop[t] = end
        work.affected[:] = False
        summed += work.load
        if count < trees.number[t]:
            cut = _cut_nodes(net, trees, t, work.settled[:count], state, cut)
    return cut


@njit(cache=True, nogil=True)
def _cut_nodes(net, trees, t, settled, state, cut):  # type: ignore[no-untyped-def]
    """Write which nodes still have a path to target t; return `cut` and the traffic of the others."""
    reached, rate = state.reached, net.rate
    state.is_cut[t] = True
    reached[t] = False
    for v in settled:
        reached[t, v] = True
    for v in range(reached.shape[1]):
        if not reached[t, v] and trees.distance[t, v] < np.inf:
            for g in range(len(rate)):
                cut += rate[g, t, v]
    return cut


@njit(cache=True, nogil=True)
def _drop_overload(net, routes, summed, total, passed):  # type: ignore[no-untyped-def]
    """Write the shares that links pass on, (G, E); return the error of their fixed point.

    summed  (E,) loads where no link drops traffic; `total` (G, E) becomes those of each layer
    """
    layers, links = passed.shape
    amount_at = np.empty(len(net.first_leaving) - 1)
    passed[:] = 1.0
    if layers == 1:
        total[0] = summed
    else:
        total[:] = 0.0
        for g in range(layers):
            arriving_load(net, g, routes, passed[g], amount_at, total[g])
    loads = Loads(total, np.zeros(links), passed, np.zeros((layers, links)), np.zeros(layers))
    first, largest = np.int64(0), 0.0  # a plain 0 would compile `solve_drops` once more, for that constant
    while first < layers:
        stop = first
        while stop < layers and net.level[stop] == net.level[first]:
            stop += 1
        error = solve_drops(net, routes, loads, first, stop)
        largest = max(largest, error)
        first = stop
    return largest


@njit(cache=True, nogil=True)
def _find_arriving(net, routes, passed, reached, arrives):  # type: ignore[no-untyped-def]
    """Write the share of the traffic of each layer, target and node that arrives, (G, T, N).

    Returns the delivered traffic, and the smallest share of a demand with a path.
    """
    tail, head, rate = net.tail, net.head, net.rate
    hops, share, start, stop = routes.hops, routes.share, routes.start, routes.stop
    delivered, smallest = 0.0, 1.0
    for g in range(arrives.shape[0]):
        for t in range(arrives.shape[1]):
            arriving = arrives[g, t]
            arriving[:] = 0.0
            arriving[net.targets[t]] = 1.0
            for i in range(stop[t] - 1, start[t] - 1, -1):
                e = hops[i]
                arriving[tail[e]] += share[i] * passed[g, e] * arriving[head[e]]
            for v in range(len(arriving)):
                if rate[g, t, v] > 0 and reached[t, v]:
                    arriving[v] = min(arriving[v], 1.0)
                    delivered += rate[g, t, v] * arriving[v]
                    smallest = min(smallest, arriving[v])
    return delivered, smallest


@njit(cache=True, nogil=True)
def _share_by_demand(net, reached, overload, arrives, slowed, share):  # type: ignore[no-untyped-def]
    """Write the share of each demand that arrives, (K,); return the smallest one of those with a path.

    overload  how links are shared after this failure; -1 where none is overloaded
    arrives   (G, T, N) shares where links drop traffic; `slowed` (K,) rates where sources slow down
    """
    row, source, rate, layer = net.row, net.source, net.demand_rate, net.layer
    smallest = 1.0
    for k in range(len(source)):
        share[k] = 0.0
        if rate[k] > 0 and reached[row[k], source[k]]:
            share[k] = 1.0
            if overload == MAX_MIN:
                share[k] = min(slowed[k] / rate[k], 1.0)
            elif overload >= 0:
                share[k] = arrives[layer[k], row[k], source[k]]
            smallest = min(smallest, share[k])
    return smallest


@run_small_in_python(max_elements=8_000, max_s=5.0)
@njit(cache=True, nogil=True)
def evaluate(net, trees, failures, requested):  # type: ignore[no-untyped-def]  # noqa: C901 - one compiled loop
    """Return the outcomes of failures."""
    first_link, probability = failures.first_link, failures.probability
    links, targets, demands = len(net.tail), len(net.targets), len(net.source)
    nodes, layers = len(net.first_leaving) - 1, net.rate.shape[0]
    out = _allocate_outcomes(len(first_link) - 1, links, demands, requested)
    work, base = _allocate(nodes, links), _base_routes(net, trees)
    state = _State(
        np.zeros(links, dtype=np.bool_),
        base.reached.copy(),
        np.zeros(targets, dtype=np.bool_),
        np.zeros(links),
    )
    reached, summed = state.reached, state.summed
    total, passed = np.zeros((layers, links)), np.ones((layers, links))
    arrives = np.zeros((layers, targets, nodes))
    slowed, share = np.zeros(0), np.zeros(demands)
    lists = allocate_lists(targets, nodes, links)
    offered = add_up(net.demand_rate)
    limit = net.capacity * (1 + TOLERANCE)
    for s in range(len(first_link) - 1):
        failed = failures.link[first_link[s] : first_link[s + 1]]
        state.down[failed] = True
        cut = _reroute(net, trees, base, failed, state, work)
        sent = max(base.sent - cut, 0.0)
        out.sent[s], out.disconnected[s] = sent, max(offered - sent, 0.0)
        for e in range(links):
            if summed[e] > out.max_utilization[s] * net.capacity[e]:
                out.max_utilization[s], out.busiest[s] = summed[e] / net.capacity[e], e
        if requested.load:
            out.load[s] = summed
        out.delivered[s] = out.admitted[s] = sent
        over = summed > limit
        out.overloaded_links[s] = over.sum()
        overload = net.overload if out.overloaded_links[s] else -1
        if overload >= 0 and (requested.admission or overload == MAX_MIN):
            lists = list_overloaded(net, base.routes, over, lists)
        if overload >= 0 and requested.admission:
            out.admitted[s] = admit_in_order(net, lists, reached, net.capacity.copy())
        if overload == MAX_MIN:
            slowed = fair_rates(net, lists, reached)
            out.delivered[s] = add_up(slowed)
        elif overload >= 0:
            out.error[s] = _drop_overload(net, base.routes, summed, total, passed)
            delivered, out.min_share[s] = _find_arriving(net, base.routes, passed, reached, arrives)
            out.delivered[s] = min(delivered, sent)
        if requested.demands or len(probability) or overload == MAX_MIN:
            out.min_share[s] = _share_by_demand(net, reached, overload, arrives, slowed, share)
        if requested.demands:
            out.by_demand[s] = share * net.demand_rate
        if len(probability):
            out.lost[:] += probability[s] * (1 - share) * net.demand_rate
            out.served[:] += probability[s] * (share >= 1 - TOLERANCE)
        _restore(base, state, failed)
    return out


@njit(cache=True, nogil=True)
def _allocate_outcomes(failures, links, demands, requested):  # type: ignore[no-untyped-def]
    return Outcomes(
        np.zeros(failures), np.zeros(failures), np.zeros(failures), np.zeros(failures),
        np.zeros(failures, dtype=np.int64), np.zeros(failures), np.full(failures, -1), np.ones(failures),
        np.zeros(failures), np.zeros((failures if requested.load else 0, links)),
        np.zeros((failures if requested.demands else 0, demands)),
        np.zeros(demands), np.zeros(demands),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _restore(base, state, failed):  # type: ignore[no-untyped-def]
    """Make the state that without failures again."""
    state.down[failed] = False
    for t in range(len(state.is_cut)):
        if state.is_cut[t]:
            state.is_cut[t] = False
            state.reached[t] = base.reached[t]


@dataclass(frozen=True, kw_only=True, eq=False)
class ShortestPathRouting:
    """All traffic of a problem on shortest paths.

    weight     (E,) link weights; None: those of the problem
    is_single  whether all traffic takes one of equally short paths, not equal parts
    """

    problem: Traffic
    weight: Floats | None = None
    is_single: bool = False

    @cached_property
    def network(self) -> Network:
        """The problem as arrays."""
        return network_of(self.problem, weight=self.weight, is_single=self.is_single)

    @cached_property
    def trees(self) -> Trees:
        """The shortest paths without failures."""
        return Trees(*find_trees(self.network))

    def solve(
        self,
        failures: FailureSet,
        *,
        with_loads: bool = False,
        with_demands: bool = False,
        with_admission: bool = True,
    ) -> Outcomes:
        """Return the outcomes of failures.

        raises  SolverFailure where the shares that links pass do not converge
        """
        probability = np.zeros(0) if failures.probability is None else failures.probability
        outcomes = Outcomes(
            *evaluate(
                self.network,
                self.trees,
                Failures(failures.start, failures.link, probability),
                Requested(with_loads, with_demands, with_admission),
            )
        )
        error = float(outcomes.error.max(initial=0.0))
        if error > PRECISION:
            name = failures.names[int(np.argmax(outcomes.error))]
            raise SolverFailure(
                f"delivered traffic after the failure of {name}: {MOST_STEPS} steps leave an error of "
                f"{error:.1e}"
            )
        return outcomes
