"""Best-first branch and bound over the answers of shared queries, bounded at a pool of prices.

With its answers fixed, an interval falls apart into sites at prices of the uplinks of points of presence; the
curves of sites bound a leaf (`find_curves`), and their slopes are prices at which the whole interval has
another dual bound. No answers with a sum of regrets R at some prices have a value above their bound less R:
the least of these over all prices of the pool bounds a node.

source  Geoffrion 1974 (Lagrangian relaxation); Land, Doig 1960 (branch and bound)

Curves of sites: value of queries with additive values by uplink capacity, at prices of the next uplink.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Floats, Ints
from planner.compiled import inner, kernel, run_small_in_python
from planner.search.tolerances import COARSE_GAP, ROUNDING, STATED_GAP
from planner_models.analytics.designs import search
from planner_models.analytics.designs.choices import Interval, Separate
from planner_models.analytics.designs.exchange import exchange
from planner_models.analytics.designs.prices import Priced
from planner_models.analytics.designs.search import Answered, Found, Sites, fill, find_left

TARGET_GAP: Final = STATED_GAP  # at which branching ends
SEARCHED_GAP: Final = COARSE_GAP  # above which local search follows
MOST_LEAVES: Final = 20_000
MOST_LEAF_WORK: Final = 2e9  # leaves times the numbers that one reads, where intervals are large
MOST_NODES: Final = 100_000  # that are open at once
POOL: Final = 32  # prices
TOLERANCE: Final = ROUNDING  # of a link's capacity


class Branched(NamedTuple):
    """Choices, and a bound on the value of all choices, USD; the value found is -inf where none fits."""

    found: Found
    bound: float


def find_choices(
    interval: Interval,
    priced: Priced,
    *,
    start: Ints | None = None,
    leaves: int = MOST_LEAVES,
    evaluations: int = search.MOST_EVALUATIONS,
    gap: float = TARGET_GAP,
) -> Branched:
    """Return choices within capacity: repair, branch and bound, then local search where a gap is left.

    start        (n,) answers to start from too, such as those of the interval before
    leaves       most leaves that are bounded, fewer where an interval is large; 0: repair of the start only
    evaluations  most fillings of the links by local search
    gap          at which branching ends
    """
    shared, separate = interval.shared, interval.separate
    bound = priced.bound
    best = search.find_choices(interval, priced, start=start, evaluations=1, is_short=leaves == 0)
    if not len(shared.query) or leaves == 0:
        return Branched(best, bound)
    answers, added = best.answers.copy(), best.added.copy()
    curves = find_curves(interval.pop_of, separate, priced.price[len(interval.pop_of) :])
    sites = search.list_sites(interval, priced.price)
    regret = np.sort(priced.regret, axis=1)
    order = np.argsort(-regret[:, min(1, regret.shape[1] - 1)], kind="stable")
    work = shared.use.size + separate.value.size
    levels = shared.value.shape[1]
    nodes = min(MOST_NODES, sum(levels**decided for decided in range(len(answers) + 1)))
    tree = _Tree(
        np.empty(nodes),
        np.empty(nodes, dtype=np.int64),
        np.zeros((nodes, len(answers)), dtype=np.int16),
        np.empty(POOL),
        np.empty((POOL, *shared.value.shape)),
    )
    most_leaves = min(leaves, max(int(MOST_LEAF_WORK / max(work, 1)), 1))
    value, bound = _branch(
        _Incumbent(answers, added, best.value),
        Answered(shared.value, shared.use, priced.regret),
        priced.bound,
        _Search(order, curves, most_leaves, gap),
        sites,
        tree,
    )
    best = Found(answers, added, float(value))
    if value == -np.inf or bound > value * (1 + max(gap, SEARCHED_GAP)):
        selection = search.find_choices(interval, priced, start=answers, evaluations=evaluations)
        best = selection if selection.value > best.value else best
    return Branched(best, max(float(bound), best.value))


class _Tree(NamedTuple):
    """Memory of the search: N nodes, J prices.

    key, node  (N,) heap: bound of a node, USD, and its place; the greatest bound first
    answers    (N, n) of each node, with -1 for those that are not decided
    bound      (J,) dual bound at each prices, USD
    regret     (J, n, L) regrets at each prices, USD
    """

    key: Floats
    node: Ints
    answers: Ints
    bound: Floats
    regret: Floats


@kernel
def _push(tree: _Tree, size: int, key: float, node: int) -> int:
    """Add a node to the heap; return its new size."""
    slot = size
    while slot > 0 and tree.key[(slot - 1) // 2] < key:
        parent = (slot - 1) // 2
        tree.key[slot], tree.node[slot] = tree.key[parent], tree.node[parent]
        slot = parent
    tree.key[slot], tree.node[slot] = key, node
    return size + 1


@kernel
def _pop(tree: _Tree, size: int) -> int:
    """Remove the first node of the heap; return its new size."""
    size -= 1
    key, node = tree.key[size], tree.node[size]
    slot, child = 0, 1
    while child < size:
        if child + 1 < size and tree.key[child + 1] > tree.key[child]:
            child += 1
        if tree.key[child] <= key:
            break
        tree.key[slot], tree.node[slot] = tree.key[child], tree.node[child]
        slot, child = child, 2 * child + 1
    tree.key[slot], tree.node[slot] = key, node
    return size


@kernel
def _add_prices(tree: _Tree, slot: int, price: Floats, constant: float, value: Floats, use: Floats) -> None:
    """Put prices (M,) in the pool, with the bound and the regrets of shared queries at them.

    constant  value of the separate queries less the price of their use, USD
    """
    count, levels, links = use.shape
    total = constant + price.sum()
    for query in range(count):
        largest = -np.inf
        for level in range(levels):
            profit = value[query, level]
            if profit > -np.inf:
                for link in range(links):
                    profit -= use[query, level, link] * price[link]
                largest = max(largest, profit)
            tree.regret[slot, query, level] = profit
        total += largest
        for level in range(levels):
            tree.regret[slot, query, level] = largest - tree.regret[slot, query, level]
    tree.bound[slot] = total


@kernel
def _bound_node(tree: _Tree, node: int, pool: int, order: Ints, bounds: Floats) -> int:
    """Write the bound of a node at each prices, (J,); return the number of decided answers, in order."""
    decided = 0
    for slot in range(pool):
        bounds[slot] = tree.bound[slot]
    for query in order:
        level = tree.answers[node, query]
        if level < 0:
            break
        decided += 1
        for slot in range(pool):
            bounds[slot] -= tree.regret[slot, query, level]
    return decided


class _Incumbent(NamedTuple):
    """Answers (n,), levels added (S, n), which are changed in place, and their value; -inf for none."""

    answers: Ints
    added: Ints
    value: float


class _Search(NamedTuple):
    """State of branching.

    order        (n,) in which queries are decided
    curves       that bound leaves
    most_leaves  that are bounded
    gap          at which it ends
    """

    order: Ints
    curves: Curves
    most_leaves: int
    gap: float


@run_small_in_python(max_elements=3_000)
@kernel
def _branch(  # noqa: C901 - one compiled loop
    incumbent: _Incumbent, shared: Answered, bound: float, limits: _Search, sites: Sites, tree: _Tree
) -> tuple[float, float]:
    """Improve an incumbent in place; return its value, and a bound on all, USD.

    bound  at the first prices, as are the regrets of `shared`
    """
    order, gap, best = limits.order, limits.gap, incumbent.value
    count, levels, links = shared.use.shape
    tree.bound[0], tree.regret[0] = bound, shared.regret
    prices, made, leaves = 1, 1, 0
    tree.answers[0] = -1
    size, nodes = _push(tree, 0, bound, 0), 1
    free, unused = np.empty(len(tree.node), dtype=np.int64), 0
    is_bounded = np.zeros(len(tree.node), dtype=np.bool_)
    bounds, slope, price = np.empty(len(tree.bound)), np.empty(len(sites.pop_of)), np.empty(links)
    price[len(sites.pop_of) :] = limits.curves.pop_price
    own_added = np.empty(sites.steps.least.shape, dtype=np.int64)
    node_answers = np.empty(count, dtype=np.int64)
    dropped = best
    while size > 0:
        enough = best * (1 + gap)
        top, node = tree.key[0], tree.node[0]
        if top <= enough or leaves >= limits.most_leaves or is_bounded[node]:
            return best, max(top, dropped, best)
        size = _pop(tree, size)
        decided = _bound_node(tree, node, prices, order, bounds)
        now = min(top, bounds[:prices].min())
        if now < top - 1e-12 * abs(top):  # prices that are new since the node was added
            if now > enough:
                size = _push(tree, size, now, node)
                continue
            dropped = max(dropped, now)
        elif decided == count:
            leaves += 1
            node_answers[:] = tree.answers[node]
            remaining = find_left(node_answers, shared.use, links)
            shared_value = _sum_values(shared.value, node_answers)
            more, constant = bound_sites(remaining, limits.curves, slope)
            leaf = min(now, shared_value + more)
            if leaf > enough:
                filled = _fill_leaf(remaining, own_added, sites, shared_value, best)
                if filled > best:
                    best = filled
                    incumbent.answers[:], incumbent.added[:] = node_answers, own_added
                is_bounded[node] = True
                size = _push(tree, size, leaf, node)
            else:
                dropped = max(dropped, leaf)
                free[unused] = node
                unused += 1
            if more > -np.inf:
                slot = prices if prices < len(tree.bound) else 1 + made % (len(tree.bound) - 1)
                prices, made = min(prices + 1, len(tree.bound)), made + 1
                price[: len(sites.pop_of)] = slope
                _add_prices(tree, slot, price, constant, shared.value, shared.use)
            continue
        else:
            query = order[decided]
            for level in range(levels):
                if shared.value[query, level] == -np.inf:
                    continue
                child = min(now, (bounds[:prices] - tree.regret[:prices, query, level]).min())
                if child <= enough:
                    dropped = max(dropped, child)
                    continue
                if unused == 0 and nodes == len(tree.node):
                    return best, max(now, dropped)
                if unused > 0:
                    unused -= 1
                    other = free[unused]
                else:
                    other = nodes
                    nodes += 1
                tree.answers[other] = tree.answers[node]
                tree.answers[other, query] = level
                is_bounded[other] = False
                size = _push(tree, size, child, other)
        free[unused] = node
        unused += 1
    return best, max(best, dropped)


@inner
def _sum_values(value: Floats, answers: Ints) -> float:
    """Return the value of answers (n,), USD."""
    total = 0.0
    for query in range(len(answers)):
        total += value[query, answers[query]]
    return total


@inner
def _fill_leaf(remaining: Floats, added: Ints, sites: Sites, shared_value: float, best: float) -> float:
    """Return the value of a leaf with its uplinks filled; levels are exchanged where it is near the best."""
    filled = shared_value + fill(remaining, added, sites)
    if filled > best * (1 - SEARCHED_GAP):
        filled = exchange(remaining, added, sites.pop_of, sites.value, sites.use, sites.pop_use, filled)
    return filled


class Curves(NamedTuple):
    """Most value of each site's separate queries by remaining capacity of its uplink, less the price of use
    of the uplink of its point of presence: concave, piecewise linear.

    start   (S + 1,) first breakpoint of each site
    use     (n,) breakpoints, of the uplink's capacity; the first of a site is the least use
    value   (n,) value there, USD
    least      (G,) least use of the uplinks of points of presence
    pop_price  (G,) their prices, USD
    """

    start: Ints
    use: Floats
    value: Floats
    least: Floats
    pop_price: Floats


def find_curves(pop_of: Ints, separate: Separate, pop_price: Floats) -> Curves:
    """Return the curves of all sites at prices of points of presence, (G,) USD."""
    pop_price = np.ascontiguousarray(pop_price)
    start, use, value = _find_curves(pop_of, separate.value, separate.use, separate.pop_use, pop_price)
    possible = np.where(np.isfinite(separate.value), separate.pop_use, np.inf)
    smallest = possible.min(axis=2, initial=np.inf).sum(axis=1)
    of_pops = np.bincount(pop_of, weights=smallest, minlength=len(pop_price)).astype(float)
    return Curves(start, use, value, of_pops, pop_price)


@run_small_in_python(max_elements=1_000)
@kernel
def _find_curves(
    pop_of: Ints, value: Floats, use: Floats, pop_use: Floats, pop_price: Floats
) -> tuple[Ints, Floats, Floats]:
    sites, count, levels = value.shape
    start = np.zeros(sites + 1, dtype=np.int64)
    size = sites * (count * levels + 1)
    at_use, at_value = np.empty(size), np.empty(size)
    more_use, more_value = np.empty(count * levels), np.empty(count * levels)
    total = 0
    for site in range(sites):
        price = pop_price[pop_of[site]]
        steps = 0
        first_use = first_value = 0.0
        for query in range(count):
            level_value, level_use = value[site, query], use[site, query]
            current, at_profit = _find_first(level_value, level_use, pop_use[site, query], price)
            if current < 0:
                first_value = -np.inf
                continue
            first_use += level_use[current]
            first_value += at_profit
            while current >= 0:
                best, profit = _find_next(
                    level_value, level_use, pop_use[site, query], price, current, at_profit
                )
                if best >= 0:
                    more_use[steps] = level_use[best] - level_use[current]
                    more_value[steps] = profit - at_profit
                    steps += 1
                    at_profit = profit
                current = best
        at_use[total], at_value[total] = first_use, first_value
        total += 1
        order = np.argsort(-(more_value[:steps] / more_use[:steps]))
        for index in range(steps):
            step = order[index]
            at_use[total] = at_use[total - 1] + more_use[step]
            at_value[total] = at_value[total - 1] + more_value[step]
            total += 1
        start[site + 1] = total
    return start, at_use[:total].copy(), at_value[:total].copy()


@inner
def _find_first(value: Floats, use: Floats, pop_use: Floats, price: float) -> tuple[int, float]:
    """Return the possible level (L,) of least use, of those the one of most profit, and its profit; or -1."""
    best, best_profit = -1, 0.0
    for level in range(len(value)):
        if value[level] == -np.inf:
            continue
        profit = value[level] - price * pop_use[level]
        if best < 0 or use[level] < use[best] or (use[level] == use[best] and profit > best_profit):
            best, best_profit = level, profit
    return best, best_profit


@inner
def _find_next(
    value: Floats, use: Floats, pop_use: Floats, price: float, current: int, at_profit: float
) -> tuple[int, float]:
    """Return the level (L,) with the most additional profit over use, and its profit; -1 for none."""
    best, ratio, best_profit = -1, 0.0, 0.0
    for level in range(len(value)):
        if value[level] == -np.inf:
            continue
        profit = value[level] - price * pop_use[level]
        more = use[level] - use[current]
        if profit > at_profit and more > 0 and (profit - at_profit) / more > ratio:
            best, ratio, best_profit = level, (profit - at_profit) / more, profit
    return best, best_profit


@kernel
def bound_sites(remaining: Floats, curves: Curves, slope: Floats) -> tuple[float, float]:
    """Return a bound on the value of separate queries in the remaining capacity (M,); -inf if none fits.

    Also returns the part of it that is left at slope times nothing. Writes the slopes of the curves, (S,),
    which are prices of all of each site's uplink, USD.
    """
    sites = len(slope)
    start, use, value = curves.start, curves.use, curves.value
    constant = total = 0.0
    fits = True
    for pop in range(len(curves.pop_price)):
        fits = fits and remaining[sites + pop] >= curves.least[pop] - TOLERANCE
        total += curves.pop_price[pop] * remaining[sites + pop]
    for site in range(sites):
        low, high, available = start[site], start[site + 1] - 1, remaining[site]
        fits = fits and available >= use[low] - TOLERANCE
        if available >= use[high] or high == low:
            slope[site] = 0.0
            constant += value[high]
            continue
        while high - low > 1:
            middle = (low + high) // 2
            if use[middle] <= available:
                low = middle
            else:
                high = middle
        slope[site] = (value[high] - value[low]) / (use[high] - use[low])
        constant += value[low] - slope[site] * use[low]
        total += slope[site] * available
    return (total + constant if fits else -np.inf), constant
