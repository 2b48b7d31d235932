"""Conformance tests as cases, and the runs that they share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final

import pandas as pd

from planner.contract import progress
from planner.contract.parameters import check_parameters
from planner.contract.system import System
from planner.errors import InputError
from planner.options import Options
from planner.runs.evaluation import evaluate
from planner.runs.run import Run
from planner.scenarios.scenario import Entry

TOLERANCE: Final = 1e-6
MAX_LINE: Final = 400
"""Letters of a line that refuses what was asked."""
OPTIONS: Final = Options(threads=1, seed=1)


@dataclass(frozen=True)
class Case:
    """One conformance test; `run` raises AssertionError where it fails."""

    name: str
    run: Callable[[], None]


Cases = Iterator[tuple[str, Callable[[], None]]]


def run_cases(what: str, cases: Sequence[Case]) -> None:
    """Run tests; raise AssertionError that lists all that failed, one line each.

    what  they test, such as "system 'traffic'"
    """
    failures = []
    for case in cases:
        try:
            case.run()
        except Exception as error:  # a test fails by any error
            failures.append(f"{case.name}: {type(error).__name__}: {error}")
    assert not failures, f"{what} fails:\n" + "\n".join(failures)


class Runs:
    """Runs of every design on one problem, each made once.

    make        returns the problem, called at the first run
    parameters  of designs, by their names, where their defaults take too long
    """

    def __init__(
        self,
        system: System,
        make: Callable[[], Any],
        parameters: Mapping[str, Mapping[str, Any]],
        options: Options,
    ) -> None:
        self.system, self.options = system, options
        self._make, self._parameters = make, parameters
        self._made: dict[str, Run] = {}
        self.reported: dict[str, set[str]] = {}

    @cached_property
    def problem(self) -> Any:
        """The problem, made at the first use."""
        return self._make()

    def on(self, make: Callable[[], Any]) -> Runs:
        """Return runs of the same designs on another problem."""
        return Runs(self.system, make, self._parameters, self.options)

    def entry(self, name: str, parameters: Mapping[str, Any] | None = None) -> Entry:
        """Return the design with its parameters, as a scenario writes them.

        raises  InputError for values that are not valid
        """
        design, parameters_given = (
            self.system.design(name),
            {**self._parameters.get(name, {}), **(parameters or {})},
        )
        values, faults = check_parameters(design.decide, parameters_given, where=f"designs.{name}", what=name)
        if faults:
            raise InputError(*faults)
        return Entry(label=name, design=design, parameters=values)

    def fresh(
        self, name: str, options: Options | None = None, parameters: Mapping[str, Any] | None = None
    ) -> Run:
        """Return a new run of a design."""
        entry = self.entry(name, parameters)
        return evaluate(self.system, self.problem, entry, options=options or self.options)

    def of(self, name: str) -> Run:
        """Return the run of a design, made at the first call."""
        if name not in self._made:
            reported = self.reported.setdefault(name, set())
            with progress.observe(lambda state: reported.add(state.metric)):
                self._made[name] = self.fresh(name)
        return self._made[name]

    def all(self) -> list[Run]:
        """Return the runs of all designs."""
        return [self.of(design.name) for design in self.system.designs]


def tiny_problem(system: System) -> Any:
    """Return the smallest problem that a system declares: its sample, else its first preset."""
    kind = system.problem
    return kind.sample() if kind.sample is not None else next(iter(kind.presets.values()))()


def faults_of_tables(system: System, tables: Mapping[str, pd.DataFrame]) -> tuple[str, ...]:
    """Return the faults of tables; () where they make a problem."""
    return faults_of(partial(system.problem.from_tables, tables))


def faults_of(call: Callable[[], Any]) -> tuple[str, ...]:
    """Return the faults of a call's InputError, each of one line; () without one."""
    faults: tuple[str, ...] = ()
    try:
        call()
    except InputError as error:
        faults = error.faults
    assert all("\n" not in fault for fault in faults), "a fault is longer than a line"
    return faults


def check_refusal(error: InputError, asked: str) -> None:
    """Check that each fault of an error is one clear line.

    asked  what is refused, for the message
    """
    for fault in error.faults:
        is_clear = fault.strip() and "\n" not in fault and len(fault) <= MAX_LINE
        assert is_clear, f"{asked}: refused by no clear line: {fault!r}"


def has_name(faults: Sequence[str], name: str) -> bool:
    """Return whether a fault names something."""
    return any(name in fault for fault in faults)


def repeated(names: Sequence[str]) -> list[str]:
    """Return the names that occur several times, each once, in order."""
    return [name for name, count in Counter(names).items() if count > 1]
