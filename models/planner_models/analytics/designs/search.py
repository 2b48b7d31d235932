"""Levels within capacity from prices: repair of overloaded uplinks, then local search pruned by regrets.

A shared query's answer is changed alone or with that of another; what is left on uplinks is then filled by
the queries whose values add up, in the order of value by price. No answers with a sum of regrets R have a
value above the bound less R, so that moves beyond the incumbent are not evaluated.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Floats, Ints
from planner.compiled import kernel, run_small_in_python
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
    """Steps of sites to finer levels of queries whose values add up, the most value by price first.

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
    steps = order_steps(interval.pop_of, separate, priced.price)
    work = len(shared.query) * interval.links + separate.value.size
    evaluations = min(evaluations, max(int(MOST_WORK / max(work, 1)), 1))
    best: Found | None = None
    starts = [best_answers(priced), *([start] if start is not None else [])]
    for answers in starts[::-1] if is_short else starts:
        if is_short and best is not None and best.value > -np.inf:
            break
        found = answers.copy()
        value = _search(
            found, shared.value, shared.use, priced.regret, priced.bound, interval.pop_of,
            separate.value, separate.use, separate.pop_use, steps,
            evaluations if best is None else evaluations // 2,
        )  # fmt: skip
        if best is None or value > best.value:
            best = Found(found, steps.least, float(value))
    assert best is not None
    if best.value == -np.inf:
        return best
    return fill_answers(interval, steps, best.answers, exchanges=not is_short)


def fill_answers(interval: Interval, steps: Steps, answers: Ints, *, exchanges: bool = True) -> Found:
    """Return answers that fit with the levels that fill what they leave of uplinks.

    exchanges  whether levels of a site are then exchanged
    """
    shared, separate = interval.shared, interval.separate
    left = find_left(answers, shared.use, interval.links)
    added = np.zeros(steps.least.shape, dtype=np.int64)
    value = float(shared.value[np.arange(len(answers)), answers].sum())
    value += fill(
        left, added, interval.pop_of, separate.value, separate.use, separate.pop_use, *steps
    )  # fmt: skip
    if exchanges:
        value = exchange(
            left, added, interval.pop_of, separate.value, separate.use, separate.pop_use, value
        )  # fmt: skip
    return Found(answers, added, value)


def order_steps(pop_of: Ints, separate: Separate, price: Floats) -> Steps:
    """Return the steps on the concave envelope of value over price of each site and query, in order."""
    count = separate.value.shape[0] * separate.value.shape[1]
    if not count:
        nothing, empty = np.zeros(0, dtype=np.int64), np.zeros(0)
        least = np.zeros(separate.value.shape[:2], dtype=np.int64)
        return Steps(least, nothing, nothing, nothing, nothing, empty, empty, empty)
    floor = LEAST_PRICE * max(float(price.mean()), 1e-12)
    cost = np.empty_like(separate.value)
    _price_use(cost, pop_of, separate.use, separate.pop_use, price + floor)
    least, place, before, after = _envelope(separate.value, cost)
    more, ratio = _measure_steps(
        place, before, after, cost, separate.value, separate.use, separate.pop_use
    )  # fmt: skip
    order = np.argsort(ratio, kind="stable")
    site, query = np.divmod(place[order], separate.value.shape[1])
    in_order = np.ascontiguousarray(more[:, order])  # else their layout is another where there are few steps
    return Steps(least, site, query, before[order], after[order], *in_order)


@run_small_in_python(max_elements=5_000)
@kernel
def _price_use(cost: Floats, pop_of: Ints, use: Floats, pop_use: Floats, price: Floats) -> None:
    """Write the price of the use of each level, (S, n, L), at prices of uplinks (M,)."""
    sites, count, levels = use.shape
    for site in range(sites):
        own, of_pop = price[site], price[sites + pop_of[site]]
        for query in range(count):
            for level in range(levels):
                cost[site, query, level] = (
                    use[site, query, level] * own + pop_use[site, query, level] * of_pop
                )


