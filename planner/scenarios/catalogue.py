"""Systems by name, as the entry point group `planner.systems` lists them, with the designs of other packages.

The group `planner.designs` adds designs to an existing system: `traffic.mine = "mine:DESIGN"` adds `mine`, a
`Design` or a function of a problem, to the designs of traffic.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from planner.entry_points import find_entry_points, load_entry_point, other_distribution
from planner.errors import InputError
from planner.scenarios.installed_systems import DESIGN_GROUP, GROUP, load_system

if TYPE_CHECKING:
    from planner.contract.design import Design
    from planner.contract.system import System
    from planner.scenarios.user_designs import UserDesign


def system_names() -> list[str]:
    """Return the names of all systems that are installed."""
    return list(find_entry_points(GROUP))


def distribution(name: str) -> str | None:
    """Return name and version of the package that provides a system; None where that is planner."""
    return other_distribution(find_entry_points(GROUP).get(name))


@functools.cache
def find_system(name: str) -> System:
    """Return the system of that name with the designs of all packages, loaded once.

    raises  InputError for an unknown name, with the nearest, and for a package that cannot be loaded
    """
    return _with_designs(load_system(name))


def _with_designs(system: System) -> System:
    """Return a system with the designs of installed packages.

    raises  InputError for a package whose design cannot be loaded, or has the name of another one
    """
    from planner.scenarios.user_designs import make_design, name_of

    prefix = f"{system.name}."
    for name, point in find_entry_points(DESIGN_GROUP).items():
        if not name.startswith(prefix):
            continue
        offered = load_entry_point(point, object)
        try:
            design = make_design(system, name.removeprefix(prefix), offered)
        except InputError as error:
            origin = other_distribution(point) or point.value
            raise InputError(*(f"{origin}: {fault}" for fault in error.faults)) from error
        system = system.with_designs([design])
    return system.with_designs(
        [make_design(system, name_of(offered), offered) for offered in _added.get(system.name, ())]
    )


def add_design(system: str, design: UserDesign) -> None:
    """Add a design to a system in this process, under its own name.

    raises  InputError for an unknown system, and for a name that the system has
    """
    from planner.scenarios.user_designs import make_design, name_of

    added = find_system(system)
    make_design(added, name_of(design), design)  # raises
    _added.setdefault(system, []).append(design)
    find_system.cache_clear()


_added: dict[str, list[UserDesign]] = {}
"""Designs that this process has added, by system."""


def code_of(system: str, design: Design) -> str:
    """Return the identity of a design's code where it is not of the system itself; "" where it is.

    That of another package is its name and version, that of a user's own function a digest of it.
    """
    package = other_distribution(find_entry_points(DESIGN_GROUP).get(f"{system}.{design.name}"))
    return package or str(getattr(design.decide, "digest", ""))


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
