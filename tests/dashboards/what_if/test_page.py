"""Words of the what-if page for the answers that a plan can be compared with."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from planner_dashboard.question import Question, unchanged_scenario
from planner_dashboard.what_if.page import _words_of


@pytest.mark.parametrize("shown", ["traffic/germany50", "traffic/abilene", "fairshare/own_data"])
def test_an_answer_is_named_by_its_own_scenario_and_changes(shown: str) -> None:
    question = Question(
        scenario="traffic/germany50",
        changes={"problem.fail_links": ("Koblenz<->Koeln",), "designs.optimum.information.age_s": 3.0},
    )
    answer = cast("Any", SimpleNamespace(question=question))
    words = _words_of(unchanged_scenario(shown), answer)
    assert "Germany, 50 cities" in words
    assert "Koblenz – Koeln failed" in words
    assert "Optimal routing: " in words
    assert "optimum" not in words
