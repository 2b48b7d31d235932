"""Other names of places, by which people search: English ones, and those with and without diacritics."""

from __future__ import annotations

import csv
import functools
import re
import unicodedata
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Final

SEPARATOR: Final = re.compile(r"<->|->|~")
"""Between the places in the name of an element, such as a link."""
GERMAN: Final = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ß": "ss"})


@functools.cache
def _table() -> Mapping[str, tuple[str, ...]]:
    """Return the other names of places by their names, both as people write them.

    source  data/geonames/other_names.csv
    """
    text = (files("planner_data") / "geonames" / "other_names.csv").read_text(encoding="utf-8")
    return {
        row["name"]: tuple(name.strip() for name in row["other_names"].split(";"))
        for row in csv.DictReader(text.splitlines())
    }


def without_diacritics(name: str) -> str:
    """Return a name in plain letters: `Zürich` as `Zurich`."""
    return "".join(
        letter for letter in unicodedata.normalize("NFKD", name) if not unicodedata.combining(letter)
    )


def other_names(element: str) -> list[str]:
    """Return the other names of the places in the name of an element: `Koblenz<->Koeln` has Köln, Cologne."""
    names = dict.fromkeys(other for place in SEPARATOR.split(element) for other in _others(place.strip()))
    return list(names)


def _others(place: str) -> Iterator[str]:
    yield from _table().get(place, ())
    for written in (place.translate(GERMAN), without_diacritics(place)):
        if written != place:
            yield written
