"""Targets find every published row, and computed values do not depend on the rows that they judge."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from planner.contract.targets import Target
from planner.runs.reproduction import Verdict, judge, read_published
from planner_models.analytics import SYSTEM, published

TARGETS = {target.name: target for target in SYSTEM.studies.targets}


@dataclass
class Quick:
    """A study without an engine: these targets run no scenario."""

    quick: bool = True


def test_every_published_row_is_judged_once() -> None:
    judged = [name for target in TARGETS.values() for name in target.rows]
    assert sorted(judged) == sorted(read_published("analytics"))


@pytest.mark.parametrize(
    "target", [TARGETS[name] for name in ("prices", "combination")], ids=lambda target: target.name
)
def test_rows_are_reproduced_but_for_cited_figures(target: Target) -> None:
    result = target.find(Quick())  # type: ignore[arg-type]
    assert set(result.values) == set(target.rows)
    verdicts = {row.id: row.verdict for row in judge(SYSTEM, target, result)}
    assert Verdict.NOT_REPRODUCED not in verdicts.values()
    cited = {name for name, verdict in verdicts.items() if verdict is Verdict.NOT_COVERED}
    assert all(published.CITED in result.notes[name] for name in cited)
    assert {result.values[name] for name in verdicts if "yearly" in name} <= {
        published.yearly_fall(factor, 5.0) for factor in (2.7, 16.0, 10.0)
    }


def test_the_expected_order_of_price_falls_is_the_opposite_of_the_past() -> None:
    """Bandwidth fell by 18% a year and storage by 37%; 25% and 10 to 20% are expected (section 1)."""
    past = {name: published.yearly_fall(factor, 5.0) for name, factor in (("bw", 2.7), ("disk", 10.0))}
    rows = {name: float(read_published("analytics")[f"anal_{name}"]["value"])
            for name in ("bw_decline", "disk_decline_max")}  # fmt: skip
    assert past["bw"] < past["disk"]
    assert rows["bw_decline"] > rows["disk_decline_max"]
