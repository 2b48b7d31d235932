"""Cells with the names of both ends, and columns of both directions."""

from __future__ import annotations

import pandas as pd
import pytest

from planner.contract.directed_columns import add_opposite_rows, find_opposites, split_ends


@pytest.mark.parametrize(
    ("cells", "known", "expected"),
    [
        (
            ["London - Paris", "Aix-en-Provence - Lyon"],
            (),
            [("London", "Paris"), ("Aix-en-Provence", "Lyon")],
        ),
        (["LON-PAR", "PAR-FRA"], (), [("LON", "PAR"), ("PAR", "FRA")]),
        (["London <-> Paris", "Paris <-> Bonn"], (), [("London", "Paris"), ("Paris", "Bonn")]),
        (["London → Paris", None], (), [("London", "Paris"), None]),
        (["London/Paris"], (), [("London", "Paris")]),
        (["London to Paris"], (), [("London", "Paris")]),
        (["Aix-en-Provence-Lyon", "Lyon-Paris"], (), [("Aix-en-Provence", "Lyon"), ("Lyon", "Paris")]),
        (["Aix-en-Provence-Lyon"], ("Lyon", "Aix-en-Provence"), [("Aix-en-Provence", "Lyon")]),
        (["a-b-c"], (), "unclear"),
        (["LON-PAR-1", "LON-PAR-2"], ("LON", "PAR"), "unclear"),
        (["a-b-c"], ("a", "b-c", "a-b", "c"), "unclear"),
        (["London", "Paris"], (), "unclear"),
    ],
)
def test_both_ends_of_a_cell(cells: list[str], known: tuple[str, ...], expected: object) -> None:
    splits = split_ends(cells, known)
    if expected == "unclear":
        assert splits.unclear == list(range(len(cells)))
        return
    assert not splits.unclear
    pairs = [pair if pair[0] else None for pair in zip(splits.first, splits.second, strict=True)]
    assert pairs == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["Capacity A→B", "Capacity B→A"], ("Capacity A→B", "Capacity B→A")),
        (["Z to A (Gbps)", "A to Z (Gbps)"], ("A to Z (Gbps)", "Z to A (Gbps)")),
        (["Mbps AZ", "Mbps ZA"], ("Mbps AZ", "Mbps ZA")),
        (["In (Mbps)", "Out (Mbps)"], ("Out (Mbps)", "In (Mbps)")),
        (["Download Mbps", "Upload Mbps"], ("Upload Mbps", "Download Mbps")),
        (["Forward rate", "Reverse rate"], ("Forward rate", "Reverse rate")),
        (["2026 Gbps", "2027 Gbps"], None),
        (["Average Mbps", "Peak Mbps"], None),
        (["In Mbps", "Out Mbps", "In Gbps", "Out Gbps"], None),
    ],
)
def test_two_columns_that_are_two_directions(names: list[str], expected: tuple[str, str] | None) -> None:
    assert find_opposites(names) == expected


def test_rows_of_both_directions_keep_the_number_of_their_row() -> None:
    frame = pd.DataFrame({"tail": ["a", "b"], "head": ["b", "c"], "capacity_mbps": [1.0, 2.0]}, index=[3, 5])
    both = add_opposite_rows(frame, ("tail", "head"), {"capacity_mbps": pd.Series([7.0, None], index=[3, 5])})
    assert both.index.tolist() == [3, 3, 5]
    assert both["tail"].tolist() == ["a", "b", "b"]
    assert both["capacity_mbps"].tolist() == [1.0, 7.0, 2.0]
