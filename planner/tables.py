"""What tables must hold, declared once, in pandera; their checks, and the digest of what they hold.

Every fault of every table is found before anything is refused, each as one line that names the
file, the row, the column, the value and the rule. Rows are counted as a spreadsheet does: the
header of a CSV file is row 1; Parquet files and frames have no header, their first row is row 1.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
import pandera.pandas as pa

from planner.errors import InputError, did_you_mean

SHOWN_ROWS: Final = 5  # of one rule broken over and over, the rows that are spelled out


@dataclass(frozen=True, kw_only=True)
class Table:
    """One table of a system: its name, what a row is, and its columns with their rules.

    compact  columns of names are kept as categories, for tables of many rows with few names
    """

    name: str
    about: str
    columns: Mapping[str, pa.Column]
    key: tuple[str, ...] = ()  # columns whose values together may occur once
    may_be_empty: bool = False
    compact: bool = False

    @property
    def required(self) -> list[str]:
        return [name for name, column in self.columns.items() if column.required]

    def signature(self) -> str:
        """`links(tail, head, capacity_mbps, weight?)`: a question mark for optional columns."""
        marks = [name + ("" if column.required else "?") for name, column in self.columns.items()]
        return f"{self.name}({', '.join(marks)})"


def label(about: str) -> pa.Column:
    """A column of names: any text that is not empty; numbers are kept as they are written."""
    return pa.Column(str, pa.Check(lambda s: s != "", error="must not be empty"), description=about)


def number(
    about: str,
    *,
    more_than: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    optional: bool = False,
    default: float | None = None,
) -> pa.Column:
    """A column of finite numbers. Where it is optional and absent, it is filled with `default`."""
    checks = [pa.Check(np.isfinite, error="must be a finite number")]
    if more_than is not None:
        checks.append(pa.Check.gt(more_than, error=f"must be greater than {more_than:g}"))
    if at_least is not None:
        checks.append(pa.Check.ge(at_least, error=f"must be at least {at_least:g}"))
    if at_most is not None:
        checks.append(pa.Check.le(at_most, error=f"must be at most {at_most:g}"))
    return pa.Column(float, checks, required=not optional, default=default, description=about)


def validate(
    table: Table, frame: pd.DataFrame, *, where: str | None = None, first_row: int = 1
) -> pd.DataFrame:
    """`frame` with the table's columns, types and defaults; InputError with every fault.

    Rows keep their index, which counts from 0 for the first, so that later faults can name them.

    where      what the faults call the table, e.g. its file name; default: the table's name
    first_row  the number of the first data row in the faults
    """
    frame, faults = _validated(table, frame.dropna(how="all"), where or table.name, first_row)
    if faults:
        raise InputError(*faults)
    return frame


def adopt(problem: object, tables: Iterable[Table]) -> list[str]:
    """Put the validated frame in place of each frame that a frozen dataclass holds by a table's name.

    For `__post_init__`; returns the faults of all. A field that is None is a table left out.
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


def strangers(frame: pd.DataFrame, table: str, column: str, known: Collection[str], what: str) -> list[str]:
    """A fault for each row whose name in `column` is not known: `... is no node of the network`."""
    unknown = np.flatnonzero(~frame[column].isin(known).to_numpy()).tolist()
    faults = [
        f"{row_name(frame, table, row)}: {column} '{frame[column].iloc[row]}' is {what}"
        + did_you_mean(str(frame[column].iloc[row]), known)
        for row in unknown[:SHOWN_ROWS]  # the search for a near name is slow among many
    ]
    return few(faults, file_name(frame, table), f"with an unknown {column}", count=len(unknown))


