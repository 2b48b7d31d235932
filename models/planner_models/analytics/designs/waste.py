"""Bytes that are finer than answers can use: which sites make them useless, and what they could gain."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints
from planner.options import Options
from planner.search.tolerances import ROUNDING
from planner_models.analytics.designs import optimum
from planner_models.analytics.designs.choices import IMPOSSIBLE, Choices, Interval
from planner_models.analytics.plan.answers import Answers, find_loads, find_query_loads
from planner_models.analytics.problem.problem import Analytics

TOLERANCE: Final = ROUNDING


def tabulate_waste(problem: Analytics, chosen: Ints, answers: Answers, rows: int) -> pd.DataFrame:
    """Return the sites whose coarse levels (K, S, Q) make most bytes of others useless, the most first.

    Bytes that a query wastes in an interval are shared equally among the sites with its coarsest level.
    """
    sites = len(problem.site_names)
    blame, queries = np.zeros(sites), np.zeros(sites)
    shared = np.flatnonzero(~problem.is_sum & (problem.source_of < 0)).tolist()
    for query in shared:
        wasted = find_query_loads(problem, chosen, query, answers).wasted.sum(axis=1)
        coarse = _find_coarsest(problem, chosen, query, answers)
        part = np.where(wasted > 0, wasted / np.maximum(coarse.sum(axis=1), 1), 0.0)
        blame += (coarse * part[:, None]).sum(axis=0)
        queries += (coarse & (wasted > 0)[:, None]).any(axis=0)
    order = np.argsort(-blame, kind="stable")[:rows]
    order = order[blame[order] > 0]
    others = np.zeros((len(order), sites), dtype=bool)
    lost, sent = np.zeros(len(order)), np.zeros(len(order))
    for query in shared:
        loads = find_query_loads(problem, chosen, query, answers)
        coarse = _find_coarsest(problem, chosen, query, answers)
        for place, site in enumerate(order.tolist()):
            own = coarse[:, site]
            affected = own[:, None] & (loads.wasted > 0)
            others[place] |= affected.any(axis=0)
            lost[place] += loads.wasted[affected].sum()
            sent[place] += loads.sent[affected].sum()
    return pd.DataFrame(
        {
            "site": [problem.site_names[row] for row in order.tolist()],
            "queries": queries[order],
            "other_sites": others.sum(axis=1),
            "wasted_percent": 100 * lost / np.maximum(sent, 1e-300),
            "wasted_gb": blame[order] / 1e9,
        }
    )


def _find_coarsest(problem: Analytics, chosen: Ints, query: int, answers: Answers) -> Bools:
    """Return whether a site has the level of the answer itself, (K, S)."""
    return np.asarray(
        (chosen[:, :, query] == answers.level[:, [query]]) & problem.has_data[:, query], dtype=bool
    )


class Gain(NamedTuple):
    """Gain of answers in an interval by bytes that are finer than needed, as it was solved again.

    interval  place of the interval
    freed     bytes
    usd       (Q,) gain of each query, USD
    """

    interval: int
    freed: float
    usd: Floats


def find_gain(problem: Analytics, chosen: Ints, answers: Answers, options: Options) -> Gain | None:
    """Return what answers gain in the interval of most waste, where no site sends finer data than they need.

    The interval is solved again twice, without and with these bytes, and no query may lose value. None where
    nothing is wasted, or where the plan overloads an uplink then.
    """
    loads = find_loads(problem, chosen, answers)
    k = int(loads.wasted.sum(axis=1).argmax())
    freed = loads.wasted[k]
    capacity = problem.capacity_bytes[k]
    overloaded = np.concatenate([loads.site[k], loads.pop[k]]) > capacity * (1 + TOLERANCE)
    if freed.sum() <= 0 or overloaded.any():
        return None
    of_pop = np.bincount(problem.pop_of, weights=freed * loads.shrunk[k], minlength=len(problem.pop_names))
    choices = Choices(problem)
    without = np.maximum(capacity - np.concatenate([freed, of_pop]), 0.0)
    first = _solve_from(choices, choices.interval(k, without), chosen[k], answers.level[k], options)
    if first is None:
        return None
    whole = choices.interval(k)
    second = _solve_from(choices, whole, first.levels, first.answers, options)
    return None if second is None else Gain(k, float(freed.sum()), second.usd - first.usd)


class _Solved(NamedTuple):
    levels: Ints
    answers: Ints
    usd: Floats


def _solve_from(
    choices: Choices, interval: Interval, levels: Ints, answers: Ints, options: Options
) -> _Solved | None:
    """Return levels (S, Q), answers (Q,) and values (Q,) of most value; no query has less than before."""
    shared, separate = interval.shared, interval.separate
    rows, sites = np.arange(len(shared.query)), np.arange(len(interval.pop_of))[:, None]
    columns = np.arange(len(separate.query))
    before = answers[shared.query]
    least = np.where(before >= 0, shared.value[rows, before], IMPOSSIBLE)[:, None]
    own_least = separate.value[sites, columns, levels[:, separate.query]][..., None]
    limited = interval._replace(
        shared=shared._replace(value=_drop_below(shared.value, least)),
        separate=separate._replace(value=_drop_below(separate.value, own_least)),
    )
    found = optimum.plan_interval(choices, limited, None, method="auto", options=options)
    if found.chosen is None:
        return None
    own_answers = np.full(len(answers), -1, dtype=np.int64)
    own_answers[shared.query] = found.answers
    usd = np.zeros(len(answers))
    usd[shared.query] = shared.value[rows, found.answers]
    usd[separate.query] = separate.value[sites, columns, found.chosen[:, separate.query]].sum(axis=0)
    return _Solved(found.chosen, own_answers, usd)


def _drop_below(value: Floats, least: Floats) -> Floats:
    """Return values, with IMPOSSIBLE for those below the least ones."""
    floor = np.where(np.isfinite(least), least, -np.inf)
    return np.ascontiguousarray(np.where(value >= floor * (1 - TOLERANCE), value, IMPOSSIBLE))
