"""Scenarios: TOML files that name a system, the source of its problem, designs and solver options.

Unknown keys are faults, and all faults of a file are reported together.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import tomli_w

from planner.backends.registry import name_faults
from planner.contract.design import Design
from planner.contract.parameters import check_parameters
from planner.contract.problem import Series
from planner.contract.system import System
from planner.contract.value_rules import RULES
from planner.errors import InputError, did_you_mean
from planner.formatting import title_of
from planner.io.names import name_fault
from planner.io.text_files import read_text
from planner.io.toml import parse_toml
from planner.options import OPTION_NAMES, Options
from planner.scenarios.catalogue import find_system, system_names
from planner.scenarios.existing_plans import existing_plan_design
from planner.scenarios.shipped import scenario_file, scenario_names
from planner.scenarios.sources import (
    Events,
    Single,
    problem_factory,
    read_events,
    relocate_path,
    relocate_paths,
    windowed_tables,
)

SECTIONS: Final = (
    "system", "problem", "series", "events", "designs", "plans", "solver", "simulation", "sweep",
)  # fmt: skip
TITLE: Final = "title"
"""Key of a scenario's name for people."""
KEYS: Final = (*SECTIONS, TITLE)
SERIES_KEYS: Final = ("windows", "window")
MAX_WINDOWS: Final = 100_000
SWEPT_SECTIONS: Final = ("problem", "designs", "solver")
PROBLEM_FOLDER: Final = "problem"
"""Subfolder for the tables of a problem that was given in memory."""
PLANS_FOLDER: Final = "plans"
"""Subfolder for the tables of plans that were given in memory, by their labels."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One design of a scenario, with its parameters and the degradation of its information."""

    label: str
    design: Design
    parameters: Mapping[str, Any] = field(default_factory=dict)
    information: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The title of the design, or the label in words where the scenario has one of its own."""
        return self.design.label if self.label == self.design.name else title_of(self.label)

    def titled(self) -> Entry:
        """Return the entry with its title as its label, for sentences that people read."""
        return replace(self, label=self.title)


@dataclass(frozen=True, kw_only=True, eq=False)
class Additions:
    """What a user adds to a scenario in memory.

    designs  of his own, beside those of the system
    plans    existing ones by label, in any form that `take_plan` reads
    """

    designs: tuple[Design, ...] = ()
    plans: Mapping[str, Any] = field(default_factory=dict)

    def __add__(self, other: Additions) -> Additions:
        """Return both; the other's replace those of the same name."""
        designs = {design.name: design for design in (*self.designs, *other.designs)}
        return Additions(designs=tuple(designs.values()), plans={**self.plans, **other.plans})


NO_ADDITIONS: Final = Additions()


@dataclass(frozen=True, kw_only=True, eq=False)
class Scenario:
    """A validated scenario.

    raw           the TOML document, with the changes of `--set`
    folder        base of its relative paths
    make_problem  returns the problem; raises InputError where the source gives a series
    make_series   returns the consecutive problems; None where the source gives one problem
    sweep         values of a sweep by dotted key
    events        adjustments of the problem from a window of the series on, by its label
    problem       the problem in memory that [problem] adjusts; None where its source gives the problem
    changes       what was changed of the file, by dotted key
    plans         existing plans that stand beside the designs
    additions     designs and plans in memory
    """

    name: str
    folder: Path
    raw: Mapping[str, Any]
    system: System
    designs: tuple[Entry, ...]
    options: Options
    make_problem: Callable[[], Any]
    make_series: Callable[[], Series] | None = None
    simulation: Mapping[str, Any] = field(default_factory=dict)
    sweep: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    events: Events = field(default_factory=dict)
    problem: Any = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    plans: tuple[Entry, ...] = ()
    additions: Additions = NO_ADDITIONS

    @property
    def label(self) -> str:
        """The title, or the end of the name in words."""
        return str(self.raw.get(TITLE) or title_of(self.name.rpartition("/")[2].removesuffix(".toml")))

    def design_title(self, label: str) -> str:
        """Return the title of a design by its label: that of the design itself, or the label in words."""
        design = next((design for design in self.system.designs if design.name == label), None)
        return design.label if design is not None else title_of(label)

    @property
    def is_consecutive(self) -> bool:
        """True where the source gives consecutive problems, for `planner roll`, and none is chosen."""
        return _is_consecutive(self.system, self.raw) and "window" not in self.raw.get("series", {})

    def entry(self, label: str) -> Entry:
        """Return the design of a label: the scenario's own, or one of the system's with its defaults."""
        for entry in (*self.designs, *self.plans):
            if entry.label == label:
                return entry
        designs = {design.name: design for design in self.system.designs}
        if label in designs:
            return Entry(label=label, design=designs[label])
        labels = [*(entry.label for entry in (*self.designs, *self.plans)), *designs]
        raise InputError(
            f"{self.name}: designs.{label}: no such design of {self.system.name}"
            + did_you_mean(label, labels)
        )

    def to_toml(self, folder: Path) -> str:
        """Return the scenario as TOML with paths relative to `folder`, where it will be saved.

        A problem in memory is written as the tables in the subfolder `problem`, plans as those in `plans`.
        """
        section = relocate_paths(self.system, self.raw["problem"], self.folder, folder)
        if self.problem is not None:
            section = {"source": "tables", "path": PROBLEM_FOLDER, **section}
        plans = {
            label: relocate_path(path, self.folder, folder)
            for label, path in self.raw.get("plans", {}).items()
        }
        plans |= {label: f"{PLANS_FOLDER}/{label}" for label in self.additions.plans}
        return tomli_w.dumps({**self.raw, "problem": section, **({"plans": plans} if plans else {})})


