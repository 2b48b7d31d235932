"""Pages of the catalogue: systems, backends, the grid of a sweep, its outcome, and stored runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from planner.contract.drawing import Curve, Drawing
from planner.contract.proof import SEARCH_STATUSES
from planner.formatting import counted_of, duration, few, number, plain, scale_of
from planner.reports.document import Column, Page, Part, Table, Text, table_of
from planner.scenarios.catalogue import find_system
from planner.scenarios.commands import value_text
from planner.store.record import column_of

if TYPE_CHECKING:
    from planner.backends.doctor import Diagnosis
    from planner.contract.metrics import Metric
    from planner.contract.system import System
    from planner.sweeps.grid import Grid
    from planner.sweeps.sweep import Estimate, Sweep

MOST_RUNS: Final = 500
"""Runs of a sweep that a page shows."""
MOST_FIGURES: Final = 6
"""Metrics drawn along each axis of a sweep."""
MOST_WARNINGS: Final = 12


# --- backends -----------------------------------------------------------------------------


def backends_page(diagnoses: Sequence[Diagnosis]) -> Page:
    """Return the backends, their versions, and the outcome of a tiny solve with each."""
    rows: list[list[Text | str]] = []
    for diagnosis in diagnoses:
        outcome = Text("right", "good")
        if not diagnosis.passed:
            outcome = Text(
                diagnosis.missing or diagnosis.problem or "wrong", "dim" if diagnosis.missing else "bad"
            )
        rows.append([diagnosis.backend, diagnosis.version or "-", outcome, number(diagnosis.seconds)])
    columns = [
        *(Column(label=label) for label in ("backend", "version", "tiny solve")),
        Column(label="time", unit="s", numeric=True),
    ]
    return Page(title="Backends", parts=[Part(tables=[Table(title="Backends", columns=columns, rows=rows)])])


# --- sweeps -------------------------------------------------------------------------------


def _axes_of(grid: Grid, scenario: str) -> list[list[Text | str]]:
    """Return rows of the designs and of each axis of a scenario, with their values."""
    points = [point for point in grid.points if point.request.scenario == scenario]
    axes: list[tuple[str, list[Any]]] = [("design", [point.request.label for point in points])]
    axes += [(axis, [p.values[axis] for p in points if axis in p.values]) for axis in grid.axes]
    rows: list[list[Text | str]] = []
    for axis, values in axes:
        if values:
            distinct = list(dict.fromkeys(plain(value) for value in values))
            rows.append(["" if rows else scenario, axis, few(distinct), f"{len(distinct):,}"])
    return rows


def grid_page(grid: Grid, estimate: Estimate, workers: int | None) -> Page:
    """Return the axes and designs of a grid, and its estimated cost; `workers` None: a cluster's."""
    rows: list[list[Text | str]] = []
    lines_after = set()
    for scenario in dict.fromkeys(point.request.scenario for point in grid.points):
        rows += _axes_of(grid, scenario)
        lines_after.add(len(rows) - 1)
    table = Table(
        title="Grid",
        columns=[
            *(Column(label=label) for label in ("scenario", "axis", "values")),
            Column(label="count", numeric=True),
        ],
        rows=rows,
        lines_after=frozenset(lines_after),
    )
    shared = f" at {estimate.points:,} points (some ask the same)" if estimate.points > estimate.runs else ""
    counts = f"{estimate.runs:,} runs{shared}; {estimate.done:,} are done, {estimate.remaining:,} remain"
    return Page(title="Grid", parts=[Part(tables=[table], notes=[counts, _cost(estimate, workers)])])


def _cost(estimate: Estimate, workers: int | None) -> str:
    if not estimate.remaining:
        return "estimated time: none"
    if estimate.seconds is None:
        return "estimated time: unknown; the store has no run like these"
    shared = duration(estimate.seconds / (workers or 1))
    text = (
        f"estimated time: {shared} on {workers} workers" if workers else f"estimated time of work: {shared}"
    )
    if estimate.unknown:
        text += f", and {estimate.unknown:,} runs of which the store has none alike"
    return text


