"""VDN's optimization by decomposition: a tree for each object, prices for the links, and a proven bound.

At prices on the links the objects part: the best tree of each is a small problem of its own
(`subproblem`), and what they are worth together, plus the price of all room, is more than any plan
is worth. Column generation (`master`) finds prices that make this bound small. Beside it, trees
that fit together are packed (`packing`) by those prices, ruined and recreated, until time is up.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field
from typing import Annotated, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from planner.errors import InputError
from planner.options import Options
from planner.proof import Proof, Status, relative_gap
from planner.system import Decision
from planner_models.livevideo import layers as arrays
from planner_models.livevideo import master, optimum
from planner_models.livevideo.layers import Layers
from planner_models.livevideo.measure import OBJECTIVE, measure
from planner_models.livevideo.packing import Packing
from planner_models.livevideo.pricing import Pricer, uses
from planner_models.livevideo.problem import LiveVideo
from planner_models.livevideo.trees import Trees, rows_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TIME_LIMIT_S: Final = 60.0
GAP: Final = 1e-3
THREADS: Final = 2
WASTE: Final = 0.03
"""A link that whole objects of a bitrate leave this share of unused gets a row that counts them."""

NEAR: Final = 0.9
"""Share of its limit that a row must once have carried to get a price."""

PATIENCE: Final = 8
"""Rounds without a better bound after which no more prices are looked for."""

Moved = Annotated[
    Annotated[int, Field(ge=0)] | None,
    Field(
        description="most objects of the last plan whose trees may change, but for branches that nobody "
        "asks for any more; none: any number"
    ),
]


@dataclass(frozen=True, kw_only=True, eq=False)
class Priced(Decision[Trees]):
    """A decision that remembers the prices it was made at, for the next window to start from.

    prices  by row: a link and the bitrate that the row counts, 0 for its capacity
    """

    prices: dict[tuple[str, float], float] = field(default_factory=dict)


def distribute(
    problem: LiveVideo,
    *,
    most_moved: Moved = None,
    options: Options = Options(),
    previous: Decision[Trees] | None = None,
) -> Decision[Trees]:
    """Trees for all objects by decomposition, with a proven bound; the default at scale.

    Stops at the gap asked for (default 0.1%) or at the time limit (default 60 s). With `previous`
    it starts from that plan and, where they are known, its prices.

    raises  InputError for another backend: it is a solver of its own; for more than four tiers
            `optimum.distribute` is asked
    source  Mukerjee 2018, Fig. 4.8; Dantzig and Wolfe 1960
    """
    if options.backend != "highs":
        raise InputError(f"backend is '{options.backend}': 'vdn' is a solver of its own, leave it out")
    if len(problem.tiers) > arrays.MOST_TIERS:
        return optimum.distribute(problem, options=options)
    if not len(problem.requests) and not len(problem.pinned_links):
        empty = arrays.of(problem).plan(np.zeros((0, 3), dtype=np.int64))
        proof = Proof(status=Status.OPTIMAL, objective=0.0, bound=0.0, metric=OBJECTIVE, backend="columns")
        return Decision(plan=empty, proof=proof)
    return _Search(problem, options, previous, most_moved).run()


class _Search:
    """One run: rows and their prices, columns found, the packing and the bound."""

    def __init__(
        self, problem: LiveVideo, options: Options, previous: Decision[Trees] | None, most_moved: int | None
    ) -> None:
        self.began = time.perf_counter()
        self.until = self.began + (options.time_limit_s or TIME_LIMIT_S)
        self.gap = GAP if options.gap is None else options.gap
        self.threads = options.threads or min(THREADS, os.cpu_count() or 1)
        self.problem, self.previous, self.most_moved = problem, previous, most_moved
        self.layers = arrays.of(problem)
        self.pricer = Pricer(self.layers, self.threads)
        self.packing = Packing(self.layers, self.pricer, options.seed or 0)
        self.seed = options.seed or 0
        self.bound = np.inf
        self.dual = np.full(len(self.layers.group), -1.0)
        self.rows = _Rows(self.layers)
        self.found = _Found(self.layers, self.rows)

    # --- the course of it -------------------------------------------------------------------

    def run(self) -> Decision[Trees]:
        prices = self._first_prices()
        self._seed(prices)
        worker = None
        if self.threads > 1:
            worker = _Shaker(self.packing, self.until)
        self._generate(worker)
        if worker is not None:
            worker.stop()
        self._round()
        self._finish()
        return self._decision()

    def _first_prices(self) -> Floats:
        remembered = self.previous.prices if isinstance(self.previous, Priced) else {}
        prices = self.rows.named(remembered)
        self.warm = bool(prices.any())
        if self.previous is not None and self.previous.plan is not None:
            self.found.add(self.layers.choice(self.previous.plan))
        return prices

    def _price(self, prices: Floats, steps: int, limit: int) -> tuple[Ints, Floats]:
        """Solve all subproblems at the rows' prices: trees and their values; the bound is noted."""
        by_link = self.rows.by_class(prices)
        choice, best, bound = self.pricer.solve(by_link, self.dual, steps, limit)
        total = float(bound.sum() + prices @ self.rows.limit) - self.layers.must * self.layers.pinned
        if total < self.bound:
            self.bound, self.prices = total, prices
            self.by_link, self.merit, self.choice = by_link, best, choice
        return choice, bound

    def _seed(self, prices: Floats) -> None:
        """A few rounds of prices that follow the load, for columns to start from."""
        self.prices = prices
        if self.warm:
            choice, _ = self._price(prices, 16, 9)
            self.found.add(choice)
            self._pack()
            return
        choice, _ = self._price(prices, 8, 1)
        self.found.add(choice)
        density = np.sort(self.packing.density)
        unit = float(np.median(density)) if len(density) else 1.0
        prices = self.rows.start(self.found.load(choice), unit)
        # what lies below is only worth a price once the sources have theirs
        top = self.rows.link < self.rows.sizes[0]
        prices = np.where(top, prices, 0.0)
        step = 0.5
        for turn in range(16):
            choice, _ = self._price(prices, 6, 1)
            if turn > 3:
                self.found.add(choice)
            ratio = self.found.load(choice) / self.rows.limit
            moved = prices * np.clip(ratio, 0.2, 4.0) ** step
            fresh = np.where((ratio > 1) & (top | (turn > 4)), 2e-2 * unit, 0.0)
            prices = np.where(prices > 0, moved, fresh)
            step *= 0.9
        # what was overloaded while everything was free may never be again
        self.found.peak = ratio
        self._pack()

    def _pack(self) -> None:
        """Trees that fit, from those of the best bound; from the last plan's where there is one."""
        start = self.choice
        if self.previous is not None and self.previous.plan is not None:
            before = self.layers.choice(self.previous.plan)
            carried = np.zeros(len(self.layers.klass), dtype=bool)
            item = self.found.of_request
            carried[item[before[:, 2] >= 0]] = True
            start = np.where(carried[item][:, None], before, self.choice)
            if self.most_moved is not None:
                known, _ = rows_of(self.problem, self.previous.plan)
                carried[known[known >= 0]] = True
                self._hold(before, carried)
                start = np.where(carried[item][:, None], before, self.choice)
        self.packing.rebuild(start, self.by_link, self.dual, self.merit)
        self.packing.prices = self.by_link

    def _hold(self, before: Ints, carried: NDArray[np.bool_]) -> None:
        """Let only so many trees of the last plan change: those that gain most by it at the prices."""
        layers = self.layers
        served = before[:, 2] >= 0
        own = self.found.of_request
        now = np.bincount(own[served], weights=layers.value[served], minlength=len(carried))
        item, link = uses(layers, before)
        price = np.concatenate(self.by_link, axis=1)
        now -= np.bincount(item, weights=price[layers.klass[item], link], minlength=len(carried))
        gain = np.where(carried, self.merit - now, -np.inf)
        last = np.flatnonzero(carried)
        moving = np.argsort(-gain, kind="stable")[: min(self.most_moved or 0, len(last))]
        held = np.setdiff1d(last, moving)
        self.packing.freeze(held)
        self.merit = self.merit.copy()
        self.merit[held] = 1e12

    def _generate(self, worker: _Shaker | None) -> None:
        weight: Floats | None = None
        self.weight = weight
        stalled = 0
        best = self.bound
        while time.perf_counter() < self.until and not self._done():
            made = self.found.columns()
            now = self.packing.value()
            rough = max(abs(self.bound - now) / max(abs(self.bound), 1e-9), 1e-4)
            weight = self.found.weights(weight)
            active = self.found.active_rows
            solved = master.solve(
                made,
                self.rows.limit[active],
                weight=weight,
                price=self.prices[active],
                gap=min(0.03, max(self.gap / 10, 0.1 * rough)),
                until=self.until,
            )
            weight = solved.weight
            self.found.solved(weight)
            self.weight = weight
            tight = rough < 0.02 or stalled > 0
            price = np.zeros(len(self.rows.limit))
            price[active] = solved.price
            # when nothing moves any more, it is the bounds on single objects that are loose
            steps, nodes = (6, 5) if not tight else (12, 33) if stalled < 3 else (40, 129)
            choice, _ = self._price(price, steps, nodes)
            fresh = self.found.add(choice)
            self.packing.prices = self.by_link
            if worker is None:
                self.packing.work(0.5 * self._last_seconds())
            if self.bound > best * (1 - 1e-5 * np.sign(best)):
                stalled += 1
            else:
                stalled = 0
            best = min(best, self.bound)
            if (fresh == 0 and tight) or stalled >= PATIENCE:
                break
        if not self._done() and time.perf_counter() < self.until:
            self._price(self.prices, 40, 129)

    def _round(self) -> None:
        """Pack the trees that the master mixes: those of large weight first, then by chance."""
        if self.weight is None or self.most_moved is not None:
            return
        random = np.random.default_rng(self.seed)
        until = time.perf_counter() + 0.15 * (self.until - time.perf_counter())
        first = True
        while (first or time.perf_counter() < until) and not self._done():
            choice, merit = self.found.drawn(self.weight, None if first else random)
            order = np.where(choice_any(choice, self.layers), merit, 0.0)
            self.packing.rebuild(choice, self.by_link, self.dual, order * self.layers.bitrate)
            first = False

    def _last_seconds(self) -> float:
        return max(0.2, 0.1 * (time.perf_counter() - self.began))

    def _done(self) -> bool:
        gap = relative_gap(self.packing.value(), self.bound)
        return gap is not None and gap <= self.gap

    def _finish(self) -> None:
        """Pack until the gap is reached or the time is up."""
        while time.perf_counter() < self.until and not self._done():
            self.packing.work(min(0.5, self.until - time.perf_counter()))

    def _decision(self) -> Decision[Trees]:
        plan = self.layers.plan(self.packing.choice)
        worth = measure(self.problem, plan, None)[OBJECTIVE] or 0.0
        bound = max(self.bound, worth)
        missing = self.layers.pinned - self.packing.served_pins()
        keeps = frozenset({"capacity", "forbidden"}) if missing else None
        gap = relative_gap(worth, bound)
        optimal = gap is not None and gap <= max(self.gap, 1e-9) and not missing
        return Priced(
            plan=plan,
            proof=Proof(
                status=Status.OPTIMAL if optimal else Status.FEASIBLE,
                objective=worth,
                bound=bound if not missing else None,
                metric=OBJECTIVE,
                backend="columns",
            ),
            keeps=keeps,
            prices=self.rows.remembered(self.prices),
        )


