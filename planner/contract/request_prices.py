"""Names of columns with prices of requests, such as `PUT price per million requests`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from planner.contract.units import LONGEST_NAME, plain

if TYPE_CHECKING:
    from planner.contract.table import Table

LONGEST_SHOWN: Final = 60
"""Letters of a name that a line shows."""
SUFFIX: Final = "_usd"
"""Ending of our columns with the price of one of something."""
COUNT: Final = re.compile(
    r"[\s_(\[,]*(?:(?:[$€£¥]|(?<![a-z])(?:usd|eur|gbp|chf|jpy))[\s_]*)?(?:/|(?<![a-z])per(?![a-z]))[\s_]*"
    r"(?P<digits>\d{1,3}(?:[, ']\d{3})+|\d*)[\s_]*(?P<word>k|thousand|m|mio|mm|million)?(?![a-z])[\s_]*"
    r"(?P<what>requests?|reqs?|ops|operations?|calls?|puts?|gets?|reads?|writes?)?[\s_]*[)\]]?"
    r"\s*(?:[(\[]?(?:[$€£¥]|usd|eur|gbp|chf|jpy)[)\]]?)?\s*$",
    re.IGNORECASE,
)
"""How many requests a price is of, behind the name of what is requested."""
CELL_COUNTS: Final[Mapping[str, int]] = {"k": 1_000, "thousand": 1_000, "m": 1_000_000, "million": 1_000_000}
"""Words for numbers of requests in cells, where `MM` and `mio` are not read."""
WORDS: Final[Mapping[str, int]] = {**CELL_COUNTS, "mm": 1_000_000, "mio": 1_000_000}
"""Words for numbers of requests in names of columns."""


def split_request_count(name: str) -> tuple[str, int] | None:
    """Return a name without the number of requests that it says, and this number; None where it says none."""
    match = COUNT.search(name) if len(name) <= LONGEST_NAME else None
    if match is None or not (match["digits"] or match["word"] or match["what"]):
        return None
    digits = int(re.sub(r"\D", "", match["digits"]) or 1)
    count = digits * WORDS.get((match["word"] or "").lower(), 1)
    return (name[: match.start()], count) if count else None


def find_request_prices(table: Table, ours: str, names: Iterable[str]) -> dict[str, Fraction]:
    """Return the given columns with the prices of requests of one of ours, each with its factor to ours."""
    column = table.columns[ours]
    known = {plain(text) for text in (ours.removesuffix(SUFFIX), *column.other_names)}
    factors = {}
    for name in names:
        stem, count = split_request_count(name) or (name, 1)
        if plain(_without_money(stem)) in known:
            factors[name] = Fraction(1, count)
    return factors


MONEY: Final = re.compile(
    r"[\s_]*(?:[(\[]?(?:[$€£¥]|(?<![a-z])(?:usd|eur|gbp|chf|jpy))[)\]]?|(?<![a-z])(?:price|cost|fee)s?)[\s_]*$",
    re.IGNORECASE,
)
"""A currency or a word for a price at the end of a name."""


def _without_money(name: str) -> str:
    """Return a name without currencies and words for a price at its end."""
    shorter = MONEY.sub("", name)
    while shorter != name:
        name, shorter = shorter, MONEY.sub("", shorter)
    return name


def describe_request_prices(table: Table, matches: Mapping[str, tuple[str, Fraction]]) -> Iterator[str]:
    """Yield a line for each column by another name, which says how many requests its prices are of.

    matches  given name and factor by our name
    """
    for ours, (name, factor) in matches.items():
        if table.columns[ours].of_requests and name != ours:
            count = (
                f"{factor.denominator:,} requests" if factor != 1 else "one request where cells say no number"
            )
            yield f"column '{name[:LONGEST_SHOWN]}' has prices of {count}"
