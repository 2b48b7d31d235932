"""Great-circle distances."""

from __future__ import annotations

import numpy as np
import pytest

from planner_models.brokering.problem import geography
from tests.models.brokering.markets import CITIES


def test_distances_are_great_circles() -> None:
    (_, *lyon), (_, *oslo) = CITIES["Lyon"], CITIES["Oslo"]
    one, other = (np.array([[value] for value in place]) for place in (lyon, oslo))
    assert geography.distance_km(*one, *other)[0, 0] == pytest.approx(1624, rel=0.01)
