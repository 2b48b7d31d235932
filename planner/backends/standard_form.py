"""Conversion of a linear model written in Pyomo to arrays."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Literal, TypeVar

import numpy as np
import pyomo.environ as pyo
import scipy.sparse as sp
from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

from planner.arrays import Floats
from planner.backends.linear_program import Columns, Labels, LinearProgram, Rows

Item = TypeVar("Item")

EQUAL, AT_MOST, AT_LEAST = 0, 1, -1  # how Pyomo's compiler marks a row


def from_pyomo(model: pyo.ConcreteModel) -> LinearProgram:
    """Return the arrays of a linear or mixed-integer Pyomo model, with Pyomo's names.

    Deactivated parts are left out, fixed variables become constants, unused ones stay. Raises
    ValueError where the model is not linear or has not exactly one objective.
    """
    return to_arrays(model)[0]


def _variable_limits(variables: Sequence[Any]) -> tuple[Floats, Floats]:
    """Return the lower and upper limits of variables."""
    lower = [-math.inf if variable.lb is None else variable.lb for variable in variables]
    upper = [math.inf if variable.ub is None else variable.ub for variable in variables]
    return np.array(lower, dtype=float), np.array(upper, dtype=float)


def to_arrays(model: pyo.ConcreteModel) -> tuple[LinearProgram, list[Any]]:
    """Return the arrays as `from_pyomo`, and the model's variables in the order of the columns."""
    objective = only_objective(model)
    variables = [v for v in model.component_data_objects(pyo.Var, active=True) if not v.fixed]
    try:
        form = LinearStandardFormCompiler().write(model, mixed_form=True, set_sense=None)
    except Exception as error:  # Pyomo raises many kinds for what is not linear
        raise ValueError(f"model '{model.name}' is not linear: {error}") from error

    position = {id(variable): j for j, variable in enumerate(variables)}
    column_of = np.array([position[id(variable)] for variable in form.columns], dtype=np.int64)
    matrix = sp.csr_array(_add_unused_columns(form.A, column_of, len(variables)))
    constraints, first, low, high = _limits(form)
    matrix = matrix[np.array(first, dtype=np.int64)] if first else matrix

    rows, start = [], 0
    for component, members in _group_by(constraints, lambda constraint: constraint.parent_component()):
        block = slice(start, start + len(members))
        rows.append(
            Rows(component.name, matrix[block], lower=low[block], upper=high[block], labels=_labels(members))
        )
        start += len(members)
    lower, upper = _variable_limits(variables)
    sense: Literal["min", "max"] = "min" if objective.is_minimizing() else "max"
    program = LinearProgram.build(
        sense=sense,
        cost=_add_unused_columns(form.c, column_of, len(variables)).toarray()[0],
        offset=float(np.asarray(form.c_offset).ravel()[0]),
        rows=rows,
        columns=[
            Columns(name=component.name, count=len(members), labels=_labels(members))
            for component, members in _group_by(variables, lambda variable: variable.parent_component())
        ],
        lower=lower,
        upper=upper,
        integer=np.array([not v.is_continuous() for v in variables], dtype=bool),
        name=model.name,
    )
    return program, variables


def only_objective(model: pyo.ConcreteModel) -> Any:
    """Return the model's only active objective; raise ValueError where it has none or several."""
    objectives = list(model.component_data_objects(pyo.Objective, active=True))
    if len(objectives) != 1:
        raise ValueError(f"model '{model.name}' has {len(objectives)} active objectives, must be 1")
    return objectives[0]


def _add_unused_columns(matrix: Any, column_of: np.typing.NDArray[np.int64], count: int) -> sp.coo_array:
    """Return the matrix with a column for every variable: the compiler leaves out unused ones."""
    entries = sp.coo_array(matrix)
    row, column = entries.coords
    return sp.coo_array((entries.data, (row, column_of[column])), shape=(matrix.shape[0], count))


def _limits(form: Any) -> tuple[list[Any], list[int], list[float], list[float]]:
    """Return constraints, the first compiled row of each (a range has two), and their limits."""
    constraints, first, low, high = [], [], [], []
    row = 0
    for constraint, entries in _group_by(form.rows, lambda entry: entry[0]):
        limits = {kind: float(form.rhs[row + k]) for k, (_, kind) in enumerate(entries)}
        constraints.append(constraint)
        first.append(row)
        low.append(limits.get(EQUAL, limits.get(AT_LEAST, -math.inf)))
        high.append(limits.get(EQUAL, limits.get(AT_MOST, math.inf)))
        row += len(entries)
    return constraints, first, low, high


def _group_by(items: Iterable[Item], key: Callable[[Item], Hashable]) -> list[tuple[Any, list[Item]]]:
    """Group consecutive items with the identical key; Pyomo's components have no plain equality."""
    groups = (list(group) for _, group in itertools.groupby(items, key=lambda item: id(key(item))))
    return [(key(members[0]), members) for members in groups]


def _labels(members: list[Any]) -> Labels | None:
    """Return Pyomo's own index, as in its names; None for a component without index."""
    component = members[0].parent_component()
    if not component.is_indexed():
        return None
    prefix = len(component.name) + 1
    return lambda: [member.name[prefix:-1] for member in members]
