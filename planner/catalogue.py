"""Finds systems through the entry point group `planner.systems`, ours as a stranger's."""

from __future__ import annotations

import functools
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Final

from planner.errors import InputError, PlannerError, did_you_mean

if TYPE_CHECKING:
    from planner.system import System

GROUP: Final = "planner.systems"
OURS: Final = "coordination-planner"  # the distribution that planner itself is


@functools.cache
def _found() -> dict[str, EntryPoint]:
    return {point.name: point for point in sorted(entry_points(group=GROUP), key=lambda point: point.name)}


def system_names() -> list[str]:
    """The names of all systems that are installed."""
    return list(_found())


def distribution(name: str) -> str | None:
    """Name and version of the package that provides a system; None where that is planner itself."""
    point = _found().get(name)
    if point is None or point.dist is None or point.dist.name == OURS:
        return None
    return f"{point.dist.name} {point.dist.version}"


@functools.cache
def find_system(name: str) -> System:
    """The system of that name, loaded once.

    raises  InputError for a name that is none, with the nearest, and for a package that cannot be loaded
    """
    from planner.system import System

    found = _found()
    if name not in found:
        raise InputError(f"{name}: no such system" + did_you_mean(name, found))
    point = found[name]
    try:
        system = point.load()
    except PlannerError:
        raise
    except Exception as error:  # a stranger's package may fail in any way
        origin = f" of {point.dist.name}" if point.dist else ""
        raise InputError(f"{name}: cannot be loaded from {point.value}{origin}: {error!r}") from error
    if not isinstance(system, System):
        raise InputError(f"{name}: {point.value} is no System but {type(system).__name__}")
    return system
