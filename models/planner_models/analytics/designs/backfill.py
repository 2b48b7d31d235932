"""Finer data that is sent later: in the capacity that new data leaves, or where it has more value."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Final, Literal, NamedTuple

import numpy as np
from pydantic import Field

from planner.arrays import Bools, Floats, Ints
from planner.contract.design import Decision
from planner.contract.proof import OPTIMAL_GAP, Proof, Status, relative_gap
from planner.options import Options
from planner_models.analytics.designs import branching, prices, search
from planner_models.analytics.designs.choices import IMPOSSIBLE, Choices, Interval, Separate, Shared
from planner_models.analytics.designs.decision import decide
from planner_models.analytics.designs.shortage import explain_shortage
from planner_models.analytics.designs.time_prices import Waiting, find_time_prices
from planner_models.analytics.plan.backfill import tabulate_kept
from planner_models.analytics.plan.metrics import measure
from planner_models.analytics.plan.plan import Levels, read_backfill, tabulate_backfill
from planner_models.analytics.problem.problem import Analytics

BACKEND: Final = "prices and search"
SCOPE: Final = "answers improved once, by data of all sites"
MOST_LEAVES: Final = 2_000

Order = Annotated[
    Literal["after", "together", "foreseen"],
    Field(
        description="after: new data first, later data in the capacity that is left; together: both by "
        "value; foreseen: both by value and by prices of uplinks in later intervals, with a bound"
    ),
]


class Candidate(NamedTuple):
    """Answers of an interval that later data may improve, once each.

    answers, is_sent       (n,) of shared queries: the answer, and whether later data was sent
    added, is_site_sent    (S, n) of each site for queries whose values add up
    """

    k: int
    answers: Ints
    added: Ints
    is_sent: Bools
    is_site_sent: Bools


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
    waiting. Otherwise later intervals are not foreseen, and there is no bound.

    source  Rabkin et al. 2013, section 3 (backfill to improve data)
    """
    if order == "foreseen":
        return _send_foreseen(problem, options)
    return _send(problem, order, options, None)


def _send_foreseen(problem: Analytics, options: Options) -> Decision[Levels]:
    """Send later data by prices of all intervals, or as new data first where that has more value."""
    first = _send(problem, "after", options, None)
    if first.plan is None:
        return first
    value = measure(problem, first.plan, None)["total_value"] or 0.0
    choices = Choices(problem, must_answer=options.service == "all")
    waiting = Waiting(problem, choices)
    found = find_time_prices(problem, choices, waiting, value)
    second = _send(problem, "together", options, waiting)
    best = first
    if second.plan is not None:
        other = measure(problem, second.plan, None)["total_value"] or 0.0
        if other > value:
            best, value = second, other
    bound = max(found.bound, value)
    gap = relative_gap(value, bound)
    wanted = OPTIMAL_GAP if options.gap is None else options.gap
    proof = Proof(
        status=Status.OPTIMAL if gap is not None and gap <= wanted else Status.FEASIBLE,
        objective=value,
        bound=bound,
        metric="total_value",
        backend=BACKEND,
        bound_scope=SCOPE,
    )
    return Decision(plan=best.plan, proof=proof)


