r"""Entries of a cache that a network card holds in its TCAM, with a bound (Pfaff et al. 2015, 8.3).

A packet that the card classifies needs no lookup in software. With $b_e$ lookups saved by entry $e$ of mask
$m(e)$, and $c_e$ insertions into the card, which expiry repeats:

$$\max \sum_e b_e x_e \quad\text{s.t.}\quad \sum_e x_e \le N,\quad \sum_m z_m \le K,\quad
\sum_e c_e x_e \le R,\quad x_e \le z_{m(e)},\quad x, z \in \{0, 1\}$$

Lagrangian multipliers of the first and third limit leave a choice of the $K$ masks with the largest sums,
which is exact: each pair of multipliers bounds every selection. Selections are filled greedily, with masks
that good multipliers choose, and improved by exchanging masks.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Floats, Ints, Ints32
from planner_models.flowtables.problem.problem import FlowTables

BISECTIONS: Final = 45
INSERT_STEPS: Final = 24
MASKS_EXCHANGED: Final = 12
MAX_EXCHANGES: Final = 40


class Candidates(NamedTuple):
    """Entries that a card may hold: lookups saved, masks and insertions of each, (Y,)."""

    saved: Floats
    mask_of: Ints
    inserts: Floats


class Limits(NamedTuple):
    """Limits of a card: entries, masks, and insertions in the time of the table of connections."""

    entries: int
    masks: int
    inserts: float


class Offload(NamedTuple):
    """Entries that the card holds, ascending, the lookups that they save, and a bound on those."""

    rows: Ints
    saved: float
    bound: float


class Prices(NamedTuple):
    """Lagrangian multipliers of an entry and of an insertion, with the bound and the masks chosen."""

    entry: float
    insert: float
    bound: float
    masks: Ints


def read_limits(problem: FlowTables) -> Limits | None:
    """Return the limits of the card; None without one."""
    entries, masks = int(problem.cost("nic_entries")), int(problem.cost("nic_masks"))
    rate = problem.cost("nic_inserts_per_s")
    if not entries:
        return None
    return Limits(entries, masks or entries, rate * problem.duration_s if rate else np.inf)


def list_candidates(problem: FlowTables, entry: Ints, searched: Ints, mask_of: Ints32) -> Candidates:
    """Return the entries of a cache as candidates.

    entry, searched  (F,) entry of each connection, -1 for none, and the masks searched for it
    mask_of          (Y,) mask of each entry
    """
    is_hit = entry >= 0
    weight = (searched * problem.packets)[is_hit].astype(float)
    saved = np.bincount(entry[is_hit], weights=weight, minlength=len(mask_of)).astype(float)
    return Candidates(saved, mask_of.astype(np.int64), count_inserts(problem, entry, len(mask_of)))


def count_inserts(problem: FlowTables, entry: Ints, count: int) -> Floats:
    """Return the insertions of each of some entries: one, and one after each time without packets."""
    inserts = np.ones(count)
    start_s = problem.start_s
    if start_s is None:
        return inserts
    rows = np.flatnonzero(entry >= 0)
    order = rows[np.lexsort((start_s[rows], entry[rows]))]
    is_again = (entry[order][1:] == entry[order][:-1]) & (np.diff(start_s[order]) > problem.cost("idle_s"))
    np.add.at(inserts, entry[order][1:][is_again], 1.0)
    return inserts


def choose_offload(candidates: Candidates, limits: Limits) -> Offload:
    """Return a selection within all limits that saves many lookups, and a bound on what any saves."""
    if not len(candidates.saved):
        return Offload(np.zeros(0, np.int64), 0.0, 0.0)
    prices = _minimize_bound(candidates, limits)
    best = max(
        (_fill(candidates, limits, item, item.masks) for item in prices),
        key=lambda rows: candidates.saved[rows].sum(),
    )
    tightest = min(prices, key=lambda item: item.bound)
    bound = min(tightest.bound, float(candidates.saved.sum()))
    if candidates.saved[best].sum() < bound:
        best = _exchange_masks(candidates, limits, tightest, best)
    if np.all(candidates.saved == np.floor(candidates.saved)):
        bound = float(np.floor(bound * (1 + 1e-12) + 1e-6))  # lookups are whole numbers
    return Offload(np.sort(best), float(candidates.saved[best].sum()), bound)


def _price(candidates: Candidates, limits: Limits, entry: float, insert: float) -> tuple[Prices, int, float]:
    """Return the bound and masks of two multipliers, and the entries and insertions that they select."""
    reduced = candidates.saved - entry - (insert * candidates.inserts if insert else 0.0)
    count = int(candidates.mask_of.max()) + 1
    is_taken = reduced > 0
    sums = np.bincount(candidates.mask_of[is_taken], weights=reduced[is_taken], minlength=count)
    masks = np.arange(count)
    if limits.masks < count:
        masks = np.argpartition(-sums, limits.masks - 1)[: limits.masks]
    bound = float(sums[masks].sum()) + entry * limits.entries
    bound += insert * limits.inserts if insert else 0.0
    is_open = np.zeros(count, dtype=bool)
    is_open[masks] = True
    taken = is_taken & is_open[candidates.mask_of]
    return Prices(entry, insert, bound, masks), int(taken.sum()), float(candidates.inserts[taken].sum())


def _bisect_entry(candidates: Candidates, limits: Limits, insert: float) -> tuple[list[Prices], float]:
    """Return multipliers on the way to the best of an entry for one of an insertion, and insertions there."""
    low, high = 0.0, float(candidates.saved.max())
    prices, count, inserts = _price(candidates, limits, low, insert)
    made, selected = [prices], inserts
    if count <= limits.entries:
        return made, selected
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        prices, count, inserts = _price(candidates, limits, middle, insert)
        made.append(prices)
        if count > limits.entries:
            low = middle
        else:
            high, selected = middle, inserts
    return made, selected


def _minimize_bound(candidates: Candidates, limits: Limits) -> list[Prices]:
    """Return multipliers, of which the best have nearly the least bound."""
    made, selected = _bisect_entry(candidates, limits, 0.0)
    if selected <= limits.inserts:
        return sorted(made, key=lambda item: item.bound)[:8]
    low, high = 0.0, float((candidates.saved / candidates.inserts).max())
    for _ in range(INSERT_STEPS):
        middle = (low + high) / 2
        steps, selected = _bisect_entry(candidates, limits, middle)
        made += steps
        low, high = (middle, high) if selected > limits.inserts else (low, middle)
    return sorted(made, key=lambda item: item.bound)[:8]


def _fill(candidates: Candidates, limits: Limits, prices: Prices, masks: Ints) -> Ints:
    """Return entries of some masks within the limits, those with the most saved for their price first."""
    is_open = np.zeros(int(candidates.mask_of.max()) + 1, dtype=bool)
    is_open[masks] = True
    rows = np.flatnonzero(is_open[candidates.mask_of] & (candidates.saved > 0))
    insert = prices.insert if prices.entry or prices.insert else 0.0
    value = candidates.saved[rows] - insert * candidates.inserts[rows]
    order = rows[np.lexsort((candidates.inserts[rows], -value))]
    if np.isinf(limits.inserts):
        return order[: limits.entries]
    used = np.cumsum(candidates.inserts[order])
    fitting = order[: np.searchsorted(used, limits.inserts, side="right")]
    if len(fitting) >= limits.entries or len(fitting) == len(order):
        return fitting[: limits.entries]
    remaining = limits.inserts - candidates.inserts[fitting].sum()
    added: list[int] = []
    for row in order[len(fitting) :].tolist():
        if len(fitting) + len(added) == limits.entries:
            break
        if candidates.inserts[row] <= remaining:
            added.append(row)
            remaining -= candidates.inserts[row]
            if remaining < 1:
                break
    return np.concatenate([fitting, np.array(added, dtype=np.int64)])


def _exchange_masks(candidates: Candidates, limits: Limits, prices: Prices, rows: Ints) -> Ints:
    """Return a selection improved by exchanging one mask for another while that saves more lookups."""
    count = int(candidates.mask_of.max()) + 1
    sums = np.bincount(candidates.mask_of, weights=candidates.saved, minlength=count)
    best, current = rows, np.unique(candidates.mask_of[rows])
    for _ in range(MAX_EXCHANGES):
        outside = np.setdiff1d(np.argsort(-sums, kind="stable")[: limits.masks + MASKS_EXCHANGED], current)
        inside = current[
            np.argsort(
                np.bincount(candidates.mask_of[best], weights=candidates.saved[best], minlength=count)[
                    current
                ]
            )
        ]
        better = None
        for added in outside[:MASKS_EXCHANGED].tolist():
            removals = [-1] if len(current) < limits.masks else inside[:MASKS_EXCHANGED].tolist()
            for removed in removals:
                masks = np.append(current[current != removed], added)
                filled = _fill(candidates, limits, prices, masks)
                if candidates.saved[filled].sum() > candidates.saved[best].sum():
                    better = best = filled
        if better is None:
            return best
        current = np.unique(candidates.mask_of[best])
    return best
