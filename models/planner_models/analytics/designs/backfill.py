"""Finer data that is sent later: in the capacity that new data leaves, or where it has more value."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Final, Literal, NamedTuple

import numpy as np
from pydantic import Field

from planner.arrays import Bools, Floats, Ints
from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import gap_of, infeasible, judged, undecided
from planner.search.tolerances import COARSE_GAP, ROUNDING, STATED_GAP
from planner_models.analytics.designs import branching, prices, search
from planner_models.analytics.designs.choices import IMPOSSIBLE, Choices, Interval, Separate, Shared
from planner_models.analytics.designs.decision import IntervalDeadline, decide
from planner_models.analytics.designs.shedding import SCOPE as LEFT_OUT
from planner_models.analytics.designs.shedding import fit_interval
from planner_models.analytics.designs.time_prices import Waiting, find_time_prices
from planner_models.analytics.plan.backfill import tabulate_kept
from planner_models.analytics.plan.metrics import measure
from planner_models.analytics.plan.plan import Levels, read_backfill, tabulate_backfill
from planner_models.analytics.problem.problem import Analytics

BACKEND: Final = "prices and search"
SCOPE: Final = "answers improved once, by data of all sites"
MOST_LEAVES: Final = 2_000
MOST_EVALUATIONS: Final = 250  # fillings of uplinks by local search

FEW_EVALUATIONS: Final = 60  # of what is left of uplinks
FEW_STEPS: Final = (0, 40)  # to prices of what is left of uplinks
FALLBACK_GAP: Final = COARSE_GAP  # from the bound, above which new data first is tried too
PRICING_SHARE: Final = 0.5  # of a time limit, for prices of all intervals
WORTH: Final = 0.9  # value over the price of its bytes, below which foreseen data is not offered

Order = Annotated[
    Literal["after", "together", "foreseen"],
    Field(
        description="after: new data first, later data in the capacity that is left; together: both by "
        "value; foreseen: both by value and by prices of uplinks in later intervals, with a bound"
    ),
]


class Candidate(NamedTuple):
    """Answers of an interval that later data may improve, once each.

    made            choices of the interval, with bytes in place of parts of capacity
    answers, added  (n,) answers of shared queries; (S, n) levels of sites for queries whose values add up
    gain, may       (n, L) value that a level adds to an answer, USD; whether later data may be sent
    site_gain, site_may  (S, n, L) the same of each site
    when            (W,) whether a level pays the price of its bytes 1, 2, ... intervals later, as foreseen
    """

    k: int
    made: Interval
    answers: Ints
    added: Ints
    gain: Floats
    may: Bools
    site_gain: Floats
    site_may: Bools
    when: Bools | None

    def is_offered(self, t: int) -> bool:
        """Return whether some improvement may pay in interval t."""
        return self.when is None or bool(self.when[t - self.k - 1])


class Offered(NamedTuple):
    """Improvements of an interval's answers as choices of a later one; level kept: no data.

    shared, separate  rows of the candidate that may improve
    """

    made: Interval
    shared: Ints
    separate: Ints


class Sent(NamedTuple):
    """A row of backfill."""

    interval: int
    sent: int
    query: int
    level: int
    site: int


def send_later(
    problem: Analytics, *, order: Order = "after", options: Options = Options()
) -> Decision[Levels]:
    """Send finer data of past intervals too, by table `backfill`, in the capacity that new data leaves.

    All data that improves an answer is sent in one later interval; it is sent in full, as coarse cells cannot
    be split. Sites keep it until then. Each interval is decided by prices and search. `foreseen` first finds
    prices of all intervals at once, which bound the total value of all plans that improve an answer once, by
    data of all of its sites: new data counts what it may gain later, and later data what it would gain by
    waiting. Otherwise later intervals are not foreseen, and there is no bound. Once a time limit is near, new
    data keeps the answers of the interval before, and no more later data is sent.

    source  Rabkin et al. 2013, section 3 (backfill to improve data)
    """
    if order == "foreseen":
        return _send_foreseen(problem, options)
    return _send(problem, order, options, None)


def _total_value(problem: Analytics, decision: Decision[Levels]) -> float:
    """Return the value of a decision's plan, USD; minus infinity without a plan."""
    if decision.plan is None:
        return -np.inf
    return measure(problem, decision.plan, None)["total_value"] or 0.0


