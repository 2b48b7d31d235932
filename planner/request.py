"""What a run is asked for, as plain data that any machine can take, and the digests that name it.

Two requests are the same run where system, versions, problem, design, parameters, information and
solver options are the same. The problem counts by its tables, so that neither its file's name nor the
way to it matter; the label of a design does not count either.

The tables are known only once the problem is made, which may take long. So a request for a problem
has a digest of its own, of the [problem] section and the contents of the files that it names; a store
remembers which tables that gave.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from planner import __version__
from planner.catalogue import distribution
from planner.options import Options
from planner.parameters import Parameter, parameters_of
from planner.scenario import Entry, Scenario, from_document
from planner.sources import path_keys
from planner.system import System


@dataclass(frozen=True, kw_only=True, eq=False)
class Request:
    """One design on one problem, not yet made.

    folder    what relative paths are relative to
    problem   the scenario's sections, as TOML has them; `design` is that of one design
    asked     digest of the request for the problem
    versions  of planner and of what provides the system
    warm      may start from the last decision of a neighbour
    plans     the plan's tables are wanted too
    """

    scenario: str
    folder: str
    system: str
    problem: Mapping[str, Any]
    label: str
    design: Mapping[str, Any]
    solver: Mapping[str, Any]
    asked: str
    versions: str
    warm: bool = False
    plans: bool = True

    def load(self) -> Scenario:
        """As a scenario with one design; InputError for what cannot be used."""
        document = {
            "system": self.system,
            "problem": self.problem,
            "designs": {self.label: self.design},
            "solver": self.solver,
        }
        return from_document(document, name=self.scenario, folder=Path(self.folder))

    def text(self) -> str:
        """All that was asked, as JSON."""
        plain = {name: value for name, value in asdict(self).items() if name not in ("asked", "plans")}
        return _canonical(plain)


def options_of(options: Options) -> Options:
    """The options as a sweep uses them: one thread for each solver, where nothing else is asked for."""
    # of a solver that Pyomo finds nobody knows how to ask; the workers' environment asks for one
    if options.threads is not None or options.backend.startswith("pyomo"):
        return options
    return replace(options, threads=1)


@functools.cache
def versions_of(system: str) -> str:
    """`planner 0.1.0`, and what provides the system where that is another package."""
    origin = distribution(system)
    ours = f"planner {__version__}"
    return ours if origin is None else f"{ours}, {origin}"


def asked_digest(system: System, problem: Mapping[str, Any], folder: Path) -> str:
    """Names a request for a problem: its section, and the contents of the files that it names."""
    contents = {
        key: _content(folder / str(problem[key]))
        for key in sorted(set(path_keys(system, problem)))
        if isinstance(problem.get(key), str)
    }
    return _digest(
        {"versions": versions_of(system.name), "system": system.name, "problem": problem, **contents}
    )


def run_digest(
    system: str, problem: str, entry: Entry, options: Options, *, versions: str, warm: bool
) -> str:
    """Names a run. `problem` is the digest of the problem's tables, or of the request for it."""
    plain = {
        "versions": versions,
        "system": system,
        "problem": problem,
        "design": entry.design.name,
        "parameters": _contents(_whole(entry.design.parameters, entry.parameters)),
        "sees": _contents(_whole(parameters_of(entry.design.sees), entry.sees)),
        "solver": _options(options),
        **({"warm": True} if warm else {}),
    }
    return _digest(plain)


def settings_of(problem: Mapping[str, Any], entry: Entry, options: Options) -> dict[str, Any]:
    """What a run is asked with, by dotted key; defaults of the design included, None left out."""
    sections = {
        "problem": problem,
        "parameters": _whole(entry.design.parameters, entry.parameters),
        "sees": _whole(parameters_of(entry.design.sees), entry.sees),
        "solver": _options(options),
    }
    return {
        f"{section}.{key}": value
        for section, values in sections.items()
        for key, value in values.items()
        if value is not None
    }


def _whole(known: Mapping[str, Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters with those left out at their defaults: both ways of saying it are the same run."""
    return {name: given.get(name, parameter.default) for name, parameter in known.items()}


def _options(options: Options) -> dict[str, Any]:
    return {name: value for name, value in asdict(options).items() if value is not None}


def _contents(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _content(value) if isinstance(value, Path) else value for name, value in values.items()}


def _digest(plain: Mapping[str, Any]) -> str:
    return hashlib.sha256(_canonical(plain).encode()).hexdigest()[:16]


def _canonical(plain: Mapping[str, Any]) -> str:
    return json.dumps(plain, sort_keys=True, ensure_ascii=False, default=str)


# --- files --------------------------------------------------------------------------------


def _content(path: Path) -> str:
    """A digest of a file with those beside it that share its stem, or of a folder and all in it."""
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
    else:
        # a reader may take companions by their names, as REPETITA's .demands beside its .graph
        files = sorted(path.parent.glob(f"{_escaped(path.stem)}.*")) if path.parent.is_dir() else []
    sha = hashlib.sha256()
    for file in files:
        if file.is_file():
            status = file.stat()
            sha.update(f"{file.name}:{_of_file(file, status.st_mtime_ns, status.st_size)}\n".encode())
    return sha.hexdigest()[:16]


def _escaped(stem: str) -> str:
    return "".join(f"[{letter}]" if letter in "[*?" else letter for letter in stem)


@functools.lru_cache(maxsize=4096)
def _of_file(path: Path, _modified_ns: int, _size: int) -> str:
    """The digest of a file's bytes; read again only where its time or size has changed."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
