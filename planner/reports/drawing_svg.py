"""Drawings as SVG text, for documents and for the export of pictures."""

from __future__ import annotations

from planner.contract.drawing import Drawing, NetworkMap, Timeline
from planner.reports.chart_svg import chart_svg

HAS_PICTURES = False
"""Whether maps and timelines have SVG text yet."""


def drawing_svg(drawing: Drawing, width: int) -> str:  # noqa: ARG001
    """Return the picture of a drawing as SVG text."""
    assert not isinstance(drawing, NetworkMap | Timeline)
    return chart_svg(drawing)
