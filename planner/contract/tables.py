"""Table declarations, the checks of tables against them, and the digest of their contents.

Every fault of every table is found before anything is refused, each as one line that names the
file, the row, the column, the value and the rule. Rows are counted as a spreadsheet does: the
header of a CSV file is row 1; Parquet files and frames have no header, their first row is row 1.
"""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.contract.cell_units import ABSENT, is_unlimited, read_amounts, unclear_unit
from planner.contract.columns import ColumnMatch, match_columns
from planner.contract.notes import add_note
from planner.contract.periods import UnclearTimes, describe_numbers, is_time, number_times, read_epochs
from planner.contract.table import FEW_VALUES, FINITE, Column, Table
from planner.contract.units import unit_of
from planner.errors import InputError, did_you_mean

FEW_ROWS: Final = 1000  # whose texts Python compares faster than pandas
SHOWN_ROWS: Final = 5  # rows that are listed for each broken rule
TEXT: Final = pd.StringDtype(na_value=np.nan)
"""Type of a column of texts in a valid table."""


def validate(
    table: Table, frame: pd.DataFrame, *, where: str | None = None, first_row: int = 1
) -> pd.DataFrame:
    """Return `frame` with the table's columns, types and defaults.

    Columns are found as in files: by name without case and punctuation, and in other units, which are
    converted. Rows keep their index, which counts from 0, so that later faults can name them.

    where      name of the table in faults, e.g. its file name; default: the table's name
    first_row  number of the first data row in faults
    raises     InputError with every fault
    """
    where = where or table.name
    if is_valid(table, frame):
        _add_notes_of_windows(table, frame, where)
        valid = frame.copy(deep=False)
        valid.attrs = {}
        return valid
    frame = flatten_frame(table, frame, where)
    if len(frame.columns) and frame.iloc[:, 0].hasnans:
        frame = frame.dropna(how="all")
    names = [str(name) for name in frame.columns]
    if not (set(names) <= set(table.columns) and set(table.required_columns) <= set(names)):
        match = match_columns(table, names, where=where)
        if match.faults:
            raise InputError(*match.faults)
        frame = convert_units(frame.set_axis(names, axis=1), match)
        for note in match.notes():
            add_note(note)
    return check_rows(table, frame, where=where, first_row=first_row)


def is_valid(table: Table, frame: pd.DataFrame) -> bool:
    """Return whether `validate` would return an equal frame, several times faster: problems change often."""
    if (frame.empty and not table.may_be_empty) or set(frame.index.names) != {None}:
        return False
    if not _has_all_columns(table, frame.columns.tolist()):
        return False
    columns = {str(name): values for name, values in frame.items()}
    if not all(_is_valid_column(table, name, values) for name, values in columns.items()):
        return False
    if all(table.columns[name].nullable for name in columns):  # rows may be blank, which are left out
        return False
    return _is_key_unique(table, frame, [columns[name] for name in table.key if name in columns])


def _has_all_columns(table: Table, names: Sequence[Any]) -> bool:
    """Return whether names are those of the table's columns, in order, optional ones aside."""
    present = set(names)
    expected = [
        name
        for name, column in table.columns.items()
        if name in present or column.required or column.default is not None
    ]
    return names == expected


def _is_key_unique(table: Table, frame: pd.DataFrame, key: Sequence[pd.Series]) -> bool:
    """Return whether no two rows have equal values in the columns of the key; True without a key."""
    if not key:
        return True
    if len(frame) <= FEW_ROWS:
        rows = list(zip(*(values.tolist() for values in key), strict=True))
        if all(value == value for row in rows for value in row):  # none is blank
            return len(set(rows)) == len(rows)
    if table.compact:
        return _all_rows_differ(frame[table.key_in(frame)])
    return not bool(frame.duplicated(table.key_in(frame)).any())


def _is_valid_column(table: Table, name: str, values: pd.Series) -> bool:
    """Return whether all values have the column's type and satisfy its rules."""
    column = table.columns[name]
    if not column.is_label:
        return bool(values.dtype == float) and _satisfies_rules(column, values)
    if not table.compact:
        return values.dtype == TEXT and not _has_blanks(values) and column.satisfied(values.array)
    if not isinstance(values.dtype, pd.CategoricalDtype):
        return False
    texts = values.cat.categories
    return texts.dtype == TEXT and "" not in texts and not values.hasnans


