"""Keyspaces that are none, each with its line."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.errors import InputError
from planner_models.geostore.shards.keyspace import Accesses
from tests.models.geostore.shards.cases import small_keyspace


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kops": np.array([1.0, -2.0, 1, 1, 1, 1])}, "ranges row 2: kops is -2.0, must be 0 or above"),
        ({"gb": np.array([1.0, np.nan, 1, 1, 1, 1])}, "ranges row 2: gb is nan, must be 0 or above"),
        ({"gb": np.ones(2)}, "ranges: 6 loads, 2 sizes; must be as many, and some"),
        ({"server_kops": np.array([1.0, 0.0, 1.0])}, "servers: kops must be above 0"),
        (
            {"scans": np.array([[0, 1], [4, 2], [0, 0]])},
            "scans row 2: ends at range 2, before its start, range 4",
        ),
        ({"scans": np.array([[0, 1], [4, 6], [0, 0]])}, "scans: range 6 is none of 0 to 5"),
        ({"today": np.array([0, 3, 0, 0, 0, 0])}, "ranges row 2: today's server is 3 of 3"),
        (
            {"transactions": Accesses(first=np.array([0, 0]), touched=np.zeros(0, int), per_s=np.ones(1))},
            "transactions row 1: touches no range",
        ),
    ],
)
def test_bad_keyspaces(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(small_keyspace(1), **changes)
