"""Tasks of worker processes for the page "Through time": rolls with their pictures, and simulations."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from planner.contract.drawing import Drawing, NetworkMap
from planner.contract.frames import Frame
from planner.formatting import sizes
from planner.io.file_replacement import replace_text
from planner.reports import run_drawings, run_pages
from planner.reports.document import Part
from planner.scenarios.scenario import Scenario, load
from planner_dashboard.question import UPLOADED
from planner_dashboard.worker import RenderedParts, render

MAX_DRAWN_LINKS: Final = 400_000
"""Links of all pictures together; of more, pictures are left out."""


@dataclass(frozen=True, kw_only=True)
class Course:
    """A roll that a user asks for.

    windows  repeats a source of one problem; None: the source is a series
    events   changes by the label of the window from which on they apply
    """

    scenario: str
    designs: tuple[str, ...]
    windows: int | None = None
    upload: str = ""
    changes: Mapping[str, Any] = field(default_factory=dict)
    events: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def load(self, tables: Path) -> Scenario:
        """Load the scenario with its windows and events."""
        from planner.runs.rolling import with_events

        source = tables / "scenario.toml" if self.scenario == UPLOADED else self.scenario
        return with_events(load(source, changes=self.changes), self.events, self.windows)


@dataclass(frozen=True, kw_only=True)
class Description:
    """Choices that a scenario offers.

    labels    of the windows of its series; () where its source gives one problem
    elements  names of its elements by kind
    """

    labels: tuple[str, ...]
    elements: Mapping[str, Sequence[str]]
    size: str


@dataclass(frozen=True, kw_only=True, eq=False)
class DesignWindows:
    """The windows of one design: figures, and pictures where there is a plan."""

    label: str
    title: str
    rows: Sequence[Mapping[str, Any]]
    pictures: Sequence[Drawing | None]
    failures: Mapping[str, str]


@dataclass(frozen=True, kw_only=True, eq=False)
class RolledDesigns:
    """A finished roll.

    parts  its page, as the command line and reports show it
    note   what is left out, "" for nothing
    """

    course: Course
    system: str
    sentences: Sequence[str]
    labels: Sequence[str]
    designs: Sequence[DesignWindows]
    parts: RenderedParts
    note: str = ""


def describe(course: Course, tables: Path) -> Description:
    """Return the windows and the elements of a scenario."""
    scenario = course.load(tables)
    labels: list[str] = []
    if scenario.make_series is not None and course.windows is None:
        problem = None
        for label, step_problem in scenario.make_series():
            problem = step_problem if problem is None else problem
            labels.append(label)
    else:
        problem = scenario.make_problem()
    return Description(
        labels=tuple(labels),
        elements={kind.name: list(kind.names(problem)) for kind in scenario.system.problem.elements},
        size=sizes(problem.size()) if problem is not None else "",
    )


def roll(course: Course, tables: Path, folder: Path) -> RolledDesigns:
    """Run designs through the windows; write finished windows to `folder`, for the page to show meanwhile."""
    from planner.runs import rolling

    scenario = course.load(tables)
    system = scenario.system
    running = rolling.start_roll(scenario, designs=list(course.designs) or None)
    problems = itertools.chain.from_iterable(iter(running.series) for _ in running.entries)
    windows: list[rolling.Window] = []
    pictures: list[Drawing | None] = []
    remaining_links, total = MAX_DRAWN_LINKS, len(running)
    for window, (_, problem) in zip(running, problems, strict=True):
        windows.append(window)
        picture = None
        if window.plan is not None and system.plan.draw is not None and remaining_links > 0:
            picture = next(iter(system.plan.draw(problem, window.plan)), None)
            remaining_links -= len(picture.links) if isinstance(picture, NetworkMap) else 0
        pictures.append(picture)
        rows = [{"design": item.design, **item.row()} for item in windows]
        replace_text(folder / "roll.windows", json.dumps(rows, default=str))
        replace_text(folder / "roll.progress", f"{len(windows)}/{total}")
    labels = list(dict.fromkeys(window.label for window in windows))
    designs = []
    for entry in running.entries:
        indices = [index for index, window in enumerate(windows) if window.design == entry.label]
        designs.append(
            DesignWindows(
                label=entry.label,
                title=entry.title,
                rows=[windows[index].row() for index in indices],
                pictures=[pictures[index] for index in indices],
                failures={
                    windows[index].label: str(windows[index].run.get("error") or windows[index].run["status"])
                    for index in indices
                    if windows[index].exit_code
                },
            )
        )
    titles = {entry.label: entry.title for entry in running.entries}
    titled = [replace(window, design=titles[window.design]) for window in windows]
    page = run_pages.windows_page(system, titled)
    rolled = rolling.Rolled(system=system, windows=tuple(titled))
    return RolledDesigns(
        course=course,
        system=system.name,
        sentences=rolled.sentences,
        labels=labels,
        designs=designs,
        parts=render(_without_verdict(page.parts)),
        note="" if remaining_links > 0 else "The network is large: the last windows have no picture.",
    )


def _without_verdict(parts: Sequence[Part]) -> list[Part]:
    """Return parts without the sentences of the first, which the page shows above the picture."""
    first, *others = parts
    return [replace(first, sentences=[]), *others]


@dataclass(frozen=True, kw_only=True, eq=False)
class Simulated:
    """A finished simulation.

    frames  of each design that ended, by its label
    """

    scenario: str
    sentences: Sequence[str]
    parts: RenderedParts
    frames: Mapping[str, Sequence[Frame]]


def simulate(scenario: str, upload: Path, designs: Sequence[str], changes: Mapping[str, Any]) -> Simulated:
    """Simulate designs in time as controllers."""
    from planner.runs import simulate as simulations

    source = upload / "scenario.toml" if scenario == UPLOADED else scenario
    loaded = load(source, changes=changes)
    result = simulations.simulate(loaded, designs=list(designs) or None, frames=True)
    unfailed = run_drawings.draw_whole(loaded)
    titled = replace(result, runs=tuple(replace(run, entry=run.entry.titled()) for run in result.runs))
    page = run_pages.simulation_page(titled)
    runs = {run.label: run.result.frames for run in result.runs if run.result is not None}
    every = _thinning([frame.drawing for frames in runs.values() for frame in frames])
    return Simulated(
        scenario=scenario,
        sentences=titled.sentences,
        parts=render(_without_verdict(page.parts)),
        frames={
            label: [
                replace(frame, drawing=run_drawings.show_failures(frame.drawing, unfailed))
                for frame in frames[::every]
            ]
            for label, frames in runs.items()
        },
    )


def _thinning(drawings: Sequence[Drawing]) -> int:
    """Return 1 where every drawing can be shown, 2 for every second one, and so on."""
    links = sum(len(drawing.links) for drawing in drawings if isinstance(drawing, NetworkMap))
    return max(1, math.ceil(links / MAX_DRAWN_LINKS))