def _validated(
    table: Table, frame: pd.DataFrame, where: str, first_row: int
) -> tuple[pd.DataFrame, list[str]]:
    faults = list(_column_faults(table, frame, where))
    if faults:
        return frame, faults
    if frame.empty and not table.may_be_empty:
        return frame, [f"{where}: holds no rows"]
    broken = _Broken(where, first_row)
    columns: dict[str, pd.Series[Any]] = {}
    for name, column in table.columns.items():
        if name in frame:
            if table.compact and is_label(column):
                columns[name] = _categories(name, frame[name], broken)
            else:
                columns[name] = _coerced(name, column, frame[name], broken)
        elif column.default is not None:
            columns[name] = pd.Series(column.default, index=frame.index, dtype=float)
    frame = pd.DataFrame(columns, index=frame.index)
    if not broken.lines:  # else the rules would only repeat what is wrong with a number that is none
        _check_rules(table, frame, broken)
    if not broken.lines and table.key:
        _add_repetitions(table, frame, broken)
    return frame, broken.faults()


def _check_rules(table: Table, frame: pd.DataFrame, broken: _Broken) -> None:
    """Add what breaks a rule of its column; columns are of their types by now, categories are checked."""
    checked = [name for name in map(str, frame) if not isinstance(frame[name].dtype, pd.CategoricalDtype)]
    if frame.empty or all(_holds(table.columns[name], frame[name]) for name in checked):
        return
    schema = pa.DataFrameSchema({name: table.columns[name] for name in checked})
    try:
        schema.validate(frame[checked], lazy=True)
    except pa.errors.SchemaErrors as error:
        _add_rules(error.failure_cases, broken)


def _holds(column: pa.Column, values: pd.Series) -> bool:
    """Whether each value keeps every rule. A schema would tell which do not, in several times the time."""
    return not values.hasnans and all(check(values).check_passed for check in column.checks)


class _Broken:
    """Rules broken by rows, in the order of the rows; of one rule only the first few rows."""

    def __init__(self, where: str, first_row: int) -> None:
        self.where, self.first_row = where, first_row
        self.lines: list[tuple[int, str]] = []
        self.more: list[str] = []

    def add(self, rule: str, rows: Sequence[int], count: int, texts: Iterable[str]) -> None:
        for row, text in zip(rows, texts, strict=True):
            self.lines.append((row, f"{self.where} row {self.first_row + row}: {text}"))
        if count > len(rows):
            self.more.append(f"{self.where}: {count - len(rows)} more rows where {rule}")

    def faults(self) -> list[str]:
        return [text for _, text in sorted(self.lines)] + self.more


def _column_faults(table: Table, frame: pd.DataFrame, where: str) -> Iterator[str]:
    found = [str(name) for name in frame.columns]
    if len(found) == 1 and any(mark in found[0] for mark in ";\t|"):
        yield f"{where}: has the one column '{short(found[0])}': columns must be separated by commas"
        return
    for name in table.required:
        if name not in found:
            strangers = [other for other in found if other not in table.columns]
            near = did_you_mean(name, strangers).replace("did you mean", "is it called")
            has = ", ".join(short(other) for other in found[:12]) or "no columns"
            yield f"{where}: column '{name}' is missing" + (near if "'" in near else f" (it has {has})")
    for name in found:
        if name not in table.columns:
            yield f"{where}: unknown column '{short(name)}'" + did_you_mean(name, table.columns)


def _coerced(name: str, column: pa.Column, values: pd.Series, broken: _Broken) -> pd.Series:
    """`values` in the column's type; a value that has no place in it is added to `broken`."""
    missing = values.isna()
    if is_label(column):
        bad, rule = missing, f"{name} is empty"
        coerced: pd.Series[Any] = values.astype(str)
    elif isinstance(values.dtype, np.dtype) and values.dtype.kind in "iuf":
        coerced = values.astype(float)
        bad, rule = missing, f"{name} is empty or no number"
    else:
        text = values.astype(str) if values.dtype == bool else values
        coerced = pd.to_numeric(text, errors="coerce").astype(float)
        # "nan" is read as a number here; the rule that numbers are finite refuses it
        is_nan = text.astype(str).str.strip().str.lower() == "nan"
        bad = missing | (coerced.isna() & ~is_nan)
        rule = f"{name} is empty or no number"
    places, rows = _first(bad)
    broken.add(
        rule,
        rows,
        int(bad.sum()),
        (
            f"{name} is empty"
            if missing.iloc[place]
            else f"{name} is '{short(values.iloc[place])}', must be a number"
            for place in places
        ),
    )
    return coerced


