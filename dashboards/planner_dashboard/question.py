"""A question: a scenario with changes and designs, as an address, a command and lines of Python."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from planner.contract.parameters import Parameter, parameters_of
from planner.errors import InputError, did_you_mean
from planner.io.toml import parse_value
from planner.options import Options
from planner.scenarios import commands
from planner.scenarios.commands import value_text
from planner.scenarios.scenario import Scenario, load
from planner.scenarios.shipped import scenario_names
from planner.scenarios.user_designs import reference_for

FIRST_SCENARIO: Final = "traffic/germany50"
"""The scenario of a page whose address names none."""
UPLOADED: Final = "own tables"
DIGEST: Final = re.compile(r"[0-9a-f]{16}")
"""The name of uploaded tables."""
SOLVER_OPTIONS: Final = ("service", "time_limit_s", "gap", "seed")


def say_unknown(key: str, name: str, names: Iterable[str]) -> str:
    """Return the message for a key of an address with a name that is none of those that there are."""
    return f"{key}={name}: no such {key}{did_you_mean(name, names)}"


@dataclass(frozen=True, kw_only=True)
class Question:
    """A scenario with changes, and the designs to run.

    scenario  the name of one that ships with planner, or UPLOADED
    upload    the digest of uploaded tables, where the scenario is UPLOADED
    changes   dotted keys of the scenario and their values
    designs   labels; empty: all of the scenario's
    """

    scenario: str
    upload: str = ""
    changes: Mapping[str, Any] = field(default_factory=dict)
    designs: tuple[str, ...] = ()

    def __hash__(self) -> int:
        return hash((self.scenario, self.upload, frozenset(self.changes), self.designs))

    def to_query(self) -> dict[str, str | list[str]]:
        """Return the question as the query of a readable address."""
        query: dict[str, str | list[str]] = {"scenario": self.scenario}
        if self.upload:
            query["upload"] = self.upload
        if self.designs:
            query["designs"] = ",".join(self.designs)
        if self.changes:
            query["set"] = [f"{key}={value_text(value)}" for key, value in self.changes.items()]
        return query

    def address_lines(self) -> str:
        """Return the query of the address, a line for each key and value, in alphabetical order."""
        query = self.to_query()
        pairs = [(key, [text] if isinstance(text, str) else text) for key, text in query.items()]
        return "\n".join(sorted(f"{key}={text}" for key, texts in pairs for text in texts))

    @classmethod
    def from_query(cls, query: Mapping[str, list[str]]) -> Question | None:
        """Return the question of an address; None where it names no scenario.

        raises  InputError for an address that no page has made
        """
        name = next(iter(query.get("scenario", [])), "")
        if not name:
            return None
        if name != UPLOADED and name not in scenario_names():
            raise InputError(say_unknown("scenario", name, scenario_names()))
        changes = {}
        for text in query.get("set", []):
            key, equals, value = text.partition("=")
            if not equals:
                raise InputError(f"set={text}: must be KEY=VALUE")
            changes[key] = _value(key, value)
        designs = next(iter(query.get("designs", [])), "")
        upload = next(iter(query.get("upload", [])), "")
        if upload and (name != UPLOADED or not DIGEST.fullmatch(upload)):  # it becomes a folder's name
            raise InputError("upload: names no uploaded tables: upload them again")
        return cls(
            scenario=name,
            upload=upload,
            changes=changes,
            designs=tuple(label for label in designs.split(",") if label),
        )

    def check(self, fields: Mapping[str, Parameter]) -> None:
        """Check the changes against the fields of the form, without loading the scenario again.

        An address can therefore name no file: files have no field.

        raises  InputError with every unknown field and every invalid value
        """
        faults = []
        for key, value in self.changes.items():
            if key not in fields:
                faults.append(f"{key}: no such field" + did_you_mean(key, fields))
            elif not _is_valid(fields[key], value):
                faults.append(f"{key} is {value_text(value)[:60]}, must be {fields[key].values}")
        if faults:
            raise InputError(*faults)
        options = {
            name: self.changes[f"solver.{name}"]
            for name in SOLVER_OPTIONS
            if f"solver.{name}" in self.changes
        }
        try:
            Options(**options)
        except InputError as error:
            raise InputError(*(f"solver.{fault}" for fault in error.faults)) from None

    def source(self, folder: Path) -> str | Path:
        """Return the name of the scenario, or the file of the uploaded one in `folder`.

        raises  InputError where the uploaded tables are gone
        """
        if self.scenario != UPLOADED:
            return self.scenario
        path = folder / "scenario.toml"
        if not path.is_file():
            raise InputError("the uploaded tables of this address are not here any more: upload them again")
        return path

    def load(self, folder: Path) -> Scenario:
        """Load the scenario with its changes; `folder` has the uploaded tables.

        raises  InputError, as for a scenario in a file
        """
        return load(self.source(folder), changes=self.changes)

    def command(self) -> str:
        """Return the command that gives the same answer."""
        return commands.command_line(
            self._public_name(), self.changes, [reference_for(name) for name in self.designs]
        )

    def python(self) -> str:
        """Return the lines of Python that give the same answer."""
        return commands.python_lines(
            self._public_name(), self.changes, [reference_for(name) for name in self.designs]
        )

    def _public_name(self) -> str:
        return "scenario.toml" if self.scenario == UPLOADED else self.scenario


@lru_cache(maxsize=64)
def unchanged_scenario(source: str | Path) -> Scenario:
    """Load a scenario without changes; its form needs it at each run of the page."""
    return load(source)


def form_fields(scenario: Scenario) -> dict[str, Parameter]:
    """Return every field that a page may change, by its dotted key; none of them is a file."""
    system, problem = scenario.system, scenario.raw["problem"]
    makers = [
        system.problem.adjust,
        system.problem.sources.get(str(problem.get("source"))),
        system.problem.presets.get(str(problem.get("preset")))
        if problem.get("source") == "generate"
        else None,
    ]
    fields: dict[str, Parameter] = {}
    for maker in filter(None, makers):
        fields |= {f"problem.{name}": parameter for name, parameter in parameters_of(maker).items()}
    labels = {entry.label: entry.design for entry in scenario.designs}
    for label, design in {**{design.name: design for design in system.designs}, **labels}.items():
        fields |= {f"designs.{label}.{name}": parameter for name, parameter in design.parameters.items()}
        fields |= {
            f"designs.{label}.information.{name}": parameter
            for name, parameter in parameters_of(design.observe).items()
        }
    options = parameters_of(Options)
    fields |= {f"solver.{name}": options[name] for name in SOLVER_OPTIONS}
    return {key: parameter for key, parameter in fields.items() if not parameter.is_path}


def field_value(scenario: Scenario, key: str, parameter: Parameter) -> Any:
    """Return the value of a field in a scenario, or its default."""
    value: Any = scenario.raw
    for name in key.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return None if parameter.is_required else parameter.default
        value = value[name]
    return value


def _is_valid(parameter: Parameter, value: Any) -> bool:
    try:
        # as the engine checks it: strict about types, but a list serves as a tuple
        TypeAdapter(parameter.annotation).validate_json(json.dumps(value, default=str), strict=True)
    except (ValidationError, ValueError, RecursionError):
        return False
    return True


def _value(key: str, text: str) -> Any:
    try:
        return parse_value(text)
    except InputError:
        if any(letter in text for letter in "\"'[]{}\n"):
            raise InputError(f"set={key}={text[:60]}: is no value") from None
        return text
