"""Reproduction targets of system `fairshare`, declared in `data/published/fairshare.toml`."""

from __future__ import annotations

from typing import Final

from planner.contract.targets import read_targets
from planner_models.fairshare.published.figures_3_to_5 import (
    find_figure_3,
    find_figure_4a,
    find_figure_4b,
    find_figure_5a,
    find_figure_5b,
)
from planner_models.fairshare.published.formulas import find_formulas, find_setup

TARGETS: Final = read_targets(
    "fairshare",
    {
        "tables_1_and_2": find_formulas,
        "setup": find_setup,
        "figure_3": find_figure_3,
        "figure_4a": find_figure_4a,
        "figure_4b": find_figure_4b,
        "figure_5a": find_figure_5a,
        "figure_5b": find_figure_5b,
    },
)
