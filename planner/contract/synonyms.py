"""Names that people give to quantities and to tables, beside ours: `Bandwidth` for a capacity.

A quantity is found by such a name only with a unit of its own dimension, so that `Bandwidth (Gbit/s)` is a
capacity and `Bandwidth cost` is none. What a single column is called beside that, its declaration says.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from planner.contract.units import plain, unit_of

if TYPE_CHECKING:
    from planner.contract.table import Table

SIZES_OF_LINKS: Final = (
    *("bandwidth", "bw", "speed", "capacity", "cap", "max", "maximum", "provisioned", "installed", "lit"),
    *("bandbreite", "kapazität", "capacité", "débit", "capacidad", "ancho de banda"),
    *(f"{what} {size}" for what in ("link", "line", "port", "interface", "circuit", "total", "max")
      for size in ("bandwidth", "speed", "capacity", "rate")),
    *(f"{word} capacity" for word in ("installed", "provisioned", "lit", "available", "existing", "current")),
)  # fmt: skip
AMOUNTS_OF_TRAFFIC: Final = (
    *("rate", "demand", "traffic", "volume", "load", "bandwidth", "bw", "throughput", "flow", "value"),
    *("amount", "offered", "offered load", "requested", "requirement", "reserved", "reservation"),
    *("peak hour", "forecast", "usage", "verkehr", "bedarf", "trafic", "demande", "tráfico", "demanda"),
    *(f"{statistic}{noun}" for statistic in ("peak", "max", "average", "avg", "mean", "busy hour", "p95",
      "95th percentile") for noun in ("", " rate", " demand", " traffic", " load", " volume")),
    *(f"{noun} {word}" for noun in ("traffic", "demand") for word in ("rate", "volume", "peak", "value")),
)  # fmt: skip
DELAYS: Final = (
    "latency",
    "delay",
    "one way delay",
    "one way latency",
    "propagation delay",
    "link delay",
    "latenz",
    "latence",
    "latencia",
    "laufzeit",
    "délai",
    "retardo",
    "ritardo",
    "owd",
)
OTHER_NAMES: Final[Mapping[tuple[str, str], Sequence[str]]] = {
    ("capacity", "rate"): SIZES_OF_LINKS,
    ("uplink", "rate"): (*SIZES_OF_LINKS, "uplink capacity", "uplink bandwidth", "uplink speed"),
    ("port", "rate"): SIZES_OF_LINKS,
    ("rate", "rate"): AMOUNTS_OF_TRAFFIC,
    ("traffic", "rate"): AMOUNTS_OF_TRAFFIC,
    ("bitrate", "rate"): ("bit rate", "rate", "video rate", "encoding rate", "bandwidth"),
    ("latency", "time"): DELAYS,
    ("delay", "time"): DELAYS,
    ("max_latency", "time"): tuple(f"{word} {delay}" for word in ("max", "maximum") for delay in DELAYS),
    ("commitment", "rate"): (
        *("committed", "commit", "cdr", "committed rate", "commit rate", "committed data rate"),
        *("minimum commit", "minimum commitment", "committed bandwidth", "commit level"),
    ),
    ("commitment", "data"): ("committed", "commit", "committed volume", "minimum commitment"),
    ("length", "distance"): (
        "distance",
        "dist",
        "km",
        "länge",
        "fibre length",
        "fiber length",
        "route length",
        "span length",
    ),
    ("arrival", "time"): ("arrival time", "start", "start time", "release", "release time"),
    ("start", "time"): ("start time", "arrival", "arrival time"),
    ("rate", "requests"): ("throughput", "capacity", "max rate", "request rate"),
    ("demand", "requests"): ("load", "rate", "requests", "throughput", "request rate"),
    ("memory", "data"): ("ram", "mem", "storage", "capacity", "disk"),
    ("size", "data"): ("data", "volume", "storage", "memory", "data size"),
}
"""Other names of the columns of a stem and a dimension."""


@lru_cache(maxsize=10_000)
def other_names(table: Table, ours: str) -> Sequence[str]:
    """Return the names, without unit, that other tools give to one of our columns.

    Those that are names of other columns of the table, with a unit of the same dimension, are none.
    """
    declared: Sequence[str] = table.columns[ours].other_names
    stem, unit = unit_of(ours)
    usual = OTHER_NAMES.get((stem, unit.dimension), ()) if unit is not None else ()
    if not usual:
        return declared
    taken = {plain(stem)} | {
        plain(name) for other in table.columns for name in _own_names(table, other, ours)
    }
    return (*declared, *(name for name in usual if plain(name) not in taken))


def _own_names(table: Table, other: str, ours: str) -> Iterable[str]:
    """Yield the names of another column that may be meant in place of one of ours."""
    if other == ours:
        return
    stem, unit = unit_of(other)
    yield from (other, stem)
    if unit is not None and unit.dimension == unit_of(ours)[1].dimension:  # type: ignore[union-attr]
        yield from table.columns[other].other_names


def names_called(table: Table, others: Iterable[Table], names: Collection[str]) -> list[str]:
    """Return the given names of files or sheets that are a table's; more than one where that is not clear.

    A table's own name goes first, then its other names, where they are not the name of another table.
    Case, punctuation and a plural s do not matter for other names.
    """
    exact = [name for name in names if plain(name) == plain(table.name)]
    if exact:
        return exact
    own_names = {plain(other.name) for other in others}
    return [name for name in names if plain(name) not in own_names and is_called(table, name)]


WORDS: Final = re.compile(r"[^\W\d_]+")


def is_mentioned(table: Table, others: Iterable[Table], name: str) -> bool:
    """Return whether the name of a file or sheet has a table's name in it, and that of no other table.

    `Link inventory` and `WAN links` mention links; the last word decides in `Link demands`.
    """
    text = name.replace("(", " ").replace("[", " ")
    words = [_singular(word) for word in WORDS.findall(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text))]
    ends = {other.name: _last_mention(other, words) for other in (table, *others)}
    own = ends.pop(table.name)
    return own >= 0 and all(end < own for end in ends.values())


def _last_mention(table: Table, words: Sequence[str]) -> int:
    """Return the index of the last word of the last name of a table among words; -1 for none."""
    last = -1
    for expected in _words_of_names(table):
        for end in range(len(expected), len(words) + 1):
            if expected and words[end - len(expected) : end] == expected:
                last = max(last, end - 1)
    return last


@lru_cache(maxsize=1_000)
def _words_of_names(table: Table) -> list[list[str]]:
    """Return the words, without a plural s, of each name of a table."""
    names = (table.name, *table.other_names)
    return [[_singular(word) for word in WORDS.findall(name.replace("_", " "))] for name in names]


def is_called(table: Table, name: str) -> bool:
    """Return whether a file or sheet has a table's name, or another name of it."""
    return plain(name) == plain(table.name) or _singular(name) in map(
        _singular, (table.name, *table.other_names)
    )


def _singular(name: str) -> str:
    letters = plain(name)
    return letters[:-1] if letters.endswith("s") and not letters.endswith("ss") else letters
