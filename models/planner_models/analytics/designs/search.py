"""Levels within capacity from prices: repair of overloaded uplinks, then local search pruned by regrets.

A shared query's answer is changed alone or with that of another; what is left on uplinks is then filled by
the queries whose values add up, in the order of value by price. No answers with a sum of regrets R have a
value above the bound less R, so that moves beyond the incumbent are not evaluated.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Floats, Ints
from planner.compiled import inner, kernel, run_small_in_python
from planner.search.tolerances import ROUNDING, SOLVER
from planner_models.analytics.designs.choices import Interval, Separate
from planner_models.analytics.designs.exchange import exchange
from planner_models.analytics.designs.prices import Priced, best_answers

TOLERANCE: Final = ROUNDING  # of a link's capacity
LEAST_PRICE: Final = 1e-3  # of the mean price, at which a link without a price counts in the order
LEAST_GAIN: Final = SOLVER  # of the value, that a move must have
MOST_EVALUATIONS: Final = 4_000
MOST_WORK: Final = 8.4e7
"""Evaluations times the numbers that one reads: those of 200 sites and 50 queries have all of them."""


class Steps(NamedTuple):
    """Steps of sites to finer levels of queries with additive values, the most value by price first.

    least  (S, n) level of fewest bytes
    site, query, before, after  of each step
    value, use, pop_use         what a step adds
    """

    least: Ints
    site: Ints
    query: Ints
    before: Ints
    after: Ints
    value: Floats
    use: Floats
    pop_use: Floats


class Sites(NamedTuple):
    """Separate queries of an interval, as in `Separate`, with the steps that fill the remaining bandwidth.

    pop_of  (S,) point of presence of each site
    """

    pop_of: Ints
    value: Floats
    use: Floats
    pop_use: Floats
    steps: Steps


class Answered(NamedTuple):
    """Value and use of answers of shared queries, as in `Shared`; the regret of each, USD."""

    value: Floats
    use: Floats
    regret: Floats


class Incumbent(NamedTuple):
    """Answers (n,), the capacity of uplinks that remains beside them (M,), and levels added (S, n)."""

    answers: Ints
    remaining: Floats
    added: Ints


class Found(NamedTuple):
    """Answers (n,) and levels added (S, n), and their value, USD; `value` is -inf where none fits."""

    answers: Ints
    added: Ints
    value: float


def find_choices(
    interval: Interval,
    priced: Priced,
    *,
    start: Ints | None = None,
    evaluations: int = MOST_EVALUATIONS,
    is_short: bool = False,
) -> Found:
    """Return choices within capacity, from those that are best at the prices, and from other answers.

    start        (n,) answers to start from too, such as those of the interval before
    evaluations  most fillings of the links
    is_short     whether the start is only repaired, and others are tried only where that does not fit
    """
    shared, separate = interval.shared, interval.separate
    sites = list_sites(interval, priced.price)
    work = len(shared.query) * interval.links + separate.value.size
    evaluations = min(evaluations, max(int(MOST_WORK / max(work, 1)), 1))
    best: Found | None = None
    starts = [best_answers(priced), *([start] if start is not None else [])]
    for answers in starts[::-1] if is_short else starts:
        if is_short and best is not None and best.value > -np.inf:
            break
        current = answers.copy()
        shared_answers = Answered(shared.value, shared.use, priced.regret)
        limit = evaluations if best is None else evaluations // 2
        value = _search(current, shared_answers, priced.bound, sites, limit)
        if best is None or value > best.value:
            best = Found(current, sites.steps.least, float(value))
    assert best is not None
    if best.value == -np.inf:
        return best
    return fill_answers(interval, sites, best.answers, exchanges=not is_short)


def fill_answers(interval: Interval, sites: Sites, answers: Ints, *, exchanges: bool = True) -> Found:
    """Return answers that fit, with the levels that fill the remaining capacity of uplinks.

    exchanges  whether levels of a site are then exchanged
    """
    shared = interval.shared
    remaining_left = find_left(answers, shared.use, interval.links)
    added = np.zeros(sites.steps.least.shape, dtype=np.int64)
    value = float(shared.value[np.arange(len(answers)), answers].sum())
    value += fill(remaining_left, added, sites)
    if exchanges:
        value = exchange(remaining_left, added, sites.pop_of, sites.value, sites.use, sites.pop_use, value)
    return Found(answers, added, value)


def list_sites(interval: Interval, price: Floats) -> Sites:
    """Return the separate queries of an interval, with steps in the order of value over price."""
    separate = interval.separate
    steps = order_steps(interval.pop_of, separate, price)
    return Sites(interval.pop_of, separate.value, separate.use, separate.pop_use, steps)


def order_steps(pop_of: Ints, separate: Separate, price: Floats) -> Steps:
    """Return the steps on the concave envelope of value over price of each site and query, in order."""
    count = separate.value.shape[0] * separate.value.shape[1]
    if not count:
        nothing, empty = np.zeros(0, dtype=np.int64), np.zeros(0)
        cheapest = np.zeros(separate.value.shape[:2], dtype=np.int64)
        return Steps(cheapest, nothing, nothing, nothing, nothing, empty, empty, empty)
    floor = LEAST_PRICE * max(float(price.mean()), 1e-12)
    cost = np.empty_like(separate.value)
    _price_use(cost, pop_of, separate.use, separate.pop_use, price + floor)
    cheapest, position, before, after = _envelope(separate.value, cost)
    more, ratio = _measure_steps(
        position, before, after, cost, separate.value, separate.use, separate.pop_use
    )  # fmt: skip
    order = np.argsort(ratio, kind="stable")
    site, query = np.divmod(position[order], separate.value.shape[1])
    in_order = np.ascontiguousarray(more[:, order])  # else their layout is another where there are few steps
    return Steps(cheapest, site, query, before[order], after[order], *in_order)


@run_small_in_python(max_elements=5_000)
@kernel
def _price_use(cost: Floats, pop_of: Ints, use: Floats, pop_use: Floats, price: Floats) -> None:
    """Write the price of the use of each level, (S, n, L), at prices of uplinks (M,)."""
    sites, count, levels = use.shape
    for site in range(sites):
        site_price, of_pop = price[site], price[sites + pop_of[site]]
        for query in range(count):
            for level in range(levels):
                cost[site, query, level] = (
                    use[site, query, level] * site_price + pop_use[site, query, level] * of_pop
                )


@run_small_in_python(max_elements=5_000)
@kernel
def _measure_steps(
    position: Ints, before: Ints, after: Ints, cost: Floats, value: Floats, use: Floats, pop_use: Floats
) -> tuple[Floats, Floats]:
    """Return the value and uses that steps add, (3, n), and the negative of value over price, (n,)."""
    more, ratio = np.empty((3, len(position))), np.empty(len(position))
    count = value.shape[1]
    for step in range(len(position)):
        site, query = position[step] // count, position[step] % count
        upper, lower = after[step], before[step]
        more[0, step] = value[site, query, upper] - value[site, query, lower]
        more[1, step] = use[site, query, upper] - use[site, query, lower]
        more[2, step] = pop_use[site, query, upper] - pop_use[site, query, lower]
        price = cost[site, query, upper] - cost[site, query, lower]
        ratio[step] = -(more[0, step] / max(price, 1e-300))
    return more, ratio


@inner
def _find_cheapest(value: Floats, cost: Floats) -> int:
    """Return the possible level (L,) of least cost, of those the one of most value; -1 for none."""
    best = -1
    for level in range(len(value)):
        if value[level] == -np.inf:
            continue
        if best < 0 or (cost[level], -value[level]) < (cost[best], -value[best]):
            best = level
    return best


@inner
def _find_step(value: Floats, cost: Floats, level: int) -> int:
    """Return the finer level (L,) with the most additional value over cost; -1 for none."""
    best, ratio = -1, 0.0
    for finer in range(len(value)):
        gain, more = value[finer] - value[level], cost[finer] - cost[level]
        if gain > 0 and more > 0 and gain / more > ratio:
            best, ratio = finer, gain / more
    return best


@run_small_in_python(max_elements=500)
@kernel
def _envelope(value: Floats, cost: Floats) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the cheapest level of each site and query, and the steps along the envelope above it."""
    sites, count, levels = value.shape
    cheapest = np.zeros((sites, count), dtype=np.int64)
    steps = np.empty((3, sites * count * levels), dtype=np.int64)
    total = 0
    for site in range(sites):
        for query in range(count):
            level = _find_cheapest(value[site, query], cost[site, query])
            cheapest[site, query] = max(level, 0)
            while level >= 0:
                finer = _find_step(value[site, query], cost[site, query], level)
                if finer >= 0:
                    steps[0, total], steps[1, total], steps[2, total] = site * count + query, level, finer
                    total += 1
                level = finer
    return cheapest, steps[0, :total].copy(), steps[1, :total].copy(), steps[2, :total].copy()


