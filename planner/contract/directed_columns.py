"""Columns about both ends or both directions at once: cells `London - Paris`, columns `A→B` and `B→A`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from planner.contract.end_columns import ENDS
from planner.contract.units import LONGEST_NAME, plain

if TYPE_CHECKING:
    import pandas as pd

    from planner.contract.table import Table

PAIR_NAMES: Final = frozenset(
    {
        *("link", "links", "circuit", "connection", "relation", "route", "trunk", "line", "span", "section"),
        *("edge", "pair", "nodepair", "odpair", "demand", "flow", "endpoints", "ends", "fromto"),
        *("circuitname", "linkname", "circuitid", "linkid", "name", "service", "az", "ab"),
        *("sitepair", "trafficrelation", "strecke", "verbindung", "leitung", "relación", "liaison"),
        *("lien", "enlace", "ruta", "tramo", "trayecto", "sourcedestination", "srcdst", "between"),
    }
)
"""Names of columns that may name both ends, without case and punctuation."""
SEPARATORS: Final = (
    *("<-->", "<->", "<=>", "↔", "⇄", "⇔", "-->", "->", "=>", "→", "⟶", "➔", ">>", " > ", " to ", " nach "),
    *(" - ", " – ", " — ", " / ", " | ", " : ", "—", "–", ">", "|", "/", "~", "_", ":", "-"),
)
"""Texts between the names of two ends; those that occur in names too are last."""
OPPOSITES: Final[Mapping[str, str]] = {
    "out": "in",
    "tx": "rx",
    "egress": "ingress",
    "up": "down",
    "upstream": "downstream",
    "upload": "download",
    "uplink": "downlink",
    "forward": "backward",
    "forwards": "backwards",
    "fwd": "rev",
    "fw": "bw",
    "outgoing": "incoming",
    "outbound": "inbound",
    "sent": "received",
    "send": "receive",
    "transmit": "receive",
    "hin": "rück",
    "aller": "retour",
    "ida": "vuelta",
    "there": "back",
}
"""Words for the direction from the first to the second end, each with that for the other direction."""
OTHER_OPPOSITES: Final = (("forward", "reverse"), ("hin", "zurück"))
WORD: Final = re.compile(r"[^\W\d_]+")
ARROW: Final = re.compile(
    r"(?<![^\W_])(?P<x>[A-Za-z]|[12])\s*(?:<?[-–=]*>|→|⟶|-|–|/|2|\bto\b|)\s*(?P<y>[A-Za-z]|[12])(?![^\W_])"
)
"""Two ends of a direction in the name of a column, as in `A→B`, `A to Z`, `AZ` and `1-2`."""


class Splits(NamedTuple):
    """Ends of the cells of a column.

    unclear  rows that no separator, or several, may split
    """

    first: list[str | None]
    second: list[str | None]
    unclear: list[int]


def find_pair_column(
    table: Table, names: Sequence[str], found: Collection[str]
) -> tuple[str, str, str] | None:
    """Return our names of two ends that are missing, and the one name of a column that may hold both.

    names  of columns that are not used
    found  our names of those that are there; all other required ones must be among them but one quantity
    """
    pairs = [pair for pair in ENDS if set(pair) <= set(table.required_columns)]
    if len(pairs) != 1 or set(pairs[0]) & set(found):
        return None
    likely = [name for name in names if len(name) <= LONGEST_NAME and plain(name) in PAIR_NAMES]
    return (*pairs[0], likely[0]) if len(likely) == 1 else None


def split_ends(cells: Sequence[Any], known: Collection[str] = ()) -> Splits:
    """Return the two names in each cell, at the separator that splits most cells once.

    A name may have the separator in it, as Aix-en-Provence: the parts must then be names that are known, from
    elsewhere or from the other cells. Blank cells stay blank.
    """
    texts = _texts_by_row(cells)
    separator = _choose_separator(list(texts.values()))
    options = {row: _ways_to_split(text, separator) if separator else [] for row, text in texts.items()}
    names = {_fold(name) for name in known}
    names |= {_fold(name) for ways in options.values() if len(ways) == 1 for name in ways[0]}
    first: list[str | None] = [None] * len(cells)
    second: list[str | None] = [None] * len(cells)
    unclear = []
    for row, ways in options.items():
        way = _select_way(ways, names, needs_both=known != ())
        if way is None:
            unclear.append(row)
        else:
            first[row], second[row] = way
    return Splits(first, second, unclear)


def _texts_by_row(cells: Sequence[Any]) -> dict[int, str]:
    """Return the texts of the cells that are not blank, by row."""
    import pandas as pd

    return {
        row: str(cell)
        for row, cell in enumerate(cells)
        if cell is not None and not pd.isna(cell) and str(cell).strip()
    }


def _select_way(
    ways: Sequence[tuple[str, str]], names: Collection[str], *, needs_both: bool
) -> tuple[str, str] | None:
    """Return the only way to split a text, or the only one into folded names that are known; None for none.

    needs_both  whether both names must be known; one is enough otherwise, where no way has two of them
    """
    if len(ways) < 2:
        return ways[0] if ways else None
    fitting = [way for way in ways if all(_fold(name) in names for name in way)]
    if not fitting and not needs_both:
        fitting = [way for way in ways if any(_fold(name) in names for name in way)]
    return fitting[0] if len(fitting) == 1 else None


def _choose_separator(texts: Sequence[str]) -> str:
    """Return the separator that is in all texts, or else in most of them; "" for none."""
    if not texts:
        return ""
    counts = {
        separator: sum(bool(_ways_to_split(text, separator)) for text in texts) for separator in SEPARATORS
    }
    largest = max(counts.values())
    return next(separator for separator, count in counts.items() if count == largest) if largest else ""


def _ways_to_split(text: str, separator: str) -> list[tuple[str, str]]:
    """Return the pairs of names that a text may be, one for each of its separators."""
    parts = text.split(separator)
    ways = [
        (separator.join(parts[:index]).strip(), separator.join(parts[index:]).strip())
        for index in range(1, len(parts))
    ]
    return [way for way in ways if all(any(letter.isalnum() for letter in name) for name in way)]


def _fold(name: str) -> str:
    return " ".join(name.split()).casefold()


def find_opposites(names: Iterable[str]) -> tuple[str, str] | None:
    """Return the names of two columns that are a quantity from the first end, and from the second.

    None where there are none, or several such pairs.
    """
    listed = [name for name in names if len(name) <= LONGEST_NAME]
    pairs = [
        (forward, backward)
        for forward in listed
        for backward in listed
        if forward != backward and _are_opposite(forward, backward)
    ]
    return pairs[0] if len(pairs) == 1 else None


def _are_opposite(forward: str, backward: str) -> bool:
    words, others = ([word.lower() for word in WORD.findall(name)] for name in (forward, backward))
    changed = [pair for pair in zip(words, others, strict=False) if pair[0] != pair[1]]
    if len(words) == len(others) and len(changed) == 1:
        ahead, back = changed[0]
        if OPPOSITES.get(ahead) == back or (ahead, back) in OTHER_OPPOSITES:
            return True
    for match in ARROW.finditer(forward):
        x, y = match["x"], match["y"]
        swapped = match[0].replace(x, "\0").replace(y, x).replace("\0", y)
        if x.lower() < y.lower() and forward[: match.start()] + swapped + forward[match.end() :] == backward:
            return True
    return False


def add_opposite_rows(
    frame: pd.DataFrame, ends: tuple[str, str], opposite: Mapping[str, pd.Series]
) -> pd.DataFrame:
    """Return a table with a row for each direction: each row, then the opposite one with its own amounts.

    Rows without any amount of their direction are left out.

    opposite  amounts of the other direction, by our name
    """
    import pandas as pd

    amounts = list(opposite)
    back = frame.assign(**{ends[0]: frame[ends[1]], ends[1]: frame[ends[0]]}, **opposite)
    both = pd.concat([part[part[amounts].notna().any(axis=1)] for part in (frame, back)])
    return both.iloc[both.index.to_numpy().argsort(kind="stable")]


def ends_of(table: Table) -> tuple[str, str] | None:
    """Return the required columns of a table that are the two ends of its rows; None where it has none."""
    return next((pair for pair in ENDS if set(pair) <= set(table.required_columns)), None)