def _send(problem: Analytics, order: Order, options: Options, waiting: Waiting | None) -> Decision[Levels]:
    """Send later data interval by interval.

    waiting  what later data gains at prices of later intervals; None where these are not foreseen
    """
    must_answer = options.service == "all"
    choices = Choices(problem, must_answer=must_answer)
    storage = _Storage(problem)
    chosen: list[Ints] = []
    rows: list[Sent] = []
    pool: list[Candidate] = []
    price: Floats | None = None
    for t in range(len(problem.interval_numbers)):
        new = choices.interval(t)
        reason = explain_shortage(problem, new, t, must_answer=must_answer)
        if reason is not None:
            proof = Proof(status=Status.INFEASIBLE, metric="value", reasons=(reason,))
            return Decision(plan=None, proof=proof)
        pool = [one for one in pool if _is_in_window(problem, one.k, t)]
        capacity = problem.capacity_bytes[t]
        offers = pool if order == "together" else []
        later = [_offer(problem, choices, one, t, capacity, waiting) for one in offers]
        foreseen = new if waiting is None else _add_waiting(new, t, waiting)
        found, price = _solve(_join([foreseen, *later]), price)
        if found.value == -np.inf:
            reason = f"interval {problem.interval_numbers[t]:g}: no plan found"
            proof = Proof(status=Status.UNDECIDED, metric="value", reasons=(reason,))
            return Decision(plan=None, proof=proof)
        own, sites = len(new.shared.query), new.separate.value.shape[1]
        if order == "after":
            left = capacity * np.maximum(1.0 - _used(new, found), 0.0)
            left[left < 1e-9 * capacity] = 0.0
            later = [_offer(problem, choices, one, t, left, None) for one in pool]
            extra = _solve(_join(later), None)[0] if later else None
        else:
            extra = search.Found(found.answers[own:], found.added[:, sites:], found.value)
        if extra is not None and extra.value > -np.inf:
            rows += _take(choices, pool, later, extra, t, storage)
        chosen.append(choices.to_levels(new, found.answers[:own], found.added[:, :sites]))
        answers, added = found.answers[:own].copy(), found.added[:, :sites].copy()
        pool.append(Candidate(t, answers, added, np.zeros(answers.shape, bool), np.zeros(added.shape, bool)))
    decision = decide(problem, np.array(chosen), options, backend=BACKEND, guarantees=None, price=price)
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
    return Decision(plan=plan, proof=decision.proof)


class _Storage:
    """Bytes that sites keep at the end of each interval."""

    def __init__(self, problem: Analytics) -> None:
        self.most = problem.storage_bytes
        self.kept = np.zeros((len(problem.interval_numbers), len(self.most)))

    def keep(self, sites: Ints, size: Floats, since: int, until: int) -> bool:
        """Keep data of some sites from the end of an interval until another one; False without storage."""
        after = self.kept[since:until, sites] + size
        if (after > self.most[sites] * (1 + 1e-9)).any():
            return False
        self.kept[since:until, sites] = after
        return True


def _is_in_window(problem: Analytics, k: int, t: int) -> bool:
    return bool(problem.start_s[t] - problem.start_s[k] <= problem.backfill_window_s.max(initial=0.0) + 1e-6)


def _add_waiting(new: Interval, t: int, waiting: Waiting) -> Interval:
    """Return the choices of new data with what they may gain later as part of their value."""
    shared, separate = (waiting.find(rows, t)[0] for rows in waiting.parts[t])
    return new._replace(
        shared=new.shared._replace(value=new.shared.value + shared),
        separate=new.separate._replace(value=new.separate.value + separate.reshape(new.separate.value.shape)),
    )


def _offer(
    problem: Analytics,
    choices: Choices,
    one: Candidate,
    t: int,
    capacity: Floats,
    waiting: Waiting | None,
) -> Interval:
    """Return the improvements of an interval's answers as choices of interval t; level kept: no data.

    With `waiting`, their value is less what they would gain in a later interval.
    """
    made = choices.interval(one.k, capacity)
    ends = problem.start_s + problem.length_s
    waited = ends[t] - ends[one.k]
    decay = np.where(
        problem.start_s[t] - problem.start_s[one.k] <= problem.backfill_window_s + 1e-6,
        0.5 ** (waited / problem.half_life_s),
        0.0,
    )
    shared, separate = made.shared, made.separate
    places = np.arange(len(one.answers))
    full = problem.value_usd[shared.query, None] * problem.value_share[shared.query]
    gain = (full - full[places, one.answers][:, None]) * decay[shared.query, None]
    site_wait: Floats | float = 0.0
    if waiting is not None:
        both = [waiting.find(rows, one.k, t - one.k + 1)[0] for rows in waiting.parts[one.k]]
        gain = gain - both[0][places, one.answers][:, None]
        of_sites = both[1].reshape(separate.value.shape)
        site_wait = np.take_along_axis(of_sites, one.added[..., None], axis=2)
    may = np.isfinite(shared.value) & (gain > 0) & ~one.is_sent[:, None]
    value = np.where(may, gain, IMPOSSIBLE)
    value[places, one.answers] = 0.0
    use = shared.use.copy()
    use[places, one.answers] = 0.0
    sites, own = np.indices(one.added.shape)
    site_full = problem.site_value_usd[:, separate.query, None] * problem.value_share[separate.query]
    site_gain = (site_full - site_full[sites, own, one.added][..., None]) * decay[separate.query, None]
    site_gain = site_gain - site_wait
    may = np.isfinite(separate.value) & (site_gain > 0) & ~one.is_site_sent[..., None]
    site_value = np.where(may, site_gain, IMPOSSIBLE)
    site_value[sites, own, one.added] = 0.0
    site_use, pop_use = separate.use.copy(), separate.pop_use.copy()
    site_use[sites, own, one.added] = pop_use[sites, own, one.added] = 0.0
    return made._replace(
        shared=shared._replace(value=value, use=use),
        separate=Separate(separate.query, site_value, site_use, pop_use),
    )


