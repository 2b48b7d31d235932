"""Base of the results of all verbs: short text, chart, display in a notebook, and report."""

from __future__ import annotations

import textwrap
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from planner.errors import InputError, did_you_mean
from planner.formatting import printable
from planner.runs.presenter import find_presenter

if TYPE_CHECKING:
    import pandas as pd
    from plotly import graph_objects as go

    from planner.contract.metrics import Metric
    from planner.reports.document import Page

MOST_LINES: Final = 12
"""Lines of a result's text."""
WIDTH: Final = 100
"""Letters of such a line."""


class Result(ABC):
    """A result of a verb. Reports and charts are made, and their libraries loaded, only when asked for."""

    @abstractmethod
    def to_frame(self) -> pd.DataFrame:
        """Return the result as a table."""

    @abstractmethod
    def summary(self) -> Sequence[str]:
        """Return the sentences and lines of its text, the most important first."""

    def page(self) -> Page:
        """Return the page that terminal, HTML and dashboard show."""
        return find_presenter().page_of(self)

    def plot(self, title: str | None = None) -> go.Figure:
        """Return the first chart, or the first with a title that begins so, as a plotly figure.

        raises  InputError where there is no chart, or none of that title
        """
        charts = find_presenter().charts_of(self.page())
        if not charts:
            raise InputError("there is nothing to draw: no design has a plan, or the system has no drawings")
        if title is None:
            return next(iter(charts.values()))
        for name, figure in charts.items():
            if name.lower().startswith(title.lower()):
                return figure
        raise InputError(
            f"{title}: no such chart" + (did_you_mean(title, charts) or f"; valid: {list(charts)}")
        )

    def report(self, path: str | Path) -> Path:
        """Write the report in the format of the file's ending, .html, .pdf or .pptx, and return its path.

        A web page is one self-contained file; PDF and PowerPoint tell question, verdict, picture, table and
        assumptions.

        raises  InputError for another ending, and where the file cannot be written
        """
        file = Path(path)
        presenter = find_presenter()
        presenter.write_report(presenter.document_of(self), file)
        return file

    def __repr__(self) -> str:
        lines = wrapped(self.summary())
        if len(lines) > MOST_LINES:
            lines = [*lines[: MOST_LINES - 1], "..."]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return find_presenter().fragment_of(self.page())


def metric_columns(
    metrics: Sequence[Metric], values: Mapping[str, float | None], taken: Collection[str]
) -> dict[str, float | None]:
    """Return the values of metrics by their columns, see `metric_column`."""
    return {metric_column(metric.name, taken): values.get(metric.name) for metric in metrics}


def metric_column(name: str, taken: Collection[str]) -> str:
    """Return the column of a metric: its name, or `metric.cost` where `taken` has that name."""
    return f"metric.{name}" if name in taken else name


def wrapped(lines: Sequence[str]) -> list[str]:
    """Return lines that are no longer than WIDTH, with control characters as their escapes."""
    return [
        piece for line in lines for piece in textwrap.wrap(printable(line), WIDTH, subsequent_indent="  ")
    ]


def aligned(rows: Sequence[Sequence[Any]]) -> list[str]:
    """Return rows of cells as lines with aligned columns: the first flush left, the others right."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))] if cells else []
    return [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
