"""Link weights tuned so that plain ECMP routing carries the demands well."""

from __future__ import annotations

import heapq
import time
from dataclasses import dataclass, replace
from typing import Annotated, Final, Literal

import numba
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field

from planner.options import Options
from planner.proof import Proof, Status
from planner.system import Decision
from planner.tables import Table, label, number
from planner_models.traffic import next_hops, routing
from planner_models.traffic.problem import Traffic, totals
from planner_models.traffic.routing import Routing

Goal = Literal["utilization", "congestion"]

WEIGHTS: Final = Table(
    name="weights",
    about="the routing metric to configure on each link",
    columns={
        "tail": label("node where the link starts"),
        "head": label("node where the link ends"),
        "parallel": number(
            "which of the links from tail to head, from 1", at_least=1, optional=True, default=1.0
        ),
        "weight": number("routing metric", more_than=0),
    },
)

SLOPES: Final = np.array([1.0, 3.0, 10.0, 70.0, 500.0, 5000.0])
BENDS: Final = np.array([0.0, 1 / 3, 2 / 3, 0.9, 1.0, 1.1])
CHUNK: Final = 500  # evaluations between two looks at the clock


@dataclass(frozen=True, kw_only=True, eq=False)
class Weighted(Routing):
    """A routing that link weights bring about.

    weights  tail, head, parallel, weight: a row for each link of the network
    """

    weights: pd.DataFrame

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """flows, links and weights."""
        return {**super().to_tables(), "weights": self.weights}


def route(
    problem: Traffic,
    *,
    goal: Annotated[
        Goal,
        Field(
            description="utilization: the least busiest link, congestion where that is the same; "
            "congestion: the least sum of a cost that rises steeply with utilization"
        ),
    ] = "utilization",
    largest: Annotated[int, Field(gt=1, le=65_535, description="largest weight")] = 30,
    evaluations: Annotated[int, Field(ge=0, description="weight settings tried")] = 20_000,
    changes: Annotated[
        Annotated[int, Field(ge=0)] | None,
        Field(description="the most links whose weight may differ from what it was; default: any number"),
    ] = None,
    seed: Annotated[int, Field(ge=0, description="the search's draws")] = 0,
    options: Options = Options(),
    previous: Decision[Routing] | None = None,
) -> Decision[Routing]:
    """Local search over link weights for routing with even splits over shortest paths (OSPF, IS-IS).

    Starts from the weights of `previous` where it has any; else from the network's own, or, where
    that is better and changes are free, from weights inverse to capacity. Tries single weights, on
    busy links more often, and shakes some of the best setting's when nothing helps any more. Ends after
    `evaluations` or the time limit; it proves no bound.

    returns  Decision with a `Weighted` plan: every demand at its rate; links may be overloaded
    source   Fortz and Thorup 2000 (cost function, neighbourhood of single weight changes)
    """
    start = time.perf_counter()
    until = np.inf if options.time_limit_s is None else start + options.time_limit_s
    weight = _start(problem, goal, largest, free=changes is None, previous=previous)
    if len(problem.targets):
        search = _Search(problem, weight, goal, largest, changes, seed)
        left = evaluations
        while left > 0 and time.perf_counter() < until:
            search.run(min(CHUNK, left))
            left -= CHUNK
        weight = search.best
    return _decision(problem, weight, start)


def congestion(problem: Traffic, load_mbps: NDArray[np.float64]) -> float:
    """Fortz and Thorup's cost of a load (E,), Mbit/s: the sum of capacity times a convex function.

    The function of utilization starts with slope 1, bends up at 1/3, 2/3, 9/10, 1 and 11/10, and ends
    with slope 5,000.
    """
    return float(_congestion(load_mbps, problem.capacity_mbps, SLOPES, BENDS))


