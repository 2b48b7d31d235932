"""Plans from tables."""

from __future__ import annotations

import pandas as pd
import pytest

from planner.errors import PlanRejected
from planner_models.multicast import SYSTEM, check, measure
from tests.models.multicast.fabrics import fat


def test_plans_made_elsewhere() -> None:
    problem = fat()
    row = {"group": ["g1"], "partition": [2.0], "copies": [1.0]}
    plan = SYSTEM.plan.from_tables(problem, {"partitions": pd.DataFrame(row)})
    assert not len(check(problem, plan))
    assert measure(problem, plan, None)["groups_with_entries"] == 1
    with pytest.raises(PlanRejected, match="there are 4"):
        SYSTEM.plan.from_tables(problem, {"partitions": pd.DataFrame(row | {"partition": [9.0]})})
    with pytest.raises(PlanRejected, match="no group"):
        SYSTEM.plan.from_tables(problem, {"partitions": pd.DataFrame(row | {"group": ["nobody"]})})
    with pytest.raises(PlanRejected, match="no table 'partitions'"):
        SYSTEM.plan.from_tables(problem, {})
