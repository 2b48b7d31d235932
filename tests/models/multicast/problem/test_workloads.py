"""The workload has the marginal distributions that section 4.1 prints, whatever the seed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner_models.multicast.problem import generators, workloads


def small_workload(
    *, hosts: int = 128, arrangement: int = 0, seed: int = 0, **more: object
) -> workloads.Workload:
    names: dict[str, object] = {"tenants": 6, "groups": 80}
    tenancy = workloads.Tenancy(**(names | more))  # type: ignore[arg-type]
    return workloads.generate_workload(hosts=hosts, tenancy=tenancy, arrangement=arrangement, seed=seed)


def test_tenants_are_as_published() -> None:
    sizes = workloads.tenant_sizes(3000, 5000)
    assert sizes.min() == 10
    assert 4_900 < sizes.max() <= 5_000
    assert np.median(sizes) == pytest.approx(100, rel=0.05)
    assert sizes.sum() <= 27_648 * workloads.VMS_PER_HOST


@pytest.mark.parametrize(("kind", "mean"), [("wve", 51), ("uniform", 510)])
def test_group_sizes_are_as_published(kind: workloads.Sizes, mean: float) -> None:
    result = small_workload(hosts=27_648, tenants=3000, largest_tenant=5000, groups=100_000, sizes=kind)
    tenant = workloads.tenant_sizes(3000, 5000)[result.tenant]
    assert result.size.min() >= 5
    assert (result.size <= tenant).all()
    assert result.size.mean() == pytest.approx(mean, rel=0.05)
    if kind == "wve":
        assert (result.size < 40).mean() == pytest.approx(0.8, abs=0.02)
        assert (result.size > 2000).mean() == pytest.approx(0.004, abs=0.001)
    assert np.unique(result.rate_mbps).tolist() == list(range(1, 11))
    assert result.rate_mbps.mean() == pytest.approx(5.5, rel=0.02)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 999), st.sampled_from(["near", "random"]), st.sampled_from(["wve", "uniform"]))
def test_members_are_distinct_hosts_of_the_tenant_and_both_ways_draw_the_same(
    seed: int, placement: workloads.Placement, sizes: workloads.Sizes
) -> None:
    result = small_workload(seed=seed, placement=placement, sizes=sizes)
    start, host = result.members()
    edge_of, port_of = np.arange(128) // 4, np.arange(128) % 4
    spread = workloads.collect_spread(start, host, edge_of, port_of, 32)
    direct = result.spread(edge_of, port_of, 32)
    for item, other in (
        (spread.start, direct.start),
        (spread.edge, direct.edge),
        (spread.ports, direct.ports),
    ):
        assert item.tolist() == other.tolist()
    switch, group, ports = spread.by_edge()
    twin: dict[tuple[int, int], int] = {}
    for g, tenant in enumerate(result.tenant.tolist()):
        current = host[start[g] : start[g + 1]].tolist()
        own_values = result.hosts[result.first_host[tenant] : result.first_host[tenant + 1]].tolist()
        assert len(set(current)) == len(current) == result.size[g]
        assert set(current) <= set(own_values)
        for h in current:
            twin[h // 4, g] = twin.get((h // 4, g), 0) | 1 << h % 4
    index = np.repeat(np.arange(32), np.diff(switch))
    assert dict(zip(zip(index.tolist(), group.tolist(), strict=True), ports.tolist(), strict=True)) == twin
    assert (np.diff(index * 80 + group) > 0).all()
    pods = direct.in_pods(np.arange(32) // 4, np.arange(32) % 4, 8)
    below: dict[tuple[int, int], int] = {}
    for edge, g in twin:
        below[g, edge // 4] = below.get((g, edge // 4), 0) | 1 << edge % 4
    who = np.repeat(np.arange(80), np.diff(pods.start))
    assert (
        dict(zip(zip(who.tolist(), pods.edge.tolist(), strict=True), pods.ports.tolist(), strict=True))
        == below
    )


@pytest.mark.parametrize("placement", ["near", "random"])
def test_hosts_have_twenty_vms_of_different_tenants_at_most(placement: workloads.Placement) -> None:
    size = workloads.tenant_sizes(3000, 5000)
    host, first = workloads.place_tenants(size, 27_648, placement, 3)
    assert np.bincount(host, minlength=27_648).max() <= workloads.VMS_PER_HOST
    for begin, end in zip(first[:-1].tolist(), first[1:].tolist(), strict=True):
        assert len(np.unique(host[begin:end])) == end - begin


def test_hosts_without_room_for_all_take_more() -> None:
    host, first = workloads.place_tenants(np.full(50, 10), 16, "random", 0)
    assert first[-1] == len(host) == 500
    assert np.bincount(host, minlength=16).max() <= 34
    assert all(len(set(host[10 * t : 10 * t + 10].tolist())) == 10 for t in range(50))


def test_every_member_is_as_likely() -> None:
    result = small_workload(
        hosts=64, tenants=1, largest_tenant=20, groups=4000, sizes="uniform", arrangement=1
    )
    _, host = result.members()
    count = np.bincount(host, minlength=64)
    count = count[count > 0]
    assert len(count) == result.first_host[1]
    assert count.std() / count.mean() < 0.05


def test_groups_are_in_proportion_and_seeds_change_little() -> None:
    assert workloads.apportion_groups(np.array([10, 20, 30]), 12).tolist() == [2, 4, 6]
    assert workloads.apportion_groups(np.array([10, 20, 31]), 7).sum() == 7
    fullest = []
    for seed in range(4):
        problem = generators.datacenter(
            k=16, aggregation_copies=2, tenants=60, largest_tenant=400, groups=3000, seed=seed
        )
        fullest.append(np.bincount(problem.at_edge[0]).max())
    assert np.std(fullest) / np.mean(fullest) < 0.03