@run_small_in_python(max_elements=2_000)
@kernel
def find_left(answers: Ints, use: Floats, links: int) -> Floats:
    """Return the capacity of each uplink that remains after the answers, (M,)."""
    remaining = np.ones(links)
    for query in range(len(answers)):
        remaining -= use[query, answers[query]]
    return remaining


@run_small_in_python(max_elements=2_000)
@kernel
def fill(remaining: Floats, added: Ints, sites: Sites) -> float:
    """Fill the remaining capacity of uplinks by steps; write the levels (S, n), return the value or -inf."""
    pop_of, value, use, pop_use, steps = sites.pop_of, sites.value, sites.use, sites.pop_use, sites.steps
    count_sites, count = steps.least.shape
    total = 0.0
    for site in range(count_sites):
        for query in range(count):
            level = steps.least[site, query]
            added[site, query] = level
            total += value[site, query, level]
            remaining[site] -= use[site, query, level]
            remaining[count_sites + pop_of[site]] -= pop_use[site, query, level]
    if remaining.min() < -TOLERANCE:
        return -np.inf
    for step in range(len(steps.site)):
        site, query = steps.site[step], steps.query[step]
        pop = count_sites + pop_of[site]
        if (
            added[site, query] == steps.before[step]
            and remaining[site] + TOLERANCE >= steps.use[step]
            and remaining[pop] + TOLERANCE >= steps.pop_use[step]
        ):
            added[site, query] = steps.after[step]
            total += steps.value[step]
            remaining[site] -= steps.use[step]
            remaining[pop] -= steps.pop_use[step]
    return _raise_levels(remaining, added, sites, total)


