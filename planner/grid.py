"""The grid of a sweep: axes of a scenario's keys, and the runs at their points.

An axis is a dotted key and its values. Axes are multiplied, or go side by side ("zipped"). An axis of
a design's key, such as `designs.localflow.delta`, counts for that design only: the others are not run
again for each of its values.
"""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from planner.errors import InputError, did_you_mean
from planner.options import Options
from planner.request import Request, asked_digest, options_of, run_digest, versions_of
from planner.run import entries
from planner.scenario import Entry, Scenario, change, from_document, sweep_axes
from planner.tables import few


@dataclass(frozen=True, kw_only=True, eq=False)
class Point:
    """One place of the grid: what it was given, and the run that answers it.

    values  by the axes that this run depends on
    entry   the design, with its parameters
    """

    values: Mapping[str, Any]
    request: Request
    entry: Entry
    options: Options

    def digest(self, problem: str | None) -> str:
        """The run's name; `problem` is the digest of the problem's tables, where that is known."""
        return run_digest(
            self.request.system,
            problem or self.request.asked,
            self.entry,
            self.options,
            versions=self.request.versions,
            warm=self.request.warm,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Grid:
    """All points of a sweep, in order: scenario by scenario, problem by problem.

    axes  the keys that vary, over all scenarios
    """

    axes: tuple[str, ...]
    points: tuple[Point, ...]

    def __len__(self) -> int:
        return len(self.points)


def lay_out(
    scenarios: Sequence[Scenario],
    *,
    axes: Mapping[str, Sequence[Any]] | None = None,
    designs: Sequence[str] | None = None,
    zipped: bool = False,
    plans: bool = True,
    warm: bool = False,
) -> Grid:
    """The grid of scenarios over their own [sweep] and `axes`, which go before them.

    designs  those named, else all of the scenario's, else all of the system's
    zipped   axes go side by side: all have as many values, or one
    raises   InputError with every fault
    """
    given, faults = sweep_axes(axes or {})
    if not scenarios:
        faults.append("sweep: wants a scenario")
    names = [scenario.name for scenario in scenarios]
    faults += [f"{name}: is given twice" for name in dict.fromkeys(names) if names.count(name) > 1]
    points: list[Point] = []
    layouts: list[_Layout] = []
    for scenario in () if faults else scenarios:
        try:
            layout = _Layout(scenario, {**scenario.sweep, **given}, designs, zipped, plans, warm)
            layouts.append(layout)
            points += layout.points()
        except InputError as error:
            faults += error.faults
    labels = [label for layout in layouts for label in layout.labels]
    for key in given if labels else ():
        if key.startswith("designs.") and not any(layout.user(key) for layout in layouts):
            label = key.split(".")[1]
            faults.append(f"sweep.{key}: no such design of this sweep" + did_you_mean(label, labels))
    if faults:
        raise InputError(*few(list(dict.fromkeys(faults)), "sweep", "to mend"))
    keys = [key for scenario in scenarios for key in (*scenario.sweep, *given)]
    return Grid(axes=tuple(dict.fromkeys(keys)), points=tuple(points))


class _Layout:
    """The points of one scenario; every distinct section is read and checked once."""

    def __init__(
        self,
        scenario: Scenario,
        axes: Mapping[str, Sequence[Any]],
        designs: Sequence[str] | None,
        zipped: bool,
        plans: bool,
        warm: bool,
    ) -> None:
        self.scenario, self.axes, self.zipped = scenario, axes, zipped
        self.plans, self.warm = plans, warm
        self.raw = {key: value for key, value in scenario.raw.items() if key != "sweep"}
        self.labels = [entry.label for entry in entries(scenario, designs)]
        self.folder = scenario.folder.resolve()
        self.read: dict[str, Any] = {}
        self.faults: list[str] = []

    def points(self) -> list[Point]:
        if self.zipped:
            self.faults += self._unequal()
        found: dict[str, list[Point]] = {}
        for label in self.labels if not self.faults else ():
            for values in self._places(label):
                point = self._point(label, values)
                if point is not None:
                    found.setdefault(point.request.asked, []).append(point)
        if self.faults:
            raise InputError(*dict.fromkeys(self.faults))
        return [point for points in found.values() for point in points]

    def user(self, key: str) -> str | None:
        """The label of the design that a key is about."""
        return next((label for label in self.labels if key.startswith(f"designs.{label}.")), None)

    def _unequal(self) -> list[str]:
        counts = {key: len(values) for key, values in self.axes.items() if len(values) > 1}
        if len(set(counts.values())) <= 1:
            return []
        told = ", ".join(f"{key} has {count}" for key, count in counts.items())
        return [f"{self.scenario.name}: --zip: {told} values; all must have as many, or one"]

    def _places(self, label: str) -> Iterator[dict[str, Any]]:
        """The values of the axes that a design's runs depend on, each place once."""
        own = [key for key in self.axes if not key.startswith("designs.") or self.user(key) == label]
        if not self.zipped:
            for values in itertools.product(*(self.axes[key] for key in own)):
                yield dict(zip(own, values, strict=True))
            return
        length = max((len(values) for values in self.axes.values()), default=1)
        seen = set()
        for index in range(length):
            place = {key: self.axes[key][index if len(self.axes[key]) > 1 else 0] for key in own}
            text = json.dumps(place, default=str)
            if text not in seen:
                seen.add(text)
                yield place

    def _point(self, label: str, values: Mapping[str, Any]) -> Point | None:
        sections = {
            "problem": self.raw["problem"],
            "designs": {label: self.raw.get("designs", {}).get(label, {})},
            "solver": self.raw.get("solver", {}),
        }
        touched = {key.partition(".")[0] for key in values}
        document = {name: copy.deepcopy(part) if name in touched else part for name, part in sections.items()}
        for key, value in values.items():
            change(document, key, value)
        asked = self._once("problem", document["problem"], lambda: self._asked(document["problem"]))
        loaded = self._once("designs", document["designs"], lambda: self._load(designs=document["designs"]))
        solver = self._once("solver", document["solver"], lambda: self._solver(document["solver"]))
        if asked is None or loaded is None or solver is None:
            return None
        entry = loaded.designs[0]
        options, plain = solver
        request = Request(
            scenario=self.scenario.name,
            folder=str(self.folder),
            system=self.scenario.system.name,
            problem=asked[0],
            label=label,
            design=document["designs"][label],
            solver=plain,
            asked=asked[1],
            versions=versions_of(self.scenario.system.name),
            warm=self.warm,
            plans=self.plans,
        )
        return Point(values=values, request=request, entry=entry, options=options)

    def _once(self, kind: str, section: Any, make: Callable[[], Any]) -> Any:
        """`make()` for each distinct section; its faults are noted, and None is what is wrong."""
        key = f"{kind}:{json.dumps(section, default=str)}"
        if key not in self.read:
            try:
                self.read[key] = make()
            except InputError as error:
                self.faults += error.faults
                self.read[key] = None
        return self.read[key]

    def _load(self, **sections: Any) -> Scenario:
        document = {**self.raw, **sections}
        return from_document(document, name=self.scenario.name, folder=self.folder)

    def _asked(self, problem: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
        loaded = self._load(problem=problem)
        if loaded.make_series is not None:
            loaded.make_problem()  # says what to do instead
        return problem, asked_digest(self.scenario.system, problem, self.folder)

    def _solver(self, solver: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any]]:
        options = options_of(self._load(solver=solver).options)
        return options, {name: value for name, value in asdict(options).items() if value is not None}
