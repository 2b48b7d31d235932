"""Trees and bitrates together, where clients accept lower bitrates than they request, with a proven bound.

Each request may be served at one of its steps, the bitrates that its clients accept. A price of each
request, paid by every step that serves it, replaces this coupling: then objects are independent again, and
the decomposition bounds the value of every plan. Prices of links and of requests are improved side by side,
from the shares of the fractional trees. These shares also choose a step for each request, whose trees are
found as without ladders; a local search over steps follows, and both are repeated while they gain.

Local search over bitrates: requests are served on residual capacity, at the best bitrate that gains.

A step serves one request at a higher bitrate than it receives, or at any where it receives none, over the
cheapest path that has capacity, and takes down what no other request needs then. Steps of the largest gain
per Mbit/s go first.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints
from planner.contract import progress
from planner.contract.design import Decision
from planner.contract.proof import relative_gap
from planner.errors import InputError
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import feasible, judged
from planner.search.tolerances import IMPROVEMENT, ROUNDING
from planner_models.livevideo.designs import bill_prices, integer_program, unicast
from planner_models.livevideo.designs.decomposition import decomposition, layered_problem
from planner_models.livevideo.designs.decomposition.decomposition import (
    GAP,
    GOOD,
    QUICK,
    TIGHT,
    MostMoved,
    get_ready,
)
from planner_models.livevideo.designs.decomposition.frank_wolfe import FrankWolfe
from planner_models.livevideo.designs.decomposition.layered_problem import CapacityRows
from planner_models.livevideo.designs.decomposition.pricing import Pricer
from planner_models.livevideo.designs.integer_program import trim_branches
from planner_models.livevideo.plan.metrics import OBJECTIVE, measure
from planner_models.livevideo.plan.plan import PricedDecision, Streams, Trees, find_received, plan_rows
from planner_models.livevideo.problem.problem import LiveVideo
from planner_models.livevideo.problem.schema import PINNED, empty_table

BACKEND: Final = "decomposition"
PRICE_SHARE: Final = 0.4  # share of the time limit after which no more prices are sought
QUICK_PASSES: Final = 4  # passes before those that find good trees
PASSES: Final = 300
PASSES_PER_BOUND: Final = 8
STEP: Final = 0.1
"""First change of a request's price in a pass, over its value, where it is served twice or never."""

MIN_PROGRESS: Final = 5e-5  # of a bound, below which later changes are smaller
DAMPING: Final = 0.7
STALL_LIMIT: Final = 10  # bounds without that progress after which no more are computed
SERVED_SHARE: Final = 0.25  # share of fractional trees from which a step is chosen for its request
ROUNDS: Final = 12  # searches for trees, at most
ROUND_SHARE: Final = 0.5  # share of the time that is left for one of them
SMOOTHING: Final = decomposition.DUAL_SMOOTHING
MIN_BOUND_S: Final = 1.0  # time for a bound, at least
MIN_GAIN: Final = 0.01  # of a round, as a share of the gap, below which no other follows
MIN_STEP_GAIN: Final = IMPROVEMENT  # of a step, as a share of the value that it serves
CHECKED: Final = 256  # requests between two looks at the clock


def distribute(
    problem: LiveVideo,
    *,
    most_moved: MostMoved = None,
    options: Options = Options(),
    previous: Decision[Trees] | None = None,
) -> Decision[Trees]:
    """Return trees by decomposition; where clients accept lower bitrates, these are chosen too.

    A unicast last hop has a search of its own (`unicast`), and so have bills of links (`bill_prices`).

    Stops at the gap of `options` (default 0.1%) or at the time limit (default 60 s).

    raises  InputError for another backend, or for `most_moved` where clients accept lower bitrates
    source  Mukerjee 2018, Fig. 4.8, with the ladders of `formulation`
    """
    if problem.has_bills:
        return bill_prices.distribute(problem, distribute, most_moved=most_moved, options=options)
    if problem.is_unicast:
        return unicast.distribute(problem, most_moved=most_moved, options=options)
    if not problem.has_ladders or len(problem.tiers) > layered_problem.MAX_TIERS:
        return decomposition.distribute(problem, most_moved=most_moved, options=options, previous=previous)
    if options.backend != "highs":
        raise InputError(f"backend is '{options.backend}': 'vdn' is a solver of its own, leave it out")
    if most_moved is not None:
        raise InputError(
            "most_moved limits trees of fixed bitrates: leave it out, or the requests' lowest_kbps"
        )
    get_ready()  # before the time limit starts
    return _Search(problem, options, previous).run()


