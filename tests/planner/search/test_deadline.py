"""Deadlines: ends by the clock of time limits, shares, remaining options, and none at all."""

from __future__ import annotations

import math

import pytest

from planner import clock
from planner.options import Options
from planner.search.deadline import NEVER, Deadline, Stopwatch


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that stands at the last reading of the list, and one of CPU seconds that is 1,000 s ahead."""
    readings = [100.0]
    monkeypatch.setattr(clock, "now", lambda: readings[-1])
    monkeypatch.setattr(clock, "cpu_now", lambda: readings[-1] + 1000.0)
    monkeypatch.setattr(clock, "wall_now", lambda: readings[-1])
    return readings


def test_a_deadline_is_over_when_its_seconds_are(now: list[float]) -> None:
    deadline = Deadline.of(Options(time_limit_s=10.0))
    assert (deadline.limit_s, deadline.left_s, deadline.is_over) == (10.0, 10.0, False)
    now.append(110.0)
    assert (deadline.left_s, deadline.is_over) == (0.0, True)
    now.append(111.0)
    assert deadline.left_s == -1.0


def test_shares_count_from_the_start_or_from_now(now: list[float]) -> None:
    deadline = Deadline.of(Options(time_limit_s=10.0))
    now.append(104.0)
    assert deadline.share(0.5).left_s == 1.0
    assert deadline.share(0.5).share(0.5).is_over
    assert deadline.share_left(0.5).left_s == 3.0
    assert deadline.within(2.0).left_s == 2.0
    assert deadline.within(7.0) is deadline
    assert deadline.beyond(2.0) is deadline
    assert deadline.beyond(7.0).left_s == 7.0


def test_options_have_the_remaining_seconds(now: list[float]) -> None:
    options = Options(time_limit_s=10.0, gap=0.1)
    deadline = Deadline.of(options)
    now.append(104.0)
    assert deadline.options(options) == Options(time_limit_s=6.0, gap=0.1)
    now.append(120.0)
    assert deadline.options(options).time_limit_s == 1e-3
    assert deadline.options(options, minimum_s=0.1).time_limit_s == 0.1


def test_without_a_limit_nothing_ends() -> None:
    options = Options(gap=0.1)
    for deadline in (NEVER, Deadline.of(options), Deadline.after(None), Deadline.after(math.inf)):
        assert deadline.is_never
        assert not deadline.is_over
        assert deadline.left_s == deadline.limit_s == math.inf
        assert deadline.share(0.0) is deadline
        assert deadline.share_left(0.5) is deadline
        assert deadline.options(options) is options
        assert not deadline.within(5.0).is_never


def test_a_default_stands_for_a_limit_that_options_do_not_have(now: list[float]) -> None:
    assert Deadline.of(Options(), default_s=5.0).left_s == 5.0
    assert Deadline.of(Options(time_limit_s=2.0), default_s=5.0).left_s == 2.0


def test_cpu_seconds_are_counted_where_asked(now: list[float]) -> None:
    deadline = Deadline.after(10.0, is_cpu=True)
    assert (deadline.start, deadline.left_s, deadline.share(0.5).left_s) == (1100.0, 10.0, 5.0)
    assert deadline.within(3.0).end == 1103.0


def test_a_stopwatch_counts_from_its_start(now: list[float]) -> None:
    watches = [Stopwatch(), Stopwatch(is_cpu=True), Stopwatch(is_wall=True)]
    now.append(102.5)
    assert [watch.seconds for watch in watches] == [2.5, 2.5, 2.5]


def test_time_is_reserved_up_to_half_of_the_limit(now: list[float]) -> None:
    deadline = Deadline.after(10.0)
    assert deadline.reserve(2.0).left_s == 8.0
    assert deadline.reserve(7.0).left_s == 5.0
    assert NEVER.reserve(2.0) is NEVER
