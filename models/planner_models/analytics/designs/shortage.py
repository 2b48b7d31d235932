"""Proof that an interval's queries that need an answer do not fit."""

from __future__ import annotations

import numpy as np

from planner.arrays import Floats, Ints
from planner.compiled import kernel, run_small_in_python
from planner.formatting import amount
from planner_models.analytics.designs.choices import Interval
from planner_models.analytics.problem.problem import Analytics
from planner_models.analytics.problem.tables import BYTES_PER_MBIT


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
