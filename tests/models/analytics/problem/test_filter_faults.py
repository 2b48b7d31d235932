"""Faults of filters, and what their messages say."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest

from planner.errors import InputError
from planner_models.analytics import Analytics
from tests.models.analytics.problems import tables

PASSING = ["query", "level", "site", "record_share", "cell_share"]
Change = Callable[[dict[str, pd.DataFrame]], None]


def make_tables() -> dict[str, pd.DataFrame]:
    """Return tables of two sites whose level of 5 s and of 10 s have filters."""
    made = tables(sites=2)
    made["levels"]["filter_column"] = ["", "size", "size", ""]
    made["levels"]["keeps"] = ["", "at_least", "at_least", ""]
    made["levels"]["filter_value"] = ["", "1", "2", ""]
    rows = [("q0", "5 s", "", 0.5, 0.5), ("q0", "10 s", "s0", 0.1, 0.1), ("q0", "10 s", "s1", 0.1, 0.1)]
    made["passing"] = pd.DataFrame(rows, columns=PASSING)
    return made


def set_value(table: str, row: int, column: str, value: object) -> Change:
    def change(made: dict[str, pd.DataFrame]) -> None:
        made[table] = made[table].astype({column: object})
        made[table].loc[row, column] = value

    return change


def drop(row: int) -> Change:
    return lambda made: made.update({"passing": made["passing"].drop(row)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_value("levels", 1, "keeps", ""), "levels row 2: keeps is blank, must be filled as"),
        (set_value("levels", 1, "keeps", "above"), "levels row 2: keeps is 'above', must be one of at_least"),
        (set_value("levels", 1, "filter_value", "high"), "levels row 2: filter_value is 'high', must be a"),
        (set_value("levels", 0, "operator", "filter"), "levels row 1: operator filter needs filter_column"),
        (set_value("passing", 0, "level", "1 s"), "passing row 1: level '1 s' of query 'q0' has no filter"),
        (set_value("passing", 0, "level", "6 s"), "passing row 1: query 'q0' has no level '6 s'"),
        (set_value("passing", 1, "site", "s9"), "passing row 2: site 's9' is no site"),
        (set_value("passing", 1, "record_share", 1.5), "passing row 2: record_share is 1.5, must be at"),
        (set_value("passing", 1, "record_share", 0.0), "passing row 2: cell_share is 0.1, must be 0"),
        (drop(2), "levels row 3: the filter size >= 2 of level '10 s' has no row in"),
        (set_value("levels", 2, "keeps", "at_most"), "levels row 3: levels '5 s' and '10 s' of query"),
        (set_value("levels", 2, "filter_column", "speed"), "levels row 3: levels '5 s' and '10 s' of query"),
    ],
)  # fmt: skip
def test_faults_name_row_field_and_rule(change: Change, message: str) -> None:
    made = make_tables()
    Analytics.from_tables(made)
    change(made)
    with pytest.raises(InputError) as error:
        Analytics.from_tables(made)
    assert any(fault.startswith(message) for fault in error.value.faults), error.value.faults


def test_a_filter_on_a_level_without_data_is_refused() -> None:
    made = make_tables()
    made["levels"].loc[3, ["filter_column", "keeps", "filter_value"]] = ["size", "at_least", "3"]
    with pytest.raises(InputError, match="levels row 4: operator none sends no data, must have no filter"):
        Analytics.from_tables(made)


def test_intervals_of_the_same_filter_must_nest_and_of_others_need_a_common_level() -> None:
    made = make_tables()
    made["levels"].loc[2, "parameter"] = 12.0
    with pytest.raises(InputError, match="make no common level"):
        Analytics.from_tables(made)
    made["levels"].loc[2, "parameter"] = 5.0
    Analytics.from_tables(made)  # the same seconds, with a stricter filter
