"""Numbers as people write them: one unit for one figure, everywhere."""

from __future__ import annotations

import math

import pytest

from planner import formatting


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (38_620.0, "Mbit/s", "38.62 Gbit/s"),
        (19_870_000.0, "", "19.87 million"),
        (3_300_000.0, "clients", "3.3 million clients"),
        (2.5e9, "", "2.5 billion"),
        (33_400.0, "clients", "33,400 clients"),
        (0.0, "Mbit/s", "0 Mbit/s"),
        (5_400.0, "s", "1.5 h"),
        (6_000.0, "s", "100 min"),
        (6_001.0, "s", "1.667 h"),
        (0.8295166667, "us", "0.8295 us"),
        (-5_123.4567, "Mbit/s", "-5.123 Gbit/s"),
        (-0.0, "Mbit/s", "0 Mbit/s"),
        (-0.0, "", "0"),
    ],
)
def test_amounts_have_a_readable_size(value: float, unit: str, text: str) -> None:
    assert formatting.amount(value, unit) == text


@pytest.mark.parametrize(
    ("probability", "text"),
    [
        (0.0, "0%"),
        (0.64410096, "64.41%"),
        (0.9, "90%"),
        (0.95, "95%"),
        (0.9952413, "99.52%"),
        (0.9999, "99.99%"),
        (0.9999987, "99.99987%"),
        (1.0, "100%"),
        (1.0 + 1e-15, "100%"),
    ],
)
def test_an_availability_is_never_rounded_to_all(probability: float, text: str) -> None:
    assert formatting.availability(probability) == text


@pytest.mark.parametrize(
    ("value", "total", "unit", "text"),
    [
        (39_900.0, 40_800.0, "Mbit/s", "39.9 of 40.8 Gbit/s"),
        (3_000_000.0, 3_300_000.0, "clients", "3 of 3.3 million clients"),
        (733.0, 1_850.0, "clients", "733 of 1,850 clients"),
        (12.0, 15.0, "", "12 of 15"),
        (0.2368, 18.0, "GB", "236.8 MB of 18 GB"),
    ],
)
def test_a_part_has_the_unit_of_its_total_unless_it_is_far_smaller(
    value: float, total: float, unit: str, text: str
) -> None:
    assert formatting.amount_of(value, total, unit) == text


@pytest.mark.parametrize(
    ("name", "values", "unit", "shown"),
    [
        ("served_mbps", [6.29e6, 640_000.0, None], "Mbit/s", ("Tbit/s", ["6.29", "0.64", "-"])),
        ("unserved", [2.1966e8, 0.0], "bits", ("Mbit", ["219.7", "0"])),
        ("delivered_mbps", [38_620.0, 35_140.0], "Mbit/s", ("Mbit/s", ["38,620", "35,140"])),
        ("delivered_share", [0.9463, 1.0, math.nan], "", ("", ["94.63%", "100%", "-"])),
        ("objective", [2.5e7], "", ("", ["25,000,000"])),
    ],
)
def test_values_of_one_figure_have_one_unit(
    name: str, values: list[float | None], unit: str, shown: tuple[str, list[str]]
) -> None:
    scaled, write = formatting.scale_of(name, values, unit)
    assert (scaled, [write(value) for value in values]) == shown


@pytest.mark.parametrize(
    ("unit", "one"),
    [
        ("demands without a whole path", "1 demand without a whole path"),
        ("services over their price", "1 service over their price"),
        ("replicas against a rule", "1 replica against a rule"),
        ("users beyond the limit of a group", "1 user beyond the limit of a group"),
        ("classes", "1 class"),
        ("batches", "1 batch"),
        ("caches", "1 cache"),
        ("missed waypoints", "1 missed waypoint"),
        ("entries of tables", "1 entry of tables"),
        ("of the demand", "1 of the demand"),
        ("times the demand", "1 times the demand"),
        ("", "1"),
    ],
)
def test_one_thing_is_in_the_singular(unit: str, one: str) -> None:
    assert formatting.amount(1, unit) == one
    assert formatting.amount(2, unit) == f"2 {unit}".rstrip()


def test_an_amount_stands_in_its_phrase() -> None:
    assert formatting.phrase("sheds", "2 Gbit/s") == "sheds 2 Gbit/s"
    assert formatting.phrase("leaves {} unserved", "2 Gbit") == "leaves 2 Gbit unserved"


@pytest.mark.parametrize(
    ("name", "unit", "words"),
    [
        ("delivered_mbps", "Mbit/s", "delivered"),
        ("capacity_mbps", "", "capacity Mbit/s"),
        ("dual_price_per_gbps", "EUR/h", "dual price per Gbit/s"),
        ("price_usd_per_gb", "USD/GB", "price"),
        ("gain_usd", "USD", "gain"),
        ("median_cost", "", "median cost"),
        ("cpu_per_connection_us", "us", "CPU per connection"),
    ],
)
def test_a_heading_has_words_and_units(name: str, unit: str, words: str) -> None:
    assert formatting.heading(name, unit) == words


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (-0.0, "0.0%"),
        (-1e-9, "0.0%"),
        (0.0, "0.0%"),
        (1e-5, "0.001%"),
        (-0.0004, "-0.04%"),
        (0.00049, "0.05%"),
        (0.0005, "0.1%"),
        (0.5412, "54.1%"),
        (1.0, "100.0%"),
        (None, "-"),
    ],
)
def test_a_small_share_is_no_zero_and_no_zero_is_negative(share: float | None, text: str) -> None:
    assert formatting.percent(share) == text


def test_a_share_has_as_many_digits_as_wanted() -> None:
    assert [formatting.percent(item, 2) for item in (0.54123, 0.00004, -0.0)] == ["54.12%", "0.004%", "0.00%"]


@pytest.mark.parametrize("value", [-0.0, 0.0])
def test_no_zero_has_a_sign(value: float) -> None:
    texts = [
        formatting.number(value),
        formatting.short_number(value, 3),
        formatting.amount_of(value, 10.0, "Mbit/s"),
        formatting.amount_or_number(value, "clients"),
        formatting.figure("delivered_share", value, ""),
        formatting.availability(value),
    ]
    assert texts == ["0", "0", "0 of 10 Mbit/s", "0 clients", "0%", "0%"]


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        (0.1, 0.2, ""),
        (0.1, 0.1, ""),
        (0.1, 0.100002, " (0.002% more)"),
        (100.0, 99.999, " (0.001% less)"),
        (100.0, 100.0 - 1e-7, " (less than 0.0001% less)"),
        (None, 0.1, ""),
    ],
)
def test_values_that_look_alike_are_told_apart(before: float | None, after: float, says: str) -> None:
    assert formatting.tell_apart(before, after, formatting.number) == says


@pytest.mark.parametrize(
    ("count", "nouns", "verb", "text"),
    [
        (1, "places", "", "1 place"),
        (0, "places", "", "0 places"),
        (1, "classes", "are", "1 class is"),
        (2, "classes", "have", "2 classes have"),
        (1, "trees of objects", "differ", "1 tree of objects differs"),
        (12_345, "windows", "need", "12,345 windows need"),
    ],
)
def test_a_count_agrees_with_noun_and_verb(count: int, nouns: str, verb: str, text: str) -> None:
    assert formatting.counted(count, nouns, verb) == text


def test_the_verb_of_a_part_agrees_with_the_part() -> None:
    assert formatting.counted_of(1, 7, "links", "are") == "1 of 7 links is"
    assert formatting.counted_of(2, 7, "links", "are") == "2 of 7 links are"
    assert formatting.counted_of(1, 1, "links") == "1 of 1 link"
