"""Table constraints: the first overflow is exact."""

from __future__ import annotations

import numpy as np

from planner_models.multicast.plan import table_limits
from tests.models.multicast.fabrics import fat


def test_first_overflow_is_exact() -> None:
    limits = table_limits.build_limits(fat(groups=80), 1)
    fitting = table_limits.first_overflow(limits)
    assert fitting is not None
    counts = np.asarray(limits.uses[:, :fitting].sum(axis=1)).ravel()
    more = np.asarray(limits.uses[:, : fitting + 1].sum(axis=1)).ravel()
    assert (counts <= limits.free).all()
    assert (more > limits.free).any()
