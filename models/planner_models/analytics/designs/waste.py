"""Bytes that are finer than answers can use: the sites that make them useless, and their possible gain."""

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


def tabulate_waste(problem: Analytics, levels: Ints, answers: Answers, rows: int) -> pd.DataFrame:
    """Return the sites with coarse levels (K, S, Q) that make most bytes of others useless, the most first.

    Bytes that a query wastes in an interval are shared equally among the sites with its coarsest level.
    """
    sites = len(problem.site_names)
    blame, queries = np.zeros(sites), np.zeros(sites)
    shared = np.flatnonzero(~problem.is_sum & (problem.source_of < 0)).tolist()
    for query in shared:
        wasted = find_query_loads(problem, levels, query, answers).wasted.sum(axis=1)
        coarse = _find_coarsest(problem, levels, query, answers)
        fraction = np.where(wasted > 0, wasted / np.maximum(coarse.sum(axis=1), 1), 0.0)
        blame += (coarse * fraction[:, None]).sum(axis=0)
        queries += (coarse & (wasted > 0)[:, None]).any(axis=0)
    order = np.argsort(-blame, kind="stable")[:rows]
    order = order[blame[order] > 0]
    others = np.zeros((len(order), sites), dtype=bool)
    lost, sent = np.zeros(len(order)), np.zeros(len(order))
    for query in shared:
        loads = find_query_loads(problem, levels, query, answers)
        coarse = _find_coarsest(problem, levels, query, answers)
        for rank, site in enumerate(order.tolist()):
            is_coarsest = coarse[:, site]
            affected = is_coarsest[:, None] & (loads.wasted > 0)
            others[rank] |= affected.any(axis=0)
            lost[rank] += loads.wasted[affected].sum()
            sent[rank] += loads.sent[affected].sum()
    return pd.DataFrame(
        {
            "site": [problem.site_names[row] for row in order.tolist()],
            "queries": queries[order],
            "other_sites": others.sum(axis=1),
            "wasted_percent": 100 * lost / np.maximum(sent, 1e-300),
            "wasted_gb": blame[order] / 1e9,
        }
    )


def _find_coarsest(problem: Analytics, levels: Ints, query: int, answers: Answers) -> Bools:
    """Return whether a site has the level of the answer itself, (K, S)."""
    return np.asarray(
        (levels[:, :, query] == answers.level[:, [query]]) & problem.has_data[:, query], dtype=bool
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


def find_gain(problem: Analytics, levels: Ints, answers: Answers, options: Options) -> Gain | None:
    """Return the gain of answers in the interval of most waste, without finer data than they need.

    The interval is solved again twice, without and with these bytes, and no query may lose value. None where
    nothing is wasted, or where the plan overloads an uplink then.
    """
    loads = find_loads(problem, levels, answers)
    k = int(loads.wasted.sum(axis=1).argmax())
    freed = loads.wasted[k]
    capacity = problem.capacity_bytes[k]
    overloaded = np.concatenate([loads.site[k], loads.pop[k]]) > capacity * (1 + TOLERANCE)
    if freed.sum() <= 0 or overloaded.any():
        return None
    of_pop = np.bincount(problem.pop_of, weights=freed * loads.shrunk[k], minlength=len(problem.pop_names))
    choices = Choices(problem)
    without = np.maximum(capacity - np.concatenate([freed, of_pop]), 0.0)
    first = _solve_from(choices, choices.interval(k, without), levels[k], answers.level[k], options)
    if first is None:
        return None
    full = choices.interval(k)
    second = _solve_from(choices, full, first.levels, first.answers, options)
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
    lower = np.where(before >= 0, shared.value[rows, before], IMPOSSIBLE)[:, None]
    own_least = separate.value[sites, columns, levels[:, separate.query]][..., None]
    limited = interval._replace(
        shared=shared._replace(value=_drop_below(shared.value, lower)),
        separate=separate._replace(value=_drop_below(separate.value, own_least)),
    )
    solution = optimum.plan_interval(choices, limited, None, method="auto", options=options)
    if solution.chosen is None:
        return None
    own_answers = np.full(len(answers), -1, dtype=np.int64)
    own_answers[shared.query] = solution.answers
    usd = np.zeros(len(answers))
    usd[shared.query] = shared.value[rows, solution.answers]
    usd[separate.query] = separate.value[sites, columns, solution.chosen[:, separate.query]].sum(axis=0)
    return _Solved(solution.chosen, own_answers, usd)


def _drop_below(value: Floats, lower: Floats) -> Floats:
    """Return values, with IMPOSSIBLE for those below the least ones."""
    floor = np.where(np.isfinite(lower), lower, -np.inf)
    return np.ascontiguousarray(np.where(value >= floor * (1 - TOLERANCE), value, IMPOSSIBLE))
