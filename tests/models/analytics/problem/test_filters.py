"""Filters by value: answers that filtered data can make, against all values, and brute force over records."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.backends import pyomo
from planner.options import Options
from planner_models.analytics import SYSTEM, Analytics, check, formulation, measure
from planner_models.analytics.plan.plan import read_levels
from planner_models.analytics.problem.filters import Filter, implies, passes, read_value
from planner_models.analytics.problem.schema import COMPARISONS
from tests.models.analytics.problems import LEVEL_COLUMNS, tables

BYTES = 100.0
MBPS_OF_BYTES = 8 / 60 / 1e6
NAMES = ("all", "large", "larger", "exact", "none")
SHARES = (1.0, 0.8, 0.5, 0.3, 0.0)
COLUMNS = [*LEVEL_COLUMNS, "filter_column", "keeps", "filter_value"]

Filters = st.builds(
    Filter,
    st.sampled_from(["size", "speed"]),
    st.sampled_from(COMPARISONS),
    st.integers(0, 4).map(float),
) | st.builds(Filter, st.just("size"), st.sampled_from(["equal", "not_equal"]), st.sampled_from(["a", "b"]))


@settings(max_examples=400, deadline=None)
@given(Filters, Filters)
def test_a_filter_includes_another_where_no_record_shows_the_opposite(first: Filter, other: Filter) -> None:
    """Numbers at, between and beyond the values of filters, and texts, are all the cases that there are."""
    values: list[float | str] = [*np.arange(-0.5, 5.0, 0.5).tolist(), "a", "b", "c"]
    records = [{"size": size, "speed": speed} for size, speed in itertools.product(values, repeat=2)]
    opposite = any(
        passes(first, record[first.column]) and not passes(other, record[other.column]) for record in records
    )
    assert implies(first, other) != opposite


def test_all_records_include_those_of_a_filter_and_not_the_other_way_round() -> None:
    condition = Filter("size", "at_least", 2.0)
    assert implies(condition, None)
    assert implies(None, None)
    assert not implies(None, condition)
    assert (read_value("1e3"), read_value("nan"), read_value("x")) == (1000.0, "nan", "x")


@st.composite
def filtered(draw: st.DrawFn) -> tuple[dict[str, pd.DataFrame], list[list[int]]]:
    """Draw the values of records of three sites, and tables with their shares, of levels that are filters."""
    made = tables(sites=3, combine=tuple(draw(st.sampled_from(["coarsest", "sum"])) for _ in range(2)))
    records = [draw(st.lists(st.integers(0, 9), min_size=1, max_size=8)) for _ in range(3)]
    low = draw(st.integers(1, 4))
    high = draw(st.integers(low + 1, 8))
    exact = draw(st.integers(high, 9))
    limits = ("", f"{low}", f"{high}", f"{exact}", "")
    rows: list[tuple[Any, ...]] = []
    shares: list[tuple[Any, ...]] = []
    for query in ("q0", "q1"):
        for name, share, limit in zip(NAMES, SHARES, limits, strict=True):
            operator = "none" if name == "none" else "filter" if limit else "sample"
            keeps = "" if not limit else "equal" if name == "exact" else "at_least"
            size = 0.0 if name == "none" else BYTES
            column = "value" if limit else ""
            rows.append((query, name, operator, 1.0, size, 0.0, 1 - share, share, column, keeps, limit))
            for site, values in enumerate(records):
                if limit:
                    passed = [value for value in values if is_sent(name, value, (low, high, exact))]
                    part = len(passed) / len(values)
                    shares.append((query, name, f"s{site}", part, part))
    made["levels"] = pd.DataFrame(rows, columns=COLUMNS)
    made["passing"] = pd.DataFrame(shares, columns=["query", "level", "site", "record_share", "cell_share"])
    made["volume"] = made["volume"].assign(records=[float(len(values)) for values in records], cells=1.0)
    load = [2 * BYTES * len(values) for values in records]
    made["sites"]["uplink_mbps"] = [
        (draw(st.integers(0, 10)) / 8 * size + 8) * MBPS_OF_BYTES for size in load
    ]
    made["pops"]["uplink_mbps"] = (draw(st.integers(1, 10)) / 8 * sum(load) + 8) * MBPS_OF_BYTES
    made["queries"]["value_usd"] = [draw(st.integers(1, 9)) * 1.0 for _ in range(2)]
    return made, records


def is_sent(name: str, value: int, limits: tuple[int, int, int]) -> bool:
    """Return whether a record with a value is sent at a level, by plain comparison."""
    low, high, exact = limits
    return {
        "all": True,
        "large": value >= low,
        "larger": value >= high,
        "exact": value == exact,
        "none": False,
    }[name]


def read_limits(made: dict[str, pd.DataFrame]) -> tuple[int, int, int]:
    low, high, exact = (int(text) for text in made["levels"]["filter_value"].iloc[1:4])
    return low, high, exact


def find_answer(sent: tuple[str, ...], limits: tuple[int, int, int]) -> str:
    """Return the first level all of whose records every site has sent, by trying all values."""
    if "none" in sent:
        return "none"
    return next(
        name
        for name in NAMES
        if all(
            is_sent(level, value, limits)
            for level in sent
            for value in range(10)
            if is_sent(name, value, limits)
        )
    )


def enumerate_levels(made: dict[str, pd.DataFrame], records: list[list[int]]) -> float:
    """Return the most value of all choices of levels by sites, with the bytes of each record that is sent."""
    limits = read_limits(made)
    capacity = made["sites"]["uplink_mbps"].to_numpy() / MBPS_OF_BYTES
    of_pop = made["pops"]["uplink_mbps"].iloc[0] / MBPS_OF_BYTES
    options = []
    for query in made["queries"].itertuples():
        rows = []
        for sent in itertools.product(NAMES, repeat=3):
            if query.combine == "sum":
                share = sum(SHARES[NAMES.index(name)] for name in sent) / 3
            else:
                share = SHARES[NAMES.index(find_answer(sent, limits))]
            size = [
                sum(BYTES for value in values if is_sent(name, value, limits))
                for name, values in zip(sent, records, strict=True)
            ]
            rows.append((query.value_usd * share, np.array(size)))
        options.append(rows)
    best = 0.0
    for picked in itertools.product(*options):
        load = sum(size for _, size in picked)
        if (load <= capacity * (1 + 1e-9)).all() and load.sum() <= of_pop * (1 + 1e-9):
            best = max(best, sum(value for value, _ in picked))
    return best


@settings(max_examples=10, deadline=None)
@given(filtered())
def test_the_optimum_with_filters_is_that_of_all_choices_over_records(
    drawn: tuple[dict[str, pd.DataFrame], list[list[int]]],
) -> None:
    best = enumerate_levels(*drawn)
    problem = Analytics.from_tables(drawn[0])
    decision = SYSTEM.design("optimum").run(problem)
    assert decision.proof.objective == pytest.approx(best, abs=1e-9)
    assert decision.proof.bound == pytest.approx(best, rel=1e-6, abs=1e-9)
    solution = pyomo.solve_model(formulation(problem), Options(backend="pyomo:highs", gap=1e-9))
    assert solution.objective == pytest.approx(best, abs=1e-6)


@settings(max_examples=6, deadline=None)
@given(filtered())
def test_bytes_and_answers_of_every_design_are_those_of_single_records(
    drawn: tuple[dict[str, pd.DataFrame], list[list[int]]],
) -> None:
    made, records = drawn
    best, limits = enumerate_levels(made, records), read_limits(made)
    problem = Analytics.from_tables(made)
    for name in ("optimum", "priced", "local_values", "coarsest", "adaptive_policy", "backfill"):
        plan = SYSTEM.design(name).run(problem).plan
        levels = read_levels(problem, plan)[0]
        metrics = measure(problem, plan, None)
        sent = sum(
            BYTES
            for site, values in enumerate(records)
            for level in levels[site].tolist()
            for value in values
            if is_sent(NAMES[level], value, limits)
        )
        assert (metrics["sent_gb"] or 0.0) * 1e9 == pytest.approx(sent)
        offered = sum(len(values) * (NAMES[level] != "none") for site, values in enumerate(records)
                      for level in levels[site].tolist())  # fmt: skip
        dropped = offered - sent / BYTES
        assert metrics["filtered_percent"] == pytest.approx(100 * dropped / offered if offered else 0.0)
        answers = dict(zip(plan.answers["query"], plan.answers["level"], strict=True))
        for row, query in enumerate(made["queries"].itertuples()):
            if query.combine == "coarsest":
                names = tuple(NAMES[level] for level in levels[:, row].tolist())
                assert answers[query.query] == find_answer(names, limits)
        assert not len(check(problem, plan)), name
        assert (metrics["value"] or 0.0) <= best + 1e-9


def test_a_row_of_a_site_goes_before_that_of_all_sites() -> None:
    made = tables(sites=2)
    made["levels"]["filter_column"] = ["", "size", "size", ""]
    made["levels"]["keeps"] = ["", "at_least", "at_least", ""]
    made["levels"]["filter_value"] = ["", "1", "2", ""]
    made["passing"] = pd.DataFrame(
        [("q0", "5 s", "s1", 0.5, 0.25), ("q0", "5 s", "", 1.0, 1.0), ("q0", "10 s", "", 0.1, 0.1)],
        columns=["query", "level", "site", "record_share", "cell_share"],
    )
    problem = Analytics.from_tables(made)
    assert problem.sent_per_cell[:, 0] == pytest.approx(np.array([[16, 8, 0.4, 0], [16, 2, 0.4, 0]]))
