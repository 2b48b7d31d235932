"""Small months of traffic with contracts, drawn at random."""

from __future__ import annotations

import pandas as pd
from hypothesis import strategies as st

from planner_models.contracts import Month
from planner_models.contracts.problem.problem import BILLING, PERCENTILE

COLUMNS = ["cdn", "region", "billing", "price_per_mbps", "capacity_mbps", "commitment_mbps"]


def make(
    traffic: list[float],
    contracts: list[tuple[str, str, float, float, float]],
    tiers: list[tuple[str, float, float]] = (),  # type: ignore[assignment]
) -> Month:
    """Return a month of one region.

    contracts  cdn, billing, price, capacity, commitment
    tiers      cdn, volume, price above it
    """
    rows = [(cdn, "world", *remaining) for cdn, *remaining in contracts]
    steps = [(cdn, "world", above, price) for cdn, above, price in tiers]
    return Month(
        traffic=pd.DataFrame(
            {"window": range(1, len(traffic) + 1), "region": "world", "traffic_mbps": traffic}
        ),
        contracts=pd.DataFrame(rows, columns=COLUMNS),
        tiers=pd.DataFrame(steps, columns=["cdn", "region", "above_mbps", "price_per_mbps"])
        if steps
        else None,
    )


@st.composite
def months(
    draw: st.DrawFn, *, windows: int = 20, rules: tuple[str, ...] = BILLING, falling: bool = True
) -> Month:
    """Draw a month of one region with two or three contracts, sometimes with price steps."""
    mbps = st.integers(min_value=20, max_value=100).map(float)
    traffic = draw(st.lists(mbps, min_size=windows, max_size=windows))
    contracts, tiers = [], []
    for row in range(draw(st.integers(min_value=2, max_value=3))):
        price = draw(st.integers(min_value=5, max_value=30)) / 10
        capacity = draw(st.integers(min_value=30, max_value=120))
        commitment = draw(st.sampled_from([0.0, 10.0, 25.0]))
        contracts.append((f"cdn{row}", draw(st.sampled_from(rules)), price, float(capacity), commitment))
        if draw(st.booleans()):
            factor = draw(st.sampled_from([0.7, 1.3] if falling else [1.3]))
            tiers.append((f"cdn{row}", 20.0, round(price * factor, 3)))
    return make(traffic, contracts, tiers)


def only(problem: Month, billing: str = PERCENTILE) -> Month:
    """Return the month with one billing rule for all contracts."""
    return problem.with_contracts(billing=billing)
