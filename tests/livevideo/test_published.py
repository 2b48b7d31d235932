"""Targets: every row that they judge is published, and what needs no long run comes out."""

from __future__ import annotations

import csv
from collections import Counter
from importlib.resources import files

import pytest

from planner.reproduce import Verdict, find_targets, reproduce
from planner_models.livevideo import SYSTEM


def rows() -> list[dict[str, str]]:
    text = (files("planner_data") / "published" / "livevideo.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def test_rows_are_published_once() -> None:
    known = Counter(row["id"] for row in rows())
    assert max(known.values()) == 1
    for target in SYSTEM.targets:
        assert set(target.rows) <= set(known), target.name
        assert set().union(*target.orders, target.tolerances, target.bounds) <= set(target.rows), target.name
        assert target.calibrated <= set(target.rows), target.name


def test_every_result_of_the_figures_is_judged() -> None:
    """What the thesis measured, but for what it repeats in its introduction and summary."""
    judged = {name for target in SYSTEM.targets for name in target.rows}
    results = [row["id"] for row in rows() if row["role"] == "result"]
    assert sorted(set(results) - judged) == ["live_q2_edges", "live_q2_videos"]


@pytest.mark.parametrize("name", ["table_4_1", "figure_4_9", "traces", "figure_4_17", "staleness"])
def test_what_comes_out(name: str) -> None:
    [(system, target)] = find_targets([f"livevideo/{name}"])
    done = reproduce(system, target, quick=True)
    assert done.error is None
    assert len(done.rows) == len(target.rows) + len(target.lost)
    for row in done.rows:
        if row.id:
            assert row.verdict in (Verdict.REPRODUCED, Verdict.CALIBRATED), row
    for curve in done.curves:
        assert len(curve.frame)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["table_4_3", "table_4_4", "table_4_5"])
def test_the_orders_of_the_tables(name: str) -> None:
    """Shares served and costs are in the order of the paper, whatever they are."""
    [(system, target)] = find_targets([f"livevideo/{name}"])
    done = {row.id: row for row in reproduce(system, target, quick=True).rows}
    prefix = name.replace("table_4_", "live_t4")
    served = {short: done[f"{prefix}_at_br_{short}"].ours for short in ("ee", "om", "cdn", "vdn")}
    assert served["ee"] < served["om"] <= served["vdn"] + 1e-9  # type: ignore[operator]
    assert served["ee"] < served["cdn"] <= served["vdn"] + 1e-9  # type: ignore[operator]
    cost = {short: done[f"{prefix}_cost_{short}"].ours for short in ("ee", "cdn", "vdn")}
    assert cost["ee"] > cost["cdn"] > cost["vdn"]  # type: ignore[operator]
