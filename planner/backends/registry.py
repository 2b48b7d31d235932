"""Backends by name, as the entry point group `planner.backends` lists them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from planner.backends.backend import LIMITS, Backend, Capabilities
from planner.entry_points import find_entry_points, load_entry_point
from planner.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from planner.backends.linear_program import LinearProgram
    from planner.options import Options

GROUP: Final = "planner.backends"


def backend_names() -> list[str]:
    """Return the names of all backends that are declared, whether their solvers are installed or not."""
    return list(find_entry_points(GROUP))


def solver_names() -> list[str]:
    """Return every value that `Options.backend` takes; "pyomo:SOLVER" for a backend with open names."""
    names = []
    for backend in _loadable_backends():
        names += [*backend.names(), *([f"{backend.name}:SOLVER"] if backend.is_open else [])]
    return names


def _loadable_backends() -> Iterator[Backend]:
    """Yield the backends, except those of packages that cannot be loaded."""
    for name in backend_names():
        with suppress(InputError):
            yield find_backend(name)


@functools.cache
def find_backend(name: str) -> Backend:
    """Return the backend of that name, without a solver's name; its declaration is loaded once.

    raises  InputError for an unknown name, with the nearest, and for a package that cannot be loaded
    """
    points = find_entry_points(GROUP)
    if name not in points:
        raise InputError(f"no such backend '{name}'" + did_you_mean(name, points))
    backend = load_entry_point(points[name], Backend)
    if backend.name != name:
        raise InputError(f"{name}: {points[name].value} is named '{backend.name}': the names must agree")
    return backend


def name_faults(full_name: str) -> list[str]:
    """Return the errors of `full_name`, such as "highs" or "ortools:glop", as a backend; [] if it is one."""
    name, _, solver = full_name.partition(":")
    try:
        backend = find_backend(name)
    except InputError as error:
        return list(error.faults)
    if solver and not backend.solvers and not backend.is_open:
        return [f"'{name}' takes no solver name, got '{full_name}'"]
    if solver and solver not in backend.solvers and not backend.is_open:
        return [f"{name} has no solver '{solver}'" + did_you_mean(solver, backend.solvers)]
    if not solver and backend.capabilities is None:
        return [
            f"'{name}' needs the name of a solver, such as '{name}:{next(iter(backend.solvers), 'highs')}'"
        ]
    return []


def declared_capabilities(full_name: str) -> Capabilities | None:
    """Return the capabilities of "highs" or "ortools:glop"; None for a solver that is not declared."""
    name, _, solver = full_name.partition(":")
    backend = find_backend(name)
    return backend.solvers.get(solver) if solver else backend.capabilities


def model_faults(model: LinearProgram, options: Options) -> list[str]:
    """Return the reasons for which the backend that `options` names cannot solve the model, one line each.

    The declared capabilities come first, then the faults that the backend itself finds.
    """
    name, _, solver = options.backend.partition(":")
    backend = find_backend(name)
    implementation = backend.load()
    faults = capability_faults(options.backend, backend.capabilities_of(solver), model, options)
    own_faults: Callable[[LinearProgram, Options], list[str]] | None = getattr(implementation, "faults", None)
    return faults or (own_faults(model, options) if own_faults else [])


def capability_faults(
    full_name: str, capabilities: Capabilities, model: LinearProgram, options: Options
) -> list[str]:
    """Return the needs of the model and the options that a solver does not meet, one line each."""
    integer_count = 0 if model.integer is None else int(model.integer.sum())
    return refusals(
        full_name,
        capabilities,
        options,
        integer_count=integer_count,
        continuous_count=model.shape[1] - integer_count,
    )


def _refused_variables(
    full_name: str, capabilities: Capabilities, integer_count: int, continuous_count: int
) -> list[str]:
    """Return the fault of a model with variables that a backend does not take; [] for none."""
    if integer_count and not capabilities.integer:
        others = _alternatives(full_name, lambda other: other.integer)
        return [f"{full_name} solves no integer programs: {others}"]
    if continuous_count and not (capabilities.continuous if integer_count else capabilities.linear):
        others = _alternatives(full_name, lambda other: other.linear and other.integer and other.continuous)
        return [f"{full_name} takes integer variables only, and {continuous_count} are continuous: {others}"]
    return []


def refusals(
    full_name: str, capabilities: Capabilities, options: Options, *, integer_count: int, continuous_count: int
) -> list[str]:
    """Return `capability_faults` of a model with these numbers of variables."""
    faults = _refused_variables(full_name, capabilities, integer_count, continuous_count)
    faults += [
        f"{full_name} takes no '{option}': leave it unset"
        for option in LIMITS
        if getattr(options, option) is not None and option not in capabilities.options
    ]
    algorithms = capabilities.integer_algorithms if integer_count else capabilities.linear_algorithms
    if options.algorithm != "auto" and options.algorithm not in algorithms:
        where = " for integer programs" if integer_count else ""
        faults.append(f"{full_name} has no algorithm '{options.algorithm}'{where}: leave it at 'auto'")
    return faults


def _alternatives(full_name: str, is_suitable: Callable[[Capabilities], bool]) -> str:
    """Return advice to use other solvers, those of the same backend where there are any."""
    backend = find_backend(full_name.partition(":")[0])
    names = [f"{backend.name}:{solver}" for solver, can in backend.solvers.items() if is_suitable(can)]
    if not names:
        names = [
            other.name
            for other in _loadable_backends()
            if other.capabilities is not None and is_suitable(other.capabilities)
        ]
    return "use " + " or ".join(f"'{name}'" for name in names)
