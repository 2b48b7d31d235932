"""Conformance tests of verbs: each of them has the same metrics of one design on one problem."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

import pandas as pd

from planner.contract.parameters import parameters_of
from planner.contract.system import System
from planner.errors import InputError
from planner.options import Options
from planner.runs.evaluation import compare, solve
from planner.runs.files import check, save_scenario
from planner.runs.result import metric_column
from planner.runs.rolling import roll
from planner.runs.run import Run
from planner.runs.what_if import explain
from planner.scenarios.arguments import as_scenario
from planner.scenarios.scenario import Scenario
from planner.sweeps.failures import failures
from planner.sweeps.sweep import sweep
from planner.sweeps.upgrades import upgrades
from planner.testing.cases import Cases, tiny_problem
from planner.testing.parameter_values import values_to_try

Metrics = Mapping[str, float | None]


def verb_cases(system: System, parameters: Mapping[str, Mapping[str, Any]], options: Options) -> Cases:
    """Yield the tests of each verb on the smallest problem, as it is and adjusted.

    They run today's practice, which decides the same each time; the default design where there is none.
    """
    name = system.studies.practice or system.default_design.name
    for is_adjusted in (False, True):
        asked = _Asked(system, name, parameters.get(name, {}), options, is_adjusted=is_adjusted)
        on = "adjusted problem" if is_adjusted else "problem"
        for verb, call in VERBS.items():
            yield f"{verb}: the {on} has the metrics of solve", partial(_check_verb, asked, verb, call)


class _Asked:
    """A design on the smallest problem of a system, and its metrics by `solve`."""

    def __init__(
        self,
        system: System,
        name: str,
        parameters: Mapping[str, Any],
        options: Options,
        *,
        is_adjusted: bool,
    ) -> None:
        self.system, self.name, self._is_adjusted = system, name, is_adjusted
        self.design = {name: dict(parameters)}
        self.options = options

    @cached_property
    def scenario(self) -> Scenario:
        """The scenario of the problem; one that is adjusted has another value of one parameter."""
        problem = tiny_problem(self.system)
        for change in _changes(self.system) if self._is_adjusted else ({},):
            scenario = as_scenario(problem, changes=change)
            try:
                scenario.make_problem()
            except InputError:  # a value that this problem cannot have
                continue
            return scenario
        return as_scenario(problem)

    @cached_property
    def run(self) -> Run:
        """The run of the design by `solve`."""
        return solve(self.scenario, design=self.design, options=self.options)


def _changes(system: System) -> Iterator[dict[str, Any]]:
    """Yield a change of one parameter of the problem, numbers first."""
    parameters = parameters_of(system.problem.adjust).values()
    for parameter in sorted(parameters, key=lambda parameter_: parameter_.schema.get("type") != "number"):
        for value in values_to_try(parameter):
            yield {f"problem.{parameter.name}": value}


def _check_verb(asked: _Asked, verb: str, call: Callable[[_Asked], Metrics | None]) -> None:
    try:
        metrics = call(asked)
    except InputError as error:
        if verb not in STUDIES:
            raise
        for fault in error.faults:
            assert fault, "refused without a reason"
            assert "\n" not in fault, f"refused by no clear line: {fault!r}"
        return
    expected = asked.run.metrics
    for metric in asked.system.metrics if metrics is not None else ():
        value, other = expected.get(metric.name), metrics.get(metric.name)  # type: ignore[union-attr]
        assert _is_same(value, other), f"{asked.name}: {metric.name} is {other}, by solve {value}"


def _compare(asked: _Asked) -> Metrics:
    designs = {**asked.design, asked.system.usual_designs[-1].name: {}}
    return compare(asked.scenario, designs=designs, options=asked.options)[asked.name].metrics


def _check(asked: _Asked) -> Metrics | None:
    """Return the metrics of the plan without those of signalling, which a plan does not tell."""
    if asked.run.plan is None:
        return None
    measured = check(asked.scenario, asked.run.plan).metrics
    metric_names = {metric.name for metric in asked.system.plan.metrics}
    return {**asked.run.metrics, **{name: value for name, value in measured.items() if name in metric_names}}


def _read(asked: _Asked) -> Metrics:
    """Return the metrics of the same scenario, read from files."""
    with tempfile.TemporaryDirectory() as folder:
        save_scenario(asked.scenario, Path(folder))
        return solve(Path(folder) / "scenario.toml", design=asked.design, options=asked.options).metrics


def _explain(asked: _Asked) -> Metrics:
    return explain(asked.scenario, design=asked.design, options=asked.options).run.metrics


def _failures(asked: _Asked) -> Metrics:
    return failures(asked.scenario, design=asked.design, options=asked.options, limit=1).run.metrics


def _upgrades(asked: _Asked) -> Metrics:
    buys = asked.system.studies.budget is not None
    candidates = None if buys else 1
    ladder = upgrades(
        asked.scenario, design=asked.design, options=asked.options, steps=1, candidates=candidates
    )
    return ladder.run.metrics


def _roll(asked: _Asked) -> Metrics:
    rolled = roll([asked.scenario.make_problem()], designs=asked.design, options=asked.options)
    return _metrics_of(asked.system, rolled.metrics.iloc[0])


def _sweep(asked: _Asked) -> Metrics:
    with tempfile.TemporaryDirectory() as folder:
        swept = sweep(
            asked.scenario, folder, axes={"solver.seed": [1]}, designs=asked.design, options=asked.options,
            workers=1,
        )  # fmt: skip
        return _metrics_of(asked.system, swept.runs.iloc[0])


def _metrics_of(system: System, row: pd.Series) -> Metrics:
    """Return the metrics in a row, in which one with the name of another column is `metric.seconds`."""
    names = [metric.name for metric in system.metrics]
    return {name: row.get(metric_column(name, (name,)), row.get(name)) for name in names}


STUDIES: Final = frozenset({"explain", "failures", "upgrades"})
"""Verbs that a system need not have, or that are for some of its designs only."""
VERBS: Mapping[str, Callable[[_Asked], Metrics | None]] = {
    "compare": _compare,
    "check": _check,
    "solve of files": _read,
    "explain": _explain,
    "failures": _failures,
    "upgrades": _upgrades,
    "roll": _roll,
    "sweep": _sweep,
}
"""Verbs that have metrics of a problem as it is, before any failure or upgrade."""


def _is_same(value: float | None, other: float | None) -> bool:
    """Return whether two values are equal but for rounding; NaN is None."""
    value, other = (None if item is None or math.isnan(item) else item for item in (value, other))
    if value is None or other is None:
        return value is other
    return math.isclose(value, other, rel_tol=1e-9, abs_tol=1e-9) or value == other
