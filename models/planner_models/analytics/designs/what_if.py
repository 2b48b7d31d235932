"""Explanation of a plan: uplinks that limit answers, sites with wasteful levels, queries that lose.

Wasteful levels send bytes that are finer than answers can use: the sites that make them useless, and their
possible gain, are listed too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Final, NamedTuple

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Bools, Floats, Ints
from planner.contract.studies import Decided, Explanation, Section
from planner.formatting import amount, counted
from planner.options import Options
from planner.search.tolerances import IMPROVEMENT, ROUNDING
from planner_models.analytics.designs import archiving, optimum, prices
from planner_models.analytics.designs.choices import IMPOSSIBLE, Choices, Interval
from planner_models.analytics.plan.answers import (
    Answers,
    find_answers,
    find_loads,
    find_proven_errors,
    find_query_loads,
    replay_queues,
)
from planner_models.analytics.plan.archived import read_places
from planner_models.analytics.plan.metrics import find_timely_value, find_usd_per_gb
from planner_models.analytics.plan.plan import Levels, read_levels
from planner_models.analytics.problem.archives import read_archives, read_stores
from planner_models.analytics.problem.denials import explain_denied
from planner_models.analytics.problem.filters import find_shares, list_filters
from planner_models.analytics.problem.problem import Analytics
from planner_models.analytics.problem.windows import take_intervals

MORE: Final = 0.1  # of a capacity, that is tried
MOST_INTERVALS: Final = 48  # whose prices are found; of more, intervals at equal distances
MOST_OUTAGES: Final = 12  # intervals without some uplink that are solved again; of more, at equal distances
MOST_LOST: Final = 3  # uplinks without capacity that are told
NO_GAIN: Final = IMPROVEMENT  # USD, a gain that is rounding
LARGER: Final = (1.25, 1.5, 2.0, 4.0)  # capacities that are tried where a tenth more gains nothing
TOLERANCE: Final = ROUNDING
Report = tuple[list[str], list[Section]]
"""Sentences of an explanation, and tables that belong to them."""


def _explain_value(metrics: Mapping[str, float]) -> list[str]:
    """Return sentences on the value of answers and of late data."""
    if not metrics["offered_value"]:
        sentences = ["No query has data."]
    else:
        share = metrics["value"] / metrics["offered_value"]
        sentences = [f"Answers have {share:.1%} of the value of full quality."]
    if metrics["late_loss"]:
        sentences.append(f"{metrics['late_loss']:,.3g} USD are lost as data comes after deadlines.")
    return sentences


def _explain_cost(metrics: Mapping[str, float]) -> list[str]:
    """Return a sentence on the cost of transfers, where they have one."""
    cost, value = metrics["transfer_cost"], metrics["value"]
    if cost <= 0 or value <= 0:
        return []
    sent = amount(metrics["sent_gb"], "GB")
    per_value = f"{cost / value:.2g} USD for each USD of value"
    return [f"Sites send {sent}, which costs {cost:,.3g} USD: {per_value}."]


def explain(
    problem: Analytics,
    decided: Decided,
    *,
    links: Annotated[int, Field(ge=0, le=100, description="uplinks that get more capacity")] = 6,
    rows: Annotated[int, Field(ge=1, description="most rows of a table")] = 10,
    options: Options = Options(),
) -> Explanation:
    """Explain the losses of answers, the uplinks that limit them most, and the sites that waste bytes.

    The value of an uplink is its price in the relaxation; for the first ones, the interval in which it is
    highest is solved again with a tenth more capacity.
    """
    plan: Levels = decided.decision.plan  # type: ignore[assignment]
    levels = read_levels(problem, plan)
    answers = find_answers(problem, levels)
    metrics = {name: value or 0.0 for name, value in decided.metrics.items()}
    reports: tuple[Report, ...] = (
        (_explain_value(metrics), []),
        (_explain_outages(problem, options), []),
        _report_limits(problem, len(levels), options, links),
        _report_waste(problem, levels, answers, metrics["wasted_percent"], rows, options),
        (_explain_cost(metrics), []),
        _report_filters(problem, levels, rows),
        _report_errors(problem, levels, answers, rows),
        _report_denied(problem, metrics["denied_loss"], rows),
        _report_archives(problem, plan, rows),
        ([], [_section_of_queries(problem, levels, answers, rows)]),
    )
    sentences = [sentence for texts, _ in reports for sentence in texts]
    sections = [section for _, tables in reports for section in tables]
    return Explanation(sentences=tuple(sentences), sections=tuple(sections))


def _report_limits(problem: Analytics, intervals: int, options: Options, links: int) -> Report:
    """Return sentences on the uplinks that limit answers, with their table."""
    sample = np.unique(np.linspace(0, intervals - 1, min(intervals, MOST_INTERVALS)).astype(int))
    prices_found = _find_prices(problem, sample)
    table = _tabulate_links(problem, sample, prices_found, options, links)
    if not len(table):
        return ["No uplink limits answers."], []
    sentences, section = _report_links(problem, table, len(sample), intervals, options)
    return sentences, [section]


def _report_waste(
    problem: Analytics, levels: Ints, answers: Answers, wasted_percent: float, rows: int, options: Options
) -> Report:
    """Return sentences on bytes that are finer than answers can use, with the sites that make them so."""
    blamed = tabulate_waste(problem, levels, answers, rows)
    if not len(blamed):
        return [], []
    section = Section(
        title="Sites whose levels make bytes of others useless",
        frame=blamed,
        units={"wasted_percent": "%", "wasted_gb": "GB"},
        note="wasted GB: shared equally among the sites with the coarsest level of a query in an "
        "interval; wasted %: of the bytes of the other sites in these answers",
    )
    return _explain_waste(problem, levels, answers, wasted_percent, blamed, options), [section]


def _report_filters(problem: Analytics, levels: Ints, rows: int) -> Report:
    """Return a sentence on the filter that drops most records, with a table of the filters in use."""
    frame = tabulate_filters(problem, levels)
    if not len(frame):
        return [], []
    first = frame.iloc[0]
    sentence = (
        f"Filters drop records of {counted(frame['query'].nunique(), 'queries')}. Level {first['level']} of "
        f"query {first['query']} drops most: {first['dropped_percent']:.3g}% of its records, all but those "
        f"with {first['filter']}. Its answers have an error of {first['error']:.3g}."
    )
    section = Section(
        title="Filters that drop most records",
        frame=frame.head(rows),
        units={"dropped_percent": "%"},
        note="records: of sites and intervals in which the level is sent; error: of an answer at this level",
    )
    return [sentence], [section]


def tabulate_filters(problem: Analytics, levels: Ints) -> pd.DataFrame:
    """Return the filters of chosen levels (K, S, Q), with the records that they drop, the most first."""
    conditions = list_filters(problem.levels)
    passing = find_shares(problem, "record_share")
    volume = [problem.find_volume(k)[0] for k in range(len(levels))] if any(conditions) else []
    rows = []
    for row, (query, level) in enumerate(
        zip(*(index.tolist() for index in problem._level_places), strict=True)
    ):
        condition = conditions[row]
        if condition is None or problem.source_of[query] >= 0:
            continue
        is_sent = (levels[:, :, query] == level) & problem.has_data[:, query]
        records = np.array([entry[:, query] for entry in volume]) * is_sent
        dropped = (records * (1 - passing[:, query, level])).sum()
        if dropped > 0:
            sites = int((records > 0).any(axis=0).sum())
            error = float(problem.levels["error"].iloc[row])
            names = problem.query_names[query], problem.level_names[query][level]
            rows.append((*names, condition.describe(), sites, dropped, 100 * dropped / records.sum(), error))
    columns = ["query", "level", "filter", "sites", "dropped_records", "dropped_percent", "error"]
    frame = pd.DataFrame(rows, columns=columns)
    return frame.sort_values("dropped_records", ascending=False, kind="stable", ignore_index=True)


def _report_errors(problem: Analytics, levels: Ints, answers: Answers, rows: int) -> Report:
    """Return a sentence on the largest proven error, with the table of errors."""
    errors = _tabulate_errors(problem, levels, answers)
    if not len(errors):
        return [], []
    section = Section(
        title="Errors of answers, as measured and as proven",
        frame=errors.head(rows),
        note="largest of all answers; error: of the levels that sites send; proven error: bound that "
        "the datacenter can prove from the data that it gets",
    )
    return [_explain_errors(errors)], [section]


def _report_denied(problem: Analytics, lost_usd: float, rows: int) -> Report:
    """Return a sentence on the answers that rules of regions deny, with their table."""
    denied = tabulate_denied(problem)
    if not len(denied):
        return [], []
    count = counted(len(denied), "queries")
    section = Section(
        title="Answers that rules of regions deny", frame=denied.head(rows), units={"lost_usd": "USD"}
    )
    return [f"Rules of regions deny answers of {count}, with a value of {lost_usd:,.3g} USD."], [section]


def _report_links(
    problem: Analytics, table: pd.DataFrame, priced: int, intervals: int, options: Options
) -> tuple[list[str], Section]:
    """Return sentences on the uplinks that limit answers most, and their table.

    priced  intervals whose prices are found, of `intervals`
    """
    first = table.iloc[0]
    hour = problem.start_s[problem.interval_numbers == first["interval"]][0] / 3600
    limit = (
        f"The uplink of {first['uplink']} limits answers most: the shadow price of its capacity is "
        f"{first['shadow_price_usd']:,.3g} USD, most in interval {first['interval']:g}, from hour "
        f"{hour:.3g}. With a tenth more there, {_name_gain(first['gain_usd'])}, solved again."
    )
    sentences = [limit]
    if not (table["gain_usd"] > NO_GAIN).any():
        sentences.append(_explain_larger_steps(problem, first, options))
    of_sample = "" if priced == intervals else f"; prices of {priced} intervals at equal distances"
    section = Section(
        title="Uplinks that limit answers most",
        frame=table,
        units={
            "shadow_price_usd": "USD",
            "price_usd_per_gb": "USD/GB",
            "expected_gain_usd": "USD",
            "gain_usd": "USD",
        },
        note="shadow price: of all capacity, in all intervals; price: of one more gigabyte in the "
        "interval where it is highest; expected gain: at that price, for a tenth more capacity "
        "there; gain: of the optimum, solved again" + of_sample,
    )
    return sentences, section


def _name_gain(gain_usd: float | None) -> str:
    """Return the gain of the optimum, as text."""
    if gain_usd is None:
        return "the optimum is not known"
    return f"the optimum gains {gain_usd:,.3g} USD" if gain_usd > 0 else "the optimum gains nothing"


def _solve_gain(problem: Analytics, sample: Ints, capacity_mbps: Floats, options: Options) -> float | None:
    """Return the gain of the optimum in some intervals with other capacities, USD; None if unknown.

    capacity_mbps  (K, S + G) of all intervals
    """
    options, total = replace(options, service="best"), 0.0
    for k in sample.tolist():
        subproblem = take_intervals(problem, np.array([k]))
        values = [
            optimum.plan(variant, options=options).proof.objective
            for variant in (subproblem, subproblem.with_capacity(capacity_mbps[[k]], is_valid=True))
        ]
        if values[0] is None or values[1] is None:
            return None
        total += values[1] - values[0]
    return total


def _explain_outages(problem: Analytics, options: Options) -> list[str]:
    """Return sentences on uplinks without capacity in some interval, and on their possible gain."""
    capacity, sentences = problem.capacity_mbps, []
    for link in np.flatnonzero((capacity <= 0).any(axis=0))[:MOST_LOST].tolist():
        down = np.flatnonzero(capacity[:, link] <= 0)
        name = problem.link_names[link]
        if len(down) == len(capacity):
            sentences.append(f"The uplink of {name} has no capacity in any interval.")
            continue
        sample = down[np.unique(np.linspace(0, len(down) - 1, min(len(down), MOST_OUTAGES)).astype(int))]
        again = capacity.copy()
        again[down, link] = capacity[capacity[:, link] > 0, link].mean()
        gain = _solve_gain(problem, sample, again, options)
        count = counted(len(down), "intervals")
        of = "there" if len(sample) == len(down) else f"in {len(sample)} of them"
        sentences.append(
            f"The uplink of {name} has no capacity in {count}, from hour "
            f"{problem.start_s[down[0]] / 3600:.3g}. With its mean capacity {of}, {_name_gain(gain)}, solved "
            "again."
        )
    return sentences


def _explain_larger_steps(problem: Analytics, first: pd.Series, options: Options) -> str:
    """Return the least of some larger capacities of an uplink with which the optimum gains, in words."""
    k = int(np.flatnonzero(problem.interval_numbers == first["interval"])[0])
    link = list(problem.link_names).index(first["uplink"])
    for factor in LARGER:
        wider = problem.capacity_mbps.copy()
        wider[k, link] *= factor
        gain = _solve_gain(problem, np.array([k]), wider, options)
        if gain is not None and gain > NO_GAIN:
            return (
                "A tenth more is less than the step to the next level at every uplink of the table: with "
                f"{factor:g} times the capacity of {first['uplink']} there, {_name_gain(gain)}."
            )
    return (
        "No uplink of the table gains anything by a tenth more, and this one not by "
        f"{LARGER[-1]:g} times its capacity: other uplinks limit the same answers."
    )


def _find_prices(problem: Analytics, sample: Ints) -> Floats:
    """Return the prices of uplinks in some intervals, USD, (intervals, S + G)."""
    choices, price, prices_found = Choices(problem), None, []
    for k in sample.tolist():
        price = prices.find_prices(choices.interval(k), price).price
        prices_found.append(price)
    return np.array(prices_found)


def _tabulate_links(
    problem: Analytics, sample: Ints, price: Floats, options: Options, links: int
) -> pd.DataFrame:
    """Return a row for each uplink with the highest prices, with the gain by more capacity."""
    total = price.sum(axis=0)
    order = [link for link in np.argsort(-total, kind="stable")[:links].tolist() if total[link] > 1e-9]
    rows = []
    for link in order:
        interval = int(price[:, link].argmax())
        k = int(sample[interval])
        wider = problem.capacity_mbps.copy()
        wider[k, link] *= 1 + MORE
        gain = _solve_gain(problem, np.array([k]), wider, options)
        rows.append(
            {
                "uplink": problem.link_names[link],
                "shadow_price_usd": float(total[link]),
                "interval": float(problem.interval_numbers[k]),
                "price_usd_per_gb": float(price[interval, link]) / problem.capacity_bytes[k, link] * 1e9,
                "expected_gain_usd": MORE * float(price[interval, link]),
                "gain_usd": gain,
            }
        )
    return pd.DataFrame(rows)


def _explain_waste(
    problem: Analytics,
    levels: Ints,
    answers: Answers,
    wasted_percent: float,
    blamed: pd.DataFrame,
    options: Options,
) -> list[str]:
    """Return sentences on the site that makes most bytes useless, and on the possible gain of these bytes."""
    worst = blamed.iloc[0]
    others = counted(worst["other_sites"], "other sites")
    queries = counted(worst["queries"], "queries")
    first = (
        f"{wasted_percent:.3g}% of the bytes are finer than answers can use. Site {worst['site']}, at coarse "
        f"levels of {queries}, makes most of them useless: of what {others} send to the same answers, "
        f"{worst['wasted_percent']:.3g}% is too fine."
    )
    gain = find_gain(problem, levels, answers, options)
    if gain is None or gain.usd.sum() <= 1e-6 * np.abs(answers.value_usd[gain.interval]).sum():
        return [first]
    best = int(gain.usd.argmax())
    second = (
        f"Coarser levels at other sites free {amount(gain.freed / 1e6, 'MB')} in interval "
        f"{problem.interval_numbers[gain.interval]:g}. With these bytes, answers gain "
        f"{gain.usd.sum():,.3g} USD and no query loses, solved again. Query "
        f"{problem.query_names[best]} gains most: {gain.usd[best]:,.3g} USD."
    )
    return [first, second]


def _tabulate_errors(problem: Analytics, levels: Ints, answers: Answers) -> pd.DataFrame:
    """Return the largest errors of queries with a proven bound above the measured error in all answers."""
    proven = find_proven_errors(problem, levels, answers)
    unknown = (answers.is_answered & np.isnan(proven)).any(axis=0)
    valid = np.flatnonzero(answers.is_answered.any(axis=0) & ~unknown)
    frame = pd.DataFrame(
        {
            "query": [problem.query_names[query] for query in valid.tolist()],
            "error": np.nanmax(answers.error[:, valid], axis=0, initial=0.0),
            "proven_error": np.nanmax(proven[:, valid], axis=0, initial=0.0),
        }
    )
    frame = frame[frame["proven_error"] > frame["error"]]
    return frame.sort_values("proven_error", ascending=False, kind="stable", ignore_index=True)


def _explain_errors(errors: pd.DataFrame) -> str:
    """Return a sentence on the query with the largest proven error."""
    worst = errors.iloc[0]
    return (
        f"Answers of query {worst['query']} have an error of up to {worst['error']:.3g}, by their levels; "
        "the "
        f"data that is sent proves an error of at most {worst['proven_error']:.3g}."
    )


def tabulate_denied(problem: Analytics) -> pd.DataFrame:
    """Return the queries with answers that rules of regions deny, the sites, their value and the rule."""
    times = problem.is_asked.sum(axis=0)
    rows = []
    for query, reason in explain_denied(problem):
        sites = np.flatnonzero(problem.is_denied[:, query])
        share = (
            problem.site_value_usd[sites, query].sum() if problem.is_sum[query] else problem.value_usd[query]
        )
        rows.append((problem.query_names[query], len(sites), float(share * times[query]), reason))
    frame = pd.DataFrame(rows, columns=["query", "sites", "lost_usd", "rule"])
    return frame.sort_values("lost_usd", ascending=False, kind="stable", ignore_index=True)


def _report_archives(problem: Analytics, plan: Levels, rows: int) -> Report:
    """Return sentences on the places where data is stored, and a table with the reason for each."""
    if problem.archives is None or not len(problem.archives):
        return [], []
    archived = read_archives(problem)
    kind = read_places(problem, plan, archived)
    remaining = archiving.find_remaining(archived, read_stores(problem), kind)
    sentences = [f"{text}." for text in archiving.say_places(archived, kind)]
    full = archiving.find_full(problem, archived, remaining, kind)
    if full:
        sentences.append(f"The {full[0]} keeps most data from a cheaper place.")
    frame = archiving.tabulate_reasons(problem, archived, remaining, kind)
    section = Section(
        title="Where data is stored, the largest first",
        frame=frame.head(rows),
        units={"gb": "GB", "usd_per_month": "USD"},
        note="reason: against the cheapest other kind, or the value of the data",
    )
    return sentences, [section]


def _section_of_queries(problem: Analytics, levels: Ints, answers: Answers, rows: int) -> Section:
    """Return the table of the queries that lose most value, with the cost of their data."""
    full = problem.value_usd * problem.is_asked.sum(axis=0) * problem.has_data.any(axis=0)
    delays = replay_queues(problem, find_loads(problem, levels))
    lost = full - find_timely_value(problem, levels, answers, delays)[0].sum(axis=0)
    order = np.argsort(-lost, kind="stable")[:rows]
    price, sites = find_usd_per_gb(problem), len(problem.site_names)
    sent, cost = np.zeros(len(order)), np.zeros(len(order))
    for rank, query in enumerate(order.tolist()):
        loads = find_query_loads(problem, levels, query)
        sent[rank] = loads.sent.sum() / 1e9
        cost[rank] = loads.sent.sum(axis=0) @ price[:sites] / 1e9
        cost[rank] += loads.before_pop.sum(axis=0) @ price[sites:][problem.pop_of] / 1e9
    frame = pd.DataFrame(
        {
            "query": [problem.query_names[row] for row in order.tolist()],
            "lost_usd": lost[order],
            "kept_percent": 100 * (1 - lost[order] / np.maximum(full[order], 1e-300)),
            "sent_gb": sent,
        }
    )
    if cost.any():
        frame["transfer_cost"] = cost
    return Section(
        title="Queries that lose most value",
        frame=frame,
        units={"lost_usd": "USD", "kept_percent": "%", "sent_gb": "GB", "transfer_cost": "USD"},
    )


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
