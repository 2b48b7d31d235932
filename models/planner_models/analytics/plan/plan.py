"""The plan of system `analytics`: the level that each site sends for each query, and the answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints
from planner.contract.tables import Table, choice, label, number
from planner.errors import PlanRejected
from planner_models.analytics.plan.answers import find_answers, follow_sources
from planner_models.analytics.plan.merging import PLACES, tabulate_merged
from planner_models.analytics.problem.problem import Analytics, find_rows
from planner_models.analytics.problem.schema import MOST_INTERVALS, MOST_USD

MOST_GB: Final = 1e12

LEVELS: Final = Table(
    name="levels",
    about="level at which a site sends the data of a query in an interval; a row of a site goes before one "
    "of all sites",
    columns={
        "interval": number("number of the interval", at_least=1, at_most=MOST_INTERVALS, whole=True),
        "query": label("query"),
        "level": label("level"),
        "site": label("site; blank: all sites with data of the query", may_be_blank=True),
    },
    key=("interval", "query", "site"),
    may_be_empty=True,
    compact=False,
)
ANSWERS: Final = Table(
    name="answers",
    about="the answer of a query for an interval, once all data of its sites has come",
    columns={
        "interval": number("number of the interval", at_least=1, at_most=MOST_INTERVALS, whole=True),
        "query": label("query"),
        "level": label("level of the answer; mixed: sites add values of their own at several levels"),
        "error": number("largest error that it may have; blank: no data", at_least=0, may_be_blank=True),
        "value_usd": number("its value, USD", at_least=0, at_most=MOST_USD * 2),
    },
    key=("interval", "query"),
    may_be_empty=True,
)
PRICES: Final = Table(
    name="prices",
    about="price of an uplink in the last interval, where the design finds prices: the start of the next "
    "window",
    columns={
        "link": label("site or point of presence of the uplink"),
        "price_usd": number("price of all of its capacity, USD", at_least=0, at_most=MOST_USD),
    },
    key=("link",),
    may_be_empty=True,
)
BACKFILL: Final = Table(
    name="backfill",
    about="finer data of an interval that a site sends in a later one, to improve its answer",
    columns={
        "interval": number("interval of the data", at_least=1, at_most=MOST_INTERVALS, whole=True),
        "sent": number("interval in which it is sent", at_least=1, at_most=MOST_INTERVALS, whole=True),
        "query": label("query"),
        "level": label("level"),
        "site": label("site"),
    },
    key=("interval", "query", "site"),
    may_be_empty=True,
)
MERGED: Final = Table(
    name="merged",
    about="where the data of a query is merged: at a point of presence, where that leaves fewer bytes, or in "
    "the datacenter",
    columns={
        "interval": number("number of the interval", at_least=1, at_most=MOST_INTERVALS, whole=True),
        "query": label("query"),
        "pop": label("point of presence; blank: all of them with data of the query", may_be_blank=True),
        "at": choice("datacenter, or pop: the point of presence", PLACES),
    },
    key=("interval", "query", "pop"),
    may_be_empty=True,
    compact=False,
)
KEPT: Final = Table(
    name="kept",
    about="data that a site keeps at the end of an interval, to send it later",
    columns={
        "interval": number("number of the interval", at_least=1, at_most=MOST_INTERVALS, whole=True),
        "query": label("query"),
        "site": label("site"),
        "gb": number("data that it keeps, GB", at_least=0, at_most=MOST_GB),
    },
    key=("interval", "query", "site"),
    may_be_empty=True,
)
PLAN_TABLES: Final = (LEVELS, ANSWERS, PRICES, BACKFILL, MERGED, KEPT)
MIXED: Final = "mixed"


@dataclass(frozen=True, kw_only=True, eq=False)
class Levels:
    """Levels that sites send, and the answers that they make.

    levels   interval, query, level, site; blank: all sites with data of the query
    answers  interval, query, level, error, value_usd
    prices   link, price_usd, of the last interval; empty where the design finds none
    backfill interval, sent, query, level, site: data that is sent later; empty where the design sends none
    merged   interval, query, pop, at; pop blank: all points of presence with data of the query
    kept     interval, query, site, gb: data that is kept to be sent later
    """

    levels: pd.DataFrame
    answers: pd.DataFrame
    prices: pd.DataFrame = field(default_factory=lambda: pd.DataFrame({"link": [], "price_usd": []}))
    backfill: pd.DataFrame = field(default_factory=lambda: tabulate_backfill([], [], [], [], []))
    merged: pd.DataFrame = field(default_factory=lambda: _make_empty(MERGED))
    kept: pd.DataFrame = field(default_factory=lambda: _make_empty(KEPT))

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables of the plan."""
        return {
            "levels": self.levels,
            "answers": self.answers,
            "prices": self.prices,
            "backfill": self.backfill,
            "merged": self.merged,
            "kept": self.kept,
        }


