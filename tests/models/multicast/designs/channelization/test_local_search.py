"""Counters of the annealing search."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from planner_models.multicast.designs.channelization import (
    local_search,
)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 2**10 - 1), min_size=1, max_size=20), st.randoms(use_true_random=False))
def test_ports_of_a_meta_group_are_counted_as_sets_come_and_go(masks: list[int], random: Random) -> None:
    counts, inside = np.zeros(6, dtype=np.uint64), list[int]()
    for mask in masks:
        found = local_search._count_set(counts, np.uint64(mask), True)
        inside.append(mask)
        while inside and random.random() < 0.4:
            gone = inside.pop(random.randrange(len(inside)))
            found = local_search._count_set(counts, np.uint64(gone), False)
        wanted = [sum(m >> port & 1 for m in inside) for port in range(10)]
        assert int(found[0]) == sum(1 << port for port, sets in enumerate(wanted) if sets)
        assert int(found[1]) == sum(1 << port for port, sets in enumerate(wanted) if sets == 1)
