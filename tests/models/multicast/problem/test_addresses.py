"""Address distribution on fat trees: replication, equal shares, and reach of every pod."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from planner_models.multicast.problem import addresses, capacity_equations, topology
from tests.models.multicast.fabrics import require_distribution


@given(st.integers(1, 8), st.sampled_from(["ab", "standard", "portland"]), st.data())
def test_fat_trees_reach_every_pod_with_every_partition(
    half: int, kind: addresses.Kind, data: st.DataObject
) -> None:
    ra = data.draw(st.sampled_from([copies for copies in range(1, half + 1) if half % copies == 0]))
    wires = topology.fat_tree(kind, 2 * half)
    assert (wires.up.sum(axis=0) == 2 * half).all()  # a core has as many ports as there are pods
    assert (wires.up.sum(axis=1) == half).all()
    require_distribution(wires, addresses.distribute_addresses(kind, 2 * half, ra), ra**2, ra)


def test_the_kinds_of_fat_tree_differ_in_how_pods_connect() -> None:
    patterns = {
        kind: len(np.unique(np.sort(addresses.connected_cores(kind, 8), axis=2), axis=0))
        for kind in ("standard", "ab", "portland")
    }
    assert patterns == {"standard": 1, "ab": 2, "portland": 4}


@given(st.integers(1, 12), st.sampled_from(["ab", "standard", "portland"]), st.data())
def test_every_partition_is_replicated_as_said(half: int, kind: addresses.Kind, data: st.DataObject) -> None:
    k = 2 * half
    layout = data.draw(st.sampled_from(capacity_equations.list_layouts(k)))
    ra = layout.aggregation_copies
    assert not capacity_equations.find_layout_faults(k, layout.partitions, layout.core_copies, ra)
    core = addresses.core_partition(k, ra, kind)
    assert (np.bincount(core) == layout.core_copies).all()
    assert len(np.bincount(core)) == layout.partitions
    held = addresses.aggregation_partitions(kind, k, ra)
    assert (held.sum(axis=1) == ra).all()  # in every pod
    assert (held.sum(axis=2) == 2 * layout.partitions * ra // k).all()  # Np, equal shares
    # each pod connects once to each core
    assert (np.sort(addresses.connected_cores(kind, k).reshape(k, -1)) == np.arange(half**2)).all()
