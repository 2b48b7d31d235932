"""Where a problem comes from: the [problem] section of a scenario, read and checked."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.errors import InputError, did_you_mean
from planner.parameters import Parameter, check_parameters, parameters_of
from planner.system import Series, System
from planner.table_files import find_tables, read_tables


def maker_of(
    system: System, raw: Mapping[str, Any], folder: Path
) -> tuple[Callable[[], Any] | None, list[str]]:
    """What makes the problem, or the series of them, that a document asks for; None with its faults.

    Files are read only when that is called.

    folder  what relative paths are relative to
    """
    if "problem" not in raw:
        return None, ["problem: is missing: write [problem] with a source"]
    given = dict(raw["problem"])
    readers = {**system.sources, **system.series}
    sources = ["tables", "generate", *readers]
    source = given.pop("source", None)
    if source is None:
        return None, ["problem.source: is missing; one of: " + ", ".join(sources)]
    always = parameters_of(system.adjust)
    own = _own(system, str(source), given)
    common = {key: given.pop(key) for key in list(given) if key in always and key not in own}
    adjustments, faults = check_parameters(
        system.adjust, common, where="problem", what="the problem", folder=folder
    )
    make: Callable[[], Any] | None = None
    if source == "tables":
        make, more = _from_tables(system, given, folder)
    elif source == "generate":
        make, more = _from_preset(system, given, folder)
    elif source in readers:
        make, more = _from(system, readers[source], given, f"source '{source}'", folder)
    else:
        more = [f"problem.source: no such source '{source}'" + did_you_mean(str(source), sources)]
    faults += more
    if faults or make is None:
        return None, faults
    if source in system.series:
        return lambda: _Adjusted(make(), lambda problem: system.adjust(problem, **adjustments)), []
    return lambda: system.adjust(make(), **adjustments), []


def _own(system: System, source: str, given: Mapping[str, Any]) -> Mapping[str, Parameter]:
    """The parameters of what makes the problem; they come first, as what it makes may hang on them."""
    makers: Mapping[str, Callable[..., Any]] = {**system.sources, **system.series}
    name = source
    if source == "generate":
        makers, name = system.presets, str(given.get("preset"))
    return parameters_of(makers[name]) if name in makers else {}


@dataclass(frozen=True)
class _Adjusted:
    """A series whose problems are all changed alike."""

    series: Series
    adjust: Callable[[Any], Any]

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return ((label, self.adjust(problem)) for label, problem in self.series)

    def __len__(self) -> int:
        return len(self.series)


def _from(
    system: System, function: Callable[..., Any], given: Mapping[str, Any], what: str, folder: Path
) -> tuple[Callable[[], Any], list[str]]:
    always = parameters_of(system.adjust)
    values, faults = check_parameters(
        function, given, where="problem", what=what, folder=folder, others=always
    )
    return lambda: function(**values), faults


def _from_preset(
    system: System, given: dict[str, Any], folder: Path
) -> tuple[Callable[[], Any] | None, list[str]]:
    preset = given.pop("preset", None)
    if preset is None:
        return None, ["problem.preset: is missing; one of: " + ", ".join(system.presets)]
    if preset not in system.presets:
        return None, [
            f"problem.preset: no such preset '{preset}'" + did_you_mean(str(preset), system.presets)
        ]
    return _from(system, system.presets[preset], given, f"preset '{preset}'", folder)


def _from_tables(
    system: System, given: Mapping[str, Any], folder: Path
) -> tuple[Callable[[], Any] | None, list[str]]:
    names = [table.name for table in system.tables]
    faults = [
        f"problem.{key}: no such key of source 'tables'"
        + did_you_mean(key, ["path", *names, *parameters_of(system.adjust)])
        for key in given
        if key not in ("path", *names)
    ]
    faults += [
        f"problem.{key} is {value}, must be the name of a file"
        for key, value in given.items()
        if key in ("path", *names) and not isinstance(value, str)
    ]
    if not given:
        faults.append("problem.path: is missing; source 'tables' needs the folder of the tables")
    if faults:
        return None, faults

    def make() -> Any:
        named = {name: folder / given[name] for name in names if name in given}
        found: dict[str, Path] = {}
        rest = [table for table in system.tables if table.name not in named]
        if "path" in given:
            found = find_tables(rest, folder / given["path"], system.optional_tables)
        else:
            absent = [table.name for table in rest if table.name not in system.optional_tables]
            if absent:
                raise InputError(
                    *(f"problem.{name}: is missing; name its file, or a path" for name in absent)
                )
        return system.from_tables(read_tables(system.tables, {**found, **named}))

    return make, []


def relocated(system: System, problem: Mapping[str, Any], old: Path, new: Path) -> dict[str, Any]:
    """The [problem] section with its relative paths made relative to another folder."""
    moved = dict(problem)
    for key in path_keys(system, problem):
        if isinstance(moved.get(key), str) and not Path(moved[key]).is_absolute():
            moved[key] = Path(os.path.relpath(old / moved[key], new)).as_posix()
    return moved


def path_keys(system: System, problem: Mapping[str, Any]) -> Iterator[str]:
    """The keys of a [problem] section that name files or folders."""
    if problem.get("source") == "tables":
        yield from ("path", *(table.name for table in system.tables))
    makers = [
        system.adjust,
        system.sources.get(str(problem.get("source"))),
        system.series.get(str(problem.get("source"))),
        system.presets.get(str(problem.get("preset"))),
    ]
    for maker in makers:
        if maker is not None:
            yield from (name for name, parameter in parameters_of(maker).items() if parameter.is_path)
