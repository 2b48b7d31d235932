"""Tables as systems declare them: columns of names, numbers and windows, with the rules of their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

MAX_WINDOW: Final = 1e15
"""Largest number of a window; seconds and milliseconds since 1970 are below it."""
MIN_AMOUNT: Final = 1e-200
"""Smallest number above 0 in a table: the reciprocal of a smaller one, times an amount, may overflow."""
WINDOW: Final = "window"
"""Our name of the column of windows in tables over time."""
Rule = tuple[str, Callable[[Any], Any]]
"""Message where a value breaks a rule, and the test of an array or a series, value by value."""
FINITE: Final = "must be a finite number"
FEW_VALUES: Final = 300
"""Texts that Python compares faster than pandas."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a table, with the rules of its values.

    kind      what its values are: names, numbers, or windows (numbers, or times that are numbered)
    about     what it means
    rules     messages and tests; each value must pass all tests, blank ones aside
    required  whether a table must have it
    nullable  whether cells may be blank: "" for names, NaN for numbers
    default   number where a column is absent; None: it stays absent

    The rest is explained at `number`.
    """

    kind: Literal["text", "number", "window"]
    about: str
    rules: tuple[Rule, ...]
    required: bool = True
    nullable: bool = False
    default: float | None = None
    at_most: float | None = None
    usual: tuple[float, float] | None = None
    confused_with: str | None = None
    share: bool = False
    other_names: tuple[str, ...] = ()
    counts_by_1024: bool = False
    of_requests: bool = False
    mistaken_for: str | None = None
    when_absent: str | None = None
    spellings: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_label(self) -> bool:
        """Whether it holds names."""
        return self.kind == "text"

    def satisfied(self, values: Any) -> bool:
        """Return whether all values of an array, none of them blank, pass all tests."""
        return all(bool(test(values).all()) for _, test in self.rules)


def _is_not_empty(texts: Any) -> Any:
    """Return whether each text of an array or a series is not empty; of few, Python tells it faster."""
    if len(texts) > FEW_VALUES:
        return texts != ""
    return np.array([text != "" for text in texts.tolist()], dtype=bool)


def label(
    about: str, *, optional: bool = False, may_be_blank: bool = False, other_names: Sequence[str] = ()
) -> Column:
    """Return a column of names: text that is not empty; numbers are kept as text, as written.

    may_be_blank  whether a cell may be empty, which is read as ""
    other_names   names of such a column in other tools; case and punctuation do not matter
    """
    rules: list[Rule] = [] if may_be_blank else [("must not be empty", _is_not_empty)]
    return Column(
        kind="text",
        about=about,
        rules=tuple(rules),
        required=not optional,
        nullable=may_be_blank,
        other_names=tuple(other_names),
    )


def window(about: str, *, at_most: float = MAX_WINDOW, other_names: Sequence[str] = ()) -> Column:
    """Return a column of windows: whole numbers in any step, or dates and times, which are numbered from 1.

    other_names  names of such a column in other tools; case and punctuation do not matter
    """
    rules: list[Rule] = [
        (FINITE, np.isfinite),
        ("must be at least 0", lambda s: s >= 0),
        (f"must be at most {at_most:g}", lambda s: s <= at_most),
        ("must be a whole number", lambda s: np.floor(s) == s),
    ]
    return Column(kind="window", about=about, rules=tuple(rules), other_names=tuple(other_names))


def choice(
    about: str,
    values: Sequence[str],
    *,
    optional: bool = False,
    may_be_blank: bool = False,
    other_names: Sequence[str] = (),
    other_words: Mapping[str, Sequence[str]] | None = None,
) -> Column:
    """Return a column of text that holds one of the given words.

    other_names   names of such a column in other tools; case and punctuation do not matter
    other_words   words of other tools by the word that they mean, which files may have; case does not matter
    may_be_blank  whether a cell may be empty too, which is read as ""
    """
    allowed = {*values, ""} if may_be_blank else set(values)
    rule = "must be one of " + ", ".join(values) + (", or blank" if may_be_blank else "")
    rules: tuple[Rule, ...] = ((rule, lambda s: s.isin(allowed)),)
    spellings = {value.lower(): value for value in values}
    for value, words in (other_words or {}).items():
        spellings |= {word.lower(): value for word in words if word.lower() not in spellings}
    return Column(
        kind="text",
        about=about,
        rules=rules,
        required=not optional,
        nullable=may_be_blank,
        other_names=tuple(other_names),
        spellings=spellings,
    )


def number(
    about: str,
    *,
    more_than: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    least: float = MIN_AMOUNT,
    whole: bool = False,
    optional: bool = False,
    may_be_blank: bool = False,
    default: float | None = None,
    usual: tuple[float, float] | None = None,
    confused_with: str | None = None,
    share: bool = False,
    other_names: Sequence[str] = (),
    counts_by_1024: bool = False,
    of_requests: bool = False,
    mistaken_for: str | None = None,
    when_absent: str | None = None,
) -> Column:
    """Return a column of finite numbers; an optional column that is absent is filled with `default`.

    least  of the numbers above 0; smaller ones have no meaning, and their ratios may overflow
    whole  whether numbers must be whole
    may_be_blank  whether a cell may be empty, which is read as NaN
    usual  range of the median; another one is said, as it may be of another unit
    confused_with  column that users take for this one, such as the longitude for the latitude
    share  whether numbers are shares of something, which may be written in percent: 50% is read as 0.5
    other_names  names of such a column in other tools, without unit; case and punctuation do not matter
    counts_by_1024  whether a TB is 1,024 GB in this column, as in price lists
    of_requests  whether numbers are prices of one request, which price lists have of a thousand or a million
    mistaken_for  column that other tools call by this name; a file without that column is asked about
    when_absent  what the default means, which is said of a file without the column
    """
    rules: list[Rule] = [(FINITE, np.isfinite)]
    if more_than is not None:
        rules.append((f"must be greater than {more_than:g}", lambda s: s > more_than))
    if at_least is not None:
        rules.append((f"must be at least {at_least:g}", lambda s: s >= at_least))
    if at_most is not None:
        rules.append((f"must be at most {at_most:g}", lambda s: s <= at_most))
    rule = f"must be at least {least:g}" if at_least is None else f"must be 0 or at least {least:g}"
    rules.append((rule, lambda s: (s <= 0) | (s >= least)))
    if whole:
        rules.append(("must be a whole number", lambda s: np.floor(s) == s))
    return Column(
        kind="number",
        about=about,
        rules=tuple(rules),
        required=not optional,
        nullable=may_be_blank,
        default=None if may_be_blank else default,
        at_most=at_most,
        usual=usual,
        confused_with=confused_with,
        share=share,
        other_names=tuple(other_names),
        counts_by_1024=counts_by_1024,
        of_requests=of_requests,
        mistaken_for=mistaken_for,
        when_absent=when_absent,
    )


@dataclass(frozen=True, kw_only=True, eq=False)  # equal is the same: functions of tables keep results by it
class Table:
    """One table of a system: its name, the meaning of a row, and its columns with their rules.

    key      columns with values that, together, may occur only once; optional ones, where they are there
    compact  columns of names are stored as categories, for tables of many rows with few names
    key_hint  how to tell rows apart whose keys are the same, where an optional column of the key is absent
    not_modelled  what a column of such a name would need, which the system does not model, by the name; case
              and punctuation do not matter
    other_names  names of such files and sheets elsewhere; case, punctuation and a plural s do not matter
    divisible  amounts of a row that several rows may have together, equal in the other columns: the optimum
              is the same. The conformance tests divide rows and compare answers
    part_column  optional column of the key that tells such rows apart; "" where they may be equal
    """

    name: str
    about: str
    columns: Mapping[str, Column]
    key: tuple[str, ...] = ()
    may_be_empty: bool = False
    compact: bool = False
    key_hint: str = ""
    not_modelled: Mapping[str, str] = field(default_factory=dict)
    other_names: tuple[str, ...] = ()
    divisible: tuple[str, ...] = ()
    part_column: str = ""

    def over_time(self) -> Table:
        """Return the table with a window in each row, which tells rows with the same key apart."""
        column = window("window of the row: a number, or a date and time")
        return replace(
            self,
            columns={WINDOW: column, **self.columns},
            key=(WINDOW, *self.key),
            key_hint="",
            part_column="",
        )

    @property
    def required_columns(self) -> list[str]:
        return [name for name, column in self.columns.items() if column.required]

    def key_in(self, frame: pd.DataFrame) -> list[str]:
        """Return the columns of the key that a table has; optional ones may be absent."""
        return [name for name in self.key if name in frame]

    def signature(self) -> str:
        """Return `links(tail, head, capacity_mbps, weight?)`, with a question mark after optional columns."""
        marks = [name + ("" if column.required else "?") for name, column in self.columns.items()]
        return f"{self.name}({', '.join(marks)})"