def _has_blanks(texts: pd.Series) -> bool:
    """Return whether a column of texts has blank cells; of few, Python tells it faster."""
    if len(texts) > FEW_VALUES:
        return bool(texts.hasnans)
    return any(text != text for text in texts.tolist())


def _add_notes_of_windows(table: Table, frame: pd.DataFrame, where: str) -> None:
    """Report the notes on a valid table's windows again."""
    for name, column in table.columns.items():
        if name in frame and column.kind == "window":
            _convert_windows(name, frame[name], _RowFaults(where, 1))


def flatten_frame(table: Table, frame: pd.DataFrame, where: str) -> pd.DataFrame:
    """Return a frame with one level of distinct columns; an index that is a column becomes one.

    raises  InputError for columns of several levels, and for two of one name
    """
    if frame.columns.nlevels > 1:
        raise InputError(
            f"{where}: its columns have {frame.columns.nlevels} levels, must have one: "
            "frame.columns = ['_'.join(map(str, name)) for name in frame.columns]"
        )
    names = [str(name) for name in frame.columns]
    twice = (
        [name for name in dict.fromkeys(names) if names.count(name) > 1]
        if len(set(names)) < len(names)
        else []
    )
    if twice:
        faults = [f"{where}: column '{abbreviate(name)}' occurs twice; keep one" for name in twice]
        raise InputError(*shorten_faults(faults, where, "of columns that occur twice"))
    levels = [name for name in frame.index.names if name is not None]
    if levels and set(levels) <= set(table.columns) - set(names):
        return frame.reset_index()
    return frame


def convert_units(frame: pd.DataFrame, match: ColumnMatch) -> pd.DataFrame:
    """Return the columns that were found, under our names and in our units; the rest is left out."""
    if match.is_exact and not match.factors:
        return frame
    selected = frame[list(match.names.values())].set_axis(list(match.names), axis=1)
    return selected.assign(**{ours: _scale(selected[ours], factor) for ours, factor in match.factors.items()})


def _scale(values: pd.Series, factor: Fraction) -> pd.Series:
    """Return numbers times a factor; values that are no numbers stay, for the rules to refuse."""
    over, under = float(factor.numerator), float(factor.denominator)
    if pd.api.types.is_numeric_dtype(values) and values.dtype != bool:
        with np.errstate(over="ignore"):
            return values.astype(float) * over / under
    return values.map(lambda value: value * over / under if _is_plain_number(value) else value)


def _is_plain_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


class FaultyRows(InputError):
    """Errors in rows of a table with complete columns; `frame` has them with their types."""

    def __init__(self, frame: pd.DataFrame, faults: Sequence[str]) -> None:
        self.frame = frame
        super().__init__(*faults)


def check_rows(table: Table, frame: pd.DataFrame, *, where: str, first_row: int) -> pd.DataFrame:
    """Return a frame with the table's columns, types and defaults; raise FaultyRows with every fault."""
    frame, faults = _check_table(table, frame, where, first_row)
    if faults:
        frame.attrs |= {"where": where, "first_row": first_row}
        raise FaultyRows(frame, faults)
    return frame


def validate_fields(problem: object, tables: Iterable[Table]) -> list[str]:
    """Validate the tables in the fields of a frozen dataclass, replace them, and return all faults.

    For use in `__post_init__`. A field has the name of its table; None means that the table is absent.
    """
    faults: list[str] = []
    for table in tables:
        frame = getattr(problem, table.name)
        if frame is None:
            continue
        where, first_row = frame.attrs.get("where"), frame.attrs.get("first_row", 1)
        try:
            valid = validate(table, frame, where=where, first_row=first_row)
        except InputError as error:
            faults += error.faults
            continue
        valid.attrs |= frame.attrs
        object.__setattr__(problem, table.name, valid)
    return faults


def collect_tables(owner: object, tables: Iterable[Table]) -> dict[str, pd.DataFrame]:
    """Return the tables in the fields of a dataclass, by name, with rows from 0; fields of None have none."""
    frames = {table.name: getattr(owner, table.name) for table in tables}
    return {name: frame.reset_index(drop=True) for name, frame in frames.items() if frame is not None}


