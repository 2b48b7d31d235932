"""Systems as their own packages offer them, by the entry point group `planner.systems`."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

from planner.entry_points import find_entry_points, load_entry_point
from planner.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from planner.contract.system import System

GROUP: Final = "planner.systems"
DESIGN_GROUP: Final = "planner.designs"
"""Entry points of designs by `SYSTEM.NAME`."""


@functools.cache
def load_system(name: str) -> System:
    """Return the system of that name with its own designs, loaded once.

    raises  InputError for an unknown name, with the nearest, and for a package that cannot be loaded
    """
    from planner.contract.system import System

    systems = find_entry_points(GROUP)
    if name not in systems:
        raise InputError(f"{name}: no such system" + did_you_mean(name, systems))
    return load_entry_point(systems[name], System)
