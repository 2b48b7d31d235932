"""Pages of lists that commands show at once: made of plain data, without pandas and without any system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planner.formatting import plain
from planner.reports.document import Column, Page, Part, Table


def systems_page(descriptions: Sequence[Mapping[str, Any]]) -> Page:
    """Return the systems, a row each."""
    rows = [
        [
            one["system"],
            one["question"],
            ", ".join(design["design"] for design in one["designs"]),
            one["source"],
        ]
        for one in descriptions
    ]
    columns = [Column(label=label) for label in ("system", "question", "designs", "source")]
    return Page(title="Systems", parts=[Part(tables=[Table(title="Systems", columns=columns, rows=rows)])])


def runs_page(runs: Mapping[str, Sequence[Any]], columns: Sequence[str] | None, width: int) -> Page:
    """Return stored runs, a row each, with the names that filters and columns are written with.

    runs     values by column
    columns  those to show; default: those in which runs differ, and their outcome, as far as `width`
             letters allow
    """
    texts = {name: [plain(value) for value in runs[name]] for name in columns or _usual_columns(runs, width)}
    shown = [
        Column(label=name, numeric=all(isinstance(value, int | float | None) for value in runs[name]))
        for name in texts
    ]
    rows = [list(row) for row in zip(*texts.values(), strict=True)]
    return Page(title="Runs", parts=[Part(tables=[Table(columns=shown, rows=rows)])])


def _usual_columns(runs: Mapping[str, Sequence[Any]], width: int) -> list[str]:
    """Return the default columns; settings that vary are left out from the last on to fit the width."""
    varying = [name for name, values in runs.items() if "." in name and _is_distinct(values)]
    first = [name for name in ("scenario", "label") if name == "label" or _is_distinct(runs[name])]
    last = ["status", "constraints", "objective", "gap", "violations", "seconds", "digest"]

    def letters(name: str) -> int:
        return 3 + max(len(name), max((len(plain(value)) for value in runs[name]), default=0))

    while varying and sum(map(letters, [*first, *varying, *last])) > width:
        varying.pop()
    return [*first, *varying, *last]


def _is_distinct(values: Sequence[Any]) -> bool:
    return len({plain(value) for value in values if value is not None}) > 1
