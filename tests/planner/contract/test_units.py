"""Units in names of columns."""

from __future__ import annotations

import pytest

from planner.contract.units import LONGEST_NAME, split_unit


@pytest.mark.parametrize("text", ["[", "(", " ", "_", ", ", "per ", "/ ", "aB"])
def test_a_name_of_a_million_letters_has_no_unit(text: str) -> None:
    assert not list(split_unit(text * 1_000_000 + " (Gbit/s)"))


def test_a_name_of_the_longest_length_has_a_unit() -> None:
    unit = " (Gbit/s)"
    name = "c" * (LONGEST_NAME - len(unit))
    stem, (result,) = split_unit(name + unit)[0]
    assert (stem, result.symbol) == (name, "Gbit/s")
    assert not list(split_unit("c" + name + unit))


@pytest.mark.parametrize(
    ("name", "stem", "bits_per_s"),
    [
        ("volume (GB/day)", "volume", 8e9 / 86_400),
        ("Traffic in TB/day", "Traffic", 8e12 / 86_400),
        ("load (MB per hour)", "load", 8e6 / 3600),
        ("peak (Gbit/min)", "peak", 1e9 / 60),
    ],
)
def test_data_in_a_time_is_a_mean_rate(name: str, stem: str, bits_per_s: float) -> None:
    result, (unit,) = split_unit(name)[0]
    assert (result, unit.dimension) == (stem, "rate")
    assert float(unit.size) == pytest.approx(bits_per_s)


def test_a_price_of_data_is_no_rate() -> None:
    assert split_unit("Price ($/GB)")[0][1][0].dimension == "data"
    assert not split_unit("volume (GB/fortnight)")
