"""Cost of shared entries against plain Python: equation (6), and congestion that is not convex."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import InputError
from planner_models.multicast.plan import meta_groups
from tests.models.multicast.switches import PORTS, STEEP, SWITCHES, arrays, plain_cost


@settings(max_examples=25, deadline=None)
@given(SWITCHES, st.lists(st.integers(0, 3), min_size=8, max_size=8))
def test_cost_is_equation_6(switch: list[tuple[int, int]], places: list[int]) -> None:
    masks, rates = arrays(switch)
    meta = np.array(places[: len(switch)])
    background = np.array([0.0, 3.0, 8.0, 20.0])
    for congestion in (meta_groups.LINEAR, STEEP):
        cost = meta_groups.congestion_cost(
            masks, rates, meta, ports=PORTS, congestion=congestion, background_mbps=background
        )
        plain = plain_cost(
            [int(m) for m in masks], rates.tolist(), meta.tolist(), PORTS, congestion, background.tolist()
        )
        assert cost == pytest.approx(plain)
    linear = meta_groups.congestion_cost(masks, rates, meta, ports=PORTS)
    requested = float(rates @ np.bitwise_count(masks))
    assert linear == pytest.approx(requested + meta_groups.extra_mbps(masks, rates, meta))


def test_congestion_of_the_usual_steps() -> None:
    congestion = meta_groups.Congestion.of_ports(90.0)
    assert congestion.of(np.array([0.0, 30.0, 60.0])).tolist() == [0.0, 30.0, 120.0]
    assert meta_groups.LINEAR.is_linear
    assert not congestion.is_linear


@pytest.mark.parametrize(
    ("slopes", "ends", "words"),
    [((1.0,), (5.0,), "needs 2"), ((3.0, 1.0), (5.0,), "must rise"), ((1.0, 2.0, 3.0), (5.0, 4.0), "ends")],
)
def test_congestion_that_is_not_convex(slopes: tuple[float], ends: tuple[float], words: str) -> None:
    with pytest.raises(InputError, match=words):
        meta_groups.Congestion(slopes=slopes, until_mbps=ends)
