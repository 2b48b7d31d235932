"""Figures of the guide to the system: its tables again from comparisons, with bounds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import planner

PAGE = Path(__file__).parents[1] / "docs" / "howto" / "cdnrouting.md"
DRAWS = {
    "joint": "`joint`",
    "joint_isp": "`joint`, ISP's cost",
    "bargain": "`bargain`",
    "nearest": "`cdn_options`, k = 1",
    "cdn_options": "`cdn_options`, k = 2",
    "cdn_options_3": "`cdn_options`, k = 3",
    "react_slowly": "`react_blind`, step 0.3",
    "isp_prices": "`isp_ranks`, prices",
    "react_informed": "`react_informed`",
    "isp_ranks": "`isp_ranks`, ranks",
    "react_blind": "`react_blind`, step 1",
    "hierarchical": "`hierarchical`",
    "separate": "`separate`",
}
"""First cell of the row of each design in the table of draws."""
SWINGING = {"react_blind", "isp_ranks"}
"""Designs whose states depend on the last digits of those before."""


def rows_of(title: str) -> dict[str, list[str]]:
    """Return the cells of the first table in a section, by their first cell."""
    text = PAGE.read_text(encoding="utf-8")
    section = text[text.index(f"## {title}") :].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {first: others for first, *others in cells}


@pytest.mark.slow
def test_all_ways_have_the_delays_of_the_table() -> None:
    rows = rows_of("All ways to coordinate")
    comparison = planner.compare("cdnrouting/abilene")
    assert {f"`{run.label}`" for run in comparison.runs} == set(rows) - {"design", "---"}
    for run in comparison.runs:
        delay, ratio = (run.metrics[name] for name in ("mean_delay_ms", "price_of_anarchy"))
        assert delay is not None
        assert ratio is not None
        assert float(rows[f"`{run.label}`"][0]) == pytest.approx(delay, rel=0.01)
        assert float(rows[f"`{run.label}`"][1]) == pytest.approx(ratio, rel=0.015)
        assert ratio >= 1 - 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 4])
def test_draws_have_the_ratios_of_the_table(seed: int) -> None:
    rows = rows_of("The same on other clusters")
    comparison = planner.compare("cdnrouting/draws", changes={"problem.seed": seed})
    for run in comparison.runs:
        ratios = [float(text) for text in re.split(r",\s*", rows[DRAWS[run.label]][0])]
        ratio = run.metrics["price_of_anarchy"]
        assert ratio is not None
        tolerance = 0.2 if run.label in SWINGING else 0.02
        assert ratio == pytest.approx(ratios[seed - 1], rel=tolerance), run.label
        assert ratio >= 1 - 1e-6