def validate_tables(
    tables: Iterable[Table], data: Mapping[str, pd.DataFrame], *, required: Iterable[str]
) -> dict[str, pd.DataFrame]:
    """Return those of the tables that are given, with their columns, types and defaults, by name.

    required  names of tables that must be given
    raises    InputError with every fault
    """
    frames: dict[str, pd.DataFrame] = {}
    faults = [f"{name}: is missing" for name in required if name not in data]
    for table in tables:
        if table.name not in data:
            continue
        frame = data[table.name]
        try:
            frames[table.name] = validate(table, frame, where=frame.attrs.get("where"))
        except InputError as error:
            faults += error.faults
    if faults:
        raise InputError(*faults)
    return frames


def report_unknown_names(
    frame: pd.DataFrame, table: str, column: str, existing: Collection[str], what: str
) -> list[str]:
    """Return a fault for each row with a name in `column` that is not in `existing`.

    what  the end of the fault, such as "no node of the network"
    """
    if max(len(frame), len(existing)) <= FEW_ROWS:
        names = set(existing)
        unknown = np.flatnonzero([name not in names for name in frame[column].tolist()])
    else:
        unknown = np.flatnonzero(~frame[column].isin(existing).to_numpy())

    def describe(row: int) -> str:
        name = frame[column].iloc[row]
        return f"{row_name(frame, table, row)}: {column} '{name}' is {what}" + did_you_mean(
            str(name), existing
        )

    return describe_rows(unknown, describe, file_name(frame, table), f"with an unknown {column}")


def _check_table(
    table: Table, frame: pd.DataFrame, where: str, first_row: int
) -> tuple[pd.DataFrame, list[str]]:
    if frame.empty and not table.may_be_empty:
        raise InputError(f"{where}: holds no rows")
    broken = _RowFaults(where, first_row)
    _add_nested_values(table, frame, broken)
    if broken.lines:
        raise InputError(*broken.faults())
    columns: dict[str, pd.Series[Any]] = {}
    for name, column in table.columns.items():
        if name in frame:
            columns[name] = _convert_column(table, name, frame[name], broken)
        elif column.default is not None:
            columns[name] = pd.Series(column.default, index=frame.index, dtype=float)
    frame = pd.DataFrame(columns, index=frame.index)
    frame.attrs |= broken.attrs
    if not broken.lines:  # a value of the wrong type would break its column's rules again
        _check_rules(table, frame, broken)
        if len(broken.lines) > 1:  # one may be a typing error
            broken.more += _find_confused(table, frame, where)
    if not broken.lines and table.key:
        _add_repeated_keys(table, frame, broken)
    return frame, broken.faults()


def _check_rules(table: Table, frame: pd.DataFrame, broken: _RowFaults) -> None:
    """Add a fault for each value that breaks a rule of its column; the columns have their types already."""
    checked = [name for name in map(str, frame) if not isinstance(frame[name].dtype, pd.CategoricalDtype)]
    if frame.empty or all(_satisfies_rules(table.columns[name], frame[name]) for name in checked):
        return
    for of_finite in (True, False):
        for name in checked:
            _add_broken_rules(name, table.columns[name], frame[name], broken, of_finite=of_finite)


def _find_confused(table: Table, frame: pd.DataFrame, where: str) -> list[str]:
    """Return a line for each column that breaks its rules, where another would satisfy them in its place."""
    lines = []
    for name, column in table.columns.items():
        other = column.confused_with
        if other is None or not {name, other} <= set(frame) or _satisfies_rules(column, frame[name]):
            continue
        if _satisfies_rules(column, frame[other]) and _satisfies_rules(table.columns[other], frame[name]):
            lines.append(f"{where}: {name} and {other} may be interchanged")
    return lines


def _satisfies_rules(column: Column, values: pd.Series) -> bool:
    """Return whether all values satisfy all rules; blank ones do where the column may have them."""
    if column.is_label:
        is_blank = values.isna().to_numpy()
        plain: Any = values.array  # faster than a series
    else:
        plain = values.to_numpy()
        is_blank = np.isnan(plain)
    if is_blank.any():
        return column.nullable and column.satisfied(plain[~is_blank])
    return column.satisfied(plain)


