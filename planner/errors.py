"""Errors that a user can act on, each with the exit code of the command line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import ClassVar


class PlannerError(Exception):
    """Base of every error that planner raises on purpose: one clear line, or several."""

    exit_code: ClassVar[int] = 1


class InputError(PlannerError):
    """What was given cannot be used. Holds every fault found, one line each.

    A line names where (file, row, field), the value, and the rule that it breaks.
    """

    exit_code = 1

    def __init__(self, *faults: str) -> None:
        self.faults: tuple[str, ...] = faults
        super().__init__("\n".join(faults))


class PlanRejected(PlannerError):
    """A plan is no plan for its problem, or breaks a limit that its maker claimed to keep."""

    exit_code = 5


class SolverFailure(PlannerError):
    """A solver crashed, refused its licence, or called the model invalid."""

    exit_code = 6


def did_you_mean(name: str, valid: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the nearest valid name, else the valid names where they are few."""
    names: Sequence[str] = sorted(valid)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if near:
        return f"; did you mean '{near[0]}'?"
    if 0 < len(names) <= 12:
        return f"; valid: {', '.join(names)}"
    return ""
