"""Sweeps and stored runs for people, on a terminal."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from planner.report import console, number, plain_table

if TYPE_CHECKING:
    from planner.grid import Grid
    from planner.sweeping import Estimate, Sweep

MOST_VALUES = 8  # of an axis, that are shown
STATUSES = ("optimal", "feasible", "infeasible", "unbounded", "undecided", "failed")


def show_grid(grid: Grid, estimate: Estimate, workers: int | None) -> None:
    """The axes and designs of a grid, and what it would cost; `workers` None: a cluster's."""
    table = plain_table("grid")
    for head in ("scenario", "axis", "values", "count"):
        table.add_column(head, justify="right" if head == "count" else "left", overflow="fold")
    for scenario in dict.fromkeys(point.request.scenario for point in grid.points):
        points = [point for point in grid.points if point.request.scenario == scenario]
        rows: list[tuple[str, list[Any]]] = [("design", [point.request.label for point in points])]
        rows += [(axis, [p.values[axis] for p in points if axis in p.values]) for axis in grid.axes]
        name = scenario
        for axis, values in rows:
            if values:
                distinct = list(dict.fromkeys(_text(value) for value in values))
                table.add_row(name, axis, _few(distinct), f"{len(distinct):,}")
                name = ""
        table.add_section()
    console.print(table)
    shared = estimate.points - estimate.runs
    console.print(
        f"{estimate.runs:,} runs"
        + (f" at {estimate.points:,} points (some ask the same)" if shared else "")
        + f"; {estimate.done:,} are done, {estimate.left:,} are left"
    )
    console.print(_cost(estimate, workers))


def _cost(estimate: Estimate, workers: int | None) -> str:
    if not estimate.left:
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


def show_sweep(sweep: Sweep) -> None:
    """How many runs of each design came to what, scenario by scenario."""
    for scenario, runs in sweep.runs.groupby("scenario", sort=False):
        console.print(_outcomes(str(scenario), runs))


def _outcomes(scenario: str, runs: pd.DataFrame) -> Table:
    table = plain_table(scenario)
    kinds = [status for status in STATUSES if (runs["status"] == status).any()]
    table.add_column("design", overflow="fold")
    for head in ("runs", *kinds, "worst\ngap", "median\nseconds"):  # narrow, so that names are whole
        table.add_column(head, justify="right")
    for label, own in runs.groupby("label", sort=False):
        counts = [str(int((own["status"] == status).sum()) or "-") for status in kinds]
        worst, median = own["gap"].max(), own["seconds"].median()
        table.add_row(str(label), f"{len(own):,}", *counts, number(worst), number(median))
    return table


def show_runs(frame: pd.DataFrame) -> None:
    """Stored runs, a row each."""
    table = plain_table("")
    for column in frame:
        numeric = pd.api.types.is_numeric_dtype(frame[column])
        table.add_column(str(column), justify="right" if numeric else "left", overflow="fold")
    for row in frame.itertuples(index=False):
        table.add_row(*(_text(value) for value in row))
    console.print(table)


def usual_columns(frame: pd.DataFrame) -> list[str]:
    """What a listing shows where nothing else is asked for: what tells runs apart, and how they went.

    Settings that vary are left out from the last on, as far as the width is too small.
    """
    varying = [str(column) for column in frame if "." in str(column) and _varies(frame[column])]
    first = [column for column in ("scenario", "label") if column == "label" or _varies(frame[column])]
    last = ["status", "objective", "gap", "violations", "seconds", "digest"]

    def width(column: str) -> int:
        return 3 + max(
            len(column), frame[column].map(lambda value: len(_text(value))).max() if len(frame) else 0
        )

    while varying and sum(map(width, [*first, *varying, *last])) > console.width:
        varying.pop()
    return [*first, *varying, *last]


def _varies(values: pd.Series) -> bool:
    return len(set(values.dropna().map(_text))) > 1


@contextlib.contextmanager
def progress() -> Iterator[Callable[[int, int, int], None]]:
    """A bar with the time left, on standard error and on a terminal only; told of done, failed and all."""
    shown = Console(stderr=True)
    columns = (
        TextColumn("runs"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
        TextColumn("[red]{task.fields[failed]}"),
    )
    with Progress(*columns, console=shown, disable=not shown.is_terminal) as bar:
        task = bar.add_task("runs", total=None, failed="")
        began: list[int] = []

        def advance(done: int, failed: int, total: int) -> None:
            if not began:  # what was done before says nothing about the time left
                began.append(done)
                bar.reset(task, total=total - done, failed="")
            bar.update(task, completed=done - began[0], failed=f"{failed:,} failed" if failed else "")

        yield advance


def duration(seconds: float) -> str:
    """`0.4 s`, `12 s`, `3 min`, `2.5 h`."""
    for size, unit in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"


def _text(value: Any) -> str:
    if value is None or (isinstance(value, float) and value != value):
        return "-"
    if isinstance(value, bool | str):
        return str(value).lower() if isinstance(value, bool) else value
    if isinstance(value, int | float):
        return number(value)
    return json.dumps(value, default=str)


def _few(values: Sequence[str]) -> str:
    if len(values) <= MOST_VALUES:
        return ", ".join(values)
    return ", ".join([*values[: MOST_VALUES - 2], "...", values[-1]])
