"""Bound on the data to move, and moves near it, by Lagrangian relaxation of where replicas go.

Replicas are in classes by load, and a price is paid for each that leaves to the node that takes one of its
class. For given prices each node decides alone, and exactly: which of its replicas leave, so that it is
within its limit with those that it takes (a knapsack, the same for all nodes). The sum over nodes is a bound,
and the prices rise by subgradients. The nodes' decisions also make plans: what leaves is packed by best fit.

Source: Held, Wolfe, Crowder 1974 (subgradients); Fisher 1981 (Lagrangian relaxation).
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Floats, Ints
from planner.compiled import njit, run_small_in_python
from planner_models.fairshare.designs.placement_rules import Rules, State, may_be, put

CLASSES: Final = 512
CELLS: Final = 4_000  # of the largest limit: loads that are taken are rounded down to whole ones
CHOSEN: Final = 6  # replicas with most load of a node that leave or stay one by one; of others, so many leave
MOST_ROUNDS: Final = 3_000
MOST_WORK: Final = 2_000_000_000
STALL_ROUNDS: Final = 40
SHORTER: Final = 0.7  # factor on the step where the bound stalls
LEAST_STEP: Final = 1e-3
AHEAD: Final = 1.07  # the bound that steps aim at, over the present one
MEMORY: Final = 0.5  # part of the last direction in the next one
REPAIR: Final = 5.0  # replicas that move in repair for each one without a node
CANDIDATES: Final = 16  # decisions that are packed with repair, those with least data


class Items(NamedTuple):
    """Replicas that may leave, by node, those with most load first: I of them.

    first    (N + 1,) of each node's
    slot     (I,) partition times the largest number of replicas, plus the replica
    load, gb (I,) load; data that is copied if it leaves
    """

    first: Ints
    slot: Ints
    load: Floats
    gb: Floats


class Decisions(NamedTuple):
    """Decision of each node, (N,).

    bits   which of the first replicas leave; further  how many of the next ones leave
    taken  load that it may take, in cells
    """

    bits: Ints
    further: Ints
    taken: Ints


class Priced(NamedTuple):
    """Bound on the data to move, GB, and the slots that leave in the decisions near it."""

    bound_gb: float
    leaving: list[Ints]


def list_items(rules: Rules, state: State, load: Floats, gb: Floats) -> Items:
    """Return the replicas that may leave.

    gb  (P,) data that is copied if a replica of the partition leaves
    """
    width = state.node.shape[1]
    partition, replica = np.nonzero((state.node >= 0) & ~state.is_pinned & (load > 0)[:, None])
    node = state.node[partition, replica]
    order = np.lexsort((-load[partition], node))
    first = np.searchsorted(node[order], np.arange(len(rules.rate) + 1))
    partition = partition[order]
    return Items(first, partition * width + replica[order], load[partition], gb[partition])


class Classes(NamedTuple):
    """Replicas by load: C classes.

    sizes     (C,) load of each, in cells
    of_item   (I,) class of each item, -1 for none
    least_gb  (N,) least data of a node's items after the first ones
    step      load of a cell
    cells     of the largest limit
    """

    sizes: Ints
    of_item: Ints
    least_gb: Floats
    step: float
    cells: int


@run_small_in_python(max_elements=2_000)
@njit(cache=True, nogil=True)
def decide_nodes(
    prices: Floats, classes: Classes, slack: Floats, items: Items, decisions: Decisions, surplus: Floats
) -> float:
    """Return the sum of the nodes' least costs; fill their decisions, and the leaving less the taken load.

    prices, surplus  (C,) GB; replicas that leave less those that nodes take
    slack            (N,) limit less load; negative where above it
    """
    value, choice = fill_knapsack(prices, classes.sizes, classes.cells)
    surplus[:] = 0.0
    total = 0.0
    frees, costs = np.empty(1 << CHOSEN), np.empty(1 << CHOSEN)  # by the first replicas that leave
    load, first, of_item = items.load, items.first, classes.of_item
    step, cells, least_gb = classes.step, classes.cells, classes.least_gb
    for n in range(len(slack)):
        begin, end = first[n], first[n + 1]
        exact_count = min(CHOSEN, end - begin)
        frees[0], costs[0] = slack[n], 0.0
        add_up_leaving(items, of_item, prices, n, frees, costs)
        best = np.inf
        for bits in range(1 << exact_count):
            free, cost, further = frees[bits], costs[bits], 0
            while cost - value[cells] < best:
                x = min(int(max(free, 0.0) / step + 1e-9), cells)
                if free >= -1e-9 * step and cost - value[x] < best - 1e-15:
                    best = cost - value[x]
                    decisions.bits[n], decisions.further[n], decisions.taken[n] = bits, further, x
                if begin + exact_count + further >= end:
                    break
                free += load[begin + exact_count + further]
                cost += least_gb[n]
                further += 1
        if best == np.inf:  # pinned replicas alone are above the limit
            decisions.bits[n] = decisions.further[n] = decisions.taken[n] = 0
            continue
        total += best
        for j in range(exact_count):
            if decisions.bits[n] >> j & 1 and of_item[begin + j] >= 0:
                surplus[of_item[begin + j]] += 1.0
        x = decisions.taken[n]
        while choice[x] >= 0:
            surplus[choice[x]] -= 1.0
            x -= classes.sizes[choice[x]]
    return total


@njit(cache=True, nogil=True)
def fill_knapsack(prices: Floats, sizes: Ints, cells: int) -> tuple[Floats, Ints]:
    """Return the most that a node earns by taking load, and the last class that it takes, (X + 1,)."""
    value, choice = np.zeros(cells + 1), np.full(cells + 1, -1)
    for c in range(len(sizes)):
        size, price = sizes[c], prices[c]
        if size > cells or price <= value[size]:  # smaller ones are worth as much
            continue
        for x in range(size, cells + 1):
            if value[x - size] + price > value[x] + 1e-15:
                value[x], choice[x] = value[x - size] + price, c
    return value, choice


@njit(cache=True, nogil=True)
def add_up_leaving(items: Items, of_item: Ints, prices: Floats, n: int, frees: Floats, costs: Floats) -> None:
    """Fill the free load and the cost of a node for each set of its first replicas that leaves, as bits.

    frees, costs  those of the empty set are there
    """
    begin = items.first[n]
    for bits in range(1, 1 << min(CHOSEN, items.first[n + 1] - begin)):
        j = 0
        while bits >> j & 1 == 0:
            j += 1
        remainder = bits & (bits - 1)
        frees[bits] = frees[remainder] + items.load[begin + j]
        costs[bits] = costs[remainder] + items.gb[begin + j]
        if of_item[begin + j] >= 0:
            costs[bits] += prices[of_item[begin + j]]


@run_small_in_python(max_elements=2_000)
@njit(cache=True, nogil=True)
def list_leaving(items: Items, decisions: Decisions) -> Ints:
    """Return the items that leave by the nodes' decisions."""
    leaving = np.empty(len(items.slot), dtype=np.int64)
    count = 0
    for n in range(len(items.first) - 1):
        begin, end = items.first[n], items.first[n + 1]
        exact_count = min(CHOSEN, end - begin)
        for j in range(exact_count):
            if decisions.bits[n] >> j & 1:
                leaving[count] = begin + j
                count += 1
        for j in range(decisions.further[n]):
            leaving[count] = begin + exact_count + j
            count += 1
    return leaving[:count]


