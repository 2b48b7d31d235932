"""Text for numbers: figures, amounts with units, shares, sizes and durations, as people write them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

UNIT_SCALES: Final = (
    {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "days": 86_400.0},
    {"bytes": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12},
    {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9, "Tbit/s": 1e12},
    {"bits": 1.0, "kbit": 1e3, "Mbit": 1e6, "Gbit": 1e9, "Tbit": 1e12},
)
"""Units that `amount` converts into each other, ascending."""
LARGE_NUMBERS: Final = {"million": 1e6, "billion": 1e9}
"""Words that `amount` puts after a large figure in any other unit, ascending."""


HIDDEN: Final = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufffe\uffff\ud800-\udfff]"
)
"""Characters that a terminal executes, or that change how it shows others; all but the end of a line."""


def printable(text: str) -> str:
    """Return text that a terminal shows and never executes: control characters as their escapes."""
    return HIDDEN.sub(lambda match: repr(match[0])[1:-1], text)


def number(value: float | None) -> str:
    """Return a figure with about four digits and thousands separators; `-` for unknown."""
    if value is None or _is_unknown(value):
        return "-"
    if value == 0:
        return "0"
    if abs(value) >= 1e8:
        return f"{value:.4e}"
    if abs(value) >= 1_000:
        return f"{value:,.0f}"
    if abs(value) < 1e-3:
        return f"{value:.1e}"
    return f"{value:.4g}"


def short_number(value: float | None, digits: int) -> str:
    """Return a figure in few letters: `388k`, `1.25M`, `0.021`; `-` for unknown."""
    if value is None:
        return "-"
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= max(size, 1e4):  # thousands have their four digits
            return f"{value / size:.{digits}g}{letter}"
    return f"{value:,.0f}" if abs(value) >= 1e3 else f"{value or 0.0:.{digits}g}"  # 0 for -0.0


def amount(value: float, unit: str) -> str:
    """Return a value with its unit, converted to a readable size: `5 min`, `2 MB`, `0.5 Mbit/s`."""
    if value < 0:
        return f"-{amount(-value, unit)}"
    for scale in UNIT_SCALES:
        if (size := value * scale.get(unit, 0.0)) > 0:
            return _in_scale(size, scale)
    for word, unit_size in reversed(LARGE_NUMBERS.items()):
        if value >= unit_size and not is_convertible(unit):
            return f"{float(f'{value / unit_size:.4g}'):,.10g} {word} {unit}".rstrip()
    return f"{value or 0.0:,.10g} {_counted(value, unit)}".rstrip()  # 0 for -0.0


def _in_scale(size: float, scale: dict[str, float]) -> str:
    """Return a positive size in the largest unit that it has one of, else in the smallest.

    scale  size of each unit, the smallest first
    """
    units = [(name, smallest) for name, smallest in reversed(scale.items()) if size >= smallest]
    for name, unit_size in units[:2]:  # the second where only that is a short number: `100 min`
        if round(size / unit_size, 2) == size / unit_size < 1000:
            return f"{size / unit_size:.4g} {name}"
    name, unit_size = units[0] if units else next(iter(scale.items()))
    return f"{size / unit_size:.4g} {name}"


def amount_or_number(value: float | None, unit: str) -> str:
    """Return a value with about four digits and its unit: `40.82 Gbit/s`, `940 clients`; `-` for unknown."""
    if value is None:
        return "-"
    if is_convertible(unit) or value >= min(LARGE_NUMBERS.values()):
        return amount(value, unit)
    return f"{number(value)} {_counted(value, unit)}".rstrip()


RATIO: Final = "times"
"""Unit of ratios, such as a delay over the smallest one."""


def _counted(value: float, unit: str) -> str:
    """Return a unit of countable things in the singular where there is one: `1 client`, but `1 times`."""
    return _singular(unit) if value == 1 and unit != RATIO and not is_convertible(unit) else unit


def scale_of(
    name: str, values: Iterable[float | None], unit: str
) -> tuple[str, Callable[[float | None], str]]:
    """Return the unit that values of one figure are shown in, and the function that writes a value in it.

    Values from a million on are converted to a larger unit, and shares are percentages.
    """
    shown, factor = factor_of(name, values, unit)
    if is_share(name, unit):
        return "", lambda value: "-" if _is_unknown(value) else f"{number(100 * (value or 0.0))}%"
    return shown, lambda value: number(None if value is None else value * factor)


def factor_of(name: str, values: Iterable[float | None], unit: str) -> tuple[str, float]:
    """Return the unit that values of one figure are shown in, and the factor to it; shares in percent."""
    if is_share(name, unit):
        return "%", 100.0
    finite = [abs(value) for value in values if value is not None and not math.isnan(value)]
    largest = max(finite, default=0.0)
    scale = next((scale for scale in UNIT_SCALES if unit in scale), None)
    if scale is None or largest < LARGE_NUMBERS["million"]:
        return unit, 1.0
    size = largest * scale[unit]
    shown, unit_size = next(
        (unit_, smallest) for unit_, smallest in reversed(scale.items()) if smallest <= size
    )
    return shown, scale[unit] / unit_size


def smaller_unit(largest: float, unit: str) -> tuple[str, float]:
    """Return the unit in which the largest of several values is at least one, and the factor to it.

    A value of one or more, and one without a smaller unit, stays: with factor 1.
    """
    scale = next((scale for scale in UNIT_SCALES if unit in scale), None)
    if scale is None or not 0 < largest < 1:
        return unit, 1.0
    size = largest * scale[unit]
    shown = next(
        (unit_ for unit_, unit_size in reversed(scale.items()) if unit_size <= size), next(iter(scale))
    )
    return shown, scale[unit] / scale[shown]


def figure(name: str, value: float | None, unit: str) -> str:
    """Return a figure with its unit: `39.9 Gbit/s`; shares and availability in percent: `86.54%`."""
    if value is not None and is_availability(name, unit):
        return availability(value)
    if value is not None and is_share(name, unit):
        return f"{number(100 * value)}%"
    return amount_or_number(value, unit)


SHARES: Final = (
    "share", "utilization", "isolation", "fairness", "jain", "min_max_ratio", "buffering_ratio", "duty_cycle",
    "source_load", "_risk", "error_p95", "promise_kept", "at_once", "within_bound",
    "served", "deadlines_met",
)  # fmt: skip
"""Ends of the names of figures without a unit that are parts of a whole."""


def is_share(name: str, unit: str) -> bool:
    """Return whether figures of a name are parts of a whole, which are shown in percent."""
    return not unit and name.endswith(SHARES)


def is_availability(name: str, unit: str) -> bool:
    """Return whether figures of a name are probabilities that a service works."""
    return not unit and name.endswith("availability")


def availability(probability: float) -> str:
    """Return a probability in percent, with two digits of its difference from 100%: `99.52%`, `99.99987%`."""
    probability = max(0.0, probability)
    risk = 100 * (1.0 - probability)
    if not 1e-9 < risk < 10:
        return f"{100 * probability:.4g}%"
    text = f"{100 * probability:.{max(0, 1 - math.floor(math.log10(risk)))}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) + "%"


def _is_unknown(value: float | None) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def phrase(verb: str, shown: str) -> str:
    """Return a verb with an amount, which follows it or stands for its `{}`."""
    return verb.format(shown) if "{}" in verb else f"{verb} {shown}"


def amount_of(value: float, total: float, unit: str) -> str:
    """Return a value and the total that it is a part of, in one unit: `39.9 of 40.8 Gbit/s`."""
    full_text = amount(total, unit)
    shown = full_text.split(" ")[1:2]
    scales = ({**LARGE_NUMBERS, unit: 1.0}, *UNIT_SCALES)
    scale = next((scale for scale in scales if unit in scale and shown and shown[0] in scale), None)
    converted = value * scale[unit] / scale[shown[0]] if scale else value
    if 0 < converted < 1 and is_convertible(unit):
        return f"{amount(value, unit)} of {full_text}"
    return f"{(float(f'{converted:.4g}') if is_convertible(unit) else converted) or 0.0:,.10g} of {full_text}"


def is_convertible(unit: str) -> bool:
    """Return whether `amount` may write another unit."""
    return any(unit in scale for scale in UNIT_SCALES)


def units_from(unit: str) -> list[tuple[str, float]]:
    """Return the units that an amount may be shown in, with their sizes in `unit`, ascending."""
    scale = next((scale for scale in UNIT_SCALES if unit in scale), None)
    if scale is None:
        return [(unit, 1.0)]
    return [(name, size / scale[unit]) for name, size in scale.items()]


SMALLEST_SHARE: Final = 1e-6
"""Smaller ones are rounding errors, and are written as 0.0%."""


def percent(share: float | None, digits: int = 1) -> str:
    """Return a share as `54.1%`, or with one digit that is not 0: `0.003%`; `-` for unknown.

    digits  after the point
    """
    if share is None:
        return "-"
    if round(share, digits + 2) or abs(share) < SMALLEST_SHARE:
        return f"{round(share, digits + 2) or 0.0:.{digits}%}"  # 0.0% for -0.0
    return f"{float(f'{100 * share:.1g}'):.10f}".rstrip("0") + "%"


def tell_apart(before: float | None, after: float | None, text: Callable[[float | None], str]) -> str:
    """Return the relative difference of two values that a text shows alike, ` (0.02% less)`; else nothing.

    text  writes a value with its unit, as the sentence shows it
    """
    if before is None or after is None or before == after or text(before) != text(after):
        return ""
    share = abs(after - before) / max(abs(before), abs(after))
    size = percent(share) if share >= SMALLEST_SHARE else f"less than {percent(SMALLEST_SHARE)}"
    return f" ({size} {'more' if after > before else 'less'})"


def sizes(size: Mapping[str, int]) -> str:
    """Return counts in words: `50 nodes, 176 links, 1 demand`."""
    return ", ".join(counted(count, nouns) for nouns, count in size.items())


def counted(count: float, nouns: str, verb: str = "") -> str:
    """Return a count with its noun, given in the plural, and a verb that agrees: `1 link is`, `2 links are`.

    verb  in the plural: "are", "have", "need"
    """
    words = [f"{count:,.10g}", nouns if count != 1 else _singular(nouns)]
    return " ".join([*words, agree(count, verb)] if verb else words)


def counted_of(count: float, total: float, nouns: str, verb: str = "") -> str:
    """Return a count of a total, with its noun and a verb that agrees: `1 of 7 links is`, `2 of 7 links are`.

    nouns, verb  in the plural
    """
    says = f"{count:,.10g} of {counted(total, nouns)}"
    return f"{says} {agree(count, verb)}" if verb else says


SINGULAR_VERBS: Final = {"are": "is", "were": "was", "have": "has", "do": "does", "carry": "carries"}
"""Forms of verbs that are not made by adding an s."""


def agree(count: float, verb: str) -> str:
    """Return a verb, given in the plural, in the form that agrees with a count: `needs`, `need`."""
    return verb if count != 1 else SINGULAR_VERBS.get(verb, f"{verb}s")


PREPOSITIONS: Final = frozenset(
    {
        "above", "against", "at", "before", "below", "beyond", "by", "for", "from", "in", "of", "on", "over",
        "per", "to", "under", "with", "without",
    }
)  # fmt: skip
"""Words after which a phrase says more about its noun: `demands without a path`."""
IRREGULAR: Final = {"caches": "cache", "series": "series"}
ENDINGS: Final = (
    ("ies", "y"), ("ches", "ch"), ("shes", "sh"), ("xes", "x"), ("sses", "ss"), ("ss", "ss"), ("s", ""),
)  # fmt: skip


def _singular(plural: str) -> str:
    """Return the singular of an English plural, or of a phrase with one, that is formed by rule."""
    words = plural.split(" ")
    index = next((position for position, word in enumerate(words) if word in PREPOSITIONS), len(words)) - 1
    if index < 0:
        return plural
    words[index] = _singular_word(words[index])
    return " ".join(words)


def _singular_word(plural: str) -> str:
    if plural in IRREGULAR:
        return IRREGULAR[plural]
    for ending, singular in ENDINGS:
        if plural.endswith(ending):
            return plural.removesuffix(ending) + singular
    return plural


def plural(noun: str) -> str:
    """Return the plural of an English noun that is formed by rule."""
    if noun.endswith(("s", "x", "ch", "sh")):
        return f"{noun}es"
    return f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2:-1] not in "aeiou" else f"{noun}s"


def duration(seconds: float) -> str:
    """Return a time span: `0.4 s`, `12 s`, `3 min`, `2.5 h`."""
    for size, unit in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"


def plain(value: Any) -> str:
    """Return a value of any type as text; `-` for unknown."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value
    return number(value) if isinstance(value, int | float) else json.dumps(value, default=str)