def sweep_page(sweep: Sweep) -> Page:
    """Return the outcome of a sweep: counts by status on a terminal; curves along its axes and every run."""
    runs, axes = sweep.runs, list(sweep.grid.axes)
    parts = [
        Part(tables=[_outcome_table(str(scenario), rows)])
        for scenario, rows in (runs.groupby("scenario", sort=False) if len(runs) else ())
    ]
    for system_name, rows in runs.groupby("system", sort=False) if len(runs) else ():
        parts.append(_sweep_part(find_system(str(system_name)), rows, axes))
    return Page(
        title=f"Sweep {sweep.out.name}",
        about=f"{counted_of(len(runs), len(sweep.grid), 'points')}; axes: {', '.join(axes) or 'none'}.",
        parts=parts,
        warnings=sweep.failures[:MOST_WARNINGS],
    )


def _outcome_table(scenario: str, runs: pd.DataFrame) -> Table:
    """Return the mean headline of each design, and the number of its runs with each status."""
    statuses = [status for status in SEARCH_STATUSES if (runs["status"] == status).any()]
    headline = find_system(str(runs["system"].iloc[0])).headline
    by_design = {str(label): design_runs for label, design_runs in runs.groupby("label", sort=False)}
    column = column_of(headline.name)
    means = [
        float(design_runs[column].mean()) if column in design_runs else math.nan
        for design_runs in by_design.values()
    ]
    unit, text = scale_of(headline.name, means, headline.unit)
    rows = []
    for (label, design_runs), mean in zip(by_design.items(), means, strict=True):
        counts = [str(int((design_runs["status"] == status).sum()) or "-") for status in statuses]
        gap, seconds = number(design_runs["gap"].max()), number(design_runs["seconds"].median())
        rows.append([label, text(mean), *counts, gap, seconds])
    columns = [
        (f"mean\n{headline.words}", unit),
        *((status.replace(" ", "\n"), "") for status in statuses),
        ("worst\ngap", ""),
        ("median\ntime", "s"),
    ]  # narrow, so that names are whole
    return Table(
        title=scenario,
        columns=[
            Column(label="design"),
            *(Column(label=label, unit=unit, numeric=True) for label, unit in columns),
        ],
        rows=rows,
    )


def _sweep_part(system: System, rows: pd.DataFrame, axes: Sequence[str]) -> Part:
    rows = rows.assign(**{axis: [_plain(value) for value in rows[axis]] for axis in axes})
    varied = [axis for axis in axes if len(rows[axis].unique()) > 1]
    moving = _moving_metrics(system, rows)
    names = [column_of(metric.name) for metric in moving]
    shown = ["scenario", "label", *varied, "status", "gap", "seconds", *names]
    units = {column_of(metric.name): metric.unit for metric in system.metrics}
    table = table_of(rows[[name for name in shown if name in rows]], units, title="runs", upper=MOST_RUNS)

    def drawings() -> list[Drawing]:
        return [_along(rows, axis, metric) for axis in varied for metric in moving[:MOST_FIGURES]]

    return Part(title=system.name, tables=[table], drawings=drawings, detail=True)


def _moving_metrics(system: System, rows: pd.DataFrame) -> list[Metric]:
    """Return the metrics of which the runs have different values."""
    columns = {column_of(metric.name): metric for metric in system.metrics}
    return [metric for name, metric in columns.items() if name in rows and _varies(rows[name])]


def _plain(value: Any) -> Any:
    """Return the value of an axis; lists and tables as text, which can be compared."""
    return value_text(value) if isinstance(value, list | dict) else value


def _varies(values: pd.Series) -> bool:
    numbers = pd.to_numeric(values, errors="coerce").dropna()
    return len(numbers) > 1 and float(numbers.max() - numbers.min()) > 1e-9 * float(numbers.abs().max())


def _along(rows: pd.DataFrame, axis: str, metric: Metric) -> Curve:
    """Return a metric by the values of an axis, a line for each design; the mean of several runs."""
    lines = rows.pivot_table(
        index=axis, columns="label", values=column_of(metric.name), aggfunc="mean", sort=False
    )
    is_numeric = pd.api.types.is_numeric_dtype(lines.index)
    frame = (lines.sort_index() if is_numeric else lines).rename_axis(columns=None).reset_index()
    units = dict.fromkeys((str(label) for label in lines), metric.unit)
    title = f"{metric.label} by {axis}" + (f" ({metric.unit})" if metric.unit else "")
    return Curve(title=title, frame=frame, units=units, bars=not is_numeric)
