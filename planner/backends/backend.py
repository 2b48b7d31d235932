"""Declaration of a backend: its name, its capabilities, and the module that solves.

A package adds a backend by an entry point in the group `planner.backends` that leads to a `Backend`:

    [options.entry_points]
    planner.backends =
        mysolver = my_package.declaration:MY_SOLVER

A declaration imports no solver, so that backends can be listed and names checked at no cost; the module
that it names is imported at the first solve. `planner.testing.check_backend("mysolver")` tests it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from planner.extras import explain_missing

if TYPE_CHECKING:
    from planner.backends.linear_program import LinearProgram
    from planner.backends.solution import Solution
    from planner.options import Options

LIMITS = ("time_limit_s", "gap", "threads", "seed")
"""Options that a solver honours or refuses, beside `algorithm`."""


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """Capabilities of a solver: programs and options that it takes, values that it returns.

    linear              it solves programs without integer variables
    integer             it solves programs with integer variables
    continuous          its integer programs may have continuous variables as well
    largest_integer     integer variables need limits within this magnitude; None where they need none
    options             those of LIMITS that it honours; it honours `threads` if it uses one thread only
    linear_algorithms   values of `Options.algorithm` beside "auto" that it has for linear programs
    integer_algorithms  the same for integer programs
    dual_values         its answers to linear programs come with dual values
    first_order         its answers are accurate to a tolerance and may be feasible where others are optimal
    """

    linear: bool = True
    integer: bool = True
    continuous: bool = True
    largest_integer: float | None = None
    options: Sequence[str] = LIMITS
    linear_algorithms: Sequence[str] = ()
    integer_algorithms: Sequence[str] = ()
    dual_values: bool = True
    first_order: bool = False


class Implementation(Protocol):
    """Module that solves for a backend.

    It may also have `faults(model, options) -> list[str]`, reasons beyond the declared capabilities why
    it cannot solve this model with these options, one line each.
    """

    def solve(self, model: LinearProgram, options: Options) -> Solution:
        """Solve with the solver that `options.backend` names; `verification.judge` helps to be honest.

        raises  SolverFailure where the solver fails or rejects the model; InfeasibleOrUnbounded
                where it does not say which of the two
        """

    def version(self, solver: str) -> str:
        """Return the version of a solver of this backend; "" is the plain backend."""


class OpenImplementation(Implementation, Protocol):
    """Module of a backend that finds its solvers only once it is loaded, as Pyomo does."""

    def capabilities(self, solver: str) -> Capabilities:
        """Return the capabilities of a solver; raise InputError if it is not installed."""

    def installed_solvers(self) -> Sequence[str]:
        """Return the names of the solvers that can run here."""


@dataclass(frozen=True, kw_only=True)
class Backend:
    """A solver, or several behind one interface.

    name            what `Options.backend` starts with
    implementation  module that solves, by its full name
    capabilities    of the plain name; None where a solver must be named, as in "pyomo:highs"
    solvers         capabilities of the solvers named after a colon, as in "ortools:glop"
    is_open         it takes names of other solvers too; then the module is an OpenImplementation
    install         command that installs what the module needs
    """

    name: str
    implementation: str
    capabilities: Capabilities | None = None
    solvers: Mapping[str, Capabilities] = field(default_factory=dict)
    is_open: bool = False
    install: str | None = None

    def load(self) -> Implementation:
        """Import the module that solves; raise InputError that names a missing package."""
        try:
            return cast("Implementation", import_module(self.implementation))
        except ModuleNotFoundError as missing:
            raise explain_missing(f"backend '{self.name}'", missing, self.install) from missing

    def capabilities_of(self, solver: str) -> Capabilities:
        """Return the capabilities of a solver of this backend; "" is the plain backend."""
        declared = self.solvers.get(solver) if solver else self.capabilities
        return declared or cast("OpenImplementation", self.load()).capabilities(solver)

    def names(self) -> list[str]:
        """Return the names that `Options.backend` takes, without those of an open backend's solvers."""
        plain = [] if self.capabilities is None else [self.name]
        return [*plain, *(f"{self.name}:{solver}" for solver in self.solvers)]

    def installed_names(self) -> list[str]:
        """Return the names as `names`, with the solvers that an open backend finds here."""
        installed = cast("OpenImplementation", self.load()).installed_solvers() if self.is_open else ()
        return list(dict.fromkeys([*self.names(), *(f"{self.name}:{solver}" for solver in installed)]))
