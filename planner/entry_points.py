"""Systems and backends that installed packages offer by entry point, planner's own as a stranger's."""

from __future__ import annotations

import functools
from importlib.metadata import EntryPoint, entry_points
from typing import Final, TypeVar

from planner.errors import InputError, PlannerError

OWN_DISTRIBUTION: Final = "coordination-planner"

Offered = TypeVar("Offered")


@functools.cache
def find_entry_points(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by name, sorted; read once in a process."""
    return {point.name: point for point in sorted(entry_points(group=group), key=lambda point: point.name)}


def load_entry_point(point: EntryPoint, kind: type[Offered]) -> Offered:
    """Return the object that an entry point leads to.

    raises  InputError where its package cannot be loaded or offers another kind of object
    """
    try:
        offered = point.load()
    except PlannerError:
        raise
    except Exception as error:  # a stranger's package may fail in any way
        origin = f" of {point.dist.name}" if point.dist else ""
        raise InputError(f"{point.name}: cannot be loaded from {point.value}{origin}: {error!r}") from error
    if not isinstance(offered, kind):
        raise InputError(f"{point.name}: {point.value} is no {kind.__name__} but {type(offered).__name__}")
    return offered


def other_distribution(point: EntryPoint | None) -> str | None:
    """Return name and version of the package that offers an entry point; None where that is planner."""
    if point is None or point.dist is None or point.dist.name == OWN_DISTRIBUTION:
        return None
    return f"{point.dist.name} {point.dist.version}"