@run_small_in_python(max_elements=2_000)
@njit(cache=True, nogil=True)
def pack_loads(slack: Floats, items: Items, leaving: Ints, missing: Floats) -> int:
    """Return the number of replicas without a node if those that leave are packed by best fit, by load.

    missing  loads of replicas that are nowhere yet
    """
    free = slack.copy()
    loads = np.empty(len(leaving) + len(missing))
    homes = np.full(len(loads), -1)
    loads[len(leaving) :] = missing
    for k in range(len(leaving)):
        n = np.searchsorted(items.first, leaving[k], side="right") - 1
        loads[k], homes[k] = items.load[leaving[k]], n
        free[n] += loads[k]
    unplaced = 0
    for k in np.argsort(-loads):
        best = -1
        for n in range(len(free)):
            if n != homes[k] and free[n] >= loads[k] and (best < 0 or free[n] < free[best]):
                best = n
        if best < 0:
            unplaced += 1
        else:
            free[best] -= loads[k]
    return unplaced


class _Candidates:
    """Decisions with the least data, and with the repair of replicas that are not packed."""

    def __init__(self, items: Items, missing_load: Floats, typical_gb: float) -> None:
        self.items, self.missing_load, self.typical_gb = items, missing_load, typical_gb
        self.found: dict[tuple[int, ...], tuple[float, Ints]] = {}

    def add(self, slack: Floats, decisions: Decisions) -> float:
        """Add decisions; return their data, infinite where not all is packed."""
        leaving = list_leaving(self.items, decisions)
        unplaced = pack_loads(slack, self.items, leaving, self.missing_load)
        gb = float(self.items.gb[leaving].sum())
        score = gb + REPAIR * self.typical_gb * unplaced
        key = tuple(leaving.tolist())
        if key not in self.found and (len(self.found) < CANDIDATES or score < self.worst()):
            self.found[key] = (score, self.items.slot[leaving])
            if len(self.found) > CANDIDATES:
                del self.found[max(self.found, key=lambda candidate_key: self.found[candidate_key][0])]
        return np.inf if unplaced else gb

    def worst(self) -> float:
        """Return the largest score."""
        return max(score for score, _ in self.found.values())

    def ordered(self) -> list[Ints]:
        """Return the slots that leave, the smallest score first."""
        return [slots for _, slots in sorted(self.found.values(), key=lambda candidate: candidate[0])]


