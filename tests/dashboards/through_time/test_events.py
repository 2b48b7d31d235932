"""Events of marks on elements: each is the change that a scenario would say, from its window on."""

from __future__ import annotations

import pytest

from planner.contract.elements import Action
from planner_dashboard.through_time.events import Mark, day_scales, events_of

FAIL = Action(name="Fail", state="failed", parameter="fail_links", role="failure")
DOUBLE = Action(name="Double", state="doubled", parameter="scale_links", value=2.0, role="upgrade")
LABELS = ["1", "2", "3", "4"]


def mark(element: str, first: int, end: int | None = None, action: Action = FAIL) -> Mark:
    return Mark(kind="link", element=element, action=action, first=first, end=end)


def test_marks_apply_from_their_window_on_until_their_end() -> None:
    marks = [mark("a<->b", 1, 3), mark("c<->d", 2)]
    assert events_of(marks, LABELS, {"fail_links": ("x<->y",)}) == {
        "2": {"problem.fail_links": ["x<->y", "a<->b"]},
        "3": {"problem.fail_links": ["x<->y", "a<->b", "c<->d"]},
        "4": {"problem.fail_links": ["x<->y", "c<->d"]},
    }


def test_the_end_of_all_marks_restores_the_scenario() -> None:
    marks = [mark("a<->b", 0, 1, DOUBLE), mark("a<->b", 0, 2)]
    assert events_of(marks, LABELS, {}) == {
        "1": {"problem.scale_links": {"a<->b": 2.0}, "problem.fail_links": ["a<->b"]},
        "2": {"problem.scale_links": {}},
        "3": {"problem.fail_links": []},
    }
    assert events_of([], LABELS, {"fail_links": ("a<->b",)}) == {}


def test_demand_swings_over_a_day() -> None:
    scales = day_scales(24, 0.5)
    assert sum(scales) / 24 == pytest.approx(1.0)
    assert max(range(24), key=lambda hour: scales[hour]) in (19, 20)
    events = events_of([mark("a<->b", 2)], LABELS, {"scale": 2.0}, [0.5, 1.0, 1.5, 1.0])
    assert [event["problem.scale"] for event in events.values()] == [1.0, 2.0, 3.0, 2.0]
    assert events["3"]["problem.fail_links"] == ["a<->b"]


def test_a_mark_is_named_in_words() -> None:
    assert mark("a<->b", 1, 3).words(LABELS) == "a – b failed from window 2 until 4"
    assert mark("a->b", 0).words(LABELS) == "a → b failed from window 1"
    times = ("08:00", "09:00")
    assert mark("a->b", 1).words(times) == "a → b failed from 09:00"
