"""Trees by tables: every design works, and a fat tree by tables counts the same entries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from planner.runs.evaluation import evaluate
from planner.scenarios.scenario import Entry
from planner_models.multicast import SYSTEM, Multicast, check
from planner_models.multicast.designs import partitioned
from tests.models.multicast.fabrics import PLANNING, fat, tree


@pytest.mark.parametrize("design", PLANNING, ids=lambda design: design.name)
def test_every_design_works_on_a_tree(design: Any) -> None:
    problem = Multicast.from_tables(tree())
    run = evaluate(SYSTEM, problem, Entry(label=design.name, design=design))
    assert run.plan is not None
    assert not len(run.violations)
    again = Multicast.from_tables(problem.to_tables())
    assert not len(check(again, SYSTEM.plan.from_tables(again, run.plan.to_tables())))


def test_a_fat_tree_by_tables_counts_the_same_entries() -> None:
    problem = fat(placement="random", k=4)
    wires = problem.wiring
    tables = problem.to_tables()
    layer_pod = [("core", 0)] * len(wires.cores)
    layer_pod += [("aggregation", pod) for pod in wires.aggregation_pod.tolist()]
    layer_pod += [("edge", pod) for pod in wires.edge_pod.tolist()]
    rows = [(name, *position) for name, position in zip(wires.switches, layer_pod, strict=True)]
    links = [(wires.aggregations[a], wires.cores[c]) for a, c in np.argwhere(wires.up).tolist()]
    held = problem.distribution(1)
    above = wires.cores.append(wires.aggregations)
    holds = np.argwhere(np.vstack([held.core, held.aggregation])).tolist()
    same = Multicast.from_tables(
        tables
        | {
            "fabric": tables["fabric"].assign(kind="tree"),
            "switches": pd.DataFrame(rows, columns=["switch", "layer", "pod"]),
            "links": pd.DataFrame(links, columns=["lower", "upper"]),
            "holds": pd.DataFrame([(above[s], p) for s, p in holds], columns=["switch", "partition"]),
        }
    )
    item, two = (partitioned.partition_addresses(each).plan for each in (problem, same))
    pd.testing.assert_frame_equal(item.entries, two.entries)