@inner
def _raise_levels(remaining: Floats, added: Ints, sites: Sites, total: float) -> float:
    """Raise each level (S, n) to the one of most value that fits, whatever its price; return the value."""
    value, use, pop_use = sites.value, sites.use, sites.pop_use
    count_sites, count = added.shape
    for site in range(count_sites):
        pop = count_sites + sites.pop_of[site]
        for query in range(count):
            current = added[site, query]
            best, gain = current, 0.0
            for level in range(value.shape[2]):
                more = value[site, query, level] - value[site, query, current]
                if (
                    more > gain
                    and remaining[site] + TOLERANCE >= use[site, query, level] - use[site, query, current]
                    and remaining[pop] + TOLERANCE
                    >= pop_use[site, query, level] - pop_use[site, query, current]
                ):
                    best, gain = level, more
            if best != current:
                added[site, query] = best
                total += gain
                remaining[site] -= use[site, query, best] - use[site, query, current]
                remaining[pop] -= pop_use[site, query, best] - pop_use[site, query, current]
    return total


@kernel
def _repair(answers: Ints, remaining: Floats, shared: Answered) -> bool:
    """Change answers by least regret for each unit of overload until all fit; return whether they do."""
    value, use, regret = shared.value, shared.use, shared.regret
    count, levels = value.shape
    while remaining.min() < -TOLERANCE:
        best_query, best_level, best = -1, -1, np.inf
        for query in range(count):
            current = answers[query]
            for level in range(levels):
                if level == current or value[query, level] == -np.inf:
                    continue
                less = _saved_overload(remaining, use[query, current], use[query, level])
                if less <= 1e-12:
                    continue
                ratio = (regret[query, level] - regret[query, current] + 1e-12) / less
                if ratio < best:
                    best_query, best_level, best = query, level, ratio
        if best_query < 0:
            return False
        remaining += use[best_query, answers[best_query]] - use[best_query, best_level]
        answers[best_query] = best_level
    return True


