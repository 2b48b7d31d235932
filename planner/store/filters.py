"""Filters of stored runs, and the columns that they name: columns of runs, metrics and settings.

An example is `system = traffic and problem.scale >= 2 and max_utilization < 1`.

    filter      name = value, != < <= > >=; `name like 'text%'`; `name in (1, 2)`; `name is none`;
                `and`, `or`, `not` and parentheses
    name        a column of a run, a metric, or a dotted key of a setting, e.g. problem.scale
    value       a number, text in quotes or as a bare word, true, false

A comparison with an unknown value is false. Values are bound as parameters of the SQL statement, and names
are looked up: no text of a filter becomes part of the SQL.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, NoReturn

from planner.errors import InputError, did_you_mean
from planner.store.database import Database
from planner.store.record import COLUMNS, REQUIRED_COLUMNS, column_of

Kind = Literal["run", "metric", "setting"]
TOKEN: Final = re.compile(
    r"""\s*(?:
        (?P<text>'(?:[^']|'')*'|"[^"]*")
      | (?P<number>[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?(?![\w.:/+-]))
      | (?P<sign><=|>=|==|!=|<>|=|<|>)
      | (?P<mark>[(),])
      | (?P<word>[^\s()<>=!,'"]+)
    )""",
    re.VERBOSE,
)
MAX_DEPTH: Final = 50  # of nested parentheses; SQLite and Python have limits


class ColumnIndex:
    """Names of the columns of a store's runs; metrics and settings are stored by number."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._numbers: dict[tuple[str, str], int] = {}

    def metrics(self) -> list[str]:
        """Return the columns of metrics, in the order of their first use; see `column_of`."""
        return [column_of(name) for name in self._names_of_kind("metric")]

    def settings(self) -> list[str]:
        """Return the dotted keys of settings, in the order of their first use."""
        return self._names_of_kind("setting")

    def names(self) -> list[str]:
        """Return every name that a filter or a chart may use."""
        return [*COLUMNS, *self.settings(), *self.metrics()]

    def find_column(self, name: str) -> tuple[Kind, Any]:
        """Return ("run", column), ("metric", number) or ("setting", number); raise InputError for others."""
        if name in COLUMNS:
            return "run", name
        metric = name.removeprefix("metric.")
        stored = metric if column_of(metric) == name else name
        rows = self._database.fetch("SELECT kind, id FROM names WHERE name = ? ORDER BY kind", (stored,))
        if not rows:
            raise InputError(f"no such column '{name}'" + did_you_mean(name, self.names()))
        kind, number = rows[0]
        return kind, number

    def require_column(self, name: str, option: str) -> tuple[Kind, Any]:
        """Return as `find_column`; the error names the option that has the name."""
        try:
            return self.find_column(name)
        except InputError as error:
            raise InputError(f"{option}: {error}") from None

    def parse_condition(self, where: str | None) -> Condition:
        """Return the condition of a filter; that of None is true for every run."""
        return Condition(sql="1") if where is None else parse_filter(where, self._sql_column)

    def order_clause(self, sort: str) -> str:
        """Return the SQL that orders by a column; a minus before its name puts the largest first."""
        kind, column = self.require_column(sort.removeprefix("-"), "--sort")
        direction = "DESC" if sort.startswith("-") else "ASC"
        if kind == "run":
            value = f"runs.{column}"
        else:
            value = f"(SELECT value FROM {kind}s WHERE name = {int(column)} AND run = runs.id)"
        return f"{value} {direction} NULLS LAST, runs.id"

    def number_of(self, kind: str, name: str) -> int:
        """Return the number of a metric or setting, and add it where it is new; only the writer may."""
        if (kind, name) not in self._numbers:
            execute = self._database.execute
            execute("INSERT OR IGNORE INTO names (kind, name) VALUES (?, ?)", (kind, name))
            row = execute("SELECT id FROM names WHERE kind = ? AND name = ?", (kind, name))
            self._numbers[kind, name] = int(row.fetchone()[0])
        return self._numbers[kind, name]

    def clear_numbers(self) -> None:
        """Clear the cache of numbers: the transaction that added them was rolled back."""
        self._numbers.clear()

    def _names_of_kind(self, kind: Kind) -> list[str]:
        rows = self._database.fetch("SELECT name FROM names WHERE kind = ? ORDER BY id", (kind,))
        return [row[0] for row in rows]

    def _sql_column(self, name: str) -> Column:
        kind, number = self.find_column(name)
        if kind != "run":
            having = f"SELECT run FROM {kind}s WHERE name = ?"
            return Column(
                comparison=f"runs.id IN ({having} AND value {{}})",
                values=(number,),
                is_unknown=f"runs.id NOT IN ({having})",
            )
        if name in REQUIRED_COLUMNS:
            return Column(comparison=f"runs.{name} {{}}", is_unknown="0")
        return Column(
            comparison=f"(runs.{name} IS NOT NULL AND runs.{name} {{}})", is_unknown=f"runs.{name} IS NULL"
        )


@dataclass(frozen=True, kw_only=True)
class Condition:
    """A piece of SQL that is true or false, never unknown, and its values."""

    sql: str
    values: tuple[Any, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Column:
    """SQL that compares a column: `{}` stands for `OPERATOR ?`, `values` are bound before that value."""

    comparison: str
    values: tuple[Any, ...] = ()
    is_unknown: str = ""  # SQL that is true where the value is unknown, with the same values


def parse_filter(text: str, find_column: Callable[[str], Column]) -> Condition:
    """Return the condition of a filter.

    find_column  returns the column of a name; raises InputError for an unknown one
    raises       InputError of one line, with the position
    """
    return _Parser(text, find_column).parse()


class _Parser:
    def __init__(self, text: str, find_column: Callable[[str], Column]) -> None:
        self.text, self.find_column = text, find_column
        self.tokens: list[tuple[str, str, int]] = []
        position = 0
        end = len(text.rstrip())
        while position < end:
            match = TOKEN.match(text, position)
            if match is None:
                remaining = text[position:end].strip()
                raise InputError(
                    f"--where: at character {text.index(remaining, position) + 1}: cannot read {remaining}"
                )
            kind = str(match.lastgroup)
            self.tokens.append((kind, match[kind], match.start(kind)))
            position = match.end()
        self.next = 0
        self.depth = 0

    def parse(self) -> Condition:
        if not self.tokens:
            raise InputError("--where: is empty, must be such as: system = traffic and gap < 0.01")
        condition = self._disjunction()
        if self.next < len(self.tokens):
            self._fail(f"'{self.tokens[self.next][1]}' is one too many; 'and' or 'or' is missing")
        return condition

    def _disjunction(self) -> Condition:
        parts = [self._conjunction()]
        while self._accept_word("or"):
            parts.append(self._conjunction())
        return _join(parts, " OR ")

    def _conjunction(self) -> Condition:
        parts = [self._factor()]
        while self._accept_word("and"):
            parts.append(self._factor())
        return _join(parts, " AND ")

    def _factor(self) -> Condition:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self._fail(f"more than {MAX_DEPTH} nested parentheses")
        try:
            if self._accept_word("not"):
                inner = self._factor()
                return Condition(sql=f"NOT ({inner.sql})", values=inner.values)
            if self._accept_mark("("):
                inner = self._disjunction()
                if not self._accept_mark(")"):
                    self._fail("')' is missing")
                return Condition(sql=f"({inner.sql})", values=inner.values)
            return self._comparison()
        finally:
            self.depth -= 1

    def _comparison(self) -> Condition:
        kind, name, _ = self._next_token("the name of a column")
        if kind != "word":
            self._fail(f"'{name}' is no name of a column", back=1)
        try:
            column = self.find_column(name)
        except InputError as error:
            self._fail(str(error), back=1)
        if self._accept_word("is"):
            negated = self._accept_word("not")
            if not (self._accept_word("none") or self._accept_word("null")):
                self._fail("'is' needs none or not none")
            return Condition(sql=f"{'NOT ' * negated}({column.is_unknown})", values=column.values)
        negated = self._accept_word("not")
        if self._accept_word("in"):
            values = self._list()
            marks = ", ".join("?" * len(values))
            return _negate(negated, column.comparison.format(f"IN ({marks})"), (*column.values, *values))
        if self._accept_word("like"):
            return _negate(negated, column.comparison.format("LIKE ?"), (*column.values, str(self._value())))
        if negated:
            self._fail("'not' after a name needs in or like")
        kind, sign, _ = self._next_token("= != < <= > >= in like is")
        if kind != "sign":
            self._fail(f"after {name} must come = != < <= > >= in like is, not '{sign}'", back=1)
        sign = {"==": "=", "<>": "!="}.get(sign, sign)
        return Condition(sql=column.comparison.format(f"{sign} ?"), values=(*column.values, self._value()))

    def _list(self) -> list[Any]:
        if not self._accept_mark("("):
            self._fail("'in' needs values in parentheses")
        values = [self._value()]
        while self._accept_mark(","):
            values.append(self._value())
        if not self._accept_mark(")"):
            self._fail("')' is missing")
        return values

    def _value(self) -> Any:
        kind, text, _ = self._next_token("a value")
        if kind == "number":
            is_integer = re.fullmatch(r"[-+]?\d{1,18}", text)
            return int(text) if is_integer else float(text)
        if kind == "text":
            return text[1:-1].replace("''", "'") if text[0] == "'" else text[1:-1]
        if kind != "word":
            self._fail(f"'{text}' is no value", back=1)
        if text.lower() in ("none", "null"):
            self._fail("write 'is none' or 'is not none'", back=1)
        return text

    # --- tokens ---------------------------------------------------------------------------

    def _next_token(self, expected: str) -> tuple[str, str, int]:
        if self.next >= len(self.tokens):
            self._fail(f"ends where {expected} must come")
        self.next += 1
        return self.tokens[self.next - 1]

    def _accept_word(self, word: str) -> bool:
        return self._accept("word", word)

    def _accept_mark(self, mark: str) -> bool:
        return self._accept("mark", mark)

    def _accept(self, kind: str, text: str) -> bool:
        if self.next < len(self.tokens):
            token = self.tokens[self.next]
            if token[0] == kind and token[1].lower() == text:
                self.next += 1
                return True
        return False

    def _fail(self, reason: str, back: int = 0) -> NoReturn:
        index = self.next - back
        position = self.tokens[index][2] if index < len(self.tokens) else len(self.text)
        raise InputError(f"--where: at character {position + 1}: {reason}")


def _negate(negated: bool, sql: str, values: tuple[Any, ...]) -> Condition:
    return Condition(sql=f"NOT ({sql})" if negated else sql, values=values)


def _join(parts: list[Condition], word: str) -> Condition:
    if len(parts) == 1:
        return parts[0]
    sql = word.join(f"({interval.sql})" for interval in parts)
    return Condition(sql=sql, values=tuple(value for interval in parts for value in interval.values))
