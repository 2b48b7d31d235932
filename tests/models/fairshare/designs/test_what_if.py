"""Explanations name what holds the least tenant back, and each figure is that of a problem solved again."""

from __future__ import annotations

import pandas as pd
import pytest

import planner
from planner_models.fairshare import SharedStore
from planner_models.fairshare.problem import generators
from planner_models.fairshare.problem.adjustments import adjust
from tests.models.fairshare.stores import make


def tables_of(problem: SharedStore) -> tuple[tuple[str, ...], dict[str, pd.DataFrame]]:
    result = planner.explain(problem, design="optimum").explanation
    return result.sentences, {section.title: section.frame for section in result.sections}


def test_memory_and_rates_are_tried_by_solving_again() -> None:
    problem = generators.zipf(
        tenants=12, partitions=4, nodes=6, replicas=1, memory=1.0, load=1.3, spread=0.8, seed=3
    )
    sentences, tables = tables_of(problem)
    for title, parameter in (("rate", "rate_factors"), ("memory", "memory_factors")):
        frame = tables[f"Nodes with 50% more {title}, solved again"]
        first = frame.iloc[0]
        changed = adjust(problem, **{parameter: {first["change"].removeprefix("node "): 1.5}})
        again = planner.solve(changed, design="optimum").metrics["least_level_kops"]
        assert first["least_level_kops"] == pytest.approx(again)
        assert frame["gain"].is_monotonic_decreasing
    assert any("larger node" in sentence for sentence in sentences)


def test_the_weight_that_costs_others_most_is_named() -> None:
    problem = make(
        {"n1": 12.0},
        {
            "A": (4.0, "elastic", {"a": (20.0, "n1")}),
            "B": (1.0, "elastic", {"b": (20.0, "n1")}),
            "C": (1.0, "elastic", {"c": (20.0, "n1")}),
        },
    )
    sentences, tables = tables_of(problem)
    frame = tables["Tenants with half their weight, solved again"]
    assert frame["change"].tolist()[0] == "tenant A"
    assert frame["others_gain"].tolist() == pytest.approx([2.0, 10 / 11, 10 / 11])  # 8 to 6; 2 to 12/11
    assert "tenant A costs others most: they get 2 kops more" in " ".join(sentences)


def test_a_plan_of_the_practice_is_not_compared_to_itself() -> None:
    problem = generators.sample()
    said = {
        design: " ".join(
            planner.explain(problem, design=design, upgrades=0, heaviest=0).explanation.sentences
        )
        for design in ("unmodified", "fq")
    }
    assert "with an unmodified store it is" in said["fq"]
    assert "with an unmodified store" not in said["unmodified"]
