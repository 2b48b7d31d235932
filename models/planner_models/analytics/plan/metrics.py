"""Metrics of system `analytics`: value of answers, losses by levels, delays and waste, bytes and cost."""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.arrays import Bools, Floats, Ints, read_only
from planner.compiled import kernel, run_small_in_python
from planner.contract.metrics import Headline, Metric, less
from planner_models.analytics.plan.answers import (
    Answers,
    Delays,
    find_answers,
    find_loads,
    find_proven_errors,
    replay_queues,
)
from planner_models.analytics.plan.archived import measure_archived
from planner_models.analytics.plan.backfill import find_gain, find_late_loads, find_sizes
from planner_models.analytics.plan.plan import Levels, read_backfill, read_levels
from planner_models.analytics.problem.filters import find_shares
from planner_models.analytics.problem.problem import Analytics

PAPER: Final = "Rabkin et al. 2013"
STORAGE_METRICS: Final = ("storage_cost", "discarded_loss", "storage_total", "stored_gb")
"""Metrics of data that is stored for later queries, which levels do not tell."""


METRICS: Final = (
    Metric(
        name="value",
        unit="USD",
        better="more",
        about="value of answers that come before their deadlines, in all intervals",
    ),
    Metric(name="offered_value", unit="USD", better="more", about="value of all answers at full quality"),
    less("coarse_loss", "USD", "value lost as answers are coarse", title="loss by coarse answers"),
    less("no_data_loss", "USD", "value lost as sites send no data of a query", title="loss without data"),
    less(
        "denied_loss",
        "USD",
        "value lost as rules of regions let no data of a query leave, or as it is erased before",
        f"{PAPER}, section 3 (regions)",
        title="loss by rules of regions",
    ),
    less("late_loss", "USD", "value lost as data comes after the deadline", title="loss by late data"),
    less(
        "wasted_percent",
        "%",
        "bytes sent that answers cannot use, as another site is coarser, of all bytes sent",
        f"{PAPER}, section 4 (optimizing across queries)",
    ),
    less(
        "filtered_percent",
        "%",
        "records that filters drop, of all records of sites that send data to a query",
        f"{PAPER}, section 3 (filtering data)",
        title="filtered records",
    ),
    Metric(
        name="backfill_value",
        unit="USD",
        better="more",
        about="value that finer data adds to answers later; beside the value of answers in time",
        source=f"{PAPER}, section 3",
    ),
    Metric(name="total_value", unit="USD", better="more", about="value of answers in time and of backfill"),
    Metric(
        name="promise_kept",
        unit="",
        better="more",
        about="part of the answers whose error is as in the plan: all data that they need comes before the "
        "deadline, and the error is no larger than the query allows",
    ),
    less(
        "error_p95",
        "",
        "95th percentile of the errors of answers, by their levels and worst sites",
        title="p95 error",
    ),
    less(
        "proven_error_p95",
        "",
        "95th percentile of the proven bounds on the errors of answers, of those that have one",
        title="proven p95 error",
    ),
    less(
        "freshness_p50_s", "s", "time from the end of an interval to its answer, median", title="median delay"
    ),
    less(
        "freshness_p99_s",
        "s",
        "time from the end of an interval to its answer, 99th percentile",
        title="p99 delay",
    ),
    less(
        "erased_gb",
        "GB",
        "bytes that sites erase while they wait at uplinks, as rules of regions say",
        title="erased data",
    ),
    less("backlog_gb", "GB", "bytes that wait at uplinks, most of all ends of intervals", PAPER),
    less("sent_gb", "GB", "bytes that sites send"),
    less("transfer_cost", "USD", "price of the bytes on all uplinks"),
    less(
        "storage_cost",
        "USD",
        "price of storing data for later queries, and of copying and reading it, for a month",
        f"{PAPER}, section 1",
    ),
    less(
        "discarded_loss",
        "USD",
        "value of data for later queries that is not stored, for a month",
        title="loss by discarded data",
    ),
    less("storage_total", "USD", "price of stored data and value of discarded data, for a month"),
    Metric(name="stored_gb", unit="GB", better="more", about="data that is stored for later queries"),
)
HEADLINE: Final = Headline(
    metric="value",
    verb="gives answers with a value of {}",
    total="offered_value",
    losses={
        "no_data_loss": "loses {} without data",
        "denied_loss": "loses {} as rules of regions deny it",
        "late_loss": "loses {} as data is late",
    },
    table=(
        "value",
        "coarse_loss",
        "no_data_loss",
        "late_loss",
        "wasted_percent",
        "error_p95",
        "freshness_p99_s",
        "sent_gb",
    ),
)
LIMITS: Final = {
    "capacity": "overloaded uplinks",
    "error": "answers with too large an error",
    "answered": "queries without an answer",
    "storage": "sites that keep too much data",
    "rules": "levels that are ruled out",
    "retention": "data that is kept too long",
    "stores": "places that store too much",
    "storage_links": "uplinks with too much stored data",
    "storage_rules": "places that rules do not allow",
}


