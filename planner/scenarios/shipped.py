"""Scenarios that ship with planner, by name."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def scenario_names() -> list[str]:
    """Return the names of the scenarios that ship with planner, such as traffic/abilene."""
    root = files("planner_data") / "scenarios"
    return sorted(
        f"{folder.name}/{file.name.removesuffix('.toml')}"
        for folder in root.iterdir()
        if folder.is_dir()
        for file in folder.iterdir()
        if file.name.endswith(".toml")
    )


def scenario_file(name: str) -> Path:
    """Return the file of a scenario that ships with planner."""
    return Path(str(files("planner_data") / "scenarios" / f"{name}.toml"))
