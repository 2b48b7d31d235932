"""Closed forms of updates: printed values, drawn bursts, and consistency of single joins with bursts."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InputError
from planner_models.multicast.plan import rerouting
from planner_models.multicast.problem import equations, topology
from planner_models.multicast.problem.problem import list_hosts

FIGURE_7 = equations.Tenant(pods=8, edges=24, hosts=24, aggregation_copies=3, core_copies=9)


def test_figure_7() -> None:
    assert FIGURE_7.size == 4608
    assert equations.burst_updates(FIGURE_7, 300, batched=False).total == pytest.approx(2.78, abs=0.01)
    assert equations.burst_updates(FIGURE_7, 300, batched=True).total == pytest.approx(0.62, abs=0.01)
    assert equations.join_updates(FIGURE_7, 300).total == pytest.approx(1.63, abs=0.01)
    assert equations.leave_updates(FIGURE_7, 300).total == pytest.approx(1.64, abs=0.01)


def test_update_load_of_section_4_3_2() -> None:
    table_2b = equations.Updates(edge=1, aggregation=(1.89 + 1.86) / 2, core=(1.64 + 1.55) / 2)
    load = equations.updates_per_second(table_2b, k=48, events_per_pod=1000)
    assert (round(load.edge), round(load.aggregation), round(load.core)) == (42, 78, 133)


tenants = st.builds(
    equations.Tenant,
    pods=st.integers(1, 3),
    edges=st.integers(1, 3),
    hosts=st.integers(1, 4),
    aggregation_copies=st.integers(1, 3),
    core_copies=st.integers(1, 9),
)


def simulate_burst(
    tenant: equations.Tenant, joins: int, *, batched: bool, rng: np.random.Generator, times: int = 100
) -> equations.Updates:
    """Return `burst_updates` by drawing hosts `times` times and counting switches."""
    totals = np.zeros(3)
    ra, rc = tenant.aggregation_copies, tenant.core_copies
    for _ in range(times):
        edge = rng.choice(tenant.size, size=joins, replace=False) // tenant.hosts
        edges, pods = len(np.unique(edge)), len(np.unique(edge // tenant.edges))
        totals += (edges, ra * pods, rc) if batched else (joins, ra * edges, rc * pods)
    edge, aggregation, core = (totals / (joins * times)).tolist()
    return equations.Updates(edge=edge, aggregation=aggregation, core=core)


@given(tenants, st.data())
def test_closed_form_is_what_is_drawn(tenant: equations.Tenant, data: st.DataObject) -> None:
    joins = data.draw(st.integers(1, tenant.size))
    for batched in (False, True):
        exact = equations.burst_updates(tenant, joins, batched=batched)
        rng = np.random.default_rng(1)
        drawn = simulate_burst(tenant, joins, batched=batched, rng=rng, times=300)
        assert drawn.edge == pytest.approx(exact.edge, rel=0.15)
        assert drawn.aggregation == pytest.approx(exact.aggregation, rel=0.15)
        assert drawn.core == pytest.approx(exact.core, rel=0.15)


@given(tenants)
def test_single_joins_add_up_to_a_burst(tenant: equations.Tenant) -> None:
    for joins in {1, tenant.size // 2 or 1, tenant.size}:
        steps = [equations.join_updates(tenant, members).total for members in range(joins)]
        assert sum(steps) == pytest.approx(
            joins * equations.burst_updates(tenant, joins, batched=False).total
        )
        undone = [equations.leave_updates(tenant, members + 1).total for members in range(joins)]
        assert undone == pytest.approx(steps)


@given(tenants, st.data())
def test_batches_never_take_more(tenant: equations.Tenant, data: st.DataObject) -> None:
    joins = data.draw(st.integers(1, tenant.size))
    item, all_ = (equations.burst_updates(tenant, joins, batched=batched).total for batched in (True, False))
    assert item <= all_ + 1e-9


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: equations.burst_updates(FIGURE_7, 4609, batched=True),
            "joins is 4609, must be from 1 to 4608",
        ),
        (lambda: equations.join_updates(FIGURE_7, 4608), "must be from 0 to 4607"),
        (lambda: equations.leave_updates(FIGURE_7, 0), "must be from 1 to 4608"),
        (lambda: dataclasses.replace(FIGURE_7, pods=0), "pods is 0, must be at least 1"),
    ],
)
def test_bad_numbers_are_one_clear_line(call: object, words: str) -> None:
    assert callable(call)
    with pytest.raises(InputError, match=words):
        call()


def test_printed_example_of_48_ports() -> None:
    assert equations.core_capacity(k=48, table_size=1000, core_copies=9) == 64_000
    assert equations.aggregation_capacity(k=48, table_size=1000, aggregation_copies=3) == 8_000
    assert not equations.find_layout_faults(48, 64, 9, 3)


def test_printed_example_of_figure_2() -> None:
    assert equations.core_capacity(k=8, table_size=1, core_copies=4) == 4
    assert equations.aggregation_capacity(k=8, table_size=1, aggregation_copies=2) == 2


def test_printed_numbers_of_section_3() -> None:
    # a 3-tier fat tree of 48-port switches: hosts, cores, pods, switches of a pod
    wires = topology.fat_tree("ab", 48)
    assert len(list_hosts(48)) == 27_648
    assert (len(wires.cores), wires.pods) == (576, 48)
    assert len(wires.aggregations) == len(wires.edges) == 48 * 24
    # Fig. 2: four partitions, two in each aggregation switch, a prefix of two bits
    held = topology.distribute_addresses("ab", 8, 2)
    assert held.partitions == 4
    assert (held.aggregation.sum(axis=1) == 2).all()
    # the setting of section 4.1: 64 partitions at 9 cores and 3 switches of a pod, 8 in each switch
    held = topology.distribute_addresses("ab", 48, 3)
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
    cut = data.draw(st.sampled_from(equations.list_layouts(k)))
    core = equations.core_capacity(k=k, table_size=size, core_copies=cut.core_copies)
    assert core == pytest.approx(cut.partitions * size)
    pod = equations.aggregation_capacity(k=k, table_size=size, aggregation_copies=cut.aggregation_copies)
    assert pod == pytest.approx(half * size / cut.aggregation_copies)
    # a group at every edge switch of a pod fills the pod with one table; at one alone, with all
    assert equations.edge_capacity(k=k, table_size=size, edges_per_pod=half) == pytest.approx(size)
    assert equations.edge_capacity(k=k, table_size=size, edges_per_pod=1) == pytest.approx(half * size)


def test_pod_is_as_good_as_its_bottleneck_and_with_aggregation_as_the_other_layer() -> None:
    pod = {"k": 48, "table_size": 1000.0, "aggregation_copies": 3, "edges_per_pod": 12.0}
    assert equations.pod_capacity(**pod) == equations.edge_capacity(k=48, table_size=1000, edges_per_pod=12)
    assert equations.pod_capacity(**pod, aggregated=True) == 8_000


def test_system_is_bound_by_cores_or_pods() -> None:
    names = {"core_groups": 64_000, "pod_groups": 8_000, "pods": 48}
    assert equations.system_capacity(**names, share_across_pods=0.5, pods_per_group=2.5) == 128_000
    assert equations.system_capacity(**names, share_across_pods=0.5, pods_per_group=4) == 96_000


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
    faults = " ".join(equations.find_layout_faults(*numbers))
    assert word in faults if word else not faults


def test_copies_that_do_not_divide() -> None:
    assert any("divide" in fault for fault in equations.find_layout_faults(12, 36 // 16, 16, 4))