class _Search:
    """One run: prices and their bound first, then bitrates and trees."""

    def __init__(self, problem: LiveVideo, options: Options, previous: Decision[Trees] | None) -> None:
        self.deadline = Deadline.of(options, default_s=decomposition.TIME_LIMIT_S)
        self.problem, self.options, self.previous = problem, options, previous
        self.gap = GAP if options.gap is None else options.gap
        self.bound = np.inf
        self.prices: dict[tuple[str, float], float] = {}
        self.best: Trees | None = None
        self.best_value = -np.inf

    def run(self) -> Decision[Trees]:
        """Find prices, then bitrates and trees, until the gap is reached or nothing gains."""
        prices = StepPrices(self.problem, self.options)
        prices.run(self.deadline.share(PRICE_SHARE))
        targets = prices.choose()
        if self.previous is not None and self.previous.plan is not None:
            received = received_steps(self.problem, self.previous.plan)
            targets = np.where(received >= 0, received, targets)
        self.bound, self.prices = prices.bound, prices.labels()
        prices.close()
        start: Decision[Trees] | None = self.previous
        for _ in range(ROUNDS):
            before, left_s = self.best_value, self.deadline.left_s
            if self._is_done() or left_s <= 0:
                break
            trees = self._find_trees(targets, start, ROUND_SHARE * left_s)
            if trees is None:
                break
            self._keep(serve_more(self.problem, trees, self.deadline))
            assert self.best is not None
            start = PricedDecision(plan=self.best, proof=feasible(metric=OBJECTIVE), prices=self.prices)
            received = received_steps(self.problem, self.best)
            targets = np.where(received >= 0, received, self._lower(targets))
            if self.best_value - before <= MIN_GAIN * (self.bound - self.best_value):
                break
        return self._decision()

    def _find_trees(self, targets: Ints, start: Decision[Trees] | None, limit_s: float) -> Trees | None:
        """Return trees for requests at the wanted objects, (Q,)."""
        fixed = _at_steps(self.problem, targets)
        options = replace(self.options, time_limit_s=limit_s, gap=0.5 * self.gap)
        plan = decomposition.distribute(fixed, options=options, previous=start).plan
        return None if plan is None else trim_branches(self.problem, plan)

    def _lower(self, targets: Ints) -> Ints:
        """Return the next lower step of each request, (Q,); the lowest one where there is none."""
        steps = self.problem.steps
        is_next = np.zeros(len(steps.request), dtype=bool)
        is_next[1:] = (steps.request[1:] == steps.request[:-1]) & (
            steps.object[:-1] == targets[steps.request[1:]]
        )
        lower = targets.copy()
        lower[steps.request[is_next]] = steps.object[is_next]
        return lower

    def _keep(self, plan: Trees) -> None:
        value = measure(self.problem, plan, None)[OBJECTIVE] or 0.0
        if value > self.best_value:
            self.best, self.best_value = plan, value

    def _is_done(self) -> bool:
        if self.best is None:
            return False
        progress.report(OBJECTIVE, self.best_value, self.bound)
        gap = relative_gap(self.best_value, self.bound)
        return gap is not None and gap <= self.gap

    def _decision(self) -> Decision[Trees]:
        if self.best is None:  # pinned streams that do not fit, or no time
            return integer_program.solve(self.problem, options=self.options)
        steps = received_steps(self.problem, self.best)
        has_pins = bool((steps[self.problem.pinned_requests] >= 0).all()) and self._crosses_pins()
        return PricedDecision(
            plan=self.best,
            proof=judged(
                "max",
                self.best_value,
                self.bound if has_pins else None,
                gap=max(self.gap, ROUNDING),
                metric=OBJECTIVE,
                backend=BACKEND,
            ),
            guarantees=None if has_pins else frozenset({"capacity", "forbidden"}),
            prices=self.prices,
        )

    def _crosses_pins(self) -> bool:
        assert self.best is not None
        item, link = plan_rows(self.problem, self.best)
        carried = set(zip(item.tolist(), link.tolist(), strict=True))
        return all((o, used) in carried for o, used in self.problem.pinned_links.tolist())


