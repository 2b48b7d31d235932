"""Style of all charts: colours, grid and fonts.

Charts have no background and text colour of their own: the page sets both, for light and dark. Colours are
those of Okabe and Ito, which colour-blind readers can distinguish.
"""

from __future__ import annotations

from typing import Final

from plotly import graph_objects as go

COLOURS: Final = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#B0A000", "#888888")
GRID: Final = "rgba(128,128,128,0.25)"


def apply_style(figure: go.Figure, title: str) -> go.Figure:
    """Set the title and the common style of a figure; return it."""
    figure.update_xaxes(gridcolor=GRID, zerolinecolor=GRID, automargin=True)
    figure.update_yaxes(gridcolor=GRID, zerolinecolor=GRID, automargin=True)
    if figure.layout.height is None:
        figure.update_layout(height=380)
    return figure.update_layout(
        title={"text": title, "x": 0, "xref": "paper", "font": {"size": 15}},
        template="none",
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": "system-ui, sans-serif", "size": 12, "color": "#888888"},
        margin={"l": 10, "r": 10, "t": 60, "b": 40},
        legend={"orientation": "h", "y": -0.15},
    )
