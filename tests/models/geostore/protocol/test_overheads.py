"""Table 4 of Eiger."""

from __future__ import annotations

import pytest

from planner_models.geostore.protocol.overheads import overhead_percent, table_4


def test_table_4() -> None:
    """The run with transactions loses 3.4 points less than the one without, which the claim is about."""
    frame = table_4().set_index("unit")
    assert frame["max_overhead"].round(1).to_dict() == {"ops": 6.6, "keys": 6.6, "columns": 6.3}
    assert (frame["max_overhead"] == frame["eiger"]).all()
    assert frame.loc["ops", "eiger"] - frame.loc["ops", "all_txns"] == pytest.approx(3.4, abs=0.05)
    assert overhead_percent(50.0, 100.0) == 50.0