@inner
def _saved_overload(remaining: Floats, before: Floats, after: Floats) -> float:
    """Return the overload of uplinks (M,) that another use of them saves."""
    less = 0.0
    for link in range(len(remaining)):
        less += min(remaining[link] + before[link] - after[link], 0.0) - min(remaining[link], 0.0)
    return less


@kernel
def _fits(remaining: Floats, before: Floats, after: Floats) -> bool:
    fits = True
    for link in range(len(remaining)):
        fits = fits and remaining[link] + before[link] - after[link] >= -TOLERANCE
    return fits


@kernel
def _evaluate(answers: Ints, added: Ints, shared: Answered, sites: Sites) -> float:
    """Return the value of answers, with their remaining uplinks filled; -inf if that does not fit."""
    total = 0.0
    for query in range(len(answers)):
        total += shared.value[query, answers[query]]
    remaining = find_left(answers, shared.use, _count_links(shared.use, sites.pop_of))
    return total + fill(remaining, added, sites)


@kernel
def _count_links(use: Floats, pop_of: Ints) -> int:
    return int(use.shape[2] if len(use) else len(pop_of) + pop_of.max() + 1)


@kernel
def _find_move(  # noqa: C901 - one compiled loop
    incumbent: Incumbent,
    shared: Answered,
    sites: Sites,
    moves: Floats,
    slack: float,
    best: float,
    evaluations: int,
) -> tuple[bool, float, int]:
    """Make the first change of one or two answers that is better: return whether there is one.

    Also returns the value and the evaluations.

    moves  (n L,) regret that a move to a level adds
    slack  of the bound: the sum of the moves' regrets must be less
    """
    answers, remaining, use = incumbent.answers, incumbent.remaining, shared.use
    order = np.argsort(moves)
    levels, evaluated = shared.value.shape[1], 0
    smallest = min(moves[order[0]], 0.0)
    for first in range(-1, len(order)):
        query, one_level, more = -1, 0, 0.0
        if first >= 0:
            query, one_level, more = order[first] // levels, order[first] % levels, moves[order[first]]
            if more + smallest >= slack:
                break
        for second in range(len(order) if first < 0 else first):
            other, other_level = order[second] // levels, order[second] % levels
            if more + moves[order[second]] >= slack or evaluated >= evaluations:
                break
            old_level, one_kept = answers[other], answers[query]
            before, after = use[other, old_level], use[other, other_level]
            if query >= 0:
                before, after = before + use[query, one_kept], after + use[query, one_level]
            if other == query or not _fits(remaining, before, after):
                continue
            if query >= 0:
                answers[query] = one_level
            answers[other] = other_level
            now = _evaluate(answers, incumbent.added, shared, sites)
            evaluated += 1
            if now > best * (1 + LEAST_GAIN):
                remaining += before - after
                return True, now, evaluated
            answers[other] = old_level
            if query >= 0:
                answers[query] = one_kept
    return False, best, evaluated