class _RowFaults:
    """Faults of rows in the order of the rows, at most SHOWN_ROWS for each rule."""

    def __init__(self, where: str, first_row: int) -> None:
        self.where, self.first_row = where, first_row
        self.lines: list[tuple[int, str]] = []
        self.more: list[str] = []
        self.attrs: dict[str, Any] = {}
        self.changes: dict[str, frozenset[float]] = {}

    def add(self, rule: str, rows: Sequence[int], count: int, texts: Iterable[str]) -> None:
        for row, text in zip(rows, texts, strict=True):
            self.lines.append((row, f"{self.where} row {self.first_row + row}: {text}"))
        if count > len(rows):
            self.more.append(f"{self.where}: {count - len(rows)} more rows where {rule}")

    def faults(self) -> list[str]:
        return [text for _, text in sorted(self.lines)] + self.more


def _add_nested_values(table: Table, frame: pd.DataFrame, broken: _RowFaults) -> None:
    """Add a fault for each list or record, as Parquet may hold in place of a single value."""
    for name in [name for name in table.columns if name in frame]:
        values = frame[name]
        if values.dtype != object or not pd.api.types.infer_dtype(values, skipna=True).startswith("mixed"):
            continue
        bad = ~values.map(pd.api.types.is_scalar)
        indices, rows = _locate_first(bad)
        texts = [f"{name} is '{abbreviate(values.iloc[index])}', must be a single value" for index in indices]
        broken.add(f"{name} is no single value", rows, int(bad.sum()), texts)


def _convert_column(table: Table, name: str, values: pd.Series, broken: _RowFaults) -> pd.Series:
    """Return a column in its type; add a fault to `broken` for each value that cannot be converted."""
    column = table.columns[name]
    if column.kind == "window":
        return _convert_windows(name, values, broken)
    if table.compact and column.is_label:
        return _convert_to_categories(name, values, broken)
    return _convert(name, column, values, broken)


def _convert(name: str, column: Column, values: pd.Series, broken: _RowFaults) -> pd.Series:
    """Return `values` in the column's type; add a fault to `broken` for each that cannot be converted."""
    if values.dtype == float and not values.hasnans and not column.is_label:
        return values
    blank = values.isna()
    missing = blank & (not column.nullable)
    if column.is_label:
        bad, rule = missing, f"{name} is empty"
        coerced: pd.Series[Any] = _label_texts(values)
        if column.nullable:
            coerced = coerced.where(~blank, "")
    else:
        coerced, not_numbers = _read_numbers(name, column, values, broken)
        bad, rule = missing | not_numbers, f"{name} is empty or no number"
    indices, rows = _locate_first(bad)
    broken.add(
        rule,
        rows,
        int(bad.sum()),
        (
            _empty_fault(name, column)
            if missing.iloc[index]
            else _number_fault(name, values.iloc[index], "a number") + _unlimited(values.iloc[index], column)
            for index in indices
        ),
    )
    return coerced


def _read_numbers(
    name: str, column: Column, values: pd.Series, broken: _RowFaults
) -> tuple[pd.Series, pd.Series]:
    """Return values as numbers, and a mask of those that are neither blank nor numbers."""
    if isinstance(values.dtype, np.dtype) and values.dtype.kind in "iuf":
        return values.astype(float), pd.Series(False, index=values.index)
    text = values.astype(str) if values.dtype == bool or values.dtype.kind == "c" else values
    text = _with_amounts(name, text, broken)
    if column.share or name.endswith("percent"):
        text = _without_percent(text, 100 if column.share else 1)
    coerced = _to_numbers(text)
    # "nan" is read as a number here; the rule that numbers are finite refuses it, but where NaN is blank
    is_nan = text.astype(str).str.strip().str.lower() == "nan"
    return coerced, coerced.isna() & ~values.isna() & (column.nullable | ~is_nan)


def _label_texts(values: pd.Series) -> pd.Series:
    """Return names as texts; a whole number is written without point, as in a column of integers."""
    if values.dtype.kind == "f" and bool((np.floor(present := values.dropna()) == present).all()):
        return values.astype(float).map(lambda value: f"{value:.0f}").astype(str)
    return values.astype(str)


