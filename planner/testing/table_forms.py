"""Conformance tests of tables in other forms: the same problem in other words, units, rows and windows.

Each form of a table gives the same problem or the same answer, or is refused in one clear line. What may
differ is read from the declarations of columns: other names, units, keys and windows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, starmap
from typing import Any, Final

import numpy as np
import pandas as pd

from planner.contract.columns import match_columns
from planner.contract.end_columns import (
    DEMAND_ENDS,
    ENDS,
    LINK_ENDS,
    OTHER_NAMES,
    UNCLEAR_OF_DEMANDS,
    WITH_WORDS,
)
from planner.contract.parameters import parameters_of
from planner.contract.synonyms import other_names
from planner.contract.system import System
from planner.contract.table import Table
from planner.contract.tables import digest
from planner.contract.units import Dimension, Unit, find_units, is_per_unit, unit_of
from planner.testing.bounds import check_bounds, check_optimum
from planner.testing.cases import Cases, Runs, faults_of, faults_of_tables, has_name

HEADERS: Final[Mapping[Dimension, Sequence[str]]] = {
    "rate": ("Gbps", "Gbit/s", "Mbit/s", "Mbps", "kbit/s", "bit/s", "MB/s"),
    "data": ("GB", "MB", "kB", "B", "Gbit", "MiB"),
    "time": ("ms", "s", "us", "min"),
    "distance": ("km", "m", "miles"),
    "requests": ("kops", "ops/s", "rps"),
}
"""Units as headers of columns write them, in which the tables of a system must be the same problem."""

BOTH_DIRECTIONS: Final = "both_directions"
"""Parameter of problems for tables with one row for both directions of a link."""
DIVIDED_SHARE: Final = 0.5
"""Share of the rows that are divided."""


def table_cases(system: System, problem: Any) -> Cases:
    """Yield the tests of the tables of a problem in other forms."""
    tables = problem.to_tables()
    for table in system.problem.tables:
        if table.name not in tables:
            continue
        yield f"other units and names: {table.name}", partial(_check_units, system, problem, table)
        yield f"row numbers: {table.name}", partial(_check_index, system, problem, table)
        yield f"rows twice: {table.name}", partial(_check_repeated_rows, system, problem, table)
        for name, column in table.columns.items():
            if column.kind == "window":
                yield f"windows: {name}", partial(_check_windows, system, problem, table, name)


def answer_cases(runs: Runs) -> Cases:
    """Yield the tests of forms that may be stored otherwise but have the same answer."""
    yield "rows in another order have the same answer", partial(_check_order, runs)
    for table in runs.system.problem.tables:
        if table.divisible:
            yield f"{table.name}: divided rows have the same answer", partial(_check_divided, runs, table)
        has_links = set(LINK_ENDS) <= set(table.required_columns)
        if has_links and BOTH_DIRECTIONS in parameters_of(runs.system.problem.adjust):
            yield (
                f"{table.name}: a row for both directions is two rows",
                partial(_check_both_directions, runs, table),
            )


# --- words and units ----------------------------------------------------------------------


def _check_units(system: System, problem: Any, table: Table) -> None:
    """Check that columns in other words, order and units make the same problem.

    One other name of each column is read by the system; of all others, the columns that they are found to be
    are compared, by the function that finds those of every table.
    """
    tables = problem.to_tables()
    frame = tables[table.name]
    for form, other in _other_forms(table, frame):
        _check_same_problem(system, tables, {table.name: other}, form)
    renamed: set[str] = set()
    for form, texts in _synonyms(table, list(map(str, frame.columns))):
        names = {name: texts.get(name, name) for name in map(str, frame.columns)}
        match = match_columns(table, names.values(), where=table.name)
        assert not match.faults, f"with {form}: {'; '.join(match.faults)}"
        assert (match.names, match.factors) == (names, {}), f"with {form}: {table.name}: read {match.names}"
        if not set(texts) <= renamed:
            _check_same_problem(system, tables, {table.name: frame.rename(columns=texts)}, form)
        renamed |= set(texts)


def _check_same_problem(
    system: System, tables: Mapping[str, pd.DataFrame], other: Mapping[str, pd.DataFrame], form: str
) -> None:
    """Raise AssertionError where a problem with other tables in place of its own has other contents.

    form  what is other in them, for the message
    """
    again = system.problem.from_tables({**tables, **other}).to_tables()
    for name, original in tables.items():
        _check_same(again[name], original, f"with {form}: {name}")


def _check_same(frame: pd.DataFrame, expected: pd.DataFrame, what: str) -> None:
    """Raise AssertionError where two tables differ by more than how their values are stored.

    what  the table and its form, for the message
    """
    if frame.equals(expected):
        return
    try:
        pd.testing.assert_frame_equal(_plain(frame), _plain(expected), check_like=True, rtol=1e-9)
    except AssertionError as error:
        raise AssertionError(f"{what} differs: {error}") from error


def _other_forms(table: Table, frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the same table with titles as headers in other units, and with units within its cells."""
    names = list(map(str, frame.columns))
    units = {name: unit for name in names if (unit := _unit_of(table, name)) is not None}
    for row in range(max([1, *(len(HEADERS[unit.dimension]) for unit in units.values())])):
        yield _with_headers(frame, units, row)
    for name, unit in units.items():
        if is_per_unit(unit_of(name)[0]) or not frame[name].notna().all():
            continue
        cells = frame[name].map(lambda value, unit=unit: f"{float(value)!r} {unit.symbol}")
        yield f"cells such as '{next(iter(cells), '')}'", frame.assign(**{name: cells})


