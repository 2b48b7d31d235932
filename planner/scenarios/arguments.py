"""Arguments that every verb takes: a problem or a scenario, its changes, designs and solver options."""

from __future__ import annotations

import copy
import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeAlias, TypeVar

import numpy as np
import pandas as pd

from planner.contract.problem import Problem
from planner.errors import InputError, did_you_mean
from planner.formatting import split_names
from planner.options import Options
from planner.scenarios.catalogue import find_system, find_system_of, system_names
from planner.scenarios.scenario import (
    Additions,
    Scenario,
    load,
    set_key,
    with_additions,
    with_document,
    with_options,
)
from planner.scenarios.sources import Single
from planner.scenarios.user_designs import UserDesign, is_user_design, make_designs, name_of

Source: TypeAlias = Problem | Scenario | str | Path
"""A problem in memory, a loaded scenario, its file, or the name of one that ships with planner."""

Designs: TypeAlias = (
    str | UserDesign | Sequence[str | UserDesign] | Mapping[str, Mapping[str, Any] | UserDesign]
)
"""Names of designs, as a list or between commas, a mapping from labels to parameters as in [designs], and a
user's own, as functions or `Design` objects beside the names or as values of the mapping."""
OneDesign: TypeAlias = str | UserDesign | Mapping[str, Mapping[str, Any] | UserDesign]
"""Name of a design, one of the user's own, or a mapping of one label."""

SHARED_PARAMETERS: Final[Mapping[str, str]] = {
    "problem": "a problem, a scenario of `planner.load`, a scenario file, or the name of one that ships with "
    'planner, such as "traffic/abilene"',
    "design": "name of the design, {label: parameters} as in a scenario's [designs], or one of your own: a "
    "function that takes a problem and returns a plan or its tables, or a Design; default: the best of the "
    "scenario or of the system, by its `best`",
    "designs": 'names of designs, as a list or "a,b", or {label: parameters} as in a scenario\'s [designs]; '
    "among them your own, also as {name: function}: functions that take a problem and return a plan or its "
    "tables, or Designs; default: all of the scenario, or the usual ones of the system",
    "previous": "plan in place: searches may start from it, a design that limits changes keeps to it, and "
    "metrics of changes count from it; a run, a plan, its tables by name, a folder or file of them, or "
    "the name of a design; default: none",
    "changes": 'dotted keys of the scenario and their values, such as {"problem.scale": 2}',
    "options": "a planner.Options in place of those of the scenario",
    "backend": 'solver: "highs" (default), "ortools", "pyomo:SOLVER", "scip", or with a licence of your own '
    '"gurobi", "cplex" or "xpress"; `planner doctor` lists all',
    "algorithm": 'of linear programs: "auto" (default), "simplex", "interior-point" or "pdlp"',
    "time_limit_s": "time limit of the solver, s; default: none",
    "gap": "relative gap at which a plan counts as optimal, 0 to 1; default: the solver's own",
    "threads": "largest number of solver threads; default: the solver's own choice",
    "seed": "random seed of the solver; default: the solver's own",
    "service": 'where capacity is scarce: "best" (default) sheds what cannot be served, at least loss; "all" '
    "serves all demand, or proves that this is infeasible",
    "table_format": 'file format of tables, "parquet" or "csv"',
    "advance": "called with the numbers of finished, failed and all parts, whenever they change",
}
"""Meaning of the parameters that several verbs have; `verb` adds them to the docstring of each."""

WIDTH: Final = 100  # letters of a line of help

Given = ParamSpec("Given")
Returned = TypeVar("Returned")


def verb(function: Callable[Given, Returned]) -> Callable[Given, Returned]:
    """Add the shared parameters to a verb's help, and answer an unknown argument with the nearest name."""
    parameters = inspect.signature(function).parameters
    takes_any = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values())

    @functools.wraps(function)
    def call(*args: Given.args, **kwargs: Given.kwargs) -> Returned:
        unknown = [] if takes_any else [name for name in kwargs if name not in parameters]
        if unknown:
            raise InputError(
                *(
                    f"{function.__name__}: no argument '{name}'" + did_you_mean(name, parameters)
                    for name in unknown
                )
            )
        return function(*args, **kwargs)

    call.__doc__ = _complete_help(inspect.getdoc(function) or "", list(parameters))
    return call


def _complete_help(text: str, names: Sequence[str]) -> str:
    """Return a docstring that has the meaning of all parameters, in their order.

    The meaning of a shared parameter is that of `SHARED_PARAMETERS`, unless the docstring has its own.
    """
    before, _, after = text.partition("\n\nReturns\n")
    summary, _, section = before.partition("\n\nParameters\n----------\n")
    own = {entry.split("\n", 1)[0]: entry for entry in re.split(r"\n(?=\S)", section) if entry}
    entries = [
        own.get(name) or f"{name}\n{_indented(SHARED_PARAMETERS[name])}"
        for name in names
        if name in own or name in SHARED_PARAMETERS
    ]
    return "\n".join([f"{summary}\n\nParameters\n----------", *entries, "", "Returns", after])