def _empty_fault(name: str, column: Column) -> str:
    """Return the error of an empty cell, with advice for a column with a default."""
    usual = "" if column.default is None else f"; write {column.default:g}, the default"
    return f"{name} is empty{usual}"


def _number_fault(name: str, value: object, what: str) -> str:
    """Return the error of a cell that holds no number, with advice."""
    text = str(value).strip()
    start = f"{name} is '{abbreviate(value)}', must be {what}"
    unit = unit_of(name)[1]
    if _is_time_object(value):
        if unit is None or unit.dimension != "time":
            return f"{name} is the time {abbreviate(value)}, must be {what}"
        since = "" if isinstance(value, datetime.timedelta) else ": subtract the first time"
        return f"{name} is the time {abbreviate(value)}, must be {what} or a duration{since}"
    if unit is not None and (readings := unclear_unit(name, text)):
        return f"{start}: is it in {readings}? write the number in {unit.symbol}"
    if text.endswith("%"):
        return f"{start} without a percent sign"
    if unit is not None and text[:1].isdigit() and text[-1:].isalpha():
        return f"{start} in {unit.symbol}, or one with its unit, such as 10 {unit.symbol}"
    if text.lower() in ABSENT:
        return f"{start}; leave the row out, or write one"
    return start


def _convert_windows(name: str, values: pd.Series, broken: _RowFaults) -> pd.Series:
    """Return numbers of windows; times are numbered from 1, and gaps are said.

    Times become an attribute of the table, and so does the time between windows, in s, where it is regular.
    """
    timed = (
        values.map(is_time).to_numpy(bool) if values.dtype.kind not in "iuf" else np.zeros(len(values), bool)
    )
    if timed.any() and not timed.all():
        other = int(np.flatnonzero(~timed)[0])
        broken.add(
            f"{name} is no time",
            [int(values.index[other])],
            int((~timed).sum()),
            [_number_fault(name, values.iloc[other], "a time as in other rows")],
        )
        return values
    numbers, unit = values, ""
    if not timed.any():
        numbers = _convert(name, Column(kind="number", about="", rules=()), values, broken)
        if not broken.lines and (epochs := read_epochs(numbers)) is not None:
            values, unit = epochs
    if timed.any() or unit:
        try:
            windows = number_times(values)
        except UnclearTimes as error:
            broken.lines.append((0, f"{broken.where}: {name}: {error}"))
            return values
        broken.attrs["times"] = windows.times
        if windows.step_s is not None:
            broken.attrs["step_s"] = windows.step_s
        if not isinstance(values.dtype, pd.DatetimeTZDtype):
            broken.changes[name] = windows.changes
        numbers = pd.Series(windows.numbers, index=values.index)
        counted_from = (f"assumed: {name} counts {unit} since 1970, in UTC",) if unit else ()
        notes = (*counted_from, *windows.notes)
    else:
        notes = () if broken.lines else describe_numbers(np.asarray(numbers, dtype=np.float64))
    for note in notes:
        mark = next((mark for mark in ("assumed: ", "warning: ") if note.startswith(mark)), "")
        add_note(f"{mark}{broken.where}: {note.removeprefix(mark)}")
    return numbers


def _with_amounts(name: str, values: pd.Series, broken: _RowFaults) -> pd.Series:
    """Return values with amounts that have a unit, and durations, in the unit of the column; say so."""
    if values.dtype.kind == "m":
        values = values.astype(object).where(values.notna(), None)
    elif values.dtype.kind == "M" or isinstance(values.dtype, pd.DatetimeTZDtype | pd.PeriodDtype):
        return values.astype(object).where(values.notna(), None).map(_time_text)  # no number
    if values.dtype != object and not isinstance(values.dtype, pd.StringDtype | pd.CategoricalDtype):
        return values
    if isinstance(values.dtype, pd.CategoricalDtype):
        values = values.astype(object)
    read, notes = read_amounts(name, values)
    for note in notes:
        mark = "assumed: " if note.startswith("assumed: ") else ""
        add_note(f"{mark}{broken.where}: {note.removeprefix(mark)}")
    return read.map(_time_text)


