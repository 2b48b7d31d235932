"""What to buy, and which failures hurt: panels of the what-if page."""

from planner_dashboard.upgrades.failures import show_failures
from planner_dashboard.upgrades.panel import show_panel

__all__ = ["show_failures", "show_panel"]