def _make_empty(table: Table) -> pd.DataFrame:
    return pd.DataFrame({name: [] for name in table.columns})


def make_plan(problem: Analytics, chosen: Ints, price: Floats | None = None) -> Levels:
    """Return the plan of chosen levels (K, S, Q); those of sites without data of a query do not matter.

    price  (S + G,) price of each uplink in the last interval, USD
    """
    chosen = follow_sources(problem, chosen)
    has, asked = problem.has_data, problem.is_asked
    first = has.argmax(axis=0)
    common = np.take_along_axis(chosen, first[None, None, :], axis=1)[:, 0, :]  # (K, Q)
    taking_part = has.any(axis=0)
    alike = ((chosen == common[:, None, :]) | ~has[None]).all(axis=1) & taking_part & (common >= 0) & asked
    interval, query = np.nonzero(alike)
    apart = has[None] & (asked & ~alike)[:, None, :] & (chosen >= 0)
    k, s, q = np.nonzero(apart)
    names = _level_names(problem)
    frame = pd.DataFrame(
        {
            "interval": problem.interval_numbers[np.concatenate([interval, k])],
            "query": np.array(problem.query_names, dtype=object)[np.concatenate([query, q])],
            "level": names[
                np.concatenate([query, q]), np.concatenate([common[interval, query], chosen[k, s, q]])
            ],
            "site": np.concatenate(
                [
                    np.full(len(interval), "", dtype=object),
                    np.array(problem.site_names, dtype=object)[s],
                ]
            ),
        }
    )
    answers, merged = tabulate_answers(problem, chosen), tabulate_merged(problem, chosen)
    plan = Levels(levels=frame, answers=answers, merged=merged)
    if price is None:
        return plan
    used = np.flatnonzero(price > 0)
    prices = {"link": np.array(problem.link_names, dtype=object)[used], "price_usd": price[used]}
    return replace(plan, prices=pd.DataFrame(prices))


def tabulate_answers(problem: Analytics, chosen: Ints) -> pd.DataFrame:
    """Return the answers that chosen levels (K, S, Q) make, one row for each interval and query with data."""
    found = find_answers(problem, chosen)
    taking_part = np.flatnonzero(problem.has_data.any(axis=0))
    interval, place = np.nonzero(problem.is_asked[:, taking_part])
    query = taking_part[place]
    level = found.level[interval, query]
    names = np.where(level >= 0, _level_names(problem)[query, np.maximum(level, 0)], MIXED)
    return pd.DataFrame(
        {
            "interval": problem.interval_numbers[interval],
            "query": np.array(problem.query_names, dtype=object)[query],
            "level": names,
            "error": found.error[interval, query],
            "value_usd": found.value_usd[interval, query],
        }
    )


def _level_names(problem: Analytics) -> np.ndarray[Any, Any]:
    """Return the names of levels, (Q, L), "" where there is none."""
    names = np.full(problem.level_rows.shape, "", dtype=object)
    for query, own in enumerate(problem.level_names):
        names[query, : len(own)] = own
    return names


class Late(NamedTuple):
    """Rows of backfill: places of the interval of the data and of the one in which it is sent, (n,) each."""

    interval: Ints
    sent: Ints
    query: Ints
    level: Ints
    site: Ints


