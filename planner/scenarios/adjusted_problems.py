"""Adjusts problems, and says which adjustment is to blame where its value makes tables invalid."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from planner.contract.notes import keep_notes, notes_of, observe_notes
from planner.errors import InputError


def adjust_with_notes(adjust: Callable[..., Any], problem: Any, adjustments: Mapping[str, Any]) -> Any:
    """Return the adjusted problem with the notes of the problem before and those of its adjustment.

    The one place where a source's problem becomes that of a scenario: runs, sweeps, failures, upgrades and
    explanations all adjust here. `adjust` is called without adjustments too, as it may ask questions that an
    adjustment answers, such as whether links have a row for each direction. The problem before is unchanged.

    raises  InputError, as `adjust_problem`
    """
    notes = dict.fromkeys(notes_of(problem))
    count = len(notes)
    with observe_notes(lambda note: notes.update({note: None})):
        adjusted = adjust_problem(adjust, problem, adjustments)
    if len(notes) == count and adjusted is problem:
        return problem
    return keep_notes(copy.copy(problem) if adjusted is problem else adjusted, tuple(notes))


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
        others = {other: value_given for other, value_given in adjustments.items() if other != name}
        try:
            adjust(problem, **others)
        except InputError:
            continue
        return name
    return None
