"""Sources of problems: reads and checks the [problem] section of a scenario."""

from __future__ import annotations

import copy
import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from planner.contract.notes import add_note, make_with_notes
from planner.contract.parameters import Parameter, check_parameters, parameters_of
from planner.contract.plausibility import find_disproportions
from planner.contract.problem import Series
from planner.contract.system import System
from planner.contract.table import WINDOW
from planner.errors import InputError, did_you_mean
from planner.io.layout import Layout, TableFile, parse_layouts
from planner.io.table_files import locate_tables, note_other_files, read_problem
from planner.scenarios.adjusted_problems import adjust_problem, adjust_with_notes

LAYOUT_SECTIONS: Final = ("tables", "columns")
"""Keys of a source of tables that say how its files are to be read."""


Events = Mapping[str, Mapping[str, Any]]
"""Adjustments of the problem that apply from a window of a series on, by the window's label."""


def problem_factory(
    system: System,
    raw: Mapping[str, Any],
    folder: Path,
    problem: Any = None,
    events: Events | None = None,
) -> tuple[Callable[[], Any] | None, list[str]]:
    """Return a function that makes the document's problem or series of problems, and the faults.

    The function is None where there are faults. It reads files only when it is called.

    folder   base of relative paths
    problem  a problem in memory, in place of a source
    events   of a series
    """
    if problem is not None:
        return _adjust_problem(system, raw.get("problem", {}), folder, problem)
    if "problem" not in raw:
        return None, ["problem: is missing: write [problem] with a source"]
    return _read_source(system, dict(raw["problem"]), folder, events or {})


def read_events(system: System, events_given: Mapping[str, Any], folder: Path) -> tuple[Events, list[str]]:
    """Return the events in [events], and the faults: an event changes adjustments of the problem only."""
    events: dict[str, Mapping[str, Any]] = {}
    faults: list[str] = []
    for window, changes in events_given.items():
        where = f"events.{window}"
        if not isinstance(changes, Mapping) or not isinstance(changes.get("problem", {}), Mapping):
            faults.append(f"{where} must be a table of changes, such as problem.{_any_adjustment(system)}")
            continue
        faults += [f"{where}.{key}: an event changes [problem] only" for key in changes if key != "problem"]
        values, more = check_parameters(
            system.problem.adjust,
            changes.get("problem", {}),
            where=f"{where}.problem",
            what="a problem in a series",
            folder=folder,
        )
        events[window] = values
        faults += more
    return events, faults


def _any_adjustment(system: System) -> str:
    return next(iter(parameters_of(system.problem.adjust)), "scale")


def _read_source(
    system: System, section: dict[str, Any], folder: Path, events: Events
) -> tuple[Callable[[], Any] | None, list[str]]:
    """Return a function that makes the problem or series of a source, and the faults."""
    readers = {**system.problem.sources, **system.problem.series}
    sources = ["tables", "generate", *readers]
    source = section.pop("source", None)
    if source is None:
        return None, ["problem.source: is missing; one of: " + ", ".join(sources)]
    if not isinstance(source, str):
        return None, ["problem.source must be a name; one of: " + ", ".join(sources)]
    section, common = split_adjustments(system, {"source": source, **section})
    del section["source"]
    adjustments, faults = check_parameters(
        system.problem.adjust, common, where="problem", what="the problem", folder=folder
    )
    make: Callable[[], Any] | None = None
    if source == "tables":
        others = [value for value in common.values() if isinstance(value, str)]
        make, more = _from_tables(system, section, folder, others)
    elif source == "generate":
        make, more = _from_preset(system, section, folder)
    elif source in readers:
        make, more = _bind_parameters(system, readers[source], section, f"source '{source}'", folder)
    else:
        more = [f"problem.source: no such source '{source}'" + did_you_mean(source, sources)]
    faults += more
    if faults or make is None:
        return None, faults
    if source in system.problem.series or windowed_tables({"source": source, **section}):
        return lambda: AdjustedSeries(make(), system.problem.adjust, adjustments, events), []
    return Single(make, system.problem.adjust, adjustments, events), []