@run_small_in_python(max_elements=5_000)
@kernel
def _measure_steps(
    place: Ints, before: Ints, after: Ints, cost: Floats, value: Floats, use: Floats, pop_use: Floats
) -> tuple[Floats, Floats]:
    """Return the value and uses that steps add, (3, n), and the negative of value over price, (n,)."""
    more, ratio = np.empty((3, len(place))), np.empty(len(place))
    count = value.shape[1]
    for step in range(len(place)):
        site, query = place[step] // count, place[step] % count
        upper, lower = after[step], before[step]
        more[0, step] = value[site, query, upper] - value[site, query, lower]
        more[1, step] = use[site, query, upper] - use[site, query, lower]
        more[2, step] = pop_use[site, query, upper] - pop_use[site, query, lower]
        price = cost[site, query, upper] - cost[site, query, lower]
        ratio[step] = -(more[0, step] / max(price, 1e-300))
    return more, ratio


@run_small_in_python(max_elements=500)
@kernel
def _envelope(value: Floats, cost: Floats) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the cheapest level of each site and query, and the steps along the envelope above it."""
    sites, count, levels = value.shape
    least = np.zeros((sites, count), dtype=np.int64)
    steps = np.empty((3, sites * count * levels), dtype=np.int64)
    total = 0
    for site in range(sites):
        for query in range(count):
            at = -1
            for level in range(levels):
                if value[site, query, level] == -np.inf:
                    continue
                if at < 0 or (cost[site, query, level], -value[site, query, level]) < (
                    cost[site, query, at],
                    -value[site, query, at],
                ):
                    at = level
            least[site, query] = max(at, 0)
            while at >= 0:
                best, ratio = -1, 0.0
                for level in range(levels):
                    gain = value[site, query, level] - value[site, query, at]
                    more = cost[site, query, level] - cost[site, query, at]
                    if gain > 0 and more > 0 and gain / more > ratio:
                        best, ratio = level, gain / more
                if best >= 0:
                    steps[0, total], steps[1, total], steps[2, total] = site * count + query, at, best
                    total += 1
                at = best
    return least, steps[0, :total].copy(), steps[1, :total].copy(), steps[2, :total].copy()


@run_small_in_python(max_elements=2_000)
@kernel
def find_left(answers: Ints, use: Floats, links: int) -> Floats:
    """Return what the answers leave of each uplink, (M,)."""
    left = np.ones(links)
    for query in range(len(answers)):
        left -= use[query, answers[query]]
    return left


@run_small_in_python(max_elements=2_000)
@kernel
def fill(  # noqa: C901 - plain loops
    left: Floats,
    added: Ints,
    pop_of: Ints,
    own_value: Floats,
    own_use: Floats,
    own_pop_use: Floats,
    least: Ints,
    site: Ints,
    query: Ints,
    before: Ints,
    after: Ints,
    value: Floats,
    use: Floats,
    pop_use: Floats,
) -> float:
    """Fill what is left of uplinks step by step; write the levels (S, n), return their value or -inf."""
    sites, count = least.shape
    total = 0.0
    for one in range(sites):
        for other in range(count):
            level = least[one, other]
            added[one, other] = level
            total += own_value[one, other, level]
            left[one] -= own_use[one, other, level]
            left[sites + pop_of[one]] -= own_pop_use[one, other, level]
    if left.min() < -TOLERANCE:
        return -np.inf
    for step in range(len(site)):
        one, other = site[step], query[step]
        pop = sites + pop_of[one]
        if (
            added[one, other] == before[step]
            and left[one] + TOLERANCE >= use[step]
            and left[pop] + TOLERANCE >= pop_use[step]
        ):
            added[one, other] = after[step]
            total += value[step]
            left[one] -= use[step]
            left[pop] -= pop_use[step]
    for one in range(sites):
        pop = sites + pop_of[one]
        for other in range(count):
            at = added[one, other]
            best, gain = at, 0.0
            for level in range(own_value.shape[2]):
                more = own_value[one, other, level] - own_value[one, other, at]
                if (
                    more > gain
                    and left[one] + TOLERANCE >= own_use[one, other, level] - own_use[one, other, at]
                    and left[pop] + TOLERANCE >= own_pop_use[one, other, level] - own_pop_use[one, other, at]
                ):
                    best, gain = level, more
            if best != at:
                added[one, other] = best
                total += gain
                left[one] -= own_use[one, other, best] - own_use[one, other, at]
                left[pop] -= own_pop_use[one, other, best] - own_pop_use[one, other, at]
    return total


@kernel
def _repair(answers: Ints, left: Floats, value: Floats, use: Floats, regret: Floats) -> bool:
    """Change answers by least regret for each unit of overload until all fit; return whether they do."""
    count, levels = value.shape
    while left.min() < -TOLERANCE:
        best_query, best_level, best = -1, -1, np.inf
        for query in range(count):
            at = answers[query]
            for level in range(levels):
                if level == at or value[query, level] == -np.inf:
                    continue
                less = 0.0
                for link in range(len(left)):
                    after = left[link] + use[query, at, link] - use[query, level, link]
                    less += min(after, 0.0) - min(left[link], 0.0)
                if less > 1e-12:
                    ratio = (regret[query, level] - regret[query, at] + 1e-12) / less
                    if ratio < best:
                        best_query, best_level, best = query, level, ratio
        if best_query < 0:
            return False
        left += use[best_query, answers[best_query]] - use[best_query, best_level]
        answers[best_query] = best_level
    return True


@kernel
def _fits(left: Floats, before: Floats, after: Floats) -> bool:
    fits = True
    for link in range(len(left)):
        fits = fits and left[link] + before[link] - after[link] >= -TOLERANCE
    return fits


@kernel
def _evaluate(
    answers: Ints,
    value: Floats,
    use: Floats,
    added: Ints,
    pop_of: Ints,
    own_value: Floats,
    own_use: Floats,
    own_pop_use: Floats,
    steps: Steps,
) -> float:
    """Return the value of answers, with what they leave of uplinks filled; -inf where that does not fit."""
    total = 0.0
    for query in range(len(answers)):
        total += value[query, answers[query]]
    left = find_left(answers, use, _count_links(use, pop_of))
    return total + fill(
        left, added, pop_of, own_value, own_use, own_pop_use, steps.least, steps.site, steps.query,
        steps.before, steps.after, steps.value, steps.use, steps.pop_use,
    )  # fmt: skip


@kernel
def _count_links(use: Floats, pop_of: Ints) -> int:
    return int(use.shape[2] if len(use) else len(pop_of) + pop_of.max() + 1)


@kernel
def _find_move(  # noqa: C901 - one compiled loop
    answers: Ints,
    left: Floats,
    value: Floats,
    use: Floats,
    moves: Floats,
    order: Ints,
    slack: float,
    best: float,
    added: Ints,
    pop_of: Ints,
    own_value: Floats,
    own_use: Floats,
    own_pop_use: Floats,
    steps: Steps,
    evaluations: int,
) -> tuple[int, int, float, int]:
    """Return the first change of one or two answers that is better: their moves, the value, evaluations.

    moves  (n L,) regret that a move to a level adds; order sorts it
    slack  of the bound: the sum of the moves' regrets must be less. A first move of -1 is none
    """
    levels, done = value.shape[1], 0
    least = min(moves[order[0]], 0.0)
    for first in range(-1, len(order)):
        one, one_level, more = -1, 0, 0.0
        if first >= 0:
            one, one_level, more = order[first] // levels, order[first] % levels, moves[order[first]]
            if more + least >= slack:
                break
        for second in range(len(order) if first < 0 else first):
            other, other_level = order[second] // levels, order[second] % levels
            if more + moves[order[second]] >= slack or done >= evaluations:
                break
            kept, one_kept = answers[other], answers[one]
            before, after = use[other, kept], use[other, other_level]
            if one >= 0:
                before, after = before + use[one, one_kept], after + use[one, one_level]
            if other == one or not _fits(left, before, after):
                continue
            if one >= 0:
                answers[one] = one_level
            answers[other] = other_level
            now = _evaluate(answers, value, use, added, pop_of, own_value, own_use, own_pop_use, steps)
            done += 1
            if now > best * (1 + LEAST_GAIN):
                left += before - after
                return first, second, now, done
            answers[other] = kept
            if one >= 0:
                answers[one] = one_kept
    return -1, -1, best, done


@run_small_in_python(max_elements=1_000)
@kernel
def _search(
    answers: Ints,
    value: Floats,
    use: Floats,
    regret: Floats,
    bound: float,
    pop_of: Ints,
    own_value: Floats,
    own_use: Floats,
    own_pop_use: Floats,
    steps: Steps,
    evaluations: int,
) -> float:
    """Repair and improve answers in place; return the value of the choices, -inf where none fits."""
    count, levels = value.shape
    sites = len(pop_of)
    left = np.ones(_count_links(use, pop_of))
    for one in range(sites):
        for other in range(steps.least.shape[1]):
            left[one] -= own_use[one, other, steps.least[one, other]]
            left[sites + pop_of[one]] -= own_pop_use[one, other, steps.least[one, other]]
    for query in range(count):
        if value[query, answers[query]] == -np.inf:
            answers[query] = regret[query].argmin()
        left -= use[query, answers[query]]
    if not _repair(answers, left, value, use, regret):
        return -np.inf
    added = np.empty(steps.least.shape, dtype=np.int64)
    best = _evaluate(answers, value, use, added, pop_of, own_value, own_use, own_pop_use, steps)
    moves = np.empty(count * levels)
    done = 1
    while count > 0 and done < evaluations:
        slack = bound - best * (1 + LEAST_GAIN)
        for query in range(count):
            slack -= regret[query, answers[query]]
            for level in range(levels):
                more = regret[query, level] - regret[query, answers[query]]
                moves[query * levels + level] = more if level != answers[query] else np.inf
        _, second, best, used = _find_move(
            answers, left, value, use, moves, np.argsort(moves), slack, best, added, pop_of,
            own_value, own_use, own_pop_use, steps, evaluations - done,
        )  # fmt: skip
        done += used
        if second < 0:
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
    chosen = np.zeros((sites, queries), dtype=np.int64)
    pop_of, left, added = np.zeros(1, dtype=np.int64), np.ones(2), np.empty((1, queries), dtype=np.int64)
    for site in range(sites):
        fewest = 0.0
        for query in range(queries):
            best = np.inf
            for level in range(levels):
                if value[site, query, level] > -np.inf and size[site, query, level] < best:
                    best, chosen[site, query] = size[site, query, level], level
            fewest += best
        if not (available[site] > 0 and fewest <= available[site]):
            continue
        own_value, use = value[site : site + 1], size[site : site + 1] / available[site]
        unused = np.zeros_like(use)
        least, place, before, after = _envelope(own_value, use * (1.0 + LEAST_PRICE))
        count = len(place)
        more_value, more_use, ratio = np.empty(count), np.empty(count), np.empty(count)
        for step in range(count):
            query, lower, upper = place[step], before[step], after[step]
            more_value[step] = own_value[0, query, upper] - own_value[0, query, lower]
            more_use[step] = use[0, query, upper] - use[0, query, lower]
            ratio[step] = -more_value[step] / max(more_use[step], 1e-300)
        order = np.argsort(ratio, kind="mergesort")
        left[:] = 1.0
        fill(
            left, added, pop_of, own_value, use, unused, least, np.zeros(count, dtype=np.int64), place[order],
            before[order], after[order], more_value[order], more_use[order], np.zeros(count),
        )  # fmt: skip
        chosen[site] = added[0]
    return chosen
