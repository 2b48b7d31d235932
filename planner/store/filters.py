"""Filters of stored runs: `system = traffic and problem.scale >= 2 and max_utilization < 1`.

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
from typing import Any, Final, NoReturn

from planner.errors import InputError

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
