"""Reproduction targets of Mukerjee 2018, chapter 3: declared in data/published/brokering.toml, found here.

The thesis' traces are not public. The market `generators.world` was calibrated to Table 3.3, and the
targets name the calibrated rows; all others come from the same market without further fitting.
"""

from __future__ import annotations

from typing import Final

from planner.contract.targets import read_targets
from planner_models.brokering.published import figures_3_4_to_3_17, tables_3_2_and_3_3

TARGETS: Final = read_targets(
    "brokering",
    {
        "table_3_1": figures_3_4_to_3_17.find_table_3_1,
        "table_3_2": tables_3_2_and_3_3.find_table_3_2,
        "overbooking": tables_3_2_and_3_3.find_overbooking,
        "table_3_3": tables_3_2_and_3_3.find_table_3_3,
        "figure_3_4": figures_3_4_to_3_17.find_figure_3_4,
        "figure_3_5": figures_3_4_to_3_17.find_figure_3_5,
        "figure_3_6": figures_3_4_to_3_17.find_figure_3_6,
        "figure_3_8": figures_3_4_to_3_17.find_figure_3_8,
        "figure_3_10": tables_3_2_and_3_3.find_figure_3_10,
        "messages": tables_3_2_and_3_3.find_message_formats,
        "figures_3_11_to_3_13": figures_3_4_to_3_17.find_figures_3_11_to_3_13,
        "profits": figures_3_4_to_3_17.find_profit_formulas,
        "figures_3_14_to_3_16": figures_3_4_to_3_17.find_figures_3_14_to_3_16,
        "figure_3_17": figures_3_4_to_3_17.find_figure_3_17,
        "figure_3_18": tables_3_2_and_3_3.find_figure_3_18,
        "figure_3_19": tables_3_2_and_3_3.find_figure_3_19,
        "savings": tables_3_2_and_3_3.find_savings,
    },
)
