"""Measured examples: the nearest one for constraints, its words with the range of draws, and its command."""

from __future__ import annotations

import dataclasses

from planner.coordination import measured_examples, measurement
from planner.coordination.measured_examples import Example
from planner.formatting import percent

LATE = Example(
    system="traffic",
    design="optimum",
    mechanism="transparency",
    share=0.5,
    performance=1.1,
    parameter="age_s",
    kind="age",
    value=900.0,
    unit="s",
)


def test_the_nearest_example_has_the_mechanism_and_the_age() -> None:
    designs, curves = measurement.load_release()
    best = measured_examples.nearest(["transparency"], designs, curves, None)
    assert best is not None
    assert best.mechanism == "transparency"
    shares = designs.loc[designs["mechanism"] == "transparency", "share"].dropna()
    assert best.share == max(shares)
    aged = measured_examples.nearest(["transparency"], designs, curves, 290.0)
    assert aged is not None
    assert (aged.kind, aged.value, aged.unit) == ("age", 300.0, "s")
    assert "with age 5 min" in aged.words()
    assert measured_examples.nearest(["none of them"], designs, curves, 1.0) is None


def test_words_have_the_range_of_several_draws() -> None:
    assert LATE.words().startswith(
        "Traffic routing, Optimal routing (transparency) with age 15 min: 50.0% of the possible gain;"
    )
    spread = dataclasses.replace(LATE, low=0.25, high=0.75, draws=30)
    assert (
        "50.0% of the possible gain in the median of 30 draws (25.0% to 75.0%); in the scenario itself: "
        in spread.words()
    )


def test_evidence_compares_all_designs_at_the_same_age() -> None:
    designs, curves = measurement.load_release()
    evidence = measured_examples.collect_evidence(["priority ranking"], designs, curves, 1000.0)
    assert evidence is not None
    example, exact = evidence.example, evidence.exact
    assert exact is not None
    at_age = curves[
        (curves["system"] == example.system) & (curves["kind"] == "age") & (curves["value"] == example.value)
    ]
    assert [(rival.design, rival.share) for rival in evidence.rivals] == list(
        zip(at_age["design"], at_age["share"], strict=True)
    )
    row = designs[(designs["system"] == example.system) & (designs["design"] == example.design)].iloc[0]
    assert (exact.share, evidence.bound) == (row["share"], row["bound"])
    text = "\n".join(evidence.sentences())
    assert f"with exact information: {percent(row['share'])} of the gain" in text
    assert ("worse than no coordination" in text) == (example.low is not None and example.low < 0)
    assert text.endswith(example.command())
    fresh = measured_examples.collect_evidence(["priority ranking"], designs, curves, None)
    assert fresh is not None
    assert fresh.exact is None
    assert measured_examples.collect_evidence(["none of them"], designs, curves, None) is None


def test_the_command_compares_with_the_design_without_coordination() -> None:
    assert LATE.command() == (
        "planner compare traffic/coordination --designs ecmp,optimum "
        "--set designs.optimum.information.age_s=900"
    )
    exact = dataclasses.replace(LATE, parameter="", value=0.0)
    assert exact.command() == "planner compare traffic/coordination --designs ecmp,optimum"
