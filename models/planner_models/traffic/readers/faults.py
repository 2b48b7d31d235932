"""What is wrong with a network file: every fault, one line each, before anything is refused."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal

from planner.errors import InputError, did_you_mean
from planner.tables import SHOWN_ROWS

LONGEST_VALUE = 60  # characters of a value that a fault repeats


def printable(text: str) -> str:
    """`text` on one line: line ends and the like as escapes."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def shortened(text: str) -> str:
    text = printable(text)
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 3] + "..."


def shifted(text: str, exponent: int) -> float:
    """The decimal `text` times 10**exponent; ValueError where it is no number.

    The shift is made in decimal, before the one rounding to binary: a rate that was written in
    another unit is read back exactly.
    """
    if exponent == 0:
        return float(text)
    try:
        return float(Decimal(text).scaleb(exponent))
    except ArithmeticError:
        raise ValueError(text) from None


class Faults:
    """Collects the faults of one file. Of one rule broken over and over, the first few are spelled out."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._lines: list[str] = []
        self._count: Counter[str] = Counter()

    def add(
        self,
        place: str,
        fault: str,
        *,
        rule: str | None = None,
        near: tuple[str, Iterable[str]] | None = None,
    ) -> None:
        """One fault.

        place  the file's name and what in it, e.g. "net.xml: link 'L1'"
        fault  what is wrong there, with the punctuation before it
        rule   what many faults have in common; default: the fault itself
        near   a name that is wrong and the valid ones, of which the nearest is proposed
        """
        rule = rule or fault.lstrip(": ")
        self._count[rule] += 1
        if self._count[rule] <= SHOWN_ROWS:  # the search for a near name is slow among many
            self._lines.append(printable(place + fault + (did_you_mean(*near) if near else "")))

    def number(self, place: str, field: str, text: str | None, *, exponent: int = 0) -> float:
        """`text` times 10**exponent; a text that is no finite number is a fault, and NaN."""
        rule = f"{field} must be a number"
        if text is None or not text.strip():
            self.add(place, f": {field} is missing", rule=rule)
            return math.nan
        try:
            value = shifted(text.strip(), exponent)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            self.add(place, f": {field} is '{shortened(text.strip())}', must be a number", rule=rule)
            return math.nan
        return value

    @property
    def lines(self) -> list[str]:
        more = [
            f"{self.file}: {count - SHOWN_ROWS} more where {rule}"
            for rule, count in self._count.items()
            if count > SHOWN_ROWS
        ]
        return self._lines + more

    def refuse(self) -> None:
        """InputError with every fault found so far, if there is any."""
        if self._lines:
            raise InputError(*self.lines)
