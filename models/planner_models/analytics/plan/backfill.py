"""Bytes on uplinks, storage at sites, and value of better answers by data that is sent later."""

from __future__ import annotations

import numpy as np
import pandas as pd

from planner.arrays import Floats, Ints
from planner_models.analytics.plan.answers import find_answers
from planner_models.analytics.plan.plan import Late
from planner_models.analytics.problem.problem import Analytics


def find_sizes(problem: Analytics, late: Late) -> Floats:
    """Return the bytes that a site sends for each row of backfill, (n,)."""
    cube = problem.cube_of[late.query]
    records = problem.records[late.interval, late.site, cube]
    cells = problem.cells[late.interval, late.site, cube]
    level = late.site, late.query, late.level
    return np.asarray(records * problem.sent_per_record[level] + cells * problem.sent_per_cell[level])


def find_late_loads(problem: Analytics, late: Late) -> Floats:
    """Return the bytes of backfill on each uplink in each interval, (K, S + G)."""
    size = find_sizes(problem, late)
    pop = problem.pop_of[late.site]
    loads = np.zeros(problem.capacity_mbps.shape)
    np.add.at(loads, (late.sent, late.site), size)
    shrunk = size * problem.merged_share[pop, late.query, late.level]
    np.add.at(loads, (late.sent, len(problem.site_names) + pop), shrunk)
    return loads


def find_kept(problem: Analytics, late: Late) -> Floats:
    """Return the bytes that each site keeps at the end of each interval to send them later, (K, S)."""
    size = find_sizes(problem, late)
    change = np.zeros((len(problem.length_s) + 1, len(problem.site_names)))
    np.add.at(change, (late.interval, late.site), size)
    np.add.at(change, (late.sent, late.site), -size)
    return np.asarray(np.maximum(change.cumsum(axis=0)[:-1], 0.0))


def tabulate_kept(problem: Analytics, late: Late) -> pd.DataFrame:
    """Return the table of data that sites keep for a query at the end of an interval, to send it later."""
    length = late.sent - late.interval
    row = np.repeat(np.arange(len(length)), length)
    first = np.repeat(length.cumsum() - length, length)
    interval = late.interval[row] + np.arange(len(row)) - first
    shape = (len(problem.interval_numbers), len(problem.query_names), len(problem.site_names))
    cell, inverse = np.unique(
        np.ravel_multi_index((interval, late.query[row], late.site[row]), shape), return_inverse=True
    )
    size = np.bincount(inverse, weights=find_sizes(problem, late)[row], minlength=len(cell))
    k, query, site = np.unravel_index(cell, shape)
    return pd.DataFrame(
        {
            "interval": problem.interval_numbers[k],
            "query": np.array(problem.query_names, dtype=object)[query],
            "site": np.array(problem.site_names, dtype=object)[site],
            "gb": size / 1e9,
        }
    )


def find_gain(problem: Analytics, levels: Ints, late: Late) -> float:
    """Return the value that later data adds to answers, USD; chosen levels are (K, S, Q).

    An answer improves once the data of all its rows has come, at the end of an interval. The value of the
    improvement falls by half in each half-life from the end of the answer's own interval. Where sites add
    up, each site's data counts by itself.
    """
    if not len(late.interval):
        return 0.0
    ends = problem.start_s + problem.length_s
    decay = 0.5 ** ((ends[late.sent] - ends[late.interval]) / problem.half_life_s[late.query])
    is_sum = problem.is_sum[late.query]
    before = levels[late.interval, late.site, late.query]
    share = np.where(before >= 0, problem.value_share[late.query, before], 0.0)
    more = np.maximum(problem.value_share[late.query, late.level] - share, 0.0)
    total = float((problem.site_value_usd[late.site, late.query] * more * decay)[is_sum].sum())
    is_direct = ~is_sum
    if not is_direct.any():
        return total
    finer = levels.copy()
    finer[late.interval[is_direct], late.site[is_direct], late.query[is_direct]] = late.level[is_direct]
    gain = find_answers(problem, finer).value_usd - find_answers(problem, levels).value_usd
    slowest = np.ones((len(levels), levels.shape[2]))
    np.minimum.at(slowest, (late.interval[is_direct], late.query[is_direct]), decay[is_direct])
    touched = np.zeros(slowest.shape, dtype=bool)
    touched[late.interval[is_direct], late.query[is_direct]] = True
    return total + float((np.maximum(gain, 0.0) * slowest)[touched].sum())
