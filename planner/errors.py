"""Errors that a user can act on, each with the exit code of the command line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Final


class PlannerError(Exception):
    """Base of every error that planner raises on purpose: one clear line, or several."""

    exit_code: ClassVar[int] = 1


class InputError(PlannerError):
    """Invalid input. `faults` has every fault found, one line each.

    A line names the place (file, row, field), the value, and the rule that it violates.
    """

    exit_code = 1

    def __init__(self, *faults: str) -> None:
        self.faults: tuple[str, ...] = faults
        super().__init__("\n".join(faults))


class PlanRejected(PlannerError):
    """A plan that is none for its problem, or violates a constraint that its design guarantees."""

    exit_code = 5


class SolverFailure(PlannerError):
    """A solver that crashed, refused its licence, or called the model invalid."""

    exit_code = 6


RENAMED: Final[Mapping[str, str]] = {
    "sees": "information",
    "told": "data_units",
    "grain": "granularity",
    "grain_km": "granularity_km",
    "grain_groups": "granularity_groups",
    "grain_bytes": "granularity_bytes",
    "exchanged_bytes": "signalling_bytes",
    "bound_within": "bound_scope",
    "within": "bound_scope",
    "down_rate": "capacity_factors",
}
"""New names by the names that users wrote before version 0.2."""


MAX_COMPARED: Final = 2_000  # names that are compared to find the nearest


def did_you_mean(name: str, valid: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` for the nearest valid name, else the valid names if they are few."""
    names: Sequence[str] = sorted(valid)
    if RENAMED.get(name) in names:
        return f"; it is now called '{RENAMED[name]}'"
    likely = [one for one in names if abs(len(one) - len(name)) <= max(3, len(name))]
    near = difflib.get_close_matches(name, likely[:MAX_COMPARED], n=1, cutoff=0.6)
    if near:
        return f"; did you mean '{near[0]}'?"
    if 0 < len(names) <= 12:
        return f"; valid: {', '.join(names)}"
    return ""