class StepPrices:
    """Prices of links and of requests, and the bound that follows.

    Objects are requested at each group by those who accept them; the value of such a request is what its
    clients' values leave after the prices of their requests.

    price  (Q,) of being served, of each request of the problem
    bound  on the value of every plan, pinned or not
    """

    def __init__(self, problem: LiveVideo, options: Options) -> None:
        self.problem = problem
        self.steps = steps = problem.steps
        count = len(problem.clusters)
        keys, inverse = np.unique(steps.object * count + problem.group[steps.request], return_inverse=True)
        self.layered = layered_problem.build_layers(_expand(problem, keys // count, keys % count))
        position = np.empty(len(keys), dtype=np.int64)
        position[self.layered.request] = np.arange(len(keys))
        self.place = position[inverse.ravel()]  # request of the layered problem of each step
        self.rows = CapacityRows(self.layered)
        self.pricer = Pricer(self.layered, options.threads or 1)
        self.largest = np.zeros(len(problem.requests))
        np.maximum.at(self.largest, steps.request, steps.value)
        self.price = np.zeros(len(problem.requests))
        self._set_values()
        # the scale of its first prices follows from the values before any price of requests
        self.relaxation = FrankWolfe(self.layered, self.rows, self.pricer, options.seed or 0)
        self.price = self._second_values()
        self._set_values()
        self.delivering = self._find_delivering()
        self.mean_share = np.zeros(len(keys))
        self.step = STEP
        self.bound, self.bound_price = np.inf, np.zeros(len(self.rows.limit))
        self.smoothed: tuple[Floats, Floats] | None = None  # prices of rows and of requests

    def close(self) -> None:
        """End the threads of the pricer."""
        self.pricer.close()

    def labels(self) -> dict[tuple[str, float], float]:
        """Return the prices of links at the best bound, as in `PricedDecision`."""
        return self.rows.to_labels(self.bound_price)

    def run(self, deadline: Deadline) -> None:
        """Improve prices and bound until the deadline or until the bound makes no progress."""
        stalls = 0
        for number in range(PASSES):
            self.relaxation.run_pass(QUICK if number < QUICK_PASSES else GOOD, deadline=deadline)
            self._move_prices(number)
            self._smooth_prices()
            is_late = deadline.is_over
            if is_late or (number + 1) % PASSES_PER_BOUND == 0:
                before = self.bound
                self._compute_bound(deadline)
                if before - self.bound <= MIN_PROGRESS * abs(self.bound):
                    stalls += 1
                    self.step *= DAMPING
                    self.relaxation.penalty_scale *= DAMPING  # for smaller changes of prices
            if is_late or stalls == STALL_LIMIT:
                break

    def choose(self) -> Ints:
        """Return the object for each request, (Q,): the step that fractional trees serve most.

        The lowest one where they serve the request less than `SERVED_SHARE`; never an object that is pinned
        for others, since then all its requests must be served.
        """
        steps = self.steps
        share = np.where(steps.value >= self.price[steps.request], self.mean_share[self.place], 0.0)
        share = np.where(self._is_allowed(), share, -1.0)
        order = np.lexsort((-share, steps.request))
        _, first = np.unique(steps.request[order], return_index=True)
        steps_chosen = steps.object[order][first].copy()
        is_rare = share[order][first] < SERVED_SHARE
        allowed = np.flatnonzero(self._is_allowed())
        lowest = self.problem.object.copy()
        lowest[steps.request[allowed]] = steps.object[allowed]  # the last one counts
        return np.where(is_rare, lowest, steps_chosen)

    def _is_allowed(self) -> Bools:
        problem, steps = self.problem, self.steps
        pinned = np.unique(problem.object[problem.pinned_requests])
        is_requested = steps.object == problem.object[steps.request]
        return np.asarray(is_requested | ~np.isin(steps.object, pinned))

    def _second_values(self) -> Floats:
        """Return the second largest value of the steps of each request, (Q,); 0 where there is one step."""
        request, _, value = self.steps
        order = np.lexsort((-value, request))
        first = np.flatnonzero(np.diff(request[order], prepend=-1))
        second = np.minimum(first + 1, len(order) - 1)
        has_second = request[order][second] == request[order][first]
        has_second &= second > first
        return np.where(has_second, value[order][second], 0.0)

    def _set_values(self) -> Floats:
        """Set the values of the layered problem at the prices of requests; return the changes."""
        surplus = np.maximum(0.0, self.steps.value - self.price[self.steps.request])
        value = np.bincount(self.place, surplus, minlength=len(self.layered.request)).astype(float)
        objects = self.layered.objects
        change = value - objects.value
        objects.value[:] = value
        objects.value_per_mbps[:] = self.layered.sum_by_object(value) / objects.bitrate
        return change

    def _find_delivering(self) -> tuple[Ints, Ints]:
        """Return the candidate links into groups, by their place in combinations, and the request of each."""
        layered, combinations = self.layered, self.relaxation.combinations
        n_a, n_b, _ = layered.sizes
        item = np.repeat(np.arange(len(layered.objects.bitrate)), np.diff(combinations.first))
        candidate = np.flatnonzero(combinations.link >= n_a + n_b)
        heads = len(layered.c.first) - 1
        head = layered.c.head[combinations.link[candidate] - n_a - n_b]
        keys = layered.request_object * heads + layered.objects.group
        order = np.argsort(keys)
        return candidate, order[np.searchsorted(keys[order], item[candidate] * heads + head)]

    def _move_prices(self, number: int) -> None:
        """Raise the prices of requests that fractional trees serve more than once; lower those of others."""
        candidate, request = self.delivering
        combinations = self.relaxation.combinations
        count = len(self.layered.request)
        share = np.bincount(request, combinations.share[candidate], minlength=count).astype(float)
        self.mean_share = share if number == 0 else 0.5 * (self.mean_share + share)
        pays = self.steps.value > self.price[self.steps.request]
        load = np.bincount(
            self.steps.request, np.where(pays, share[self.place], 0.0), minlength=len(self.price)
        )
        self.price = np.clip(self.price + self.step * self.largest * (load - 1.0), 0.0, self.largest)
        change = self._set_values()
        combinations.value[:] += self.layered.sum_by_object(share * change)

    def _smooth_prices(self) -> None:
        new = (self.relaxation.price, self.price)
        if self.smoothed is None:
            self.smoothed = new
        else:
            old = self.smoothed
            self.smoothed = (
                (1 - SMOOTHING) * old[0] + SMOOTHING * new[0],
                (1 - SMOOTHING) * old[1] + SMOOTHING * new[1],
            )

    def _compute_bound(self, deadline: Deadline) -> None:
        """Compute the bound at the smoothed prices; keep them if it is the best so far."""
        assert self.smoothed is not None
        newest, trees = self.price, self.relaxation.trees
        price, self.price = self.smoothed
        self._set_values()
        deadline = deadline.beyond(MIN_BOUND_S)
        link_price = self.rows.link_prices(price)
        priced = self.pricer.price_all(link_price, trees.dual.copy(), TIGHT, trees.paths, deadline)
        total = float(priced.bound.sum() + price @ self.rows.limit + self.price.sum())
        total += decomposition.BOUND_ROUNDING * total
        if total < self.bound:
            self.bound, self.bound_price = total, price.copy()
        self.price = newest
        self._set_values()


def _expand(problem: LiveVideo, item: Ints, group: Ints) -> LiveVideo:
    """Return the problem in which each group requests each object that any of its clients accept."""
    requests = _request_table(problem, item, group, np.ones(len(item)))
    return replace(problem, requests=requests, pinned=empty_table(PINNED))


def _at_steps(problem: LiveVideo, targets: Ints) -> LiveVideo:
    """Return the problem in which each request is for the wanted object, (Q,), alone; -1: as now."""
    item = np.where(targets >= 0, targets, problem.object)
    count = len(problem.clusters)
    keys, inverse = np.unique(item * count + problem.group, return_inverse=True)
    clients = np.bincount(inverse.ravel(), problem.clients, minlength=len(keys)).astype(float)
    return problem.with_requests(_request_table(problem, keys // count, keys % count, clients))


def _request_table(problem: LiveVideo, item: Ints, group: Ints, clients: Floats) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "group": problem.clusters["cluster"].to_numpy()[group],
            "channel": problem.objects["channel"].to_numpy()[item],
            "bitrate_kbps": problem.objects["bitrate_kbps"].to_numpy(float)[item],
            "clients": clients,
        }
    )


def serve_more(problem: LiveVideo, plan: Trees, deadline: Deadline) -> Trees:
    """Return the plan with requests served at more value, while a step gains; never a plan of less value.

    deadline  at which the search ends
    """
    search = _StepSearch(problem, plan)
    steps = problem.steps
    gain = steps.value - search.received_value[steps.request]
    per_mbps = gain / problem.bitrate_mbps[steps.object]
    order = np.argsort(-per_mbps, kind="stable")
    for number, step in enumerate(order[gain[order] > 0].tolist()):
        if number % CHECKED == 0 and deadline.is_over:
            break
        search.try_step(int(steps.request[step]), int(steps.object[step]), float(steps.value[step]))
    return search.streams.plan()


class _StepSearch:
    """Streams of a plan, and which requests and clusters need each.

    received        object that each request is served with, -1 for none
    received_value  (Q,) value of that
    needed          by object and cluster: requests and links below that need the object there
    """

    def __init__(self, problem: LiveVideo, plan: Trees) -> None:
        self.problem = problem
        self.streams = Streams(problem)
        self.streams.add_plan(plan)
        item, link = plan_rows(problem, plan)
        received = find_received(problem, item * len(problem.clusters) + problem.head[link])
        self.received: list[int] = received.tolist()
        value = problem.service_weight * problem.priority[received] * problem.clients
        self.received_value = np.where(received >= 0, value, 0.0)
        self.group: list[int] = problem.group.tolist()
        self.link_cost: list[float] = (problem.cost_weight * problem.cost).tolist()
        self.needed: Counter[tuple[int, int]] = Counter()
        for q, o in enumerate(self.received):
            if o >= 0:
                self.needed[o, self.group[q]] += 1
        for o, used in zip(item.tolist(), link.tolist(), strict=True):
            self.needed[o, self.streams.tail[used]] += 1
        for o, used in problem.pinned_links.tolist():
            self.needed[o, self.streams.head[used]] += 1
        self.is_pinned = np.isin(np.arange(len(problem.requests)), problem.pinned_requests).tolist()

    def try_step(self, request: int, item: int, value: float) -> None:
        """Serve the request with the object where that gains."""
        before = self.received[request]
        gain = value - float(self.received_value[request])
        if gain <= MIN_STEP_GAIN * value or (self.is_pinned[request] and before >= 0):
            return
        group = self.group[request]
        path = self.streams.cheapest_path(item, group, self.link_cost, gain)
        if path is None:
            return
        self.streams.add_path(item, path)
        for link in path:
            self.needed[item, self.streams.tail[link]] += 1
        self.needed[item, group] += 1
        self.received[request] = item
        self.received_value[request] = value
        if before >= 0:
            self._release(before, group)

    def _release(self, item: int, cluster: int) -> None:
        """Take down the links that brought an object to a cluster, as far up as nothing else needs it."""
        streams = self.streams
        self.needed[item, cluster] -= 1
        while self.needed[item, cluster] == 0 and (item, cluster) in streams.parent:
            link = streams.parent[item, cluster]
            streams.remove(item, link)
            cluster = streams.tail[link]
            self.needed[item, cluster] -= 1


def received_steps(problem: LiveVideo, plan: Trees) -> Ints:
    """Return the object that each request is served with, (Q,), -1 for none."""
    item, link = plan_rows(problem, plan)
    is_path = (item >= 0) & (link >= 0)
    return find_received(problem, item[is_path] * len(problem.clusters) + problem.head[link[is_path]])
