"""The worst case of hierarchical partitioning over events: from the released events, in words and as data."""

from __future__ import annotations

from importlib.resources import files

import pandas as pd
import pytest

from planner.contract.design import Mechanism
from planner.coordination import worst_cases
from planner.coordination.design_space import recommend
from planner.formatting import percent


def released_events() -> pd.DataFrame:
    """Return the released events."""
    with (files("planner_data") / "coordination" / "events.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file)


def test_the_worst_case_is_that_of_the_released_events() -> None:
    frame = released_events()
    assert list(frame) == list(worst_cases.COLUMNS)
    cases = {case.design: case for case in worst_cases.load_worst_cases()}
    assert set(cases) == set(frame["design"])
    for design, case in cases.items():
        events = frame[(frame["design"] == design) & (frame["lost"] > 0)]
        assert len(events) == case.events >= 8
        assert case.excess == max(events["excess"])
        assert case.unserved == max(events["unserved"])
        assert case.mechanism is Mechanism.HIERARCHICAL_PARTITIONING
        assert f"at most {percent(case.excess)} above a decision with all information" in case.words()
        assert case.event in case.words()


def test_a_case_says_who_is_not_served() -> None:
    rows = released_events().query("design == 'c3'")
    full = worst_cases._find_worst("brokering/split_control", "c3", rows.assign(unserved=0.0))
    assert "all clients are served" in full.words()
    short = worst_cases._find_worst("brokering/split_control", "c3", rows.assign(unserved=1234.0))
    assert "1,234 clients are not served" in short.words()


@pytest.mark.parametrize(("resources", "has_cases"), [("full", True), ("disjoint", False)])
def test_advice_has_the_worst_case_of_its_mechanism(resources: str, has_cases: bool) -> None:
    advice = recommend(resources=resources, separation="timescale")
    assert bool(advice.worst) == has_cases
    assert any("worst case over events" in line for line in advice.summary()) == has_cases
    assert len(advice.to_dict()["worst_cases"]) == len(advice.worst)
