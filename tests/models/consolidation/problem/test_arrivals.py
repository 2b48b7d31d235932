"""Machines that arrive and leave."""

from __future__ import annotations

import pytest

from planner.errors import InputError
from planner_models.consolidation.problem.adjustments import adjust
from planner_models.consolidation.problem.arrivals import arrivals, count_at
from tests.models.consolidation.fleets import machines, make


def test_events_up_to_a_time_have_happened() -> None:
    problem = make(
        machines=machines(count=[2.0]),
        events={
            "at_s": [10.0, 20.0, 30.0],
            "machine": ["m0"] * 3,
            "what": ["arrives", "leaves", "leaves"],
            "machines": [3.0, 1.0, 9.0],
        },
    )
    assert [int(count_at(problem, at_s)[0]) for at_s in (0.0, 10.0, 25.0, 30.0)] == [2, 5, 4, 0]
    later = adjust(problem, at_s=20.0)
    assert later.count.tolist() == [4]
    assert later.events is not None
    assert later.events["at_s"].tolist() == [30.0]


def test_a_day_has_its_hours_and_is_repeatable() -> None:
    day = arrivals(machines=200, shapes=4, hours=24, seed=3)
    counts = [int(problem.count.sum()) for _, problem in day]
    assert len(day) == len(counts) == 24
    assert counts[11] > 2 * counts[23]
    again = [int(problem.count.sum()) for _, problem in arrivals(machines=200, shapes=4, hours=24, seed=3)]
    assert counts == again


def test_machines_that_resize_become_ones_of_another_shape() -> None:
    problem = make(
        machines=machines(count=[4.0, 1.0]),
        events={"at_s": [5.0], "machine": ["m0"], "what": ["resizes"], "machines": [3.0], "into": ["m1"]},
    )
    assert count_at(problem, 4.0).tolist() == [4, 1]
    assert count_at(problem, 5.0).tolist() == [1, 4]


@pytest.mark.parametrize(
    ("what", "into", "line"),
    [
        ("resizes", "", "events row 1: into is empty, resizes needs the shape that the machine becomes"),
        ("resizes", "m7", "events row 1: into 'm7' is no machine of the table machines"),
        ("arrives", "m0", "events row 1: into is 'm0', which only a machine that resizes has"),
    ],
)
def test_wrong_resizes_are_named(what: str, into: str, line: str) -> None:
    with pytest.raises(InputError) as error:
        make(
            machines=machines(count=[1.0]),
            events={"at_s": [5.0], "machine": ["m0"], "what": [what], "into": [into]},
        )
    assert error.value.faults[0].startswith(line)