def _start(
    problem: Traffic, goal: Goal, largest: int, *, free: bool, previous: Decision[Routing] | None
) -> NDArray[np.int64]:
    if previous is not None and isinstance(previous.plan, Weighted):
        tables = previous.plan.weights
        if (
            len(tables) == len(problem.links)
            and (
                routing.links_of(problem, tables["tail"], tables["head"], tables["parallel"], "weights")
                == np.arange(len(tables))
            ).all()
        ):
            return _whole(tables["weight"].to_numpy(float), largest)
    own = _whole(problem.weight, largest)
    if not free or not len(problem.targets):
        return own
    # the same routes, with room for weights below and between
    own = own * max(1, largest // (3 * int(own.max())))
    other = _whole(problem.capacity_mbps.max() / problem.capacity_mbps, largest)
    scores = [_Search(problem, weight, goal, largest, None, 0).score for weight in (own, other)]
    return own if scores[0] <= scores[1] else other


def _whole(weight: NDArray[np.float64], largest: int) -> NDArray[np.int64]:
    """Whole numbers from 1 to `largest` in about the same proportions; whole ones that fit stay."""
    if (weight == np.rint(weight)).all() and weight.max() <= largest:
        return np.asarray(weight, dtype=np.int64)
    scaled = weight / max(weight.min(), weight.max() / largest)
    return np.asarray(np.clip(np.rint(scaled), 1, largest), dtype=np.int64)


def _decision(problem: Traffic, weight: NDArray[np.int64], start: float) -> Decision[Routing]:
    tuned = replace(problem, links=problem.links.assign(weight=weight.astype(float)))
    share = next_hops.even_shares(tuned, next_hops.of(tuned))
    share.data *= np.repeat(problem.rate_mbps, np.diff(share.indptr))
    plain = routing.by_pair(problem, share)
    ends = problem.links[["tail", "head"]].reset_index(drop=True)
    plan = Weighted(
        flows=plain.flows,
        links=plain.links,
        weights=ends.assign(parallel=problem.parallel, weight=weight.astype(float)),
    )
    proof = Proof(
        status=Status.FEASIBLE,
        objective=float(plain.links["utilization"].max()),
        metric="max_utilization",
        seconds=time.perf_counter() - start,
    )
    return Decision(plan=plan, proof=proof, keeps=frozenset({"demand"}))


class _Search:
    """The weights as they are, what they cost, and the best so far."""

    def __init__(
        self,
        problem: Traffic,
        weight: NDArray[np.int64],
        goal: Goal,
        largest: int,
        changes: int | None,
        seed: int,
    ) -> None:
        targets, nodes, links = len(problem.targets), len(problem.nodes), len(problem.links)
        self.random = np.random.default_rng(seed)
        self.limit = links if changes is None else changes
        self.by_use, self.largest = goal == "utilization", largest
        entering = np.argsort(problem.head, kind="stable")
        leaving = np.argsort(problem.tail, kind="stable")
        into = np.searchsorted(problem.head[entering], np.arange(nodes + 1))
        out = np.searchsorted(problem.tail[leaving], np.arange(nodes + 1))
        self.network = (
            problem.tail,
            problem.head,
            problem.capacity_mbps,
            entering,
            into.astype(np.int64),
            leaving,
            out.astype(np.int64),
            problem.targets,
        )
        wanted = np.flatnonzero(problem.rate_mbps > 0)
        place = np.searchsorted(problem.targets, problem.target[wanted]) * nodes + problem.source[wanted]
        self.wants = totals(place, problem.rate_mbps[wanted], targets * nodes).reshape(targets, nodes)
        self.origin, self.weight, self.best = weight.copy(), weight.copy(), weight.copy()
        # two banks of distances and loads for each target: what holds, and what is being tried
        self.bank = np.zeros(targets, dtype=np.int64)
        self.distance = np.zeros((2, targets, nodes), dtype=np.int64)
        self.load = np.zeros((2, targets, links))
        self.state = np.array([np.inf, np.inf, np.inf, np.inf, 0.0])
        self.run(0)

    @property
    def score(self) -> tuple[float, float]:
        return (float(self.state[2]), float(self.state[3]))

    def run(self, evaluations: int) -> None:
        _improve(
            *self.network,
            self.wants,
            self.origin,
            self.weight,
            self.best,
            self.bank,
            self.distance,
            self.load,
            self.state,
            evaluations,
            self.limit,
            self.largest,
            self.by_use,
            SLOPES,
            BENDS,
            self.random,
        )


# --- the search, compiled -----------------------------------------------------------------


@numba.njit(cache=True)
def _congestion(load, capacity, slopes, bends):  # type: ignore[no-untyped-def]
    cost = 0.0
    for e in range(len(load)):
        use = load[e] / capacity[e]
        for i in range(len(slopes)):
            if use <= bends[i]:
                break
            top = use if i + 1 == len(slopes) else min(use, bends[i + 1])
            cost += slopes[i] * (top - bends[i]) * capacity[e]
    return cost


@numba.njit(cache=True)
def _one_target(target, wants, weight, tail, head, entering, into, leaving, out, distance, load):  # type: ignore[no-untyped-def]
    """Distances to `target` (N,) and the load of what wants to go there (E,), in place."""
    far = np.int64(1) << 60
    distance[:] = far
    load[:] = 0.0
    distance[target] = 0
    queue = [(np.int64(0), np.int64(target))]
    order = np.empty(len(distance), dtype=np.int64)
    settled = np.zeros(len(distance), dtype=np.bool_)
    count = 0
    while len(queue):
        near, v = heapq.heappop(queue)
        if settled[v]:
            continue
        settled[v] = True
        order[count] = v
        count += 1
        for e in entering[into[v] : into[v + 1]]:
            u = tail[e]
            if near + weight[e] < distance[u]:
                distance[u] = near + weight[e]
                heapq.heappush(queue, (distance[u], np.int64(u)))
    passing = wants.copy()
    for i in range(count - 1, 0, -1):  # in the order of settling, farthest first
        v = order[i]
        if passing[v] == 0:
            continue
        ways = 0
        for e in leaving[out[v] : out[v + 1]]:
            ways += distance[head[e]] + weight[e] == distance[v]
        for e in leaving[out[v] : out[v + 1]]:
            if distance[head[e]] + weight[e] == distance[v]:
                load[e] += passing[v] / ways
                passing[head[e]] += passing[v] / ways


@numba.njit(cache=True)
def _improve(  # type: ignore[no-untyped-def]  # noqa: C901 - one compiled loop
    tail,
    head,
    capacity,
    entering,
    into,
    leaving,
    out,
    targets,
    wants,
    origin,
    weight,
    best,
    bank,
    distance,
    load,
    state,
    evaluations,
    limit,
    largest,
    by_use,
    slopes,
    bends,
    random,
):
    """`state` is (use, cost) as it is, (use, cost) of the best, and evaluations without progress."""
    links, count = len(tail), len(targets)
    total = np.zeros(links)
    if np.isinf(state[0]):
        for d in range(count):
            _one_target(
                targets[d], wants[d], weight, tail, head, entering, into, leaving, out,
                distance[0, d], load[0, d],
            )  # fmt: skip
    for d in range(count):
        total += load[bank[d], d]
    if np.isinf(state[0]):
        state[0] = (total / capacity).max()
        state[1] = _congestion(total, capacity, slopes, bends)
        state[2:4] = state[0:2]
    touched = np.zeros(count, dtype=np.bool_)
    changed = (weight != origin).sum()
    trial = total.copy()
    patience = max(300, 10 * links)
    for _ in range(evaluations):
        shake = state[4] >= patience
        moves = max(1, links // 20) if shake else 1
        if shake:  # not too far from the best so far
            state[4] = 0
            weight[:] = best
            changed = (weight != origin).sum()
            total[:] = 0.0
            for d in range(count):
                held = bank[d]
                _one_target(
                    targets[d], wants[d], weight, tail, head, entering, into, leaving, out,
                    distance[held, d], load[held, d],
                )  # fmt: skip
                total += load[held, d]
        for _ in range(moves):
            e = min(int(random.random() * links), links - 1)
            if not shake and random.random() < 0.5:
                # one of the busiest of a few links drawn
                for _ in range(max(3, links // 8)):
                    other = min(int(random.random() * links), links - 1)
                    if total[other] / capacity[other] > total[e] / capacity[e]:
                        e = other
            if random.random() < 0.5:  # anything
                new = 1 + min(int(random.random() * largest), largest - 1)
            else:  # a little more or less
                reach = max(1.0, largest / 8)
                step = 1 + int(random.random() * reach)
                new = weight[e] + (step if random.random() < 0.5 else -step)
                new = min(max(new, 1), largest)
            if new == weight[e]:
                new = new + 1 if new < largest else new - 1
            grows = changed + (new != origin[e]) - (weight[e] != origin[e])
            if grows > limit:
                # full up: only a weight that may move back
                continue
            old = weight[e]
            weight[e] = new
            trial[:] = total
            for d in range(count):
                held = bank[d]
                a, b = distance[held, d, tail[e]], distance[held, d, head[e]]
                touched[d] = a == b + old if new > old else b + new <= a
                if touched[d] and tail[e] != targets[d]:
                    spare = 1 - held
                    _one_target(
                        targets[d], wants[d], weight, tail, head, entering, into, leaving, out,
                        distance[spare, d], load[spare, d],
                    )  # fmt: skip
                    trial += load[spare, d] - load[held, d]
                else:
                    touched[d] = False
            use = (trial / capacity).max()
            cost = _congestion(trial, capacity, slopes, bends)
            if by_use:
                same = abs(use - state[0]) <= 1e-12 * state[0]
                better = (use < state[0] and not same) or (same and cost < state[1])
                keep = better or (same and cost == state[1])
            else:
                better = cost < state[1] * (1 - 1e-12)
                keep = cost <= state[1]
            if shake or keep:
                for d in range(count):
                    if touched[d]:
                        bank[d] = 1 - bank[d]
                total[:] = trial
                changed = grows
                state[0], state[1] = use, cost
                state[4] = 0 if better else state[4] + 1
                if by_use:
                    record = use < state[2] * (1 - 1e-12) or (
                        use <= state[2] * (1 + 1e-12) and cost < state[3] * (1 - 1e-12)
                    )
                else:
                    record = cost < state[3] * (1 - 1e-12)
                if record:
                    state[2], state[3] = use, cost
                    best[:] = weight
            else:
                weight[e] = old
                state[4] += 1
        if not shake and random.random() < 0.001:
            # sums drift as they are added to and subtracted from
            total[:] = 0.0
            for d in range(count):
                total += load[bank[d], d]
