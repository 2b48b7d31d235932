"""Reproduction targets of system `flowtables`, declared in `data/published/flowtables.toml`."""

from __future__ import annotations

from typing import Final

from planner.contract.targets import read_targets
from planner_models.flowtables.published.caches import (
    find_bridge,
    find_cache,
    find_production,
    find_rules,
    find_table_1,
    find_table_2,
)
from planner_models.flowtables.published.lookups import (
    find_costs,
    find_pipeline,
    find_tries,
    find_tuple_search,
)

TARGETS: Final = read_targets(
    "flowtables",
    {
        "pipeline": find_pipeline,
        "tuple_search": find_tuple_search,
        "tries": find_tries,
        "cache": find_cache,
        "production": find_production,
        "costs": find_costs,
        "bridge": find_bridge,
        "rules": find_rules,
        "table_1": find_table_1,
        "table_2": find_table_2,
    },
)