def _size_classes(step: float, load: Floats) -> tuple[Ints, Ints]:
    """Return the loads of classes in cells, (C,), and the class of each load, -1 for none."""
    largest = float(load.max())
    sizes = np.unique(np.floor(np.geomspace(max(10 * step, largest / 1e3), largest, CLASSES) / step))
    sizes = sizes[sizes >= 1].astype(np.int64)
    of_class = np.searchsorted(sizes * step, load * (1 + 1e-12), side="right") - 1
    used, number = np.unique(of_class[of_class >= 0], return_inverse=True)
    of_class[of_class >= 0] = number
    return sizes[used], of_class.astype(np.int64)


def price_moves(
    slack: Floats, upper: Floats, items: Items, missing_load: Floats, missing_gb: float
) -> Priced:
    """Return a bound on the data to move until all nodes are within their limits, and decisions near it.

    slack, most    (N,) limit less load, limit
    missing_load  loads of replicas that are nowhere yet
    missing_gb    data that is copied for these, at least
    """
    step = max(float(upper.max(initial=0.0)), 1e-300) / CELLS
    loads = np.concatenate([items.load, missing_load])
    if loads.max(initial=0.0) < step:
        return Priced(missing_gb, [])
    sizes, classes = _size_classes(step, loads)
    of_class, missing = classes[: len(items.load)], classes[len(items.load) :]
    missing_of = np.bincount(missing[missing >= 0], minlength=len(sizes)).astype(float)
    ends = zip(items.first[:-1].tolist(), items.first[1:].tolist(), strict=True)
    least_gb = np.array([items.gb[begin + CHOSEN : end].min(initial=np.inf) for begin, end in ends])
    by_load = Classes(sizes, of_class, least_gb, step, CELLS)
    decisions = Decisions(*(np.zeros(len(slack), dtype=np.int64) for _ in range(3)))
    surplus, direction = np.zeros(len(sizes)), np.zeros(len(sizes))
    typical = float(items.gb.mean()) if len(items.gb) else missing_gb / max(len(missing_load), 1)
    candidates = _Candidates(items, missing_load, typical)
    prices = np.zeros(len(sizes))
    best, pace, stall = 0.0, 1.0, 0
    work = len(slack) * (1 << CHOSEN) + len(sizes) * CELLS
    for k in range(min(MOST_ROUNDS, max(MOST_WORK // work, 100))):
        total = decide_nodes(prices, by_load, slack, items, decisions, surplus)
        bound = total + missing_gb + float(prices @ missing_of)
        best, stall = (bound, 0) if bound > best * (1 + 1e-5) else (best, stall + 1)
        is_met = candidates.add(slack, decisions) + missing_gb <= best * (1 + 1e-6)
        if stall >= STALL_ROUNDS:
            pace, stall = pace * SHORTER, 0
        direction = surplus + missing_of + MEMORY * direction
        square = float(direction @ direction)
        if is_met or square <= 0 or pace < LEAST_STEP:
            break
        aim = max(best * AHEAD, best + 0.5 * typical)
        prices = np.maximum(prices + pace * (aim - bound) / square * direction, 0.0)
        if k == 0:  # a start at which few replicas are taken at no price
            prices = typical * np.minimum(sizes * step / max(float(slack.max()), step), 1.0)
            direction[:] = 0.0
    return Priced(max(best, missing_gb), candidates.ordered())


@run_small_in_python(max_elements=2_000)
@njit(cache=True, nogil=True)
def pack(
    rules: Rules, state: State, load: Floats, upper: Floats, leaving: Ints, order: Ints, makes_space: bool
) -> int:
    """Take replicas away and put all that are missing where they fit best; return those without a node.

    leaving      slots of replicas
    order        (P,) partitions, those with most load first
    makes_space  whether one that fits nowhere goes where others leave, with the least data, and fit elsewhere
    """
    width = state.node.shape[1]
    old = np.full(state.node.shape, -1)
    for slot in leaving:
        p, r = slot // width, slot % width
        old[p, r] = state.node[p, r]
        put(rules, state, load, p, r, -1)
    missing = 0
    for p in order:
        for r in range(rules.wanted[p]):
            missing += state.node[p, r] < 0
    waiting, unplaced = np.empty(missing, dtype=np.int64), 0
    for p in order:
        for r in range(rules.wanted[p]):
            if state.node[p, r] >= 0:
                continue
            best = find_tightest(rules, state, load, upper - state.load, p, r, old[p, r])
            if best < 0:
                waiting[unplaced] = p * width + r
                unplaced += 1
            else:
                put(rules, state, load, p, r, best)
    if unplaced == 0 or not makes_space:
        return unplaced
    return place_by_making_space(rules, state, load, upper, waiting[:unplaced], order, old)


@njit(cache=True, nogil=True)
def place_by_making_space(
    rules: Rules, state: State, load: Floats, upper: Floats, waiting: Ints, order: Ints, old: Ints
) -> int:
    """Put replicas on the nodes that others leave with the least data; return those without a node.

    waiting  slots of the replicas
    """
    width = state.node.shape[1]
    first, slots = list_by_node(rules, state, load, order)
    unplaced = 0
    for slot in waiting:
        p, r = slot // width, slot % width
        best, lowest_gb = -1, np.inf
        for n in range(len(upper)):
            if n != old[p, r] and may_be(rules, state, p, r, n, np.inf):
                gb = make_space(rules, state, load, upper, first, slots, old, p, n, lowest_gb, False)
                if gb < lowest_gb:
                    best, lowest_gb = n, gb
        if best >= 0:
            make_space(rules, state, load, upper, first, slots, old, p, best, np.inf, True)
        if best >= 0 and may_be(rules, state, p, r, best, 0.0):
            put(rules, state, load, p, r, best)
        else:
            unplaced += 1
    return unplaced


@njit(cache=True, nogil=True)
def find_tightest(
    rules: Rules, state: State, load: Floats, free: Floats, p: int, r: int, other_than: int
) -> int:
    """Return the node with the least slack on which a replica fits; -1 for none.

    free  (N,) slack of nodes
    """
    best, tightest = -1, np.inf
    for n in range(len(free)):
        if n != other_than and load[p] <= free[n] < tightest and may_be(rules, state, p, r, n, 0.0):
            best, tightest = n, free[n]
    return best


@njit(cache=True, nogil=True)
def list_by_node(rules: Rules, state: State, load: Floats, order: Ints) -> tuple[Ints, Ints]:
    """Return the slots of replicas that have load and may go, by node, most load first, and their starts."""
    width = state.node.shape[1]
    first = np.zeros(len(rules.rate) + 1, dtype=np.int64)
    for turn in range(2):
        if turn == 1:
            slots, next_slot = np.empty(first[-1], dtype=np.int64), first[:-1].copy()
        for p in order:
            for r in range(width):
                n = state.node[p, r]
                if n < 0 or load[p] <= 0 or state.is_pinned[p, r]:
                    continue
                if turn == 0:
                    first[n + 1] += 1
                else:
                    slots[next_slot[n]] = p * width + r
                    next_slot[n] += 1
        if turn == 0:
            first = np.cumsum(first)
    return first, slots


@njit(cache=True, nogil=True)
def make_space(
    rules: Rules,
    state: State,
    load: Floats,
    upper: Floats,
    first: Ints,
    slots: Ints,
    old: Ints,
    p: int,
    n: int,
    limit: float,
    moves: bool,
) -> float:
    """Return the data of replicas that leave a node for others, so that one of a partition fits on it.

    Those with most load that fit elsewhere leave first. Infinite where they do not suffice, or from `limit`
    on.

    first, slots  replicas by node
    old           (P, largest number of replicas) nodes that replicas have left; these cost nothing
    moves         whether they are moved
    """
    width = state.node.shape[1]
    free = upper - state.load
    need, gb = load[p] - free[n], 0.0
    free[n] = -np.inf
    largest = free.max()
    for k in range(first[n], first[n + 1]):
        if need <= 0 or gb >= limit:
            break
        q, s = slots[k] // width, slots[k] % width
        if state.node[q, s] != n or q == p or load[q] > largest:
            continue
        m = find_tightest(rules, state, load, free, q, s, old[q, s])
        if m < 0:
            continue
        need -= load[q]
        gb += rules.size[q] if old[q, s] < 0 else 0.0
        free[m] -= load[q]
        largest = free.max()
        if moves:
            if old[q, s] < 0:
                old[q, s] = n
            put(rules, state, load, q, s, m)
    return gb if need <= 0 else np.inf
