"""Targets find every row that they name, in the quick run too, and state what is lost and fitted."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from planner.contract.targets import Target
from planner.runs.reproduction import Verdict, judge, read_published
from planner_models.multicast import SYSTEM

TARGETS = {target.name: target for target in SYSTEM.studies.targets}
# these run no scenario; all others are in `tests.test_verdicts`
STRUCTURE = [TARGETS[name] for name in ("section_3", "figure_7", "table_2", "figure_8")]


@dataclass
class Quick:
    """A study without an engine: these targets run no scenario."""

    quick: bool = True


@pytest.mark.parametrize("target", STRUCTURE, ids=lambda target: target.name)
def test_every_row_is_found(target: Target) -> None:
    result = target.find(Quick())  # type: ignore[arg-type]
    assert set(result.values) == set(target.rows)
    assert set(result.notes) <= set(target.rows)
    verdicts = {row.id: row.verdict for row in judge(SYSTEM, target, result) if row.id}
    if target.name == "table_2":  # not all of it is reproduced, and that is said
        wrong = {name for name, verdict in verdicts.items() if verdict is not Verdict.REPRODUCED}
        assert wrong
        assert all("aggr" in name or "core" in name for name in wrong)
        assert wrong <= set(result.notes)
    else:
        assert set(verdicts.values()) == {Verdict.REPRODUCED}
    for curve in result.curves:
        assert len(curve.frame) > 1


def test_published_rows_are_facts_with_a_place() -> None:
    rows = read_published("multicast")
    assert len(rows) > 190
    for row in rows.values():
        assert row["place"]
        assert row["value"]
        assert not set(row) & {"line", "exact"}
    targets = [name for target in SYSTEM.studies.targets for name in target.rows]
    assert len(targets) == len(set(targets))
    assert set(targets) <= set(rows)


def test_every_figure_says_what_is_lost_and_what_is_fitted() -> None:
    for name in ("figure_5a", "figure_5b", "figure_5c", "figure_6"):
        assert TARGETS[name].lost
    assert TARGETS["figure_5a"].calibrated == {
        "mcast_f5a_core_aggr",
        "mcast_f5a_edge_max",
        "mcast_f5a_edge_over",
        "mcast_f5a_overhead",
    }