def choice_any(choice: Ints, layers: Layers) -> NDArray[np.bool_]:
    """(O,) whether each object has a tree."""
    item = np.repeat(np.arange(len(layers.klass)), np.diff(layers.object_first))
    some = np.zeros(len(layers.klass), dtype=bool)
    some[item[choice[:, 2] >= 0]] = True
    return some


class _Shaker:
    """Packs in a thread of its own while prices are looked for."""

    def __init__(self, packing: Packing, until: float) -> None:
        self.packing, self.until, self.on = packing, until, True
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()

    def _work(self) -> None:
        while self.on and time.perf_counter() < self.until:
            self.packing.work(0.2)

    def stop(self) -> None:
        """Wait for the last piece of work."""
        self.on = False
        self.thread.join()


class _Rows:
    """What is limited: the capacity of links, and how many objects of a bitrate fit on them.

    link   (M,) place through layers a, b, c
    floor  (M,) 0 for capacity, else the least bitrate of the objects counted
    limit  (M,) Mbit/s or objects
    """

    def __init__(self, layers: Layers) -> None:
        self.layers = layers
        parts = (layers.a, layers.b, layers.c)
        self.sizes = [len(part.tail) for part in parts]
        capacity = np.concatenate([part.capacity for part in parts])
        cost = np.concatenate([part.cost for part in parts])
        self.cost = layers.problem.cost_weight * cost
        self.opened = np.concatenate([layers.open_a, layers.open_b, layers.open_c], axis=1)
        self.links = np.concatenate([part.link for part in parts])
        asked = np.diff(layers.object_first)
        rate_of = np.repeat(layers.bitrate, asked)
        most = np.full(len(capacity), float(layers.bitrate[asked > 0].sum()))
        at_group = np.bincount(layers.group, weights=rate_of, minlength=len(layers.c.first) - 1)
        most[self.sizes[0] + self.sizes[1] :] = at_group[layers.c.head]
        link = np.flatnonzero(most > capacity)
        floor, limit = [np.zeros(len(link))], [capacity[link]]
        link_parts = [link]
        for rate in np.unique(layers.bitrate):
            share = np.where(np.isfinite(capacity), capacity, 0.0) / rate
            fit = np.floor(share * (1 + 1e-9))
            crowded = np.flatnonzero((fit >= 1) & (share - fit > WASTE * share) & (most > capacity))
            link_parts.append(crowded)
            floor.append(np.full(len(crowded), rate))
            limit.append(fit[crowded])
        self.link = np.concatenate(link_parts)
        self.floor, self.limit = np.concatenate(floor), np.concatenate(limit)
        self.count = len(capacity)
        # rows of each link, and what an object of each class takes of them
        order = np.argsort(self.link, kind="stable")
        self.of_link = order
        self.first = np.searchsorted(self.link[order], np.arange(self.count + 1))
        rates = layers.class_rate[:, None]
        self.takes = np.where(self.floor[None, :] == 0, rates, (rates >= self.floor[None, :]).astype(float))

    def by_class(self, prices: Floats) -> tuple[Floats, Floats, Floats]:
        """(K, n) prices of the links of each layer, costs included; infinite where they are not open."""
        layers = self.layers
        made = np.outer(layers.class_rate, self.cost)
        for k in range(len(layers.class_rate)):
            made[k] += np.bincount(self.link, weights=prices * self.takes[k], minlength=self.count)
        made = np.where(self.opened, made, np.inf)
        one, two = self.sizes[0], self.sizes[0] + self.sizes[1]
        return (
            np.ascontiguousarray(made[:, :one]),
            np.ascontiguousarray(made[:, one:two]),
            np.ascontiguousarray(made[:, two:]),
        )

    def start(self, load: Floats, unit: float) -> Floats:
        """First prices: of what is overloaded, by how much."""
        ratio = load / self.limit
        return np.where((ratio > 1) & (self.floor == 0), 0.2 * unit * np.minimum(1.0, np.log1p(ratio)), 0.0)

    def named(self, prices: dict[tuple[str, float], float]) -> Floats:
        """(M,) prices from those that are remembered."""
        if not prices:
            return np.zeros(len(self.link))
        labels = self.layers.problem.link_labels
        return np.array(
            [
                prices.get((labels[self.links[link]] if self.links[link] >= 0 else "", float(floor)), 0.0)
                for link, floor in zip(self.link, self.floor, strict=True)
            ]
        )

    def remembered(self, prices: Floats) -> dict[tuple[str, float], float]:
        """The prices above 0 by link and floor."""
        labels = self.layers.problem.link_labels
        return {
            (labels[self.links[self.link[m]]], float(self.floor[m])): float(prices[m])
            for m in np.flatnonzero(prices > 0).tolist()
            if self.links[self.link[m]] >= 0
        }


