"""Interactive pictures of networks and timelines on dashboard pages."""

from planner_dashboard.pictures.network import Selected, show_network

__all__ = ["Selected", "show_network"]
