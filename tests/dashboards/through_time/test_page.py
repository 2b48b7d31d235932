"""The page "Through time": a scenario in which nothing happens begins with an event."""

from __future__ import annotations

import pytest

from planner.scenarios.catalogue import find_system
from planner_dashboard.through_time.page import first_marks
from planner_dashboard.through_time.tasks import Description

TRAFFIC = find_system("traffic")


@pytest.mark.parametrize(("windows", "first", "end"), [(24, 8, 16), (3, 1, 2)])
def test_the_first_link_fails_for_a_third_of_the_windows(windows: int, first: int, end: int) -> None:
    description = Description(labels=(), elements={"link": ("a<->b", "b<->c"), "node": ("a",)}, size="")
    (mark,) = first_marks(TRAFFIC, description, windows)
    assert (mark.kind, mark.element, mark.action.name) == ("link", "a<->b", "Fail")
    assert (mark.first, mark.end) == (first, end)


def test_two_windows_or_no_elements_have_no_first_event() -> None:
    assert not first_marks(TRAFFIC, Description(labels=(), elements={"link": ("a<->b",)}, size=""), 2)
    assert not first_marks(TRAFFIC, Description(labels=(), elements={}, size=""), 24)
