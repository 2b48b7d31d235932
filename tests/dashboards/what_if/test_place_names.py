"""Places are found by the names that people type."""

from __future__ import annotations

import pytest

from planner_dashboard.what_if.place_names import other_names, without_diacritics


@pytest.mark.parametrize(
    ("element", "others"),
    [
        ("Koeln", ["Köln", "Cologne"]),
        ("Koblenz<->Koeln", ["Köln", "Cologne"]),
        ("Wuerzburg->Muenchen", ["Würzburg", "München", "Munich"]),
        ("Zürich", ["Zuerich", "Zurich"]),
        ("Berlin", []),
        ("a -> b", []),
    ],
)
def test_other_names_of_an_element(element: str, others: list[str]) -> None:
    assert other_names(element) == others


def test_diacritics_are_folded() -> None:
    assert without_diacritics("Kraków, São Paulo") == "Krakow, Sao Paulo"
