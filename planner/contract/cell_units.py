"""Units within cells, such as `10 Gbit/s`, `10G` and `5 ms`, in columns named with a unit."""

from __future__ import annotations

import datetime
import re
from typing import Final

import numpy as np
import pandas as pd

from planner.contract.request_prices import CELL_COUNTS
from planner.contract.units import BARE_UNITS, Unit, find_units, select_dimension, unit_of
from planner.formatting import counted

AMOUNT: Final = re.compile(
    r"(?:(?P<count>\d{1,4})\s*[x×*]\s*)?(?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*(?P<unit>[^\d\s.,+-].*)"
)
"""A number with a unit, also several of them, such as `4x10G`."""
ETHERNET: Final = re.compile(r"(?P<prefix>[MGT])(?:b?E|igE)")
"""Speed of a kind of Ethernet, such as `10GE` and `100GbE`."""
LINE: Final = re.compile(
    r"(?:(?P<count>\d{1,4})\s*[x×*]\s*)?(?P<kind>STM|OC|DS|[ET])-?(?P<level>\d{1,3})c?", re.IGNORECASE
)
"""A transmission line by its level, also several of them, such as `STM-16`, `OC-48c` and `2xE1`."""
LINE_LEVELS: Final = {"stm": (0, 1, 4, 16, 64, 256), "oc": (1, 3, 12, 24, 48, 192, 768)}
LINE_BITS_PER_S: Final = {
    ("e", 1): 2_048_000, ("e", 2): 8_448_000, ("e", 3): 34_368_000, ("e", 4): 139_264_000,
    ("t", 1): 1_544_000, ("t", 2): 6_312_000, ("t", 3): 44_736_000,
    ("ds", 1): 1_544_000, ("ds", 2): 6_312_000, ("ds", 3): 44_736_000,
}  # fmt: skip
"""Rates of the plesiochronous levels (ITU-T G.702)."""
OC_BITS_PER_S: Final = 51_840_000
"""Rate of OC-1, a third of STM-1's; those of higher levels are multiples (ITU-T G.707)."""
CPU_STEMS: Final = ("vcpus", "threads")
"""Beginnings of the names of columns that count CPUs."""
CPUS: Final = re.compile(
    r"(?P<number>\d+(?:\.\d*)?|\.\d+)\s*(?P<unit>m|(?:[vV]?[cC][pP][uU]|[cC]ore|[tT]hread)s?)"
)
"""A number of CPUs, or of thousandths of one."""
PRICE: Final = re.compile(
    r"(?:\$|USD)?\s*(?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)\s*(?:\$|USD)?\s*(?:/|per(?=[\s\d]))\s*"
    r"(?P<count>\d+|\d{1,3}(?:,\d{3})+)?\s*(?P<of>[A-Za-z][A-Za-z /-]*)?",
    re.IGNORECASE,
)
"""A price with what it is of, such as `$0.023 per GB`, `0.02 USD/GB-month` and `$5 per million requests`."""
REQUESTS: Final = frozenset(
    {"request", "requests", "req", "operation", "operations", "ops", "put", "puts", "get", "gets", "call"}
)
MONTHS: Final = frozenset({"month", "mo", "months"})
SECOND: Final = find_units("s")[0]
BIT_PER_S: Final = find_units("bit/s")[0]
ABSENT: Final = frozenset(
    {"n/a", "na", "none", "null", "nil", "-", "--", "?", "tbd", "unknown", "#n/a", "k.a.", "k. a.", "n.d."}
)
"""Texts, in lower case, with which people and programs say that there is no number."""
UNLIMITED: Final = frozenset(
    {
        "inf", "infinity", "infinite", "unlimited", "no limit", "unbounded", "∞",
        "unbegrenzt", "illimité", "ilimitado", "illimitato",
    }
)  # fmt: skip
"""Texts, in lower case, that say that there is no limit."""


def is_unlimited(text: str) -> bool:
    """Return whether a text says that there is no limit, in place of a number."""
    return text.strip().lstrip("+").lower() in UNLIMITED


def read_amounts(name: str, values: pd.Series) -> tuple[pd.Series, list[str]]:
    """Return values with texts of amounts, and durations, as numbers in the unit of a column, and notes.

    Values that are no such amounts stay as they are.
    """
    unit = unit_of(name)[1]
    if "usd" in name.split("_"):
        priced, notes = _read_prices(name, values)
        if notes:
            return priced, notes
    if unit is None:
        return _read_cpus(name, values) if name.startswith(CPU_STEMS) else (values, [])
    return _read_units(name, values, unit)


def _read_units(name: str, values: pd.Series, unit: Unit) -> tuple[pd.Series, list[str]]:
    """Return values with texts of amounts, and durations, as numbers in a unit, and notes."""
    changed = values.astype(object)
    shown: dict[str, float] = {}
    bare: dict[str, str] = {}
    rows = 0
    for row, value in enumerate(values.tolist()):
        if isinstance(value, str):
            amount, guessed = _read_text(value, unit)
        elif isinstance(value, datetime.timedelta | np.timedelta64) and unit.dimension == "time":
            amount, guessed = pd.Timedelta(value).value / 1e9 * float(SECOND.factor_to(unit)), None
        else:
            continue
        if amount is None:
            continue
        changed.iloc[row] = amount
        rows += 1
        if len(shown) < 1:
            shown[str(value)] = amount
        if guessed is not None:
            bare.setdefault(*guessed)
    if not rows:
        return values, []
    text, amount = next(iter(shown.items()))
    cells = counted(rows, "cells")
    notes = [f"read {cells} of {name} with a unit, such as '{text}' as {amount:,.15g} {unit.symbol}"]
    notes += [f"assumed: '{prefix}' in {name} is {symbol}" for prefix, symbol in bare.items()]
    return changed, notes