def _indented(text: str) -> str:
    """Return a sentence as numpydoc has the meaning of a parameter."""
    sentence = text[0].upper() + text[1:] + "."
    return textwrap.fill(sentence, WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 4)


def as_scenario(
    source: Source,
    *,
    changes: Mapping[str, Any] | None = None,
    designs: Designs | None = None,
    options: Options | Mapping[str, Any] | None = None,
    name: str | None = None,
) -> Scenario:
    """Return the scenario of a problem or of a scenario, with changes, parameters of designs and options.

    designs  parameters of designs where it is a mapping; `labels_of` has the names
    options  Options, or some of them by name, which override those of the scenario
    name     of the scenario of a problem in memory; default: that of its system
    raises   InputError with every fault
    """
    scenario = _load(source, name)
    if designs is not None and not isinstance(designs, str):
        system = find_system(scenario.system.name)
        scenario = with_additions(scenario, Additions(designs=make_designs(system, designs)))
    parameters = _parameters_of(designs)
    if not changes and not parameters:
        return with_options(scenario, options)
    document = copy.deepcopy(dict(scenario.raw))
    for key, value in (changes or {}).items():
        set_key(document, key, plain_value(value))
    changed = dict(changes or {}) | _set_parameters(document, parameters)
    return with_options(with_document(scenario, document, changed), options)


def _set_parameters(document: dict[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Set parameters of designs in a document, by their labels; return them by their keys."""
    changed: dict[str, Any] = {}
    section = document.setdefault("designs", {})
    for label, of_design in parameters.items():
        if not isinstance(of_design, Mapping):
            raise InputError(
                f"designs: {label} is {of_design!r}, must be a mapping of its parameters, a Design or a "
                "function of a problem"
            )
        changed |= {f"designs.{label}.{name}": value for name, value in of_design.items()}
        if isinstance(section, dict):  # all else is reported as a fault of the document
            section[label] = {**section.get(label, {}), **plain_value(of_design)}
    if not section:
        del document["designs"]
    return changed


def labels_of(designs: Designs | None) -> list[str] | None:
    """Return the labels of designs; None where none are given. Commas separate those in a text."""
    if designs is None:
        return None
    if isinstance(designs, str):
        return split_names(designs)
    labels: list[str] = []
    faults: list[str] = []
    listed: Any = [designs] if is_user_design(designs) else designs
    for given in listed:
        try:
            labels.append(given if isinstance(given, str) else name_of(given))
        except InputError as error:
            faults += error.faults
    if faults:
        raise InputError(*faults)
    return labels


def only_label(design: OneDesign | None) -> str | None:
    """Return the label of a single design; None where none is given."""
    if design is None or isinstance(design, str):
        return design
    if is_user_design(design):
        return name_of(design)
    if not isinstance(design, Mapping) or len(design) != 1:
        raise InputError(
            "design: must be one name, one function, or a mapping of one label to its parameters"
        )
    return next(iter(design))


def _parameters_of(designs: Designs | None) -> Mapping[str, Any]:
    """Return the parameters of designs by label, without those that are a user's own."""
    given = designs if isinstance(designs, Mapping) else {}
    return {label: parameters for label, parameters in given.items() if not is_user_design(parameters)}


def solver_options(
    options: Options | Mapping[str, Any] | None, **named: Any
) -> Mapping[str, Any] | Options | None:
    """Return solver options of which the named ones, where they are not None, override the others."""
    selected = {name: value for name, value in named.items() if value is not None}
    if not selected:
        return options
    return {**(options.to_dict() if isinstance(options, Options) else options or {}), **selected}


def plain_value(value: Any) -> Any:
    """Return a value as TOML has it: numbers and arrays of NumPy, tuples and paths become plain ones."""
    if isinstance(value, Mapping):
        return {str(name): plain_value(item) for name, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [plain_value(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def require_known(verb_name: str, names: Mapping[str, Any], allowed: Collection[str], what: str) -> None:
    """Raise InputError for each name that is not known, with the nearest.

    what  owner of the names besides the verb, such as "design optimum"
    """
    faults = [
        f"{verb_name}: no argument '{name}', and no parameter of {what}" + did_you_mean(name, allowed)
        for name in names
        if name not in allowed
    ]
    if faults:
        raise InputError(*faults)


def _load(source: Any, name: str | None) -> Scenario:
    if isinstance(source, Scenario):
        return source
    if isinstance(source, str | Path):
        return load(source)
    system = None if isinstance(source, pd.DataFrame) else find_system_of(source)
    if system is None:
        raise InputError(
            f"a {type(source).__name__} is neither a problem of {', '.join(system_names())}, nor a "
            "scenario or the name of one"
        )
    document = {"system": system.name, "problem": {}}
    return Scenario(
        name=name or system.name,
        folder=Path(),
        raw=document,
        system=system,
        designs=(),
        options=Options(),
        make_problem=Single(lambda: source, system.problem.adjust, in_memory=True),
        problem=source,
    )
