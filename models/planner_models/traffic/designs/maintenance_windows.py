"""Maintenance windows: which elements can be drained together without overload, in as few as possible."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from planner.options import Options
from planner.search.deadline import Deadline
from planner_models.traffic.designs.column_generation import column_generation
from planner_models.traffic.designs.drained_elements import Drained, join, remove
from planner_models.traffic.problem.problem import Traffic


def plan_windows(
    problem: Traffic, elements: dict[str, Drained], options: Options, deadline: Deadline
) -> pd.DataFrame:
    """Return the maintenance window of each element: window, element; as few windows as possible.

    Elements share a window where all demand fits with all of them drained. An element that overloads links
    even alone has window 0, and so has one for which the time is too short. Elements are taken in the order
    of how many others they cannot be drained with.
    """
    names = list(elements)
    fits_alone = {name: fits_without(problem, elements[name], deadline.options(options)) for name in names}
    usable = [name for name in names if fits_alone[name]]
    conflicts: dict[str, set[str]] = {name: set() for name in usable}
    for i, name_i in enumerate(usable):
        for other in usable[i + 1 :]:
            both = join(problem, {name_i: elements[name_i], other: elements[other]})
            if not fits_without(problem, both, deadline.options(options)):
                conflicts[name_i].add(other)
                conflicts[other].add(name_i)
    windows: list[list[str]] = []
    for name in sorted(usable, key=lambda element: -len(conflicts[element])):
        for window in windows:
            if conflicts[name] & set(window):
                continue
            together = {other: elements[other] for other in [*window, name]}
            if len(window) < 2 or fits_without(problem, join(problem, together), deadline.options(options)):
                window.append(name)
                break
        else:
            windows.append([name])
    window_of = {name: number for number, window in enumerate(windows, 1) for name in window}
    rows = sorted((window_of.get(name, 0), index) for index, name in enumerate(names))
    return pd.DataFrame(
        {"window": [number for number, _ in rows], "element": [names[index] for _, index in rows]}
    )


def fits_without(problem: Traffic, drained: Drained, options: Options) -> bool:
    """Return whether all demand fits the capacities without the drained elements."""
    without = remove(problem, drained)
    if not len(without.links) or without.unreachable.any():
        return False
    value = column_generation.route(without, enough=1 + 1e-6, options=replace(options, backend="highs")).proof
    return value.objective is not None and value.objective >= 1 - 1e-6