def _join(parts: list[Interval]) -> Interval:
    """Return the choices of several intervals as one."""
    shared = [part.shared for part in parts]
    separate = [part.separate for part in parts]
    return parts[0]._replace(
        shared=Shared(
            *(np.ascontiguousarray(np.concatenate(arrays)) for arrays in zip(*shared, strict=True))
        ),
        separate=Separate(
            np.concatenate([part.query for part in separate]),
            *(
                np.ascontiguousarray(np.concatenate(arrays, axis=1))
                for arrays in zip(*(part[1:] for part in separate), strict=True)
            ),
        ),
    )


def _solve(interval: Interval, price: Floats | None) -> tuple[search.Found, Floats]:
    priced = prices.find_prices(interval, price)
    return branching.find_choices(interval, priced, leaves=MOST_LEAVES).found, priced.price


def _used(interval: Interval, found: search.Found) -> Floats:
    """Return the part of each uplink's capacity that choices use, (M,)."""
    shared, separate = interval.shared, interval.separate
    used = shared.use[np.arange(len(found.answers)), found.answers].sum(axis=0)
    used = np.zeros(interval.links) + used
    sites, own = np.indices(found.added.shape)
    used[: len(interval.pop_of)] += separate.use[sites, own, found.added].sum(axis=1)
    of_pop = separate.pop_use[sites, own, found.added].sum(axis=1)
    used[len(interval.pop_of) :] += np.bincount(
        interval.pop_of, weights=of_pop, minlength=interval.links - len(interval.pop_of)
    )
    return np.asarray(used)


def _take(
    choices: Choices,
    pool: list[Candidate],
    later: list[Interval],
    extra: search.Found,
    t: int,
    storage: _Storage,
) -> list[Sent]:
    """Return the rows of the improvements that are chosen and can be kept, and mark them as sent."""
    problem = choices.problem
    rows: list[Sent] = []
    first = site_first = 0
    for one, offered in zip(pool, later, strict=True):
        shared, separate = offered.shared, offered.separate
        count, own = len(shared.query), len(separate.query)
        answers = extra.answers[first : first + count]
        added = extra.added[:, site_first : site_first + own]
        first, site_first = first + count, site_first + own
        sizes = choices.sizes(one.k)
        for place in np.flatnonzero(answers != one.answers).tolist():
            query, answer = int(shared.query[place]), int(answers[place])
            sites = np.flatnonzero(problem.has_data[:, query])
            levels = shared.sends[place, answer, sites]
            if storage.keep(sites, sizes[sites, query, levels], one.k, t):
                pairs = zip(sites.tolist(), levels.tolist(), strict=True)
                rows += [Sent(one.k, t, query, level, site) for site, level in pairs]
                one.is_sent[place] = True
        for site, place in np.argwhere(added != one.added).tolist():
            query, level = int(separate.query[place]), int(added[site, place])
            if storage.keep(np.array([site]), sizes[[site], query, level], one.k, t):
                rows.append(Sent(one.k, t, query, level, site))
                one.is_site_sent[site, place] = True
    return rows
