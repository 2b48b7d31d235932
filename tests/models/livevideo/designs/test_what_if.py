"""What-if analysis: the limiting link, upgrades, price changes and failures."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from planner import Options
from planner.contract.studies import Decided, Explanation
from planner_models.livevideo import SYSTEM, LiveVideo, measure
from planner_models.livevideo.designs import dns
from planner_models.livevideo.designs.what_if import explain
from tests.models.livevideo.networks import problem


def explain_design(item: LiveVideo, name: str, options: Options, **parameters: Any) -> Explanation:
    """Explain a design's plan, compared to that of a CDN."""
    design = SYSTEM.design(name)
    decision = design.run(item, options=options, previous=None)
    assert decision.plan is not None
    decided = Decided(
        design=design,
        parameters={},
        decision=decision,
        metrics=measure(item, decision.plan, None),
        baseline=dns.distribute(item).plan,
        baseline_name="a CDN",
    )
    return explain(item, decided, options=options, **parameters)


def test_the_narrow_link_is_named() -> None:
    item = problem(
        [("S", "E", 2.0, 1.0), ("E", "A", 9.0, 0.0), ("E", "B", 9.0, 0.0)],
        [(f"v{i}", 1000.0, 1.0) for i in range(4)],
        [("A", f"v{i}", 1000.0, 1.0) for i in range(4)],
        tiers={"S": "source", "E": "edge", "A": "group", "B": "group"},
    )
    explanation = explain_design(item, "vdn", Options(time_limit_s=0.5, threads=1))
    tables = {section.title: section.frame for section in explanation.sections}
    assert tables["Limiting links"].iloc[0]["link"] == "S->E"
    upgrade = tables["Upgrades"].iloc[0]
    assert upgrade["change"] == "S->E with 2 Mbit/s more"
    assert upgrade["gain"] == pytest.approx(2.0, abs=1e-3)
    assert upgrade["promised_gain"] == pytest.approx(2.0, abs=1e-2)
    assert explanation.sentences[0] == "1 of 3 links is at least 98% full, out of tier source."
    assert any("S->E with 2 Mbit/s more gains most" in sentence for sentence in explanation.sentences)
    assert any(sentence.startswith("Compared to a CDN, ") for sentence in explanation.sentences)


def test_upgrades_price_changes_and_failures() -> None:
    """X is expensive, Y cheap but narrow: reduce X's cost, upgrade Y, and do not lose E."""
    item = problem(
        [("S", "X", 9.0, 10.0), ("S", "Y", 1.0, 1.0), ("X", "E", 9.0, 1.0), ("Y", "E", 9.0, 1.0),
         ("E", "A", 9.0, 0.0)],
        [(f"v{i}", 1000.0, 1.0) for i in range(4)],
        [("A", f"v{i}", 1000.0, 1.0) for i in range(4)],
        tiers={"S": "source", "X": "reflector", "Y": "reflector", "E": "edge", "A": "group"},
        settings=pd.DataFrame({"service_weight": [1.0], "cost_weight": [0.01]}),
    )  # fmt: skip
    explanation = explain_design(item, "optimum", Options(), upgrade=3.0)
    gains = {
        section.title: section.frame.set_index("change")
        for section in explanation.sections
        if "gain" in section.frame
    }
    upgrades = gains["Upgrades"]["gain"]
    # three streams move from S->X (10) to S->Y (1)
    assert upgrades["S->Y with 3 Mbit/s more"] == pytest.approx(0.01 * 3 * 9)
    assert upgrades.drop("S->Y with 3 Mbit/s more").abs().max() == pytest.approx(0.0, abs=1e-9)
    # at 5 instead of 10 three streams save 5 each; nothing moves
    cheaper = gains["Price changes"].loc["S->X at cost 5 instead of 10"]
    assert cheaper["promised_gain"] == pytest.approx(0.15)
    assert cheaper["gain"] == pytest.approx(0.15)
    assert "S->Y with 3 Mbit/s more gains most: 0.27" in explanation.sentences[1]
    assert "S->X at cost 5 instead of 10 gains most: 0.15" in explanation.sentences[2]
    failures = gains["Failures"]["gain"]
    assert failures["the failure of cluster X"] < failures["the failure of cluster Y"] < 0


def test_the_failure_of_the_only_link_loses_everything() -> None:
    item = problem(
        [("S", "E", 2.0, 1.0), ("E", "A", 9.0, 0.0)],
        [("v", 1000.0, 1.0)],
        [("A", "v", 1000.0, 1.0)],
        tiers={"S": "source", "E": "edge", "A": "group"},
    )
    explanation = explain_design(item, "optimum", Options())
    (failure,) = next(s.frame for s in explanation.sections if s.title == "Failures").to_dict("records")
    assert failure["change"] == "the failure of link S->E"
    assert failure["gain"] == pytest.approx(-(1 - 1e-4))
