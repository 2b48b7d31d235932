"""The targets on structure find every row that they name, in the quick way too."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from planner.published import Target
from planner.reproduce import Verdict, judge, published
from planner_models.multicast import SYSTEM
from planner_models.multicast.published_structure import STRUCTURE_TARGETS


@dataclass
class Quick:
    """A study without an engine: these targets run no scenario."""

    quick: bool = True


@pytest.mark.parametrize("target", STRUCTURE_TARGETS, ids=lambda target: target.name)
def test_every_row_is_found(target: Target) -> None:
    found = target.find(Quick())  # type: ignore[arg-type]
    assert set(found.values) == set(target.rows)
    assert set(found.notes) <= set(target.rows)
    verdicts = {row.id: row.verdict for row in judge(SYSTEM, target, found) if row.id}
    if target.name == "table_2":  # not all of it is reproduced, and that is said
        wrong = {name for name, verdict in verdicts.items() if verdict is not Verdict.REPRODUCED}
        assert wrong
        assert all("aggr" in name or "core" in name for name in wrong)
        assert wrong <= set(found.notes)
    else:
        assert set(verdicts.values()) == {Verdict.REPRODUCED}
    for curve in found.curves:
        assert len(curve.frame) > 1


def test_published_rows_are_facts_with_a_place() -> None:
    rows = published("multicast")
    assert len(rows) > 190
    for row in rows.values():
        assert row["place"]
        assert row["value"]
        assert not set(row) & {"line", "exact"}
    targets = [name for target in SYSTEM.targets for name in target.rows]
    assert len(targets) == len(set(targets))
    assert set(targets) <= set(rows)
