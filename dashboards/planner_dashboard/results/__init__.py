"""Results in stores: runs of sweeps, and answers that were kept."""

from planner_dashboard.results.page import page

__all__ = ["page"]
