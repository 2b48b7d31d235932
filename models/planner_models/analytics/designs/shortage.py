"""Proof that an interval's queries that need an answer do not fit."""

from __future__ import annotations

import numpy as np

from planner.formatting import amount
from planner_models.analytics.designs.choices import Interval
from planner_models.analytics.problem.problem import BYTES_PER_MBIT, Analytics


def explain_shortage(problem: Analytics, interval: Interval, k: int, *, must_answer: bool) -> str | None:
    """Return why no choice of levels fits interval k: on an uplink, the fewest bytes exceed the capacity.

    None where this does not prove it.
    """
    number = f"interval {problem.interval_numbers[k]:g}"
    shared, separate = interval.shared, interval.separate
    impossible = np.flatnonzero(~np.isfinite(shared.value).any(axis=1))
    if len(impossible):
        query = problem.query_names[int(shared.query[impossible[0]])]
        return f"{number}: query '{query}' has no level that all of its sites can send, and no level none"
    cannot = np.argwhere(~np.isfinite(separate.value).any(axis=2))
    if len(cannot):
        site, place = cannot[0].tolist()
        query = problem.query_names[int(separate.query[place])]
        return f"{number}: site '{problem.site_names[site]}' can send no level of query '{query}'"
    needed = np.where(np.isfinite(shared.value)[..., None], shared.use, np.inf).min(axis=1).sum(axis=0)
    sites = len(interval.pop_of)
    for uses, places in ((separate.use, np.arange(sites)), (separate.pop_use, sites + interval.pop_of)):
        least = np.where(np.isfinite(separate.value), uses, np.inf).min(axis=2).sum(axis=1)
        needed += np.bincount(places, weights=least, minlength=interval.links)
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
