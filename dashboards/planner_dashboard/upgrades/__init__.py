"""Panels of the what-if page: the best upgrades, and the worst failures."""

from planner_dashboard.upgrades.failures import show_failures
from planner_dashboard.upgrades.panel import show_panel
from planner_dashboard.upgrades.purchases import show_purchases

__all__ = ["show_failures", "show_panel", "show_purchases"]
