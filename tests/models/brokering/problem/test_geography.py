"""Great-circle distances."""

from __future__ import annotations

import numpy as np
import pytest

from planner_models.brokering.problem import geography
from tests.models.brokering.markets import CITIES


def test_distances_are_great_circles() -> None:
    (_, *lyon), (_, *oslo) = CITIES["Lyon"], CITIES["Oslo"]
    item, other = (np.array([[value] for value in position]) for position in (lyon, oslo))
    assert geography.distance_km(*item, *other)[0, 0] == pytest.approx(1624, rel=0.01)
