"""Targets: every row that they judge is published. `expected` has their results."""

from __future__ import annotations

import csv
from collections import Counter
from importlib.resources import files

from planner_models.livevideo import SYSTEM


def rows() -> list[dict[str, str]]:
    text = (files("planner_data") / "published" / "livevideo.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def test_rows_are_published_once() -> None:
    counts = Counter(row["id"] for row in rows())
    assert max(counts.values()) == 1
    for target in SYSTEM.studies.targets:
        assert set(target.rows) <= set(counts), target.name
        assert set().union(*target.orders, target.tolerances, target.bounds) <= set(target.rows), target.name
        assert target.calibrated <= set(target.rows), target.name


def test_every_result_of_the_figures_is_judged() -> None:
    """All measured results of the thesis, except those that its introduction and summary repeat."""
    judged = {name for target in SYSTEM.studies.targets for name in target.rows}
    results = [row["id"] for row in rows() if row["role"] == "result"]
    assert sorted(set(results) - judged) == ["live_q2_edges", "live_q2_videos"]