def _read_cpus(name: str, values: pd.Series) -> tuple[pd.Series, list[str]]:
    """Return values with texts of numbers of CPUs, such as `8 vCPU` and `500m`, as numbers, and a note."""
    matches = [CPUS.fullmatch(value.strip()) if isinstance(value, str) else None for value in values]
    rows = [row for row, match in enumerate(matches) if match is not None]
    if not rows:
        return values, []
    changed = values.astype(object)
    for row, match in enumerate(matches):
        if match is not None:
            changed.iloc[row] = float(match["number"]) / (1000 if match["unit"] == "m" else 1)
    shown = f"'{values.iloc[rows[0]]}' as {changed.iloc[rows[0]]:,.15g}"
    return changed, [f"read {counted(len(rows), 'cells')} of {name} with a unit, such as {shown}"]


def _read_prices(name: str, values: pd.Series) -> tuple[pd.Series, list[str]]:
    """Return values with texts of prices that say what they are of as numbers, and a note."""
    amounts = [_read_price(name, value) if isinstance(value, str) else None for value in values]
    rows = [row for row, amount in enumerate(amounts) if amount is not None]
    if not rows:
        return values, []
    changed = values.astype(object)
    changed.iloc[rows] = [amounts[row] for row in rows]
    shown = f"'{values.iloc[rows[0]]}' as {changed.iloc[rows[0]]:,.15g} USD"
    return changed, [f"read {counted(len(rows), 'cells')} of {name} as prices, such as {shown}"]


def _read_price(name: str, text: str) -> float | None:
    """Return the price of a text in the unit of a column, such as usd_per_gb; None where it is of another.

    A column whose name has no unit after usd has prices of one request.
    """
    match = PRICE.fullmatch(text.strip())
    if match is None or not (match["count"] or match["of"]):
        return None
    words = re.findall(r"[a-z]+", (match["of"] or "").lower())
    unit = [word for word in name.split("usd", 1)[1].split("_") if word not in ("", "per")]
    if not unit:
        count = _count_requests(match["count"], words)
        return float(match["number"]) / count if count else None
    of = ["month" if word in MONTHS else word for word in words if word != "per"]
    return float(match["number"]) if not match["count"] and of in (unit, unit[:1]) else None


def _count_requests(digits: str | None, words: list[str]) -> float | None:
    """Return the number of requests of digits and words, such as 10,000 or a million; None for others."""
    factor = CELL_COUNTS.get(words[0]) if words else None
    rest = words if factor is None else words[1:]
    if rest and (len(rest) > 1 or rest[0] not in REQUESTS):
        return None
    return float((digits or "1").replace(",", "")) * (factor or 1)


def has_units(name: str, values: pd.Series) -> bool:
    """Return whether each value of a column that is not blank is a text of an amount with a unit.

    Words for a blank and for no limit are of no unit.
    """
    present = values.dropna()
    present = present[~present.map(_is_word).astype(bool)]
    if not len(present) or not present.map(lambda value: isinstance(value, str)).all():
        return False
    return bool(read_amounts(name, present)[0].map(lambda value: isinstance(value, int | float)).all())


def _is_word(value: object) -> bool:
    """Return whether a cell has a word for a blank or for no limit."""
    return isinstance(value, str) and (is_unlimited(value) or value.strip().lower() in ABSENT)


def unclear_unit(name: str, text: str) -> str | None:
    """Return the readings of a text with an unclear unit, such as `10 gb/s`; None for others."""
    unit, match = unit_of(name)[1], AMOUNT.fullmatch(text.strip())
    if unit is None or match is None:
        return None
    fitting = select_dimension(find_units(match["unit"]), unit.dimension)
    return " or ".join(unit_.symbol for unit_ in fitting) if len(fitting) > 1 else None


def _read_line(text: str) -> int | None:
    """Return the rate of a transmission line that is named by its level, bit/s; None for other texts."""
    match = LINE.fullmatch(text.strip())
    if match is None:
        return None
    kind, level = match["kind"].lower(), int(match["level"])
    if level in LINE_LEVELS.get(kind, ()):
        rate: int | None = OC_BITS_PER_S * (level if kind == "oc" else 3 * level or 1)
    else:
        rate = LINE_BITS_PER_S.get((kind, level))
    return None if rate is None else int(match["count"] or 1) * rate


def _read_text(text: str, unit: Unit) -> tuple[float | None, tuple[str, str] | None]:
    """Return the amount of a text in a unit, and the prefix without unit with the unit it is taken for."""
    if unit.dimension == "rate" and (bits_per_s := _read_line(text)) is not None:
        factor = BIT_PER_S.factor_to(unit)
        return bits_per_s * factor.numerator / factor.denominator, None
    match = AMOUNT.fullmatch(text.strip())
    if match is None:
        return None, None
    symbol = match["unit"]
    if unit.dimension == "rate" and (ethernet := ETHERNET.fullmatch(symbol)):
        symbol = ethernet["prefix"]
    fitting = select_dimension(find_units(symbol), unit.dimension)
    guessed = None
    if not fitting and unit.dimension in BARE_UNITS and re.fullmatch(r"[kKMGTP]i?", symbol):
        prefix = "k" if symbol == "K" else symbol
        fitting = select_dimension(find_units(prefix + BARE_UNITS[unit.dimension]), unit.dimension)
        guessed = (symbol, fitting[0].symbol) if fitting else None
    if len(fitting) != 1:
        return None, None
    factor = fitting[0].factor_to(unit)
    return int(match["count"] or 1) * float(match["number"]) * factor.numerator / factor.denominator, guessed
