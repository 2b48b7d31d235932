"""Corruptions of every plan table: rejected, reported with their amount, or another plan that is legal."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

from planner.errors import InputError, PlanRejected
from planner.runs.run import evaluate
from planner.scenarios.scenario import Entry
from planner_models.multicast import SYSTEM
from tests.models.multicast.fabrics import fat

PROBLEM = fat()


def corrupt(
    table: pd.DataFrame, random: np.random.Generator, count: int
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield tables with a row less, a row twice, one number or name changed, or two of a column swapped."""
    names = [*PROBLEM.group_names[:5], *PROBLEM.wiring.switches[-3:], "core", "nobody"]
    for _ in range(count):
        row, other = random.integers(0, len(table), 2)
        yield "drop row", table.drop(index=table.index[row])
        yield "repeat row", pd.concat([table, table.iloc[[row]]], ignore_index=True)
        name = str(random.choice(table.columns))
        column = table[name].astype(object).to_numpy(copy=True)
        if pd.api.types.is_numeric_dtype(table[name]):
            column[row] = float(column[row]) * random.choice([0.5, 2.0]) + random.choice(
                [0.0, 1.0, 0.3, 1e300]
            )
        else:
            column[row] = str(random.choice(names))
        yield f"change {name}", table.assign(**{name: column})
        column = table[name].astype(object).to_numpy(copy=True)
        column[[row, other]] = column[[other, row]]
        yield f"swap {name}", table.assign(**{name: column})


@pytest.mark.parametrize("name", ["partitioned_aggregated", "partitioned", "per_switch"])
def test_no_corruption_goes_unnoticed(name: str) -> None:
    run = evaluate(SYSTEM, PROBLEM, Entry(label=name, design=SYSTEM.design(name)))
    tables = {key: table.reset_index(drop=True) for key, table in run.plan.to_tables().items()}
    known = {tuple(row) for row in run.violations.frame.to_numpy().tolist()}
    random = np.random.default_rng(3)
    for key, table in tables.items():
        if not len(table):
            continue
        for kind, corrupted in corrupt(table, random, 10):
            given = {**tables, key: corrupted}
            try:
                plan = SYSTEM.plan.from_tables(PROBLEM, given)
                found = SYSTEM.plan.check(PROBLEM, plan)
            except (InputError, PlanRejected):
                continue
            if {tuple(row) for row in found.frame.to_numpy().tolist()} - known:
                continue
            # another plan: its table of entries is the one that follows from the others
            alone = SYSTEM.plan.from_tables(PROBLEM, {one: given[one] for one in given if one != "entries"})
            stated = plan.entries.set_index("switch")["entries"].sort_index()
            derived = alone.entries.set_index("switch")["entries"].sort_index()
            assert stated.equals(derived), f"{key}: {kind} goes unnoticed"
