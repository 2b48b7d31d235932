"""Completion of arguments in the shell: names of scenarios, systems, designs, parameters and solvers.

Each function takes the context of the command and the letters typed so far, and returns the words that may
follow. It loads no system: descriptions come from the cache, and a scenario is only read as TOML.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import typer

from planner.backends.registry import solver_names
from planner.cli.listings import SECTIONS
from planner.entry_points import find_entry_points
from planner.errors import PlannerError
from planner.io.toml import parse_toml
from planner.log_levels import set_log_levels
from planner.scenarios.catalogue import system_names
from planner.scenarios.shipped import scenario_file, scenario_names


def complete_scenario(incomplete: str) -> list[str]:
    """Return scenarios that ship with planner, and scenario files and folders beside the letters typed."""
    folder = Path(incomplete).parent if not incomplete.endswith("/") else Path(incomplete)
    paths: list[str] = []
    with suppress(OSError):
        paths += [f"{path}/" for path in folder.iterdir() if path.is_dir()]
        paths += [str(path) for path in folder.glob("*.toml")]
    return _starting([*scenario_names(), *paths], incomplete)


def complete_system(incomplete: str) -> list[str]:
    """Return the systems that are installed."""
    return _starting(system_names(), incomplete)


def complete_section(incomplete: str) -> list[str]:
    """Return the parts of a system's description."""
    return _starting(SECTIONS, incomplete)


def complete_backend(incomplete: str) -> list[str]:
    """Return the backends, with the solvers that they declare."""
    return _starting(solver_names(), incomplete)


def complete_design(context: typer.Context, incomplete: str) -> list[str]:
    """Return the designs of the scenario that was typed."""
    return _starting(_designs(_scenario(context)), incomplete)


def complete_designs(context: typer.Context, incomplete: str) -> list[str]:
    """Return the designs of the scenario that was typed, each after those before the last comma."""
    before, comma, _ = incomplete.rpartition(",")
    named = before.split(",")
    names = [name for name in _designs(_scenario(context)) if name not in named]
    return _starting([f"{before}{comma}{name}" for name in names], incomplete)


def complete_preset(context: typer.Context, incomplete: str) -> list[str]:
    """Return the presets of the system that was typed."""
    return _starting(_description(_argument(context, "system")).get("presets", ()), incomplete)


def complete_change(context: typer.Context, incomplete: str) -> list[str]:
    """Return the keys of the scenario that was typed, each as KEY=."""
    from planner.options import OPTION_NAMES

    document = _scenario(context)
    parameters = _description(document.get("system")).get("parameters", {})
    keys = [f"solver.{name}" for name in OPTION_NAMES]
    source = f"source {document.get('problem', {}).get('source')}"
    keys += [f"problem.{name}" for owner in ("[problem]", source) for name in parameters.get(owner, ())]
    for label, entry in document.get("designs", {}).items():
        design = entry.get("design", label) if isinstance(entry, dict) else label
        keys += [f"designs.{label}.{name}" for name in parameters.get(f"[designs.{design}]", ())]
    return _starting([f"{key}=" for key in keys], incomplete)


def complete_target(incomplete: str) -> list[str]:
    """Return the systems, and the targets of the system that was typed."""
    system = incomplete.partition("/")[0]
    if "/" not in incomplete or system not in find_entry_points("planner.systems"):
        return _starting(system_names(), incomplete)
    from planner.runs.reproduction import find_targets

    return _starting([f"{system}/{target.name}" for _, target in find_targets([system])], incomplete)


def _starting(names: Iterable[str], incomplete: str) -> list[str]:
    return sorted({name for name in names if name.startswith(incomplete)})


def _argument(context: typer.Context, name: str) -> str | None:
    """Return an argument that was typed; the parser leaves it where an option still lacks its value."""
    value = context.params.get(name)
    return value or next((word for word in context.args if not word.startswith("-")), None)


def _scenario(context: typer.Context) -> Mapping[str, Any]:
    """Return the document of the scenario that was typed; empty where it cannot be read."""
    from planner.io.text_files import read_text

    name = _argument(context, "scenario")
    with suppress(PlannerError, OSError):
        path = scenario_file(name) if name in scenario_names() else Path(name or "")
        document: Mapping[str, Any] = parse_toml(read_text(path))
        return document
    return {}


def _designs(document: Mapping[str, Any]) -> Sequence[str]:
    """Return the labels of a scenario's designs; of one that names none, the designs of its system."""
    labels = list(document.get("designs", {}))
    return labels or [design["design"] for design in _description(document.get("system")).get("designs", ())]


def _description(system: Any) -> Mapping[str, Any]:
    from planner.scenarios.description_cache import describe_all

    with set_log_levels(["planner"], logging.ERROR):  # warnings would mix with what a user types
        return next((description for description in describe_all() if description["system"] == system), {})