def measure(
    problem: Analytics,
    plan: Levels,
    previous: Levels | None,  # noqa: ARG001 - the signature of `measure`
) -> dict[str, float | None]:
    """Return a value for every metric."""
    selected = read_levels(problem, plan)
    figures = measure_levels(problem, selected)
    costs = measure_archived(problem, plan)
    figures |= {
        "storage_cost": costs.usd,
        "discarded_loss": costs.discarded_usd,
        "storage_total": costs.usd + costs.discarded_usd,
        "stored_gb": costs.gb,
    }
    if len(plan.backfill):
        late = read_backfill(problem, plan)
        loads = find_late_loads(problem, late)
        gain = find_gain(problem, selected, late)
        figures |= {
            "backfill_value": gain,
            "total_value": (figures["value"] or 0.0) + gain,
            "sent_gb": (figures["sent_gb"] or 0.0) + float(find_sizes(problem, late).sum()) / 1e9,
            "transfer_cost": (figures["transfer_cost"] or 0.0)
            + float(loads.sum(axis=0) @ find_usd_per_gb(problem)) / 1e9,
        }
    return figures


def measure_levels(problem: Analytics, levels: Ints) -> dict[str, float | None]:
    """Return a value for every metric of chosen levels (K, S, Q); None for those of table archives."""
    has_archives = problem.archives is not None and len(problem.archives) > 0
    answers = find_answers(problem, levels)
    loads = find_loads(problem, levels, answers)
    delays = replay_queues(problem, loads)
    timely, wait_s = find_timely_value(problem, levels, answers, delays)
    offered = problem.total_usd
    planned, value = float(answers.value_usd.sum()), float(timely.sum())
    empty = _value_without_data(problem, levels, answers, ~problem.is_denied)
    denied = _value_without_data(problem, levels, answers, problem.is_denied)
    sent = float(loads.site.sum())
    erased = np.zeros((2, loads.site.shape[1])) if delays.erasure is None else delays.erasure.lost
    finite = wait_s[np.isfinite(wait_s)]
    proven = find_proven_errors(problem, levels, answers)
    price = find_usd_per_gb(problem)
    carried = np.concatenate([loads.site, loads.pop], axis=1).sum(axis=0)
    sites = loads.site.shape[1]
    carried[:sites] -= erased[0]
    carried[sites:] -= np.bincount(problem.pop_of, weights=erased[1], minlength=len(carried) - sites)
    late = planned - value
    return {
        "value": value,
        "offered_value": offered,
        "coarse_loss": _clean(offered - planned - empty - denied, offered),
        "no_data_loss": _clean(empty, offered),
        "denied_loss": _clean(denied, offered),
        "late_loss": _clean(late, offered),
        "wasted_percent": 100 * float(loads.wasted.sum()) / sent if sent > 0 else 0.0,
        "filtered_percent": _find_filtered_percent(problem, levels),
        "backfill_value": 0.0,
        "total_value": value,
        "promise_kept": _find_promise_kept(problem, answers, wait_s),
        "error_p95": _find_percentile(answers.error, 95),
        "proven_error_p95": _find_percentile(proven, 95),
        "freshness_p50_s": _find_percentile(finite, 50),
        "freshness_p99_s": _find_percentile(finite, 99),
        "erased_gb": float(erased[0].sum()) / 1e9,
        "backlog_gb": float(delays.backlog.max(initial=0.0)) / 1e9,
        "sent_gb": (sent - float(erased[0].sum())) / 1e9,
        "transfer_cost": float(carried @ price) / 1e9,
        **dict.fromkeys(STORAGE_METRICS, None if has_archives else 0.0),
    }


def _find_filtered_percent(problem: Analytics, levels: Ints) -> float:
    """Return the percentage of the records of sending sites that filters drop, at chosen levels (K, S, Q)."""
    if problem.passing is None or not len(problem.passing):
        return 0.0
    passing = find_shares(problem, "record_share")
    site, query = np.indices(problem.has_data.shape)
    records = dropped = 0.0
    for k, selected in enumerate(levels):
        sends = (selected >= 0) & ~problem.is_none[query, selected] & problem.has_data
        volume = np.where(sends & (problem.source_of < 0), problem.find_volume(k)[0], 0.0)
        records += float(volume.sum())
        dropped += float((volume * (1 - passing[site, query, selected])).sum())
    return 100 * dropped / records if records > 0 else 0.0


def _find_percentile(values: Floats, percentile: float) -> float | None:
    """Return a percentile of the values that are not NaN; None without any."""
    valid = values[~np.isnan(values)]
    return float(np.percentile(valid, percentile)) if len(valid) else None


