"""Algorithm 2 against its plain twin."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner_models.multicast.designs.channelization import algorithm2
from planner_models.multicast.plan import meta_groups
from tests.models.multicast.switches import PORTS, STEEP, SWITCHES, arrays, plain_cost, same_groups


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    SWITCHES,
    st.integers(PORTS + 2, PORTS + 4),
    st.sampled_from([0.0, 0.2, 1.0]),
    st.integers(0, 1),
    st.booleans(),
)
def test_algorithm2_is_the_printed_pass(
    switch: list[tuple[int, int]], size: int, delta: float, spare: int, convex: bool
) -> None:
    masks, rates = arrays(switch)
    congestion = STEEP if convex else meta_groups.LINEAR
    background = [1.0, 0.0, 5.0, 2.0]
    meta = algorithm2.aggregate(
        masks,
        rates,
        table_size=size,
        ports=PORTS,
        delta=delta,
        spare=spare,
        congestion=congestion,
        background_mbps=np.array(background),
    )

    def cost(positions: list[object]) -> float:
        shown = [15 if index == "all" else mask for index, (mask, _) in zip(positions, switch, strict=False)]
        return plain_cost(shown, rates[: len(shown)].tolist(), positions, PORTS, congestion, background)

    # the plain twin recounts equation (6) for every place that a group could go to
    said: list[object] = []
    opened = 0
    for mask, _ in switch:
        count = mask.bit_count()
        if count >= PORTS - spare:
            said.append("all")
        elif count == 1:
            said.append(f"port {mask}")
        else:
            own_values = cost([*said, "new"]) - cost(said)
            costs = [cost([*said, m]) - cost(said) for m in range(opened)]
            if any(0 < b - a < 1e-7 for a, b in pairwise(sorted([*costs, own_values * (1 + delta)]))):
                return  # a tie that rounding decides
            if not opened or (opened < size - PORTS - 1 and min(costs) - own_values > delta * own_values):
                said.append(opened)
                opened += 1
            else:
                said.append(costs.index(min(costs)))
    assert same_groups(said, meta.tolist())
    assert len(set(meta.tolist())) <= size
