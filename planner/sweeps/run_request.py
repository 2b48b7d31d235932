"""Request for a run, as plain data that any machine can use, and the digests that identify runs.

Two requests are the same run where system, versions, problem, design, parameters, information and
solver options are the same. The problem is identified by its tables, whatever its source or its
file's name; the label of a design does not matter either.

The tables are known only once the problem is made, which may take long. So a problem also has a key, the
digest of its [problem] section and of the contents of the files that it names; a store maps keys to
digests of tables.
"""

from __future__ import annotations

import functools
import glob
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

from planner.backends.registry import declared_capabilities
from planner.contract.design import Design
from planner.contract.parameters import Parameter, parameters_of
from planner.contract.system import System
from planner.io.input_files import input_files, is_input_name
from planner.io.table_files import table_files
from planner.options import Options
from planner.scenarios.catalogue import code_of, distribution
from planner.scenarios.scenario import Additions, Entry, Scenario, from_document
from planner.scenarios.sources import path_entries
from planner.version import __version__

UNSTORED: Final = ("problem_key", "plans", "user_design")
"""Fields of a request that its record leaves out."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Request:
    """Request to run one design on one problem.

    folder       base of relative paths
    problem      section of the scenario, as in TOML; `design` and `solver` likewise
    problem_key  digest of the problem section and the files that it names
    versions     of planner and of the package that provides the system
    warm         whether it may start from the last decision of a neighbour
    plans        whether the plan's tables are stored too
    user_design  the design, where it is a user's own
    """

    scenario: str
    folder: str
    system: str
    problem: Mapping[str, Any]
    label: str
    design: Mapping[str, Any]
    solver: Mapping[str, Any]
    problem_key: str
    versions: str
    warm: bool = False
    plans: bool = True
    user_design: Design | None = None

    def load(self) -> Scenario:
        """Return the scenario with this design only; raise InputError with every fault."""
        document = {
            "system": self.system,
            "problem": self.problem,
            "designs": {self.label: self.design},
            "solver": self.solver,
        }
        additions = Additions(designs=() if self.user_design is None else (self.user_design,))
        return from_document(document, name=self.scenario, folder=Path(self.folder), additions=additions)

    def to_json(self) -> str:
        """Return the whole request as JSON."""
        names = [field.name for field in fields(self)]
        plain = {name: getattr(self, name) for name in names if name not in UNSTORED}
        return _to_canonical_json(plain)


def sweep_options(options: Options) -> Options:
    """Return the options as a sweep uses them: one thread for each solver, unless a number is given."""
    capabilities = declared_capabilities(options.backend)
    # a solver that is not declared may refuse `threads`; the workers' environment limits it to one as well
    if options.threads is not None or capabilities is None or "threads" not in capabilities.options:
        return options
    return replace(options, threads=1)


@functools.cache
def versions_of(system: str) -> str:
    """Return `planner 0.2.0`, followed by the package that provides the system where it is another."""
    origin = distribution(system)
    ours = f"planner {__version__}"
    return ours if origin is None else f"{ours}, {origin}"


def problem_key_of(system: System, problem: Mapping[str, Any], folder: Path) -> str:
    """Return the digest of a [problem] section and of the contents of the files that it names."""
    contents = {
        ".".join(keys): _content_digest(folder / path)
        for keys, path in sorted(path_entries(system, problem).items())
    }
    tables = folder / str(problem.get("path"))
    if problem.get("source") == "tables" and "path" in contents and tables.is_dir():
        contents["path"] = _files_digest(table_files(system.problem.tables, tables))
    return _digest(
        {"versions": versions_of(system.name), "system": system.name, "problem": problem, **contents}
    )


def run_digest(
    system: str, problem: str, entry: Entry, options: Options, *, versions: str, warm: bool
) -> str:
    """Return the digest of a run; `problem` is the digest of the problem's tables, or its key."""
    code = code_of(system, entry.design)
    plain = {
        "versions": versions,
        "system": system,
        "problem": problem,
        "design": entry.design.name,
        "parameters": _digest_paths(_with_defaults(entry.design.parameters, entry.parameters)),
        "information": _digest_paths(_with_defaults(parameters_of(entry.design.observe), entry.information)),
        "solver": options.to_dict(),
        **({"code": code} if code else {}),
        **({"warm": True} if warm else {}),
    }
    return _digest(plain)


def settings_of(problem: Mapping[str, Any], entry: Entry, options: Options) -> dict[str, Any]:
    """Return every setting of a run by dotted key, defaults of the design included, None left out."""
    sections = {
        "problem": problem,
        "parameters": _with_defaults(entry.design.parameters, entry.parameters),
        "information": _with_defaults(parameters_of(entry.design.observe), entry.information),
        "solver": options.to_dict(),
    }
    return {
        f"{section}.{key}": value
        for section, values in sections.items()
        for key, value in values.items()
        if value is not None
    }


def _with_defaults(parameters: Mapping[str, Parameter], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return all parameters: a default that is given is the same run as one that is not."""
    return {name: values.get(name, parameter.default) for name, parameter in parameters.items()}


def _digest_paths(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _content_digest(value) if isinstance(value, Path) else value for name, value in values.items()
    }


def _digest(plain: Mapping[str, Any]) -> str:
    return hashlib.sha256(_to_canonical_json(plain).encode()).hexdigest()[:16]


def _to_canonical_json(plain: Mapping[str, Any]) -> str:
    return json.dumps(plain, sort_keys=True, ensure_ascii=False, default=str)


# --- files --------------------------------------------------------------------------------


def _content_digest(path: Path) -> str:
    """Return the digest of a file and its companions of the same stem, or of all input in a folder."""
    if path.is_dir():
        return _files_digest(input_files(path))
    # readers may read companions by name, as REPETITA's .demands beside its .graph
    files = sorted(path.parent.glob(f"{glob.escape(path.stem)}.*")) if path.parent.is_dir() else []
    return _files_digest(file for file in files if file == path or is_input_name(file.name))


def _files_digest(files: Iterable[Path]) -> str:
    """Return the digest of files: their names and contents."""
    sha = hashlib.sha256()
    for file in files:
        if file.is_file():
            status = file.stat()
            sha.update(f"{file.name}:{_file_digest(file, status.st_mtime_ns, status.st_size)}\n".encode())
    return sha.hexdigest()[:16]


@functools.lru_cache(maxsize=4096)
def _file_digest(path: Path, _modified_ns: int, _size: int) -> str:
    """Return the digest of a file's bytes, cached by its time and size."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
