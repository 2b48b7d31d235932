"""Data center topologies by their numbers of nodes and links, and the workloads on them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InputError
from planner_models.flows import next_hops
from planner_models.traffic import Traffic
from planner_models.traffic.problem import generators


def kinds(problem: Traffic) -> dict[str, int]:
    result = problem.nodes["node"].str.partition("-")[0].value_counts()
    return {str(name): int(count) for name, count in result.items()}


@pytest.mark.parametrize("k", [2, 4, 6, 8])
def test_sizes_of_a_fat_tree_follow_from_its_ports(k: int) -> None:
    problem = generators.fat_tree(k=k)
    half = k // 2
    count = {"host": k**3 // 4, "edge": k * half, "aggregation": k * half, "core": half**2}
    assert kinds(problem) == count
    assert len(problem.links) == 2 * 3 * k**3 // 4
    degree = np.bincount(problem.tail)
    ports = {"host": 1, "edge": k, "aggregation": k, "core": k}
    for name, ways in zip(problem.nodes["node"], degree, strict=True):
        assert ways == ports[name.partition("-")[0]], name


def test_hosts_of_different_pods_are_connected_over_every_core() -> None:
    problem = generators.fat_tree(k=4, workload="stride")
    paths = next_hops.draw_paths(next_hops.find_next_hops(problem), np.random.default_rng(0), copies=200)
    first = {tuple(paths[[row]].indices.tolist()) for row in range(200)}
    assert len(first) == 4


def test_the_oversubscribed_tree_of_the_paper() -> None:
    problem = generators.oversubscribed_fat_tree()
    assert kinds(problem) == {"host": 512, "edge": 32, "aggregation": 32, "core": 16}


def test_the_vl2_of_the_paper() -> None:
    problem = generators.vl2()
    assert kinds(problem) == {"host": 1000, "tor": 50, "aggregation": 20, "intermediate": 5}
    links = problem.links
    inner = ~links["tail"].str.startswith("host") & ~links["head"].str.startswith("host")
    assert set(links["capacity_mbps"][inner]) == {10_000.0}
    assert set(links["capacity_mbps"][~inner]) == {1_000.0}
    up = links[links["tail"].str.startswith("tor") & links["head"].str.startswith("aggregation")]
    assert set(up.groupby("tail")["head"].nunique()) == {2}
    assert set(up.groupby("head")["tail"].nunique()) == {5}  # every aggregation switch has as many racks


@given(st.integers(2, 40), st.integers(0, 100))
def test_in_a_permutation_every_host_sends_once_and_receives_once(hosts: int, seed: int) -> None:
    names = [f"h{i}" for i in range(hosts)]
    drawn = generators.draw_permutation(names, rate_mbps=2.0, random=np.random.default_rng(seed))
    assert drawn["source"].tolist() == names
    assert sorted(drawn["target"]) == sorted(names)
    assert (drawn["source"] != drawn["target"]).all()
    assert set(drawn["rate_mbps"]) == {2.0}


def test_stride_is_modulo_the_number_of_hosts() -> None:
    result = generators.stride_demands(["a", "b", "c", "d"], rate_mbps=1.0)
    assert result["target"].tolist() == ["c", "d", "a", "b"]
    assert generators.stride_demands(["a", "b", "c", "d"], rate_mbps=1.0, stride=1)[
        "target"
    ].tolist() == list("bcda")


@given(st.integers(2, 12), st.integers(0, 50), st.integers(1, 200))
def test_gravity_keeps_the_largest_pairs_and_the_total(hosts: int, seed: int, pairs: int) -> None:
    names = [f"h{i}" for i in range(hosts)]
    every = generators.draw_gravity(names, rate_mbps=3.0, random=np.random.default_rng(seed))
    assert len(every) == hosts * (hosts - 1)
    assert every["rate_mbps"].sum() == pytest.approx(3.0 * hosts)
    gravity = generators.draw_gravity(names, rate_mbps=3.0, pairs=pairs, random=np.random.default_rng(seed))
    assert len(gravity) == min(pairs, len(every))
    assert gravity["rate_mbps"].sum() == pytest.approx(3.0 * hosts)
    remaining = every.merge(gravity, on=["source", "target"], suffixes=("", "_kept"))
    assert remaining["rate_mbps"].min() >= every["rate_mbps"].nlargest(len(gravity)).min()


def test_the_same_seed_draws_the_same_demands() -> None:
    item, same, other = (generators.fat_tree(k=4, seed=seed).demands for seed in (1, 1, 2))
    assert item.equals(same)
    assert not item.equals(other)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"k": 5}, "problem.k is 5, must be even"),
        ({"stride": 3}, "problem.stride is 3, but problem.workload is 'permutation', must be 'stride'"),
        ({"pairs": 3}, "problem.pairs is 3, but problem.workload is 'permutation', must be 'gravity'"),
        (
            {"workload": "stride", "stride": 16},
            "problem.stride is 16: with 16 hosts, each would send to itself",
        ),
    ],
)
def test_impossible_parameters_are_errors(parameters: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        generators.fat_tree(**parameters)  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_vl2_needs_two_aggregation_switches() -> None:
    with pytest.raises(InputError, match="aggregations is 1, must be at least 2"):
        generators.build_vl2(
            tors=1, aggregations=1, intermediates=1, hosts_per_tor=2, host_mbps=1.0, switch_mbps=1.0
        )
