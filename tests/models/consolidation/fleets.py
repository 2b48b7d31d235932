"""Small problems of system `consolidation` for tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from planner_models.consolidation import Consolidation


def make(**tables: Mapping[str, Any]) -> Consolidation:
    """Return the problem of tables as columns, with hosts of two nodes of 8 threads and 32 GB."""
    columns: dict[str, Any] = {
        "hosts": {"host_type": ["h"], "price_per_h": [1.0]},
        "nodes": {
            "host_type": ["h", "h"],
            "node": ["0", "1"],
            "threads": [8.0, 8.0],
            "memory_gb": [32.0, 32.0],
        },
        **tables,
    }
    return Consolidation(**{name: pd.DataFrame(table) for name, table in columns.items()})


def machines(**columns: Any) -> dict[str, Any]:
    """Return the table of machines with names, and a vCPU and 1 GB each where nothing else is said."""
    rows = max(len(values) for values in columns.values())
    default = {
        "machine": [f"m{row}" for row in range(rows)],
        "vcpus_min": [1.0] * rows,
        "memory_gb": [1.0] * rows,
    }
    return {**default, **columns}


def random_fleet(seed: int, *, losses: str = "", split: bool = True, largest: int = 7) -> Consolidation:
    """Return a fleet of up to `largest` machines of three shapes on one or two types of hosts."""
    random = np.random.default_rng(seed)
    shapes = int(random.integers(1, 4))
    types = int(random.integers(1, 3))
    count = random.multinomial(int(random.integers(1, largest + 1)), np.full(shapes, 1 / shapes))
    table = {
        "machine": [f"m{row}" for row in range(shapes)],
        "count": count.astype(float),
        "vcpus_min": 2.0 * random.integers(1, 5, shapes),
        "memory_gb": 4.0 * random.integers(1, 9, shapes),
        "split": random.choice(["never", "even"], shapes) if split else ["never"] * shapes,
    }
    names = ["a", "b"][:types]
    tables: dict[str, Any] = {
        "hosts": {"host_type": names, "price_per_h": [2.0, 3.0][:types]},
        "nodes": {
            "host_type": [name for name in names for _ in range(2)],
            "node": ["0", "1"] * types,
            "threads": [8.0, 8.0, 16.0, 8.0][: 2 * types],
            "memory_gb": [32.0, 32.0, 32.0, 48.0][: 2 * types],
        },
        "machines": table,
    }
    if random.random() < 0.5:
        tables["capacities"] = {
            "host_type": names,
            "node": ["*"] * types,
            "resource": ["Gbit/s"] * types,
            "amount": [4.0] * types,
        }
        tables["uses"] = {
            "machine": table["machine"],
            "resource": ["Gbit/s"] * shapes,
            "amount": random.integers(0, 3, shapes).astype(float),
        }
    if losses:
        tables["survive"] = {"domain": [losses]}
        tables["zones"] = {"zone": ["x", "y", "z"]}
        if losses == "rack":
            tables["zones"] = {"zone": ["x"], "racks": [3.0]}
    return make(**tables)
