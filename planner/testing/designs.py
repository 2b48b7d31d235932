"""Conformance tests of a design, for those that other packages and users add to a system.

    from planner.testing import check_design
    from mine import DESIGN

    def test_my_design():
        check_design(DESIGN, system="traffic")

They run it on small problems, on random variants of them, with zeros and with ties in each column of numbers
that may have them, and with failed elements. It decides the same again, its plan keeps what it claims, and no
plan beats a bound of the system's best design.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from planner.contract.design import Design
from planner.contract.system import System
from planner.contract.table import Table
from planner.errors import InputError
from planner.options import Options
from planner.scenarios.installed_systems import load_system
from planner.scenarios.user_designs import UserDesign, make_design, name_of
from planner.testing.cases import OPTIONS, Case, Cases, Runs, run_cases, tiny_problem
from planner.testing.plans import design_cases
from planner.testing.problems import first_and_another
from planner.testing.searches import search_cases
from planner.testing.variants import check_variant, limit_time, variant_cases


def check_design(
    design: UserDesign,
    *,
    system: str | System,
    problems: Sequence[Any] = (),
    parameters: Mapping[str, Any] | None = None,
    options: Options = OPTIONS,
) -> None:
    """Run every conformance test on a design of a system.

    design      a `Design`, or a function from a problem to a plan, its tables or a decision
    system      the system or its name
    problems    small instances, solved in seconds; default: the smallest that the system declares
    parameters  of the design, where its defaults take too long
    raises      AssertionError that lists all the tests that failed, one line each
    """
    own = load_system(system) if isinstance(system, str) else system
    name = name_of(design)
    if any(other is design for other in own.designs):
        made: Design = own.design(name)
    else:
        made = make_design(own, name, design)
    tested = replace(own, designs=(made, *_references(own, name)), best=(), usual=())
    usual = {name: parameters or {}}
    cases = list(_cases(tested, name, list(problems) or [tiny_problem(own)], usual, options))
    run_cases(f"design '{name}' of {own.name}", [Case(case, run) for case, run in cases])


def _references(system: System, name: str) -> list[Design]:
    """Return the designs with bounds that no plan may beat: the best of the system, and bounds only."""
    references = [system.default_design, *(design for design in system.designs if design.is_bound)]
    return [design for design in references if design.name != name]


def _cases(
    system: System,
    name: str,
    problems: Sequence[Any],
    parameters: Mapping[str, Mapping[str, Any]],
    options: Options,
) -> Cases:
    for row, problem in enumerate(problems):
        runs = Runs(system, partial(_same, problem), parameters, options)
        yield from _named(f"problem {row}", design_cases(runs, name))
        yield f"problem {row}: no plan beats a bound", partial(check_variant, runs)
        limited = Runs(system, partial(_same, problem), parameters, limit_time(options))
        for what, make in (*_uniform_problems(system, problem), *_failed_problems(system, problem)):
            yield f"problem {row}: {what}", partial(check_variant, limited.on(make))
    yield from _named("random", variant_cases(system, parameters, options))
    yield from _named("values", search_cases(system, parameters, options, variants=1))


def _named(group: str, cases: Cases) -> Cases:
    for name, run in cases:
        yield f"{group}: {name}", run


def _same(problem: Any) -> Any:
    return problem


def _uniform_problems(system: System, problem: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield problems in which all numbers of a column are 0, or equal, where the system takes them."""
    for table in system.problem.tables:
        frame = problem.to_tables().get(table.name)
        for column in _columns_of_numbers(table, frame):
            assert frame is not None
            values = frame[column].to_numpy(float)
            for what, value in (("0", 0.0), ("equal", float(np.nanmax(values)))):
                tables = {**problem.to_tables(), table.name: frame.assign(**{column: value})}
                try:
                    made = system.problem.from_tables(tables)
                except InputError:
                    continue
                yield f"all of {table.name}.{column} {what}", partial(_same, made)


def _columns_of_numbers(table: Table, frame: pd.DataFrame | None) -> list[str]:
    """Return the columns of numbers that may be the same in all rows."""
    if frame is None or not len(frame):
        return []
    names = [name for name in table.columns if name in frame and name not in table.key]
    return [
        name
        for name in names
        if pd.api.types.is_numeric_dtype(frame[name]) and bool(frame[name].notna().any())
    ]


def _failed_problems(system: System, problem: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield problems in which an element of each kind that can fail has failed."""
    for kind in system.problem.elements:
        for action in kind.with_role("failure"):
            for name in first_and_another(kind.names(problem)):
                make = partial(system.problem.adjust, problem, **action.apply({}, name))
                yield f"{action.name} of {name}", make
