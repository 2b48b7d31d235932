"""Scenarios: TOML files that name a system, where its problem comes from, designs and solver options.

Unknown keys are refused, and every fault of a file is found before anything is refused.
"""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import tomli_w

from planner.catalogue import find_system, system_names
from planner.errors import InputError, did_you_mean
from planner.options import OPTION_NAMES, Options
from planner.parameters import check_parameters
from planner.sources import maker_of, relocated
from planner.system import Design, Series, System
from planner.text_files import read_text

SECTIONS: Final = ("system", "problem", "designs", "solver", "sweep")
SWEPT: Final = ("problem", "designs", "solver")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One design of a scenario, with its parameters and how good its information is."""

    label: str
    design: Design
    parameters: Mapping[str, Any] = field(default_factory=dict)
    sees: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False)
class Scenario:
    """A validated scenario.

    raw           the TOML document, with what `--set` changed
    folder        what its relative paths are relative to
    make_problem  the problem; InputError where the source gives a series of them
    make_series   the consecutive problems; None where the source gives one problem
    sweep         dotted keys, and the values that a sweep gives to each
    """

    name: str
    folder: Path
    raw: Mapping[str, Any]
    system: System
    designs: tuple[Entry, ...]
    options: Options
    make_problem: Callable[[], Any]
    make_series: Callable[[], Series] | None = None
    sweep: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def entry(self, label: str) -> Entry:
        """The design under that label: the scenario's own, or one of the system's with its defaults."""
        for entry in self.designs:
            if entry.label == label:
                return entry
        known = {design.name: design for design in self.system.designs}
        if label in known:
            return Entry(label=label, design=known[label])
        labels = [*(entry.label for entry in self.designs), *known]
        raise InputError(
            f"{self.name}: designs.{label}: no such design of {self.system.name}"
            + did_you_mean(label, labels)
        )

    def to_toml(self, folder: Path) -> str:
        """The scenario as TOML that means the same when it is saved in `folder`."""
        document = {**self.raw, "problem": relocated(self.system, self.raw["problem"], self.folder, folder)}
        return tomli_w.dumps(document)


def load(
    source: str | Path,
    *,
    changes: Mapping[str, Any] | None = None,
    options: Options | Mapping[str, Any] | None = None,
) -> Scenario:
    """The scenario in a TOML file, or one that ships with planner by its name, e.g. "traffic/germany50".

    changes  dotted keys and their new values, e.g. {"problem.scale": 2.0}
    options  Options, or some of them by name over those of the scenario
    raises   InputError with every fault
    """
    path = _find(source)
    raw = _parse(path)
    for key, value in (changes or {}).items():
        change(raw, key, value)
    if options:
        raw["solver"] = _solver(raw, options)
    return from_document(raw, name=str(source), folder=path.parent)


def with_options(scenario: Scenario, options: Options | Mapping[str, Any] | None) -> Scenario:
    """The scenario with other solver options, or some of them by name over its own."""
    if options is None:
        return scenario
    document = {**scenario.raw, "solver": _solver(scenario.raw, options)}
    return from_document(document, name=scenario.name, folder=scenario.folder)


def _solver(raw: Mapping[str, Any], options: Options | Mapping[str, Any]) -> Any:
    """The [solver] section with other options: Options replace it, single ones go over what it has."""
    if isinstance(options, Options):
        return {name: value for name, value in asdict(options).items() if value is not None}
    given = raw.get("solver", {})
    # what is no table is left for the faults to name
    return {**given, **options} if isinstance(given, dict) else given


def from_document(raw: Mapping[str, Any], *, name: str, folder: Path) -> Scenario:
    """The scenario that a TOML document describes; InputError with every fault."""
    faults = [f"{key}: no such key" + did_you_mean(key, SECTIONS) for key in raw if key not in SECTIONS]
    faults += [
        f"{section} must be a table: write [{section}]"
        for section in ("problem", "designs", "solver", "sweep")
        if not isinstance(raw.get(section, {}), dict)
    ]
    system, more = _system(raw)
    options, option_faults = _options(raw.get("solver", {}))
    faults += [*more, *option_faults]
    entries: tuple[Entry, ...] = ()
    make_problem: Callable[[], Any] | None = None
    make_series: Callable[[], Series] | None = None
    if system is not None:
        if isinstance(raw.get("designs", {}), dict):
            entries, more = _designs(system, raw.get("designs", {}))
            faults += more
        if isinstance(raw.get("problem", {}), dict):
            make_problem, more = maker_of(system, raw, folder)
            faults += more
            if make_problem is not None and raw["problem"].get("source") in system.series:
                make_series, make_problem = make_problem, _one_of_many(name)
    axes, more = sweep_axes(raw.get("sweep", {}))
    if not faults:  # values can only be tried in a scenario that is right without them
        more += _sweep_faults(raw, axes, folder)
        labels = list(raw.get("designs", {})) or [design.name for design in system.designs] if system else []
        more += [
            f"sweep.{key}: no such design of this scenario" + did_you_mean(key.split(".")[1], labels)
            for key in axes
            if key.startswith("designs.") and not any(key.startswith(f"designs.{label}.") for label in labels)
        ]
    faults += more
    if faults or system is None or make_problem is None:
        raise InputError(*(f"{name}: {fault}" for fault in faults))
    return Scenario(
        name=name,
        folder=folder,
        raw=raw,
        system=system,
        designs=entries,
        options=options,
        make_problem=make_problem,
        make_series=make_series,
        sweep=axes,
    )


def shipped() -> list[str]:
    """The names of the scenarios that ship with planner."""
    root = files("planner_data") / "scenarios"
    return sorted(
        f"{folder.name}/{file.name.removesuffix('.toml')}"
        for folder in root.iterdir()
        if folder.is_dir()
        for file in folder.iterdir()
        if file.name.endswith(".toml")
    )


def _one_of_many(name: str) -> Callable[[], Any]:
    def refuse() -> Any:
        raise InputError(f"{name}: problem.source gives consecutive problems; run them with: planner roll")

    return refuse


# --- reading the document -----------------------------------------------------------------


def _find(source: str | Path) -> Path:
    path = Path(source)
    if path.is_dir():
        near = path / "scenario.toml"
        hint = f"; did you mean '{near}'?" if near.is_file() else ", must be a file"
        raise InputError(f"{source}: is a folder{hint}")
    if path.is_file():
        return path
    names = shipped()
    if str(source) in names:
        return Path(str(files("planner_data") / "scenarios" / f"{source}.toml"))
    nearby = sorted(str(other) for other in path.parent.glob("*.toml")) if path.parent.is_dir() else []
    hint = did_you_mean(str(source), [*names, *nearby])
    system = str(source).partition("/")[0]
    own = [name for name in names if name.startswith(f"{system}/")]
    if own and ("did you mean" not in hint or str(source) == system):
        hint = f"; those of {system} that ship with planner: {', '.join(own)}"
    elif "did you mean" not in hint:
        hint = "; planner list SYSTEM names those that ship with planner"
    raise InputError(f"{source}: no such scenario{hint}")


def sweep_axes(raw: Any, parent: str = "") -> tuple[dict[str, list[Any]], list[str]]:
    """The keys of [sweep] and their values; `[sweep.problem] seed = ...` is `"problem.seed" = ...`."""
    axes: dict[str, list[Any]] = {}
    faults: list[str] = []
    for name, values in raw.items() if isinstance(raw, dict) else ():
        key = f"{parent}{name}"
        section, _, rest = key.partition(".")
        if isinstance(values, dict):
            deeper, more = sweep_axes(values, f"{key}.")
            axes |= deeper
            faults += more
        elif section not in SWEPT:
            faults.append(f"sweep.{key}: no such key" + did_you_mean(section, SWEPT))
        elif not all(rest.split(".")):
            faults.append(f"sweep.{key}: a key is words with dots between them, such as problem.scale")
        elif not isinstance(values, list) or not values:
            faults.append(f"sweep.{key} must be a list of values, such as [1, 2, 3]")
        else:
            axes[key] = values
    return axes, faults


def _sweep_faults(raw: Mapping[str, Any], axes: Mapping[str, Sequence[Any]], folder: Path) -> list[str]:
    """What is wrong with the values of a sweep, each tried alone."""
    plain = {key: value for key, value in raw.items() if key != "sweep"}
    faults: list[str] = []
    for key, values in axes.items():
        for value in values:
            document = copy.deepcopy(plain)
            try:
                change(document, key, value)
                from_document(document, name="sweep", folder=folder)
            except InputError as error:
                faults += error.faults
    return list(dict.fromkeys(faults))


def _parse(path: Path) -> dict[str, Any]:
    text = read_text(path)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: is no valid TOML: {error}") from None


def change(raw: dict[str, Any], key: str, value: Any) -> None:
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


def _system(raw: Mapping[str, Any]) -> tuple[System | None, list[str]]:
    if "system" not in raw:
        return None, ["system: is missing; one of: " + ", ".join(system_names())]
    try:
        return find_system(str(raw["system"])), []
    except InputError as error:
        return None, [f"system: {fault}" for fault in error.faults]


def _options(raw: Any) -> tuple[Options, list[str]]:
    if not isinstance(raw, dict):
        return Options(), []
    faults = [
        f"solver.{key}: no such option" + did_you_mean(key, OPTION_NAMES)
        for key in raw
        if key not in OPTION_NAMES
    ]
    known = {key: value for key, value in raw.items() if key in OPTION_NAMES}
    values, more = check_parameters(Options, known, where="solver", what="the solver")
    faults += more
    try:
        return Options(**values), faults
    except InputError as error:
        return Options(), faults + [f"solver.{fault}" for fault in error.faults]


def _designs(system: System, raw: Mapping[str, Any]) -> tuple[tuple[Entry, ...], list[str]]:
    entries, faults = [], []
    for label, given in raw.items():
        where = f"designs.{label}"
        if not isinstance(given, dict):
            faults.append(f"{where} must be a table: write [{where}]")
            continue
        parameters = dict(given)
        name, sees = parameters.pop("design", label), parameters.pop("sees", {})
        try:
            design = system.design(str(name))
        except InputError as error:
            faults += [f"designs.{fault}" for fault in error.faults]
            continue
        values, more = check_parameters(design.decide, parameters, where=where, what=f"design {design.name}")
        seen, blind = check_parameters(
            design.sees, sees, where=f"{where}.sees", what=f"what design {design.name} sees"
        )
        faults += [*more, *blind]
        entries.append(Entry(label=label, design=design, parameters=values, sees=seen))
    return tuple(entries), faults
