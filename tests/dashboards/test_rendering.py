"""Tables of the document model on a page, whatever their labels."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from tests.dashboards.shown_tables import shown_tables


def _show_tables() -> None:
    """Run as a page of its own, which knows no names of this file."""
    from planner.reports.document import Column, Table, Text
    from planner_dashboard.rendering import show_table

    many = [Column(label=f"c{index}", numeric=True) for index in range(8)]
    names = [Column(label="source"), Column(label="target"), Column(label="target")]
    show_table(Table(columns=names, rows=[["a", "b", "1"], ["a", "c", "2"], ["a", "c", "3"]], row_headers=1))
    show_table(Table(columns=many, rows=[["a long value"] * 8, ["b"] * 8], row_headers=1))
    show_table(Table(columns=many, rows=[], row_headers=1))
    show_table(Table(columns=[Column(label="", unit="rules", numeric=True)], rows=[["3"]]))
    columns = [Column(label=""), Column(label=""), Column(label="Today", unit="km", numeric=True)]
    rows = [["Load <of> links", "Mbit/s", Text("5", "best")]]
    show_table(Table(columns=columns, rows=rows, row_headers=2))


def test_labels_may_repeat_and_tables_be_empty() -> None:
    app = AppTest.from_function(_show_tables, default_timeout=30.0).run()
    assert not app.exception
    repeated, wide, empty, counted, marked = shown_tables(app)
    assert list(repeated.index) == ["a", "a", "a"]
    assert list(repeated.columns) == ["target", "target"]
    assert (wide.shape, empty.shape) == ((2, 7), (0, 8))
    assert list(counted.columns) == ["rules"], "a unit alone is the name of its column"
    assert list(marked.index) == ["Load <of> links Mbit/s"], "the unit stands beside the name"
    assert list(marked.columns) == ["Today km"]
    body = str(app.get("html")[-1].proto.body)
    assert "<td class='planner-number planner-best'>5</td>" in body
    assert "<of>" not in body
