"""The grid of a sweep: axes of a scenario's keys, and the runs at their points.

An axis is a dotted key and its values. The grid is the product of the axes, or goes through them in
parallel ("zipped"). An axis of a design's key, such as `designs.localflow.delta`, applies to that design
only: the others are not run again for each of its values.
"""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from planner.contract.system import System
from planner.contract.tables import shorten_faults
from planner.errors import InputError, did_you_mean
from planner.options import Options
from planner.runs.evaluation import entries
from planner.scenarios.scenario import Entry, Scenario, from_document, set_key, sweep_axes
from planner.sweeps.run_request import Request, problem_key_of, run_digest, sweep_options, versions_of


@dataclass(frozen=True, kw_only=True, eq=False)
class Point:
    """One point of the grid and its run.

    values  value of each axis that the run depends on
    entry   the design, with its parameters
    """

    values: Mapping[str, Any]
    request: Request
    entry: Entry
    options: Options

    def digest(self, problem: str | None) -> str:
        """Return the digest of the run; `problem` is the digest of the problem's tables, None if unknown."""
        return run_digest(
            self.request.system,
            problem or self.request.problem_key,
            self.entry,
            self.options,
            versions=self.request.versions,
            warm=self.request.warm,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Grid:
    """All points of a sweep, in order: scenario by scenario, problem by problem.

    axes              the keys that vary, over all scenarios
    of_usual_designs  systems of which the usual designs run, as neither a scenario nor the sweep names any
    """

    axes: tuple[str, ...]
    points: tuple[Point, ...]
    of_usual_designs: tuple[System, ...] = ()

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
    """Return the grid of scenarios over the axes of their [sweep] and `axes`, which override them.

    designs  those named, else all of the scenario's, else the system's usual ones
    zipped   go through the axes in parallel: all have the same number of values, or one
    raises   InputError with every fault
    """
    own_axes, faults = sweep_axes(axes or {})
    faults += _scenario_faults(scenarios)
    points: list[Point] = []
    layouts: list[_Layout] = []
    for scenario in () if faults else scenarios:
        try:
            layout = _Layout(scenario, {**scenario.sweep, **own_axes}, designs, zipped, plans, warm)
            layouts.append(layout)
            points += layout.points()
        except InputError as error:
            faults += error.faults
    faults += _unknown_designs(own_axes, layouts)
    if faults:
        raise InputError(*shorten_faults(list(dict.fromkeys(faults)), "sweep", "to correct"))
    keys = [key for scenario in scenarios for key in (*scenario.sweep, *own_axes)]
    return Grid(
        axes=tuple(dict.fromkeys(keys)),
        points=tuple(points),
        of_usual_designs=_systems_without_designs(scenarios) if designs is None else (),
    )


def _scenario_faults(scenarios: Sequence[Scenario]) -> list[str]:
    """Return an error where there is no scenario, and one for each that is given twice."""
    names = [scenario.name for scenario in scenarios]
    if not names:
        return ["sweep: needs a scenario"]
    return [f"{name}: is given twice" for name in dict.fromkeys(names) if names.count(name) > 1]


def _unknown_designs(axes: Iterable[str], layouts: Sequence[_Layout]) -> list[str]:
    """Return an error for each axis of a design that no layout has."""
    labels = [label for layout in layouts for label in layout.labels]
    if not labels:
        return []
    return [
        f"sweep.{key}: no such design of this sweep" + did_you_mean(key.split(".")[1], labels)
        for key in axes
        if key.startswith("designs.") and not any(layout.label_of(key) for layout in layouts)
    ]


def _systems_without_designs(scenarios: Sequence[Scenario]) -> tuple[System, ...]:
    """Return the systems of scenarios that name no designs, each once."""
    systems = [scenario.system for scenario in scenarios if not scenario.designs]
    return tuple({system.name: system for system in systems}.values())


class _Layout:
    """Layout of one scenario's points; every distinct section is read and checked once."""

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
        self.sections: dict[str, Any] = {}
        self.faults: list[str] = []

    def points(self) -> list[Point]:
        if self.zipped:
            self.faults += self._unequal()
        points: dict[str, list[Point]] = {}
        for label in self.labels if not self.faults else ():
            for values in self._axis_values(label):
                point = self._point(label, values)
                if point is not None:
                    points.setdefault(point.request.problem_key, []).append(point)
        if self.faults:
            raise InputError(*dict.fromkeys(self.faults))
        return [point for group in points.values() for point in group]

    def label_of(self, key: str) -> str | None:
        """Return the label of the design that a key configures; None for other keys."""
        return next((label for label in self.labels if key.startswith(f"designs.{label}.")), None)

    def _unequal(self) -> list[str]:
        counts = {key: len(values) for key, values in self.axes.items() if len(values) > 1}
        if len(set(counts.values())) <= 1:
            return []
        counted = ", ".join(f"{key} has {count}" for key, count in counts.items())
        return [f"{self.scenario.name}: --zip: {counted} values; all must have the same number, or one"]

    def _axis_values(self, label: str) -> Iterator[dict[str, Any]]:
        """Yield the values of the axes that a design's runs depend on, each combination once."""
        own_keys = [key for key in self.axes if not key.startswith("designs.") or self.label_of(key) == label]
        if not self.zipped:
            for values in itertools.product(*(self.axes[key] for key in own_keys)):
                yield dict(zip(own_keys, values, strict=True))
            return
        length = max((len(values) for values in self.axes.values()), default=1)
        seen = set()
        for index in range(length):
            combination = {key: self.axes[key][index if len(self.axes[key]) > 1 else 0] for key in own_keys}
            text = json.dumps(combination, default=str)
            if text not in seen:
                seen.add(text)
                yield combination

    def _point(self, label: str, values: Mapping[str, Any]) -> Point | None:
        sections = {
            "problem": self.raw["problem"],
            "designs": {label: self.raw.get("designs", {}).get(label, {})},
            "solver": self.raw.get("solver", {}),
        }
        changed = {key.partition(".")[0] for key in values}
        document = {
            name: copy.deepcopy(content) if name in changed else content for name, content in sections.items()
        }
        for key, value in values.items():
            set_key(document, key, value)
        section = self._once(
            "problem", document["problem"], lambda: self._problem_section(document["problem"])
        )
        loaded = self._once("designs", document["designs"], lambda: self._load(designs=document["designs"]))
        solver = self._once("solver", document["solver"], lambda: self._solver(document["solver"]))
        if section is None or loaded is None or solver is None:
            return None
        entry = loaded.designs[0]
        options, plain = solver
        request = Request(
            scenario=self.scenario.name,
            folder=str(self.folder),
            system=self.scenario.system.name,
            problem=section[0],
            label=label,
            design=document["designs"][label],
            solver=plain,
            problem_key=section[1],
            versions=versions_of(self.scenario.system.name),
            warm=self.warm,
            plans=self.plans,
            user_design=entry.design if entry.design in self.scenario.additions.designs else None,
        )
        return Point(values=values, request=request, entry=entry, options=options)

    def _once(self, kind: str, section: Any, make: Callable[[], Any]) -> Any:
        """Return `make()`, called once for each distinct section; note faults and return None for them."""
        key = f"{kind}:{json.dumps(section, default=str)}"
        if key not in self.sections:
            try:
                self.sections[key] = make()
            except InputError as error:
                self.faults += error.faults
                self.sections[key] = None
        return self.sections[key]

    def _load(self, **sections: Any) -> Scenario:
        document = {**self.raw, **sections}
        additions = self.scenario.additions
        return from_document(document, name=self.scenario.name, folder=self.folder, additions=additions)

    def _problem_section(self, problem: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
        loaded = self._load(problem=problem)
        if loaded.make_series is not None:
            loaded.make_problem()  # raises, and says what to do instead
        return problem, problem_key_of(self.scenario.system, problem, self.folder)

    def _solver(self, solver: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any]]:
        options = sweep_options(self._load(solver=solver).options)
        return options, {name: value for name, value in asdict(options).items() if value is not None}
