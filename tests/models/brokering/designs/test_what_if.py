"""Explanations of assignments."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from planner.runs.evaluation import compare
from planner.runs.what_if import explain
from planner.scenarios.scenario import load
from planner_models.brokering.plan.billing import hourly_cost


@pytest.mark.slow
def test_own_data_two_files_edited_and_the_money_saved_in_one_line(tmp_path: Path) -> None:
    scenario = load("brokering/own_data")
    folder = tmp_path / "own_data"
    folder.mkdir()
    for name, frame in scenario.make_problem().to_tables().items():
        frame.to_csv(folder / f"{name}.csv", index=False)
    before = tmp_path / "yesterday"
    before.mkdir()
    run = compare(scenario, designs=["own_prices"]).runs[0]
    run.plan.assignments.to_csv(before / "assignments.csv", index=False)

    prices = pd.read_csv(folder / "contracts.csv")
    prices.loc[(prices["cdn"] == "Crest") & (prices["region"] == "EU"), "price"] = 0.005
    prices.to_csv(folder / "contracts.csv", index=False)
    scores = pd.read_csv(folder / "scores.csv")
    scores.loc[(scores["location"] == "Paris") & (scores["cluster"] == "crest-mrs"), "score"] = 7.0
    scores.to_csv(folder / "scores.csv", index=False)
    toml = tmp_path / "mine.toml"
    toml.write_text(scenario.to_toml(scenario.folder))
    explained = explain(toml, previous=before)
    assert explained.explanation is not None
    first = explained.explanation.sentences[0]
    assert first.startswith("The plan costs EUR ")
    assert "it saves EUR " in first
    problem = load(toml).make_problem()
    paid = [hourly_cost(problem, plan) for plan in (explained.run.plan, run.plan)]
    assert explained.run.metrics["cost_per_hour"] == pytest.approx(paid[0], abs=1e-9)
    assert first.startswith(f"The plan costs EUR {paid[0]:,.2f} an hour by contract, commitments included, ")
    assert f"it saves EUR {paid[1] - paid[0]:,.2f} an hour" in first
    assert explained.run.plan.diff(run.plan)["clients"].abs().sum() > 0


def test_explain_shows_dual_prices_and_the_loss_of_each_cdn() -> None:
    explained = explain("brokering/own_data", design="marketplace")
    assert explained.explanation is not None
    titles = [section.title for section in explained.explanation.sections]
    assert titles == ["what changes", "full clusters", "without a CDN"]
    without = explained.explanation.sections[2].frame
    assert set(without["change"]) == {
        "without Acme",
        "without Bolt",
        "without Crest",
    }  # all of them are tried
    assert without["gain"].dropna().is_monotonic_increasing
    worst = str(without["change"].iloc[0]).removeprefix("without ")
    assert explained.explanation.sentences[2].startswith(f"Without {worst} the broker loses most: ")
    full = explained.explanation.sections[1].frame
    # dual prices fall as capacity grows: a whole Gbit/s gains at most the price at the margin
    assert (full["gain"] <= full["dual_price_per_gbps"] * (1 + 1e-9)).all()
    assert (full["gain"] >= -1e-6).all()
