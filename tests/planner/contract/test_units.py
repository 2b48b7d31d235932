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