def _send_foreseen(problem: Analytics, options: Options) -> Decision[Levels]:
    """Send later data by prices of all intervals, or as new data first where that has more value."""
    choices = Choices(problem, must_answer=options.service == "all")
    end = Deadline.of(options)
    pricing = IntervalDeadline(options.share_time(PRICING_SHARE), len(problem.interval_numbers))
    own_prices: list[Floats] = []
    for t in range(len(problem.interval_numbers)):
        pricing.start_interval()
        interval, reason = fit_interval(choices, t)
        pricing.end_build()
        if reason is not None:
            return _refuse(reason)
        if own_prices and pricing.search_s() <= 0:
            own_prices.append(own_prices[-1])
        else:
            own_prices.append(prices.find_prices(interval, own_prices[-1] if own_prices else None).price)
    waiting = Waiting(problem, choices)
    solution = find_time_prices(problem, waiting, np.array(own_prices), pricing.deadline)
    best = _send(problem, "together", end.options(options), waiting)
    value = _total_value(problem, best)
    if value < solution.bound * (1 - FALLBACK_GAP) and not end.is_over:
        first = _send(problem, "after", end.options(options), None, own_prices)
        other = _total_value(problem, first)
        if other >= value:
            best, value = first, other
    if best.plan is None:
        return best
    proof = judged(
        "max",
        value,
        solution.bound,
        gap=gap_of(options, default=STATED_GAP),
        metric="total_value",
        backend=BACKEND,
        bound_scope=f"{SCOPE}, {LEFT_OUT}" if choices.shortages else SCOPE,
        reasons=best.proof.reasons,
        is_cut=best.proof.is_cut,
    )
    return Decision(plan=best.plan, proof=proof, guarantees=best.guarantees)


def _refuse(reason: str) -> Decision[Levels]:
    """Return the decision that there is no plan."""
    return Decision(plan=None, proof=infeasible(reason, metric="value"))


def _send(
    problem: Analytics,
    order: Order,
    options: Options,
    waiting: Waiting | None,
    own_prices: list[Floats] | None = None,
) -> Decision[Levels]:
    """Send later data interval by interval; none any more once a time limit is near.

    waiting     what later data gains at prices of later intervals; None where these are not foreseen
    own_prices  (M,) of each interval with new data alone, USD, where they are known
    """
    must_answer = options.service == "all"
    choices = Choices(problem, must_answer=must_answer)
    storage = _Storage(problem)
    levels: list[Ints] = []
    rows: list[Sent] = []
    pool: list[Candidate] = []
    price: Floats | None = None
    answers: Ints | None = None
    deadline = IntervalDeadline(options, len(problem.interval_numbers))
    is_cut = False
    for t in range(len(problem.interval_numbers)):
        deadline.start_interval()
        new, reason = fit_interval(choices, t)
        deadline.end_build()
        if reason is not None:
            return _refuse(reason)
        if answers is not None and price is not None and deadline.search_s() <= 0:
            answer = _repair(new, price, answers)
            if answer.value > -np.inf:
                is_cut, answers = True, answer.answers
                levels.append(choices.to_levels(new, answers, answer.added))
                continue
        pool = [candidate for candidate in pool if _is_in_window(problem, candidate.k, t)]
        capacity = problem.capacity_bytes[t]
        offering = [] if order == "after" else [candidate for candidate in pool if candidate.is_offered(t)]
        later = [_offer(problem, candidate, t, capacity, waiting) for candidate in offering]
        foreseen = new if waiting is None else _add_waiting(new, t, waiting)
        both = _join([foreseen, *(offered.made for offered in later)])
        if waiting is not None:
            answer, price = _solve(both, waiting.byte_price[t] * capacity)
        elif own_prices is not None:
            answer, price = _solve(both, own_prices[t], ())
        else:
            answer, price = _solve(both, price)
        if answer.value == -np.inf:
            reason = f"interval {problem.interval_numbers[t]:g}: no plan found"
            proof = undecided(reason, metric="value")
            return Decision(plan=None, proof=proof)
        shared_count, sites = len(new.shared.query), new.separate.value.shape[1]
        rows += _take(
            problem, offering, later, answer.answers[shared_count:], answer.added[:, sites:], t, storage
        )
        if order == "after":
            unused = capacity * np.maximum(1.0 - _used(new, answer), 0.0)
            unused[unused < ROUNDING * capacity] = 0.0
            rows += _send_in_rest(problem, pool, t, unused, storage)
        answers, added = answer.answers[:shared_count], answer.added[:, :sites]
        levels.append(choices.to_levels(new, answers, added))
        pool.append(_start_candidate(problem, choices, t, answers, added, waiting))
    decision = decide(
        problem, np.array(levels), options, backend=BACKEND, guarantees=None, price=price, choices=choices,
        is_cut=is_cut,
    )  # fmt: skip
    if decision.plan is None:
        return decision
    numbers, names = problem.interval_numbers, problem.level_names
    table = tabulate_backfill(
        [float(numbers[row.interval]) for row in rows],
        [float(numbers[row.sent]) for row in rows],
        [problem.query_names[row.query] for row in rows],
        [names[row.query][row.level] for row in rows],
        [problem.site_names[row.site] for row in rows],
    )
    plan = replace(decision.plan, backfill=table)
    plan = replace(plan, kept=tabulate_kept(problem, read_backfill(problem, plan)))
    return Decision(plan=plan, proof=decision.proof, guarantees=decision.guarantees)


