"""Synthetic problems, and own tables from the scenario to the plan."""

from __future__ import annotations

import pytest

import planner
from planner.errors import InputError
from planner_models.multicast import generate


def test_seed_decides() -> None:
    one, same, other = (generate.datacenter(seed=seed) for seed in (1, 1, 2))
    assert one.members.equals(same.members)
    assert not one.members.equals(other.members)


def test_copies_that_the_fabric_cannot_have() -> None:
    with pytest.raises(InputError, match="must divide k"):
        generate.datacenter(k=8, aggregation_copies=3)


def test_own_tables_give_plans() -> None:
    result = planner.compare("multicast/own_data")
    assert result.exit_code == 0
    plan = result.runs[0].plan
    assert set(plan.to_tables()) == {"partitions", "meta_groups", "entries"}
    worth = result.metrics["host_traffic_mbps"]
    assert worth["partitioned_aggregated"] <= worth["partitioned"] <= worth["per_switch"]
