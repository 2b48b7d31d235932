"""Equations (1) to (5) against the numbers that section 3 prints."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner_models.multicast.plan import rerouting
from planner_models.multicast.problem import addresses, capacity_equations, topology
from planner_models.multicast.problem.problem import list_hosts


def test_printed_example_of_48_ports() -> None:
    assert capacity_equations.core_capacity(k=48, table_size=1000, core_copies=9) == 64_000
    assert capacity_equations.aggregation_capacity(k=48, table_size=1000, aggregation_copies=3) == 8_000
    assert not capacity_equations.find_layout_faults(48, 64, 9, 3)


def test_printed_example_of_figure_2() -> None:
    assert capacity_equations.core_capacity(k=8, table_size=1, core_copies=4) == 4
    assert capacity_equations.aggregation_capacity(k=8, table_size=1, aggregation_copies=2) == 2


def test_printed_numbers_of_section_3() -> None:
    # a 3-tier fat tree of 48-port switches: hosts, cores, pods, switches of a pod
    wires = topology.fat_tree("ab", 48)
    assert len(list_hosts(48)) == 27_648
    assert (len(wires.cores), wires.pods) == (576, 48)
    assert len(wires.aggregations) == len(wires.edges) == 48 * 24
    # Fig. 2: four partitions, two in each aggregation switch, a prefix of two bits
    held = addresses.distribute_addresses("ab", 8, 2)
    assert held.partitions == 4
    assert (held.aggregation.sum(axis=1) == 2).all()
    # the setting of section 4.1: 64 partitions at 9 cores and 3 switches of a pod, 8 in each switch
    held = addresses.distribute_addresses("ab", 48, 3)
    assert held.core.sum(axis=0).tolist() == [9] * 64
    assert (held.aggregation.sum(axis=1) == 8).all()
    # Algorithm 1: rc / ra cores below each aggregation switch get each of its partitions
    below = wires.up.astype(int) @ held.core.astype(int)
    assert (below[held.aggregation] == 3).all()
    # section 3.3.1 at 48 ports
    assert rerouting.rerouting_cost(48).identifiers == 72
    assert rerouting.rerouting_cost(48).identifier_bits == 7


@given(st.integers(1, 32), st.floats(1, 4000), st.data())
def test_capacities_are_those_of_the_distribution(half: int, size: float, data: st.DataObject) -> None:
    k = 2 * half
    cut = data.draw(st.sampled_from(capacity_equations.list_layouts(k)))
    core = capacity_equations.core_capacity(k=k, table_size=size, core_copies=cut.core_copies)
    assert core == pytest.approx(cut.partitions * size)
    pod = capacity_equations.aggregation_capacity(
        k=k, table_size=size, aggregation_copies=cut.aggregation_copies
    )
    assert pod == pytest.approx(half * size / cut.aggregation_copies)
    # a group at every edge switch of a pod fills the pod with one table; at one alone, with all
    assert capacity_equations.edge_capacity(k=k, table_size=size, edges_per_pod=half) == pytest.approx(size)
    assert capacity_equations.edge_capacity(k=k, table_size=size, edges_per_pod=1) == pytest.approx(
        half * size
    )


def test_pod_is_as_good_as_its_bottleneck_and_with_aggregation_as_the_other_layer() -> None:
    pod = {"k": 48, "table_size": 1000.0, "aggregation_copies": 3, "edges_per_pod": 12.0}
    assert capacity_equations.pod_capacity(**pod) == capacity_equations.edge_capacity(
        k=48, table_size=1000, edges_per_pod=12
    )
    assert capacity_equations.pod_capacity(**pod, aggregated=True) == 8_000


def test_system_is_bound_by_cores_or_pods() -> None:
    names = {"core_groups": 64_000, "pod_groups": 8_000, "pods": 48}
    assert capacity_equations.system_capacity(**names, share_across_pods=0.5, pods_per_group=2.5) == 128_000
    assert capacity_equations.system_capacity(**names, share_across_pods=0.5, pods_per_group=4) == 96_000


@pytest.mark.parametrize(
    ("numbers", "word"),
    [
        ((7, 4, 4, 2), "even"),
        ((8, 5, 4, 2), "k^2/4"),
        ((8, 8, 2, 2), "core_copies"),
        ((12, 1, 36, 6), None),
        ((12, 9, 4, 2), None),
        ((10, 1, 25, 5), None),
        ((24, 9, 16, 4), None),
    ],
)
def test_layout_faults(numbers: tuple[int, int, int, int], word: str | None) -> None:
    faults = " ".join(capacity_equations.find_layout_faults(*numbers))
    assert word in faults if word else not faults


def test_copies_that_do_not_divide() -> None:
    assert any("divide" in fault for fault in capacity_equations.find_layout_faults(12, 36 // 16, 16, 4))
