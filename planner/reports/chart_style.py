"""Style of all charts of plotly: colours, grid and fonts.

Charts have no background and text colour of their own: the page sets both, for light and dark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from planner.extras import needed_by
from planner.formatting import printable

with needed_by("a chart"):
    from plotly import graph_objects as go

TRACE_TEXTS: Final = ("name", "text", "hovertext", "hovertemplate", "x", "y", "base", "customdata", "labels")
MARKUP: Final = re.compile(r"<(?!/?(?:b|i|br|sub|sup|extra)>)")
"""The start of markup that our charts do not use themselves."""
LEGEND_PX: Final = 52
"""From the plot down to its legend."""
GRID: Final = "rgba(128,128,128,0.25)"


def apply_style(figure: go.Figure, title: str) -> go.Figure:
    """Set the title and the common style of a figure; return it."""
    figure.update_xaxes(gridcolor=GRID, zerolinecolor=GRID, automargin=True)
    figure.update_yaxes(gridcolor=GRID, zerolinecolor=GRID, automargin=True)
    if figure.layout.height is None:
        figure.update_layout(height=380)
    figure.update_layout(
        title={"text": title, "x": 0, "xref": "paper", "font": {"size": 15}},
        template="none",
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": "system-ui, sans-serif", "size": 12, "color": "#888888"},
        margin={"l": 10, "r": 10, "t": 60, "b": 40},
        # below the numbers and the title of the axis, whatever the height
        legend={"orientation": "h", "y": -LEGEND_PX / max(1, figure.layout.height - 100), "yanchor": "top"},
    )
    return escape_markup(figure)


def escape_markup(figure: go.Figure) -> go.Figure:
    """Escape the markup in all texts of a figure, but line breaks and the like; return the figure.

    Plotly takes texts for HTML: a link in a node's name would be a link in the chart.
    """
    for trace in figure.data:
        for name in TRACE_TEXTS:
            if name in trace and trace[name] is not None:
                trace[name] = _escape(trace[name])
    for owner, name in _layout_texts(figure.layout):
        if owner[name] is not None:
            owner[name] = _escape(owner[name])
    return figure


def _layout_texts(layout: go.Layout) -> Iterator[tuple[Any, str]]:
    """Yield the parts of a layout that have a text, each with its name."""
    yield layout.title, "text"
    yield layout.legend.title, "text"
    for annotation in layout.annotations:
        yield annotation, "text"
    for name in layout:
        if re.fullmatch(r"[xy]axis\d*", name):
            yield layout[name].title, "text"
            yield layout[name], "ticktext"
            yield layout[name], "categoryarray"


def _escape(value: Any) -> Any:
    """Return a text, or an array or list with texts, with its markup escaped; numbers stay."""
    if isinstance(value, str):
        return MARKUP.sub("&lt;", printable(value))
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "OUS":
            return value
        escaped = np.empty(value.shape, dtype=object)
        escaped[...] = np.reshape(np.array([*map(_escape, value.flat), None], dtype=object)[:-1], value.shape)
        return escaped
    return type(value)(_escape(item) for item in value) if isinstance(value, list | tuple) else value
