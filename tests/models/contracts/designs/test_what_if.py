"""Explanations of months: what terms cost, verified by planning again."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

import planner
from planner.contract.studies import Decided
from planner_models.contracts import SYSTEM, Month
from planner_models.contracts.designs.what_if import explain
from planner_models.contracts.problem.problem import MEAN, PEAK, PERCENTILE
from tests.models.contracts.months import make

TRAFFIC = [40.0, 60.0, 80.0, 100.0] * 5
CONTRACTS = [
    ("x", PERCENTILE, 2.0, 80.0, 70.0),
    ("y", PEAK, 1.5, 40.0, 0.0),
    ("z", MEAN, 3.0, 90.0, 0.0),
]


def least_bill(problem: Month) -> float:
    """Return the bill of the optimum, by the integer program."""
    run = planner.solve(problem, design="optimum", method="exact", gap=1e-6)
    bill = run.metrics["bill"]
    assert bill is not None
    return bill


@pytest.mark.slow
def test_savings_are_those_of_the_least_bills_with_changed_terms() -> None:
    problem = make(TRAFFIC, CONTRACTS)
    explained = planner.explain(problem, design="optimum", again=10)
    assert explained.explanation is not None
    table = explained.explanation.sections[-1].frame
    assert explained.explanation.sections[-1].title == "what to renegotiate"
    today = least_bill(problem)
    frame = problem.contracts
    cases = {
        ("x", "no commitment"): ("commitment_mbps", 0.0),
        ("x", "10% off its prices"): ("price_per_mbps", 1.8),
        ("y", "10% more capacity"): ("capacity_mbps", 44.0),
        ("y", "billing by the 95th percentile"): ("billing", PERCENTILE),
    }
    result = {(row.contract, row.changed_term): row for row in table.itertuples()}
    checked = 0
    for (cdn, term), (column, value) in cases.items():
        changed = frame.assign(**{column: frame[column].where(frame["cdn"] != cdn, value)})
        saved = today - least_bill(Month(traffic=problem.traffic, contracts=changed))
        if (cdn, term) in result:
            checked += 1
            assert result[cdn, term].bill_saves == pytest.approx(saved, abs=0.011 + 2e-3 * today)
        else:
            assert saved <= 1e-3 * today
    assert checked >= 2
    assert table["bill_saves"].is_monotonic_decreasing
    best = table.iloc[0]
    assert f"{best['changed_term']} for {best['contract']} saves {best['bill_saves']:,.2f}" in " ".join(
        explained.explanation.sentences
    )


def test_terms_beyond_the_number_that_is_planned_again_have_a_largest_saving_only() -> None:
    explained = planner.explain(make(TRAFFIC, CONTRACTS), design="optimum", again=1, contracts=2)
    assert explained.explanation is not None
    table = explained.explanation.sections[-1].frame
    assert table["bill_saves"].notna().tolist() == [True] + [False] * (len(table) - 1)
    assert (table["saves_at_most"] >= table["bill_saves"].fillna(0.0)).all()
    none = planner.explain(make(TRAFFIC, CONTRACTS), design="optimum", again=0, contracts=1)
    assert none.explanation is not None
    assert "saves at most" in " ".join(none.explanation.sentences)


@pytest.mark.slow
def test_no_term_saves_more_than_is_said() -> None:
    problem = make(TRAFFIC, CONTRACTS)
    explained = planner.explain(problem, design="optimum", again=2)
    assert explained.explanation is not None
    assert explained.explanation.sentences[0].endswith("under 3 contracts.")
    table = explained.explanation.sections[-1].frame.set_index(["contract", "changed_term"])
    bill = explained.run.metrics["bill"] or 0.0
    frame = problem.contracts
    checked = 0
    for term, column, value in (
        ("no commitment", "commitment_mbps", 0.0),
        ("10% off its prices", "price_per_mbps", 1.8),
    ):
        if ("x", term) not in table.index:
            continue
        checked += 1
        changed = frame.assign(**{column: frame[column].where(frame["cdn"] != "x", value)})
        saved = bill - least_bill(Month(traffic=problem.traffic, contracts=changed))
        assert table.loc[("x", term), "saves_at_most"] >= saved - 1e-9
    assert checked
    alone = planner.explain(make(TRAFFIC, [("x", PEAK, 2.0, 200.0, 0.0)]), design="optimum", again=0)
    assert alone.explanation is not None
    assert alone.explanation.sentences[0] == "The month costs 200.00 under 1 contract."


def test_a_bill_far_above_its_bound_is_said_beside_the_savings() -> None:
    problem = make(TRAFFIC, [CONTRACTS[1], CONTRACTS[2]])
    design = SYSTEM.design("optimum")
    decision = design.run(problem)
    said = []
    for below in (0.0, 50.0):
        rank = decision.proof.ranks[1]
        ranks = (decision.proof.ranks[0], rank._replace(bound=rank.objective - below))
        names = replace(decision, proof=replace(decision.proof, ranks=ranks))
        decided = Decided(design=design, parameters={}, decision=names, metrics={})
        explanation = explain(problem, decided, contracts=1, again=1)
        said.append("up to 50.00 above the least one" in " ".join(explanation.sentences))
    assert said == [False, True]


@pytest.mark.slow
def test_a_limit_of_switching_costs_what_a_plan_without_it_saves() -> None:
    contracts = [("x", PERCENTILE, 1.0, 80.0, 0.0), ("y", PERCENTILE, 1.0, 80.0, 0.0)]
    free = make([60.0] * 10 + [100.0, 100.0] + [60.0] * 8, contracts)
    said = []
    for percent in (0.0, 100.0):
        limit = pd.DataFrame({"region": ["world"], "max_moved_percent": [percent]})
        problem = replace(free, switching=limit)
        explained = planner.explain(problem, design="optimum", contracts=0, again=1)
        assert explained.explanation is not None
        said.append(" ".join(explained.explanation.sentences))
        run = planner.solve(problem, design="optimum", method="exact", gap=1e-6)
        if percent == 0:
            saved = (run.metrics["bill"] or 0.0) - least_bill(free)
            assert saved > 1
            assert f"The limit of switching in world costs {saved:,.2f}" in said[0]
    assert "limit" not in said[1]


def test_price_steps_from_less_traffic_save_what_the_least_bill_falls_by() -> None:
    contracts = [("x", PEAK, 2.0, 120.0, 0.0), ("y", PEAK, 1.9, 120.0, 0.0)]
    problem = make(TRAFFIC, contracts, [("x", 50.0, 1.0)])
    explained = planner.explain(problem, design="optimum", again=10)
    assert explained.explanation is not None
    table = explained.explanation.sections[-1].frame.set_index(["contract", "changed_term"])
    sooner = make(TRAFFIC, contracts, [("x", 40.0, 1.0)])
    saved = least_bill(problem) - least_bill(sooner)
    assert saved == pytest.approx(10.0)
    assert table.loc[("x", "price steps from 20% less traffic"), "bill_saves"] == pytest.approx(
        saved, abs=0.011
    )
    assert ("y", "price steps from 20% less traffic") not in table.index
