"""Frames: times in ascending order from 0 to the end, few enough, each taken once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.contract.drawing import Curve
from planner.contract.frames import MAX_FRAMES, FrameRecorder, no_frames


@given(
    until_s=st.floats(1e-6, 1e9),
    step_s=st.one_of(st.none(), st.floats(1e-3, 1e4)),
    includes_end=st.booleans(),
)
def test_times_ascend_and_are_few(until_s: float, step_s: float | None, includes_end: bool) -> None:
    times = list(FrameRecorder(until_s, step_s=step_s, includes_end=includes_end).due())
    assert 1 <= len(times) <= MAX_FRAMES
    assert times[0] == 0.0
    assert times == sorted(set(times))
    assert times[-1] == until_s or (not includes_end and times[-1] < until_s)


@pytest.mark.parametrize(("until_s", "first_s", "count"), [(60.0, 2.0, 31), (0.5, 0.01, 51), (7.0, 0.2, 36)])
def test_times_are_round(until_s: float, first_s: float, count: int) -> None:
    times = list(FrameRecorder(until_s).due())
    assert times[1] == first_s
    assert len(times) == count


def test_each_window_has_a_frame_and_long_series_every_second_or_fifth() -> None:
    assert list(FrameRecorder(900.0, step_s=300.0, includes_end=False).due()) == [0.0, 300.0, 600.0]
    many = list(FrameRecorder(96 * 300.0, step_s=300.0, includes_end=False).due())
    assert many[1] == 600.0
    assert len(many) == 48


def test_a_time_is_due_once_and_has_its_label() -> None:
    recorder = FrameRecorder(3.0, step_s=1.0)
    assert list(recorder.due(1.0)) == [0.0]
    drawing = Curve(title="load", frame=None)  # type: ignore[arg-type]
    for time_s in recorder.due():
        recorder.take(time_s, drawing, value=2.0)
    assert [(frame.label, frame.value) for frame in recorder.frames] == [
        ("1 s", 2.0),
        ("2 s", 2.0),
        ("3 s", 2.0),
    ]
    assert list(recorder.due()) == []


def test_nothing_is_due_where_nobody_asked() -> None:
    assert list(no_frames().due()) == []
    assert list(FrameRecorder(10.0, is_on=False).due()) == []
