"""Price lists of host types."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.errors import InputError
from planner_models.consolidation.problem.readers.prices import read_prices


@pytest.mark.parametrize(
    "text",
    [
        "host_type,price_per_h\nm5,0.096\n",
        "Instance type,Price per hour\nm5,$0.096\n",
        "Instance type,On demand\nm5,0.096\n",
        "API Name,Linux On Demand cost\nm5,$0.096000 hourly\nm6,unavailable\n",
        "instance type,Hourly price (USD)\nm5,$0.096\n",
    ],
)
def test_lists_name_the_price_of_an_hour(tmp_path: Path, text: str) -> None:
    path = tmp_path / "prices.csv"
    path.write_text(text, encoding="utf-8")
    assert read_prices(path) == {"m5": 0.096}


def test_other_prices_are_named(tmp_path: Path) -> None:
    path = tmp_path / "prices.csv"
    path.write_text("type,On demand\nm5,many\n", encoding="utf-8")
    with pytest.raises(InputError) as error:
        read_prices(path)
    line = "prices.csv row 2: price_per_h is 'many', must be a number, or as '$0.096 hourly'"
    assert error.value.faults == (line,)
