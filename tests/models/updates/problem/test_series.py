"""A week of changes: each from where the last one ended, in the same tables and links."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from planner.contract.tables import digest
from planner_models.updates import SYSTEM, measure
from planner_models.updates.problem.series import week


@pytest.mark.parametrize("classes", ["destinations", "pairs"])
def test_each_change_starts_where_the_last_one_ended(classes: str) -> None:
    result = week(name="sndlib/abilene", changes=8, classes=classes, count=20, headroom=0.2, slack=0.2)
    problems = dict(result)
    assert len(problems) == len(result) == 8
    assert list(problems) == sorted(problems)
    windows = list(problems.values())
    for item, after in pairwise(windows):
        assert digest({"rules": item.next}) == digest({"rules": after.now})
        assert item.switches.equals(after.switches)
        assert item.links.equals(after.links)
    assert sum(int(window.slots.changes.any()) for window in windows) >= 4
    used = np.max([np.maximum(window.rules_now, window.rules_next) for window in windows], axis=0)
    assert (windows[0].rule_capacity == np.floor(used * 1.2 + 1e-9)).all()


def test_rounds_in_place_are_loop_free_all_week() -> None:
    for _, problem in week(name="sndlib/abilene", changes=5, part=0.4):
        plan = SYSTEM.design("ordered").run(problem).plan
        assert plan is not None
        assert measure(problem, plan, None)["broken_classes"] == 0
