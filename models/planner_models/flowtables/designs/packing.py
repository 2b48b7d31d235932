"""The fewest misses by column generation: a cover of headers by cubes, and a packing that bounds every cover.

A cube, the headers of an entry, is valid where all its headers have one action. Let each header have a price
so that the prices in no valid cube add up to more than 1: no cover by valid cubes has fewer of them than the
sum of all prices (the dual of the linear program of the cover). Prices come from the program over the cubes
so far. For each header with a price, branch and bound finds the valid cube with the largest sum around it:
one above 1 is a new column, extended by further headers; the price divided by the sum is one that is allowed.
A cube is left out only where a header of another action is found in it. Colours, sets of headers of which no
two are in one valid cube, bound what further headers add.

source  Gilmore and Gomory 1961 (column generation); Tomita and Kameda 2007, "An efficient branch-and-bound
        algorithm for finding a maximum clique" (colours)
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import scipy.sparse as sp

from planner import backends
from planner.arrays import Bools, Floats, Ints
from planner.backends.linear_program import LinearProgram, Rows
from planner.bits import count_bits
from planner.compiled import inner, kernel, run_small_in_python
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.tolerances import FEASIBILITY, SOLVER
from planner_models.flowtables.designs.bound import find_forced, is_mixed, make_near
from planner_models.flowtables.plan.bit_index import BLOCK, keeps_action, make_bit_index
from planner_models.flowtables.plan.classification import classify
from planner_models.flowtables.problem.fields import Words
from planner_models.flowtables.problem.problem import FlowTables

STARTS: Final = 2  # cubes around each header at the start
MOST_NODES: Final = 1_000  # of branch and bound around a header
PRICED_AT_A_TIME: Final = 100
LEAST_PRICE: Final = SOLVER
ENOUGH: Final = FEASIBILITY  # of a sum of prices above 1
ROUNDING_S: Final = 30.0
ROUNDING_GAP: Final = 0.005
MOST_REDUCED_COST: Final = 0.25  # of columns that the cover of whole columns may have


class Cubes(NamedTuple):
    """Valid cubes that cover all headers, and the bound on their number.

    header  (k,) a header of each; mask (k, words)
    """

    header: Ints
    mask: Words
    bound: float


def pack(problem: FlowTables, words: Words, rounds: int, deadline: Deadline) -> Cubes:
    """Return few valid cubes that cover headers (n, words), and a bound on the number of any.

    rounds  most programs over more cubes
    deadline  after which no other round begins
    """
    search = _Search(problem, words)
    bound = 0.0
    for _ in range(rounds):
        if deadline.is_over:
            break
        price = search.find_prices()
        if price is None:
            break
        allowed, is_last = search.generate(price, deadline)
        bound = max(bound, allowed)
        if is_last:
            break
    selected = search.choose(deadline)
    return Cubes(search.header[selected], search.mask[selected], bound)


class _Search:
    """Cubes so far, and the program of their cover."""

    def __init__(self, problem: FlowTables, words: Words) -> None:
        self.words, self.rules, self.used = words, problem.entries, problem.used_mask
        self.index = make_bit_index(problem)
        self.actions = classify(words, self.rules)
        forced = find_forced(words, self.actions, problem.used_mask, self.rules)
        self.shares = find_shared(words, self.actions, forced, self.rules, self.index)
        self.random = np.random.default_rng(0)
        self.header: Ints = np.zeros(0, dtype=np.int64)
        self.mask: Words = np.zeros((0, words.shape[1]), dtype=np.uint64)
        self.rows: list[Ints] = []
        self._known: set[bytes] = set()
        every = np.arange(len(words))
        for _ in range(STARTS):
            self._add(every, np.full_like(words, self.used), self.random.random(len(words)))

    def _add(self, header: Ints, mask: Words, priority: Floats) -> None:
        """Add cubes around headers, extended by further ones in the order of their priority."""
        extended = extend(self.words, header, mask, priority, self.shares, self.rules, self.index)
        keys = np.hstack([extended, self.words[header] & extended])
        rows_added = []
        for row, key in enumerate(keys):
            if key.tobytes() not in self._known:
                self._known.add(key.tobytes())
                rows_added.append(row)
        for row in rows_added:
            inside = ((self.words ^ self.words[header[row]]) & extended[row] == 0).all(axis=1)
            self.rows.append(np.flatnonzero(inside))
        self.header = np.concatenate([self.header, header[rows_added]])
        self.mask = np.vstack([self.mask, extended[rows_added]])

    def _make_matrix(self) -> sp.csc_array:
        start = np.cumsum([0, *(len(rows) for rows in self.rows)])
        data = np.concatenate(self.rows)
        return sp.csc_array((np.ones(len(data)), data, start), shape=(len(self.words), len(self.rows)))

    def find_prices(self) -> Floats | None:
        """Return the dual price of each header in the cover by cubes so far, (n,); None for unknown."""
        matrix = self._make_matrix()
        program = LinearProgram.build(cost=np.ones(matrix.shape[1]), rows=[Rows("cover", matrix, lower=1.0)])
        solution = backends.solve(program, Options(threads=1))
        if solution.row_duals is None or solution.x is None:
            return None
        self.price: Floats = np.maximum(solution.row_duals, 0.0)
        self.x: Floats = solution.x
        return self.price

    def generate(self, price: Floats, deadline: Deadline) -> tuple[float, bool]:
        """Add cubes with prices that add up to more than 1; return the bound, and whether there are none."""
        priced = np.flatnonzero(price > LEAST_PRICE)
        priced = priced[np.argsort(-price[priced], kind="stable")]
        bound, headers, masks = 0.0, [], []
        for begin in range(0, len(priced), PRICED_AT_A_TIME):
            if begin and deadline.is_over:
                break  # headers without a largest sum have no price in the bound
            chunk = priced[begin : begin + PRICED_AT_A_TIME]
            upper, best, mask = find_heaviest(
                chunk,
                priced,
                self.words,
                price,
                self.actions,
                self.shares,
                self.rules,
                self.index,
                MOST_NODES,
            )
            bound += float((price[chunk] / upper).sum())
            is_new = best > 1 + ENOUGH
            headers.append(chunk[is_new])
            masks.append(mask[is_new] & self.used)
        header = np.concatenate(headers) if headers else np.zeros(0, dtype=np.int64)
        if len(header):
            self._add(header, np.vstack(masks), price + 1e-3 * self.random.random(len(price)))
        return bound, not len(header)

    def choose(self, deadline: Deadline) -> Ints:
        """Return cubes that cover all headers: those that the program takes whole, and few of the others."""
        if self.find_prices() is None:
            return np.arange(len(self.rows))
        matrix = self._make_matrix()
        reduced = 1 - self.price @ matrix
        is_whole: Bools = self.x > 1 - ENOUGH
        open_rows = np.flatnonzero(~(matrix[:, is_whole].sum(axis=1) > 0))
        columns = np.flatnonzero(~is_whole & (reduced < MOST_REDUCED_COST))
        block = sp.csr_array(matrix[:, columns])[open_rows]
        left_s = min(max(deadline.left_s, 1.0), ROUNDING_S)
        fractional = np.zeros(0, dtype=np.int64)
        if len(open_rows):
            program = LinearProgram.build(
                cost=np.ones(len(columns)),
                rows=[Rows("cover", block, lower=1.0)],
                upper=np.ones(len(columns)),
                integer=np.ones(len(columns), dtype=bool),
            )
            solution = backends.solve(program, Options(threads=1, time_limit_s=left_s, gap=ROUNDING_GAP))
            is_taken = np.ones(len(columns), dtype=bool) if solution.x is None else solution.x > 0.5
            fractional = columns[is_taken]
        return np.concatenate([np.flatnonzero(is_whole), fractional])


@inner
def has(row: Any, number: Any) -> Any:
    """Return whether a number is in a set, given by bits of words."""
    return (row[number >> 6] >> np.uint64(number & 63)) & np.uint64(1) != 0


@inner
def put(row: Any, number: Any) -> None:
    """Add a number to a set."""
    row[number >> 6] |= np.uint64(1) << np.uint64(number & 63)


@run_small_in_python(max_elements=1_000)
@kernel
def find_shared(words: Any, actions: Any, forced: Any, rules: Any, index: Any) -> Any:
    """Return for each header the set of those of which it is not known that no valid cube holds both.

    forced  (n, words) bits that change the action of a header where flipped
    """
    count, width = words.shape
    shares = np.zeros((count, (count + 63) >> 6), np.uint64)
    scratch, mask = np.zeros(BLOCK, np.uint64), np.zeros(width, np.uint64)
    witness = np.zeros(width, np.uint64)
    near, near_start = make_near(rules)
    for a in range(count):
        for b in range(a):
            if actions[a] != actions[b]:
                continue
            flips = np.uint64(0)
            for w in range(width):
                mask[w] = ~(words[a, w] ^ words[b, w])
                flips |= ~mask[w] & (forced[a, w] | forced[b, w])
            if flips:
                continue
            if keeps_action(words[a], mask, index, rules, scratch) or not is_mixed(
                words[a], mask, actions[a], rules, witness, near, near_start
            ):
                put(shares[a], b)
                put(shares[b], a)
    return shares


@run_small_in_python(max_elements=1_000)
@kernel
def extend(words: Any, header: Any, masks: Any, priority: Any, shares: Any, rules: Any, index: Any) -> Any:
    """Return masks (k, words) with fewer bits: cubes take up further headers, of high priority first.

    header    (k,) a header of each cube
    priority  (n,) of headers
    """
    width = words.shape[1]
    scratch, extended, mask = np.zeros(BLOCK, np.uint64), masks.copy(), np.zeros(width, np.uint64)
    order = np.argsort(-priority)
    for row in range(len(header)):
        h = header[row]
        for g in order:
            if g == h or not has(shares[h], g):
                continue
            is_inside = True
            for w in range(width):
                mask[w] = extended[row, w] & ~(words[h, w] ^ words[g, w])
                is_inside &= mask[w] == extended[row, w]
            if not is_inside and keeps_action(words[h], mask, index, rules, scratch):
                extended[row] = mask
    return extended


@inner
def colour(remaining: Any, together: Any, price: Any, order: Any, upper: Any) -> Any:
    """List numbers, with the most price that those up to each one have in one cube; return their number.

    Numbers of one colour are in no cube together: of each colour, a cube has the price of one.

    remaining         set of numbers, of falling price; it is emptied
    together     (k, words) sets of numbers that may be in a cube with each one
    order, most  (k,) the list, and the price of cubes of the numbers up to each one
    """
    count, total = 0, 0.0
    free = np.zeros_like(remaining)
    while True:
        is_empty = True
        for w in range(len(remaining)):
            free[w] = remaining[w]
            is_empty &= remaining[w] == 0
        if is_empty:
            return count
        largest = 0.0
        for w in range(len(remaining)):
            while free[w]:
                lowest = free[w] & (~free[w] + np.uint64(1))
                v = np.int64(w) * 64 + np.int64(count_bits(lowest - np.uint64(1)))
                remaining[w] ^= lowest
                free[w] ^= lowest
                for x in range(w, len(remaining)):
                    free[x] &= ~together[v, x]
                largest = max(largest, price[v])
                order[count], upper[count] = v, total + largest
                count += 1
        total += largest


@run_small_in_python(max_elements=1_000)
@kernel
def find_heaviest(
    headers: Any, priced: Any, words: Any, price: Any, actions: Any, shares: Any, rules: Any, index: Any,
    most_nodes: Any,
) -> Any:  # fmt: skip
    """Return a limit on the prices of a valid cube around each header, at least 1; a valid one, its prices.

    headers     (k,) of `priced`, which are headers of falling price
    most_nodes  of branch and bound around each; the limit is larger where it ends early
    """
    count, width = len(headers), words.shape[1]
    upper, best = np.zeros(count), np.zeros(count)
    masks = np.zeros((count, width), np.uint64)
    for row in range(count):
        upper[row], best[row] = search_around(
            headers[row], priced, words, price, actions, shares, rules, index, most_nodes, masks[row]
        )
    return upper, best, masks


@inner
def find_together(
    root: Any, members: Any, words: Any, action: Any, shares: Any, rules: Any, index: Any
) -> Any:
    """Return for each of some members the set of those that may be in one cube with it and a header."""
    width = words.shape[1]
    together = np.zeros((len(members), (len(members) >> 6) + 1), np.uint64)
    scratch, mask, witness = (
        np.zeros(BLOCK, np.uint64),
        np.zeros(width, np.uint64),
        np.zeros(width, np.uint64),
    )
    near, near_start = make_near(rules)
    for a in range(len(members)):
        for b in range(a):
            if not has(shares[members[a]], members[b]):
                continue
            for w in range(width):
                root_word = words[root, w]
                mask[w] = ~((root_word ^ words[members[a], w]) | (root_word ^ words[members[b], w]))
            if keeps_action(words[root], mask, index, rules, scratch) or not is_mixed(
                words[root], mask, action, rules, witness, near, near_start
            ):
                put(together[a], b)
                put(together[b], a)
    return together


@inner
def search_around(  # noqa: C901
    root: Any, priced: Any, words: Any, price: Any, actions: Any, shares: Any, rules: Any, index: Any,
    most_nodes: Any, best_mask: Any,
) -> Any:  # fmt: skip
    """Return a limit on the prices of a valid cube around a header, at least 1, and those of the best found.

    A node is the smallest cube with the headers taken so far. It takes one more of `candidates`, whose
    colours limit what they can add; then this one is out. Cubes that hold a header that is out are known.
    Cubes in which no header of another action is found count for the limit; only valid ones are returned.
    """
    width = words.shape[1]
    members = priced[np.array([g != root and has(shares[root], g) for g in priced])]
    value = price[members]
    together = find_together(root, members, words, actions[root], shares, rules, index)
    count, size = len(members), (len(members) >> 6) + 1
    scratch, witness = np.zeros(BLOCK, np.uint64), np.zeros(width, np.uint64)
    near, near_start = make_near(rules)
    depths = 64 * width + 2  # each header that is taken takes a bit from the mask
    candidates, inside = np.zeros((depths, size), np.uint64), np.zeros((depths, size), np.uint64)
    mask, total = np.zeros((depths, width), np.uint64), np.zeros(depths)
    order, upper = np.zeros((depths, count), np.int64), np.zeros((depths, count))
    open_, remaining = np.zeros(depths, np.int64), np.zeros(size, np.uint64)
    mask[0] = ~np.uint64(0)
    best_mask[:] = mask[0]
    for a in range(count):
        put(candidates[0], a)
    total[0] = best = best_valid = price[root]
    depth, nodes, is_new = 0, 0, True
    while depth >= 0:
        if is_new:
            is_new = False
            nodes += 1
            remaining[:] = candidates[depth]
            open_[depth] = colour(remaining, together, value, order[depth], upper[depth])
            if nodes > most_nodes:
                limit = max(best, 1.0)
                for d in range(depth + 1):
                    if open_[d] > 0:
                        limit = max(limit, total[d] + upper[d, open_[d] - 1])
                return limit, best_valid
        open_[depth] -= 1
        c = open_[depth]
        if c < 0 or total[depth] + upper[depth, c] <= max(best, 1.0) + 1e-9:
            depth -= 1
            continue
        v = order[depth, c]
        if not has(candidates[depth], v):
            continue
        below = depth + 1
        candidates[depth, v >> 6] ^= np.uint64(1) << np.uint64(v & 63)
        for w in range(width):
            mask[below, w] = mask[depth, w] & ~(words[root, w] ^ words[members[v], w])
        inside[below] = 0
        total[below] = price[root]
        is_known = False
        for a in range(count):
            differs = np.uint64(0)
            for w in range(width):
                differs |= (words[root, w] ^ words[members[a], w]) & mask[below, w]
            if differs:
                continue
            if a != v and not has(inside[depth], a) and not has(candidates[depth], a):
                is_known = True
                break
            put(inside[below], a)
            total[below] += value[a]
        if is_known:
            continue
        is_valid = keeps_action(words[root], mask[below], index, rules, scratch)
        if not is_valid and is_mixed(
            words[root], mask[below], actions[root], rules, witness, near, near_start
        ):
            continue
        for w in range(size):
            candidates[below, w] = candidates[depth, w] & ~inside[below, w]
        for a in range(count):
            if has(inside[below], a) and not has(inside[depth], a):
                for w in range(size):
                    candidates[below, w] &= together[a, w]
        best = max(best, total[below])
        if is_valid and total[below] > best_valid:
            best_valid = total[below]
            best_mask[:] = mask[below]
        depth, is_new = below, True
    return max(best, 1.0), best_valid
