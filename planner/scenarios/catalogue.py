"""Systems by name, as the entry point group `planner.systems` lists them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

from planner.entry_points import find_entry_points, load_entry_point, other_distribution
from planner.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from planner.contract.system import System

GROUP: Final = "planner.systems"


def system_names() -> list[str]:
    """Return the names of all systems that are installed."""
    return list(find_entry_points(GROUP))


def distribution(name: str) -> str | None:
    """Return name and version of the package that provides a system; None where that is planner."""
    return other_distribution(find_entry_points(GROUP).get(name))


@functools.cache
def find_system(name: str) -> System:
    """Return the system of that name, loaded once.

    raises  InputError for an unknown name, with the nearest, and for a package that cannot be loaded
    """
    from planner.contract.system import System

    systems = find_entry_points(GROUP)
    if name not in systems:
        raise InputError(f"{name}: no such system" + did_you_mean(name, systems))
    return load_entry_point(systems[name], System)


def find_system_of(problem: Any) -> System | None:
    """Return the installed system with problems of this type; None if there is none."""
    module = type(problem).__module__
    points = find_entry_points(GROUP)
    # the package that defines the type first, so that no other system is loaded
    for name in sorted(points, key=lambda name: not f"{module}.".startswith(f"{points[name].module}.")):
        try:
            system = find_system(name)
        except InputError:  # of a package that cannot be loaded
            continue
        if isinstance(problem, system.problem.type):
            return system
    return None