def _with_headers(frame: pd.DataFrame, units: Mapping[str, Unit], row: int) -> tuple[str, pd.DataFrame]:
    """Return the table with titles as headers, columns in reverse, and units from a row of `HEADERS`."""
    headers = {name: _title(name) for name in map(str, frame.columns)}
    other: dict[str, Any] = {"Remark": "checked"}
    for name in reversed(list(headers)):
        values = frame[name]
        if name in units:
            header = _pick(HEADERS[units[name].dimension], row)
            headers[name], factor = _in_unit(name, units[name], header)
            values = values / factor
        other[headers[name]] = values
    shown = ", ".join(f"'{headers[name]}'" for name in units) or "titles"
    return shown, pd.DataFrame(other, index=frame.index)


def _unit_of(table: Table, name: str) -> Unit | None:
    """Return the unit of a column that has a word beside it and counts as decimals do, else None."""
    stem, unit = unit_of(name)
    counts = table.columns[name].counts_by_1024 if name in table.columns else True
    return None if counts or not stem else unit


def _in_unit(name: str, unit: Unit, header: str) -> tuple[str, float]:
    """Return the header of a column in another unit, and the factor from there to its own unit."""
    stem = unit_of(name)[0]
    factor = find_units(header)[0].factor_to(unit, is_per=is_per_unit(stem))
    return f"{_title(stem)} ({header})", float(factor)


