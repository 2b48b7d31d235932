"""Cities and countries of the world: an extract of GeoNames that ships with planner (data/geonames)."""

from __future__ import annotations

import functools
from importlib.resources import as_file, files

import pandas as pd


@functools.cache
def cities() -> pd.DataFrame:
    """Return places of over 15,000 people: geonameid, name, latitude, longitude, country, population, region.

    Angles are in degrees; countries have codes of two letters, among them NA for Namibia. The frame is
    shared: do not change it.

    source  GeoNames (geonames.org), CC BY 4.0
    """
    text = ("name", "country", "region")
    with as_file(files("planner_data") / "geonames" / "cities.csv.gz") as path:
        return pd.read_csv(path, dtype=dict.fromkeys(text, str), keep_default_na=False)


@functools.cache
def continent_by_country() -> dict[str, str]:
    """Return the continent of every country, both as codes of two letters.

    Codes AF, AS, NA and SA are of a country and of a continent.

    source  GeoNames (geonames.org), CC BY 4.0
    """
    with as_file(files("planner_data") / "geonames" / "countries.csv") as path:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    return dict(zip(table["country"], table["continent"], strict=True))