@dataclass(frozen=True)
class Single:
    """A function that makes one problem; `repeat` gives a series in which it stands still.

    make       returns the source's problem, before adjustments
    in_memory  whether that is a problem in memory, which is no source of a series
    """

    make: Callable[[], Any]
    adjust: Callable[..., Any]
    adjustments: Mapping[str, Any] = field(default_factory=dict)
    events: Events = field(default_factory=dict)
    in_memory: bool = False

    def __call__(self) -> Any:
        return adjust_with_notes(self.adjust, self.make_source(), self.adjustments)

    def make_source(self) -> Any:
        """Return the problem before adjustments, with the notes on its data."""
        return self.make() if self.in_memory else make_with_notes(self.make)

    def repeat(self, windows: int) -> AdjustedSeries:
        """Return so many windows of the problem, which only events change."""
        return AdjustedSeries(Repeated(self.make, windows), self.adjust, self.adjustments, self.events)


@dataclass(frozen=True)
class Repeated:
    """The same problem in each window; labels count from 1."""

    make: Callable[[], Any]
    windows: int

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        problem = self.make()
        return ((str(count), problem) for count in range(1, self.windows + 1))

    def __len__(self) -> int:
        return self.windows


def split_adjustments(system: System, section: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the keys of a [problem] section that its source takes, and those that adjust its problem."""
    source = section.get("source")
    source_keys = _source_parameters(system, source, section) if isinstance(source, str) else {}
    adjusting = parameters_of(system.problem.adjust)
    common = {key: value for key, value in section.items() if key in adjusting and key not in source_keys}
    return {key: value for key, value in section.items() if key not in common}, common


def _adjust_problem(
    system: System, settings: Mapping[str, Any], folder: Path, problem: Any
) -> tuple[Callable[[], Any] | None, list[str]]:
    """Return a function that adjusts a problem in memory, and the faults."""
    values, faults = check_parameters(
        system.problem.adjust, settings, where="problem", what="a problem in memory", folder=folder
    )
    if faults:
        return None, faults
    return Single(lambda: problem, system.problem.adjust, values, in_memory=True), []


def _source_parameters(system: System, source: str, section: Mapping[str, Any]) -> Mapping[str, Parameter]:
    """Return the parameters of the source itself, which go before adjustments of the same name."""
    makers: Mapping[str, Callable[..., Any]] = {**system.problem.sources, **system.problem.series}
    name = source
    if source == "generate":
        makers, name = system.problem.presets, str(section.get("preset"))
    return parameters_of(makers[name]) if name in makers else {}


@dataclass(frozen=True)
class TimedSeries:
    """Series with windows labelled by numbers from 1, and the time of each window if the data name it."""

    series: Series
    times: Sequence[str]

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return iter(self.series)

    def __len__(self) -> int:
        return len(self.series)


def times_of(series: Series) -> dict[str, str]:
    """Return the time of each window by its label; empty where a series has labels only."""
    inner = series.series if isinstance(series, AdjustedSeries) else series
    times = inner.times if isinstance(inner, TimedSeries) else ()
    return {str(number): time for number, time in enumerate(times, start=1)}


@dataclass(frozen=True)
class AdjustedSeries:
    """A series with the same adjustments of every problem, and those of events from their window on."""

    series: Series
    adjust: Callable[..., Any]
    adjustments: Mapping[str, Any] = field(default_factory=dict)
    events: Events = field(default_factory=dict)

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        adjustments = dict(self.adjustments)
        for label, problem in self.series:
            adjustments |= self.events.get(label, {})
            yield label, adjust_problem(self.adjust, problem, adjustments)

    def __len__(self) -> int:
        return len(self.series)

    def require_windows(self) -> None:
        """Raise InputError for each event at a window that the series does not have."""
        if not self.events:
            return
        labels = [label for label, _ in self.series]
        faults = [
            f"events.{window}: no such window" + did_you_mean(window, labels)
            for window in self.events
            if window not in labels
        ]
        if faults:
            raise InputError(*faults)


def _bind_parameters(
    system: System, function: Callable[..., Any], section: Mapping[str, Any], what: str, folder: Path
) -> tuple[Callable[[], Any], list[str]]:
    always = parameters_of(system.problem.adjust)
    values, faults = check_parameters(
        function, section, where="problem", what=what, folder=folder, others=always
    )
    return lambda: function(**values), faults


def _from_preset(
    system: System, section: dict[str, Any], folder: Path
) -> tuple[Callable[[], Any] | None, list[str]]:
    preset = section.pop("preset", None)
    if preset is None:
        return None, ["problem.preset: is missing; one of: " + ", ".join(system.problem.presets)]
    if not isinstance(preset, str) or preset not in system.problem.presets:
        return None, [
            f"problem.preset: no such preset '{preset}'" + did_you_mean(str(preset), system.problem.presets)
        ]
    return _bind_parameters(system, system.problem.presets[preset], section, f"preset '{preset}'", folder)


def _from_tables(
    system: System, section: Mapping[str, Any], folder: Path, others: Sequence[str] = ()
) -> tuple[Callable[[], Any] | None, list[str]]:
    """Return a function that reads the tables of a [problem] section, and the faults.

    others  texts of other keys, which may be the names of further files
    """
    names = _table_keys(system)
    faults = _table_key_faults(system, section, ["path", *names])
    layouts, more = parse_layouts(
        system.problem.table_by_name, section.get("tables", {}), section.get("columns", {})
    )
    faults += more
    faults += _window_faults(system, section)
    paths, more = _paths_of_tables(section, names, layouts)
    faults += more
    if not paths and "path" not in section:
        faults.append("problem.path: is missing; source 'tables' needs the folder of the tables")
    if faults:
        return None, faults
    named = {name: TableFile(path=folder / path, layout=layouts[name]) for name, path in paths.items()}
    if "path" not in section:
        return functools.partial(_read_named, system, named), []
    other_files = [folder / path for path in others]
    return functools.partial(_read_located, system, named, folder / section["path"], layouts, other_files), []


def _table_key_faults(system: System, section: Mapping[str, Any], keys: Sequence[str]) -> list[str]:
    """Return an error for each unknown key of source 'tables', and for each that names no file.

    keys  those that name a file or a folder
    """
    adjustments = parameters_of(system.problem.adjust)
    unknown = [key for key in section if key not in (*keys, *LAYOUT_SECTIONS)]
    no_names = [key for key in section if key in keys and not isinstance(section[key], str)]
    return [
        *(
            f"problem.{key}: no such key of source 'tables'"
            + did_you_mean(key, [*keys, *LAYOUT_SECTIONS, *adjustments])
            for key in unknown
        ),
        *(f"problem.{key} is {section[key]}, must be the name of a file" for key in no_names),
    ]


def _window_faults(system: System, section: Mapping[str, Any]) -> list[str]:
    """Return an error for each table with windows that the system has not over time, and for several."""
    windowed = windowed_tables({"source": "tables", **section})
    faults = [
        f"problem.tables.{name}.window: {system.name} has no table {name} over time"
        + did_you_mean(name, system.problem.over_time)
        for name in windowed
        if name not in system.problem.over_time
    ]
    if len(windowed) > 1:
        faults.append(f"problem.tables: {' and '.join(windowed)} both have a window; one of them may")
    return faults


def _paths_of_tables(
    section: Mapping[str, Any], names: Sequence[str], layouts: Mapping[str, Layout]
) -> tuple[dict[str, Any], list[str]]:
    """Return the file of each table that has one of its own, and an error for each that is named twice.

    names  tables whose file a key of [problem] may name
    """
    paths: dict[str, Any] = {name: layout.file for name, layout in layouts.items() if layout.file is not None}
    faults = [
        f"problem.{name} and problem.tables.{name}.file both name the file of a table; keep one"
        for name in paths
        if name in section
    ]
    return paths | {name: section[name] for name in names if name in section}, faults


def _read_named(system: System, named: Mapping[str, TableFile]) -> Any:
    """Return the problem of files that are named one by one."""
    tables = system.problem
    absent = [
        table.name
        for table in tables.tables
        if table.name not in named and table.name not in tables.optional_tables
    ]
    faults = [f"problem.tables.{name}.file: is missing; name it, or a path" for name in absent]
    return read_files(system, named, faults)


def _read_located(
    system: System,
    named: Mapping[str, TableFile],
    path: Path,
    layouts: Mapping[str, Layout],
    other_files: Sequence[Path],
) -> Any:
    """Return the problem of files that are named, and of the others that a folder or workbook has.

    other_files  files of the folder that are no tables
    """
    remaining = [table for table in system.problem.tables if table.name not in named]
    files, faults = locate_tables(remaining, path, system.problem.optional_tables, layouts)
    if not faults:
        used = [file.path for file in (*files.values(), *named.values())]
        note_other_files(path, [*used, *other_files])
    return read_files(system, {**files, **named}, faults)


def windowed_tables(problem: Mapping[str, Any]) -> list[str]:
    """Return the names of the tables over time in a [problem] section: those whose rows have a window."""
    layouts = problem.get("tables") if problem.get("source") == "tables" else None
    return [
        name
        for name, layout in (layouts.items() if isinstance(layouts, Mapping) else ())
        if isinstance(layout, Mapping) and "window" in layout
    ]


def read_files(system: System, files: Mapping[str, TableFile], faults: Sequence[str] = ()) -> Any:
    """Return the problem in the files of its tables, with notes on figures that are in doubt.

    It is a series of problems where a table has a column of windows.

    faults  those that are known already, such as of missing files
    raises  InputError with the faults of all rows, and of rules across tables
    """
    kind = system.problem
    windowed = {name: file.layout.window for name, file in files.items() if file.layout.window is not None}
    if windowed:
        (name, column), *_ = windowed.items()
        layout = files[name].layout
        layout = replace(layout, columns={**layout.columns, WINDOW: column})
        tables_over_time = [table.over_time() if table.name == name else table for table in kind.tables]
        build = kind.over_time[name]
        given = {**files, name: replace(files[name], layout=layout)}
        frames = read_problem(tables_over_time, given, build, faults)
        return TimedSeries(build(frames), tuple(frames[name].attrs.get("times", ())))
    tables = read_problem(kind.tables, files, kind.from_tables, faults)
    for doubt in find_disproportions(kind.proportions, tables):
        add_note(doubt)
    return kind.from_tables(tables)


def relocate_paths(system: System, problem: Mapping[str, Any], old: Path, new: Path) -> dict[str, Any]:
    """Return the [problem] section with its relative paths relative to another folder."""
    section = copy.deepcopy(dict(problem))
    for (*outer, key), path in path_entries(system, problem).items():
        holder = functools.reduce(dict.__getitem__, outer, section)
        holder[key] = relocate_path(path, old, new)
    return section


def relocate_path(path: str, old: Path, new: Path) -> str:
    """Return a path relative to another folder; an absolute one stays."""
    return path if Path(path).is_absolute() else Path(os.path.relpath(old / path, new)).as_posix()


def path_entries(system: System, problem: Mapping[str, Any]) -> dict[tuple[str, ...], str]:
    """Return the paths of files and folders in a [problem] section, by their keys from outside to inside."""
    keys = [key for key in _path_keys(system, problem) if isinstance(problem.get(key), str)]
    entries: dict[tuple[str, ...], str] = {(key,): problem[key] for key in keys}
    layouts = problem.get("tables") if problem.get("source") == "tables" else None
    for name, layout in layouts.items() if isinstance(layouts, Mapping) else ():
        if isinstance(layout, Mapping) and isinstance(layout.get("file"), str):
            entries["tables", name, "file"] = layout["file"]
    return entries


def _table_keys(system: System) -> list[str]:
    """Return the names of tables that may be keys of [problem], for files; parameters go first."""
    parameters = parameters_of(system.problem.adjust)
    return [table.name for table in system.problem.tables if table.name not in parameters]


def _path_keys(system: System, problem: Mapping[str, Any]) -> Iterator[str]:
    if problem.get("source") == "tables":
        yield from ("path", *_table_keys(system))
    makers = [
        system.problem.adjust,
        system.problem.sources.get(str(problem.get("source"))),
        system.problem.series.get(str(problem.get("source"))),
        system.problem.presets.get(str(problem.get("preset"))),
    ]
    for maker in makers:
        if maker is not None:
            yield from (name for name, parameter in parameters_of(maker).items() if parameter.is_path)
