"""Solver options, as every design and backend takes them."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, get_args

from planner.errors import InputError, did_you_mean

Algorithm = Literal["auto", "simplex", "interior-point", "pdlp"]
Restoration = Literal["none", "local", "reconverge", "reroute", "reoptimize"]
"""The reaction of the network to a failure: nothing; traffic moves to the routes of its demand that survive;
routing protocols find new shortest paths; a controller routes again what a plan sends, or decides again."""
Service = Literal["best", "all"]


@dataclass(frozen=True, kw_only=True)
class Options:
    """Solver options; None leaves the solver's own default.

    backend       a registered backend, such as "highs", "ortools" (picks a solver by the model's
                  shape), "ortools:cp-sat", "pyomo:highs" or "scip"; `planner doctor` lists all
    algorithm     for linear programs: "simplex", "interior-point" or "pdlp"; "auto" follows the
                  model's shape
    time_limit_s  wall seconds; the incumbent at that time is returned with its bound
    gap           relative gap at which a plan counts as optimal
    threads       largest number of threads that the solver may use
    seed          the solver's random seed
    service       where capacity is scarce: "best" sheds what cannot be served, at least loss; "all" serves
                  all demand or proves that it is infeasible

    A backend that cannot honour an option refuses it by name (InputError). Options know no backend:
    its name is checked where a scenario is read, and where a program is solved.
    """

    backend: str = "highs"
    algorithm: Algorithm = "auto"
    time_limit_s: float | None = None
    gap: float | None = None
    threads: int | None = None
    seed: int | None = None
    service: Service = "best"

    def __post_init__(self) -> None:
        faults = self._number_faults()
        for name, choices in (("algorithm", get_args(Algorithm)), ("service", get_args(Service))):
            value = str(getattr(self, name))
            if value not in choices:
                faults.append(f"{name}: no such {name} '{value}'" + did_you_mean(value, choices))
        if faults:
            raise InputError(*faults)

    def to_dict(self) -> dict[str, Any]:
        """Return the options that have a value, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def share_time(self, share: float) -> Options:
        """Return the options with a share of their time limit."""
        return self if self.time_limit_s is None else replace(self, time_limit_s=share * self.time_limit_s)

    @property
    def is_solver_chosen(self) -> bool:
        """Return whether a backend or an algorithm other than the default is chosen."""
        return self.backend != "highs" or self.algorithm != "auto"

    def _number_faults(self) -> list[str]:
        faults = []
        if self.time_limit_s is not None and not (0 < self.time_limit_s < math.inf):
            faults.append(f"time_limit_s is {self.time_limit_s}, must be a positive number of seconds")
        if self.gap is not None and not (0 <= self.gap < 1):
            faults.append(f"gap is {self.gap}, must be at least 0 and less than 1")
        if self.threads is not None and not (1 <= self.threads <= 1024):
            faults.append(f"threads is {self.threads}, must be from 1 to 1024")
        if self.seed is not None and not (0 <= self.seed < 2**31):
            faults.append(f"seed is {self.seed}, must be from 0 to 2147483647")
        return faults


OPTION_NAMES = tuple(field.name for field in fields(Options))