def split_names(text: str) -> list[str]:
    """Return the names between commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def few(values: Sequence[str], upper: int = 8) -> str:
    """Return values between commas; of more than `upper`, the first ones and the last."""
    return ", ".join(values if len(values) <= upper else [*values[: upper - 2], "...", values[-1]])


def heading(name: str, unit: str = "") -> str:
    """Return a column's name in words, without the unit that it ends in, such as _usd or _usd_per_gb."""
    words = name.split("_")
    end = words[-3::2] if words[-2:-1] == ["per"] else words[-1:]
    size = 2 * len(end) - 1
    if unit and len(words) > size and "/".join(UNIT_WORDS.get(word, word) for word in end) == unit:
        words = words[:-size]
    written = [UNIT_WORDS.get(word, word) if index else word for index, word in enumerate(words)]
    return " ".join(ABBREVIATIONS.get(word, word) for word in written)


def heading_with_unit(name: str, unit: str) -> str:
    """Return a column's name in words, with its unit behind it: `delivered (Mbit/s)`."""
    return heading(name, unit) + (f" ({unit})" if unit else "")


def title_of(name: str) -> str:
    """Return a name as a title: `least_specific` as `Least specific`."""
    words = heading(name)
    return words[:1].upper() + words[1:]


ABBREVIATIONS: Final = {"cpu": "CPU", "cdns": "CDNs"}
"""Abbreviations as headings write them."""

UNIT_WORDS: Final = {
    "mbps": "Mbit/s",
    "gbps": "Gbit/s",
    "kbps": "kbit/s",
    "percent": "%",
    "gb": "GB",
    "mbit": "Mbit",
    "usd": "USD",
}
"""Units as names end in them, where they are written otherwise."""