def _time_text(value: object) -> object:
    """Return times and durations as texts, which are no numbers; pandas reads them as nanoseconds."""
    return str(value) if _is_time_object(value) else value


def _is_time_object(value: object) -> bool:
    kinds = datetime.date | datetime.time | datetime.timedelta | np.datetime64 | np.timedelta64 | pd.Period
    return isinstance(value, kinds) and str(value) != "NaT"


def _without_percent(values: pd.Series, divisor: int) -> pd.Series:
    """Return values with those that are written in percent, such as 50%, as numbers; others as they are.

    divisor  100 for shares, 1 for columns in percent
    """
    texts = values[values.map(lambda value: isinstance(value, str) and value.strip().endswith("%"))]
    parts = pd.to_numeric(texts.astype(str).str.strip().str.removesuffix("%"), errors="coerce").dropna()
    converted = values.astype(object)
    converted[parts.index] = parts.to_numpy(object) / divisor
    return converted


def _to_numbers(values: pd.Series) -> pd.Series:
    """Return values as numbers, NaN for those that are none, and infinity for integers beyond floats."""
    try:
        return pd.to_numeric(values, errors="coerce").astype(float)
    except OverflowError:
        return pd.to_numeric(values.astype(str), errors="coerce").astype(float)


def _convert_to_categories(name: str, values: pd.Series, broken: _RowFaults) -> pd.Series:
    """Return names as text categories; add a fault to `broken` for each that is missing or empty."""
    coded = values.astype("category")
    texts = coded.cat.categories.astype(str)
    # 1 and "1" are two categories of one text
    one_each = texts.is_unique
    coded = coded.cat.rename_categories(list(texts)) if one_each else coded.astype(str).astype("category")
    bad = values.isna() | (coded == "")
    indices, rows = _locate_first(bad)
    broken.add(f"{name} is empty", rows, int(bad.sum()), [f"{name} is empty"] * len(indices))
    return coded


def _add_broken_rules(
    name: str, column: Column, values: pd.Series, broken: _RowFaults, *, of_finite: bool
) -> None:
    """Add a fault for each value that breaks a rule, of the first that it breaks.

    of_finite  whether of the rule that numbers are finite, or of the others
    """
    is_known = values.notna().to_numpy() if column.nullable else np.ones(len(values), dtype=bool)
    for rule, test in column.rules:
        fails = ~np.asarray(test(values), dtype=bool) & is_known
        is_known = is_known & ~fails
        if (rule == FINITE) != of_finite or not fails.any():
            continue
        positions, rows = _locate_first(pd.Series(fails, index=values.index))
        cells = [values.iloc[position] for position in positions]
        texts = [
            f"{name} is {_value(cell)}, {rule}{_unlimited(cell, column) or _nearest_word(cell, column)}"
            for cell in cells
        ]
        broken.add(f"{name} {rule}", rows, int(fails.sum()), texts)


def _unlimited(value: object, column: Column) -> str:
    """Return advice in place of infinity, or of a word for it; "" for other values."""
    is_infinite = isinstance(value, float) and value == np.inf
    if not (is_infinite or (isinstance(value, str) and is_unlimited(value))):
        return ""
    largest = column.at_most
    return f"; for no limit write {'a large one, such as 1e9' if largest is None else f'{largest:g}'}"


def _nearest_word(value: object, column: Column) -> str:
    """Return the word of a choice that a value may be a misspelling of; "" for none."""
    if not isinstance(value, str) or not column.spellings:
        return ""
    hint = did_you_mean(value, set(column.spellings.values()))
    return "" if hint.startswith("; valid") else hint


def _add_repeated_keys(table: Table, frame: pd.DataFrame, broken: _RowFaults) -> None:
    key = table.key_in(frame)
    if not key or (table.compact and _all_rows_differ(frame[key])):
        return
    again = frame.duplicated(key)
    indices, rows = _locate_first(again)
    texts = []
    for index in indices:
        same = (frame[key] == frame[key].iloc[index]).all(axis=1).to_numpy()
        first = broken.first_row + int(frame.index[np.flatnonzero(same)[0]])
        values = ", ".join(f"{name} '{abbreviate(frame[name].iloc[index])}'" for name in key)
        hint = f"; {table.key_hint}" if table.key_hint and len(key) < len(table.key) else ""
        if any(frame[name].iloc[index] in windows for name, windows in broken.changes.items() if name in key):
            hint += (
                "; where this is the hour that comes twice as daylight-saving time ends, write times in UTC"
            )
        texts.append(f"{values} is there already in row {first}{hint}")
    broken.add(f"{', '.join(key)} is there already", rows, int(again.sum()), texts)


