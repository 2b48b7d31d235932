"""Shares that change between the same next hops: nothing loops, only links can be overloaded."""

from __future__ import annotations

import pytest

from planner_models.updates import SYSTEM, measure
from planner_models.updates.problem.splits import rebalance


def test_shares_change_and_next_hops_do_not() -> None:
    problem = rebalance(name="sndlib/abilene", slack=0.05)
    key = ["class", "switch", "next_hop"]
    assert problem.now[key].astype(str).equals(problem.next[key].astype(str))
    for rules in (problem.now, problem.next):
        total = rules.groupby(["class", "switch"], observed=True)["share"].sum()
        assert total.to_numpy() == pytest.approx(1.0)
    assert problem.slots.changes.all()
    assert not rebalance(name="sndlib/abilene", part=0.0).slots.changes.any()
    plan = SYSTEM.design("one_shot").run(problem).plan
    assert plan is not None
    figures = measure(problem, plan, None)
    assert (figures["loops"], figures["black_holes"]) == (0, 0)
