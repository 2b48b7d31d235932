"""Renders the document model (`planner.reports.document`) and tables of plans on dashboard pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING, Any, Final

import pandas as pd
import streamlit as st

from planner.formatting import amount_or_number, counted, counted_of
from planner.reports import run_tables
from planner.reports.document import Column, Part, Table, Text, lines, table_of
from planner_dashboard.fields import column_label
from planner_dashboard.session import escape_markdown

if TYPE_CHECKING:
    from plotly import graph_objects as go

    from planner.contract.drawing import Drawing
    from planner.contract.elements import ElementReport
    from planner.contract.metrics import Metric
    from planner_dashboard.worker import Answer


CONFIG: Final[dict[str, Any]] = {"displaylogo": False}


def show_chart(figure: go.Figure | str, key: str, *, is_selectable: bool = False) -> Any:
    """Show a plotly figure, or its JSON, in the colours of the page; return the points selected in it."""
    drawing = _parse(figure) if isinstance(figure, str) else figure
    drawing.layout.font.color = None
    selection: dict[str, Any] = {"on_select": "rerun", "selection_mode": "points"} if is_selectable else {}
    return st.plotly_chart(drawing, key=key, theme="streamlit", config=CONFIG, **selection)


def show_charts(figures: Sequence[go.Figure | str], key: str, *, side_by_side: bool = False) -> None:
    """Show charts below each other, or in two columns."""
    columns: Sequence[Any] = [st.container()]
    if side_by_side and len(figures) > 1:
        columns = st.columns(2)
    for index, figure in enumerate(figures):
        with columns[index % len(columns)]:
            show_chart(figure, f"{key} {index}")


@lru_cache(maxsize=32)
def _parse(figure: str) -> go.Figure:
    """Return the figure of a JSON text; a page shows the same text at each of its runs."""
    import plotly.io  # not before there is a chart: it takes as long as the forms

    return plotly.io.from_json(figure)


def show_drawing(drawing: Drawing, key: str) -> None:
    """Show one drawing as a chart."""
    from planner.reports import charts  # not before there is a chart, as above

    show_chart(charts.chart(drawing), key)


def show_tabs(key: str, *views: tuple[str, Callable[[], object]]) -> None:
    """Show titles and views as tabs; those of closed tabs are neither computed, sent nor drawn."""
    tabs = st.tabs([title for title, _ in views], key=key, on_change="rerun")
    for tab, (_, show) in zip(tabs, views, strict=True):
        if tab.open:
            with tab:
                show()


def show_part(section: Part, key: str, figures: Sequence[str] | None = None) -> None:
    """Show a part of a page: key and charts, sentences, tables and notes.

    figures  JSON of its charts, where a worker has made them
    """
    if section.key:
        st.markdown(
            " &nbsp; ".join(
                f"<span style='color:{colour}'>●</span> {name}" for name, colour in section.key.items()
            ),
            unsafe_allow_html=True,
        )
    show_charts(section.charts if figures is None else figures, key, side_by_side=section.side_by_side)
    show_lines(section.sentences)
    for table in section.tables:
        show_table(table)
    show_lines(section.notes)


def show_lines(sentences: Sequence[Text | str]) -> None:
    """Show sentences; those that begin with a dash become a list."""
    for line in lines(sentences):
        item, text = ("- ", line.text[2:]) if line.text.startswith("- ") else ("", line.text)
        plain = escape_markdown(text)
        if line.kind in ("bad", "warning"):
            (st.error if line.kind == "bad" else st.warning)(plain)
        elif line.kind == "dim" and not item:
            st.caption(plain)
        else:
            st.markdown(item + (f"**{plain}**" if line.kind == "strong" else plain))


def show_metrics(answer: Answer, baseline: Answer | None, metrics: Sequence[Metric]) -> None:
    """Show metrics side by side, with their changes since the baseline."""
    earlier = (
        {} if baseline is None else {design.label: design.figures.metrics for design in baseline.designs}
    )
    designs = [
        replace(design.figures, label=design.title, earlier=earlier.get(design.label, {}))
        for design in answer.designs
    ]
    show_table(run_tables.metrics_table(designs, metrics, references=answer.references))


def show_table(table: Table) -> None:
    """Show a table of the document model; its leading columns are row headers."""
    if table.title:
        st.markdown(f"**{escape_markdown(table.title)}**")
    st.html(table_html(table))
    if table.caption:
        st.caption(escape_markdown(table.caption))


def table_html(table: Table) -> str:
    """Return a table with cells that wrap; too wide for its place, it scrolls beside its row headers.

    A data frame would cut long row headers, and show one column of several on a phone.
    """
    headers = table.row_headers
    heads = [_header_html(table.columns[:headers])] if headers else []
    heads += [_header_html([column], is_numeric=column.numeric) for column in table.columns[headers:]]
    rows = []
    for cells in table.cells():
        first = f"<th scope='row'>{_with_unit(cells[:headers])}</th>" if headers else ""
        others = zip(cells[headers:], table.columns[headers:], strict=True)
        rows.append(f"<tr>{first}{''.join(_cell_html(cell, column) for cell, column in others)}</tr>")
    return (
        "<div class='planner-wide' tabindex='0'><table class='planner-table'>"
        f"<thead><tr>{''.join(heads)}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _header_html(columns: Sequence[Column], *, is_numeric: bool = False) -> str:
    column = columns[0]
    label = escape(column.label or column.unit)
    unit = f" <small>{escape(column.unit)}</small>" if column.label and column.unit else ""
    return f"<th scope='col'{_classes('number' if is_numeric else '')}>{label}{unit}</th>"


def _with_unit(cells: Sequence[Text]) -> str:
    """Return a row's leading cells: a name, and the text beside it, such as its unit."""
    name, *others = (escape(cell.text) for cell in cells)
    beside = " ".join(filter(None, others))
    return f"{name} <small>{beside}</small>" if beside else name