def _all_rows_differ(frame: pd.DataFrame) -> bool:
    """Return whether all rows of names and numbers differ; sorts one number per row, for little memory."""
    code = np.zeros(len(frame), dtype=np.int64)
    for name in frame:
        values = frame[name]
        if isinstance(values.dtype, pd.CategoricalDtype):
            codes, count = values.cat.codes.to_numpy(), len(values.cat.categories)
        else:
            codes, unique = pd.factorize(values)
            count = len(unique)
        code *= count
        code += codes
    code.sort()
    return not bool((code[1:] == code[:-1]).any())


def _locate_first(bad: pd.Series) -> tuple[list[int], list[int]]:
    """Return the positions of the first bad values, and their rows in the file."""
    indices = np.flatnonzero(bad.to_numpy())[:SHOWN_ROWS].tolist()
    return indices, [int(bad.index[index]) for index in indices]


def _value(value: object) -> str:
    return f"'{abbreviate(value)}'" if isinstance(value, str) and not _is_number(value) else str(value)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def abbreviate(value: object) -> str:
    """Return a value as text of at most 60 characters."""
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def shorten_faults(faults: Sequence[str], where: str, what: str, *, count: int | None = None) -> list[str]:
    """Return the first errors, and one line that counts the others: `links.csv: 7 more rows <error>`.

    Each error is listed once; a row of a matrix is several rows of a table.

    count  number of all faults, where `faults` has only the first; default: the length of `faults`
    """
    faults = list(dict.fromkeys(faults))
    remaining = (len(faults) if count is None else count) - SHOWN_ROWS
    return [*faults[:SHOWN_ROWS], *([f"{where}: {remaining} more rows {what}"] if remaining > 0 else [])]


def describe_rows(
    rows: Sequence[int] | NDArray[np.int64], describe: Callable[[int], str], where: str, what: str
) -> list[str]:
    """Return the faults of the first rows, and one line that counts the rest.

    describe  returns the fault of a row; it may be slow, such as a search for the nearest name
    """
    shown = [describe(int(row)) for row in rows[:SHOWN_ROWS]]
    return shorten_faults(shown, where, what, count=len(rows))


def row_name(frame: pd.DataFrame, table: str, row: int) -> str:
    """Return the name of a row in faults: `links.csv row 17`, or `links row 16` without a file."""
    return f"{file_name(frame, table)} row {frame.attrs.get('first_row', 1) + int(frame.index[row])}"


def file_name(frame: pd.DataFrame, table: str) -> str:
    """Return the name of a table in faults: the file it came from, else the table's name."""
    return str(frame.attrs.get("where", table))


DIGEST_ROWS: Final = 1 << 20  # rows that are hashed at a time, to save memory


def digest(tables: Mapping[str, pd.DataFrame]) -> str:
    """Return a hash of the contents of tables, 16 hexadecimal digits, equal on any machine."""
    sha = hashlib.sha256()
    for name in sorted(tables):
        frame = tables[name]
        sha.update(f"{name}:{len(frame)}\n".encode())
        for column in frame.columns:
            sha.update(f"{column}\n".encode())
            for start in range(0, len(frame), DIGEST_ROWS):
                sha.update(b"\0" if start else b"")
                sha.update(_bytes_of(frame[column].iloc[start : start + DIGEST_ROWS]))
    return sha.hexdigest()[:16]


def _bytes_of(values: pd.Series) -> bytes:
    if pd.api.types.is_numeric_dtype(values):
        return np.ascontiguousarray(values.to_numpy(dtype="<f8", na_value=np.nan)).tobytes()
    items: list[Any] = values.astype(object).where(values.notna(), None).tolist()
    return "\0".join("" if item is None else str(item) for item in items).encode()
