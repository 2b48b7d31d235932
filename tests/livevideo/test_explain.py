"""What-if: the link that holds everything up is found, and named."""

from __future__ import annotations

import pytest

from planner import Options
from tests.livevideo.networks import problem


def test_the_narrow_link_is_named() -> None:
    from planner.system import Decided
    from planner_models.livevideo import SYSTEM, measure

    one = problem(
        [("S", "E", 2.0, 1.0), ("E", "A", 9.0, 0.0), ("E", "B", 9.0, 0.0)],
        [(f"v{i}", 1000.0, 1.0) for i in range(4)],
        [("A", f"v{i}", 1000.0, 1.0) for i in range(4)],
        tiers={"S": "source", "E": "edge", "A": "group", "B": "group"},
    )
    design = SYSTEM.design("vdn")
    options = Options(time_limit_s=0.5, threads=1)
    decision = design.decide(one, options=options, previous=None)
    assert SYSTEM.explain is not None
    assert decision.plan is not None
    told = SYSTEM.explain(
        one,
        Decided(design=design, parameters={}, decision=decision, metrics=measure(one, decision.plan, None)),
        previous=None,
        options=options,
    )
    upgrades = next(section.frame for section in told.sections if section.title == "Upgrades")
    assert upgrades.iloc[0]["link"] == "S->E"
    assert upgrades.iloc[0]["gained"] == pytest.approx(2.0, abs=1e-3)
    assert any(sentence.startswith("S->E with 2 Mbit/s more gains most") for sentence in told.sentences)
