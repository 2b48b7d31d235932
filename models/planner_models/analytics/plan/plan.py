"""The plan of system `analytics`: the level that each site sends for each query, and the answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints, read_only
from planner.compiled import kernel, run_small_in_python
from planner.contract.table import Table, choice, label, number
from planner.errors import PlanRejected
from planner_models.analytics.plan.answers import find_answers, follow_sources
from planner_models.analytics.plan.merging import PLACES, tabulate_merged
from planner_models.analytics.problem.archives import PLACES as STORE_PLACES
from planner_models.analytics.problem.problem import Analytics, name_rows
from planner_models.analytics.problem.schema import MOST_INTERVALS, MOST_USD
from planner_models.analytics.problem.tables import find_rows

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
ARCHIVED: Final = Table(
    name="archived",
    about="where data of a query and site is stored for later queries; no row: it is not stored",
    columns={
        "query": label("query"),
        "site": label("site that generates the data"),
        "at": choice("site, pop: its point of presence, or datacenter", STORE_PLACES),
        "gb": number("data that is stored, GB", at_least=0, at_most=MOST_GB),
        "usd_per_month": number("price of storing, copying and reading it for a month, USD", at_least=0),
    },
    key=("query", "site"),
    may_be_empty=True,
)
PLAN_TABLES: Final = (LEVELS, ANSWERS, PRICES, BACKFILL, MERGED, KEPT, ARCHIVED)
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
    archived query, site, at, gb, usd_per_month: data that is stored for later queries; empty where none is
    """

    levels: pd.DataFrame
    answers: pd.DataFrame
    prices: pd.DataFrame = field(default_factory=lambda: pd.DataFrame({"link": [], "price_usd": []}))
    backfill: pd.DataFrame = field(default_factory=lambda: tabulate_backfill([], [], [], [], []))
    merged: pd.DataFrame = field(default_factory=lambda: _make_empty(MERGED))
    kept: pd.DataFrame = field(default_factory=lambda: _make_empty(KEPT))
    archived: pd.DataFrame = field(default_factory=lambda: _make_empty(ARCHIVED))

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables of the plan."""
        tables = {
            "levels": self.levels,
            "answers": self.answers,
            "prices": self.prices,
            "backfill": self.backfill,
            "merged": self.merged,
            "kept": self.kept,
        }
        return tables | ({"archived": self.archived} if len(self.archived) else {})


def _make_empty(table: Table) -> pd.DataFrame:
    return pd.DataFrame({name: [] for name in table.columns})


def make_plan(problem: Analytics, actions: Ints, price: Floats | None = None) -> Levels:
    """Return the plan of chosen levels (K, S, Q); those of sites without data of a query do not matter.

    price  (S + G,) price of each uplink in the last interval, USD
    """
    actions = follow_sources(problem, actions)
    interval, query, site = _list_rows(
        read_only(actions), read_only(problem.has_data), read_only(problem.is_asked)
    )
    first = problem.has_data.argmax(axis=0)
    level = actions[interval, np.where(site >= 0, site, first[query]), query]
    frame = pd.DataFrame(
        {
            "interval": problem.interval_numbers[interval],
            "query": name_rows(problem.query_names, query),
            "level": _name_levels(problem, query, level),
            "site": name_rows(["", *problem.site_names], site + 1),
        }
    )
    answers, merged = tabulate_answers(problem, actions), tabulate_merged(problem, actions)
    plan = Levels(levels=frame, answers=answers, merged=merged)
    if price is None:
        return plan
    used = np.flatnonzero(price > 0)
    prices = {"link": np.array(problem.link_names, dtype=object)[used], "price_usd": price[used]}
    return replace(plan, prices=pd.DataFrame(prices))


@run_small_in_python(max_elements=5_000)
@kernel
def _list_rows(  # noqa: C901 - one compiled loop
    levels: Ints, has_data: Bools, is_asked: Bools
) -> tuple[Ints, Ints, Ints]:
    """Return interval, query and site of the rows of a plan, of levels (K, S, Q).

    First the queries in which all sites with data send the same level, with -1 for the site, then each site
    of the others.
    """
    intervals, sites, queries = levels.shape
    is_alike = np.empty((intervals, queries), dtype=np.bool_)
    common = np.empty(queries, dtype=np.int64)
    alike = apart = 0
    for k in range(intervals):
        common[:] = -2  # no site yet
        is_alike[k] = True
        for site in range(sites):
            for query in range(queries):
                if not has_data[site, query]:
                    continue
                if common[query] == -2:
                    common[query] = levels[k, site, query]
                is_alike[k, query] &= levels[k, site, query] == common[query]
        for query in range(queries):
            is_alike[k, query] = is_alike[k, query] and common[query] >= 0
            alike += is_alike[k, query] and is_asked[k, query]
        for site in range(sites):
            for query in range(queries):
                is_row = has_data[site, query] and is_asked[k, query] and not is_alike[k, query]
                apart += is_row and levels[k, site, query] >= 0
    rows = np.empty((3, alike + apart), dtype=np.int64)
    row, later = 0, alike
    for k in range(intervals):
        for query in range(queries):
            if is_alike[k, query] and is_asked[k, query]:
                rows[0, row], rows[1, row], rows[2, row] = k, query, -1
                row += 1
        for site in range(sites):
            for query in range(queries):
                is_row = has_data[site, query] and is_asked[k, query] and not is_alike[k, query]
                if is_row and levels[k, site, query] >= 0:
                    rows[0, later], rows[1, later], rows[2, later] = k, query, site
                    later += 1
    return rows[0], rows[1], rows[2]


def tabulate_answers(problem: Analytics, levels: Ints) -> pd.DataFrame:
    """Return the answers that chosen levels (K, S, Q) make, one row for each interval and query with data."""
    joined = find_answers(problem, levels)
    taking_part = np.flatnonzero(problem.has_data.any(axis=0))
    interval, column = np.nonzero(problem.is_asked[:, taking_part])
    query = taking_part[column]
    frame = pd.DataFrame(
        {
            "interval": problem.interval_numbers[interval],
            "query": name_rows(problem.query_names, query),
            "level": _name_levels(problem, query, joined.level[interval, query]),
            "error": joined.error[interval, query],
            "value_usd": joined.value_usd[interval, query],
        }
    )
    return frame.astype({"query": "str", "level": "str"})


def _name_levels(problem: Analytics, query: Ints, level: Ints) -> pd.Categorical:
    """Return the names of levels (n,) of queries (n,); MIXED for -1."""
    names = dict.fromkeys(name for level_names in problem.level_names for name in level_names)
    code_of = {name: code for code, name in enumerate([*names, *([] if MIXED in names else [MIXED])])}
    place_of = np.full(problem.level_rows.shape, code_of[MIXED], dtype=np.int64)
    for row, level_names in enumerate(problem.level_names):
        place_of[row, : len(level_names)] = [code_of[name] for name in level_names]
    codes = np.where(level >= 0, place_of[query, np.maximum(level, 0)], code_of[MIXED])
    return name_rows(list(code_of), codes)


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
    levels = np.empty((len(problem.interval_numbers), *may_be_none.shape), dtype=np.int64)
    levels[:] = np.where(may_be_none, none, -1)
    if not len(frame):
        return levels
    interval = problem.find_intervals(frame)
    query = find_rows(problem.query_names, frame["query"])
    everywhere = (frame["site"] == "").to_numpy(bool)
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
    _set_levels(levels, *map(read_only, (interval, np.where(everywhere, -1, site), query, level)))
    return levels


@run_small_in_python(max_elements=20_000)
@kernel
def _set_levels(levels: Ints, interval: Ints, site: Ints, query: Ints, level: Ints) -> None:
    """Write the levels of rows (n,) into chosen (K, S, Q): those of all sites, -1, before those of one."""
    for is_whole in (True, False):
        for row in range(len(level)):
            if (site[row] < 0) != is_whole:
                continue
            if is_whole:
                levels[interval[row], :, query[row]] = level[row]
            else:
                levels[interval[row], site[row], query[row]] = level[row]


def refuse(frame: pd.DataFrame, table: str, bad: Bools, words: Any) -> None:
    """Raise PlanRejected for the first row that is bad, (n,), in words about that row."""
    if bad.any():
        row = int(np.argmax(bad))
        raise PlanRejected(f"{table} row {row + 1}: {words(frame.iloc[row])}")
