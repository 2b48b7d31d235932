"""Difference of two plans: rows that are new, gone or changed, the largest change first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.contract.table import Table, label, number
from planner.runs.plan_diff import compare_plans

KEYED = Table(
    name="loads", about="a link", columns={"link": label("its name"), "mbps": number("load")}, key=("link",)
)
PLAIN = Table(name="pairs", about="a pair", columns={"one": label("a name"), "other": label("a name")})
FIGURES = Table(name="steps", about="a step", columns={"at": number("when"), "mbps": number("load")})
SYSTEM: Any = SimpleNamespace(plan=SimpleNamespace(tables=(KEYED, PLAIN, FIGURES)))


def loads(rows: dict[str, float]) -> dict[str, pd.DataFrame]:
    return {"loads": pd.DataFrame({"link": list(rows), "mbps": list(rows.values())}).astype({"mbps": float})}


def test_rows_that_are_new_gone_and_changed_come_by_the_size_of_the_change() -> None:
    before = loads({"same": 5.0, "less": 9.0, "gone": 3.0, "rounded": 1.0})
    after = loads({"same": 5.0, "less": 1.0, "new": 4.0, "rounded": 1.0 + 1e-12})
    frame = compare_plans(SYSTEM, before, after)["loads"]
    assert frame["link"].tolist() == ["less", "new", "gone"]
    assert frame["change"].tolist() == ["changed", "new", "gone"]
    assert frame["mbps before"].fillna(-1).tolist() == [9.0, -1.0, 3.0]
    assert frame["mbps after"].fillna(-1).tolist() == [1.0, 4.0, -1.0]


def test_a_row_of_names_alone_is_there_or_not() -> None:
    before = {"pairs": pd.DataFrame({"one": ["a", "a"], "other": ["x", "y"]})}
    after = {"pairs": pd.DataFrame({"one": ["a", "b"], "other": ["x", "y"]})}
    frame = compare_plans(SYSTEM, before, after)["pairs"]
    assert sorted(frame[["one", "other", "change"]].itertuples(index=False, name=None)) == [
        ("a", "y", "gone"),
        ("b", "y", "new"),
    ]


def test_a_row_of_figures_alone_is_itself() -> None:
    before = {"steps": pd.DataFrame({"at": [0.0, 1.0], "mbps": [2.0, 3.0]})}
    after = {"steps": pd.DataFrame({"at": [0.0, 1.0], "mbps": [2.0, 4.0]})}
    frame = compare_plans(SYSTEM, before, after)["steps"]
    assert sorted(zip(frame["mbps"], frame["change"], strict=True)) == [("3.0", "gone"), ("4.0", "new")]


def test_a_table_that_one_plan_lacks_has_no_changes() -> None:
    assert compare_plans(SYSTEM, loads({"a": 1.0}), {}) == {}


ROWS = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 3).map(float), max_size=6)


@given(before=ROWS, after=ROWS)
def test_what_differs_is_exactly_what_is_told(before: dict[str, float], after: dict[str, float]) -> None:
    frame = compare_plans(SYSTEM, loads(before), loads(after))["loads"]
    told = {row["link"]: row["change"] for _, row in frame.iterrows()}
    expected = {
        name: "new" if name not in before else "gone" if name not in after else "changed"
        for name in {*before, *after}
        if before.get(name) != after.get(name)
    }
    assert told == expected
    size = [abs(after.get(name, 0.0) - before.get(name, 0.0)) for name in frame["link"]]
    assert size == sorted(size, reverse=True)


@pytest.mark.parametrize("rows", [{"a": 1.0}, {}])
def test_a_plan_does_not_differ_from_itself(rows: dict[str, float]) -> None:
    assert compare_plans(SYSTEM, loads(rows), loads(rows))["loads"].empty
