"""Places where data of sites is merged: at points of presence, or in the datacenter."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Bools, Ints, read_only
from planner.compiled import kernel, run_small_in_python
from planner.contract.tables import file_name
from planner.errors import PlanRejected
from planner_models.analytics.problem.problem import Analytics, name_rows
from planner_models.analytics.problem.tables import find_rows

DATACENTER, POP = "datacenter", "pop"
PLACES: Final = (DATACENTER, POP)


def find_merged(problem: Analytics, levels: Ints) -> Ints:
    """Return the places of merging of queries, points of presence or not, (K, G, Q), from levels (K, S, Q).

    1: there, 0: in the datacenter, -1: its sites send no data. A point of presence merges where that leaves
    fewer bytes; the data of a query that uses that of another one is not sent.
    """
    sent = problem.has_data & (problem.source_of < 0)
    return _find_merged(
        read_only(levels), read_only(sent), read_only(problem.is_none), read_only(problem.is_asked),
        read_only(problem.merged_share < 1), read_only(problem.pop_of),
    )  # fmt: skip


@run_small_in_python(max_elements=5_000)
@kernel
def _find_merged(
    levels: Ints, sent: Bools, is_none: Bools, is_asked: Bools, saves: Bools, pop_of: Ints
) -> Ints:
    """Return the places of `find_merged`.

    sent   (S, Q) whether a site has data of a query, and sends it
    saves  (G, Q, L) whether merging leaves fewer bytes
    """
    intervals, sites, queries = levels.shape
    merged = np.full((intervals, len(saves), queries), -1, dtype=np.int64)
    for k in range(intervals):
        for site in range(sites):
            pop = pop_of[site]
            for query in range(queries):
                level = levels[k, site, query]
                if level >= 0 and sent[site, query] and is_asked[k, query] and not is_none[query, level]:
                    merged[k, pop, query] = max(merged[k, pop, query], int(saves[pop, query, level]))
    return merged


def tabulate_merged(problem: Analytics, levels: Ints) -> pd.DataFrame:
    """Return the table of places where data is merged; one row where all points of presence are alike."""
    merged = find_merged(problem, levels)
    sends = merged >= 0
    largest, smallest = merged.max(axis=1), np.where(sends, merged, 1).min(axis=1)
    alike = (largest >= 0) & (largest == smallest)
    interval, query = np.nonzero(alike)
    k, pop, q = np.nonzero(sends & ~alike[:, None, :])
    location = np.concatenate([largest[interval, query], merged[k, pop, q]])
    frame = pd.DataFrame(
        {
            "interval": problem.interval_numbers[np.concatenate([interval, k])],
            "query": name_rows(problem.query_names, np.concatenate([query, q])),
            "pop": name_rows(["", *problem.pop_names], np.concatenate([np.zeros_like(query), pop + 1])),
            "at": name_rows(PLACES, location),
        }
    )
    return frame.astype({"query": "str", "pop": "str", "at": "str"})


def require_merged(problem: Analytics, levels: Ints, frame: pd.DataFrame) -> None:
    """Raise PlanRejected if a table of locations does not follow from the levels (K, S, Q)."""
    expected = find_merged(problem, levels)
    where = file_name(frame, "merged")
    interval = problem.find_intervals(frame)
    query, pop = find_rows(problem.query_names, frame["query"]), find_rows(problem.pop_names, frame["pop"])
    everywhere = (frame["pop"] == "").to_numpy(bool)
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
    actual = np.full(expected.shape, -1, dtype=np.int64)
    location = (frame["at"] == POP).to_numpy(bool).astype(np.int64)
    actual[interval[everywhere], :, query[everywhere]] = location[everywhere, None]
    actual = np.where(expected < 0, -1, actual)
    single = ~everywhere
    twice = single & is_whole[interval, query]
    if twice.any():
        row = int(np.argmax(twice))
        raise PlanRejected(f"{where} row {row + 1}: another row has the place of all points of presence")
    actual[interval[single], pop[single], query[single]] = location[single]
    missing = is_whole & (expected < 0).all(axis=1)
    if (actual != expected).any() or missing.any():
        k, g, q = np.argwhere((actual != expected) | missing[:, None, :])[0].tolist()
        rules = ("no data is sent", *(f"the levels are merged at: {position}" for position in PLACES))
        raise PlanRejected(
            f"{where}: interval {problem.interval_numbers[k]:g}, query '{problem.query_names[q]}', point of "
            f"presence '{problem.pop_names[g]}': {rules[expected[k, g, q] + 1]}"
        )
