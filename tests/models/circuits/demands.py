"""Small problems for tests."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from planner_models.circuits import Circuits


@st.composite
def problems(
    draw: st.DrawFn, max_racks: int = 4, bounded: bool | None = None, plain: bool = True
) -> Circuits:
    """A few racks with a few demands, in a week or without one.

    plain  one circuit switch that is all dark at night; else perhaps several, or dark in part
    """
    n = draw(st.integers(2, max_racks))
    amounts = st.sampled_from([0.0, 0.0, 10.0, 35.0, 100.0, 400.0])
    bits = np.array(draw(st.lists(amounts, min_size=n * n, max_size=n * n))).reshape(n, n)
    np.fill_diagonal(bits, 0.0)
    window = draw(st.sampled_from([30.0, 80.0]))
    in_week = draw(st.booleans()) if bounded is None else bounded
    return Circuits.from_matrix(
        bits,
        circuit_mbps=10.0,
        packet_mbps=draw(st.sampled_from([0.5, 1.0])),
        night_us=draw(st.sampled_from([0.5, 3.0])),
        window_us=window if in_week else None,
        shortest_day_us=draw(st.sampled_from([0.0, 4.0])),
        circuit_switches=1 if plain else draw(st.sampled_from([1, 2, 3])),
        dark="all" if plain else draw(st.sampled_from(["all", "changed"])),
    )