def _in_bytes(choices: Choices, k: int) -> Interval:
    return choices.interval(k, np.ones(choices.problem.capacity_bytes.shape[1]))


class _Storage:
    """Bytes that sites keep at the end of each interval."""

    def __init__(self, problem: Analytics) -> None:
        self.most = problem.free_storage_bytes
        self.kept = np.zeros((len(problem.interval_numbers), len(self.most)))

    def keep(self, sites: Ints, size: Floats, since: int, until: int) -> bool:
        """Keep data of some sites from the end of an interval until another one; False without storage."""
        after = self.kept[since:until, sites] + size
        if (after > self.most[since:until, sites] * (1 + 1e-9)).any():
            return False
        self.kept[since:until, sites] = after
        return True


def _is_in_window(problem: Analytics, k: int, t: int) -> bool:
    return bool(problem.start_s[t] - problem.start_s[k] <= problem.backfill_window_s.max(initial=0.0) + 1e-6)


def _add_waiting(new: Interval, t: int, waiting: Waiting) -> Interval:
    """Return the choices of new data with their possible later gain as part of their value."""
    shared, separate = (waiting.find(rows, t)[0] for rows in waiting.parts[t])
    return new._replace(
        shared=new.shared._replace(value=new.shared.value + shared),
        separate=new.separate._replace(value=new.separate.value + separate.reshape(new.separate.value.shape)),
    )


def _start_candidate(
    problem: Analytics, choices: Choices, k: int, answers: Ints, added: Ints, waiting: Waiting | None
) -> Candidate:
    made = _in_bytes(choices, k) if waiting is None else waiting.made[k]
    shared, separate = made.shared, made.separate
    full = problem.value_usd[shared.query, None] * problem.value_share[shared.query]
    gain = full - full[np.arange(len(answers)), answers][:, None]
    rows, column = np.indices(added.shape)
    site_full = problem.site_value_usd[:, separate.query, None] * problem.value_share[separate.query]
    site_gain = site_full - site_full[rows, column, added][..., None]
    may, site_may = np.isfinite(shared.value) & (gain > 0), np.isfinite(separate.value) & (site_gain > 0)
    when = None
    if waiting is not None:
        shared_rows, site_rows = waiting.parts[k]
        when = waiting.find_when(shared_rows, k, np.where(may, gain, 0.0), WORTH)
        own_gain = np.where(site_may, site_gain, 0.0).reshape(site_rows.value.shape)
        when = when | waiting.find_when(site_rows, k, own_gain, WORTH)
    return Candidate(k, made, answers.copy(), added.copy(), gain, may, site_gain, site_may, when)


