"""Conformance tests of a system's declarations: names, descriptions, metrics of studies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from planner.contract.parameters import parameters_of
from planner.contract.system import System
from planner.testing.cases import Cases, repeated


def declaration_cases(system: System) -> Cases:
    """Yield the tests of a system's declarations."""
    yield "names are unique", partial(_check_names, system)
    yield "metrics that studies name exist", partial(_check_metrics_of_studies, system)
    yield "every design says what it does and where it comes from", partial(_check_descriptions, system)
    yield "every column and parameter is described", partial(_check_parameters, system)


def _check_names(system: System) -> None:
    named: dict[str, Sequence[Any]] = {
        "design": system.designs,
        "metric": system.metrics,
        "table": system.problem.tables,
        "target": system.studies.targets,
    }
    for kind, items in named.items():
        twice = repeated([item.name for item in items])
        assert not twice, f"{kind} {twice[0]} is declared twice"
    assert system.designs, "a system needs a design"
    unknown = sorted(set(system.best) - {design.name for design in system.designs})
    assert not unknown, f"best: {unknown[0]} is no design of the system"
    assert not system.default_design.is_bound, "the default design has a plan"
    if system.usual:
        assert system.usual_designs[0] is system.default_design, "the default is the first usual design"
    assert system.problem.presets, "a system needs a preset, the problem to try it with"


def _check_metrics_of_studies(system: System) -> None:
    metric_names = {metric.name for metric in system.metrics}
    headline = system.plan.headline
    named = {
        "headline": headline.metric,
        **{f"headline's {name}": name for name in (*headline.losses, *headline.fallbacks, *headline.table)},
    }
    named |= {"headline's total": headline.total} if headline.total else {}
    named |= {"headline's second rank": headline.then} if headline.then else {}
    if system.studies.trade_off is not None:
        named |= dict(zip(("trade-off, across", "trade-off, up"), system.studies.trade_off, strict=True))
    if system.studies.coordination is not None:
        named["coordination"] = system.studies.coordination.performance
    for label, name in named.items():
        assert name in metric_names, f"{label} is {name}, which is no metric"
    if system.studies.practice is not None:
        system.design(system.studies.practice)


def _check_descriptions(system: System) -> None:
    for design in system.designs:
        assert design.about, f"design {design.name}: its function has no docstring"
        assert design.source, f"design {design.name}: has no source"
    for metric in system.metrics:
        assert metric.about, f"metric {metric.name}: is not described"


def _check_parameters(system: System) -> None:
    for table in (*system.problem.tables, *system.plan.tables):
        for name, column in table.columns.items():
            assert column.about, f"table {table.name}: column {name} is not described"
    functions: dict[str, Callable[..., Any]] = {"problem": system.problem.adjust}
    functions |= {f"source {name}": read for name, read in system.problem.sources.items()}
    functions |= {f"preset {name}": make for name, make in system.problem.presets.items()}
    functions |= {f"design {design.name}": design.decide for design in system.designs}
    functions |= {f"information of {design.name}": design.observe for design in system.designs}
    for owner, function in functions.items():
        for parameter in parameters_of(function).values():
            assert parameter.about, f"{owner}: parameter {parameter.name} is not described"
