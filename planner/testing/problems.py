"""Conformance tests of a problem: tables, elements and their actions, and clear errors for bad tables."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from planner.contract.elements import Action, ElementKind
from planner.contract.parameters import check_parameters
from planner.contract.system import System
from planner.contract.tables import digest
from planner.testing.cases import Cases, faults_of, faults_of_tables, has_name, repeated


def problem_cases(system: System, problem: Any) -> Cases:
    """Yield the tests of a problem: its tables, elements, adjustments, and clear errors for bad tables."""
    yield "its tables make the same problem again", partial(_check_problem_tables, system, problem)
    yield "without adjustments it stays as it is", partial(_check_adjust, system, problem)
    for kind in system.problem.elements:
        yield f"elements: {kind.name}", partial(_check_elements, system, problem, kind)
    for table in system.problem.tables:
        if table.name in problem.to_tables():
            yield f"bad tables: {table.name}", partial(_check_bad_tables, system, problem, table)


def _check_problem_tables(system: System, problem: Any) -> None:
    tables = problem.to_tables()
    again = system.problem.from_tables({name: frame.copy() for name, frame in tables.items()})
    assert digest(again.to_tables()) == digest(tables), "tables read back give another problem"
    assert again.size() == problem.size()
    for noun, count in problem.size().items():
        assert isinstance(count, int | np.integer), f"size: {noun} is {count!r}, not a whole number"


def _check_adjust(system: System, problem: Any) -> None:
    same = system.problem.adjust(problem)
    assert digest(same.to_tables()) == digest(problem.to_tables()), "adjust() alone changes the problem"


def _check_action(system: System, problem: Any, kind: ElementKind, action: Action, name: str) -> None:
    """Check that an action on an element is done and undone, and that its adjustment is valid."""
    adjusted = action.apply({}, name)
    assert action.is_done(adjusted, name), f"{action.name}: is not done on {name}"
    assert not action.undo(adjusted, name), f"{action.name}: is not undone on {name}"
    adjust = system.problem.adjust
    values, refused = check_parameters(adjust, adjusted, where="problem", what=f"{kind.name} {name}")
    assert not refused, f"{action.name}: {refused[0]}"
    assert isinstance(adjust(problem, **values), system.problem.type)


def _check_elements(system: System, problem: Any, kind: ElementKind) -> None:
    names = list(kind.names(problem))
    twice = repeated(names)
    assert not twice, f"{kind.name} {twice[0]} is named twice"
    assert not repeated([action.name for action in kind.actions]), (
        f"two actions of a {kind.name} have one name"
    )
    for name in first_and_another(names):
        assert kind.require(problem, name) == name
        for action in kind.actions:
            _check_action(system, problem, kind, action, name)
    for action in kind.actions if kind.costs is not None else ():
        unknown = set(kind.costs(problem, action)) - set(names)  # type: ignore[misc]
        assert not unknown, f"{action.name}: costs of {sorted(unknown)[0]}, which is no {kind.name}"
    faults = faults_of(partial(kind.require, problem, "?".join(names) + "?"))
    assert has_name(faults, kind.name), f"a {kind.name} that is not there has no error"


def first_and_another(names: Sequence[str]) -> list[str]:
    """Return the first name and a random one."""
    index = np.random.default_rng(1).integers(len(names)) if names else 0
    return list(dict.fromkeys([names[0], names[int(index)]])) if names else []


def _check_bad_tables(system: System, problem: Any, table: Any) -> None:
    tables = problem.to_tables()
    frame = tables[table.name]
    for name, column in table.columns.items():
        if name not in frame:
            continue
        if column.required and len(frame.columns) > 1:
            faults = faults_of_tables(system, {**tables, table.name: frame.drop(columns=name)})
            assert has_name(faults, name), f"without {name}: the error does not name it: {faults}"
        if len(frame) and pd.api.types.is_numeric_dtype(frame[name]):
            values = frame[name].astype(object).copy()
            values.iloc[0] = "many"
            faults = faults_of_tables(system, {**tables, table.name: frame.assign(**{name: values})})
            assert has_name(faults, name), f"{name} is 'many': the error does not name it: {faults}"
