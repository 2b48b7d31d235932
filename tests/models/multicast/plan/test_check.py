"""Checks of plans: what is no plan is refused, full tables are reported."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from planner.errors import PlanRejected
from planner_models.multicast import check
from planner_models.multicast.designs import partitioned, partitioned_aggregated
from tests.models.multicast.fabrics import fat


def test_spoiled_plans_are_refused() -> None:
    problem = fat()
    plan = partitioned_aggregated.partition_and_share(problem).plan
    assert len(plan.meta_groups)
    spoiled = [
        replace(plan, entries=plan.entries.assign(entries=plan.entries["entries"] + 1)),
        replace(plan, entries=plan.entries.iloc[1:]),
        replace(plan, meta_groups=plan.meta_groups.iloc[1:]),
        replace(plan, meta_groups=plan.meta_groups.assign(group="nobody")),
        replace(plan, partitions=plan.partitions.assign(partition=99.0)),
        replace(plan, partitions=plan.partitions.assign(copies=3.0)),
        replace(plan, partitions=pd.concat([plan.partitions, plan.partitions])),
    ]
    for each in spoiled:
        with pytest.raises(PlanRejected):
            check(problem, each)


def test_full_tables_are_reported_with_their_numbers() -> None:
    wide = fat(table_size=1000)
    plan = partitioned.partition_addresses(wide, choose="arrival").plan
    tight = fat(table_size=5)
    broken = check(tight, plan)
    assert set(broken.frame["limit"]) == {"table"}
    assert (broken.frame["amount"] > 5).all()
