"""Failures that the fabric does not have."""

from __future__ import annotations

import numpy as np
import pytest

from planner.errors import InputError
from planner_models.multicast.problem import failures
from tests.models.multicast.fabrics import fat


def test_unknown_failures_are_one_clear_line() -> None:
    wires = fat().wiring
    with pytest.raises(InputError, match="'aggregation-9-9' is no switch"):
        failures.find_working_links(wires, switches=["aggregation-9-9"])
    with pytest.raises(InputError, match="no link from 'edge-0-0' up to 'core-0'"):
        failures.find_working_links(wires, links=[("edge-0-0", "core-0")])
    with pytest.raises(InputError, match="failed_aggregations is 9, must be from 0 to 8"):
        failures.draw_failures(wires, 9, np.random.default_rng(0))
