"""Answers that are left out because uplinks cannot carry even the coarsest levels of queries that need one.

An interval that has no other plan gets, for each query, or site of a query whose values add up, the choice of
no level at all. Of these choices an integer program takes as few as it can, then those that lose the least
value. The designs then plan the interval without them.

Where all queries need an answer, it proves that an interval's queries do not fit.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from planner import backends
from planner.arrays import Floats, Ints
from planner.compiled import kernel, run_small_in_python
from planner.formatting import amount
from planner.options import Options
from planner_models.analytics.designs.choices import Choices, Interval, Separate, Shared
from planner_models.analytics.designs.program import build_interval
from planner_models.analytics.problem.problem import Analytics
from planner_models.analytics.problem.tables import BYTES_PER_MBIT

SCOPE: Final = "plans that leave out the same answers"
"""What bounds speak of where answers are left out."""
TIME_LIMIT_S: Final = 2.0


def fit_interval(choices: Choices, k: int) -> tuple[Interval, str | None]:
    """Return the choices of interval k, and why they do not fit; None where they may.

    Where queries may go without answers, those that do not fit are left out, and the reason is kept with the
    choices.
    """
    interval = choices.interval(k)
    reason = explain_shortage(choices.problem, interval, k, must_answer=choices.must_answer)
    if reason is None or choices.must_answer or not leave_out(choices, k, reason):
        return interval, reason
    return choices.interval(k), None


def leave_out(choices: Choices, k: int, reason: str) -> bool:
    """Mark the answers of interval k that do not fit as left out; False where none are found.

    reason  why not all fit
    """
    interval = choices.interval(k)
    values = [interval.shared.value, interval.separate.value]
    total = sum(float(np.where(np.isfinite(value), value, 0.0).max(axis=-1).sum()) for value in values)
    bonus = 2 * total if total > 0 else 1.0  # for each answer: no value makes up for one less
    shared, separate = interval.shared, interval.separate
    extended = Interval(
        interval.pop_of,
        interval.links,
        Shared(
            shared.query,
            _add_choice(shared.value + bonus),
            np.concatenate([shared.use, np.zeros_like(shared.use[:, :1])], axis=1),
            shared.sends,
        ),
        Separate(
            separate.query,
            _add_choice(separate.value + bonus),
            _add_choice(separate.use),
            _add_choice(separate.pop_use),
        ),
    )
    built = build_interval(extended)
    solution = backends.solve(built.program, Options(threads=1, seed=1, time_limit_s=TIME_LIMIT_S))
    if solution.x is None:
        return False
    answers, added = built.read(solution.x)
    of_query = answers == shared.value.shape[1]
    of_site = added == separate.value.shape[2]
    if not (of_query.any() or of_site.any()):
        return False
    choices.leave_out(k, shared.query[of_query], of_site, reason)
    return True


def _add_choice(values: Floats) -> Floats:
    """Return values by level with those of no level, 0, behind them."""
    return np.concatenate([values, np.zeros((*values.shape[:-1], 1))], axis=-1)


def explain_shortage(problem: Analytics, interval: Interval, k: int, *, must_answer: bool) -> str | None:
    """Return the reason for which no levels fit interval k: an uplink with more bytes than capacity.

    None where this does not prove it.
    """
    number = f"interval {problem.interval_numbers[k]:g}"
    shared, separate = interval.shared, interval.separate
    needed, query_row, site, site_row = _sum_fewest(
        shared.value, shared.use, separate.value, separate.use, separate.pop_use, interval.pop_of,
        interval.links,
    )  # fmt: skip
    if query_row >= 0:
        query = problem.query_names[int(shared.query[query_row])]
        return f"{number}: query '{query}' has no level that all of its sites can send, and no level none"
    if site >= 0:
        query = problem.query_names[int(separate.query[site_row])]
        return f"{number}: site '{problem.site_names[site]}' can send no level of query '{query}'"
    link = int(needed.argmax()) if len(needed) else 0
    if not len(needed) or needed[link] <= 1 + 1e-9:
        return None
    capacity = float(problem.capacity_bytes[k, link])
    rate = amount(capacity / float(problem.length_s[k]) / BYTES_PER_MBIT, "Mbit/s")
    least_rate = amount(
        float(needed[link]) * capacity / float(problem.length_s[k]) / BYTES_PER_MBIT, "Mbit/s"
    )
    which = "queries" if must_answer else "queries without a level none"
    return (
        f"{number}: the uplink of '{problem.link_names[link]}' carries {rate}; the coarsest levels of all "
        f"{which} need {least_rate}"
    )


@run_small_in_python(max_elements=5_000)
@kernel
def _sum_fewest(  # noqa: C901 - one compiled loop
    value: Floats,
    use: Floats,
    site_value: Floats,
    site_use: Floats,
    site_pop_use: Floats,
    pop_of: Ints,
    links: int,
) -> tuple[Floats, int, int, int]:
    """Return the least that all choices use of each link, (M,), and the first choice without an option.

    That is a shared query, or a site and a separate query, by their rows; -1 where all have one.
    """
    needed, smallest = np.zeros(links), np.empty(links)
    sites, separate, levels = site_value.shape
    for row in range(len(value)):
        smallest[:] = np.inf
        for level in range(levels):
            if value[row, level] > -np.inf:
                for link in range(links):
                    smallest[link] = min(smallest[link], use[row, level, link])
        if links and smallest[0] == np.inf:
            return needed, row, -1, -1
        needed += smallest
    for site in range(sites):
        for row in range(separate):
            site_needed = of_pop = np.inf
            for level in range(levels):
                if site_value[site, row, level] > -np.inf:
                    site_needed = min(site_needed, site_use[site, row, level])
                    of_pop = min(of_pop, site_pop_use[site, row, level])
            if site_needed == np.inf:
                return needed, -1, site, row
            needed[site] += site_needed
            needed[sites + pop_of[site]] += of_pop
    return needed, -1, -1, -1
