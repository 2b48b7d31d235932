"""Panels of the what-if page: the best upgrades, and the worst failures."""

from planner_dashboard.upgrades.failures import show_failures
from planner_dashboard.upgrades.panel import show_panel

__all__ = ["show_failures", "show_panel"]