def _cell_html(cell: Text, column: Column) -> str:
    return f"<td{_classes('number' if column.numeric else '', cell.kind)}>{escape(cell.text)}</td>"


def _classes(*kinds: str) -> str:
    names = " ".join(f"planner-{kind}" for kind in kinds if kind)
    return f" class='{names}'" if names else ""


def shown_name(name: str) -> str:
    """Return the name of an element as a page shows it: `Koblenz – Koeln`, `a → b`."""
    return name.replace("<->", " – ").replace("->", " → ")


def show_report(report: ElementReport) -> None:
    """Show the facts of an element, and its tables."""
    facts = "".join(
        f"<dt>{escape(fact.label)}</dt><dd>{escape(_fact_text(fact.value, fact.unit))}</dd>"
        for fact in report.facts
    )
    st.html(f"<dl class='planner-facts'>{facts}</dl>")
    for section in report.sections:
        if len(section.frame):
            frame = section.frame.map(lambda cell: shown_name(cell) if isinstance(cell, str) else cell)
            show_table(table_of(frame, section.units, title=section.title, caption=section.note))


def _fact_text(value: float | str | None, unit: str) -> str:
    return value if isinstance(value, str) else amount_or_number(value, unit)


def show_frames(frames: Mapping[str, tuple[pd.DataFrame, int]], if_empty: str) -> None:
    """Show the first rows of each data frame, with its number of rows; `if_empty` where none has any."""
    if not any(count for _, count in frames.values()):
        st.caption(if_empty)
    for table, (frame, count) in frames.items():
        if count:
            is_cut = len(frame) < count
            st.caption(
                f"{column_label(table)}, "
                + (f"the first {counted_of(len(frame), count, 'rows')}" if is_cut else counted(count, "rows"))
            )
            st.dataframe(
                frame,
                hide_index=True,
                column_config={name: column_label(name) for name in map(str, frame.columns)},
            )
