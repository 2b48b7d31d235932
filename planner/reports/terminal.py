"""Renders pages on a terminal."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rich import box
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table as RichTable
from rich.text import Text as RichText

from planner.formatting import printable
from planner.io.file_replacement import replace_file
from planner.reports.document import Column, Kind, Page, Part, Table, Text, lines

if TYPE_CHECKING:
    from pathlib import Path

STYLES: Final[dict[Kind, str]] = {
    "": "",
    "best": "bold green",
    "good": "green",
    "bad": "red",
    "warning": "yellow",
    "dim": "dim",
    "strong": "bold",
}
NARROWEST: Final = 8
"""Letters of the narrowest column of figures."""
WIDEST_HEADER: Final = 24
"""Letters that a narrow terminal leaves to the longest row header; longer ones are folded."""


class Terminal(Console):
    """The terminal. A reader that stops, as `head` does, ends the command quietly (see `planner.cli`)."""

    def on_broken_pipe(self) -> None:
        """Raise BrokenPipeError."""
        raise BrokenPipeError


console = Terminal(highlight=False)


def show(page: Page, console: Console = console) -> None:
    """Print a page's parts, without their details and charts."""
    for section in page.parts:
        if not section.detail:
            show_part(section, console)


def show_part(section: Part, console: Console = console) -> None:
    """Print one part: sentences, tables, notes."""
    _print_lines(lines(section.sentences), console)
    if section.sentences and section.tables:
        console.print()
    for number, table in enumerate(section.tables):
        if number and section.tables[number - 1].caption:
            console.print()
        for piece in _pieces(table, console.width):
            console.print(_rich(piece, console.width))
    _print_lines(lines([*(Text(section.hint, "dim") for _ in section.hint[:1]), *section.notes]), console)


def save_text(page: Page, path: Path, columns: int) -> None:
    """Write a page as a text file, wide enough for tables with so many columns."""
    with replace_file(path) as partial, partial.open("w", encoding="utf-8") as file:
        console = Console(file=file, width=max(100, 40 + 16 * columns))
        show(page, console)
        for section in page.parts:
            if section.detail and section.notes:  # on a terminal, standard error has them
                show_part(section, console)


def _print_lines(texts: Sequence[Text], console: Console) -> None:
    for text in texts:
        # a terminal gets whole words, a file or a pipe whole lines
        soft = not console.is_terminal
        console.print(printable(text.text), markup=False, style=STYLES[text.kind] or None, soft_wrap=soft)


def _pieces(table: Table, width: int) -> Iterator[Table]:
    """Yield the table, or as many tables below each other as its columns need on this width."""
    fixed = table.row_headers
    if not fixed or len(table.columns) <= fixed + 1:
        yield table
        return
    widths = _widths(table, width)
    available = width - sum(widths[:fixed]) + 3 - 2  # no space after the last column; both edges take one
    piece: list[int] = []
    remaining = available
    for column in range(fixed, len(table.columns)):
        if piece and widths[column] > remaining:
            yield _columns_of(table, piece, is_last=False)
            piece, remaining = [], available
        piece.append(column)
        remaining -= widths[column]
    yield _columns_of(table, piece, is_last=True)


def _column_width(column: Column, lengths: Sequence[int], *, is_header: bool) -> int:
    """Return the letters that a column needs with cells of these lengths, with the space after it."""
    if column.wrap and not column.numeric:
        limit = WIDEST_HEADER if is_header else 12
        lengths = [min(limit, length) for length in lengths]
    narrowest = 0 if is_header else NARROWEST
    return max([narrowest, *_label_widths(column.label, column.unit), *lengths]) + 3


def _widths(table: Table, width: int) -> list[int]:
    """Return the letters that each column needs, with the space after it.

    Row headers are narrower, down to their longest words, where a column of figures would not fit beside
    them.
    """
    fixed, cells = table.row_headers, table.cells()
    widths = [
        _column_width(column, [len(row[index].text) for row in cells], is_header=index < fixed)
        for index, column in enumerate(table.columns)
    ]
    missing = sum(widths[:fixed]) + max(widths[fixed:], default=0) + 2 - 3 - width
    for index in reversed(range(fixed)):
        if missing > 0 and table.columns[index].wrap:
            words = [word for row in cells for word in row[index].text.split()]
            longest = min(WIDEST_HEADER, max(map(len, words), default=0))
            cut = max(0, min(missing, widths[index] - 3 - longest))
            widths[index] -= cut
            missing -= cut
    return widths


def _label_widths(label: str, unit: str) -> list[int]:
    return [len(line) for line in [*label.split("\n"), unit]]


def _columns_of(table: Table, indices: Sequence[int], *, is_last: bool) -> Table:
    selected = [*range(table.row_headers), *indices]
    return replace(
        table,
        columns=[table.columns[index] for index in selected],
        rows=[[row[index] for index in selected] for row in table.rows],
        caption=table.caption if is_last else "",
    )


def _rich(table: Table, width: int) -> RichTable:
    shown = RichTable(
        title=RichText(printable(table.title)) if table.title else None,
        title_justify="left",
        title_style="bold",
        caption=RichText(printable(table.caption)) if table.caption else None,
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    _add_columns(shown, table, width)
    for index, row in enumerate(table.cells()):
        shown.add_row(
            *(RichText(printable(cell.text), style=STYLES[cell.kind]) for cell in row),
            end_section=index in table.lines_after,
        )
    return shown


def _add_columns(shown: RichTable, table: Table, width: int) -> None:
    """Add the columns; where not all fits, figures are folded, and beside row headers names too."""
    widths = _widths(table, width)
    fits = sum(widths) - 1 <= width
    for index, column in enumerate(table.columns):
        label = column.label + (f"\n{column.unit}" if column.unit else "")
        shown.add_column(
            RichText(printable(label)),
            justify="right" if column.numeric else "left",
            no_wrap=(fits and (column.numeric or not column.wrap)) or not (table.row_headers or column.wrap),
            overflow="fold",
            ratio=column.share,
            min_width=widths[index] - 3 if index < table.row_headers and column.wrap else None,
        )


@contextlib.contextmanager
def show_work(what: str) -> Iterator[None]:
    """Show the current activity and its duration, on standard error if that is a terminal."""
    shown = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(
        *columns, console=shown, disable=not shown.is_terminal, transient=True, redirect_stdout=False
    ) as bar:
        bar.add_task(printable(what), total=None)
        yield


@contextlib.contextmanager
def progress(what: str, total: int | None = None) -> Iterator[Callable[..., None]]:
    """Show a bar with the time left, on standard error and on a terminal only.

    Yields `advance(done=None, failed=0, total=None)`: without arguments it moves the bar by one; a sweep
    gives the numbers of runs done, of these failed, and in all.
    """
    shown = Console(stderr=True)
    columns = (
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
        TextColumn("[red]{task.fields[failed]}"),
    )
    with Progress(*columns, console=shown, disable=not shown.is_terminal) as bar:
        task = bar.add_task(what, total=total, failed="")
        first: list[int] = []

        def advance(finished: int | None = None, failed: int = 0, total: int | None = None) -> None:
            if finished is None:
                bar.advance(task)
                return
            if not first:  # what was done before says nothing about the time left
                first.append(finished)
                bar.reset(task, total=None if total is None else total - finished, failed="")
            bar.update(task, completed=finished - first[0], failed=f"{failed:,} failed" if failed else "")

        yield advance
