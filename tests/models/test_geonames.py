"""The extract of GeoNames that ships with planner."""

from __future__ import annotations

import pytest

from planner_models import geonames


def test_cities_have_a_place_and_a_country_with_a_continent() -> None:
    cities = geonames.cities()
    assert len(cities) > 30_000
    assert cities["geonameid"].is_unique
    assert cities["latitude"].between(-90, 90).all()
    assert cities["longitude"].between(-180, 180).all()
    assert set(cities["country"]) <= set(geonames.continent_by_country())


def test_codes_that_look_like_missing_values_stay_text() -> None:
    assert geonames.continent_by_country()["NA"] == "AF"  # Namibia
    assert geonames.continent_by_country()["US"] == "NA"
    assert "Windhoek" in set(geonames.cities().query("country == 'NA'")["name"])


@pytest.mark.parametrize(
    ("name", "latitude", "longitude"), [("Berlin", 52.5, 13.4), ("Santiago", -33.5, -70.6)]
)
def test_known_places(name: str, latitude: float, longitude: float) -> None:
    largest = geonames.cities().query("name == @name").sort_values("population").iloc[-1]
    assert (largest["latitude"], largest["longitude"]) == pytest.approx((latitude, longitude), abs=0.1)
