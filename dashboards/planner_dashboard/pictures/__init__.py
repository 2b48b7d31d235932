"""Interactive pictures of networks and timelines on dashboard pages."""

from planner_dashboard.pictures.network import Selected, show_difference, show_frames, show_network
from planner_dashboard.pictures.payload import Frame, MetricCurve

__all__ = ["Frame", "MetricCurve", "Selected", "show_difference", "show_frames", "show_network"]
