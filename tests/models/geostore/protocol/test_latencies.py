"""Table 2: calibrated on three values; medians of the others, and the order statistics of quorums."""

from __future__ import annotations

import numpy as np
import pytest

from planner_models.geostore.protocol.latencies import calibrate, micro_benchmark


def test_calibration_meets_its_three_values() -> None:
    constants = calibrate()
    random = np.random.default_rng(0)
    jitter = random.exponential(constants.jitter_ms, (200_000, 2))
    fixed = constants.client_ms + 2 * constants.local_ms
    assert np.percentile(fixed + jitter[:, 0], (50, 90)) == pytest.approx([0.47, 0.67], abs=0.005)
    two = fixed + 2 * constants.local_ms + jitter.sum(axis=1)
    assert np.median(two) == pytest.approx(0.68, abs=0.005)


@pytest.mark.slow
def test_medians_of_the_micro_benchmark() -> None:
    """Medians are within 6% of Table 2, but for transactions: 2.5 round trips take 11% less than printed."""
    table = micro_benchmark(calibrate(), operations=3_000).set_index("operation")
    printed = {"eiger1": 0.47, "eiger2": 0.68, "indirect": 0.78, "write_eiger": 0.45, "write_eiger2": 0.51}
    for name, value in printed.items():
        assert table.loc[name, "p50_ms"] == pytest.approx(value, rel=0.07), name
    assert 0.85 < table.loc["write_txn2", "p50_ms"] / 0.73 < 0.93
    assert (table["p50_ms"] < 1).all()
    ratio = table.loc["eiger2", "p50_ms"] / table.loc["eiger1", "p50_ms"]
    assert 1.40 < ratio < 1.49  # not "roughly double" (section 7.2)
