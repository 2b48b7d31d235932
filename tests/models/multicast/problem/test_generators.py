"""Synthetic problems by seed, and plans for own tables."""

from __future__ import annotations

import pytest

import planner
from planner.errors import InputError
from planner_models.multicast.problem import generators


def test_seed_decides() -> None:
    item, same, other = (generators.datacenter(seed=seed) for seed in (1, 1, 2))
    assert item.members.equals(same.members)
    assert not item.members.equals(other.members)


def test_copies_that_the_fabric_cannot_have() -> None:
    with pytest.raises(InputError, match="must divide k"):
        generators.datacenter(k=8, aggregation_copies=3)


def test_own_tables_give_plans() -> None:
    result = planner.compare("multicast/own_data")
    assert result.exit_code == 0
    plan = result.runs[0].plan
    assert set(plan.to_tables()) == {"partitions", "meta_groups", "entries"}
    traffic = result.metrics["host_traffic_mbps"]
    assert traffic["partitioned_aggregated"] <= traffic["partitioned"] <= traffic["per_switch"]
