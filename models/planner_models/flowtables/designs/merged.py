"""A pool of masks from a trace: least specific masks merged into few, then improved by local search.

Each mask costs lookups, each entry an upcall. Merging goes from one mask for each kind of packet to one mask
for all, and keeps the step with the least cost. Local search then drops masks, and changes them by the bits
of one field, while the cost falls; the entries of given masks are a greedy set cover.
"""

from __future__ import annotations

import time
from typing import Annotated, Final

import numpy as np
from pydantic import Field

from planner.contract.design import Decision
from planner.options import Options
from planner_models.flowtables.designs.bound import find_incompatible
from planner_models.flowtables.designs.cover import (
    Headers,
    count_entries,
    cover,
    group_headers,
    merge_masks,
    use_masks,
)
from planner_models.flowtables.designs.decision import decide
from planner_models.flowtables.designs.reactive import make_least_masks
from planner_models.flowtables.plan.classification import find_valid
from planner_models.flowtables.plan.lookup import Table, insert_all, make_table
from planner_models.flowtables.plan.plan import Cache, read_content
from planner_models.flowtables.problem.fields import Words
from planner_models.flowtables.problem.problem import FlowTables

BACKEND: Final = "merging and local search"
MOST_TRIED: Final = 12  # masks that one is tried to merge into
Prove = Annotated[bool, Field(description="whether a bound on the time of all caches is found")]
Trials = Annotated[int, Field(ge=0, le=100_000, description="changes of masks that local search tries")]


def plan_pool(
    problem: FlowTables,
    *,
    trials: Trials = 300,
    prove: Prove = True,
    options: Options = Options(),
    previous: Decision[Cache] | None = None,
) -> Decision[Cache]:
    """Find a pool of few masks for all connections: merge least specific masks, then improve them.

    previous  a decision whose masks are the start where they cost less than merged ones
    """
    started = time.perf_counter()
    headers = group_headers(problem)
    least = make_least_masks(problem, by_entropy=True)(headers.words)
    search = PoolSearch(problem, headers)
    start = search.merge(least)
    if previous is not None and previous.plan is not None:
        start = min(start, search.take_masks(previous.plan), key=search.cost_of_masks)
    best = search.improve(
        start, trials, np.random.default_rng(options.seed or 0), _part(started, options, 0.4)
    )
    table = search.make_table(best)
    if not prove:
        return decide(problem, table, options=options, backend=BACKEND)
    # compiled only for proofs
    from planner_models.flowtables.designs.mask_bound import bound_time

    incompatible = find_incompatible(problem, headers, count_bits(least), _part(started, options, 0.7))
    bound_us = bound_time(problem, headers, incompatible, _part(started, options, 0.9))
    return decide(problem, table, options=options, bound=bound_us, backend=BACKEND)


def _part(started: float, options: Options, part: float) -> float | None:
    """Return the time of time.perf_counter() at which a part of the time limit is over; None without one."""
    return None if options.time_limit_s is None else started + part * options.time_limit_s


def count_bits(masks: Words) -> np.ndarray:
    """Return the ones of each mask (n, words), (n,)."""
    return np.asarray(np.bitwise_count(masks).sum(axis=1).astype(np.int64))


