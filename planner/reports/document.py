"""One document model of everything that is shown: pages of parts, with sentences, tables and charts.

The terminal, HTML, PDF, PowerPoint and the dashboard render the same pages (`planner.reports.terminal`,
`html`, `pdf`, `slides`, `planner_dashboard.rendering`); what a page says is decided once, in `run_pages`,
`study_pages` and `catalogue_pages`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal

from planner.formatting import counted_of, heading, number, scale_of

if TYPE_CHECKING:
    import pandas as pd
    from plotly import graph_objects as go

    from planner.contract.drawing import Drawing

Kind = Literal["", "best", "good", "bad", "warning", "dim", "strong"]

MOST_ROWS: Final = 12
"""Rows of a plan's table that a page shows."""


@dataclass(frozen=True)
class Text:
    """A cell or a sentence, and its mark."""

    text: str
    kind: Kind = ""


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a table.

    numeric  set flush right
    wrap     may be broken over lines where the page is narrow
    share    of the width, where columns share it by given parts
    """

    label: str
    unit: str = ""
    numeric: bool = False
    wrap: bool = True
    share: int | None = None


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table.

    rows         cells, as text or with what marks them
    lines_after  numbers of rows that a line follows
    row_headers  leading columns that are repeated where a narrow page splits the table
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[Text | str]]
    title: str = ""
    caption: str = ""
    lines_after: frozenset[int] = frozenset()
    row_headers: int = 0

    def cells(self) -> list[list[Text]]:
        """Return the rows with every cell a `Text`."""
        return [[cell if isinstance(cell, Text) else Text(cell) for cell in row] for row in self.rows]


def no_drawings() -> list[Drawing]:
    """Return no drawings."""
    return []


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of a page: sentences, tables, notes after them, and charts.

    drawings     makes the charts as data; called only where charts are shown
    figures      makes the charts with plotly, where they should differ from those of the drawings
    pictures     makes what is saved in place of the charts, where that should have another size
    key          colours by what they stand for in the charts
    texts        preformatted text
    hint         how a terminal shows more, on a terminal only
    detail       not shown on a terminal
    folded       opens on a click, where the page can
    side_by_side charts stand beside each other where the page is wide enough
    """

    title: str = ""
    sentences: Sequence[Text | str] = ()
    tables: Sequence[Table] = ()
    notes: Sequence[Text | str] = ()
    drawings: Callable[[], list[Drawing]] = no_drawings
    figures: Callable[[], list[go.Figure]] | None = None
    pictures: Callable[[], list[go.Figure]] | None = None
    key: Mapping[str, str] = field(default_factory=dict)
    texts: Sequence[str] = ()
    hint: str = ""
    detail: bool = False
    folded: bool = False
    side_by_side: bool = False

    @cached_property
    def pictures_and_charts(self) -> tuple[list[Drawing], list[go.Figure]]:
        """The part's pictures of plans, which are shown as SVG, and its other charts."""
        if self.figures is not None:
            return [], self.figures()
        drawings = self.drawings()
        if not drawings:
            return [], []
        from planner.reports import charts
        from planner.reports.drawing_svg import is_wide

        others = [charts.chart(drawing) for drawing in drawings if not is_wide(drawing)]
        return [drawing for drawing in drawings if is_wide(drawing)], others

    @cached_property
    def charts(self) -> list[go.Figure]:
        """The part's charts, made once."""
        if self.figures is not None:
            return self.figures()
        drawings = self.drawings()
        if not drawings:
            return []
        from planner.reports import charts  # plotly, only where there is a chart

        return [charts.chart(drawing) for drawing in drawings]


@dataclass(frozen=True)
class Highlight:
    """A metric that stands out, such as the delivered traffic of a design, with a note."""

    label: str
    value: str
    note: Text


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page: its subject, and its parts.

    picture      makes the drawing that a document begins with, and says what it shows
    highlights   three to five figures
    assumptions  what the result rests on: a table of subjects and statements, and lines of code as texts
    """

    title: str
    about: str = ""
    parts: Sequence[Part] = ()
    warnings: Sequence[str] = ()
    picture: Callable[[], tuple[str, Drawing] | None] | None = None
    highlights: Sequence[Highlight] = ()
    assumptions: Part | None = None


def lines(inputs: Sequence[Text | str]) -> list[Text]:
    """Return sentences with every one a `Text`."""
    return [item if isinstance(item, Text) else Text(item) for item in inputs]


def table_of(
    frame: pd.DataFrame,
    units: Mapping[str, str] | None = None,
    *,
    title: str = "",
    caption: str = "",
    upper: int | None = MOST_ROWS,
    show: Callable[[Any], str] | None = None,
) -> Table:
    """Return a table of data with its first column as row headers; a long one is cut to `upper` rows.

    show  text of a value; default: numbers by `number`, all else as it is
    """
    from pandas.api.types import is_bool_dtype, is_numeric_dtype  # not above: lists of plain data need none

    shown = frame if upper is None else frame.head(upper)
    if len(frame) > len(shown):
        cut = f"the first {counted_of(len(shown), len(frame), 'rows')}"
        caption = f"{caption}; {cut}" if caption else cut
    numeric = [
        (is_numeric_dtype(frame[name]) and not is_bool_dtype(frame[name]))
        or not any(isinstance(value, str) for value in frame[name])
        for name in frame
    ]
    columns, texts = [], []
    for name, is_numeric in zip(frame, numeric, strict=True):
        unit = (units or {}).get(str(name), "")
        label = "" if name == unit else heading(str(name), unit)
        write: Callable[[float | None], str] = number
        if is_numeric and units is not None:
            unit, write = scale_of(str(name), [item for item in shown[name] if isinstance(item, float)], unit)
        texts.append([show(value) if show else _text(value, write) for value in shown[name]])
        columns.append(Column(label=label, unit=unit, numeric=is_numeric))
    rows = [list(row) for row in zip(*texts, strict=True)]
    return Table(columns=columns, rows=rows, title=title, caption=caption, row_headers=1)


def _text(value: Any, write: Callable[[float | None], str] = number) -> str:
    if isinstance(value, bool | str):
        return str(value)
    return (
        write(value)
        if value is None or isinstance(value, int | float) or hasattr(value, "dtype")
        else str(value)
    )
