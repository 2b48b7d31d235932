"""Drawings as SVG text, for documents and for the export of pictures."""

from __future__ import annotations

from planner.contract.drawing import Curve, Distribution, Drawing, NetworkMap, Points, Timeline
from planner.reports.chart_svg import chart_svg
from planner.reports.network_svg import network_svg
from planner.reports.timeline_svg import timeline_svg


def is_wide(drawing: Drawing) -> bool:
    """Return whether a drawing is a picture of a plan, as wide as a page, and no chart."""
    return not isinstance(drawing, Curve | Points | Distribution)


def has_svg(drawing: Drawing) -> bool:
    """Return whether a drawing has SVG text."""
    return isinstance(drawing, Curve | Points | Distribution | NetworkMap | Timeline)


def drawing_svg(drawing: Drawing, width: int, *, title: bool = False, dark: bool = False) -> str:
    """Return a drawing as SVG text; a picture of a plan is `width` pixels wide.

    title  whether the picture of a plan has its title; a chart always has
    dark   whether the ground is dark; of the picture of a plan
    """
    match drawing:
        case NetworkMap():
            return network_svg(drawing, width=width, title=title, dark=dark)
        case Timeline():
            return timeline_svg(drawing, width=width, title=title, dark=dark)
        case Curve() | Points() | Distribution():
            return chart_svg(drawing)
    raise TypeError(f"{type(drawing).__name__} has no SVG text")
