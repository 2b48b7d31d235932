"""Places where data of sites is merged: at points of presence, or in the datacenter."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Ints
from planner.contract.tables import file_name
from planner.errors import PlanRejected
from planner_models.analytics.problem.problem import Analytics, find_rows

DATACENTER, POP = "datacenter", "pop"
PLACES: Final = (DATACENTER, POP)


def find_merged(problem: Analytics, chosen: Ints) -> Ints:
    """Return where each point of presence has the data of a query merged, (K, G, Q), from levels (K, S, Q).

    1: there, 0: in the datacenter, -1: its sites send no data. A point of presence merges where that leaves
    fewer bytes; the data of a query that uses that of another one is not sent.
    """
    saves = problem.merged_share < 1
    order = np.argsort(problem.pop_of, kind="stable")
    pops, first = np.unique(problem.pop_of[order], return_index=True)
    found = np.full((len(chosen), len(problem.pop_names), chosen.shape[2]), -1, dtype=np.int64)
    for query in np.flatnonzero(problem.source_of < 0).tolist():
        own = chosen[:, :, query]
        sends = (own >= 0) & ~problem.is_none[query, own] & problem.has_data[:, query]
        sends &= problem.is_asked[:, query, None]
        there = sends & np.take_along_axis(saves[problem.pop_of, query], own.T, axis=1).T
        state = sends.astype(np.int64) + there
        found[:, pops, query] = np.maximum.reduceat(state[:, order], first, axis=1) - 1
    return found


def tabulate_merged(problem: Analytics, chosen: Ints) -> pd.DataFrame:
    """Return the table of places where data is merged; one row where all points of presence are alike."""
    found = find_merged(problem, chosen)
    sends = found >= 0
    most, least = found.max(axis=1), np.where(sends, found, 1).min(axis=1)
    alike = (most >= 0) & (most == least)
    interval, query = np.nonzero(alike)
    k, pop, q = np.nonzero(sends & ~alike[:, None, :])
    at = np.concatenate([most[interval, query], found[k, pop, q]])
    names = [np.full(len(interval), "", dtype=object), np.array(problem.pop_names, dtype=object)[pop]]
    return pd.DataFrame(
        {
            "interval": problem.interval_numbers[np.concatenate([interval, k])],
            "query": np.array(problem.query_names, dtype=object)[np.concatenate([query, q])],
            "pop": np.concatenate(names),
            "at": np.array(PLACES, dtype=object)[at],
        }
    )


def require_merged(problem: Analytics, chosen: Ints, frame: pd.DataFrame) -> None:
    """Raise PlanRejected where a table of places is not what the levels (K, S, Q) make."""
    expected = find_merged(problem, chosen)
    where = file_name(frame, "merged")
    interval = problem.find_intervals(frame)
    query, pop = find_rows(problem.query_names, frame["query"]), find_rows(problem.pop_names, frame["pop"])
    everywhere = (frame["pop"].astype(str) == "").to_numpy()
    for bad, words in (
        (interval < 0, "interval"),
        (query < 0, "query"),
        ((pop < 0) & ~everywhere, "pop"),
    ):
        if bad.any():
            row = int(np.argmax(bad))
            raise PlanRejected(f"{where} row {row + 1}: there is no {words} {frame[words].iloc[row]!r}")
    is_whole = np.zeros((len(expected), expected.shape[2]), dtype=bool)
    is_whole[interval[everywhere], query[everywhere]] = True
    given = np.full(expected.shape, -1, dtype=np.int64)
    at = (frame["at"].astype(str) == POP).to_numpy().astype(np.int64)
    given[interval[everywhere], :, query[everywhere]] = at[everywhere, None]
    given = np.where(expected < 0, -1, given)
    one = ~everywhere
    twice = one & is_whole[interval, query]
    if twice.any():
        row = int(np.argmax(twice))
        raise PlanRejected(f"{where} row {row + 1}: another row has the place of all points of presence")
    given[interval[one], pop[one], query[one]] = at[one]
    missing = is_whole & (expected < 0).all(axis=1)
    if (given != expected).any() or missing.any():
        k, g, q = np.argwhere((given != expected) | missing[:, None, :])[0].tolist()
        rules = ("no data is sent", *(f"the levels are merged at: {place}" for place in PLACES))
        raise PlanRejected(
            f"{where}: interval {problem.interval_numbers[k]:g}, query '{problem.query_names[q]}', point of "
            f"presence '{problem.pop_names[g]}': {rules[expected[k, g, q] + 1]}"
        )