def _categories(name: str, values: pd.Series, broken: _Broken) -> pd.Series:
    """Names as categories, each of them text; one that is missing or empty is added to `broken`."""
    coded = values.astype("category")
    texts = coded.cat.categories.astype(str)
    # 1 and "1" are two categories of one text
    one_each = texts.is_unique
    coded = coded.cat.rename_categories(list(texts)) if one_each else coded.astype(str).astype("category")
    bad = values.isna() | (coded == "")
    places, rows = _first(bad)
    broken.add(f"{name} is empty", rows, int(bad.sum()), [f"{name} is empty"] * len(places))
    return coded


def is_label(column: pa.Column) -> bool:
    """Whether it is a column of names."""
    return "str" in str(column.dtype)


def _add_rules(cases: pd.DataFrame, broken: _Broken) -> None:
    # one line a value: a value that is no finite number breaks every other rule too
    cases = cases.assign(check=cases["check"].replace("not_nullable", "must be a finite number"))
    cases = cases.sort_values("check", key=lambda rule: rule != "must be a finite number", kind="stable")
    cases = cases.drop_duplicates(["column", "index"])
    for (name, rule), group in cases.groupby(["column", "check"], sort=False):
        shown = group.head(SHOWN_ROWS)
        broken.add(
            f"{name} {rule}",
            [int(row) for row in shown["index"]],
            len(group),
            (f"{name} is {_value(value)}, {rule}" for value in shown["failure_case"]),
        )


def _add_repetitions(table: Table, frame: pd.DataFrame, broken: _Broken) -> None:
    key = list(table.key)
    if table.compact and _differ(frame[key]):
        return
    again = frame.duplicated(key)
    places, rows = _first(again)
    texts = []
    for place in places:
        same = (frame[key] == frame[key].iloc[place]).all(axis=1).to_numpy()
        first = broken.first_row + int(frame.index[np.flatnonzero(same)[0]])
        values = ", ".join(f"{name} '{short(frame[name].iloc[place])}'" for name in key)
        texts.append(f"{values} is there already in row {first}")
    broken.add(f"{', '.join(key)} is there already", rows, int(again.sum()), texts)


def _differ(frame: pd.DataFrame) -> bool:
    """Whether all rows of categories differ: by sorting one number a row, which needs little memory."""
    code = np.zeros(len(frame), dtype=np.int64)
    for name in frame:
        code *= len(frame[name].cat.categories)
        code += frame[name].cat.codes.to_numpy()
    code.sort()
    return not bool((code[1:] == code[:-1]).any())


def _first(bad: pd.Series) -> tuple[list[int], list[int]]:
    """The first places that are bad, and their rows in the file."""
    places = np.flatnonzero(bad.to_numpy())[:SHOWN_ROWS].tolist()
    return places, [int(bad.index[place]) for place in places]


def _value(value: object) -> str:
    return f"'{short(value)}'" if isinstance(value, str) and not _is_number(value) else str(value)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def short(value: object) -> str:
    """A value as faults spell it out: its first 60 characters."""
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def few(faults: Sequence[str], where: str, what: str, *, count: int | None = None) -> list[str]:
    """The first faults, and one line that counts the rest: `links.csv: 7 more rows <what>`.

    count  how many there are, where only the first are spelled out; default: as many as given
    """
    rest = (len(faults) if count is None else count) - SHOWN_ROWS
    return [*faults[:SHOWN_ROWS], *([f"{where}: {rest} more rows {what}"] if rest > 0 else [])]


def row_name(frame: pd.DataFrame, table: str, row: int) -> str:
    """What faults call a row: `links.csv row 17`, or `links row 16` where the frame came from no file."""
    return f"{file_name(frame, table)} row {frame.attrs.get('first_row', 1) + int(frame.index[row])}"


def file_name(frame: pd.DataFrame, table: str) -> str:
    """What faults call a table: the file it came from, else its name."""
    return str(frame.attrs.get("where", table))


DIGEST_ROWS: Final = 1 << 20  # hashed at a time, so that long tables need little memory


def digest(tables: Mapping[str, pd.DataFrame]) -> str:
    """A short name of the tables' contents: equal contents, equal digest, on any machine."""
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
