"""Fair service where capacity is short: each group gets the same share, as content and paths let it."""

from __future__ import annotations

import numpy as np
import pytest

from planner_models.cdnrouting.problem import generators
from planner_models.cdnrouting.problem.service import _fair_service, servable_mbps
from tests.models.cdnrouting.deliveries import with_capacity


def test_all_is_served_where_it_fits() -> None:
    problem = generators.small()
    assert servable_mbps(problem) == pytest.approx(problem.group_mbps)


def test_scarce_capacity_is_shared_by_what_is_requested() -> None:
    served = _fair_service(np.array([10.0, 30.0]), np.ones((2, 1), dtype=bool), np.array([20.0]))
    assert served == pytest.approx([5.0, 15.0])


def test_a_group_gets_more_where_others_cannot_use_it() -> None:
    allowed = np.array([[True, False], [True, True]])
    served = _fair_service(np.array([10.0, 10.0]), allowed, np.array([4.0, 9.0]))
    assert served == pytest.approx([4.0, 9.0])


def test_a_group_without_cluster_gets_nothing() -> None:
    allowed = np.array([[False], [True]])
    served = _fair_service(np.array([10.0, 10.0]), allowed, np.array([20.0]))
    assert served == pytest.approx([0.0, 10.0])


def test_short_capacity_is_used_up() -> None:
    problem = with_capacity(generators.small(), 0.3)
    assert servable_mbps(problem).sum() == pytest.approx(problem.capacity_mbps.sum(), rel=1e-6)
