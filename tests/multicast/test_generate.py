"""The workload has the marginals that section 4.1 prints."""

from __future__ import annotations

import numpy as np
import pytest

import planner
from planner.errors import InputError
from planner_models.multicast import generate


def test_tenants_are_as_published() -> None:
    sizes = generate.tenant_sizes(3000, 5000)
    assert sizes.min() == 10
    assert 4_900 < sizes.max() <= 5_000
    assert np.median(sizes) == pytest.approx(100, rel=0.05)


@pytest.mark.parametrize(("kind", "mean"), [("wve", 51), ("uniform", 510)])
def test_group_sizes_are_as_published(kind: str, mean: float) -> None:
    tenants = generate.tenant_sizes(3000, 5000)
    rng = np.random.default_rng(0)
    owner = rng.choice(tenants, size=100_000, p=tenants / tenants.sum())
    sizes = generate.group_sizes(rng, owner, kind)
    assert sizes.min() >= 5
    assert (sizes <= owner).all()
    assert sizes.mean() == pytest.approx(mean, rel=0.05)
    if kind == "wve":
        assert (sizes < 40).mean() == pytest.approx(0.8, abs=0.02)
        assert (sizes > 2000).mean() == pytest.approx(0.004, abs=0.001)


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
