"""What a page asks for, as its address has it, and as a command and Python lines would ask the same."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import tomli_w

from planner.errors import InputError, did_you_mean
from planner.options import Options
from planner.parameters import Parameter, parameters_of
from planner.scenario import Scenario, load, shipped

UPLOADED: Final = "own tables"
PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
SOLVER: Final = ("time_limit_s", "gap", "seed")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A scenario with changes, and the designs to run.

    scenario  the name of one that ships with planner, or UPLOADED
    upload    the digest of uploaded tables, where it is these
    changes   dotted keys of the scenario and their values
    designs   labels; empty: all of the scenario's
    """

    scenario: str
    upload: str = ""
    changes: Mapping[str, Any] = field(default_factory=dict)
    designs: tuple[str, ...] = ()

    def to_query(self) -> dict[str, str | list[str]]:
        """The page's address, readable and to be kept."""
        query: dict[str, str | list[str]] = {"scenario": self.scenario}
        if self.upload:
            query["upload"] = self.upload
        if self.designs:
            query["designs"] = ",".join(self.designs)
        if self.changes:
            query["set"] = [f"{key}={_text(value)}" for key, value in self.changes.items()]
        return query

    @classmethod
    def from_query(cls, query: Mapping[str, list[str]]) -> Asked | None:
        """What an address asks for; None where it asks for nothing.

        raises  InputError for an address that was not made here
        """
        name = next(iter(query.get("scenario", [])), "")
        if not name:
            return None
        if name != UPLOADED and name not in shipped():
            raise InputError(f"scenario={name}: no such scenario" + did_you_mean(name, shipped()))
        changes = {}
        for text in query.get("set", []):
            key, equals, value = text.partition("=")
            if not equals:
                raise InputError(f"set={text}: must be KEY=VALUE")
            changes[key] = _value(key, value)
        designs = next(iter(query.get("designs", [])), "")
        return cls(
            scenario=name,
            upload=next(iter(query.get("upload", [])), ""),
            changes=changes,
            designs=tuple(label for label in designs.split(",") if label),
        )

    def load(self, home: Path) -> Scenario:
        """The scenario as asked; `home` is where uploaded tables are.

        raises  InputError, as for a scenario in a file; and for a change that no form offers: an
                address names no file
        """
        path: str | Path = self.scenario
        if self.scenario == UPLOADED:
            path = home / "scenario.toml"
            if not path.is_file():
                raise InputError(
                    "the uploaded tables of this address are not here any more: upload them again"
                )
        plain = load(path)
        offered = forms(plain)
        faults = [
            f"{key}: no such field" + did_you_mean(key, offered) for key in self.changes if key not in offered
        ]
        if faults:
            raise InputError(*faults)
        return load(path, changes=self.changes)

    def command(self) -> str:
        """The command that gives the same answer."""
        words = ["planner", "compare", self._where()]
        if self.designs:
            words += ["--designs", ",".join(self.designs)]
        for key, value in self.changes.items():
            words += ["--set", f"{key}={_text(value)}"]
        return shlex.join(words)

    def python(self) -> str:
        """The lines that give the same answer."""
        given = f", changes={dict(self.changes)!r}" if self.changes else ""
        chosen = f", designs={list(self.designs)!r}" if self.designs else ""
        return (
            "import planner\n\n"
            f"scenario = planner.load({self._where()!r}{given})\n"
            f"result = planner.compare(scenario{chosen})\n"
            "print(result.metrics)"
        )

    def _where(self) -> str:
        return "scenario.toml" if self.scenario == UPLOADED else self.scenario


def forms(scenario: Scenario) -> dict[str, Parameter]:
    """Every field that a page may change, by its dotted key. Files are none."""
    system, given = scenario.system, scenario.raw["problem"]
    makers = [
        system.adjust,
        system.sources.get(str(given.get("source"))),
        system.presets.get(str(given.get("preset"))) if given.get("source") == "generate" else None,
    ]
    found: dict[str, Parameter] = {}
    for maker in filter(None, makers):
        found |= {f"problem.{name}": parameter for name, parameter in parameters_of(maker).items()}
    labels = {entry.label: entry.design for entry in scenario.designs}
    for label, design in {**{design.name: design for design in system.designs}, **labels}.items():
        found |= {f"designs.{label}.{name}": parameter for name, parameter in design.parameters.items()}
        found |= {
            f"designs.{label}.sees.{name}": parameter
            for name, parameter in parameters_of(design.sees).items()
        }
    options = parameters_of(Options)
    found |= {f"solver.{name}": options[name] for name in SOLVER}
    return {key: parameter for key, parameter in found.items() if not parameter.is_path}


def current(scenario: Scenario, key: str, parameter: Parameter) -> Any:
    """The value of a field in a scenario, or its default."""
    value: Any = scenario.raw
    for part in key.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return None if parameter.required else parameter.default
        value = value[part]
    return value


def _text(value: Any) -> str:
    """A value as TOML has it; words that are plain stand without quotes."""
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_quoted(one) for one in value) + "]"
    plain = isinstance(value, str) and PLAIN.fullmatch(value) and value not in ("true", "false", "inf", "nan")
    return str(value) if plain else _quoted(value)


def _quoted(value: Any) -> str:
    return tomli_w.dumps({"value": value}).removeprefix("value = ").rstrip("\n")


def _value(key: str, text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        if any(mark in text for mark in "\"'[]{}\n"):
            raise InputError(f"set={key}={text[:60]}: is no value") from None
        return text
