"""Interactive pictures of networks and timelines on dashboard pages."""

from planner_dashboard.pictures.network import show_difference, show_frames, show_network
from planner_dashboard.pictures.payload import Frame, MetricCurve, place_of
from planner_dashboard.pictures.selection import Selected
from planner_dashboard.pictures.timeline import show_timeline

__all__ = [
    "Frame",
    "MetricCurve",
    "Selected",
    "place_of",
    "show_difference",
    "show_frames",
    "show_network",
    "show_timeline",
]
