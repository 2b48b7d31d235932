"""Scenarios by name: those that ship with planner, and those in folders that the user names.

The environment variable PLANNER_SCENARIOS lists folders like data/scenarios: SYSTEM/NAME.toml in each of
them is the scenario SYSTEM/NAME. One that ships with planner goes before another of its name.
"""

from __future__ import annotations

import functools
import os
from importlib.resources import files
from pathlib import Path
from typing import Final

from planner.errors import InputError
from planner.formatting import title_of

FOLDERS: Final = "PLANNER_SCENARIOS"
"""Environment variable with folders of the user's scenarios, separated as in PATH."""


def scenario_names() -> list[str]:
    """Return the names of all scenarios, such as traffic/abilene, sorted."""
    return sorted(
        {
            f"{folder.name}/{file.name.removesuffix('.toml')}"
            for root in _roots()
            for folder in root.iterdir()
            if folder.is_dir()
            for file in folder.iterdir()
            if file.name.endswith(".toml")
        }
    )


def scenario_file(name: str) -> Path:
    """Return the file of a scenario of `scenario_names`."""
    paths = (root / f"{name}.toml" for root in _roots())
    return next((path for path in paths if path.is_file()), _shipped() / f"{name}.toml")


@functools.lru_cache(maxsize=1024)
def scenario_title(name: str) -> str:
    """Return the title of a scenario of `scenario_names`, or the end of its name in words."""
    from planner.io.text_files import read_text  # not needed for the names alone
    from planner.io.toml import parse_toml

    try:
        title = parse_toml(read_text(scenario_file(name))).get("title")
    except InputError:  # of a user's folder: who loads it learns why
        title = None
    return title if isinstance(title, str) and title else title_of(name.rpartition("/")[2])


def own_folders() -> list[Path]:
    """Return the folders of the user's scenarios that exist."""
    entries = os.environ.get(FOLDERS, "").split(os.pathsep)
    return [Path(text) for text in entries if text and Path(text).is_dir()]


def _roots() -> list[Path]:
    return [_shipped(), *own_folders()]


def _shipped() -> Path:
    return Path(str(files("planner_data"))) / "scenarios"
