"""Tests of tables in other forms find readers for which a form has another answer."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pandas as pd
import pytest

from planner.contract.system import System
from planner.options import Options
from planner.scenarios.catalogue import find_system
from planner.testing.cases import Runs, tiny_problem
from planner.testing.table_forms import answer_cases

DIVIDED = "demands: divided rows have the same answer"
BOTH = "links: a row for both directions is two rows"


def run_case(system: System, name: str) -> None:
    """Run one of the tests of answers on the smallest problem of a system, by a quick design."""
    runs = Runs(system, partial(tiny_problem, system), {}, Options(threads=1, seed=1))
    next(run for title, run in answer_cases(runs) if title == name)()


def traffic(**changes: Any) -> System:
    """Return the system with other functions of its problem."""
    system = find_system("traffic")
    return dataclasses.replace(system, problem=dataclasses.replace(system.problem, **changes))


def first_row_only(tables: Mapping[str, pd.DataFrame]) -> Any:
    """Read the first demand of each pair of nodes only."""
    demands = tables["demands"].drop_duplicates(["source", "target"], ignore_index=True)
    return find_system("traffic").problem.from_tables({**tables, "demands": demands})


def refuse_classes(tables: Mapping[str, pd.DataFrame]) -> Any:
    """Read a demand for a pair, and nothing that tells several apart."""
    return find_system("traffic").problem.from_tables(
        {**tables, "demands": tables["demands"].drop(columns="class", errors="ignore")}
    )


def half_opposite(problem: Any, *, both_directions: bool | None = None, **given: Any) -> Any:
    """Give opposite links half of the capacity."""
    adjusted = find_system("traffic").problem.adjust(problem, both_directions=both_directions, **given)
    if not both_directions:
        return adjusted
    links = adjusted.links.copy()
    is_new = links.index >= len(problem.links)
    links.loc[is_new, "capacity_mbps"] /= 1000
    return dataclasses.replace(adjusted, links=links)


def ignored(problem: Any, *, both_directions: bool | None = None, **given: Any) -> Any:
    """Take each row as one way, whatever is said."""
    return find_system("traffic").problem.adjust(problem, **given)


@pytest.mark.parametrize("name", [DIVIDED, BOTH])
def test_the_forms_of_a_system_have_one_answer(name: str) -> None:
    run_case(traffic(), name)


@pytest.mark.parametrize("read", [first_row_only, refuse_classes])
def test_readers_that_lose_a_part_of_a_divided_row_are_found(read: Callable[..., Any]) -> None:
    with pytest.raises(AssertionError, match=r"beats|are refused"):
        run_case(traffic(from_tables=read), DIVIDED)


@pytest.mark.parametrize("adjust", [half_opposite, ignored])
def test_adjustments_that_misread_rows_for_both_directions_are_found(adjust: Callable[..., Any]) -> None:
    with pytest.raises(AssertionError, match=r"beats|one layout only"):
        run_case(traffic(adjust=adjust), BOTH)
