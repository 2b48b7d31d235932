"""Filters of stored runs: `system = traffic and problem.scale >= 2 and max_utilization < 1`.

    filter      name = value, != < <= > >=; `name like 'text%'`; `name in (1, 2)`; `name is none`;
                `and`, `or`, `not` and parentheses
    name        a column of a run, a metric, or a dotted key of what was asked, e.g. problem.scale
    value       a number, text in quotes or as a bare word, true, false

A comparison with an unknown value does not hold. Every value is handed to SQLite apart from the
statement, and every name is looked up: no text of a filter becomes part of the SQL.
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
      | (?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.:/+-]))
      | (?P<sign><=|>=|==|!=|<>|=|<|>)
      | (?P<mark>[(),])
      | (?P<word>[^\s()<>=!,'"]+)
    )""",
    re.VERBOSE,
)
DEEPEST: Final = 50  # parentheses within each other; SQLite has a limit, and so has Python


@dataclass(frozen=True, kw_only=True)
class Condition:
    """A piece of SQL that is true or false, never unknown, and its values."""

    sql: str
    values: tuple[Any, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Column:
    """Where a name is found: SQL with `{}` for `value OPERATOR ?`, and values that come before those."""

    test: str
    values: tuple[Any, ...] = ()
    unknown: str = ""  # SQL that is true where the value is unknown; its values are the same


def parse(text: str, find: Callable[[str], Column]) -> Condition:
    """The condition that a filter states.

    find    the column of a name; raises InputError for one that there is not
    raises  InputError, one line, with the place
    """
    return _Parser(text, find).whole()


class _Parser:
    def __init__(self, text: str, find: Callable[[str], Column]) -> None:
        self.text, self.find = text, find
        self.tokens: list[tuple[str, str, int]] = []
        place = 0
        end = len(text.rstrip())
        while place < end:
            match = TOKEN.match(text, place)
            if match is None:
                rest = text[place:end].strip()
                raise InputError(f"--where: at character {text.index(rest, place) + 1}: cannot read {rest}")
            kind = str(match.lastgroup)
            self.tokens.append((kind, match[kind], match.start(kind)))
            place = match.end()
        self.next = 0
        self.depth = 0

    def whole(self) -> Condition:
        if not self.tokens:
            raise InputError("--where: is empty, must be such as: system = traffic and gap < 0.01")
        condition = self._either()
        if self.next < len(self.tokens):
            self._refuse(f"'{self.tokens[self.next][1]}' is one too many; 'and' or 'or' is missing")
        return condition

    def _either(self) -> Condition:
        parts = [self._both()]
        while self._word("or"):
            parts.append(self._both())
        return _joined(parts, " OR ")

    def _both(self) -> Condition:
        parts = [self._one()]
        while self._word("and"):
            parts.append(self._one())
        return _joined(parts, " AND ")

    def _one(self) -> Condition:
        self.depth += 1
        if self.depth > DEEPEST:
            self._refuse(f"more than {DEEPEST} parentheses within each other")
        try:
            if self._word("not"):
                inner = self._one()
                return Condition(sql=f"NOT ({inner.sql})", values=inner.values)
            if self._mark("("):
                inner = self._either()
                if not self._mark(")"):
                    self._refuse("')' is missing")
                return Condition(sql=f"({inner.sql})", values=inner.values)
            return self._comparison()
        finally:
            self.depth -= 1

    def _comparison(self) -> Condition:
        kind, name, _ = self._take("the name of a column")
        if kind != "word":
            self._refuse(f"'{name}' is no name of a column", back=1)
        try:
            column = self.find(name)
        except InputError as error:
            self._refuse(str(error), back=1)
        if self._word("is"):
            negated = self._word("not")
            if not (self._word("none") or self._word("null")):
                self._refuse("'is' wants none or not none")
            return Condition(sql=f"{'NOT ' * negated}({column.unknown})", values=column.values)
        negated = self._word("not")
        if self._word("in"):
            values = self._list()
            marks = ", ".join("?" * len(values))
            return _negated(negated, column.test.format(f"IN ({marks})"), (*column.values, *values))
        if self._word("like"):
            return _negated(negated, column.test.format("LIKE ?"), (*column.values, str(self._value())))
        if negated:
            self._refuse("'not' after a name wants in or like")
        kind, sign, _ = self._take("= != < <= > >= in like is")
        if kind != "sign":
            self._refuse(f"after {name} must come = != < <= > >= in like is, not '{sign}'", back=1)
        sign = {"==": "=", "<>": "!="}.get(sign, sign)
        return Condition(sql=column.test.format(f"{sign} ?"), values=(*column.values, self._value()))

    def _list(self) -> list[Any]:
        if not self._mark("("):
            self._refuse("'in' wants values in parentheses")
        values = [self._value()]
        while self._mark(","):
            values.append(self._value())
        if not self._mark(")"):
            self._refuse("')' is missing")
        return values

    def _value(self) -> Any:
        kind, text, _ = self._take("a value")
        if kind == "number":
            whole = re.fullmatch(r"[-+]?\d{1,18}", text)
            return int(text) if whole else float(text)
        if kind == "text":
            return text[1:-1].replace("''", "'") if text[0] == "'" else text[1:-1]
        if kind != "word":
            self._refuse(f"'{text}' is no value", back=1)
        if text.lower() in ("none", "null"):
            self._refuse("write 'is none' or 'is not none'", back=1)
        return text

    # --- tokens ---------------------------------------------------------------------------

    def _take(self, wanted: str) -> tuple[str, str, int]:
        if self.next >= len(self.tokens):
            self._refuse(f"ends where {wanted} must come")
        self.next += 1
        return self.tokens[self.next - 1]

    def _word(self, word: str) -> bool:
        return self._is("word", word)

    def _mark(self, mark: str) -> bool:
        return self._is("mark", mark)

    def _is(self, kind: str, text: str) -> bool:
        if self.next < len(self.tokens):
            found = self.tokens[self.next]
            if found[0] == kind and found[1].lower() == text:
                self.next += 1
                return True
        return False

    def _refuse(self, why: str, back: int = 0) -> NoReturn:
        at = self.next - back
        place = self.tokens[at][2] if at < len(self.tokens) else len(self.text)
        raise InputError(f"--where: at character {place + 1}: {why}")


def _negated(negated: bool, sql: str, values: tuple[Any, ...]) -> Condition:
    return Condition(sql=f"NOT ({sql})" if negated else sql, values=values)


def _joined(parts: list[Condition], word: str) -> Condition:
    if len(parts) == 1:
        return parts[0]
    sql = word.join(f"({part.sql})" for part in parts)
    return Condition(sql=sql, values=tuple(value for part in parts for value in part.values))
