"""A day of changing rules, and plans that start from those of the hour before."""

from __future__ import annotations

from itertools import pairwise

from planner_models.flowtables import SYSTEM, check, measure
from planner_models.flowtables.plan.check import find_wrong
from planner_models.flowtables.plan.plan import read_content
from planner_models.flowtables.problem.series import day


def test_each_hour_replaces_rules_and_starts_from_the_masks_before() -> None:
    hours = list(day(rules=40, connections=120, changed=0.1, hours=3, seed=4))
    assert [label for label, _ in hours] == ["01h", "02h", "03h"]
    matches = [set(problem.matches) for _, problem in hours]
    assert [len(match) for match in matches] == [40, 40, 40]
    assert [len(before - after) for before, after in pairwise(matches)] == [4, 4]
    design, decision = SYSTEM.design("merged"), None
    for _, problem in hours:
        before = decision
        decision = design.run(problem, previous=before, parameters={"trials": 10})
        assert decision.plan is not None
        assert not len(check(problem, decision.plan))
        metrics = measure(problem, decision.plan, before.plan if before else None)
        if before is None:
            assert metrics["stale_entries"] is None
            continue
        content = read_content(problem, before.plan)
        wrong = sum(
            find_wrong(problem, value, content.masks[mask], action) is not None
            for value, mask, action in zip(content.value, content.mask_of, content.action, strict=True)
        )
        assert metrics["stale_entries"] >= wrong
