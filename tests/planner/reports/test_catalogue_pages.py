"""Pages of sweeps: names are whole at a terminal's usual width."""

from __future__ import annotations

import io

import pandas as pd
import pytest
from rich.console import Console

from planner.formatting import duration
from planner.reports import catalogue_pages, terminal
from planner.reports.document import Part

LABELS = ("optimum", "shortest_path", "dynamic_multicluster")


def outcome(scenarios: int) -> pd.DataFrame:
    rows = [
        {
            "scenario": f"brokering/market_{number}",
            "system": "brokering",
            "label": label,
            "status": status,
            "gap": 0.01,
            "seconds": 2.0,
            "served": None if status == "failed" else 900.0,
        }
        for number in range(scenarios)
        for label in LABELS
        for status in ("optimal", "heuristic", "failed")
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize("scenarios", [1, 2])
def test_names_and_heads_are_whole(scenarios: int) -> None:
    shown = Console(width=80, record=True, file=io.StringIO())
    for name, runs in outcome(scenarios).groupby("scenario", sort=False):
        table = catalogue_pages._outcome_table(str(name), runs)
        terminal.show_part(Part(tables=[table]), shown)
    text = shown.export_text()
    for number in range(scenarios):
        assert text.count(f"brokering/market_{number}\n") == 1 or f"brokering/market_{number} " in text
    for name in LABELS:
        lines = [line.split() for line in text.splitlines() if line.split()[:1] == [name]]
        assert lines == [[name, "900", "1", "1", "1", "0.01", "2"]] * scenarios
    for word in ("optimal", "heuristic", "failed", "time", "served", "clients"):
        assert word in text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.42, "0.42 s"), (12.3, "12 s"), (200.0, "3.33 min"), (9000.0, "2.5 h"), (3e5, "3.47 days")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_lists_along_an_axis_are_told_apart() -> None:
    values = [catalogue_pages._plain(value) for value in (["a"], ["a", "b"], {"x": 1}, 0.5, "a")]
    assert values == ['["a"]', '["a", "b"]', '{"x" = 1}', 0.5, "a"]