def tabulate_backfill(
    interval: Sequence[float],
    sent: Sequence[float],
    query: Sequence[str],
    level: Sequence[str],
    site: Sequence[str],
) -> pd.DataFrame:
    """Return the table of data that is sent later."""
    numbers = {"interval": interval, "sent": sent}
    names = {"query": query, "level": level, "site": site}
    return pd.DataFrame(
        {name: np.array(values, dtype=float) for name, values in numbers.items()}
        | {name: np.array(values, dtype=object) for name, values in names.items()}
    )


def read_backfill(problem: Analytics, plan: Levels) -> Late:
    """Return the data that a plan sends later.

    raises  PlanRejected for names and intervals that there are none of, and data that is sent too early
    """
    frame = plan.backfill
    interval = problem.find_intervals(frame)
    sent = problem.find_intervals(frame.assign(interval=frame["sent"]))
    query = find_rows(problem.query_names, frame["query"])
    site = find_rows(problem.site_names, frame["site"])
    for bad, words in (
        (
            (interval < 0) | (sent < 0),
            lambda row: f"interval {row['interval']:g} or {row['sent']:g} is none",
        ),
        (query < 0, lambda row: f"there is no query '{row['query']}'"),
        (site < 0, lambda row: f"there is no site '{row['site']}'"),
    ):
        refuse(frame, "backfill", bad, words)
    level = problem.find_level_names(query, frame["level"])
    for bad, words in (
        (level < 0, lambda row: f"query '{row['query']}' has no level '{row['level']}'"),
        (~problem.has_data[site, query], lambda row: f"site '{row['site']}' has no data of its query"),
        (sent <= interval, lambda row: f"is sent in interval {row['sent']:g}, must be later than its own"),
        (
            problem.start_s[sent] - problem.start_s[interval] > problem.backfill_window_s[query] + 1e-6,
            lambda row: f"is sent after the window of query '{row['query']}'",
        ),
    ):
        refuse(frame, "backfill", bad, words)
    return Late(interval, sent, query, level, site)


def read_levels(problem: Analytics, plan: Levels) -> Ints:
    """Return the chosen levels of a plan, (K, S, Q).

    Where it has no row, that is the level of operator none, where it may be used, or -1.

    raises  PlanRejected for names and intervals that there are none of
    """
    frame = plan.levels
    none = problem.is_none.argmax(axis=1)
    may_be_none = (problem.may_send & problem.is_none).any(axis=2)  # (S, Q)
    chosen = np.empty((len(problem.interval_numbers), *may_be_none.shape), dtype=np.int64)
    chosen[:] = np.where(may_be_none, none, -1)
    if not len(frame):
        return chosen
    interval = problem.find_intervals(frame)
    query = find_rows(problem.query_names, frame["query"])
    everywhere = (frame["site"].astype(str) == "").to_numpy()
    site = find_rows(problem.site_names, frame["site"])
    refuse(frame, "levels", interval < 0, lambda row: f"there is no interval {row['interval']:g}")
    refuse(frame, "levels", query < 0, lambda row: f"there is no query '{row['query']}'")
    refuse(frame, "levels", (site < 0) & ~everywhere, lambda row: f"there is no site '{row['site']}'")
    refuse(
        frame,
        "levels",
        ~problem.is_asked[interval, query],
        lambda row: f"query '{row['query']}' is not asked in interval {row['interval']:g}",
    )
    level = problem.find_level_names(query, frame["level"])
    refuse(frame, "levels", level < 0, lambda row: f"query '{row['query']}' has no level '{row['level']}'")
    stray = ~everywhere & ~problem.has_data[site, query]
    refuse(
        frame,
        "levels",
        stray,
        lambda row: f"site '{row['site']}' has no data of query '{row['query']}'",
    )
    chosen[interval[everywhere], :, query[everywhere]] = level[everywhere, None]
    one = ~everywhere
    chosen[interval[one], site[one], query[one]] = level[one]
    return chosen


def refuse(frame: pd.DataFrame, table: str, bad: Bools, words: Any) -> None:
    """Raise PlanRejected for the first row that is bad, (n,), in words about that row."""
    if bad.any():
        row = int(np.argmax(bad))
        raise PlanRejected(f"{table} row {row + 1}: {words(frame.iloc[row])}")
