"""Adjusts problems, and says which adjustment is to blame where its value makes tables invalid."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from planner.errors import InputError


def adjust_problem(adjust: Callable[..., Any], problem: Any, adjustments: Mapping[str, Any]) -> Any:
    """Return the adjusted problem.

    adjust  (problem, **adjustments) -> problem
    raises  InputError; where a number, such as a scale, makes rows of a valid problem invalid, one line that
            names the number
    """
    try:
        return adjust(problem, **adjustments)
    except InputError as error:
        name = _find_cause(adjust, problem, adjustments, error)
        if name is None:
            raise
        first, *others = error.faults
        more = " (and more such rows)" if others else ""
        raise InputError(
            f"problem.{name} is {adjustments[name]}, must keep all values valid; with it, {first}{more}"
        ) from None


def _find_cause(
    adjust: Callable[..., Any], problem: Any, adjustments: Mapping[str, Any], error: InputError
) -> str | None:
    """Return the number without which the other adjustments are valid; None where no single one is.

    A fault that names an adjustment itself needs no search.
    """
    if any(name in fault for name in adjustments for fault in error.faults):
        return None
    for name, value in adjustments.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        others = {other: given for other, given in adjustments.items() if other != name}
        try:
            adjust(problem, **others)
        except InputError:
            continue
        return name
    return None
