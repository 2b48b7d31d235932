"""What-if: the link that holds everything up is found, and named."""

from __future__ import annotations

import pandas as pd
import pytest

from planner import Options
from planner.system import Decided
from planner_models.livevideo import SYSTEM, measure
from planner_models.livevideo.explain import explain
from tests.livevideo.networks import problem


def test_the_narrow_link_is_named() -> None:
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


def test_costs_losses_and_what_is_worth_it() -> None:
    """X is dear and Y cheap but narrow: lower X's price, widen Y, and do not lose E."""
    one = problem(
        [("S", "X", 9.0, 10.0), ("S", "Y", 1.0, 1.0), ("X", "E", 9.0, 1.0), ("Y", "E", 9.0, 1.0),
         ("E", "A", 9.0, 0.0)],
        [(f"v{i}", 1000.0, 1.0) for i in range(4)],
        [("A", f"v{i}", 1000.0, 1.0) for i in range(4)],
        tiers={"S": "source", "X": "reflector", "Y": "reflector", "E": "edge", "A": "group"},
        settings=pd.DataFrame({"service_weight": [1.0], "cost_weight": [0.01]}),
    )  # fmt: skip
    design = SYSTEM.design("optimum")
    decision = design.decide(one, options=Options(), previous=None)
    assert decision.plan is not None
    told = explain(
        one,
        Decided(design=design, parameters={}, decision=decision, metrics=measure(one, decision.plan, None)),
        upgrade=3.0,
        options=Options(),
    )
    tables = {section.title: section.frame for section in told.sections}
    upgrades = tables["Upgrades"].set_index("link")
    # three streams move from S->X (10) to S->Y (1)
    assert upgrades.loc["S->Y", "gained"] == pytest.approx(0.01 * 3 * 9)
    assert upgrades["gained"].drop("S->Y").abs().max() == pytest.approx(0.0, abs=1e-9)
    assert "Links worth upgrading, and what each gains alone: S->Y (0.27)" in told.sentences
    prices = tables["Price changes"].set_index("link")
    # at 5 instead of 10 three streams save 5 each; nothing moves
    assert prices.loc["S->X", "promised"] == pytest.approx(0.15)
    assert prices.loc["S->X", "gained"] == pytest.approx(0.15)
    assert told.sentences[3].startswith("S->X at 5 instead of 10 gains most of the price changes tried: 0.15")
    losses = tables["Losses"].set_index("name")["gained"]
    assert losses["X"] < losses["Y"] < 0  # without X only one stream is left
