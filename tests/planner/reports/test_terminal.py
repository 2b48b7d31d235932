"""Pages on a terminal: names are never cut, however narrow it is."""

from __future__ import annotations

import io

import pandas as pd
import pytest
from rich.console import Console

from planner.cli import listings
from planner.formatting import sizes
from planner.reports import run_tables, terminal
from planner.reports.document import Column, Part, Table, table_of
from planner.scenarios.catalogue import find_system, system_names
from planner.scenarios.description import describe, section_parameters


@pytest.mark.parametrize("width", [60, pytest.param(80, marks=pytest.mark.exhaustive), 120])
@pytest.mark.parametrize("name", system_names())
def test_a_system_is_shown_whole(name: str, width: int) -> None:
    shown = Console(width=width, file=io.StringIO(), record=True)
    system = find_system(name)
    terminal.show(listings.system_page(describe(system), {f"{name}/a_scenario": "A scenario"}), shown)
    text = shown.export_text()
    assert "…" not in text
    tables = text.splitlines()[2:]  # the terminal itself folds the sentences before
    assert max(map(len, tables)) <= width
    names = [*(design.name for design in system.designs), *(metric.name for metric in system.metrics)]
    for parameters in section_parameters(system).values():
        names += parameters
    words = set(text.split())
    assert [item for item in names if item not in words] == []


@pytest.mark.parametrize(
    ("count", "what", "said"),
    [
        (1, "demands", "1 demand"),
        (1, "entries", "1 entry"),
        (1, "switches", "1 switch"),
        (1, "wavelength", "1 wavelength"),
        (0, "links", "0 links"),
        (1_200, "links", "1,200 links"),
    ],
)
def test_sizes_count_in_english(count: int, what: str, said: str) -> None:
    assert sizes({what: count}) == said


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_the_first_column_of_a_wide_table_is_never_cut(width: int) -> None:
    """Each piece of a table that is split repeats the whole row headers; long ones are folded."""
    changes = ["links Frankfurt->Nuremberg and back with 10 Gbit/s more", "no change", "a" * 30]
    figures = {f"metric_{index}": [1234.5, None, 1e9] for index in range(8)}
    other = {"sentence": ["words that may be broken over many lines " * 2] * 3}
    frame = pd.DataFrame({"change": changes, **other, **figures})
    shown = Console(width=width, file=io.StringIO(), record=True)
    terminal.show_part(Part(tables=[table_of(frame, title="Changes")]), shown)
    text = shown.export_text()
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    first_column = [line[1:].split("  ")[0] for line in text.splitlines()]
    pieces = first_column.count("change")
    assert pieces >= 1 + (width < 120)
    assert first_column.count("no change") == pieces, "a short row header stays on its line"
    letters = "".join("".join(first_column).split())
    for change in changes:
        assert letters.count("".join(change.split())) == pieces


@pytest.mark.parametrize("width", range(40, 100))
def test_no_cell_of_a_split_table_is_cut(width: int) -> None:
    """Whatever the width, a column that does not fit whole goes into the next piece."""
    names = ["priority ranking", "hierarchical partitioning", "none", "transparency", "reaction"]
    columns = [
        Column(label="Mechanism", wrap=False),
        *(Column(label=f"design_{k}", numeric=True) for k in range(len(names))),
    ]
    table = Table(columns=columns, rows=[["Mechanism", *names]], row_headers=1)
    shown = Console(width=width, file=io.StringIO(), record=True)
    terminal.show_part(Part(tables=[table]), shown)
    text = shown.export_text()
    assert all(name in text for name in names)
    assert max(map(len, text.splitlines())) <= width


@pytest.mark.parametrize("width", [40, 60, 80])
def test_no_figure_is_cut_beside_long_row_headers(width: int) -> None:
    """A table of one column of figures cannot be split: its row headers break at words instead."""
    scope = "for partitions given in turn, entries shared by edge switches"
    table = Table(
        columns=[Column(label="", wrap=False), Column(label=""), Column(label="a_long_design", numeric=True)],
        rows=[
            ["Aggregation entries max", scope, "hierarchical partitioning"],
            ["Bound", "", "2,232,000 Mbit/s"],
        ],
        row_headers=2,
    )
    shown = Console(width=width, file=io.StringIO(), record=True)
    terminal.show_part(Part(tables=[table]), shown)
    text = shown.export_text()
    letters = "".join(text.split())
    for cell in ("hierarchicalpartitioning", "2,232,000Mbit/s") if width == 80 else ("2,232,000",):
        assert cell in letters
    assert sum(letter.isdigit() for letter in text) == 7
    assert max(map(len, text.splitlines())) <= width


def test_no_cell_is_cut_beside_a_long_text_among_figures() -> None:
    """A column of figures may hold a text, such as a published formula: it is folded, and others stay."""
    formula = "y(t,u,n) = ((r(u,n) - x(u,n)) - (r(t,n) - x(t,n))) / 2"
    columns = [Column(label="value"), Column(label="published", numeric=True, wrap=True)]
    columns += [Column(label="verdict", wrap=False)]
    rows = [["Global objective", formula, "not reproduced"], ["Node capacity", "0.9952", "reproduced"]]
    shown = Console(width=60, file=io.StringIO(), record=True)
    terminal.show_part(Part(tables=[Table(columns=columns, rows=rows)]), shown)
    words = shown.export_text().split()
    assert [word for row in rows for cell in row for word in cell.split() if word not in words] == []


def test_changes_of_percentages_are_in_points() -> None:
    metric = find_system("traffic").metric("max_utilization")
    assert run_tables.change(0.93, 1.0, metric.text) == " (−7 points)"
    assert run_tables.change(1200.0, 1000.0, lambda value: f"{value:.0f}") == " (+200)"
    assert run_tables.change(1.0, 1.0, metric.text) == ""