def find_usd_per_gb(problem: Analytics) -> Floats:
    """Return the price of a gigabyte on each uplink, (S + G,), USD."""
    return np.concatenate([frame["usd_per_gb"].to_numpy(float) for frame in (problem.sites, problem.pops)])


def find_timely_value(
    problem: Analytics, levels: Ints, answers: Answers, delays: Delays
) -> tuple[Floats, Floats]:
    """Return the value of data that comes in time, (K, Q), and the wait for all data, (K, Q), s.

    The wait is NaN where no data is sent, and infinite where some of it is erased before. Where sites add up,
    each site's data counts by itself.
    """
    delay_s = delays.site_s[:, :, None]
    if delays.erasure is not None:
        delay_s = np.where(delays.erasure.is_erased, np.inf, delay_s)[:, :, problem.cube_of]
    latest_s = problem.queries["deadline_s"].to_numpy(float) * (1 + 1e-9)
    wait, all_in_time, value = _find_waits(
        read_only(levels), read_only(problem.has_data), read_only(problem.is_none),
        read_only(problem.is_asked), read_only(delay_s),
        read_only(problem.length_s), read_only(latest_s),
        read_only(np.where(problem.is_sum[:, None], problem.value_share, 0.0)),
        read_only(problem.site_value_usd),
    )  # fmt: skip
    in_time = np.where(all_in_time, answers.value_usd, 0.0)
    return np.where(problem.is_sum, value, in_time), np.where(answers.is_answered, wait, np.nan)


@run_small_in_python(max_elements=5_000)
@kernel
def _find_waits(
    levels: Ints,
    has_data: Bools,
    is_none: Bools,
    is_asked: Bools,
    delay_s: Floats,
    length_s: Floats,
    latest_s: Floats,
    value_share: Floats,
    site_value: Floats,
) -> tuple[Floats, Bools, Floats]:
    """Return the wait for all data, s, whether none is late, and the value of sums in time, (K, Q) each.

    delay_s      (K, S, Q) of the data of a site after the end of an interval of length_s (K,); (K, S, 1)
                 where it is that of all queries
    latest_s     (Q,) time from the start of an interval until which data is in time
    value_share  (Q, L), 0 where sites do not add up
    """
    intervals, sites, queries = levels.shape
    by_query = delay_s.shape[2] > 1
    wait, value = np.zeros((2, intervals, queries))
    all_in_time = np.ones((intervals, queries), dtype=np.bool_)
    for k in range(intervals):
        for site in range(sites):
            for query in range(queries):
                level = levels[k, site, query]
                if not (level >= 0 and has_data[site, query] and is_asked[k, query]):
                    continue
                if is_none[query, level]:
                    continue
                delay = delay_s[k, site, query if by_query else 0]
                wait[k, query] = max(wait[k, query], delay)
                if delay + length_s[k] > latest_s[query]:
                    all_in_time[k, query] = False
                else:
                    value[k, query] += value_share[query, level] * site_value[site, query]
    return wait, all_in_time, value


def _find_promise_kept(problem: Analytics, answers: Answers, wait_s: Floats) -> float | None:
    """Return the share of answers within their error, with all their data in time; None without any.

    wait_s  (K, Q) wait for all data of an answer, s; NaN without one
    """
    answered = answers.is_answered
    if not answered.any():
        return None
    deadline = problem.queries["deadline_s"].to_numpy(float)
    in_time = wait_s + problem.length_s[:, None] <= deadline * (1 + 1e-9)
    error_limit = np.full(len(deadline), np.inf)
    if "error_at_most" in problem.queries:
        allowed = problem.queries["error_at_most"].to_numpy(float)
        error_limit[~np.isnan(allowed)] = allowed[~np.isnan(allowed)]
    is_kept = in_time & (np.where(answered, answers.error, 0.0) <= error_limit * (1 + 1e-6) + 1e-12)
    return float(is_kept[answered].mean())


def _value_without_data(problem: Analytics, levels: Ints, answers: Answers, counts: Bools) -> float:
    """Return the value of queries, or of sites where they add up, without data, USD.

    counts  (S, Q) answers that count
    """
    total = 0.0
    for query in range(levels.shape[2]):
        sites = np.flatnonzero(problem.has_data[:, query])
        if problem.is_sum[query]:
            level = levels[:, sites, query]
            empty = ((level < 0) | problem.is_none[query, level]) & problem.is_asked[:, query, None]
            total += float((empty @ (problem.site_value_usd * counts)[sites, query]).sum())
        elif len(sites) and counts[sites, query].all():
            empty = ~answers.is_answered[:, query] & problem.is_asked[:, query]
            total += float(empty.sum() * problem.value_usd[query])
    return total


def _clean(amount: float, total: float) -> float:
    """Return an amount, 0 where it is rounding."""
    return amount if amount > 1e-9 * max(total, 1e-300) else 0.0
