"""Events of a series: the user's marks on elements, as changes of the problem from a window on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from planner.contract.elements import Action

PEAK_H: Final = 20.0
"""Hour of a day at which demand is largest."""


@dataclass(frozen=True, kw_only=True)
class Mark:
    """An action on an element from a window on.

    kind   of the element, such as "link"
    first  place of the window at which it happens, from 0
    end    place of the window from which on it is undone; None: it lasts
    """

    kind: str
    element: str
    action: Action
    first: int
    end: int | None = None

    def words(self, labels: Sequence[str]) -> str:
        """Return the event in words: `A – B failed from window 8 until 12`."""
        until = "" if self.end is None else f" until {labels[self.end]}"
        window = "window " if labels[self.first].isdecimal() else ""
        name = self.element.replace("<->", " – ").replace("->", " → ")
        return f"{name} {self.action.state} from {window}{labels[self.first]}{until}"


def events_of(
    marks: Sequence[Mark],
    labels: Sequence[str],
    adjustments: Mapping[str, Any],
    scales: Sequence[float] = (),
) -> dict[str, dict[str, Any]]:
    """Return the events of marks by the window's label, as `planner.roll` takes them.

    adjustments  of the scenario, which events add to
    scales       demand of each window over that of the scenario; () for the same in all windows
    """
    events: dict[str, dict[str, Any]] = {}
    present = dict(adjustments)
    for index, label in enumerate(labels):
        before = present
        # what ends makes place for what begins in the same window
        for mark in marks:
            if mark.end == index:
                present = mark.action.undo(present, mark.element)
        for mark in marks:
            if mark.first == index:
                present = mark.action.apply(present, mark.element)
        changes = {
            f"problem.{name}": _plain(present.get(name), before.get(name))
            for name in sorted({*present, *before})
            if present.get(name) != before.get(name)
        }
        if len(scales):
            changes["problem.scale"] = round(float(adjustments.get("scale", 1.0)) * scales[index], 4)
        if changes:
            events[label] = changes
    return events


def _plain(value: Any, before: Any) -> Any:
    """Return a value of an adjustment as a scenario writes it; one without elements is empty."""
    if value is None:
        return {} if isinstance(before, Mapping) else []
    return dict(value) if isinstance(value, Mapping) else list(value)


def day_scales(windows: int, swing: float) -> list[float]:
    """Return the demand of each window of a day over its mean: a cosine with its maximum at 20 h."""
    hours = [24 * (index + 0.5) / windows for index in range(windows)]
    return [1 + swing * math.cos(2 * math.pi * (hour - PEAK_H) / 24) for hour in hours]
