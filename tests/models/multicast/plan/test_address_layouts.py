"""Layouts of the address space against counted plans."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from planner_models.multicast import SYSTEM, Channels
from planner_models.multicast.plan import address_layouts
from planner_models.multicast.plan.plan import round_robin_partitions
from tests.models.multicast.fabrics import fat


def test_choices_are_counted_as_plans_are() -> None:
    problem = fat(k=8, aggregation_copies=2, groups=60, table_size=20, placement="random")
    table = address_layouts.list_choices(problem)
    assert table["aggregation_copies"].tolist() == [1, 2, 4]
    assert table["partitions"].tolist() == [16, 4, 1]
    for row in table.itertuples():
        partition = round_robin_partitions(problem, row.aggregation_copies)
        everything = Channels(
            partitions=pd.DataFrame(
                {
                    "group": problem.groups["group"],
                    "partition": partition.astype(float),
                    "copies": float(row.aggregation_copies),
                }
            ),
            meta_groups=pd.DataFrame({"switch": [], "meta_group": [], "group": []}),
            entries=pd.DataFrame(),
        )
        counted = SYSTEM.plan.from_tables(problem, {"partitions": everything.partitions}).entries
        upper = counted.groupby("layer")["entries"].max()
        assert row.core_entries_max == upper["core"]
        assert row.aggregation_entries_max == upper["aggregation"]
        assert row.fits == (max(upper["core"], upper["aggregation"]) <= 20)
        assert row.spare_entries == 20 - max(upper["core"], upper["aggregation"])
        assert (row.groups_before_overflow == 60) == row.fits


def test_the_choice_is_the_best_of_all_that_fit_and_says_what_the_next_lacks() -> None:
    problem = fat(k=8, aggregation_copies=1, groups=60, table_size=20, placement="random")
    table = address_layouts.list_choices(problem)
    for size in range(1, 80, 6):
        fabric = problem.fabric.assign(core_entries=float(size), aggregation_entries=float(size))
        sized = replace(problem, fabric=fabric)
        choice = address_layouts.choose_layout(sized)
        need = table[["core_entries_max", "aggregation_entries_max"]].max(axis=1).to_numpy()
        able = table["aggregation_copies"].to_numpy()[need <= size]
        assert choice.chosen == (able.max() if len(able) else None)
        if choice.next_copies is not None:
            needed = need[table["aggregation_copies"].to_numpy() == choice.next_copies][0]
            assert choice.missing_entries == needed - size
            larger = fabric.assign(core_entries=needed, aggregation_entries=needed)
            assert address_layouts.choose_layout(replace(problem, fabric=larger)).chosen == choice.next_copies
        roomy = address_layouts.choose_layout(sized, wish="groups")
        assert (roomy.chosen is None) == (choice.chosen is None)
        if roomy.chosen is not None:
            assert roomy.chosen <= choice.chosen
        assert choice.sentences()
