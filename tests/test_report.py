"""What is shown on a terminal: names are never cut, however narrow it is."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from planner import report
from planner.catalogue import find_system, system_names
from planner.describe import parameters


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", system_names())
def test_a_system_is_shown_whole(monkeypatch: pytest.MonkeyPatch, name: str, width: int) -> None:
    shown = Console(width=width, file=io.StringIO(), record=True)
    monkeypatch.setattr(report, "console", shown)
    system = find_system(name)
    report.show_system(system, parameters(system))
    text = shown.export_text()
    assert "…" not in text
    letters = "".join(text.split())
    for design in system.designs:
        assert design.name[:8] in letters


@pytest.mark.parametrize(
    ("count", "what", "said"),
    [
        (1, "demands", "1 demand"),
        (1, "entries", "1 entry"),
        (1, "switches", "1 switch"),
        (1, "wavelength", "1 wavelength"),
        (0, "links", "0 links"),
        (1_200, "links", "1,200 links"),
    ],
)
def test_sizes_count_in_english(count: int, what: str, said: str) -> None:
    assert report.sizes({what: count}) == said