def _synonyms(table: Table, names: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield names that other tools give to columns, with the renamed columns."""
    for name in names:
        unit = unit_of(name)[1]
        for other in other_names(table, name):
            header = other if unit is None else f"{other} ({unit.symbol})"
            if header not in names:
                yield header, {name: header}
    pairs = [pair for pair in ENDS if set(pair) <= set(table.columns)]
    if len(pairs) == 1 and set(pairs[0]) <= set(names):
        yield from _synonyms_of_ends(pairs[0], names)


def _synonyms_of_ends(pair: tuple[str, str], names: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield names that other tools give to both ends, with the renamed columns."""
    others = set(names) - set(pair)
    clear = [words for words in OTHER_NAMES if words != UNCLEAR_OF_DEMANDS or pair not in DEMAND_ENDS]
    for words in chain.from_iterable(starmap(_words_of_ends, clear)):
        if not set(words) & others:
            yield " and ".join(words), dict(zip(pair, words, strict=True))


def _words_of_ends(first: Collection[str], second: Collection[str]) -> list[tuple[str, str]]:
    """Return the pairs of other names of the two ends, with a word beside them where they need it."""
    pairs = zip(sorted(first), sorted(second), strict=False)
    needs_word = (first, second) in WITH_WORDS
    return sorted((f"node {end}", f"node {other}") if needs_word else (end, other) for end, other in pairs)


def _title(name: str) -> str:
    return name.replace("_", " ").title()


def _pick(headers: Sequence[str], row: int) -> str:
    return headers[row % len(headers)]


def _plain(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table with plain numbers and texts, however they are stored."""
    is_number = pd.api.types.is_numeric_dtype
    return frame.astype({name: float if is_number(frame[name]) else object for name in frame})


# --- rows ---------------------------------------------------------------------------------


def _check_index(system: System, problem: Any, table: Table) -> None:
    """Check that the index of a frame means nothing: gaps and any order of it make the same problem."""
    tables = problem.to_tables()
    frame = tables[table.name]
    index = np.arange(len(frame))[::-1] * 3 + 7
    again = system.problem.from_tables({**tables, table.name: frame.set_axis(index)})
    assert digest(again.to_tables()) == digest(tables), "another index of rows gives another problem"


def _check_repeated_rows(system: System, problem: Any, table: Table) -> None:
    """Check that a row that is there twice is refused in a line that names it, or counts twice.

    Rows without amounts, such as rules, may be there twice and mean the same.
    """
    tables = problem.to_tables()
    frame = tables[table.name]
    if not len(frame):
        return
    doubled = {**tables, table.name: pd.concat([frame, frame.iloc[:1]], ignore_index=True)}
    if faults := faults_of_tables(system, doubled):
        assert has_name(faults, table.name), f"{table.name}: a row twice: no line names the table: {faults}"
        return
    assert not table.key_in(frame), f"{table.name}: rows with the same key are not refused"
    has_amounts = any(pd.api.types.is_numeric_dtype(frame[name]) for name in frame)
    again = system.problem.from_tables(doubled).to_tables()
    assert digest(again) != digest(tables) or not has_amounts, f"{table.name}: a row twice counts once"


def _check_order(runs: Runs) -> None:
    """Check that rows in another order have the same answer by the best design, or are refused.

    Proven values must be the same; others must keep each other's bounds.
    """
    for seed in (1, 2):
        other = runs.on(partial(_in_another_order, runs.system, runs.problem, seed))
        if faults := faults_of(partial(getattr, other, "problem")):
            assert has_name(faults, "row"), f"rows in another order: no line names a row: {faults}"
            continue
        _check_same_answer(runs, other)


def _check_same_answer(runs: Runs, other: Runs) -> None:
    """Check that the best design's values of two problems that mean the same agree.

    Proven values must be the same; others must keep each other's bounds.
    """
    name = runs.system.default_design.name
    both = [runs.of(name), other.of(name)]
    check_bounds(both)
    check_optimum(both)


def _in_another_order(system: System, problem: Any, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return system.problem.from_tables(
        {
            name: frame.iloc[rng.permutation(len(frame))].reset_index(drop=True)
            for name, frame in problem.to_tables().items()
        }
    )


def _check_divided(runs: Runs, table: Table) -> None:
    """Check that rows with amounts divided over two rows have the same answer."""
    frame = runs.problem.to_tables().get(table.name)
    if frame is None or not set(table.divisible) & set(frame):
        return
    for seed in (1, 2):
        other = runs.on(partial(_with_divided_rows, runs.system, runs.problem, table, seed))
        if faults := faults_of(partial(getattr, other, "problem")):
            is_named_elsewhere = table.part_column in frame and has_name(faults, table.part_column)
            assert is_named_elsewhere, f"divided rows of {table.name} are refused: {faults}"
            continue
        _check_same_answer(runs, other)


def _with_divided_rows(system: System, problem: Any, table: Table, seed: int) -> Any:
    """Return a problem in which some rows of a table are two, each with about half of the amounts."""
    tables = problem.to_tables()
    frame: pd.DataFrame = tables[table.name].reset_index(drop=True)
    parts = frame.copy()
    is_divided = np.random.default_rng(seed).random(len(frame)) < DIVIDED_SHARE
    for name in set(table.divisible) & set(frame):
        values = frame[name].to_numpy(float)
        is_count = np.floor(values) == values
        half = np.where(is_count, np.floor(values / 2), values / 2)
        is_divided &= half > 0
        parts[name] = half
    remaining = frame.copy()
    for name in set(table.divisible) & set(frame):
        remaining.loc[is_divided, name] -= parts[name][is_divided]
    if table.part_column:
        names = frame.get(table.part_column, pd.Series("part", index=frame.index))
        remaining = remaining.assign(**{table.part_column: names})
        parts = parts.assign(**{table.part_column: names + " 2"})
    divided = pd.concat([remaining, parts[is_divided]]).sort_index(kind="stable").reset_index(drop=True)
    return system.problem.from_tables({**tables, table.name: divided})


def _check_both_directions(runs: Runs, table: Table) -> None:
    """Check that a row for both directions of each link, and a row for each direction, are the same problem.

    The first is read with the parameter `both_directions`, which changes nothing of the second.
    """
    system, problem = runs.system, runs.problem
    tables = problem.to_tables()
    if table.name not in tables:
        return
    tail, head = LINK_ENDS
    frame: pd.DataFrame = tables[table.name]
    ends = pd.Series([tuple(sorted(pair)) for pair in zip(frame[tail], frame[head], strict=True)])
    lines = frame[~ends.duplicated().to_numpy()].reset_index(drop=True)
    opposite = lines.rename(columns={tail: head, head: tail})[list(lines.columns)]
    each = pd.concat([lines, opposite], ignore_index=True)

    def read(rows: pd.DataFrame, adjustments: Mapping[str, Any]) -> Any:
        return system.problem.adjust(system.problem.from_tables({**tables, table.name: rows}), **adjustments)

    both = {BOTH_DIRECTIONS: True}
    cases = [
        runs.on(partial(read, rows, adjustments))
        for rows, adjustments in ((lines, both), (each, {}), (each, both))
    ]
    first, *others = cases
    for other in others:
        for kind in system.problem.elements:
            names, same = (sorted(kind.names(problem_.problem)) for problem_ in (first, other))
            assert names == same, f"{kind.name}: {sorted(set(names) ^ set(same))[:1]} is in one layout only"
        assert first.problem.size() == other.problem.size()
        _check_same_answer(first, other)


# --- windows ------------------------------------------------------------------------------


def _check_windows(system: System, problem: Any, table: Table, name: str) -> None:
    """Check that windows in steps, in another order and as times are as many windows of the same size."""
    tables = problem.to_tables()
    frame = tables[table.name]
    ranks = frame[name].rank(method="dense").astype(int)
    times = pd.Timestamp("2024-01-01") + pd.to_timedelta(ranks * 5, unit="min")
    shuffled = np.random.default_rng(1).permutation(len(frame))
    for values in (ranks * 5, ranks - 1, times, times.astype(str)):
        other = frame.assign(**{name: values})
        for rows in (other, other.iloc[shuffled]):
            again = system.problem.from_tables({**tables, table.name: rows.reset_index(drop=True)})
            assert again.size() == problem.size(), f"{name} as {values.iloc[0]} gives other windows"