def load(
    source: str | Path,
    *,
    changes: Mapping[str, Any] | None = None,
    options: Options | Mapping[str, Any] | None = None,
) -> Scenario:
    """Load the scenario of a TOML file, or one that ships with planner, such as "traffic/germany50".

    changes  dotted keys and their new values, e.g. {"problem.scale": 2.0}
    options  Options, or some of them by name, which override those of the scenario
    raises   InputError with every fault
    """
    path = _find_file(source)
    raw = _parse(path)
    for key, value in (changes or {}).items():
        set_key(raw, key, value)
    if options:
        raw["solver"] = _solver_section(raw, options)
    scenario = from_document(raw, name=str(source), folder=path.parent)
    return replace(scenario, changes={**(changes or {}), **_solver_changes(options)})


def changes_between(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changes, by dotted key, that make one scenario's document into another one.

    Keys that only the document before has are left out: no change removes a key.
    """
    depths = {"designs": 2}
    changes: dict[str, Any] = {}

    def compare(old: Any, new: Any, key: str, depth: int) -> None:
        if depth and isinstance(new, Mapping):
            previous = old if isinstance(old, Mapping) else {}
            for name, value in new.items():
                compare(previous.get(name), value, f"{key}.{name}" if key else str(name), depth - 1)
        elif new != old:
            changes[key] = new

    for section, value in after.items():
        compare(before.get(section), value, section, depths.get(section, 1))
    return changes


def with_options(scenario: Scenario, options: Options | Mapping[str, Any] | None) -> Scenario:
    """Return the scenario with other solver options, or with some of them by name."""
    if not options:
        return scenario
    document = {**scenario.raw, "solver": _solver_section(scenario.raw, options)}
    return with_document(scenario, document, _solver_changes(options))


def without_failures(scenario: Scenario) -> Scenario | None:
    """Return the scenario without the elements that it fails; None where it fails none."""
    adjusted = scenario.raw.get("problem", {})
    actions = [action for kind in scenario.system.problem.elements for action in kind.with_role("failure")]
    failed = {
        action.parameter for action in actions if action.value is None and adjusted.get(action.parameter)
    }
    if not failed:
        return None
    remaining = {key: value for key, value in adjusted.items() if key not in failed}
    return with_document(scenario, {**scenario.raw, "problem": remaining})


def with_document(
    scenario: Scenario, document: Mapping[str, Any], changes: Mapping[str, Any] | None = None
) -> Scenario:
    """Return the scenario of another document, on the same problem in memory where there is one.

    changes  what it changes, by dotted key
    """
    changed = from_document(
        document,
        name=scenario.name,
        folder=scenario.folder,
        problem=scenario.problem,
        additions=scenario.additions,
    )
    return replace(changed, changes={**scenario.changes, **(changes or {})})


def with_additions(scenario: Scenario, additions: Additions) -> Scenario:
    """Return the scenario with more designs and existing plans.

    raises  InputError for a plan with the label of a design
    """
    if not additions.designs and not additions.plans:
        return scenario
    added = replace(scenario, additions=scenario.additions + additions)
    return with_document(added, added.raw)


def _solver_section(raw: Mapping[str, Any], options: Options | Mapping[str, Any]) -> Any:
    """Return the [solver] section with other options: Options replace it, named ones override it."""
    if isinstance(options, Options):
        return {name: value for name, value in asdict(options).items() if value is not None}
    section = raw.get("solver", {})
    # a value that is no table is reported later
    return {**section, **options} if isinstance(section, dict) else section


def _solver_changes(options: Options | Mapping[str, Any] | None) -> dict[str, Any]:
    """Return solver options by dotted key, without those that have their default."""
    default = asdict(Options()) if isinstance(options, Options) else {}
    settings = asdict(options) if isinstance(options, Options) else options or {}
    return {
        f"solver.{name}": value
        for name, value in settings.items()
        if name not in default or value != default[name]
    }


def from_document(
    raw: Mapping[str, Any],
    *,
    name: str,
    folder: Path,
    problem: Any = None,
    additions: Additions = NO_ADDITIONS,
) -> Scenario:
    """Return the scenario of a TOML document; raise InputError with every fault.

    problem    a problem in memory, which [problem] adjusts; None: the source in [problem] gives it
    additions  designs and plans in memory
    """
    context: dict[str, Any] = {"folder": folder, "problem": problem, "additions": additions}
    faults = _section_faults(raw)
    system, more = _read_system(raw)
    if system is not None:
        system = system.with_designs(additions.designs)
    options, option_faults = _read_options(raw.get("solver", {}))
    faults += [*more, *option_faults]
    sections = _SystemSections()
    if system is not None:
        sections, more = _read_system_sections(system, raw, name, **context)
        faults += more
    axes, more = sweep_axes(raw.get("sweep", {}))
    if not faults:  # values can be tried only in a scenario that is valid without them
        more += _sweep_faults(raw, axes, partial(from_document, name="sweep", **context))
        more += _axis_faults(raw, axes, system)
    faults += more
    if faults or system is None or sections.make_problem is None:
        raise InputError(*(f"{name}: {fault}" for fault in faults))
    return Scenario(
        name=name,
        folder=folder,
        raw=raw,
        system=system,
        designs=sections.designs,
        options=options,
        make_problem=sections.make_problem,
        make_series=sections.make_series,
        simulation=sections.simulation,
        sweep=axes,
        events=sections.events,
        problem=problem,
        plans=sections.plans,
        additions=additions,
    )


@dataclass(frozen=True, kw_only=True)
class _SystemSections:
    """What the sections of a document say that only its system understands; fields as in `Scenario`.

    make_problem  None where its section has faults
    """

    designs: tuple[Entry, ...] = ()
    plans: tuple[Entry, ...] = ()
    simulation: Mapping[str, Any] = field(default_factory=dict)
    events: Events = field(default_factory=dict)
    make_problem: Callable[[], Any] | None = None
    make_series: Callable[[], Series] | None = None


def _read_system_sections(
    system: System, raw: Mapping[str, Any], name: str, *, folder: Path, problem: Any, additions: Additions
) -> tuple[_SystemSections, list[str]]:
    """Return the sections of a document that its system understands, and their faults."""
    entries, plans, faults = _read_entries(system, raw, folder, additions)
    simulation: Mapping[str, Any] = {}
    events: Events = {}
    make_problem: Callable[[], Any] | None = None
    make_series: Callable[[], Series] | None = None
    if isinstance(raw.get("simulation", {}), dict):
        simulation, more = _simulation(system, raw.get("simulation", {}), folder)
        faults += more
    if isinstance(raw.get("events", {}), dict):
        events, more = read_events(system, raw.get("events", {}), folder)
        faults += more
    if isinstance(raw.get("problem", {}), dict):
        make_problem, more = problem_factory(system, raw, folder, problem, events)
        faults += more
    if make_problem is not None:
        make_problem, make_series, more = _find_series(system, raw, name, make_problem)
        faults += more
    sections = _SystemSections(
        designs=entries,
        plans=plans,
        simulation=simulation,
        events=events,
        make_problem=make_problem,
        make_series=make_series,
    )
    return sections, faults


def _section_faults(raw: Mapping[str, Any]) -> list[str]:
    """Return an error for each unknown key of a document, and for each section that is no table."""
    unknown = [key for key in raw if key not in KEYS]
    no_tables = [section for section in SECTIONS[1:] if not isinstance(raw.get(section, {}), dict)]
    return [
        *(f"{key}: no such key" + did_you_mean(key, KEYS) for key in unknown),
        *([] if isinstance(raw.get(TITLE, ""), str) else [f"{TITLE} must be a text"]),
        *(f"{section} must be a table: write [{section}]" for section in no_tables),
    ]


def _axis_faults(raw: Mapping[str, Any], axes: Iterable[str], system: System | None) -> list[str]:
    """Return an error for each axis of a design that the scenario does not have."""
    labels = list(raw.get("designs", {})) or [design.name for design in system.designs] if system else []
    return [
        f"sweep.{key}: no such design of this scenario" + did_you_mean(key.split(".")[1], labels)
        for key in axes
        if key.startswith("designs.") and not any(key.startswith(f"designs.{label}.") for label in labels)
    ]


def _find_series(
    system: System, raw: Mapping[str, Any], name: str, make: Callable[[], Any]
) -> tuple[Callable[[], Any], Callable[[], Series] | None, list[str]]:
    """Return the makers of the problem and of the series, and the errors of [series] and [events]."""
    section = raw.get("series", {})
    settings = section if isinstance(section, dict) else {}
    windows = settings.get("windows")
    faults = [
        f"series.{key}: no such key" + did_you_mean(key, SERIES_KEYS)
        for key in settings
        if key not in SERIES_KEYS
    ]
    if _is_consecutive(system, raw):
        if windows is not None:
            faults.append("series.windows: problem.source gives consecutive problems already")
        if "window" in settings:
            return partial(_select_window, make, settings["window"]), None, faults
        return _refuse_single_problem(name), make, faults
    if "window" in settings:
        faults.append("series.window: problem.source gives one problem, with no window to choose")
    if windows is None:
        if raw.get("events"):
            faults.append("events: problem.source gives one problem; [series] windows = 24 repeats it")
        return make, None, faults
    repeated = _repeat(make, windows, faults)
    return make, repeated, faults


def _repeat(make: Callable[[], Any], windows: Any, faults: list[str]) -> Callable[[], Series] | None:
    """Return the maker of a series of equal windows; None, with an error added, where it cannot be one."""
    if not _is_window_count(windows):
        faults.append(
            f"series.windows is {json.dumps(windows, default=str)}, "
            f"must be a whole number from 1 to {MAX_WINDOWS:,}"
        )
    elif isinstance(make, Single) and not make.in_memory:
        return partial(make.repeat, windows)
    else:
        faults.append("series: a problem in memory is no source of a series; roll over a list of problems")
    return None


def _is_window_count(value: object) -> bool:
    """Return whether a value is a possible number of windows."""
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_WINDOWS


def _is_consecutive(system: System, raw: Mapping[str, Any]) -> bool:
    problem = raw.get("problem", {})
    return problem.get("source") in system.problem.series or bool(windowed_tables(problem))


def _refuse_single_problem(name: str) -> Callable[[], Any]:
    def refuse() -> Any:
        raise InputError(
            f"{name}: problem.source gives consecutive problems; run them with: planner roll; "
            "or choose one, such as --set series.window=1"
        )

    return refuse


def _select_window(make: Callable[[], Series], window: object) -> Any:
    """Return the problem of a window of a series, by its label; raise InputError for an unknown one."""
    series = list(make())
    for label, problem in series:
        if label == str(window):
            return problem
    labels = [label for label, _ in series]
    raise InputError(
        f"series.window is {window}, no window of the series" + did_you_mean(str(window), labels)
    )


# --- reading the document -----------------------------------------------------------------


def _find_file(source: str | Path) -> Path:
    path = Path(source)
    if path.is_dir():
        near = path / "scenario.toml"
        hint = f"; did you mean '{near}'?" if near.is_file() else f", must be a file; {_advice(path)}"
        raise InputError(f"{source}: is a folder{hint}")
    if path.is_file():
        _refuse_table(path)
        return path
    names = scenario_names()
    if str(source) in names:
        return scenario_file(str(source))
    raise InputError(f"{source}: no such scenario{_nearest_scenarios(source, names)}")


def _nearest_scenarios(source: str | Path, names: Sequence[str]) -> str:
    """Return the end of an error line about a scenario that does not exist: names near it."""
    path = Path(source)
    nearby = sorted(str(other) for other in path.parent.glob("*.toml")) if path.parent.is_dir() else []
    hint = did_you_mean(str(source), [*names, *nearby])
    system = str(source).partition("/")[0]
    system_scenarios = [name for name in names if name.startswith(f"{system}/")]
    if system_scenarios and ("did you mean" not in hint or str(source) == system):
        hint = f"; those of {system} that ship with planner: {', '.join(system_scenarios)}"
    elif "did you mean" not in hint:
        hint = "; planner list SYSTEM names those that ship with planner"
    return hint


def _refuse_table(path: Path) -> None:
    """Raise InputError for a table in place of the scenario that names it."""
    from planner.io.table_files import suffix_of

    if path.suffix.lower() in (".toml", ".txt", "") or suffix_of(path) is None:
        return
    near = path.with_name("scenario.toml")
    hint = f"did you mean '{near}'?" if near.is_file() else _advice(path.parent)
    raise InputError(f"{path}: is a table, a scenario is a TOML file that names its folder; {hint}")


def _advice(folder: Path) -> str:
    return f"planner new scenario {folder} writes one over tables"


def sweep_axes(raw: Any, parent: str = "") -> tuple[dict[str, list[Any]], list[str]]:
    """Return the values of [sweep] by dotted key, and the faults; tables in it are parts of keys."""
    axes: dict[str, list[Any]] = {}
    faults: list[str] = []
    for name, values in raw.items() if isinstance(raw, dict) else ():
        key = f"{parent}{name}"
        section, _, parameter_path = key.partition(".")
        if isinstance(values, dict):
            deeper, more = sweep_axes(values, f"{key}.")
            axes |= deeper
            faults += more
        elif section not in SWEPT_SECTIONS:
            faults.append(f"sweep.{key}: no such key" + did_you_mean(section, SWEPT_SECTIONS))
        elif not all(parameter_path.split(".")):
            faults.append(f"sweep.{key}: a key is words with dots between them, such as problem.scale")
        elif not isinstance(values, list) or not values:
            faults.append(f"sweep.{key} must be a list of values, such as [1, 2, 3]")
        else:
            axes[key] = values
    return axes, faults


def _sweep_faults(
    raw: Mapping[str, Any], axes: Mapping[str, Sequence[Any]], read: Callable[[Mapping[str, Any]], Scenario]
) -> list[str]:
    """Return the faults of a sweep's values, each tried alone; `read` reads a document."""
    plain = {key: value for key, value in raw.items() if key != "sweep"}
    faults: list[str] = []
    for key, values in axes.items():
        for value in values:
            document = copy.deepcopy(plain)
            try:
                set_key(document, key, value)
                read(document)
            except InputError as error:
                faults += error.faults
    return list(dict.fromkeys(faults))


def _parse(path: Path) -> dict[str, Any]:
    try:
        return parse_toml(read_text(path))
    except InputError as error:
        faults = [fault if path.name in fault else f"{path}: {fault}" for fault in error.faults]
        raise InputError(*faults) from None


def set_key(raw: dict[str, Any], key: str, value: Any) -> None:
    """Set a dotted key of a document, in place."""
    *parents, last = key.split(".")
    if not all([*parents, last]):
        raise InputError(f"--set {key}: a key is words with dots between them, such as problem.scale")
    table = raw
    for depth, parent in enumerate(parents):
        table = table.setdefault(parent, {})
        if not isinstance(table, dict):
            raise InputError(f"--set {key}: {'.'.join(parents[: depth + 1])} is a value, not a table")
    table[last] = value


def _read_system(raw: Mapping[str, Any]) -> tuple[System | None, list[str]]:
    if "system" not in raw:
        return None, ["system: is missing; one of: " + ", ".join(system_names())]
    try:
        return find_system(str(raw["system"])), []
    except InputError as error:
        return None, [f"system: {fault}" for fault in error.faults]


def _read_options(raw: Any) -> tuple[Options, list[str]]:
    if not isinstance(raw, dict):
        return Options(), []
    faults = [
        f"solver.{key}: no such option" + did_you_mean(key, OPTION_NAMES)
        for key in raw
        if key not in OPTION_NAMES
    ]
    valid = {key: value for key, value in raw.items() if key in OPTION_NAMES}
    values, more = check_parameters(Options, valid, where="solver", what="the solver")
    faults += more
    if "backend" in values:
        faults += [f"solver.backend: {fault}" for fault in name_faults(str(values["backend"]))]
    try:
        return Options(**values), faults
    except InputError as error:
        return Options(), faults + [f"solver.{fault}" for fault in error.faults]


def _simulation(
    system: System, settings: Mapping[str, Any], folder: Path
) -> tuple[Mapping[str, Any], list[str]]:
    """Return the parameters of a simulation in time, and their errors."""
    simulation = system.studies.simulation
    if not settings:
        return {}, []
    if simulation is None:
        return {}, [f"simulation: system {system.name} has no simulation in time"]
    what = f"the simulation of {system.name}"
    return check_parameters(simulation.run, settings, where="simulation", what=what, folder=folder)


def _read_entries(
    system: System, raw: Mapping[str, Any], folder: Path, additions: Additions
) -> tuple[tuple[Entry, ...], tuple[Entry, ...], list[str]]:
    """Return the designs and the existing plans of a document, and their faults."""
    designs: tuple[Entry, ...] = ()
    faults: list[str] = []
    if isinstance(raw.get("designs", {}), dict):
        designs, faults = _read_designs(system, raw.get("designs", {}))
    section = raw.get("plans", {})
    taken = [*(entry.label for entry in designs), *(design.name for design in system.designs)]
    plans, more = _read_plans(
        system, section if isinstance(section, dict) else {}, folder, additions.plans, taken
    )
    return designs, plans, [*faults, *more]


def _read_plans(
    system: System,
    section: Mapping[str, Any],
    folder: Path,
    in_memory: Mapping[str, Any],
    taken: Sequence[str],
) -> tuple[tuple[Entry, ...], list[str]]:
    """Return existing plans, those of [plans] and those in memory, and their faults.

    taken  labels of designs
    """
    plans: dict[str, Any] = {}
    faults = []
    for label, path in section.items():
        if isinstance(path, str):
            plans[label] = folder / path
        else:
            faults.append(f"plans.{label} is {json.dumps(path, default=str)[:60]}, {RULES['path_type']}")
    plans |= in_memory
    for label in plans:
        if fault := name_fault(label):
            faults.append(f"plans: label {json.dumps(label[:60])} {fault}")
        elif label in taken:
            faults.append(f"plans.{label}: a design has this name; name the plan otherwise")
    entries = [
        Entry(label=label, design=existing_plan_design(system, label, plan)) for label, plan in plans.items()
    ]
    return tuple(entries), faults


def _read_designs(system: System, raw: Mapping[str, Any]) -> tuple[tuple[Entry, ...], list[str]]:
    entries, faults = [], []
    for label, section in raw.items():
        where = f"designs.{label}"
        if fault := name_fault(label):  # folders of results are named by labels
            faults.append(f"designs: label {json.dumps(label[:60])} {fault}")
            continue
        if not isinstance(section, dict):
            faults.append(f"{where} must be a table: write [{where}]")
            continue
        parameters = dict(section)
        name, information = parameters.pop("design", label), parameters.pop("information", {})
        if not isinstance(information, dict):
            faults.append(f"{where}.information must be a table: write [{where}.information]")
            continue
        if "sees" in parameters:
            faults.append(f"{where}.sees: no such key" + did_you_mean("sees", ["information"]))
            del parameters["sees"]
        try:
            design = system.design(str(name))
        except InputError as error:
            faults += [f"designs.{fault}" for fault in error.faults]
            continue
        values, more = check_parameters(design.decide, parameters, where=where, what=f"design {design.name}")
        degradation, information_faults = check_parameters(
            design.observe,
            information,
            where=f"{where}.information",
            what=f"what design {design.name} observes",
        )
        faults += [*more, *information_faults]
        entries.append(Entry(label=label, design=design, parameters=values, information=degradation))
    return tuple(entries), faults