class PoolSearch:
    """Costs of sets of masks for the headers of a problem."""

    def __init__(self, problem: FlowTables, headers: Headers) -> None:
        self.problem, self.headers = problem, headers
        self._valid: dict[bytes, np.ndarray] = {}

    def find_valid(self, masks: Words) -> np.ndarray:
        """Return which masks keep the action of which headers, (m, n); each mask is tested once."""
        for mask in masks:
            key = mask.tobytes()
            if key not in self._valid:
                self._valid[key] = find_valid(self.headers.words, mask[None, :].copy(), self.problem.entries)[
                    0
                ]
        return np.array([self._valid[mask.tobytes()] for mask in masks])

    def choose(self, masks: Words) -> np.ndarray:
        """Return a mask for each header, (n,), with few entries; -1 where no mask is valid."""
        return np.asarray(cover(self.headers.words, masks, self.find_valid(masks)))

    def cost(self, masks: Words, chosen: np.ndarray) -> float:
        """Return the CPU time of all connections by the mask of each header, us; inf where one has none."""
        if (chosen < 0).any():
            return np.inf
        entries = count_entries(self.headers.words, masks, chosen)
        hits = np.bincount(chosen, weights=self.headers.weight, minlength=len(masks))
        return self._add_up(int(entries.sum()), hits)

    def cost_of_masks(self, masks: Words) -> float:
        """Return the CPU time of all connections, each with its best mask, us; inf where one has none."""
        return self.cost(masks, self.choose(masks))

    def _add_up(self, entries: int, hits: np.ndarray) -> float:
        """Return the CPU time of some entries, with masks in the order of their hits, us."""
        hits = np.sort(hits[hits > 0])[::-1]
        probes = float((hits * np.arange(1, len(hits) + 1)).sum())
        miss_us = self.problem.cost("upcall_us") + self.problem.probe_us * len(hits)
        return self.problem.probe_us * probes + miss_us * entries

    def take_masks(self, plan: Cache) -> Words:
        """Return the masks of a plan on the bits that rules match now, and one of all these bits."""
        masks = read_content(self.problem, plan).masks & self.problem.used_mask
        return np.ascontiguousarray(np.unique(np.vstack([masks, self.problem.used_mask]), axis=0))

    def merge(self, wanted: Words) -> Words:
        """Return the masks at the step of merging with the least cost; `wanted` is a mask for each header."""
        masks, chosen = np.unique(wanted, axis=0, return_inverse=True)
        masks, chosen = np.ascontiguousarray(masks), chosen.reshape(-1).astype(np.int64)
        merged, into, entries = merge_masks(self.headers.words, masks, chosen, MOST_TRIED)
        hits = np.bincount(chosen, weights=self.headers.weight, minlength=len(masks))
        best, least = 0, self._add_up(int(entries[0]), hits)
        for step in range(len(merged)):
            hits[into[step]] += hits[merged[step]]
            hits[merged[step]] = 0
            cost = self._add_up(int(entries[step + 1]), hits)
            if cost < least:
                best, least = step + 1, cost
        union, is_there = masks.copy(), np.ones(len(masks), dtype=bool)
        for step in range(best):
            union[into[step]] |= union[merged[step]]
            is_there[merged[step]] = False
        return np.ascontiguousarray(np.unique(union[is_there], axis=0))

    def improve(
        self, masks: Words, trials: int, random: np.random.Generator, until: float | None = None
    ) -> Words:
        """Return masks of no more cost: masks dropped, merged, or with other bits in one field.

        until  a time of time.perf_counter() at which the search ends
        """
        cost = self.cost_of_masks(masks)
        for _ in range(trials):
            if until is not None and time.perf_counter() > until:
                break
            tried = self._change(masks, random)
            chosen = self.choose(tried)
            if (chosen < 0).any():
                continue
            tried = tried[np.unique(chosen)]
            new = self.cost(tried, np.searchsorted(np.unique(chosen), chosen))
            if new < cost:
                masks, cost = np.ascontiguousarray(tried), new
        return masks

    def _change(self, masks: Words, random: np.random.Generator) -> Words:
        """Return masks with one dropped, or one changed or added with other bits in a field."""
        kind = random.integers(0, 4)
        row = int(random.integers(len(masks)))
        if kind == 0 and len(masks) > 1:
            return np.delete(masks, row, axis=0)
        changed = masks[row].copy()
        if kind == 1 and len(masks) > 1:
            other = int(random.integers(len(masks)))
            changed |= masks[other]
        else:
            layout = self.problem.layout
            field = layout.fields[int(random.integers(len(layout.fields)))]
            own = layout.to_words([layout.full_mask([field.name])])[0]
            length = int(random.integers(0, field.bits + 1))
            full = (1 << field.bits) - 1
            prefix = layout.to_words([(full ^ (full >> length)) << layout.shift[field.name]])[0]
            changed = (changed & ~own) | (prefix & self.problem.used_mask)
        kept = np.delete(masks, row, axis=0) if random.random() < 0.5 else masks
        return np.ascontiguousarray(np.unique(np.vstack([kept, changed[None, :]]), axis=0))

    def make_table(self, masks: Words) -> Table:
        """Return the entries of masks for all headers."""
        used, place = use_masks(masks, self.choose(masks))
        table = make_table(used.shape[1], len(place), len(used))
        table.masks[: len(used)] = used
        table.counts[1] = len(used)
        insert_all(table, self.headers.words, place)
        return table