class _Found:
    """The trees found so far, each once, as columns of the master."""

    def __init__(self, layers: Layers, rows: _Rows) -> None:
        self.layers, self.rows = layers, rows
        self.seen: set[tuple[int, int]] = set()
        self.object: list[Ints] = []
        self.value: list[Floats] = []
        self.count: list[Ints] = []
        self.row: list[Ints] = []
        self.amount: list[Floats] = []
        self.choices: list[NDArray[np.int32]] = []
        asked = np.diff(layers.object_first)
        self.active = np.flatnonzero(asked > 0)
        self.place = np.full(len(asked), -1)
        self.place[self.active] = np.arange(len(self.active))
        self.of_request = np.repeat(np.arange(len(asked)), asked)
        self.peak = np.zeros(len(rows.limit))
        self.hash = np.random.default_rng(7).integers(1, 2**62, rows.count, dtype=np.int64)

    def load(self, choice: Ints) -> Floats:
        """(M,) what chosen trees put on the rows."""
        item, link = uses(self.layers, choice)
        per = np.zeros(len(self.rows.link))
        for k in range(len(self.layers.class_rate)):
            mine = self.layers.klass[item] == k
            times = np.bincount(link[mine], minlength=self.rows.count)
            per += times[self.rows.link] * self.rows.takes[k]
        return per

    def add(self, choice: Ints) -> int:
        """Take in the trees that are new; how many."""
        layers, rows = self.layers, self.rows
        item, link = uses(layers, choice)
        self.peak = np.maximum(self.peak, self.load(choice) / rows.limit)
        order = np.lexsort((link, item))
        item, link = item[order], link[order]
        count = len(layers.klass)
        key = np.zeros(count, dtype=np.int64)
        np.add.at(key, item, self.hash[link])  # wraps around: a sum of random numbers
        cost = np.bincount(item, weights=rows.cost[link] * layers.bitrate[item], minlength=count)
        served = choice[:, 2] >= 0
        value = np.bincount(self.of_request[served], weights=layers.value[served], minlength=count) - cost
        fresh = np.zeros(count, dtype=bool)
        for o in np.unique(item).tolist():
            name = (o, int(key[o]))
            if name not in self.seen:
                self.seen.add(name)
                fresh[o] = True
        new = np.flatnonzero(fresh)
        if not len(new):
            return 0
        mine = fresh[item]
        item, link = item[mine], link[mine]
        times = rows.first[link + 1] - rows.first[link]
        entry = np.repeat(np.arange(len(link)), times)
        offset = np.arange(int(times.sum())) - np.repeat(np.cumsum(times) - times, times)
        row = rows.of_link[rows.first[link[entry]] + offset]
        amount = rows.takes[layers.klass[item[entry]], row]
        some = amount > 0
        self.object.append(new)
        self.value.append(np.asarray(value[new], dtype=np.float64))
        self.count.append(np.bincount(item[entry[some]], minlength=count)[new].astype(np.int64))
        self.row.append(row[some])
        self.amount.append(amount[some])
        self.choices.append(choice.astype(np.int32))
        return len(new)

    def columns(self) -> master.Columns:
        """All trees, sorted by object, each object's empty one first."""
        groups = len(self.active)
        item = np.concatenate([self.active, *self.object])
        value = np.concatenate([np.zeros(groups), *self.value])
        count = np.concatenate([np.zeros(groups, dtype=np.int64), *self.count])
        row, amount = np.concatenate(self.row), np.concatenate(self.amount)
        # rows that no round of prices has come near to filling are left out, at price 0
        active = self.peak > NEAR
        if not active.any():
            active[np.argmax(self.peak)] = True
        self.active_rows = np.flatnonzero(active)
        number = np.cumsum(active) - 1
        mine = active[row]
        ends = np.concatenate([[0], np.cumsum(mine)])
        last = np.cumsum(count)
        count = ends[last] - ends[last - count]
        row, amount = number[row[mine]], amount[mine]
        self.order = np.argsort(item, kind="stable")
        start = np.cumsum(count) - count
        times = count[self.order]
        first = np.cumsum(times) - times
        source = np.repeat(start[self.order] - first, times) + np.arange(int(times.sum()))
        self.made = master.Columns(
            value=value[self.order],
            first=np.searchsorted(item[self.order], np.append(self.active, len(self.layers.klass))).astype(
                np.int64
            ),
            start=np.append(first, int(times.sum())).astype(np.int64),
            row=row[source],
            amount=amount[source],
        )
        return self.made

    def drawn(self, weight: Floats, random: np.random.Generator | None) -> tuple[Ints, Floats]:
        """(Q, 3) a tree for each object, drawn by weight, or that of the largest; and (O,) its weight."""
        turn = np.concatenate(
            [np.full(len(self.active), -1), *(np.full(len(o), n) for n, o in enumerate(self.object))]
        )[self.order]
        made = self.made
        score = (
            weight if random is None else np.log(np.maximum(weight, 1e-12)) + random.gumbel(size=len(weight))
        )
        size = np.diff(made.first)
        top = np.maximum.reduceat(score, made.first[:-1])
        hit = np.flatnonzero(score == np.repeat(top, size))
        group = np.repeat(np.arange(len(size)), size)[hit]
        chosen = np.zeros(len(size), dtype=np.int64)
        chosen[group] = hit
        picked = np.full(len(self.place), -1)
        picked[self.active] = turn[chosen]
        merit = np.zeros(len(self.place))
        merit[self.active] = weight[chosen]
        choice = np.full((len(self.of_request), 3), -1, dtype=np.int64)
        for n in np.unique(picked[picked >= 0]).tolist():
            mine = (picked == n)[self.of_request]
            choice[mine] = self.choices[n][mine]
        return choice, merit

    def weights(self, last: Floats | None) -> Floats:
        """(P,) the weights of the last solve, 0 for columns that came since."""
        weight = np.zeros(len(self.order))
        if last is not None:
            weight[: len(self.kept)] = self.kept
        return weight[self.order]

    def solved(self, weight: Floats) -> None:
        """Keep the weights for the next solve."""
        self.kept = np.zeros(len(weight))
        self.kept[self.order] = weight
