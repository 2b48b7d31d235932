"""Sweeps on a terminal: names are whole at its usual width."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from rich.console import Console

from planner import sweep_report

LABELS = ("optimum", "shortest_path", "dynamic_multicluster")


def outcome(scenarios: int) -> Any:
    rows = [
        {
            "scenario": f"brokering/market_{number}",
            "label": label,
            "status": status,
            "gap": 0.01,
            "seconds": 2.0,
        }
        for number in range(scenarios)
        for label in LABELS
        for status in ("optimal", "feasible", "failed")
    ]
    return SimpleNamespace(runs=pd.DataFrame(rows))


@pytest.mark.parametrize("scenarios", [1, 2])
def test_names_and_heads_are_whole(monkeypatch: pytest.MonkeyPatch, scenarios: int) -> None:
    shown = Console(width=80, record=True, file=io.StringIO())
    monkeypatch.setattr(sweep_report, "console", shown)
    sweep_report.show_sweep(outcome(scenarios))
    text = shown.export_text()
    for number in range(scenarios):
        assert text.count(f"brokering/market_{number}\n") == 1 or f"brokering/market_{number} " in text
    for name in LABELS:
        lines = [line.split() for line in text.splitlines() if line.split()[:1] == [name]]
        assert lines == [[name, "3", "1", "1", "1", "0.01", "2"]] * scenarios
    for word in ("optimal", "feasible", "failed", "seconds"):
        assert word in text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.42, "0.42 s"), (12.3, "12 s"), (200.0, "3.33 min"), (9000.0, "2.5 h"), (3e5, "3.47 days")],
)
def test_durations(seconds: float, text: str) -> None:
    assert sweep_report.duration(seconds) == text
