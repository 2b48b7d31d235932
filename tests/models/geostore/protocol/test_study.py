"""Tables of a simulated placement."""

from __future__ import annotations

import numpy as np
import pytest

from planner.errors import InputError
from planner_models.geostore.protocol.study import Placement, simulate
from planner_models.geostore.protocol.workloads import VICCI, VICCI_RTT_MS

RTT_MS = np.array(VICCI_RTT_MS)


def test_tables_of_a_placement_with_closure() -> None:
    present = np.array([[1, 0], [1, 1], [1, 1]], dtype=bool)
    placement = Placement(names=VICCI, rtt_ms=RTT_MS, present=present, depends={1: (0,)})
    tables = simulate(placement, histories=4, operations=10)
    assert tables["operations"]["operations"].sum() == 4 * 6 * 10
    assert (tables["operations"]["max_round_trips"] <= 3).all()
    assert tables["operations"]["p99_ms"].max() < 5  # no operation leaves its datacenter
    assert tables["rules"]["operations"].sum() == 0
    copies = tables["copies"].set_index("datacenter")
    assert copies["copies"].gt(0).all()
    assert copies.loc["princeton", "p50_ms"] > 42  # half a round trip at least
    assert tables["gaps"].empty


def test_an_outage_delays_copies_until_its_end() -> None:
    placement = Placement(
        names=VICCI, rtt_ms=RTT_MS, present=np.ones((3, 1), dtype=bool), outages=((0, 0.0, 500.0),)
    )
    copies = simulate(placement, histories=2, operations=6)["copies"].set_index("datacenter")
    assert copies.loc["princeton", "p50_ms"] > 400
    assert copies.loc["stanford", "p50_ms"] < copies.loc["princeton", "p50_ms"]


def test_groups_need_a_key_besides_counters() -> None:
    placement = Placement(names=VICCI, rtt_ms=RTT_MS, present=np.ones((3, 1), dtype=bool))
    with pytest.raises(InputError, match="counters is 2, must be below keys, which is 2"):
        simulate(placement, keys=2, counters=2)
