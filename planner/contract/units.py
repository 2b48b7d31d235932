"""Units in the names of columns: `capacity_mbps`, `Capacity (Gbit/s)`, `sizeKiB`, and factors between units.

Each unit belongs to one dimension: rate, data, time, distance or requests. Only units of one dimension
convert into each other. Case decides between bits and bytes, as in Gb/s and GB/s; where it cannot, both are
found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, wraps
from typing import Final, Literal, TypeVar

ResultT = TypeVar("ResultT")
Dimension = Literal["rate", "data", "time", "distance", "requests"]


@dataclass(frozen=True)
class Unit:
    """A unit: its symbol, and its size in bit/s, bits, seconds, metres or requests/s."""

    symbol: str
    dimension: Dimension
    size: Fraction

    def factor_to(self, other: Unit, *, is_per: bool = False) -> Fraction:
        """Return the factor from numbers in this unit to numbers in another of the same dimension.

        is_per  whether numbers are of something for each unit, such as prices of a Gbit/s
        """
        return other.size / self.size if is_per else self.size / other.size


DECIMAL: Final = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
BINARY: Final = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}
NAMES: Final = {"": "", "k": "kilo", "M": "mega", "G": "giga", "T": "tera", "P": "peta", "E": "exa"}
DAY_S: Final = 86_400.0
MONTH_S: Final = 30 * DAY_S
"""Seconds of a month of 30 days, as bills and rates of failures count it."""
TIMES: Final = {
    "ns": (Fraction(1, 10**9), "nanosecond"),
    "us": (Fraction(1, 10**6), "usec µs μs microsecond"),
    "ms": (Fraction(1, 1000), "msec millisecond"),
    "s": (Fraction(1), "sec secs second"),
    "min": (Fraction(60), "mins minute"),
    "h": (Fraction(3600), "hr hrs hour"),
    "d": (Fraction(86_400), "day"),
}
DISTANCES: Final = {
    "m": (Fraction(1), "metre meter"),
    "km": (Fraction(1000), "kilometre kilometer"),
    "mi": (Fraction("1609.344"), "mile"),
}

REQUESTS: Final = {
    "ops": (Fraction(1), "ops/s op/s rps req/s request/s requests/s operations/s qps queries/s"),
    "kops": (Fraction(1000), "kops/s krps kreq/s kqps"),
    "Mops": (Fraction(10**6), "mops/s mrps mreq/s mqps"),
}


def _units() -> tuple[dict[str, Unit], dict[str, tuple[Unit, ...]]]:
    """Return units by their spelling in exact case, and by their spelling in lower case."""
    exact: dict[str, Unit] = {}
    lower: dict[str, tuple[Unit, ...]] = {}
    for prefix, size in {**DECIMAL, **BINARY}.items():
        bits = Unit(f"{prefix}bit", "data", Fraction(size))
        bytes_ = Unit(f"{prefix}B", "data", Fraction(8 * size))
        bit_rate = Unit(f"{bits.symbol}/s", "rate", bits.size)
        byte_rate = Unit(f"{bytes_.symbol}/s", "rate", bytes_.size)
        for mark in {prefix, prefix.upper() if prefix == "k" else prefix}:
            exact |= {f"{mark}b": bits, f"{mark}B": bytes_, f"{mark}b/s": bit_rate, f"{mark}B/s": byte_rate}
            exact |= {f"{mark}bps": bit_rate, f"{mark}Bps": byte_rate}
        low, name = prefix.lower(), NAMES.get(prefix, _spell_binary(prefix))
        for spelled, unit, rate in (("bit", bits, bit_rate), ("byte", bytes_, byte_rate)):
            for word in (f"{low}{spelled}", f"{name}{spelled}"):
                lower |= {word: (unit,), f"{word}s": (unit,)}
                lower |= dict.fromkeys((f"{word}/s", f"{word}s/s", f"{word}ps"), (rate,))
        lower |= {f"{low}bps": (bit_rate,), f"{low}b/s": (bit_rate, byte_rate)}
        # as _gb in names of columns; bits are _gbit there
        lower[f"{low}b"] = (bytes_,)
    for dimension, table in (("time", TIMES), ("distance", DISTANCES), ("requests", REQUESTS)):
        for symbol, (length, words) in table.items():
            unit = Unit(symbol, dimension, length)  # type: ignore[arg-type]
            for word in (symbol.lower(), *words.split()):
                lower |= {word: (unit,), f"{word}s": (unit,)} if len(word) > 3 else {word: (unit,)}
    # in lower case, letters do not tell bits from bytes
    exact = {text: unit for text, unit in exact.items() if text != text.lower()}
    del lower["b"]
    return exact, lower


def _spell_binary(prefix: str) -> str:
    """Return the spelled binary prefix, such as `kibi` of Ki."""
    return f"{prefix.lower()}bi" if len(prefix) == 2 else prefix.lower()


EXACT, LOWER = _units()


def find_units(text: str) -> tuple[Unit, ...]:
    """Return the unit that a text names; none, or two where it may be bits or bytes."""
    text = " ".join(text.split())
    text = re.sub(r"\s*(?:/|\bper\b)\s*(?:sec(?:ond)?|s)$", "/s", text, flags=re.IGNORECASE)
    if text in EXACT:
        return (EXACT[text],)
    if text.lower() in LOWER:
        return LOWER[text.lower()]
    parts = VOLUME_RATE.fullmatch(text)
    return () if parts is None else tuple(_volume_rates(parts["data"], parts["time"]))


def select_dimension(units: Sequence[Unit], dimension: Dimension) -> list[Unit]:
    """Return the units of a dimension, in order."""
    return [unit for unit in units if unit.dimension == dimension]


VOLUME_RATE: Final = re.compile(r"(?P<data>.*[^\s/])\s*(?:/|\bper\b)\s*(?P<time>[A-Za-z]+)", re.IGNORECASE)
"""Data in a time, such as `GB/day`: a mean rate."""
PERIODS: Final = (
    ("week", ("week", "weeks", "wk"), 7),
    ("month of 30 days", ("month", "months", "mo", "mth"), 30),
    ("year of 365 days", ("year", "years", "yr", "annum"), 365),
)
"""Symbol, words and days of longer times, which occur in rates only."""


def _volume_rates(data: str, time: str) -> Iterator[Unit]:
    """Yield the rates that an amount of data in a time may be."""
    word = time.lower()
    lengths = LOWER.get(word, ())
    for symbol, words, days in PERIODS:
        if word in words:
            lengths = (Unit(symbol, "time", Fraction(days * 86_400)),)
    for length in lengths:
        for amount in find_units(data):
            if (amount.dimension, length.dimension) == ("data", "time"):
                yield Unit(f"{amount.symbol}/{length.symbol}", "rate", amount.size / length.size)


BRACKETED: Final = re.compile(r"(?P<stem>.*?)[\s_]*[(\[]\s*(?P<unit>[^()\[\]]+?)\s*[)\]]\s*")
PHRASE: Final = re.compile(r"(?P<stem>.*?)(?:\s*,\s*|\s+in\s+)(?P<unit>[^,]+?)\s*")
LAST_WORD: Final = re.compile(r"(?P<stem>.*?)(?:[\s_-]+|^)(?P<unit>[^\s_-]+)")
LAST_TWO: Final = re.compile(r"(?P<stem>.*?)(?:[\s_-]+|^)(?P<unit>[A-Za-z]+)_s")
PER_UNIT: Final = re.compile(
    r"(?P<stem>.*?)(?:[\s_(\[,]+(?:[$€£¥]|USD|EUR|GBP|CHF|JPY|usd|eur|gbp|chf|jpy))?"
    r"[\s_(\[,]*(?:/|(?<![A-Za-z])(?:per|pro|par|por|je)(?![A-Za-z]))[\s_]*(?P<unit>[^()\[\]]+?)\s*[)\]]?\s*"
)
"""A price of a unit: `Price ($/GB)`, `price per GB`, `cost_usd_per_gb`."""
AMOUNTS: Final = ("rate", "data")
"""Dimensions of what has a price."""
LONGEST_NAME: Final = 200
"""Letters of a name up to which a unit is looked for: the time of the patterns grows with their cube."""
CAMEL_CASE: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


def _keep_short(function: Callable[[str], ResultT]) -> Callable[[str], ResultT]:
    """Return a function of names that keeps its results, except those of more than LONGEST_NAME letters.

    Each name is compared with all columns of all tables.
    """
    cached = lru_cache(maxsize=10_000)(function)

    @wraps(function)
    def call(name: str) -> ResultT:
        return cached(name) if len(name) <= LONGEST_NAME else function(name)

    return call


@_keep_short
def split_unit(name: str) -> tuple[tuple[str, tuple[Unit, ...]], ...]:
    """Return the ways to split a column's name into a stem and its unit, the clearest first.

    A name of more than LONGEST_NAME letters has no unit.
    """
    return tuple(_split(" ".join(name.split()))) if len(name) <= LONGEST_NAME else ()


def _split(name: str) -> Iterator[tuple[str, tuple[Unit, ...]]]:
    yield from _split_by(BRACKETED, name)
    yield from _split_by(PHRASE, name)
    for stem, units in _split_by(PER_UNIT, name):
        if stem and units[0].dimension in AMOUNTS:
            yield f"{stem} per", units
    yield from _split_by(LAST_TWO, name, "/s")
    yield from _split_by(LAST_WORD, name)
    for boundary in CAMEL_CASE.finditer(name):
        if units := find_units(name[boundary.start() :]):
            yield name[: boundary.start()], units


def _split_by(
    pattern: re.Pattern[str], name: str, ending: str = ""
) -> Iterator[tuple[str, tuple[Unit, ...]]]:
    """Yield stem and units of a name with the pattern's groups of these names, if it has any.

    ending  of the unit's text, which the name does not have
    """
    match = pattern.fullmatch(name)
    if match and (units := find_units(match["unit"] + ending)):
        yield match["stem"], units


BRACKETED_PREFIX: Final = re.compile(r"(?P<stem>.*?)[\s_]*[(\[]\s*(?P<prefix>[kKMGT])\s*[)\]]\s*")
BARE_UNITS: Final[Mapping[str, str]] = {"rate": "bit/s", "data": "B", "requests": "ops"}
"""Unit behind a prefix alone, such as `10G`, by dimension."""


def split_prefix(name: str, dimension: Dimension) -> tuple[tuple[str, tuple[Unit, ...]], ...]:
    """Return the stem and the unit of a name with a prefix alone in brackets, such as `Speed (G)`."""
    match = BRACKETED_PREFIX.fullmatch(name) if len(name) <= LONGEST_NAME else None
    if match is None or dimension not in BARE_UNITS:
        return ()
    return ((match["stem"], find_units(match["prefix"].replace("K", "k") + BARE_UNITS[dimension])),)


def name_in_unit(ours: str, unit: Unit) -> str:
    """Return the name of one of our columns in another unit, such as `capacity_gbps` of `capacity_mbps`."""
    stem = unit_of(ours)[0]
    symbol = unit.symbol.replace("bit/s", "bps").replace("B/s", "byteps").lower()
    return f"{stem}_{symbol}" if stem else symbol


@_keep_short
def plain(name: str) -> str:
    """Return a name without case, spaces and punctuation, to compare names."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


COUNTS: Final = frozenset({"vcpus"})
"""Stems that are numbers of things: `vcpus_min` is the smallest number, not minutes."""


@_keep_short
def unit_of(column: str) -> tuple[str, Unit | None]:
    """Return the stem and the unit of one of our columns, such as ("capacity", Mbit/s)."""
    stem, _, last = column.rpartition("_")
    units = () if stem in COUNTS else find_units(last)
    if len(units) == 1 and (stem or units[0].dimension in ("rate", "data")):
        return stem, units[0]
    return column, None


def symbols_like(column: str) -> list[str]:
    """Return the symbols of common units of the dimension of one of our columns, such as `Gbit/s`."""
    unit = unit_of(column)[1]
    names = {"rate": ("kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"), "data": ("bit", "B", "kB", "MB", "GB", "TB")}
    return list(names.get(unit.dimension, (unit.symbol,))) if unit is not None else []


def is_per_unit(stem: str) -> bool:
    """Return whether a stem says that numbers are of something for each unit, such as `price_per`."""
    return re.search(r"(?:^|[\s_])per$", stem, flags=re.IGNORECASE) is not None
