"""Reproduction targets of system `analytics`, declared in `data/published/analytics.toml`."""

from __future__ import annotations

from typing import Final

from planner.contract.targets import read_targets
from planner_models.analytics.published.examples import find_combination, find_policy, find_queries
from planner_models.analytics.published.introduction import find_prices, find_top_100

TARGETS: Final = read_targets(
    "analytics",
    {
        "prices": find_prices,
        "top_100": find_top_100,
        "queries": find_queries,
        "policy": find_policy,
        "combination": find_combination,
    },
)