def _offer(
    problem: Analytics, candidate: Candidate, t: int, capacity: Floats, waiting: Waiting | None
) -> Offered:
    """Return the improvements of an interval's answers as choices of interval t, where they fit.

    With `waiting`, their value is less what they would gain in a later interval, and those whose bytes cost
    far more than their value are left out.
    """
    sites = len(candidate.added)
    ends = problem.start_s + problem.length_s
    decay = 0.5 ** ((ends[t] - ends[candidate.k]) / problem.half_life_s)
    may_send = problem.may_send_later(candidate.k, t)
    together = (may_send | ~problem.has_data).all(axis=0)
    shared, separate = candidate.made.shared, candidate.made.separate
    of_shared = np.where(together, decay, 0.0)[shared.query, None]
    of_separate = np.where(may_send, decay, 0.0)[:, separate.query, None]
    gain, site_gain = candidate.gain * of_shared, candidate.site_gain * of_separate
    may, site_may = candidate.may & (of_shared > 0), candidate.site_may & (of_separate > 0)
    if waiting is not None:
        both = [
            waiting.find(parts, candidate.k, t - candidate.k + 1)[0] for parts in waiting.parts[candidate.k]
        ]
        gain = gain - both[0][np.arange(len(candidate.answers)), candidate.answers][:, None]
        of_sites = both[1].reshape(separate.value.shape)
        site_gain = site_gain - np.take_along_axis(of_sites, candidate.added[..., None], axis=2)
        cost, site_cost = (waiting.costs(parts, t) for parts in waiting.parts[candidate.k])
        may &= gain > WORTH * cost
        site_may &= site_gain > WORTH * site_cost.reshape(separate.value.shape)
    each = np.where(capacity > 0, 1.0 / np.where(capacity > 0, capacity, 1.0), np.inf)
    rows = np.flatnonzero(may.any(axis=1))
    use = _times(shared.use[rows], each)
    may = may[rows] & (use <= 1 + ROUNDING).all(axis=2)
    feasible = may.any(axis=1)
    rows, use, may = rows[feasible], use[feasible], may[feasible]
    columns = np.flatnonzero(site_may.any(axis=(0, 2)))
    site_use = _times(separate.use[:, columns], each[:sites, None, None])
    pop_use = _times(separate.pop_use[:, columns], each[sites:][candidate.made.pop_of][:, None, None])
    site_may = site_may[:, columns] & (site_use <= 1 + ROUNDING) & (pop_use <= 1 + ROUNDING)
    feasible = site_may.any(axis=(0, 2))
    columns, site_may = columns[feasible], site_may[:, feasible]
    row_numbers, levels = np.arange(len(rows)), candidate.answers[rows]
    value, use = np.where(may, gain[rows], IMPOSSIBLE), np.where(may[..., None], use, 0.0)
    value[row_numbers, levels], use[row_numbers, levels] = 0.0, 0.0
    site_value = np.where(site_may, site_gain[:, columns], IMPOSSIBLE)
    np.put_along_axis(site_value, candidate.added[:, columns, None], 0.0, axis=2)
    made = candidate.made._replace(
        shared=Shared(shared.query[rows], value, use, shared.sends[rows]),
        separate=Separate(
            separate.query[columns],
            site_value,
            *(np.where(site_may, array[:, feasible], 0.0) for array in (site_use, pop_use)),
        ),
    )
    return Offered(made, rows, columns)


def _times(size: Floats, each: Floats) -> Floats:
    """Return bytes times the part of capacity that each of them takes; no bytes take none."""
    with np.errstate(invalid="ignore"):
        return np.where(size > 0, size * each, 0.0)


