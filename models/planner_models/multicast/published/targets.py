"""Reproduction targets of system `multicast`, declared in `data/published/multicast.toml`."""

from __future__ import annotations

from typing import Final

from planner.contract.targets import read_targets
from planner_models.multicast.published.figures_4_to_6 import (
    find_figure_5a,
    find_figure_5b,
    find_figure_5c,
    find_figure_6,
    find_section_4_1,
)
from planner_models.multicast.published.figures_7_and_8 import find_figure_7, find_figure_8, find_table_2
from planner_models.multicast.published.section_3 import find_section_3

TARGETS: Final = read_targets(
    "multicast",
    {
        "section_4_1": find_section_4_1,
        "figure_5a": find_figure_5a,
        "figure_5b": find_figure_5b,
        "figure_5c": find_figure_5c,
        "figure_6": find_figure_6,
        "section_3": find_section_3,
        "figure_7": find_figure_7,
        "table_2": find_table_2,
        "figure_8": find_figure_8,
    },
)
