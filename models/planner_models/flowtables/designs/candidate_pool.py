"""The best pool of candidate masks by Lagrangian relaxation: a bound on all pools of them, and a pool.

With K masks, each place s of the search has at most one of them (z_ms); a header h of w_h connections is
served in place s by an entry e of mask m that holds it (x_hes), which must be there (y_es):

    minimize    sum_h w_h sum_es p s x_hes + (u + p K) sum_es y_es
    subject to  sum_es x_hes = 1,  x_hes <= y_es <= z_ms,  sum_m z_ms <= 1,  sum_s z_ms <= 1

p is the time of a lookup, u that of an upcall. Let each header have a price l_h in place of the first
constraint. Mask m in place s then gains

    g_ms = sum over its entries e of ( sum over headers h of e of (l_h - p s w_h)+  -  (u + p K) )+

and an assignment of masks to places with the most gain is left: sum_h l_h less this gain bounds all pools of
K masks. Assignments are integral, so that the best prices give the value of the linear program. They are
found by subgradients. The bound is the least over all K; for K and more masks, those in places after K gain
what they gain in place K.

source  Geoffrion 1974, "Lagrangean relaxation for integer programming"; Polyak 1969 (steps)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from planner.arrays import Floats, Ints, Ints32
from planner.compiled import inner, kernel
from planner.search.ascent import Ascent
from planner.search.deadline import NEVER, Deadline
from planner_models.flowtables.designs.cover import Headers, Members
from planner_models.flowtables.designs.pool_search import PoolSearch
from planner_models.flowtables.problem.fields import Words
from planner_models.flowtables.problem.problem import FlowTables

MOST_HELD: Final = 40_000_000  # headers of all candidates
FIRST_STEPS: Final = 1_000
STEPS: Final = 400  # for each further number of masks
NEARLY: Final = 2e-3
FIRST_PARTS: Final = (1.5, 1.25)  # of the masks of the pool: numbers whose bounds are likely the least
ROUNDS: Final = 2  # of prices and local search
SMOOTHING: Final = 0.7  # of subgradients
PATIENCE: Final = 20  # steps without a better bound before they become half as long
LEAST_LENGTH: Final = 2e-3  # of a step, as a part of Polyak's
RISE: Final = 1e-6  # of the bound that counts as better
POOLS_EVERY: Final = 5  # steps after which the masks of the relaxation are tried as a pool
TRIED: Final = 100  # candidates with the largest gains that local search adds
MOVES: Final = ("drop", "replace", "add")
MOVE_SHARES: Final = (0.2, 0.5, 0.3)


class Candidates(NamedTuple):
    """Masks, and the headers that their entries may serve.

    masks   (m, words)
    rows    headers of all entries, one entry after another; start (e + 1,) the first of each entry
    first   (m + 1,) the first entry of each mask
    alone   headers that are alone in an entry of a mask; alone_start (m + 1,) the first of each mask
    """

    masks: Words
    rows: Ints32
    start: Ints
    first: Ints
    alone: Ints32
    alone_start: Ints


class Relaxed(NamedTuple):
    """Bound on the time of pools of some number of masks by the prices of headers, us.

    masks, lookup_us  (k,) masks with a gain, and the time of the lookups until the place of each
    """

    bound: float
    masks: Ints
    lookup_us: Floats


def list_candidates(search: PoolSearch, planned: Words, smallest: Words, limit: int) -> Candidates:
    """Return at most so many masks, planned ones first: half from local search, and least specific ones.

    smallest  a mask for each header; those of many headers are taken first
    """
    masks, count = np.unique(smallest, axis=0, return_counts=True)
    by_use = [masks[row] for row in np.argsort(-count, kind="stable")]
    tried = search.list_tried()[::-1]
    others = max(limit - len(planned), 0)
    ordered = [*planned, *by_use[: max(others // 2, others - len(tried))], *tried, *by_use]
    distinct = {mask.tobytes(): mask for mask in ordered}
    parts: list[tuple[Ints32, Ints, Ints32]] = []
    held = 0
    for mask in list(distinct.values())[: len(planned) + others]:
        if len(parts) >= len(planned) and held > MOST_HELD:
            break
        members = search.find_members(mask)
        held += len(members.rows)
        parts.append(_split(members))
    shared, sizes, alone = zip(*parts, strict=True)
    return Candidates(
        masks=np.ascontiguousarray(np.array(list(distinct.values())[: len(parts)])),
        rows=np.concatenate(shared),
        start=_add_up(np.concatenate(sizes)),
        first=_add_up([len(size_list) for size_list in sizes]),
        alone=np.concatenate(alone),
        alone_start=_add_up([len(group) for group in alone]),
    )


def _split(members: Members) -> tuple[Ints32, Ints, Ints32]:
    """Return the headers of entries with several, the number of each entry, and those alone in an entry."""
    size = np.diff(members.start).astype(np.int64)
    is_alone = np.repeat(size == 1, size)
    return members.rows[~is_alone], size[size > 1], np.sort(members.rows[is_alone])


def _add_up(sizes: Any) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


@inner
def find_gain(rows: Any, start: Any, end: Any, price: Any, weight: Any, lookup_us: Any, entry_us: Any) -> Any:
    """Return the gain of an entry with the headers from `start` to `end`, without those that lose by it."""
    gain = -entry_us
    for k in range(start, end):
        h = rows[k]
        gain += max(price[h] - weight[h] * lookup_us, 0.0)
    return gain


@kernel
def find_gains(candidates: Any, price: Any, weight: Any, lookup_us: Any, entry_us: Any) -> Any:
    """Return the gain of each mask in each place, (masks, places); times of places rise."""
    gains = np.zeros((len(candidates.masks), len(lookup_us)))
    most_alone = price - weight * lookup_us[0] - entry_us
    for m in range(len(gains)):
        for k in range(candidates.alone_start[m], candidates.alone_start[m + 1]):
            h = candidates.alone[k]
            if most_alone[h] > 0:
                for s in range(len(lookup_us)):
                    gains[m, s] += max(price[h] - weight[h] * lookup_us[s] - entry_us, 0.0)
        for e in range(candidates.first[m], candidates.first[m + 1]):
            for s in range(len(lookup_us)):
                gain = find_gain(
                    candidates.rows, candidates.start[e], candidates.start[e + 1], price, weight,
                    lookup_us[s], entry_us,
                )  # fmt: skip
                if gain <= 0:
                    break
                gains[m, s] += gain
    return gains


@kernel
def count_served(candidates: Any, price: Any, weight: Any, masks: Any, lookup_us: Any, entry_us: Any) -> Any:
    """Return the number of entries with a gain that serve each header, (n,).

    masks, lookup_us  (k,) masks, and the time of the lookups until the place of each
    """
    served = np.zeros(len(price))
    for index in range(len(masks)):
        m = masks[index]
        for k in range(candidates.alone_start[m], candidates.alone_start[m + 1]):
            h = candidates.alone[k]
            served[h] += price[h] > weight[h] * lookup_us[index] + entry_us
        for e in range(candidates.first[m], candidates.first[m + 1]):
            gain = find_gain(
                candidates.rows, candidates.start[e], candidates.start[e + 1], price, weight,
                lookup_us[index], entry_us,
            )  # fmt: skip
            if gain <= 0:
                continue
            for k in range(candidates.start[e], candidates.start[e + 1]):
                h = candidates.rows[k]
                served[h] += price[h] > weight[h] * lookup_us[index]
    return served


class CandidateSearch:
    """Prices of headers, the bound that they give, and the best pool of candidate masks so far."""

    def __init__(
        self,
        problem: FlowTables,
        headers: Headers,
        search: PoolSearch,
        candidates: Candidates,
        planned: Words,
    ) -> None:
        """Keep candidates, with a pool of some of them."""
        self.search, self.candidates, self.weight = search, candidates, headers.weight
        self.probe_us, self.upcall_us = problem.probe_us, problem.cost("upcall_us")
        self.pool, self.time_us = planned, search.cost_of_masks(planned)
        # more masks than this have one bound for all numbers
        self.most = min(2 * len(planned) + 10, len(candidates.masks))

    def improve(self, trials: int, random: np.random.Generator, deadline: Deadline = NEVER) -> Floats:
        """Look for a better pool by prices and by local search, in turn; return the last prices.

        deadline  at which the search ends
        """
        price = self._share_time()
        for steps in (FIRST_STEPS, *[STEPS] * (ROUNDS - 1)):
            masks = len(self.pool)
            price = self.ascend(price, masks, steps, deadline, self._try)[1]
            gains = find_gains(self.candidates, price, self.weight, *self._list_times(masks))[:, 0]
            near = self.candidates.masks[np.argsort(-gains, kind="stable")[:TRIED]]
            for _ in range(trials):
                if deadline.is_over:
                    return price
                self._try(self._change(near, random))
        return price

    def bound_us(self, price: Floats, deadline: Deadline = NEVER) -> float:
        """Return the bound on the time of all connections for every number of masks, from first prices, us.

        The bound of some numbers is raised as far as possible; that of others nearly to the least of these.
        """
        bounds = np.zeros(self.most + 1)
        prices: dict[int, Floats] = {}
        self._raise(bounds, price, np.inf)
        lower = self.time_us * (1 - RISE)
        first = [min(max(int(fraction * len(self.pool)), 1), self.most) for fraction in FIRST_PARTS]
        while True:
            masks = first.pop() if first else int(np.argmin(bounds[1:])) + 1
            is_late = deadline.is_over
            if is_late or (not first and bounds[1:].min() >= lower):
                return float(bounds[1:].min())
            if masks == self.most < len(self.candidates.masks) and masks in prices:
                # more masks than so many: some further numbers each have a bound of their own
                self.most = min(2 * masks, len(self.candidates.masks))
                bounds = np.append(bounds[:-1], np.zeros(self.most + 1 - masks))
                self._raise(bounds, prices.pop(masks), lower)
                continue
            nearest = min(prices, key=lambda count: abs(count - masks), default=masks)
            start = prices.get(nearest, price)
            bound, prices[masks] = self.ascend(start, masks, STEPS, deadline, enough_us=lower)
            bounds[masks] = max(bounds[masks], bound)
            if bounds[masks] < lower and (masks < self.most or masks == len(self.candidates.masks)):
                lower = (1 - NEARLY) * bounds[masks]
            self._raise(bounds, prices[masks], lower)

    def _raise(self, bounds: Floats, price: Floats, limit: float) -> None:
        """Raise those of the bounds of each number of masks, (most + 1,), that are below `limit`."""
        for masks in (np.flatnonzero(bounds[1:] < limit) + 1).tolist():
            bounds[masks] = max(bounds[masks], self.relax(price, masks).bound)

    def relax(self, price: Floats, masks: int) -> Relaxed:
        """Return the bound for a number of masks by given prices; the largest number stands for all more."""
        lookup_us, entry_us = self._list_times(masks)
        gains = find_gains(self.candidates, price, self.weight, lookup_us, entry_us)
        row, column = linear_sum_assignment(gains, maximize=True)
        is_used = gains[row, column] > 0
        row, column = row[is_used], column[is_used]
        total = float(gains[row, column].sum())
        if masks == self.most < len(self.candidates.masks):
            more = np.flatnonzero(gains[:, -1] > 0)
            total += float(gains[more, -1].sum())
            row, column = np.append(row, more), np.append(column, np.full(len(more), masks - 1))
        return Relaxed(float(price.sum()) - total, row, lookup_us[column])

    def ascend(
        self,
        price: Floats,
        masks: int,
        steps: int,
        deadline: Deadline,
        try_pool: Callable[[Words], None] | None = None,
        enough_us: float = np.inf,
    ) -> tuple[float, Floats]:
        """Raise the bound for a number of masks by subgradients; return the highest, and its prices.

        enough_us  a bound that need not be raised any more
        """
        entry_us = self._list_times(masks)[1]
        ascent = Ascent(price, factor=1.0, stall_limit=PATIENCE)
        direction = np.zeros(len(price))
        for step in range(steps):
            if step and deadline.is_over:
                break
            relaxation = self.relax(price, masks)
            if try_pool is not None and step % POOLS_EVERY == 0:
                try_pool(self.candidates.masks[relaxation.masks])
            is_stalled = ascent.tell(relaxation.bound, price, progress=RISE * self.time_us)
            if ascent.best >= min(self.time_us, enough_us) or ascent.factor < LEAST_LENGTH:
                break
            if is_stalled:
                price = ascent.go_back()
                relaxation, direction = self.relax(price, masks), np.zeros(len(price))
            served = count_served(
                self.candidates, price, self.weight, relaxation.masks, relaxation.lookup_us, entry_us
            )
            old = SMOOTHING if direction.any() else 0.0
            direction = old * direction + (1 - old) * (1 - served)
            size = float((direction**2).sum())
            if size == 0:
                break
            price = np.maximum(price + ascent.length(self.time_us - relaxation.bound, size) * direction, 0.0)
        return ascent.best, ascent.best_point

    def _list_times(self, masks: int) -> tuple[Floats, float]:
        """Return the time of the lookups until each place, and that of a miss, us."""
        return self.probe_us * np.arange(1.0, masks + 1), self.upcall_us + self.probe_us * masks

    def _share_time(self) -> Floats:
        """Return the time of each header in the pool, us: its lookups, and its part of a miss."""
        words, choice = self.search.headers.words, self.search.choose(self.pool)
        rank = np.empty(len(self.pool))
        rank[np.argsort(-choice.hits, kind="stable")] = np.arange(1, len(self.pool) + 1)
        _, miss_us = self._list_times(len(self.pool))
        key = np.column_stack([words & self.pool[choice.mask], choice.mask.astype(np.uint64)])
        _, entry = np.unique(key, axis=0, return_inverse=True)
        entry = entry.reshape(-1)
        held = np.bincount(entry, weights=self.weight)[entry]
        return np.asarray(self.weight * (self.probe_us * rank[choice.mask] + miss_us / held))

    def _try(self, masks: Words) -> None:
        """Keep a pool that takes less time than the best so far."""
        if not len(masks):
            return
        choice = self.search.choose(masks)
        time_us = self.search.cost(masks, choice)
        if time_us < self.time_us:
            self.pool, self.time_us = np.ascontiguousarray(masks[choice.hits > 0]), time_us

    def _change(self, near: Words, random: np.random.Generator) -> Words:
        """Return the pool without one mask, with another candidate, or both."""
        kind = random.choice(MOVES, p=MOVE_SHARES)
        masks_left = (
            self.pool if kind == "add" else np.delete(self.pool, int(random.integers(len(self.pool))), axis=0)
        )
        if kind == "drop":
            return masks_left
        added = near[int(random.integers(len(near)))]
        return np.ascontiguousarray(np.unique(np.vstack([masks_left, added[None, :]]), axis=0))
