"""Expected results of reproduction targets, beyond the numbers of their verdicts."""

from __future__ import annotations

from planner.runs.reproduction import Reproduction, Verdict


def comes_out(done: Reproduction) -> None:
    """Check that all rows are reproduced or calibrated, and lost rows are listed."""
    assert len(done.rows) == len(done.target.rows) + len(done.target.lost)
    for row in done.rows:
        if row.id:
            assert row.verdict in (Verdict.REPRODUCED, Verdict.CALIBRATED), row
    for curve in done.curves:
        assert len(curve.frame)


def in_order(done: Reproduction) -> None:
    """Check that shares served and costs are in the order of the paper."""
    rows = {row.id: row for row in done.rows}
    prefix = done.target.name.replace("table_4_", "live_t4")
    served = {short: rows[f"{prefix}_at_br_{short}"].ours for short in ("ee", "om", "cdn", "vdn")}
    assert served["ee"] < served["om"] <= served["vdn"] + 1e-9  # type: ignore[operator]
    assert served["ee"] < served["cdn"] <= served["vdn"] + 1e-9  # type: ignore[operator]
    cost = {short: rows[f"{prefix}_cost_{short}"].ours for short in ("ee", "cdn", "vdn")}
    assert cost["ee"] > cost["cdn"] > cost["vdn"]  # type: ignore[operator]


WHOLE = ("table_4_1", "figure_4_9", "traces", "figure_4_17", "staleness")
ORDERED = ("table_4_3", "table_4_4", "table_4_5")
EXPECTED = {
    **{f"livevideo/{name}": comes_out for name in WHOLE},
    **{f"livevideo/{name}": in_order for name in ORDERED},
}
