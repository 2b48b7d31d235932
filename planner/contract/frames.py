"""Frames: pictures of a simulated system at equal distances of simulated time.

An execution shows its state where time passes anyway, so that a run with frames is the same as one without:

    def _pass_time(self, until_s):
        for time_s in self.frames.due(until_s):  # none where nobody asked for frames
            self.frames.take(time_s, self._draw(), value)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from planner.contract.drawing import Drawing

MAX_FRAMES: Final = 60
"""Of one run."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Frame:
    """The picture of a simulated system at one time.

    time_s  simulated time
    label   of the time, for people: "12 s", "18h00"
    value   of the simulation's headline metric at this time; None: unknown
    """

    time_s: float
    label: str
    drawing: Drawing
    value: float | None = None


class FrameRecorder:
    """Takes the frames of one run: at 0, at every whole multiple of an interval, and at the end.

    The interval is `step_s` times 1, 2, 5, 10, ...: the least with at most `MAX_FRAMES` frames.
    """

    def __init__(
        self, until_s: float, *, step_s: float | None = None, includes_end: bool = True, is_on: bool = True
    ) -> None:
        """Plan the frames of a run.

        until_s       end of the run
        step_s        times are multiples of it; None: of any power of ten
        includes_end  whether the state at the end is shown
        is_on         whether any frame is taken
        """
        self.frames: list[Frame] = []
        self._times = _times(until_s, step_s, includes_end) if is_on else []
        self._next = 0

    def due(self, until_s: float = math.inf) -> Iterator[float]:
        """Yield the times before `until_s` for which there is no frame yet, in ascending order."""
        while self._next < len(self._times) and self._times[self._next] < until_s:
            self._next += 1
            yield self._times[self._next - 1]

    def take(
        self, time_s: float, drawing: Drawing, value: float | None = None, label: str | None = None
    ) -> None:
        """Add the frame of a time; its label is the time in seconds unless given."""
        shown = f"{time_s:.10g} s" if label is None else label
        self.frames.append(Frame(time_s=time_s, label=shown, drawing=drawing, value=value))


def no_frames() -> FrameRecorder:
    """Return the recorder of a run for which nobody asked for frames."""
    return FrameRecorder(0.0, is_on=False)


def _times(until_s: float, step_s: float | None, includes_end: bool) -> list[float]:
    """Return the times of frames, s."""
    if not (math.isfinite(until_s) and until_s > 0):
        return []
    # two less than the limit: for the frame at 0, and for the end where it is no multiple
    least_s = until_s / (MAX_FRAMES - 2)
    if step_s is None:
        step_s = 10.0 ** math.floor(math.log10(least_s))
    factors = (factor * 10**power for power in range(20) for factor in (1, 2, 5))
    interval_s = step_s * next(factor for factor in factors if step_s * factor >= least_s * (1 - 1e-9))
    count = math.ceil(until_s / interval_s * (1 - 1e-9))
    times = [float(f"{index * interval_s:.12g}") for index in range(count)]
    return [*times, until_s] if includes_end else times
