"""Local search over link weights for ECMP routing (OSPF, IS-IS weight setting)."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from typing import Annotated, Final, Literal, NamedTuple

import numpy as np
from pydantic import Field

from planner.arrays import Bools, Floats, Ints
from planner.compiled import njit, run_small_in_python
from planner.contract import progress
from planner.contract.design import Decision
from planner.contract.parameters import spread
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import judged
from planner.search.tolerances import INTERIOR_POINT, OPTIMALITY
from planner_models.flows import next_hops
from planner_models.graphs.indexing import sum_by_index
from planner_models.traffic.designs import column_generation
from planner_models.traffic.designs.routable import shed_unreachable
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.plan.references import require_links
from planner_models.traffic.problem.problem import Traffic

Goal = Literal["utilization", "congestion"]

SLOPES: Final = np.array([1.0, 3.0, 10.0, 70.0, 500.0, 5000.0])  # of the congestion cost, by capacity
BREAKPOINTS: Final = np.array([0.0, 1 / 3, 2 / 3, 0.9, 1.0, 1.1])  # utilization from which each slope holds
BOUND_TIME_SHARE: Final = 0.25  # of the time limit, at most, for the bound
BOUND_GAP: Final = INTERIOR_POINT  # of the bound and the least utilization of all routings
OPTIMALITY_GAP: Final = OPTIMALITY
EVALUATIONS_PER_BATCH: Final = 500  # between two checks of the time limit
MIN_STALL_LIMIT: Final = 300  # evaluations without progress before a perturbation, at least
STALL_LIMIT_PER_LINK: Final = 10
PERTURBED_SHARE: Final = 1 / 20  # of the links, in a perturbation
BUSY_LINK_PROBABILITY: Final = 0.5  # that a move changes the busiest of a random sample of links
RANDOM_WEIGHT_PROBABILITY: Final = 0.5  # that a move draws any weight; else a small change
RECOMPUTE_PROBABILITY: Final = 0.001  # per evaluation: sums of loads drift by rounding


@dataclass(frozen=True, kw_only=True)
class SearchLimits:
    """Limits of weights, of their changes and of the search."""

    largest: Annotated[int, Field(gt=1, le=65_535, description="largest weight")] = 30
    evaluations: Annotated[int, Field(ge=0, description="weight settings tried")] = 20_000
    changes: Annotated[
        Annotated[int, Field(ge=0)] | None,
        Field(description="the most links that may change their weight; default: any number"),
    ] = None


@shed_unreachable
@spread(limits=SearchLimits())
def route(
    problem: Traffic,
    *,
    goal: Annotated[
        Goal,
        Field(
            description="utilization: least utilization of the busiest link, then least congestion; "
            "congestion: least sum of a cost that rises steeply with utilization"
        ),
    ] = "utilization",
    limits: SearchLimits,
    seed: Annotated[int, Field(ge=0, description="of the search")] = 0,
    options: Options = Options(),
    previous: Decision[Routing] | None = None,
) -> Decision[Routing]:
    """Search for link weights under which ECMP balances the load (OSPF, IS-IS), by local search.

    Starts from the weights of `previous` where it has any; else from the network's own, or, where
    that is better and changes are free, from weights inverse to capacity. A move changes one weight,
    more often on busy links; after a stall the search restarts from a perturbation of the incumbent.
    Ends after `evaluations`, at the time limit, or at a plan that reaches the bound, with goal "utilization".

    The bound is the least utilization of all routings (concurrent flow by column generation), found first,
    in at most a quarter of the time limit. No weights are better; the difference is what ECMP costs.

    returns  Decision with a Routing that has weights: every demand at its rate; links may be overloaded
    source   Fortz and Thorup 2000 (cost function, neighbourhood of single weight changes)
    """
    deadline = Deadline.of(options)
    bound = _bound_utilization(problem, options)
    largest, changes = limits.largest, limits.changes
    weight = _initial_weights(problem, goal, largest, free=changes is None, previous=previous)
    if len(problem.targets):
        search = _Search(problem, weight, goal, largest, changes, seed)
        remaining = limits.evaluations
        enough = bound * (1 + OPTIMALITY_GAP) if goal == "utilization" and bound is not None else -np.inf
        while remaining > 0 and not deadline.is_over and search.best_score[0] > enough:
            search.run(min(EVALUATIONS_PER_BATCH, remaining))
            remaining -= EVALUATIONS_PER_BATCH
        weight = search.state.best
    return _make_decision(problem, weight, bound)


def _bound_utilization(problem: Traffic, options: Options) -> float | None:
    """Return a lower bound on the utilization of the busiest link under all routings; None for none."""
    if not len(problem.targets):
        return None
    limit = None if options.time_limit_s is None else BOUND_TIME_SHARE * options.time_limit_s
    limited = Options(time_limit_s=limit, threads=options.threads, seed=options.seed, gap=BOUND_GAP)
    with progress.ignore():
        return column_generation.route(problem, objective="utilization", options=limited).proof.bound


def congestion(problem: Traffic, load_mbps: Floats) -> float:
    """Return Fortz and Thorup's cost of a load (E,), Mbit/s: the sum of capacity times a convex function.

    The function of utilization starts with slope 1, changes slope at 1/3, 2/3, 9/10, 1 and 11/10, and
    ends with slope 5,000.
    """
    return float(_congestion(load_mbps, problem.capacity_mbps))


def _initial_weights(
    problem: Traffic, goal: Goal, largest: int, *, free: bool, previous: Decision[Routing] | None
) -> Ints:
    if previous is not None and previous.plan is not None and previous.plan.weights is not None:
        tables = previous.plan.weights
        if (
            len(tables) == len(problem.links)
            and (
                require_links(problem, tables["tail"], tables["head"], tables["parallel"], "weights")
                == np.arange(len(tables))
            ).all()
        ):
            return _integer_weights(tables["weight"].to_numpy(float), largest)
    weights = _integer_weights(problem.weight, largest)
    if not free or not len(problem.targets):
        return weights
    # the same paths, with weights left below and between
    weights = weights * max(1, largest // (3 * int(weights.max())))
    other = _integer_weights(problem.capacity_mbps.max() / problem.capacity_mbps, largest)
    scores = [_Search(problem, weight, goal, largest, None, 0).best_score for weight in (weights, other)]
    return weights if scores[0] <= scores[1] else other


def _integer_weights(weight: Floats, largest: int) -> Ints:
    """Return integers from 1 to `largest` in about the same proportions; integers in range stay."""
    if (weight == np.rint(weight)).all() and weight.max() <= largest:
        return np.asarray(weight, dtype=np.int64)
    scaled = weight / max(weight.min(), weight.max() / largest)
    return np.asarray(np.clip(np.rint(scaled), 1, largest), dtype=np.int64)


def _make_decision(problem: Traffic, weight: Ints, bound: float | None) -> Decision[Routing]:
    tuned = replace(problem, links=problem.links.assign(weight=weight.astype(float)))
    share = next_hops.even_shares(next_hops.find_next_hops(tuned))
    share.data *= np.repeat(problem.rate_mbps, np.diff(share.indptr))
    plain = routing.routing_by_demand(problem, share)
    ends = problem.links[["tail", "head"]].reset_index(drop=True)
    plan = replace(
        plain,
        weights=ends.assign(parallel=problem.parallel, weight=weight.astype(float)),
    )
    value = float(plain.links["utilization"].max())
    is_reached = bound is not None and value <= bound * (1 + OPTIMALITY_GAP)
    proof = judged(
        "min",
        value,
        bound,
        is_optimal=is_reached,
        bound_scope=None if bound is None else "all routings that serve all demand",
        metric="max_utilization",
    )
    return Decision(plan=plan, proof=proof, guarantees=frozenset({"demand"}))


class _Network(NamedTuple):
    """The problem as the search reads it.

    entering, first_entering  links into node v: entering[first_entering[v]:first_entering[v + 1]]
    leaving, first_leaving    links out of node v, likewise
    targets, rate             (D,), (D, N) Mbit/s from each node to each target
    """

    tail: Ints
    head: Ints
    capacity: Floats
    entering: Ints
    first_entering: Ints
    leaving: Ints
    first_leaving: Ints
    targets: Ints
    rate: Floats


class _Rules(NamedTuple):
    """The neighbourhood and the objective of the search."""

    largest_weight: int
    max_changes: int
    by_utilization: bool


class _State(NamedTuple):
    """The state of the search; all arrays change in place.

    origin, weight, best  (E,) weights at the start, now, and of the incumbent
    bank                  (D,) which of the two banks below holds a target's present values
    distance, load        (2, D, N), (2, D, E) distances to and load towards each target
    score, best_score     (utilization, congestion) now, and of the incumbent
    stalled               (1,) evaluations without progress
    """

    origin: Ints
    weight: Ints
    best: Ints
    bank: Ints
    distance: Ints
    load: Floats
    score: Floats
    best_score: Floats
    stalled: Ints


class _Search:
    def __init__(
        self, problem: Traffic, weight: Ints, goal: Goal, largest: int, changes: int | None, seed: int
    ) -> None:
        targets, nodes, links = len(problem.targets), len(problem.nodes), len(problem.links)
        self.random = np.random.default_rng(seed)
        self.rules = _Rules(largest, links if changes is None else changes, goal == "utilization")
        demands = np.flatnonzero(problem.rate_mbps > 0)
        cell = problem.target_row[demands] * nodes + problem.source[demands]
        entering = np.argsort(problem.head, kind="stable")
        leaving = np.argsort(problem.tail, kind="stable")
        firsts = [
            np.searchsorted(end, np.arange(nodes + 1)).astype(np.int64)
            for end in (problem.head[entering], problem.tail[leaving])
        ]
        self.network = _Network(
            tail=problem.tail,
            head=problem.head,
            capacity=problem.capacity_mbps,
            entering=entering,
            first_entering=firsts[0],
            leaving=leaving,
            first_leaving=firsts[1],
            targets=problem.targets,
            rate=sum_by_index(cell, problem.rate_mbps[demands], targets * nodes).reshape(targets, nodes),
        )
        self.state = _State(
            origin=weight.copy(),
            weight=weight.copy(),
            best=weight.copy(),
            bank=np.zeros(targets, dtype=np.int64),
            distance=np.zeros((2, targets, nodes), dtype=np.int64),
            load=np.zeros((2, targets, links)),
            score=np.full(2, np.inf),
            best_score=np.full(2, np.inf),
            stalled=np.zeros(1, dtype=np.int64),
        )
        self.run(0)

    @property
    def best_score(self) -> tuple[float, float]:
        utilization, cost = self.state.best_score
        return float(utilization), float(cost)

    def run(self, evaluations: int) -> None:
        _local_search(self.network, self.rules, self.state, evaluations, self.random)


# --- the search, compiled -----------------------------------------------------------------


@run_small_in_python(max_elements=1_000)
@njit(cache=True)
def _congestion(load, capacity):  # type: ignore[no-untyped-def]
    cost = 0.0
    for e in range(len(load)):
        utilization = load[e] / capacity[e]
        for i in range(len(SLOPES)):
            if utilization <= BREAKPOINTS[i]:
                break
            top = utilization if i + 1 == len(SLOPES) else min(utilization, BREAKPOINTS[i + 1])
            cost += SLOPES[i] * (top - BREAKPOINTS[i]) * capacity[e]
    return cost


@njit(cache=True)
def _route_target(network, weight, d, distance, load):  # type: ignore[no-untyped-def]
    """Compute distances (N,) to target d and the load (E,) of its demands, in place."""
    tail, head, target = network.tail, network.head, network.targets[d]
    distance[:] = np.int64(1) << 60
    load[:] = 0.0
    distance[target] = 0
    queue = [(np.int64(0), np.int64(target))]
    order = np.empty(len(distance), dtype=np.int64)
    is_final = np.zeros(len(distance), dtype=np.bool_)
    count = 0
    while len(queue):
        near, v = heapq.heappop(queue)
        if is_final[v]:
            continue
        is_final[v] = True
        order[count] = v
        count += 1
        for e in network.entering[network.first_entering[v] : network.first_entering[v + 1]]:
            u = tail[e]
            if near + weight[e] < distance[u]:
                distance[u] = near + weight[e]
                heapq.heappush(queue, (distance[u], np.int64(u)))
    passing = network.rate[d].copy()
    for i in range(count - 1, 0, -1):  # farthest first
        v = order[i]
        if passing[v] == 0:
            continue
        links = network.leaving[network.first_leaving[v] : network.first_leaving[v + 1]]
        next_hops = 0
        for e in links:
            next_hops += distance[head[e]] + weight[e] == distance[v]
        for e in links:
            if distance[head[e]] + weight[e] == distance[v]:
                load[e] += passing[v] / next_hops
                passing[head[e]] += passing[v] / next_hops


@njit(cache=True)
def _draw_move(network, rules, weight, total, only_random, random):  # type: ignore[no-untyped-def]
    """Return a link and its new weight."""
    links, largest = len(network.tail), rules.largest_weight
    e = min(int(random.random() * links), links - 1)
    if not only_random and random.random() < BUSY_LINK_PROBABILITY:
        for _ in range(max(3, links // 8)):
            other = min(int(random.random() * links), links - 1)
            if total[other] / network.capacity[other] > total[e] / network.capacity[e]:
                e = other
    if random.random() < RANDOM_WEIGHT_PROBABILITY:
        new = 1 + min(int(random.random() * largest), largest - 1)
    else:
        step = 1 + int(random.random() * max(1.0, largest / 8))
        new = weight[e] + (step if random.random() < 0.5 else -step)
        new = min(max(new, 1), largest)
    if new == weight[e]:
        new = new + 1 if new < largest else new - 1
    return e, new


class _Trial(NamedTuple):
    """A trial of other weights.

    total, load  (E,) loads now and in the trial
    is_affected  (D,) targets whose routes change
    """

    total: Floats
    load: Floats
    is_affected: Bools


@run_small_in_python(max_elements=1_000)
@njit(cache=True)
def _local_search(network, rules, state, evaluations, random):  # type: ignore[no-untyped-def]
    """Try moves, and keep those that are no worse; after a stall, perturb the incumbent."""
    weight, score, best_score, stalled = state.weight, state.score, state.best_score, state.stalled
    links, count = len(network.tail), len(network.targets)
    total = np.zeros(links)
    if np.isinf(score[0]):
        _route_all(network, state)
    _sum_loads(state, total)
    if np.isinf(score[0]):
        score[0] = (total / network.capacity).max()
        score[1] = _congestion(total, network.capacity)
        best_score[:] = score
    changed = (weight != state.origin).sum()
    trial = _Trial(total, total.copy(), np.zeros(count, dtype=np.bool_))
    stall_limit = max(MIN_STALL_LIMIT, STALL_LIMIT_PER_LINK * links)
    for _ in range(evaluations):
        perturb = stalled[0] >= stall_limit
        moves = max(1, int(links * PERTURBED_SHARE)) if perturb else 1
        if perturb:
            stalled[0] = 0
            weight[:] = state.best
            changed = (weight != state.origin).sum()
            _route_all(network, state)
            _sum_loads(state, total)
        for _ in range(moves):
            e, new = _draw_move(network, rules, weight, total, perturb, random)
            new_changed = changed + (new != state.origin[e]) - (weight[e] != state.origin[e])
            if new_changed > rules.max_changes:
                continue
            old = weight[e]
            weight[e] = new
            _try_weight(network, state, trial, e, old)
            utilization = (trial.load / network.capacity).max()
            cost = _congestion(trial.load, network.capacity)
            better, accept = _compare(rules, score, utilization, cost)
            if perturb or accept:
                _accept(state, trial)
                changed = new_changed
                score[0], score[1] = utilization, cost
                stalled[0] = 0 if better else stalled[0] + 1
                if _is_best(rules, best_score, utilization, cost):
                    best_score[:] = score
                    state.best[:] = weight
            else:
                weight[e] = old
                stalled[0] += 1
        if not perturb and random.random() < RECOMPUTE_PROBABILITY:
            _sum_loads(state, total)


@njit(cache=True)
def _route_all(network, state):  # type: ignore[no-untyped-def]
    """Write the distances and loads of all targets under the present weights."""
    for d in range(len(network.targets)):
        b = state.bank[d]
        _route_target(network, state.weight, d, state.distance[b, d], state.load[b, d])


@njit(cache=True)
def _sum_loads(state, total):  # type: ignore[no-untyped-def]
    """Write the present load of links, the sum over targets."""
    total[:] = 0.0
    for d in range(len(state.bank)):
        total += state.load[state.bank[d], d]


@njit(cache=True)
def _try_weight(network, state, trial, e, old):  # type: ignore[no-untyped-def]
    """Write the loads with the new weight of link e, and the routes of the targets that it affects."""
    weight, bank, distance, load = state.weight, state.bank, state.distance, state.load
    new, is_affected = weight[e], trial.is_affected
    trial.load[:] = trial.total
    for d in range(len(bank)):
        now, other = bank[d], 1 - bank[d]
        at_tail, at_head = distance[now, d, network.tail[e]], distance[now, d, network.head[e]]
        is_affected[d] = at_tail == at_head + old if new > old else at_head + new <= at_tail
        if is_affected[d] and network.tail[e] != network.targets[d]:
            _route_target(network, weight, d, distance[other, d], load[other, d])
            trial.load[:] += load[other, d] - load[now, d]
        else:
            is_affected[d] = False


@njit(cache=True)
def _accept(state, trial):  # type: ignore[no-untyped-def]
    """Make the trial the present state."""
    for d in range(len(state.bank)):
        if trial.is_affected[d]:
            state.bank[d] = 1 - state.bank[d]
    trial.total[:] = trial.load


@njit(cache=True)
def _compare(rules, score, utilization, cost):  # type: ignore[no-untyped-def]
    """Return whether a trial is better than the present weights, and whether it is at least no worse."""
    if not rules.by_utilization:
        return cost < score[1] * (1 - 1e-12), cost <= score[1]
    same = abs(utilization - score[0]) <= 1e-12 * score[0]
    better = (utilization < score[0] and not same) or (same and cost < score[1])
    return better, better or (same and cost == score[1])


@njit(cache=True)
def _is_best(rules, best_score, utilization, cost):  # type: ignore[no-untyped-def]
    """Return whether a trial is better than the incumbent."""
    if not rules.by_utilization:
        return cost < best_score[1] * (1 - 1e-12)
    return utilization < best_score[0] * (1 - 1e-12) or (
        utilization <= best_score[0] * (1 + 1e-12) and cost < best_score[1] * (1 - 1e-12)
    )
