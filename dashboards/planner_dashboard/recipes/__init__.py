"""Coordination mechanisms: what they are worth as measured, with worse information, and which one suits."""

from planner_dashboard.recipes.page import page

__all__ = ["page"]