def _send_in_rest(
    problem: Analytics, pool: list[Candidate], t: int, capacity: Floats, storage: _Storage
) -> list[Sent]:
    """Return the improvements that are sent in interval t in the capacity that is left, and mark them."""
    later = [_offer(problem, candidate, t, capacity, None) for candidate in pool]
    if not any(len(offered.shared) or len(offered.separate) for offered in later):
        return []
    extra = _solve(_join([offered.made for offered in later]), None, FEW_STEPS, FEW_EVALUATIONS)[0]
    if extra.value == -np.inf:
        return []
    return _take(problem, pool, later, extra.answers, extra.added, t, storage)


def _join(parts: list[Interval]) -> Interval:
    """Return the choices of several intervals as one."""
    shared = [interval.shared for interval in parts]
    separate = [interval.separate for interval in parts]
    return parts[0]._replace(
        shared=Shared(
            *(np.ascontiguousarray(np.concatenate(arrays)) for arrays in zip(*shared, strict=True))
        ),
        separate=Separate(
            np.concatenate([section.query for section in separate]),
            *(
                np.ascontiguousarray(np.concatenate(arrays, axis=1))
                for arrays in zip(*(section[1:] for section in separate), strict=True)
            ),
        ),
    )


def _solve(
    interval: Interval,
    price: Floats | None,
    steps: tuple[int, ...] = prices.MOST_STEPS,
    evaluations: int = MOST_EVALUATIONS,
) -> tuple[search.Found, Floats]:
    priced = prices.find_prices(interval, price, steps=steps)
    selection = branching.find_choices(interval, priced, leaves=MOST_LEAVES, evaluations=evaluations).found
    return selection, priced.price


def _repair(interval: Interval, price: Floats, answers: Ints) -> search.Found:
    """Return choices near the answers of the interval before, at its prices."""
    priced = prices.Priced(price, *prices.evaluate_bound(interval, price))
    return search.find_choices(interval, priced, start=answers, evaluations=1, is_short=True)


def _used(interval: Interval, selection: search.Found) -> Floats:
    """Return the part of each uplink's capacity that choices use, (M,)."""
    shared, separate = interval.shared, interval.separate
    used = shared.use[np.arange(len(selection.answers)), selection.answers].sum(axis=0)
    used = np.zeros(interval.links) + used
    sites, column = np.indices(selection.added.shape)
    used[: len(interval.pop_of)] += separate.use[sites, column, selection.added].sum(axis=1)
    of_pop = separate.pop_use[sites, column, selection.added].sum(axis=1)
    used[len(interval.pop_of) :] += np.bincount(
        interval.pop_of, weights=of_pop, minlength=interval.links - len(interval.pop_of)
    )
    return np.asarray(used)


def _take(
    problem: Analytics,
    pool: list[Candidate],
    later: list[Offered],
    answers: Ints,
    added: Ints,
    t: int,
    storage: _Storage,
) -> list[Sent]:
    """Return the rows of the improvements that are chosen and can be kept, and mark them as sent.

    answers, added  choices of all that is offered, in turn
    """
    rows: list[Sent] = []
    first = site_first = 0
    for candidate, offered in zip(pool, later, strict=True):
        shared, separate = candidate.made.shared, candidate.made.separate
        answers_of = answers[first : first + len(offered.shared)]
        own_added = added[:, site_first : site_first + len(offered.separate)]
        first, site_first = first + len(offered.shared), site_first + len(offered.separate)
        for position, answer in zip(offered.shared.tolist(), answers_of.tolist(), strict=True):
            if answer == candidate.answers[position]:
                continue
            query = int(shared.query[position])
            sites = np.flatnonzero(problem.has_data[:, query])
            levels = shared.sends[position, answer, sites]
            if storage.keep(sites, shared.use[position, answer, sites], candidate.k, t):
                pairs = zip(sites.tolist(), levels.tolist(), strict=True)
                rows += [Sent(candidate.k, t, query, level, site) for site, level in pairs]
                candidate.may[position] = False
        for site, column in np.argwhere(own_added != candidate.added[:, offered.separate]).tolist():
            position, level = int(offered.separate[column]), int(own_added[site, column])
            if storage.keep(np.array([site]), separate.use[[site], position, level], candidate.k, t):
                rows.append(Sent(candidate.k, t, int(separate.query[position]), level, site))
                candidate.site_may[site, position] = False
    return rows
