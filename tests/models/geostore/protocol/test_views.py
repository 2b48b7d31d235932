"""Remote checks: where checks of one hop leave a dependency open, histories show it."""

from __future__ import annotations

import numpy as np
import pytest

from planner_models.geostore.protocol.cluster import REMOTE
from planner_models.geostore.protocol.study import Placement, simulate
from planner_models.geostore.protocol.views import Gap, find_gaps
from planner_models.geostore.protocol.workloads import VICCI, VICCI_RTT_MS, Mix

RTT_MS = np.array(VICCI_RTT_MS)
CHAIN = {1: (0,), 2: (1, 0)}
"""Group 2 depends on group 1, that on group 0."""
OPEN = np.array([[1, 1, 1], [1, 1, 0], [1, 0, 1]], dtype=bool)
COVERED = np.array([[1, 1, 1], [1, 1, 0], [0, 0, 1]], dtype=bool)


def breaches(present: np.ndarray, histories: int) -> int:
    """Return the operations that breach a rule in a simulation with remote checks."""
    placement = Placement(names=VICCI, rtt_ms=RTT_MS, present=present, depends=CHAIN, checks=REMOTE)
    mix = Mix(batches=0.4, transactions=0.1, adds=0.0)
    options = {"keys": 2, "counters": 0, "operations": 30, "clients": 9, "mix": mix, "seed": 1}
    return int(simulate(placement, histories=histories, **options)["rules"]["operations"].sum())


def test_gaps_of_a_chain() -> None:
    """Datacenter 2 has the last group and the first, and checks the middle one elsewhere."""
    assert find_gaps(OPEN, RTT_MS, CHAIN) == [Gap(2, 1, 1, 0, 2, 1)]
    assert find_gaps(COVERED, RTT_MS, CHAIN) == []
    assert find_gaps(np.ones((3, 3), dtype=bool), RTT_MS, CHAIN) == []
    assert find_gaps(OPEN, RTT_MS, {2: (1,)}) == []


def test_histories_without_gaps_are_causal() -> None:
    assert breaches(COVERED, 5) == 0


@pytest.mark.slow
def test_histories_with_gaps_are_not() -> None:
    assert breaches(OPEN, 600) > 0
    assert breaches(COVERED, 600) == 0
