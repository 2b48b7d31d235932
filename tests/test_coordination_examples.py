"""Figures of the examples in the guide to coordination, against the scenarios that they are of."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import planner
from planner.coordination import worst_cases
from planner.coordination.design_space import recommend

PAGE = Path(__file__).parents[1] / "docs" / "howto" / "coordinate.md"


def section(title: str = "Examples in routing") -> str:
    """Return a section of the guide as one line."""
    text = PAGE.read_text(encoding="utf-8")
    start = text.index(f"## {title}")
    return re.sub(r"\s+", " ", text[start : text.index("\n## ", start + 1)])


def metrics_of(scenario: str, **changes: Any) -> dict[str, dict[str, Any]]:
    """Return the metrics of each design."""
    comparison = planner.compare(scenario, changes=changes or None)
    return {run.label: dict(run.metrics) for run in comparison.runs}


def test_exits_are_worth_what_the_guide_says() -> None:
    metrics, text = metrics_of("traffic/two_isps"), section()
    longer = {name: f"{value['mean_path_stretch'] - 1:.0%}" for name, value in metrics.items()}
    assert f"paths are {longer['hot_potato']} longer than the shortest ones" in text
    assert f"paths are still {longer['med']} longer" in text
    assert longer["exchanged_cost"] == "0%"
    lost = 1 - metrics["hot_potato"]["delivered_share"]
    assert f"{lost:.0%} of the traffic is lost" in text
    assert metrics["hot_potato"]["overloaded_links"] == 1
    for name in ("med", "exchanged_cost", "optimum"):
        assert metrics[name]["delivered_share"] == pytest.approx(1.0)


def test_areas_cost_what_the_guide_says() -> None:
    metrics, text = metrics_of("traffic/ospf_areas"), section()
    longer = {name: f"{value['mean_path_stretch'] - 1:.0%}" for name, value in metrics.items()}
    assert f"makes paths {longer['ospf_areas']} longer" in text
    assert f"they are {longer['summarized']} longer" in text
    cut = {"problem.fail_links": ["Bordeaux->Madrid", "Madrid->Bordeaux"]}
    apart = metrics_of("traffic/ospf_areas", **cut)
    assert f"{1 - apart['summarized']['delivered_share']:.0%} of the traffic has no way" in text
    assert apart["ospf_areas"]["delivered_share"] == pytest.approx(1.0)


@pytest.mark.slow
def test_fake_nodes_come_as_near_to_the_optimum_as_the_guide_says() -> None:
    names = {"fibbing": "the busiest link is at", "optimum": "it is at"}
    comparison = planner.compare("traffic/fibbing", designs=["ecmp", *names])
    busiest = {run.label: run.metrics["max_utilization"] for run in comparison.runs}
    for name, words in names.items():
        assert f"{words} {busiest[name]:.0%}" in section()
    assert busiest["ecmp"] == pytest.approx(1.0)


@pytest.mark.slow
def test_local_deviations_are_worth_what_the_guide_says() -> None:
    metrics, text = metrics_of("brokering/split_control"), section("A global decision and local deviations")
    clients = metrics["global_only"]["clients"]
    assert f"alone congests {metrics['global_only']['congested'] / clients:.0%} of the clients" in text
    for name in ("c3", "pytheas", "omniscient"):
        assert metrics[name]["served"] == clients
    least = metrics["omniscient"]["weighted_cost"]
    above = {name: metrics[name]["weighted_cost"] / least - 1 for name in metrics}
    assert f"{above['c3']:.1%} and {above['pytheas']:.1%} above" in text
    assert f"that of today's broker is {above['brokered']:.0%} above" in text


def test_the_decision_guide_says_what_its_example_is_worth() -> None:
    text = section("An example")
    advice = recommend(
        resources="disjoint", separation="companies", flow="two-way", decide_s=10.0, react_s=60.0, age_s=900.0
    )
    evidence = advice.evidence
    assert evidence is not None
    assert evidence.exact is not None
    share = {rival.design: rival.share for rival in evidence.rivals}
    assert evidence.example.design == "cdn_options"
    assert f"offers win {evidence.exact.share:.0%} of that gain" in text
    draws = evidence.example.draws
    assert f"ago {share['cdn_options']:.0%} in the median of {draws} draws" in text
    assert f"reaction wins ({share['react_blind']:.0%})" in text
    assert f"the same old loads ({share['joint']:.0%})" in text
    assert evidence.example.low is not None
    assert evidence.example.low < 0, "in some draws the plan is worse than none"
    assert advice.verdict == "priority ranking"


def test_the_guide_has_the_worst_case_over_events() -> None:
    text = section("A global decision and local deviations")
    worst = {case.design: case for case in worst_cases.load_worst_cases()}
    excess = [f"{worst[name].excess:.1%}" for name in ("c3", "pytheas")]
    assert f"cost at most {excess[0]} and {excess[1]} more than a decision with all information" in text
    assert not any(case.unserved for case in worst.values())
    assert "all 8 together" in text
    assert {case.events for case in worst.values()} == {9}
