"""A bound on the time of a cache that couples its masks with its misses; it holds for every correct cache.

A bit is forced in the mask of a header where the header with this bit flipped has another action: every mask
that serves the header has the bit. Headers with the same action, forced bits and values of these are a group.
Two groups are apart where no entry can serve headers of both, as it would have the forced bits of both. Take
groups j that are pairwise apart, spread a price P_j >= 1 over the connections of each, and let mask m be s-th
in the search of K masks. An entry then gains its part of the prices, less what it costs:

    a_s(m) = sum over entries e of m of ( sum_j P_j f_je - 1 - (p/c) (s - 1) w_e )+
    c misses + p lookups  >=  c ( sum_j P_j - sum_s a_s(m_s) ) + p N,   c = u + p (K - 1)

f_je is the share of group j in the entry and w_e its connections there, p the time of a lookup, u that of an
upcall, N connections. A mask with a gain on a group has all forced bits of the group; all its groups are
divided by the bits that each of them forces, so that a mask for many groups has small gains. Gains of all
masks are bounded by a search tree: which type (set of forced bits) is the first that the mask has a gain on,
which is the second, and so on; leaves with the largest gains are divided. Prices are found by a linear
program, and the bound is computed from them anew. It is the least over all K.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import scipy.sparse as sp

from planner import backends
from planner.arrays import Bools, Floats, Ints
from planner.backends.linear_program import LinearProgram, Rows
from planner.compiled import inner, kernel, run_small_in_python
from planner.options import Options
from planner.search.deadline import NEVER, Deadline
from planner_models.flowtables.designs.bound import find_forced, is_incompatible, make_near
from planner_models.flowtables.designs.cover import Headers
from planner_models.flowtables.plan.classification import classify
from planner_models.flowtables.problem.fields import Words
from planner_models.flowtables.problem.problem import FlowTables

MOST_TESTS: Final = 1_000_000_000  # of a header with a flipped bit against an entry
MOST_GROUPS: Final = 4_000
MOST_LOST: Final = 20  # a group loses at most one of so many headers to a group of one header
MOST_TYPES: Final = 300
MOST_LEAVES: Final = 700
MOST_MASKS: Final = 2_000
PRICES: Final = np.array(
    [1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6.5, 8, 10, 13, 16, 20, 26, 32, 45, 64, 90, 128, 180, 256], float
)
PLACES: Final = np.array([1, 2, 3, 5, 9, 17, 33, 65, 129, 257])  # of masks; others gain no more
ROUNDS: Final = 3
LINES: Final = 6  # prices that are found in a round
DIVIDED: Final = 20  # leaves of a round
TIME_LIMIT_S: Final = 20.0


class Groups(NamedTuple):
    """Headers of groups that are pairwise apart, each with the group's number.

    words    (n, words); group, weight (n,)
    forced   (J, words) forced bits of each group
    total    (J,) connections of each group
    """

    words: Words
    group: Ints
    weight: Floats
    forced: Words
    total: Floats


class Leaf(NamedTuple):
    """Masks with a gain on groups of all types of `members`, and of types after the last one unless closed.

    mask    (words,) bits that all these masks have
    group   (k,) group of each part that these bits leave together; share (k,) of the group's connections
    """

    mask: Words
    members: tuple[int, ...]
    is_closed: bool
    group: Ints
    share: Floats


class Line(NamedTuple):
    """Misses by the number of masks, up to `most_masks`: the prices, less the gain of each place."""

    most_masks: int
    prices: float
    gain: Floats

    def misses(self, masks: Ints) -> Floats:
        """Return the least misses for each number of masks, lookups as parts of one; 0 for unknown."""
        width = np.clip(masks[:, None] + 1 - PLACES, 0, np.append(np.diff(PLACES), 1 << 40))
        return np.where(masks <= self.most_masks, np.maximum(self.prices - width @ self.gain, 0.0), 0.0)


def bound_time(
    problem: FlowTables, headers: Headers, incompatible: Ints, deadline: Deadline = NEVER
) -> float:
    """Return the least CPU time of a connection in any correct cache, us.

    headers       the headers of the connections that rules can tell apart
    incompatible  rows of headers that need an entry each
    deadline      after which no further prices are found

    A cache without entries has no masks, so that each connection takes an upcall and no lookup.
    """
    if not problem.most_entries:
        return problem.cost("upcall_us")
    if problem.probe_us + problem.cost("upcall_us") == 0:
        return 0.0
    if deadline.is_over:
        return min(float(bound_us(problem, len(incompatible), 1)), problem.cost("upcall_us"))
    groups = find_groups(problem, headers, incompatible)
    search = _Search(problem, groups, float(max(len(incompatible), len(groups.total))))
    for _ in range(ROUNDS):
        if deadline.is_over:
            break
        gains = search.find_lines()
        if gains is None or not search.divide(gains):
            break
    return min(search.least_us(), problem.cost("upcall_us"))


def miss_us(problem: FlowTables, masks: Any) -> Any:
    """Return the least time of a miss with a number of masks, us.

    One lookup less than a miss takes: a connection without an entry has no lookups of its own.
    """
    return problem.cost("upcall_us") + problem.probe_us * (masks - 1)


def bound_us(problem: FlowTables, misses: Any, masks: Any) -> Any:
    """Return the least time of a connection with a number of masks and at least so many misses, us."""
    return problem.probe_us + miss_us(problem, masks) * misses / len(problem.flows)


def find_groups(problem: FlowTables, headers: Headers, incompatible: Ints) -> Groups:
    """Return groups that are pairwise apart, those of many connections first; in large problems of a sample.

    incompatible  rows of headers that need an entry each; those that are in no group are groups of their own
                  where few headers of others are incompatible to them by no witness, and are then left out
    """
    bits = max(int(np.bitwise_count(problem.used_mask).sum()), 1)
    limit = max(MOST_TESTS // (bits * max(len(problem.entries.action), 1)), 1)
    rows = np.linspace(0, len(headers.words) - 1, min(limit, len(headers.words))).astype(np.int64)
    rows = np.unique(np.concatenate([rows, incompatible]))
    words, weight = np.ascontiguousarray(headers.words[rows]), headers.weight[rows]
    actions = classify(words, problem.entries)
    forced = find_forced(words, actions, problem.used_mask, problem.entries)
    signature = np.hstack([forced, words & forced, actions[:, None].astype(np.uint64)])
    _, first, group = np.unique(signature, axis=0, return_index=True, return_inverse=True)
    group = group.reshape(-1)
    total = np.bincount(group, weights=weight)
    order = np.argsort(-total, kind="stable")[:MOST_GROUPS]
    by_group = np.argsort(group, kind="stable")
    start = np.searchsorted(group[by_group], np.arange(len(total) + 1))
    is_kept = np.zeros(len(words), dtype=bool)
    is_kept[by_group] = _keep_apart(words[by_group], forced[first], actions[first], start, order)
    alone = np.searchsorted(rows, incompatible)
    limit = MOST_TESTS // max(len(problem.entries.action), 1)
    _add_alone(words, actions, forced, group, alone, is_kept, problem.entries, limit)
    selected_rows = np.flatnonzero(is_kept)
    groups_used, number = np.unique(group[selected_rows], return_inverse=True)
    number = number.reshape(-1)
    return Groups(
        np.ascontiguousarray(words[selected_rows]),
        number,
        weight[selected_rows],
        np.ascontiguousarray(forced[first[groups_used]]),
        np.asarray(
            np.bincount(number, weights=weight[selected_rows], minlength=len(groups_used)), dtype=np.float64
        ),
    )


@inner
def _is_inside(header: Any, value: Any, mask: Any) -> Any:
    """Return whether a header (words,) agrees with a value on a mask."""
    differs = np.uint64(0)
    for w in range(len(header)):
        differs |= (header[w] ^ value[w]) & mask[w]
    return differs == 0


@run_small_in_python(max_elements=1_000)
@kernel
def _keep_apart(words: Any, forced: Any, actions: Any, start: Any, order: Any) -> Any:  # noqa: C901
    """Return the mask of retained headers, such that groups are pairwise distinct; earlier groups keep more.

    An entry that serves headers of two groups has the forced bits of both: each of the two headers then
    agrees with the other group in that group's forced bits. If no header of one group does, there is none.

    words   (n, words) of groups one after another, that of g from start[g]
    forced  (groups, words), actions (groups,)
    """
    is_kept = np.zeros(len(words), np.bool_)
    selected = np.zeros(len(order), np.int64)
    count = 0
    for g in order:
        remaining = start[g + 1] - start[g]
        is_kept[start[g] : start[g + 1]] = True
        for k in range(count):
            s = selected[k]
            if actions[s] != actions[g]:
                continue
            meets = False
            for h in range(start[s], start[s + 1]):
                if is_kept[h] and _is_inside(words[h], words[start[g]], forced[g]):
                    meets = True
                    break
            if not meets:
                continue
            for h in range(start[g], start[g + 1]):
                if is_kept[h] and _is_inside(words[h], words[start[s]], forced[s]):
                    is_kept[h] = False
                    remaining -= 1
            if remaining == 0:
                break
        if remaining:
            selected[count] = g
            count += 1
    return is_kept


@run_small_in_python(max_elements=2_000)
@kernel
def _add_alone(  # noqa: C901
    words: Any, actions: Any, forced: Any, group: Any, alone: Any, is_kept: Any, rules: Any, budget: Any
) -> None:
    """Keep a header of each further group, and drop headers of others that are not apart from it, if few.

    alone    rows of headers that are pairwise incompatible
    is_kept  (n,) whether a header is kept; changed in place
    budget     searches for a witness
    """
    count = np.zeros(group.max() + 1, np.int64)  # headers kept of each group
    for h in range(len(words)):
        count[group[h]] += is_kept[h]
    near, lost = np.zeros(len(words), np.int64), np.zeros(len(count), np.int64)
    witness = np.zeros(words.shape[1], np.uint64)
    memory, memory_start = make_near(rules)
    for row in alone:
        if count[group[row]]:
            continue
        if budget <= 0:
            break
        near_count = 0
        is_cheap = True
        for h in range(len(words)):
            if not is_kept[h] or actions[h] != actions[row]:
                continue
            if not (
                _is_inside(words[row], words[h], forced[h]) and _is_inside(words[row], words[h], forced[row])
            ):
                continue
            budget -= 1
            if is_incompatible(
                words[h], words[row], actions[h], actions[row], rules, witness, memory, memory_start
            ):
                continue
            near[near_count] = h
            near_count += 1
            lost[group[h]] += 1
            if lost[group[h]] * MOST_LOST > count[group[h]]:
                is_cheap = False
                break
        for k in range(near_count):
            lost[group[near[k]]] = 0
            if is_cheap:
                is_kept[near[k]] = False
                count[group[near[k]]] -= 1
        if is_cheap:
            is_kept[row] = True
            count[group[row]] += 1


@run_small_in_python(max_elements=1_000)
@kernel
def _divide(words: Any, group: Any, weight: Any, mask: Any) -> Any:
    """Return the group and the connections of each part of a group that agrees on a mask (words,)."""
    size = 8
    while size < 2 * len(words):
        size *= 2
    slots = np.full(size, -1, np.int64)
    piece_of = np.zeros(len(words), np.int64)  # of the header in a slot
    owner, inside = np.zeros(len(words), np.int64), np.zeros(len(words))
    count = 0
    for h in range(len(words)):
        key = np.uint64(group[h] + 1) * np.uint64(0x9E3779B97F4A7C15)
        for w in range(words.shape[1]):
            key = (key ^ (words[h, w] & mask[w])) * np.uint64(0xBF58476D1CE4E5B9)
            key ^= key >> np.uint64(29)
        slot = np.int64(key >> np.uint64(7)) & (size - 1)
        while slots[slot] >= 0:
            other = slots[slot]
            same = group[other] == group[h]
            for w in range(words.shape[1]):
                same &= ((words[other, w] ^ words[h, w]) & mask[w]) == 0
            if same:
                break
            slot = (slot + 1) & (size - 1)
        if slots[slot] < 0:
            slots[slot] = h
            piece_of[h] = count
            owner[count] = group[h]
            count += 1
        inside[piece_of[slots[slot]]] += weight[h]
    return owner[:count], inside[:count]


class _Search:
    """Prices of groups, and the leaves of the tree that bounds the gains of masks."""

    def __init__(self, problem: FlowTables, groups: Groups, lower: float) -> None:
        self.problem, self.groups, self.least = problem, groups, lower
        self.highest = np.minimum(groups.total, PRICES[-1])
        raised = np.argsort(-groups.total, kind="stable")
        raised = raised[groups.total[raised] > 1]
        types, of_group = np.unique(groups.forced[raised], axis=0, return_inverse=True)
        of_group = of_group.reshape(-1)
        value = np.bincount(of_group, weights=np.minimum(self.highest[raised], 4.0), minlength=len(types))
        types_used = np.argsort(-value, kind="stable")[:MOST_TYPES]
        # types of many bits first: the groups of a mask are then divided by the bits of its first type
        types_used = types_used[
            np.argsort(-np.bitwise_count(types[types_used]).sum(axis=1, dtype=np.int64), kind="stable")
        ]
        index_of = np.full(len(types), -1)
        index_of[types_used] = np.arange(len(types_used))
        self.types = np.ascontiguousarray(types[types_used])
        self.type_of = np.full(len(groups.total), -1)
        self.type_of[raised] = index_of[of_group]
        rows = np.flatnonzero(self.type_of[groups.group] >= 0)
        self._inside = (np.ascontiguousarray(groups.words[rows]), groups.group[rows], groups.weight[rows])
        # a column for each rise of a price to the next one of PRICES
        steps = np.where(self.type_of >= 0, np.searchsorted(PRICES, self.highest, side="right") - 1, 0)
        self.first = np.concatenate([[0], np.cumsum(steps)]).astype(np.int64)
        self.steps = steps
        owner = np.repeat(np.arange(len(steps)), steps)
        self.rise = np.diff(PRICES)[np.arange(len(owner)) - self.first[owner]]
        self.owner = owner
        leaves = (self._make_leaf(self.types[k], (k,), False) for k in range(len(self.types)))
        self.leaves = [leaf for leaf in leaves if leaf is not None]
        self.lines: list[Line] = []

    def _make_leaf(self, mask: Words, members: tuple[int, ...], is_closed: bool) -> Leaf | None:
        """Return a leaf; None where a mask with these bits has no gain on one of the members."""
        group, inside = _divide(*self._inside, mask)
        share = inside / self.groups.total[group]
        kinds = self.type_of[group]
        is_member = np.isin(kinds, members)
        if not is_closed:
            is_member |= kinds > members[-1]
        is_member &= share * self.highest[group] > 1
        group, share = group[is_member], share[is_member]
        if not np.isin(members, self.type_of[group]).all():
            return None
        order = np.argsort(group, kind="stable")
        return Leaf(mask, members, is_closed, group[order], share[order])

    def least_us(self) -> float:
        """Return the least time of a connection for all numbers of masks, us."""
        return float(self._times_us().min())

    def _times_us(self) -> Floats:
        """Return the least time of a connection with 1, 2, ... masks, us; the last one is for all more."""
        masks = np.arange(1, MOST_MASKS + 2)
        misses = np.full(len(masks), self.least)
        for line in self.lines:
            misses = np.maximum(misses, line.misses(masks))
        return np.asarray(bound_us(self.problem, misses, masks))

    def find_lines(self) -> Floats | None:
        """Find prices for the numbers of masks with the least bound; return the last gains of leaves.

        returns  (leaves, places), each divided by the largest of its place; None where no price can rise
        """
        if not len(self.rise) or not self.leaves:
            return None
        gains = None
        for _ in range(LINES):
            masks = int(np.argmin(self._times_us())) + 1
            before = self.least_us()
            gains = self._find_prices(masks, masks + masks // 4 + 1)
            if gains is None or self.least_us() < before * (1 + 1e-3):
                break
        return gains

    def _find_prices(self, masks: int, most_masks: int) -> Floats | None:
        """Find prices with the highest bound for a number of masks, and add the line they give."""
        steps = PLACES[: int(np.searchsorted(PLACES, most_masks, side="right"))]
        width = np.clip(masks + 1 - steps, 0, np.append(np.diff(steps), 1 << 40)).astype(float)
        lookups = self.problem.probe_us / miss_us(self.problem, most_masks) * (steps - 1)
        matrix = self._build_rows(lookups)
        program = LinearProgram.build(
            cost=np.concatenate([-self.rise, np.maximum(width, 1e-3)]),
            rows=[Rows("gain", matrix, upper=0.0)],
            upper=np.concatenate([np.ones(len(self.rise)), np.full(len(steps), np.inf)]),
        )
        prices_found = backends.solve(program, Options(time_limit_s=TIME_LIMIT_S, threads=1))
        if prices_found.x is None:
            return None
        risen = self.rise * np.clip(prices_found.x[: len(self.rise)], 0, 1)
        price: Floats = np.ones(len(self.steps))
        np.add.at(price, self.owner, risen)
        gains = np.array([self._add_gains(leaf, price, lookups) for leaf in self.leaves])
        largest_gain = np.zeros(len(PLACES))
        largest_gain[: len(steps)] = gains.max(axis=0)
        self.lines.append(Line(most_masks, float(price.sum()), largest_gain))
        return np.asarray(gains / np.maximum(gains.max(axis=0), 1e-9))

    def _add_gains(self, leaf: Leaf, price: Floats, lookups: Floats) -> Floats:
        """Return the largest gain of a mask of a leaf in each place."""
        earned = price[leaf.group] * leaf.share - 1
        paid = lookups[:, None] * (leaf.share * self.groups.total[leaf.group])
        return np.asarray(np.maximum(earned - paid, 0.0).sum(axis=1))

    def _build_rows(self, lookups: Floats) -> sp.csr_array:
        """Return rows that hold the gain of each leaf in each place below the gain of the place.

        The gain is convex in the price, so that rises of the price each have their own coefficient.
        """
        count = 0
        rows: list[Ints] = []
        columns: list[Ints] = []
        values: list[Floats] = []
        width = len(self.rise)
        for leaf in self.leaves:
            groups_used, start = np.unique(leaf.group, return_index=True)
            weight = leaf.share * self.groups.total[leaf.group]
            for index, lookup in enumerate(lookups.tolist()):
                earned = np.maximum(PRICES[:, None] * leaf.share - 1 - lookup * weight, 0.0)
                slope = np.diff(np.add.reduceat(earned, start, axis=1), axis=0).T  # (own, rises)
                is_there = (np.arange(slope.shape[1]) < self.steps[groups_used, None]) & (slope > 0)
                which, step = np.nonzero(is_there)
                if not len(which):
                    continue
                rows.append(np.full(len(which) + 1, count))
                columns.append(np.append(self.first[groups_used[which]] + step, width + index))
                values.append(np.append(slope[which, step], -1.0))
                count += 1
        shape = (count, width + len(lookups))
        if not count:
            return sp.csr_array(shape)
        where = np.concatenate(rows), np.concatenate(columns)
        return sp.csr_array((np.concatenate(values), where), shape=shape)

    def divide(self, gains: Floats) -> bool:
        """Divide the leaves of the largest gains by the next type with a gain; False for none."""
        can_divide = np.array([not leaf.is_closed for leaf in self.leaves])
        nearest = np.where(can_divide, gains.max(axis=1), 0.0)
        selected = np.argsort(-nearest, kind="stable")[:DIVIDED]
        selected = selected[nearest[selected] > 0.9]
        if not len(selected) or len(self.leaves) > MOST_LEAVES:
            return False
        made: list[Leaf] = []
        for index in selected.tolist():
            made += self._divide_leaf(self.leaves[index])
        is_kept: Bools = np.ones(len(self.leaves), dtype=bool)
        is_kept[selected] = False
        self.leaves = [
            leaf for leaf, is_retained in zip(self.leaves, is_kept.tolist(), strict=True) if is_retained
        ] + made
        return True

    def _divide_leaf(self, leaf: Leaf) -> list[Leaf]:
        """Return the leaves of masks without a gain on a further type, and with one on each, as the next."""
        kinds = np.unique(self.type_of[leaf.group])
        leaves_made = [self._make_leaf(leaf.mask, leaf.members, True)]
        leaves_made += [
            self._make_leaf(leaf.mask | self.types[kind], (*leaf.members, kind), False)
            for kind in kinds[kinds > leaf.members[-1]].tolist()
        ]
        return [leaf_made for leaf_made in leaves_made if leaf_made is not None]
