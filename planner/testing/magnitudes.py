"""Tests of a system with amounts of other magnitudes: a million times smaller or larger, or of 15 decades.

    from planner.testing import check_magnitudes
    from mypackage import SYSTEM

    def test_my_system():
        check_magnitudes(SYSTEM, problems=[small()])

On each such problem every design answers, its plan keeps what it claims, and no plan beats a bound. Amounts
are rates, data and requests, by the units in the names of columns, and columns that the caller adds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats
from planner.contract.system import System
from planner.contract.table import Table
from planner.contract.units import is_per_unit, unit_of
from planner.errors import InputError
from planner.options import Options
from planner.testing.bounds import check_bounds
from planner.testing.cases import OPTIONS, Case, Runs, run_cases
from planner.testing.plans import check_run

Tables = Mapping[str, pd.DataFrame]

DIMENSIONS: Final = ("rate", "data", "requests")
"""Dimensions of amounts; times and distances stay as they are."""
FACTORS: Final = (1e-6, 1e6)
DECADES: Final = (-6.0, 9.0)
"""Powers of ten of the smallest and the largest amount of a problem that has both."""
SEEDS: Final = (1, 2)


def check_magnitudes(
    system: System,
    *,
    problems: Sequence[Any] = (),
    columns: Collection[str] = (),
    parameters: Mapping[str, Mapping[str, Any]] | None = None,
    options: Options = OPTIONS,
) -> None:
    """Run every design of a system on problems with amounts of other magnitudes.

    problems    small instances, solved by every design in seconds; default: the first preset
    columns     amounts whose columns have no unit, such as `cost`, as "table.column"
    parameters  of designs, by their names, where their defaults take too long
    raises      AssertionError that lists all the tests that failed, one line each
    """
    cases = magnitude_cases(
        system, problems=problems, columns=columns, parameters=parameters, options=options
    )
    run_cases(f"system '{system.name}'", cases)


def magnitude_cases(
    system: System,
    *,
    problems: Sequence[Any] = (),
    columns: Collection[str] = (),
    parameters: Mapping[str, Mapping[str, Any]] | None = None,
    options: Options = OPTIONS,
) -> list[Case]:
    """Return the tests of a system; arguments as for `check_magnitudes`."""
    instances = list(problems) or [next(iter(system.problem.presets.values()))()]
    cases: list[Case] = []
    for index, problem in enumerate(instances):
        for title, tables in other_magnitudes(system, problem.to_tables(), columns=columns):
            runs = Runs(system, partial(system.problem.from_tables, tables), parameters or {}, options)
            for design in system.designs:
                name = f"problem {index}, {title}: {design.name} answers, and its plan keeps what it claims"
                cases.append(Case(name, partial(check_answer, runs, design.name)))
            cases.append(
                Case(
                    f"problem {index}, {title}: no plan beats a bound", partial(check_bounds_of_answers, runs)
                )
            )
    return cases


def check_bounds_of_answers(runs: Runs) -> None:
    """Check that no plan is better than a bound that another design proves."""
    answers = []
    for design in runs.system.designs:
        with suppress(InputError):
            answers.append(runs.of(design.name))
    check_bounds(answers)


def check_answer(runs: Runs, name: str) -> None:
    """Check that a design has a plan that keeps its guarantees, or a bound, or refuses excessive numbers."""
    try:
        check_run(runs, name)
    except InputError:  # such as more packets than can be simulated
        return
    run = runs.of(name)
    has_answer = run.plan is not None or run.proof.bound is not None
    assert has_answer, f"no plan and no bound: {run.proof.status}, {'; '.join(run.proof.reasons)}"


def other_magnitudes(
    system: System, tables: Tables, *, columns: Collection[str] = ()
) -> Iterator[tuple[str, dict[str, pd.DataFrame]]]:
    """Yield titles and tables of problems with amounts of other magnitudes; arguments as for the check."""
    for factor in FACTORS:
        yield f"amounts times {factor:g}", scale_amounts(system, tables, factor, columns=columns)
    for seed in SEEDS:
        yield f"amounts of 15 decades, seed {seed}", spread_amounts(system, tables, seed, columns=columns)


def scale_amounts(
    system: System, tables: Tables, factor: float, *, columns: Collection[str] = ()
) -> dict[str, pd.DataFrame]:
    """Return tables with all amounts multiplied by a factor, but those that a column's rules refuse then."""
    return _change(system, tables, columns, lambda _table, _name, values: values * factor)


def spread_amounts(
    system: System, tables: Tables, seed: int, *, columns: Collection[str] = ()
) -> dict[str, pd.DataFrame]:
    """Return tables with the amounts of each column spread over 15 decades, in random order of rows.

    Ratios of a row's amounts stay, and so do equal amounts in columns of one name in several tables: both
    may refer to each other, such as urgent traffic to all traffic, and a requested rate to one on offer.
    """
    random = np.random.default_rng(seed)
    names = [name for frame in tables.values() for name in frame]
    decades = {
        name: random.permutation(np.linspace(*DECADES, max(len(frame), 2)))[: len(frame)]
        for name, frame in tables.items()
    }
    shared: dict[tuple[str, float], float] = {}

    def spread(table: str, name: str, values: Floats) -> Floats:
        frame = tables[table]
        unit = unit_of(name)[1]
        alike = [other for other in frame if other == name or (unit and unit_of(str(other))[1] == unit)]
        largest = float(np.nanmax(frame[alike].to_numpy(float), initial=0.0)) or 1.0
        made = values / largest * 10.0 ** decades[table]
        if names.count(name) > 1:
            pairs = zip(values.tolist(), made.tolist(), strict=True)
            made = np.array([shared.setdefault((name, old), new) for old, new in pairs])
        return made

    return _change(system, tables, columns, spread)


def _change(
    system: System, tables: Tables, columns: Collection[str], change: Callable[[str, str, Floats], Floats]
) -> dict[str, pd.DataFrame]:
    """Return tables with changed amounts; of numbers that a column refuses, those rounded up, or the old."""
    made = {}
    for table in system.problem.tables:
        if table.name not in tables:
            continue
        frame = tables[table.name]
        new = {}
        for name in _amounts(table, frame, columns):
            old = frame[name].to_numpy(float)
            candidate = change(table.name, name, old)
            alike = [
                other
                for other in system.problem.tables
                if other is table or (name in other.columns and name in tables.get(other.name, ()))
            ]
            for again in (np.ceil(candidate), old):
                is_allowed = np.logical_and.reduce([_is_allowed(case, name, candidate) for case in alike])
                candidate = np.where(is_allowed, candidate, again)
            new[name] = np.where(np.isnan(old), old, candidate)
        made[table.name] = frame.assign(**new)
    return made


def _amounts(table: Table, frame: pd.DataFrame, columns: Collection[str]) -> list[str]:
    """Return the columns of a table that are amounts."""
    amounts = []
    for name in frame:
        stem, unit = unit_of(str(name))
        has_amount = unit is not None and unit.dimension in DIMENSIONS and not is_per_unit(stem)
        is_number = pd.api.types.is_numeric_dtype(frame[name])
        if is_number and (has_amount or f"{table.name}.{name}" in columns):
            amounts.append(str(name))
    return amounts


def _is_allowed(table: Table, name: str, values: Floats) -> Bools:
    """Return the mask of the numbers that the rules of a column allow."""
    rules = table.columns[name].rules if name in table.columns else ()
    allowed = np.ones(len(values), dtype=bool)
    for _, test in rules:
        allowed &= np.asarray(test(pd.Series(values)), dtype=bool)
    return allowed
