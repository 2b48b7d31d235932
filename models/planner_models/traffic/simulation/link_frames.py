"""Frames of the flow-level simulation: links by their mean utilization since the frame before."""

from __future__ import annotations

import numpy as np

from planner.arrays import Floats
from planner.contract.frames import FrameRecorder
from planner_models.traffic.problem.drawing import draw_network
from planner_models.traffic.problem.problem import Traffic


class LinkFrames:
    """Measures the load of links between two frames, and draws it."""

    def __init__(self, problem: Traffic, recorder: FrameRecorder) -> None:
        self._problem, self._recorder = problem, recorder
        self._since_s = 0.0
        self._carried_mbit = np.zeros(len(problem.links))
        self._sent_mbit = 0.0

    def pass_time(self, now_s: float, until_s: float, load_mbps: Floats, rate_mbps: float) -> None:
        """Let links carry a constant load (E,) from now until a time, while flows send at a total rate."""
        for time_s in self._recorder.due(until_s):
            self._add(time_s - now_s, load_mbps, rate_mbps)
            now_s = time_s
            self._take(time_s)
        self._add(until_s - now_s, load_mbps, rate_mbps)

    def finish(self) -> None:
        """Draw the due frames at the end."""
        for time_s in self._recorder.due():
            self._take(time_s)

    def _add(self, passed_s: float, load_mbps: Floats, rate_mbps: float) -> None:
        self._carried_mbit += passed_s * load_mbps
        self._sent_mbit += passed_s * rate_mbps

    def _take(self, time_s: float) -> None:
        """Draw the time since the last frame; there is nothing to draw at time 0."""
        passed_s = time_s - self._since_s
        if passed_s <= 0:
            return
        # a link that is full but for rounding is not overloaded
        load = np.minimum(self._carried_mbit / passed_s, self._problem.capacity_mbps)
        picture = draw_network(self._problem, "Links by utilization", load_mbps=load)
        self._recorder.take(time_s, picture, self._sent_mbit / passed_s)
        self._since_s, self._sent_mbit = time_s, 0.0
        self._carried_mbit[:] = 0.0