@run_small_in_python(max_elements=1_000)
@kernel
def _search(answers: Ints, shared: Answered, bound: float, sites: Sites, evaluations: int) -> float:
    """Repair and improve answers in place; return the value of the choices, -inf where none fits."""
    value, use, regret, steps = shared.value, shared.use, shared.regret, sites.steps
    count, levels = value.shape
    count_sites = len(sites.pop_of)
    candidates = np.ones(_count_links(use, sites.pop_of))
    for site in range(count_sites):
        for other in range(steps.least.shape[1]):
            candidates[site] -= sites.use[site, other, steps.least[site, other]]
            pop = count_sites + sites.pop_of[site]
            candidates[pop] -= sites.pop_use[site, other, steps.least[site, other]]
    for query in range(count):
        if value[query, answers[query]] == -np.inf:
            answers[query] = regret[query].argmin()
        candidates -= use[query, answers[query]]
    if not _repair(answers, candidates, shared):
        return -np.inf
    incumbent = Incumbent(answers, candidates, np.empty(steps.least.shape, dtype=np.int64))
    best = _evaluate(answers, incumbent.added, shared, sites)
    moves = np.empty(count * levels)
    evaluated = 1
    while count > 0 and evaluated < evaluations:
        slack = bound - best * (1 + LEAST_GAIN)
        for query in range(count):
            slack -= regret[query, answers[query]]
            for level in range(levels):
                more = regret[query, level] - regret[query, answers[query]]
                moves[query * levels + level] = more if level != answers[query] else np.inf
        is_better, best, used = _find_move(
            incumbent, shared, sites, moves, slack, best, evaluations - evaluated
        )
        evaluated += used
        if not is_better:
            break
    return best


def fill_sites(value: Floats, size: Floats, available: Floats) -> Ints:
    """Return the levels (S, Q) of most value at each site by itself, by value for each byte.

    A site whose coarsest levels do not fit sends them.

    value      (S, Q, L) USD; -inf where a level may not be sent
    size       (S, Q, L) bytes
    available  (S,) bytes
    """
    return _fill_sites(np.ascontiguousarray(value), np.ascontiguousarray(size), available)


@run_small_in_python(max_elements=1_000)
@kernel
def _fill_sites(value: Floats, size: Floats, available: Floats) -> Ints:
    """Return the levels of `fill_sites`: for a site that fits, those of `fill` with its uplink alone."""
    sites, queries, levels = value.shape
    selected_levels = np.zeros((sites, queries), dtype=np.int64)
    pop_of, remaining, added = np.zeros(1, dtype=np.int64), np.ones(2), np.empty((1, queries), dtype=np.int64)
    for site in range(sites):
        fewest = 0.0
        for query in range(queries):
            best = np.inf
            for level in range(levels):
                if value[site, query, level] > -np.inf and size[site, query, level] < best:
                    best, selected_levels[site, query] = size[site, query, level], level
            fewest += best
        if not (available[site] > 0 and fewest <= available[site]):
            continue
        own_value, use = value[site : site + 1], size[site : site + 1] / available[site]
        unused = np.zeros_like(use)
        cheapest, position, before, after = _envelope(own_value, use * (1.0 + LEAST_PRICE))
        count = len(position)
        more_value, more_use, ratio = np.empty(count), np.empty(count), np.empty(count)
        for step in range(count):
            query, lower, upper = position[step], before[step], after[step]
            more_value[step] = own_value[0, query, upper] - own_value[0, query, lower]
            more_use[step] = use[0, query, upper] - use[0, query, lower]
            ratio[step] = -more_value[step] / max(more_use[step], 1e-300)
        order = np.argsort(ratio, kind="mergesort")
        remaining[:] = 1.0
        steps = Steps(
            cheapest,
            np.zeros(count, dtype=np.int64),
            position[order],
            before[order],
            after[order],
            more_value[order],
            more_use[order],
            np.zeros(count),
        )
        fill(remaining, added, Sites(pop_of, own_value, use, unused, steps))
        selected_levels[site] = added[0]
    return selected_levels
