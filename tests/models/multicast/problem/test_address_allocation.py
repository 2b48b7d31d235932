"""Address distribution by constraint programming on random trees."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import InputError
from planner_models.multicast import Multicast
from planner_models.multicast.problem import address_allocation, topology
from tests.models.multicast.fabrics import require_distribution, tree


@settings(max_examples=10, deadline=None)
@given(st.integers(2, 4), st.integers(2, 4), st.integers(1, 3), st.integers(1, 6), st.integers(0, 99))
def test_trees_by_constraint_programming(
    pods: int, switches: int, copies: int, partitions: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    pod = np.repeat(np.arange(pods), switches)
    cores = 2 * switches
    up = rng.random((len(pod), cores)) < 0.6
    wires = topology.Wiring(
        cores=pd.Index([f"c{i}" for i in range(cores)]),
        aggregations=pd.Index([f"a{i}" for i in range(len(pod))]),
        edges=pd.Index([f"e{i}" for i in range(pods)]),
        aggregation_pod=pod,
        edge_pod=np.arange(pods),
        up=up,
    )
    try:
        held = address_allocation.allocate_addresses(
            wires, partitions=partitions, core_copies=copies, aggregation_copies=min(copies, switches)
        )
    except InputError as error:
        held, faults = None, " ".join(error.faults)
    if held is None:
        assert "there is none" in faults or "no link to pod" in faults
    else:
        require_distribution(wires, held, copies, min(copies, switches))
        assert not address_allocation.find_unreachable_partitions(wires, held)


def test_constraint_programming_finds_a_distribution_where_algorithm_1_does() -> None:
    for kind in ("ab", "standard", "portland"):
        wires = topology.fat_tree(kind, 8)
        held = address_allocation.allocate_addresses(wires, partitions=4, core_copies=4, aggregation_copies=2)
        require_distribution(wires, held, 4, 2)


def test_an_impossible_distribution_is_one_clear_line() -> None:
    with pytest.raises(InputError, match="aggregation_copies is 4, a pod has 3 aggregation switches"):
        Multicast.from_tables(tree(aggregation_copies=4))
    with pytest.raises(InputError, match="core_copies is 7, there are 6 cores"):
        Multicast.from_tables(tree(core_copies=7))
    with pytest.raises(InputError, match="within reach of every pod: there is none"):
        address_allocation.allocate_addresses(
            topology.fat_tree("standard", 4), partitions=4, core_copies=1, aggregation_copies=2
        )
