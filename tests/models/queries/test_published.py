"""What the paper says of queries, that our models give, and how the others are accounted for."""

from __future__ import annotations

import pytest

from planner.runs import reproduction
from planner.runs.reproduction import Verdict, read_published
from planner_models.queries import SYSTEM

TARGETS = {target.name: target for target in SYSTEM.studies.targets}


@pytest.mark.parametrize("name", TARGETS)
def test_examples_are_reproduced(name: str) -> None:
    result = reproduction.run_target(SYSTEM, TARGETS[name], quick=True)
    assert result.error is None
    assert {row.verdict for row in result.rows} == {Verdict.REPRODUCED, Verdict.NO_NUMBER}


def test_every_published_value_is_in_a_target() -> None:
    rows = [row for target in TARGETS.values() for row in target.rows]
    assert sorted(rows) == sorted(read_published("queries"))
